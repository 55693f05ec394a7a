// SPDX-License-Identifier: Apache-2.0
#include "dsl/roles/launched_tiles.h"

#include "dsl/layout/shared_memory.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

// One is asked for ahead; warpgroups that compute tiles in turn read answers a tile later.
constexpr int stages = 3, answer_bytes = 16;

}  // namespace

LaunchedTiles::LaunchedTiles(Builder& k, KernelState& state, const Scalar& first,
                             const std::source_location& at)
    : k_(k), state_(state), at_(at) {
  ir::FunctionBuilder& f = state.f();
  answers_ = state.memories.share(f, state.names.unused("launched_tiles"),
                                  stages * (answer_bytes + 2 * mbarrier_bytes));
  full_ = f.offset(answers_, stages * answer_bytes);
  empty_ = f.offset(full_, stages * mbarrier_bytes);
  const int warps = state.config.options.block / 32 + state.config.options.producers;
  RolePipeline ring{.stages = stages,
                    .at = at,
                    .full = full_,
                    .empty = empty_,
                    .full_arrivals = 1,
                    .empty_arrivals = warps * cluster()};
  ring.writes.add_tma_load(answer_bytes, cluster() > 1 ? Sharing::all : Sharing::none);
  state.roles.pipelines.push_back(ring);
  number_ = k.variable(first, at);
  goes_on_ = k.variable(k.constant(u32, 1, at), at);
  consumer_.emplace(k, state, stages, at);
  const AsProducer as(state);
  producer_.emplace(k, state, stages, at);
  asked_ = std::make_shared<Cursor>(k, state, stages, at);
  if (cluster() > 1) drain();
}

void LaunchedTiles::drain() {
  state_.roles.drains.emplace_back([&state = state_, asked = asked_, empty = empty_, at = at_] {
    ir::FunctionBuilder& f = state.f();
    Builder builder(state.shared_from_this());
    const Scalar asks = (thread_index(state) == 0) & (block_of_cluster(state) == 0);
    f.if_then(state.value(asks), [&] {
      builder.loop(
          0, stages, 1,
          [&](const Scalar&) {
            f.cluster_mbarrier_wait(asked->of(empty), asked->other_parity());
            asked->advance();
          },
          at);
    });
  });
}

void LaunchedTiles::ask() {
  state_.f().by_role([] {},
                     [&] {
                       const AsProducer as(state_);
                       request(*asked_);
                     });
}

void LaunchedTiles::take() {
  const auto as_producer = [&] {
    const AsProducer as(state_);
    read(*producer_);
  };
  state_.f().by_role([&] { read(*consumer_); }, as_producer);
}

ir::Value LaunchedTiles::address_of_answer(const Scalar& stage) const {
  ir::FunctionBuilder& f = state_.f();
  return f.shared_address(f.offset(answers_, state_.value(stage * answer_bytes, u32)));
}

// Each CTA expects the bytes; one asks, when all have read the answer that was there before.
void LaunchedTiles::request(Cursor& cursor) {
  ir::FunctionBuilder& f = state_.f();
  const std::string text = fmt::format(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{}.b128 [%0], "
      "[%1];",
      cluster() > 1 ? ".multicast::cluster::all" : "");
  const auto ask = [&] {
    if (cluster() > 1) f.cluster_mbarrier_wait(cursor.of(empty_), cursor.other_parity());
    else f.mbarrier_wait(cursor.of(empty_), cursor.other_parity());
    const ir::Value operands[] = {address_of_answer(cursor.stage()),
                                  f.shared_address(cursor.of(full_))};
    (void)f.statement(text, {}, operands, false);
  };
  f.if_then(state_.value(thread_index(state_) == 0), [&] {
    f.mbarrier_expect(cursor.of(full_), answer_bytes);
    if (cluster() > 1) f.if_then(state_.value(block_of_cluster(state_) == 0), ask);
    else ask();
  });
  cursor.advance();
}

void LaunchedTiles::read(Cursor& cursor) {
  ir::FunctionBuilder& f = state_.f();
  constexpr std::string_view text =
      "{\n.reg .b128 answer;\n.reg .pred taken;\nld.shared.b128 answer, [%2];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 taken, answer;\n"
      "selp.u32 %0, 1, 0, taken;\nmov.u32 %1, 0;\n"
      "@taken clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, answer;\n}";
  f.mbarrier_wait(cursor.of(full_), cursor.parity());
  const Type types[] = {u32, u32};
  const ir::Value operands[] = {address_of_answer(cursor.stage())};
  const std::vector<ir::Value> answer = f.statement(text, types, operands, false);
  f.proxy_fence();  // the next answer is written by the async proxy
  f.warp_sync();
  const ir::Pointer empty = cursor.of(empty_);
  f.if_then(state_.value(thread_index(state_) % 32 == 0), [&] {
    if (cluster() > 1) f.cluster_mbarrier_arrive(empty, f.constant(u32, 0));
    else f.mbarrier_arrive(empty);
  });
  cursor.advance();
  *goes_on_ = state_.scalar(answer[0]);
  *number_ = k_.convert(state_.scalar(answer[1]), s32, at_) / cluster();
}

}  // namespace tartan::TARTAN_ABI::detail
