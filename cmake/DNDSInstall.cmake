# Installs the libraries, their headers and the CMake package, so that users write
#   find_package(DNDS REQUIRED)
#   target_link_libraries(solver PRIVATE DNDS::DNDS)
include(CMakePackageConfigHelpers)

set(targets DNDS)
foreach(library IN ITEMS HDF5 CGNS NETCDF TBB)
  get_property(DNDS_HAS_${library} GLOBAL PROPERTY DNDS_HAS_${library})
  if(NOT DNDS_HAS_${library})
    set(DNDS_HAS_${library} FALSE)
  endif()
endforeach()
foreach(library IN ITEMS Serialize GridFile Petsc Hypre Geom)
  string(TOUPPER "DNDS_HAS_${library}" has)
  set(${has} FALSE)
  if(TARGET DNDS${library})
    list(APPEND targets DNDS${library})
    set(${has} TRUE)
  endif()
endforeach()

install(
  TARGETS ${targets}
  EXPORT DNDSTargets
  FILE_SET HEADERS)

set(packageDir "${CMAKE_INSTALL_LIBDIR}/cmake/DNDS")
install(EXPORT DNDSTargets NAMESPACE DNDS:: DESTINATION "${packageDir}")
configure_package_config_file(cmake/DNDSConfig.cmake.in "${PROJECT_BINARY_DIR}/DNDSConfig.cmake"
                              INSTALL_DESTINATION "${packageDir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/DNDSConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/DNDSConfig.cmake" "${PROJECT_BINARY_DIR}/DNDSConfigVersion.cmake"
        DESTINATION "${packageDir}")
install(FILES cmake/DNDSKernels.cmake cmake/DNDSMpiOfLibrary.cmake cmake/FindCGNSLibrary.cmake
              cmake/FindHypreLibrary.cmake
              cmake/FindParallelHDF5.cmake cmake/FindParallelNetCDF.cmake cmake/FindPetscLibrary.cmake cmake/FindPTScotch.cmake
        DESTINATION "${packageDir}")
# Draws what DNDS_TRACE records; needs Python with Matplotlib, and none of the library.
install(FILES python/dnds/trace.py DESTINATION "${CMAKE_INSTALL_DATADIR}/dnds")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")

include(DNDSPkgConfig)
