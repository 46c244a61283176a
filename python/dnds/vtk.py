"""Meshes and fields as VTK objects in memory, for Catalyst, ParaView's and PyVista's tools. Needs the package vtk."""

import numpy as np
from vtkmodules.util.numpy_support import numpy_to_vtk, numpy_to_vtkIdTypeArray
from vtkmodules.vtkCommonCore import vtkPoints
from vtkmodules.vtkCommonDataModel import vtkCellArray, vtkUnstructuredGrid

from . import ArgumentError, Field

_DUPLICATE = 1  # VTK's mark of a cell or a point that another rank owns


def _shared(values):
    """A VTK array in the memory of `values`, which it keeps alive."""
    values = np.ascontiguousarray(values)
    array = numpy_to_vtk(values, deep=False)
    array.AddObserver("DeleteEvent", lambda *_, keep=values: None)
    return array


def _numbers(values):
    """A copy: VTK moves lists of numbers on to arrays of its own, which would know nothing of the owner."""
    return numpy_to_vtkIdTypeArray(values, deep=True)


def _cell_array(ends, entries):
    cells = vtkCellArray()
    cells.SetData(_numbers(np.concatenate(([0], ends))), _numbers(entries))
    return cells


def _polyhedra(lists):
    """VTK's stream of faces, and where each cell begins in it, -1 for cells without faces."""
    ends, entries, last = lists["face_offsets"], lists["face_connectivity"], lists["polyhedron_offsets"]
    begins = np.concatenate(([0], ends[:-1]))
    first = np.concatenate(([0], last[:-1]))
    stream, locations = [], np.full(len(last), -1, dtype=np.int64)
    for cell in np.flatnonzero(last > first):
        locations[cell] = len(stream)
        stream.append(last[cell] - first[cell])
        for face in range(first[cell], last[cell]):
            stream.append(ends[face] - begins[face])
            stream.extend(entries[begins[face] : ends[face]])
    return locations, np.array(stream, dtype=np.int64)


def _set_fields(data, fields, count, ghosts):
    for name, given in (fields or {}).items():
        if isinstance(given, Field):
            given = given.data if ghosts else given.owned
        values = np.asarray(given)
        if values.ndim not in (1, 2) or len(values) != count:
            raise ArgumentError(f"the values of '{name}' have the shape {values.shape}: they are [{count}] or "
                                f"[{count}, components]")
        array = _shared(values)
        array.SetName(name)
        data.AddArray(array)


def _mark_ghosts(data, owned, count):
    marks = np.zeros(count, dtype=np.uint8)
    marks[owned:] = _DUPLICATE
    array = _shared(marks)
    array.SetName("vtkGhostType")
    data.AddArray(array)


def grid(mesh, cells=None, nodes=None, *, ghosts=False):
    """This rank's part of a mesh as a vtkUnstructuredGrid, with fields. Local.

    `cells` and `nodes` are dicts of names and Field objects or arrays, [owned] or [owned, components]. With `ghosts`,
    ghost cells follow, marked in `vtkGhostType`, and arrays have rows for them, too. Points are all local nodes always,
    so arrays at nodes are [all]. Coordinates and fields are not copied: the grid shows what the program writes later
    (tell VTK by `grid.Modified()`), and keeps their memory alive. Cells are copied.
    """
    count = len(mesh.cells) if ghosts else mesh.cells.owned
    lists = mesh._vtk_cells(count)
    result = vtkUnstructuredGrid()
    points = vtkPoints()
    points.SetData(_shared(mesh.coordinates))
    result.SetPoints(points)
    types, connected = _shared(lists["types"]), _cell_array(lists["offsets"], lists["connectivity"])
    if len(lists["face_offsets"]) > 0:
        locations, stream = _polyhedra(lists)
        result.SetCells(types, connected, _numbers(locations), _numbers(stream))
    else:
        result.SetCells(types, connected)
    _set_fields(result.GetCellData(), cells, count, ghosts)
    _set_fields(result.GetPointData(), nodes, len(mesh.nodes), True)
    if ghosts:
        _mark_ghosts(result.GetCellData(), mesh.cells.owned, count)
        _mark_ghosts(result.GetPointData(), mesh.nodes.owned, len(mesh.nodes))
    return result
