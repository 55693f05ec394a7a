// SPDX-License-Identifier: Apache-2.0
// Loads and stores (PTX ISA 9.0, 9.7.9.8 to 9.7.9.13), and cache operations. Global and generic
// memory have rows of their own: only they take cache qualifiers.
#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

// An access moves 128 bits at most.
std::string_view too_wide(const Spelling& spelling) {
  if (access_bits(spelling) > 128) return "accesses at most 128 bits in this state space";
  return {};
}

// To global memory also 256, as .v8 of 32 bits or .v4 of 64.
std::string_view too_wide_for_global(const Spelling& spelling) {
  const int bits = access_bits(spelling);
  if (bits > 256) return "accesses at most 256 bits";
  if (spelling.type() == Type::b128 && bits > 128) return "does not accept vectors of .b128";
  constexpr QualifierSet l2 = "L2::evict_normal L2::evict_first L2::evict_last";
  if (!(spelling.words & l2).empty() && bits != 256)
    return "accepts .L2 eviction priorities only with .v8 of 32 bits or .v4 of 64 bits";
  return {};
}

// Loads of eight have 32 bits each; the assembler crashes with fewer, or not, from run to run.
std::string_view narrow_eight(const Spelling& spelling) {
  return spelling.has("v8"_q) && bits(spelling.type()) < 32 ? "loads .v8 only with types of 32 bits"
                                                            : "";
}
std::string_view load_too_wide(const Spelling& spelling) {
  const std::string_view narrow = narrow_eight(spelling);
  return narrow.empty() ? too_wide(spelling) : narrow;
}
std::string_view load_too_wide_for_global(const Spelling& spelling) {
  const std::string_view narrow = narrow_eight(spelling);
  return narrow.empty() ? too_wide_for_global(spelling) : narrow;
}

constexpr QualifierSet scopes = "cta cluster gpu sys";
constexpr QualifierSet wide_vectors = "v2 v4 v8";
constexpr QualifierSet load_caches = "ca cg cs lu cv";
constexpr QualifierSet store_caches = "wb cg cs wt";
constexpr QualifierSet l1 =
    "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate";
constexpr QualifierSet l2 = "L2::evict_normal L2::evict_first L2::evict_last";
constexpr QualifierSet prefetched = "L2::64B L2::128B L2::256B";
constexpr QualifierSet shared = "shared shared::cta shared::cluster";

constexpr QualifierSet volatile_spaces = "local shared shared::cta shared::cluster";
constexpr Need volatile_local{.words = "local", .since = {{9, 1}, 10}};

constexpr Need wide_8{.words = "v8",
                      .types = {Type::b32, Type::u32, Type::s32, Type::f32},
                      .since = {{8, 8}, 100},
                      .together = true};
constexpr Need wide_4{.words = "v4",
                      .types = {Type::b64, Type::u64, Type::s64, Type::f64},
                      .since = {{8, 8}, 100},
                      .together = true};
constexpr Need eviction{.words = l1, .since = {{7, 4}, 70}};
constexpr Need prefetching{.words = "L2::64B L2::128B", .since = {{7, 4}, 75}};
constexpr Need prefetching_256{.words = "L2::256B", .since = {{7, 4}, 80}};
constexpr Need wide_type{.types = {Type::b128}, .since = {{8, 3}, 70}};
constexpr Need wide_type_sys{
    .words = "sys", .types = {Type::b128}, .since = {{8, 4}, 70}, .together = true};

constexpr OperandRow indexed(OperandRow row) {
  row.indexed = true;
  return row;
}
constexpr OperandRow source() {
  OperandRow out = indexed(addr(as_qualified, "a"));
  out.whole = true;
  return out;
}
constexpr OperandRow place() { return indexed(target()); }
// A source that may be uniform for all threads of the warp.
constexpr OperandRow source_unified() {
  OperandRow out = source();
  out.unified = true;
  return out;
}
constexpr OperandRow loaded() {
  return also(a_vector, wider(written(vec(as_written, OperandType(0), "d"))));
}
constexpr OperandRow stored(std::string_view name = "b") {
  return also(a_vector | an_integer | a_float | a_function,
              wider(vec(as_written, OperandType(0), name)));
}
constexpr MemoryEffect load{.operand = 1, .access = Access::Read};
constexpr MemoryEffect store{.operand = 0, .access = Access::Write};

// clang-format off
constexpr Signature rows[] = {
    // weak
    {.opcode = Opcode::ld, .types = {memory_types_128}, .any = {"weak", load_caches | l1, l2, prefetched, wide_vectors}, .flags = "global L2::cache_hint", .operands = {loaded(), source_unified(), cache_policy()},
     .needs = {needs_memory_model, eviction, prefetching, prefetching_256, needs_cache_hint, wide_8, wide_4, wide_type}, .memory = {load}, .refuses = load_too_wide_for_global},
    {.opcode = Opcode::ld, .types = {memory_types_128}, .one = {"const local param param::entry param::func shared shared::cta shared::cluster"}, .any = {"weak", load_caches, wide_vectors}, .operands = {loaded(), source()},
     .needs = {needs_memory_model, needs_shared_cta, needs_cluster, needs_param_kind, wide_type}, .memory = {load}, .refuses = load_too_wide},
    // volatile
    {.opcode = Opcode::ld, .types = {memory_types_128}, .one = {"volatile"}, .any = {l2, prefetched, wide_vectors}, .flags = "global", .operands = {loaded(), source_unified()},
     .needs = {prefetching, prefetching_256, wide_8, wide_4, wide_type}, .memory = {load}, .refuses = load_too_wide_for_global},
    {.opcode = Opcode::ld, .types = {memory_types_128}, .one = {"volatile", volatile_spaces}, .any = {wide_vectors}, .operands = {loaded(), source()},
     .needs = {needs_shared_cta, needs_cluster, wide_type, volatile_local}, .memory = {load}, .refuses = load_too_wide},
    // ordered
    {.opcode = Opcode::ld, .types = {memory_types_128}, .one = {"relaxed acquire", scopes}, .any = {l1, l2, prefetched, wide_vectors}, .flags = "global L2::cache_hint", .operands = {loaded(), source_unified(), cache_policy()}, .since = {{6, 0}, 70},
     .needs = {needs_cluster, eviction, prefetching, prefetching_256, needs_cache_hint, wide_8, wide_4, wide_type_sys}, .memory = {load}, .refuses = load_too_wide_for_global},
    {.opcode = Opcode::ld, .types = {memory_types_128}, .one = {"relaxed acquire", scopes, shared}, .any = {wide_vectors}, .operands = {loaded(), source()}, .since = {{6, 0}, 70},
     .needs = {needs_shared_cta, needs_cluster, wide_type, wide_type_sys}, .memory = {load}, .refuses = load_too_wide},
    {.opcode = Opcode::ld, .types = {memory_types_128}, .one = {"mmio", "relaxed acquire", "sys"}, .flags = "global", .operands = {loaded(), source_unified()}, .since = {{8, 2}, 70}, .needs = {wide_type_sys, {.words = "acquire", .since = {{9, 3}, 70}}}, .memory = {load}},
    // of what no thread of the grid writes
    {.opcode = Opcode::ld, .types = {memory_types}, .one = {"proxy::readonly"}, .any = {wide_vectors}, .flags = "global", .operands = {loaded(), source()}, .since = {{9, 4}, 90},
     .needs = {wide_8, wide_4}, .memory = {load}, .refuses = load_too_wide_for_global},
    // through the texture cache
    {.opcode = Opcode::ld, .types = {memory_types_128}, .one = {"global", "nc"}, .any = {QualifierSet("ca cg cs") | l1, l2, prefetched, wide_vectors}, .flags = "L2::cache_hint", .operands = {loaded(), source(), cache_policy()}, .since = {{3, 1}, 32},
     .needs = {eviction, prefetching, prefetching_256, needs_cache_hint, wide_8, wide_4, wide_type}, .memory = {{.operand = 1, .access = Access::Read, .proxy = Proxy::Texture}}, .refuses = load_too_wide_for_global},
    {.opcode = Opcode::ldu, .types = {memory_types_128}, .any = {"v2 v4"}, .flags = "global", .operands = {loaded(), source_unified()}, .since = {{2, 0}, 20}, .needs = {wide_type}, .memory = {load}, .refuses = load_too_wide},

    {.opcode = Opcode::st, .types = {memory_types_128}, .any = {"weak", store_caches | l1, l2, wide_vectors}, .flags = "global L2::cache_hint", .operands = {place(), stored(), cache_policy()},
     .needs = {needs_memory_model, eviction, needs_cache_hint, wide_8, wide_4, wide_type}, .memory = {store}, .refuses = too_wide_for_global},
    {.opcode = Opcode::st, .types = {memory_types_128}, .one = {"local param param::func shared shared::cta shared::cluster"}, .any = {"weak", store_caches, wide_vectors}, .operands = {place(), stored()},
     .needs = {needs_memory_model, needs_shared_cta, needs_cluster, needs_param_kind, wide_type}, .memory = {store}, .refuses = too_wide},
    {.opcode = Opcode::st, .types = {memory_types_128}, .one = {"volatile"}, .any = {l2, wide_vectors}, .flags = "global", .operands = {place(), stored()},
     .needs = {wide_8, wide_4, wide_type}, .memory = {store}, .refuses = too_wide_for_global},
    {.opcode = Opcode::st, .types = {memory_types_128}, .one = {"volatile", volatile_spaces}, .any = {wide_vectors}, .operands = {place(), stored()},
     .needs = {needs_shared_cta, needs_cluster, wide_type, volatile_local}, .memory = {store}, .refuses = too_wide},
    {.opcode = Opcode::st, .types = {memory_types_128}, .one = {"relaxed release", scopes}, .any = {l1, l2, wide_vectors}, .flags = "global L2::cache_hint", .operands = {place(), stored(), cache_policy()}, .since = {{6, 0}, 70},
     .needs = {needs_cluster, eviction, needs_cache_hint, wide_8, wide_4, wide_type, wide_type_sys}, .memory = {store}, .refuses = too_wide_for_global},
    {.opcode = Opcode::st, .types = {memory_types_128}, .one = {"relaxed release", scopes, shared}, .any = {wide_vectors}, .operands = {place(), stored()}, .since = {{6, 0}, 70},
     .needs = {needs_shared_cta, needs_cluster, wide_type, wide_type_sys}, .memory = {store}, .refuses = too_wide},
    {.opcode = Opcode::st, .types = {memory_types_128}, .one = {"mmio", "relaxed release", "sys"}, .flags = "global", .operands = {place(), stored()}, .since = {{8, 2}, 70}, .needs = {wide_type_sys, {.words = "release", .since = {{9, 3}, 70}}}, .memory = {store}},
};
// clang-format on

}  // namespace

std::span<const Signature> load_store_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
