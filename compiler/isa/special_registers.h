// SPDX-License-Identifier: Apache-2.0
// compiler/isa/special_registers.h - the predefined registers (PTX ISA 9.0, 10, "Special
// Registers").
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "tartan/isa/target.h"
#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::isa {

/// Every predefined register. Of vectors: the elements. Of numbered registers: the first; add the
/// number.
enum class SpecialRegister : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  laneid,
  warpid,
  nwarpid,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  smid,
  nsmid,
  gridid,
  is_explicit_cluster,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  cluster_ctarank,
  cluster_nctarank,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock_hi,
  clock64,
  globaltimer,
  globaltimer_lo,
  globaltimer_hi,
  reserved_smem_offset_begin,
  reserved_smem_offset_end,
  reserved_smem_offset_cap,
  reserved_smem_offset_0,
  reserved_smem_offset_1,
  total_smem_size,
  aggr_smem_size,
  dynamic_smem_size,
  current_graph_exec,
  perctamemoryoffset,
  perctamemorysize,
  locality_domain_id,
  locality_domain_supplemental_sm,
  warp_sz,
  envreg,
  pm = envreg + 32,
  pm_64 = pm + 8,
};

struct SpecialRegisterRow {
  std::string_view name;
  SpecialRegister first;  // of a vector, its x
  Type type;              // of the register, or of each of its elements
  bool vector = false;    // read as .x, .y, .z
  bool varies = false;    // may change while a warp runs
  bool of_block = false;  // the same in all threads of a block
  Since since = {{1, 0}, 10};
  std::uint8_t count = 0;           // numbered registers: %envreg0 to %envreg31
  std::string_view suffix = {};     // after the number: %pm0_64
  std::string_view directive = {};  // a kernel that reads it must have
};

inline constexpr Since clusters{{7, 8}, 90}, lane_mask{{2, 0}, 20}, timers{{3, 1}, 30},
    smem_sizes{{4, 1}, 20}, reserved_smem{{7, 6}, 80};

// clang-format off
inline constexpr SpecialRegisterRow special_registers[] = {
    {.name = "%tid", .first = SpecialRegister::tid_x, .type = u32, .vector = true},
    {.name = "%ntid", .first = SpecialRegister::ntid_x, .type = u32, .vector = true, .of_block = true},
    {.name = "%laneid", .first = SpecialRegister::laneid, .type = u32},
    {.name = "%warpid", .first = SpecialRegister::warpid, .type = u32},
    {.name = "%nwarpid", .first = SpecialRegister::nwarpid, .type = u32, .since = {{2, 0}, 20}},
    {.name = "%ctaid", .first = SpecialRegister::ctaid_x, .type = u32, .vector = true, .of_block = true},
    {.name = "%nctaid", .first = SpecialRegister::nctaid_x, .type = u32, .vector = true, .of_block = true},
    {.name = "%smid", .first = SpecialRegister::smid, .type = u32},
    {.name = "%nsmid", .first = SpecialRegister::nsmid, .type = u32, .since = {{2, 0}, 20}},
    {.name = "%gridid", .first = SpecialRegister::gridid, .type = u64},
    {.name = "%is_explicit_cluster", .first = SpecialRegister::is_explicit_cluster, .type = Type::pred, .since = clusters},
    {.name = "%clusterid", .first = SpecialRegister::clusterid_x, .type = u32, .vector = true, .of_block = true, .since = clusters},
    {.name = "%nclusterid", .first = SpecialRegister::nclusterid_x, .type = u32, .vector = true, .of_block = true, .since = clusters},
    {.name = "%cluster_ctaid", .first = SpecialRegister::cluster_ctaid_x, .type = u32, .vector = true, .of_block = true, .since = clusters},
    {.name = "%cluster_nctaid", .first = SpecialRegister::cluster_nctaid_x, .type = u32, .vector = true, .of_block = true, .since = clusters},
    {.name = "%cluster_ctarank", .first = SpecialRegister::cluster_ctarank, .type = u32, .of_block = true, .since = clusters},
    {.name = "%cluster_nctarank", .first = SpecialRegister::cluster_nctarank, .type = u32, .of_block = true, .since = clusters},
    {.name = "%lanemask_eq", .first = SpecialRegister::lanemask_eq, .type = u32, .since = lane_mask},
    {.name = "%lanemask_le", .first = SpecialRegister::lanemask_le, .type = u32, .since = lane_mask},
    {.name = "%lanemask_lt", .first = SpecialRegister::lanemask_lt, .type = u32, .since = lane_mask},
    {.name = "%lanemask_ge", .first = SpecialRegister::lanemask_ge, .type = u32, .since = lane_mask},
    {.name = "%lanemask_gt", .first = SpecialRegister::lanemask_gt, .type = u32, .since = lane_mask},
    {.name = "%clock", .first = SpecialRegister::clock, .type = u32, .varies = true},
    {.name = "%clock_hi", .first = SpecialRegister::clock_hi, .type = u32, .varies = true, .since = {{5, 0}, 20}},
    {.name = "%clock64", .first = SpecialRegister::clock64, .type = u64, .varies = true, .since = {{2, 0}, 20}},
    {.name = "%globaltimer", .first = SpecialRegister::globaltimer, .type = u64, .varies = true, .since = timers},
    {.name = "%globaltimer_lo", .first = SpecialRegister::globaltimer_lo, .type = u32, .varies = true, .since = timers},
    {.name = "%globaltimer_hi", .first = SpecialRegister::globaltimer_hi, .type = u32, .varies = true, .since = timers},
    {.name = "%reserved_smem_offset_begin", .first = SpecialRegister::reserved_smem_offset_begin, .type = b32, .since = reserved_smem},
    {.name = "%reserved_smem_offset_end", .first = SpecialRegister::reserved_smem_offset_end, .type = b32, .since = reserved_smem},
    {.name = "%reserved_smem_offset_cap", .first = SpecialRegister::reserved_smem_offset_cap, .type = b32, .since = reserved_smem},
    {.name = "%reserved_smem_offset_0", .first = SpecialRegister::reserved_smem_offset_0, .type = b32, .since = reserved_smem},
    {.name = "%reserved_smem_offset_1", .first = SpecialRegister::reserved_smem_offset_1, .type = b32, .since = reserved_smem},
    {.name = "%total_smem_size", .first = SpecialRegister::total_smem_size, .type = u32, .since = smem_sizes},
    {.name = "%aggr_smem_size", .first = SpecialRegister::aggr_smem_size, .type = u32, .since = {{8, 1}, 90}},
    {.name = "%dynamic_smem_size", .first = SpecialRegister::dynamic_smem_size, .type = u32, .since = smem_sizes},
    {.name = "%current_graph_exec", .first = SpecialRegister::current_graph_exec, .type = u64, .since = {{8, 0}, 50}},
    {.name = "%perctamemoryoffset", .first = SpecialRegister::perctamemoryoffset, .type = u64, .since = {{9, 4}, 80}, .directive = ".minperctamemory"},
    {.name = "%perctamemorysize", .first = SpecialRegister::perctamemorysize, .type = u32, .since = {{9, 4}, 80}, .directive = ".minperctamemory"},
    {.name = "%locality_domain_id", .first = SpecialRegister::locality_domain_id, .type = u32, .since = {{9, 5}, 100}},
    {.name = "%locality_domain_supplemental_sm", .first = SpecialRegister::locality_domain_supplemental_sm, .type = u32, .since = {{9, 5}, 100}},
    {.name = "WARP_SZ", .first = SpecialRegister::warp_sz, .type = u32},
    {.name = "%envreg", .first = SpecialRegister::envreg, .type = u32, .count = 32},
    {.name = "%pm", .first = SpecialRegister::pm, .type = u32, .varies = true, .count = 8},
    {.name = "%pm", .first = SpecialRegister::pm_64, .type = u64, .varies = true, .count = 8, .suffix = "_64"},
};
// clang-format on

/// The number between the row's name and its suffix in `name`; -1 if `name` has no number, or one
/// that is too high.
constexpr int special_number(const SpecialRegisterRow& row, std::string_view name) {
  if (!name.starts_with(row.name) || !name.ends_with(row.suffix)) return -1;
  name.remove_prefix(row.name.size());
  if (name.size() <= row.suffix.size()) return -1;
  name.remove_suffix(row.suffix.size());
  int number = 0;
  for (const char c : name) {
    if (c < '0' || c > '9' || number >= row.count) return -1;
    number = 10 * number + (c - '0');
  }
  const bool plain = name.size() == 1 || name[0] != '0';
  return plain && number < row.count ? number : -1;
}

/// The row of the register of that name (without .x), or null.
constexpr const SpecialRegisterRow* find_special_register(std::string_view name) {
  for (const SpecialRegisterRow& row : special_registers)
    if (row.count ? special_number(row, name) >= 0 : row.name == name) return &row;
  return nullptr;
}

/// Whether all threads of a block read the same of it.
constexpr bool is_of_block(SpecialRegister which) {
  for (const SpecialRegisterRow& row : special_registers) {
    const int registers = row.vector ? 3 : std::max<int>(row.count, 1);
    const int place = static_cast<int>(which) - static_cast<int>(row.first);
    if (place >= 0 && place < registers) return row.of_block;
  }
  return false;
}

}  // namespace tartan::TARTAN_ABI::isa
