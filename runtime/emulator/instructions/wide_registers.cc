// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/instructions/wide_registers.h"

#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// The low half of 64-bit registers.
void truncate(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto* a = lanes<std::uint64_t>(warp, op.a);
  each_lane(warp.mask, [=](int i) { d[i] = static_cast<std::uint32_t>(a[i]); });
}

template <typename D, typename A>
void extend(Warp& warp, const Op& op) {
  auto* d = lanes<D>(warp, op.d);
  const auto* a = lanes<A>(warp, op.a);
  each_lane(warp.mask, [=](int i) { d[i] = a[i]; });
}

}  // namespace

std::uint32_t narrow_source(Decoder& d, std::size_t i, Type type) {
  const RegisterRef source = d.flexible(d.operand(i), type);
  if (bits(source.type) != 64 || bits(type) == 64) return source.slot;
  const std::uint32_t low = d.scratch(32);
  Op& op = d.emit(truncate);
  op.d = low;
  op.a = source.slot;
  return low;
}

WideResult::WideResult(Decoder& d, Type type) : type_(type) {
  if (!d.register_of(d.operand(0))) {  // reports what it is
    slot = d.destination(0, type);
    return;
  }
  destination_ = d.flexible(d.operand(0), type);
  widens_ = bits(destination_.type) == 64 && bits(type) < 64;
  slot = widens_ ? d.scratch(32) : destination_.slot;
  bits_ = widens_ ? 32 : bits(destination_.type);
}

void WideResult::widen(Decoder& d) const {
  if (!widens_) return;
  Op& wide = d.emit(info(type_).is_signed ? extend<std::int64_t, std::int32_t>
                                          : extend<std::uint64_t, std::uint32_t>);
  wide.d = destination_.slot;
  wide.a = slot;
}

}  // namespace tartan::TARTAN_ABI::emulator
