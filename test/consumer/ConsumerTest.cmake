# Installs the build to a temporary prefix, then configures, builds and runs the project beside this script against it.
# Called by ctest with buildDir, sourceDir, workDir, generator, buildType, compiler, mpiexecCommand and hasPetsc.

set(prefix "${workDir}/prefix")
file(REMOVE_RECURSE "${workDir}")

function(run)
  list(JOIN ARGN " " command)
  message(STATUS "${command}")
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run("${CMAKE_COMMAND}" --install "${buildDir}" --prefix "${prefix}")
run("${CMAKE_COMMAND}" -S "${sourceDir}" -B "${workDir}/build" -G "${generator}" "-DCMAKE_BUILD_TYPE=${buildType}"
    "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${prefix}")
run("${CMAKE_COMMAND}" --build "${workDir}/build")
# Where the library is shared, the consumer's run path points to the prefix.
set(programs consumer checked_O0 checked_O2)
if(hasPetsc)
  list(APPEND programs petsc)
endif()
foreach(program IN LISTS programs)
  run(${mpiexecCommand} "${workDir}/build/${program}")
endforeach()
