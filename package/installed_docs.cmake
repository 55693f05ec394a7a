# SPDX-License-Identifier: Apache-2.0
# Makes the relative links of installed pages lead somewhere: run at install time, over all pages in FOLDER.
#
#   a public header                  to the installed one, in INCLUDE
#   a file that is installed here    stays; so does one of OTHERS, which another component installs
#   any other file of the tree       the text of the link alone
#
# Brackets and semicolons mean something in CMake's lists: while a page is worked on, control characters stand for them.
cmake_policy(PUSH)
cmake_policy(VERSION 3.25)

set(number 0)
foreach(code open close semicolon)
  math(EXPR number "${number} + 1")
  string(ASCII ${number} ${code})
endforeach()

file(GLOB_RECURSE pages "${FOLDER}/*.md")
foreach(page ${pages})
  file(READ "${page}" text)
  string(REPLACE "[" "${open}" text "${text}")
  string(REPLACE "]" "${close}" text "${text}")
  string(REPLACE ";" "${semicolon}" text "${text}")
  set(before "${text}")
  get_filename_component(folder "${page}" DIRECTORY)
  string(REGEX MATCHALL "${close}\\([A-Za-z0-9_./-]+[)#]" links "${text}")
  list(REMOVE_DUPLICATES links)
  foreach(link ${links})
    string(REGEX REPLACE "^.\\((.*).$" "\\1" target "${link}")
    get_filename_component(path "${folder}/${target}" ABSOLUTE)
    file(RELATIVE_PATH name "${FOLDER}" "${path}")
    if(EXISTS "${path}" OR name IN_LIST OTHERS OR NOT target MATCHES "[./]")
      continue()  # without a dot and a slash it is C++: [&](Scalar)
    endif()
    string(REPLACE "." "\\." pattern "${target}")
    string(REGEX REPLACE "^include/" "" header "${name}")
    if(name MATCHES "^include/" AND EXISTS "${INCLUDE}/${header}")
      file(RELATIVE_PATH there "${folder}" "${INCLUDE}/${header}")
      string(REGEX REPLACE "${close}\\(${pattern}([)#])" "${close}(${there}\\1" text "${text}")
    else()
      string(REGEX REPLACE "!?${open}([^${open}${close}]*)${close}\\(${pattern}(#[^)]*)?\\)" "\\1" text "${text}")
    endif()
  endforeach()
  if(NOT text STREQUAL before)
    string(REPLACE "${open}" "[" text "${text}")
    string(REPLACE "${close}" "]" text "${text}")
    string(REPLACE "${semicolon}" ";" text "${text}")
    file(WRITE "${page}" "${text}")
  endif()
endforeach()

cmake_policy(POP)
