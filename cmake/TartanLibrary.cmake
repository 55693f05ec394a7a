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
  if(ARG_NAME)
    set(file_name tartan-${ARG_NAME})
    string(TOUPPER TARTAN_${ARG_NAME}_${soversion} version_node)
  else()
    set(ARG_NAME tartan)
    set(file_name tartan)
    set(version_node TARTAN_${soversion})
  endif()
  set(parts "")
  foreach(floor ${ARG_FLOORS})
    list(APPEND parts $<TARGET_OBJECTS:tartan_${floor}>)
  endforeach()

  if(TARTAN_STATIC)
    add_library(${target}_own OBJECT ${ARG_SOURCES})
    set(own ${target}_own)
    tartan_join(${target} ${parts} $<TARGET_OBJECTS:${own}>)
  else()
    add_library(${target} SHARED ${ARG_SOURCES} ${parts})
    set(own ${target})
    foreach(floor ${ARG_FLOORS})
      target_link_libraries(${target} PRIVATE tartan_${floor})  # for what the floor itself links
    endforeach()
    tartan_link_options(${target})
  endif()
  target_link_libraries(${own} PRIVATE tartan_options tartan_fmt Threads::Threads ${CMAKE_DL_LIBS})
  target_include_directories(${own} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  target_compile_definitions(${own} PRIVATE TARTAN_CODE_GENERATOR="${ARG_CODE_GENERATOR}")

  add_library(tartan::${ARG_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file_name} EXPORT_NAME ${ARG_NAME}
                        VERSION ${PROJECT_VERSION} SOVERSION ${soversion})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                 $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(NOT ARG_NAME STREQUAL "tartan")
    target_compile_definitions(${target} INTERFACE TARTAN_HAS_LLVM=0)
  endif()
endfunction()

function(tartan_link_options target)
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

# tartan_join(TARGET OBJECTS...): an archive of one object, in which only the names of
# library/exports.map.in are global: LLVM, fmt and templates of the standard library are local.
function(tartan_join target)
  set(objects ${ARGN})
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
  file(STRINGS exports.map.in patterns REGEX "^ *(_Z|tartan_)")
  list(TRANSFORM patterns REPLACE "^ *([^;]*);.*" "\\1")
  list(TRANSFORM patterns REPLACE "@abi_namespace@" ${abi_namespace})
  list(TRANSFORM patterns PREPEND "--keep-global-symbol=")
  set(weak _ZN6tartan* _ZN4llvm* _ZN3fmt* _ZN8nlohmann* _ZZN* _ZGVZN* _ZSt19piecewise_construct)
  list(TRANSFORM weak PREPEND "--weaken-symbol=")
  add_custom_command(
    OUTPUT ${target}.o
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -Wl,--force-group-allocation -o ${target}.o ${objects}
            -Wl,--start-group ${archives} -Wl,--end-group
    # Weak first: inline variables are "unique global", which cannot become local, and which a program
    # that includes our headers defines, too.
    COMMAND ${CMAKE_OBJCOPY} --wildcard ${weak} ${target}.o
    COMMAND ${CMAKE_OBJCOPY} --wildcard ${patterns} ${target}.o
    DEPENDS ${objects} ${archives}
    COMMENT "Joining ${target}.o"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_library(${target} STATIC ${CMAKE_CURRENT_BINARY_DIR}/${target}.o)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} INTERFACE ${system})
endfunction()
