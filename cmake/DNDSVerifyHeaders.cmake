# dnds_verify_headers(<library> <header>...): adds to the target `verify_headers` one translation unit for each public
# header of <library> and each of the private ones listed, which includes that header twice and nothing before it. CI
# builds the target with warnings as errors.
function(dnds_verify_headers library)
  get_target_property(headers ${library} HEADER_SET)
  list(APPEND headers ${ARGN})
  get_target_property(baseDirs ${library} HEADER_DIRS)
  list(GET baseDirs 0 baseDir)

  set(sources "")
  foreach(header IN LISTS headers)
    cmake_path(ABSOLUTE_PATH header BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${baseDir}" OUTPUT_VARIABLE name)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/verify_headers/${name}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${name}\"\n#include \"${name}\"\n")
    list(APPEND sources "${source}")
  endforeach()

  add_library(${library}_verify_headers OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${library}_verify_headers PRIVATE ${library})
  dnds_target_flags(${library}_verify_headers)
  target_compile_options(${library}_verify_headers PRIVATE -O0) # the code is not used

  if(NOT TARGET verify_headers)
    add_custom_target(verify_headers)
  endif()
  add_dependencies(verify_headers ${library}_verify_headers)
endfunction()
