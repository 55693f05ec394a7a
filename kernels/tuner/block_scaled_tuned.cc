// SPDX-License-Identifier: Apache-2.0
// Tiles of block_scaled() by tcgen05, not measured: CUTLASS's choices for these kinds (its examples
// 72a and 72b), as far as scales leave columns of tensor memory.
#include <algorithm>

#include "kernels/common/gpus.h"
#include "kernels/common/integers.h"
#include "tartan/isa/feature.h"
#include "tartan/kernels/block_scaled.h"
#include "tartan/kernels/tuning.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int line_bytes = 128;   // of a row of a stage
constexpr int usual_size = 4096;  // of one that the launch gives
constexpr int height = 128;       // rows of a warpgroup

// Elements of six and four bits take a byte each, unless both have four.
bool packed(const BlockScaled& of) {
  return bits(of.a) == 4 && bits(of.b) == 4 && of.kind != isa::Kind::mxf8f6f4;
}

// Four scales along k of each row and column are in a cell.
int words_of(const BlockScaled& of) { return of.tile.k / (of.scale == Type::ue4m3 ? 16 : 32) / 4; }

// As many as there are columns of tensor memory and shared memory for.
int stages_of(const BlockScaled& of, int shared_bytes) {
  constexpr int all_columns = 512, most = 8, barriers = 2048, staged = 32 << 10;
  const int turns = of.tile.products, columns = words_of(of) * (height + of.tile.n) / 32,
            by_columns = (all_columns - turns * of.tile.n) / (turns * columns);
  const int scales = 4 * words_of(of) * (height + of.tile.n),
            stage = line_bytes * (height + of.tile.n / of.cluster) + scales,
            by_memory = (shared_bytes - barriers - staged) / stage;
  return std::min({by_columns, by_memory, most});
}

}  // namespace

BlockScaled tuned(const BlockScaled& options, const Gpu& gpu) {
  const ArchRow* const arch = find_arch(gpu.target().arch);
  if (!arch || !gpu.target().has(Feature::tensor_memory) || bits(options.a) < 4 ||
      bits(options.b) < 4)
    return options;
  BlockScaled out = options;
  const std::int64_t m = out.m > 0 ? out.m : usual_size, n = out.n > 0 ? out.n : usual_size,
                     room = gpu.multiprocessors();
  const int k = packed(out) ? 2 * line_bytes : line_bytes;
  // 256 columns leave no room for a second sum; half as many do.
  const bool wide = quotient_up(m, 2 * height) * 2 * quotient_up(n, 256) >= room;
  const int columns = wide ? 256 : 128;
  const std::int64_t tiles = quotient_up(m, height) * quotient_up(n, columns);
  out.tile = {.m = height, .n = columns, .k = k, .warps_m = 4, .warps_n = 1};
  out.producers = 4;
  out.cluster = m > height && quotient_up(m, height) % 2 == 0 ? 2 : 1;
  out.persistent = tiles > room;
  out.tile.products = out.persistent && !wide ? 2 : 1;
  out.stages = std::max(stages_of(out, arch->shared_bytes), 1);
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels
