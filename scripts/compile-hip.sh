#!/usr/bin/env bash
# Compiles the device back end and all kernels for an AMD GPU, without needing one: the CUDA sources with the names of
# src/CUDA/hip/cuda_runtime.h. Compares the arguments of kernels with what scripts/compile-cuda.sh kept, if that has run.
#
#   scripts/compile-hip.sh [--architecture NAME] [--jobs N] [--require] [FILE.cu...]
#
#   --architecture NAME  of the GPU (default gfx90a)
#   --jobs N             compile N files at a time (default: the number of processors)
#   --require            fail where there is no HIP compiler; else say so and end well
#   FILE.cu...           only these
#
# Debian 12 has it: packages hipcc and llvm-15. HIPCXX names another compiler. Sums, scans and sorts are left out: their CUB
# has no counterpart there. Files at which the compiler itself crashes are named, and are no failure: clang 15 does so where
# std::map meets kernels. Nothing is run.
set -euo pipefail
cd "$(dirname "$0")/.."

architecture=gfx90a
jobs=$(nproc)
require=false
sources=()
while [ $# -gt 0 ]; do
    case "$1" in
    --architecture) architecture=${2:?} && shift ;;
    --jobs) jobs=${2:?} && shift ;;
    --require) require=true ;;
    -h | --help)
        sed -n '2,14s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *.cu) sources+=("$1") ;;
    *)
        echo "compile-hip.sh: unknown option $1 (see --help)" >&2
        exit 2
        ;;
    esac
    shift
done

compiler=${HIPCXX:-hipcc}
if ! command -v "$compiler" >/dev/null; then
    echo "compile-hip.sh: SKIPPED: no $compiler (packages hipcc and llvm-15, or set HIPCXX)"
    if $require; then exit 1; else exit 0; fi
fi
readelf=$(command -v llvm-readelf || command -v llvm-readelf-15 || true)

# Include paths and definitions are those of a build for the emulated device.
build=build/hip-compile
mkdir -p "$build"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDNDS_DEVICE=emulated -DDNDS_BUILD_BENCHMARKS=ON \
    -DDNDS_BUILD_PYTHON=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >"$build/configure.log" 2>&1 || {
    cat "$build/configure.log"
    exit 1
}
[ ${#sources[@]} -gt 0 ] || mapfile -t sources < <(find src test cases bench docs -name '*.cu' ! -name Algorithms.cu)
python3 - "$build" "${sources[@]}" >"$build/commands" <<'END'
import json, os, re, shlex, sys
build, sources = sys.argv[1], sys.argv[2:]
with open(os.path.join(build, "compile_commands.json")) as file:
    entries = {os.path.relpath(entry["file"]): entry for entry in json.load(file)}
like = {"src/CUDA/real/RowKernels.cu": "src/DNDS/Device/HostRowKernels.cpp",
        "test/CUDA/real/NoDriver.cu": "test/DNDS/Device/ParallelForTest.cu"}
for source in sources:
    entry = entries.get(like.get(source, source))
    if entry is None:
        sys.exit(f"compile-hip.sh: {source} is in no target")
    words = re.findall(r"(?:-isystem\s+|-I|-D)(?:\"[^\"]*\"|\\.|\S)+", entry["command"])
    print(source + "\t" + " ".join(words))
END
for source in src/CUDA/real/*.cpp; do
    printf '%s\t%s\n' "$source" "$(sed -n '1s/^[^\t]*\t//p' "$build/commands")" >>"$build/commands"
done

# One file: HIP's compiler for kernels and their launches; the back end is C++ of the host.
compile() {
    local source=$1 flags=$2 object
    object=$build/$(basename "${source%.*}")
    local common=(-std=c++20 -O2 -ffp-contract=off -w -Isrc -isystem src/CUDA/hip -include cuda_runtime.h -DEIGEN_NO_CUDA)
    if [ "${source##*.}" = cpp ]; then
        eval "${CXX:-c++} ${common[*]} -D__HIP_PLATFORM_AMD__ ${HIPFLAGS:-} $flags -fsyntax-only '$source'"
        return
    fi
    local hip="$compiler -x hip --offload-arch=$architecture -fno-crash-diagnostics ${common[*]} ${HIPFLAGS:-} $flags '$source'"
    if ! eval "$hip --cuda-host-only -fsyntax-only && $hip --cuda-device-only --no-gpu-bundle-output -c -o '$object.o'" 2>"$object.log"; then
        # The compiler may crash, but not at the library's own kernels.
        if [ "${source#src/}" != "$source" ] || ! grep -q 'PLEASE submit a bug report' "$object.log"; then
            cat "$object.log"
            return 1
        fi
        echo "NOT COMPILED: $source: the compiler crashes ($object.log)"
    elif [ -x "$readelf" ]; then
        "$readelf" --notes "$object.o" >"$object.notes"
    fi
}
export -f compile
export build architecture compiler readelf
rm -f "$build"/*.notes "$build"/*.log
echo "compiling $(wc -l <"$build/commands") files for $architecture"
# shellcheck disable=SC2016
tr '\t' '\n' <"$build/commands" | xargs -d '\n' -n 2 -P "$jobs" bash -euc 'compile "$1" "$2" || { echo "compile-hip.sh: $1 does not compile" >&2; exit 255; }' compile

kept=(build/cuda-compile/kept/*.ptx)
notes=("$build"/*.notes)
if [ -e "${notes[0]}" ] && [ -e "${kept[0]}" ]; then
    python3 scripts/gpu/hip_kernels.py "${notes[@]}" -- "${kept[@]}"
fi
crashed=$(grep -l 'PLEASE submit a bug report' "$build"/*.log | wc -l || true)
compiled=$(($(wc -l <"$build/commands") - crashed))
[ "$compiled" -gt 0 ] || exit 1
echo "compile-hip.sh: $compiled files compiled, the compiler crashed at $crashed"
