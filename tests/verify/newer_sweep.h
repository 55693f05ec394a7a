// SPDX-License-Identifier: Apache-2.0
// tests/verify/newer_sweep.h - statements of PTX 9.1 to 9.5 with the verdicts of CUDA 13.5's
// assembler (tests/data/isa/newer/README.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tartan::sweep::newer {

inline constexpr std::string_view targets[] = {
    "sm_75",   "sm_80",   "sm_86",  "sm_87",   "sm_88",   "sm_89",  "sm_90",   "sm_90a",  "sm_100",
    "sm_100a", "sm_100f", "sm_103", "sm_103a", "sm_103f", "sm_107", "sm_107a", "sm_107f", "sm_110",
    "sm_110a", "sm_110f", "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f"};
inline constexpr std::string_view assembled[] = {"sm_80",   "sm_90",   "sm_100",  "sm_100a",
                                                 "sm_103a", "sm_107a", "sm_107f", "sm_110f",
                                                 "sm_120a", "sm_120f"};

inline const std::vector<std::string> families = {
    "cvt",    "packed", "integer",       "ldst",   "mbar",   "fences", "bulk",
    "tensor", "fabric", "fabric_tensor", "matrix", "sparse", "tc",     "words"};

enum class Verdict { Refused, Taken, Unknown };

struct Statement {
  std::string cells;  // of each target: the minor version that takes it first, - never, ! a crash
  std::string code;   // of each assembled target: + assembles, c does not, ! a crash, . refused
  std::string text;

  Verdict verdict(std::string_view target, int minor) const;
};

/// FAMILY.csv of the folder, or FAMILY.csv.xz.
std::vector<Statement> read_family(const std::string& folder, const std::string& family);

/// A difference on purpose: a line KIND FAMILY PAIRS : PATTERN of explained.txt, perhaps with
/// exceptions, each behind an exclamation mark.
struct Explained {
  std::string kind, pairs, pattern;
  std::vector<std::string> except;
  mutable int used = 0;

  bool matches(std::string_view pair, std::string_view text) const;
};
std::vector<Explained> read_explained(const std::string& folder, const std::string& family);

/// What the recording had around its statements.
std::string header(const std::string& target, const std::string& version);
std::string function(std::size_t number);

}  // namespace tartan::sweep::newer
