"""Whether memory is alive, as the address sanitizer sees it.

It watches what is compiled with it and what the C library copies, but no loop of NumPy: a view that dangles would go
unnoticed there. So tests ask it.
"""

import ctypes

import pytest

_poisoned = getattr(ctypes.CDLL(None), "__asan_region_is_poisoned", None)
if _poisoned is not None:
    _poisoned.argtypes, _poisoned.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p

under_sanitizer = _poisoned is not None
needs_sanitizer = pytest.mark.skipif(not under_sanitizer, reason="needs the address sanitizer (preset debug)")


def span(array):
    """Where the bytes of a NumPy array begin, and how many there are up to its last."""
    if array.size == 0:
        return array.ctypes.data, 0
    assert all(stride >= 0 for stride in array.strides)
    last = sum((n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True))
    return array.ctypes.data, last + array.itemsize


def is_freed(address, bytes):
    """Whether some of this memory was freed. Only under the sanitizer."""
    return _poisoned(address, bytes) is not None


def assert_alive(*arrays):
    """Reads all that NumPy arrays show; under the sanitizer, fails if any of it was freed."""
    for array in arrays:
        address, bytes = span(array)
        assert _poisoned is None or not is_freed(address, bytes), f"{bytes} bytes at {address:#x} dangle"
        ctypes.string_at(address, bytes)
