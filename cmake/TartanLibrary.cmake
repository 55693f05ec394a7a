# SPDX-License-Identifier: Apache-2.0
# A library that users link, of whole layers: functions that only users call must be included.
#
#   tartan_library(tartan FLOORS ... SOURCES version.cc)             ->  tartan::tartan, libtartan.so
#   tartan_library(tartan_part_ptx NAME ptx FLOORS ... SOURCES ...)  ->  tartan::ptx, libtartan-ptx.so
#
# The symbols of each have a version of their own, TARTAN_0.1 or TARTAN_PTX_0.1: what was linked to
# one of them finds nothing of another one in the same process. With TARTAN_STATIC it is an archive.

function(tartan_library target)
  cmake_parse_arguments(ARG "" "NAME;CODE_GENERATOR" "FLOORS;SOURCES" ${ARGN})
  if(NOT ARG_NAME)
    set(ARG_NAME tartan)
  endif()
  set(own ${target}_own)
  add_library(${own} OBJECT ${ARG_SOURCES})
  target_link_libraries(${own} PRIVATE tartan_options tartan_fmt Threads::Threads ${CMAKE_DL_LIBS})
  target_include_directories(${own} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  target_compile_definitions(${own} PRIVATE TARTAN_CODE_GENERATOR="${ARG_CODE_GENERATOR}")
  if(TARTAN_STATIC)
    tartan_join(${target} NAME ${ARG_NAME} FLOORS ${ARG_FLOORS} OBJECTS ${own})
  else()
    tartan_shared(${target} NAME ${ARG_NAME} FLOORS ${ARG_FLOORS} OBJECTS ${own})
  endif()

  add_library(tartan::${ARG_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${ARG_NAME} VERSION ${PROJECT_VERSION} SOVERSION ${soversion})
  target_compile_features(${target} PUBLIC cxx_std_20)
  if(NOT ARG_NAME STREQUAL "tartan")
    target_compile_definitions(${target} INTERFACE TARTAN_HAS_LLVM=0)
  endif()
endfunction()

# Where a library's headers are, and its file's name: libtartan-NAME, or libtartan for `tartan`.
function(tartan_name target name)
  set(file_name tartan-${name})
  if(name STREQUAL "tartan")
    set(file_name tartan)
  endif()
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file_name})
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                 $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# What is shown of namespace tartan, one mangled name or pattern an element.
function(tartan_shown_names name out)
  if(name STREQUAL "internal" OR TARTAN_SANITIZE)
    set(names _ZN6tartan _ZN[KRO]6tartan _ZNK[RO]6tartan _ZT[ISVT]N6tartan _ZTh*_N6tartan _ZTv*_N6tartan
              _ZZN6tartan _ZZNK6tartan _ZGVN6tartan _ZGVZN6tartan _ZGVZNK6tartan)
    list(TRANSFORM names APPEND "${abi_namespace}*")
  else()
    file(STRINGS ${PROJECT_SOURCE_DIR}/library/public_names.txt names REGEX "^_Z")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/library/public_names.txt)
  endif()
  set(${out} ${names} PARENT_SCOPE)
endfunction()

# tartan_shared(TARGET NAME ptx FLOORS ... OBJECTS ...): a shared library of layers and of the objects
# of another target.
function(tartan_shared target)
  cmake_parse_arguments(ARG "" "NAME" "FLOORS;OBJECTS" ${ARGN})
  set(parts $<TARGET_OBJECTS:${ARG_OBJECTS}>)
  foreach(floor ${ARG_FLOORS})
    list(APPEND parts $<TARGET_OBJECTS:tartan_${floor}>)
  endforeach()
  add_library(${target} SHARED ${parts})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  tartan_name(${target} ${ARG_NAME})
  foreach(floor ${ARG_FLOORS})
    target_link_libraries(${target} PRIVATE tartan_${floor})  # for what the floor itself links
  endforeach()
  target_link_libraries(${target} PRIVATE tartan_options tartan_fmt Threads::Threads ${CMAKE_DL_LIBS})

  set(version_node TARTAN_${soversion})
  if(NOT ARG_NAME STREQUAL "tartan")
    string(TOUPPER TARTAN_${ARG_NAME}_${soversion} version_node)
  endif()
  tartan_shown_names(${ARG_NAME} names)
  set(shown "")
  foreach(symbol IN LISTS names)
    string(APPEND shown "    ${symbol};\n")
  endforeach()
  set(map ${CMAKE_CURRENT_BINARY_DIR}/${target}.map)
  configure_file(exports.map.in ${map} @ONLY)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
  target_link_options(${target} PRIVATE LINKER:--version-script=${map} LINKER:--gc-sections
                                        LINKER:-Bsymbolic-functions LINKER:--build-id)
  if(NOT TARTAN_SANITIZE)  # a sanitizer's runtime comes with the program
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
  # libstdc++ is linked dynamically. With an internal copy, strings that the library allocates and the
  # program frees would meet two operator new, which fails under a sanitizer or with the program's own
  # operator new. Nothing is lost: LLVM's archives require a C library (2.36) that no system combines
  # with an older libstdc++.
endfunction()

# tartan_join(TARGET NAME ptx FLOORS ... OBJECTS ...): an archive of one object, in which only the names
# that a shared library shows are global: what is inside, LLVM, fmt and templates of the standard
# library are local.
function(tartan_join target)
  cmake_parse_arguments(ARG "" "NAME" "FLOORS;OBJECTS" ${ARGN})
  set(objects $<TARGET_OBJECTS:${ARG_OBJECTS}>)
  foreach(floor ${ARG_FLOORS})
    list(APPEND objects $<TARGET_OBJECTS:tartan_${floor}>)
  endforeach()
  get_target_property(type tartan_fmt TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND objects $<TARGET_OBJECTS:tartan_fmt>)
  endif()
  set(archives "")
  set(system Threads::Threads ${CMAKE_DL_LIBS})
  if("codegen" IN_LIST ARG_FLOORS)
    get_property(archives GLOBAL PROPERTY TARTAN_LLVM_ARCHIVES)
    list(APPEND system z zstd m)  # what LLVM calls
  endif()
  tartan_shown_names(${ARG_NAME} names)
  file(STRINGS exports.map.in c_interface REGEX "^ *tartan_")
  list(TRANSFORM c_interface REPLACE "^ *([^;]*);.*" "\\1")
  list(JOIN names "\n" shown)
  list(JOIN c_interface "\n" shown_of_c)
  set(list_of_shown ${CMAKE_CURRENT_BINARY_DIR}/${target}.names)
  file(CONFIGURE OUTPUT ${list_of_shown} CONTENT "${shown}\n${shown_of_c}\n")
  set(weak _ZN6tartan* _ZN4llvm* _ZN3fmt* _ZN8nlohmann* _ZZN* _ZGVZN* _ZSt19piecewise_construct)
  list(TRANSFORM weak PREPEND "--weaken-symbol=")
  add_custom_command(
    OUTPUT ${target}.o
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -Wl,--force-group-allocation -o ${target}.o ${objects}
            -Wl,--start-group ${archives} -Wl,--end-group
    # Weak first: inline variables are "unique global", which cannot become local, and which a program
    # that includes our headers defines, too.
    COMMAND ${CMAKE_OBJCOPY} --wildcard ${weak} ${target}.o
    COMMAND ${CMAKE_OBJCOPY} --keep-global-symbols=${list_of_shown} ${target}.o
    DEPENDS ${objects} ${archives} ${list_of_shown}
    COMMENT "Joining ${target}.o"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_library(${target} STATIC ${CMAKE_CURRENT_BINARY_DIR}/${target}.o)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  tartan_name(${target} ${ARG_NAME})
  target_link_libraries(${target} INTERFACE ${system})
endfunction()
