// SPDX-License-Identifier: Apache-2.0
// compiler/isa/special_registers.h - the predefined registers (PTX ISA 10, "Special Registers").
#pragma once

#include <string_view>

#include "tartan/isa/target.h"
#include "tartan/isa/type.h"

namespace tartan::inline TARTAN_ABI::isa {

struct SpecialRegister {
  std::string_view name;
  Type type;            // of the register, or of each of its elements
  bool vector = false;  // read as .x, .y, .z
  Since since = {{1, 0}, 10};
};

inline constexpr Since clusters{{7, 8}, 90}, lane_mask{{2, 0}, 20}, timers{{3, 1}, 30},
    smem_sizes{{4, 1}, 20}, reserved_smem{{7, 6}, 80};

// clang-format off
inline constexpr SpecialRegister special_registers[] = {
    {"%tid", u32, true}, {"%ntid", u32, true}, {"%laneid", u32}, {"%warpid", u32},
    {"%nwarpid", u32, false, {{2, 0}, 20}}, {"%ctaid", u32, true}, {"%nctaid", u32, true}, {"%smid", u32},
    {"%nsmid", u32, false, {{2, 0}, 20}}, {"%gridid", u64},
    {"%is_explicit_cluster", Type::pred, false, clusters}, {"%clusterid", u32, true, clusters},
    {"%nclusterid", u32, true, clusters}, {"%cluster_ctaid", u32, true, clusters},
    {"%cluster_nctaid", u32, true, clusters}, {"%cluster_ctarank", u32, false, clusters},
    {"%cluster_nctarank", u32, false, clusters},
    {"%lanemask_eq", u32, false, lane_mask}, {"%lanemask_le", u32, false, lane_mask},
    {"%lanemask_lt", u32, false, lane_mask}, {"%lanemask_ge", u32, false, lane_mask},
    {"%lanemask_gt", u32, false, lane_mask},
    {"%clock", u32}, {"%clock_hi", u32, false, {{5, 0}, 20}}, {"%clock64", u64, false, {{2, 0}, 20}},
    {"%globaltimer", u64, false, timers}, {"%globaltimer_lo", u32, false, timers},
    {"%globaltimer_hi", u32, false, timers},
    {"%reserved_smem_offset_begin", b32, false, reserved_smem},
    {"%reserved_smem_offset_end", b32, false, reserved_smem},
    {"%reserved_smem_offset_cap", b32, false, reserved_smem},
    {"%reserved_smem_offset_0", b32, false, reserved_smem},
    {"%reserved_smem_offset_1", b32, false, reserved_smem},
    {"%total_smem_size", u32, false, smem_sizes}, {"%aggr_smem_size", u32, false, {{8, 1}, 90}},
    {"%dynamic_smem_size", u32, false, smem_sizes}, {"%current_graph_exec", u64, false, {{8, 0}, 50}},
    {"WARP_SZ", u32},
};
// clang-format on

/// The register of that name (without .x), or null.
constexpr const SpecialRegister* find_special_register(std::string_view name) {
  for (const SpecialRegister& row : special_registers)
    if (row.name == name) return &row;
  return nullptr;
}

/// Whether `name` is predefined: a special register, or one of the numbered families %pmN, %pmN_64
/// and %envregN.
constexpr bool is_special_register(std::string_view name) {
  if (find_special_register(name)) return true;
  const auto digits = [](std::string_view text) {
    if (text.empty() || text.size() > 2) return false;
    for (const char c : text)
      if (c < '0' || c > '9') return false;
    return true;
  };
  if (name.starts_with("%envreg"))
    return digits(name.substr(7)) && (name.size() == 8 || name.substr(7) <= "31");
  if (name.starts_with("%pm")) {
    name.remove_prefix(3);
    if (name.ends_with("_64")) name.remove_suffix(3);
    return name.size() == 1 && name[0] >= '0' && name[0] <= '7';
  }
  return false;
}

}  // namespace tartan::inline TARTAN_ABI::isa
