# Installs the libraries, their headers and the CMake package, so that users write
#   find_package(DNDS REQUIRED)
#   target_link_libraries(solver PRIVATE DNDS::DNDS)
#
# Each library is a component of its own (DNDS, Files, OneSided, Blocks, Sparse, Petsc, Hypre, Geom; programs are Tools).
# Libraries that were not built are left out, and find_package says so.
include(CMakePackageConfigHelpers)

set(packageDir "${CMAKE_INSTALL_LIBDIR}/cmake/DNDS")
foreach(library IN ITEMS HDF5 CGNS NETCDF ZLIB)
  get_property(DNDS_HAS_${library} GLOBAL PROPERTY DNDS_HAS_${library})
  if(NOT DNDS_HAS_${library})
    set(DNDS_HAS_${library} FALSE)
  endif()
endforeach()

# dnds_install_library(TARGET COMPONENT): a library, its headers, and its targets for find_package.
function(dnds_install_library target component)
  set(optional OPTIONAL)
  if(target STREQUAL "DNDS") # all need it
    set(optional)
  endif()
  install(
    TARGETS ${target}
    EXPORT ${target}Targets
    ARCHIVE COMPONENT ${component} ${optional}
    LIBRARY COMPONENT ${component} ${optional}
    FILE_SET HEADERS COMPONENT ${component})
  install(
    EXPORT ${target}Targets
    NAMESPACE DNDS::
    DESTINATION "${packageDir}"
    COMPONENT ${component})
endfunction()

# dnds_install_if_built(TARGET COMPONENT PKG_CONFIG): to be called after all else of the library is installed. CMake writes
# the targets for find_package whether the library was built or not.
function(dnds_install_if_built target component pkgConfig)
  install(
    CODE "if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
  message(STATUS \"DNDS::${component} is left out: it was not built\")
  set(installed \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  file(GLOB files \"\${installed}/${packageDir}/${target}Targets*.cmake\")
  file(REMOVE \${files} \"\${installed}/${CMAKE_INSTALL_LIBDIR}/pkgconfig/${pkgConfig}.pc\")
endif()"
    COMPONENT ${component})
endfunction()

dnds_install_library(DNDS DNDS)
set(libraries Files OneSided Blocks Sparse Petsc Hypre Geom) # in the order in which they need each other
foreach(library IN LISTS libraries)
  string(TOUPPER "DNDS_HAS_${library}" has)
  set(${has} FALSE)
  if(TARGET DNDS${library})
    dnds_install_library(DNDS${library} ${library})
    set(${has} TRUE)
  endif()
endforeach()

set(DNDS_GEOM_NEEDS "")
if(DNDS_HAS_SPARSE)
  set(DNDS_GEOM_NEEDS Sparse)
elseif(DNDS_HAS_BLOCKS)
  set(DNDS_GEOM_NEEDS Blocks)
endif()
configure_package_config_file(cmake/DNDSConfig.cmake.in "${PROJECT_BINARY_DIR}/DNDSConfig.cmake"
                              INSTALL_DESTINATION "${packageDir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/DNDSConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(
  FILES "${PROJECT_BINARY_DIR}/DNDSConfig.cmake"
        "${PROJECT_BINARY_DIR}/DNDSConfigVersion.cmake"
        cmake/DNDSKernels.cmake
        cmake/DNDSMpiOfLibrary.cmake
        cmake/FindCGNSLibrary.cmake
        cmake/FindHypreLibrary.cmake
        cmake/FindParallelHDF5.cmake
        cmake/FindParallelNetCDF.cmake
        cmake/FindPetscLibrary.cmake
        cmake/FindPTScotch.cmake
  DESTINATION "${packageDir}"
  COMPONENT DNDS)
# Draws what DNDS_TRACE records; needs Python with Matplotlib, and none of the library.
install(
  FILES python/dnds/trace.py python/dnds/plotting/drawing.py
  DESTINATION "${CMAKE_INSTALL_DATADIR}/dnds"
  COMPONENT Tools)
install(
  FILES LICENSE
  DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  COMPONENT DNDS)

include(DNDSPkgConfig)

foreach(library IN ITEMS Files OneSided Blocks Sparse Geom)
  if(TARGET DNDS${library})
    string(TOLOWER "dnds-${library}" pkgConfig)
    dnds_install_if_built(DNDS${library} ${library} ${pkgConfig})
  endif()
endforeach()
