import gc
import importlib.util
import pathlib
import sys
from array import array as buffer

import dnds
import numpy as np
import pytest
from memory import assert_alive, is_freed, needs_sanitizer, span

needs_device = pytest.mark.skipif(not dnds.device_available(), reason=dnds.device_unavailable_reason())
emulated = pytest.mark.skipif(dnds.device_name != "emulated", reason="for the emulated device")


def test_dlpack_shares_host_memory_both_ways():
    array = dnds.Array(4, 3)
    taken = np.from_dlpack(array)
    array.numpy()[:] = 7  # NumPy before 2.1 takes foreign memory as read-only
    assert (taken == 7).all() and np.shares_memory(taken, array.numpy()) and array.__dlpack_device__() == (1, 0)
    values = np.arange(12, dtype=np.float32).reshape(6, 2)
    given = dnds.Array.from_dlpack(values, name="given")
    assert np.shares_memory(given.numpy(), values) and given.width == 2 and given.dtype == np.float32
    np.testing.assert_array_equal(given.numpy(), np.arange(12).reshape(6, 2))
    given[0][:] = -1
    assert values[0, 0] == -1
    again = dnds.Array.from_dlpack(np.arange(5, dtype=np.int16))
    gc.collect()
    np.testing.assert_array_equal(again.numpy()[:, 0], np.arange(5))
    del array, again
    gc.collect()
    assert_alive(taken)
    assert (taken == 7).all()


def test_torch_shares_host_memory_both_ways():
    torch = pytest.importorskip("torch")
    array = dnds.Array(4, 3)
    tensor = torch.from_dlpack(array)
    tensor.fill_(7)
    assert (array.numpy() == 7).all()
    del array
    gc.collect()
    assert float(tensor.sum()) == 84
    values = torch.arange(10, dtype=torch.float64).reshape(5, 2)
    given = dnds.Array.from_dlpack(values)
    given.numpy()[0, 0] = -5
    assert float(values[0, 0]) == -5
    del values
    gc.collect()
    assert given.numpy().sum() == 40


def test_ranks_take_devices(comm):
    if dnds.device_available():
        dnds.use_device(comm)
        array = dnds.Array(3, 2)
        array.numpy()[:] = comm.rank
        array.to_device()
    else:
        with pytest.raises(dnds.NotBuiltError, match="choose a device"):
            dnds.use_device(comm)


@needs_sanitizer
def test_adopted_memory_goes_with_its_last_array():
    given = dnds.Array.from_dlpack(np.arange(1000.0))  # no other reference
    view = given.numpy()
    place = span(view)
    del given
    gc.collect()
    assert_alive(view)
    del view
    gc.collect()
    assert is_freed(*place)


def test_adopted_memory_is_kept_and_left():
    values = np.arange(1000.0)
    address = values.ctypes.data
    before = sys.getrefcount(values)
    array = dnds.Array.from_dlpack(values)
    assert sys.getrefcount(values) > before
    view = array.numpy()
    array.resize(2000)
    assert not np.shares_memory(array.numpy(), values) and view.ctypes.data == address
    np.testing.assert_array_equal(array.numpy()[:1000, 0], np.arange(1000))
    del view, array
    gc.collect()
    assert sys.getrefcount(values) == before, "nobody keeps it any more"


def test_what_is_adopted_cannot_be_resized():
    values = buffer("d", range(1000))
    given = dnds.Array.from_dlpack(values)
    with pytest.raises(BufferError):
        values.append(0)  # would move its memory
    given.numpy()[:] = 3
    assert values[999] == 3
    given.resize(2000)  # has memory of its own now
    given.numpy()[:] = 4
    gc.collect()
    values.append(0)
    assert values[999] == 3


def test_dlpack_honours_what_consumers_ask_for():
    state = dnds.Array(4, 3)
    state.numpy()[:] = 1
    for options in ({}, {"copy": False}, {"copy": None, "max_version": (1, 0), "stream": None},
                    {"dl_device": (1, 0)}):
        capsule = state.__dlpack__(**options)
        taken = np.from_dlpack(Capsule(capsule))
        assert np.shares_memory(taken, state.numpy())
    copied = np.from_dlpack(Capsule(state.__dlpack__(copy=True, dl_device=(1, 0))))
    state.numpy()[:] = 2
    assert not np.shares_memory(copied, state.numpy()) and (copied == 1).all()
    with pytest.raises(BufferError, match="to_device"):
        state.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError):
        state.__dlpack__(unknown=1)


class Capsule:
    """What np.from_dlpack takes, of NumPy before 2.1 without options, too."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def test_what_cannot_be_adopted_says_so():
    with pytest.raises(TypeError, match="contiguous"):
        dnds.Array.from_dlpack(np.zeros((4, 4)).T[::2])
    with pytest.raises(dnds.ArgumentError, match="3 dimensions"):
        dnds.Array.from_dlpack(np.zeros((2, 2, 2)))
    with pytest.raises(TypeError):
        dnds.Array.from_dlpack("text")
    with pytest.raises(dnds.ArgumentError, match="dtype is one of float64"):
        dnds.Array.from_dlpack(np.zeros(3, "float16"))


@pytest.mark.skipif(dnds.device_available(), reason="there is a device")
def test_without_a_device_errors_say_why():
    array = dnds.Array(3, 1)
    assert array.on_host and not array.on_device and dnds.device_unavailable_reason()
    for call in (array.to_device, array.device_view, lambda: dnds.launch(print, array), lambda: dnds.record_use(None)):
        with pytest.raises(dnds.NotBuiltError):
            call()


@needs_device
def test_residency_is_kept_track_of():
    array = dnds.Array(5, 2, name="state")
    array.numpy()[:] = 3
    array.to_device()
    assert array.on_host and array.on_device
    array.numpy()[:] = 4  # a writable view makes the device side stale
    assert not array.on_device
    with pytest.raises(dnds.StaleError, match="state"):
        array.device_view()
    array.to_device()
    view = array.device_view()
    assert not array.on_host
    with pytest.raises(dnds.StaleError, match="state"):
        array.numpy()
    array.resize(50)
    del array
    gc.collect()
    del view


@emulated
def test_uses_of_streams_are_recorded():
    dnds.record_use(None)
    for stream in (4096, Stream(cuda_stream=4096), Stream(ptr=4096), Stream(__cuda_stream__=lambda: (0, 4096))):
        with pytest.raises(dnds.ArgumentError, match="not one of its streams"):
            dnds.record_use(stream)
    for stream in ("stream", object(), -4096, Stream(ptr="text")):
        with pytest.raises(TypeError, match="PyTorch"):
            dnds.record_use(stream)


class Stream:
    """What libraries for CUDA have for a stream."""

    def __init__(self, **attributes):
        for name, value in attributes.items():
            setattr(self, name, value)


@emulated
def test_kernels_on_the_emulated_device():
    a, b = dnds.Array(5, 2), dnds.Array(5, 2)
    a.numpy()[:] = np.arange(10).reshape(5, 2)
    a.to_device()
    b.to_device()

    def double(source, target):
        target[:] = 2 * source

    dnds.launch(double, a, b)
    assert b.on_device and not b.on_host
    with pytest.raises(BufferError, match="to_host"):
        b.__dlpack__()
    assert not hasattr(b.device_view(), "__cuda_array_interface__")
    b.to_host()
    np.testing.assert_array_equal(b.numpy(), 2 * np.arange(10).reshape(5, 2))


@needs_device
def test_pulls_on_the_device(comm):
    u = dnds.Field(4, comm=comm)
    u.set_ghosts((np.array([-1, 4]) + 4 * comm.rank) % (4 * comm.size))
    u.owned[:] = np.arange(4) + 4 * comm.rank
    for array in (u.owned_array, u.ghost_array):
        array.to_device()
    u.prepare_pull()
    u.owned_array.device_view()  # only the device is current
    u.ghost_array.device_view()
    u.pull()
    u.ghost_array.to_host()
    u.owned_array.to_host()
    np.testing.assert_array_equal(u.data, u.global_rows)


@emulated
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_solvers_stay_on_the_device(comm, width, dtype):
    u, v = (dnds.Field(4, width, dtype, comm=comm, name=name) for name in "uv")
    u.set_ghosts((np.array([-1, 4]) + 4 * comm.rank) % (4 * comm.size))
    v.share_ghosts(u)
    for field in (u, v):
        field.owned[:] = u.global_rows[:4, None]
        field.owned_array.to_device()
        field.ghost_array.to_device()
    group = dnds.FieldGroup([u, v])

    def double(rows):
        rows[:] *= 2

    for _ in range(3):
        dnds.launch(double, u.owned_array)
        group.pull()
    assert not u.ghost_array.on_host and not v.ghost_array.on_host
    dnds.launch(double, u.ghost_array)
    u.push("sum")
    for array in (u.owned_array, u.ghost_array, v.owned_array, v.ghost_array):
        array.to_host()
    np.testing.assert_array_equal(v.data[:, -1], u.global_rows)
    np.testing.assert_array_equal(u.ghosts[:, 0], 16 * u.global_rows[4:])
    copies = np.bincount(np.concatenate(comm.allgather(u.global_rows[4:])), minlength=4 * comm.size)[u.global_rows[:4]]
    np.testing.assert_array_equal(u.owned[:, 0], (8 + 16 * copies) * u.global_rows[:4])


@needs_device
def test_rows_that_are_not_where_the_pull_was_prepared_are_stale(comm):
    u = dnds.Field(4, comm=comm)
    u.set_ghosts((np.array([-1, 4]) + 4 * comm.rank) % (4 * comm.size))
    u.pull()  # of the host's rows
    u.owned_array.to_device()
    u.owned_array.device_view()
    with pytest.raises((dnds.StaleError, dnds.RevokedError), match="field"):
        u.pull()
    comm.Barrier()
    dnds.recover(comm)
    u.owned_array.to_host()
    u.pull()
    assert (u.data == 0).all()


def test_the_example_runs_or_skips(capfd):
    path = pathlib.Path(__file__).resolve().parents[1] / "examples/device.py"
    spec = importlib.util.spec_from_file_location("device", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    library = module.main()
    said = capfd.readouterr().out
    if library == "skipped":
        pytest.skip(said.strip())
    assert library in ("cupy", "torch") and said.startswith(f"{library}: doubled 1000 rows")
