// SPDX-License-Identifier: Apache-2.0
// dsl/launch_numbers.h - what a launch knows of a kernel's values: its parameters, and what follows
// from them alone. Tensor maps are made of such numbers. Not installed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tartan/dsl/kernel.h"
#include "tartan/dsl/scalar.h"

namespace tartan::inline TARTAN_ABI::detail {

class LaunchNumbers {
 public:
  void add_pointer() { values_.push_back(-1); }
  /// A parameter whose value has this id.
  void add_parameter(int value) { values_.push_back(value); }

  /// The number that a value's id stands for, if a launch knows it.
  std::optional<MapNumber> find(int value) const;
  void note(int value, MapNumber number) { derived_[value] = std::move(number); }

 private:
  std::vector<int> values_;           // of each parameter: its value's id; -1: a pointer
  std::map<int, MapNumber> derived_;  // of values that parameters alone decide
};

/// A number that a launch knows: a constant or a parameter.
std::optional<MapNumber> map_number(const LaunchNumbers& numbers, const Scalar& scalar);

}  // namespace tartan::inline TARTAN_ABI::detail
