// SPDX-License-Identifier: Apache-2.0
// dsl/state/configuration.h - the target and options of a kernel, and the threads and registers
// that follow from them. Not installed.
#pragma once

#include "compiler/ir/function_builder.h"
#include "tartan/dsl/kernel.h"
#include "tartan/isa/feature.h"
#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI::detail {

/// Whether KernelOptions::roles is a list that kernels can have; an empty one is.
bool has_known_roles(const KernelOptions& options);
/// The same options with such a list as `block` and `producers`.
KernelOptions with_roles(KernelOptions options);

struct Configuration {
  /// Adjusts the options to the target.
  Configuration(const KernelOptions& options, const Target& target);

  Target target;
  KernelOptions options;

  ir::LaunchBounds bounds() const;
  bool has_async_copy() const { return target.has(Feature::async_copy); }
  bool has_tma() const { return target.has(Feature::tma); }
  int all_threads() const { return options.block + 32 * options.producers; }

  /// Whether producers give registers to consumers (setmaxnreg): whole warpgroups on sm_90a, one
  /// block on a multiprocessor.
  bool moves_registers() const;
  /// Per thread; with producers, per consumer thread.
  int registers() const;
  /// Per thread, where the kernel starts: what the assembler may use for any of its instructions.
  int starting_registers() const;
  int first_registers() const;     // before setmaxnreg
  int consumer_registers() const;  // after producers have released theirs
  static constexpr int producer_registers = 24;
};

}  // namespace tartan::TARTAN_ABI::detail
