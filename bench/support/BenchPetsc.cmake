# Sets DNDS_BENCH_PETSC_FITS and the target PkgConfig::DNDS_BENCH_PETSC_PKG where there is a PETSc for this MPI.

option(DNDS_BENCH_PETSC "Compare with PETSc where it fits this MPI" ON)
if(DNDS_BENCH_PETSC)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_search_module(DNDS_BENCH_PETSC_PKG QUIET IMPORTED_TARGET petsc PETSc)
  endif()
  if(DNDS_BENCH_PETSC_PKG_FOUND)
    # PETSc's headers refuse an MPI other than the one they were configured with.
    include(CheckCXXSourceCompiles)
    include(CMakePushCheckState)
    cmake_push_check_state(RESET)
    set(CMAKE_REQUIRED_QUIET ON)
    set(CMAKE_REQUIRED_LIBRARIES PkgConfig::DNDS_BENCH_PETSC_PKG MPI::MPI_CXX)
    check_cxx_source_compiles(
      "#include <petscsf.h>
       int main() { PetscSF forest; return static_cast<int>(PetscSFCreate(MPI_COMM_WORLD, &forest)); }"
      DNDS_BENCH_PETSC_FITS)
    cmake_pop_check_state()
  endif()
else()
  set(DNDS_BENCH_PETSC_FITS FALSE)
endif()
