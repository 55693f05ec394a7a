# SPDX-License-Identifier: Apache-2.0
# Tests of libtartan.so as a file: what it shows, how large it is, how fast it loads, and that an installed copy serves a program
# that knows nothing of this tree. A sanitizer's build is no library for others, so it is left out.
if(TARTAN_SANITIZE)
  return()
endif()

add_test(NAME library_symbols COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/symbols_test.sh $<TARGET_FILE:tartan> ${CMAKE_NM}
                                      ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} ${PROJECT_SOURCE_DIR}/include/tartan/c.h)
add_test(NAME library_size COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/size_test.sh $<TARGET_FILE:tartan> ${CMAKE_STRIP})

add_executable(load_time_test ${CMAKE_CURRENT_LIST_DIR}/load_time_test.cc)
target_link_libraries(load_time_test PRIVATE tartan_options ${CMAKE_DL_LIBS})
add_test(NAME library_load_time COMMAND load_time_test $<TARGET_FILE:tartan>)
set_tests_properties(library_load_time PROPERTIES RUN_SERIAL ON)

add_test(NAME library_install COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/install_test/install_test.sh ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR}
                                      ${CMAKE_GENERATOR} ${CMAKE_CXX_COMPILER})
set_tests_properties(library_symbols library_size library_load_time library_install PROPERTIES LABELS library)
