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
    with pytest.raises(dnds.ArgumentError, match="Field and Array"):
        dnds.write_checkpoint(path, {"u": "text" if comm.rank == 0 else u}, ids, comm=comm)
    with pytest.raises(dnds.DataError, match=r"bad\.h5"):
        dnds.Checkpoint(path, comm)
    dnds.write_checkpoint(path, {"u": u}, ids, comm=comm)
    file = dnds.Checkpoint(path, comm)
    with pytest.raises(dnds.ArgumentError, match="2 owned rows, but 1 ids"):
        file.read("u", u, [0])
    with pytest.raises(dnds.LayoutError):
        file.read("u", dnds.Field(2, 5, comm=comm), ids)
