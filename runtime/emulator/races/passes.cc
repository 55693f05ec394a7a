// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/passes.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/places.h"

namespace tartan::TARTAN_ABI::emulator {

bool are_of_two_passes(const LaunchContext& context, std::uint32_t one, std::uint32_t other) {
  const auto [first, last] = std::minmax(one, other);
  const std::vector<Op>& ops = context.program.ops;
  std::size_t begin = 0, end = ops.size();  // of the innermost loop around both
  for (std::size_t pc = last; pc < ops.size(); ++pc) {
    const bool jumps = opcode(context, static_cast<std::uint32_t>(pc)).starts_with("bra");
    if (!jumps || ops[pc].value > first) continue;
    begin = ops[pc].value;
    end = pc;
    break;
  }
  if (end == ops.size()) return false;
  const auto has_barrier = [&](std::size_t from, std::size_t to) {
    for (; from < to; ++from) {
      const std::string_view what = opcode(context, static_cast<std::uint32_t>(from));
      if (what.starts_with("bar.sync") || what.starts_with("barrier.sync")) return true;
    }
    return false;
  };
  return has_barrier(first, last) && !has_barrier(begin, first) && !has_barrier(last, end);
}

}  // namespace tartan::TARTAN_ABI::emulator
