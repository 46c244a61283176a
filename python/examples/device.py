"""Arrays on a GPU, shared with CuPy or PyTorch without copying. Skips where there is no GPU or neither of them."""

import importlib

import dnds
import numpy as np


def library():
    """CuPy or PyTorch, whichever can use the GPU: its name, and what makes an array of a DeviceView."""
    try:
        cupy = importlib.import_module("cupy")
        cupy.cuda.runtime.getDeviceCount()
        return "cupy", cupy.asarray, cupy.cuda.Device().synchronize
    except Exception:  # absent, or without a driver: it raises errors of its own
        pass
    try:
        torch = importlib.import_module("torch")
        if torch.cuda.is_available():
            return "torch", lambda view: torch.as_tensor(view, device="cuda"), torch.cuda.synchronize
    except ImportError:
        pass
    return None


def main():
    if dnds.device_name != "cuda" or not dnds.device_available():
        print(f"SKIPPED: no GPU: {dnds.device_unavailable_reason() or f'the device is {dnds.device_name}'}")
        return "skipped"
    found = library()
    if found is None:
        print("SKIPPED: neither CuPy nor PyTorch can use the GPU")
        return "skipped"
    name, asarray, synchronize = found

    state = dnds.Array(1000, 5, name="state")
    state.numpy()[:] = np.arange(1000)[:, None]
    state.to_device()
    on_device = asarray(state.device_view())  # no copy; the host side is stale from here on
    on_device *= 2
    synchronize()  # the writer of device memory synchronises before others use it
    state.to_host()
    assert (state.numpy() == 2 * np.arange(1000)[:, None]).all()
    print(f"{name}: doubled {len(state)} rows on the GPU")
    return name


if __name__ == "__main__":
    main()
