# SPDX-License-Identifier: Apache-2.0
# Tests of libtartan.so as a file: what it shows, how large it is, how fast it loads, and that an installed copy serves a program
# that knows nothing of this tree. A sanitizer's build is no library for others, so it is left out; static
# libraries have scripts/package_test.

# The emulator in the place of NVIDIA's driver, for examples/offline.
if(TARTAN_LLVM)
  add_library(emulated_driver MODULE ${CMAKE_CURRENT_LIST_DIR}/emulated_driver.cc)
  target_link_libraries(emulated_driver PRIVATE tartan::tartan tartan_options)
endif()

if(TARTAN_SANITIZE OR TARTAN_STATIC OR NOT TARTAN_INSTALL)
  return()
endif()

foreach(target tartan tartan_part_emulator tartan_part_ptx)
  string(REPLACE tartan_part_ symbols_ name ${target})
  set(c_interface "")
  if(target STREQUAL "tartan")
    set(name symbols)
    set(c_interface ${PROJECT_SOURCE_DIR}/include/tartan/c.h)
  endif()
  add_test(NAME library_${name} COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/symbols_test.sh $<TARGET_FILE:${target}> ${CMAKE_NM}
                                        ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} ${PROJECT_BINARY_DIR} ${c_interface})
  set_tests_properties(library_${name} PROPERTIES LABELS library SKIP_RETURN_CODE 77)
endforeach()
add_test(NAME library_size COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/size_test.sh $<TARGET_FILE:tartan> ${CMAKE_STRIP})

add_executable(load_time_test ${CMAKE_CURRENT_LIST_DIR}/load_time_test.cc)
target_link_libraries(load_time_test PRIVATE tartan_options ${CMAKE_DL_LIBS})
add_test(NAME library_load_time COMMAND load_time_test $<TARGET_FILE:tartan>)
set_tests_properties(library_load_time PROPERTIES RUN_SERIAL ON)

if(TARTAN_LLVM)
  add_executable(two_copies_test ${CMAKE_CURRENT_LIST_DIR}/two_copies_test.cc)
  target_include_directories(two_copies_test PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(two_copies_test PRIVATE tartan_options ${CMAKE_DL_LIBS})
  add_test(NAME library_two_copies COMMAND two_copies_test $<TARGET_FILE:tartan>)
  set_tests_properties(library_two_copies PROPERTIES LABELS library)
endif()

# An installed copy, which the tests below use.
set(installed ${CMAKE_CURRENT_BINARY_DIR}/installed)
add_test(NAME library_installed COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/install.sh ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR} ${installed})
set_tests_properties(library_installed PROPERTIES FIXTURES_SETUP installed)
foreach(name install components)
  add_test(NAME library_${name} COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/${name}_test/${name}_test.sh ${CMAKE_COMMAND} ${installed}
                                        ${CMAKE_GENERATOR} ${CMAKE_CXX_COMPILER})
endforeach()
add_test(NAME library_manual COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/manual_test.sh ${installed})
add_test(NAME library_docs COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/docs_test.sh ${PROJECT_SOURCE_DIR} ${installed})
set_tests_properties(library_install library_components library_manual library_docs PROPERTIES FIXTURES_REQUIRED installed)

add_test(NAME library_subproject COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/subproject_test/subproject_test.sh ${CMAKE_COMMAND}
                                         ${PROJECT_SOURCE_DIR} ${CMAKE_GENERATOR} ${CMAKE_CXX_COMPILER} ${TARTAN_LLVM})
add_test(NAME library_headers COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/headers_test.sh ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
set_tests_properties(library_headers PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(library_headers library_symbols library_size library_load_time library_installed library_install library_components
                     library_manual library_docs library_subproject PROPERTIES LABELS library)

if(TARTAN_LLVM)
  add_test(NAME library_offline COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/offline_test.sh ${CMAKE_COMMAND} ${installed} ${CMAKE_GENERATOR}
                                        ${CMAKE_CXX_COMPILER} ${PROJECT_BINARY_DIR}/examples/offline/kernels)
  set_tests_properties(library_offline PROPERTIES LABELS library FIXTURES_REQUIRED installed)
endif()
