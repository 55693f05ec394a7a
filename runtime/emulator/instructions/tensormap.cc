// SPDX-License-Identifier: Apache-2.0
// Tensor maps that a kernel makes itself (PTX ISA 9.0, 9.7.9.28): tensormap.replace writes a field
// of one in shared or global memory, tensormap.cp_fenceproxy copies it to where TMA reads it.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"
#include "tartan/runtime/tensor_map.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::size_t map_alignment = 128;

struct FieldRow {
  isa::Qualifier name;
  TensorMapField field;
  bool has_ordinal, wide;
};
constexpr FieldRow fields[] = {
    {"global_address"_q, TensorMapField::address, false, true},
    {"rank"_q, TensorMapField::rank, false, false},
    {"box_dim"_q, TensorMapField::box, true, false},
    {"global_dim"_q, TensorMapField::extent, true, false},
    {"global_stride"_q, TensorMapField::stride, true, true},
    {"element_stride"_q, TensorMapField::element_stride, true, false},
    {"elemtype"_q, TensorMapField::type, false, false},
    {"interleave_layout"_q, TensorMapField::interleave, false, false},
    {"swizzle_mode"_q, TensorMapField::swizzle, false, false},
    {"swizzle_atomicity"_q, TensorMapField::swizzle_atomicity, false, false},
    {"fill_mode"_q, TensorMapField::fill, false, false},
};

std::byte* find_map(Warp& warp, int lane, const Op& where) {
  std::uint64_t at[32];
  addresses(warp, where, at);
  return resolve_range(warp, lane, where.window, at[lane], map_bytes, map_alignment);
}

Stretch map_at(Warp& warp, int lane, const Op& where) {
  std::uint64_t at[32];
  addresses(warp, where, at);
  return {where.window, at[lane], map_bytes};
}

// op.list: the map's address; op.b: the value's slot; op.flags: which row; op.value: the ordinal.
void replace(Warp& warp, const Op& op) {
  const FieldRow& row = fields[op.flags];
  const Op where = address_at(warp, op.list);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::byte* const map = find_map(warp, lane, where);
    if (!map) return;
    const std::uint64_t value =
        row.wide ? lanes<std::uint64_t>(warp, op.b)[lane] : lanes<std::uint32_t>(warp, op.b)[lane];
    const Status done = TensorMap::replace(std::span<std::byte, map_bytes>(map, map_bytes),
                                           row.field, static_cast<std::size_t>(op.value), value);
    if (!done) return warp.fail("tensor-map"_rule, done.diags()[0].message, lane);
    note_lane_access(warp, lane, map_at(warp, lane, where), true);
  }
}

// op.list: both addresses.
void copy_map(Warp& warp, const Op& op) {
  if (!warp.gather(all_lanes)) return;
  const int lane = std::countr_zero(warp.mask);
  std::byte* const to = find_map(warp, lane, address_at(warp, op.list));
  if (!to) return;
  const Op source = address_at(warp, op.list + address_words);
  const std::byte* const from = find_map(warp, lane, source);
  if (!from) return;
  tell(warp, &ValueEvents::store, lane, StoredBytes{to, from, map_bytes});
  std::memcpy(to, from, map_bytes);
  note_lane_access(warp, lane, map_at(warp, lane, source), false);
  note_lane_access(warp, lane, map_at(warp, lane, address_at(warp, op.list)), true);
  tell(warp, &Events::released_map);
}

void decode_replace(Decoder& d) {
  d.spelling.ignore("tile b1024");
  const bool wide = d.spelling.type() == Type::b64;
  std::uint8_t index = 0;
  while (index < std::size(fields) && !d.spelling.has(fields[index].name)) ++index;
  if (index == std::size(fields)) return d.unsupported();
  const FieldRow& row = fields[index];
  if (row.wide != wide) return d.unsupported(wide ? "expected .b32" : "expected .b64");
  const std::size_t count = row.has_ordinal ? 3 : 2;
  if (!d.expect_operands(count, count)) return;
  std::int64_t ordinal = 0;
  if (row.has_ordinal) {
    const auto given = d.integer(d.operand(1));
    if (!given || *given < 0 || *given > 4) return d.unsupported("expected an ordinal from 0 to 4");
    ordinal = *given;
  }
  const std::uint32_t list = append_address(d, d.operand(0), memory_window(d)),
                      value = d.source(count - 1, wide ? Type::b64 : Type::b32);
  Op& op = d.emit(replace);
  op.list = list;
  op.b = value;
  op.flags = index;
  op.value = static_cast<std::uint64_t>(ordinal);
}

void decode_copy(Decoder& d) {
  d.spelling.ignore(
      "global shared::cta tensormap::generic release cta cluster gpu sys sync aligned");
  if (!d.expect_operands(3, 3)) return;
  if (const auto bytes = d.integer(d.operand(2)); !bytes || *bytes != map_bytes)
    return d.unsupported("it copies 128 bytes");
  const std::uint32_t list = append_address(d, d.operand(0), Window::global);
  append_address(d, d.operand(1), Window::shared);
  d.emit(copy_map).list = list;
}

}  // namespace

constexpr EmulatedRow tensormap_rows[] = {
    {Opcode::tensormap_replace, decode_replace, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::ReplacesFields, Idle::No, nothing},
    {Opcode::tensormap_cp_fenceproxy, decode_copy, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(tensormap_rows, topics::tensormap));

}  // namespace tartan::TARTAN_ABI::emulator
