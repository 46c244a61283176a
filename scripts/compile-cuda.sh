#!/usr/bin/env bash
# Compiles all kernels for the GPUs that DNDS supports, without needing one, and looks at what the compiler made of them.
#
#   scripts/compile-cuda.sh [--architectures LIST] [--jobs N] [--require]
#
#   --architectures LIST  numbers as CMake takes them (default "75-real;80-real;90")
#   --jobs N              compile N files at a time (default: the number of processors)
#   --require             fail where there is no nvcc; else say so and end well
#
# Every .cu file is compiled, and no kernel may spill registers. A program of the CUDA build is started
# and has to explain itself where there is no driver.
set -euo pipefail
cd "$(dirname "$0")/.."

architectures="75-real;80-real;90"
jobs=$(nproc)
require=false
while [ $# -gt 0 ]; do
    case "$1" in
    --architectures) architectures=${2:?} && shift ;;
    --jobs) jobs=${2:?} && shift ;;
    --require) require=true ;;
    -h | --help)
        sed -n '2,11s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "compile-cuda.sh: unknown option $1 (see --help)" >&2
        exit 2
        ;;
    esac
    shift
done

nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || nvcc=/usr/local/cuda/bin/nvcc
if [ ! -x "$nvcc" ]; then
    echo "compile-cuda.sh: SKIPPED: no nvcc, neither in PATH nor in /usr/local/cuda/bin"
    if $require; then exit 1; else exit 0; fi
fi
"$nvcc" --version | tail -n 1

build=build/cuda-compile
mkdir -p "$build"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDNDS_DEVICE=cuda -DDNDS_BUILD_BENCHMARKS=ON \
    -DCMAKE_CUDA_COMPILER="$nvcc" "-DCMAKE_CUDA_ARCHITECTURES=$architectures" \
    "-DCMAKE_CUDA_FLAGS=-Xptxas=-warn-spills" >"$build/configure.log" 2>&1 || {
    cat "$build/configure.log"
    exit 1
}

mapfile -t objects < <(ninja -C "$build" -t targets all | sed -n 's/^\(.*\.cu\.o\): CUDA_COMPILER.*/\1/p')
mapfile -t sources < <(git ls-files '*.cu')
if [ ${#objects[@]} -eq 0 ] || [ ${#objects[@]} -lt ${#sources[@]} ]; then
    printf 'compile-cuda.sh: %d .cu files, but only %d are compiled:\n' ${#sources[@]} ${#objects[@]} >&2
    printf '  %s\n' "${sources[@]}" "${objects[@]}" >&2
    exit 1
fi
echo "compiling ${#objects[@]} .cu files for $architectures"
if ! ninja -C "$build" -j "$jobs" cuda_no_driver "${objects[@]}" >"$build/compile.log" 2>&1; then
    cat "$build/compile.log"
    exit 1
fi
grep -vE '^(ninja: |\[[0-9]+/)' "$build/compile.log" || true

spilled=$(grep -iE 'registers are spilled|spill (stores|loads)' "$build/compile.log" || true)
if [ -n "$spilled" ]; then
    printf 'compile-cuda.sh: kernels spill registers to memory:\n%s\n' "$spilled" >&2
    exit 1
fi

"$build/test/cuda_no_driver"
echo "compile-cuda.sh: ${#objects[@]} files compiled, no spills"
