// SPDX-License-Identifier: Apache-2.0
#include "runtime/equal_draws.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tartan::TARTAN_ABI::detail {
namespace {

using emulator::mix;

std::size_t bytes_of(Type type) { return static_cast<std::size_t>(std::max(bits(type), 8)) / 8; }

std::uint32_t rounded(Type type, double x) {
  using namespace emulator;
  switch (type) {
    case Type::f16: return narrow(format_f16, x, Rounding::rn);
    case Type::bf16: return narrow(format_bf16, x, Rounding::rn);
    case Type::e4m3: return narrow(format_e4m3, x, Rounding::rn);
    case Type::e5m2: return narrow(format_e5m2, x, Rounding::rn);
    case Type::e2m3: return narrow(format_e2m3, x, Rounding::rn);
    case Type::e3m2: return narrow(format_e3m2, x, Rounding::rn);
    case Type::e2m1: return narrow(format_e2m1, x, Rounding::rn);
    case Type::s8:
    case Type::u8: return static_cast<std::uint32_t>(static_cast<std::int32_t>(x * 100)) & 0xFF;
    default: return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  }
}

// The exponents of magnitudes that a type holds, and whose products it holds as a rule.
struct Exponents {
  double least = -20, most = 20;
};
Exponents exponents_of(Type type, int wanted) {
  const auto within = [&](double least, double most) {
    return Exponents{std::max<double>(least, -wanted), std::min<double>(most, wanted)};
  };
  switch (type) {
    case Type::f16: return within(-10, 10);
    case Type::e5m2: return within(-10, 10);
    case Type::e4m3: return within(-6, 7);
    case Type::e2m3: return within(-2, 2.5);
    case Type::e3m2: return within(-3, 4);
    case Type::e2m1: return within(-1, 2.5);
    default: return within(-100, 100);
  }
}

// In [0, 1).
double fraction(std::uint64_t key) { return std::ldexp(static_cast<double>(key >> 11), -53); }

bool is_negative(const Draw& draw, std::uint64_t key) {
  return ((mix(key, 0x7369676E + (draw.number + 1) / 2) ^ draw.number) & 1) != 0;
}

// Strata: of each element's magnitudes each pair of draws has another part.
double place_of(const Draw& draw, std::uint64_t key) {
  const unsigned pair = (draw.number - 1) / 2;
  if (draw.strata <= 1) return fraction(mix(key, 0x7069636B + draw.number));
  const double at = fraction(mix(key, 0x7069636B)) + static_cast<double>(pair) / draw.strata;
  return at - std::floor(at);
}

double number_of(const Draw& draw, std::uint64_t key, Type type) {
  const double usual = fraction(mix(key, 1));
  if (draw.number == 0) return type == Type::u8 ? usual : 2 * usual - 1;
  if (type == Type::s8 || type == Type::u8) {
    const double x = fraction(mix(key, 0x62797465 + draw.number));
    return type == Type::u8 ? 2.559 * x : 2.559 * x - 1.28;
  }
  const Exponents range = exponents_of(type, draw.exponent);
  const double x = std::exp2(range.least + (range.most - range.least) * place_of(draw, key));
  return is_negative(draw, key) ? -x : x;
}

// Scales of blocks from 1/16 to 16.
std::byte scale(std::uint64_t key, Type type) {
  const std::uint64_t exponent = mix(key, 1) % 9;
  return static_cast<std::byte>(type == Type::ue8m0 ? 123 + exponent : (3 + exponent) << 3);
}

bool has_metadata(const EqualRun& a, const EqualRun& b, std::uint32_t first, std::size_t bytes) {
  for (std::size_t i = first; i < first + bytes; ++i) {
    const auto byte = static_cast<std::uint32_t>(i);
    if ((a.algebra->use(byte) | b.algebra->use(byte)) & emulator::as_metadata) return true;
  }
  return false;
}

// Two of four: a pair of indices that rise, twice.
std::byte metadata(std::uint64_t key, bool wide) {
  constexpr std::uint8_t codes[] = {0x4, 0x8, 0xC, 0x9, 0xD, 0xE};
  const auto code = [&](std::uint64_t which) {
    return wide ? (mix(key, which) & 1 ? 0xE : 0x4) : codes[mix(key, which) % std::size(codes)];
  };
  return static_cast<std::byte>(code(2) | code(3) << 4);
}

}  // namespace

void DrawnInputs::start() {
  plans_.clear();
  for (const EqualBuffer& each : buffers_)
    plans_.push_back({std::vector<Element>(each.bytes), each.contents, 0});
}

DrawnInputs::Element DrawnInputs::element_at(const EqualRun& a, const EqualRun& b,
                                             std::uint32_t byte) {
  using Kind = Element::Kind;
  const auto use = static_cast<std::uint8_t>(a.algebra->use(byte) | b.algebra->use(byte));
  const auto first = [](Type one, Type other) { return one == Type::none ? other : one; };
  if (use & emulator::as_metadata) return {Kind::metadata};
  const Type type = first(first(a.algebra->type(byte), b.algebra->type(byte)),
                          first(a.algebra->hint(byte), b.algebra->hint(byte)));
  const bool small = type == Type::s8 || type == Type::u8;
  if (type != Type::none && (info(type).floating || small))
    return {Kind::number, type, static_cast<std::uint8_t>(bytes_of(type))};
  if (use & emulator::as_signal) return {Kind::signal};
  if (type == Type::none && !(use & (emulator::by_bits | emulator::loaded))) return {};
  const std::uint8_t x = a.algebra->width(byte), y = b.algebra->width(byte);
  std::uint8_t width = x && y ? std::min(x, y) : std::max<std::uint8_t>(x | y, 1);
  if (type != Type::none) width = static_cast<std::uint8_t>(bytes_of(type));
  return {Kind::integer, Type::none, width, (use & emulator::as_fields) != 0};
}

// What is known to be a number is one, whatever it was taken for before.
bool DrawnInputs::add(Plan& plan, std::size_t at, const Element& element) {
  using Kind = Element::Kind;
  Element& known = plan.elements[at];
  const bool better = known.kind == Kind::none ||
                      (known.kind == Kind::integer && element.kind != Kind::integer) ||
                      (known.kind == Kind::integer && element.bytes < known.bytes) ||
                      (known.kind == Kind::integer && element.fields && !known.fields);
  if (!better || at + element.bytes > plan.elements.size()) return false;
  for (std::size_t i = 1; i < known.bytes; ++i) plan.elements[at + i] = {};
  known = element;
  for (std::size_t i = 1; i < element.bytes; ++i) plan.elements[at + i] = {Kind::part};
  return true;
}

bool DrawnInputs::learn(const EqualRun& a, const EqualRun& b) {
  using Kind = Element::Kind;
  for (const EqualRun* run : {&a, &b}) wide_metadata_ |= run->algebra->sparse_words;
  bool fresh = false;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].given) continue;
    const std::uint32_t first = a.algebra->inputs()[i].first;
    // Words of metadata that lanes exchange, or load and do not use.
    const bool indices = has_metadata(a, b, first, buffers_[i].bytes);
    for (std::size_t at = 0; at < buffers_[i].bytes;) {
      Element element = element_at(a, b, first + static_cast<std::uint32_t>(at));
      while (element.kind == Kind::integer && at % element.bytes) element.bytes /= 2;
      if (element.kind == Kind::integer && indices) element = {Kind::metadata};
      if (element.kind != Kind::none) fresh |= add(plans_[i], at, element);
      at += std::max<std::size_t>(element.bytes, 1);
    }
  }
  return fresh;
}

std::size_t DrawnInputs::elements() const {
  using Kind = Element::Kind;
  std::size_t out = 0;
  for (const Plan& plan : plans_)
    out += static_cast<std::size_t>(std::ranges::count_if(plan.elements, [](const Element& each) {
      return each.kind == Kind::number || each.kind == Kind::integer || each.kind == Kind::metadata;
    }));
  return out;
}

std::vector<std::size_t> DrawnInputs::integers() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < plans_.size(); ++i)
    if (std::ranges::find(plans_[i].elements, Element::Kind::integer, &Element::kind) !=
        plans_[i].elements.end())
      out.push_back(i);
  return out;
}

std::vector<std::string> DrawnInputs::signals() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < plans_.size(); ++i)
    if (std::ranges::find(plans_[i].elements, Element::Kind::signal, &Element::kind) !=
        plans_[i].elements.end())
      out.push_back(buffers_[i].name);
  return out;
}

// How many elements each of the others has.
std::vector<std::uint64_t> DrawnInputs::bounds(std::size_t buffer) const {
  using Kind = Element::Kind;
  const std::uint64_t below = plans_[buffer].limit;
  std::vector<std::uint64_t> out = {2};
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    if (i == buffer) continue;
    std::uint64_t size = 0;
    for (const Element& each : plans_[i].elements)
      if (each.kind != Kind::none && each.kind != Kind::part)
        size = std::max<std::uint64_t>(size, each.bytes);
    for (const std::uint64_t bytes : {size ? size : 4, std::uint64_t{4}})
      if (buffers_[i].bytes / bytes > 2) out.push_back(buffers_[i].bytes / bytes);
  }
  std::erase_if(out, [&](std::uint64_t each) { return below && each >= below; });
  std::ranges::sort(out, std::greater<>());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::uint64_t DrawnInputs::smallest(std::size_t buffer) const {
  const auto all = bounds(buffer);
  const auto several =
      std::ranges::find_if(all.rbegin(), all.rend(), [](std::uint64_t each) { return each > 2; });
  return several == all.rend() ? 256 : *several;
}

// Bits of all kinds where words are taken apart; else numbers below the bound, both ends among
// them, and without one, numbers of all magnitudes.
std::uint64_t DrawnInputs::integer(const Draw& draw, std::size_t buffer, std::uint64_t key,
                                   const Element& element) const {
  const std::uint64_t limit = plans_[buffer].limit;
  const std::uint64_t random = mix(key, 0x696E74 + draw.number),
                      pick = mix(key, 0x656E64 + draw.number) % 8;
  if (limit == 0 && (element.fields || element.bytes == 1)) {
    const bool flag = element.bytes == 1 && !element.fields;  // zeros among masks
    return flag && pick < 2 ? pick : random;
  }
  if (limit || draw.number == 0) {
    const std::uint64_t below = limit ? limit : smallest(buffer);
    if (limit && draw.edge && (pick % 2 || key == mix(buffers_[buffer].key, 0))) return below - 1;
    return limit && pick == 0 ? below - 1 : pick == 1 ? 0 : random % below;
  }
  if (pick == 0) return random % 3;
  const double most = element.bytes == 2 ? 15 : 20;
  const auto x = static_cast<std::int64_t>(std::exp2(most * place_of(draw, key)));
  return static_cast<std::uint64_t>(is_negative(draw, key) ? -x : x);
}

void DrawnInputs::draw(const Draw& draw, std::size_t index, std::size_t at,
                       const Element& element) {
  using Kind = Element::Kind;
  EqualBuffer& buffer = buffers_[index];
  const std::uint64_t key = mix(buffer.key, at);
  std::byte* const to = &buffer.contents[at];
  if (element.kind == Kind::metadata) {
    *to = metadata(key, wide_metadata_);
  } else if (element.kind == Kind::integer) {
    const std::uint64_t value = integer(draw, index, key, element);
    std::memcpy(to, &value, element.bytes);
  } else if (element.kind == Kind::number) {
    if (element.type == Type::ue8m0 || element.type == Type::ue4m3)
      return void(*to = scale(key, element.type));
    const double x = number_of(draw, key, element.type);
    if (element.type == Type::f64) return void(std::memcpy(to, &x, 8));
    const std::uint32_t word = rounded(element.type, x);
    std::memcpy(to, &word, element.bytes);
  }
}

// Where all that is known of a buffer is of one kind, the rest is too: other contents may lead
// there.
std::vector<DrawnInputs::Element> DrawnInputs::spread(const Plan& plan) const {
  using Kind = Element::Kind;
  std::vector<Element> out = plan.elements;
  Element only;
  for (const Element& each : out) {
    if (each.kind == Kind::none || each.kind == Kind::part) continue;
    if (only.kind != Kind::none && !(only == each)) return out;
    only = each;
  }
  if (only.kind == Kind::none) return out;
  for (std::size_t at = 0; at + only.bytes <= out.size(); at += only.bytes)
    if (std::all_of(&out[at], &out[at] + only.bytes,
                    [](const Element& each) { return each.kind == Kind::none; }))
      out[at] = only;
  return out;
}

void DrawnInputs::fill(const Draw& draw) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].given) continue;
    buffers_[i].contents = plans_[i].contents;
    const std::vector<Element> elements = spread(plans_[i]);
    for (std::size_t at = 0; at < elements.size(); ++at) this->draw(draw, i, at, elements[at]);
  }
}

}  // namespace tartan::TARTAN_ABI::detail
