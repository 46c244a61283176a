#!/usr/bin/env bash
# Feeds the readers of meshes and checkpoints damaged files for a while, guided by coverage (libFuzzer, clang 14 or newer).
#
#   scripts/fuzz.sh [SECONDS] [--formats gmsh,su2,ugrid,adf,hdf5,vtkhdf,vtu,checkpoint] [--jobs N] [--no-install]
#
#   SECONDS         for all formats together (default 240)
#   --formats LIST  which of them
#   --jobs N        how many files are compiled at a time
#
# What it finds is kept in build/fuzz/findings; what reached new code, in build/fuzz/corpus. It ends with 1 where a
# finding is not inside HDF5 or the CGNS library, which no reader can fix. Small files that are worth keeping belong
# into test/fuzz/corpus, which every build replays (ctest -R fuzz_replay).
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

seconds=240
formats=gmsh,su2,ugrid,adf,hdf5,vtkhdf,vtu,checkpoint
jobs=$(nproc)
install=true
while [ $# -gt 0 ]; do
    case "$1" in
    --formats) formats=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    --no-install) install=false ;;
    -h | --help)
        sed -n '2,12s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) seconds=$1 ;;
    esac
    shift
done

clang=$(command -v clang++-14 || command -v clang++ || true)
if $install && [ -z "$clang" ]; then
    scripts/install-deps.sh
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get install --no-install-recommends -y clang-14 libclang-rt-14-dev >/dev/null
fi
clang=$(command -v clang++-14 || command -v clang++)

say "building fuzz_readers with $clang"
cmake -G Ninja -B build/fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_COMPILER=$clang" \
    -DDNDS_SANITIZE=address,undefined,fuzzer-no-link -DDNDS_DEBUG_CHECKS=ON -DDNDS_BUILD_CASES=OFF >/dev/null
cmake --build build/fuzz --parallel "$jobs" --target fuzz_readers fuzz_replay

export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_btl=self
fuzz=$PWD/build/fuzz
findings=$fuzz/findings
mkdir -p "$findings"
"$fuzz/test/fuzz/fuzz_replay" --write-seeds "$fuzz/seeds"

IFS=, read -ra list <<<"$formats"
each=$((seconds / ${#list[@]}))
for format in "${list[@]}"; do
    say "$format: $each s"
    mkdir -p "$fuzz/corpus/$format"
    kept=()
    [ -d "test/fuzz/corpus/$format" ] && kept=("test/fuzz/corpus/$format")
    # A crash inside a library must not end the search: -fork continues with a new process.
    "$fuzz/test/fuzz/fuzz_readers" -fork=1 -ignore_crashes=1 -ignore_ooms=1 -ignore_timeouts=1 -timeout=20 \
        -rss_limit_mb=4096 -max_len=65536 "-max_total_time=$each" "-artifact_prefix=$findings/$format-" \
        "$fuzz/corpus/$format" "${kept[@]}" "$fuzz/seeds/$format" 2>"$fuzz/$format.log" || true
    grep -E '^#[0-9]+:' "$fuzz/$format.log" | tail -n 1 || tail -n 3 "$fuzz/$format.log"
done

own=0
for file in "$findings"/*; do
    [ -f "$file" ] || continue
    case "$(basename "$file")" in *-slow-unit-*) continue ;; esac
    log=$fuzz/finding.log
    if timeout 60 "$fuzz/test/fuzz/fuzz_readers" -timeout=20 -rss_limit_mb=4096 "$file" >"$log" 2>&1; then
        continue # does not come back
    fi
    if grep -qE '^ +#[0-9]+ .*(libhdf5|libcgns)' "$log"; then
        printf 'inside a library: %s\n' "$file"
    else
        printf 'FOUND: %s: %s\n' "$file" "$(grep -m 1 -E 'ERROR|runtime error|terminate|what' "$log")"
        own=$((own + 1))
    fi
done
say "$own findings of our own"
[ "$own" -eq 0 ]
