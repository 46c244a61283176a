#!/usr/bin/env bash
# Builds DNDS and runs its demo: as many ranks as there are cores compute a wind tunnel with a step at Mach 3, with pictures on
# the way, and checks on this machine what the README says. After the build it takes little more than a minute on two cores.
#
#   scripts/demo.sh [--ghosts] [--jobs N] [--ranks N] [--no-install]
#
#   --ghosts      the smaller demo ghost_pull instead: who owns a mesh, who has copies of what, and what a pull moves
#   --ranks N     so many instead of one a core, at most 16
#   --no-install  install no packages
#
# It builds in build/release where that is configured (scripts/test.sh does), else in build/demo: without the libraries that it
# does not use, several sources joined to one (DNDS_FAST_COMPILE), and at -O1 what takes no time in a run (DNDS_COLD_O1). These are
# 85 steps instead of 299 and 0.4 times the time, but objects that no other build could use.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

jobs=$(nproc)
cores=$(nproc)
ranks=$((cores < 16 ? cores : 16))
install=true
targets=(euler dnds_doctor)
while [ $# -gt 0 ]; do
    case "$1" in
    --jobs | --ranks) [ $# -ge 2 ] || fail "$1 needs a value" ;;
    esac
    case "$1" in
    --ghosts) targets=(ghost_pull) ;;
    --jobs) jobs=$2 && shift ;;
    --ranks) ranks=$2 && shift ;;
    --no-install) install=false ;;
    -h | --help)
        sed -n '2,13s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown option $1 (see --help)" ;;
    esac
    shift
done
terminal=false
[ ! -t 1 ] || terminal=true

if $install; then
    say "checking packages"
    scripts/install-deps.sh --plot
fi
python=$(scripts/find-python.sh matplotlib numpy h5py PIL) || fail "pictures need one: scripts/install-deps.sh --plot"

# ----------------------------------------------------------------------------------------------------------------------
# Build

options=(--preset release)
build=$PWD/build/release
if ! grep -qs '^DNDS_BUILD_CASES:BOOL=ON' "$build/CMakeCache.txt"; then
    build=$PWD/build/demo
    options+=(-B "$build" -DDNDS_FAST_COMPILE=ON -DDNDS_COLD_O1=ON -DDNDS_BUILD_TESTS=OFF -DDNDS_BUILD_PYTHON=OFF -DDNDS_INSTALL=OFF)
    for part in BLOCKS SPARSE ONE_SIDED NETCDF PETSC HYPRE; do options+=("-DDNDS_$part=OFF"); done # not used here
fi

# Of what Ninja prints: how much is done, and the time left. On a terminal one line, else one every tenth.
show_build() {
    local line begin=$SECONDS shown=-1 percent left
    while IFS= read -r line; do
        [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
        local now=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
        percent=$((100 * now / all))
        left=$(((SECONDS - begin) * (all - now) / now))
        line=$(printf '%3d %% of %d steps, %d:%02d min left' "$percent" "$all" $((left / 60)) $((left % 60)))
        if $terminal; then
            printf '\r\033[K%s' "$line"
        elif [ $((percent / 10)) -gt "$shown" ]; then
            shown=$((percent / 10))
            printf '%s\n' "$line"
        fi
    done
    ! $terminal || printf '\r\033[K'
}

mkdir -p "$build"
log=$build/demo.log
say "building ${targets[*]} in ${build#"$PWD"/} with $jobs jobs; the compiler's output goes to ${log#"$PWD"/}"
cmake "${options[@]}" >"$log" 2>&1 || { cat "$log" && fail "cmake could not configure"; }
NINJA_STATUS='[%f/%t] ' cmake --build "$build" --parallel "$jobs" --target "${targets[@]}" 2>&1 | tee -a "$log" | show_build ||
    { grep -A 30 -m 1 '^FAILED' "$log" || tail -n 40 "$log"; fail "the build failed: $log has all of it"; }

if [ "${targets[0]}" = ghost_pull ]; then
    output=$build/cases/ghost_pull/output
    mkdir -p "$output"
    say "running ghost_pull on $ranks ranks"
    scripts/mpirun.sh "$ranks" "$build/cases/ghost_pull/ghost_pull" --output "$output"
    say "drawing"
    "$python" cases/ghost_pull/plot.py "$output" "$output/ghost_pull.png"
    say "the picture is $output/ghost_pull.png"
    exit
fi

# ----------------------------------------------------------------------------------------------------------------------
# A flow, with pictures on the way

euler=$build/cases/euler/euler
output=$build/cases/euler/output/demo
rm -rf "$output"
mkdir -p "$output"
say "Mach 3 over a step on $ranks ranks; pictures appear in $output"
tunnel=("$euler" cases/euler/forward_step.json --set "output.folder=$output")
if $terminal; then
    scripts/mpirun.sh "$ranks" "${tunnel[@]}" --progress line | "$python" cases/euler/animate.py "$output" --follow
else
    scripts/mpirun.sh "$ranks" "${tunnel[@]}" --progress lines
    "$python" cases/euler/animate.py "$output"
fi

# ----------------------------------------------------------------------------------------------------------------------
# What can be checked

facts=()
fact() { facts+=("$*"); }

# number KEY FILE: the first number of that name in a report.
number() { sed -n "s/.*\"$1\": \([-0-9.e+]*\).*/\1/p" "$2" | head -n 1; }

say "an oblique shock, against exact theory"
scripts/mpirun.sh "$ranks" "$euler" cases/euler/ramp.json --progress none --set "output.folder=$output/wedge" \
    --set output.historyEvery=10 >"$output/wedge.log"
"$python" cases/euler/plot.py "$output/wedge" --wedge 0.5 0 10 --range 0.9 1.9 | tee "$output/wedge.txt"
fact "Computed against exact, Mach 2 over a corner of 10 degrees:"
while IFS= read -r line; do fact "  $line"; done < <(grep ': computed' "$output/wedge.txt")

# The pressure on the front of the step, in its lowest cell, at the end.
corner=$(awk -F, '$2 > 0.5999 && $2 < 0.6001 { print $5; exit }' "$output/surface.csv")
fact "Pressure in the corner before the step at time 4: $(printf %.2f "$corner"); exact once the bow shock stands still: 12.06."

# checkpointed FOLDER RANKS [ARGUMENT]...: the tunnel with a checkpoint every 25 steps, in a folder of its own. "noting" leaves
# the numbers of its processes.
checkpointed() {
    local folder=$1 number=$2
    shift 2
    (mkdir -p "$output/$folder" && cd "$output/$folder" && exec "$OLDPWD/scripts/mpirun.sh" "$number" "$output/noting" \
        "$euler" "$OLDPWD/cases/euler/forward_step.json" --progress none --set output.folder=run --set output.fields=false \
        --set output.checkpointEvery=25 --set output.picture.every=1000000 "$@" >log 2>&1)
}
newest() { find "$output/$1/run" -name 'checkpoint-*.h5' 2>/dev/null | sed 's/.*-0*\([0-9]*\)\.h5/\1/' | sort -n | tail -n 1; }
# shellcheck disable=SC2016
printf '#!/bin/sh\necho $$ >pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\nexec "$@"\n' >"$output/noting"
chmod +x "$output/noting"

say "one rank of $ranks is killed; the run goes on from its last checkpoint, and is compared with one that was left alone"
checkpointed killed "$ranks" --set time.steps=1000000 &
job=$!
until [ -n "$(newest killed)" ]; do
    kill -0 $job 2>/dev/null || { cat "$output/killed/log" && fail "the run ended before it could be killed"; }
    sleep 0.02
done
kill -9 "$(cat "$output/killed/pid.$((ranks - 1))")"
! wait $job || fail "the run ended well although a rank was killed"
from=$(newest killed)
last=$((from + 25))
checkpointed killed "$ranks" --set time.steps=$last --restart latest || { cat "$output/killed/log" && fail "no restart"; }
checkpointed alone 1 --set time.steps=$last || { cat "$output/alone/log" && fail "the run on one rank failed"; }
checkpointed all "$ranks" --set time.steps=$last || { cat "$output/all/log" && fail "the run on all ranks failed"; }
sum() { sha256sum "$output/$1/run/checkpoint-$(printf %08d "$last").h5" | cut -c 1-12; }
[ "$(sum alone)" = "$(sum all)" ] || fail "one rank and $ranks ranks computed different bits: $output"
fact "The same bits on 1 rank and on $ranks: the states after $last steps have the SHA-256 $(sum alone)... and $(sum all)..."
[ "$(sum killed)" = "$(sum all)" ] || fail "the restarted run has other bits: $output"
fact "Killed after step $from (SIGKILL to rank $((ranks - 1))) and restarted from its checkpoint: $(sum killed)... again."

# seconds BOOLEAN: of 20 steps on 300,000 cells, with or without computing during pulls.
seconds() {
    local folder=$output/overlap
    scripts/mpirun.sh "$ranks" "$euler" cases/euler/ramp.json --progress none --set 'mesh.box.cells=[600,500]' \
        --set mesh.partitioner=curve --set "scheme.overlap=$1" --set time.steps=20 --set output.fields=false \
        --set "output.folder=$folder" >/dev/null
    number seconds "$folder/run.json"
}
if [ "$ranks" -gt 1 ] && [ "$ranks" -le "$cores" ]; then
    say "300,000 cells: 20 steps, computing during pulls and after them, in turns"
    with=() without=()
    for _ in 1 2; do
        with+=("$(seconds true)")
        without+=("$(seconds false)")
    done
    # Only where every run with it was faster than every one without. The better ones are compared.
    saved=$(printf '%s %s %s %s\n' "${with[@]}" "${without[@]}" | awk '{
        best = $1 < $2 ? $1 : $2; worst = $1 + $2 - best; other = $3 < $4 ? $3 : $4
        if (worst < 0.99 * other) printf "%.0f %% of the time, %.2f s instead of %.2f s", 100 * (1 - best / other), best, other
    }')
    [ -z "$saved" ] || fact "Computing during pulls saved $saved, in 20 steps on 300,000 cells."
fi

if [ "$ranks" -gt 1 ]; then
    say "pulls against messages by hand"
    scripts/mpirun.sh "$ranks" "$build/cases/doctor/dnds-doctor" --folder "$output" --megabytes 1 --json "$output/doctor.json" \
        >"$output/doctor.txt" 2>&1 || true # 1: it warns, for instance of other work on this machine
    sed -n '/^pull by/,/^$/p' "$output/doctor.txt"
    while IFS= read -r line; do fact "$line"; done < <("$python" - "$output/doctor.json" <<'END'
import json, sys
pulls = [pull for pull in json.load(open(sys.argv[1]))["pulls"] if pull.get("by_hand_microseconds")]
best = min(pulls, key=lambda pull: pull["microseconds"])
ours, hand = best["microseconds"], best["by_hand_microseconds"]
print(f"A pull of 10 kB from each neighbour takes {ours:.1f} us, copying and persistent MPI messages by hand {hand:.1f} us:"
      f" {ours / hand:.2f} x.")
END
    )
fi

say "what this machine has shown"
printf '  %s\n' "${facts[@]}"
say "files, in $output"
cat <<TEXT
  pictures.gif             the flow over the step; picture-*.png are its frames
  wedge/*.png              pressure and ranks, residuals and forces, the shock against theory
  fields.vtkhdf            the last state, for ParaView
TEXT
say "the 30 lines that you would write yourself: README.md, \"A whole program\", or docs/tutorial/ring.cpp"
cat <<TEXT
  docs/start/tutorial.md, docs/guides/python.md            a solver of your own, in C++ and in Python
  cases/euler/README.md                                    your own flow: configurations, checkpoints, clusters, GPUs
  scripts/demo.sh --ghosts                                 who owns a mesh, and what a pull moves
  scripts/test.sh                                          the tests
TEXT
