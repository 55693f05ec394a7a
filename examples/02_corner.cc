// SPDX-License-Identifier: Apache-2.0
// Lesson 2: ldmatrix takes row addresses, so the rows of a matrix need not follow each other in
// memory.
//
// The top left 8x8 of a 64x64 tile, loaded twice: by the instruction, each lane pointing to its
// row; and as a tile, where Tartan finds the instruction.
#include "lesson.h"

int main(int argc, char** argv) {
  tartan::Device device = lesson::open_device(argc, argv);
  const auto by_instruction =
      lesson::run<std::uint16_t>(device, tartan::kernels::ldmatrix_corner(false), 64);
  for (int lane = 0; lane < 32; ++lane)
    std::printf("Thread %d, row %d : Values -> (%f, %f) \n", lane, lane % 8,
                lesson::value(by_instruction[2 * lane]),
                lesson::value(by_instruction[2 * lane + 1]));
  const auto by_tile =
      lesson::run<std::uint16_t>(device, tartan::kernels::ldmatrix_corner(true), 64);
  for (int lane = 0; lane < 32; ++lane)
    std::printf("Thread %d : Values -> (%f, %f) \n", lane, lesson::value(by_tile[2 * lane]),
                lesson::value(by_tile[2 * lane + 1]));
}
