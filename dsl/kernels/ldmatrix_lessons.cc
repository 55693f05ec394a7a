// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix and movmatrix by name.
#include <fmt/format.h>

#include "tartan/dsl/kernels/kernels.h"

namespace tartan::inline TARTAN_ABI::kernels {
namespace {

std::string trans_name(bool trans) { return trans ? "_trans" : ""; }
std::string trans_word(bool trans) { return trans ? ".trans" : ""; }

// The two halves of each register, written behind each other from `first` on, in row 0 of `out`.
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
        // Lanes 8m .. 8m+7 point to the rows of matrix m; the others' addresses are not looked at.
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

std::span<const Named> all() {
  using G = const Gemm&;
  static constexpr Named list[] = {
      {"one_mma", "one mma.m16n8k16, f16 -> f32", [](G) { return one_mma(); }},
      {"mma_nt", "the same, A column-major, B row-major",
       [](G) { return stored_mma(Major::col, Major::row); }},
      {"mma_tn", "the same, A row-major, B column-major",
       [](G) { return stored_mma(Major::row, Major::col); }},
      {"mma_nn", "the same, A and B column-major",
       [](G) { return stored_mma(Major::col, Major::col); }},
      {"mma_tt", "the same, A and B row-major",
       [](G) { return stored_mma(Major::row, Major::row); }},
      {"wmma_row_row", "one wmma.m16n16k16, f16 -> f32",
       [](G) { return one_wmma(Major::row, Major::row); }},
      {"wmma_row_col", "the same, B column-major",
       [](G) { return one_wmma(Major::row, Major::col); }},
      {"wmma_col_row", "the same, A column-major",
       [](G) { return one_wmma(Major::col, Major::row); }},
      {"wmma_col_col", "the same, A and B column-major",
       [](G) { return one_wmma(Major::col, Major::col); }},
      {"gemm", "GEMM in every supported type", [](G options) { return gemm(options); }},
      {"gemm_sum", "reduction of the partial sums of a split-K or stream-K gemm",
       [](G options) { return gemm_sum(options); }},
      {"attention", "softmax(scale * Q * K^T) * V",
       [](G options) { return attention({.type = options.a}); }},
      {"sparse_gemm", "GEMM with a 2:4 sparse A", [](G options) { return sparse_gemm(options); }},
      {"block_scaled", "block-scaled GEMM of e4m3 to e2m1, one scale per block along k",
       [](G options) { return block_scaled({.m = options.m, .n = options.n, .k = options.k}); }},
      {"wmma_gemm", "GEMM of f16 through wmma.m16n16k16, sizes as parameters",
       [](G options) {
         return wmma_gemm({.a_major = options.a_major,
                           .b_major = options.b_major,
                           .multiple = options.multiple,
                           .multiple_c = options.multiple_c});
       }},
      {"transpose", "transpose of 16-bit elements through ldmatrix.trans",
       [](G options) { return transpose(options.multiple); }},
      {"mma_probe", "peak throughput of mma.m16n8k16, operands in registers",
       [](G) { return mma_probe("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"); }},
      {"ldmatrix_x1", "registers of ldmatrix .x1", [](G) { return ldmatrix_registers(1, false); }},
      {"ldmatrix_x2", "registers of ldmatrix .x2", [](G) { return ldmatrix_registers(2, false); }},
      {"ldmatrix_x4", "registers of ldmatrix .x4", [](G) { return ldmatrix_registers(4, false); }},
      {"ldmatrix_x1_trans", "registers of ldmatrix .x1.trans",
       [](G) { return ldmatrix_registers(1, true); }},
      {"ldmatrix_x2_trans", "registers of ldmatrix .x2.trans",
       [](G) { return ldmatrix_registers(2, true); }},
      {"ldmatrix_x4_trans", "registers of ldmatrix .x4.trans",
       [](G) { return ldmatrix_registers(4, true); }},
      {"ldmatrix_matrix_x1", "an 8x8 matrix through ldmatrix",
       [](G) { return ldmatrix_matrix(1, false); }},
      {"ldmatrix_matrix_x2", "an 8x16 matrix through ldmatrix",
       [](G) { return ldmatrix_matrix(2, false); }},
      {"ldmatrix_matrix_x4", "a 16x16 matrix through ldmatrix",
       [](G) { return ldmatrix_matrix(4, false); }},
      {"ldmatrix_matrix_x1_trans", "the same with .trans",
       [](G) { return ldmatrix_matrix(1, true); }},
      {"ldmatrix_matrix_x2_trans", "the same with .trans",
       [](G) { return ldmatrix_matrix(2, true); }},
      {"ldmatrix_matrix_x4_trans", "the same with .trans",
       [](G) { return ldmatrix_matrix(4, true); }},
      {"ldmatrix_corner", "the corner of a 64x64 tile, by the instruction",
       [](G) { return ldmatrix_corner(false); }},
      {"ldmatrix_corner_tile", "the same, by loading a tile",
       [](G) { return ldmatrix_corner(true); }},
      {"stmatrix_x1", "registers through stmatrix .x1",
       [](G) { return stmatrix_registers(1, false); }},
      {"stmatrix_x2", "registers through stmatrix .x2",
       [](G) { return stmatrix_registers(2, false); }},
      {"stmatrix_x4", "registers through stmatrix .x4",
       [](G) { return stmatrix_registers(4, false); }},
      {"stmatrix_x1_trans", "the same with .trans", [](G) { return stmatrix_registers(1, true); }},
      {"stmatrix_x2_trans", "the same with .trans", [](G) { return stmatrix_registers(2, true); }},
      {"stmatrix_x4_trans", "the same with .trans", [](G) { return stmatrix_registers(4, true); }},
      {"movmatrix", "registers through movmatrix", [](G) { return movmatrix_registers(); }},
  };
  return list;
}

}  // namespace tartan::inline TARTAN_ABI::kernels
