import gc

import dnds
import h5py
import numpy as np
import pytest


def puff(comm):
    """A grid of 32 blocks, and a field of which one block is there."""
    grid = dnds.BlockGrid.blocks_of((64, 32), (8, 8), periodic=(True, True), comm=comm)
    smoke = grid.sparse_field("smoke", stages=2, allocation_threshold=1e-9, deallocation_threshold=1e-10)
    for b in range(len(smoke)):
        if smoke.box(b) == ((8, 8), (16, 16)):
            assert smoke.allocate(b) and not smoke.allocate(b)
            smoke.view(b)[3, 4] = 1
    return grid, smoke


def drift(smoke):
    """Carries it by half a cell."""
    for b in smoke.allocated_blocks:
        u = smoke.view(b, ghosts=True)[:-1, 1:-1]
        smoke.view(b, 1)[...] = u[1:] - 0.5 * (u[1:] - u[:-1])
    smoke.swap_stages()


def all_cells(grid, smoke):
    """The dense field, the same on all ranks."""
    whole = np.zeros(grid.shape, smoke.dtype)
    for b in smoke.allocated_blocks:
        low, high = smoke.box(b)
        whole[low[0] : high[0], low[1] : high[1]] = smoke.view(b)
    return grid.comm.allreduce(whole)


def test_blocks_come_and_go_as_in_a_dense_field(comm):
    grid, smoke = puff(comm)
    dense = all_cells(grid, smoke)
    for _ in range(60):
        smoke.exchange_ghosts()
        drift(smoke)
        dense = dense - 0.5 * (dense - np.roll(dense, 1, axis=0))
    np.testing.assert_allclose(all_cells(grid, smoke), dense, atol=1e-8)
    there = comm.allreduce(len(smoke.allocated_blocks))
    assert 1 < there < 32 and smoke.sums() == pytest.approx(1, abs=1e-7)
    assert smoke.extrema()[0] == 0 and smoke.extrema()[1] == pytest.approx(dense.max())
    assert smoke.norms2() == pytest.approx(np.sqrt((dense**2).sum()))
    assert smoke.traffic["exchanges"] == 60 and f"{len(smoke.allocated_blocks)} of" in repr(smoke)
    held = len(smoke.allocated_blocks) * 2 * 100 * 8
    assert held <= smoke.memory_bytes <= held * 9 / 8, "rounded up to sizes that others can use again"


def test_what_is_lost_with_blocks(comm):
    _, smoke = puff(comm)
    with pytest.raises(dnds.StateError, match="count_dropped"):
        smoke.dropped_sums()
    smoke.count_dropped()
    before = smoke.sums()
    for _ in range(100):
        smoke.exchange_ghosts()
        drift(smoke)
    lost = before - smoke.sums()
    dropped = smoke.dropped_sums()
    assert comm.allreduce(smoke.traffic["frees"]) > 0 and 0 < dropped < lost * (1 + 1e-6)
    smoke.count_dropped()
    assert smoke.dropped_sums() == 0


def test_species_travel_together(comm):
    grid, smoke = puff(comm)
    count = grid.sparse_field("count", 2, "int32", ghosts=1, default=7)
    other = grid.sparse_field("wide", ghosts=2)
    assert count.default == 7 and count.dtype == np.int32 and count.components == 2
    both = dnds.SparseFields([smoke, count], "species")
    for b in smoke.allocated_blocks:
        count.allocate(b)
        count.view(b)[0, :, 1] = 5
    both.exchange_ghosts()
    assert len(both) == 2 and both.traffic["exchanges"] == 1
    above = comm.allreduce(sum(count.box(b)[0] == (0, 8) for b in count.allocated_blocks))
    assert above == 1, "its ghosts differ from the default"
    cells = 64 * 32
    assert count.sums() == [7 * cells, 7 * cells - 2 * 8]
    with pytest.raises(dnds.ArgumentError, match="different patterns"):
        dnds.SparseFields([smoke, other])
    with pytest.raises(dnds.ArgumentError, match="thresholds"):
        grid.sparse_field(allocation_threshold=1.0, deallocation_threshold=2.0)
    with pytest.raises(dnds.ArgumentError, match="default value"):
        grid.sparse_field(dtype="int8", default="much" if comm.rank == comm.size - 1 else 1)
    with pytest.raises(TypeError, match="SparseField objects"):
        dnds.SparseFields([1])


def deposited(grid, field, value):
    """Gives one block `value(cell)` in its cells and ghosts; the cells of the grid that must get it."""
    expected = np.zeros(grid.shape)
    extent = np.indices((10, 10)).reshape(2, -1) + 7  # of cells 8 to 15, and a ghost on each side
    np.add.at(expected, tuple(extent % np.array([[64], [32]])), value(extent))
    for b in range(len(field)):
        if field.box(b) == ((8, 8), (16, 16)):
            field.allocate(b)
            field.view(b, ghosts=True)[...] = value(extent).reshape(10, 10)
    return expected


def test_deposits_reach_their_cells(comm):
    grid = dnds.BlockGrid.blocks_of((64, 32), (8, 8), periodic=(True, True), comm=comm)
    mass, heat = (grid.sparse_field(name, allocation_threshold=1e-9) for name in ("mass", "heat"))
    weights = deposited(grid, mass, lambda cell: 1.0 + cell[0] + 0.25 * cell[1])
    mass.push_ghosts()
    np.testing.assert_array_equal(all_cells(grid, mass), weights)
    assert comm.allreduce(len(mass.allocated_blocks)) == 9 and mass.sums() == weights.sum()
    mass.exchange_ghosts()
    mass.clear_ghosts()
    mass.push_ghosts()  # nothing was deposited
    np.testing.assert_array_equal(all_cells(grid, mass), weights)

    both = dnds.SparseFields([mass, heat])
    mass.exchange_ghosts()
    mass.clear_ghosts()
    hot = deposited(grid, heat, lambda cell: 2.0 * cell[1])
    both.push_ghosts("sum")
    np.testing.assert_array_equal(all_cells(grid, mass), weights)
    np.testing.assert_array_equal(all_cells(grid, heat), hot)
    with pytest.raises(dnds.ArgumentError, match="replace, sum, min or max"):
        mass.push_ghosts("add")


def test_views_outlive_their_blocks(comm):
    grid, smoke = puff(comm)
    if not len(smoke):
        return
    smoke.allocate(0)
    view = smoke.view(0, 1, ghosts=True)
    assert view.shape == (10, 10)
    view[...] = 3
    assert smoke.free(0) and not smoke.is_allocated(0)
    with pytest.raises(dnds.StateError, match="not allocated"):
        smoke.view(0)
    smoke.allocate(0)
    assert not smoke.view(0, 1, ghosts=True).any(), "the memory of the view is not used again"
    del smoke, grid
    gc.collect()
    assert (view == 3).all()


def test_blocks_follow_their_cost(comm):
    grid = dnds.BlockGrid.blocks_of((16, 16), (4, 4), periodic=(True, True), comm=comm)
    dust = grid.sparse_field("dust", ghosts=1, stages=2)
    dust.count_dropped()
    for b in range(len(dust)):
        if dust.number(b) % 3 == 0:
            dust.allocate(b)
            dust.view(b)[...] = dust.number(b) + 1
    dust.exchange_ghosts()
    before = dust.sums()
    there = set().union(*comm.allgather([dust.number(b) for b in dust.allocated_blocks]))
    moved = dust.moved(grid.rebalanced([5.0 if dust.is_allocated(b) and b == 0 else 1.0 for b in range(len(dust))]))
    assert moved.sums() == before
    assert set().union(*comm.allgather([moved.number(b) for b in moved.allocated_blocks])) == there
    moved.exchange_ghosts()
    assert moved.dropped_sums() == 0
    with pytest.raises(dnds.StateError, match="not counted"):
        dust.dropped_sums()


def test_to_dense_and_back(comm):
    grid, smoke = puff(comm)
    dense = dnds.BlockField(grid, ghosts=0)
    smoke.to_dense(dense)
    assert comm.allreduce(sum(dense.view(b).sum() for b in range(len(dense)))) == 1
    again = grid.sparse_field("again", allocation_threshold=0.5)
    again.from_dense(dense)
    assert comm.allreduce(len(again.allocated_blocks)) == 1 and again.sums() == 1
    with pytest.raises(dnds.ArgumentError, match="elements of"):
        smoke.to_dense(dnds.BlockField(grid, dtype="float32"))


def test_vtk_files_of_a_grid(comm, shared_path):
    grid, smoke = puff(comm)
    count = grid.sparse_field("count", dtype="int32", default=7)
    path = shared_path / "smoke.vtkhdf"
    try:
        dnds.SparseFields([smoke, count]).write_vtk(path, spacing=(0.5, 0.5, 1))
    except dnds.NotBuiltError:
        pytest.skip("built without HDF5")
    dense = all_cells(grid, smoke)
    with h5py.File(path) as file:
        cells = file["VTKHDF/CellData"]
        np.testing.assert_array_equal(np.squeeze(cells["smoke"]), dense)
        there = np.zeros(grid.shape)
        there[8:16, 8:16] = 1
        np.testing.assert_array_equal(np.squeeze(cells["smoke.allocated"]), there)
        assert (cells["count"][:] == 7).all() and (cells["count.allocated"][:] == 0).all()
    comm.barrier()
    smoke.write_vtk(path, centres=True)
    with h5py.File(path) as file:
        np.testing.assert_array_equal(np.squeeze(file["VTKHDF/PointData/smoke"]), dense)


def test_restarts(comm, shared_path):
    if not hasattr(dnds, "Checkpoint"):
        pytest.skip("this build has no checkpoints")
    grid, smoke = puff(comm)
    for _ in range(20):
        smoke.exchange_ghosts()
        drift(smoke)
    path = shared_path / "smoke.h5"
    dnds.write_checkpoint(path, {"smoke": smoke}, values={"step": 20}, comm=comm)
    _, later = puff(comm)
    file = dnds.Checkpoint(path, comm)
    file.read("smoke", later)
    assert file.values["step"] == 20 and later.allocated_blocks == smoke.allocated_blocks
    np.testing.assert_array_equal(all_cells(grid, later), all_cells(grid, smoke))
    coarse = dnds.BlockGrid.blocks_of((64, 32), (16, 16), comm=comm).sparse_field()
    with pytest.raises(dnds.ArgumentError):
        file.read("smoke", coarse)


def write_clusters(mesh, u, whole, path):
    """A sparse field in a file: where clusters are there it is the dense one, and 0 elsewhere."""
    try:
        with dnds.VtkFile(mesh, path) as file:
            file.write(cells={"r": u, "whole": whole})
    except dnds.NotBuiltError:
        return
    with h5py.File(path) as file:
        cells = file["VTKHDF/CellData"]
        there = cells["r.allocated"][:] == 1
        assert 0 < there.sum() < len(there)
        np.testing.assert_allclose(cells["r"][:], cells["whole"][:], atol=1e-5)
        assert (cells["r"][:][~there] == 0).all() and cells["r"][:].max() > 0


def test_dense_and_sparse_fields_in_one_checkpoint(comm, shared_path):
    grid, smoke = puff(comm)
    gas = dnds.BlockField(grid, ghosts=1)
    for b in range(len(gas)):
        gas.view(b)[...] = gas.number(b)
    path = shared_path / "both.h5"
    try:
        dnds.write_checkpoint(path, {"gas": gas, "smoke": smoke})
    except dnds.NotBuiltError:
        pytest.skip("built without HDF5")
    file = dnds.Checkpoint(path, comm=comm)
    again, gas_again = grid.sparse_field("again", stages=2), dnds.BlockField(grid, ghosts=1)
    file.read("smoke", again)
    file.read("gas", gas_again)
    np.testing.assert_array_equal(all_cells(grid, again), all_cells(grid, smoke))
    assert all((gas_again.view(b) == gas.number(b)).all() for b in range(len(gas)))
    other = dnds.BlockGrid.blocks_of((64, 32), (16, 8), periodic=(True, True), comm=comm)
    with pytest.raises(dnds.ArgumentError, match="mesh"):
        file.read("gas", dnds.BlockField(other))
    file.read("gas", dnds.BlockField(other), any_mesh=True)  # its ids are of cells
    with pytest.raises(dnds.ArgumentError, match="another mesh"):
        dnds.write_checkpoint(path, {"gas": dnds.BlockField(other), "smoke": smoke})


def test_clusters_of_a_mesh(comm, shared_path):
    mesh = dnds.Mesh.box("tetrahedra", (6, 6, 6), cells_per_cluster=50, comm=comm)
    u = mesh.sparse_field("radical", stages=2, allocation_threshold=1e-6, deallocation_threshold=1e-7)
    whole = mesh.field(None)
    start = mesh.cells.own_file_numbers == 700
    whole.owned[start] = 1
    for b in range(len(u)):
        cells = mesh.cluster_cells(b)[: u.box(b)[1][0]]
        if (whole.data[cells] != 0).any():
            u.allocate(b)
            u.view(b)[:] = whole.data[cells]
    for _ in range(5):
        u.exchange_ghosts()
        whole.pull()
        old = whole.data.copy()
        for b in range(len(u)):
            starts, places = mesh.cluster_neighbours(b)
            cells = mesh.cluster_cells(b)
            own = len(starts) - 1
            cell = np.repeat(np.arange(own), np.diff(starts))[places >= 0]
            other = places[places >= 0]
            np.add.at(whole.data, cells[cell], 0.1 * (old[cells[other]] - old[cells[cell]]))
            if u.is_allocated(b):
                now, then = u.view(b, ghosts=True), u.view(b, 1)
                then[:] = now[:own]
                np.add.at(then, cell, 0.1 * (now[other] - now[cell]))
        u.swap_stages()
    for b in range(len(u)):
        cells = mesh.cluster_cells(b)[: u.box(b)[1][0]]
        values = u.view(b) if u.is_allocated(b) else 0
        np.testing.assert_allclose(values, whole.data[cells], atol=1e-5)
    assert 1 <= comm.allreduce(len(u.allocated_blocks)) < comm.allreduce(len(u))
    write_clusters(mesh, u, whole, shared_path / "radical.vtkhdf")
    if hasattr(dnds, "Checkpoint"):
        path = shared_path / "radical.h5"
        dnds.write_checkpoint(path, {"u": u, "whole": whole}, {"whole": mesh.cells.own_file_numbers}, comm=comm)
        v = mesh.sparse_field()
        dnds.Checkpoint(path, comm).read("u", v)
        assert v.allocated_blocks == u.allocated_blocks and v.sums() == u.sums()
    with pytest.raises(dnds.StateError, match="cells_per_cluster"):
        dnds.Mesh.box("tetrahedra", (2, 2, 2), comm=comm).sparse_field()
    with pytest.raises(dnds.ArgumentError, match="leave out part"):
        dnds.Mesh.box("tetrahedra", (2, 2, 2), cells_per_cluster=10, part=[0], comm=comm)


def write_around(mesh, u):
    """A number for each cell of the clusters whose number is even; the others are absent."""
    for b, cluster in enumerate(mesh.clusters):
        if cluster % 2 == 0:
            u.allocate(b)
            u.view(b)[:] = mesh.cells.file_numbers[mesh.cluster_cells(b)[: u.box(b)[1][0]]] + 1


def require_numbers(mesh, u):
    for b, cluster in enumerate(mesh.clusters):
        assert u.number(b) == cluster and (u.is_allocated(b) or cluster % 2 == 1)
        if u.is_allocated(b):  # others are where exchanges have reached them
            cells = mesh.cluster_cells(b)[: u.box(b)[1][0]]
            np.testing.assert_array_equal(u.view(b), (mesh.cells.file_numbers[cells] + 1) * (cluster % 2 == 0))


def source_of(comm):
    return dnds.SourceMesh.box("tetrahedra", (6, 6, 6), shuffled=True, comm=comm)


def smallest_share(costs, ranks):
    """The largest share of the best cut into runs, by trying all."""
    before = np.concatenate([[0], np.cumsum(costs)])
    best = before
    for _ in range(ranks - 1):
        best = np.array([min(max(best[k], before[n] - before[k]) for k in range(n + 1)) for n in range(len(before))])
    return best[-1]


def test_clusters_belong_to_any_rank(comm):
    source = source_of(comm)
    cut = dnds.SourceClusters.cut(source, 50)
    clusters = cut.cluster_of
    assert clusters.max() < cut.count and not clusters.flags.writeable
    count = comm.allreduce(np.bincount(clusters, minlength=cut.count))
    assert (count > 0).all() and count.sum() == 6**4

    def shares(parts, costs):
        return comm.allreduce(np.bincount(parts, costs, comm.size))

    even = shares(cut.parts(), np.ones(len(clusters)))
    assert even.max() <= -(-cut.count // comm.size) * count.max()
    costs = np.where(clusters == 0, 100.0, 1.0)
    of_clusters = comm.allreduce(np.bincount(clusters, costs, cut.count))
    assert shares(cut.parts(costs), costs).max() <= 1.01 * smallest_share(of_clusters, comm.size)
    parts = (clusters * 7 + 3) % comm.size  # clusters of a rank are no run
    mesh = dnds.Mesh.build(source, clusters=cut, part=parts)
    assert sorted(c for mine in comm.allgather(list(mesh.clusters)) for c in mine) == list(range(cut.count))
    assert all(c % comm.size == (comm.rank - 3) * pow(7, -1, comm.size) % comm.size for c in mesh.clusters)
    u = mesh.sparse_field("u", dtype="int64")
    write_around(mesh, u)
    u.exchange_ghosts()
    require_numbers(mesh, u)
    with pytest.raises(dnds.ArgumentError, match="costs"):
        cut.parts([1.0] if comm.rank == 0 else costs)
    if comm.size > 1:
        parts = np.arange(len(clusters)) % comm.size
        with pytest.raises(dnds.ArgumentError, match="cluster"):
            dnds.Mesh.build(source_of(comm), clusters=cut, part=parts)
    with pytest.raises(dnds.ArgumentError, match="leave out part"):
        dnds.Mesh.build(source_of(comm), cells_per_cluster=50, clusters=cut)


def test_clusters_of_the_program(comm):
    source = source_of(comm)
    cells = len(source.cell_types)
    first = comm.exscan(cells) or 0
    mine = (first + np.arange(cells)) // 100
    cut = dnds.SourceClusters(source, mine)
    assert cut.count == -(-(6**4) // 100)
    np.testing.assert_array_equal(cut.cluster_of, mine)
    mesh = dnds.Mesh.build(source, clusters=cut, weights=np.ones(cells))
    u = mesh.sparse_field("u", dtype="int64")
    write_around(mesh, u)
    assert u.sums() == sum(n + 1 for n in range(6**4) if n // 100 % 2 == 0)
    with pytest.raises(dnds.ArgumentError):
        dnds.SourceClusters(source_of(comm), mine[:-1] if comm.rank == 0 else mine)
    with pytest.raises(dnds.ArgumentError):
        dnds.SourceClusters(source_of(comm), mine - 1)


def test_clusters_move_with_their_mesh(comm):
    mesh = dnds.Mesh.box("tetrahedra", (6, 6, 6), shuffled=True, cells_per_cluster=50, comm=comm)
    u = mesh.sparse_field("u", dtype="int64", stages=2)
    gas = mesh.field(None, name="gas")
    gas.owned[:] = mesh.cells.own_file_numbers
    write_around(mesh, u)
    u.count_dropped()
    costs = np.where(mesh.clusters < 5, 20.0, 1.0)
    targets = mesh.repartition_targets(costs)
    assert len(targets) == mesh.cells.owned
    before = comm.allreduce(len(mesh.clusters))
    for moved, (moved_gas,) in (mesh.repartition(targets, fields=[gas]),
                                mesh.repartition(weights=np.where(gas.owned < 300, 3.5, 1.0), fields=[gas]),
                                mesh.repartition((targets + 1) % comm.size, fields=[gas]),
                                mesh.repartition(fields=[gas])):
        assert comm.allreduce(len(moved.clusters)) == before
        np.testing.assert_array_equal(moved_gas.data, moved.cells.file_numbers)
        v = u.moved(moved)
        require_numbers(moved, v)
        v.exchange_ghosts()
        require_numbers(moved, v)
        assert v.sums() == u.sums()
        u, mesh = v, moved
    assert u.dropped_sums() == 0
    with pytest.raises(dnds.ArgumentError, match="costs"):
        mesh.repartition_targets([1.0] * 999)
    with pytest.raises(dnds.ArgumentError, match="weights"):
        mesh.repartition(weights=[1.0] * 9999)
    if comm.size > 1:
        with pytest.raises(dnds.ArgumentError, match="cluster"):
            mesh.repartition(np.arange(mesh.cells.owned) % comm.size)
        require_numbers(mesh, u)
    with pytest.raises(dnds.StateError, match="cells_per_cluster"):
        u.moved(dnds.Mesh.box("tetrahedra", (2, 2, 2), comm=comm))
