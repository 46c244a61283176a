#!/usr/bin/env bash
# Builds DNDS and runs the demo: four ranks pull ghost rows of a small mesh and a picture shows who owns what.
#
#   scripts/demo.sh [--jobs N] [--ranks N] [--no-install]
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
fail() {
    printf 'demo.sh: %s\n' "$*" >&2
    exit 1
}

jobs=$(nproc)
ranks=4
install=true
while [ $# -gt 0 ]; do
    case "$1" in
    --jobs | --ranks) [ $# -ge 2 ] || fail "$1 needs a value" ;;
    esac
    case "$1" in
    --jobs) jobs=$2 && shift ;;
    --ranks) ranks=$2 && shift ;;
    --no-install) install=false ;;
    -h | --help)
        sed -n '2,4s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown option $1 (see --help)" ;;
    esac
    shift
done

if $install; then
    say "checking packages"
    scripts/install-deps.sh --plot
fi

say "building the release preset with $jobs jobs"
cmake --preset release >/dev/null
cmake --build --preset release --parallel "$jobs" --target ghost_pull

output=build/release/cases/ghost_pull/output
mkdir -p "$output"
say "running ghost_pull on $ranks ranks"
scripts/mpirun.sh "$ranks" build/release/cases/ghost_pull/ghost_pull --output "$output"

say "drawing"
# The distribution's packages belong to its own Python, which need not be the first in PATH.
python=python3
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import matplotlib, numpy' 2>/dev/null; then
        python=$candidate
        break
    fi
done
"$python" cases/ghost_pull/plot.py "$output" "$output/ghost_pull.png"
say "the picture is $PWD/$output/ghost_pull.png"
