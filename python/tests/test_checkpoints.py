import warnings

import dnds
import numpy as np
import pytest


def box(comm, **options):
    return dnds.Mesh.box("mixed-volume", (6, 3, 3), shuffled=True, partitioner="curve", comm=comm, **options)


def test_fields_come_back_on_another_partition(comm, shared_path):
    mesh = box(comm)
    ids = mesh.cells.file_numbers[: mesh.cells.owned]
    u, names = mesh.field(3, name="u"), mesh.field(None, "int32", name="names")
    u.owned[:] = ids[:, None] + [0.25, 0.5, 0.75]
    names.owned[:] = ids
    path = shared_path / "run.h5"
    values = {"time": 2.5, "step": 7, "case": "box", "residuals": [1.0, 0.5], "sizes": [1, 2, 3]}
    values |= {"halves": [np.float32(0.5), np.float32(1.5)], "counts": [np.int64(3), np.int64(1)]}
    size = dnds.write_checkpoint(path, {"u": u, "names": names}, ids, values, comm=comm)
    assert size == path.stat().st_size

    file = dnds.Checkpoint(path, comm)
    assert file.values == values and set(file.arrays) == {"u", "names"} and "float64[8] x 3" in file.arrays["u"]
    file.verify()
    other = dnds.Mesh.build(dnds.SourceMesh.box("mixed-volume", (6, 3, 3), shuffled=True, comm=comm),
                            cell_order="reverse-cuthill-mckee")
    mine = other.cells.file_numbers[: other.cells.owned]
    again = other.field(3)
    file.read("u", again, mine)
    again.pull()
    np.testing.assert_array_equal(again.data[:, 1], other.cells.file_numbers + 0.5)
    numbers = dnds.Array(0, 1, dtype="int32")
    block = file.own_block("names")
    file.read("names", numbers, block)
    np.testing.assert_array_equal(numbers.numpy()[:, 0], block)


def test_rows_of_all_sizes_are_kept(comm, shared_path):
    ids = np.arange(4) + 4 * comm.rank
    rows = dnds.Array(4, layout="csr", sizes=ids % 3, dtype="float32")
    rows.numpy()[:] = np.repeat(ids, ids % 3)
    path = shared_path / "rows.h5"
    dnds.write_checkpoint(path, {"rows": rows}, {"rows": ids}, comm=comm)
    turned = ids[::-1].copy()
    again = dnds.Array(layout="csr", dtype="float32")
    dnds.Checkpoint(path, comm).read("rows", again, turned)
    np.testing.assert_array_equal(again.sizes, turned % 3)
    np.testing.assert_array_equal(again.numpy(), np.repeat(turned, turned % 3))


def test_errors_raise_on_all_ranks(comm, shared_path):
    path = shared_path / "bad.h5"
    u = dnds.Field(2, name="u", comm=comm)
    ids = [2 * comm.rank, 2 * comm.rank + 1]
    with pytest.raises(dnds.ArgumentError):
        dnds.write_checkpoint(path, {"u": u}, [0, 0], comm=comm)
    with pytest.raises(dnds.ArgumentError, match="Field, Array, BlockField, NdArray and SparseField"):
        dnds.write_checkpoint(path, {"u": "text" if comm.rank == 0 else u}, ids, comm=comm)
    with pytest.raises(dnds.DataError, match=r"bad\.h5"):
        dnds.Checkpoint(path, comm)
    dnds.write_checkpoint(path, {"u": u}, ids, comm=comm)
    file = dnds.Checkpoint(path, comm)
    with pytest.raises(dnds.ArgumentError, match="2 owned rows, but 1 ids"):
        file.read("u", u, [0])
    with pytest.raises(dnds.LayoutError):
        file.read("u", dnds.Field(2, 5, comm=comm), ids)


def test_rows_of_another_mesh_are_refused_unless_asked_for(comm, shared_path):
    mesh, other = box(comm), box(comm, jitter=0.125)
    path, old = shared_path / "mesh.h5", shared_path / "old.h5"
    ids = mesh.cells.file_numbers[: mesh.cells.owned]
    theirs = other.cells.file_numbers[: other.cells.owned]
    u, v = mesh.field(name="u"), other.field(name="v")
    u.owned[:] = ids
    dnds.write_checkpoint(path, {"u": u}, ids, comm=comm)
    file = dnds.Checkpoint(path, comm)
    with pytest.raises(dnds.ArgumentError, match="is for another mesh"):
        file.read("u", v, theirs)
    np.testing.assert_array_equal(v.owned, 0)
    file.read("u", v, theirs, any_mesh=True)
    np.testing.assert_array_equal(v.owned, theirs)
    plain = dnds.Array(0, 1)  # of no mesh
    file.read("u", plain, file.own_block("u"))
    with pytest.raises(dnds.ArgumentError, match="'v' is a field of another mesh"):
        dnds.write_checkpoint(path, {"u": u, "v": v}, {"u": ids, "v": theirs}, comm=comm)

    rows = dnds.Array(len(ids), 1)
    rows.numpy()[:, 0] = ids
    dnds.write_checkpoint(old, {"u": rows}, ids, comm=comm)  # does not tell its mesh
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dnds.Checkpoint(old, comm).read("u", v, theirs)
    np.testing.assert_array_equal(v.owned, theirs)
    assert [str(w.message).endswith("was not checked") for w in caught] == [True] * (comm.rank == 0)


def test_fields_of_a_mesh_know_their_ids(comm, shared_path):
    path = shared_path / "own-ids.h5"
    mesh = dnds.Mesh.box("triangles", (6, 6), comm=comm)
    u = mesh.field(name="u")
    u.owned[:] = mesh.cells.own_file_numbers
    dnds.write_checkpoint(path, {"u": u}, comm=comm)
    v = dnds.Mesh.box("triangles", (6, 6), partitioner="curve", comm=comm).field(name="v")
    dnds.Checkpoint(path, comm).read("u", v)
    assert comm.allreduce(v.owned.sum()) == comm.allreduce(u.owned.sum())
    with pytest.raises(dnds.ArgumentError, match="'w' is no field on the cells or nodes of a mesh"):
        dnds.write_checkpoint(path, {"w": dnds.Field(2, comm=comm, name="w")}, comm=comm)
