// SPDX-License-Identifier: Apache-2.0
// A 3 x 3 convolution as an implicit GEMM, with stride and padding.
//
//   X   images x height x width x channels       f16 (NHWC)
//   F   3 x 3 x channels x filters               f16
//   Y   images x rows x cols x filters           f16, rows = (height + 2 pad - 3) / stride + 1
//
// Y is a product: one row for each pixel of the result, 9 * channels along k. Its A has in row
// (image, p, q), at tap (r, s), the channels of the pixel (p * stride + r - pad, q * stride + s -
// pad) of X, zeros if that is outside of the image. A is never in memory: copy_pixels() reads the
// rows of a tile from X, by TMA's im2col mode on sm_90a, row by row by cp.async on sm_80.
//
// F is B as it is, a matrix of channels x filters for each tap.
//
// channels and filters are multiples of 8, the images of any size.
#include "gallery.h"

using namespace tartan;

namespace {

constexpr Tile tile{.m = 64, .n = 64, .k = 32, .warps_m = 4, .warps_n = 1};

struct Filtering {
  int height, width, stride, pad;
  Filter filter() const {
    return {.size = {3, 3}, .stride = {stride, stride}, .padding = {pad, pad}};
  }
  int rows() const { return filter().positions(0, height); }
  int cols() const { return filter().positions(1, width); }
};

Kernel convolution(const Filtering& shape) {
  return kernel("convolution", {.block = tile.threads(), .producers = 4}, [=](Builder& k) {
    const int rows = shape.rows(), cols = shape.cols();
    auto images = k.param("images", s32), channels = k.param("channels", s32, 8),
         filters = k.param("filters", s32, 8);
    auto X = k.tensor("X", f16, {images, shape.height, shape.width, channels});
    auto F = k.global("F", f16, row_major(channels, filters));
    auto Y = k.global("Y", f16, row_major(images * (rows * cols), filters));

    constexpr int stages = 3;
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sX = k.shared("sX", f16, mma.shared_a(stages, Major::row));
    auto sF = k.shared("sF", f16, mma.shared_b(stages, Major::row));
    auto [row, col] = k.block_tile(images * (rows * cols), filters, tile);
    auto parts = k.convert(ceil_div(channels, tile.k), u32);  // k-tiles of a tap

    k.roles([&, row = row, col = col] {
      auto sum = mma.accumulator();
      auto fill = [&](Scalar t, Scalar stage) {
        auto tap = t / parts, part = t % parts;
        k.copy(F.matrix(tap).tile({part, col}, {tile.k, tile.n}), sF[stage]);
        k.copy_pixels(X, sX[stage], shape.filter(), row * tile.m, {tap / 3, tap % 3},
                      part * tile.k);
      };
      auto use = [&](Scalar, Scalar stage) { mma.add(sum, sX[stage], sF[stage]); };
      k.pipeline({.stages = stages}, parts * 9, fill, use);
      k.store(Y.tile({row, col}, {tile.m, tile.n}), convert(sum, f16));
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    struct Problem {
      Filtering shape;
      int channels, filters;
    };
    for (const auto& [shape, channels, filters] :
         {Problem{{8, 8, 1, 1}, 32, 64}, {{9, 7, 2, 1}, 72, 72}, {{5, 6, 1, 0}, 8, 8}}) {
      const auto [height, width, stride, pad] = shape;
      const int images = 2, rows = shape.rows(), cols = shape.cols();
      const auto x = gallery::numbers<host::f16>(images * height * width * channels, 1),
                 f = gallery::numbers<host::f16>(9 * channels * filters, 2);
      std::vector<host::f16> y(images * rows * cols * filters);
      session.run(convolution(shape), {tile.blocks(images * rows * cols, filters)}, images,
                  channels, filters, in(x), in(f), out(y));

      std::vector<double> expected(y.size());
      for (int at = 0; at < images * rows * cols; ++at)
        for (int tap = 0; tap < 9; ++tap) {
          const int i = at / cols % rows * stride + tap / 3 - pad,
                    j = at % cols * stride + tap % 3 - pad;
          if (i < 0 || i >= height || j < 0 || j >= width) continue;
          const int image = at / (rows * cols), from = (image * height + i) * width + j;
          for (int c = 0; c < channels; ++c)
            for (int o = 0; o < filters; ++o)
              expected[at * filters + o] +=
                  x[from * channels + c] * f[(tap * channels + c) * filters + o];
        }
      session.expect("convolution", y, expected, filters,
                     {.relative = 0x1p-10, .absolute = 0x1p-14});
    }
  });
}
