# SPDX-License-Identifier: Apache-2.0
# .deb files, by `cpack -G DEB`: scripts/package configures for /usr and runs it. Each has a copyright
# and a changelog, which a plain `cmake --install` leaves out.
find_program(TARTAN_DPKG dpkg)
if(NOT TARTAN_DPKG)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tartan)
# Nobody publishes these packages: whoever does, sets this.
set(CPACK_PACKAGE_CONTACT "Unpublished build <nobody@tartan.invalid>" CACHE STRING "Maintainer of the .deb files: Name <address>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)  # finish_deb.cmake packs them again
set(CPACK_POST_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/finish_deb.cmake)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# deb(COMPONENT PACKAGE SECTION SUMMARY TEXT): a component becomes a package.
function(deb component package section summary text)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
  install(FILES ${folder}/copyright ${folder}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

set(folder ${CMAKE_CURRENT_BINARY_DIR}/debian)
file(READ ${PROJECT_SOURCE_DIR}/CHANGES.md changes)
string(REGEX MATCH "\n## ${PROJECT_VERSION}, ([-0-9]+)\n" heading "${changes}")
execute_process(COMMAND date --utc --rfc-email --date=${CMAKE_MATCH_1} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
file(WRITE ${folder}/changelog "tartan (${PROJECT_VERSION}) unstable; urgency=medium

  * CHANGES.md, in /usr/share/doc/tartan of libtartan-dev, lists what changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
execute_process(COMMAND gzip --best --no-name --force ${folder}/changelog)
file(READ debian-copyright.in copyright)
file(GLOB licences CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/licenses/*.txt)
foreach(licence ${licences})
  file(READ ${licence} text)
  string(APPEND copyright "\n${text}")
endforeach()
file(WRITE ${folder}/copyright "${copyright}")

deb(libtartan libtartan${soversion} libs "validated PTX for tensor cores - library"
    "Describe tile kernels in C++, and get verified PTX for NVIDIA's tensor cores;
check PTX of other compilers; run it on a GPU or on a bit-exact CPU emulator.
.
This is the whole library: LLVM is inside. It needs no part of CUDA; for a GPU,
NVIDIA's driver is enough.")
deb(libtartan-emulator libtartan-emulator${soversion} libs "validated PTX for tensor cores - emulator"
    "Check PTX, and run it on a GPU or on a CPU emulator, which computes an H100's
tensor cores bit for bit and reports races and deadlocks.
.
This is the part of Tartan without code generation.")
deb(libtartan-ptx libtartan-ptx${soversion} libs "validated PTX for tensor cores - parser and checker"
    "Parse PTX, and check every line of it for the target that it must run on.
.
This is the part of Tartan with the parser, the tables and the checker alone.")
deb(libtartan-dev libtartan-dev libdevel "validated PTX for tensor cores - development files"
    "Headers, CMake package, pkg-config files, documents and examples of Tartan:
tile kernels in C++, compiled to verified PTX for NVIDIA's tensor cores,
checked, and run on a GPU or on a CPU emulator.")
deb(tartan-tools tartan-tools devel "validated PTX for tensor cores - command"
    "The command tartan: writes PTX of built-in kernels, checks PTX for a target,
runs it on a GPU or on a CPU emulator, draws fragments, and decides whether
two kernels compute the same function.")

set(same "(= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBTARTAN-DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_LIBTARTAN-DEV_PACKAGE_DEPENDS
    "libtartan${soversion} ${same}, libtartan-emulator${soversion} ${same}, libtartan-ptx${soversion} ${same}")
set(CPACK_DEBIAN_LIBTARTAN-DEV_PACKAGE_SUGGESTS tartan-tools)
include(CPack)
