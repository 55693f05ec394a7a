// SPDX-License-Identifier: Apache-2.0
// tests/mutation/soak.h - runs the mutants of a subject and compares those that nothing showed with
// the recorded ones.
//
// tests/data/mutation/NAME.txt lists them, one a line:
//
//   triton/softmax barrier: delete | bar.sync #2 | equal: each warp reads only its own words
//
// that is the kernel, topic and change, which of its instructions of that opcode, and why nothing
// shows:
//
//   code:   NVIDIA's assembler makes the same machine code of it
//   equal:  the kernel computes the same in every order; the text says why
//   gap:    it is or may be wrong, and the emulator does not see it
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
