// SPDX-License-Identifier: Apache-2.0
// Atomic operations, fences, named barriers, and what orders grids.
#include "tartan/dsl/atomic.h"

#include "dsl/cluster/cluster.h"
#include "dsl/layout/addressing.h"
#include "dsl/layout/fragments.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/roles/roles.h"
#include "dsl/roles/warpgroups.h"
#include "dsl/state/scalars.h"
#include "dsl/units/ptx/assembly.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"
#include "tartan/isa/signature.h"

namespace tartan::TARTAN_ABI {
namespace {

using detail::Effect;
using detail::KernelState;
using detail::Tensor;
using detail::tensor_of;

constexpr std::string_view operations[] = {"add", "min",  "max", "and", "or",
                                           "xor", "exch", "inc", "dec"};
constexpr std::string_view orders[] = {"relaxed", "acquire", "release", "acq_rel", "sc"};
constexpr std::string_view scopes[] = {"cta", "cluster", "gpu", "sys"};

std::string_view spelled(std::span<const std::string_view> words, auto of) {
  return words[static_cast<std::size_t>(of)];
}

// The type that PTX writes for an operation on elements of `type`: sums of s64 are those of u64,
// and swaps and bitwise operations move bits.
std::string type_word(std::string_view operation, Type type) {
  const TypeSet halves{f16, bf16, f16x2, bf16x2};
  if (halves.has(type) && operation != "exch" && operation != "cas")
    return fmt::format("noftz.{}", name(type));
  if (operation == "add" && type == s64) return "u64";
  if (operation == "add" || operation == "min" || operation == "max" || operation == "inc" ||
      operation == "dec")
    return std::string(name(type == b32 ? u32 : type == b64 ? u64 : type));
  return fmt::format("b{}", bits(type));
}

// An operand of an operation on elements of `type`; nothing, and reported, for another type.
std::optional<Scalar> element_operand(KernelState& state, const Tensor& to, const Scalar& value) {
  if (detail::is_bad(value) || (detail::state_of(value) && !state.owns(value, "the value")))
    return std::nullopt;
  if (detail::is_constant(value)) return state.scalar(state.value(value, to.type));
  if (value.type() == to.type || (bits(value.type()) == bits(to.type) &&
                                  !(info(value.type()).floating && info(to.type).floating)))
    return state.scalar(state.f().bitcast(state.value(value), to.type));
  state.log.report(
      "scalar-type"_rule,
      fmt::format("element type mismatch: {} has elements of {}, the value is {}; convert() it",
                  to.name, name(to.type), name(value.type())));
  return std::nullopt;
}

Scalar atomic_operation(KernelState& state, std::string_view operation, const Tensor& to,
                        const Scalar& row, const Scalar& col,
                        std::initializer_list<const Scalar*> values, const AtomicOptions& options) {
  const auto place = checked_address(state, to, row, col);
  if (!place) return detail::bad_scalar();
  const bool in_shared = state.memories.of(to).in_shared;
  const std::string_view space = !in_shared             ? "global"
                                 : is_remote(state, to) ? "shared::cluster"
                                                        : "shared";
  std::vector<Scalar> operands{state.scalar(in_shared ? state.f().shared_address(*place)
                                                      : state.f().global_address(*place))};
  for (const Scalar* const each : values) {
    const auto operand = element_operand(state, to, *each);
    if (!operand) return detail::bad_scalar();
    operands.push_back(*operand);
  }
  const std::string text =
      fmt::format("atom.{}.{}.{}.{}.{} %0, [%1], {};", spelled(orders, options.order),
                  spelled(scopes, options.scope), space, operation, type_word(operation, to.type),
                  values.size() == 2 ? "%2, %3" : "%2");
  const Scalar old = detail::assembled(state, text, {&to.type, 1}, operands, Effect::any)[0];
  if (in_shared) {
    state.roles.note_read(detail::StageAccess::load);
    note_atomic(state, to);
  } else {
    state.memories.of(to).ever_written = true;
  }
  return old;
}

bool target_has(KernelState& state, isa::Opcode opcode) {
  const Since& since = isa::signatures(opcode).front().since;
  state.log.would_take(since);
  return since.has(state.config.target);
}

// Whether so many threads may wait at a barrier: whole warps.
bool are_warps(const KernelState& state, int threads) {
  return threads >= 32 && threads % 32 == 0 && threads <= state.config.all_threads();
}

// A barrier of some warps of the block, by number.
bool is_barrier(KernelState& state, int id, int threads) {
  const bool roles = state.config.options.producers > 0;
  const int first = roles ? detail::consumers_barrier + 1 : 1;
  const int most = state.config.all_threads();
  if (id >= first && id <= 15 && are_warps(state, threads)) {
    detail::note_meeting(state);
    return detail::is_free_barrier(state, id);
  }
  state.log.report(
      "immediate-range"_rule,
      fmt::format("named barrier: expected a number from {} to 15 and 32 to {} threads "
                  "in whole warps, found barrier {} of {} threads",
                  first, most, id, threads));
  return false;
}

// The same by a number of the GPU's.
void barrier_by_number(KernelState& state, std::string_view how, const Scalar& id, int threads) {
  if (detail::is_bad(id) || !state.owns(id, "the barrier's number")) return;
  if (id.type() != u32)
    return state.log.report(
        "scalar-type"_rule,
        fmt::format("named barrier: expected a number of type u32, found {}; convert() it",
                    name(id.type())));
  if (!are_warps(state, threads))
    return state.log.report(
        "immediate-range"_rule,
        fmt::format("named barrier: expected 32 to {} threads in whole warps, found {}",
                    state.config.all_threads(), threads));
  detail::note_meeting(state);
  detail::fence_writes(state);
  detail::assembled(state, fmt::format("bar.{} %0, {};", how, threads), {}, {&id, 1}, Effect::any);
  if (how == "sync") state.memories.forget_writes();
}

}  // namespace

Scalar Builder::atomic(AtomicOp op, const Global& to, const Scalar& row, const Scalar& col,
                       const Scalar& value, const AtomicOptions& options, Here at) {
  state_->at(at);
  return atomic_operation(*state_, spelled(operations, op), tensor_of(to), row, col, {&value},
                          options);
}
Scalar Builder::atomic(AtomicOp op, const Shared& to, const Scalar& row, const Scalar& col,
                       const Scalar& value, const AtomicOptions& options, Here at) {
  state_->at(at);
  return atomic_operation(*state_, spelled(operations, op), tensor_of(to), row, col, {&value},
                          options);
}
Scalar Builder::compare_exchange(const Global& to, const Scalar& row, const Scalar& col,
                                 const Scalar& expected, const Scalar& desired,
                                 const AtomicOptions& options, Here at) {
  state_->at(at);
  return atomic_operation(*state_, "cas", tensor_of(to), row, col, {&expected, &desired}, options);
}
Scalar Builder::compare_exchange(const Shared& to, const Scalar& row, const Scalar& col,
                                 const Scalar& expected, const Scalar& desired,
                                 const AtomicOptions& options, Here at) {
  state_->at(at);
  return atomic_operation(*state_, "cas", tensor_of(to), row, col, {&expected, &desired}, options);
}

void Builder::fence(MemoryScope scope, MemoryOrder order, Here at) {
  state_->at(at);
  detail::assembled(*state_,
                    fmt::format("fence.{}.{};", spelled(orders, order), spelled(scopes, scope)), {},
                    {}, Effect::any);
}

Scalar Builder::elect(Here at) {
  state_->at(at);
  const ir::Value lane = detail::lane_index(*state_);
  if (!target_has(*state_, isa::Opcode::elect)) return state_->scalar(lane, 1, 31) == 0;
  const ir::Value elected = state_->f().elect();
  // Some lane; as if it were the first one, for who may pass such a condition.
  state_->threads.note(
      elected.id, u32,
      [](std::int64_t x, std::int64_t y) { return std::optional(std::int64_t{x == y}); },
      {lane.id, 0}, {-1, 0});
  return state_->scalar(elected);
}

void Builder::griddepcontrol_wait(Here at) {
  state_->at(at);
  if (!target_has(*state_, isa::Opcode::griddepcontrol)) return;
  if (detail::divides_fill(*state_)) return;
  detail::mark_prologue(*state_);
  detail::assembled(*state_, "griddepcontrol.wait;", {}, {}, Effect::any);
}
void Builder::griddepcontrol_launch_dependents(Here at) {
  state_->at(at);
  if (target_has(*state_, isa::Opcode::griddepcontrol))
    detail::assembled(*state_, "griddepcontrol.launch_dependents;", {}, {}, Effect::any);
}

void Builder::warp_sync(Here at) {
  state_->at(at);
  if (by_all_lanes(*state_, "warp_sync()")) state_->f().warp_sync();
}

void Builder::barrier(int id, int threads, Here at) {
  state_->at(at);
  if (!is_barrier(*state_, id, threads)) return;
  land_all(*state_);
  detail::fence_writes(*state_);
  state_->f().barrier(id, threads);
  state_->memories.forget_writes();
}
void Builder::arrive(int id, int threads, Here at) {
  state_->at(at);
  if (!is_barrier(*state_, id, threads)) return;
  land_all(*state_);
  detail::fence_writes(*state_);
  detail::assembled(*state_, fmt::format("bar.arrive {}, {};", id, threads), {}, {}, Effect::any);
}
void Builder::barrier(const Scalar& id, int threads, Here at) {
  state_->at(at);
  if (const auto number = id.constant()) return barrier(static_cast<int>(*number), threads, at);
  barrier_by_number(*state_, "sync", id, threads);
}
void Builder::arrive(const Scalar& id, int threads, Here at) {
  state_->at(at);
  if (const auto number = id.constant()) return arrive(static_cast<int>(*number), threads, at);
  barrier_by_number(*state_, "arrive", id, threads);
}

Scalar Builder::bitcast(const Scalar& value, Type to, Here at) {
  state_->at(at);
  if (detail::is_bad(value) || (detail::state_of(value) && !state_->owns(value, "the value")))
    return detail::bad_scalar();
  if (detail::is_constant(value)) {
    state_->log.report("scalar-type"_rule,
                       fmt::format("bitcast: {} has no bits yet; make it one of k.constant()",
                                   detail::text(value)));
    return detail::bad_scalar();
  }
  if (value.type() != Type::pred && to != Type::pred && bits(value.type()) == bits(to))
    return state_->scalar(state_->f().bitcast(state_->value(value), to));
  state_->log.report(
      "scalar-type"_rule,
      fmt::format("bitcast: expected types of one size, found {} ({} bits) and {} ({} "
                  "bits)",
                  name(value.type()), bits(value.type()), name(to), bits(to)));
  return detail::bad_scalar();
}

Scalar Builder::address(const Global& tile, const Scalar& row, const Scalar& col, Here at) {
  state_->at(at);
  const auto place = checked_address(*state_, tensor_of(tile), row, col);
  if (!place) return detail::bad_scalar();
  return state_->scalar(state_->f().global_address(*place));
}

}  // namespace tartan::TARTAN_ABI
