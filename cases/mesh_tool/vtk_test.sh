#!/usr/bin/env bash
# Writes three-dimensional meshes with COMMAND (mpiexec ... dnds-mesh), then checks what VTK makes of the files: nodes,
# cells by type, neighbours, volumes, and a field, cell by cell; and what COMMAND makes of the same meshes in VTU by VTK.
#
#   vtk_test.sh COMMAND...
#
# Ends with 77, a skipped test, where there is no Python with VTK; with 1 where CI=true.
set -euo pipefail
tool=$(cd "$(dirname "$0")" && pwd)
python=$("$tool/../../scripts/find-python.sh" vtkmodules.vtkIOHDF) || exit "$([ "${CI:-}" = true ] && echo 1 || echo 77)"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for fill in tetrahedra hexahedra prisms mixed-volume polyhedra; do
    # Where faces are bent, volumes are a matter of definition; those of tetrahedra are not.
    jitter=0
    [ "$fill" != tetrahedra ] || jitter=0.1
    "$@" generate "$folder/$fill.cgns" --fill "$fill" --cells 6 4 3 --lengths 1 0.8 0.5 --jitter "$jitter" --shuffle
    "$@" info "$folder/$fill.cgns" --json >"$folder/$fill.json"
    "$@" partition "$folder/$fill.cgns" -n 3 --json --write "$folder/$fill.vtkhdf" >"$folder/$fill.parts.json"
    "$python" "$tool/check_vtk.py" "$folder/$fill"
done
for fill in tetrahedra mixed-volume polyhedra; do
    [ "$fill" != polyhedra ] || "$python" -c 'from vtkmodules.vtkCommonCore import vtkVersion as v
exit((v.GetVTKMajorVersion(), v.GetVTKMinorVersion()) < (9, 5))' || continue # older ones read none
    "$python" "$tool/check_vtk.py" --vtu "$folder/$fill"
    for file in "$folder/$fill".*.vtu; do
        "$@" info "$file" --json >"$file.json"
    done
    "$python" "$tool/check_vtk.py" --same "$folder/$fill.json" "$folder/$fill".*.vtu.json
done
