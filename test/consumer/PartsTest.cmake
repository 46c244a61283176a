# Installs a build folder in which only DNDS::DNDS and DNDS::Geom, and what the latter needs, were built, as a whole and component by component, and builds
# and runs the project beside this script against it. Called by ctest with projectDir, sourceDir, buildDir, workDir, generator,
# buildType, compiler, mpiCompiler, device, shared, libraries (DNDS first) and mpiexecCommand. Then one that was
# configured without the other libraries.

file(REMOVE_RECURSE "${workDir}")

function(run)
  list(JOIN ARGN " " command)
  message(STATUS "${command}")
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(configure "${CMAKE_COMMAND}" -S "${projectDir}" -G "${generator}" "-DCMAKE_BUILD_TYPE=${buildType}"
    "-DCMAKE_CXX_COMPILER=${compiler}" "-DMPI_CXX_COMPILER=${mpiCompiler}" "-DDNDS_DEVICE=${device}"
    "-DBUILD_SHARED_LIBS=${shared}" -DDNDS_BUILD_TESTS=OFF -DDNDS_BUILD_CASES=OFF -DDNDS_BUILD_PYTHON=OFF)
run(${configure} -B "${workDir}/build" -DDNDS_BUILD_TOOLS=ON)

# copy_library(LIBRARY FOLDER): as if it had been built in that folder
function(copy_library library to)
  file(GLOB files "${library}*")
  foreach(file IN LISTS library files)
    file(REAL_PATH "${file}" real)
    file(RELATIVE_PATH place "${buildDir}" "${file}")
    cmake_path(GET place PARENT_PATH folder)
    cmake_path(GET place FILENAME name)
    file(MAKE_DIRECTORY "${to}/${folder}")
    file(COPY_FILE "${real}" "${to}/${folder}/${name}")
  endforeach()
endfunction()
foreach(library IN LISTS libraries)
  copy_library("${library}" "${workDir}/build")
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
  elseif(NOT found AND (result EQUAL 0 OR NOT text MATCHES "no component ${component}: (it|this DNDS) (was not built, or not installed|was built without it|needs DNDS::)"))
    message(FATAL_ERROR "${component} in ${prefix}: ${result}, ${text}")
  endif()
endfunction()

set(prefix "${workDir}/all")
run("${CMAKE_COMMAND}" --install "${workDir}/build" --prefix "${prefix}")
expect_component("${prefix}" Geom TRUE)
expect_component("${prefix}" Files FALSE)
run("${CMAKE_COMMAND}" -S "${sourceDir}" -B "${workDir}/consumer" -G "${generator}" "-DCMAKE_BUILD_TYPE=${buildType}"
    "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${prefix}")
run("${CMAKE_COMMAND}" --build "${workDir}/consumer" --target mesh)
run(${mpiexecCommand} "${workDir}/consumer/mesh")
file(GLOB_RECURSE descriptions RELATIVE "${prefix}" "${prefix}/dnds*.pc")
if(descriptions MATCHES "dnds-files" OR NOT descriptions MATCHES "dnds-geom")
  message(FATAL_ERROR "pkg-config would find: ${descriptions}")
endif()

set(prefix "${workDir}/one")
run("${CMAKE_COMMAND}" --install "${workDir}/build" --prefix "${prefix}" --component DNDS)
expect_component("${prefix}" Geom FALSE)
file(GLOB_RECURSE headers RELATIVE "${prefix}" "${prefix}/*.hpp")
if(headers MATCHES "Geom/Geom.hpp|Blocks/|Sparse/|OneSided/" OR NOT headers MATCHES "DNDS/DNDS.hpp")
  message(FATAL_ERROR "the component DNDS has these headers: ${headers}")
endif()
run("${CMAKE_COMMAND}" --install "${workDir}/build" --prefix "${prefix}" --component Geom)
expect_component("${prefix}" Geom FALSE) # it needs two others
run("${CMAKE_COMMAND}" --install "${workDir}/build" --prefix "${prefix}" --component Blocks)
run("${CMAKE_COMMAND}" --install "${workDir}/build" --prefix "${prefix}" --component Sparse)
expect_component("${prefix}" Geom TRUE)

# The core alone
set(prefix "${workDir}/core")
run(${configure} -B "${workDir}/build_core" -DDNDS_BLOCKS=OFF -DDNDS_ONE_SIDED=OFF -DDNDS_FILES=OFF -DDNDS_GEOM=OFF)
list(GET libraries 0 core)
copy_library("${core}" "${workDir}/build_core")
run("${CMAKE_COMMAND}" --install "${workDir}/build_core" --prefix "${prefix}")
expect_component("${prefix}" Sparse FALSE)
file(GLOB_RECURSE headers RELATIVE "${prefix}" "${prefix}/*.hpp")
if(headers MATCHES "/(Blocks|Sparse|OneSided|Serialize|GridFile|Geom)/")
  message(FATAL_ERROR "a build without the other libraries installs headers of theirs: ${headers}")
endif()
run("${CMAKE_COMMAND}" -S "${sourceDir}" -B "${workDir}/consumer_core" -G "${generator}" "-DCMAKE_BUILD_TYPE=${buildType}"
    "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${prefix}")
run("${CMAKE_COMMAND}" --build "${workDir}/consumer_core" --target consumer)
run(${mpiexecCommand} "${workDir}/consumer_core/consumer")
