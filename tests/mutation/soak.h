// SPDX-License-Identifier: Apache-2.0
// tests/mutation/soak.h - runs the mutants of a subject and compares those that nothing showed with
// the recorded ones.
//
// tests/data/mutation/NAME.txt lists them, one a line:
//
//   triton/softmax 97 barrier: delete | bar.sync 0; | equal: each warp reads only its own words
//
// that is the kernel, the line of its text, topic and change, the instruction, and why nothing
// shows:
//
//   code:   NVIDIA's assembler makes the same machine code of it
//   equal:  the kernel computes the same in every order; the text says why
//   gap:    it is wrong, and the emulator does not see it (docs/emulator.md lists these gaps)
//
// A mutant that survives and is not listed fails the test, and so does a listed one that is found
// now. TARTAN_MUTANTS=all runs all of them in place of a sample; with it TARTAN_REBASE=1 writes the
// list anew, the reasons kept and `?` where there was none. TARTAN_MUTATE=NAME runs the subjects
// whose names begin so.
#pragma once

#include <string>
#include <vector>

#include "tests/mutation/mutants.h"
#include "tests/mutation/subjects.h"

namespace tartan::mutation {

/// Runs the mutants of all subjects, and fails as above. `list`: the file's name.
void soak(const std::vector<Subject>& subjects, const std::string& list);

}  // namespace tartan::mutation
