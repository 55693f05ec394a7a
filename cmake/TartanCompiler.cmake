# SPDX-License-Identifier: Apache-2.0
# The oldest compilers that Tartan's headers are tested with (docs/cmake.md). Installed: the package
# refuses older ones, too.
#
#   tartan_check_compiler(unfit)   ->  unfit: empty, or why this project's compiler will not do
function(tartan_check_compiler out)
  set(oldest_GNU 11)
  set(oldest_Clang 16)
  set(oldest ${oldest_${CMAKE_CXX_COMPILER_ID}})
  set(unfit "")
  if(oldest AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS oldest)
    set(unfit "Tartan needs a compiler with C++20: expected GCC ${oldest_GNU} or Clang ${oldest_Clang} or newer, "
              "found ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}; -DCMAKE_CXX_COMPILER=g++-12 names another one")
    string(CONCAT unfit ${unfit})
  endif()
  set(${out} "${unfit}" PARENT_SCOPE)
endfunction()
