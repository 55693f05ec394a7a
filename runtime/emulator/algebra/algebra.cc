// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/algebra/algebra.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/emulator/machine/block.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Formats that differ in a register's low bits only are one.
constexpr Type plain_type(Type type) {
  switch (type) {
    case Type::tf32: return Type::f32;
    case Type::u32:
    case Type::b32: return Type::s32;
    default: return type;
  }
}

std::int64_t sign_extend(std::uint64_t bits, int width) {
  return static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width);
}

}  // namespace

double decode_element(Type type, std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  switch (type) {
    case Type::f64: return std::bit_cast<double>(bits);
    case Type::f32:
    case Type::tf32: return std::bit_cast<float>(low);
    case Type::f16: return to_float(Half{static_cast<std::uint16_t>(bits)});
    case Type::bf16: return to_float(Bfloat{static_cast<std::uint16_t>(bits)});
    case Type::e4m3: return widen(format_e4m3, low);
    case Type::e5m2: return widen(format_e5m2, low);
    case Type::e2m3: return widen(format_e2m3, low & 0x3F);
    case Type::e3m2: return widen(format_e3m2, low & 0x3F);
    case Type::e2m1: return widen(format_e2m1, low & 0xF);
    case Type::ue8m0:
      return low == 0xFF ? std::nan("") : std::ldexp(1.0, static_cast<int>(low) - 127);
    case Type::ue4m3: return widen(format_e4m3, low & 0x7F);
    default: break;
  }
  const int width = tartan::bits(type);
  if (info(type).is_signed) return static_cast<double>(sign_extend(bits, width));
  return static_cast<double>(width == 64 ? bits : bits & ((std::uint64_t{1} << width) - 1));
}

void Algebra::add_input(std::uint64_t key, std::uint64_t address, std::size_t bytes, bool exact) {
  const auto first = static_cast<std::uint32_t>(uses_.size());
  inputs_.push_back(
      {.key = key, .address = address, .bytes = bytes, .exact = exact, .first = first});
  uses_.resize(first + bytes);
  types_.resize(first + bytes);
  hints_.resize(first + bytes);
  widths_.resize(first + bytes);
  elements_.resize(first + bytes);
}

void Algebra::begin(const GlobalMemory& memory) {
  if (std::exchange(begun_, true)) return;  // a later launch starts with what this one leaves
  for (Input& input : inputs_) {
    const Allocation* found = memory.find(input.address, input.bytes);
    input.host = found ? found->host + (input.address - found->address) : nullptr;
    if (!input.host || input.exact) continue;
    std::vector<Tag> tags(input.bytes);
    for (std::size_t i = 0; i < input.bytes; ++i)
      tags[i] = input_tag(input.first + static_cast<std::uint32_t>(i));
    this->memory.store(input.host, tags.data(), input.bytes);
  }
}

void Algebra::reduce(std::byte* to, const std::byte* from, std::size_t bytes, std::string_view name,
                     Type wanted) {
  const Type type = plain_type(wanted);
  const auto size = static_cast<std::size_t>(tartan::bits(type)) / 8;
  for (std::size_t i = 0; i < bytes; i += size) {
    Tag old[8], with[8], out[8] = {};
    memory.load(to + i, old, size);
    memory.load(from + i, with, size);
    const bool plain = std::all_of(old, old + size, [](Tag tag) { return tag == 0; }) &&
                       std::all_of(with, with + size, [](Tag tag) { return tag == 0; });
    if (plain && !info(type).floating) continue;
    if (name == "add" && (info(type).floating || type == Type::s32)) {
      const Ref a = read(nullptr, old, to + i, type), b = read(nullptr, with, from + i, type);
      write(out, values.sum(a, b), type);
    } else if (info(type).floating && (name == "min" || name == "max")) {
      const Ref a = read(nullptr, old, to + i, type), b = read(nullptr, with, from + i, type);
      write(out, values.extremum(a, b, name == "max"), type);
    } else if (!take_bits(old, size) || !take_bits(with, size)) {
      spoil(nullptr, out, size, "a bulk reduction computes with the bits of a value");
    }
    memory.store(to + i, out, size);
  }
}

Ref Algebra::read_input(std::uint32_t byte, std::uint64_t bits, Type type) {
  const auto size = static_cast<std::uint32_t>(std::max(tartan::bits(type), 8) / 8);
  Ref& known = elements_[byte];
  if (known && types_[byte] == type) return known;
  const Input* input = &inputs_.front();
  for (const Input& each : inputs_)
    if (each.first <= byte) input = &each;
  std::uint64_t key = variable_key(input->key, byte - input->first, type);
  if (const auto found = replaced.find(key); found != replaced.end()) key = found->second;
  const Ref made = values.input(key, decode_element(type, bits), type);
  if (known) return made;  // somebody else takes these bytes as something else
  known = made;
  types_[byte] = type;
  for (std::uint32_t i = 0; i < size; ++i) uses_[byte + i] |= by_value;
  return made;
}

Ref Algebra::read(Warp* warp, const Tag* tags, const void* at, Type wanted) {
  const Type type = plain_type(wanted);
  const auto size = static_cast<std::uint32_t>(std::max(tartan::bits(type), 8) / 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, size);
  Tag any = 0;
  for (std::uint32_t i = 0; i < size; ++i) any |= tags[i];
  if (!any) {
    if (info(type).floating) return values.constant(decode_element(type, bits));
    const int width = tartan::bits(type);
    return values.constant(info(type).is_signed ? sign_extend(bits, width)
                                                : static_cast<std::int64_t>(bits));
  }
  for (std::uint32_t i = 0; i < size; ++i)
    if (is_valued(tags[i]) && values[ref_of(tags[i])].kind == Value::Kind::undecided)
      return ref_of(tags[i]);
  // The upper half of an f32 is a bf16: so one is widened, and narrowed.
  if (type == Type::f32 && !tags[0] && !tags[1] && !(bits & 0xFFFF) && tags[2])
    return read(warp, tags + 2, static_cast<const std::byte*>(at) + 2, Type::bf16);
  const Tag first = tags[0];
  if (is_input(first)) {
    for (std::uint32_t i = 1; i < size; ++i)
      if (tags[i] != input_tag(input_byte(first) + i))
        return undecided(warp,
                         fmt::format("reads bytes of several elements as one of {}", name(type)));
    return read_input(input_byte(first), bits, type);
  }
  const std::uint32_t shift = size == 2 && size_of_element(first) == 4 ? 2 : 0;
  const Ref ref = ref_of(first);
  for (std::uint32_t i = 0; i < size; ++i)
    if (tags[i] != tag_of(ref, size + (shift ? 2 : 0), i + shift))
      return undecided(warp, fmt::format("reads parts of several values as one of {}", name(type)));
  const Type held = values[ref].type;
  const bool fits = held == type || held == Type::none || (shift && type == Type::bf16);
  if (!fits)
    return undecided(warp, fmt::format("reads a value of {} as one of {}", name(held), name(type)));
  if (info(type).floating && values.plain(ref) && !std::isfinite(decode_element(type, bits)))
    ++overflows;
  return ref;
}

void Algebra::write(Tag* tags, Ref value, Type wanted) {
  const Type type = plain_type(wanted);
  const auto size = static_cast<std::uint32_t>(std::max(tartan::bits(type), 8) / 8);
  const Ref typed = values.as(value, type);
  for (std::uint32_t i = 0; i < size; ++i) tags[i] = tag_of(typed, size, i);
}

bool Algebra::take_bits(const Tag* tags, std::size_t bytes, InputUse use) {
  bool good = true;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (is_input(tags[i])) uses_[input_byte(tags[i])] |= use;
    else if (tags[i] && !values[ref_of(tags[i])].constant) good = false;
  }
  for (std::size_t i = 0, run = 1; i < bytes; i += run, run = 1) {
    if (!is_input(tags[i])) continue;
    while (i + run < bytes && tags[i + run] == input_tag(input_byte(tags[i]) + run)) ++run;
    narrow(input_byte(tags[i]), run);
  }
  return good;
}

// Integers are no wider than the smallest word that is read of them.
void Algebra::narrow(std::uint32_t byte, std::size_t bytes) {
  const auto width = static_cast<std::uint8_t>(std::min<std::size_t>(std::bit_floor(bytes), 8));
  for (std::size_t i = 0; i < bytes; ++i) {
    std::uint8_t& known = widths_[byte + i];
    known = known ? std::min(known, width) : width;
  }
}

void Algebra::load(const Tag* tags, std::size_t bytes, Type type, bool signal) {
  if (!is_input(tags[0])) return;
  const std::uint32_t first = input_byte(tags[0]);
  for (std::size_t i = 1; i < bytes; ++i)
    if (tags[i] != input_tag(first + static_cast<std::uint32_t>(i))) return;
  const bool floating = info(type).floating;
  if (floating) hints_[first] = type;
  else narrow(first, bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    uses_[first + i] |= loaded | (signal && !floating ? as_signal : 0);
}

void Algebra::compare(const Tag* tags, std::size_t bytes, Type type) {
  const Type element = type == Type::f16x2    ? Type::f16
                       : type == Type::bf16x2 ? Type::bf16
                                              : plain_type(type);
  const auto size = static_cast<std::size_t>(tartan::bits(element)) / 8;
  for (std::size_t i = 0; i + size <= bytes; i += size) {
    if (!is_input(tags[i])) continue;
    if (info(element).floating) hints_[input_byte(tags[i])] = element;
    else narrow(input_byte(tags[i]), size);
  }
}

void Algebra::decide(const Warp& warp, const isa::Spelling& spelling, std::uint8_t side) {
  values.steered = true;
  Decision& decision = decisions_[&warp.program->ops[warp.pc - 1]];
  if (!decision.sides) {
    decision.line = warp.block->line(warp.pc - 1);
    decision.instruction = spelling.text;
  }
  decision.sides |= side;
}

Ref Algebra::undecided(Warp* warp, std::string text) {
  return values.undecided(warp ? warp->block->line(warp->pc - 1) : 0, std::move(text));
}

void Algebra::give_up(Warp* warp, std::string text) {
  if (given_up_.empty())
    given_up_.push_back({warp ? warp->block->line(warp->pc - 1) : 0, std::move(text)});
}

void Algebra::spoil(Warp* warp, Tag* tags, std::size_t bytes, std::string text) {
  const Ref ref = undecided(warp, std::move(text));
  for (std::size_t i = 0; i < bytes; ++i) tags[i] = tag_of(ref, 1, 0);
}

}  // namespace tartan::TARTAN_ABI::emulator
