# SPDX-License-Identifier: Apache-2.0
# Kernels compiled while a project is built: no GPU is needed for it, and no Tartan at run time.
#
#   tartan_add_ptx(kernels SOURCES kernels.cc TARGETS sm_80 sm_90a EMBED kernels.h BUNDLE kernels.fatbin)
#   target_link_libraries(program PRIVATE kernels)   # its include folder, and the order of the build
#
# SOURCES are a program whose main() calls tartan::offline_main(): the generator, target
# NAME_generator. It runs when it, Tartan or the assembler changes, and writes into the folder
# ${CMAKE_CURRENT_BINARY_DIR}/NAME:
#
#   NAME.TARGET.ptx   for each target
#   EMBED header      the PTX, and functions that prepare launches, in namespace NAME
#   BUNDLE file       all targets in one file, which cuModuleLoadData loads
#
# PTX 8.0 states the version of the modules; by default it is the first that supports what the
# kernels use. With CUBIN the bundle also has machine code for each target, if ptxas is found
# (TARTAN_PTXAS). LINK_LIBRARIES are what the generator links beside Tartan.
#
# When cross-compiling, the generator runs under CMAKE_CROSSCOMPILING_EMULATOR. Without one, build
# the project natively first, and set NAME_GENERATOR to the generator that this made.
function(tartan_add_ptx name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "CUBIN" "PTX;EMBED;BUNDLE" "SOURCES;TARGETS;LINK_LIBRARIES")
  foreach(needed SOURCES TARGETS)
    if(NOT ARG_${needed})
      message(FATAL_ERROR "tartan_add_ptx(${name}): ${needed} is missing")
    endif()
  endforeach()
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tartan_add_ptx(${name}): unexpected ${ARG_UNPARSED_ARGUMENTS}; expected SOURCES, TARGETS, PTX, EMBED, BUNDLE, CUBIN or LINK_LIBRARIES")
  endif()
  if((DEFINED tartan_LLVM AND NOT tartan_LLVM) OR (DEFINED TARTAN_LLVM AND NOT TARTAN_LLVM))
    message(FATAL_ERROR "tartan_add_ptx(${name}): this Tartan was built without LLVM and generates no PTX")
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(options --name ${name} --root ${CMAKE_CURRENT_SOURCE_DIR} -o ${folder} --depfile ${folder}/${name}.d)
  set(outputs)
  foreach(target ${ARG_TARGETS})
    list(APPEND options --target ${target})
    list(APPEND outputs ${folder}/${name}.${target}.ptx)
  endforeach()
  if(ARG_PTX)
    list(APPEND options --ptx ${ARG_PTX})
  endif()
  foreach(kind EMBED BUNDLE)
    if(ARG_${kind})
      cmake_path(ABSOLUTE_PATH ARG_${kind} BASE_DIRECTORY ${folder} OUTPUT_VARIABLE file)
      list(APPEND outputs ${file})
      list(APPEND options $<IF:$<STREQUAL:${kind},EMBED>,--header,--bundle> ${file})
    endif()
  endforeach()
  if(ARG_CUBIN)
    find_program(TARTAN_PTXAS ptxas HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(TARTAN_PTXAS)
      list(APPEND options --ptxas ${TARTAN_PTXAS})
    else()
      message(WARNING "tartan_add_ptx(${name}): no ptxas, so the bundle has PTX only; set TARTAN_PTXAS")
    endif()
  endif()

  if(${name}_GENERATOR)
    set(generator ${${name}_GENERATOR})
  elseif(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    message(FATAL_ERROR "tartan_add_ptx(${name}): the generator is a program for ${CMAKE_SYSTEM_NAME} ${CMAKE_SYSTEM_PROCESSOR} and must run here: "
                        "set CMAKE_CROSSCOMPILING_EMULATOR, or build this project for this machine first and set ${name}_GENERATOR to its ${name}_generator")
  else()
    set(generator ${name}_generator)
    add_executable(${generator} ${ARG_SOURCES})
    target_link_libraries(${generator} PRIVATE tartan::tartan ${ARG_LINK_LIBRARIES})
  endif()
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${outputs} COMMAND ${generator} ${options} DEPENDS ${generator} DEPFILE ${folder}/${name}.d
                     COMMENT "Generating PTX: ${name}" VERBATIM)
  add_custom_target(${name}_files ALL DEPENDS ${outputs})
  add_library(${name} INTERFACE)
  target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${folder}>)
  add_dependencies(${name} ${name}_files)
endfunction()
