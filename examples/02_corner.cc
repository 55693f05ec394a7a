// SPDX-License-Identifier: Apache-2.0
// Lesson 2: ldmatrix takes row addresses, so the rows of a matrix need not follow each other in
// memory.
//
// The top left 8x8 of a 64x64 tile, loaded twice: by the instruction, each lane pointing to its
// row; and as a tile, where Tartan finds the instruction.
#include "lesson.h"

using namespace tartan;

namespace {

Kernel ldmatrix_corner(bool by_tile) {
  return kernel(by_tile ? "ldmatrix_corner_tile" : "ldmatrix_corner", {.block = 32},
                [=](Builder& k) {
                  auto out = k.global("out", f16, row_major(32, 2));
                  auto s = k.shared("s", f16, row_major(64, 64));
                  k.loop(k.lane(), 64 * 64, 32,
                         [&](Scalar i) { k.write(s, i / 64, i % 64, k.convert(i, f16)); });
                  k.barrier();
                  if (by_tile) {
                    // B of m16n8k8 is 8 (k) by 8 (n), and the memory's rows run along k: the
                    // transposed tile.
                    auto b = k.load(operand_b(m16n8k8, f16), s.tile({0, 0}, {8, 8}).transposed());
                    lesson::write_halves(k, out, k.lane(), 0, k.registers(b)[0], f16);
                  } else {
                    const auto r = k.instruction("ldmatrix.sync.aligned.x1.m8n8.shared.b16",
                                                 {k.address(s, k.lane() % 8, 0)});
                    lesson::write_halves(k, out, k.lane(), 0, r[0], f16);
                  }
                });
}

}  // namespace

int main(int argc, char** argv) {
  Device device = lesson::open_device(argc, argv);
  const auto by_instruction = lesson::run<std::uint16_t>(device, ldmatrix_corner(false), 64);
  for (int lane = 0; lane < 32; ++lane)
    std::printf("Thread %d, row %d : Values -> (%f, %f) \n", lane, lane % 8,
                lesson::value(by_instruction[2 * lane]),
                lesson::value(by_instruction[2 * lane + 1]));
  const auto by_tile = lesson::run<std::uint16_t>(device, ldmatrix_corner(true), 64);
  for (int lane = 0; lane < 32; ++lane)
    std::printf("Thread %d : Values -> (%f, %f) \n", lane, lesson::value(by_tile[2 * lane]),
                lesson::value(by_tile[2 * lane + 1]));
  return 0;
}
