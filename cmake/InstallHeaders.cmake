# SPDX-License-Identifier: Apache-2.0
# Installs the headers that tartan/tartan.h reaches, and no other: an internal header stays internal without a list to keep.
# They keep their paths under include/tartan, so that `#include "compiler/isa/type.h"` means the same inside and outside the tree.
#
# Runs at install time with: source_dir, include_dir, with_llvm.
cmake_policy(VERSION 3.25)

set(pending tartan/tartan.h)
set(seen ${pending} tartan/config.h)
while(pending)
  list(POP_FRONT pending header)
  get_filename_component(folder ${header} DIRECTORY)
  if(NOT folder STREQUAL "tartan")
    file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${include_dir}/tartan/${folder}" TYPE FILE FILES "${source_dir}/${header}")
  endif()

  file(STRINGS "${source_dir}/${header}" includes REGEX "^#include ")
  foreach(line ${includes})
    if(line MATCHES "^#include \"([^\"]+)\"")
      set(next ${CMAKE_MATCH_1})
      if(NOT with_llvm AND next MATCHES "^(dsl|compiler/codegen)/")
        continue()
      endif()
      if(NOT next IN_LIST seen)
        list(APPEND seen ${next})
        list(APPEND pending ${next})
      endif()
    elseif(NOT line MATCHES "^#include <[a-z_0-9]+>")
      message(FATAL_ERROR "${header}: \"${line}\": an installed header includes the standard library and Tartan's own headers only")
    endif()
  endforeach()
endwhile()
