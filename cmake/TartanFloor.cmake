# SPDX-License-Identifier: Apache-2.0
# A layer of the architecture: one folder, one library. The link lines are the order of the layers.
#
#   tartan_floor(ptx SOURCES lexer.cc parser.cc DEPENDS isa)   ->  target tartan_ptx
#
# HEADERS: what most sources of the folder include; with TARTAN_UNITY they are parsed once. UNITED: its
# folders are small, and are compiled together. APART: each source gives its parts the same names as
# others do, and is compiled by itself.

add_library(tartan_options INTERFACE)
target_compile_options(tartan_options INTERFACE -Wall -Wextra -Wpedantic -Wno-missing-field-initializers
                                                -fno-semantic-interposition -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(tartan_options INTERFACE -Wno-restrict)  # false alarms on std::string's operator+: GCC bug 105329
endif()
if(TARTAN_WARNINGS_AS_ERRORS)
  target_compile_options(tartan_options INTERFACE -Werror)
endif()

# Options of the library and the command, beside tartan_options, in builds with sanitizers. Tests do
# not have them: they compile to the same objects in every build, so that the compiler cache has
# them.
add_library(tartan_watched INTERFACE)
if(TARTAN_SANITIZE STREQUAL "thread")
  # Tests too: what orders threads may be inline in them.
  target_compile_options(tartan_options INTERFACE -g1 -fsanitize=thread -Wno-tsan)
  target_link_options(tartan_options INTERFACE -fsanitize=thread)
elseif(TARTAN_SANITIZE)
  # Undefined behaviour is an illegal instruction, which the address sanitizer reports with its line. To describe it takes a datum for each
  # check, with pointers that the loader fills: three million of them, half a second or more of each test's start. vptr cannot do without.
  target_compile_options(tartan_watched INTERFACE -g1 -UNDEBUG -fsanitize=address,undefined -fno-sanitize=vptr
                                                  -fsanitize-undefined-trap-on-error -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # these stop constant expressions from comparing pointers; the address sanitizer sees null too
    target_compile_options(tartan_watched INTERFACE -fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute
                                                    -Wno-maybe-uninitialized)  # false alarms on std::optional with the sanitizers' own code around it
  endif()
  target_link_options(tartan_options INTERFACE -fsanitize=address,undefined)
endif()

# Compiles the sources of a folder eight at a time: half of a source's compile time is its headers.
# Apart stay folders whose files give their parts the same names: a table of instructions each.
# `united`: as if all were in one folder.
function(tartan_unite target united)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source ${ARGN})
    cmake_path(GET source PARENT_PATH folder)
    if(folder MATCHES "instructions|signatures")
      continue()
    elseif(united)
      set(folder ${target})
    endif()
    string(MAKE_C_IDENTIFIER "in_${folder}" group)
    math(EXPR part "0${count_${group}} / 8")
    math(EXPR count_${group} "0${count_${group}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
  endforeach()
endfunction()

function(tartan_floor name)
  cmake_parse_arguments(ARG "UNITED;APART" "" "SOURCES;DEPENDS;PRIVATE;HEADERS" ${ARGN})
  add_library(tartan_${name} STATIC ${ARG_SOURCES})
  set_property(GLOBAL APPEND PROPERTY TARTAN_FLOORS ${name})  # library/ puts them all into libtartan.so
  target_include_directories(tartan_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                   $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  foreach(floor ${ARG_DEPENDS})
    target_link_libraries(tartan_${name} PUBLIC tartan_${floor})
  endforeach()
  target_link_libraries(tartan_${name} PRIVATE $<BUILD_INTERFACE:tartan_options> $<BUILD_INTERFACE:tartan_watched> ${ARG_PRIVATE})
  if(TARTAN_UNITY)
    if(NOT ARG_APART)
      tartan_unite(tartan_${name} ${ARG_UNITED} ${ARG_SOURCES})
    endif()
    if(ARG_HEADERS)
      target_precompile_headers(tartan_${name} PRIVATE ${ARG_HEADERS})
    endif()
  endif()
  if(TARTAN_SANITIZE AND name MATCHES "^(dsl|kernels|device|runtime)$")  # to compile these takes longer than to run them
    target_compile_options(tartan_${name} PRIVATE -O0)
  elseif(TARTAN_SANITIZE)
    target_compile_options(tartan_${name} PRIVATE -O1)
  endif()
endfunction()

# Lines of the library's own kernels, in messages and in PTX, name the file in Tartan's tree, not on
# the machine that built it. The second form is that of compilers that are given relative paths.
function(tartan_map_files target)
  cmake_path(RELATIVE_PATH PROJECT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_BINARY_DIR} OUTPUT_VARIABLE to_source)
  target_compile_options(${target} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=tartan/ -fmacro-prefix-map=${to_source}/=tartan/)
endfunction()
