# SPDX-License-Identifier: Apache-2.0
# Tests of the C interface from C, and of what is made on it: the Python package, and the examples in
# C, Rust and Python.
function(c_program name source)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_link_libraries(${name} PRIVATE tartan tartan_options tartan_watched m)
endfunction()

c_program(c_interface_test ${CMAKE_CURRENT_LIST_DIR}/c_interface_test.c)
add_test(NAME bindings_c_interface COMMAND c_interface_test)
set(bindings bindings_c_interface)

if(TARTAN_LLVM)
  c_program(c_gemm ${PROJECT_SOURCE_DIR}/examples/c/gemm.c)
  foreach(size "200;96;136" "33;40;16")
    list(JOIN size x name)
    add_test(NAME bindings_c_gemm_${name} COMMAND c_gemm ${size})
    list(APPEND bindings bindings_c_gemm_${name})
  endforeach()
endif()

# A sanitizer's library cannot be loaded into a program without it. Python is the system's, for which
# scripts/setup installs NumPy. 77: what the test needs is missing, and it says what.
find_program(TARTAN_PYTHON python3 HINTS /usr/bin)
find_program(TARTAN_RUSTC rustc)
if(TARTAN_LLVM AND NOT TARTAN_SANITIZE)
  set(examples ${PROJECT_SOURCE_DIR}/examples)
  if(TARTAN_PYTHON)
    add_test(NAME bindings_python COMMAND ${TARTAN_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/python_test.py)
    add_test(NAME bindings_python_linear COMMAND ${TARTAN_PYTHON} ${examples}/python/linear.py)
    add_test(NAME bindings_python_torch COMMAND ${TARTAN_PYTHON} ${examples}/python/torch_linear.py)
    set(in_python bindings_python bindings_python_linear bindings_python_torch)
    set_property(TEST ${in_python} PROPERTY ENVIRONMENT
      "PYTHONPATH=${PROJECT_SOURCE_DIR}/bindings/python;TARTAN_LIBRARY=$<TARGET_FILE:tartan>;PYTHONDONTWRITEBYTECODE=1")
    set_property(TEST bindings_python APPEND PROPERTY ENVIRONMENT "TARTAN_CUDA_DRIVER=$<TARGET_FILE:fake_cuda>")
    list(APPEND bindings ${in_python})
  endif()
  if(TARTAN_RUSTC)
    set(rust_program ${CMAKE_CURRENT_BINARY_DIR}/gemm_in_rust)
    add_test(NAME bindings_rust COMMAND sh -c
      "${TARTAN_RUSTC} ${examples}/rust/gemm.rs -L $<TARGET_FILE_DIR:tartan> -l tartan -C link-arg=-Wl,-rpath,$<TARGET_FILE_DIR:tartan> -o ${rust_program} && ${rust_program}")
    list(APPEND bindings bindings_rust)
  endif()
endif()
# The examples, as an installed copy has them, against it.
if(TARTAN_LLVM AND TEST library_installed)
  add_test(NAME bindings_installed COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/installed_test.sh ${installed} ${CMAKE_C_COMPILER}
                                           ${TARTAN_PYTHON} ${TARTAN_RUSTC})
  set_tests_properties(bindings_installed PROPERTIES FIXTURES_REQUIRED installed)
  list(APPEND bindings bindings_installed)
endif()
set_tests_properties(${bindings} PROPERTIES LABELS bindings TIMEOUT 120 SKIP_RETURN_CODE 77)
