# Installs the build to a temporary prefix, moves it, then builds and runs the project beside this script against it: by CMake, by
# pkg-config, and from the sources by FetchContent. Called by ctest with buildDir, projectDir, sourceDir, workDir, generator,
# buildType, compiler, mpiCompiler, mpiexecCommand, hasPetsc and hasHypre.

set(prefix "${workDir}/prefix")
list(GET mpiexecCommand 0 mpiexec)
file(REMOVE_RECURSE "${workDir}")

function(run)
  list(JOIN ARGN " " command)
  message(STATUS "${command}")
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run("${CMAKE_COMMAND}" --install "${buildDir}" --prefix "${workDir}/installed")
file(RENAME "${workDir}/installed" "${prefix}")
run("${CMAKE_COMMAND}" -S "${sourceDir}" -B "${workDir}/build" -G "${generator}" "-DCMAKE_BUILD_TYPE=${buildType}"
    "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${prefix}")
run("${CMAKE_COMMAND}" --build "${workDir}/build")
# Where the library is shared, the consumer's run path points to the prefix.
set(programs consumer checked_O0 checked_O2)
foreach(program IN ITEMS mesh sparse_short one_sided_ring)
  if(EXISTS "${workDir}/build/${program}")
    list(APPEND programs ${program})
  endif()
endforeach()
if(hasHypre)
  list(APPEND programs hypre)
endif()
if(hasPetsc)
  list(APPEND programs petsc)
endif()
foreach(program IN LISTS programs)
  run(${mpiexecCommand} "${workDir}/build/${program}")
endforeach()

# A project that scripts/new-solver.sh begins, configured first for this compiler; run.sh keeps that
if(EXISTS "${workDir}/build/mesh")
  run("${projectDir}/scripts/new-solver.sh" conduction "${workDir}/conduction")
  run("${CMAKE_COMMAND}" -S "${workDir}/conduction" -B "${workDir}/conduction/build" -G "${generator}"
      "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${prefix}" "-DMPIEXEC_EXECUTABLE=${mpiexec}")
  run("${workDir}/conduction/run.sh" 2)
  run("${CMAKE_CTEST_COMMAND}" --test-dir "${workDir}/conduction/build" --output-on-failure --no-tests=error)
  execute_process(COMMAND "${projectDir}/scripts/new-solver.sh" conduction "${workDir}/conduction" RESULT_VARIABLE result
                  ERROR_VARIABLE text)
  if(result EQUAL 0 OR NOT text MATCHES "is there already: nothing was written")
    message(FATAL_ERROR "a second project in one folder: ${result}, ${text}")
  endif()
endif()

# Where PETSc is gone, CMake says so.
if(hasPetsc)
  execute_process(
    COMMAND
      "${CMAKE_COMMAND}" -E env --unset=PETSC_DIR --unset=PKG_CONFIG_PATH "PKG_CONFIG_LIBDIR=${workDir}" "${CMAKE_COMMAND}" -S
      "${sourceDir}" -B "${workDir}/without" -G "${generator}" "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${prefix}"
      -DalwaysPetsc=ON
    RESULT_VARIABLE result
    OUTPUT_QUIET
    ERROR_VARIABLE text)
  if(result EQUAL 0 OR NOT text MATCHES "DNDS::Petsc cannot be used. PETSc was not found")
    message(FATAL_ERROR "without PETSc: ${result}, ${text}")
  endif()
endif()

# By pkg-config
find_program(pkgConfig pkg-config)
file(GLOB_RECURSE files "${prefix}/dnds*.pc")
if(NOT files)
  message(FATAL_ERROR "no files of pkg-config were installed")
endif()
if(pkgConfig AND mpiCompiler)
  list(GET files 0 first)
  cmake_path(GET first PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} "${folder}")
  foreach(pair IN ITEMS main:dnds mesh:dnds-geom petsc:dnds-petsc hypre:dnds-hypre
                        blocks_files:dnds-files)
    string(REPLACE ":" ";" pair "${pair}")
    list(POP_FRONT pair source)
    if(NOT EXISTS "${folder}/${pair}.pc")
      continue()
    endif()
    set(file "${sourceDir}/${source}.cpp")
    if(NOT EXISTS "${file}")
      set(file "${projectDir}/docs/tutorial/${source}.cpp")
    endif()
    if(pair STREQUAL "dnds-files")
      list(PREPEND pair dnds-blocks)
    endif()
    execute_process(COMMAND "${pkgConfig}" --cflags --libs ${pair} OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    run("${mpiCompiler}" -O1 "${file}" ${flags} "-Wl,-rpath,${prefix}/lib" -o "${workDir}/${source}")
    if(NOT source STREQUAL "blocks_files") # which needs NetCDF
      run(${mpiexecCommand} "${workDir}/${source}")
    endif()
  endforeach()
else()
  message(STATUS "SKIPPED: there is no pkg-config or no compiler of MPI")
endif()

# From the sources: what a program includes compiles, without the library itself
run("${CMAKE_COMMAND}" -S "${sourceDir}/fetched" -B "${workDir}/fetched" -G "${generator}" "-DCMAKE_BUILD_TYPE=${buildType}"
    "-DCMAKE_CXX_COMPILER=${compiler}" "-DsourceDir=${projectDir}")
run("${CMAKE_COMMAND}" --build "${workDir}/fetched" --target consumer)
