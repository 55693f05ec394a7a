// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/transpose.h"

namespace tartan::TARTAN_ABI::kernels {

Kernel transpose(int multiple) {
  return kernel("transpose", {.block = 128}, [=](Builder& k) {
    constexpr int size = 64, piece = 16, warps = 4;
    const auto rows = k.param("rows", s32, multiple), cols = k.param("cols", s32, multiple);
    auto in = k.global("in", f16, row_major(rows, cols));
    auto out = k.global("out", f16, row_major(cols, rows));
    // Rows of 128 bytes; the swizzle spreads eight of them over eight bank groups.
    const Layout tile = row_major(size, size).swizzled({3, 3, 3});
    auto from = k.shared("from", f16, tile), to = k.shared("to", f16, tile);
    const Scalar x = k.block_x(), y = k.block_y();
    k.copy(in.tile({y, x}, {size, size}), from);
    k.barrier();
    // Any 16 x 16 fragment that ldmatrix fills: A of m16n8k16.
    const FragmentKind kind = operand_a(m16n8k16, f16);
    const auto turned = from.transposed();
    for (int i = 0; i < size / piece; ++i) {
      const auto row = k.warp() % warps;
      k.store(to.tile({row, i}, {piece, piece}),
              k.load(kind, turned.tile({row, i}, {piece, piece})));
    }
    k.barrier();
    k.copy(to, out.tile({x, y}, {size, size}));
  });
}

}  // namespace tartan::TARTAN_ABI::kernels
