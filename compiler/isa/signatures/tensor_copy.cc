// SPDX-License-Identifier: Apache-2.0
// Tensor copies by TMA (PTX ISA 9.0, 9.7.9.25.5), and tensor maps (9.7.9.26 to 9.7.9.28).
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
// What replaces fields of the tensor map: its address, its sizes, or sizes and strides.
constexpr QualifierSet sizes = "override::global_dim override::global_dim_stride";
constexpr Need overrides{.words = "override::global_address", .since = rubin};
std::string_view overridden(const Spelling& spelling) {
  const bool one = spelling.has("override::global_dim"_q),
             more = spelling.has("override::global_dim_stride"_q);
  if (!one && !more) return "";
  if (spelling.has("multicast::cluster::16b"_q))
    return "overrides sizes only with a mask of 32 bits, .multicast::cluster::32b";
  if (!spelling.has("override::global_address"_q))
    return "overrides sizes only with .override::global_address";
  if (one != spelling.has("1d"_q))
    return one ? "accepts .override::global_dim only with .1d"
               : "accepts .override::global_dim_stride only with .2d to .5d";
  constexpr QualifierSet modes =
      "im2col im2col::w im2col::w::128 im2col_no_offs im2col_no_offs::w tile::gather4 "
      "tile::scatter4";
  return (spelling.words & modes).empty() ? "" : "overrides sizes only of tiles";
}
std::string_view not_a_load(const Spelling& spelling) {
  const std::string_view order = not_from_global(spelling);
  return order.empty() ? overridden(spelling) : order;
}
std::string_view not_a_store(const Spelling& spelling) {
  const std::string_view order = not_to_global(spelling);
  return order.empty() ? overridden(spelling) : order;
}

constexpr Mode tiles{any_dimensions, "tile", false};
constexpr Mode columns{image_dimensions, "im2col", true, true};
constexpr Mode wide_columns{image_dimensions, "im2col::w im2col::w::128", true, true,
                            with_tensor_memory};
constexpr Mode wide_columns_here{image_dimensions, "im2col::w", true, true, {{8, 6}, 100}};
constexpr Mode wide_columns_128{image_dimensions, "im2col::w::128", true, true, with_tensor_memory};
constexpr Mode plain_columns{image_dimensions, "im2col_no_offs"};
constexpr Mode wide_plain_columns{image_dimensions, "im2col_no_offs::w", true, false, rubin};
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
                .any = {"cta_group::1 cta_group::2", reports, sizes},
                .flags = "L2::cache_hint override::global_address",
                .operands = {target("dst", in_shared), tensor(), mbarrier()},
                .needs = {groups,
                          {.words = "shared::cta", .since = {{8, 6}, 90}},
                          overrides,
                          needs_reports,
                          needs_16_bits,
                          needs_32_bits},
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
                .refuses = not_a_load};
  if (cluster) out.any.items[out.any.size++] = multicasts;
  apply(mode, out);
  if (mode.offsets) append(out, offsets());
  if (cluster)
    for (const OperandRow& each : {blocks_16(), blocks_16(by_16_bits), blocks_32()})
      append(out, each);
  append(out, cache_policy());
  return out;
}

constexpr Signature store(const Mode& mode, bool reduces = false) {
  Signature out{
      .opcode = reduces ? Opcode::cp_reduce_async_bulk_tensor : Opcode::cp_async_bulk_tensor,
      .one = {"global", "shared::cta", "bulk_group"},
      .any = {sizes},
      .flags = "L2::cache_hint override::global_address",
      .operands = {tensor(), addr(in_shared, "src"), cache_policy()},
      .needs = {overrides},
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
      .refuses = not_a_store};
  if (reduces) out.one.items[out.one.size++] = "add min max inc dec and or xor";
  apply(mode, out);
  return out;
}

constexpr Signature prefetch(const Mode& mode) {
  Signature out{.opcode = Opcode::cp_async_bulk_prefetch_tensor,
                .one = {"L2", "global"},
                .any = {"L2::cache_hint L2::evict_last", sizes},
                .flags = "override::global_address",
                .operands = {tensor()},
                .needs = {overrides, {.words = "L2::evict_last", .since = rubin}},
                .refuses = overridden};
  apply(mode, out);
  if (mode.offsets) append(out, offsets());
  append(out, cache_policy());
  return out;
}

constexpr Signature demote(const Mode& mode) {
  Signature out{.opcode = Opcode::applypriority_async_bulk_tensor,
                .one = {"bulk_group", "L2::evict_normal"},
                .any = {sizes},
                .flags = "global override::global_address",
                .operands = {tensor()},
                .refuses = overridden};
  apply(mode, out);
  out.since = rubin;
  if (mode.offsets) append(out, offsets());
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

constexpr OperandRow whole(OperandRow row) { return row.whole = true, row; }
constexpr Since allocations{{9, 5}, 90, Reach::Family};

// clang-format off
constexpr Signature rows[] = {
    load(tiles, true), load(columns, true), load(wide_columns, true), load(four_rows, true),
    load(tiles, false), load(columns, false), load(wide_columns_here, false), load(wide_columns_128, false), load(four_rows_here, false),
    store(tiles), store(plain_columns), store(to_four_rows), store(wide_plain_columns),
    store(tiles, true), store(plain_columns, true), store(to_four_rows, true), store(wide_plain_columns, true),
    prefetch(tiles), prefetch(columns), prefetch(wide_columns), prefetch(four_rows),
    demote(tiles), demote(columns), demote(wide_columns), demote(plain_columns), demote(wide_plain_columns), demote(four_rows),

    field("global_address", b64, false), field("rank", b32, false), field("box_dim global_dim element_stride", b32, true), field("global_stride", b64, true),
    choice("elemtype", 0, 12), choice("elemtype", 13, 15, {{8, 7}, 100, Reach::Family}), choice("interleave_layout", 0, 2),
    choice("swizzle_mode", 0, 3), choice("swizzle_mode", 4, 4, {.ptx = {8, 8}, .sm = 103, .reach = Reach::ArchOnly, .last_sm = 107}), choice("swizzle_atomicity", 0, 3, {{8, 6}, 100, Reach::Family}), choice("fill_mode", 0, 1),
    {.opcode = Opcode::tensormap_replace, .one = {"tile", "alloc_large alloc_small", "b1024"}, .any = {"global shared::cta"}, .operands = {addr()}, .since = allocations, .memory = {{.operand = 0, .access = Access::Write, .proxy = Proxy::Tensormap}}},
    {.opcode = Opcode::tensormap_replace, .types = {b64}, .one = {"tile", "global_address", "alloc_large alloc_small alloc_same", "b1024"}, .any = {"global shared::cta"}, .operands = {addr(), src(OperandType(0), "new_val")}, .since = allocations, .memory = {{.operand = 0, .access = Access::Write, .proxy = Proxy::Tensormap}}},
    {.opcode = Opcode::tensormap_query, .one = {"alloc_class_large", "b1024"}, .any = {"global shared::cta const"}, .operands = {dst(Type::pred, "p"), whole(addr())}, .since = allocations, .memory = {{.operand = 1, .access = Access::Read, .proxy = Proxy::Tensormap}}},
    {.opcode = Opcode::tensormap_cp_fenceproxy, .one = {"global", "shared::cta", "tensormap::generic", "release", "cta cluster gpu sys", "sync", "aligned"}, .operands = {target("dst", in_global), addr(in_shared, "src"), imm(128, 128, "size")}, .since = {{8, 3}, 90},
     .memory = {{.operand = 0, .access = Access::Write, .bytes_operand = 2}, {.operand = 1, .access = Access::Read, .bytes_operand = 2}}, .refuses = not_to_global},
};
// clang-format on

}  // namespace

std::span<const Signature> tensor_copy_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
