# Installs a build folder in which only DNDS::DNDS and DNDS::Geom were built, as a whole and component by component, and builds
# and runs the project beside this script against it. Called by ctest with projectDir, sourceDir, buildDir, workDir, generator,
# buildType, compiler, mpiCompiler, device, shared, libraries and mpiexecCommand.

file(REMOVE_RECURSE "${workDir}")

function(run)
  list(JOIN ARGN " " command)
  message(STATUS "${command}")
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run("${CMAKE_COMMAND}" -S "${projectDir}" -B "${workDir}/build" -G "${generator}" "-DCMAKE_BUILD_TYPE=${buildType}"
    "-DCMAKE_CXX_COMPILER=${compiler}" "-DMPI_CXX_COMPILER=${mpiCompiler}" "-DDNDS_DEVICE=${device}"
    "-DBUILD_SHARED_LIBS=${shared}" -DDNDS_BUILD_TESTS=OFF -DDNDS_BUILD_CASES=OFF -DDNDS_BUILD_PYTHON=OFF -DDNDS_BUILD_TOOLS=ON)
foreach(library IN LISTS libraries)
  file(GLOB files "${library}*")
  foreach(file IN LISTS library files)
    file(REAL_PATH "${file}" real)
    file(RELATIVE_PATH place "${buildDir}" "${file}")
    cmake_path(GET place PARENT_PATH folder)
    cmake_path(GET place FILENAME name)
    file(MAKE_DIRECTORY "${workDir}/build/${folder}")
    file(COPY_FILE "${real}" "${workDir}/build/${folder}/${name}")
  endforeach()
endforeach()

# expect_component(PREFIX COMPONENT FOUND): whether find_package finds it there, and says why not.
function(expect_component prefix component found)
  file(WRITE "${workDir}/find/CMakeLists.txt"
       "cmake_minimum_required(VERSION 3.25)\nproject(Find CXX)\nfind_package(DNDS REQUIRED COMPONENTS ${component})\n")
  file(REMOVE_RECURSE "${workDir}/find/build")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${workDir}/find" -B "${workDir}/find/build" -G "${generator}"
            "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${prefix}"
    RESULT_VARIABLE result
    OUTPUT_QUIET
    ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  if(found AND NOT result EQUAL 0)
    message(FATAL_ERROR "${component} is not found in ${prefix}: ${text}")
  elseif(NOT found AND (result EQUAL 0 OR NOT text MATCHES "no component ${component}: it was not built, or not installed"))
    message(FATAL_ERROR "${component} in ${prefix}: ${result}, ${text}")
  endif()
endfunction()

set(prefix "${workDir}/all")
run("${CMAKE_COMMAND}" --install "${workDir}/build" --prefix "${prefix}")
expect_component("${prefix}" Geom TRUE)
expect_component("${prefix}" GridFile FALSE)
run("${CMAKE_COMMAND}" -S "${sourceDir}" -B "${workDir}/consumer" -G "${generator}" "-DCMAKE_BUILD_TYPE=${buildType}"
    "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${prefix}")
run("${CMAKE_COMMAND}" --build "${workDir}/consumer" --target mesh)
run(${mpiexecCommand} "${workDir}/consumer/mesh")
file(GLOB_RECURSE descriptions RELATIVE "${prefix}" "${prefix}/dnds*.pc")
if(descriptions MATCHES "dnds-gridfile" OR NOT descriptions MATCHES "dnds-geom")
  message(FATAL_ERROR "pkg-config would find: ${descriptions}")
endif()

set(prefix "${workDir}/one")
run("${CMAKE_COMMAND}" --install "${workDir}/build" --prefix "${prefix}" --component DNDS)
expect_component("${prefix}" Geom FALSE)
file(GLOB_RECURSE headers RELATIVE "${prefix}" "${prefix}/*.hpp")
if(headers MATCHES "Geom/Geom.hpp" OR NOT headers MATCHES "DNDS/DNDS.hpp")
  message(FATAL_ERROR "the component DNDS has these headers: ${headers}")
endif()
run("${CMAKE_COMMAND}" --install "${workDir}/build" --prefix "${prefix}" --component Geom)
expect_component("${prefix}" Geom TRUE)
