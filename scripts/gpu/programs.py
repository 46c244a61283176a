"""Programs built on one machine for a GPU of another: packing what a build made, and taking it into use."""

import os
import shutil
import subprocess
import tarfile
import tempfile

import device_tests

CASES = ["cases/heat/heat", "cases/euler/euler", "bench/gpu/bench_gpu"]
# Which MPI starts programs, which tests there are, and which sources the programs are of.
CONFIGURED = ("CMakeCache.txt", "CTestTestfile.cmake", "source")


def pack(build, environment, path):
    """Writes the stripped programs of the device's tests, cases and benchmarks, and what lists them, to a file."""
    names = {word for test in device_tests.listed(build, environment) for word in test["command"]
             if word.startswith(build + os.sep) and os.access(word, os.X_OK) and os.path.isfile(word)}
    names |= {os.path.join(build, case) for case in CASES if os.path.exists(os.path.join(build, case))}
    for folder, folders, files in os.walk(build):
        folders[:] = [name for name in folders if name not in ("bundle", "logs", "CMakeFiles", "toolkit")]
        names |= {os.path.join(folder, name) for name in files if name in CONFIGURED or name.endswith("_tests.cmake")}
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(path + ".partial", "w:xz", preset=3) as archive:
        for name in sorted(names):
            copy = os.path.join(scratch, os.path.basename(name))
            shutil.copy2(name, copy)
            with open(name, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    subprocess.run(["strip", copy], check=True)
            archive.add(copy, os.path.relpath(name, build))
            os.remove(copy)
    os.replace(path + ".partial", path)
    return len(names)


def unpack(path, build, root):
    """Takes packed programs into use. They hold whole paths: returns why they do not fit here, or None."""
    with tarfile.open(path) as archive:
        archive.extractall(build, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(build)
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        cache = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line and line[0].isalpha())
    made = {key: cache.get(key) for key in ("CMAKE_HOME_DIRECTORY:INTERNAL", "CMAKE_CACHEFILE_DIR:INTERNAL")}
    if list(made.values()) != [root, build]:
        return (f"{path} was made in {made['CMAKE_CACHEFILE_DIR:INTERNAL']} for the sources in "
                f"{made['CMAKE_HOME_DIRECTORY:INTERNAL']}: put them there, or a link")
    return None
