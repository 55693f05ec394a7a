// SPDX-License-Identifier: Apache-2.0
// mbarrier objects (PTX ISA 9.0, 9.7.13.15), and cluster launch control (9.7.13.17).
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
constexpr OperandRow participants{.name = "count",
                                  .accepts = a_register | an_integer,
                                  .type = u32,
                                  .ranged = true,
                                  .low = 1,
                                  .high = (1 << 20) - 1};
constexpr OperandRow bytes = count("tx_count");
constexpr Since first{{7, 0}, 80}, sinks{{7, 1}, 80}, counts{{7, 8}, 90}, hopper{{8, 0}, 90};

constexpr QualifierSet layouts = "layout::v0 layout::v1";
constexpr Since since_layouts{{9, 3}, 90};

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

// With the type of the phase: the first may have a second predicate and an operand of eight bits.
constexpr Signature wait_for(Opcode opcode, bool by_parity, bool typed) {
  Signature out = wait(opcode, by_parity, since_layouts);
  out.one.items[out.one.size++] = "phase_type::primary";
  out.operands = {};
  OperandRow complete = also(a_pair, dst(Type::pred, "wait_complete"));
  complete.sinks = SinkInPair::Second;
  const OperandRow report = reg(Type::b8, "report");
  for (const OperandRow& each : {complete, report, mbarrier_object()})
    if (typed || each.name != report.name) out.operands.items[out.operands.size++] = each;
  out.operands.items[out.operands.size++] = !by_parity ? old_state()
                                            : typed    ? count("phase_parity")
                                                       : parity();
  if (opcode == Opcode::mbarrier_try_wait)
    out.operands.items[out.operands.size++] = optional(count("time_hint"));
  if (typed) out.memory.items[0].operand = 2;
  return out;
}
constexpr Signature wait_if(Opcode opcode) {
  Signature out = wait(opcode, true, since_layouts);
  out.one.items[out.one.size++] = "phase_type::conditional";
  return out;
}

// At the same mbarrier in each block that a mask of 32 bits names.
constexpr Signature to_blocks(Signature row) {
  row.one.items[row.one.size++] = "multicast::cluster::32b";
  row.any.items[row.any.size - 1] = "shared::cluster";
  row.operands.items[row.operands.size++] = blocks_32();
  row.since = rubin;
  return row;
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
    {.opcode = Opcode::mbarrier_init, .types = {b64}, .any = {here, layouts}, .operands = {mbarrier_object(), participants}, .since = first, .needs = {needs_shared_cta, {.words = layouts, .since = since_layouts}}, .memory = {{.operand = 0, .access = Access::Write}}},
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
    wait_for(Opcode::mbarrier_test_wait, false, false), wait_for(Opcode::mbarrier_test_wait, true, false), wait_for(Opcode::mbarrier_test_wait, false, true), wait_for(Opcode::mbarrier_test_wait, true, true),
    wait_for(Opcode::mbarrier_try_wait, false, false), wait_for(Opcode::mbarrier_try_wait, true, false), wait_for(Opcode::mbarrier_try_wait, false, true), wait_for(Opcode::mbarrier_try_wait, true, true),
    wait_if(Opcode::mbarrier_test_wait), wait_if(Opcode::mbarrier_try_wait),
    to_blocks(arrive(arrives, {}, "shared::cluster", false, sink(), nullptr, hopper)), to_blocks(arrive(arrives, {}, "shared::cluster", false, sink(), &counted, hopper)), to_blocks(arrive(arrives, "expect_tx", "shared::cluster", false, sink(), &bytes, hopper)),
    to_blocks(arrive(drops, {}, "shared::cluster", false, sink(), nullptr, hopper)), to_blocks(arrive(drops, {}, "shared::cluster", false, sink(), &counted, hopper)), to_blocks(arrive(drops, "expect_tx", "shared::cluster", false, sink(), &bytes, hopper)),
    to_blocks(transaction(Opcode::mbarrier_expect_tx)), to_blocks(transaction(Opcode::mbarrier_complete_tx)),
    {.opcode = Opcode::mbarrier_pending_count, .types = {b64}, .flags = "layout::v0", .operands = {dst(u32, "count"), src(u64, "state")}, .since = first, .needs = {{.words = "layout::v0", .since = since_layouts}}},
    {.opcode = Opcode::mbarrier_check_layout, .types = {b64}, .one = {layouts}, .any = {here}, .operands = {dst(Type::pred, "p"), mbarrier_object()}, .since = since_layouts, .memory = {{.operand = 1, .access = Access::Read}}},

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
