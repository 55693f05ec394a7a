// SPDX-License-Identifier: Apache-2.0
// Copies to and from the memory of other nodes (PTX ISA 9.5, 9.7.14): fabric. An endpoint and an
// address name the place there; an mbarrier here learns when the copy is done.
#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr Since first{{9, 3}, 100}, second{{9, 4}, 100};
constexpr QualifierSet by_parts = "mbarrier::complete_tx::16B";
constexpr QualifierSet sizes = "override::global_dim override::global_dim_stride";

// [endpoint, address]; with .counted::bytes also [endpoint, address, counter].
constexpr OperandRow place() {
  OperandRow out = addr(in_register, "place");
  out.remote = true;
  return out;
}
// [map, endpoint, address, {coordinates}], and what overrides fields of the map.
constexpr OperandRow tensor() {
  OperandRow out = addr(in_global, "tensor_map");
  out.remote = true;
  out.coordinates = -1;
  out.whole = true;
  return out;
}
constexpr OperandRow size() {
  return {.name = "size", .accepts = a_register | an_integer, .type = u32};
}
// In shared memory; not by registers of 16 bits.
constexpr OperandRow here(OperandRow row) { return row.type = u32, row; }
constexpr OperandRow source() { return here(addr(in_shared, "src")); }
constexpr OperandRow result() { return here(target("dst", in_shared)); }
constexpr OperandRow barrier() { return here(mbarrier()); }
constexpr OperandRow byte_mask() {
  return with("cp_mask", {.name = "byte_mask", .accepts = a_register | an_integer, .type = u16});
}
constexpr OperandRow all_lanes() { return imm(0xFFFFFFFF, 0xFFFFFFFF, "membermask"); }

constexpr MemoryEffect effect(std::int8_t operand, Access access, std::int8_t bytes = -1) {
  return {.operand = operand,
          .access = access,
          .proxy = Proxy::Async,
          .completion = Completion::Mbarrier,
          .bytes_operand = bytes};
}

std::string_view overridden(const Spelling& spelling) {
  const bool one = spelling.has("override::global_dim"_q),
             more = spelling.has("override::global_dim_stride"_q);
  if (one && !spelling.has("1d"_q)) return "accepts .override::global_dim only with .1d";
  return more && spelling.has("1d"_q) ? "accepts .override::global_dim_stride only with .2d to .5d"
                                      : "";
}

constexpr Signature row(Opcode opcode, QualifierSet completion, Since since) {
  return {.opcode = opcode,
          .one = {"shared::cta", completion, "mbarrier::report::fabric", "relaxed", "sys"},
          .since = since};
}
constexpr Signature with_type(Signature out, QualifierSet operation, TypeSet types) {
  out.types = {types};
  if (!operation.empty()) out.one.items[out.one.size++] = operation;
  return out;
}

// From shared memory to memory there.
constexpr Signature change(Opcode opcode, QualifierSet operation, TypeSet types) {
  const bool copies = operation.empty();
  Signature out = with_type(row(opcode, by_parts, first), operation, types);
  out.any = {copies ? QualifierSet("counted::bytes cp_mask") : QualifierSet("counted::bytes")};
  out.flags = "multimem";
  out.operands = {place(), source(), size(), barrier(), byte_mask()};
  out.memory = {effect(1, Access::Read, 2), effect(3, Access::Atomic)};
  return out;
}
constexpr Signature exchange(QualifierSet operation, TypeSet types) {
  Signature out = with_type(row(Opcode::fabric_try_atom_async, by_parts, second), operation, types);
  out.flags = "L2::cache_hint";
  out.operands = {place(), source(), result(), barrier(), cache_policy()};
  out.memory = {effect(1, Access::Read), effect(2, Access::Write), effect(3, Access::Atomic)};
  return out;
}
constexpr Signature pull(QualifierSet operation, TypeSet types, bool wide = false) {
  Signature out = with_type(row(Opcode::fabric_try_pullred_async, completing,
                                wide ? Since{{9, 3}, 100, Reach::Family} : first),
                            operation, types);
  out.one.items[out.one.size++] = "multimem";
  out.one.items[out.one.size++] = "sync";
  if (wide) out.one.items[out.one.size++] = "acc::f32";
  out.operands = {result(), place(), size(), barrier(), all_lanes()};
  out.memory = {effect(0, Access::Write, 2), effect(3, Access::Atomic)};
  return out;
}
constexpr Signature get() {
  Signature out = with_type(row(Opcode::fabric_try_get_async, completing, first), {}, Type::b128);
  out.flags = "L2::cache_hint";
  out.operands = {result(), place(), size(), barrier(), cache_policy()};
  out.memory = {effect(0, Access::Write, 2), effect(3, Access::Atomic)};
  return out;
}

constexpr Signature tiled(Signature out) {
  out.one.items[out.one.size++] = "override::global_address";
  out.one.items[out.one.size++] = "1d 2d 3d 4d 5d";
  out.any.items[out.any.size++] = sizes;
  out.any.items[out.any.size++] = "tile";
  out.flags = out.flags | QualifierSet("L2::cache_hint");
  out.since = rubin;
  out.refuses = overridden;
  return out;
}
constexpr Signature change_tile(Opcode opcode, QualifierSet operation) {
  Signature out = tiled(row(opcode, by_parts, rubin));
  if (operation.empty()) out.types = {TypeSet(Type::b128)};
  else out.one.items[out.one.size++] = operation;
  out.flags = out.flags | QualifierSet("multimem counted::bytes");
  out.operands = {tensor(), source(), size(), barrier(), cache_policy()};
  out.memory = {effect(1, Access::Read, 2), effect(3, Access::Atomic)};
  return out;
}
constexpr Signature get_tile() {
  Signature out = tiled(row(Opcode::fabric_try_get_async_tensor, completing, rubin));
  out.types = {TypeSet(Type::b128)};
  out.operands = {result(), tensor(), barrier(), cache_policy()};
  out.memory = {effect(0, Access::Write), effect(2, Access::Atomic)};
  return out;
}

constexpr TypeSet compared{Type::u32, Type::s32, Type::u64, Type::s64};
constexpr TypeSet halves{Type::f16, Type::bf16}, half_pairs{Type::f16x2, Type::bf16x2};
constexpr TypeSet operator|(const TypeSet& x, const TypeSet& y) {
  TypeSet out = x;
  out.mask |= y.mask;
  return out;
}
constexpr TypeSet added{Type::u32, Type::u64, f32};
constexpr auto put = Opcode::fabric_try_put_async, red = Opcode::fabric_try_red_async;

// clang-format off
constexpr Signature rows[] = {
    change(put, {}, Type::b128),
    change(red, "add", added | halves | f64), change(red, "min max", compared | halves), change(red, "and or xor", bits_32_64),
    get(),
    pull("add", added | halves), pull("min max", compared | halves), pull("and or xor", bits_32_64), pull("add", halves, true),
    exchange("add", added | half_pairs | f64), exchange("min max", compared | half_pairs), exchange("and or xor", bits_32_64), exchange("exch cas", bits_32_64 | Type::b128),
    change_tile(Opcode::fabric_try_put_async_tensor, {}), change_tile(Opcode::fabric_try_red_async_tensor, "add min max and or xor"), get_tile(),
    {.opcode = Opcode::fabric_submit, .any = {"op_restrict::fetching"}, .since = first},
    {.opcode = Opcode::fabric_submit_commit_group, .since = {{9, 5}, 100}},
    {.opcode = Opcode::fabric_wait, .one = {"sync_restrict::reads"}, .since = first},
    {.opcode = Opcode::fabric_wait, .one = {"sync_restrict::read"}, .operands = {{.name = "n", .accepts = an_integer}}, .since = {{9, 5}, 100}},
};
// clang-format on

}  // namespace

std::span<const Signature> fabric_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
