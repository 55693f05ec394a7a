// SPDX-License-Identifier: Apache-2.0
// Accesses to all GPUs of a multicast object at once (PTX ISA 9.0, 9.7.9.15).
#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr QualifierSet scopes = "cta cluster gpu sys";
constexpr TypeSet added_integers{Type::u32, Type::s32, Type::u64};
constexpr TypeSet added_floats{Type::f32, Type::f64, Type::f16x2, Type::bf16x2};
constexpr TypeSet compared{Type::u32, Type::s32, Type::u64, Type::s64};
constexpr TypeSet integer_types{Type::b32, Type::u32, Type::s32, Type::b64, Type::u64, Type::s64};
constexpr TypeSet halves{Type::f16, Type::bf16};
constexpr TypeSet half_pairs{Type::f16x2, Type::bf16x2};
constexpr TypeSet bytes{Type::e4m3, Type::e5m2};
constexpr TypeSet byte_pairs{Type::e4m3x2, Type::e5m2x2};
constexpr TypeSet byte_quads{Type::e4m3x4, Type::e5m2x4};

std::string_view order_or_weak(const Spelling& spelling) {
  constexpr QualifierSet orders = "relaxed acquire release";
  const bool order = !(spelling.words & orders).empty();
  if (order != !(spelling.words & scopes).empty())
    return order ? "requires a scope with its memory order"
                 : "requires a memory order with its scope";
  return {};
}

// Targets with fp8 arithmetic: sm_100 to sm_110 with suffix a or f, sm_120 and later with a.
constexpr Since hopper{{8, 1}, 90};
constexpr Since with_bytes{.ptx = {8, 6}, .sm = 120, .reach = Reach::ArchOnly};

// A multicast object has no addresses of 32 bits.
constexpr OperandRow source() {
  OperandRow out = addr(in_global, "a");
  out.whole = true;
  return out;
}

// One integer is a register alone; one float may be a vector of one, too, but not of multimem.red.
constexpr OperandRow moved(TypeSet types, QualifierSet vectors, bool changes) {
  const bool integers = (types.mask & integer_types.mask) != 0;
  return vectors.empty() && (integers || changes) ? reg(OperandType(0))
                                                  : vec(as_written, OperandType(0));
}

constexpr Signature load(QualifierSet operation, TypeSet types, QualifierSet vectors, bool vector,
                         Since since = hopper, QualifierSet accumulator = {}) {
  Signature out{.opcode = Opcode::multimem_ld_reduce,
                .types = {types},
                .one = {operation},
                .any = {"weak relaxed acquire", scopes},
                .flags = accumulator | QualifierSet("global"),
                .operands = {named("d", written(moved(types, vectors, false))), source()},
                .since = since,
                .needs = {{.words = "acc::f32", .since = {{8, 2}, 90}}},
                .memory = {{.operand = 1, .access = Access::Read}},
                .refuses = order_or_weak};
  if (!vectors.empty() && vector) out.one.items[out.one.size++] = vectors;
  else if (!vectors.empty()) out.any.items[out.any.size++] = vectors;
  return out;
}
constexpr Signature change(Opcode opcode, QualifierSet operation, TypeSet types,
                           QualifierSet vectors, bool vector, Since since = hopper) {
  const bool stores = opcode == Opcode::multimem_st;
  Signature out{
      .opcode = opcode,
      .types = {types},
      .any = {stores ? QualifierSet("weak relaxed release") : QualifierSet("relaxed release"),
              scopes},
      .flags = "global",
      .operands = {target("a", in_global),
                   also(an_integer | a_float,
                        named("b", moved(types, vectors, opcode == Opcode::multimem_red)))},
      .since = since,
      .memory = {{.operand = 0, .access = stores ? Access::Write : Access::Atomic}},
      .refuses = order_or_weak};
  if (!operation.empty()) out.one.items[out.one.size++] = operation;
  if (!vectors.empty() && vector) out.one.items[out.one.size++] = vectors;
  else if (!vectors.empty()) out.any.items[out.any.size++] = vectors;
  return out;
}
constexpr TypeSet stored_later{Type::b8,  Type::b16, Type::b32, Type::b64, Type::u32,
                               Type::s32, Type::u64, Type::s64, f32,       f64};
constexpr OperandRow later() { return reg(OperandType(0), "b"); }
constexpr auto st = Opcode::multimem_st, red = Opcode::multimem_red;

// clang-format off
constexpr Signature rows[] = {
    load("add", added_integers, {}, false), load("add", added_floats, {}, false), load("add", half_pairs, "v2 v4", true, hopper, "acc::f32"), load("add", half_pairs, {}, false, {{8, 2}, 90}, "acc::f32"), load("add", f32, "v2 v4", true), load("add", halves, "v2 v4 v8", true, hopper, "acc::f32"),
    load("min max", compared, {}, false), load("min max", half_pairs, "v2 v4", false), load("min max", halves, "v2 v4 v8", true), load("and or xor", {Type::b32, Type::b64}, {}, false),
    load("add", byte_quads, "v2 v4", false, with_tensor_memory, "acc::f16"), load("add", byte_quads, "v2 v4", false, with_bytes, "acc::f16"), load("min max", byte_quads, "v2 v4", false, with_tensor_memory), load("min max", byte_quads, "v2 v4", false, with_bytes),
    load("add", byte_pairs, "v2 v4 v8", true, with_tensor_memory, "acc::f16"), load("add", byte_pairs, "v2 v4 v8", true, with_bytes, "acc::f16"), load("min max", byte_pairs, "v2 v4 v8", true, with_tensor_memory), load("min max", byte_pairs, "v2 v4 v8", true, with_bytes),
    load("add", bytes, "v4 v8 v16", true, with_tensor_memory, "acc::f16"), load("add", bytes, "v4 v8 v16", true, with_bytes, "acc::f16"), load("min max", bytes, "v4 v8 v16", true, with_tensor_memory), load("min max", bytes, "v4 v8 v16", true, with_bytes),

    change(st, {}, integer_types, {}, false), change(st, {}, added_floats, {}, false), change(st, {}, {Type::f32, Type::f16x2, Type::bf16x2}, "v2 v4", true), change(st, {}, halves, "v2 v4 v8", true),
    change(st, {}, byte_quads, "v2 v4", false, with_tensor_memory), change(st, {}, byte_quads, "v2 v4", false, with_bytes), change(st, {}, byte_pairs, "v2 v4 v8", true, with_tensor_memory), change(st, {}, byte_pairs, "v2 v4 v8", true, with_bytes), change(st, {}, bytes, "v4 v8 v16", true, with_tensor_memory), change(st, {}, bytes, "v4 v8 v16", true, with_bytes),
    {.opcode = Opcode::multimem_st_async, .types = {stored_later}, .one = {"release", "gpu sys"}, .flags = "global", .operands = {target("a", in_global), later()}, .since = {{9, 3}, 100}, .memory = {{.operand = 0, .access = Access::Write, .proxy = Proxy::Async}}},
    {.opcode = Opcode::multimem_red_async, .types = {added_integers}, .one = {"release", "gpu sys", "add"}, .flags = "global", .operands = {target("a", in_global), later()}, .since = {{9, 3}, 100}, .memory = {{.operand = 0, .access = Access::Atomic, .proxy = Proxy::Async}}},
    change(red, "add", added_integers, {}, false), change(red, "add", added_floats, {}, false), change(red, "add", {Type::f32, Type::f16x2, Type::bf16x2}, "v2 v4", true), change(red, "add", halves, "v2 v4 v8", true),
    change(red, "min max", compared, {}, false), change(red, "min max", half_pairs, "v2 v4", true), change(red, "min max", halves, "v2 v4 v8", true), change(red, "and or xor", {Type::b32, Type::b64}, {}, false),
};
// clang-format on

}  // namespace

std::span<const Signature> multimem_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
