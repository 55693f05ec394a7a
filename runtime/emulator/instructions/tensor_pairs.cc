// SPDX-License-Identifier: Apache-2.0
// Tensor memory of a pair of CTAs (.cta_group::2): two CTAs of a cluster whose ranks differ in the
// last bit. One warp of each allocates, and each gets the same columns; so they give them back.
//
// The manual lets both instructions wait for the other CTA's, and here they do. That they have met
// orders no other memory.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "compiler/isa/hints.h"
#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/tensor_operands.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {

std::optional<bool> is_of_pair(Decoder& d) {
  const std::string_view word = d.spelling.any("cta_group::1 cta_group::2");
  const bool pair = word == "cta_group::2";
  d.program().uses_tensor_memory = true;
  if (d.hardware() != Hardware::sm_100) {
    d.unsupported(fmt::format("tensor memory is unsupported on {}", name(d.hardware())));
    return std::nullopt;
  }
  if (word.empty()) return false;
  int& group = d.program().cta_group;
  const int own = pair ? 2 : 1;
  if (group && group != own) {
    d.error("cta-group"_rule,
            fmt::format("{}: expected .cta_group::{}, as before: all tcgen05 instructions of a "
                        "kernel must use the same group",
                        d.spelling.text(), group));
    return std::nullopt;
  }
  group = own;
  return pair;
}

std::optional<bool> is_matched_of_pair(Decoder& d) {
  const isa::Spelling& spelling = d.spelling.as_read();
  const auto pair = is_of_pair(d);
  if (!pair) return pair;
  d.spelling.ignore_all();
  if (!spelling.signatures.empty()) return pair;
  d.error(isa::mismatch_rule(spelling), isa::mismatch(spelling));
  return std::nullopt;
}

namespace {

Block* peer_of(Warp& warp, int lane) {
  Block* const peer = warp.block->peer();
  if (!peer)
    warp.fail("tensor-memory"_rule,
              fmt::format(".cta_group::2 in the CTA of rank {}, whose cluster has {}: expected one "
                          "with an even number of CTAs, of which two are a pair",
                          warp.block->rank(),
                          warp.block->cluster().size() == 1
                              ? "no other CTA"
                              : fmt::format("{} CTAs", warp.block->cluster().size())),
              lane);
  return peer;
}

}  // namespace

std::vector<Block*> ctas_of(Warp& warp, bool pair, int lane) {
  if (!pair) return {warp.block};
  Block* const peer = peer_of(warp, lane);
  if (!peer) return {};
  if (peer->done()) {
    warp.fail("tensor-memory"_rule,
              "the other CTA of the pair has exited: expected barrier.cluster before its end",
              lane);
    return {};
  }
  if (warp.block->rank() & 1) return {peer, warp.block};
  return {warp.block, peer};
}

namespace {

using Request = TensorMemory::PairRequest;

Request* request_of(TensorMemory& memory, const Warp& warp) {
  auto& all = memory.pair_requests();
  const auto found = std::ranges::find(all, &warp, &Request::warp);
  return found == all.end() ? nullptr : &*found;
}

void forget(TensorMemory& memory, const Warp& warp) {
  std::erase_if(memory.pair_requests(), [&](const Request& each) { return each.warp == &warp; });
}

// As if the warp were at its request: what is found names that.
template <typename Body>
void at_request(const Request& request, Body&& body) {
  Warp& warp = *request.warp;
  const std::uint32_t pc = std::exchange(warp.pc, request.pc + 1),
                      mask = std::exchange(warp.mask, request.lanes);
  const bool leave = warp.leave;
  body(warp);
  warp.pc = pc;
  warp.mask = mask;
  warp.leave = leave || warp.block->stopped();
}

// It waits for this one, and goes on.
void finish(Request& request) {
  request.done = true;
  for (Group& group : request.warp->groups)
    if (group.pc == request.pc &&
        (group.state == Group::State::for_peer || group.state == Group::State::for_columns))
      group.state = Group::State::ready;
}

bool touch_columns(Warp& warp, std::uint32_t rank, const Request& request) {
  const TensorArea area{0, TensorMemory::lanes, static_cast<int>(request.address),
                        static_cast<int>(request.count)};
  return ask(warp, &Events::access_tensor, 0,
             TensorTouch{TensorAgent::thread, true, false, area, rank});
}

enum class Met { yes, no, failed };

// Both CTAs get the columns, if there are free ones.
Met allocate_both(Request& mine, Request& other) {
  TensorMemory &here = mine.warp->block->tensor(), &there = other.warp->block->tensor();
  const auto first = here.allocate(mine.count, mine.pc);
  if (!first) return Met::no;
  [[maybe_unused]] const auto same = there.allocate(other.count, other.pc);
  assert(same == first);
  mine.address = other.address = *first;
  tell(*mine.warp, &Events::joined, *other.warp);
  bool good = true;
  for (Request* each : {&mine, &other})
    at_request(*each, [&](Warp& warp) {
      tell(warp, &Events::takes_columns, true);
      warp.block->fill_columns(*first, each->count);
      good = good && touch_columns(warp, warp.block->rank(), *each);
      if (good) tell(warp, &ValueEvents::gave_columns, warp.block->tensor().allocations().back());
    });
  return good ? Met::yes : Met::failed;
}

// Nobody may use the columns any more, in either CTA.
Met deallocate_both(Request& mine, Request& other) {
  bool good = true;
  tell(*mine.warp, &Events::joined, *other.warp);
  for (Request* each : {&mine, &other})
    at_request(*each, [&](Warp& warp) {
      if (!good) return;
      warp.block->tensor().deallocate(each->address, each->count);
      for (const Request* of : {&mine, &other})
        good = good && touch_columns(warp, of->warp->block->rank(), *each);
    });
  if (!good) return Met::failed;
  for (Request* each : {&mine, &other})
    at_request(*each, [](Warp& warp) {
      tell(warp, &Events::gives_columns);
      warp.block->hand_out_columns();
    });
  return Met::yes;
}

// The warp has a request: of the other CTA's the first one of the kind answers it.
Met meet(Warp& warp, Block& peer) {
  Request& mine = *request_of(warp.block->tensor(), warp);
  if (mine.done) return Met::yes;
  for (Request& other : peer.tensor().pair_requests()) {
    if (other.done || other.allocates != mine.allocates) continue;
    if (!mine.allocates && other.address != mine.address) continue;
    if (other.count != mine.count) {
      warp.fail("tensor-memory"_rule,
                fmt::format("{} of {} columns, and of {} on {} by the other CTA of the pair: "
                            "expected the same of both",
                            mine.allocates ? "tcgen05.alloc" : "tcgen05.dealloc", mine.count,
                            other.count, peer.where(other.pc)),
                0);
      return Met::failed;
    }
    const Met met = mine.allocates ? allocate_both(mine, other) : deallocate_both(mine, other);
    if (met != Met::yes) return met;
    mine.done = true;
    finish(other);
    return met;
  }
  return Met::no;
}

bool answers(Warp& warp, Block& peer, const Request& mine) {
  return std::ranges::any_of(peer.tensor().pair_requests(), [&](const Request& other) {
    return !other.done && other.allocates && mine.allocates && other.count == mine.count &&
           &warp != other.warp;
  });
}

}  // namespace

// op.b: the number of columns.
void allocate_for_pair(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  Block* const peer = peer_of(warp, 0);
  Op plain;
  const auto count = peer ? agreed(warp, plain, op.b, "number of columns") : std::nullopt;
  if (!count) return;
  TensorMemory& memory = warp.block->tensor();
  std::uint64_t at[32];
  addresses(warp, op, at);
  Access access;
  if (!resolve(warp, op.window, at, 4, access)) return;
  if (!request_of(memory, warp)) {
    if (!may_allocate(warp, memory, *count)) return;
    if (!ask(warp, &Events::allocates_for_pair, *peer)) return;
    memory.pair_requests().push_back(
        {.warp = &warp, .pc = warp.pc - 1, .lanes = warp.mask, .allocates = true, .count = *count});
  }
  const Met met = meet(warp, *peer);
  if (met == Met::failed) return;
  const Request mine = *request_of(memory, warp);
  if (met == Met::no)
    return answers(warp, *peer, mine) ? warp.wait_for_columns(*count) : warp.wait_for_peer();
  forget(memory, warp);
  note_lane_access(warp, 0, {op.window, at[0], 4}, true);
  std::memcpy(access.at[0], &mine.address, 4);
  tell(warp, &ValueEvents::fill, access.at[0], 4);
}

// op.a: the address, op.b: the number of columns.
void deallocate_for_pair(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  Block* const peer = peer_of(warp, 0);
  const auto address = peer ? agreed(warp, op, op.a, "address") : std::nullopt,
             count = address ? agreed(warp, op, op.b, "number of columns") : std::nullopt;
  if (!count) return;
  TensorMemory& memory = warp.block->tensor();
  if (!request_of(memory, warp)) {
    if (const std::string why = memory.misfit(*address, *count); !why.empty())
      return warp.fail("tensor-memory"_rule, fmt::format("tcgen05.dealloc: {}", why), 0, *address);
    memory.pair_requests().push_back({.warp = &warp,
                                      .pc = warp.pc - 1,
                                      .lanes = warp.mask,
                                      .address = *address,
                                      .count = *count});
  }
  switch (meet(warp, *peer)) {
    case Met::yes: return forget(memory, warp);
    case Met::no: return warp.wait_for_peer();
    case Met::failed: return;
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
