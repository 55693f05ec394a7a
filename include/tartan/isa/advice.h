// SPDX-License-Identifier: Apache-2.0
// tartan/isa/advice.h - what is good or bad on which target, though legal or illegal elsewhere:
// facts that the table of instructions does not have, each with its reason. What is legal,
// tartan/isa/feature.h says.
//
//   using isa::Advice;
//   if (!advised(Advice::multicast, target.arch)) std::cout << advice(Advice::multicast).reason;
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI::isa {

/// What may be advised on a target.
enum class Advice : std::uint8_t {
  multicast,          // TMA to all CTAs of a cluster
  register_moves,     // producers give registers to consumers
  gpc_order,          // clusters are numbered by the GPCs that they go to
  split_clusters,     // tuned() considers clusters that divide k
  fp8_by_wgmma_only,  // mma.sync converts fp8 to f16
};

/// A row of the table of advice: the targets where it holds, and why not on others.
struct AdviceRow {
  Advice advice;
  Since where;  // architectures; its PTX version does not matter here
  std::string_view reason;
};

// clang-format off
inline constexpr AdviceRow advices[] = {
    {Advice::multicast, {.ptx = {8, 0}, .sm = 90, .reach = Reach::Family, .last_sm = 119},
     "NVIDIA's assembler advises it only for sm_90a, sm_100a, sm_103a, sm_110a and their families"},
    {Advice::register_moves, {.ptx = {8, 0}, .sm = 90, .reach = Reach::ExactArch},
     "it serves wgmma, whose accumulators fill a consumer's registers"},
    {Advice::gpc_order, {.ptx = {7, 8}, .sm = 90, .last_sm = 90},
     "where clusters go was read from %smid on an H100 and an H200"},
    {Advice::split_clusters, {.ptx = {7, 8}, .sm = 90, .last_sm = 90},
     "it was not measured on others"},
    {Advice::fp8_by_wgmma_only, {.ptx = {7, 8}, .sm = 90, .last_sm = 119},
     "there mma.sync multiplies fp8 at a quarter of the rate, as f16"},
};
// clang-format on

/// The row of a piece of advice.
constexpr const AdviceRow& advice(Advice which) {
  return *std::ranges::find(advices, which, &AdviceRow::advice);
}
/// Whether it holds on an architecture.
constexpr bool advised(Advice which, Arch arch) { return advice(which).where.has(arch); }

static_assert(std::ranges::all_of(advices, [](const AdviceRow& row) {
  return &row == advices + static_cast<std::size_t>(row.advice) && !row.reason.empty();
}));

}  // namespace tartan::TARTAN_ABI::isa
