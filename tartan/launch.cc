// SPDX-License-Identifier: Apache-2.0
#include "tartan/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/tensor_map.h"

namespace tartan {
namespace {

// An argument as a number: 4 or 8 bytes, as its parameter says.
std::int64_t number(const Compiled& compiled, const Arguments& arguments, int param) {
  const std::vector<std::byte>& bytes = arguments[static_cast<std::size_t>(param)];
  const Type type = compiled.params[static_cast<std::size_t>(param)].type;
  const bool wide = compiled.params[static_cast<std::size_t>(param)].pointer || bits(type) == 64;
  std::int64_t out = 0;
  if (wide) {
    std::memcpy(&out, bytes.data(), std::min<std::size_t>(bytes.size(), 8));
  } else {
    std::int32_t word = 0;
    std::memcpy(&word, bytes.data(), std::min<std::size_t>(bytes.size(), 4));
    out = word;
  }
  return out;
}

std::uint64_t number(const Compiled& compiled, const Arguments& arguments, const MapNumber& of) {
  std::int64_t product = 1;
  for (const int param : of.params) product *= number(compiled, arguments, param);
  return static_cast<std::uint64_t>(of.value * ((product + of.divisor - 1) / of.divisor));
}

TensorMap tensor_map(const Compiled& compiled, const Arguments& arguments, const CompiledMap& of) {
  TensorMap out{.type = of.type};
  out.address = static_cast<std::uint64_t>(number(compiled, arguments, of.of));
  for (const MapNumber& each : of.extents) out.extents.push_back(number(compiled, arguments, each));
  const auto element = static_cast<std::uint64_t>(bits(of.type) / 8);
  for (const MapNumber& each : of.strides)
    out.strides.push_back(number(compiled, arguments, each) * element);
  for (const int each : of.box) out.box.push_back(static_cast<std::uint32_t>(each));
  using Swizzle = TensorMap::Swizzle;
  out.swizzle = of.swizzle == 128  ? Swizzle::bytes_128
                : of.swizzle == 64 ? Swizzle::bytes_64
                : of.swizzle == 32 ? Swizzle::bytes_32
                                   : Swizzle::none;
  static_assert(CompiledMap::promotion == 128);
  out.promotion = TensorMap::Promotion::bytes_128;
  return out;
}

}  // namespace

Result<Arguments> arguments_of(const Compiled& compiled, Arguments arguments) {
  if (compiled.maps.empty()) return arguments;
  if (arguments.size() != compiled.params.size())
    return Diags::one("launch-arguments"_rule, {},
                      fmt::format("kernel {} has {} parameters, found {} arguments", compiled.name,
                                  compiled.params.size(), arguments.size()));
  Arguments out = arguments;
  for (const CompiledMap& each : compiled.maps) {
    const auto bytes = tensor_map(compiled, arguments, each).encode();
    if (!bytes) return bytes.diags();
    out.add(*bytes);
  }
  return out;
}

}  // namespace tartan
