# The program itself, as users call it: what it prints where, how it ends, and that it ends. Called by ctest with tool,
# launcher (mpiexec and its flags, without the number of ranks), folder, and whether CGNS files can be written (cgns).

file(REMOVE_RECURSE "${folder}")
file(MAKE_DIRECTORY "${folder}")
set(square "NDIME= 2\nNELEM= 1\n9 0 1 2 3 0\nNPOIN= 4\n0 0\n1 0\n1 1\n0 1\nNMARK= 1\nMARKER_TAG= all\nMARKER_ELEMS= 4
3 0 1\n3 1 2\n3 2 3\n3 3 0\n")
file(WRITE "${folder}/square.su2" "${square}")
string(REPLACE "MARKER_ELEMS= 4\n3 0 1" "MARKER_ELEMS= 3" open "${square}")
file(WRITE "${folder}/open.su2" "${open}")
string(REPLACE "9 0 1 2 3" "9 0 1 2 9" broken "${square}")
file(WRITE "${folder}/broken.su2" "${broken}")
file(WRITE "${folder}/garbage.cgns" "this is no mesh\n")

# Runs the tool on so many ranks; sets `out` and `err`, and complains unless it ends with `code` in good time.
function(expect ranks code)
  set(command ${launcher} ${ranks})
  if(ranks EQUAL 1)
    set(command "")
  endif()
  execute_process(
    COMMAND ${command} "${tool}" ${ARGN}
    WORKING_DIRECTORY "${folder}"
    OUTPUT_VARIABLE printed
    ERROR_VARIABLE complaints
    RESULT_VARIABLE result
    TIMEOUT 60)
  if(NOT result EQUAL code)
    message(SEND_ERROR "dnds-mesh ${ARGN} on ${ranks} ranks ended with ${result}, not ${code}:\n${printed}${complaints}")
  endif()
  if(code EQUAL 2 AND NOT (complaints MATCHES "dnds-mesh: [^\n]+\n" AND printed STREQUAL ""))
    message(SEND_ERROR "dnds-mesh ${ARGN} on ${ranks} ranks: no clear message:\n${printed}${complaints}")
  endif()
  set(out "${printed}" PARENT_SCOPE)
  set(err "${complaints}" PARENT_SCOPE)
endfunction()

foreach(ranks IN ITEMS 1 4)
  expect(${ranks} 0 info square.su2 --json)
  string(JSON cells ERROR_VARIABLE error GET "${out}" cells QUAD_4)
  string(JSON volume ERROR_VARIABLE error GET "${out}" volume)
  if(error OR NOT cells EQUAL 1 OR NOT volume EQUAL 1)
    message(SEND_ERROR "info --json on ${ranks} ranks printed (${error})\n${out}")
  endif()
  if(DEFINED before AND NOT out STREQUAL before)
    message(SEND_ERROR "info --json depends on the number of ranks:\n${before}${out}")
  endif()
  set(before "${out}")
  expect(${ranks} 0 check square.su2)
  expect(${ranks} 1 check open.su2)
  expect(${ranks} 0 partition square.su2 -n 3)
  foreach(bad IN ITEMS broken.su2 garbage.cgns missing.cgns .)
    expect(${ranks} 2 info ${bad})
  endforeach()
  if(cgns)
    expect(${ranks} 0 generate box.cgns --cells 4 4 4)
    expect(${ranks} 0 check box.cgns)
    expect(${ranks} 0 refine box.cgns fine.cgns)
    expect(${ranks} 0 check fine.cgns)
    execute_process(COMMAND head -c 9000 box.cgns WORKING_DIRECTORY "${folder}" OUTPUT_FILE short.cgns)
    expect(${ranks} 2 info short.cgns)
    # A damaged node within a sound file: HDF5 cannot release all of it, and must not say so after the tool's message.
    execute_process(
      COMMAND sh -c "cp box.cgns damaged.cgns
        at=$(LC_ALL=C grep -abo OHDR box.cgns | sed -n 12p | cut -d: -f1)
        printf XXXX | dd of=damaged.cgns bs=1 seek=$((at + 40)) conv=notrunc 2> /dev/null"
      WORKING_DIRECTORY "${folder}")
    expect(${ranks} 2 info damaged.cgns)
    if(err MATCHES "HDF5: ")
      message(SEND_ERROR "info damaged.cgns on ${ranks} ranks: HDF5 prints, too:\n${err}")
    endif()
  endif()
endforeach()
