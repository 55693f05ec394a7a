// SPDX-License-Identifier: Apache-2.0
// tests/mutation/mutants.h - a kernel with one mistake in it: an instruction of the synchronization
// left out, moved or weakened, a condition or an index changed. Mutants are made from the tree: the
// rows of the opcode table say what an instruction is, and edits replace spans of the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/ptx/tree.h"

namespace tartan::mutation {

/// What a mutant changes; each has its share of a kernel's mutants.
enum class Topic : std::uint8_t {
  Barrier,
  Wait,
  Fence,
  Arrive,
  Order,
  Guard,
  Compare,
  Index,
  Stride
};
inline constexpr int topic_count = 9;
std::string_view name(Topic topic);

/// A span of the module's text, and what stands there in the mutant.
struct Edit {
  std::uint32_t offset = 0, length = 0;
  std::string text;
};

struct Mutant {
  Topic topic{};
  int line = 0;                     // of the instruction; an edit moves no line
  std::uint32_t begin = 0;          // of its guard or opcode
  std::string change;               // "delete", "move down", "release to relaxed"
  std::string opcode, instruction;  // as they were
  std::vector<Edit> edits;          // in the order of the text
};

/// All mutants of the kernel, in the order of its text.
std::vector<Mutant> mutants_of(const ptx::Module& module, std::string_view kernel);

/// At most `most[topic]` of each topic, evenly spread over the kernel.
std::vector<Mutant> sample(const std::vector<Mutant>& all, const std::vector<int>& most);

std::string mutated(std::string_view text, const Mutant& mutant);

}  // namespace tartan::mutation
