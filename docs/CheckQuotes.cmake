# Checks that what the documents quote is real. Every ```cpp block of `documents` stands in one of `sources`, indented as
# a whole or not, and every
#
#   ```console
#   $ mpiexec -n <ranks> ./<program>
#   <output>
#   ```
#
# block is what ${program_<program>} prints to standard output on so many ranks. Other blocks are not looked at.

set(code "")
foreach(source IN LISTS sources)
  file(READ "${sourceDir}/${source}" text)
  string(APPEND code "\n${text}")
endforeach()

# Sets `block` to what stands between "<fence>\n" and the next "```" in `rest`, and `rest` to what follows it.
macro(dnds_next_block fence)
  set(block "")
  string(FIND "${rest}" "${fence}\n" at)
  if(at GREATER_EQUAL 0)
    string(LENGTH "${fence}\n" length)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${rest}" ${at} -1 rest)
    string(FIND "${rest}" "```" at)
    string(SUBSTRING "${rest}" 0 ${at} block)
    math(EXPR at "${at} + 3")
    string(SUBSTRING "${rest}" ${at} -1 rest)
  endif()
endmacro()

set(codeBlocks 0)
set(outputBlocks 0)
foreach(document IN LISTS documents)
  file(READ "${sourceDir}/${document}" text)

  set(rest "${text}")
  dnds_next_block("```cpp")
  while(NOT block STREQUAL "")
    set(found FALSE)
    foreach(indent IN ITEMS "" "    " "        ")
      string(REPLACE "\n" "\n${indent}" shifted "\n${block}")
      string(REPLACE "\n${indent}\n" "\n\n" shifted "${shifted}")
      string(STRIP "${shifted}" needle) # the first line's indentation is checked by the second line's
      string(FIND "${code}" "${needle}" at)
      if(at GREATER_EQUAL 0)
        set(found TRUE)
      endif()
    endforeach()
    if(NOT found)
      message(SEND_ERROR "${document}: this block is in none of ${sources}:\n${block}")
    endif()
    math(EXPR codeBlocks "${codeBlocks} + 1")
    dnds_next_block("```cpp")
  endwhile()

  set(rest "${text}")
  dnds_next_block("```console")
  while(NOT block STREQUAL "")
    if(block MATCHES "^\\$ mpiexec -n ([0-9]+) \\./([A-Za-z0-9_]+)\n")
      set(ranks "${CMAKE_MATCH_1}")
      set(program "${CMAKE_MATCH_2}")
      string(LENGTH "${CMAKE_MATCH_0}" length)
      string(SUBSTRING "${block}" ${length} -1 expected)
      execute_process(
        COMMAND ${mpiexec} ${ranks} ${mpiexecFlags} "${program_${program}}"
        OUTPUT_VARIABLE printed
        ERROR_VARIABLE complaints
        RESULT_VARIABLE result)
      if(NOT result EQUAL 0 OR NOT printed STREQUAL expected)
        message(SEND_ERROR "${document}: ${program} on ${ranks} ranks ended with ${result} and printed\n${printed}"
                           "instead of\n${expected}${complaints}")
      endif()
      math(EXPR outputBlocks "${outputBlocks} + 1")
    endif()
    dnds_next_block("```console")
  endwhile()
endforeach()

if(codeBlocks EQUAL 0 OR outputBlocks EQUAL 0)
  message(SEND_ERROR "no quotes were found: ${codeBlocks} code blocks, ${outputBlocks} output blocks")
endif()
message("${codeBlocks} code blocks and ${outputBlocks} output blocks checked")
