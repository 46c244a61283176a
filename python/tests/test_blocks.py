import importlib.util
import subprocess
import sys

import dnds
import numpy as np
import pytest


@pytest.fixture
def netcdf_path(comm, shared_path):
    """A folder, where this build has NetCDF."""
    with pytest.raises(dnds.Error) as error:
        dnds.netcdf_variables(shared_path / "absent.nc", comm)
    if error.type is dnds.NotBuiltError:
        pytest.skip(str(error.value))
    return shared_path


def number(cells, shape):
    """A number for each global cell, through periodic directions: C order."""
    wrapped = [np.asarray(c) % n for c, n in zip(cells, shape, strict=True)]
    return np.ravel_multi_index(wrapped, shape) + 1


def cells_of(box):
    return np.meshgrid(*(np.arange(low, high) for low, high in zip(*box, strict=True)), indexing="ij")


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint16"])
@pytest.mark.parametrize("order", ["inside", "outside"])
@pytest.mark.parametrize("components", [1, 3])
def test_ghosts_are_the_cells_they_stand_for(comm, dtype, order, components):
    shape, periodic = (9, 7, 5), (True, False, True)
    a = dnds.NdArray("a", dtype)
    assert not a.is_distributed
    a.decompose(shape, ghosts=[1, (2, 1), 1], periodic=periodic, components=components, order=order, comm=comm)
    assert a.is_distributed and a.global_shape == shape and a.dtype == np.dtype(dtype)
    axis = 0 if order == "outside" else -1
    weights = np.arange(1, components + 1)

    def expected(box):
        values = number(cells_of(box), shape)
        if components == 1:
            return values
        return np.moveaxis(values[..., None] * weights, -1, axis)

    core = a.core
    core[...] = expected(a.local_core)
    a.exchange_ghosts()
    extent = a.extent
    if core.size:
        assert np.shares_memory(core, extent) and extent.dtype == np.dtype(dtype)
    low, high = a.local_extent
    inside = (cells_of(a.local_extent)[1] >= 0) & (cells_of(a.local_extent)[1] < shape[1])
    values = np.moveaxis(extent, axis, -1) if components > 1 else extent
    wanted = np.moveaxis(expected((low, high)), axis, -1) if components > 1 else expected((low, high))
    np.testing.assert_array_equal(values[inside], wanted[inside])
    assert (values[~inside] == 0).all(), "beyond walls ghosts belong to the user"
    assert comm.allreduce(core.size) == np.prod(shape) * components


def test_indices_and_owners(comm):
    a = dnds.NdArray("a")
    a.decompose((23, 4), parts=(-1, 0), ghosts=(2, 0), periodic=(True, False), comm=comm)
    (first, zero), (last, four) = a.local_core
    assert (zero, four) == (0, 4) and a.core.shape == (last - first, 4)
    assert a.local_extent == (((first - 2), 0), (last + 2, 4)) and a.extent.shape == (last - first + 4, 4)
    assert a.to_local((first, 3)) == (0, 3) and a.to_global((-1, 2)) == (first - 1, 2)
    assert a.owner_of((first, 0)) == comm.rank and a.owner_of((23, 0)) == -1
    assert "cut" in a.describe()
    a.core = 5
    a.core += 1
    assert (a.core == 6).all()


def test_ranks_without_cells_take_part(comm):
    a = dnds.NdArray("few", "int32")
    a.decompose((2, 1), ghosts=1, periodic=(True, True), comm=comm)
    assert comm.allreduce(a.core.size) == 2 and a.core.ndim == 2
    a.core = comm.rank + 1
    a.exchange_ghosts()
    if a.core.size == 0:
        assert a.extent.shape == (0, 0) and a.local_core == ((0, 0), (0, 0))
    else:
        assert (a.extent > 0).all()


def test_exchanges_in_flight_guard_their_memory(comm):
    a = dnds.NdArray("a")
    a.decompose((8 * comm.size,), ghosts=1, periodic=(True,), comm=comm)
    a.core = 3
    with a.start_exchange_ghosts():
        assert not a.core.flags.writeable and (a.core == 3).all()
        with pytest.raises(dnds.StateError, match="finish_exchange_ghosts"):
            _ = a.extent
        with pytest.raises(dnds.StateError):
            a.exchange_ghosts()
    assert a.core.flags.writeable and (a.extent == 3).all()
    a.core = 4
    a.start_exchange_ghosts()
    a.finish_exchange_ghosts()
    assert (a.extent == 4).all()
    assert comm.size == 1 or a.field.describe_exchange()


def test_stars_have_no_corners(comm):
    shape = (12, 9)
    grid = dnds.BlockGrid.blocks_of(shape, (4, 3), periodic=(True, True), comm=comm)
    u = dnds.BlockField(grid, ghosts=[2, 1], ghost_shape="star")
    every, dust = (grid.sparse_field(ghosts=[2, 1], ghost_shape=s) for s in ("box", "star"))
    for b in range(len(u)):
        every.allocate(b)
        dust.allocate(b)
        for field in (u, every, dust):
            field.view(b)[...] = number(cells_of(u.box(b)), shape)
    for field in (u, every, dust):
        field.exchange_ghosts()
    for b in range(len(u)):
        expected = number(cells_of(u.box(b, ghosts=True)), shape)
        np.testing.assert_array_equal(every.view(b, ghosts=True), expected)
        for corner in [(i, j) for i in (slice(2), slice(-2, None)) for j in (slice(1), slice(-1, None))]:
            expected[corner] = 0
        np.testing.assert_array_equal(u.view(b, ghosts=True), expected)
        np.testing.assert_array_equal(dust.view(b, ghosts=True), expected)
    a = dnds.NdArray("a")
    a.decompose((8, 8), ghosts=1, ghost_shape="star", periodic=(True, True), comm=comm)
    a.core = 1
    a.exchange_ghosts()
    if a.core.size:
        assert a.extent[0, 0] == 0 and a.extent[0, 1] == a.extent[1, 0] == 1


def test_views_keep_their_memory(comm):
    a = dnds.NdArray("a")
    a.decompose((4 * comm.size, 3), ghosts=1, comm=comm)
    a.core = 7
    view = a.core
    a.decompose((5 * comm.size, 2), comm=comm)
    del a
    assert (view == 7).all()


def test_names_and_coordinates(comm):
    a = dnds.NdArray("t", "float32")
    a.decompose((6, 2 * comm.size), ghosts=1, dims=("lat", "lon"), comm=comm)
    a.coords = {"lat": np.linspace(90, -90, 6), "lon": np.arange(2 * comm.size) * 10.0}
    assert a.dims == ("lat", "lon")
    local = a.local_coords
    assert {name: len(values) for name, values in local.items()} == dict(zip(a.dims, a.core.shape, strict=True))
    whole = np.add.outer(a.coords["lat"], a.coords["lon"])
    a.core = whole[a.local_slices]
    np.testing.assert_allclose(a.core, np.add.outer(local["lat"], local["lon"]), rtol=1e-6)
    with pytest.raises(ValueError, match="different names"):
        a.dims = ("lat", "lat")
    a.decompose((4 * comm.size,), components=2, comm=comm)
    assert a.dims == ("x0", "component") and a.coords == {}


def test_many_blocks_a_rank(comm):
    shape, block = (16, 12), (4, 5)
    grid = dnds.BlockGrid.blocks_of(shape, block, periodic=(True, True), comm=comm)
    assert len(grid.blocks) == 4 * 3 and grid.shape == shape and grid.periodic == (True, True)
    u = dnds.BlockField(grid, ghosts=2, name="u")
    mine = [n for n, (_, _, rank) in enumerate(grid.blocks) if rank == comm.rank]
    assert [u.number(b) for b in range(len(u))] == mine
    for b in range(len(u)):
        assert u.box(b) == grid.blocks[mine[b]][:2]
        u.view(b)[...] = number(cells_of(u.box(b)), shape)
    u.exchange_ghosts()
    for b in range(len(u)):
        np.testing.assert_array_equal(u.view(b, ghosts=True), number(cells_of(u.box(b, ghosts=True)), shape))
    with pytest.raises(dnds.IndexError, match="no block"):
        u.view(len(u))


def test_deposits_into_ghosts(comm):
    grid = dnds.BlockGrid.blocks_of((16, 12), (4, 4), periodic=(True, False), comm=comm)
    u = dnds.BlockField(grid, 2, "int64", ghosts=1)
    with pytest.raises(dnds.ArgumentError, match="replace, sum, min or max"):
        u.push_ghosts("add")
    for b in range(len(u)):
        u.view(b, ghosts=True)[...] = 1
    u.push_ghosts()
    for b in range(len(u)):
        low, high = u.box(b)
        along = np.array([2, 1, 1, 2])  # blocks that deposit, by the cell in the block
        across = along - [low[1] == 0, 0, 0, high[1] == 12]
        np.testing.assert_array_equal(u.view(b)[..., 1], np.outer(along, across))
        ghosts = u.view(b, ghosts=True)[1:-1, :, 0]
        assert (ghosts[:, 0] == (low[1] == 0)).all() and (ghosts[:, -1] == (high[1] == 12)).all(), "walls keep theirs"
    u.push_ghosts("max")
    total = comm.allreduce(sum(int(u.view(b)[..., 0].sum()) for b in range(len(u))))
    assert total == 6 * 4 * (6 * 3 - 2)
    a = dnds.NdArray("a")
    a.decompose((8 * comm.size,), ghosts=1, periodic=(True,), comm=comm)
    a.extent = 1
    a.push_ghosts()
    assert a.extent[0] == a.extent[-1] == 0 and a.core[0] == a.core[-1] == 2
    with a.start_exchange_ghosts():
        with pytest.raises(dnds.StateError, match="finish_exchange_ghosts"):
            a.push_ghosts()


def test_copies_to_another_cut(comm):
    shape = (9, 14)
    a = dnds.BlockField(dnds.BlockGrid.blocks_of(shape, (4, 5), comm=comm), 2, "float32", ghosts=1, order="outside")
    b = dnds.BlockField(dnds.BlockGrid.cut(shape[::-1], parts=(-1, 1), comm=comm), 2, "float32")
    for n in range(len(a)):
        for component in range(2):
            a.view(n)[component] = number(cells_of(a.box(n)), shape) + 1000 * component
    transpose = dnds.BlockCopy(a, b, axes=(1, 0))
    transpose.run()
    for n in range(len(b)):
        j, i = cells_of(b.box(n))
        for component in range(2):
            np.testing.assert_array_equal(b.view(n)[..., component], number((i, j), shape) + 1000 * component)
    assert "peer" in transpose.describe()
    before = [b.view(n).copy() for n in range(len(b))]
    dnds.BlockCopy(a, b, axes=[1, 0], op="sum").run()
    for n in range(len(b)):
        np.testing.assert_array_equal(b.view(n), 2 * before[n])
    with pytest.raises(dnds.ArgumentError, match="equal index spaces"):
        dnds.BlockCopy(a, b)
    with pytest.raises(dnds.Error):
        dnds.BlockCopy(a, b, axes=(1, 0) if comm.rank == 0 else (1, "x"), op="mean")


def test_blocks_follow_their_cost(comm):
    grid = dnds.BlockGrid.blocks_of((12, 8), (2, 2), periodic=(True, False), comm=comm)
    u = dnds.BlockField(grid, 2, ghosts=1, name="u")
    for b in range(len(u)):
        (i, j), _ = u.box(b)
        u.view(b)[...] = 100 * i + j
    u.exchange_ghosts()
    before = {u.number(b): u.view(b, ghosts=True).copy() for b in range(len(u))}
    costs = [9.0 if u.number(b) == 0 else 1.0 for b in range(len(u))]
    moved = u.moved(grid.rebalanced(costs, 0.05))
    everything = {n: v for part in comm.allgather(before) for n, v in part.items()}
    for b in range(len(moved)):
        np.testing.assert_array_equal(moved.view(b, ghosts=True), everything[moved.number(b)])
    assert comm.allreduce(len(moved)) == 24
    if comm.rank == 0 and comm.size > 1:
        assert len(moved) < 24 / comm.size  # block 0 counts for nine
    moved.exchange_ghosts()
    with pytest.raises(dnds.ArgumentError, match="costs"):
        grid.rebalanced(costs + [1.0] if comm.rank == 0 else costs)


def test_when_moving_pays(comm):
    policy = dnds.Rebalancing(0.1, comm=comm)
    own = 2.0 if comm.rank == 0 else 1.0
    assert policy.is_due(own) == (comm.size > 1)
    policy.moved(3.0)
    assert not policy.is_due(own)
    with pytest.raises(dnds.ArgumentError):
        dnds.Rebalancing(-1, comm=comm)


def test_what_is_wrong_on_one_rank_raises_on_all(comm):
    last = comm.rank == comm.size - 1
    a = dnds.NdArray("a")
    with pytest.raises(dnds.StateError, match="decompose first"):
        _ = a.core
    with pytest.raises(dnds.Error):
        a.decompose((8, "x") if last else (8, 8), comm=comm)
    with pytest.raises(dnds.Error):
        a.decompose((8, 8), ghosts=[1] if last else 1, comm=comm)
    with pytest.raises(dnds.Error):
        a.decompose((8, 8), ghosts=-1, comm=comm)
    with pytest.raises(dnds.Error, match="no shape of ghosts 'cross': it is box or star"):
        a.decompose((8, 8), ghosts=1, ghost_shape="cross", comm=comm)
    with pytest.raises(dnds.Error):
        a.decompose((8, 8), periodic=(True,) if last else (True, True), comm=comm)
    with pytest.raises(dnds.Error, match="more than|ranks"):
        a.decompose((64, 64), parts=(comm.size + 1, 1), comm=comm)
    with pytest.raises(dnds.Error, match="inside or outside"):
        a.decompose((8, 8), components=2, order="both" if last else "inside", comm=comm)
    with pytest.raises(dnds.Error, match="components"):
        a.decompose((8, 8), components=0, comm=comm)
    assert not a.is_distributed
    a.decompose((8, 8), comm=comm)
    assert comm.allreduce(a.core.size) == 64


def written(comm, path, dtype="float32"):
    """A file of a field with names and coordinates."""
    t = dnds.NdArray("t", dtype)
    t.decompose((6, 8), ghosts=1, dims=("lat", "lon"), comm=comm)
    t.coords = {"lat": np.linspace(75, -75, 6), "lon": np.arange(8) * 45.0}
    t.attrs = {"units": "K", "levels": 3, "height": 2.5, "flag_values": [1, 2, 4], "actual_range": [0.5, 9.0]}
    t.core = number(cells_of(t.local_core), (6, 8))
    t.write_netcdf(path)
    return t


def test_netcdf_files_come_back(comm, netcdf_path):
    path = netcdf_path / "t.nc"
    t = written(comm, path)
    about = dnds.netcdf_variables(path, comm)
    assert about["t"]["dims"] == ("lat", "lon") and about["t"]["shape"] == (6, 8) and set(about) == {"t", "lat", "lon"}
    assert about["t"]["attrs"] == t.attrs
    t.attrs = {"half": np.array(0.5), "halves": [np.array(0.5), np.array(9.0)], "large": 2**63, "three": np.int64(3)}
    t.write_netcdf(path)
    attrs = dnds.netcdf_variables(path, comm)["t"]["attrs"]
    assert attrs == {"half": 0.5, "halves": [0.5, 9.0], "large": 2.0**63, "three": 3}
    t.attrs = {"wrong": b"bytes"}
    with pytest.raises(dnds.ArgumentError, match="'wrong' is no text"):
        t.write_netcdf(path)
    t = written(comm, path)
    back = dnds.NdArray("back")
    back.decompose(about["t"]["shape"], parts=(1, -1), ghosts=2, comm=comm)
    back.read_netcdf(path, "t")
    np.testing.assert_array_equal(back.core, number(cells_of(back.local_core), (6, 8)))
    assert back.dims == t.dims and back.attrs == t.attrs
    for name, values in t.coords.items():
        np.testing.assert_array_equal(back.coords[name], values)
    with pytest.raises(dnds.ArgumentError, match="lat"):
        back.read_netcdf(path, "salt")
    with pytest.raises(dnds.LayoutError):
        other = dnds.NdArray()
        other.decompose((6, 9), comm=comm)
        other.read_netcdf(path, "t")
    with pytest.raises(dnds.DataError):
        back.read_netcdf(netcdf_path / "absent.nc", "t")
    back.coords = {"lat": [1.0]}
    with pytest.raises(dnds.Error, match="coordinates"):
        back.write_netcdf(netcdf_path / "bad.nc")


def test_netcdf_files_get_steps(comm, netcdf_path):
    path = netcdf_path / "steps.nc"
    t = dnds.NdArray("t", "float32")
    t.decompose((6, 8), dims=("y", "x"), comm=comm)
    for step in range(3):
        t.core = number(cells_of(t.local_core), (6, 8)) + 100 * step
        t.write_netcdf(path, time=0.5 * step, time_units="hours since 2000-01-01")
    about = dnds.netcdf_variables(path, comm)
    assert about["t"]["dims"] == ("time", "y", "x") and about["t"]["shape"] == (3, 6, 8)
    assert about["time"]["attrs"] == {"units": "hours since 2000-01-01"}
    for step in (0, 1, -1):
        t.read_netcdf(path, "t", step)
        np.testing.assert_array_equal(t.core, number(cells_of(t.local_core), (6, 8)) + 100 * (step % 3))
    times = dnds.NdArray("time")
    times.decompose((3,), comm=comm)
    times.read_netcdf(path, "time")
    np.testing.assert_array_equal(times.core, 0.5 * np.arange(3)[times.local_slices])
    other = dnds.NdArray("t", "float32")
    other.decompose((6, 9), comm=comm)
    with pytest.raises(dnds.Error):
        other.write_netcdf(path, time=5.0)


def test_spaces_that_touch_turned(comm):
    """The upper end of the rows of "left" is the lower end of the columns of "right", which runs backwards."""
    side = dnds.Connection("left", (4, 0), (4, 3), "right", (3, 0), (2, -1))
    spaces = [("left", (4, 3)), ("right", (3, 5), (False, False))]
    last = comm.size - 1
    blocks = [("left", (0, 0), (4, 3), 0), ("right", (0, 0), (3, 5), last)]
    for grid in (dnds.BlockGrid.make(spaces, blocks, [side], comm=comm),
                 dnds.BlockGrid.blocks_of_spaces(spaces, (4, 5), [tuple(side)], comm=comm)):
        assert grid.spaces == [("left", (4, 3), (False, False)), ("right", (3, 5), (False, False))]
        u = dnds.BlockField(grid, ghosts=1, name="u")
        for b in range(len(u)):
            rows, columns = cells_of(u.box(b))
            u.view(b)[...] = rows * 10 + columns + (100 if u.view(b).shape == (3, 5) else 0)
        u.exchange_ghosts()
        for b in range(len(u)):
            around = u.view(b, ghosts=True)
            if u.view(b).shape == (4, 3):
                np.testing.assert_array_equal(around[5, 1:4], [120, 110, 100])
            else:
                np.testing.assert_array_equal(around[1:4, 0], [32, 31, 30])
    with pytest.raises(dnds.ArgumentError, match="no index space 'top': there are left, right"):
        dnds.BlockGrid.make(spaces, [("top", (0, 0), (1, 1), 0)], comm=comm)
    with pytest.raises(dnds.ArgumentError, match="block 0 is not"):
        dnds.BlockGrid.make(spaces, [((0, 0), (1, 1))], comm=comm)
    with pytest.raises(dnds.ArgumentError):
        dnds.BlockGrid.make(spaces, blocks, [side._replace(transform=(1, 1))], comm=comm)


#: In a process of its own: the library of Python's netCDF4 and a parallel one have the same names.
WRITE_PACKED = """
import netCDF4, numpy, sys
with netCDF4.Dataset(sys.argv[1], "w", format="NETCDF3_64BIT_OFFSET") as file:
    for name, length in (("time", 2), ("level", 3), ("y", 4), ("x", 5)):
        file.createDimension(name, length)
    file.createVariable("level", "f8", ("level",))[:] = [1000, 500, 200]
    u = file.createVariable("u", "i2", ("time", "level", "y", "x"), fill_value=-1)
    u.scale_factor, u.add_offset, u.units = 0.5, 10.0, "m/s"
    u.set_auto_maskandscale(False)
    values = numpy.arange(120, dtype="int16").reshape(2, 3, 4, 5)
    values[1, 1, 0, 0] = -1
    u[:] = values
"""


@pytest.mark.skipif(importlib.util.find_spec("netCDF4") is None, reason="Python's netCDF4 is not installed")
def test_netcdf_of_others_is_picked_unpacked_and_masked(comm, netcdf_path):
    path = netcdf_path / "packed.nc"
    whole = np.arange(120).reshape(2, 3, 4, 5)
    if comm.rank == 0:
        subprocess.run([sys.executable, "-c", WRITE_PACKED, str(path)], check=True, timeout=60)
    comm.Barrier()
    a = dnds.NdArray("u")
    a.decompose((4, 5), comm=comm)
    for picks in ({"isel": {"time": -1, "level": 1}}, {"isel": {"time": 1}, "sel": {"level": 480.0}}):
        a.core = 0
        a.read_netcdf(path, "u", **picks)
        expected = whole[1, 1] * 0.5 + 10
        expected[0, 0] = np.nan
        np.testing.assert_array_equal(a.core, expected[a.local_slices])
        assert a.dims == ("y", "x") and a.coords == {} and a.attrs == {"units": "m/s"}
    cube = dnds.NdArray("u")
    cube.decompose((3, 4, 5), comm=comm)
    cube.read_netcdf(path, "u", 0)
    np.testing.assert_array_equal(cube.core, (whole[0] * 0.5 + 10)[cube.local_slices])
    np.testing.assert_array_equal(cube.coords["level"], [1000, 500, 200])
    with pytest.raises(dnds.ArgumentError, match="isel is a dict"):
        a.read_netcdf(path, "u", isel=[1])


def test_exchanges_on_the_device(comm):
    a = dnds.NdArray("a")
    a.decompose((8, 8), ghosts=1, periodic=(True, True), comm=comm)
    if not dnds.device_available():
        with pytest.raises(dnds.NotBuiltError):
            a.to_device()
        return
    a.core = comm.rank + 1
    a.to_device()
    assert a.field.on_device
    a.exchange_ghosts()
    with pytest.raises(dnds.StaleError):
        _ = a.core
    a.to_host()
    assert not a.field.on_device
    if a.core.size:
        assert (a.extent > 0).all()


def test_xarray_labels_the_same_memory(comm):
    xarray = pytest.importorskip("xarray")
    t = dnds.NdArray("t")
    t.decompose((6, 2 * comm.size), ghosts=1, dims=("lat", "lon"), comm=comm)
    t.coords = {"lat": np.linspace(75, -75, 6), "lon": np.arange(2 * comm.size) * 10.0}
    labelled = xarray.DataArray(t.core, coords=t.local_coords, dims=t.dims, attrs=t.attrs)
    if t.core.size:
        assert np.shares_memory(labelled.values, t.core)
        labelled[0, 0] = 5
        lat, lon = (t.coords[name][low] for name, low in zip(t.dims, t.local_core[0], strict=True))
        assert t.core[0, 0] == 5 == labelled.sel(lat=lat, lon=lon)
