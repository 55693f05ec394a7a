// SPDX-License-Identifier: Apache-2.0
// Lesson 5: NT, TN, NN, TT. mma takes A row-major and B column-major. If a matrix has the opposite
// major order, ldmatrix transposes it (.trans). One description serves all four: Tartan chooses by
// the layouts.
#include "lesson.h"

using namespace tartan;

namespace {

Kernel stored_mma(Major a_major, Major b_major) {
  const std::string name = std::string("mma_") + (a_major == Major::col ? 'n' : 't') +
                           (b_major == Major::col ? 'n' : 't');
  return kernel(name, {.block = 32}, [=](Builder& k) {
    auto a = k.global("A", f16, stored(a_major, 16, 16));
    auto b = k.global("B", f16, stored(b_major, 16, 8));
    auto d = k.global("D", f32, row_major(16, 8));
    auto sa = k.shared("sa", f16, a.layout());
    auto sb = k.shared("sb", f16, b.layout());
    k.copy(a, sa);
    k.copy(b, sb);
    k.barrier();
    auto fa = k.load(operand_a(m16n8k16, f16), sa);
    auto fb = k.load(operand_b(m16n8k16, f16), sb);
    k.store(d, k.mma(fa, fb, zero(f32)));
  });
}

}  // namespace

int main(int argc, char** argv) {
  Device device = lesson::open_device(argc, argv);
  int a[16][16], b[16][8];
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; ++k) a[i][k] = (i * 5 + k * 3) % 17 - 8;
  for (int k = 0; k < 16; ++k)
    for (int j = 0; j < 8; ++j) b[k][j] = (k * 7 + j * 11) % 13 - 6;

  int wrong = 0;
  for (const Major a_major : {Major::col, Major::row})
    for (const Major b_major : {Major::row, Major::col}) {
      std::vector<std::uint16_t> a_bits(256), b_bits(128);
      for (int i = 0; i < 16; ++i)
        for (int k = 0; k < 16; ++k)
          a_bits[a_major == Major::row ? i * 16 + k : k * 16 + i] = lesson::half(a[i][k]);
      for (int k = 0; k < 16; ++k)
        for (int j = 0; j < 8; ++j)
          b_bits[b_major == Major::row ? k * 8 + j : j * 16 + k] = lesson::half(b[k][j]);
      const Kernel kernel = stored_mma(a_major, b_major);
      const auto d = lesson::run<float>(device, kernel, 128, {a_bits, b_bits});
      int mismatches = 0;
      for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 8; ++j) {
          int sum = 0;
          for (int k = 0; k < 16; ++k) sum += a[i][k] * b[k][j];
          mismatches += d[i * 8 + j] != static_cast<float>(sum);
        }
      std::printf("%s: mismatches %d of 128\n", kernel.name().c_str(), mismatches);
      for (const Choice& choice : lesson::must(compile(kernel, device.arch())).choices)
        if (choice.what.starts_with("load"))
          std::printf("  %s: %s\n", choice.what.c_str(), choice.taken.c_str());
      wrong += mismatches;
    }
  return wrong != 0;
}
