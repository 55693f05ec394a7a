# SPDX-License-Identifier: Apache-2.0
# Tests of the C interface from C, and of what is made on it: the Python package, the example in
# Rust.
add_executable(c_interface_test ${CMAKE_CURRENT_LIST_DIR}/c_interface_test.c)
set_target_properties(c_interface_test PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
target_compile_options(c_interface_test PRIVATE -Wall -Wextra -Wpedantic -Werror)
target_link_libraries(c_interface_test PRIVATE tartan tartan_options tartan_watched)
add_test(NAME bindings_c_interface COMMAND c_interface_test)
set_tests_properties(bindings_c_interface PROPERTIES LABELS bindings TIMEOUT 120)

# Python: the system's, for which scripts/setup installs NumPy. A sanitizer's library cannot be
# loaded into a program without it.
find_program(TARTAN_PYTHON python3 HINTS /usr/bin)
if(TARTAN_PYTHON AND TARTAN_LLVM AND NOT TARTAN_SANITIZE)
  set(python_environment "PYTHONPATH=${PROJECT_SOURCE_DIR}/bindings/python;TARTAN_LIBRARY=$<TARGET_FILE:tartan>;PYTHONDONTWRITEBYTECODE=1")
  add_test(NAME bindings_python COMMAND ${TARTAN_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/python_test.py)
  set_tests_properties(bindings_python PROPERTIES LABELS bindings TIMEOUT 120 ENVIRONMENT "${python_environment}")
endif()
