# How the libraries are put together: each folder of src lists its own files, and adds them to the library it belongs to.

# dnds_add_library(<name> [<linked>...]): the library DNDS::<name>, without sources as yet, for users of what is <linked>.
function(dnds_add_library name)
  set(target DNDS${name})
  if(name STREQUAL "DNDS")
    set(target DNDS)
  endif()
  add_library(${target})
  add_library(DNDS::${name} ALIAS ${target})
  # Shared libraries lie in one folder and find each other there.
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON INSTALL_RPATH "$ORIGIN"
                                             VERSION ${PROJECT_VERSION}
                                             SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_link_libraries(${target} PUBLIC ${ARGN})
endfunction()

# dnds_add_folder(<target> <folder> [HEADERS <file>...] [PRIVATE_HEADERS <file>...] [SOURCES <file>...]): the files of this
# folder, which headers include as DNDS/<folder>/<file>. HEADERS are installed.
function(dnds_add_folder target folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "HEADERS;PRIVATE_HEADERS;SOURCES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "dnds_add_folder(${folder}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  list(TRANSFORM arg_HEADERS PREPEND "${PROJECT_SOURCE_DIR}/src/DNDS/${folder}/")
  list(TRANSFORM arg_PRIVATE_HEADERS PREPEND "${PROJECT_SOURCE_DIR}/src/DNDS/${folder}/")
  list(TRANSFORM arg_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  target_sources(
    ${target}
    PRIVATE ${arg_SOURCES}
    PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/src" FILES ${arg_HEADERS})
  set_property(TARGET ${target} APPEND PROPERTY DNDS_PRIVATE_HEADERS ${arg_PRIVATE_HEADERS})
endfunction()

# dnds_end_library(<target> [APART <source>...]): to be called where the target was made, after its folders.
function(dnds_end_library target)
  dnds_target_flags(${target})
  dnds_unity(${target} ${ARGN})
  get_target_property(privateHeaders ${target} DNDS_PRIVATE_HEADERS)
  if(NOT privateHeaders)
    set(privateHeaders "")
  endif()
  dnds_verify_headers(${target} ${privateHeaders})
endfunction()
