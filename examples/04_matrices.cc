// SPDX-License-Identifier: Apache-2.0
// Lesson 4: whole matrices through ldmatrix, plain and .trans: 8x8 (x1), 8x16 (x2), 16x16 (x4).
//
// Each lane writes the values of its registers one after the other: the result shows how the rows
// of a matrix are distributed.
#include "lesson.h"

namespace {

void print_matrix(const char* title, int cols, const std::vector<std::uint16_t>& values) {
  std::printf("%s Matrix:\n", title);
  for (std::size_t i = 0; i < values.size(); ++i)
    std::printf("%5.1f%s", lesson::value(values[i]), (i + 1) % cols ? " " : " \n");
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  tartan::Device device = lesson::open_device(argc, argv);
  for (const int count : {1, 2, 4})
    for (const bool trans : {false, true}) {
      const int cols = count == 1 ? 8 : 16;
      std::vector<std::uint16_t> source(64 * count);
      for (int i = 0; i < 64 * count; ++i) source[i] = lesson::half(i);
      print_matrix("Source", cols, source);
      print_matrix(
          "Result", cols,
          lesson::run<std::uint16_t>(device, tartan::kernels::ldmatrix_matrix(count, trans),
                                     source.size(), {source}));
    }
}
