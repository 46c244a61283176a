"""Points in meshes: which cell has them, values of fields there, distances from walls."""

import dnds
import numpy as np
import pytest

FILLS = ["triangles", "mixed-surface", "tetrahedra", "mixed-volume", "polyhedra"]


def box(fill, comm, **options):
    return dnds.Mesh.box(fill, (6, 4, 4), comm=comm, **{"partitioner": "curve", "jitter": 0.1} | options)


def linear(points):
    return 1 + points @ [2.0, -3.0, 0.5]


def some_points(mesh, comm, count=60):
    """Other ones on each rank; a few are outside."""
    random = np.random.default_rng(comm.rank)
    points = random.uniform(0.01, 1.05, (count, 3))
    if mesh.dimension == 2:
        points[:, 2] = 0
    return points


@pytest.mark.parametrize("fill", FILLS)
def test_cells_of_points_are_found(comm, fill):
    mesh = box(fill, comm)
    cells = mesh.cells
    ranks, local, numbers = mesh.locate(mesh.metrics().centroids[: cells.owned])
    assert (ranks == comm.rank).all() and (local == np.arange(cells.owned)).all()
    np.testing.assert_array_equal(numbers, cells.own_file_numbers)
    ranks, local, numbers = mesh.locate([[1.5, 0.5, 0.5], [np.nan, 0, 0]])
    assert (ranks == -1).all() and (local == -1).all() and (numbers == -1).all()
    assert len(mesh.locate([])[0]) == 0
    assert (mesh.locate([[1.01, 0.5, 0.5]], tolerance=0.2)[0] >= 0).all()
    if mesh.dimension == 2:
        assert (mesh.locate([[0.3, 0.4]])[0] >= 0).all()


@pytest.mark.parametrize("fill", FILLS)
def test_fields_are_probed(comm, fill):
    mesh = box(fill, comm)
    centroids = mesh.metrics().centroids
    number, u, gradients = mesh.field(dtype="int32"), mesh.field(2), mesh.field(6)
    number.owned[:] = mesh.cells.own_file_numbers
    u.owned[:] = np.stack([np.zeros(mesh.cells.owned), linear(centroids[: mesh.cells.owned])], axis=1)
    gradients.owned[:] = [0, 0, 0, 2, -3, 0.5]
    nodal = mesh.field(at="nodes")
    nodal.owned[:] = linear(mesh.coordinates[: mesh.nodes.owned])
    nodal.pull()
    points = some_points(mesh, comm)
    probe = mesh.probe(points)
    found = probe.found
    assert 0 < found.sum() < len(points)
    values = probe(number)
    assert values.shape == (len(points),) and np.isnan(values[~found]).all()
    np.testing.assert_array_equal(values[found], probe.locations[2][found])
    np.testing.assert_allclose(probe(u, gradients=gradients)[found, 1], linear(points[found]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(probe(nodal)[found], linear(points[found]), rtol=0, atol=1e-11)
    number.owned[:] *= 2  # read again
    np.testing.assert_array_equal(probe(number)[found], 2 * values[found])


def test_lines_gather_on_the_rank_that_asks(comm):
    mesh = box("hexahedra", comm, jitter=0)
    x = mesh.field()
    x.owned[:] = mesh.metrics().centroids[: mesh.cells.owned, 0]
    points = dnds.line((0, 0.5, 0.5), (1, 0.5, 0.5), 11)
    np.testing.assert_allclose(points[:, 0], np.linspace(0, 1, 11), rtol=0, atol=1e-15)
    values = mesh.probe(points if comm.rank == 0 else [])(x)
    assert len(values) == (11 if comm.rank == 0 else 0)
    assert (np.diff(values) >= 0).all() and (np.abs(values - points[: len(values), 0]) < 0.2).all()


def test_wall_distances_are_those_of_brute_force(comm):
    mesh = box("quadrilaterals", comm)
    ends = mesh.coordinates[mesh.face_nodes.data.reshape(-1, 2)]
    walls = np.concatenate(comm.allgather(ends[mesh.patch("x-", owned=True)]))
    points = some_points(mesh, comm)
    along = walls[:, 1] - walls[:, 0]
    at = np.einsum("pwd,wd->pw", points[:, None] - walls[:, 0], along) / (along**2).sum(axis=1)
    nearest = walls[:, 0] + at.clip(0, 1)[..., None] * along
    expected = np.linalg.norm(points[:, None] - nearest, axis=2).min(axis=1)
    distance, ranks, faces = mesh.wall_distance(["x-"], points, nearest=True)
    np.testing.assert_allclose(distance, expected, rtol=0, atol=1e-15)
    mine = faces[ranks == comm.rank]
    assert np.isin(mine, mesh.patch("x-", owned=True)).all() and (ranks >= 0).all()
    of_cells = mesh.wall_distance(["x-", "x+"])
    centroids = mesh.metrics().centroids[: mesh.cells.owned, 0]
    np.testing.assert_allclose(of_cells, np.minimum(centroids, 1 - centroids), rtol=0, atol=1e-14)


def test_errors_are_raised_on_all_ranks(comm):
    mesh = box("hexahedra", comm)
    with pytest.raises(dnds.ArgumentError, match="there is no patch 'wall'"):
        mesh.wall_distance(["wall"])
    with pytest.raises(dnds.Error, match="points are an array"):
        mesh.locate([1.0, 2.0, 3.0] if comm.rank == comm.size - 1 else [])
    probe = mesh.probe([[0.5, 0.5, 0.5]])
    with pytest.raises(dnds.ArgumentError, match="no field on the cells or nodes"):
        probe(mesh.field(at="faces"))
    with pytest.raises(dnds.ArgumentError, match="gradients of 'field' need 3 numbers"):
        probe(mesh.field(), gradients=mesh.field(2))
    assert probe(mesh.field()) == 0
