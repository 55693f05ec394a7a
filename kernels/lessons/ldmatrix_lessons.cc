// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix and movmatrix by name.
#include <fmt/format.h>

#include "tartan/kernels/kernels.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

std::string trans_name(bool trans) { return trans ? "_trans" : ""; }
std::string trans_word(bool trans) { return trans ? ".trans" : ""; }

// The two halves of each register, written contiguously from `first` on, in row 0 of `out`.
void write_halves(Builder& k, const Global& out, const Scalar& row, Scalar first,
                  const Scalar& word, Type type) {
  const auto [low, high] = k.halves(word, type);
  k.write(out, row, first, low);
  k.write(out, row, first + 1, high);
}

}  // namespace

Kernel ldmatrix_registers(int count, bool trans) {
  return kernel(
      fmt::format("ldmatrix_x{}{}", count, trans_name(trans)), {.block = 32}, [=](Builder& k) {
        auto out = k.global("out", u16, row_major(count, 64));
        auto s = k.shared("s", u16, row_major(8 * count, 8));
        for (int i = 0; i < 2 * count; ++i)
          k.write(s, (k.lane() + 32 * i) / 8, k.lane() % 8, k.convert(k.lane() + 32 * i, u16));
        k.barrier();
        // Lanes 8m .. 8m+7 point to the rows of matrix m; the other lanes' addresses are ignored.
        const auto r = k.instruction(
            fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16", count, trans_word(trans)),
            {k.address(s, k.lane() % (8 * count), 0)});
        for (int m = 0; m < count; ++m) write_halves(k, out, m, k.lane() * 2, r[m], u16);
      });
}

Kernel ldmatrix_matrix(int count, bool trans) {
  return kernel(
      fmt::format("ldmatrix_matrix_x{}{}", count, trans_name(trans)), {.block = 32},
      [=](Builder& k) {
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
        const auto r = k.instruction(
            fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16", count, trans_word(trans)),
            {address});
        for (int m = 0; m < count; ++m) write_halves(k, out, k.lane(), 2 * m, r[m], f16);
      });
}

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
                    auto b = k.load(operand_b(m16n8k8, f16), s.tile(8, 8, 0, 0).transposed());
                    write_halves(k, out, k.lane(), 0, k.registers(b)[0], f16);
                  } else {
                    const auto r = k.instruction("ldmatrix.sync.aligned.x1.m8n8.shared.b16",
                                                 {k.address(s, k.lane() % 8, 0)});
                    write_halves(k, out, k.lane(), 0, r[0], f16);
                  }
                });
}

Kernel stmatrix_registers(int count, bool trans) {
  return kernel(
      fmt::format("stmatrix_x{}{}", count, trans_name(trans)), {.block = 32}, [=](Builder& k) {
        auto out = k.global("out", u16, row_major(8 * count, 8));
        auto s = k.shared("s", u16, out.layout());
        std::vector<Scalar> operands{k.address(s, k.lane() % (8 * count), 0)};
        for (int m = 0; m < count; ++m) {
          const Scalar low = k.lane() * 2 + 64 * m;
          operands.push_back(k.word(k.convert(low, u16), k.convert(low + 1, u16)));
        }
        k.instruction(
            fmt::format("stmatrix.sync.aligned.m8n8.x{}{}.shared.b16", count, trans_word(trans)),
            operands);
        k.barrier();
        k.copy(s, out);
      });
}

Kernel movmatrix_registers() {
  return kernel("movmatrix", {.block = 32}, [=](Builder& k) {
    auto out = k.global("out", u16, row_major(32, 2));
    const Scalar low = k.lane() * 2;
    const auto r = k.instruction("movmatrix.sync.aligned.m8n8.trans.b16",
                                 {k.word(k.convert(low, u16), k.convert(low + 1, u16))});
    write_halves(k, out, k.lane(), 0, r[0], u16);
  });
}

}  // namespace tartan::TARTAN_ABI::kernels
