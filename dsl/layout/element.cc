// SPDX-License-Identifier: Apache-2.0
// Fragments from and to scalars: whole registers, and single elements at the places of the lane
// map.
#include <algorithm>

#include "dsl/layout/fragment_map.h"
#include "dsl/layout/fragments.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

using ir::FunctionBuilder;
using ir::Value;

// The scalar type of an element: its own if scalars of that type exist, else its bits.
Type element_type(Type type) {
  const TypeSet themselves{f16, bf16, f32, f64, s32};
  if (themselves.has(type)) return type;
  if (type == tf32) return f32;
  return info(type).is_signed ? s32 : u32;
}

// The place of an element in its 32-bit register. A four-bit element is in the middle of its byte.
struct BitField {
  int lowest, width;
};

BitField bit_field(const isa::Fragment& fragment, int position) {
  const int width = bits(fragment.type);
  const int padding = fragment.container_bits == 8 && width == 4 ? 2 : 0;
  return {position * fragment.container_bits + padding, width};
}

Value extract(FunctionBuilder& f, Value word, const isa::Fragment& fragment, int position) {
  if (fragment.container_bits >= 32) return f.bitcast(word, element_type(fragment.type));
  if (fragment.container_bits == 16) {
    const auto [low, high] = f.unpack(word, fragment.type);
    return position ? high : low;
  }
  const auto [lowest, width] = bit_field(fragment, position);
  const Type type = element_type(fragment.type);
  const auto constant = [&](std::int64_t value) { return f.constant(type, value); };
  const Value up = f.shift_left(f.bitcast(word, type), constant(32 - lowest - width));
  return f.shift_right(up, constant(32 - width));  // moves the sign down for s4 and s8
}

Value insert(FunctionBuilder& f, std::span<const Value> elements, const isa::Fragment& fragment) {
  if (fragment.container_bits >= 32) return f.bitcast(elements[0], register_type(fragment.type));
  if (fragment.container_bits == 16) return f.pack(elements[0], elements[1], b32);
  Value word = f.constant(u32, 0);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto [lowest, width] = bit_field(fragment, static_cast<int>(i));
    const Value low =
        f.bit_and(f.bitcast(elements[i], u32), f.constant(u32, (std::int64_t{1} << width) - 1));
    word = f.bit_or(word, f.shift_left(low, f.constant(u32, lowest)));
  }
  return f.bitcast(word, b32);
}

// `scalars` as values of `type`, and those of `byte` as its bits; reports those of another width.
std::optional<std::vector<Value>> values_of(KernelState& state, std::span<const Scalar> scalars,
                                            Type type, std::string_view what,
                                            Type byte = Type::none) {
  std::vector<Value> out;
  for (const Scalar& scalar : scalars) {
    if (is_bad(scalar) || (state_of(scalar) && !state.owns(scalar, what))) return std::nullopt;
    if (is_constant(scalar)) {
      out.push_back(state.value(scalar, type));
      continue;
    }
    if (scalar.type() == byte && bits(byte) == 8) {  // its bits, as elements() gives them
      out.push_back(state.f().convert(state.f().bitcast(state.value(scalar), Type::u8), u32));
      continue;
    }
    if (bits(scalar.type()) != bits(type)) {
      state.log.report(
          "scalar-type"_rule,
          fmt::format("wrong register size: {} has {} bits ({}), found a value of type {}", what,
                      bits(type), name(type), name(scalar.type())));
      return std::nullopt;
    }
    out.push_back(state.f().bitcast(state.value(scalar), type));
  }
  return out;
}

// Reports unless the fragment exists and `found` equals `wanted`.
bool fits(KernelState& state, const FragmentKind& kind, std::size_t found, int wanted,
          std::string_view what) {
  if (!kind.exists()) {
    state.log.report("fragment-mismatch"_rule, fmt::format("no such fragment: {}", kind.text()));
    return false;
  }
  if (found == static_cast<std::size_t>(wanted)) return true;
  state.log.report("operand-count"_rule,
                   fmt::format("wrong number of values: {} has {} {} in each lane, found {}",
                               kind.text(), wanted, what, found));
  return false;
}

Major stored(const FragmentKind& kind) {
  if (!kind.shape.wmma || kind.operand == Operand::c) return Major::none;
  if (kind.major != Major::none) return kind.major;
  return kind.operand == Operand::a ? Major::row : Major::col;
}

// One coordinate of a lane map as a value. Neighbouring bits of the lane number with proportional
// steps are combined.
Scalar along(const Scalar& lane, const LaneMap& map, int isa::Coord::*axis) {
  Scalar out = map.origin.*axis;
  for (std::size_t bit = 0; bit < map.steps.size();) {
    const int step = map.steps[bit].*axis;
    std::size_t end = bit + 1;
    while (end < map.steps.size() && map.steps[end].*axis == step << (end - bit)) ++end;
    if (step != 0) out += (lane >> bit) % (1 << (end - bit)) * step;
    bit = step != 0 ? end : bit + 1;
  }
  return out;
}

}  // namespace
}  // namespace detail

using ir::Value;

namespace {

constexpr int most_elements = 128;  // of any fragment in a lane: A of m16n8k256

// Whether a scalar was refused; that was reported, so the number of scalars is not checked.
bool has_bad(std::span<const Scalar> scalars) {
  return std::any_of(scalars.begin(), scalars.end(),
                     [](const Scalar& each) { return detail::is_bad(each); });
}

// Reports a number whose bits would pass for an element: an s32 as f32.
bool are_numbers_of(detail::KernelState& state, std::span<const Scalar> elements, Type type) {
  const TypeSet numbers{u32, s32, u64, s64, f16, bf16, f32, f64};
  for (const Scalar& each : elements) {
    if (detail::is_constant(each) || !numbers.has(each.type()) || !numbers.has(type) ||
        bits(each.type()) != bits(type) || info(each.type()).floating == info(type).floating)
      continue;
    state.log.report("scalar-type"_rule,
                     fmt::format("wrong element type: expected {0}, found {1}, whose bits would be "
                                 "stored; convert() it to {0}, or pack() elements() as a fragment "
                                 "of {1}",
                                 name(type), name(each.type())));
    return false;
  }
  return true;
}

}  // namespace

Fragment Builder::fragment(const FragmentKind& kind, std::span<const Scalar> registers, Here at) {
  state_->at(at);
  if (has_bad(registers)) return {};
  if (!detail::fits(*state_, kind, registers.size(), kind.fragment().registers, "registers"))
    return {};
  auto values = detail::values_of(*state_, registers, detail::register_type(kind.type),
                                  "a register of the fragment");
  if (!values) return {};
  return make_fragment(*state_, kind, std::move(*values), detail::stored(kind));
}

std::vector<Scalar> Builder::elements(const Fragment& fragment, Here at) {
  state_->at(at);
  const isa::Fragment shape = fragment.kind().fragment();
  const int count = fragment.kind().exists() ? shape.elements() / shape.copies : 0;
  if (!state_->owns(fragment, "the fragment") || detail::is_bad(fragment))
    return std::vector<Scalar>(static_cast<std::size_t>(count ? count : most_elements),
                               detail::bad_scalar());
  const auto registers = detail::registers_of(fragment);
  std::vector<Scalar> out;
  for (int i = 0; i < count; ++i) {
    const Value word = registers[static_cast<std::size_t>(i / shape.per_register)];
    out.push_back(
        state_->scalar(detail::extract(state_->f(), word, shape, i % shape.per_register)));
  }
  return out;
}

Fragment Builder::pack(const FragmentKind& kind, std::span<const Scalar> elements, Here at) {
  state_->at(at);
  if (has_bad(elements)) return {};
  const isa::Fragment shape = kind.fragment();
  const int count = kind.exists() ? shape.elements() / shape.copies : 0;
  if (!detail::fits(*state_, kind, elements.size(), count, "elements") ||
      !are_numbers_of(*state_, elements, detail::element_type(kind.type)))
    return {};
  const auto values = detail::values_of(*state_, elements, detail::element_type(kind.type),
                                        "an element of the fragment", kind.type);
  if (!values) return {};
  const auto per = static_cast<std::size_t>(shape.per_register);
  std::vector<Value> registers;
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.registers); ++i)
    registers.push_back(detail::insert(
        state_->f(), std::span(*values).subspan(i * per % values->size(), per), shape));
  return make_fragment(*state_, kind, std::move(registers), detail::stored(kind));
}

ElementPlace Builder::place(const FragmentKind& kind, int i, Here at) {
  state_->at(at);
  if (!kind.exists() || i < 0 || i >= kind.fragment().elements()) {
    state_->log.report("fragment-mismatch"_rule,
                       fmt::format("element index {} is out of bounds of {}", i, kind.text()));
    return {detail::bad_scalar(), detail::bad_scalar(), detail::bad_scalar()};
  }
  const detail::LaneMap map = detail::lane_map(kind, i);
  const Scalar lane = state_->scalar(lane_index(*state_));
  return {detail::along(lane, map, &isa::Coord::matrix), detail::along(lane, map, &isa::Coord::row),
          detail::along(lane, map, &isa::Coord::col)};
}

}  // namespace tartan::TARTAN_ABI
