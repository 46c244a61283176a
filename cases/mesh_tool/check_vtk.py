#!/usr/bin/env python3
"""Compares what VTK reads from a VTKHDF file with what dnds-mesh said of the mesh.

    check_vtk.py PATH [PICTURE.png]
    check_vtk.py --vtu PATH
    check_vtk.py --same PATH.json OTHER.json...

PATH.vtkhdf is of `dnds-mesh partition --write`, PATH.json of `info --json`, PATH.parts.json of `partition --json`.
With --vtu, VTK writes the mesh as PATH.<form>.vtu in the forms that DNDS reads. With --same, compares what
`info --json` said of several files of one mesh.
"""
import collections
import json
import sys

from vtkmodules.vtkCommonCore import vtkVersion
from vtkmodules.vtkCommonDataModel import vtkWedge
from vtkmodules.vtkFiltersVerdict import vtkCellSizeFilter
from vtkmodules.vtkIOHDF import vtkHDFReader

TYPES = {10: "TETRA_4", 12: "HEXA_8", 13: "PENTA_6", 14: "PYRA_5", 42: "NFACE_n"}


WEDGE = 13


def sign_of_wedges():
    """-1 up to VTK 9.5, where a vtkWedge that its shape functions map without a mirror counts as inside out; else 1."""
    wedge = vtkWedge()
    for number, corner in enumerate([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1)]):
        assert tuple(wedge.GetParametricCoords()[3 * number + k] for k in range(3)) == corner
        wedge.GetPointIds().SetId(number, number)
        wedge.GetPoints().SetPoint(number, corner)
    corners = [wedge.GetFace(0).GetPointId(k) for k in range(3)]
    return 1 if corners in ([0, 2, 1], [2, 1, 0], [1, 0, 2]) else -1


def near(a, b):
    return abs(a - b) <= 1e-12 * abs(b)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def check(path):
    """Reads the file; returns its grid, or None where this VTK is too old for it."""
    mesh = load(path + ".json")
    division = load(path + ".parts.json")
    version = vtkVersion.GetVTKVersion()
    if "NFACE_n" in mesh["cells"] and (vtkVersion.GetVTKMajorVersion(), vtkVersion.GetVTKMinorVersion()) < (9, 5):
        print(f"skipped: {path}: polyhedra need VTK 9.5, this is {version}")
        return None
    reader = vtkHDFReader()
    assert reader.CanReadFile(path + ".vtkhdf"), "VTK does not take it for a VTKHDF file"
    reader.SetFileName(path + ".vtkhdf")
    reader.Update()
    grid = reader.GetOutputDataObject(0)
    cells = range(grid.GetNumberOfCells())
    assert grid.GetClassName() == "vtkUnstructuredGrid", grid.GetClassName()
    assert grid.GetNumberOfPoints() == mesh["nodes"], grid.GetNumberOfPoints()
    types = collections.Counter(TYPES[grid.GetCellType(cell)] for cell in cells)
    assert types == mesh["cells"], (types, mesh["cells"])
    bounds = grid.GetBounds()
    for axis, (low, high) in enumerate(mesh["bbox"]):
        assert near(bounds[2 * axis], low) and near(bounds[2 * axis + 1], high), bounds

    sizes = vtkCellSizeFilter()
    sizes.SetInputData(grid)
    sizes.Update()
    volumes = sizes.GetOutput().GetCellData().GetArray("Volume")
    wedges = sign_of_wedges()
    volumes = [volumes.GetValue(cell) * (wedges if grid.GetCellType(cell) == WEDGE else 1) for cell in cells]
    assert min(volumes) > 0, "cells are inside out"
    assert near(sum(volumes), mesh["volume"]), (sum(volumes), mesh["volume"])

    # Faces by their corners say who is beside whom: the field fits only if it stands at the right cells.
    part = grid.GetCellData().GetArray("part")
    assert part.GetNumberOfComponents() == 1 and part.GetNumberOfTuples() == len(cells)
    counts = collections.Counter(part.GetValue(cell) for cell in cells)
    assert [counts[p] for p in range(len(division["parts"]))] == [p["cells"] for p in division["parts"]], counts
    faces = collections.defaultdict(list)
    for cell in cells:
        shape = grid.GetCell(cell)
        for number in range(shape.GetNumberOfFaces()):
            corners = shape.GetFace(number).GetPointIds()
            faces[tuple(sorted(corners.GetId(k) for k in range(corners.GetNumberOfIds())))].append(part.GetValue(cell))
    sides = collections.Counter(len(beside) for beside in faces.values())
    assert sides == {1: mesh["faces_boundary"], 2: mesh["faces_inner"]}, sides
    cut = sum(len(beside) == 2 and beside[0] != beside[1] for beside in faces.values())
    assert cut == division["cut"], (cut, division["cut"])
    print(f"VTK {version}: {path}: {dict(types)}, volume {sum(volumes)}, {cut} faces cut")
    return grid


def write_vtu(path):
    """The mesh of PATH.vtkhdf, if this VTK reads it."""
    from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridWriter

    reader = vtkHDFReader()
    reader.SetFileName(path + ".vtkhdf")
    reader.Update()
    writer = vtkXMLUnstructuredGridWriter()
    writer.SetInputData(reader.GetOutputDataObject(0))
    for mode in ("Ascii", "Binary", "Appended"):
        for packed in ("None", "ZLib"):
            for big in (False, True):
                getattr(writer, f"SetDataModeTo{mode}")()
                getattr(writer, f"SetCompressorTypeTo{packed}")()
                getattr(writer, f"SetHeaderTypeToUInt{32 if big else 64}")()
                getattr(writer, f"SetByteOrderTo{'Big' if big else 'Little'}Endian")()
                writer.SetEncodeAppendedData(big)
                writer.SetBlockSize(4096)
                writer.SetFileName(f"{path}.{mode}{packed}{int(big)}.vtu")
                assert writer.Write() == 1


def compare(paths):
    """What depends on the mesh alone: VTU has no names of boundaries."""
    first = load(paths[0])
    for path in paths[1:]:
        other = load(path)
        for key in ("cells", "nodes", "faces_inner", "faces_boundary", "volume", "bbox"):
            assert first[key] == other[key], (path, key, first[key], other[key])
    print(f"{len(paths) - 1} files are the same mesh as {paths[0]}")


def draw(grid, picture):
    """Cells, shrunk so that one sees into the mesh, coloured by part."""
    import vtkmodules.vtkRenderingOpenGL2  # noqa: F401
    from vtkmodules.vtkFiltersGeneral import vtkShrinkFilter
    from vtkmodules.vtkIOImage import vtkPNGWriter
    from vtkmodules.vtkRenderingCore import (
        vtkActor,
        vtkDataSetMapper,
        vtkRenderer,
        vtkRenderWindow,
        vtkWindowToImageFilter,
    )

    shrink = vtkShrinkFilter()
    shrink.SetInputData(grid)
    shrink.SetShrinkFactor(0.8)
    mapper = vtkDataSetMapper()
    mapper.SetInputConnection(shrink.GetOutputPort())
    mapper.SetScalarModeToUseCellFieldData()
    mapper.SelectColorArray("part")
    mapper.SetScalarRange(grid.GetCellData().GetArray("part").GetRange())
    actor = vtkActor()
    actor.SetMapper(mapper)
    renderer = vtkRenderer()
    renderer.SetBackground(1, 1, 1)
    renderer.AddActor(actor)
    renderer.GetActiveCamera().SetPosition(-1.5, -2, 1.6)
    renderer.GetActiveCamera().SetViewUp(0, 0, 1)
    renderer.ResetCamera()
    window = vtkRenderWindow()
    window.SetOffScreenRendering(1)
    window.SetSize(800, 600)
    window.AddRenderer(renderer)
    window.Render()
    image = vtkWindowToImageFilter()
    image.SetInput(window)
    writer = vtkPNGWriter()
    writer.SetFileName(picture)
    writer.SetInputConnection(image.GetOutputPort())
    writer.Write()


def main():
    if sys.argv[1] == "--vtu":
        return write_vtu(sys.argv[2])
    if sys.argv[1] == "--same":
        return compare(sys.argv[2:])
    grid = check(sys.argv[1])
    if grid is not None and len(sys.argv) > 2:
        draw(grid, sys.argv[2])


if __name__ == "__main__":
    main()
