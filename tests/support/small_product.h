// SPDX-License-Identifier: Apache-2.0
// tests/support/small_product.h - an f16 product with small whole numbers as elements and sums,
// exact in any order: A row-major, B column-major, C row-major in f32.
#pragma once

#include <cstdint>
#include <vector>

namespace tartan::test {

struct SmallProduct {
  std::vector<std::uint16_t> a, b;
  std::vector<float> c;

  SmallProduct(std::uint32_t m, std::uint32_t n, std::uint32_t k) {
    for (std::uint32_t i = 0; i < m * k; ++i) a.push_back(half(whole(i)));
    for (std::uint32_t i = 0; i < n * k; ++i) b.push_back(half(whole(i + of_b)));
    for (std::uint32_t row = 0; row < m; ++row)
      for (std::uint32_t column = 0; column < n; ++column) {
        int sum = 0;
        for (std::uint32_t i = 0; i < k; ++i)
          sum += whole(row * k + i) * whole(column * k + i + of_b);
        c.push_back(static_cast<float>(sum));
      }
  }

 private:
  static constexpr std::uint32_t of_b = 77777;
  static int whole(std::uint32_t i) { return static_cast<int>((i * 2654435761u) >> 29) - 3; }
  static std::uint16_t half(int x) {  // up to 4
    constexpr std::uint16_t halves[] = {0, 0x3C00, 0x4000, 0x4200, 0x4400};
    return static_cast<std::uint16_t>(halves[x < 0 ? -x : x] | (x < 0 ? 0x8000 : 0));
  }
};

}  // namespace tartan::test
