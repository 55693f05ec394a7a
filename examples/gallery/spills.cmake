# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=... -DPTXAS=... -DFOLDER=... -P spills.cmake: PROGRAM writes its kernels' texts to
# FOLDER; PTXAS must assemble each without spills.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND ${PROGRAM} ptx ${FOLDER} ERROR_VARIABLE errors RESULT_VARIABLE code)
file(GLOB texts ${FOLDER}/*.ptx)
if(NOT code EQUAL 0 OR NOT texts)
  message(FATAL_ERROR "${PROGRAM} ptx ended with ${code}\n${errors}")
endif()
foreach(text ${texts})
  string(REGEX MATCH "sm_[0-9]+a?" target "${text}")
  execute_process(COMMAND ${PTXAS} -v -arch=${target} ${text} -o ${text}.cubin ERROR_VARIABLE said RESULT_VARIABLE code)
  string(REGEX MATCH "[1-9][0-9]* bytes spill" spills "${said}")
  if(NOT code EQUAL 0 OR spills OR NOT said MATCHES " 0 bytes spill stores")
    message(FATAL_ERROR "${text}: ${PTXAS} says\n${said}")
  endif()
endforeach()
