# With DNDS_CCACHE, everything is compiled through ccache. Paths below the source folder are made relative, so that several
# checkouts share what was compiled. Tests then do without their precompiled header: ccache 4.7 was seen to give one back that was
# made from older sources. What a file includes is told by the compiler's list of dependencies (CCACHE_DEPEND): running the preprocessor
# first would add its time to every file that is not in the cache yet.

if(DNDS_CCACHE)
  find_program(DNDS_CCACHE_PROGRAM ccache REQUIRED)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_DEPEND=1)
  if(DNDS_FAST_COMPILE) # debuggers would look for sources in the checkout that was compiled first
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER CCACHE_NOHASHDIR=1)
  endif()
  list(APPEND CMAKE_CXX_COMPILER_LAUNCHER "${DNDS_CCACHE_PROGRAM}")
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
