# What the library cannot do without: finds it, or ends with a list of all that is missing.
set(missing "")

include(DNDSFindMpi)
if(NOT MPI_FOUND)
  string(APPEND missing "  MPI 3.1 or newer for C++ (libopenmpi-dev); -DMPI_CXX_COMPILER=... names a compiler wrapper\n")
endif()
find_package(fmt QUIET)
if(NOT fmt_FOUND)
  string(APPEND missing "  fmt (libfmt-dev); -Dfmt_ROOT=... says where it is installed\n")
endif()
find_package(Eigen3 QUIET NO_MODULE)
if(NOT Eigen3_FOUND)
  string(APPEND missing "  Eigen 3 (libeigen3-dev); -DEigen3_ROOT=... says where it is installed\n")
endif()

if(missing)
  set(options "cmake")
  if(SKBUILD)
    set(options "pip as --config-settings=cmake.define.NAME=VALUE")
  endif()
  message(FATAL_ERROR "DNDS needs, and did not find:\n${missing}"
                      "scripts/install-deps.sh installs all of it on Debian 12 and Ubuntu 24.04. "
                      "Options are passed to ${options}.")
endif()
unset(missing)
