#!/usr/bin/env bash
# A Slurm job that computes a case and, if its time was too short, restarts from the last checkpoint.
#
#   sbatch [SBATCH OPTION]... cases/euler/slurm.sh CONFIGURATION [EULER OPTION]...
#
# Paths are relative to the folder where the job is submitted. On GPUs: a program of the preset cuda, --gpus-per-node=N
# before the script, and --set scheme.device=cuda after the configuration.
# EULER=PROGRAM: the program that the job runs; unset: build/release/cases/euler/euler
# EULER_OUTPUT=FOLDER: of results and checkpoints; unset: `euler-NAME`, NAME being that of the configuration
#SBATCH --job-name=euler
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=64
#SBATCH --time=04:00:00
#SBATCH --output=%x-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
# Three minutes before the end the ranks get SIGTERM: they write a checkpoint and end with 0.
#SBATCH --signal=TERM@180
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
configuration=$1
shift
euler=${EULER:-build/release/cases/euler/euler}
output=${EULER_OUTPUT:-euler-$(basename "${configuration%.json}")}
for file in "$configuration" "$euler"; do
    [ -f "$file" ] || {
        echo "slurm.sh: $file was not found (looked in $PWD)" >&2
        exit 2
    }
done

options=(--set "output.folder=$output" --set output.checkpointMinutes=30)
if compgen -G "$output/checkpoint-*.h5" >/dev/null; then
    options+=(--restart latest)
fi
mkdir -p "$output"
# Open MPI and MPICH both start under srun; --mpi=pmix or --mpi=pmi2 where the cluster's default does not fit.
srun --kill-on-bad-exit=1 "$euler" "$configuration" "${options[@]}" "$@" | tee "$output/last.log"

# Only a run that says that a signal stopped it has something left to compute: a failure would come again.
if grep -q '^stopped by a signal after step' "$output/last.log"; then
    echo "slurm.sh: stopped before the end, the job goes back into the queue"
    scontrol requeue "$SLURM_JOB_ID"
else
    echo "slurm.sh: complete, results are in $output"
fi
