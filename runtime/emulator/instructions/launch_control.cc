// SPDX-License-Identifier: Apache-2.0
// clusterlaunchcontrol (PTX ISA 9.0, 9.7.13.17): a running cluster takes the place of one that has
// not started. It gets the next one of the grid, for as long as there is one; under a schedule, one
// of the next.
//
// The response, 16 bytes that programs must not look into: the place of the cluster's first block,
// x, y and z, then 1. Of a request that is refused the place, which nobody may use, is far outside
// of each grid, and the last word 0.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint32_t response_bytes = 16;

// A generic address as one of the cluster's shared memory.
std::uint64_t of_cluster(Window window, std::uint64_t address) {
  return window == Window::generic && window_of(address) == Window::shared ? address - shared_window
                                                                           : address;
}

bool respond(Warp& warp, int lane, std::uint64_t target, std::uint64_t barrier,
             const std::uint32_t (&response)[4]) {
  std::byte* const at =
      resolve_range(warp, lane, Window::cluster, target, response_bytes, response_bytes);
  if (!at) return false;
  std::array<std::uint32_t, 4> words;
  std::ranges::copy(response, words.begin());
  return complete_transactions(warp, lane, barrier, response_bytes,
                               {.at = at, .room = response_bytes}, [=, &warp] {
                                 std::memcpy(at, words.data(), response_bytes);
                                 tell(warp, &ValueEvents::fill, at, response_bytes);
                               });
}

// op.list: the addresses of the response and of the mbarrier; op.flags: to all blocks.
void try_cancel(Warp& warp, const Op& op) {
  const Op to = address_at(warp, op.list), barrier = address_at(warp, op.list + address_words);
  std::uint64_t targets[32], barriers[32];
  addresses(warp, to, targets);
  addresses(warp, barrier, barriers);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint64_t target = of_cluster(to.window, targets[lane]),
                        mbarrier = of_cluster(barrier.window, barriers[lane]);
    if (warp.was_refused)
      return warp.fail("trap"_rule,
                       "a request after this warp has read that an earlier one was refused: the "
                       "manual leaves undefined what it does; expected none after the first "
                       "query_cancel.is_canceled that is false",
                       lane);
    const auto first = warp.block->context().cancel();
    constexpr std::uint32_t nowhere = ~0u;
    const std::uint32_t response[4] = {first ? first->x : nowhere, first ? first->y : nowhere,
                                       first ? first->z : nowhere, first.has_value()};
    if (!op.flags) {
      if (!respond(warp, lane, target, mbarrier, response)) return;
      continue;
    }
    for (std::uint32_t rank = 0; rank < warp.block->cluster().size(); ++rank)
      if (!respond(warp, lane, in_block(target, rank), in_block(mbarrier, rank), response)) return;
  }
}

void decode_try(Decoder& d) {
  d.spelling.ignore("async");
  d.spelling.type();
  if (!d.spelling.has("mbarrier::complete_tx::bytes"))
    return d.unsupported("expected .mbarrier::complete_tx::bytes.b128 at the end");
  const Window window = d.spelling.has("shared::cta") ? Window::shared : Window::generic;
  const bool to_all = d.spelling.has("multicast::cluster::all");
  if (!d.expect_operands(2, 2)) return;
  d.program().takes_clusters = true;
  const std::uint32_t list = append_address(d, d.operand(0), window);
  append_address(d, d.operand(1), window);
  Op& op = d.emit(try_cancel);
  op.list = list;
  op.flags = to_all;
}

// Word op.flags of the response in op.a; op.d: a register, or a predicate.
std::uint32_t word_of(const Warp& warp, const Op& op, int lane) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(warp.arena + op.a);
  return static_cast<std::uint32_t>(words[lane + (op.flags / 2) * 32] >> 32 * (op.flags % 2));
}

void is_canceled(Warp& warp, const Op& op) {
  const std::uint32_t given =
      lanes_where(warp.mask, [&](int i) { return word_of(warp, op, i) != 0; });
  warp.was_refused |= given != warp.mask;
  set_predicate(warp, op.d, given);
}

void first_place(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  each_lane(warp.mask, [&](int i) { d[i] = word_of(warp, op, i); });
}

void emit_query(Decoder& d, Handler handler, const ptx::Operand& to, Type type,
                std::uint32_t response, int word) {
  const std::uint32_t destination = d.destination(to, type);
  Op& op = d.emit(handler);
  op.d = destination;
  op.a = response;
  op.flags = static_cast<std::uint8_t>(word);
}

void decode_query(Decoder& d) {
  d.spelling.type(1);  // what is asked for, of what
  if (!d.expect_operands(2, 2)) return;
  const std::uint32_t response = d.source(1, Type::b128);
  if (d.spelling.has("is_canceled"))
    return emit_query(d, is_canceled, d.operand(0), Type::pred, response, 3);
  if (d.spelling.has("get_first_ctaid")) {
    const auto places = d.children(d.operand(0));
    if (!d.spelling.has("v4") || places.size() != 4)
      return d.unsupported("expected four registers for the result");
    for (int i = 0; i < 3; ++i)
      emit_query(d, first_place, places[static_cast<std::size_t>(i)], Type::b32, response, i);
    return;
  }
  constexpr isa::Qualifier dimensions[] = {"get_first_ctaid::x"_q, "get_first_ctaid::y"_q,
                                           "get_first_ctaid::z"_q};
  for (int i = 0; i < 3; ++i)
    if (d.spelling.has(dimensions[i]))
      return emit_query(d, first_place, d.operand(0), Type::b32, response, i);
  d.unsupported();
}

}  // namespace

constexpr EmulatedRow launch_control_rows[] = {
    {Opcode::clusterlaunchcontrol_try_cancel, decode_try, Flow::Uses, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, "it takes a cluster that has not started"},
    computation(Opcode::clusterlaunchcontrol_query_cancel, decode_query, Flow::Spreads,
                Meaning::Bits),
};
static_assert(are_rows_of(launch_control_rows, topics::launch_control));

}  // namespace tartan::TARTAN_ABI::emulator
