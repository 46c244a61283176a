# Finds a NetCDF library that reads and writes classic and NetCDF-4 files in parallel, made for the MPI that was found
# (DNDS_MPI_KIND), and defines ParallelNetCDF::ParallelNetCDF. Not find_package(netCDF), which takes any flavour: a serial
# one, whose symbols would meet those of the parallel one, too.
find_library(ParallelNetCDF_LIBRARY NAMES netcdf_pnetcdf netcdf)
get_filename_component(_ParallelNetCDF_folder "${ParallelNetCDF_LIBRARY}" DIRECTORY)
find_path(ParallelNetCDF_INCLUDE_DIR netcdf_par.h
          HINTS "${_ParallelNetCDF_folder}/netcdf/pnetcdf/include" "${_ParallelNetCDF_folder}/../include")
mark_as_advanced(ParallelNetCDF_INCLUDE_DIR ParallelNetCDF_LIBRARY)

set(ParallelNetCDF_FITS_MPI FALSE)
set(ParallelNetCDF_REASON "it is not installed: Debian and Ubuntu have it as libnetcdf-pnetcdf-dev")
if(ParallelNetCDF_INCLUDE_DIR AND ParallelNetCDF_LIBRARY AND TARGET MPI::MPI_CXX)
  include(CheckCXXSourceCompiles)
  include(CMakePushCheckState)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_QUIET TRUE)
  set(CMAKE_REQUIRED_INCLUDES "${ParallelNetCDF_INCLUDE_DIR}")
  set(CMAKE_REQUIRED_LIBRARIES "${ParallelNetCDF_LIBRARY}" MPI::MPI_CXX)
  check_cxx_source_compiles(
    "#include <netcdf.h>
     #include <netcdf_meta.h>
     #include <netcdf_par.h>
     #if !NC_HAS_PARALLEL4 || !NC_HAS_PNETCDF || !NC_HAS_CDF5
     #error lacks one of them
     #endif
     int main() { int file; return nc_open_par(\"\", NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file); }"
    ParallelNetCDF_LINKS)
  cmake_pop_check_state()

  include("${CMAKE_CURRENT_LIST_DIR}/DNDSMpiOfLibrary.cmake")
  dnds_mpi_of_library("${ParallelNetCDF_LIBRARY}" _ParallelNetCDF_mpi_kind)

  if(NOT ParallelNetCDF_LINKS)
    set(ParallelNetCDF_REASON
        "${ParallelNetCDF_LIBRARY} lacks parallel classic files, parallel NetCDF-4 or CDF-5, or does not link")
  elseif(NOT _ParallelNetCDF_mpi_kind STREQUAL DNDS_MPI_KIND)
    set(ParallelNetCDF_REASON
        "${ParallelNetCDF_LIBRARY} is made for ${_ParallelNetCDF_mpi_kind}, and this MPI is ${DNDS_MPI_KIND}")
  else()
    set(ParallelNetCDF_FITS_MPI TRUE)
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  ParallelNetCDF
  REQUIRED_VARS ParallelNetCDF_LIBRARY ParallelNetCDF_INCLUDE_DIR ParallelNetCDF_FITS_MPI
  REASON_FAILURE_MESSAGE "${ParallelNetCDF_REASON}")

if(ParallelNetCDF_FOUND AND NOT TARGET ParallelNetCDF::ParallelNetCDF)
  add_library(ParallelNetCDF::ParallelNetCDF INTERFACE IMPORTED)
  target_include_directories(ParallelNetCDF::ParallelNetCDF SYSTEM INTERFACE "${ParallelNetCDF_INCLUDE_DIR}")
  target_link_libraries(ParallelNetCDF::ParallelNetCDF INTERFACE "${ParallelNetCDF_LIBRARY}" MPI::MPI_CXX)
endif()
