# Files of pkg-config, one a library, for builds without CMake: mpicxx solver.cpp $(pkg-config --cflags --libs dnds-geom)
#
# They find their prefix by where they lie, so that an installation can be moved. MPI is left to mpicxx.

# dnds_pkg_config(NAME LIBRARY REQUIRES names... LIBS paths and flags...)
function(dnds_pkg_config name library)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "REQUIRES;LIBS;CFLAGS")
  list(JOIN arg_REQUIRES " " requires)
  list(JOIN arg_LIBS " " libs)
  list(JOIN arg_CFLAGS " " cflags)
  get_target_property(type ${library} TYPE)
  set(link "-L\${libdir} -l${library} ")
  if(type STREQUAL "INTERFACE_LIBRARY") # headers only
    set(link "")
  endif()
  file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  file(
    CONFIGURE
    OUTPUT "${PROJECT_BINARY_DIR}/${name}.pc"
    CONTENT
      "prefix=\${pcfiledir}/${up}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}

Name: ${name}
Description: ${PROJECT_DESCRIPTION} (${library}); compile and link with mpicxx
Version: ${PROJECT_VERSION}
Requires: ${requires}
Cflags: -std=c++20 -I\${includedir} ${cflags}
Libs: ${link}${libs}
"
    @ONLY)
  string(REGEX REPLACE "^DNDS(.)" "\\1" component ${library})
  install(
    FILES "${PROJECT_BINARY_DIR}/${name}.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    COMPONENT ${component})
endfunction()

set(requires fmt eigen3)
set(libs)
set(cflags)
if(DNDS_DEVICE STREQUAL "cuda")
  list(APPEND libs "-L${CUDAToolkit_LIBRARY_DIR}" -lcudart)
endif()
list(APPEND libs -pthread)
if(DNDS_SANITIZE)
  list(APPEND libs "-fsanitize=${DNDS_SANITIZE}")
endif()
if(DNDS_DEBUG_CHECKS) # which headers ask for
  list(APPEND cflags -DDNDS_DEBUG_CHECKS)
endif()
dnds_pkg_config(dnds DNDS REQUIRES ${requires} LIBS ${libs} CFLAGS ${cflags})

set(hdf5)
if(DNDS_HAS_HDF5)
  set(hdf5 "${ParallelHDF5_LIBRARY}")
endif()
if(DNDS_HAS_FILES)
  set(netcdf)
  if(DNDS_HAS_NETCDF)
    set(netcdf "${ParallelNetCDF_LIBRARY}")
  endif()
  dnds_pkg_config(dnds-files DNDSFiles REQUIRES dnds zlib LIBS ${netcdf} ${hdf5})
endif()
if(DNDS_HAS_ONESIDED)
  set(cflags)
  if(DNDS_CUDA_PROXY)
    set(cflags -DDNDS_CUDA_PROXY)
  endif()
  dnds_pkg_config(dnds-onesided DNDSOneSided REQUIRES dnds CFLAGS ${cflags})
endif()
if(DNDS_HAS_BLOCKS)
  dnds_pkg_config(dnds-blocks DNDSBlocks REQUIRES dnds)
endif()
if(DNDS_HAS_SPARSE)
  dnds_pkg_config(dnds-sparse DNDSSparse REQUIRES dnds-blocks)
endif()
if(DNDS_HAS_PETSC)
  dnds_pkg_config(dnds-petsc DNDSPetsc REQUIRES dnds "${PetscLibrary_MODULE_NAME}")
endif()
if(DNDS_HAS_HYPRE)
  dnds_pkg_config(dnds-hypre DNDSHypre REQUIRES dnds LIBS "${HypreLibrary_LIBRARY}" CFLAGS "-isystem ${HypreLibrary_INCLUDE_DIR}")
endif()
if(DNDS_HAS_GEOM)
  set(cgns)
  if(DNDS_HAS_CGNS)
    set(cgns "${CGNSLibrary_LIBRARY}")
  endif()
  set(fields dnds)
  if(DNDS_HAS_SPARSE)
    set(fields dnds-sparse)
  elseif(DNDS_HAS_BLOCKS)
    set(fields dnds-blocks)
  endif()
  if(ZLIB_FOUND)
    list(APPEND fields zlib)
  endif()
  dnds_pkg_config(dnds-geom DNDSGeom REQUIRES ${fields} LIBS ${cgns} ${hdf5} "${PTScotch_LIBRARY}" "${PTScotch_SCOTCH_LIBRARY}"
                  "${PTScotch_ERROR_LIBRARY}")
endif()
