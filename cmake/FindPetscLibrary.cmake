# Finds a PETSc of real double numbers that fits the MPI that was found, by pkg-config, and defines
# PetscLibrary::PetscLibrary. PETSC_DIR and PETSC_ARCH of the environment come before what the system has.
find_package(PkgConfig QUIET)

set(PetscLibrary_FITS FALSE)
set(PetscLibrary_REASON "pkg-config knows none")
if(PkgConfig_FOUND AND TARGET MPI::MPI_CXX)
  set(_PetscLibrary_prefixes "${CMAKE_PREFIX_PATH}")
  if(DEFINED ENV{PETSC_DIR})
    list(PREPEND CMAKE_PREFIX_PATH "$ENV{PETSC_DIR}/$ENV{PETSC_ARCH}")
  endif()
  pkg_search_module(PetscLibrary QUIET petsc PETSc)
  set(CMAKE_PREFIX_PATH "${_PetscLibrary_prefixes}")
  # Of the flags only these: Debian's have _FORTIFY_SOURCE among them, which needs optimization.
  set(PetscLibrary_LIBRARY "${PetscLibrary_LINK_LIBRARIES}")
  set(PetscLibrary_INCLUDE_DIR "${PetscLibrary_INCLUDE_DIRS}")
endif()

if(PetscLibrary_LIBRARY)
  # PETSc's headers refuse an MPI other than the one they were configured with.
  include(CheckCXXSourceCompiles)
  include(CMakePushCheckState)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_QUIET TRUE)
  set(CMAKE_REQUIRED_INCLUDES "${PetscLibrary_INCLUDE_DIR}")
  set(CMAKE_REQUIRED_LIBRARIES "${PetscLibrary_LIBRARY}" MPI::MPI_CXX)
  check_cxx_source_compiles(
    "#include <petscksp.h>
     #include <type_traits>
     static_assert(std::is_same<PetscScalar, double>::value);
     int main() { KSP solver; return static_cast<int>(KSPCreate(MPI_COMM_WORLD, &solver)); }"
    PetscLibrary_LINKS)
  cmake_pop_check_state()
  if(PetscLibrary_LINKS)
    set(PetscLibrary_FITS TRUE)
  else()
    set(PetscLibrary_REASON "${PetscLibrary_LIBRARY} is made for another MPI or for other numbers than double, or does not link")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  PetscLibrary
  REQUIRED_VARS PetscLibrary_LIBRARY PetscLibrary_INCLUDE_DIR PetscLibrary_FITS
  VERSION_VAR PetscLibrary_VERSION
  REASON_FAILURE_MESSAGE "${PetscLibrary_REASON}")

if(PetscLibrary_FOUND AND NOT TARGET PetscLibrary::PetscLibrary)
  add_library(PetscLibrary::PetscLibrary INTERFACE IMPORTED)
  target_include_directories(PetscLibrary::PetscLibrary SYSTEM INTERFACE "${PetscLibrary_INCLUDE_DIR}")
  target_link_libraries(PetscLibrary::PetscLibrary INTERFACE "${PetscLibrary_LIBRARY}" MPI::MPI_CXX)
endif()
