// SPDX-License-Identifier: Apache-2.0
// A batch of small products: C[i] = A[i] * B[i] of 32 x 32 matrices, a warp for each.
//
//   A, B   batch x 32 x 32    f16, row-major
//   C      batch x 32 x 32    f32, row-major
//
// Nothing is shared between warps, so there is no shared memory, no pipeline and no barrier: a warp
// loads the fragments of its matrices straight from global memory, A's four and B's eight, and
// multiplies all of them. Registers are enough for a whole product; for latency a multiprocessor
// has many warps, each with its own loads in flight.
//
// A block has four warps. The last ones may have no product: they compute the last matrix again,
// because fragments need all lanes of a warp, and store nothing.
#include "gallery.h"

using namespace tartan;

namespace {

constexpr int size = 32, warps = 4;

Kernel small_products() {
  return kernel("small_products", {.block = warps * 32}, [](Builder& k) {
    auto batch = k.param("batch", s32);
    auto number = k.block_x() * warps + k.warp();
    auto mine = minimum(number, k.convert(batch, u32) - 1);
    auto A = k.global("A", f16, row_major(size, size)).matrix(mine);
    auto B = k.global("B", f16, row_major(size, size)).matrix(mine);
    auto C = k.global("C", f32, row_major(size, size)).matrix(mine);

    std::vector<Fragment> a, b;
    for (int i = 0; i < size / 16; ++i)
      for (int x = 0; x < size / 16; ++x)
        a.push_back(k.load(operand_a(m16n8k16, f16), A.tile({i, x}, {16, 16})));
    for (int x = 0; x < size / 16; ++x)
      for (int j = 0; j < size / 8; ++j)
        b.push_back(k.load(operand_b(m16n8k16, f16), B.tile({x, j}, {16, 8})));
    for (int i = 0; i < size / 16; ++i)
      for (int j = 0; j < size / 8; ++j) {
        Fragment sum = k.mma(a[i * (size / 16)], b[j], zero(f32));
        for (int x = 1; x < size / 16; ++x)
          sum = k.mma(a[i * (size / 16) + x], b[x * (size / 8) + j], sum);
        k.when(number < batch, [&] { k.store(C.tile({i, j}, {16, 8}), sum); });
      }
  });
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    for (const int batch : {8, 5, 1}) {
      const auto a = gallery::numbers<host::f16>(batch * size * size, 1),
                 b = gallery::numbers<host::f16>(batch * size * size, 2);
      std::vector<float> c(batch * size * size);
      session.run(small_products(), {static_cast<unsigned>((batch + warps - 1) / warps)}, batch,
                  in(a), in(b), out(c));
      std::vector<double> expected;
      for (int i = 0; i < batch; ++i) {
        const auto matrix = [&](const auto& from) {
          return reference::row_major(std::span(from).subspan(i * size * size, size * size), size,
                                      size);
        };
        const auto each = reference::product(matrix(a), matrix(b));
        expected.insert(expected.end(), each.begin(), each.end());
      }
      session.expect("small products", c, expected, size, {});  // exact: sums of 64ths
    }
  });
}
