// SPDX-License-Identifier: Apache-2.0
// Who calls whom: the order of functions in a program, and which calls may be recursive.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {

namespace {
constexpr std::uint64_t function_step = 16;
}

std::uint64_t address_of(const ptx::Module& module, const ptx::Function& function) {
  const auto index = static_cast<std::uint64_t>(&function - module.functions.data());
  return function_window + function_step * (index + 1);
}

void Decoder::go_to_entry(Op& op, const Function& callee) {
  entries_.emplace_back(static_cast<std::size_t>(&op - program_.ops.data()), callee.tree->name);
}

const std::vector<const ptx::Function*>& Decoder::address_taken() {
  if (!address_taken_) address_taken_ = ptx::address_taken(names_);
  return *address_taken_;
}

std::vector<const ptx::Function*> Decoder::callees_of(const ptx::Function& function) {
  ptx::Callees callees = ptx::callees_of(names_, function);
  if (!callees.indirect) return std::move(callees.named);
  for (const ptx::Function* callee : address_taken())
    if (std::ranges::find(callees.named, callee) == callees.named.end())
      callees.named.push_back(callee);
  return std::move(callees.named);
}

// Tarjan's strongly connected components, without recursion: call chains may be long.
std::vector<Decoder::CallNode> Decoder::order_calls(const ptx::Function& kernel) {
  struct State {
    std::uint32_t index = 0, low = 0;  // in the order of the first visit
    bool open = true;                  // its component is not complete
    CallNode node;
  };
  struct Visit {
    State* state;
    std::vector<const ptx::Function*> callees;
    std::size_t next = 0;
  };
  std::unordered_map<const ptx::Function*, State> states;
  std::vector<State*> open, finished;
  std::vector<Visit> path;
  std::uint32_t components = 0;
  const auto visit = [&](const ptx::Function& function) {
    const auto index = static_cast<std::uint32_t>(states.size());
    State& state = states[&function];
    state.index = state.low = index;
    state.node.function = &function;
    open.push_back(&state);
    path.push_back({&state, callees_of(function)});
  };
  const auto close_component = [&](const State& root) {
    const bool several = open.back() != &root;
    for (bool last = false; !last; open.pop_back()) {
      State& member = *open.back();
      member.open = false;
      member.node.component = components;
      member.node.recursive |= several;
      last = &member == &root;
    }
    ++components;
  };
  visit(kernel);
  while (!path.empty()) {
    Visit& here = path.back();
    State& state = *here.state;
    if (here.next < here.callees.size()) {
      const ptx::Function* callee = here.callees[here.next++];
      const auto known = states.find(callee);
      if (known == states.end()) visit(*callee);
      else if (known->second.open) state.low = std::min(state.low, known->second.index);
      state.node.recursive |= callee == state.node.function;
      continue;
    }
    if (state.low == state.index) close_component(state);
    finished.push_back(&state);
    path.pop_back();
    if (!path.empty()) path.back().state->low = std::min(path.back().state->low, state.low);
  }
  std::vector<CallNode> out;
  for (const State* state : finished) out.push_back(state->node);
  return out;
}

// Callers need to know the places of their callees' parameters, not their bodies.
void Decoder::survey() {
  const std::uint32_t always = allocate(1);
  std::memset(program_.arena.data() + always, 0xFF, 4);
  stack_slot();
  std::uint32_t component = 0;
  for (const ptx::Function& function : module_.functions) {
    if (!function.body) continue;
    announce({.function = &function, .component = component++});
    program_.local_bytes = 0;
  }
  const std::size_t announced = program_.arena.size();
  for (const ptx::Function& function : module_.functions) {
    if (!function.body || is_late()) continue;
    if (function.entry) read_directives(function);
    decode_function(function);
    forget_function(announced);
  }
}

void Decoder::forget_function(std::size_t bytes) {
  program_.arena.resize(bytes);
  program_.ops.clear();
  program_.origins.clear();
  program_.slots.clear();
  program_.specials.clear();
  program_.shared_variables.clear();
  program_.shared_slots.clear();
  program_.params.clear();
  program_.param_offsets.clear();
  program_.local_bytes = program_.param_bytes = program_.shared_bytes = 0;
  program_.gathering_slot = carry_ = predicates_left_ = 0;
  entries_.clear();
  constants_.clear();
  specials_.clear();
  static_addresses_.clear();
  dynamic_addresses_.clear();
  shared_ = {};
}

bool Decoder::may_mean(std::size_t count) {
  constexpr std::size_t most = std::size_t{1} << 17;
  if ((meant_ += count) <= most) return true;
  error("unsupported-instruction"_rule,
        fmt::format("too many targets of indirect calls: each call tries all the functions that it "
                    "may mean, and up to this one those are {}; expected at most {}",
                    meant_, most));
  return false;
}

std::span<const ptx::Operand> Decoder::targets(std::string_view label) const {
  for (int at = scope_; at >= 0; at = scopes_[static_cast<std::size_t>(at)].parent) {
    const auto& targets = scopes_[static_cast<std::size_t>(at)].targets;
    if (const auto found = targets.find(label); found != targets.end())
      return module_.operands_of(*found->second);
  }
  return {};
}

const Decoder::Function* Decoder::function(std::string_view name) const {
  const ptx::Function* const meant = names_.find(name);
  const auto found = functions_.find(meant ? meant->name : name);
  return found == functions_.end() ? nullptr : &found->second;
}

std::vector<const Decoder::Function*> Decoder::call_targets(std::string_view label) {
  std::vector<const Function*> out;
  const auto add = [&](std::string_view name) {
    if (const Function* callee = function(name)) out.push_back(callee);
  };
  const auto names = targets(label);
  if (!may_mean(!names.empty() ? names.size() : address_taken_ ? address_taken_->size() : 0))
    return out;
  if (!names.empty())
    for (const ptx::Operand& name : names) add(name.text);
  else if (address_taken_)
    for (const ptx::Function* callee : *address_taken_) add(callee->name);
  return out;
}

bool Decoder::may_return_into_itself(const Function& callee) const {
  return callee.component == current().component;
}

}  // namespace tartan::TARTAN_ABI::emulator
