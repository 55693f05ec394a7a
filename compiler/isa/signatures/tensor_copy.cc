// SPDX-License-Identifier: Apache-2.0
// Tensor copies by TMA (PTX ISA 9.7.9.25.5), and tensor maps (9.7.9.26 to 9.7.9.28).
#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr QualifierSet any_dimensions = "1d 2d 3d 4d 5d";
constexpr QualifierSet image_dimensions = "3d 4d 5d";
constexpr Need groups{.words = "cta_group::1 cta_group::2", .since = with_tensor_memory};

// [map, {coordinates}]
constexpr OperandRow tensor() {
  OperandRow out = addr(in_global, "tensor_map");
  out.coordinates = -1;
  return out;
}
constexpr OperandRow cta_mask() {
  return with("multicast::cluster",
              {.name = "cta_mask", .accepts = a_register | an_integer, .type = u16});
}
constexpr OperandRow offsets() {
  return also(an_integer, vec(image_offsets, u16, "im2col_offsets"));
}

// The mode of a tensor copy: tiles, im2col, or four rows.
struct Mode {
  QualifierSet dimensions, word;
  bool named = true;     // the word is required
  bool offsets = false;  // an operand has the offsets of the image
  Since since = {{8, 0}, 90};
};
constexpr Mode tiles{any_dimensions, "tile", false};
constexpr Mode columns{image_dimensions, "im2col", true, true};
constexpr Mode wide_columns{image_dimensions, "im2col::w im2col::w::128", true, true,
                            with_tensor_memory};
constexpr Mode wide_columns_here{image_dimensions, "im2col::w", true, true, {{8, 6}, 100}};
constexpr Mode wide_columns_128{image_dimensions, "im2col::w::128", true, true, with_tensor_memory};
constexpr Mode plain_columns{image_dimensions, "im2col_no_offs"};
constexpr Mode four_rows{"2d", "tile::gather4", true, false, with_tensor_memory};
constexpr Mode four_rows_here{"2d", "tile::gather4", true, false, {{8, 6}, 100}};
constexpr Mode to_four_rows{"2d", "tile::scatter4", true, false, with_tensor_memory};

constexpr void apply(const Mode& mode, Signature& to) {
  to.one.items[to.one.size++] = mode.dimensions;
  if (mode.named) to.one.items[to.one.size++] = mode.word;
  else to.any.items[to.any.size++] = mode.word;
  to.since = mode.since;
}
constexpr void append(Signature& to, const OperandRow& operand) {
  to.operands.items[to.operands.size++] = operand;
}

constexpr Signature load(const Mode& mode, bool cluster) {
  Signature out{.opcode = Opcode::cp_async_bulk_tensor,
                .one = {cluster ? QualifierSet("shared::cluster") : QualifierSet("shared::cta"),
                        "global", completing},
                .any = {"cta_group::1 cta_group::2"},
                .flags = cluster ? QualifierSet("multicast::cluster L2::cache_hint")
                                 : QualifierSet("L2::cache_hint"),
                .operands = {target("dst", in_shared), tensor(), mbarrier()},
                .needs = {groups, {.words = "shared::cta", .since = {{8, 6}, 90}}},
                .memory = {{.operand = 0,
                            .access = Access::Write,
                            .proxy = Proxy::Async,
                            .completion = Completion::Mbarrier},
                           {.operand = 1,
                            .access = Access::Read,
                            .proxy = Proxy::Async,
                            .completion = Completion::Mbarrier},
                           {.operand = 1,
                            .access = Access::Read,
                            .proxy = Proxy::Tensormap,
                            .completion = Completion::Mbarrier},
                           {.operand = 2,
                            .access = Access::Atomic,
                            .proxy = Proxy::Async,
                            .completion = Completion::Mbarrier}},
                .refuses = not_from_global};
  apply(mode, out);
  if (mode.offsets) append(out, offsets());
  if (cluster) append(out, cta_mask());
  append(out, cache_policy());
  return out;
}

constexpr Signature store(const Mode& mode, bool reduces = false) {
  Signature out{
      .opcode = reduces ? Opcode::cp_reduce_async_bulk_tensor : Opcode::cp_async_bulk_tensor,
      .one = {"global", "shared::cta", "bulk_group"},
      .flags = "L2::cache_hint",
      .operands = {tensor(), addr(in_shared, "src"), cache_policy()},
      .memory = {{.operand = 0,
                  .access = reduces ? Access::Atomic : Access::Write,
                  .proxy = Proxy::Async,
                  .completion = Completion::BulkGroup},
                 {.operand = 0,
                  .access = Access::Read,
                  .proxy = Proxy::Tensormap,
                  .completion = Completion::BulkGroup},
                 {.operand = 1,
                  .access = Access::Read,
                  .proxy = Proxy::Async,
                  .completion = Completion::BulkGroup}},
      .refuses = not_to_global};
  if (reduces) out.one.items[out.one.size++] = "add min max inc dec and or xor";
  apply(mode, out);
  return out;
}

constexpr Signature prefetch(const Mode& mode) {
  Signature out{.opcode = Opcode::cp_async_bulk_prefetch_tensor,
                .one = {"L2", "global"},
                .flags = "L2::cache_hint",
                .operands = {tensor()}};
  apply(mode, out);
  if (mode.offsets) append(out, offsets());
  append(out, cache_policy());
  return out;
}

// tensormap.replace of a field: `.b64` or `.b32`, with the number of the dimension or without.
constexpr Signature field(QualifierSet words, Type type, bool of_dimension) {
  Signature out{.opcode = Opcode::tensormap_replace,
                .types = {type},
                .one = {"tile", words, "b1024"},
                .any = {"global shared::cta"},
                .operands = {addr()},
                .since = {{8, 3}, 90, Reach::Family},
                .memory = {{.operand = 0, .access = Access::Write, .proxy = Proxy::Tensormap}}};
  if (of_dimension) append(out, imm(0, 4, "ord"));
  append(out, src(OperandType(0), "new_val"));
  return out;
}
constexpr Signature choice(QualifierSet word, int low, int high,
                           Since since = {{8, 3}, 90, Reach::Family}) {
  return {.opcode = Opcode::tensormap_replace,
          .types = {b32},
          .one = {"tile", word, "b1024"},
          .any = {"global shared::cta"},
          .operands = {addr(), imm(low, high, "new_val")},
          .since = since,
          .memory = {{.operand = 0, .access = Access::Write, .proxy = Proxy::Tensormap}}};
}

// clang-format off
constexpr Signature rows[] = {
    load(tiles, true), load(columns, true), load(wide_columns, true), load(four_rows, true),
    load(tiles, false), load(columns, false), load(wide_columns_here, false), load(wide_columns_128, false), load(four_rows_here, false),
    store(tiles), store(plain_columns), store(to_four_rows),
    store(tiles, true), store(plain_columns, true), store(to_four_rows, true),
    prefetch(tiles), prefetch(columns), prefetch(wide_columns), prefetch(four_rows),

    field("global_address", b64, false), field("rank", b32, false), field("box_dim global_dim element_stride", b32, true), field("global_stride", b64, true),
    choice("elemtype", 0, 12), choice("elemtype", 13, 15, {{8, 7}, 100, Reach::Family}), choice("interleave_layout", 0, 2),
    choice("swizzle_mode", 0, 3), choice("swizzle_mode", 4, 4, {{8, 8}, 103, Reach::ExactArch}), choice("swizzle_atomicity", 0, 3, {{8, 6}, 100, Reach::Family}), choice("fill_mode", 0, 1),
    {.opcode = Opcode::tensormap_cp_fenceproxy, .one = {"global", "shared::cta", "tensormap::generic", "release", "cta cluster gpu sys", "sync", "aligned"}, .operands = {target("dst", in_global), addr(in_shared, "src"), imm(128, 128, "size")}, .since = {{8, 3}, 90},
     .memory = {{.operand = 0, .access = Access::Write, .bytes_operand = 2}, {.operand = 1, .access = Access::Read, .bytes_operand = 2}}, .refuses = not_to_global},
};
// clang-format on

}  // namespace

std::span<const Signature> tensor_copy_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
