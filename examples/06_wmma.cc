// SPDX-License-Identifier: Apache-2.0
// Lesson 6: wmma, the older instructions. The manual does not say which lane holds which element:
// wmma.load fills fragments (row-major or column-major, from global memory too), wmma.mma
// multiplies, wmma.store stores them.
#include "lesson.h"

using namespace tartan;

namespace {

Kernel one_wmma(Major a_major, Major b_major) {
  const std::string named = "wmma_" + std::string(name(a_major)) + "_" + std::string(name(b_major));
  return kernel(named, {.block = 32}, [=](Builder& k) {
    auto a = k.global("A", f16, stored(a_major, 16, 16));
    auto b = k.global("B", f16, stored(b_major, 16, 16));
    auto d = k.global("D", f32, row_major(16, 16));
    auto fa = k.load(operand_a(wmma_m16n16k16, f16), a);
    auto fb = k.load(operand_b(wmma_m16n16k16, f16), b);
    k.store(d, k.mma(fa, fb, zero(f32)));
  });
}

}  // namespace

int main(int argc, char** argv) {
  Device device = lesson::open_device(argc, argv);
  int a[16][16], b[16][16];
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      a[i][j] = (i * 3 + j * 5) % 19 - 9, b[i][j] = (i * 7 + j * 2) % 11 - 5;

  int wrong = 0;
  for (const Major a_major : {Major::row, Major::col})
    for (const Major b_major : {Major::row, Major::col}) {
      std::vector<std::uint16_t> a_bits(256), b_bits(256);
      for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 16; ++j) {
          a_bits[a_major == Major::row ? i * 16 + j : j * 16 + i] = lesson::half(a[i][j]);
          b_bits[b_major == Major::row ? i * 16 + j : j * 16 + i] = lesson::half(b[i][j]);
        }
      const Kernel kernel = one_wmma(a_major, b_major);
      const auto d = lesson::run<float>(device, kernel, 256, {a_bits, b_bits});
      int mismatches = 0;
      for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 16; ++j) {
          int sum = 0;
          for (int k = 0; k < 16; ++k) sum += a[i][k] * b[k][j];
          mismatches += d[i * 16 + j] != static_cast<float>(sum);
        }
      std::printf("%s: mismatches %d of 256\n", kernel.name().c_str(), mismatches);
      wrong += mismatches;
    }
  return wrong != 0;
}
