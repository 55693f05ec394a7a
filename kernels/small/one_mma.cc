// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/kernels.h"

namespace tartan::TARTAN_ABI::kernels {

Kernel one_mma() {
  return kernel("one_mma", {.block = 32}, [](Builder& k) {
    auto a = k.global("A", f16, row_major(16, 16));
    auto b = k.global("B", f16, col_major(16, 8));
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

}  // namespace tartan::TARTAN_ABI::kernels
