// SPDX-License-Identifier: Apache-2.0
#include "dsl/state/lanes.h"

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

// As a register of that type holds it.
std::int64_t wrapped(std::int64_t value, Type type) {
  if (bits(type) != 32) return value;
  return info(type).is_signed ? static_cast<std::int32_t>(value)
                              : static_cast<std::int64_t>(static_cast<std::uint32_t>(value));
}

}  // namespace

std::optional<std::int64_t> ThreadValues::at(const Term& term, Type type, int thread,
                                             Known& known) const {
  if (term.value < 0) return wrapped(term.addend, type);
  const auto found = nodes_.find(term.value);
  if (found == nodes_.end()) return std::nullopt;
  const Node& node = found->second;
  const auto [place, is_new] = known.try_emplace(term.value);
  if (is_new) {
    std::optional<std::int64_t> value;
    if (!node.fold) {
      value = thread - node.first;
    } else {
      // Of a comparison, the operands' type is that of the one that has a value.
      const auto x = at(node.x, node.type, thread, known), y = at(node.y, node.type, thread, known);
      if (x && y) value = node.fold(*x, *y);
    }
    place->second = value ? std::optional(wrapped(*value, node.type)) : std::nullopt;
  }
  const auto value = known[term.value];
  return value ? std::optional(wrapped(*value + term.addend, node.type)) : std::nullopt;
}

Split ThreadValues::split(int condition, int first, int count) const {
  if (!nodes_.contains(condition)) return Split::none;
  int passing = 0, warps = 0;
  for (int begin = 0; begin < count; begin += 32) {
    int lanes = 0;
    for (int i = begin; i < begin + 32; ++i) {
      Known known;
      const auto holds = at({condition, 0}, Type::pred, first + i, known);
      if (!holds) return Split::none;
      lanes += *holds != 0;
    }
    if (lanes % 32) return Split::lanes;
    passing += lanes > 0, ++warps;
  }
  return passing < warps ? Split::warps : Split::none;
}

namespace {

bool reached_by(KernelState& state, std::string_view call, Split least, std::string_view whom) {
  if (state.partial.split < least) return true;
  state.log.report("divergent-collective"_rule,
                   fmt::format("{}: expected {}, found the condition at {}, which holds for some "
                               "of them only; move it out of the condition",
                               call, whom, text(state.partial.place)));
  return false;
}

}  // namespace

bool by_all_lanes(KernelState& state, std::string_view call) {
  return reached_by(state, call, Split::lanes, "all 32 lanes of a warp");
}

bool by_all_threads(KernelState& state, std::string_view call) {
  return reached_by(state, call, Split::warps, "all threads");
}

}  // namespace tartan::TARTAN_ABI::detail
