# Finds an HDF5 made for the MPI that was found (DNDS_MPI_KIND) and defines ParallelHDF5::ParallelHDF5.
find_path(ParallelHDF5_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/${DNDS_MPI_KIND} hdf5)
find_library(ParallelHDF5_LIBRARY NAMES hdf5_${DNDS_MPI_KIND} hdf5 PATH_SUFFIXES hdf5/${DNDS_MPI_KIND} hdf5)
mark_as_advanced(ParallelHDF5_INCLUDE_DIR ParallelHDF5_LIBRARY)

set(ParallelHDF5_FITS_MPI FALSE)
set(ParallelHDF5_REASON "it is not installed")
if(ParallelHDF5_INCLUDE_DIR AND ParallelHDF5_LIBRARY AND TARGET MPI::MPI_CXX)
  include(CheckCXXSourceCompiles)
  include(CMakePushCheckState)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_QUIET TRUE)
  set(CMAKE_REQUIRED_INCLUDES "${ParallelHDF5_INCLUDE_DIR}")
  set(CMAKE_REQUIRED_LIBRARIES "${ParallelHDF5_LIBRARY}" MPI::MPI_CXX)
  check_cxx_source_compiles(
    "#include <hdf5.h>
     #ifndef H5_HAVE_PARALLEL
     #error serial
     #endif
     int main() { return H5Pset_fapl_mpio(H5Pcreate(H5P_FILE_ACCESS), MPI_COMM_WORLD, MPI_INFO_NULL) < 0; }"
    ParallelHDF5_LINKS)
  cmake_pop_check_state()

  include("${CMAKE_CURRENT_LIST_DIR}/DNDSMpiOfLibrary.cmake")
  dnds_mpi_of_library("${ParallelHDF5_LIBRARY}" _ParallelHDF5_mpi_kind)

  if(NOT ParallelHDF5_LINKS)
    set(ParallelHDF5_REASON "${ParallelHDF5_LIBRARY} is not a parallel HDF5 that links")
  elseif(NOT _ParallelHDF5_mpi_kind STREQUAL DNDS_MPI_KIND)
    set(ParallelHDF5_REASON "${ParallelHDF5_LIBRARY} is made for ${_ParallelHDF5_mpi_kind}, and this MPI is ${DNDS_MPI_KIND}")
  else()
    set(ParallelHDF5_FITS_MPI TRUE)
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  ParallelHDF5
  REQUIRED_VARS ParallelHDF5_LIBRARY ParallelHDF5_INCLUDE_DIR ParallelHDF5_FITS_MPI
  REASON_FAILURE_MESSAGE "${ParallelHDF5_REASON}")

if(ParallelHDF5_FOUND AND NOT TARGET ParallelHDF5::ParallelHDF5)
  add_library(ParallelHDF5::ParallelHDF5 INTERFACE IMPORTED)
  target_include_directories(ParallelHDF5::ParallelHDF5 SYSTEM INTERFACE "${ParallelHDF5_INCLUDE_DIR}")
  target_link_libraries(ParallelHDF5::ParallelHDF5 INTERFACE "${ParallelHDF5_LIBRARY}" MPI::MPI_CXX)
endif()
