// SPDX-License-Identifier: Apache-2.0
// Ownership of handles: a call accepts handles of the kernel that this thread describes.
#include <utility>

#include "dsl/state/scalars.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

thread_local KernelState* described = nullptr;

}  // namespace

Description::Description(KernelState& kernel) : before_(std::exchange(described, &kernel)) {}
Description::~Description() { described = before_; }
KernelState* Description::current() { return described; }

namespace {

// dsl/, whose rooms have all of the library's own arithmetic of scalars; kernels are elsewhere.
std::string_view own_folder() {
  constexpr std::string_view place = "state/handles.cc";
  const std::string_view file = std::source_location::current().file_name();
  return file.ends_with(place) ? file.substr(0, file.size() - place.size()) : std::string_view();
}

}  // namespace

bool is_users(std::string_view file) {
  static const std::string_view own = own_folder();
  const bool is_own = !own.empty() && file.starts_with(own);
  const bool in_header =
      file.ends_with(".h") && (file.find("tartan/dsl/") != std::string_view::npos ||
                               file.find("tartan/kernels/") != std::string_view::npos);
  return !is_own && !in_header && file.find("/include/c++/") == std::string_view::npos;
}

void note_line(const std::source_location& here) {
  if (described && described->function && here.line() && is_users(here.file_name()))
    described->at(here);
}

bool is_made(const std::shared_ptr<KernelState>& state, std::string_view what) {
  if (!state && described) described->owns_state(state, what);
  return state != nullptr;
}

bool KernelState::owns_state(const std::shared_ptr<KernelState>& state, std::string_view what) {
  if (!is_described()) return false;
  if (!state) log.note_empty(what.empty() ? "a matrix" : what);
  if (!state) return false;
  if (state.get() == this) return true;
  log.report("foreign-value"_rule, fmt::format("{} belongs to another kernel", what));
  return false;
}

bool KernelState::is_described() const {
  const KernelState* const current = Description::current();
  return function && (!current || current == this);
}

bool KernelState::takes_calls(std::string_view what) {
  if (is_described()) return true;
  if (KernelState* const other = Description::current())
    other->log.report("foreign-value"_rule, fmt::format("{} belongs to another kernel", what));
  return false;
}

bool KernelState::begins(const std::shared_ptr<KernelState>& state,
                         const std::source_location& here) {
  if (!state) return false;
  state->at(here);
  return state->is_described();
}

ir::FunctionBuilder& KernelState::nowhere() {
  if (!discarded)
    discarded =
        std::make_unique<ir::FunctionBuilder>("discarded", config.target, ir::LaunchBounds{});
  return *discarded;
}

bool KernelState::is_index(const Scalar& scalar, std::string_view what) {
  if (is_bad(scalar)) return false;
  if (scalar.constant()) return true;
  if (!owns(scalar, what)) return false;
  if (real(scalar)) {
    log.report("scalar-type"_rule,
               fmt::format("{}: expected an integer, found {}", what, detail::text(scalar)));
    return false;
  }
  if (!info(scalar.type()).floating && scalar.type() != Type::pred) return true;
  log.report("scalar-type"_rule,
             fmt::format("{}: expected an integer, found a value of type {}; convert() it", what,
                         name(scalar.type())));
  return false;
}

bool KernelState::is_condition(const Scalar& scalar) {
  if (is_bad(scalar) || !owns(scalar, "the condition")) return false;
  if (scalar.type() == Type::pred) return true;
  log.report("scalar-type"_rule,
             fmt::format("expected a condition of type pred, such as a comparison, found {}",
                         detail::text(scalar)));
  return false;
}

std::shared_ptr<KernelState> common_state(std::initializer_list<const Scalar*> operands) {
  std::shared_ptr<KernelState> out;
  for (const Scalar* each : operands) {
    if (is_bad(*each)) return nullptr;
    if (const auto& state = state_of(*each)) out = state;
  }
  if (auto* const current = Description::current()) out = current->shared_from_this();
  if (!out || !out->is_described()) return nullptr;
  for (const Scalar* each : operands)
    if (state_of(*each) && !out->owns(*each, "an operand")) return nullptr;
  return out;
}

bool KernelState::has_body(bool given, std::string_view what) {
  if (!given)
    log.report("kernel-option"_rule, fmt::format("{}: expected a function, found none", what));
  return given;
}

}  // namespace tartan::TARTAN_ABI::detail
