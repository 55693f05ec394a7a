// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace gpu {

using namespace tartan;

namespace {

// A floating format: bits of the exponent and of the mantissa.
struct Format {
  int exponent, mantissa;
  int bias() const { return (1 << (exponent - 1)) - 1; }
};

Format format(Type type) {
  switch (type) {
    case Type::f16: return {5, 10};
    case Type::bf16: return {8, 7};
    case Type::e4m3: return {4, 3};
    case Type::e5m2: return {5, 2};
    case Type::f64: return {11, 52};
    default: return {8, 23};
  }
}

template <typename Word>
std::vector<std::uint8_t> fill(std::size_t count, unsigned seed, auto make) {
  std::vector<std::uint8_t> out(count * sizeof(Word));
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const Word word = static_cast<Word>(make(static_cast<std::uint32_t>(random())));
    std::memcpy(out.data() + i * sizeof word, &word, sizeof word);
  }
  return out;
}

// Exponents of 1/4 to 1, and at most ten mantissa bits.
std::uint64_t number_about_one(Format f, std::uint32_t random) {
  const int mantissa = std::min(f.mantissa, 10);
  const std::uint64_t sign = random >> 31, digits = random & ((1u << mantissa) - 1),
                      exponent = static_cast<unsigned>(f.bias() - 2) + (random >> 16) % 3;
  return sign << (f.exponent + f.mantissa) | exponent << f.mantissa |
         digits << (f.mantissa - mantissa);
}

double value_of(Type type, const std::uint8_t* at) {
  std::uint64_t word = 0;
  const int width = bits(type);
  std::memcpy(&word, at, static_cast<std::size_t>(width / 8));
  if (type == f32 || type == Type::tf32) {
    float out = 0;
    std::memcpy(&out, at, sizeof out);
    return out;
  }
  if (!info(type).floating) {
    if (!info(type).is_signed) return static_cast<double>(word);
    return static_cast<double>(static_cast<std::int64_t>(word << (64 - width)) >> (64 - width));
  }
  const Format f = format(type);
  const auto exponent = static_cast<int>(word >> f.mantissa & ((1u << f.exponent) - 1));
  const auto digits = static_cast<double>(word & ((std::uint64_t{1} << f.mantissa) - 1));
  const bool last = exponent == (1 << f.exponent) - 1;
  double magnitude = exponent ? std::ldexp(1 + std::ldexp(digits, -f.mantissa), exponent - f.bias())
                              : std::ldexp(digits, 1 - f.bias() - f.mantissa);
  if (last && type != Type::e4m3) magnitude = digits > 0 ? NAN : HUGE_VAL;
  if (last && type == Type::e4m3 && digits == 7) magnitude = NAN;
  return word >> (width - 1) & 1 ? -magnitude : magnitude;
}

}  // namespace

std::vector<std::uint8_t> random_elements(Type type, std::size_t count, unsigned seed) {
  const bool floating = info(type).floating;
  const Format f = format(type);
  const auto make = [=](std::uint32_t random) -> std::uint64_t {
    return floating ? number_about_one(f, random) : random;
  };
  switch (bits(type)) {
    case 8: return fill<std::uint8_t>(count, seed, make);
    case 16: return fill<std::uint16_t>(count, seed, make);
    case 64: return fill<std::uint64_t>(count, seed, make);
    default: return fill<std::uint32_t>(count, seed, make);
  }
}

namespace {

// Values of elements; of narrow ones from a table.
class Values {
 public:
  explicit Values(Type type) : type_(type), bytes_(static_cast<std::size_t>(bits(type) / 8)) {
    if (bytes_ > 2) return;
    table_.resize(std::size_t{1} << bits(type));
    for (std::uint32_t i = 0; i < table_.size(); ++i) {
      std::uint8_t word[4];
      std::memcpy(word, &i, sizeof word);
      table_[i] = value_of(type, word);
    }
  }
  std::size_t bytes() const { return bytes_; }
  double operator()(const std::uint8_t* at) const {
    if (table_.empty()) return value_of(type_, at);
    std::uint16_t word = 0;
    std::memcpy(&word, at, bytes_);
    return table_[word];
  }

 private:
  Type type_;
  std::size_t bytes_;
  std::vector<double> table_;
};

}  // namespace

void prune(Type type, std::vector<std::uint8_t>& elements) {
  const auto width = static_cast<std::size_t>(bits(type)) / 8,
             group = width == 4 ? std::size_t{2} : std::size_t{4};
  std::mt19937 random(9);
  for (std::size_t first = 0; first + group * width <= elements.size(); first += group * width) {
    // One of the six pairs of four, or one of two.
    const std::size_t one = random() % group, other = (one + 1 + random() % (group - 1)) % group;
    for (const std::size_t each : {one, group == 2 ? one : other})
      std::fill_n(elements.begin() + static_cast<std::ptrdiff_t>(first + each * width), width,
                  std::uint8_t{0});
  }
}

Difference compare(Type type, const std::vector<std::uint8_t>& mine,
                   const std::vector<std::uint8_t>& theirs) {
  const Values value(type);
  Difference out{.count = std::min(mine.size(), theirs.size()) / value.bytes()};
  if (mine == theirs) return out;
  double largest = 0;
  for (std::size_t i = 0; i < out.count; ++i) {
    const std::uint8_t *one = &mine[i * value.bytes()], *other = &theirs[i * value.bytes()];
    const double expected = value(other);
    largest = std::max(largest, std::fabs(expected));
    if (std::memcmp(one, other, value.bytes()) == 0) continue;
    ++out.differ;
    const double apart = std::fabs(value(one) - expected);
    out.largest = std::max(out.largest, std::isnan(apart) ? HUGE_VAL : apart);
  }
  if (largest > 0) out.largest /= largest;
  return out;
}

std::string Difference::text(const std::string& other) const {
  if (differ == 0) return "equal to " + other;
  return fmt::format("{} of {} elements differ from {}, by up to {:.1e} of the largest", differ,
                     count, other, largest);
}

}  // namespace gpu
