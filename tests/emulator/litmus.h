// SPDX-License-Identifier: Apache-2.0
// tests/emulator/litmus.h - litmus tests of PTX's memory model, with their right answers.
//
//   for (const LitmusTest& each : read_litmus(TEST_DATA "/litmus/passing.txt"))
//     decide_schedules(each.manifest, options, most);
//
// A file of tests/data/litmus says at its head how programs are written. A thread of a program is
// lane 0 of a warp of its own, in the CTA that the program names. With `lanes` there is a second
// test, whose name ends in -lanes: the threads of a CTA are lanes of one warp, each with code of
// its own. The model knows no warps, so the answer is the same. Each word of the program has 128
// bytes of the buffer `memory`; thread k leaves register rN in word 16 k + N of `registers`.
#pragma once

#include <string>
#include <vector>

#include "runtime/manifest.h"

namespace tartan::test {

struct LitmusTest {
  std::string name = {};
  bool racy = false;      // some execution that the model allows has a race
  bool deadlock = false;  // some schedule gets where no thread can end any more
  bool endless = false;   // some fair schedule never ends
  Manifest manifest = {};
};

std::vector<LitmusTest> read_litmus(const std::string& path);

}  // namespace tartan::test
