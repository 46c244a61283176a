# Flags are set target by target; nothing here touches CMAKE_CXX_FLAGS.

# dnds_target_flags(<target>): warnings, sanitizers and tuning for one of our own targets. None of it reaches users.
function(dnds_target_flags target)
  set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    list(APPEND warnings -Wno-missing-braces) # of members that are std::array
  endif()
  if(DNDS_WARNINGS_AS_ERRORS)
    list(APPEND warnings -Werror)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")

  if(DNDS_NATIVE)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-march=native>")
  endif()

  if(DNDS_DEBUG_CHECKS)
    # Bounds checks inside the standard library; they change no class layout.
    target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
  endif()

  if(DNDS_SANITIZE)
    # -O1 keeps instrumented tests fast enough; it comes after the -O0 of a Debug build.
    set(sanitize -fsanitize=${DNDS_SANITIZE} -fno-omit-frame-pointer)
    if(DNDS_SANITIZE MATCHES "undefined")
      list(APPEND sanitize -fno-sanitize-recover=undefined)
    endif()
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${sanitize};-O1>")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND DNDS_SANITIZE MATCHES "address")
      target_compile_definitions(${target} PRIVATE __SANITIZE_ADDRESS__) # which GCC defines
      # As GCC has it: one that the interpreter can load before the Python module.
      execute_process(
        COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so
        OUTPUT_VARIABLE runtime
        OUTPUT_STRIP_TRAILING_WHITESPACE)
      cmake_path(GET runtime PARENT_PATH folder)
      list(APPEND sanitize -shared-libasan)
      target_link_options(${target} PRIVATE "-Wl,-rpath,${folder}")
    endif()
    target_link_options(${target} PRIVATE ${sanitize})
  endif()

  if(DNDS_FAST_COMPILE)
    if(CMAKE_BUILD_TYPE MATCHES "Deb")
      target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-g1>") # after the -g of the build type
    endif()
    if(DNDS_SANITIZE MATCHES "undefined" AND NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/src(/|$)")
      # Checks at every access through a pointer take a third of the time to compile a test. The address sanitizer sees
      # null pointers and objects that are too small; the libraries keep all.
      target_compile_options(
        ${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,alignment,object-size,vptr,pointer-overflow>")
    endif()
  endif()
endfunction()

# dnds_unity(<target> [APART <source>...]): with DNDS_FAST_COMPILE, six sources of a folder are compiled as one, which takes
# little more than half the time under sanitizers. APART: those that define a name which others of the folder define, too.
function(dnds_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "APART")
  if(DNDS_FAST_COMPILE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "[.]cpp$")
    foreach(source IN LISTS sources)
      cmake_path(GET source PARENT_PATH folder)
      string(REPLACE "${PROJECT_SOURCE_DIR}/" "" folder "${folder}")
      string(MAKE_C_IDENTIFIER "in_${folder}" folder)
      list(APPEND ${folder} ${source})
      list(LENGTH ${folder} count)
      math(EXPR group "${count} / 6")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
    endforeach()
    # GCC asks for it of types outside the first file of a unit only.
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>")
    set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# dnds_cold(<target> [HOT <source>...]): with DNDS_COLD_O1, what takes no time in a run is compiled at -O1, in two thirds of the
# time of -O3. HOT: the sources of the target that keep the level of the build type; they are compiled one by one.
function(dnds_cold target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HOT")
  if(DNDS_COLD_O1 AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-O1>")
    set_property(SOURCE ${arg_HOT} APPEND PROPERTY COMPILE_OPTIONS "$<$<COMPILE_LANGUAGE:CXX>:-O3>")
  endif()
endfunction()
