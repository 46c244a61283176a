import gc

import dnds
import numpy as np
import pytest

pytest.importorskip("vtkmodules", reason="needs the package vtk (Debian: python3-vtk9)")
from dnds import vtk
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonCore import vtkIdList, vtkPoints


def volumes(grid):
    """Of each cell, of the simplices that VTK cuts it into."""
    sizes = []
    numbers, points = vtkIdList(), vtkPoints()
    points.SetDataTypeToDouble()
    for number in range(grid.GetNumberOfCells()):
        cell = grid.GetCell(number)
        cell.Triangulate(0, numbers, points)
        corners = vtk_to_numpy(points.GetData()).reshape(-1, cell.GetCellDimension() + 1, 3)
        edges = corners[:, 1:] - corners[:, :1]
        sizes.append(np.abs(np.linalg.det(edges)).sum() / 6 if cell.GetCellDimension() == 3
                     else np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1).sum() / 2)
    return np.array(sizes)


@pytest.mark.parametrize(("fill", "cells"), [("mixed-surface", (6, 4)), ("mixed-volume", (6, 3, 3)),
                                             ("polyhedra", (3, 3, 3))])
@pytest.mark.parametrize("ghosts", [False, True])
def test_cells_are_those_of_the_mesh(comm, fill, cells, ghosts):
    mesh = dnds.Mesh.box(fill, cells, comm=comm)
    grid = vtk.grid(mesh, ghosts=ghosts)
    count = len(mesh.cells) if ghosts else mesh.cells.owned
    assert grid.GetNumberOfCells() == count and grid.GetNumberOfPoints() == len(mesh.nodes)
    np.testing.assert_allclose(volumes(grid), mesh.metrics().volumes[:count], rtol=1e-12)
    if ghosts:
        marks = vtk_to_numpy(grid.GetCellData().GetArray("vtkGhostType"))
        np.testing.assert_array_equal(marks != 0, np.arange(count) >= mesh.cells.owned)


def test_fields_are_shown_as_they_are_and_outlive_the_mesh(comm):
    mesh = dnds.Mesh.box("mixed-volume", (6, 3, 3), comm=comm)
    u = mesh.field(3, name="u")
    height = mesh.coordinates[:, 2].copy()
    grid = vtk.grid(mesh, {"u": u, "one": np.ones(mesh.cells.owned)}, {"height": height})
    u.owned[:] = mesh.cells.own_file_numbers[:, None]
    expected, points = u.owned.copy(), mesh.coordinates.copy()
    del mesh, u
    gc.collect()
    np.testing.assert_array_equal(vtk_to_numpy(grid.GetCellData().GetArray("u")), expected)
    np.testing.assert_array_equal(vtk_to_numpy(grid.GetPointData().GetArray("height")), height)
    np.testing.assert_array_equal(vtk_to_numpy(grid.GetPoints().GetData()), points)


def test_ghosts_of_fields_follow(comm):
    mesh = dnds.Mesh.box("hexahedra", (4, 4, 4), comm=comm)
    u = mesh.field(name="u")
    u.owned[:] = mesh.cells.own_file_numbers
    grid = vtk.grid(mesh, {"u": u}, ghosts=True)
    u.pull()
    np.testing.assert_array_equal(vtk_to_numpy(grid.GetCellData().GetArray("u")), mesh.cells.file_numbers)


def test_shapes_that_do_not_fit(comm):
    mesh = dnds.Mesh.box("hexahedra", (2, 2, 2), comm=comm)
    with pytest.raises(dnds.ArgumentError, match=r"'p' have the shape \(99,\)"):
        vtk.grid(mesh, {"p": np.zeros(99)})
