# Finds MPI without its obsolete C++ bindings and sets DNDS_MPI_KIND to openmpi, mpich or other.
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI 3.1 QUIET COMPONENTS CXX)
if(NOT MPI_FOUND)
  return() # DNDSRequirements says so, with all else that is missing
endif()

include(CheckCXXSymbolExists)
include(CMakePushCheckState)

cmake_push_check_state(RESET)
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_CXX)
check_cxx_symbol_exists(OPEN_MPI "mpi.h" DNDS_MPI_IS_OPENMPI)
check_cxx_symbol_exists(MPICH_VERSION "mpi.h" DNDS_MPI_IS_MPICH)
cmake_pop_check_state()

if(DNDS_MPI_IS_OPENMPI)
  set(DNDS_MPI_KIND openmpi)
elseif(DNDS_MPI_IS_MPICH)
  set(DNDS_MPI_KIND mpich)
else()
  set(DNDS_MPI_KIND other)
endif()
