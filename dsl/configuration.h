// SPDX-License-Identifier: Apache-2.0
// dsl/configuration.h - the target and the options that a kernel is described for, and what follows
// from both: threads, registers. Not installed.
#pragma once

#include "compiler/codegen/function_builder.h"
#include "tartan/dsl/kernel.h"
#include "tartan/isa/target.h"

namespace tartan::inline TARTAN_ABI::detail {

struct Configuration {
  /// Options as the target has them.
  Configuration(const KernelOptions& options, const Target& target);

  Target target;
  KernelOptions options;

  codegen::LaunchBounds bounds() const;
  bool has_tma() const { return target.arch.sm >= 90 && target.ptx >= Version{8, 0}; }
  int all_threads() const { return options.block + 32 * options.producers; }

  /// Whether producers give registers to consumers (setmaxnreg): whole warpgroups on sm_90a, one
  /// block on a multiprocessor.
  bool moves_registers() const;
  /// Of a thread; of a consumer, where there are producers.
  int registers() const;
  int first_registers() const;     // before any are given
  int consumer_registers() const;  // when producers have given theirs up
  static constexpr int producer_registers = 24;
};

}  // namespace tartan::inline TARTAN_ABI::detail
