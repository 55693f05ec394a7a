// SPDX-License-Identifier: Apache-2.0
// Bulk copies of bytes by TMA (PTX ISA 9.7.9.25.4): cp.async.bulk, cp.reduce.async.bulk. They
// access memory through the async proxy; an mbarrier or a bulk group completes them.
#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

std::string_view not_to_cluster(const Spelling& spelling) {
  return in_order(spelling, ".shared::cluster", ".shared::cta")
             ? ""
             : "copies from .shared::cta to .shared::cluster";
}

constexpr OperandRow size() {
  return {.name = "size",
          .accepts = a_register | an_integer,
          .type = u32,
          .ranged = true,
          .high = 0xFFFF0,  // an mbarrier counts up to 2^20
          .step = 16};
}
// For sm_120 the assembler rejects half of the source's address.
constexpr OperandRow whole(OperandRow row) { return row.whole = true, row; }
constexpr OperandRow mask(std::string_view name) {
  return {.name = name, .accepts = a_register | an_integer, .type = u16};
}

// dst, src, size, mbar
constexpr List<MemoryEffect, 4> until_mbarrier(Access access) {
  return {{.operand = 0,
           .access = access,
           .proxy = Proxy::Async,
           .completion = Completion::Mbarrier,
           .bytes_operand = 2},
          {.operand = 1,
           .access = Access::Read,
           .proxy = Proxy::Async,
           .completion = Completion::Mbarrier,
           .bytes_operand = 2},
          {.operand = 3,
           .access = Access::Atomic,
           .proxy = Proxy::Async,
           .completion = Completion::Mbarrier}};
}
constexpr List<MemoryEffect, 4> until_group(Access access) {
  return {{.operand = 0,
           .access = access,
           .proxy = Proxy::Async,
           .completion = Completion::BulkGroup,
           .bytes_operand = 2},
          {.operand = 1,
           .access = Access::Read,
           .proxy = Proxy::Async,
           .completion = Completion::BulkGroup,
           .bytes_operand = 2}};
}

// cp.reduce.async.bulk to shared memory of a block of the cluster, and to global memory.
constexpr Signature to_cluster(QualifierSet operation, TypeSet types) {
  return {.opcode = Opcode::cp_reduce_async_bulk,
          .types = {types},
          .one = {"shared::cluster", "shared::cta", completing, operation},
          .operands = {target("dst", in_shared), addr(in_shared, "src"), size(), mbarrier()},
          .since = {{8, 0}, 90},
          .memory = until_mbarrier(Access::Atomic),
          .refuses = not_to_cluster};
}
constexpr Signature to_global(Opcode opcode, QualifierSet operation, TypeSet types,
                              QualifierSet rounding = {}) {
  const bool multimem = opcode == Opcode::multimem_cp_reduce_async_bulk;
  Signature out{
      .opcode = opcode,
      .types = {types},
      .one = {"global", "shared::cta", "bulk_group", operation},
      .flags = multimem ? QualifierSet() : QualifierSet("L2::cache_hint"),
      .operands = {target("dst", in_global), addr(in_shared, "src"), size(), cache_policy()},
      .since = multimem ? Since{{9, 1}, 90} : Since{{8, 0}, 90},
      .memory = until_group(Access::Atomic),
      .refuses = not_to_global};
  if (!rounding.empty()) out.one.items[out.one.size++] = rounding;
  return out;
}
constexpr auto reduce = Opcode::cp_reduce_async_bulk,
               multimem_reduce = Opcode::multimem_cp_reduce_async_bulk;
constexpr TypeSet added{Type::u32, Type::s32, Type::u64, Type::f32, Type::f64};
constexpr TypeSet halves{Type::f16, Type::bf16};
constexpr TypeSet compared{Type::u32, Type::s32, Type::u64, Type::s64, Type::f16, Type::bf16};

// clang-format off
constexpr Signature rows[] = {
    {.opcode = Opcode::cp_async_bulk, .one = {"shared::cluster", "global", completing}, .flags = "multicast::cluster L2::cache_hint", .operands = {target("dst", in_shared), whole(addr(in_global, "src")), size(), mbarrier(), with("multicast::cluster", mask("cta_mask")), cache_policy()}, .since = {{8, 0}, 90}, .memory = until_mbarrier(Access::Write), .refuses = not_from_global},
    {.opcode = Opcode::cp_async_bulk, .one = {"shared::cta", "global", completing}, .flags = "L2::cache_hint", .operands = {target("dst", in_shared), addr(in_global, "src"), size(), mbarrier(), cache_policy()}, .since = {{8, 6}, 90}, .memory = until_mbarrier(Access::Write), .refuses = not_from_global},
    {.opcode = Opcode::cp_async_bulk, .one = {"shared::cluster", "shared::cta", completing}, .operands = {target("dst", in_shared), addr(in_shared, "src"), size(), mbarrier()}, .since = {{8, 0}, 90}, .memory = until_mbarrier(Access::Write), .refuses = not_to_cluster},
    {.opcode = Opcode::cp_async_bulk, .one = {"global", "shared::cta", "bulk_group"}, .flags = "L2::cache_hint cp_mask", .operands = {target("dst", in_global), addr(in_shared, "src"), size(), cache_policy(), with("cp_mask", mask("byte_mask"))}, .since = {{8, 0}, 90}, .needs = {{.words = "cp_mask", .since = {{8, 6}, 100}}}, .memory = until_group(Access::Write), .refuses = not_to_global},
    {.opcode = Opcode::cp_async_bulk_prefetch, .one = {"L2", "global"}, .flags = "L2::cache_hint", .operands = {addr(in_global, "src"), size(), cache_policy()}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::cp_async_bulk_commit_group, .since = {{8, 0}, 90}},
    {.opcode = Opcode::cp_async_bulk_wait_group, .flags = "read", .operands = {{.name = "n", .accepts = an_integer}}, .since = {{8, 0}, 90}},

    to_cluster("add", {Type::u32, Type::s32, Type::u64}), to_cluster("min max", {Type::u32, Type::s32}), to_cluster("inc dec", u32), to_cluster("and or xor", b32),
    to_global(reduce, "add", added), to_global(reduce, "add", halves, "noftz"), to_global(reduce, "min max", compared), to_global(reduce, "inc dec", u32), to_global(reduce, "and or xor", {Type::b32, Type::b64}),

    // To all GPUs of a multicast object; in versions of PTX after the newest known here.
    {.opcode = Opcode::multimem_cp_async_bulk, .one = {"global", "shared::cta", "bulk_group"}, .flags = "cp_mask", .operands = {target("dst", in_global), addr(in_shared, "src"), size(), with("cp_mask", mask("byte_mask"))}, .since = {{9, 1}, 90}, .memory = until_group(Access::Write), .refuses = not_to_global},
    to_global(multimem_reduce, "add", added), to_global(multimem_reduce, "add", halves, "noftz"), to_global(multimem_reduce, "min max", compared), to_global(multimem_reduce, "inc dec", u32), to_global(multimem_reduce, "and or xor", {Type::b32, Type::b64}),
};
// clang-format on

}  // namespace

std::span<const Signature> bulk_copy_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
