#!/usr/bin/env bash
# Computes a small wedge with COMMAND (mpiexec ... euler), then checks what others make of its files.
#
#   pictures_test.sh plot|vtk COMMAND...
#
# plot: plot.py draws three pictures and finds the shock at the right angle; animate.py makes a GIF of those of the run.
# vtk: VTK opens the fields and finds them whole. Ends with 77, a skipped test, without a suitable Python; with 1 where CI=true.
set -euo pipefail
cases=$(cd "$(dirname "$0")" && pwd)
what=$1
shift
modules=(matplotlib numpy h5py PIL)
[ "$what" = plot ] || modules=(vtkmodules.vtkIOHDF)
python=$("$cases/../../scripts/find-python.sh" "${modules[@]}") || exit "$([ "${CI:-}" = true ] && echo 1 || echo 77)"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$@" "$cases/ramp.json" --set "output.folder=$folder" --set 'mesh.box.cells=[45,30]' --set time.steps=280 \
    --set scheme.timeStepping=ssp-rk2 --set output.historyEvery=20 --set output.fieldsEvery=140 \
    --set 'output.picture={"every":70,"range":[9e4,2e5],"width":120}'

if [ "$what" = plot ]; then
    "$python" "$cases/plot.py" "$folder" --output "$folder/pictures" --wedge 0.5 0 10 | tee "$folder/printed"
    for picture in field history shock; do
        grep -qx "$folder/pictures/$picture.png" "$folder/printed"
        [ "$(head -c 4 "$folder/pictures/$picture.png" | tail -c 3)" = PNG ]
        [ "$(stat -c %s "$folder/pictures/$picture.png")" -gt 20000 ]
    done
    # The exact angle is 39.314 degrees.
    grep -qE '^shock: computed (38\.[89]|39\.[0-7])[0-9]*, exact 39\.314 degrees$' "$folder/printed"
    grep -qE '^pressure behind it: computed 1\.70[0-9]*, exact 1\.7066 ' "$folder/printed"
    grep -qE '^lift: computed -0\.25[0-9]*, exact -0\.25235$' "$folder/printed"
    grep -qE '^drag: computed 0\.044[0-9]*, exact 0\.04450$' "$folder/printed"
    "$python" "$cases/plot.py" "$folder" --output "$folder/pictures" --range 0.9 1.9 --format pdf
    [ "$(head -c 4 "$folder/pictures/field.pdf")" = %PDF ]
    "$python" "$cases/animate.py" "$folder" --width 60 | grep '4 pictures'
    [ "$(head -c 4 "$folder/pictures.gif")" = GIF8 ]
    printf 'one\n\rstep 1' | "$python" "$cases/animate.py" "$folder" --follow | grep '▀' >/dev/null
    exit
fi
"$python" - "$folder/fields.vtkhdf" <<'CHECK'
import sys

from vtkmodules.vtkCommonCore import vtkVersion
from vtkmodules.vtkIOHDF import vtkHDFReader

reader = vtkHDFReader()
assert reader.CanReadFile(sys.argv[1]), "VTK does not take it for a VTKHDF file"
reader.SetFileName(sys.argv[1])
reader.Update()
grid = reader.GetOutputDataObject(0)
print("VTK", vtkVersion.GetVTKVersion(), grid.GetClassName(), grid.GetNumberOfCells(), "cells")
assert grid.GetClassName() == "vtkUnstructuredGrid"
assert (grid.GetNumberOfCells(), grid.GetNumberOfPoints()) == (45 * 30, 46 * 31)
assert grid.GetCell(0).GetClassName() == "vtkQuad"
bounds = grid.GetBounds()
assert bounds[0] == 0 and bounds[1] == 1.5 and bounds[2] == 0 and abs(bounds[3] - 1) < 1e-15, bounds
data = grid.GetCellData()
names = {data.GetArrayName(i) for i in range(data.GetNumberOfArrays())}
assert names >= {"density", "velocity", "pressure", "mach", "rank"}, names
assert all(data.GetArray(name).GetNumberOfTuples() == 45 * 30 for name in names)
assert data.GetArray("velocity").GetNumberOfComponents() == 3
assert data.GetArray("rank").GetRange() == (0.0, 1.0)
low, high = data.GetArray("pressure").GetRange()
assert 0.9e5 < low < 1.01e5 and 1.7e5 < high < 2.2e5, (low, high)
CHECK
