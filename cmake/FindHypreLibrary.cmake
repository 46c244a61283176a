# Finds a hypre of real double numbers that fits the MPI that was found (DNDS_MPI_KIND) and defines
# HypreLibrary::HypreLibrary. HYPRE_DIR of the environment, a prefix, comes before what the system has.
find_path(HypreLibrary_INCLUDE_DIR HYPRE.h HINTS ENV HYPRE_DIR PATH_SUFFIXES include hypre)
find_library(HypreLibrary_LIBRARY HYPRE HINTS ENV HYPRE_DIR PATH_SUFFIXES lib)
mark_as_advanced(HypreLibrary_INCLUDE_DIR HypreLibrary_LIBRARY)

set(HypreLibrary_FITS FALSE)
set(HypreLibrary_REASON "it is not installed")
if(HypreLibrary_INCLUDE_DIR AND HypreLibrary_LIBRARY AND TARGET MPI::MPI_CXX)
  include(CheckCXXSourceCompiles)
  include(CMakePushCheckState)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_QUIET TRUE)
  set(CMAKE_REQUIRED_INCLUDES "${HypreLibrary_INCLUDE_DIR}")
  set(CMAKE_REQUIRED_LIBRARIES "${HypreLibrary_LIBRARY}" MPI::MPI_CXX)
  # Of hypre on GPUs the vectors would have to lie there.
  check_cxx_source_compiles(
    "#include <HYPRE.h>
     #include <HYPRE_parcsr_ls.h>
     #include <_hypre_parcsr_mv.h>
     #include <type_traits>
     static_assert(std::is_same<HYPRE_Complex, double>::value, \"\");
     #if defined(HYPRE_USING_GPU) || HYPRE_RELEASE_NUMBER < 22600
     #error not this one
     #endif
     int main() { HYPRE_Solver solver; return static_cast<int>(HYPRE_BoomerAMGCreate(&solver)); }"
    HypreLibrary_LINKS)
  cmake_pop_check_state()

  include("${CMAKE_CURRENT_LIST_DIR}/DNDSMpiOfLibrary.cmake")
  dnds_mpi_of_library("${HypreLibrary_LIBRARY}" _HypreLibrary_mpi_kind)

  if(NOT HypreLibrary_LINKS)
    set(HypreLibrary_REASON "${HypreLibrary_LIBRARY} is for GPUs, for other numbers than double, older than 2.26, or does not link")
  elseif(NOT _HypreLibrary_mpi_kind STREQUAL DNDS_MPI_KIND)
    set(HypreLibrary_REASON "${HypreLibrary_LIBRARY} is made for ${_HypreLibrary_mpi_kind}, and this MPI is ${DNDS_MPI_KIND}")
  else()
    set(HypreLibrary_FITS TRUE)
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  HypreLibrary
  REQUIRED_VARS HypreLibrary_LIBRARY HypreLibrary_INCLUDE_DIR HypreLibrary_FITS
  REASON_FAILURE_MESSAGE "${HypreLibrary_REASON}")

if(HypreLibrary_FOUND AND NOT TARGET HypreLibrary::HypreLibrary)
  add_library(HypreLibrary::HypreLibrary INTERFACE IMPORTED)
  target_include_directories(HypreLibrary::HypreLibrary SYSTEM INTERFACE "${HypreLibrary_INCLUDE_DIR}")
  target_link_libraries(HypreLibrary::HypreLibrary INTERFACE "${HypreLibrary_LIBRARY}" MPI::MPI_CXX)
endif()
