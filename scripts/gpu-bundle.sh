#!/usr/bin/env bash
# Packs what a GPU machine without a network lacks into one file, for scripts/gpu-check.sh: an Open MPI that takes device
# pointers, the headers and libraries that DNDS is built with, taken from this machine's packages, and the headers of CCCL
# (CUB) of the CUDA toolkit here, if there is one.
#
#   scripts/gpu-bundle.sh [--out FOLDER] [--openmpi FILE.tar.gz | --no-openmpi] [--max-mb N] [--no-install]
#
#   --out FOLDER    where bundle.tar.gz is written (default build/gpu-bundle, which git ignores)
#   --openmpi FILE  pack this tree, made by scripts/gpu/openmpi-cuda.sh, instead of building one (five minutes; kept in
#                   build/gpu-cache)
#   --no-openmpi    pack no MPI: the GPU machine has one
#   --max-mb N      fail if the file is larger than N MB (default 60)
#   --no-install    install nothing here
#
# The bundle fits machines of this processor type whose C library is not older than this machine's: made on Debian 12, it
# serves Debian 12 and 13 and Ubuntu 24.04. It is unpacked by scripts/gpu-check.sh; nothing is installed there.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

out=build/gpu-bundle
openmpi=""
with_openmpi=true
max_mb=60
install=true
while [ $# -gt 0 ]; do
    case "$1" in
    --out | --openmpi | --max-mb) [ $# -ge 2 ] || fail "$1 needs a value" ;;
    esac
    case "$1" in
    --out) out=$2 && shift ;;
    --openmpi) openmpi=$2 && shift ;;
    --no-openmpi) with_openmpi=false ;;
    --max-mb) max_mb=$2 && shift ;;
    --no-install) install=false ;;
    -h | --help)
        sed -n '2,17s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown option $1 (see --help)" ;;
    esac
    shift
done
command -v dpkg-query >/dev/null || fail "this needs Debian 12 or Ubuntu 24.04: it packs files of installed packages"
command -v readelf >/dev/null || fail "readelf was not found: install binutils"
if $install; then
    say "checking packages"
    scripts/install-deps.sh
fi

if $with_openmpi && [ -z "$openmpi" ]; then
    openmpi=build/gpu-cache/openmpi-cuda.tar.gz
    if [ ! -f "$openmpi" ]; then
        say "building Open MPI for CUDA: about five minutes"
        scripts/gpu/openmpi-cuda.sh "$openmpi"
    fi
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
architecture=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
libraries=lib/$architecture
mkdir -p "$work/bundle/deps/$libraries"

# The names of a package's files that DNDS can use. Static libraries are left out where a shared one is there, apart from
# GoogleTest's, which exists as a static library only.
files_of() {
    dpkg-query -L "$1" | grep -E '^(/usr)?/(include|lib|share/(cmake|eigen3|pkgconfig))/' |
        grep -vE '/(scotch-(int32|int64|long)|openmpi)/.*(esmumps|metis)|scotch-(int64|long)|/eigen3/unsupported' |
        grep -vE '(scotch|hdf5|libz)[^/]*\.a$|_fortran|_cpp\.|H5.*\.mod$|/lib[^/]*metis[^/]*$|esmumps'
}

packages=(libfmt-dev libeigen3-dev libgtest-dev libcli11-dev nlohmann-json3-dev libscotch-dev libptscotch-dev
    libhdf5-openmpi-dev zlib1g-dev)
# What the linker names in these packages lead to.
for package in "${packages[@]}"; do
    while read -r dependency; do
        case "$dependency" in
        libfmt[0-9]* | libscotch-[0-9]* | libptscotch-[0-9]* | libhdf5-openmpi-[0-9]* | libhdf5-openmpi-hl-[0-9]* | \
            libgtest* | libgmock* | zlib1g)
            packages+=("$dependency")
            ;;
        esac
    done < <(dpkg-query -W -f '${Depends}\n' "$package" | tr ',|' '\n' | sed 's/^ *//; s/ .*//; s/:.*//' | sort -u)
done
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)

say "copying headers and libraries of ${packages[*]}"
for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
        fail "package $package is not installed: run scripts/install-deps.sh"
    files_of "$package" | while read -r file; do
        [ -d "$file" ] && [ ! -L "$file" ] && continue
        target=$work/bundle/deps/${file#/}
        target=${target/deps\/usr\//deps/}
        mkdir -p "$(dirname "$target")"
        cp -a "$file" "$target"
        # A link with a whole path (libz.so) leads to its neighbour here, not to a file of the other machine.
        case "$(readlink "$target" || true)" in
        /*) ln -sf "$(basename "$(readlink "$target")")" "$target" ;;
        esac
    done
done

# What those libraries need in turn, apart from the C and C++ run time, which every machine with a compiler has, and MPI.
say "copying what these libraries need"
needed_by() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
path_of() { ldconfig -p | sed -n "s#^[[:space:]]*$1 (.*x86-64.*) => ##p; s#^[[:space:]]*$1 (.*AArch64.*) => ##p" | head -n 1; }
mapfile -t queue < <(find "$work/bundle/deps/$libraries" -name '*.so*' -type f)
while [ ${#queue[@]} -gt 0 ]; do
    file=${queue[0]}
    queue=("${queue[@]:1}")
    for name in $(needed_by "$file"); do
        case "$name" in
        libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.* | ld-linux* | libstdc++.so.* | \
            libgcc_s.so.* | libmpi*.so.*) continue ;;
        esac
        target=$work/bundle/deps/$libraries/$name
        [ -e "$target" ] && continue
        source=$(path_of "$name")
        [ -n "$source" ] || fail "$file needs $name, which the linker does not find here"
        cp -L "$source" "$target"
        queue+=("$target")
    done
done
find "$work/bundle/deps" -name '*.so*' -type f -exec strip --strip-unneeded {} +
find "$work/bundle/deps" -name '*.a' -type f -exec strip --strip-debug {} +

nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
include=$(dirname "$(dirname "$nvcc")")/include
[ ! -d "$include/cccl" ] || include=$include/cccl # as of CUDA 13
cccl=none
if [ -d "$include/cub" ]; then
    say "copying CCCL of $include"
    mkdir "$work/bundle/cccl"
    for folder in cub cuda nv thrust; do cp -rL "$include/$folder" "$work/bundle/cccl/"; done
    cccl=$(sed -nE 's/^#define CUB_VERSION ([0-9]+).*/CUB \1/p' "$include/cub/version.cuh")
fi

if $with_openmpi; then
    say "unpacking Open MPI"
    mkdir "$work/bundle/openmpi"
    tar xzf "$openmpi" -C "$work/bundle/openmpi"
    # Run paths of the old style hold for the libraries of libraries, too, which the bundle has beside each other.
    sed -i 's/ *-Wl,--enable-new-dtags//' "$work"/bundle/openmpi/share/openmpi/*-wrapper-data.txt
    [ -x "$work/bundle/openmpi/bin/mpiexec" ] || fail "$openmpi holds no bin/mpiexec"
    # What misses a library on the other machine would be found out there, too late. Plug-ins for libraries that only
    # this machine is sure to have are left out: Open MPI does without.
    tree=$work/bundle/openmpi
    for file in "$tree"/bin/orterun "$tree"/bin/orted "$tree"/bin/opal_wrapper "$tree"/lib/*.so "$tree"/lib/openmpi/*.so; do
        foreign=$(needed_by "$file" | sed -E '/^(lib(c|m|dl|pthread|rt|util|z|mpi.*|open-.*|mca_.*|ompi.*)|ld-linux.*)\.so/d' | xargs)
        [ -n "$foreign" ] || continue
        case "$file" in
        */lib/openmpi/*)
            echo "left out: $(basename "$file"), which needs $foreign"
            rm "$file"
            ;;
        *) fail "$(basename "$file") of Open MPI needs $foreign, which other machines may not have" ;;
        esac
    done
    missing=$(LD_LIBRARY_PATH=$tree/lib ldd "$tree"/bin/orterun "$tree"/lib/*.so "$tree"/lib/openmpi/*.so |
        sed -n 's/ => not found//p' | sort -u | xargs)
    [ -z "$missing" ] || fail "Open MPI misses $missing"
fi

{
    # shellcheck source=/dev/null
    echo "made $(date -u +%Y-%m-%dT%H:%M:%SZ) on $(. /etc/os-release && echo "$PRETTY_NAME"), $(uname -m)"
    for package in "${packages[@]}"; do dpkg-query -W -f '${Package} ${Version}\n' "$package"; done
    echo "CCCL: $cccl"
    if $with_openmpi; then
        LD_LIBRARY_PATH=$work/bundle/openmpi/lib OPAL_PREFIX=$work/bundle/openmpi \
            "$work/bundle/openmpi/bin/mpiexec" --version | sed -n '1s/^/with CUDA: /p'
    fi
} >"$work/bundle/CONTENTS"

say "packing"
mkdir -p "$out"
tar czf "$out/bundle.tar.gz.partial" -C "$work/bundle" .
mv "$out/bundle.tar.gz.partial" "$out/bundle.tar.gz"
bytes=$(stat -c %s "$out/bundle.tar.gz")
[ "$bytes" -le $((max_mb * 1000000)) ] || fail "$out/bundle.tar.gz has $bytes bytes, more than $max_mb MB"
cat "$work/bundle/CONTENTS"
say "$out/bundle.tar.gz: $((bytes / 1000000)) MB"
