// SPDX-License-Identifier: Apache-2.0
// Lesson 1: one tensor-core instruction. D = A * B, 16x8 = 16x16 times 16x8, by one warp.
//
// Tiles go from global to shared memory, from there into fragments (the registers of the 32 lanes,
// laid out as the instruction wants them), and the product back. Tartan chooses ldmatrix and its
// .trans from how the tiles are stored.
#include "lesson.h"

using namespace tartan;

Kernel one_mma() {
  return kernel("one_mma", {.block = 32}, [](Builder& k) {
    auto a = k.global("A", f16, row_major(16, 16));
    auto b = k.global("B", f16, col_major(16, 8));
    auto d = k.global("D", f32, row_major(16, 8));
    auto sa = k.shared("sa", f16, a.layout());
    auto sb = k.shared("sb", f16, b.layout());
    k.copy(a, sa);
    k.copy(b, sb);
    k.barrier();
    auto fa = k.load(operand_a(m16n8k16, f16), sa);  // ldmatrix.x4
    auto fb = k.load(operand_b(m16n8k16, f16), sb);  // ldmatrix.x2
    k.store(d, k.mma(fa, fb, zero(f32)));
  });
}

int main(int argc, char** argv) {
  Device device = lesson::open_device(argc, argv);
  std::vector<int> a(16 * 16), b(16 * 8);
  for (int i = 0; i < 16 * 16; ++i) a[i] = i * 7 % 23 - 11;
  for (int i = 0; i < 16 * 8; ++i) b[i] = i * 5 % 19 - 9;

  std::vector<std::uint16_t> a_bits, b_bits;
  for (const int x : a) a_bits.push_back(lesson::half(x));
  for (const int x : b) b_bits.push_back(lesson::half(x));
  const auto d = lesson::run<float>(device, one_mma(), 16 * 8, {a_bits, b_bits});

  int mismatches = 0;
  for (int row = 0; row < 16; ++row)
    for (int col = 0; col < 8; ++col) {
      int sum = 0;
      for (int k = 0; k < 16; ++k) sum += a[row * 16 + k] * b[col * 16 + k];  // B is column-major
      mismatches += d[row * 8 + col] != static_cast<float>(sum);
    }
  std::printf("mismatches: %d of %d\n", mismatches, 16 * 8);
  return mismatches != 0;
}
