"""Compares how two compilers lay out the arguments of kernels: AMD's by the notes of its code objects, nvcc by its PTX.

    hip_kernels.py NOTES... -- PTX...

NOTES hold the output of llvm-readelf --notes; PTX are kept files of nvcc. Kernels have the same mangled names. Prints
how many arguments were compared and each that differs; ends with 1 where one does, or where no kernel is in both.
"""

import os
import re
import sys

import layout


def common_name(name):
    """A mangled name with an anonymous namespace as all compilers but nvcc write it."""
    match = re.search(r"(\d+)_GLOBAL__N_", name)
    while match:
        end = match.end(1) + int(match.group(1))
        name = name[:match.start()] + "*" + name[end:]
        match = re.search(r"(\d+)_GLOBAL__N_", name)
    return name


def sizes_in_notes(text):
    """Kernel name -> bytes of each argument that the program passes. Each argument begins at its own offset."""
    kernels, arguments = {}, []
    size = None
    for line in text.splitlines():
        key, _, value = line.replace("- ", "", 1).strip().partition(":")
        value = value.strip()
        if key == ".args":
            arguments = []
        elif key == ".size":
            size = int(value)
        elif key == ".value_kind" and not value.startswith("hidden"):
            arguments.append(size)
        elif key == ".name" and value.startswith("_Z"):
            kernels[common_name(value)] = arguments
    return kernels


def sizes_in_ptx(text):
    """Kernel name -> bytes of each parameter."""
    return {common_name(name): sizes for name, sizes in layout.device_sizes([text])[0].items()}


def differences(one, other):
    """(number of arguments compared, lines about differing ones)."""
    compared, lines = 0, []
    for name in sorted(set(one) & set(other)):
        compared += len(one[name])
        if one[name] != other[name]:
            lines.append(f"{name}: {one[name]} bytes by HIP's compiler, {other[name]} by nvcc")
    return compared, lines


def main(argv):
    split = argv.index("--")
    sizes = []
    for paths, read in ((argv[:split], sizes_in_notes), (argv[split + 1:], sizes_in_ptx)):
        kernels = {}
        for path in paths:
            source = os.path.basename(path).split(".")[0]
            with open(path, encoding="utf-8", errors="replace") as file:
                kernels.update({f"{source}: {name}": size for name, size in read(file.read()).items()})
        sizes.append(kernels)
    compared, lines = differences(*sizes)
    for line in lines:
        print(f"  {line}")
    print(f"{compared} arguments of kernels compared with nvcc's, {len(lines)} kernels differ")
    return 1 if lines or not compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
