// SPDX-License-Identifier: Apache-2.0
// compiler/isa/special_registers.h - the predefined registers (PTX ISA 10, "Special Registers").
#pragma once

#include <string_view>

#include "compiler/isa/type.h"

namespace tartan::isa {

struct SpecialRegister {
  std::string_view name;
  Type type;            // of the register, or of each of its elements
  bool vector = false;  // read as .x, .y, .z
};

// clang-format off
inline constexpr SpecialRegister special_registers[] = {
    {"%tid", u32, true}, {"%ntid", u32, true}, {"%laneid", u32}, {"%warpid", u32}, {"%nwarpid", u32},
    {"%ctaid", u32, true}, {"%nctaid", u32, true}, {"%smid", u32}, {"%nsmid", u32}, {"%gridid", u64},
    {"%is_explicit_cluster", Type::pred}, {"%clusterid", u32, true}, {"%nclusterid", u32, true},
    {"%cluster_ctaid", u32, true}, {"%cluster_nctaid", u32, true}, {"%cluster_ctarank", u32}, {"%cluster_nctarank", u32},
    {"%lanemask_eq", u32}, {"%lanemask_le", u32}, {"%lanemask_lt", u32}, {"%lanemask_ge", u32}, {"%lanemask_gt", u32},
    {"%clock", u32}, {"%clock_hi", u32}, {"%clock64", u64}, {"%globaltimer", u64}, {"%globaltimer_lo", u32}, {"%globaltimer_hi", u32},
    {"%reserved_smem_offset_begin", b32}, {"%reserved_smem_offset_end", b32}, {"%reserved_smem_offset_cap", b32},
    {"%reserved_smem_offset_0", b32}, {"%reserved_smem_offset_1", b32},
    {"%total_smem_size", u32}, {"%aggr_smem_size", u32}, {"%dynamic_smem_size", u32}, {"%current_graph_exec", u64},
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
  if (name.starts_with("%envreg")) return digits(name.substr(7));
  if (name.starts_with("%pm")) {
    name.remove_prefix(3);
    if (name.ends_with("_64")) name.remove_suffix(3);
    return digits(name);
  }
  return false;
}

}  // namespace tartan::isa
