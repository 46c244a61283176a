#!/usr/bin/env bash
# Builds a benchmark for this machine's processor and runs it.
#
#   scripts/bench.sh NAME [--ranks 2,4] [--quick] [--json FILE] [--jobs N] [--no-petsc] [--no-install] [ARGUMENT]...
#   scripts/bench.sh NAME --record [--runs 5]
#   scripts/bench.sh euler --openfoam [ARGUMENT]...
#   scripts/bench.sh task --delays 0,5,20,100 [ARGUMENT]...
#   scripts/bench.sh --plot [NAME]...
#
#   NAME         a folder of bench/; its program is bench_NAME
#   --ranks LIST rank counts to run it on, one after the other (default 2,4)
#   --quick      passed on to the program: few repetitions
#   --json FILE  write the records of all runs to FILE as one JSON list
#   --record     run it several times with the arguments of scripts/bench/programs.py, append its ratios to
#                bench/history/NAME.jsonl, and renew docs/reference/performance.md
#   --runs N     how many times (default 5)
#   --plot       draw the ratios of all records, of all benchmarks or those named: build/bench-history/NAME.svg
#   --preset P   the build (default bench; release with --record); the history names it
#   --openfoam   beside OpenFOAM's rhoCentralFoam, where that is installed; arguments go to bench/euler/openfoam.py
#   --delays L   on two "hosts" joined by a network of so many microseconds more, as root; arguments go to bench/task/latency.py
#   --no-petsc   do not install PETSc, the baseline of some benchmarks
#   --no-install install nothing
#   --help       this text; after NAME: builds the program and lists its own options
#   ARGUMENT     everything else is passed on to the program
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

name=""
ranks=2,4
json=""
jobs=$(nproc)
preset=
record=false
runs=5
packages=(--petsc)
install=true
help=false
openfoam=false
delays=
arguments=()
while [ $# -gt 0 ]; do
    case "$1" in
    --ranks | --json | --jobs | --runs | --preset | --delays) [ $# -ge 2 ] || fail "$1 needs a value" ;;
    esac
    case "$1" in
    --ranks) ranks=$2 && shift ;;
    --json) json=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    --preset) preset=$2 && shift ;;
    --record) record=true ;;
    --runs) runs=$2 && shift ;;
    --plot)
        shift
        python=$(scripts/find-python.sh matplotlib) || fail "pictures need it: scripts/install-deps.sh --plot"
        exec "$python" scripts/bench/plot.py "$@"
        ;;
    --delays) delays=$2 && shift ;;
    --openfoam) openfoam=true && packages=(--plot) ;;
    --no-petsc) packages=() ;;
    --no-install) install=false ;;
    -h | --help)
        if [ -z "$name" ]; then
            sed -n '2,24s/^# \{0,1\}//p' "$0"
            exit 0
        fi
        help=true
        ;;
    *) if [ -z "$name" ] && [ "${1#-}" = "$1" ]; then name=$1; else arguments+=("$1"); fi ;;
    esac
    shift
done
if [ -z "$name" ] || [ ! -d "bench/$name" ]; then
    fail "which benchmark? There are: $(cd bench && find . -mindepth 1 -maxdepth 1 -type d ! -name support -printf '%f ')"
fi
[ -z "$delays" ] || [ "$name" = task ] || fail "--delays is for task"
if $record && { [ ${#arguments[@]} -gt 0 ] || [ "$ranks" != 2,4 ] || [ -n "$json" ]; }; then
    fail "--record takes ranks and arguments from scripts/bench/programs.py, so that records compare"
fi
if [ -z "$preset" ]; then
    preset=bench
    ! $record || preset=release # as all records
fi
case "$json" in "" | /*) ;; *) json=${OLDPWD:-$PWD}/$json ;; esac

if $install; then
    say "checking packages"
    [ "$name" != python ] || packages+=(--python)
    scripts/install-deps.sh "${packages[@]}"
fi

target=bench_$name
if $openfoam; then # for any processor, as OpenFOAM is
    target=euler
    [ "$preset" != bench ] || preset=release
fi
say "building $target with $jobs jobs"
benchmarks=(-DDNDS_BUILD_BENCHMARKS=ON)
! $openfoam || benchmarks=()
configured=$(cmake --preset "$preset" "${benchmarks[@]}")
grep -E '^-- DNDS' <<<"$configured" || true # what is left out, and why
cmake --build --preset "$preset" --parallel "$jobs" --target "$target"

folder=build/$preset/bench/$name
program=$folder/bench_$name
if $openfoam; then
    python=$(scripts/find-python.sh numpy h5py) || fail "it needs numpy and h5py: scripts/install-deps.sh --plot"
    [ "$ranks" != 2,4 ] || ranks=1,2
    options=(--euler "$(find "build/$preset" -name euler -type f -executable | head -n 1)" --ranks "$ranks")
    ! $help || options+=(--help)
    [ -z "$json" ] || options+=(--json "$json")
    exec "$python" bench/euler/openfoam.py "${options[@]}" "${arguments[@]}"
fi
if [ -n "$delays" ]; then
    options=(--delays "$delays" --program "$PWD/$program" --cable "$PWD/$folder/dnds_cable")
    ! $help || options+=(--help)
    [ -z "$json" ] || options+=(--json "$json")
    exec bench/task/latency.py "${options[@]}" "${arguments[@]}"
fi
if $help; then
    scripts/mpirun.sh 1 "$program" --help
    exit
fi
if $record; then
    say "bench_$name, $runs times"
    python3 scripts/bench/history.py "$name" "$program" --runs "$runs" --build "$preset"
    python3 scripts/bench/page.py
    exit
fi
parts=()
for count in ${ranks//,/ }; do
    say "bench_$name on $count ranks"
    part=()
    if [ -n "$json" ]; then
        file=$PWD/$folder/ranks$count.json
        rm -f "$file"
        parts+=("$file")
        part=(--json "$file")
    fi
    scripts/mpirun.sh "$count" "$program" "${part[@]}" "${arguments[@]}"
done

if [ -n "$json" ]; then
    python3 - "$json" "${parts[@]}" <<'PYTHON'
import json
import sys

records = []
for path in sys.argv[2:]:
    with open(path) as file:
        part = json.load(file)
    records += part if isinstance(part, list) else [part]
with open(sys.argv[1], "w") as file:
    json.dump(records, file, indent=1)
    file.write("\n")
PYTHON
    say "wrote $json"
fi
