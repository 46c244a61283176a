# shellcheck shell=bash
# How scripts speak; they source it.

# Numbers have a decimal point, in printf and awk as in what programs print.
export LC_ALL=C.UTF-8

# A heading, bold.
say() { printf '\033[1m==> %s\033[0m\n' "$*"; }

# Ends the script with its name and a message.
fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}
