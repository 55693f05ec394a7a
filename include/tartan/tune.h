// SPDX-License-Identifier: Apache-2.0
// tartan/tune.h - measures which configuration of gemm() is the fastest on the GPU at hand.
//
//   const kernels::Gemm product{.m = 16, .n = 8192, .k = 8192, .a = bf16, .b = bf16, .c = bf16};
//   const auto found = kernels::tune(device, product, {.seconds = 2});
//   if (!found) return found.diags();                       // no GPU, or a wrong product
//   kernels::Tuning winners;
//   winners.add(found->best);
//   if (Status kept = winners.merge_into("tuning.json"); !kept) return kept;
//   // the next start of the program:
//   const auto tuning = kernels::Tuning::read("tuning.json");
//   const kernels::Gemm options = kernels::tuned(product, device, *tuning);
#pragma once

#include <optional>

#include "tartan/cache.h"
#include "tartan/kernels/tuning.h"
#include "tartan/runtime/device.h"

namespace tartan::TARTAN_ABI::kernels {

/// What a search may use.
struct TuneBudget {
  double seconds = 2;          // in all, compilation included; at least one candidate is measured
  int candidates = 160;        // of the cost model, as far as time suffices
  std::int64_t workspace = 0;  // bytes for partial sums: 0 leaves out split-K and stream-K
  std::optional<Cache> cache = {};  // of compiled kernels; none: Cache::open()
};

/// A candidate of a search.
struct Trial {
  Gemm options;
  double us = 0;  // a product's time, the median of the samples behind the first; 0: not measured
  int samples = 0;
  Diags refused;  // why it was not measured; empty with us = 0: no time was left
};

/// What a search found.
struct TuneResult {
  TuningEntry best;
  // The first is what tuned() chooses. Of the others, every second one is the cost model's next
  // best, and those between are of tiles or schedules that have not come before.
  std::vector<Trial> trials;
  double seconds = 0;  // that it took
};

/// Measures the cost model's best configurations of a product on a GPU: with the events of its
/// stream, random operands rotated through more than the second-level cache, launches back to back
/// (short ones in a graph), the last candidates' behind a rest of up to 40 ms, partial sums
/// together with their reduction. All results are compared with the first's bit for bit, on
/// operands whose sums are exact: a difference is an error, and there is no winner.
///
/// Diagnostics: sizes that are not constants, batches, types that tuned() does not choose for.
/// Environment: the device is not a GPU, or its memory does not hold the product twice: its numbers
/// are compared on one set of matrices and timed on others.
Result<TuneResult> tune(const Device& device, const Gemm& product, const TuneBudget& budget = {});

/// What was measured on this GPU with this driver and this version of Tartan, else what the cost
/// model chooses.
Gemm tuned(const Gemm& product, const Device& device, const Tuning& tuning,
           std::int64_t workspace = 0);

/// The keys of this device's entries.
TunedOn tuned_on(const Device& device);

}  // namespace tartan::TARTAN_ABI::kernels
