// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_lines.h"

#include <memory>

#include "kernels/gemm/gemm_stages.h"
#include "tartan/dsl/line_ring.h"
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
         shared_bytes(options) <= arch->shared_bytes;
}

Operands aligned_operands(Builder& k, const Gemm& options, const TiledMma& mma, const Global& left,
                          const Global& right, const Ring& a, const Ring& b) {
  const Tile tile = options.tile;
  const auto ring = [&](const char* name, const Shared& of, int rows) {
    return std::make_shared<LineRing>(k, name, of.element(), rows, tile.k, options.stages);
  };
  const Shared in_a = a[0], in_b = b[0];
  const auto lines_a = ring("pA", in_a, tile.m), lines_b = ring("pB", in_b, tile.n);
  Operands out;
  out.start = [=](const Scalar& row, const Scalar& col) {
    lines_a->start(left.tile({row, 0}, {tile.m, tile.k}));
    lines_b->start(right.tile({0, col}, {tile.k, tile.n}).transposed());
  };
  out.begin = [=](const Scalar& step) { lines_a->begin(step), lines_b->begin(step); };
  out.fill = [=](const Scalar&, const Scalar&, const Scalar& step, const Scalar&) {
    lines_a->copy(step), lines_b->copy(step);
  };
  out.prepare = [=, &k](const Scalar& step) {
    lines_a->align(step, in_a), lines_b->align(step, in_b.transposed());
    k.barrier();
  };
  out.add = [=, &mma](Accumulator& sum, const Scalar&, const Operands::Next&) {
    mma.add(sum, in_a, in_b);
  };
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
