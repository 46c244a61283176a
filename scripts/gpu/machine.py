"""What the machine has: GPU, driver, compilers, tools. Nothing here needs more than Python's standard library."""

import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

# Asks the driver itself, in a process of its own: a broken driver may crash or hang the asking process.
ASK_DRIVER = """
import ctypes, json
cuda = ctypes.CDLL("libcuda.so.1")
def ask(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status:
        raise SystemExit(f"{name} returned error {status}")
count, version = ctypes.c_int(), ctypes.c_int()
ask("cuInit", 0)
ask("cuDriverGetVersion", ctypes.byref(version))
ask("cuDeviceGetCount", ctypes.byref(count))
devices = []
for number in range(count.value):
    device, value, text = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(256)
    memory = ctypes.c_size_t()
    ask("cuDeviceGet", ctypes.byref(device), number)
    ask("cuDeviceGetName", text, 256, device)
    ask("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
    def attribute(which):
        return value.value if cuda.cuDeviceGetAttribute(ctypes.byref(value), which, device) == 0 else None
    devices.append({"name": text.value.decode(), "memory_bytes": memory.value,
                    "compute_capability": f"{attribute(75)}.{attribute(76)}", "multiprocessors": attribute(16),
                    "l2_bytes": attribute(38), "mps": attribute(133)})
print(json.dumps({"cuda_of_driver": f"{version.value // 1000}.{version.value % 1000 // 10}", "devices": devices}))
"""

# A kernel that writes, and a host that looks: compiler, driver and GPU agree, or the message says why not.
PROBE = r"""
#include <cstdio>
__global__ void count(int *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = i;
}
int main() {
    const int n = 100000;
    int *device = nullptr;
    static int host[n];
    cudaError_t status = cudaMalloc(&device, n * sizeof(int));
    if (status == cudaSuccess) {
        count<<<(n + 255) / 256, 256>>>(device, n);
        status = cudaGetLastError();
    }
    if (status == cudaSuccess)
        status = cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost);
    if (status != cudaSuccess) {
        std::printf("CUDA says: %s\n", cudaGetErrorString(status));
        return 1;
    }
    for (int i = 0; i < n; ++i)
        if (host[i] != i) {
            std::printf("wrong value %d at %d\n", host[i], i);
            return 1;
        }
    cudaFree(device);
    std::printf("a kernel ran and its results are right\n");
    return 0;
}
"""

# Two processes that find each other: MPI starts with the settings of this run.
MPI_PROBE = r"""
#include <mpi.h>
#include <cstdio>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int one = 1, size = 0, rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&one, &size, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf("%d processes met\n", size);
    MPI_Finalize();
    return size == 2 ? 0 : 1;
}
"""


def output_of(command, seconds=30):
    """The standard output of a command; an empty string if it cannot be run, fails or takes too long."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                              timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def find_tool(name):
    """The path of a CUDA tool: in PATH, in CUDA_HOME, in one of the usual folders, the newest first, or in the wheels
    of this Python."""
    places = [os.path.join(os.environ[key], "bin") for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key)]
    places += ["/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer"]
    places += sorted(glob.glob("/usr/local/cuda-*/bin"), reverse=True)
    places += ["/usr/local/nvidia/bin", "/opt/cuda/bin"]
    for folder in sys.path:
        places += sorted(glob.glob(os.path.join(folder, "nvidia", "*", "bin")), reverse=True)
    found = shutil.which(name)
    for place in [] if found else places:
        candidate = os.path.join(place, name)
        if os.access(candidate, os.X_OK):
            return candidate
    return found


def version(command, pattern):
    """The first match of a pattern in what a program prints; None without one."""
    match = re.search(pattern, output_of(command)) if command[0] else None
    return match.group(1) if match else None


def finds_header(compiler, name):
    """Whether the compiler finds a header where it looks by itself."""
    return bool(output_of([compiler, "-E", "-x", "c++", "-include", name, os.devnull]))


def finds_cub(nvcc, flags=()):
    """Whether nvcc finds the headers of CCCL, a package of their own."""
    if not nvcc:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "x.cu")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <cub/version.cuh>\n")
        return bool(output_of([nvcc, "-E", *flags, source]))


def whole_toolkit(nvcc, folder):
    """The nvcc of a toolkit with the folders that nvcc and CMake look into: this one where it has them. Toolkits of
    Python wheels have lib instead of lib64, no libcudart.so, and before CUDA 13 a root for each package; for these a
    tree of links is made in `folder`."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(nvcc)))
    has = [os.path.join(root, lib, "libcudart.so") for lib in ("lib64", os.path.join("targets", "x86_64-linux", "lib"),
                                                              os.path.join("targets", "sbsa-linux", "lib"))]
    wheels = [lib for lib in (os.path.join(root, "lib"), os.path.join(os.path.dirname(root), "cuda_runtime", "lib"))
              if glob.glob(os.path.join(lib, "libcudart.so.*"))]
    if any(os.path.exists(library) for library in has) or not wheels:
        return nvcc
    roots = [root]
    if os.path.dirname(wheels[0]) != root:
        roots += sorted(glob.glob(os.path.join(os.path.dirname(root), "cuda_*")))
    shutil.rmtree(folder, ignore_errors=True)
    for place, target in (("bin", "bin"), ("include", "include"), ("lib", "lib64"), ("nvvm", "nvvm")):
        os.makedirs(os.path.join(folder, target))
        for tree in roots:
            for entry in sorted(glob.glob(os.path.join(tree, place, "*"))):
                link = os.path.join(folder, target, os.path.basename(entry))
                if not os.path.lexists(link):
                    os.symlink(entry, link)
    for library in glob.glob(os.path.join(folder, "lib64", "lib*.so.*")):
        short = re.sub(r"\.so\..*", ".so", library)
        if not os.path.lexists(short):
            os.symlink(os.path.basename(library), short)
    os.symlink("lib64", os.path.join(folder, "lib"))
    return os.path.join(folder, "bin", "nvcc")


def ask_driver():
    """The CUDA driver's description of its devices, or {"error": reason}."""
    try:
        done = subprocess.run([sys.executable, "-c", ASK_DRIVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return {"error": "the CUDA driver gave no answer within 60 s"}
    if done.returncode == 0:
        return json.loads(done.stdout.decode())
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    if lines and "libcuda.so.1: cannot open" in lines[-1]:
        return {"error": "no NVIDIA driver is installed (its libcuda.so.1 was not found)"}
    return {"error": lines[-1] if lines else f"asking the driver ended with code {done.returncode}"}


def file_value(path, pattern):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            match = re.search(pattern, file.read(), re.M)
    except OSError:
        return None
    return match.group(1).strip().strip('"') if match else None


def facts():
    """Everything a reader of the report wants to know of the machine, and what the run needs to know."""
    nvcc, smi, sanitizer = find_tool("nvcc"), find_tool("nvidia-smi"), find_tool("compute-sanitizer")
    driver = ask_driver()
    found = {
        "system": file_value("/etc/os-release", r"^PRETTY_NAME=(.*)$"),
        "kernel": platform.release(),
        "processor": file_value("/proc/cpuinfo", r"^model name\s*: (.*)$") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(file_value("/proc/meminfo", r"^MemTotal:\s*(\d+)") or 0) / 2**20, 1),
        "gpus": driver.get("devices", []),
        "gpu_error": driver.get("error"),
        "cuda_of_driver": driver.get("cuda_of_driver"),
        "nvcc": nvcc,
        "nvcc_version": version([nvcc, "--version"], r"release ([\d.]+)"),
        "cub": finds_cub(nvcc),
        "compute_sanitizer": sanitizer,
        "mps_control": find_tool("nvidia-cuda-mps-control"),
        "cxx": os.environ.get("CXX", "c++"),
        "cxx_version": version([os.environ.get("CXX", "c++"), "-dumpfullversion"], r"([\d.]+)"),
        "cmake_version": version(["cmake", "--version"], r"version ([\d.]+)"),
        "ninja_version": version(["ninja", "--version"], r"([\d.]*\d)"),
        "python_version": platform.python_version(),
        "mpi": shutil.which("mpiexec") is not None and shutil.which("mpicxx") is not None,
        "zlib": finds_header(os.environ.get("CXX", "c++"), "zlib.h"),
    }
    if smi:
        keys = ["driver_version", "clocks.max.sm", "clocks.max.mem", "compute_mode", "mig.mode.current"]
        values = output_of([smi, f"--query-gpu={','.join(keys)}", "--format=csv,noheader"]).splitlines()
        found["nvidia_smi"] = dict(zip(keys, values[0].split(", "), strict=False)) if values else {}
    return found


def at_least(version_text, *wanted):
    """Whether a version like 13.0.1 is not older than (13, 0). An unknown version is."""
    numbers = [int(part) for part in re.findall(r"\d+", version_text or "")]
    return tuple(numbers[:len(wanted)]) >= wanted


def missing(found, cuda=True, gpu=True, bundle=False):
    """What the run needs and the machine lacks, each with its cure."""
    lacks = []
    if gpu and not found["gpus"]:
        lacks.append(f"a GPU: {found['gpu_error'] or 'the driver lists none'}; "
                     "check the driver and CUDA_VISIBLE_DEVICES, or use --emulated for a rehearsal")
    if cuda:
        if not found["nvcc"]:
            lacks.append("nvcc: install the CUDA toolkit (12.4 or newer) or set CUDA_HOME")
        elif not at_least(found["nvcc_version"], 12, 4):
            lacks.append(f"a newer nvcc than {found['nvcc_version']}: 12.4 is needed for C++20")
    if not found["cxx_version"]:
        lacks.append(f"a C++ compiler: {found['cxx']} was not found; install g++ 12 or newer, or set CXX")
    elif not at_least(found["cxx_version"], 12):
        lacks.append(f"a newer C++ compiler than {found['cxx']} {found['cxx_version']}: install g++ 12, or set CXX")
    if not at_least(found["cmake_version"], 3, 25):
        lacks.append(f"CMake 3.25 or newer (found: {found['cmake_version'] or 'none'})")
    if not found["ninja_version"]:
        lacks.append("ninja (package ninja-build)")
    if not bundle and not found["mpi"]:
        lacks.append("MPI and the libraries DNDS is built with: without a network, copy the file that "
                     "scripts/gpu-bundle.sh makes elsewhere to build/gpu-bundle; with one, run scripts/install-deps.sh")
    if not bundle and not found["zlib"]:
        lacks.append("zlib with its headers (package zlib1g-dev): without it the Euler case is left out")
    return lacks
