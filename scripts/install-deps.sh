#!/usr/bin/env bash
# Installs what DNDS needs from the packages of Debian 12 or Ubuntu 24.04, and only what is missing.
#
#   scripts/install-deps.sh [--mpich] [--petsc] [--plot] [--lint] [--docs] [--sanitizers] [--python]
#
# Without options: compiler, CMake, Ninja, Open MPI, fmt, Eigen, GoogleTest, CLI11, nlohmann-json, PT-Scotch,
# parallel HDF5, parallel NetCDF, the CGNS library and zlib.
#   --mpich  MPICH besides Open MPI (preset mpich)
#   --petsc  PETSc, petsc4py and hypre: for DNDS::Petsc, dnds.petsc, DNDS::Hypre; with p4est as baselines of benchmarks
#   --plot   Matplotlib, h5py and netCDF4, for pictures and to read what was written
#   --lint   what continuous integration needs besides: ccache, clang, clang-format, clang-tidy, doxygen, shellcheck, iproute2
#            (network tests), spdlog (an example), VTK and meshio (tests of the Python package use them)
#   --docs   what scripts/docs.sh needs: doxygen, and Python that makes virtual environments
#   --python what the Python package needs: headers, mpi4py, NumPy, pytest, and nanobind in build/python-venv
#   --sanitizers  names of the C library's functions, by which known leaks of MPI libraries are told from ours
set -euo pipefail

# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/say.sh"

packages=(g++ cmake ninja-build pkg-config openmpi-bin libopenmpi-dev libfmt-dev libeigen3-dev
    libgtest-dev libcli11-dev nlohmann-json3-dev libptscotch-dev libhdf5-openmpi-dev libcgns-dev
    zlib1g-dev)
optional=(libnetcdf-pnetcdf-dev)
python=false
for argument in "$@"; do
    case "$argument" in
    --mpich) packages+=(mpich libmpich-dev) ;;
    --petsc) optional+=(petsc-dev python3-petsc4py libhypre-dev libp4est-dev) ;;
    --plot) packages+=(python3 python3-numpy python3-matplotlib python3-h5py python3-netcdf4) ;;
    --lint) packages+=(ccache clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 doxygen libspdlog-dev shellcheck git iproute2
        python3-meshio python3-venv
        python3-vtk9) ;;
    --docs) packages+=(doxygen python3-venv) ;;
    --sanitizers) packages+=(libc6-dbg) ;;
    --python)
        python=true
        packages+=(python3-dev python3-venv python3-pip python3-mpi4py python3-numpy python3-pytest python3-h5py
            python3-matplotlib)
        ;;
    -h | --help)
        sed -n '2,15s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown option $argument (see --help)" ;;
    esac
done

# nanobind and scikit-build-core come from PyPI, into an environment of the distribution's Python, whose mpi4py belongs to
# the distribution's MPI. CMake finds it there, and leaves the Python package out where it is not.
make_python_environment() {
    $python || return 0
    local venv
    venv=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/python-venv
    if [ -x "$venv/bin/python3" ] && "$venv/bin/python3" -c 'import nanobind, scikit_build_core' 2>/dev/null; then
        return 0
    fi
    say "installing nanobind and scikit-build-core into $venv"
    { /usr/bin/python3 -m venv --system-site-packages "$venv" &&
        "$venv/bin/pip" install --quiet --disable-pip-version-check 'nanobind>=2.4,<4' 'scikit-build-core>=0.10' \
            'packaging>=24'; } ||
        say "SKIPPED: nanobind could not be had from PyPI (no network?); the Python package is left out"
}

version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

check_tools() {
    command -v cmake >/dev/null || fail "cmake was not found: install CMake 3.25 or newer"
    local cmake_version
    cmake_version=$(cmake --version | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')
    version_at_least "$cmake_version" 3.25 || fail "CMake $cmake_version is too old: 3.25 or newer is needed"
    local compiler=${CXX:-c++}
    command -v "$compiler" >/dev/null || fail "no C++ compiler ($compiler) was found: install g++ 12 or newer"
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "not a Debian-like system: nothing is installed. Needed are a C++20 compiler, CMake 3.25, Ninja, MPI, fmt," \
        "Eigen 3, GoogleTest, CLI11, nlohmann-json and, for DNDS::Geom, PT-Scotch, parallel HDF5 and the CGNS library, for DNDS::Files zlib, parallel HDF5 and parallel NetCDF"
    check_tools
    exit 0
fi

installed() { dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null | grep -q '^installed$'; }

missing=()
for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
missing_optional=()
for package in "${optional[@]}"; do installed "$package" || missing_optional+=("$package"); done

if [ ${#missing[@]} -eq 0 ] && [ ${#missing_optional[@]} -eq 0 ]; then
    say "every package is there"
    check_tools
    make_python_environment
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        if [ ${#missing[@]} -eq 0 ]; then
            say "SKIPPED: ${missing_optional[*]} (neither root nor sudo is at hand)"
            check_tools
            make_python_environment
            exit 0
        fi
        fail "missing packages: ${missing[*]}. Neither root nor sudo is at hand: ask for 'apt-get install ${missing[*]}'"
    fi
    as_root=(sudo)
fi
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq "$@" </dev/null; }

say "installing ${missing[*]} ${missing_optional[*]}"
apt update || say "apt-get update failed (no network?); trying with the package lists at hand"
if [ ${#missing[@]} -gt 0 ]; then
    apt install --no-install-recommends -y "${missing[@]}" >/dev/null ||
        fail "apt-get could not install ${missing[*]}: is the network there, and is this Debian 12 or Ubuntu 24.04?"
fi
if [ ${#missing_optional[@]} -gt 0 ]; then
    apt install --no-install-recommends -y "${missing_optional[@]}" >/dev/null ||
        say "${missing_optional[*]} could not be installed; going on without"
fi
check_tools
make_python_environment
