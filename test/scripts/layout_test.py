#!/usr/bin/env python3
"""The layout gate (scripts/gpu/layout.py) on kernels whose arguments nvcc lays out unlike the host, and alike.

    layout_test.py NVCC
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

GPU = pathlib.Path(__file__).resolve().parents[2] / "scripts/gpu"
KERNEL = """
struct Empty {};
struct View { double *data; long rows; MEMBER };
struct Scale { View u; double factor; };
__global__ void scale(Scale s, int k) { s.u.data[k] *= s.factor; }
template <class F> __global__ void kernelOf(long n, F f) { f.u.data[n] = f.factor; }
void launch(Scale s) { scale<<<1, 1>>>(s, 3); kernelOf<<<1, 1>>>(4, s); }
"""


class Layout(unittest.TestCase):
    def gate(self, member):
        """Exit code and output for the kernels above with such a member."""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "k.cu").write_text(KERNEL.replace("MEMBER", member))
            subprocess.run([NVCC, "-std=c++20", "-arch=compute_90", f"-I{GPU}/layout", "--keep", "-c", "k.cu"],
                           cwd=folder, check=True, capture_output=True)
            run = subprocess.run([sys.executable, GPU / "layout.py", "--objects", "k.o", "--ptx", "k.ptx"], cwd=folder,
                                 capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def test_refuses_empty_members_without_addresses(self):
        code, text = self.gate("[[no_unique_address]] Empty geometry;")
        self.assertEqual(code, 1)
        self.assertIn("scale: arguments of [40, 4] bytes in device code, of [24, 4] on the host", text)
        self.assertIn("[8, 40] bytes in device code, of [8, 24]", text)

    def test_passes_other_members(self):
        code, text = self.gate("int width;")
        self.assertEqual((code, "2 kernels: arguments have the same sizes" in text), (0, True), text)


if __name__ == "__main__":
    NVCC = sys.argv.pop(1)
    unittest.main()
