// SPDX-License-Identifier: Apache-2.0
// tests/verify/opcode_sweep.h - the opcode sweep: statements with every instruction, right and
// wrong, with the assembler's verdict for each on pairs of target and PTX version.
//
// tests/data/isa/sweep/README.md describes the format; spec.py there expands the same text for the
// program that records the verdicts.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/text_files.h"

namespace tartan::sweep {

struct Common {
  std::map<std::string, std::vector<std::string>> pairs, types, lists;
  std::vector<std::string> words, operands;
};

struct Slot {
  char letter = '.';
  std::vector<std::string> words;
  bool part = true;  // of the mnemonic
};

struct Block {
  std::string name, pairs = "usual";
  unsigned keep = 1, of = 1, mutate = 0;
  bool apart = false;  // each statement has its own function
  bool alone = false;  // each statement is a module
  std::vector<Slot> slots;
  std::vector<std::string> operands;

  std::vector<std::string> statements(const Common& common) const;
};

/// The assembler's verdicts on one block.
struct Recorded {
  std::size_t count = 0;
  std::string checksum;
  std::vector<std::uint64_t> verdicts;  // of each statement: a bit a pair, the first the highest
  std::set<std::size_t> crashes;        // statements without a verdict: the assembler crashes
};

Common read_common();
std::vector<Block> read_family(const Common& common, const std::string& family);
std::map<std::string, Recorded> read_verdicts(const std::string& family);
std::string checksum(const std::vector<std::string>& statements);
std::uint32_t crc32(std::string_view text);
/// Its disagreements are counted, but are not failures yet.
bool is_unfinished(const std::string& family);

/// A pseudorandom function of a number.
std::uint32_t mix(std::uint32_t value);
using test::split;

/// "sm_90a/8.0"
struct Pair {
  explicit Pair(const std::string& text);
  std::string target, ptx;
};

/// The module of a statement in an `alone` block.
std::string module_alone(const Pair& pair, std::string statement);

/// A module with the statements, and the line of each; a statement in its own function has all
/// lines of the function.
struct Text {
  std::string text;
  std::map<int, std::size_t> places;
};
Text module_text(const Pair& pair, const std::vector<std::pair<std::string, bool>>& statements);

}  // namespace tartan::sweep
