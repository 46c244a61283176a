#!/usr/bin/env bash
# slurm.sh with a stand-in for Slurm: a job that is stopped goes back into the queue, one that is complete does not, also
# where it is submitted again.
#
#   slurm_test.sh EULER MPIEXEC-WITH-FLAGS...     as in slurm_test.sh ./euler mpiexec -n
set -euo pipefail
cases=$(cd "$(dirname "$0")" && pwd)
export EULER=$1 EULER_OUTPUT=results SLURM_JOB_ID=7
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >case.json <<'JSON'
{
    "mesh": { "box": { "fill": "triangles", "cells": [20, 20] } },
    "reference": { "pressure": 1, "density": 1, "mach": 0.5 },
    "boundaries": { "x-": "far field", "x+": "far field", "y-": "wall", "y+": "far field" },
    "time": { "mode": "steady", "steps": 200000000 },
    "output": { "fields": false }
}
JSON
mkdir bin
# With `warn` there, srun sends SIGTERM to a rank after some steps, as Slurm does before the time is up.
cat >bin/srun <<SRUN
#!/usr/bin/env bash
set -euo pipefail
shift # --kill-on-bad-exit
$(printf '%q ' "$@") 2 ./noting "\$@" &
job=\$!
if [ -f warn ]; then
    until [ "\$(wc -l 2>/dev/null <results/history.csv || echo 0)" -gt 3 ]; do
        kill -0 \$job || exit 1
        sleep 0.05
    done
    kill -TERM "\$(cat pid.0)"
fi
wait \$job
SRUN
# shellcheck disable=SC2016
printf '#!/bin/sh\necho $$ >pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\nexec "$@"\n' >noting
printf '#!/bin/sh\necho "$@" >>queue\n' >bin/scontrol
chmod +x bin/* noting
PATH=$PWD/bin:$PATH

touch warn
"$cases/slurm.sh" case.json | tee log
grep -qx 'requeue 7' queue
step=$(sed -n 's/^stopped by a signal after step \([0-9]*\):.*/\1/p' log)
rm warn queue
echo "-- goes on to the end"
"$cases/slurm.sh" case.json --set "time.steps=$((step + 20))" | tee log
grep -q "^continues from results/checkpoint-" log
grep -qx 'slurm.sh: complete, results are in results' log
[ -f results/run.json ]
echo "-- submitted once more"
"$cases/slurm.sh" case.json --set "time.steps=$((step + 20))" | tee log
grep -q 'nothing is left to compute' log
grep -qx 'slurm.sh: complete, results are in results' log
echo "-- fails"
if "$cases/slurm.sh" case.json --set scheme.nothing=1; then
    echo "a job that fails ended well"
    exit 1
fi
[ ! -e queue ] || { echo "a job went back into the queue for no reason" && exit 1; }
