// SPDX-License-Identifier: Apache-2.0
// mbarrier objects (PTX ISA 9.7.13.15), and cluster launch control (9.7.13.17).
#include <limits>

#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr QualifierSet here = "shared shared::cta";
constexpr Need released{.words = "release acquire", .since = {{8, 0}, 80}};
constexpr Need relaxed{.words = "relaxed", .since = {{8, 6}, 90}};
constexpr Need of_cluster{.words = "cluster shared::cluster", .since = {{8, 0}, 90}};

// These words must directly follow the opcode, and .parity must precede the type.
std::string_view misplaced(const Spelling& spelling) {
  const std::string_view rest = spelling.text.substr(name(spelling.opcode).size());
  if (spelling.has("expect_tx"_q) && !rest.starts_with(".expect_tx"))
    return "requires .expect_tx as its first qualifier";
  if (spelling.has("parity"_q) && in_order(spelling, ".b64", ".parity"))
    return "requires .parity before the type";
  return order_without_scope(spelling);
}

constexpr OperandRow count(std::string_view name = "count") {
  return {.name = name, .accepts = a_register | an_integer, .type = u32};
}
constexpr OperandRow sink() { return {.name = "_", .accepts = a_sink, .written = true}; }
constexpr OperandRow state() { return dst(u64, "state"); }
constexpr OperandRow old_state() {
  return {.name = "state", .accepts = a_register | an_integer, .type = u64};
}
constexpr OperandRow parity() {
  return {.name = "phase_parity",
          .accepts = a_register | an_integer,
          .type = u32,
          .ranged = true,
          .high = 1};
}

// mbarrier.arrive or arrive_drop with these words, results, and the operands after the barrier.
constexpr Signature arrive(Opcode opcode, QualifierSet word, QualifierSet spaces,
                           bool must_be_there, const OperandRow& result, const OperandRow* rest,
                           Since since) {
  const bool partial = word.has("noComplete"_q);
  Signature out{.opcode = opcode,
                .types = {b64},
                .any = {partial ? QualifierSet("release") : QualifierSet("release relaxed"),
                        partial ? QualifierSet("cta") : QualifierSet("cta cluster")},
                .operands = {result, mbarrier_object()},
                .since = since,
                .needs = {needs_shared_cta, released, relaxed, of_cluster},
                .memory = {{.operand = 1, .access = Access::Atomic}},
                .refuses = misplaced};
  if (!word.empty()) out.one.items[out.one.size++] = word;
  if (must_be_there) out.one.items[out.one.size++] = spaces;
  else out.any.items[out.any.size++] = spaces;
  if (rest) out.operands.items[out.operands.size++] = *rest;
  return out;
}
constexpr auto arrives = Opcode::mbarrier_arrive, drops = Opcode::mbarrier_arrive_drop;
constexpr OperandRow counted{.name = "count",
                             .accepts = a_register | an_integer,
                             .type = u32,
                             .ranged = true,
                             .low = 1,
                             .high = std::numeric_limits<std::int64_t>::max()};
constexpr OperandRow bytes = count("tx_count");
constexpr Since first{{7, 0}, 80}, sinks{{7, 1}, 80}, counts{{7, 8}, 90}, hopper{{8, 0}, 90};

// test_wait and try_wait, with a state or a parity.
constexpr Signature wait(Opcode opcode, bool by_parity, Since since) {
  Signature out{.opcode = opcode,
                .types = {b64},
                .any = {"acquire relaxed", "cta cluster", here},
                .operands = {dst(Type::pred, "wait_complete"), mbarrier_object(),
                             by_parity ? parity() : old_state()},
                .since = since,
                .needs = {needs_shared_cta, released, relaxed, of_cluster},
                .memory = {{.operand = 1, .access = Access::Read}},
                .refuses = misplaced};
  if (by_parity) out.one.items[out.one.size++] = "parity";
  if (opcode == Opcode::mbarrier_try_wait)
    out.operands.items[out.operands.size++] = optional(count("time_hint"));
  return out;
}

constexpr Signature transaction(Opcode opcode) {
  return {.opcode = opcode,
          .types = {b64},
          .any = {"relaxed", "cta cluster", "shared shared::cta shared::cluster"},
          .operands = {mbarrier_object(), bytes},
          .since = hopper,
          .memory = {{.operand = 0, .access = Access::Atomic}},
          .refuses = order_without_scope};
}

// clang-format off
constexpr Signature rows[] = {
    {.opcode = Opcode::mbarrier_init, .types = {b64}, .any = {here}, .operands = {mbarrier_object(), count()}, .since = first, .needs = {needs_shared_cta}, .memory = {{.operand = 0, .access = Access::Write}}},
    {.opcode = Opcode::mbarrier_inval, .types = {b64}, .any = {here}, .operands = {mbarrier_object()}, .since = first, .needs = {needs_shared_cta}, .memory = {{.operand = 0, .access = Access::Write}}},
    transaction(Opcode::mbarrier_expect_tx), transaction(Opcode::mbarrier_complete_tx),
    arrive(arrives, {}, here, false, state(), nullptr, first), arrive(arrives, {}, here, false, sink(), nullptr, sinks),
    arrive(arrives, {}, here, false, state(), &counted, counts), arrive(arrives, {}, here, false, sink(), &counted, counts),
    arrive(arrives, {}, "shared::cluster", true, sink(), nullptr, hopper), arrive(arrives, {}, "shared::cluster", true, sink(), &counted, hopper),
    arrive(arrives, "noComplete", here, false, state(), &counted, first), arrive(arrives, "noComplete", here, false, sink(), &counted, sinks),
    arrive(arrives, "expect_tx", here, false, state(), &bytes, hopper), arrive(arrives, "expect_tx", "shared shared::cta shared::cluster", false, sink(), &bytes, hopper),
    arrive(drops, {}, here, false, state(), nullptr, first), arrive(drops, {}, here, false, sink(), nullptr, first),
    arrive(drops, {}, here, false, state(), &counted, counts), arrive(drops, {}, here, false, sink(), &counted, counts),
    arrive(drops, {}, "shared::cluster", true, sink(), nullptr, hopper), arrive(drops, {}, "shared::cluster", true, sink(), &counted, hopper),
    arrive(drops, "noComplete", here, false, state(), &counted, first), arrive(drops, "noComplete", here, false, sink(), &counted, first),
    arrive(drops, "expect_tx", here, false, state(), &bytes, hopper), arrive(drops, "expect_tx", "shared shared::cta shared::cluster", false, sink(), &bytes, hopper),
    wait(Opcode::mbarrier_test_wait, false, first), wait(Opcode::mbarrier_test_wait, true, sinks),
    wait(Opcode::mbarrier_try_wait, false, counts), wait(Opcode::mbarrier_try_wait, true, counts),
    {.opcode = Opcode::mbarrier_pending_count, .types = {b64}, .operands = {dst(u32, "count"), src(u64, "state")}, .since = first},

    {.opcode = Opcode::clusterlaunchcontrol_try_cancel, .types = {Type::b128}, .one = {"async", "mbarrier::complete_tx::bytes"}, .any = {"shared::cta"}, .flags = "multicast::cluster::all", .operands = {target("response", in_shared), mbarrier()}, .since = {{8, 6}, 100},
     .needs = {{.words = "multicast::cluster::all", .since = {{8, 6}, 100, Reach::Family}}},
     .memory = {{.operand = 0, .access = Access::Write, .proxy = Proxy::Async, .completion = Completion::Mbarrier}, {.operand = 1, .access = Access::Atomic, .proxy = Proxy::Async, .completion = Completion::Mbarrier}}},
    {.opcode = Opcode::clusterlaunchcontrol_query_cancel, .types = {Type::pred, Type::b128}, .one = {"is_canceled"}, .operands = {dst(), reg(OperandType(1), "response")}, .since = {{8, 6}, 100}},
    {.opcode = Opcode::clusterlaunchcontrol_query_cancel, .types = {b32, Type::b128}, .one = {"get_first_ctaid", "v4"}, .operands = {also(a_sink, written(vec(4, OperandType(0), "d"))), reg(OperandType(1), "response")}, .since = {{8, 6}, 100}},
    {.opcode = Opcode::clusterlaunchcontrol_query_cancel, .types = {b32, Type::b128}, .one = {"get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z"}, .operands = {dst(), reg(OperandType(1), "response")}, .since = {{8, 6}, 100}},
};
// clang-format on

}  // namespace

std::span<const Signature> mbarrier_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
