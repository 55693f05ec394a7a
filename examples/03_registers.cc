// SPDX-License-Identifier: Apache-2.0
// Lesson 3: what each lane gets from ldmatrix .x1, .x2 and .x4, and that stmatrix is its inverse
// (on targets that have it, sm_90 on).
//
// Shared memory holds 0, 1, 2, ... Each line: lane -> what memory holds at twice its number (+ 64
// per matrix), and the two values in its register.
#include "lesson.h"

namespace {

void print_registers(int count, const std::vector<std::uint16_t>& memory,
                     const std::vector<std::uint16_t>& registers) {
  for (int m = 0; m < count; ++m)
    for (int lane = 0; lane < 32; ++lane) {
      const int at = 64 * m + 2 * lane;
      std::printf("%d -> %d  %d   %d   \n", lane, memory[at], registers[at], registers[at + 1]);
    }
}

}  // namespace

int main(int argc, char** argv) {
  tartan::Device device = lesson::open_device(argc, argv);
  std::vector<std::uint16_t> counting(256);
  for (int i = 0; i < 256; ++i) counting[i] = static_cast<std::uint16_t>(i);
  for (const int count : {1, 2, 4}) {
    std::printf("ldmatrix x%d\n", count);
    print_registers(count, counting,
                    lesson::run<std::uint16_t>(
                        device, tartan::kernels::ldmatrix_registers(count, false), 64 * count));
  }
  if (device.arch().sm < 90) return 0;
  for (const int count : {1, 2, 4}) {
    std::printf("stmatrix x%d\n", count);
    print_registers(count,
                    lesson::run<std::uint16_t>(
                        device, tartan::kernels::stmatrix_registers(count, false), 64 * count),
                    counting);
  }
}
