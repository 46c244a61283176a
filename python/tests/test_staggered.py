"""Fields on nodes, faces and edges of blocks; fields on blocks as vectors, in checkpoints, and beyond walls."""

import importlib.util
import itertools
import json
import subprocess
import sys

import dnds
import numpy as np
import pytest

CENTRINGS = ["cells", "nodes", ("faces", 0), ("faces", 2), ("edges", 1)]


def points_of(box):
    """Of each dimension, the numbers of all points."""
    return np.meshgrid(*(np.arange(low, high) for low, high in zip(*box, strict=True)), indexing="ij")


def number(points, shape):
    """A number for each point of the file, through periods."""
    return np.ravel_multi_index([np.asarray(p) % n for p, n in zip(points, shape, strict=True)], shape) + 1


def inside(points, field):
    """Which points a grid without holes has."""
    found = True
    for d, p in enumerate(points):
        if not field.grid.periodic[d]:
            found = found & (p >= 0) & (p < field.global_shape[d])
    return found


def owned_slices(field, b):
    low = field.box(b)[0]
    return [tuple(slice(s - f, e - f) for s, e, f in zip(start, end, low, strict=True))
            for start, end in field.owned(b)]


def whole_of(comm, field):
    """The points of a field without components, on all ranks; each is owned once."""
    whole = np.zeros(field.global_shape)
    count = np.zeros(field.global_shape, int)
    for b in range(len(field)):
        for at, (start, end) in zip(owned_slices(field, b), field.owned(b), strict=True):
            places = np.ix_(*(np.arange(s, e) % n for s, e, n in zip(start, end, whole.shape, strict=True)))
            whole[places] += field.view(b)[at]
            count[places] += 1
    count = comm.allreduce(count)
    assert (count == 1).all()
    return comm.allreduce(whole)


@pytest.mark.parametrize("centring", CENTRINGS)
def test_points_have_one_owner_and_equal_copies(comm, centring):
    grid = dnds.BlockGrid.blocks_of((7, 6, 5), (3, 3, 3), periodic=(True, False, False), comm=comm)
    u = dnds.BlockField(grid, dtype="int64", ghosts=1, centring=centring)
    kind, dim = (centring, None) if isinstance(centring, str) else centring
    nodal = {"cells": (False,) * 3, "nodes": (True,) * 3, "faces": tuple(d == dim for d in range(3)),
             "edges": tuple(d != dim for d in range(3))}[kind]
    assert u.nodal == nodal
    assert u.global_shape == tuple(n + (node and not period)
                                   for n, node, period in zip(grid.shape, nodal, grid.periodic, strict=True))
    for b in range(len(u)):
        low, high = grid.blocks[u.number(b)][:2]
        assert u.box(b) == (low, tuple(h + node for h, node in zip(high, nodal, strict=True)))
        u.view(b)[...] = -1
        for at in owned_slices(u, b):
            u.view(b)[at] = number(points_of(u.box(b)), u.global_shape)[at]
    u.exchange_ghosts()
    for b in range(len(u)):
        points = points_of(u.box(b, ghosts=True))
        there = inside(points, u)
        np.testing.assert_array_equal(u.view(b, ghosts=True)[there], number(points, u.global_shape)[there])
        assert (u.view(b, ghosts=True)[~there] == 0).all()
    np.testing.assert_array_equal(whole_of(comm, u), np.arange(np.prod(u.global_shape)).reshape(u.global_shape) + 1)


def test_arrays_of_nodes(comm):
    t = dnds.NdArray("t")
    t.decompose((6, 8), ghosts=1, periodic=(False, True), centring="nodes", comm=comm)
    assert t.global_shape == (7, 8) and t.dims == ("x0_node", "x1_node")
    assert t.core.shape == tuple(high - low for low, high in zip(*t.local_core, strict=True))
    whole = np.arange(56.0).reshape(7, 8)
    t.core = whole[t.local_slices]
    t.coords = {"x0_node": np.arange(7) * 2.0, "x1_node": np.arange(8) * 45.0}
    assert {name: len(c) for name, c in t.local_coords.items()} == dict(zip(t.dims, t.core.shape, strict=True))
    t.exchange_ghosts()
    points = points_of(t.local_extent)
    there = (points[0] >= 0) & (points[0] < 7)
    np.testing.assert_array_equal(t.extent[there] if t.core.size else [], whole[points[0][there], points[1][there] % 8])
    owners = {p: t.owner_of(p) for p in itertools.product(range(7), range(9))}
    assert all(owners[i, 0] == owners[i, 8] for i in range(7)) and t.owner_of((7, 0)) == -1
    mine = {(i, j % 8) for start, end in (t.field.owned() if len(t.field) else [])
            for i in range(start[0], end[0]) for j in range(start[1], end[1])}
    assert mine == {(i, j) for (i, j), rank in owners.items() if j < 8 and rank == comm.rank}


def test_wrong_centrings_raise(comm):
    grid = dnds.BlockGrid.cut((4, 4), comm=comm)
    for wrong in ("corners", ("faces", 2), ("faces", -1), ("cells", 0), ("edges",), 3):
        with pytest.raises(dnds.ArgumentError, match="there is no centring"):
            dnds.BlockField(grid, centring=wrong)
    with pytest.raises(dnds.Error):
        dnds.BlockField(grid, centring="nodal" if comm.rank == 0 else "nodes")
    if comm.size > 1:
        with pytest.raises(dnds.StateError):
            dnds.BlockField(grid, centring="nodes" if comm.rank == 0 else "cells")


@pytest.mark.parametrize("order", ["inside", "outside"])
def test_fields_are_vectors(comm, order):
    grid = dnds.BlockGrid.blocks_of((9, 7), (4, 3), periodic=(True, False), comm=comm)
    u, v = (dnds.BlockField(grid, 2, ghosts=1, order=order, centring="nodes", name=name) for name in "uv")
    axis = 0 if order == "outside" else -1

    def component(field, b, c):
        return np.moveaxis(field.view(b), axis, 0)[c]

    for b in range(len(u)):
        for c in range(2):
            component(u, b, c)[...] = number(points_of(u.box(b)), u.global_shape) * (-1) ** c
            component(v, b, c)[...] = 3 + c
    u.exchange_ghosts()
    v.exchange_ghosts()
    n = np.arange(1.0, np.prod(u.global_shape) + 1)
    assert u.sum(exact=True) == 0 and u.sum(component=0) == n.sum() and u.sum(component=1, exact=True) == -n.sum()
    assert u.norm1() == 2 * n.sum() and u.norm_inf() == n[-1] and (u.min(), u.max()) == (-n[-1], n[-1])
    assert u.norm2(component=0) == pytest.approx(np.sqrt((n * n).sum()), rel=1e-14)
    assert u.dot(v) == -n.sum() and u.dot(v, component=1, exact=True) == -4 * n.sum()
    assert u.max(ghosts=True) == n[-1]
    v.axpy(2.0, u)
    v.scale(0.5, component=1)
    for b in range(len(u)):
        np.testing.assert_array_equal(component(v, b, 0), 3 + 2 * component(u, b, 0))
        np.testing.assert_array_equal(component(v, b, 1), 2 + component(u, b, 1))
    v.set_constant(7, ghosts=False)
    assert v.sum() == 14 * len(n)
    v.copy_from(u)
    for b in range(len(u)):
        np.testing.assert_array_equal(v.view(b, ghosts=True), u.view(b, ghosts=True))
    with pytest.raises(dnds.ArgumentError, match="component"):
        u.norm2(component=2)
    with pytest.raises(dnds.ArgumentError, match="differ in their"):
        u.dot(dnds.BlockField(grid, 2))
    with pytest.raises(dnds.ArgumentError, match="float32"):
        dnds.BlockField(grid, dtype="float32").norm2()
    with u.start_exchange_ghosts():
        assert u.norm1() == 2 * n.sum()
        with pytest.raises(dnds.StateError):
            u.scale(2)


def test_vectors_on_the_device(comm):
    if not dnds.device_available():
        pytest.skip("no device")
    u = dnds.BlockField(dnds.BlockGrid.cut((6, 5), comm=comm), ghosts=1, centring=("faces", 0))
    u.to_device()
    u.set_constant(2)
    assert u.sum() == 2 * 7 * 5
    u.to_host()
    assert all((u.view(b) == 2).all() for b in range(len(u)))


def test_checkpoints_of_blocks(comm, shared_path):
    grid = dnds.BlockGrid.blocks_of((9, 7), (4, 3), periodic=(True, False), comm=comm)
    u = dnds.BlockField(grid, centring="nodes", name="u")
    t = dnds.NdArray("t", "float32")
    t.decompose((9, 7), components=2, periodic=(True, False), comm=comm)
    for b in range(len(u)):
        u.view(b)[...] = number(points_of(u.box(b)), u.global_shape)
    t.core = number(points_of(t.local_core), (9, 7))[..., None] * [1, -1]
    path = shared_path / "blocks.h5"
    try:
        dnds.write_checkpoint(path, {"u": u, "t": t}, comm=comm)
    except dnds.NotBuiltError as error:
        pytest.skip(str(error))
    again = dnds.NdArray("again")
    again.decompose((9, 7), parts=(1, -1), ghosts=1, periodic=(True, False), centring="nodes", comm=comm)
    cells = dnds.BlockField(dnds.BlockGrid.blocks_of((9, 7), (2, 2), periodic=(True, False), comm=comm), 2, "float32")
    file = dnds.Checkpoint(path, comm)
    file.read("u", again)
    again.exchange_ghosts()
    np.testing.assert_array_equal(again.core, number(points_of(again.local_core), (9, 8)))
    file.read("t", cells)
    for b in range(len(cells)):
        np.testing.assert_array_equal(cells.view(b)[..., 1], -number(points_of(cells.box(b)), (9, 7)))
    other = dnds.NdArray("other", "float32")
    other.decompose((9, 8), components=2, comm=comm)
    with pytest.raises(dnds.ArgumentError):
        file.read("t", other)
    with pytest.raises(dnds.ArgumentError, match="knows its ids"):
        file.read("t", cells, [0])


#: What a reader that follows CF sees, in a process of its own: the library of Python's netCDF4 and a parallel one have
#: the same names.
READ_AS_CF = """
import json, netCDF4, sys
with netCDF4.Dataset(sys.argv[1]) as file:
    seen = {"Conventions": getattr(file, "Conventions", None)}
    for name, variable in file.variables.items():
        seen[name] = {"dims": variable.dimensions, "values": variable[:].tolist(),
                      "attrs": {key: variable.getncattr(key) for key in variable.ncattrs()}}
print(json.dumps(seen))
"""


def test_coordinates_of_staggered_arrays_in_files(comm, shared_path):
    path = shared_path / "staggered.nc"
    lat_nodes, lon_nodes = np.array([90.0, 20.0, -20.0, -90.0]), np.arange(5) * 90.0
    arrays = {}
    for name, centring, dims in (("p", "cells", ("lat", "lon")), ("u", ("faces", 1), ("lat", "lon_u")),
                                 ("v", ("faces", 0), ("lat_v", "lon"))):
        t = arrays[name] = dnds.NdArray(name, "float32")
        t.decompose((3, 4), periodic=(False, True), centring=centring, dims=dims, comm=comm)
        t.core = number(points_of(t.local_core), t.global_shape)
        t.coords = {"lat": [50.0, 0.0, -50.0], "lat_v": lat_nodes, "lon_u": lon_nodes[:-1]}
        t.coords = {name: values for name, values in t.coords.items() if name in dims}
        t.bounds = {name: nodes for name, nodes in (("lat", lat_nodes), ("lon", lon_nodes)) if name in dims}
        t.coord_attrs = {d: {"units": "degrees_north" if "lat" in d else "degrees_east"} for d in dims}
        t.attrs = {"units": "Pa" if name == "p" else "m s-1"}
    try:
        dnds.write_netcdf(path, arrays)
    except dnds.NotBuiltError as error:
        pytest.skip(str(error))
    about = dnds.netcdf_variables(path, comm)
    assert set(about) == {"p", "u", "v", "lat", "lat_bnds", "lat_v", "lon", "lon_bnds", "lon_u"}
    assert about["v"]["dims"] == ("lat_v", "lon") and about["v"]["shape"] == (4, 4)
    for name, t in arrays.items():
        back = dnds.NdArray("back", "float32")
        back.decompose((3, 4), parts=(1, -1), periodic=(False, True), comm=comm,
                       centring={"p": "cells", "u": ("faces", 1), "v": ("faces", 0)}[name])
        back.read_netcdf(path, name)
        back.exchange_ghosts()
        np.testing.assert_array_equal(back.core, number(points_of(back.local_core), t.global_shape))
        assert back.dims == t.dims and back.attrs == t.attrs and back.coord_attrs == t.coord_attrs
        assert set(back.bounds) == set(t.bounds) and set(back.coords) == set(t.dims)
        for d, nodes in t.bounds.items():
            np.testing.assert_array_equal(back.bounds[d], nodes)
    np.testing.assert_array_equal(back.coords["lon"], [45, 135, 225, 315])
    arrays["p"].bounds = {"lat": 2 * lat_nodes}
    with pytest.raises(dnds.ArgumentError, match="'p' and 'u' have other coordinates or bounds in dimension 'lat'"):
        dnds.write_netcdf(shared_path / "bad.nc", arrays)
    arrays["p"].bounds = {"lat": [0.0]}
    with pytest.raises(dnds.ArgumentError, match="bounds"):
        arrays["p"].write_netcdf(shared_path / "bad.nc")
    with pytest.raises(dnds.StateError, match="call decompose first"):
        dnds.write_netcdf(shared_path / "bad.nc", {"u": arrays["u"], "q": dnds.NdArray("q")})
    with pytest.raises(ValueError, match="no arrays"):
        dnds.write_netcdf(shared_path / "bad.nc", {})
    steps = shared_path / "steps.nc"
    for step in range(2):
        dnds.write_netcdf(steps, {name: arrays[name] for name in "uv"}, time=1.0 * step)
    assert dnds.netcdf_variables(steps, comm)["u"]["shape"] == (2, 3, 4)
    if importlib.util.find_spec("netCDF4") is None:
        pytest.skip("Python's netCDF4 is not installed: other readers were not asked")
    if comm.rank == 0:
        check_cf(json.loads(subprocess.run([sys.executable, "-c", READ_AS_CF, str(path)], check=True, timeout=60,
                                           capture_output=True).stdout))
    comm.Barrier()


@pytest.mark.parametrize("ends, nodes", [([[4, 6], [2, 4], [0, 2]], [6, 4, 2, 0]),
                                         ([[6, 4], [4, 2], [2, 0]], [6, 4, 2, 0]),
                                         ([[0, 1], [1, 2], [3, 4]], None)])
def test_bounds_of_other_programs(comm, shared_path, ends, nodes):
    path = shared_path / "bounds.nc"
    t, bounds = dnds.NdArray("t"), dnds.NdArray("lat_bnds")
    t.decompose((3,), dims=("lat",), comm=comm)
    bounds.decompose((3, 2), parts=(-1, 1), dims=("lat", "bound"), comm=comm)
    t.coords, t.coord_attrs = {"lat": [5.0, 3.0, 1.0]}, {"lat": {"bounds": "lat_bnds"}}
    bounds.core = np.array(ends, float)[bounds.local_slices]
    try:
        dnds.write_netcdf(path, {"t": t, "lat_bnds": bounds})
    except dnds.NotBuiltError as error:
        pytest.skip(str(error))
    t.read_netcdf(path, "t")
    assert nodes is None and "lat" not in t.bounds or list(t.bounds["lat"]) == nodes


def check_cf(seen):
    """Coordinate variables by CF-1.8, chapters 5 and 7.1, as xarray takes them over."""
    assert seen.pop("Conventions") == "CF-1.8"
    for name in "puv":
        assert "units" in seen[name]["attrs"]
        np.testing.assert_array_equal(np.ravel(seen[name]["values"]), np.arange(np.size(seen[name]["values"])) + 1)
        for d in seen[name]["dims"]:
            assert seen[d]["dims"] == [d] and seen[d]["attrs"]["units"].startswith("degrees_")
            steps = np.diff(seen[d]["values"])
            assert (steps > 0).all() or (steps < 0).all()
    for d in ("lat", "lon"):
        bounds = seen[seen[d]["attrs"]["bounds"]]
        assert bounds["dims"] == [d, "bound"] and bounds["attrs"] == {}
        ends = np.array(bounds["values"])
        np.testing.assert_array_equal(ends[1:, 0], ends[:-1, 1])
        assert (ends.min(1) < seen[d]["values"]).all() and (seen[d]["values"] < ends.max(1)).all()
    np.testing.assert_array_equal(seen["lat_v"]["values"], [*np.array(seen["lat_bnds"]["values"])[:, 0], -90])
    np.testing.assert_array_equal(seen["lon_u"]["values"], np.array(seen["lon_bnds"]["values"])[:, 0])
    assert "bounds" not in seen["lat_v"]["attrs"] and "bounds" not in seen["lon_u"]["attrs"]


def filled(values, ghosts, rules, nodal):
    """A global array with ghosts, filled by brute force: rules (dimension, high, kind, number or function)."""
    padded = np.pad(values, ghosts)
    for d in range(values.ndim):
        for dim, high, kind, what in rules:
            if dim != d:
                continue
            lines = np.moveaxis(padded, d, 0)
            n = values.shape[d]
            for layer in range(1, ghosts + 1):
                ghost = ghosts + (n - 1 + layer if high else -layer)
                edge = ghosts + (n - 1 if high else 0)
                mirror = edge + (layer - (not nodal)) * (-1 if high else 1)
                if kind == "constant":
                    lines[ghost] = what
                elif kind == "nearest":
                    lines[ghost] = lines[edge]
                elif kind == "mirror":
                    lines[ghost] = what * lines[mirror]
                elif kind == "dirichlet":
                    lines[ghost] = 2 * what - lines[mirror]
                else:
                    places = [np.arange(size) - ghosts + (0 if nodal else 0.5) for size in padded.shape]
                    places[d] = places[d][[ghost]]
                    lines[ghost] = np.moveaxis(np.broadcast_to(
                        what(*np.ix_(*places)), [len(p) for p in places]), d, 0)[0]
    return padded


def wave(i, j):
    return 10 * i + np.sin(j)


@pytest.mark.parametrize("nodal", [False, True])
@pytest.mark.parametrize("rules", [
    [(0, False, "constant", 4), (0, True, "nearest", None), (1, False, "mirror", -1), (1, True, "dirichlet", 300)],
    [(0, False, "function", wave), (0, True, "mirror", 2), (1, False, "nearest", None), (1, True, "function", wave)],
])
def test_rules_beyond_walls(comm, nodal, rules):
    grid = dnds.BlockGrid.blocks_of((9, 8), (4, 4), comm=comm)
    u = dnds.BlockField(grid, ghosts=2, centring="nodes" if nodal else "cells")
    walls = dnds.BlockBoundary(u)
    for dim, high, kind, what in rules:
        face = (dnds.high_face if high else dnds.low_face)(dim)
        getattr(walls, kind)(face, *([] if what is None else [what]))
    for b in range(len(u)):
        u.view(b)[...] = number(points_of(u.box(b)), u.global_shape)
    walls.exchange_and_fill(u)
    expected = filled(np.arange(1.0, np.prod(u.global_shape) + 1).reshape(u.global_shape), 2, rules, nodal)
    for b in range(len(u)):
        (i, j), (ie, je) = u.box(b, ghosts=True)
        np.testing.assert_array_equal(u.view(b, ghosts=True), expected[i + 2 : ie + 2, j + 2 : je + 2])


@pytest.mark.parametrize("order", ["inside", "outside"])
def test_rules_of_components_and_spaces(comm, order):
    grid = dnds.BlockGrid.make([("ring", (6, 4), (True, False))], [("ring", (0, 0), (3, 4), 0),
                                                                ("ring", (3, 0), (6, 4), comm.size - 1)], comm=comm)
    u = dnds.BlockField(grid, 2, "int32", ghosts=1, order=order)
    walls = dnds.BlockBoundary(u)
    walls.constant(dnds.low_face(1, "ring"), 5)
    walls.function(dnds.low_face(1), lambda i, j: np.floor(i).astype("int32"), component=1)
    walls.function(dnds.high_face(1), lambda i, j: np.int32(8))
    walls.function(dnds.high_face(1), lambda i, j: np.int32(9), component=0)
    walls.none(dnds.high_face(1), 0)
    walls.exchange_and_fill(u)
    for b in range(len(u)):
        (low, _), (high, _) = u.box(b, ghosts=True)
        cells = np.moveaxis(u.view(b, ghosts=True), 0 if order == "outside" else -1, 0)
        assert (cells[0, :, 0] == 5).all() and (cells[0, :, -1] == 0).all() and (cells[1, :, -1] == 8).all()
        np.testing.assert_array_equal(cells[1, :, 0], np.arange(low, high))
    for wrong in (lambda: walls.nearest(dnds.low_face(0)), lambda: walls.constant(dnds.low_face(1, "top"), 1),
                  lambda: walls.constant(dnds.low_face(1), 1, component=2), lambda: walls.constant("low", 1),
                  lambda: walls.constant(dnds.low_face(1), "one"), lambda: walls.function(dnds.low_face(1), 3),
                  lambda: walls.fill(dnds.BlockField(grid, 2, "int32"))):
        with pytest.raises(dnds.ArgumentError):
            wrong()
    with pytest.raises(TypeError):
        walls.fill(3)


def test_functions_that_raise(comm):
    t = dnds.NdArray("t")
    t.decompose((4 * comm.size, 3), ghosts=1, comm=comm)
    walls = dnds.BlockBoundary(t)
    walls.function(dnds.low_face(1), lambda i, j: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        walls.fill(t)
    walls.function(dnds.low_face(1), lambda i, j: np.zeros((7, 7)))
    with pytest.raises(ValueError):
        walls.fill(t)
    walls.function(dnds.low_face(1), lambda i, j: i + 0 * j)
    with t.start_exchange_ghosts(), pytest.raises(dnds.StateError):
        walls.fill(t)
    walls.exchange_and_fill(t)
    np.testing.assert_array_equal(t.extent[1:-1, 0], np.arange(t.local_core[0][0], t.local_core[1][0]) + 0.5)


def test_boundaries_let_go_of_their_functions(comm):
    import gc
    import weakref

    class Inflow:
        def __call__(self, i, j):
            return 1.0

    inflow = Inflow()
    gone = weakref.ref(inflow)
    u = dnds.BlockField(dnds.BlockGrid.cut((4, 4), comm=comm), ghosts=1)
    walls = dnds.BlockBoundary(u)
    walls.function(dnds.low_face(0), inflow)
    del inflow, u
    assert gone() is not None
    del walls
    gc.collect()
    assert gone() is None

    class Flow:  # which its own boundary refers to
        def __init__(self):
            self.u = dnds.BlockField(dnds.BlockGrid.cut((4, 4), comm=comm), ghosts=1)
            self.walls = dnds.BlockBoundary(self.u)
            self.walls.function(dnds.low_face(0), lambda i, j: self.speed)

    flow = Flow()
    gone = weakref.ref(flow)
    del flow
    gc.collect()
    assert gone() is None
