#!/usr/bin/env bash
# Writes grids with COMMAND (mpiexec ... write_vtk_grids) and checks what VTK reads of them, in a process of its own.
#
#   vtk_grids_test.sh COMMAND...
#
# Ends with 77, a skipped test, where there is no Python with VTK; with 1 where CI=true.
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
python=$("$tests/../../../scripts/find-python.sh" vtkmodules.vtkIOHDF) || exit "$([ "${CI:-}" = true ] && echo 1 || echo 77)"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$@" "$folder/grid"
"$python" "$tests/check_vtk_grids.py" "$folder/grid"
