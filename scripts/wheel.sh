#!/usr/bin/env bash
# Builds a wheel of the Python package and tries it in an empty virtual environment.
#
#   scripts/wheel.sh [--built FOLDER]
#
#   --built FOLDER  use the library of this build folder instead of compiling it again
#
# The wheel is left in build/wheelhouse. Without a network it is built, but not tried: mpi4py and NumPy come from PyPI.
# CI=true: scripts and tests that miss a tool which continuous integration installs fail, instead of being skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

built=""
while [ $# -gt 0 ]; do
    case "$1" in
    --built) built=${2:?} && shift ;;
    -h | --help)
        sed -n '2,9s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "wheel.sh: unknown option $1 (see --help)" >&2
        exit 2
        ;;
    esac
    shift
done

# Asks PyPI for a small package. Shows pip's message where that fails; ends as skipped if no server answered at all.
need_network() {
    local text
    text=$("$1" -m pip --quiet --disable-pip-version-check download --retries 1 --no-deps --dest build/wheel-probe \
        mpi4py 2>&1) && return
    printf '%s\n' "$text" >&2
    if grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeout|Failed to establish a new connection|Temporary failure in name resolution|Network is unreachable' <<<"$text"; then
        say "SKIPPED: $2, and there is no network"
        exit 0
    fi
    echo "wheel.sh: $2: pip says why above" >&2
    exit 1
}

python=build/python-venv/bin/python3
if [ ! -x "$python" ]; then
    if [ -n "${CI:-}" ]; then
        need_network /usr/bin/python3 "there is no $python"
        echo "wheel.sh: there is no $python: scripts/install-deps.sh --python makes it" >&2
        exit 1
    fi
    say "SKIPPED: there is no $python (scripts/install-deps.sh --python makes it, with a network)"
    exit 0
fi
options=()
if [ -n "$built" ]; then
    stage=$PWD/build/wheel-stage
    rm -rf "$stage"
    cmake --install "$built" --prefix "$stage" >/dev/null
    options=(--config-settings=cmake.source-dir=python "--config-settings=cmake.define.CMAKE_PREFIX_PATH=$stage"
        --config-settings=build-dir=build/wheel-built)
fi

say "building the wheel"
rm -rf build/wheelhouse
"$python" -m pip wheel . --quiet --no-deps --no-build-isolation --wheel-dir build/wheelhouse "${options[@]}"
ls -l build/wheelhouse

say "importing it in an empty environment"
rm -rf build/wheel-venv
/usr/bin/python3 -m venv build/wheel-venv
need_network build/wheel-venv/bin/python3 "the wheel was not tried, because it needs mpi4py and NumPy from PyPI"
build/wheel-venv/bin/python3 -m pip --quiet --disable-pip-version-check install build/wheelhouse/*.whl
cp python/examples/ring.py build/wheel-venv/ # runs away from the sources, with what was installed only
(cd build/wheel-venv && ../../scripts/mpirun.sh 2 bin/python3 ring.py)
