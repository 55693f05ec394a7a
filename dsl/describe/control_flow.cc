// SPDX-License-Identifier: Apache-2.0
// Run-time loops and conditions, and the scalars that change in them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "dsl/state/scalars.h"
#include "dsl/state/state.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI {

using detail::KernelState;
using ir::Value;

namespace {

// Whether a loop variable of that type reaches `end` from `begin`; reports if not.
bool can_count(KernelState& state, const Scalar& begin, const Scalar& end, const Scalar& step,
               Type type) {
  bool good = step.constant().value_or(1) > 0;
  if (!good)
    state.log.report("immediate-range"_rule,
                     fmt::format("loop step: expected at least 1, found {}", *step.constant()));
  for (const Scalar* each : {&begin, &end}) {
    if (info(type).is_signed || each->constant().value_or(0) >= 0) continue;
    good = false;
    state.log.report("immediate-range"_rule,
                     fmt::format("bounds of a loop over {0}: expected 0 or more, found {1}; use "
                                 "k.constant(s32, {1}) for a signed loop",
                                 name(type), *each->constant()));
  }
  return good;
}

void in_loop(KernelState& state, const std::function<void()>& body) {
  const detail::Partial around = state.partial;
  state.partial.once = false;
  body();
  state.partial = around;
}

// Records what a loop's variable reaches, if a launch knows it: at least the last multiple of the
// step that is surely below the end.
bool note_range(KernelState& state, const Scalar& i, const Scalar& begin, const Scalar& end,
                const Scalar& step) {
  const auto from = begin.constant(), by = step.constant();
  const auto count = detail::map_number(state.launch, end);
  if (!from || *from < 0 || !by || !count) return false;
  state.launch.note_range(detail::HandleParts::value(i).id, {.number = *count, .addend = *by - 1});
  return true;
}

}  // namespace

void Builder::loop(const Scalar& begin, const Scalar& end, const Scalar& step,
                   const std::function<void(Scalar)>& body, Here at) {
  state_->at(at);
  bool good = state_->has_body(body != nullptr, "a loop");
  for (const Scalar* each : {&begin, &end, &step})
    good &= state_->is_index(*each, "the loop's bound");
  if (!good) return;
  const Scalar* const typed = begin.type() != Type::none ? &begin
                              : end.type() != Type::none ? &end
                                                         : &step;
  const Type type = typed->type() == Type::none ? u32 : typed->type();
  if (!can_count(*state_, begin, end, step, type)) return;
  const std::int64_t multiple = std::gcd(begin.multiple(), step.multiple());
  const detail::BeforeBody before = state_->flights.before_body(state_->f(), true);
  ++state_->conditions;  // it may run no time
  state_->f().for_range(state_->value(begin, type), state_->value(end, type),
                        state_->value(step, type), [&](Value i) {
                          state_->flights.in_body(state_->f(), before, [&] {
                            const Scalar index =
                                state_->scalar(i, std::max<std::int64_t>(multiple, 1));
                            // What a launch checks holds of a loop that runs no time, too.
                            const bool known = note_range(*state_, index, begin, end, step);
                            state_->conditions -= known;
                            in_loop(*state_, [&] { body(index); });
                            state_->conditions += known;
                          });
                        });
  --state_->conditions;
}

void Builder::when(const Scalar& condition, const std::function<void()>& body, Here at) {
  state_->at(at);
  if (!state_->has_body(body != nullptr, "a condition")) return;
  if (detail::is_bad(condition)) return body();  // describe it all the same: its mistakes count too
  if (const auto constant = condition.constant()) {
    if (*constant) body();
    return;
  }
  if (!state_->is_condition(condition)) return;
  const detail::BeforeBody before = state_->flights.before_body(state_->f(), false);
  ++state_->conditions;
  const detail::Partial around = state_->partial;
  const detail::Split split = state_->threads.split(detail::HandleParts::value(condition).id,
                                                    first_thread(*state_), thread_count(*state_));
  state_->partial.once &= state_->f().is_uniform(detail::HandleParts::value(condition));
  if (split > around.split)
    state_->partial.split = split, state_->partial.place = state_->log.place();
  state_->f().if_then(state_->value(condition),
                      [&] { state_->flights.in_body(state_->f(), before, body); });
  state_->partial = around;
  --state_->conditions;
}

void Builder::when(const Scalar& condition, const std::function<void()>& then,
                   const std::function<void()>& otherwise, Here at) {
  state_->at(at);
  if (!state_->has_body(then && otherwise, "a condition")) return;
  if (detail::is_bad(condition)) return then(), otherwise();
  if (const auto constant = condition.constant()) return *constant ? then() : otherwise();
  if (!state_->is_condition(condition)) return;
  const detail::BeforeBody before = state_->flights.before_body(state_->f(), false);
  const auto body = [&](const std::function<void()>& described) {
    return [&] { state_->flights.in_body(state_->f(), before, described); };
  };
  const detail::Partial around = state_->partial;
  state_->partial.once &= state_->f().is_uniform(detail::HandleParts::value(condition));
  state_->f().if_else(state_->value(condition), body(then), body(otherwise));
  state_->partial = around;
}

// The condition is computed before the loop and at the end of each iteration, so that it may read
// accumulators whose products are in flight.
void Builder::loop_while(const std::function<Scalar()>& condition,
                         const std::function<void()>& body, Here at) {
  state_->at(at);
  if (!state_->has_body(condition && body, "a loop")) return;
  const auto holds = [&]() -> std::optional<Value> {
    const Scalar out = condition();
    if (detail::is_bad(out)) return std::nullopt;
    state_->at(at);
    if (const auto constant = out.constant()) {
      state_->log.report("scalar-type"_rule,
                         fmt::format("loop_while: the condition is always {}: expected one that "
                                     "the body changes, such as a comparison with a variable()",
                                     *constant != 0));
      return std::nullopt;
    }
    if (!state_->is_condition(out)) return std::nullopt;
    return state_->value(out);
  };
  const auto first = holds();
  if (!first) return body();  // its mistakes count too
  const ir::Variable goes_on = state_->f().variable(*first);
  const detail::BeforeBody before = state_->flights.before_body(state_->f(), true);
  state_->f().while_loop([&] { return state_->f().get(goes_on); },
                         [&] {
                           state_->flights.in_body(state_->f(), before, [&] {
                             in_loop(*state_, body);
                             if (const auto next = holds()) state_->f().set(goes_on, *next);
                           });
                         });
}

Scalar Builder::constant(Type type, double value, Here at) {
  state_->at(at);
  if (type == Type::none) {
    state_->log.report("scalar-type"_rule, fmt::format("constant {}: expected a type, found none; "
                                                       "a number of C++ takes any type",
                                                       value));
    return detail::bad_scalar();
  }
  if (!info(type).floating && std::trunc(value) != value) {
    state_->log.report(
        "scalar-type"_rule,
        fmt::format("constant {} of type {}: expected an integer", value, name(type)));
    return detail::bad_scalar();
  }
  if (!info(type).floating)
    return state_->scalar(state_->f().constant(type, static_cast<std::int64_t>(value)),
                          std::max<std::int64_t>(1, static_cast<std::int64_t>(value)),
                          static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  return state_->scalar(state_->f().constant(type, value));
}

ScalarVariable Builder::variable(const Scalar& initial, Here at) {
  state_->at(at);
  ScalarVariable out;
  const bool owned = !detail::state_of(initial) || state_->owns(initial, "the variable's value");
  if (detail::is_bad(initial) || !owned || !state_->is_described()) return out;
  out.state_ = state_;
  out.variable_ = state_->f().variable(state_->value(initial));
  return out;
}

ScalarVariable& ScalarVariable::operator=(const ScalarOperand& operand) {
  detail::note_line(operand.at);
  const Scalar& value = operand.value;
  if (!detail::is_made(state_, "the variable") || !state_->takes_calls("the variable") ||
      detail::is_bad(value) || (detail::state_of(value) && !state_->owns(value, "the value")))
    return *this;
  if (!detail::is_constant(value) && value.type() != variable_.type) {
    state_->log.report(
        "scalar-type"_rule,
        fmt::format("type mismatch: the variable is {}, found a value of type {}; convert() it",
                    name(variable_.type), name(value.type())));
    return *this;
  }
  state_->stages.note_change(variable_.id, state_->log.place());
  state_->f().set(variable_, state_->value(value, variable_.type));
  return *this;
}

ScalarVariable& ScalarVariable::operator=(const ScalarVariable& value) {
  return *this = ScalarOperand(value, Here());
}

Scalar::Scalar(const ScalarVariable& variable, Here at) {
  detail::note_line(at);
  const auto& state = variable.state_;
  if (!detail::is_made(state, "the variable") || !state->takes_calls("the variable")) {
    *this = detail::bad_scalar();
    return;
  }
  state->stages.note_read(variable.variable_.id, state->log.place());
  *this = state->scalar(state->f().get(variable.variable_));
}

}  // namespace tartan::TARTAN_ABI
