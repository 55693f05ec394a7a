// SPDX-License-Identifier: Apache-2.0
// runtime/equal.h - whether two kernels compute the same function of the same buffers over the
// reals, in whatever order they add.
//
// Both run on the emulator; beside its bits each floating-point element carries its value in two
// prime fields, where input elements are random variables (docs/equal.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/manifest.h"

namespace tartan::TARTAN_ABI {

struct EqualOptions {
  std::uint64_t seed = 1;
  /// Buffers whose elements are their bits, not variables; and those that are compared, all of both
  /// kernels where none is named.
  std::vector<std::string> exact, outputs;
  std::uint64_t max_steps = DeviceOptions{}.max_steps;
  double timeout = 0;
  /// Seconds after which no more runs are made to find the term that differs.
  double explain = 20;
};

/// A result's element that is not the same, or not known to be.
struct UnequalElement {
  std::string buffer;
  std::uint64_t index = 0;   // of the element
  std::uint64_t offset = 0;  // bytes
  std::string type;
  std::string a, b;  // images in the field, in hexadecimal; or what else stands there
  std::string real_a, real_b;
};

/// An input element on which the two results depend differently.
struct UnequalTerm {
  std::string buffer;
  std::uint64_t index = 0;
  std::uint64_t elements = 1;  // from `index` on, where it was not found which one
  std::string text;            // "only A depends on it"
};

/// A comparison, minimum or maximum that rests on inputs and went one way in all draws.
struct EqualPath {
  std::string ptx;
  int line = 0;
  std::string text;  // "min.f32 on line 12 always took its first operand"
};

struct Equality {
  enum class Verdict : std::uint8_t { same, different, undecided, refused, trapped };
  Verdict verdict = Verdict::refused;
  std::string a, b;                         // the names of the two
  std::uint64_t elements = 0, unequal = 0;  // compared; of them those that are not the same
  std::optional<UnequalElement> first;
  std::optional<UnequalTerm> term;
  std::string reason;  // undecided: what stood in the way
  int line = 0;        // of the PTX text; 0 where unknown
  std::string ptx;     // whose line
  std::vector<std::string> notes;
  std::vector<EqualPath> paths;   // same: for these paths
  std::vector<Finding> findings;  // trapped: what `tartan run` reports
  Diags refused;

  /// 0 same, 1 different, 2 refused, 3 trapped, 4 undecided.
  int exit_code() const;
  std::string text() const;
  std::string complaints(bool colour) const;
  std::string json() const;
};

/// Two kernels.
Equality equal(const Manifest& a, const Manifest& b, const EqualOptions& options = {});
/// A kernel and a formula, as docs/equal.md describes it.
Equality equal(const Manifest& a, const std::string& formula, const EqualOptions& options = {});
Equality refused_equality(Diags diags);

}  // namespace tartan::TARTAN_ABI
