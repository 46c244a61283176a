#!/usr/bin/env bash
# Starts an MPI program of a build folder with the mpiexec that belongs to its MPI, also as root and on fewer cores than
# ranks.
#
#   scripts/mpirun.sh RANKS PROGRAM [ARGUMENT]...
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
ranks=$1 program=$2
shift

# The build folder is the nearest one above the program that has a CMake cache.
folder=$(cd "$(dirname "$program")" && pwd)
while [ "$folder" != / ] && [ ! -f "$folder/CMakeCache.txt" ]; do folder=$(dirname "$folder"); done
mpiexec=mpiexec
if [ -f "$folder/CMakeCache.txt" ]; then
    mpiexec=$(sed -n 's/^MPIEXEC_EXECUTABLE:[A-Z]*=//p' "$folder/CMakeCache.txt")
fi
command -v "$mpiexec" >/dev/null || {
    echo "mpirun.sh: $mpiexec was not found" >&2
    exit 1
}

flags=()
if "$mpiexec" --version 2>&1 | grep -qiE 'open.?mpi|openrte|prrte'; then
    flags=(--oversubscribe --bind-to none)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_base_warn_component_unused=0
fi
exec "$mpiexec" -n "$ranks" "${flags[@]}" "$@"
