// SPDX-License-Identifier: Apache-2.0
#include "dsl/state.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tartan::inline TARTAN_ABI::detail {

KernelState::KernelState(const Kernel& kernel, const Target& target)
    : target(target), options(kernel.options()), log(target, kernel.place()) {
  codegen::LaunchBounds bounds;
  // Before sm_80 there are no copies beside the threads that someone else could wait for.
  if (target.arch.sm < 80) options.producers = 0;
  bounds.block[0] = all_threads();
  // Registers change hands only where their number is bound.
  if (moves_registers() && options.min_blocks == 0) options.min_blocks = 1;
  bounds.min_blocks = options.min_blocks;
  bounds.max_registers = options.max_registers;
  if (has_copy_engine()) bounds.cluster = options.cluster;
  function = std::make_unique<codegen::FunctionBuilder>(kernel.name(), target, bounds);
}

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto legal = [&](char c) { return letter(c) || digit(c) || c == '_' || c == '$'; };
  return std::all_of(name.begin(), name.end(), legal) && !name.empty() && !digit(name[0]) &&
         (name.size() > 1 || letter(name[0])) && name != "WARP_SZ";
}

void KernelState::at(const std::source_location& here) {
  log.at(here);
  if (is_described()) return function->at(here);
  // A kernel that is still to be compiled lacks what was meant for it.
  if (function) log.report("foreign-value"_rule, "this call belongs to another kernel");
  KernelState* const other = Description::current();
  if (!other) return;
  other->log.resume(here);
  other->log.report("foreign-value"_rule, "this call belongs to another kernel");
}

bool KernelState::fresh_name(const std::string& name, std::string_view what) {
  if (!is_described()) return false;
  if (roles.current != Role::all) {
    log.report("kernel-option"_rule,
               fmt::format("{} {} is declared inside roles(), which describes "
                           "its body once per role; declare it outside",
                           what, name));
    return false;
  }
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    names.push_back(name);
    return true;
  }
  log.report("duplicate-name"_rule,
             fmt::format("{} {}: name already used by a parameter or shared matrix of the kernel",
                         what, name));
  return false;
}

std::string KernelState::unused_name(std::string name) {
  while (std::find(names.begin(), names.end(), name) != names.end()) name += '_';
  names.push_back(name);
  return name;
}

int KernelState::threads() const {
  switch (roles.current) {
    case Role::all: return all_threads();
    case Role::consumer: return options.block;
    case Role::producer: return 32 * options.producers;
  }
  return 0;
}

Scalar KernelState::thread() {
  codegen::Value number = f().special(isa::SpecialRegister::tid_x);
  if (roles.current == Role::producer)
    number = f().subtract(number, f().constant(u32, options.block));
  return scalar(number, 1, std::bit_ceil(static_cast<std::uint64_t>(threads())) - 1);
}

Scalar KernelState::block_of_cluster() {
  return scalar(f().special(isa::SpecialRegister::ctaid_x)) % options.cluster;
}

codegen::Value KernelState::lane() { return value(thread() % 32); }

}  // namespace tartan::inline TARTAN_ABI::detail
