// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies of a few bytes by each thread (PTX ISA 9.0, 9.7.9.25.3), and stores and
// reductions completed by an mbarrier (9.7.9.12, 9.7.9.13, 9.7.13.16).
#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

std::string_view not_to_shared(const Spelling& spelling) {
  return in_order(spelling, ".shared", ".global") ? "" : "copies from global to shared memory only";
}

std::string_view over_128_bits(const Spelling& spelling) {
  return access_bits(spelling) > 128 ? "accesses at most 128 bits" : "";
}

constexpr QualifierSet prefetched = "L2::64B L2::128B L2::256B";

constexpr OperandRow size(int low, int high) {
  OperandRow out = imm(low, high, "cp_size");
  out.step = 0;
  return out;
}
constexpr OperandRow read_size(int bytes) {
  return {.name = "src_size",
          .accepts = a_register | an_integer,
          .type = u32,
          .ranged = true,
          .high = bytes};
}

// cp.async of `size`. The optional operand says how many bytes are read (the rest is zeroed), or
// that the source is ignored.
constexpr Signature copy(QualifierSet cache, const OperandRow& size,
                         const OperandRow* rest = nullptr, Since since = {{7, 0}, 80}) {
  Signature out{.opcode = Opcode::cp_async,
                .one = {cache, "shared shared::cta", "global"},
                .any = {prefetched},
                .flags = "L2::cache_hint",
                .operands = {target("dst", in_shared), addr(in_global, "src"), size},
                .since = since,
                .needs = {needs_cache_hint, {.words = prefetched, .since = {{7, 4}, 80}}},
                .memory = {{.operand = 0,
                            .access = Access::Write,
                            .completion = Completion::CpAsyncGroup,
                            .bytes_operand = 2},
                           {.operand = 1,
                            .access = Access::Read,
                            .completion = Completion::CpAsyncGroup,
                            .bytes_operand = 2}},
                .refuses = not_to_shared};
  if (rest) out.operands.items[out.operands.size++] = *rest;
  out.operands.items[out.operands.size++] = cache_policy();
  return out;
}

constexpr OperandRow read_4 = read_size(4), read_8 = read_size(8), read_16 = read_size(16),
                     ignored{.name = "ignore_src",
                             .accepts = a_register | a_negation,
                             .type = Type::pred};

constexpr TypeSet stored_types{Type::b32, Type::u32, Type::s32, Type::f32,
                               Type::b64, Type::u64, Type::s64, Type::f64};
constexpr TypeSet sums{Type::u32, Type::s32, Type::u64, Type::s64};

std::string_view mmio_of_one_gpu(const Spelling& spelling) {
  return spelling.has("mmio"_q) && spelling.has("gpu"_q) ? "accepts .mmio only with .sys" : "";
}

constexpr OperandRow value() {
  return also(an_integer | a_float, vec(as_written, OperandType(0), "b"));
}
constexpr List<MemoryEffect, 4> stored{{.operand = 0,
                                        .access = Access::Write,
                                        .proxy = Proxy::Async,
                                        .completion = Completion::Mbarrier},
                                       {.operand = 2,
                                        .access = Access::Atomic,
                                        .proxy = Proxy::Async,
                                        .completion = Completion::Mbarrier}};
constexpr List<MemoryEffect, 4> reduced{{.operand = 0,
                                         .access = Access::Atomic,
                                         .proxy = Proxy::Async,
                                         .completion = Completion::Mbarrier},
                                        {.operand = 2,
                                         .access = Access::Atomic,
                                         .proxy = Proxy::Async,
                                         .completion = Completion::Mbarrier}};
// To shared memory, with an mbarrier; the assembler accepts .shared::cta also without `completing`.
constexpr Signature to_shared(List<QualifierSet, 9> one, List<QualifierSet, 9> any) {
  return {.opcode = Opcode::st_async,
          .types = {stored_types},
          .one = one,
          .any = any,
          .operands = {target("a", in_shared), value(), mbarrier()},
          .since = {{8, 1}, 90},
          .memory = stored,
          .refuses = over_128_bits};
}

// st.bulk to `space`; only generic addresses may name variables.
constexpr Signature zeros(QualifierSet space, Type size, Since since) {
  Signature out{.opcode = Opcode::st_bulk,
                .any = {"weak"},
                .operands = {target("a", space.empty() ? in_shared : in_register),
                             {.name = "size",
                              .accepts = a_register | an_integer,
                              .type = size,
                              .fit = size == u32 ? Fit::Signed : Fit::Exact,
                              .ranged = true,
                              .high = 1 << 24,
                              .step = 8},
                             imm(0, 0, "initval")},
                .since = since,
                .memory = {{.operand = 0, .access = Access::Write, .bytes_operand = 1}}};
  if (!space.empty()) out.one.items[out.one.size++] = space;
  return out;
}

constexpr Signature of_128_bits(Signature row) {
  row.types = {Type::b128};
  row.operands.items[1] = src(OperandType(0), "b");
  row.since = {{9, 2}, 90};
  return row;
}

constexpr List<OperandRow, 12> reduction{target("a", in_shared), src(OperandType(0), "b"),
                                         mbarrier()};

// clang-format off
constexpr Signature rows[] = {
    copy("ca", size(4, 16)), copy("ca", size(4, 4), &read_4), copy("ca", size(8, 8), &read_8), copy("ca", size(16, 16), &read_16), copy("ca", size(4, 16), &ignored, {{7, 5}, 80}),
    copy("cg", size(16, 16)), copy("cg", size(16, 16), &read_16), copy("cg", size(16, 16), &ignored, {{7, 5}, 80}),
    {.opcode = Opcode::cp_async_commit_group, .since = {{7, 0}, 80}},
    {.opcode = Opcode::cp_async_wait_group, .operands = {{.name = "n", .accepts = an_integer}}, .since = {{7, 0}, 80}},
    {.opcode = Opcode::cp_async_wait_all, .since = {{7, 0}, 80}},
    {.opcode = Opcode::cp_async_mbarrier_arrive, .types = {b64}, .any = {"shared shared::cta"}, .flags = "noinc", .operands = {addr(as_qualified, "mbar")}, .since = {{7, 0}, 80}, .needs = {needs_shared_cta},
     .memory = {{.operand = 0, .access = Access::Atomic, .completion = Completion::CpAsyncGroup}}},

    to_shared({completing}, {"weak", "shared shared::cta shared::cluster", "v2 v4"}), to_shared({completing, "cluster"}, {"shared::cluster", "v2 v4"}), to_shared({"shared shared::cta"}, {"weak", "v2 v4"}),
    of_128_bits(to_shared({completing}, {"weak", "shared shared::cta shared::cluster"})),
    {.opcode = Opcode::st_async, .types = {memory_types}, .one = {"release", "gpu sys"}, .flags = "mmio global", .operands = {target("a", in_global), value()}, .since = {{8, 7}, 100}, .memory = {{.operand = 0, .access = Access::Write, .proxy = Proxy::Async}}, .refuses = mmio_of_one_gpu},
    zeros({}, u64, {{8, 6}, 100}), zeros("shared::cta", u64, {{8, 6}, 100}), zeros({}, u32, {{9, 0}, 100}), zeros("shared::cta", u32, {{9, 0}, 100}),

    {.opcode = Opcode::red_async, .types = {u32}, .one = {"relaxed", "cluster", completing, "inc dec"}, .flags = "shared::cluster", .operands = reduction, .since = {{8, 1}, 90}, .memory = reduced},
    {.opcode = Opcode::red_async, .types = {{Type::u32, Type::s32}}, .one = {"relaxed", "cluster", completing, "min max"}, .flags = "shared::cluster", .operands = reduction, .since = {{8, 1}, 90}, .memory = reduced},
    {.opcode = Opcode::red_async, .types = {b32}, .one = {"relaxed", "cluster", completing, "and or xor"}, .flags = "shared::cluster", .operands = reduction, .since = {{8, 1}, 90}, .memory = reduced},
    {.opcode = Opcode::red_async, .types = {sums}, .one = {"relaxed", "cluster", completing, "add"}, .flags = "shared::cluster", .operands = reduction, .since = {{8, 1}, 90}, .memory = reduced},
    {.opcode = Opcode::red_async, .types = {sums}, .one = {"release", "gpu sys", "add"}, .flags = "mmio global", .operands = {target("a", in_global), no_function(src(OperandType(0), "b"))}, .since = {{8, 7}, 100}, .memory = {{.operand = 0, .access = Access::Atomic, .proxy = Proxy::Async}}, .refuses = mmio_of_one_gpu},
};
// clang-format on

}  // namespace

std::span<const Signature> cp_async_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
