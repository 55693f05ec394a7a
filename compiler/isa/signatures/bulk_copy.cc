// SPDX-License-Identifier: Apache-2.0
// Bulk copies of bytes by TMA (PTX ISA 9.0, 9.7.9.25.4): cp.async.bulk, cp.reduce.async.bulk. They
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

std::string_view not_to_cluster_in_order(const Spelling& spelling) {
  const std::string_view order = order_without_scope(spelling);
  return order.empty() ? not_to_cluster(spelling) : order;
}
std::string_view not_to_global_in_order(const Spelling& spelling) {
  const std::string_view order = order_without_scope(spelling);
  return order.empty() ? not_to_global(spelling) : order;
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
constexpr OperandRow clip(std::string_view name) {
  return {
      .name = name, .accepts = a_register | an_integer, .type = u32, .ranged = true, .high = 15};
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

constexpr QualifierSet scopes = "cta cluster gpu sys";
constexpr QualifierSet block_scopes = "cta cluster";
constexpr Since ordered_copies{{9, 3}, 90};
constexpr Need needs_weak{.words = "weak", .since = ordered_copies};

// The same with .relaxed and a scope, of values of 128 bits.
constexpr Signature relaxed(Signature row, Since since = ordered_copies,
                            QualifierSet scope = scopes) {
  row.types = {Type::b128};
  row.one.items[row.one.size++] = "relaxed";
  row.one.items[row.one.size++] = scope;
  row.flags = row.flags.without("weak");
  row.since = since;
  return row;
}

constexpr Signature to_blocks() {
  return {.opcode = Opcode::cp_async_bulk,
          .one = {"shared::cluster", "global", completing},
          .any = {multicasts, reports},
          .flags = "L2::cache_hint weak",
          .operands = {target("dst", in_shared), whole(addr(in_global, "src")), size(), mbarrier(),
                       blocks_16(), blocks_16(by_16_bits), blocks_32(), cache_policy()},
          .since = {{8, 0}, 90},
          .needs = {needs_weak, needs_16_bits, needs_32_bits, needs_reports},
          .memory = until_mbarrier(Access::Write),
          .refuses = not_from_global};
}
constexpr Signature to_block() {
  return {.opcode = Opcode::cp_async_bulk,
          .one = {"shared::cta", "global", completing},
          .any = {reports},
          .flags = "L2::cache_hint weak",
          .operands = {target("dst", in_shared), addr(in_global, "src"), size(), mbarrier(),
                       cache_policy()},
          .since = {{8, 6}, 90},
          .needs = {needs_weak, needs_reports},
          .memory = until_mbarrier(Access::Write),
          .refuses = not_from_global};
}
// Without the bytes in front of and behind an array.
constexpr Signature clipped() {
  Signature out = to_block();
  out.one.items[out.one.size++] = "ignore_oob";
  out.operands = {target("dst", in_shared),
                  addr(in_global, "src"),
                  size(),
                  clip("bytes_left"),
                  clip("bytes_right"),
                  mbarrier(),
                  cache_policy()};
  out.memory.items[2].operand = 5;
  out.since = {{9, 2}, 90};
  return out;
}
constexpr Signature between_blocks() {
  return {.opcode = Opcode::cp_async_bulk,
          .one = {"shared::cluster", "shared::cta", completing},
          .flags = "weak",
          .operands = {target("dst", in_shared), addr(in_shared, "src"), size(), mbarrier()},
          .since = {{8, 0}, 90},
          .needs = {needs_weak},
          .memory = until_mbarrier(Access::Write),
          .refuses = not_to_cluster};
}
constexpr Signature from_block(Opcode opcode) {
  const bool multimem = opcode == Opcode::multimem_cp_async_bulk;
  return {.opcode = opcode,
          .one = {"global", "shared::cta", "bulk_group"},
          .flags =
              multimem ? QualifierSet("cp_mask weak") : QualifierSet("L2::cache_hint cp_mask weak"),
          .operands = {target("dst", in_global), addr(in_shared, "src"), size(), cache_policy(),
                       with("cp_mask", mask("byte_mask"))},
          .since = multimem ? Since{{9, 1}, 90} : Since{{8, 0}, 90},
          .needs = {needs_weak, {.words = "cp_mask", .since = {{8, 6}, 100}}},
          .memory = until_group(Access::Write),
          .refuses = not_to_global};
}

// cp.reduce.async.bulk to shared memory of a block of the cluster, and to global memory.
constexpr Signature to_cluster(QualifierSet operation, TypeSet types) {
  return {.opcode = Opcode::cp_reduce_async_bulk,
          .types = {types},
          .one = {"shared::cluster", "shared::cta", completing, operation},
          .any = {"relaxed", block_scopes},
          .operands = {target("dst", in_shared), addr(in_shared, "src"), size(), mbarrier()},
          .since = {{8, 0}, 90},
          .needs = {{.words = "relaxed", .since = ordered_copies}},
          .memory = until_mbarrier(Access::Atomic),
          .refuses = not_to_cluster_in_order};
}
constexpr Signature to_global(Opcode opcode, QualifierSet operation, TypeSet types,
                              QualifierSet rounding = {}, Since since = {}) {
  const bool multimem = opcode == Opcode::multimem_cp_reduce_async_bulk;
  Signature out{
      .opcode = opcode,
      .types = {types},
      .one = {"global", "shared::cta", "bulk_group", operation},
      .any = {"relaxed", scopes},
      .flags = multimem ? QualifierSet() : QualifierSet("L2::cache_hint"),
      .operands = {target("dst", in_global), addr(in_shared, "src"), size(), cache_policy()},
      .since = since.sm   ? since
               : multimem ? Since{{9, 1}, 90}
                          : Since{{8, 0}, 90},
      .needs = {{.words = "relaxed", .since = ordered_copies}},
      .memory = until_group(Access::Atomic),
      .refuses = not_to_global_in_order};
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
    to_blocks(), to_block(), clipped(), between_blocks(), from_block(Opcode::cp_async_bulk),
    relaxed(to_blocks(), {.ptx = {9, 3}, .sm = 90, .reach = Reach::Family, .last_sm = 110}), relaxed(to_block()), relaxed(clipped()), relaxed(between_blocks(), ordered_copies, block_scopes), relaxed(from_block(Opcode::cp_async_bulk)),
    {.opcode = Opcode::cp_async_bulk_prefetch, .one = {"L2", "global"}, .any = {"L2::cache_hint L2::evict_last"}, .operands = {addr(in_global, "src"), size(), cache_policy()}, .since = {{8, 0}, 90}, .needs = {{.words = "L2::evict_last", .since = rubin}}},
    {.opcode = Opcode::applypriority_async_bulk, .one = {"bulk_group", "L2::evict_normal"}, .flags = "global", .operands = {addr(in_global, "a"), size()}, .since = rubin},
    {.opcode = Opcode::cp_async_bulk_commit_group, .since = {{8, 0}, 90}},
    {.opcode = Opcode::cp_async_bulk_wait_group, .any = {"read sync_restrict::proxy::async"}, .operands = {{.name = "n", .accepts = an_integer}}, .since = {{8, 0}, 90}, .needs = {{.words = "sync_restrict::proxy::async", .since = {{9, 5}, 90}}}},

    to_cluster("add", {Type::u32, Type::s32, Type::u64}), to_cluster("min max", {Type::u32, Type::s32}), to_cluster("inc dec", u32), to_cluster("and or xor", b32),
    to_global(reduce, "add", added), to_global(reduce, "add", halves, "noftz"), to_global(reduce, "min max", compared), to_global(reduce, "inc dec", u32), to_global(reduce, "and or xor", {Type::b32, Type::b64}),

    to_global(reduce, "add", f32, "noftz", {{9, 4}, 90}),

    // To all GPUs of a multicast object.
    from_block(Opcode::multimem_cp_async_bulk), relaxed(from_block(Opcode::multimem_cp_async_bulk)),
    to_global(multimem_reduce, "add", f32, "noftz", {{9, 4}, 90}),
    to_global(multimem_reduce, "add", added), to_global(multimem_reduce, "add", halves, "noftz"), to_global(multimem_reduce, "min max", compared), to_global(multimem_reduce, "inc dec", u32), to_global(multimem_reduce, "and or xor", {Type::b32, Type::b64}),
};
// clang-format on

}  // namespace

std::span<const Signature> bulk_copy_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
