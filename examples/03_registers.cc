// SPDX-License-Identifier: Apache-2.0
// Lesson 3: what each lane gets from ldmatrix .x1, .x2 and .x4, and that stmatrix is its inverse
// (on targets that have it, sm_90 on).
//
// Shared memory holds 0, 1, 2, ... Each line: lane -> what memory holds at twice its number (+ 64
// per matrix), and the two values in its register.
#include "lesson.h"

using namespace tartan;

namespace {

Kernel ldmatrix_registers(int count) {
  return kernel("ldmatrix_x" + std::to_string(count), {.block = 32}, [=](Builder& k) {
    auto out = k.global("out", u16, row_major(count, 64));
    auto s = k.shared("s", u16, row_major(8 * count, 8));
    for (int i = 0; i < 2 * count; ++i)
      k.write(s, (k.lane() + 32 * i) / 8, k.lane() % 8, k.convert(k.lane() + 32 * i, u16));
    k.barrier();
    // Lanes 8m .. 8m+7 point to the rows of matrix m; the other lanes' addresses are ignored.
    const auto r =
        k.instruction("ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) + ".shared.b16",
                      {k.address(s, k.lane() % (8 * count), 0)});
    for (int m = 0; m < count; ++m) lesson::write_halves(k, out, m, k.lane() * 2, r[m], u16);
  });
}

Kernel stmatrix_registers(int count) {
  return kernel("stmatrix_x" + std::to_string(count), {.block = 32}, [=](Builder& k) {
    auto out = k.global("out", u16, row_major(8 * count, 8));
    auto s = k.shared("s", u16, out.layout());
    std::vector<Scalar> operands{k.address(s, k.lane() % (8 * count), 0)};
    for (int m = 0; m < count; ++m) {
      const Scalar low = k.lane() * 2 + 64 * m;
      operands.push_back(k.word(k.convert(low, u16), k.convert(low + 1, u16)));
    }
    k.instruction("stmatrix.sync.aligned.m8n8.x" + std::to_string(count) + ".shared.b16", operands);
    k.barrier();
    k.copy(s, out);
  });
}

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
  Device device = lesson::open_device(argc, argv);
  std::vector<std::uint16_t> counting(256);
  for (int i = 0; i < 256; ++i) counting[i] = static_cast<std::uint16_t>(i);
  for (const int count : {1, 2, 4}) {
    std::printf("ldmatrix x%d\n", count);
    print_registers(count, counting,
                    lesson::run<std::uint16_t>(device, ldmatrix_registers(count), 64 * count));
  }
  if (device.arch().sm < 90) return 0;
  for (const int count : {1, 2, 4}) {
    std::printf("stmatrix x%d\n", count);
    print_registers(
        count, lesson::run<std::uint16_t>(device, stmatrix_registers(count), 64 * count), counting);
  }
  return 0;
}
