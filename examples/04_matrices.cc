// SPDX-License-Identifier: Apache-2.0
// Lesson 4: whole matrices through ldmatrix, plain and .trans: 8x8 (x1), 8x16 (x2), 16x16 (x4).
//
// Each lane writes the values of its registers one after the other: the result shows how the rows
// of a matrix are distributed.
#include "lesson.h"

using namespace tartan;

namespace {

Kernel ldmatrix_matrix(int count, bool trans) {
  return kernel("ldmatrix_matrix_x" + std::to_string(count) + (trans ? "_trans" : ""),
                {.block = 32}, [=](Builder& k) {
                  const int rows = count == 4 ? 16 : 8, cols = count == 1 ? 8 : 16;
                  auto in = k.global("in", f16, row_major(rows, cols));
                  auto out = k.global("out", f16, row_major(32, 2 * count));
                  auto s = k.shared("s", f16, in.layout());
                  k.copy(in, s);
                  k.barrier();
                  // Matrices go left to right, then down.
                  const Scalar matrix = k.lane() / 8 % count, across = cols / 8;
                  const Scalar address =
                      k.address(s, matrix / across * 8 + k.lane() % 8, matrix % across * 8);
                  const auto r =
                      k.instruction("ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
                                        (trans ? ".trans" : "") + ".shared.b16",
                                    {address});
                  for (int m = 0; m < count; ++m)
                    lesson::write_halves(k, out, k.lane(), 2 * m, r[m], f16);
                });
}

void print_matrix(const char* title, int cols, const std::vector<std::uint16_t>& values) {
  std::printf("%s Matrix:\n", title);
  for (std::size_t i = 0; i < values.size(); ++i)
    std::printf("%5.1f%s", lesson::value(values[i]), (i + 1) % cols ? " " : " \n");
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  Device device = lesson::open_device(argc, argv);
  for (const int count : {1, 2, 4})
    for (const bool trans : {false, true}) {
      const int cols = count == 1 ? 8 : 16;
      std::vector<std::uint16_t> source(64 * count);
      for (int i = 0; i < 64 * count; ++i) source[i] = lesson::half(i);
      print_matrix("Source", cols, source);
      print_matrix("Result", cols,
                   lesson::run<std::uint16_t>(device, ldmatrix_matrix(count, trans), source.size(),
                                              {source}));
    }
  return 0;
}
