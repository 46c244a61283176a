#!/usr/bin/env bash
# Which lines of src the tests execute: builds with gcov, runs the tests, and prints the sum and the folders' shares.
#
#   scripts/coverage.sh [--label REGEX] [--add] [--jobs N] [--build-only | --report-only]
#
#   --label REGEX  only tests with a matching label (core, device, geom, np1, ...)
#   --add          to what earlier runs have executed; without it counts begin at zero
#   --jobs N       compile and test N at a time (default: the number of processors)
#
# In build/coverage: emulated device, nothing optimized. Needs gcovr, a package of Debian and Ubuntu. To show that a
# test can go, run the others, note the sum, and run it with --add.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

jobs=$(nproc)
labels=()
add=false
build=true
test=true
while [ $# -gt 0 ]; do
    case "$1" in
    --label) labels+=(--label-regex "${2:?}") && shift ;;
    --jobs) jobs=${2:?} && shift ;;
    --add) add=true ;;
    --build-only) test=false ;;
    --report-only) build=false && test=false ;;
    -h | --help)
        sed -n '2,11s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown option $1 (see --help)" ;;
    esac
    shift
done
command -v gcovr >/dev/null || fail "gcovr is missing: apt-get install gcovr"

directory=build/coverage
if $build; then
    say "building in $directory with $jobs jobs"
    cmake -S . -B $directory -G Ninja -DCMAKE_BUILD_TYPE=Debug -DDNDS_DEVICE=emulated -DDNDS_FAST_COMPILE=ON \
        "-DDNDS_CCACHE=${DNDS_CCACHE:-OFF}" "-DCMAKE_CXX_FLAGS=--coverage -fprofile-update=atomic" >/dev/null
    cmake --build $directory --parallel "$jobs" --target tests_core tests_device tests_geom
fi
if $test; then
    $add || find $directory -name '*.gcda' -delete
    say "running tests"
    # What fails is for the tests' own build to say: it was executed as well.
    ctest --test-dir $directory --parallel "$jobs" "${labels[@]}" --timeout 300 | tail -n 20 || true
fi
if $test || ! $build; then
    say "lines of src"
    gcovr --root . --filter 'src/' --exclude 'src/CUDA/hip/' -j "$jobs" $directory --txt $directory/lines.txt \
        --json-summary $directory/lines.json >/dev/null
    python3 - $directory/lines.json <<'P'
import collections
import json
import sys

summary = json.load(open(sys.argv[1]))
folders = collections.defaultdict(lambda: [0, 0])
for file in summary["files"]:
    name = "/".join(file["filename"].split("/")[:3])
    folders[name][0] += file["line_covered"]
    folders[name][1] += file["line_total"]
for name, (covered, total) in sorted(folders.items()):
    print(f"{covered:7} of {total:7}  {name}")
print(f"{summary['line_covered']:7} of {summary['line_total']:7}  src: {summary['line_percent']} %")
P
fi
