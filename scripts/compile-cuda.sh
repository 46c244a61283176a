#!/usr/bin/env bash
# Compiles all kernels for the GPUs that DNDS supports, without needing one, and looks at what the compiler made of them.
#
#   scripts/compile-cuda.sh [--architectures LIST] [--jobs N] [--require] [--layout-only]
#
#   --architectures LIST  numbers as CMake takes them (default "75-real;80-real;90")
#   --jobs N              compile N files at a time (default: the number of processors)
#   --require             fail where there is no nvcc; else say so and end well
#   --layout-only         compile to PTX only (of the last architecture), and compare where kernels read their arguments with
#                         where the host puts them
#
# Every .cu file is compiled. Kernels must read their arguments where the host puts them (scripts/gpu/layout.py). No kernel may
# spill registers, fuse products and sums, or wait for others; kernels that move rows must do so 16 bytes at a time
# (scripts/gpu/kernels.py has the rules). A program of the CUDA build is started and has to explain itself where there is no
# driver. Tests run its back end with stand-ins for CUDA's functions.
set -euo pipefail
cd "$(dirname "$0")/.."

architectures="75-real;80-real;90"
jobs=$(nproc)
require=false
layout_only=false
while [ $# -gt 0 ]; do
    case "$1" in
    --architectures) architectures=${2:?} && shift ;;
    --jobs) jobs=${2:?} && shift ;;
    --require) require=true ;;
    --layout-only) layout_only=true ;;
    -h | --help)
        sed -n '2,16s/^# \{0,1\}//p' "$0"
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
flags="-Xptxas=-v,-warn-spills"
if $layout_only; then
    build=build/cuda-layout
    architectures=${architectures##*;}
    architectures=${architectures%%-*}-virtual
    flags=
fi
kept=$PWD/$build/kept
mkdir -p "$kept"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDNDS_DEVICE=cuda -DDNDS_BUILD_BENCHMARKS=ON -DDNDS_FAST_COMPILE=ON "-DDNDS_CCACHE=${DNDS_CCACHE:-OFF}" \
    -DCMAKE_CUDA_COMPILER="$nvcc" "-DCMAKE_CUDA_ARCHITECTURES=$architectures" \
    "-DCMAKE_CUDA_FLAGS=$flags -I$PWD/scripts/gpu/layout --keep --keep-dir=$kept" >"$build/configure.log" 2>&1 || {
    cat "$build/configure.log"
    exit 1
}

mapfile -t objects < <(ninja -C "$build" -t targets all | sed -n 's/^\(.*\.cu\.o\): CUDA_COMPILER.*/\1/p')
mapfile -t sources < <(find src test cases bench docs -name '*.cu') # also without git
if [ ${#objects[@]} -eq 0 ] || [ ${#objects[@]} -lt ${#sources[@]} ]; then
    printf 'compile-cuda.sh: %d .cu files, but only %d are compiled:\n' ${#sources[@]} ${#objects[@]} >&2
    printf '  %s\n' "${sources[@]}" "${objects[@]}" >&2
    exit 1
fi
echo "compiling ${#objects[@]} .cu files for $architectures"
compiled=true
targets=("${objects[@]}")
$layout_only || targets+=(cuda_no_driver cuda_stand_in_tests)
ninja -C "$build" -j "$jobs" "${targets[@]}" >"$build/compile.log" 2>&1 || compiled=false
cat "$build/compile.log" >>"$build/all.log" # files that did not change are not compiled again
if ! $compiled; then
    grep -v '^ptxas info' "$build/compile.log"
    exit 1
fi
grep -E '[Ww]arning' "$build/compile.log" || true

suffix=.ptx # nvcc's name for kept files: for one architecture, or for the last one of several
case "$architectures" in *";"*)
    newest=${architectures##*;}
    suffix=.compute_${newest%%-*}.ptx
    ;;
esac
ptx=()
for source in "${sources[@]}"; do
    ptx+=("$kept/$(basename "$source" .cu)$suffix")
done
python3 scripts/gpu/layout.py --objects "${objects[@]/#/$build/}" --ptx "${ptx[@]}" || {
    echo "compile-cuda.sh: kernels read their arguments at wrong places: see above" >&2
    exit 1
}
! $layout_only || exit 0

echo "kernels whose speed matters, with registers by architecture:"
python3 scripts/gpu/kernels.py "$build/all.log" "${ptx[@]}" || {
    echo "compile-cuda.sh: the compiler made of kernels what it should not: see above" >&2
    exit 1
}

"$build/test/cuda_no_driver"
"$build/test/cuda_stand_in_tests" --gtest_brief=1
echo "compile-cuda.sh: ${#objects[@]} files compiled, kernels as they should be"
