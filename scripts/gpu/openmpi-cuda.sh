#!/usr/bin/env bash
# Builds a small Open MPI 4.1.4 that takes device pointers, from Debian's source package: a relocatable tree of a few
# megabytes. It is ABI-compatible with Debian's and Ubuntu's Open MPI 4: programs and libraries made for those run on it.
# Takes about five minutes on two cores and needs CUDA's headers, but neither a driver nor a GPU.
#
#   scripts/gpu/openmpi-cuda.sh FILE.tar.gz
set -euo pipefail

# shellcheck source=/dev/null
. "$(dirname "$0")/../say.sh"
[ $# -eq 1 ] || fail "usage: scripts/gpu/openmpi-cuda.sh FILE.tar.gz"
out=$(realpath -m "$1")

cuda=${CUDA_HOME:-}
if [ -z "$cuda" ]; then
    nvcc=$(command -v nvcc || true)
    [ -n "$nvcc" ] || nvcc=/usr/local/cuda/bin/nvcc
    cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
fi
[ -f "$cuda/include/cuda.h" ] || fail "no cuda.h under $cuda/include: set CUDA_HOME to the folder of the CUDA toolkit"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -f "$keyring" ] || fail "$keyring is missing: this needs Debian's keyring (package debian-archive-keyring)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# A package list of its own: the system's sources may hold no deb-src line, and need not be changed for one.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
    sed -nE 's#^[^\#]*(https?://[^ ]*/debian)/?( .*)?$#\1#p' | head -n 1 || true)
mkdir -p lists/partial cache/archives/partial
echo "deb-src [signed-by=$keyring] ${mirror:-http://deb.debian.org/debian} bookworm main" >src.list
apt=(apt-get -q -o "Dir::Etc::SourceList=$work/src.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
logged() { # FILE COMMAND...: quiet unless it fails
    local log=$1
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        fail "$* failed"
    }
}
logged update.log "${apt[@]}" update
logged source.log "${apt[@]}" source --download-only openmpi
tar xf openmpi_4.1.4.orig.tar.*
mkdir build
cd build
# Everything that a machine with one GPU does not need is left out; hwloc, libevent and PMIx are those in the source.
logged configure.log ../openmpi-4.1.4/configure --prefix=/opt/openmpi-cuda --with-cuda="$cuda" \
    --disable-mpi-fortran --disable-oshmem --disable-mpi-java --disable-mpi-cxx \
    --enable-mca-no-build=btl-uct,btl-openib,btl-usnic,coll-fca,coll-hcoll,io-romio321,vprotocol,crs,snapc,sstore,reachable-netlink \
    --without-verbs --without-ucx --without-ofi --without-psm --without-psm2 --without-knem \
    --with-hwloc=internal --with-libevent=internal --with-pmix=internal \
    --without-slurm --without-tm --without-lsf --without-sge --enable-static=no --enable-shared \
    --disable-dependency-tracking --enable-builtin-atomics --without-memory-manager --disable-io-romio \
    --enable-orterun-prefix-by-default CFLAGS="-O2 -g0 -DNDEBUG"
logged make.log make -j"$(nproc)" V=0
logged install.log make install DESTDIR="$work/installed"

cd "$work/installed/opt/openmpi-cuda"
rm -rf share/man share/doc
find . -name '*.so*' -type f -exec strip --strip-unneeded {} +
mkdir -p "$(dirname "$out")"
tar czf "$out.partial" .
mv "$out.partial" "$out"
