# Looks for a PETSc that fits this MPI, and defines dnds_bench_petsc.

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

# dnds_bench_petsc(<benchmark> <source> <source without PETSc>): adds to bench_<benchmark> what compares with PETSc, or what
# says that there is none.
function(dnds_bench_petsc benchmark source absent)
  if(DNDS_BENCH_PETSC_FITS)
    target_sources(bench_${benchmark} PRIVATE ${source})
    target_link_libraries(bench_${benchmark} PRIVATE PkgConfig::DNDS_BENCH_PETSC_PKG)
    message(STATUS "bench_${benchmark} compares with PETSc ${DNDS_BENCH_PETSC_PKG_VERSION}")
  else()
    target_sources(bench_${benchmark} PRIVATE ${absent})
    if(DNDS_BENCH_PETSC)
      message(STATUS "bench_${benchmark} goes without PETSc: pkg-config knows none that fits this MPI")
    endif()
  endif()
endfunction()
