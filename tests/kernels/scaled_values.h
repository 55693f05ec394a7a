// SPDX-License-Identifier: Apache-2.0
// tests/kernels/scaled_values.h - operands of fp8 products with fine scales: elements so small that
// the product of a block of 128 is exact, and scales that are not.
#pragma once

#include <tartan/tartan.h>

#include <span>
#include <vector>

namespace tartan::testing_scaled {

constexpr int block = 128;  // elements along k that share a scale

inline int blocks_of(int size) { return size / block + (size % block > 0); }

inline unsigned hash(unsigned x) {
  x = (x ^ x >> 16) * 0x7feb352d;
  x = (x ^ x >> 15) * 0x846ca68b;
  return x ^ x >> 16;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

inline host::e4m3 element(int i) {
  constexpr float values[] = {0, 0.5F, 1, 2, -0.5F, -1, -2, 1};
  return host::e4m3(values[hash(static_cast<unsigned>(i)) % 8]);
}

inline float scale(int i) {
  return 0.25F + static_cast<float>(hash(static_cast<unsigned>(i)) % 1000) / 512;
}

}  // namespace tartan::testing_scaled
