import ctypes
import gc

import dnds
import numpy as np
import pytest
from memory import assert_alive, is_freed, needs_sanitizer, span

DTYPES = ["float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_fixed_rows_are_shared_with_numpy(dtype):
    array = dnds.Array(5, 3, dtype=dtype, name="state")
    view = array.numpy()
    assert view.shape == (5, 3) and view.dtype == np.dtype(dtype) and view.strides[1] == view.itemsize
    assert not view.any()
    view[:] = np.arange(15).reshape(5, 3)
    assert np.shares_memory(view, array.numpy())
    np.testing.assert_array_equal(array[-1], [12, 13, 14])
    np.testing.assert_array_equal(np.asarray(array), view)
    assert (len(array), array.width, array.layout, array.dtype) == (5, 3, "fixed", np.dtype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_padded_rows_have_sizes_and_strides(dtype):
    array = dnds.Array(4, 5, layout="padded", sizes=[1, 0, 5, 2], dtype=dtype)
    assert array.numpy().shape == (4, 5)
    np.testing.assert_array_equal(array.sizes, [1, 0, 5, 2])
    assert array.sizes.dtype == np.int32 and not array.sizes.flags.writeable
    assert [len(array[i]) for i in range(4)] == [1, 0, 5, 2]
    array[2][:] = 7
    np.testing.assert_array_equal(array.numpy()[2], [7] * 5)
    array.resize_row(2, 3)
    np.testing.assert_array_equal(array.numpy()[2], [7, 7, 7, 0, 0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_csr_rows_are_data_and_offsets(dtype):
    array = dnds.Array(4, layout="csr", sizes=np.array([1, 0, 5, 2], np.uint8), dtype=dtype)
    np.testing.assert_array_equal(array.offsets, [0, 1, 1, 6, 8])
    assert array.width is None and array.numpy().shape == (8,)
    array.numpy()[:] = np.arange(8)
    np.testing.assert_array_equal(array[2], [1, 2, 3, 4, 5])
    assert np.shares_memory(array.offsets, array.offsets) and not array.offsets.flags.writeable
    array.decompress()
    assert not array.is_compressed
    with pytest.raises(dnds.StateError, match="compress"):
        array.numpy()
    array.resize_row(1, 2)
    array.compress()
    np.testing.assert_array_equal(array.offsets, [0, 1, 3, 8, 10])


@pytest.mark.parametrize("layout", ["fixed", "padded", "csr"])
def test_arrays_may_be_empty(layout):
    array = dnds.Array(0, 3, layout=layout)
    assert array.numpy().size == 0 and len(array.sizes) == 0
    if layout == "csr":
        np.testing.assert_array_equal(array.offsets, [0])
    if layout == "fixed":
        assert dnds.Array(3, 0).numpy().shape == (3, 0)


@pytest.mark.parametrize("layout", ["fixed", "padded", "csr"])
def test_views_outlive_their_array(layout):
    sizes = None if layout == "fixed" else np.full(1000, 3)
    array = dnds.Array(1000, None if layout == "csr" else 3, layout=layout, sizes=sizes)
    view = array.numpy()
    part = view[10:20]
    lists = [array.sizes] + ([array.offsets] if layout == "csr" else [])
    kept = [np.array(values) for values in lists]
    view[:] = 4
    del array, view
    gc.collect()
    assert_alive(part, *lists)
    other = [dnds.Array(1000, 3) for _ in range(20)]  # would reuse freed memory
    assert (part == 4).all() and not other[-1].numpy().any()
    part[:] = 5
    assert (part == 5).all()
    for values, copy in zip(lists, kept, strict=True):
        np.testing.assert_array_equal(values, copy)


@pytest.mark.parametrize("layout", ["fixed", "padded", "csr"])
def test_old_views_of_a_resized_array_stay_valid(layout):
    sizes = None if layout == "fixed" else np.full(1000, 3)
    array = dnds.Array(1000, None if layout == "csr" else 3, layout=layout, sizes=sizes)
    view, row_sizes = array.numpy(), array.sizes
    offsets = array.offsets if layout == "csr" else None
    view[:] = 4
    array.resize(5000, sizes=None if layout == "fixed" else np.full(5000, 2))
    new = array.numpy()
    assert not np.shares_memory(view, new) and (view == 4).all()
    view[:] = 6  # goes into the old memory, and nowhere else
    assert not (new == 6).any()
    np.testing.assert_array_equal(row_sizes, [3] * 1000)
    if layout == "csr":
        np.testing.assert_array_equal(offsets, 3 * np.arange(1001))
        np.testing.assert_array_equal(array.offsets, 2 * np.arange(5001))
    for rows in (10, 100, 3):
        array.resize(rows, sizes=None if layout == "fixed" else [1] * rows)
        assert_alive(view, row_sizes, array.numpy())
    assert (view == 6).all()


@needs_sanitizer
@pytest.mark.parametrize("layout", ["fixed", "padded", "csr"])
def test_memory_is_freed_with_its_last_view(layout):
    """What the tests of lifetimes rely on: where nothing holds memory, the sanitizer says so."""
    sizes = None if layout == "fixed" else np.full(1000, 3)
    array = dnds.Array(1000, None if layout == "csr" else 3, layout=layout, sizes=sizes)
    views = [array.numpy()] + ([array.offsets] if layout == "csr" else [array.sizes] if layout == "padded" else [])
    places = [span(view) for view in views]
    row = array[5]
    del array
    gc.collect()
    assert_alive(row, *views)
    del views, row
    gc.collect()
    assert all(is_freed(*place) for place in places)
    with pytest.raises(AssertionError, match="dangle"):
        assert_alive(np.ctypeslib.as_array(ctypes.cast(places[0][0], ctypes.POINTER(ctypes.c_double)), (10,)))


@needs_sanitizer
def test_resizing_frees_memory_that_nobody_views():
    array = dnds.Array(1000, 3)
    place = span(array.numpy())
    array.resize(10)
    gc.collect()
    assert is_freed(*place)
    assert_alive(array.numpy())


def test_read_only_views_refuse_writes():
    view = dnds.Array(2, 2).numpy(writable=False)
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 1


def test_errors_keep_their_text_and_type():
    array = dnds.Array(3, 2, name="pressure")
    with pytest.raises(dnds.IndexError, match=r"IndexError on rank \d+: 'pressure': row 3 is outside \[0, 3") as caught:
        array[3]
    assert isinstance(caught.value, IndexError) and isinstance(caught.value, dnds.Error)
    assert caught.value.message == "'pressure': row 3 is outside [0, 3)" and caught.value.rank >= 0
    with pytest.raises(dnds.ArgumentError, match="no arrays of complex128: dtype is one of float64") as caught:
        dnds.Array(1, 1, dtype="complex128")
    assert isinstance(caught.value, ValueError)
    with pytest.raises(dnds.ArgumentError, match="not-a-layout.*fixed, padded or csr"):
        dnds.Array(1, 1, layout="not-a-layout")
    with pytest.raises(dnds.ArgumentError, match="row sizes must be integers, not float64"):
        dnds.Array(2, layout="csr", sizes=[0.5, 1.5])
    with pytest.raises(dnds.ArgumentError, match="2 rows, but 1 sizes"):
        dnds.Array(2, layout="csr", sizes=[1])
    with pytest.raises(dnds.LayoutError, match="no offsets"):
        _ = array.offsets
    with pytest.raises(dnds.StateError, match="width of the rows was not chosen"):
        dnds.Array(4)


def test_rows_are_iterated_and_hashed():
    a, b = dnds.Array(3, 2), dnds.Array(3, 2, layout="padded", sizes=[2, 2, 2])
    for row in a:
        row[:] = 1
    b.numpy()[:] = 1
    assert a.content_hash() == b.content_hash()
    b[1][0] = 2
    assert a.content_hash() != b.content_hash()
