# Runs `command` and passes if it fails within `seconds` with output that matches `pattern`, and, where it is given, has
# `once` in it exactly once.
execute_process(
  COMMAND ${command}
  TIMEOUT ${seconds}
  RESULT_VARIABLE result
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
message("${output}")
message("ended with: ${result}")
if(result STREQUAL "0")
  message(FATAL_ERROR "the command was expected to fail")
endif()
if(result MATCHES "timeout")
  message(FATAL_ERROR "the command did not end by itself")
endif()
if(NOT output MATCHES "${pattern}")
  message(FATAL_ERROR "the output does not match '${pattern}'")
endif()
if(once)
  string(REPLACE "${once}" "" without "${output}")
  string(LENGTH "${output}" length)
  string(LENGTH "${without}" lengthWithout)
  string(LENGTH "${once}" lengthOnce)
  math(EXPR difference "${length} - ${lengthWithout}")
  if(NOT difference EQUAL lengthOnce)
    message(FATAL_ERROR "'${once}' should be in the output once")
  endif()
endif()
