#!/usr/bin/env bash
# Ranks that are killed (SIGKILL) at random moments while the solver writes checkpoints and removes old ones: --restart
# latest always continues from the newest, and the history equals that of an undisturbed run.
#
#   kill_test.sh EULER MPIEXEC-WITH-FLAGS...     as in kill_test.sh ./euler mpiexec -n
#
# DNDS_KILL_TRIALS=NUMBER: how often writers of checkpoints are killed (8 times those of the library, 4 times euler).
set -euo pipefail
euler=$1
shift
trials=${DNDS_KILL_TRIALS:-4}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >case.json <<'JSON'
{
    "mesh": { "box": { "fill": "triangles", "cells": [20, 20] } },
    "reference": { "pressure": 1, "density": 1, "mach": 0.5 },
    "boundaries": { "x-": "far field", "x+": "far field", "y-": "wall", "y+": "far field" },
    "time": { "mode": "steady", "steps": 100000000 },
    "output": { "folder": "killed", "fields": false, "checkpointEvery": 1, "keep": 2 }
}
JSON
# shellcheck disable=SC2016
printf '#!/bin/sh\necho $$ >pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\nexec "$@"\n' >noting
chmod +x noting

# The step of the newest checkpoint, 0 without one.
newest() {
    local files=(killed/checkpoint-*.h5)
    local name=${files[-1]##*-}
    name=${name%.h5}
    [ "$name" = "*" ] && name=0
    echo $((10#$name))
}
half=0
for trial in $(seq "$trials"); do
    ranks=$((1 + RANDOM % 3))
    before=$(newest)
    restart=()
    [ "$before" = 0 ] || restart=(--restart latest)
    rm -f pid.*
    "$@" "$ranks" ./noting "$euler" case.json "${restart[@]}" >log 2>&1 &
    job=$!
    until [ "$(newest)" -gt "$before" ]; do
        kill -0 $job 2>/dev/null || { echo "trial $trial ended" && cat log && exit 1; }
        sleep 0.05
    done
    if [ "$before" != 0 ]; then # the restart has told where it went on, before it wrote anything
        grep -q "^continues from killed/checkpoint-$(printf %08d "$before").h5" log || { cat log && exit 1; }
    fi
    sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
    mapfile -t processes < <(cat pid.*)
    [ $((RANDOM % 2)) = 0 ] || processes=("${processes[RANDOM % ranks]}")
    known=$(newest)
    kill -9 "${processes[@]}"
    wait $job && echo "trial $trial: ended well although it was killed" && exit 1
    [ "$(newest)" -ge "$known" ] || { echo "trial $trial: step $known was there and is lost" && exit 1; }
    left=$(find killed -name 'checkpoint-*.h5' | wc -l)
    [ "$left" -le 3 ] || { echo "trial $trial: $left checkpoints are left" && exit 1; }
    ! compgen -G 'killed/*.h5.part' >/dev/null || half=$((half + 1))
    echo "trial $trial: $ranks ranks, from step $before to $(newest)"
done
end=$(($(newest) + 5))
"$@" 2 "$euler" case.json --set time.steps=$end --restart latest >log
mkdir whole
cd whole
"$@" 1 "$euler" ../case.json --set time.steps=$end >log
for file in history.csv "checkpoint-$(printf %08d $end).h5"; do
    cmp "killed/$file" "../killed/$file"
done
echo "$trials trials, $half of them left half a file"
