// SPDX-License-Identifier: Apache-2.0
// tools/kernels/registry.h - the built-in kernels of `tartan emit`: each with its options, their
// help, and the grid of its launch.
//
// A kernel is a row that its own file adds:
//
//   void add_transpose(KernelRegistry& registry) {
//     auto multiple = std::make_shared<int>(8);
//     registry.command().add_option("--multiple", *multiple, "...");
//     registry.add({"transpose", "transposing copy", {"--multiple"},
//                   [=](const Target&) { return Described{kernels::transpose(*multiple)}; }});
//   }
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tartan/dsl/kernel.h"
#include "tartan/runtime/device.h"

namespace tartan::tools {

/// A kernel with its options applied.
struct Described {
  Kernel kernel;
  std::optional<Dim3> grid = {};  // of a launch, if the options determine it
};

struct BuiltinKernel {
  std::string name, summary;
  std::vector<std::string> options;  // "--m": the options it takes, in the order of the help
  std::function<Result<Described>(const Target&)> describe;
};

class KernelRegistry {
 public:
  /// All kernels. Their options are added to `command` and read after it is parsed.
  explicit KernelRegistry(CLI::App& command);

  CLI::App& command() { return command_; }
  void add(BuiltinKernel kernel) { kernels_.push_back(std::move(kernel)); }

  std::span<const BuiltinKernel> all() const { return kernels_; }
  const BuiltinKernel* find(std::string_view name) const;
  /// A usage error for each given option that this kernel does not take.
  Diags refused_options(const BuiltinKernel& kernel) const;

 private:
  CLI::App& command_;
  std::vector<BuiltinKernel> kernels_;
};

}  // namespace tartan::tools
