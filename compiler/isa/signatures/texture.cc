// SPDX-License-Identifier: Apache-2.0
// Texture fetches and queries (PTX ISA 9.0, 9.7.10).
#include <vector>

#include "compiler/isa/signatures/families.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

using Rows = std::vector<Signature>;

constexpr Since with_offsets{{4, 3}, 20};  // and with depth comparison

constexpr void append(Signature& to, const OperandRow& operand) {
  to.operands.items[to.operands.size++] = operand;
}

// d or d|p: whether the texture has memory there.
constexpr OperandRow texels_read() {
  OperandRow out = written(also(a_pair, vec(as_written, OperandType(0), "d")));
  out.sinks = SinkInPair::First;
  out.part_since = {{7, 1}, 60};
  return out;
}
// [a, c] or [a, b, c]: texture, sampler, coordinates. Samplers in registers came later.
constexpr OperandRow sample_of(OperandType coordinates) {
  OperandRow out = addr(as_texture, "a");
  out.type = coordinates;
  out.coordinates = texels;
  out.sampled = true;
  out.part_since = with_offsets;
  return out;
}
constexpr OperandRow offset() {
  OperandRow out = also(a_register | an_integer, vec(texel_offsets, Type::s32, "e"));
  return out;
}
constexpr OperandRow depth() { return {.name = "f", .accepts = a_register | a_float, .type = f32}; }
constexpr OperandRow gradient(std::string_view name) {
  return also(a_float, vec(gradients, f32, name));
}

// The row alone, and with its optional operands: offsets, a depth to compare with, both.
void with_options(Rows& out, Signature row, bool offsets, bool depths) {
  out.push_back(row);
  if (row.since.ptx < with_offsets.ptx) row.since.ptx = with_offsets.ptx;
  if (depths) {
    out.push_back(row);
    append(out.back(), depth());
  }
  if (offsets) {
    append(row, offset());
    out.push_back(row);
  }
  if (offsets && depths) {
    append(row, depth());
    out.push_back(row);
  }
}

// Four numbers, or two of .f16x2.
std::string_view packed_in_two(const Spelling& spelling) {
  const bool packed = spelling.type() == Type::f16x2;
  if (packed == spelling.has("v2"_q)) return "";
  return packed ? "requires .v2 with .f16x2" : "requires .v4; .v2 needs .f16x2";
}

// The forms of fetches: image dimensions, and options.
struct Images {
  QualifierSet dimensions;
  TypeSet coordinates;
  bool offsets, depths;  // optional: of coordinates, to compare with
  bool levels = true;    // they have .level and .grad
  Since since = {{1, 5}, 10};
};
constexpr Images images[] = {
    {"1d 2d a1d a2d", f32, true, true},
    {"1d 2d a1d a2d", Type::s32, true, false},
    {"3d", {f32, Type::s32}, true, false},
    {"cube acube", f32, false, true, true, {{3, 0}, 20}},
    {"2dms a2dms", Type::s32, true, false, false, {{3, 2}, 30}},
};

void fetch(Rows& out, const Images& of) {
  Signature row{.opcode = Opcode::tex,
                .types = {{Type::u32, Type::s32, Type::f16, f32, Type::f16x2}, of.coordinates},
                .one = {of.dimensions, "v2 v4"},
                .flags = "base",
                .operands = {texels_read(), sample_of(OperandType(1))},
                .since = of.since,
                .needs = {{.types = {Type::f16, Type::f16x2}, .since = {{4, 2}, 53}},
                          {.words = "a1d a2d", .since = {{3, 0}, 20}}},
                .memory = {{.operand = 1, .access = Access::Read, .proxy = Proxy::Texture}},
                .refuses = packed_in_two};
  with_options(out, row, of.offsets, of.depths);
  if (!of.levels) return;
  row.flags = {};
  Signature level = row;
  level.one.items[level.one.size++] = "level";
  append(level, also(an_integer | a_float, reg(OperandType(1), "lod")));
  with_options(out, level, of.offsets, of.depths);
  Signature grad = row;
  grad.one.items[grad.one.size++] = "grad";
  append(grad, gradient("dPdx"));
  append(grad, gradient("dPdy"));
  if (of.dimensions == QualifierSet("cube acube")) grad.since = with_offsets;
  with_options(out, grad, of.offsets, of.depths);
}

// One component of the four texels that a sample lies between.
void gather(Rows& out, const QualifierSet& dimensions, bool offsets, Since since) {
  const Signature row{.opcode = Opcode::tld4,
                      .types = {{Type::u32, Type::s32, f32}, f32},
                      .one = {"r g b a", dimensions, "v4"},
                      .operands = {texels_read(), sample_of(OperandType(1))},
                      .since = since,
                      .memory = {{.operand = 1, .access = Access::Read, .proxy = Proxy::Texture}}};
  with_options(out, row, offsets, true);
}

constexpr Need later_queries{.words = "array_size num_mipmap_levels num_samples",
                             .since = {{4, 1}, 10}};

// clang-format off
constexpr Signature queries[] = {
    {.opcode = Opcode::txq, .types = {b32}, .one = {"width height depth channel_data_type channel_order normalized_coords array_size num_mipmap_levels num_samples"}, .operands = {dst(), addr(as_texture, "a")}, .since = {{1, 5}, 10}, .needs = {later_queries}},
    {.opcode = Opcode::txq, .types = {b32}, .one = {"level", "width height depth"}, .operands = {dst(), addr(as_texture, "a"), also(an_integer, reg(u32, "lod"))}, .since = with_offsets},
    {.opcode = Opcode::txq, .types = {b32}, .one = {"filter_mode addr_mode_0 addr_mode_1 addr_mode_2"}, .operands = {dst(), addr(as_sampling, "a")}, .since = {{1, 5}, 10}},
    {.opcode = Opcode::txq, .types = {b32}, .one = {"force_unnormalized_coords"}, .operands = {dst(), addr(as_sampler, "a")}, .since = {{1, 5}, 10}},
    {.opcode = Opcode::istypep, .one = {"texref samplerref surfref"}, .operands = {dst(Type::pred, "p"), src(u64)}, .since = {{4, 0}, 30}},
};
// clang-format on

Rows make() {
  Rows out;
  for (const Images& each : images) fetch(out, each);
  gather(out, "2d", true, {{2, 2}, 20});
  gather(out, "a2d", true, with_offsets);
  gather(out, "cube acube", false, with_offsets);
  out.insert(out.end(), std::begin(queries), std::end(queries));
  return out;
}

}  // namespace

std::span<const Signature> texture_signatures() {
  static const Rows rows = make();
  return rows;
}

}  // namespace tartan::TARTAN_ABI::isa
