// SPDX-License-Identifier: Apache-2.0
// tests/support/ptx_mutants.h - kernels with one mistake each: an instruction of a text is left
// out, or takes another operand, constant or operation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tartan::testing_mutants {

struct Mutant {
  std::string what;  // "line 40: mma.sync... : two registers of A change places"
  std::string text;
};

/// All of them, in the order of the lines of `kernel`.
std::vector<Mutant> mutants_of(const std::string& text, std::string_view kernel);

}  // namespace tartan::testing_mutants
