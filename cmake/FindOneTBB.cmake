# Finds oneTBB by its own CMake package, which defines TBB::tbb. Older TBB lacks headers in oneapi/.
find_package(TBB 2021 CONFIG QUIET GLOBAL)

set(OneTBB_REASON "it is not installed")
if(TBB_CONSIDERED_VERSIONS AND NOT TBB_FOUND)
  set(OneTBB_REASON "2021 or newer is needed, found was ${TBB_CONSIDERED_VERSIONS}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  OneTBB
  REQUIRED_VARS TBB_DIR TBB_FOUND
  REASON_FAILURE_MESSAGE "${OneTBB_REASON}")
