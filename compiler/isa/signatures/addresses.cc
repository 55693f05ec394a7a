// SPDX-License-Identifier: Apache-2.0
// Addresses and caches (PTX ISA 9.0, 9.7.9.14 to 9.7.9.24): conversions between state spaces and
// blocks of a cluster, prefetches, cache policies.
#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr QualifierSet spaces =
    "global const local param param::entry shared shared::cta shared::cluster";
constexpr Need of_params{.words = "param", .since = {{7, 7}, 70}};
constexpr Need of_kernel_params{.words = "param::entry", .since = {{8, 3}, 70}};

// Priorities of createpolicy: the first is that of the fraction or range, the second that of the
// rest. Those that can be both may occur twice.
constexpr QualifierSet priorities =
    "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged";
constexpr QualifierSet first_alone = "L2::evict_last L2::evict_normal";
constexpr QualifierSet first_or_second = "L2::evict_first L2::evict_unchanged";

std::string_view second_first(const Spelling& spelling) {
  const std::string_view first =
      spelling.has("L2::evict_last"_q) ? ".L2::evict_last" : ".L2::evict_normal";
  const std::string_view second =
      spelling.has("L2::evict_first"_q) ? ".L2::evict_first" : ".L2::evict_unchanged";
  return in_order(spelling, first, second)
             ? ""
             : "accepts only .L2::evict_last and .L2::evict_normal as the first of two priorities";
}

constexpr OperandRow policy() { return dst(u64, "policy"); }
constexpr OperandRow whole(OperandRow row) { return row.whole = true, row; }

constexpr OperandRow variable_too(OperandRow row, std::uint16_t in = as_qualified) {
  row.accepts = static_cast<std::uint16_t>((row.accepts & ~a_function) | a_variable);
  row.spaces = in;
  return row;
}
constexpr OperandRow fraction() {
  return {.name = "fraction",
          .accepts = a_register | a_float,
          .type = f32,
          .ranged = true,
          .low = 0,
          .high = 1};
}
constexpr OperandRow primary_size() {
  OperandRow out = src(u32, "primary_size");
  out.at_most_next = true;
  return out;
}
constexpr OperandRow line() { return imm(128, 128, "size"); }

// clang-format off
constexpr Signature rows[] = {
    {.opcode = Opcode::isspacep, .one = {spaces}, .operands = {dst(Type::pred, "p"), src(u64)}, .since = {{2, 0}, 20}, .needs = {of_params, of_kernel_params, needs_shared_cta, needs_cluster}},
    {.opcode = Opcode::isspacep, .one = {spaces}, .operands = {dst(Type::pred, "p"), src(u32)}, .since = {{2, 0}, 20}, .needs = {of_params, of_kernel_params, needs_shared_cta, needs_cluster}},
    {.opcode = Opcode::cvta, .types = {u64}, .one = {spaces}, .operands = {dst(OperandType(0), "p"), variable_too(src())}, .since = {{2, 0}, 20}, .needs = {of_params, of_kernel_params, needs_shared_cta, needs_cluster}},
    {.opcode = Opcode::cvta, .types = {u64}, .one = {"to", spaces}, .operands = {dst(OperandType(0), "p"), src()}, .since = {{2, 0}, 20}, .needs = {of_params, of_kernel_params, needs_shared_cta, needs_cluster}},
    {.opcode = Opcode::mapa, .types = {ints_32_64}, .flags = "shared::cluster", .operands = {dst(), variable_too(src(), in_shared), src(u32)}, .since = {{7, 8}, 90}},
    {.opcode = Opcode::getctarank, .types = {ints_32_64}, .flags = "shared::cluster", .operands = {dst(u32), variable_too(src(), in_shared)}, .since = {{7, 8}, 90}},

    {.opcode = Opcode::prefetch, .one = {"L1 L2"}, .any = {"global local"}, .operands = {whole(addr())}, .since = {{2, 0}, 20}},
    {.opcode = Opcode::prefetch, .one = {"L2::evict_last L2::evict_normal"}, .flags = "global", .operands = {whole(addr())}, .since = {{7, 4}, 80}},
    {.opcode = Opcode::prefetch, .one = {"L1::32B", "valid_addr"}, .flags = "global", .operands = {whole(addr())}, .since = {{9, 4}, 90}},
    {.opcode = Opcode::prefetch, .one = {"tensormap"}, .any = {"const param"}, .operands = {addr()}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::prefetchu, .one = {"L1"}, .operands = {whole(addr(in_global))}, .since = {{2, 0}, 20}},
    {.opcode = Opcode::applypriority, .one = {"L2::evict_normal"}, .flags = "global", .operands = {whole(addr()), line()}, .since = {{7, 4}, 80}},
    {.opcode = Opcode::discard, .one = {"L2"}, .flags = "global", .operands = {target(), line()}, .since = {{7, 4}, 80}, .memory = {{.operand = 0, .access = Access::Write, .bytes_operand = 1}}},
    {.opcode = Opcode::createpolicy, .types = {b64}, .one = {"fractional", priorities}, .twice = first_or_second, .operands = {policy(), optional(fraction())}, .since = {{7, 4}, 80}},
    {.opcode = Opcode::createpolicy, .types = {b64}, .one = {"fractional", "L2::evict_first", "L2::evict_unchanged"}, .operands = {policy(), optional(fraction())}, .since = {{7, 4}, 80}},
    {.opcode = Opcode::createpolicy, .types = {b64}, .one = {"fractional", first_alone, first_or_second}, .operands = {policy(), optional(fraction())}, .since = {{7, 4}, 80}, .refuses = second_first},
    {.opcode = Opcode::createpolicy, .types = {b64}, .one = {"range", priorities}, .flags = "global", .twice = first_or_second, .operands = {policy(), addr(), primary_size(), src(u32, "total_size")}, .since = {{7, 4}, 80}},
    {.opcode = Opcode::createpolicy, .types = {b64}, .one = {"range", "L2::evict_first", "L2::evict_unchanged"}, .flags = "global", .operands = {policy(), addr(), primary_size(), src(u32, "total_size")}, .since = {{7, 4}, 80}},
    {.opcode = Opcode::createpolicy, .types = {b64}, .one = {"range", first_alone, first_or_second}, .flags = "global", .operands = {policy(), addr(), primary_size(), src(u32, "total_size")}, .since = {{7, 4}, 80}, .refuses = second_first},
    {.opcode = Opcode::createpolicy, .types = {b64}, .one = {"cvt", "L2"}, .operands = {policy(), src(u64)}, .since = {{7, 4}, 80}},
};
// clang-format on

}  // namespace

std::span<const Signature> addresses_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
