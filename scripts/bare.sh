#!/usr/bin/env bash
# Runs a command as a freshly installed Debian or Ubuntu would: in a copy-on-write view of this machine, after removing every
# package that a minimal system does not have.
#
#   scripts/bare.sh [--with PACKAGE]... COMMAND [ARGUMENT...]
#
#   --with PACKAGE  install this package first; for tools that change no result, such as ccache
#
# This checkout, ../shared beside it (if there is one, read-only) and ~/.cache are the real ones; every other change of the
# command is dropped after it. Needs root, overlayfs and the packages' archive. Where a machine allows no such view, it says
# SKIPPED and ends with 77.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

with=()
while [ $# -gt 0 ]; do
    case "$1" in
    --with) with+=("${2:?}") && shift ;;
    -h | --help)
        sed -n '2,10s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*) fail "unknown option $1 (see --help)" ;;
    *) break ;;
    esac
    shift
done
[ $# -gt 0 ] || fail "which command? (see --help)"

skip() {
    say "SKIPPED: no bare system: $*"
    exit 77
}
[ "$(id -u)" -eq 0 ] || skip "this is not root"
command -v apt-get >/dev/null || skip "this is no Debian"
[ "$PWD" != / ] || fail "the checkout is the root folder: what is removed from the view would be removed from this machine"
case "$HOME/ /usr/ /var/" in *"$PWD/"*) fail "$PWD holds the home folder or the system: nothing may be removed there" ;; esac
unshare --mount true 2>/dev/null || skip "this machine allows no mounts"

# Runs inside a mount namespace of its own. $1: the tree, then the command.
in_view() {
    set -euo pipefail
    local tree=$1 view=/mnt
    shift
    mount --make-rprivate /
    mount -t tmpfs -o size=75% tmpfs "$view"
    mkdir "$view"/{upper,work,root}
    mount -t overlay -o "lowerdir=/,upperdir=$view/upper,workdir=$view/work" overlay "$view/root" || exit 77
    local root=$view/root folder
    # First what is emptied, and only then what is real.
    for folder in /tmp /usr/local; do mount -t tmpfs tmpfs "$root$folder"; done
    chmod 1777 "$root/tmp"
    rm -rf "${root:?}$HOME"/.pyenv "${root:?}$HOME"/.local
    for folder in /proc /sys /dev; do mount --rbind "$folder" "$root$folder"; done
    mkdir -p "$HOME/.cache"
    for folder in "$tree" "$HOME/.cache"; do
        mkdir -p "$root$folder"
        mount --bind "$folder" "$root$folder"
    done
    folder=$(dirname "$tree")/shared
    if [ -d "$folder" ]; then
        mkdir -p "$root$folder"
        mount --bind -o ro "$(realpath "$folder")" "$root$folder"
    fi
    unset CI VIRTUAL_ENV PYTHONPATH PYENV_ROOT PYENV_VERSION
    # shellcheck disable=SC2016
    PATH=/usr/sbin:/usr/bin:/sbin:/bin exec chroot "$root" /bin/bash -euc 'cd "$1" && shift && strip_system && exec "$@"' bash "$tree" "$@"
}

# Leaves what a minimal installation has, and what it depends on. Inside the view. The files and the entries of packages are
# deleted; removing them in order, with the scripts that they bring, takes minutes.
strip_system() {
    set -euo pipefail
    export DEBIAN_FRONTEND=noninteractive
    local quick=(-qq -o APT::AutoRemove::RecommendsImportant=false -o APT::AutoRemove::SuggestsImportant=false
        -o DPkg::Options::=--force-unsafe-io)
    local info=/var/lib/dpkg/info base gone package
    mapfile -t base < <(dpkg-query -W -f='${Package}:${Architecture}\t${Priority}\t${Essential}\n' |
        awk '$2 == "required" || $2 == "important" || $3 == "yes" { print $1 }')
    apt-mark showmanual | xargs -r apt-mark auto >/dev/null
    apt-mark manual "${base[@]}" ca-certificates >/dev/null
    mapfile -t gone < <(apt-get "${quick[@]}" --simulate autoremove | awk '$1 == "Remv" { sub(/:.*/, "", $2); print $2 }')
    mkdir /tmp/gone
    for package in "${gone[@]}"; do
        mv "$info/$package".* "$info/$package":* /tmp/gone/ 2>/dev/null || true
    done
    cat "$info"/*.list | LC_ALL=C sort -u >/tmp/kept
    cat /tmp/gone/*.list | LC_ALL=C sort -u | LC_ALL=C comm -23 - /tmp/kept >/tmp/files
    xargs -a /tmp/files -d '\n' rm -f 2>/dev/null || true # folders stay
    printf '%s\n' "${gone[@]}" | awk 'NR == FNR { gone[$1]; next } { split($1, name, "\n"); split(name[1], word, " ") }
        !(word[2] in gone) { print $0 "\n" }' - RS= FS='\n' /var/lib/dpkg/status >/tmp/status
    cp /tmp/status /var/lib/dpkg/status
    # Compiled files would still be imported, as parts of packages without sources.
    dpkg-query -W python3-minimal >/dev/null 2>&1 || rm -rf /usr/lib/python3*
    find /usr/bin /usr/lib /etc/alternatives -xtype l -delete # dangling links
    ldconfig
    apt-get "${quick[@]}" update </dev/null
    # shellcheck disable=SC2086
    [ -z "$with_packages" ] || apt-get "${quick[@]}" -y --no-install-recommends install $with_packages >/dev/null </dev/null
    printf '%d of %d packages are left\n' "$(dpkg-query -W -f='.\n' | wc -l)" \
        "$(($(dpkg-query -W -f='.\n' | wc -l) + ${#gone[@]}))"
}

export -f in_view strip_system
export with_packages="${with[*]}"
say "a bare system runs: $*"
exec unshare --mount --propagation private bash -c 'in_view "$@"' bash "$PWD" "$@"
