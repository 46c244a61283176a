#!/usr/bin/env bash
# Endings of runs that cannot continue: an error of all ranks is printed once, and a rank that fails alone ends the job.
#
#   failure_test.sh EULER MPIEXEC-WITH-FLAGS...     as in failure_test.sh ./euler mpiexec -n
set -uo pipefail
euler=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
cat >case.json <<'JSON'
{
    "mesh": { "box": { "fill": "triangles", "cells": [20, 20] } },
    "reference": { "pressure": 1, "density": 1, "mach": 0.5 },
    "boundaries": { "x-": "far field", "x+": "far field", "y-": "wall", "y+": "far field" },
    "time": { "mode": "steady", "steps": 3 },
    "output": { "folder": "" }
}
JSON
# Rank 1 alone is told nonsense.
cat >one <<'ONE'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 ] || export DNDS_RANKS_PER_NODE=nonsense
exec "$@"
ONE
# Rank 0 stops for good when the run has begun; the others have no patience with it.
cat >stopped <<'STOPPED'
#!/bin/sh
export DNDS_WAIT_TIMEOUT=1
case "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" in
0)
    (
        for _ in $(seq 300); do
            [ -s results/history.csv ] && break
            sleep 0.1
        done
        sleep 0.3 # all are in pulls then: the next line of the history, a reduction, is far away
        kill -STOP $$
    ) &
    ;;
esac
exec "$@"
STOPPED
chmod +x one stopped

for wrong in "$euler case.json --set scheme.nothing=1" "./one $euler case.json"; do
    # shellcheck disable=SC2086 # a program and its arguments
    timeout 60 "$@" 3 $wrong 2>error.log
    code=$?
    cat error.log
    [ "$code" = 2 ] || { echo "$wrong ended with $code" && exit 1; }
    [ "$(grep -c '^euler: ' error.log)" = 1 ] || { echo "not said once" && exit 1; }
done
grep -q "DNDS_RANKS_PER_NODE is 'nonsense'.*(rank 1, " error.log || { echo "not said what" && exit 1; }

timeout 60 "$@" 3 ./stopped "$euler" case.json --set output.folder=results --set output.historyEvery=50000 \
    --set time.steps=100000000 >output.log 2>&1
code=$?
cat output.log
case $code in 0 | 124) echo "a rank that failed alone ended with $code" && exit 1 ;; esac
grep -q 'euler: rank [12] fails alone and ends the job:' output.log
