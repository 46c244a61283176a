#!/usr/bin/env bash
# How runs end that cannot go on: what all ranks throw is said once, and a rank that fails alone ends the job.
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
chmod +x one

timeout 60 "$@" 3 "$euler" case.json --set scheme.nothing=1 2>error.log
code=$?
cat error.log
[ "$code" = 2 ] || { echo "a wrong key ended with $code" && exit 1; }
[ "$(grep -c '^euler: ' error.log)" = 1 ] || { echo "not said once" && exit 1; }

timeout 60 "$@" 3 ./one "$euler" case.json >output.log 2>&1
code=$?
cat output.log
case $code in 0 | 124) echo "a rank that failed alone ended with $code" && exit 1 ;; esac
grep -q 'euler: rank 1 fails alone and ends the job:.*DNDS_RANKS_PER_NODE' output.log
