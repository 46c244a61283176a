#!/usr/bin/env bash
# Builds solver and runs it.
#
#   ./run.sh [RANKS [ARGUMENT]...]      2 ranks unless given
set -euo pipefail
cd "$(dirname "$0")"

cmake -S . -B build
cmake --build build
# For Open MPI on few cores and as root; others ignore them.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpiexec=$(sed -n "s/^MPIEXEC_EXECUTABLE:[A-Z]*=//p" build/CMakeCache.txt) # of the MPI that was found
exec "$mpiexec" -n "${1:-2}" build/solver "${@:2}"
