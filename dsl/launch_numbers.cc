// SPDX-License-Identifier: Apache-2.0
#include "dsl/launch_numbers.h"

#include <algorithm>

#include "dsl/scalars.h"

namespace tartan::inline TARTAN_ABI::detail {

std::optional<MapNumber> LaunchNumbers::find(int value) const {
  const auto at = std::find(values_.begin(), values_.end(), value);
  if (at != values_.end()) return MapNumber{1, {static_cast<int>(at - values_.begin())}};
  const auto derived = derived_.find(value);
  if (derived == derived_.end()) return std::nullopt;
  return derived->second;
}

std::optional<MapNumber> map_number(const LaunchNumbers& numbers, const Scalar& scalar) {
  if (const auto constant = scalar.constant()) return MapNumber{*constant, {}};
  if (addend(scalar) || wraps(scalar)) return std::nullopt;
  return numbers.find(HandleParts::value(scalar).id);
}

}  // namespace tartan::inline TARTAN_ABI::detail
