// SPDX-License-Identifier: Apache-2.0
// Atomic operations on memory (PTX ISA 9.0, 9.7.13.11 to 9.7.13.14): atom, red.
#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr QualifierSet orders = "relaxed acquire release acq_rel";
constexpr QualifierSet red_orders = "relaxed release";
constexpr QualifierSet scopes = "cta cluster gpu sys";
constexpr QualifierSet shared = "shared shared::cta shared::cluster";

constexpr TypeSet half_types{Type::f16, Type::bf16, Type::f16x2, Type::bf16x2};
constexpr TypeSet f16_types{Type::f16, Type::f16x2}, bf16_types{Type::bf16, Type::bf16x2};
constexpr TypeSet added{Type::u32, Type::s32, Type::u64, Type::f32, Type::f64};
constexpr TypeSet compared{Type::u32, Type::s32, Type::u64, Type::s64};
constexpr TypeSet swapped{Type::b32, Type::b64, Type::b128};

constexpr Need scoped{.words = scopes, .since = {{5, 0}, 60}};
constexpr Need doubles{.types = {Type::f64}, .since = {{5, 0}, 60}};
constexpr Need packed_halves{.types = {Type::f16x2}, .since = {{6, 2}, 60}};
constexpr Need halves{.types = {Type::f16}, .since = {{6, 3}, 70}};
constexpr Need brain_halves{.types = {Type::bf16, Type::bf16x2}, .since = {{7, 8}, 90}};
constexpr Need wide_type{.types = {Type::b128}, .since = {{8, 3}, 90}};
constexpr Need wide_type_sys{
    .words = "sys", .types = {Type::b128}, .since = {{8, 4}, 90}, .together = true};
constexpr Need short_type{.types = {Type::b16}, .since = {{6, 3}, 70}};

// The assembler crashes on _ in place of a result of bf16.
constexpr OperandRow kept() { return dst(OperandType(0), "d"); }
constexpr OperandRow kept_vector() { return written(vec(as_written, OperandType(0), "d")); }
constexpr OperandRow old() { return also(a_sink, kept()); }
constexpr OperandRow old_vector() { return also(a_sink, kept_vector()); }
constexpr OperandRow in() {
  OperandRow out = target();
  out.unified = true;
  return out;
}
constexpr MemoryEffect atomic{.operand = 1, .access = Access::Atomic};
constexpr MemoryEffect reduction{.operand = 0, .access = Access::Atomic};

// clang-format off
// In global or generic memory.
constexpr Signature rows[] = {
    {.opcode = Opcode::atom, .types = {{Type::b32, Type::b64}}, .one = {"and or xor"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {old(), in(), src(), cache_policy()}, .since = {{1, 1}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {added}, .one = {"add"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {old(), in(), src(), cache_policy()}, .since = {{1, 1}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint, doubles}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {f16_types}, .one = {"add", "noftz"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {old(), in(), src(), cache_policy()}, .since = {{1, 1}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint, packed_halves, halves}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {bf16_types}, .one = {"add", "noftz"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {kept(), in(), src(), cache_policy()}, .since = {{1, 1}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint, brain_halves}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {Type::u32}, .one = {"inc dec"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {old(), in(), src(), cache_policy()}, .since = {{1, 1}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {compared}, .one = {"min max"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {old(), in(), src(), cache_policy()}, .since = {{1, 1}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {swapped}, .one = {"exch"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {old(), in(), src(), cache_policy()}, .since = {{1, 1}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint, wide_type, wide_type_sys}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {{Type::f32}}, .one = {"add", "v2 v4"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {old_vector(), in(), vec(as_written, OperandType(0), "b"), cache_policy()}, .since = {{8, 1}, 90}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {Type::f16}, .one = {"add min max", "noftz", "v2 v4 v8"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {old_vector(), in(), vec(as_written, OperandType(0), "b"), cache_policy()}, .since = {{8, 1}, 90}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {Type::bf16}, .one = {"add min max", "noftz", "v2 v4 v8"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {kept_vector(), in(), vec(as_written, OperandType(0), "b"), cache_policy()}, .since = {{8, 1}, 90}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {Type::f16x2}, .one = {"add min max", "noftz", "v2 v4"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {old_vector(), in(), vec(as_written, OperandType(0), "b"), cache_policy()}, .since = {{8, 1}, 90}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {Type::bf16x2}, .one = {"add min max", "noftz", "v2 v4"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {kept_vector(), in(), vec(as_written, OperandType(0), "b"), cache_policy()}, .since = {{8, 1}, 90}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {{Type::f32}}, .one = {"add", "noftz"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {old(), in(), src(), cache_policy()}, .since = {{9, 4}, 90}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {{Type::f32}}, .one = {"add", "noftz", "v2 v4"}, .any = {orders, scopes}, .flags = "global L2::cache_hint", .operands = {old_vector(), in(), vec(as_written, OperandType(0), "b"), cache_policy()}, .since = {{9, 4}, 90}, .memory = {atomic}},
    // In shared memory.
    {.opcode = Opcode::atom, .types = {{Type::f32}}, .one = {"add", "noftz", shared}, .any = {orders, scopes}, .operands = {old(), in(), src()}, .since = {{9, 4}, 90}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {{Type::b32, Type::b64}}, .one = {"and or xor", shared}, .any = {orders, scopes}, .operands = {old(), in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {added}, .one = {"add", shared}, .any = {orders, scopes}, .operands = {old(), in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta, doubles}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {f16_types}, .one = {"add", "noftz", shared}, .any = {orders, scopes}, .operands = {old(), in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta, packed_halves, halves}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {bf16_types}, .one = {"add", "noftz", shared}, .any = {orders, scopes}, .operands = {kept(), in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta, brain_halves}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {Type::u32}, .one = {"inc dec", shared}, .any = {orders, scopes}, .operands = {old(), in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {compared}, .one = {"min max", shared}, .any = {orders, scopes}, .operands = {old(), in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta}, .memory = {atomic}},
    {.opcode = Opcode::atom, .types = {swapped}, .one = {"exch", shared}, .any = {orders, scopes}, .operands = {old(), in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta, wide_type, wide_type_sys}, .memory = {atomic}},
    // In either.
    {.opcode = Opcode::atom, .types = {{Type::b16, Type::b32, Type::b64, Type::b128}}, .one = {"cas"}, .any = {orders, scopes, QualifierSet("global") | shared}, .operands = {old(), in(), src(), src()}, .since = {{1, 1}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta, short_type, wide_type, wide_type_sys}, .memory = {atomic}},

    {.opcode = Opcode::red, .types = {{Type::b32, Type::b64}}, .one = {"and or xor"}, .any = {red_orders, scopes}, .flags = "global L2::cache_hint", .operands = {in(), src(), cache_policy()}, .since = {{1, 2}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {added}, .one = {"add"}, .any = {red_orders, scopes}, .flags = "global L2::cache_hint", .operands = {in(), src(), cache_policy()}, .since = {{1, 2}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint, doubles}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {half_types}, .one = {"add", "noftz"}, .any = {red_orders, scopes}, .flags = "global L2::cache_hint", .operands = {in(), src(), cache_policy()}, .since = {{1, 2}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint, packed_halves, halves, brain_halves}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {Type::u32}, .one = {"inc dec"}, .any = {red_orders, scopes}, .flags = "global L2::cache_hint", .operands = {in(), src(), cache_policy()}, .since = {{1, 2}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {compared}, .one = {"min max"}, .any = {red_orders, scopes}, .flags = "global L2::cache_hint", .operands = {in(), src(), cache_policy()}, .since = {{1, 2}, 11}, .needs = {needs_memory_model, scoped, needs_cluster, needs_cache_hint}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {{Type::f32}}, .one = {"add", "noftz"}, .any = {red_orders, scopes}, .flags = "global L2::cache_hint", .operands = {in(), src(), cache_policy()}, .since = {{9, 4}, 90}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {{Type::f32}}, .one = {"add", "noftz", "v2 v4"}, .any = {red_orders, scopes}, .flags = "global L2::cache_hint", .operands = {in(), vec(as_written, OperandType(0), "b"), cache_policy()}, .since = {{9, 4}, 90}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {{Type::f32}}, .one = {"add", "noftz", shared}, .any = {red_orders, scopes}, .operands = {in(), src()}, .since = {{9, 4}, 90}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {{Type::f32}}, .one = {"add", "v2 v4"}, .any = {red_orders, scopes}, .flags = "global L2::cache_hint", .operands = {in(), vec(as_written, OperandType(0), "b"), cache_policy()}, .since = {{8, 1}, 90}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {{Type::f16, Type::bf16}}, .one = {"add min max", "noftz", "v2 v4 v8"}, .any = {red_orders, scopes}, .flags = "global L2::cache_hint", .operands = {in(), vec(as_written, OperandType(0), "b"), cache_policy()}, .since = {{8, 1}, 90}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {{Type::f16x2, Type::bf16x2}}, .one = {"add min max", "noftz", "v2 v4"}, .any = {red_orders, scopes}, .flags = "global L2::cache_hint", .operands = {in(), vec(as_written, OperandType(0), "b"), cache_policy()}, .since = {{8, 1}, 90}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {{Type::b32, Type::b64}}, .one = {"and or xor", shared}, .any = {red_orders, scopes}, .operands = {in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {added}, .one = {"add", shared}, .any = {red_orders, scopes}, .operands = {in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta, doubles}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {half_types}, .one = {"add", "noftz", shared}, .any = {red_orders, scopes}, .operands = {in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta, packed_halves, halves, brain_halves}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {Type::u32}, .one = {"inc dec", shared}, .any = {red_orders, scopes}, .operands = {in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta}, .memory = {reduction}},
    {.opcode = Opcode::red, .types = {compared}, .one = {"min max", shared}, .any = {red_orders, scopes}, .operands = {in(), src()}, .since = {{1, 2}, 12}, .needs = {needs_memory_model, scoped, needs_cluster, needs_shared_cta}, .memory = {reduction}},
};
// clang-format on

}  // namespace

std::span<const Signature> atomics_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
