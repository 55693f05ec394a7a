// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/tuning.h - which configurations were the fastest when they were measured: what
// tune() (tartan/tune.h) and `tartan tune` keep, in a small file of JSON that a program may ship.
//
//   const auto tuning = kernels::Tuning::read("tuning.json");
//   if (!tuning) return tuning.diags();                  // no file, or a damaged one
//   const auto found = tuning->find(gemm, target);       // of any GPU of that target
//   if (!found) return found.diags();
//   const Gemm options = found->value_or(kernels::tuned(gemm, target));
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/kernels/gemm.h"

namespace tartan::TARTAN_ABI::kernels {

/// tuned() of a caller who has that many bytes for the partial sums of split-K: a choice with
/// `splits` above 1 needs a workspace and a second launch, of gemm_sum(). With 0 bytes, tuned().
Gemm tuned(const Gemm& options, const Gpu& gpu, std::int64_t workspace_bytes);

/// Bytes that a launch of the kernel needs for partial sums; 0 if it writes C itself. m and n are
/// those of the options.
std::int64_t workspace_bytes(const Gemm& options);

/// Where something was measured. The same problem may have an entry for each.
struct TunedOn {
  std::string gpu;      // "NVIDIA H100 80GB HBM3"
  std::string driver;   // "sm_90, CUDA 13.0, driver 580.65.06": Device::assembler()
  std::string library;  // "0.1.0, LLVM 22.1.0"
  bool operator==(const TunedOn&) const = default;
};

/// The fastest configuration of a product on a GPU: `choice` has the product's sizes, types, major
/// orders and epilogue, and the configuration.
struct TuningEntry {
  TunedOn on;
  std::string target;  // "sm_90a"
  Gemm choice;
  double us = 0;  // of a product, as measured
};

/// The entries of a file, or of no file. Sizes of products are constants above 0.
class Tuning {
 public:
  /// Text of a file: all mistakes in it, each with its entry.
  static Result<Tuning> parse(std::string_view text, const std::string& name = "<tuning>");
  /// Fails if the file cannot be read or is damaged.
  static Result<Tuning> read(const std::string& path);

  /// The file's text: one entry a line, sorted, so that two files merge line by line.
  std::string text() const;
  const std::vector<TuningEntry>& entries() const { return entries_; }

  /// Adds an entry. One of the same product, target, GPU, driver and library is replaced, unless
  /// only one of the two needs a workspace: then both are kept.
  void add(TuningEntry entry);

  /// Adds these entries to those of the file, which is made if it does not exist. Several processes
  /// may do so at a time: a lock (PATH.lock) makes them wait for each other, and readers see the
  /// old file or the new one. A damaged file is an error and stays as it is.
  Status merge_into(const std::string& path) const;

  /// The choice for this product that was measured there, the fastest whose partial sums need at
  /// most `workspace` bytes; nothing if there is none.
  std::optional<Gemm> find(const Gemm& product, const Target& target, const TunedOn& on,
                           std::int64_t workspace = 0) const;
  /// The same of any GPU, driver and library, for compilation without a GPU. An error if entries of
  /// two GPUs disagree.
  Result<std::optional<Gemm>> find(const Gemm& product, const Target& target,
                                   std::int64_t workspace = 0) const;

 private:
  std::vector<TuningEntry> entries_;
};

}  // namespace tartan::TARTAN_ABI::kernels
