// SPDX-License-Identifier: Apache-2.0
// What stands between the brackets of an address besides its base: coordinates of a tensor map,
// what overrides its fields, and the endpoint of a fabric.
#include <fmt/format.h>

#include "compiler/verify/operand_matcher.h"

namespace tartan::TARTAN_ABI::verify {

using isa::OperandRow;
using isa::operator""_q;

OperandMatcher::AddressParts OperandMatcher::address_parts(const Wanted& wanted) {
  const isa::Spelling& spelling = wanted.spelling;
  const bool tensor = wanted.row.coordinates != 0, remote = wanted.row.remote;
  const bool all_sizes = spelling.has("override::global_dim_stride"_q);
  AddressParts out;
  const auto add = [&](AddressPart part, bool present) {
    if (present) out.items[out.size++] = part;
  };
  add(AddressPart::Base, tensor || !remote);
  add(AddressPart::Endpoint, remote);
  add(AddressPart::Address, tensor ? spelling.has("override::global_address"_q) : remote);
  add(AddressPart::Counter, remote && spelling.has("counted::bytes"_q));
  add(AddressPart::Sizes, tensor && (all_sizes || spelling.has("override::global_dim"_q)));
  add(AddressPart::Strides, tensor && all_sizes);
  add(AddressPart::HighStrides, tensor && all_sizes);
  add(AddressPart::Coordinates, tensor);
  return out;
}

bool OperandMatcher::part_fits(const ptx::Operand& part, AddressPart kind,
                               const Wanted& wanted) const {
  const auto vector = [&](int count, Type type, bool constants) {
    if (part.kind != ptx::OperandKind::Vector) return false;
    OperandRow row = isa::vec(count, type);
    if (constants) row.accepts |= isa::an_integer;
    return fits(part, {row, wanted.spelling, type, count});
  };
  const auto register_of = [&](Type type) {
    return fits(part, {isa::reg(type), wanted.spelling, type, 0});
  };
  const int count = tensor_coordinates(wanted);
  switch (kind) {
    case AddressPart::Base: return base_fits(part, wanted);
    case AddressPart::Endpoint: return register_of(u32);
    case AddressPart::Address:
    case AddressPart::Counter: return register_of(u64);
    case AddressPart::Sizes: return vector(count, b16, false) || vector(count, Type::b8, false);
    case AddressPart::Strides: return vector(count - 1, b32, false);
    case AddressPart::HighStrides: return register_of(Type::u16);
    case AddressPart::Coordinates: return vector(count, Type::s32, true);
  }
  return false;
}

// "[map, endpoint, address, {coordinates}]"
std::string OperandMatcher::form_of(const AddressParts& parts) {
  constexpr std::string_view names[] = {"map",     "endpoint",  "address",      "counter",
                                        "{sizes}", "{strides}", "high_strides", "{coordinates}"};
  std::string out;
  for (const AddressPart each : parts)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", names[static_cast<int>(each)]);
  return fmt::format("[{}]", out);
}

}  // namespace tartan::TARTAN_ABI::verify
