// SPDX-License-Identifier: Apache-2.0
#include "runtime/random_elements.h"

#include "runtime/element.h"

namespace tartan::TARTAN_ABI {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): word `index` of the stream of a seed.
std::uint64_t random_word(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// In (-1, 1): the middles of 2^53 parts.
double fraction(std::uint64_t word) {
  return (static_cast<double>(word >> 11) + 0.5) * 0x1p-52 - 1;
}

}  // namespace

std::vector<std::byte> random_elements(Type type, std::size_t bytes, std::uint64_t seed) {
  std::vector<std::byte> out(bytes);
  const std::size_t size = element_size(type);
  // Streams of neighbouring seeds overlap, but for this.
  const std::uint64_t start = random_word(seed, 0);
  for (std::size_t i = 0; i < bytes / size; ++i) {
    const std::uint64_t word = random_word(start, i);
    if (is_bits(type)) {
      store_element(out, i, size, word);
      continue;
    }
    const double low = static_cast<double>(word >> 60);
    const double value = info(type).floating    ? fraction(word)
                         : info(type).is_signed ? low - 8
                                                : low;
    store_element(out, i, size, element_bits(type, value).value_or(0));
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI
