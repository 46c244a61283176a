#!/usr/bin/env bash
# Compares files of Python's netCDF4 with their copies by COMMAND (mpiexec ... copy_netcdf), in processes of their own: a
# process must not hold two NetCDF libraries.
#
#   netcdf_test.sh COMMAND... [--file PATH]...
#
# Ends with 77, a skipped test, where there is no Python with netCDF4; with 1 where CI=true.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
python=$("$folder/../../../scripts/find-python.sh" netCDF4 numpy) ||
    exit "$([ "${CI:-}" = true ] && echo 1 || echo 77)"
exec "$python" "$folder/check_netcdf.py" "$@"
