// SPDX-License-Identifier: Apache-2.0
// Barriers of blocks, clusters and warpgroups, and fences (PTX ISA 9.0, 9.7.13.1
// to 9.7.13.4, 9.7.13.9, 9.7.15.7).
#include <limits>

#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr QualifierSet scopes = "cta cluster gpu sys";
constexpr Need of_block{.words = "cta", .since = {{7, 8}, 10}};
constexpr Need of_cluster{.words = "cluster", .since = {{7, 8}, 90}};

constexpr OperandRow number() {
  return {.name = "a", .accepts = a_register | an_integer, .type = u32, .ranged = true, .high = 15};
}
// The number of threads: a multiple of the warp size. The assembler checks no more, except that
// arrive requires a number above zero.
constexpr OperandRow threads(bool arrives) {
  return {.name = "b",
          .accepts = a_register | an_integer,
          .type = u32,
          .ranged = true,
          .low = arrives ? 32 : std::numeric_limits<std::int64_t>::min(),
          .high = std::numeric_limits<std::int64_t>::max(),
          .step = 32};
}

// bar and barrier, with or without a number of threads; barrier takes .aligned, bar always is.
constexpr Signature barrier(Opcode opcode, QualifierSet word, bool counted) {
  const bool arrives = word.has("arrive"_q);
  Signature out{.opcode = opcode,
                .one = {word},
                .flags = opcode == Opcode::bar ? QualifierSet("cta") : QualifierSet("cta aligned"),
                .operands = {number()},
                .since = opcode == Opcode::bar ? Since{{1, 0}, 10} : Since{{5, 1}, 30},
                .needs = {of_block}};
  if (counted || arrives) out.operands.items[out.operands.size++] = threads(arrives);
  return out;
}
constexpr Signature reduction(Opcode opcode, QualifierSet operation, Type type, bool counted) {
  Signature out = barrier(opcode, "red", counted);
  out.types = {TypeSet(type)};
  out.one.items[out.one.size++] = operation;
  out.operands = {};
  out.operands.items[out.operands.size++] = dst(OperandType(0), "d");
  out.operands.items[out.operands.size++] = number();
  if (counted) out.operands.items[out.operands.size++] = threads(false);
  out.operands.items[out.operands.size++] = condition("p");
  return out;
}
constexpr auto bar = Opcode::bar, barrier_ = Opcode::barrier;

// clang-format off
constexpr Signature rows[] = {
    barrier(bar, "sync", false), barrier(bar, "sync", true), barrier(bar, "arrive", true),
    reduction(bar, "popc", u32, false), reduction(bar, "popc", u32, true), reduction(bar, "and or", Type::pred, false), reduction(bar, "and or", Type::pred, true),
    barrier(barrier_, "sync", false), barrier(barrier_, "sync", true), barrier(barrier_, "arrive", true),
    reduction(barrier_, "popc", u32, false), reduction(barrier_, "popc", u32, true), reduction(barrier_, "and or", Type::pred, false), reduction(barrier_, "and or", Type::pred, true),
    {.opcode = Opcode::bar_warp, .one = {"sync"}, .operands = {src(u32, "membermask")}, .since = {{5, 1}, 30}},
    {.opcode = Opcode::barrier_cluster_arrive, .any = {"release relaxed"}, .flags = "aligned", .since = {{7, 8}, 90}, .needs = {{.words = "release relaxed", .since = {{8, 0}, 90}}}},
    {.opcode = Opcode::barrier_cluster_wait, .flags = "acquire aligned", .since = {{7, 8}, 90}, .needs = {{.words = "acquire", .since = {{8, 0}, 90}}}},
    {.opcode = Opcode::griddepcontrol, .one = {"launch_dependents wait"}, .since = {{7, 8}, 90}},

    {.opcode = Opcode::membar, .one = {"cta gl sys"}, .since = {{1, 4}, 10}},
    {.opcode = Opcode::membar, .one = {"proxy", "alias"}, .since = {{7, 5}, 60}},
    {.opcode = Opcode::membar, .one = {"proxy", "async"}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::fence, .one = {scopes}, .any = {"sc acq_rel acquire release"}, .since = {{6, 0}, 70}, .needs = {of_cluster, {.words = "acquire release", .since = {{8, 6}, 90}}}},
    {.opcode = Opcode::fence, .one = {"alias", "sync_restrict::read", "release", "sys"}, .since = {{9, 5}, 90}},
    {.opcode = Opcode::fence, .one = {"acquire", "sync_restrict::shared::cluster", "cluster"}, .since = {{8, 6}, 90}},
    {.opcode = Opcode::fence, .one = {"release", "sync_restrict::shared::cta", "cluster"}, .since = {{8, 6}, 90}},
    {.opcode = Opcode::fence, .one = {"mbarrier_init", "release", "cluster"}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::fence_mbarrier_init, .one = {"release", "cluster"}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::fence_proxy, .one = {"alias"}, .since = {{7, 5}, 70}},
    {.opcode = Opcode::fence_proxy, .one = {"alias", "acquire release", "sys"}, .since = {{9, 4}, 90}},
    {.opcode = Opcode::fence_proxy, .one = {"fabric::generic generic::fabric fabric::fabric", "alias", "acquire release", "sys"}, .since = {{9, 3}, 100}},
    {.opcode = Opcode::fence_proxy, .one = {"async::generic", "release", "sync_restrict::shared::cluster::read", "cta cluster"}, .since = {{9, 4}, 90}},
    {.opcode = Opcode::fence_proxy, .one = {"async"}, .any = {"global shared::cta shared::cluster"}, .since = {{8, 0}, 90}},
    {.opcode = Opcode::fence_proxy, .one = {"async::generic", "acquire", "sync_restrict::shared::cluster", "cluster"}, .since = {{8, 6}, 90}},
    {.opcode = Opcode::fence_proxy, .one = {"async::generic", "release", "sync_restrict::shared::cta", "cluster"}, .since = {{8, 6}, 90}},
    {.opcode = Opcode::fence_proxy, .one = {"tensormap::generic", "release", scopes}, .since = {{8, 3}, 90}},
    {.opcode = Opcode::fence_proxy, .one = {"tensormap::generic", "acquire", scopes}, .operands = {addr(), imm(128, 128, "size")}, .since = {{8, 3}, 90}},

    {.opcode = Opcode::wgmma_fence, .one = {"sync"}, .flags = "aligned", .since = {{8, 0}, 90, Reach::ExactArch}},
    {.opcode = Opcode::wgmma_commit_group, .one = {"sync"}, .flags = "aligned", .since = {{8, 0}, 90, Reach::ExactArch}},
    {.opcode = Opcode::wgmma_wait_group, .one = {"sync"}, .flags = "aligned", .operands = {imm(0, INT64_MAX, "n")}, .since = {{8, 0}, 90, Reach::ExactArch}},
};
// clang-format on

}  // namespace

std::span<const Signature> barriers_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
