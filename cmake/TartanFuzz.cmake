# SPDX-License-Identifier: Apache-2.0
# A fuzz target: one LLVMFuzzerTestOneInput, for clang's libFuzzer, or for tests/fuzz/main.cc
# without clang.
#
#   tartan_fuzz(parser CORPUS ${PROJECT_SOURCE_DIR}/tests/data/ptx)   ->  fuzz/parser.cc, test fuzz_parser
#
# With sanitizers it runs for TARTAN_FUZZ_SECONDS. Without, it replays its corpus and a few fixed
# mutations of it.

set(TARTAN_FUZZ_SECONDS 10 CACHE STRING "How long a fuzz test of a sanitizer's build searches, in seconds")

function(tartan_fuzz name)
  cmake_parse_arguments(ARG "" "" "CORPUS" ${ARGN})
  add_executable(fuzz_${name} fuzz/${name}.cc fuzz/main.cc)
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(fuzz_${name} PRIVATE tartan_internal tartan_options tartan_watched)
  if(TARTAN_SANITIZE)
    set(effort -max_total_time=${TARTAN_FUZZ_SECONDS})
  else()
    set(effort -runs=500 -seed=1)
  endif()
  add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${effort} -seed=1 ${ARG_CORPUS})
  set_tests_properties(fuzz_${name} PROPERTIES LABELS fuzz TIMEOUT 7200)
endfunction()
