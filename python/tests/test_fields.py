import gc

import dnds
import numpy as np
import pytest
from memory import assert_alive, is_freed, needs_sanitizer, span
from mpi4py import MPI


def ring(comm, rows=6, **options):
    """A field of which each rank copies two rows before and two after its own."""
    u = dnds.Field(rows, comm=comm, **options)
    total, begin = rows * comm.size, rows * comm.rank
    reads = (np.array([begin - 2, begin - 1, begin + rows, begin + rows + 1]) % total).tolist()
    u.set_ghosts(reads)
    return u


def fill(u):
    """Gives owned rows values that tell where they come from."""
    owned = u.owned_array.numpy()
    numbers = u.global_rows[: u.owned_count]
    if u.layout == "csr":
        owned[:] = np.repeat(numbers, u.owned_array.sizes) % 100
    else:
        owned[:] = numbers.reshape(-1, 1) % 100


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "int8", "uint16"])
@pytest.mark.parametrize("width", [None, 1, 5])
def test_pull_brings_the_owners_rows(comm, dtype, width):
    u = ring(comm, width=width, dtype=dtype)
    numbers = u.global_rows
    assert len(u) == len(numbers) == u.owned_count + u.ghost_count and u.owned_count == 6
    u.owned[:] = (numbers[:6] % 100) if width is None else (numbers[:6] % 100)[:, None]
    for _ in range(3):
        u.pull()
        data = u.data
        assert data.shape == ((len(u),) if width is None else (len(u), width)) and data.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(data.reshape(len(u), -1)[:, -1], numbers % 100)
        np.testing.assert_array_equal(u.ghosts, data[6:])
        assert np.shares_memory(data, u.owned) and np.shares_memory(data, u.ghosts)


@pytest.mark.parametrize("layout", ["padded", "csr"])
def test_rows_of_all_sizes_are_pulled(comm, layout):
    sizes = (np.arange(6) + comm.rank) % 4
    u = ring(comm, layout=layout, sizes=sizes, width=5 if layout == "padded" else None)
    fill(u)
    u.pull()
    owners, places = np.divmod(u.global_rows[6:], 6)
    np.testing.assert_array_equal(u.ghost_array.sizes, (places + owners) % 4)
    for ghost, number in zip(u.ghost_array, u.global_rows[6:], strict=True):
        assert (ghost == number % 100).all()
    with pytest.raises(dnds.LayoutError, match="owned_array"):
        _ = u.data


def test_fields_show_what_they_are(comm):
    u = dnds.Field(3, 2, "int8", name="flags", comm=comm)
    where = f"rank {u.comm.rank} of {u.comm.size}"
    assert repr(u) == f"<dnds.Field 'flags' on {where}: 3 owned rows, 0 ghosts, int8 x 2 fixed>"
    assert "float64 csr>" in repr(dnds.Field(1, layout="csr", sizes=[2], comm=comm))


def test_fields_show_whether_their_ghosts_are_current(comm):
    u = ring(comm)
    if u.ghost_count == 0:
        pytest.skip("no ghosts on one rank")
    assert f"{u.ghost_count} ghosts (never pulled)" in repr(u)
    u.pull()
    assert "ghosts (current)" in repr(u)
    u.owned[0] = 3
    assert "ghosts (older than the owned rows)" in repr(u)


def test_ranks_may_be_empty(comm):
    rows = 3 if comm.rank == 0 else 0
    u = dnds.Field(rows, 2, comm=comm)
    u.set_ghosts([0, 2] if comm.rank == comm.size - 1 else [])
    u.owned[:] = 8
    u.pull()
    assert (u.data == 8).all() and len(u) == rows + (2 if comm.rank == comm.size - 1 else 0)


def test_views_may_be_assigned_to(comm):
    """The last step of u.owned += 1 is u.owned = the same view."""
    u = ring(comm, width=2)
    fill(u)
    before = u.owned.copy()
    u.owned += 1
    u.owned *= 2
    np.testing.assert_array_equal(u.owned, 2 * (before + 1))
    u.owned = before
    before[:] = -1
    assert (u.owned >= 0).all(), "values are copied"
    u.data = 3
    u.ghosts -= 1
    assert (u.owned == 3).all() and (u.ghosts == 2).all()
    with pytest.raises(ValueError, match="broadcast"):
        u.owned = np.zeros((len(u) + 1, 5))
    with u.start_pull(), pytest.raises(ValueError, match="read-only"):
        u.owned += 1
    assert (u.owned == 3).all()
    rows = dnds.Array(3, 2, dtype="int32")
    rows[1] += 4
    rows[2] = [5, 6]
    np.testing.assert_array_equal(rows.numpy(), [[0, 0], [4, 4], [5, 6]])


def test_pull_as_context_manager_overlaps(comm):
    u = ring(comm, width=2)
    fill(u)
    with u.start_pull() as pending:
        assert not pending.done
        assert not u.owned.flags.writeable
        with pytest.raises(dnds.StateError, match="while it is pulled"):
            _ = u.ghosts
        with pytest.raises(dnds.StateError, match="while it is pulled"):
            _ = u.data
        inner = u.owned[u.inner_rows].sum()
    assert pending.done and inner >= 0
    np.testing.assert_array_equal(u.data[:, 0], u.global_rows % 100)
    pending.wait()  # nothing to do
    assert u.owned.flags.writeable


def test_an_exception_inside_the_block_leaves_no_rank_waiting(comm):
    u = ring(comm)
    u.owned[:] = comm.rank
    if comm.rank == 0:
        with pytest.raises(ZeroDivisionError), u.start_pull():
            raise ZeroDivisionError
    else:
        u.pull()
    u.pull()
    np.testing.assert_array_equal(u.ghosts, u.global_rows[6:] // 6)


def test_push_sums_and_compares(comm):
    for op, expected in (("sum", lambda copies: 1 + 10 * copies), ("max", lambda copies: np.where(copies > 0, 10, 1)),
                         ("min", lambda copies: np.ones(6)), ("replace", lambda copies: np.where(copies > 0, 10, 1))):
        u = ring(comm)
        counts = dnds.Field(6, dtype="int64", comm=comm)
        counts.share_ghosts(u)
        counts.ghosts[:] = 1
        counts.push()
        u.owned[:] = 1
        u.ghosts[:] = 10
        u.push(op)
        np.testing.assert_array_equal(u.owned, expected(counts.owned))
    with pytest.raises(dnds.ArgumentError, match="replace, sum, min or max"):
        u.push("multiply")


def test_ghosts_are_kept_or_zero_after_a_push(comm):
    def assembled(ghosts, push):
        u = ring(comm)
        for _ in range(2):
            if ghosts == "keep":
                u.ghosts[:] = 0
            u.owned[:] += 1
            u.ghosts[:] += 10
            push(u, ghosts)
        return u

    def alone(u, ghosts):
        u.push("sum", ghosts=ghosts)

    def in_group(u, ghosts):
        with dnds.FieldGroup([u]).start_push("sum", ghosts):
            pass

    expected = assembled("keep", alone)
    for push in (alone, in_group):
        u = assembled("zero", push)
        np.testing.assert_array_equal(u.owned, expected.owned)
        assert not u.ghosts.any()
    assert expected.ghosts.all() # so another push would add them again
    with pytest.raises(dnds.ArgumentError, match="PushOp::Sum"):
        u.push("max", ghosts="zero")
    with pytest.raises(dnds.ArgumentError, match="keep or zero"):
        u.push("sum", ghosts="none")


def test_groups_travel_together(comm):
    u = ring(comm, width=3)
    v = dnds.Field(6, None, "int32", comm=comm, name="v")
    v.share_ghosts(u)
    group = dnds.FieldGroup([u, v])
    fill(u)
    v.owned[:] = v.global_rows[:6]
    group.pull()
    np.testing.assert_array_equal(u.data[:, 2], u.global_rows % 100)
    np.testing.assert_array_equal(v.data, v.global_rows)
    with group.start_pull(), pytest.raises(dnds.StateError, match="while it is pulled"):
        _ = v.data
    other = ring(comm)
    with pytest.raises(dnds.ArgumentError, match="mappings differ"):
        dnds.FieldGroup([u, other])
    del u, v
    gc.collect()
    group.pull()


def test_a_group_notices_that_a_field_got_other_ghosts(comm):
    u = ring(comm, width=3)
    v = dnds.Field(6, None, "int32", comm=comm, name="v")
    v.share_ghosts(u)
    group = dnds.FieldGroup([u, v])
    group.pull()
    # as many of each owner, but other rows
    v.set_ghosts([row // 6 * 6 + (row + 1) % 6 for row in u.global_rows[u.owned_count :]])
    with pytest.raises((dnds.StateError, dnds.RevokedError), match="mapping of 'v' was replaced"):
        group.pull()
    comm.Barrier()
    dnds.recover(comm)
    v.owned[:] = v.global_rows[:6]
    v.pull()
    np.testing.assert_array_equal(v.data, v.global_rows)


def test_views_outlive_their_field(comm):
    u = ring(comm, width=4)
    fill(u)
    u.pull()
    data, ghosts, numbers, inner = u.data, u.ghosts, u.global_rows, u.inner_rows
    del u
    gc.collect()
    assert_alive(data, ghosts, numbers, inner)
    others = [ring(comm, width=4) for _ in range(5)]
    np.testing.assert_array_equal(data[:, 3], numbers % 100)
    np.testing.assert_array_equal(ghosts, data[6:])
    data[:] = -1
    assert (ghosts == -1).all() and not others[0].data.any() and len(inner) <= 6


@needs_sanitizer
def test_memory_is_freed_with_its_last_view(comm):
    u = ring(comm, width=4)
    u.pull()
    places = [span(view) for view in (u.owned, u.ghosts, u.data)]
    kept = u.ghosts  # lies in one block with the owned rows
    del u
    gc.collect()
    assert_alive(kept)
    del kept
    gc.collect()
    assert all(is_freed(*place) for place in places)


def test_an_exchange_outlives_its_field(comm):
    u = ring(comm, width=2)
    fill(u)
    numbers = u.global_rows
    array = u.ghost_array
    pending = u.start_pull()
    del u
    gc.collect()
    pending.wait()
    ghosts = array.numpy()
    del pending, array
    gc.collect()
    assert_alive(ghosts)
    np.testing.assert_array_equal(ghosts[:, 0], numbers[6:] % 100)


def test_views_outlive_their_communicator(comm):
    mine = comm.Dup()
    u = ring(mine)
    u.owned[:] = comm.rank
    u.pull()
    data, expected = u.data, u.global_rows // 6
    mine.Free()
    assert_alive(data)
    np.testing.assert_array_equal(data, expected)
    with pytest.raises(dnds.StateError):
        u.pull()


def test_new_ghosts_leave_old_views_alone(comm):
    u = ring(comm)
    fill(u)
    u.pull()
    old, numbers = u.data, u.global_rows
    u.set_ghosts([])
    assert u.ghost_count == 0
    assert_alive(old, u.data)
    np.testing.assert_array_equal(old, numbers % 100)
    np.testing.assert_array_equal(u.data, numbers[:6] % 100)


def test_swap_exchanges_contents(comm):
    u = ring(comm)
    v = dnds.Field(6, comm=comm)
    v.share_ghosts(u)
    u.owned[:], v.owned[:] = 1, 2
    u.pull()
    v.pull()
    u.swap(v)
    assert (u.data == 2).all() and (v.data == 1).all()
    u.owned[:] = 3
    u.pull()
    assert (u.data == 3).all() and (v.data == 1).all()


def test_vector_operations(comm):
    u = ring(comm, width=3)
    v = dnds.Field(6, 3, comm=comm)
    v.share_ghosts(u)
    rows = 6 * comm.size
    u.set_constant([1, 2, 3])
    v.set_constant(2.0)
    assert u.dot(v) == 12 * rows and u.sum() == 6 * rows and u.exact_sum() == 6 * rows
    assert np.isclose(u.norm2(), np.sqrt(14 * rows)) and (u.min(), u.max()) == (1, 3)
    assert np.isclose(u.distance2(v), np.sqrt(2 * rows))
    np.testing.assert_allclose(u.component_norm1(), np.array([1, 2, 3]) * rows)
    np.testing.assert_allclose(u.component_norm2(), np.array([1, 2, 3]) * np.sqrt(rows))
    np.testing.assert_array_equal(u.component_norm_inf(), [1, 2, 3])
    u += v
    u *= 2
    u -= [1, 1, 1]
    u /= np.array([5, 7, 9])
    assert np.allclose(u.data, 1)
    for two in (np.float32(2), np.int64(2), np.array(2.0)):
        u *= two
        u.set_constant(two)
        u /= two
    assert np.allclose(u.data, 1)
    assert u.axpy(3, v) is u and np.allclose(u.data, 7)
    v.copy_from(u)
    assert np.allclose(v.data, 7)
    with pytest.raises(dnds.LayoutError, match="float64"):
        dnds.Field(2, 1, "float32", comm=comm).sum()
    with pytest.raises(dnds.LayoutError, match="3 x 1"):
        u += [1, 2]
    with pytest.raises(dnds.ArgumentError, match="operand of 2 dimensions"):
        u += np.ones((2, 2))


def test_errors_on_one_rank_raise_on_all(comm):
    with pytest.raises(dnds.ArgumentError, match="negative"):
        dnds.Field(2, -3 if comm.rank == comm.size - 1 else 3, comm=comm)
    with pytest.raises(dnds.ArgumentError, match="sizes"):
        dnds.Field(2, layout="csr", sizes=[1] if comm.rank == 0 else [1, 1], comm=comm)
    u = dnds.Field(2, comm=comm)
    for call in (u.pull, u.start_pull, u.push, u.describe_pull):
        with pytest.raises(dnds.StateError, match="'field' has no ghosts yet: call set_ghosts"):
            call()
    with pytest.raises(TypeError, match="Field objects"):
        dnds.FieldGroup([1])
    with pytest.raises(dnds.IndexError, match="99999"):
        u.set_ghosts([99999] if comm.rank == comm.size - 1 else [])
    with pytest.raises(dnds.ArgumentError, match="integers"):
        u.set_ghosts([0.5] if comm.rank == 0 else [])


def test_communicators_of_mpi4py(comm):
    half = comm.Split(comm.rank % 2, comm.rank)
    u = ring(half)
    assert u.comm is half
    u.owned[:] = comm.rank
    u.pull()
    assert set(u.data.astype(int) % 2) == {comm.rank % 2}
    with pytest.raises(TypeError, match="communicator of mpi4py"):
        dnds.Field(1, comm=0)
    with pytest.raises(dnds.ArgumentError):
        dnds.Field(1, comm=MPI.COMM_NULL)
    half.Free()


def test_paths_are_described(comm):
    u = ring(comm)
    u.prepare_pull("packed")
    fill(u)
    u.pull()
    np.testing.assert_array_equal(u.data, u.global_rows % 100)
    for path in u.pull_paths():
        assert path["transport"] == ("local" if path["peer"] == comm.rank else "packed")
        assert path["bytes_received"] == 8 * path["rows_received"]
    assert "pull of 'field'" in u.describe_pull()
    u.prepare_pull()
    u.pull()
    np.testing.assert_array_equal(u.data, u.global_rows % 100)
    assert np.shares_memory(u.data, u.ghosts), "ghosts stay behind owned rows on every transport"


def test_local_numbers(comm):
    u = ring(comm)
    np.testing.assert_array_equal(u.to_local(u.global_rows[:6]), np.arange(6))
    assert u.to_local([]).dtype == np.int32
    with pytest.raises(dnds.IndexError):
        u.to_local([6 * comm.size + 5])
    both = np.concatenate([u.inner_rows, u.boundary_rows])
    np.testing.assert_array_equal(np.sort(both), np.arange(6))


def test_ghosts_are_made_for_what_is_read(comm):
    u = dnds.Field(4, comm=comm)
    rows = 4 * comm.rank + np.arange(4)
    reads = np.array([rows - 1, rows, rows + 1]) % (4 * comm.size)
    local = u.ghosts_for(reads)
    assert local.shape == reads.shape
    assert u.ghost_count == (0 if comm.size == 1 else 2)
    u.owned[:] = rows
    u.pull()
    np.testing.assert_array_equal(u.data[local], reads)
    with pytest.raises(IndexError):
        u.ghosts_for([4 * comm.size] if comm.rank == 0 else [])
