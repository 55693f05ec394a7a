// SPDX-License-Identifier: Apache-2.0
// tartan/isa/feature.h - what targets have, by an instruction that needs it: the table of
// instructions answers, so that nobody compares versions or names.
//
//   const bool boxes = k.target().has(Feature::tma);
//   const bool one_day = target.arch.has(Feature::tma);   // with a PTX version that is new enough
#pragma once

#include <cstdint>
#include <string_view>

#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI {

/// What a target has or lacks, as whoever writes a kernel asks for it: `target.has(Feature::tma)`.
enum class Feature : std::uint8_t {
  async_copy,              // copies to shared memory that other threads can wait for
  cluster_launch_control,  // CTAs that take over what others of the grid would do
  clusters,                // CTAs that access each other's shared memory
  dependent_launch,        // a launch that begins before the end of the one in front
  eight_bit_conversion,    // to and from e4m3 and e5m2
  mbarrier_try_wait,       // a wait that suspends the thread for a while
  register_moves,          // from warpgroup to warpgroup
  tensor_memory,           // in which products by tcgen05 accumulate
  tf32_conversion,         // to nearest even
  tma,                     // copies of boxes of a tensor
  wgmma,                   // products of a warpgroup, from shared memory
};

/// A row of the table of features: `spelling` is an instruction that a target has if it has the
/// feature.
struct FeatureRow {
  Feature feature;
  std::string_view spelling;
};

// clang-format off
inline constexpr FeatureRow features[] = {
    {Feature::async_copy,           "cp.async.ca.shared.global"},
    {Feature::cluster_launch_control, "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"},
    {Feature::clusters,             "barrier.cluster.arrive"},
    {Feature::dependent_launch,     "griddepcontrol.wait"},
    {Feature::eight_bit_conversion, "cvt.rn.satfinite.e4m3x2.f32"},
    {Feature::mbarrier_try_wait,    "mbarrier.try_wait.shared.b64"},
    {Feature::register_moves,       "setmaxnreg.inc.sync.aligned.u32"},
    {Feature::tensor_memory,        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"},
    {Feature::tf32_conversion,      "cvt.rn.tf32.f32"},
    {Feature::tma,                  "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"},
    {Feature::wgmma,                "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"},
};
// clang-format on

constexpr bool features_are_in_order() {
  for (std::size_t i = 0; i < std::size(features); ++i)
    if (features[i].feature != static_cast<Feature>(i)) return false;
  return features[std::size(features) - 1].feature == Feature::wgmma;
}
static_assert(features_are_in_order());

}  // namespace tartan::TARTAN_ABI
