# Functions for tests, cases and benchmarks, and the environment in which their MPI programs run.

# ---------------------------------------------------------------------------------------------------------------------
# How MPI programs are started: more ranks than cores, as root in containers, without binding to cores.

set(DNDS_MPIEXEC_FLAGS "")
set(DNDS_TEST_ENVIRONMENT GTEST_COLOR=no)
if(DNDS_MPI_KIND STREQUAL "openmpi")
  set(DNDS_MPIEXEC_FLAGS --oversubscribe --allow-run-as-root --bind-to none)
  list(
    APPEND
    DNDS_TEST_ENVIRONMENT
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_hwloc_base_binding_policy=none
    OMPI_MCA_mpi_yield_when_idle=1
    OMPI_MCA_btl_base_warn_component_unused=0
    OMPI_MCA_odls_base_sigkill_timeout=1
    # Containers forbid process_vm_readv, which Open MPI would try and complain about.
    OMPI_MCA_btl_vader_single_copy_mechanism=none)
endif()

set(DNDS_TEST_TIME_FACTOR 1)
if(DNDS_SANITIZE)
  set(DNDS_TEST_TIME_FACTOR 4)
  set(suppressions "${PROJECT_SOURCE_DIR}/test/support/suppressions")
  list(
    APPEND
    DNDS_TEST_ENVIRONMENT
    "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:check_initialization_order=1:abort_on_error=0"
    "LSAN_OPTIONS=suppressions=${suppressions}/leak.txt:print_suppressions=0"
    "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1"
    "TSAN_OPTIONS=suppressions=${suppressions}/thread.txt:halt_on_error=1:ignore_noninstrumented_modules=1")
endif()

# dnds_program_flags(<target>): the flags of our own targets, and under sanitizers what lets MPI programs end cleanly.
function(dnds_program_flags target)
  dnds_target_flags(${target})
  if(DNDS_SANITIZE)
    target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/test/support/KeepPluginsLoaded.cpp")
  endif()
endfunction()

# dnds_slots(<variable> <ranks>): the PROCESSORS of a test, of which scripts/test.sh fills five for two processors: ranks start,
# meet and wait for each other most of the time. Those of MPICH spin meanwhile.
function(dnds_slots variable ranks)
  set(slots ${ranks})
  if(NOT DNDS_MPI_KIND STREQUAL "openmpi")
    math(EXPR slots "5 * ${ranks} / 2")
  elseif(ranks GREATER 4)
    set(slots 3)
  elseif(ranks GREATER 2)
    set(slots 2)
  endif()
  set(${variable}
      ${slots}
      PARENT_SCOPE)
endfunction()

# Target tests_<label> builds the tests that have the label, and nothing else.
function(dnds_label_target target)
  foreach(label IN LISTS ARGN)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${target})
  endforeach()
endfunction()

# dnds_add_mpi_run(<name> TARGET <executable> [RANKS <n>...] [ARGS <arg>...] [TIMEOUT <seconds>] [LABELS <label>...]
#                  [ENVIRONMENT <VAR=value>...])
# One ctest test <name>.np<n> for each rank count: mpiexec -n <n> <executable> <arg>... The time limit (60 s unless
# given) is quadrupled under sanitizers. Besides LABELS (core and mpi unless given) every test is labelled np<n>.
function(dnds_add_mpi_run name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TARGET;TIMEOUT" "RANKS;ARGS;LABELS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "dnds_add_mpi_run(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_RANKS)
    set(arg_RANKS 1 2 3 8)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS core mpi)
  endif()
  dnds_label_target(${arg_TARGET} ${arg_LABELS})
  math(EXPR timeout "${arg_TIMEOUT} * ${DNDS_TEST_TIME_FACTOR}")
  math(EXPR watchdog "${timeout} * 5 / 6")

  foreach(ranks IN LISTS arg_RANKS)
    set(test ${name}.np${ranks})
    dnds_slots(slots ${ranks})
    # A leak shows on few ranks as well as on many, where the check is slow.
    set(leaks "")
    if(DNDS_SANITIZE MATCHES "address" AND ranks GREATER 2)
      set(leaks "ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1:check_initialization_order=1:abort_on_error=0")
    endif()
    add_test(NAME ${test} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${DNDS_MPIEXEC_FLAGS}
                                  $<TARGET_FILE:${arg_TARGET}> ${arg_ARGS})
    set_tests_properties(
      ${test}
      PROPERTIES TIMEOUT
                 ${timeout}
                 PROCESSORS
                 ${slots}
                 LABELS
                 "${arg_LABELS};np${ranks}"
                 SKIP_RETURN_CODE
                 77
                 ENVIRONMENT
                 "${DNDS_TEST_ENVIRONMENT};${leaks};DNDS_TEST_RANKS=${ranks};DNDS_TEST_TIMEOUT_S=${watchdog};DNDS_TEST_LOG_DIR=${CMAKE_CURRENT_BINARY_DIR}/logs/${test};${arg_ENVIRONMENT}")
    if(DNDS_SANITIZE MATCHES "address")
      # Seen about once in 300 processes, after all tests have passed: the leak check itself crashes. Skipped, and so seen.
      set_tests_properties(
        ${test} PROPERTIES SKIP_REGULAR_EXPRESSION
                           "every test passed on every rank.*LeakSanitizer has encountered a fatal error")
    endif()
  endforeach()
endfunction()

# Tests are compiled with few optimizations, under sanitizers with none, which takes half the time; the library, cases and
# examples have them all.
function(dnds_test_flags target)
  dnds_program_flags(${target})
  set(level "$<IF:$<CONFIG:Debug>,-O0,-O1>")
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${level}>)
endfunction()

# dnds_test_headers(<target>): the headers of nearly all GoogleTest programs are parsed once, on which a test would else spend
# half of its compile time.
function(dnds_test_headers target)
  if(NOT TARGET dnds_test_headers)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/test_headers.cpp" CONTENT "")
    add_library(dnds_test_headers OBJECT "${CMAKE_BINARY_DIR}/test_headers.cpp")
    target_link_libraries(dnds_test_headers PRIVATE DNDS::DNDS GTest::gtest Threads::Threads)
    dnds_target_flags(dnds_test_headers)
    target_compile_options(dnds_test_headers PRIVATE $<$<COMPILE_LANGUAGE:CXX>:$<IF:$<CONFIG:Debug>,-O0,-O1>>)
    target_precompile_headers(dnds_test_headers PRIVATE <gtest/gtest.h> <DNDS/Array/ArrayPair.hpp> <fmt/core.h>
                              <algorithm> <array> <functional> <memory> <numeric> <random> <span> <string> <thread> <vector>)
  endif()
  target_precompile_headers(${target} REUSE_FROM dnds_test_headers)
endfunction()

# dnds_test_library(<target>): what several test programs have in common, compiled as they are; under sanitizers with some
# optimization, since they spend most of their time in it.
function(dnds_test_library target)
  dnds_target_flags(${target})
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
    dnds_test_headers(${target})
  endif()
endfunction()

# dnds_add_mpi_test(<name> <source>... [RANKS <n>...] [TIMEOUT <seconds>] [LABELS <label>...] [LIBRARIES <target>...]
#                   [ENVIRONMENT <VAR=value>...] [APART <source>...])
# A GoogleTest executable <name> whose main starts MPI (test/support/MpiMain.cpp), run on 1, 2, 3 and 8 ranks unless
# RANKS says otherwise. APART: as dnds_unity has it.
function(dnds_add_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "RANKS;LABELS;LIBRARIES;ENVIRONMENT;APART")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS} ${arg_APART})
  target_link_libraries(${name} PRIVATE DNDS::DNDS dnds_test_mpi_main ${arg_LIBRARIES})
  dnds_test_flags(${name})
  dnds_test_headers(${name})
  dnds_unity(${name} APART ${arg_APART})
  dnds_add_mpi_run(
    ${name}
    TARGET ${name}
    RANKS ${arg_RANKS}
    TIMEOUT ${arg_TIMEOUT}
    LABELS ${arg_LABELS}
    ENVIRONMENT ${arg_ENVIRONMENT})
endfunction()

# dnds_add_serial_test(<name> <source>... [TIMEOUT <seconds>] [LABELS <label>...] [LIBRARIES <target>...]
#                      [ENVIRONMENT <VAR=value>...] [APART <source>...])
# A GoogleTest executable <name> that runs without MPI, as one ctest test.
function(dnds_add_serial_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS;LIBRARIES;ENVIRONMENT;APART")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS core)
  endif()
  math(EXPR timeout "${arg_TIMEOUT} * ${DNDS_TEST_TIME_FACTOR}")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS} ${arg_APART})
  target_link_libraries(${name} PRIVATE DNDS::DNDS dnds_test_serial_main ${arg_LIBRARIES})
  dnds_test_flags(${name})
  dnds_test_headers(${name})
  dnds_unity(${name} APART ${arg_APART})
  dnds_label_target(${name} ${arg_LABELS})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(
    ${name} PROPERTIES TIMEOUT ${timeout} LABELS "${arg_LABELS}" ENVIRONMENT
                       "${DNDS_TEST_ENVIRONMENT};${arg_ENVIRONMENT}")
endfunction()

# dnds_add_program(<name> <source>... [LIBRARIES <target>...]): an executable of cases/ that uses the library.
function(dnds_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE DNDS::DNDS ${arg_LIBRARIES})
  dnds_program_flags(${name})
endfunction()

# dnds_add_benchmark(<name> <source>... [LIBRARIES <target>...]): the executable bench_<name>, which scripts/bench.sh
# <name> builds and runs. It belongs to the folder bench/<name>.
function(dnds_add_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES")
  add_executable(bench_${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(bench_${name} PRIVATE DNDS::DNDS ${arg_LIBRARIES})
  dnds_program_flags(bench_${name})
endfunction()
