// SPDX-License-Identifier: Apache-2.0
// kernels/tuner/tuned_with.h - tuned() where the caller has given a part of the configuration: what
// is given holds, the rest is the fastest beside it. Not installed.
//
//   const GivenSettings given{.hold = [](const Gemm& g) { return g.stages == 5; },
//                             .put = [](Gemm& g) { g.stages = 5; }};
//   const auto options = tuned_with(product, gpu, 0, given);
#pragma once

#include <functional>
#include <optional>

#include "tartan/kernels/gemm.h"
#include "tartan/kernels/k_grouped_gemm.h"
#include "tartan/kernels/scaled_gemm.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// What a caller gives of a configuration whose other settings are chosen.
struct GivenSettings {
  std::function<bool(const Gemm&)> hold = [](const Gemm&) { return true; };
  /// Puts those there that any shape of a kernel may have.
  std::function<void(Gemm&)> put = [](Gemm&) {};
};

/// Of the configurations in which what is given holds, what tuned() would choose; if it holds in no
/// configuration, of those that run when it is put there, and nothing if it runs in no
/// configuration. Options that tuned() leaves as they are, of other types and targets: `options`.
std::optional<Gemm> tuned_with(const Gemm& options, const Gpu& gpu, std::int64_t workspace,
                               const GivenSettings& given);
/// The fastest in which `hold` holds; nothing if it holds in none.
std::optional<ScaledGemm> tuned_with(const ScaledGemm& options, const Gpu& gpu, int groups,
                                     const std::function<bool(const ScaledGemm&)>& hold);
std::optional<KGroupedGemm> tuned_with(const KGroupedGemm& options, const Gpu& gpu, int groups,
                                       const std::function<bool(const KGroupedGemm&)>& hold);

}  // namespace tartan::TARTAN_ABI::kernels::detail
