// SPDX-License-Identifier: Apache-2.0
// kernels/registry/launch_example.h - a small launch of a built-in kernel, for what a caller leaves
// open: the values of parameters such as "queries", the grid, and how large buffers then are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/registry/registry.h"

namespace tartan::TARTAN_ABI::builtins {

class LaunchExample {
 public:
  /// `name` is the kernel's in the registry, whose options are those that it was described with.
  /// All of these outlive the object.
  LaunchExample(const KernelRegistry& registry, std::string name, const Described& described,
                const Compiled& compiled, int multiprocessors);

  Dim3 grid() const { return grid_; }
  /// The argument of a scalar parameter.
  std::int64_t scalar(const std::string& param) const;
  /// What a launch computes from its arguments.
  std::int64_t number(const MapNumber& of) const;
  /// The extents of a tensor map, the innermost dimension first, no further than its buffer goes.
  std::vector<std::uint64_t> extents(const CompiledMap& map) const;
  /// The elements of a pointer's buffer; none: nobody knows.
  std::optional<std::int64_t> elements(const CompiledParam& param) const;

 private:
  std::int64_t option(std::string_view name) const;
  std::int64_t matrices() const;
  std::int64_t of_decode(std::string_view buffer) const;
  std::int64_t of_mla_decode(std::string_view buffer) const;
  std::int64_t of_delta_rule(std::string_view buffer) const;
  std::int64_t of_small_products(std::string_view buffer) const;
  std::int64_t of_products(std::string_view buffer) const;
  std::int64_t beyond_layout(std::string_view buffer) const;

  const KernelRegistry& registry_;
  std::string name_;
  const Compiled& compiled_;
  Dim3 grid_;
  std::vector<WorkBuffer> work_;
};

}  // namespace tartan::TARTAN_ABI::builtins
