# Checks that every relative link of the Markdown files leads to a file that exists. A link's target has an ending or a
# slash, or is LICENSE: code such as `operator[](i)` is no link.

file(
  GLOB documents
  RELATIVE "${sourceDir}"
  "${sourceDir}/*.md"
  "${sourceDir}/docs/*.md"
  "${sourceDir}/docs/*/*.md"
  "${sourceDir}/cases/*.md"
  "${sourceDir}/cases/*/*.md"
  "${sourceDir}/bench/*/*.md"
  "${sourceDir}/packaging/*.md")
list(FILTER documents EXCLUDE REGEX "^docs/site/") # links from where the site has it
set(links 0)
foreach(document IN LISTS documents)
  get_filename_component(folder "${sourceDir}/${document}" DIRECTORY)
  file(READ "${sourceDir}/${document}" rest)
  while(rest MATCHES "\\]\\(([A-Za-z0-9_./:-]*[./][A-Za-z0-9_./-]*|LICENSE)(#[^)]*)?\\)")
    set(link "${CMAKE_MATCH_1}")
    string(FIND "${rest}" "${CMAKE_MATCH_0}" at)
    string(LENGTH "${CMAKE_MATCH_0}" length)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${rest}" ${at} -1 rest)
    if(link MATCHES "^[a-z]+:")
      continue()
    endif()
    if(NOT EXISTS "${folder}/${link}")
      message(SEND_ERROR "${document} links to ${link}, which does not exist")
    endif()
    math(EXPR links "${links} + 1")
  endwhile()
endforeach()
message("${links} links checked")
