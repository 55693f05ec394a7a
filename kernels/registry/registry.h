// SPDX-License-Identifier: Apache-2.0
// kernels/registry/registry.h - the built-in kernels by name, as `tartan emit` and the C interface
// offer them: each with its options, their help, and the grid of its launch.
//
// A kernel is a row that its own file adds, with the options of its struct
// (kernels/common/options.h):
//
//   void add_gate(KernelRegistry& registry) {
//     registry.add({"gate", "activation(gate) * up", add_options<Gate>(registry, "gate"),
//                   [&registry](const Request& request) -> Result<Described> {
//                     const auto options = read_options<Gate>(registry, request);
//                     if (!options) return options.diags();
//                     return Described{kernels::gate(*options)};
//                   }});
//   }
//
// Options hold values; which of them a caller has written is in the Request. A value may equal the
// default: to write it is to want it.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/registry/option.h"
#include "tartan/dsl/kernel.h"
#include "tartan/kernels/gpu.h"
#include "tartan/runtime/device.h"

namespace tartan::TARTAN_ABI::builtins {

/// What a launch's grid depends on beside the options.
struct LaunchSizes {
  /// The argument of a scalar parameter: "m", "queries".
  std::function<std::int64_t(std::string_view param)> of;
  int multiprocessors = 0;
  Dim3 given = {0, 0, 0};  // what the caller gives of the grid; 0: to be computed
  /// The argument of one that is no size and may be negative: "window".
  std::function<std::int64_t(std::string_view param)> number = of;
};

/// Blocks of a launch along x, y and z; nothing where the caller decides (how many products a batch
/// has).
struct LaunchGrid {
  std::optional<std::uint32_t> x, y = 1, z = 1;
};

/// A buffer of a launch's work space: its elements, and whether they are zeros before the first
/// one.
struct WorkBuffer {
  std::string_view param;
  std::int64_t elements = 0;
  bool zeros = false;
};

/// A kernel that takes the place of another one, whose parameters it has, in some launches. It has
/// no work space.
struct Variant {
  std::string option;  // by which it is that kernel itself: "keys=256"
  Kernel kernel;
  /// The grid of a launch, what the caller gives of it included; none: another kernel serves it.
  std::function<std::optional<LaunchGrid>(const LaunchSizes&)> grid_of;
};

/// A kernel with its options applied.
struct Described {
  Kernel kernel;
  std::optional<Dim3> grid = {};  // of a launch, if the options determine it
  std::function<LaunchGrid(const LaunchSizes&)> grid_of = {};  // otherwise
  Diags warnings = {};                                         // of the options
  std::function<std::vector<WorkBuffer>(const LaunchSizes&, const Dim3& grid)> work_of = {};
  std::vector<Variant> variants = {};  // of which a launch takes the first that serves it

  LaunchGrid launch_grid(const LaunchSizes& sizes) const {
    if (grid_of) return grid_of(sizes);
    return grid ? LaunchGrid{grid->x, grid->y, grid->z} : LaunchGrid{};
  }
  /// The work space among the parameters of `compiled`.
  std::vector<WorkBuffer> work(const Compiled& compiled, const LaunchSizes& sizes,
                               const Dim3& launch) const;
};

/// What a kernel is described for: the GPU, and the names of the options that the caller has
/// written, such as "cluster-splits".
struct Request {
  kernels::Gpu gpu;
  std::vector<std::string> given = {};

  bool gives(std::string_view option) const {
    return std::find(given.begin(), given.end(), option) != given.end();
  }
};

struct BuiltinKernel {
  std::string name, summary;
  std::vector<std::string> options;  // "m": those it takes, in the order of the help
  std::function<Result<Described>(const Request&)> describe;
};

using OptionValue = std::variant<int, bool, std::string, std::vector<std::string>>;

class KernelRegistry {
 public:
  /// All kernels, all options at their defaults.
  KernelRegistry();
  KernelRegistry(const KernelRegistry&) = delete;  // the kernels read these options
  KernelRegistry& operator=(const KernelRegistry&) = delete;

  /// Adds an option that has no value yet, with its default.
  void add_option(Option option, OptionValue usual);
  void add(BuiltinKernel kernel) { kernels_.push_back(std::move(kernel)); }

  std::span<const Option> options() const { return options_; }
  bool has(std::string_view option) const { return find_option(option) != nullptr; }
  bool shows_default(std::string_view option) const {
    const Option* const found = find_option(option);
    return found && found->shows_default;
  }
  /// What a caller has stored, or the default.
  template <typename Value>
  const Value& value(std::string_view option) const {
    return *std::get<Value*>(find_option(option)->value);
  }
  std::span<const BuiltinKernel> all() const { return kernels_; }
  const BuiltinKernel* find(std::string_view name) const;
  /// The GPU of the options gpu and multiprocessors, which runs the target; without a target, the
  /// GPU's own. By default the usual one of the target, or of sm_80.
  Result<kernels::Gpu> gpu(const std::optional<Target>& target) const;
  /// The kernel with its options. A usage error for each given one that it does not take, which
  /// begins with `prefix` and the option's name.
  Result<Described> describe(const BuiltinKernel& kernel, const Request& request,
                             std::string_view prefix) const;

 private:
  Diags refused_options(const BuiltinKernel& kernel, std::span<const std::string> given,
                        std::string_view prefix) const;
  // Clusters for a target that has none, whose CTAs would share nothing.
  Diags refused_clusters(const Request& request, std::string_view prefix) const;

  const Option* find_option(std::string_view name) const;

  std::deque<OptionValue> values_;  // of the options
  std::vector<Option> options_;
  std::vector<BuiltinKernel> kernels_;
};

/// Errors of a built-in kernel: its C++ lines are not the user's, so they are left out.
Diags about_kernel(const std::string& kernel, const Diags& diags);

}  // namespace tartan::TARTAN_ABI::builtins
