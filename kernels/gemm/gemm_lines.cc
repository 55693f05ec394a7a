// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_lines.h"

#include <memory>
#include <optional>

#include "dsl/state/handles.h"
#include "dsl/units/threads/aligned_rows.h"
#include "kernels/gemm/gemm_stages.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels::detail {

bool reads_lines(const Gemm& options) {
  constexpr int line = 1024, word = 32;  // bits
  const int width = bits(options.a), k = options.k ? options.k : options.multiple;
  const bool along_k = options.a_major == Major::row && options.b_major == Major::col;
  return options.producers == 0 && !options.direct && options.stages > 1 && along_k &&
         width == bits(options.b) && (width == 8 || width == 16) &&
         std::int64_t{k} * width % word != 0 && std::int64_t{options.tile.k} * width % line == 0;
}

bool reads_lines(const Gemm& options, const Target& target) {
  const ArchRow* arch = find_arch(target.arch);
  return reads_lines(options) && target.has(Feature::async_copy) && arch &&
         tartan::detail::shared_bytes(options) <= arch->shared_bytes;
}

Operands aligned_operands(Builder& k, const Gemm& options, const TiledMma& mma, const Global& left,
                          const Global& right, const Ring& a, const Ring& b) {
  using tartan::detail::AlignedRows, tartan::detail::KernelState, tartan::detail::tensor_of;
  const Tile tile = options.tile;
  const int stages = AlignedRows::stages(options.stages);
  KernelState* const state = tartan::detail::state_of(k.constant(u32, 0)).get();
  const auto ring = [&](const char* name, const Shared& of, int rows) {
    return k.shared(name, of.element(), RingLayout{row_major(rows, tile.k), stages})[0];
  };
  const Shared in_a = a[0], in_b = b[0], pieces_a = ring("pA", in_a, tile.m),
               pieces_b = ring("pB", in_b, tile.n);
  // Of the tile that is described.
  struct Rows {
    std::optional<AlignedRows> a, b;
  };
  const auto rows = std::make_shared<Rows>();
  Operands out;
  out.start = [=](const Scalar& row, const Scalar& col) {
    rows->a.emplace(*state, tensor_of(left.tile(tile.m, tile.k, row, 0)), tensor_of(pieces_a),
                    stages);
    rows->b.emplace(*state, tensor_of(right.tile(tile.k, tile.n, 0, col).transposed()),
                    tensor_of(pieces_b), stages);
  };
  out.begin = [=](const Scalar& step) { rows->a->begin(step), rows->b->begin(step); };
  out.fill = [=](const Scalar&, const Scalar&, const Scalar& step, const Scalar&) {
    rows->a->copy(step), rows->b->copy(step);
  };
  out.prepare = [=, &k](const Scalar& step) {
    rows->a->align(step, tensor_of(in_a)), rows->b->align(step, tensor_of(in_b.transposed()));
    k.barrier();
  };
  out.multiply = [=, &mma](const WarpTile& sum, const Scalar&, const Operands::Next&) {
    return mma(sum, in_a, in_b);
  };
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
