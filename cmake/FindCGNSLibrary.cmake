# Finds the CGNS library and defines CGNSLibrary::CGNSLibrary. Distributions link it to a serial HDF5; the symbols of both
# HDF5s have versions of their own there, so that one program can hold both, but no source file may include both.
find_path(CGNSLibrary_INCLUDE_DIR cgns_io.h)
find_library(CGNSLibrary_LIBRARY cgns)
mark_as_advanced(CGNSLibrary_INCLUDE_DIR CGNSLibrary_LIBRARY)

set(CGNSLibrary_WORKS FALSE)
set(CGNSLibrary_REASON "it is not installed")
if(CGNSLibrary_INCLUDE_DIR AND CGNSLibrary_LIBRARY)
  include(CheckCXXSourceCompiles)
  include(CMakePushCheckState)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_QUIET TRUE)
  set(CMAKE_REQUIRED_INCLUDES "${CGNSLibrary_INCLUDE_DIR}")
  set(CMAKE_REQUIRED_LIBRARIES "${CGNSLibrary_LIBRARY}")
  check_cxx_source_compiles(
    "#include <cgns_io.h>
     int main() { int file; return cgio_open_file(\"\", CGIO_MODE_READ, CGIO_FILE_ADF, &file)
                               + cgio_read_block_data(file, 0.0, 1, 1, nullptr); }"
    CGNSLibrary_LINKS)
  cmake_pop_check_state()
  if(CGNSLibrary_LINKS)
    set(CGNSLibrary_WORKS TRUE)
  else()
    set(CGNSLibrary_REASON "a program that calls ${CGNSLibrary_LIBRARY} does not link")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  CGNSLibrary
  REQUIRED_VARS CGNSLibrary_LIBRARY CGNSLibrary_INCLUDE_DIR CGNSLibrary_WORKS
  REASON_FAILURE_MESSAGE "${CGNSLibrary_REASON}")

if(CGNSLibrary_FOUND AND NOT TARGET CGNSLibrary::CGNSLibrary)
  add_library(CGNSLibrary::CGNSLibrary INTERFACE IMPORTED)
  target_include_directories(CGNSLibrary::CGNSLibrary SYSTEM INTERFACE "${CGNSLibrary_INCLUDE_DIR}")
  target_link_libraries(CGNSLibrary::CGNSLibrary INTERFACE "${CGNSLibrary_LIBRARY}")
endif()
