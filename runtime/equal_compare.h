// SPDX-License-Identifier: Apache-2.0
// runtime/equal_compare.h - the results of two runs of `tartan equal`, element by element.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/equal_launch.h"

namespace tartan::TARTAN_ABI::detail {

/// An element of a buffer, as one run left it.
struct ResultElement {
  emulator::Value value;
  std::string bits;  // where it is no value
};

struct ComparedElement {
  // overflowed: the numbers or the bits are infinite or NaN, and the images differ.
  enum class State : std::uint8_t { same, different, close, undecided, overflowed };
  State state = State::same;
  std::size_t buffer = 0, offset = 0, bytes = 1;
  Type type = Type::none;  // none: bytes
  emulator::Value a, b;
  std::string reason;  // undecided
  int line = 0;
  bool of_b = false;  // whose line
};

struct Comparing {
  std::uint64_t elements = 0, unequal = 0;
  std::optional<ComparedElement> different, close, undecided, overflowed;  // the first of each
  bool same() const { return unequal == 0 && elements > 0; }
};

/// Whether the run left something else in a buffer than it found there.
bool writes(const EqualRun& run, const std::vector<EqualBuffer>& buffers, std::size_t buffer);

/// Compares the buffers that are named, or all of them. On a wide draw each number counts by its
/// own size, else by the usual one of its buffer too.
Comparing compare_runs(EqualRun& a, EqualRun& b, const std::vector<EqualBuffer>& buffers,
                       const std::vector<std::string>& outputs, bool wide = false);

/// That one element.
ComparedElement compare_element(EqualRun& a, EqualRun& b, std::size_t buffer, std::size_t offset);

/// "0x1f" or what stands there; and the number.
std::string image_text(const emulator::Value& value);
std::string real_text(const emulator::Value& value);

}  // namespace tartan::TARTAN_ABI::detail
