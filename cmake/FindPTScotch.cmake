# Finds PT-Scotch and defines PTScotch::PTScotch. It counts as found only where a program that calls it links, and where
# a shared PT-Scotch names the MPI that was found (DNDS_MPI_KIND): Debian's is made for Open MPI, and with MPICH it would
# link all the same, load both MPI libraries and crash.
find_path(PTScotch_INCLUDE_DIR ptscotch.h PATH_SUFFIXES scotch scotch-int32 ptscotch)
foreach(suffix IN ITEMS "" scotch-int32)
  find_library(PTScotch_LIBRARY ptscotch PATH_SUFFIXES ${suffix})
  find_library(PTScotch_SCOTCH_LIBRARY scotch PATH_SUFFIXES ${suffix})
  find_library(PTScotch_ERROR_LIBRARY ptscotcherr PATH_SUFFIXES ${suffix})
endforeach()
mark_as_advanced(PTScotch_INCLUDE_DIR PTScotch_LIBRARY PTScotch_SCOTCH_LIBRARY PTScotch_ERROR_LIBRARY)

set(PTScotch_FITS_MPI FALSE)
set(PTScotch_REASON "it is not installed")
if(PTScotch_INCLUDE_DIR AND PTScotch_LIBRARY AND PTScotch_SCOTCH_LIBRARY AND PTScotch_ERROR_LIBRARY AND TARGET MPI::MPI_CXX)
  include(CheckCXXSourceCompiles)
  include(CMakePushCheckState)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_QUIET TRUE)
  set(CMAKE_REQUIRED_INCLUDES "${PTScotch_INCLUDE_DIR}")
  set(CMAKE_REQUIRED_LIBRARIES "${PTScotch_LIBRARY}" "${PTScotch_SCOTCH_LIBRARY}" "${PTScotch_ERROR_LIBRARY}"
                               MPI::MPI_CXX)
  check_cxx_source_compiles(
    "#include <mpi.h>
     #include <cstdint>
     #include <cstdio>
     #include <ptscotch.h>
     int main() { SCOTCH_Dgraph graph; return SCOTCH_dgraphInit(&graph, MPI_COMM_WORLD); }"
    PTScotch_LINKS)
  cmake_pop_check_state()

  include("${CMAKE_CURRENT_LIST_DIR}/DNDSMpiOfLibrary.cmake")
  dnds_mpi_of_library("${PTScotch_LIBRARY}" _PTScotch_mpi_kind)

  if(NOT PTScotch_LINKS)
    set(PTScotch_REASON "a program that calls ${PTScotch_LIBRARY} does not link")
  elseif(NOT _PTScotch_mpi_kind STREQUAL DNDS_MPI_KIND)
    set(PTScotch_REASON "${PTScotch_LIBRARY} is made for ${_PTScotch_mpi_kind}, and this MPI is ${DNDS_MPI_KIND}")
  else()
    set(PTScotch_FITS_MPI TRUE)
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  PTScotch
  REQUIRED_VARS PTScotch_LIBRARY PTScotch_SCOTCH_LIBRARY PTScotch_ERROR_LIBRARY PTScotch_INCLUDE_DIR PTScotch_FITS_MPI
  REASON_FAILURE_MESSAGE "${PTScotch_REASON}")

if(PTScotch_FOUND AND NOT TARGET PTScotch::PTScotch)
  add_library(PTScotch::PTScotch INTERFACE IMPORTED)
  target_include_directories(PTScotch::PTScotch SYSTEM INTERFACE "${PTScotch_INCLUDE_DIR}")
  target_link_libraries(PTScotch::PTScotch INTERFACE "${PTScotch_LIBRARY}" "${PTScotch_SCOTCH_LIBRARY}"
                                                     "${PTScotch_ERROR_LIBRARY}" MPI::MPI_CXX)
endif()
