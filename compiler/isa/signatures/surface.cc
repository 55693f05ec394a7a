// SPDX-License-Identifier: Apache-2.0
// Surfaces (PTX ISA 9.0, 9.7.11): loads, stores and reductions at coordinates, and queries.
#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr QualifierSet dimensions = "1d 2d 3d a1d a2d";
constexpr QualifierSet plain_dimensions = "1d 2d 3d";
constexpr QualifierSet outside =
    "trap clamp zero";  // behaviour for coordinates outside the surface
constexpr TypeSet sizes{Type::b8, b16, b32, b64};
constexpr Since wide_extremes{{8, 1}, 50};

std::string_view over_128_bits(const Spelling& spelling) {
  return access_bits(spelling) > 128 ? "accesses at most 128 bits" : "";
}

// [a, c]: surface and coordinates.
constexpr OperandRow element_of() {
  OperandRow out = addr(as_surface, "a");
  out.type = Type::s32;
  out.coordinates = texels;
  return out;
}
constexpr OperandRow loaded() { return wider(written(vec(as_written, OperandType(0), "d"))); }
constexpr OperandRow stored() {
  return wider(also(an_integer | a_float, vec(as_written, OperandType(0), "b")));
}
constexpr OperandRow operand() { return wider(also(an_integer, reg(OperandType(0), "b"))); }
constexpr MemoryEffect access(int operand, Access what) {
  return {.operand = static_cast<std::int8_t>(operand), .access = what, .proxy = Proxy::Surface};
}

// sured of some types, by byte (.b) or by element (.p) coordinates.
constexpr Signature reduction(const QualifierSet& by, const QualifierSet& operations,
                              const TypeSet& types, Since since = {{3, 0}, 20}) {
  return {.opcode = Opcode::sured,
          .types = {types},
          .one = {by, operations, plain_dimensions, outside},
          .operands = {element_of(), operand()},
          .since = since,
          .memory = {access(0, Access::Atomic)}};
}

// clang-format off
constexpr Signature rows[] = {
    {.opcode = Opcode::suld, .types = {sizes}, .one = {"b", dimensions, outside}, .any = {"ca cg cs cv", "v2 v4"}, .operands = {loaded(), element_of()}, .since = {{1, 5}, 20}, .memory = {access(1, Access::Read)}, .refuses = over_128_bits},
    {.opcode = Opcode::sust, .types = {sizes}, .one = {"b", dimensions, outside}, .any = {"wb cg cs wt", "v2 v4"}, .operands = {element_of(), stored()}, .since = {{1, 5}, 20}, .memory = {access(0, Access::Write)}, .refuses = over_128_bits},
    {.opcode = Opcode::sust, .types = {b32}, .one = {"p", dimensions, outside}, .any = {"wb cg cs wt", "v2 v4"}, .operands = {element_of(), stored()}, .since = {{2, 0}, 20}, .needs = {{.words = "a1d a2d", .since = {{4, 1}, 20}}}, .memory = {access(0, Access::Write)}},
    reduction("b", "add", {Type::u32, Type::s32, u64}),
    reduction("b", "min max", {Type::u32, Type::s32}),
    reduction("b", "min max", {u64, Type::s64}, wide_extremes),
    reduction("b", "and or", b32),
    reduction("p", "add min max and or", b32),
    reduction("p", "min max", b64, wide_extremes),
    {.opcode = Opcode::suq, .types = {b32}, .one = {"width height depth channel_data_type channel_order array_size memory_layout"}, .operands = {dst(), addr(as_surface, "a")}, .since = {{1, 5}, 20}, .needs = {{.words = "array_size", .since = {{4, 1}, 20}}, {.words = "memory_layout", .since = {{4, 2}, 20}}}},
};
// clang-format on

}  // namespace

std::span<const Signature> surface_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
