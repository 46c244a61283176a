"""What may be done with a field while its rows travel."""

import dnds
import numpy as np
import pytest


def ring(comm, **options):
    u = dnds.Field(4, comm=comm, **options)
    begin = 4 * comm.rank
    u.set_ghosts((np.array([begin - 1, begin + 4]) % (4 * comm.size)).tolist())
    return u


@pytest.mark.parametrize("first", ["start_pull", "start_push"])
@pytest.mark.parametrize("grouped", ["none", "first", "second"])
@pytest.mark.parametrize("second", ["pull", "push", "start_pull", "start_push"])
@pytest.mark.parametrize("made", [False, True])
def test_exchanges_of_one_field_exclude_each_other(comm, first, second, grouped, made):
    u = ring(comm)
    v = dnds.Field(4, comm=comm)
    v.share_ghosts(u)
    group = dnds.FieldGroup([v, u])
    one, other = group if grouped == "first" else u, group if grouped == "second" else u
    if made:
        for member in (one, other):
            member.pull()
            member.push("replace")
    u.owned[:] = comm.rank + 1
    u.ghosts[:] = comm.rank + 1
    same = one is other and first.split("_")[1] == second.split("_")[-1]
    expected = "already started" if same else "while it is"
    flight = getattr(one, first)()
    comm.Barrier()  # all have started it
    with pytest.raises(dnds.Error, match=expected):
        getattr(other, second)()
    comm.Barrier()
    if dnds.is_revoked(comm):  # found out by a start, which stops all ranks, and not by a set-up
        dnds.recover(comm)
    else:
        flight.wait()
    # Each goes well by itself, on all ranks.
    u.owned[:] = comm.rank + 1
    other.pull()
    np.testing.assert_array_equal(u.ghosts, u.global_rows[4:] // 4 + 1)
    u.push("replace")
    np.testing.assert_array_equal(u.owned, comm.rank + 1)


def test_fields_of_other_exchanges_are_free(comm):
    u, v = ring(comm), ring(comm)
    u.owned[:], v.owned[:] = 1, 2
    with u.start_pull(), v.start_pull():
        pass
    assert (u.ghosts == 1).all() and (v.ghosts == 2).all()


@pytest.mark.parametrize("layout", ["fixed", "padded", "csr"])
def test_arrays_of_a_field_in_flight(comm, layout):
    options = {} if layout == "fixed" else {"sizes": [1, 2, 3, 2], "width": 3 if layout == "padded" else None}
    u = ring(comm, layout=layout, **options)
    owned, ghosts = u.owned_array, u.ghost_array
    u.pull()
    readers = [lambda a: a.numpy(), lambda a: a.numpy(writable=False), lambda a: a[0], lambda a: a.sizes,
               lambda a: np.asarray(a), lambda a: a.content_hash(), lambda a: list(a)]
    writers = [lambda a: a.__dlpack__(), lambda a: a.to_host(), lambda a: a.to_device(), lambda a: a.device_view(),
               lambda a: dnds.launch(print, a), lambda a: a.compress()]
    with u.start_pull():
        for read in readers:
            read(owned)
            with pytest.raises(dnds.StateError, match="while it is pulled"):
                read(ghosts)
        assert not owned.numpy().flags.writeable and not owned[0].flags.writeable
        assert not np.asarray(owned).flags.writeable
        for write in writers:
            for array in (owned, ghosts):
                with pytest.raises(dnds.StateError, match="while it is pulled"):
                    write(array)
    with u.start_push("replace"):
        for use in readers + writers:
            for array in (owned, ghosts):
                with pytest.raises(dnds.StateError, match="while it is pushed"):
                    use(array)
    owned.numpy()[:] = ghosts.numpy()[:1] = 3
    assert owned.numpy().flags.writeable


def test_reductions_in_flight(comm):
    u, v = ring(comm, width=2), ring(comm, width=2)
    u.owned[:] = 2
    v.owned[:] = 1
    rows = 4 * comm.size
    reductions = [(u.sum, 4 * rows), (u.exact_sum, 4 * rows), (u.min, 2), (u.max, 2), (u.norm2, np.sqrt(8 * rows)),
                  (lambda: u.dot(v), 4 * rows), (lambda: v.dot(u), 4 * rows),
                  (lambda: u.distance2(v), np.sqrt(2 * rows)), (u.component_norm1, 2 * rows),
                  (u.component_norm2, np.sqrt(4 * rows)), (u.component_norm_inf, 2)]
    with u.start_pull():  # which leaves owned rows alone
        for reduce, expected in reductions:
            assert np.allclose(reduce(), expected)
    with u.start_push("replace"):
        for reduce, _ in reductions:
            with pytest.raises(dnds.StateError, match="cannot be reduced while it is pushed"):
                reduce()
    # A rank alone that does so lets no other wait.
    pending = u.start_push("replace") if comm.rank == 0 else None
    if comm.rank == 0:
        with pytest.raises(dnds.StateError):
            u.sum()
        pending.wait()
    else:
        u.sum()
        u.push("replace")


def test_checkpoints_refuse_arrays_in_flight(comm, shared_path):
    if not hasattr(dnds, "write_checkpoint"):
        pytest.skip("built without checkpoints")
    u = ring(comm)
    ids = 4 * comm.rank + np.arange(4)
    with u.start_pull(), pytest.raises(dnds.StateError, match="while it is pulled"):
        dnds.write_checkpoint(shared_path / "x.h5", {"u": u.owned_array}, ids, comm=comm)


def torus(comm):
    a = dnds.NdArray("a")
    a.decompose((8 * comm.size,), ghosts=1, periodic=(True,), comm=comm)
    a.core = 0
    return a


def test_fields_of_blocks_are_exchanged_again_after_a_recovery(comm):
    a = torus(comm)
    a.exchange_ghosts()
    a.start_exchange_ghosts()
    comm.Barrier()
    if comm.rank == 0:
        dnds.revoke(comm, "the program gives up")
    comm.Barrier()
    dnds.recover(comm)
    a.finish_exchange_ghosts()  # `recover` has given it up, unless it is this rank's alone
    a.core = 3
    a.exchange_ghosts()
    assert (a.extent == 3).all()


def test_pushes_that_fail_go_on_after_a_recovery(comm):
    a = torus(comm)
    if comm.rank == 0:
        dnds.revoke(comm, "the program gives up")
    comm.Barrier()
    if comm.size > 1:
        with pytest.raises(dnds.Error):
            a.field.push_ghosts()
    comm.Barrier()
    dnds.recover(comm)
    a.exchange_ghosts()
    a.field.push_ghosts("replace")
    assert (a.extent == 0).all()
