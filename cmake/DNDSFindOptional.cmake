# dnds_find_optional(<NAME> <package> <description> <consequence>): finds a library that DNDS can do without, unless
# the option DNDS_<NAME> is OFF. Sets DNDS_HAS_<NAME>, here and as a global property for the tests and
# the CMake package, which are made in other folders. Says the consequence and the reason where it is missing.
function(dnds_find_optional name package description consequence)
  set(found FALSE)
  set(reason "DNDS_${name} is OFF")
  if(DNDS_${name})
    find_package(${package} QUIET GLOBAL)
    set(found ${${package}_FOUND})
    set(reason "no ${description} (${${package}_REASON})")
  endif()
  if(NOT found)
    message(STATUS "${consequence}: ${reason}")
  endif()
  set_property(GLOBAL PROPERTY DNDS_HAS_${name} ${found})
  set(DNDS_HAS_${name} ${found} PARENT_SCOPE)
endfunction()
