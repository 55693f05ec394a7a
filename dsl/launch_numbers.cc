// SPDX-License-Identifier: Apache-2.0
#include "dsl/launch_numbers.h"

#include <algorithm>

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

std::optional<MapNumber> LaunchNumbers::find(int value) const {
  const auto at = std::find(values_.begin(), values_.end(), value);
  if (at != values_.end()) return MapNumber{1, {static_cast<int>(at - values_.begin())}};
  const auto derived = derived_.find(value);
  if (derived == derived_.end()) return std::nullopt;
  return derived->second;
}

std::optional<MapNumber> KernelState::map_number(const Scalar& scalar) const {
  if (const auto constant = scalar.constant()) return MapNumber{*constant, {}};
  if (scalar.addend_ || scalar.wraps_) return std::nullopt;
  return launch_numbers.find(scalar.value_.id);
}

void KernelState::derive_number(const Scalar& result, Operator op, const Scalar& x,
                                std::int64_t y) {
  if (y <= 0 || x.wraps_ || result.value_.type == Type::none) return;
  auto number = launch_numbers.find(x.value_.id);
  if (!number) return;
  if (op == Operator::multiply) {
    number->value *= y;
  } else if (op == Operator::divide && number->value == 1 && number->divisor == 1) {
    // x / y without a rest, or (x + y - 1) / y: rounded up.
    if (x.addend_ != y - 1 && (x.addend_ || x.multiple_ % y)) return;
    number->divisor = y;
  } else {
    return;
  }
  launch_numbers.note(result.value_.id, *number);
}

}  // namespace tartan::inline TARTAN_ABI::detail
