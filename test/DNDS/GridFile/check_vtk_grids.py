#!/usr/bin/env python3
"""What VTK reads of the grids that write_vtk_grids has written: PATH.vtkhdf, PATH.centres.vtkhdf and PATH.vtr.

    check_vtk_grids.py PATH
"""
import sys

from vtkmodules.vtkCommonCore import vtkVersion
from vtkmodules.vtkIOHDF import vtkHDFReader
from vtkmodules.vtkIOXML import vtkXMLRectilinearGridReader


def read(reader, path):
    reader.SetFileName(path)
    reader.Update()
    return reader.GetOutput()


def check_fields(data):
    temperature, velocity = data.GetArray("temperature <K>"), data.GetArray("velocity")
    assert temperature.GetDataTypeAsString() == "double" and velocity.GetDataTypeAsString() == "float"
    assert temperature.GetNumberOfTuples() == 60 and velocity.GetNumberOfComponents() == 3
    for k in range(3):
        for j in range(4):
            for i in range(5):
                cell = i + 5 * (j + 4 * k)
                number = 100 * k + 10 * j + i
                assert temperature.GetTuple1(cell) == number, (cell, temperature.GetTuple1(cell))
                assert velocity.GetTuple3(cell) == (number, 1000 + number, 2000 + number), cell


path = sys.argv[1]
image = read(vtkHDFReader(), path + ".centres.vtkhdf")
assert image.GetClassName() == "vtkImageData", image.GetClassName()
assert image.GetExtent() == (0, 4, 0, 3, 0, 2), image.GetExtent()
assert image.GetOrigin() == (1.25, 2.125, 3.0625) and image.GetSpacing() == (0.5, 0.25, 0.125)
check_fields(image.GetPointData())
grid = read(vtkXMLRectilinearGridReader(), path + ".vtr")
assert grid.GetBounds() == (0, 15, 0, 4, -1, 2), grid.GetBounds()
assert [grid.GetXCoordinates().GetTuple1(i) for i in range(6)] == [0, 1, 3, 6, 10, 15]
assert grid.GetNumberOfCells() == 60
check_fields(grid.GetCellData())
version = vtkVersion()
if (version.GetVTKMajorVersion(), version.GetVTKMinorVersion()) > (9, 1):
    image = read(vtkHDFReader(), path + ".vtkhdf")
    assert image.GetExtent() == (0, 5, 0, 4, 0, 3), image.GetExtent()
    assert image.GetOrigin() == (1, 2, 3) and image.GetSpacing() == (0.5, 0.25, 0.125)
    assert image.GetNumberOfCells() == 60
    check_fields(image.GetCellData())
    plane = read(vtkHDFReader(), path + ".flat.vtkhdf")
    assert plane.GetExtent() == (0, 4, 0, 3, 0, 0), plane.GetExtent()
    numbers = plane.GetPointData().GetArray("plane")
    assert [numbers.GetTuple1(k) for k in range(20)] == [10 * j + i for j in range(4) for i in range(5)]
else:
    print("SKIPPED: VTK 9.1 reads no cell data of ImageData, and crashes on flat grids of points")
print("VTK", version.GetVTKVersion(), "reads the grids")
