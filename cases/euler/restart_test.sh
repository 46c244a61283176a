#!/usr/bin/env bash
# A whole run, one that a batch system stops, and its continuation: the same histories.
#
#   restart_test.sh EULER MPIEXEC-WITH-FLAGS...     as in restart_test.sh ./euler mpiexec -n
set -euo pipefail
euler=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >case.json <<'JSON'
{
    "mesh": { "box": { "fill": "triangles", "cells": [40, 40] } },
    "reference": { "pressure": 1, "density": 1, "mach": 0.5 },
    "boundaries": { "x-": "far field", "x+": "far field", "y-": "wall", "y+": "far field" },
    "time": { "mode": "steady", "steps": 150 },
    "output": { "folder": "whole", "fields": false }
}
JSON
# The rank that is told by SIGTERM leaves its process id.
# shellcheck disable=SC2016
printf '#!/bin/sh\nrank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\necho $$ >pid.$rank\nexec "$@"\n' >noting
chmod +x noting

"$@" 1 "$euler" case.json >whole.log
"$@" 2 ./noting "$euler" case.json --set output.folder=parts --set time.steps=100000000 >stopped.log &
job=$!
until [ "$(wc -l <parts/history.csv 2>/dev/null || echo 0)" -gt 3 ]; do
    kill -0 $job || { cat stopped.log; exit 1; }
    sleep 0.05
done
kill -TERM "$(cat pid.1)"
wait $job || { echo "ended with $?" && cat stopped.log && exit 1; }
grep 'stopped by a signal after step' stopped.log
step=$(sed -n 's/^stopped by a signal after step \([0-9]*\):.*/\1/p' stopped.log)
total=$((step > 150 ? step + 50 : 150))
"$@" 3 "$euler" case.json --set output.folder=parts --set time.steps=$total --restart latest >on.log
grep "^continues from parts/checkpoint-" on.log
[ $total -eq 150 ] || "$@" 1 "$euler" case.json --set time.steps=$total >whole.log
cmp whole/history.csv parts/history.csv
if "$@" 2 "$euler" case.json --set output.folder=nothing --restart latest 2>error.log; then
    echo "a restart from nothing succeeded"
    exit 1
fi
grep 'there is no checkpoint' error.log
