# SPDX-License-Identifier: Apache-2.0
# What CPack makes of a shared library's package runs ldconfig in scripts. Debian asks for a trigger
# in their place, so that it runs once for all packages.
foreach(file ${CPACK_PACKAGE_FILES})
  set(folder ${file}.contents)
  file(REMOVE_RECURSE ${folder})
  execute_process(COMMAND dpkg-deb --raw-extract ${file} ${folder} COMMAND_ERROR_IS_FATAL ANY)
  if(EXISTS ${folder}/DEBIAN/shlibs)
    file(REMOVE ${folder}/DEBIAN/postinst ${folder}/DEBIAN/postrm)
    file(WRITE ${folder}/DEBIAN/triggers "activate-noawait ldconfig\n")
    file(CHMOD ${folder}/DEBIAN/triggers PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  endif()
  execute_process(COMMAND dpkg-deb --root-owner-group -Zxz --build ${folder} ${file} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE ${folder})
endforeach()
