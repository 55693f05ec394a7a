// SPDX-License-Identifier: Apache-2.0
// Tiled block-scaled MMAs (PTX ISA 9.0, 9.7.14.3).
#include <algorithm>

#include "dsl/layout/addressing.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/tile/tiled_parts.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/tiled_mma.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI {

namespace {

using detail::are_scales;
using detail::tensor_of;
using detail::TiledParts;

int scales_in_step(const TiledParts& mma) { return mma.kind.shape.shape.k / mma.scale_block(); }

// The words that this lane supplies, for each two fragments of A or four of B side by side. Of a
// quad's four lanes, two supply the scales of rows g and g + 8 of one fragment of A, the other two
// those of the next fragment; each supplies the scale of column g of another fragment of B.
std::vector<std::vector<Scalar>> scale_words(const TiledParts& mma, const Shared& scales,
                                             Operand operand) {
  const bool is_a = operand == Operand::a;
  const detail::Tensor& tensor = tensor_of(scales);
  if (!are_scales(mma, scales, operand)) return {};
  const int words = mma.tile.k / mma.scale_block() / 4;
  const Scalar lane = thread_index(*mma.state) % 32, group = lane / 4, member = lane % 4;
  const int count = is_a ? mma.fragments_m() : mma.fragments_n(), together = is_a ? 2 : 4;
  std::vector<std::vector<Scalar>> out;
  for (int first = 0; first < count; first += together) {
    const int there = std::min(together, count - first);
    const Scalar turn = is_a ? member / 2 : member;  // which of the fragments
    const Scalar which = there == 1          ? Scalar(0)
                         : there == together ? turn
                                             : minimum(turn, there - 1);
    const Scalar line =
        is_a ? mma.warp_m * (count * 16) + (which + first) * 16 + member % 2 * 8 + group
             : mma.warp_n * (count * 8) + (which + first) * 8 + group;
    std::vector<Scalar> each;
    for (int word = 0; word < words; ++word)
      each.push_back(mma.state->scalar(
          mma.state->f().load(address_of(*mma.state, tensor, is_a ? line : Scalar(4 * word),
                                         is_a ? Scalar(4 * word) : line),
                              b32)));
    out.push_back(std::move(each));
  }
  mma.state->log.choose(
      fmt::format("scales of {}", tensor.name), "ld.shared.b32",
      fmt::format("{} scales along k per lane; {} adjacent fragments share them through thread-id",
                  4 * words, together));
  return out;
}

}  // namespace

bool detail::are_scales(const TiledParts& mma, const Shared& scales, Operand operand) {
  const bool is_a = operand == Operand::a;
  const Tensor& tensor = tensor_of(scales);
  if (!mma.state->owns(tensor, tensor.name) || tensor.memory < 0) return false;
  note_load(*mma.state, tensor);
  if (scales.element() != mma.options.scale_type) {
    mma.state->log.report(
        "layout-mismatch"_rule,
        fmt::format("scale type mismatch: the tiled MMA has scales of {}, {} has elements of {}",
                    name(mma.options.scale_type), tensor.name, name(scales.element())));
    return false;
  }
  if (scales.layout().major() == (is_a ? Major::row : Major::col) &&
      aligned_bytes(*mma.state, tensor, is_a ? 1 : 0, is_a ? 0 : 1) >= 4)
    return true;
  mma.state->log.report(
      "layout-alignment"_rule,
      fmt::format("scales must be contiguous along k, in aligned groups of four; {} is {}",
                  tensor.name, scales.layout().text()));
  return false;
}

bool detail::fit_scaled(const TiledParts& mma, const Shared& a, const Shared& a_scales,
                        const Shared& b, const Shared& b_scales) {
  const int blocks = mma.tile.k / mma.scale_block();
  return require_shape(*mma.state, tensor_of(a), mma.tile.m, mma.tile.k, "A of the tiled MMA") &
         require_shape(*mma.state, tensor_of(a_scales), mma.tile.m, blocks,
                       "the A scales of the tiled MMA") &
         require_shape(*mma.state, tensor_of(b), mma.tile.k, columns_of_b(mma),
                       "B of the tiled MMA") &
         require_shape(*mma.state, tensor_of(b_scales), blocks, mma.tile.n,
                       "the B scales of the tiled MMA");
}

WarpTile detail::scaled_product(const TiledParts& mma, const WarpTile& sum, bool fresh,
                                const Shared& a, const Shared& a_scales, const Shared& b,
                                const Shared& b_scales) {
  if (!fit_scaled(mma, a, a_scales, b, b_scales)) return {};
  const auto of_a = scale_words(mma, a_scales, Operand::a),
             of_b = scale_words(mma, b_scales, Operand::b);
  if (of_a.empty() || of_b.empty()) return {};
  // `together` neighbours share a word; each has its own lanes.
  const auto scale = [&](const std::vector<std::vector<Scalar>>& words, int together, int i,
                         int step) {
    const int first = step * scales_in_step(mma);
    return BlockScale{
        words[static_cast<std::size_t>(i / together)][static_cast<std::size_t>(first / 4)],
        first % 4, i % together};
  };
  return multiply_tile(
      mma, sum, fresh, side_a(mma, a), side_b(mma, b),
      [&](MmaOptions& options, int i, int step) { options.a_scale = scale(of_a, 2, i, step); },
      [&](MmaOptions& options, int j, int step) { options.b_scale = scale(of_b, 4, j, step); });
}

int detail::TiledParts::scale_block() const {
  for (const isa::Mma& row : isa::mma_rows())
    if (row.scale_vec && row.scale_type == options.scale_type && row.shape == kind.shape.shape &&
        row.kind == kind.shape.kind &&
        (options.scale_vec == 0 || row.scale_vec == options.scale_vec))
      return row.shape.k / row.scale_vec;
  return std::max<int>(kind.shape.shape.k, 1);
}

// mxf4nvf4 is written with its .scale_vec, which the scales' type decides.
void detail::complete_scales(TiledParts& mma) {
  for (const isa::Mma& row : isa::mma_rows())
    if (row.options & isa::needs_vec && row.kind == mma.kind.shape.kind &&
        row.scale_type == mma.options.scale_type && mma.options.scale_vec == 0)
      mma.options.scale_vec = row.scale_vec;
}

Layout TiledMma::scales_a() const {
  return row_major(parts_.tile.m, parts_.tile.k / parts_.scale_block());
}
Layout TiledMma::scales_b() const {
  return col_major(parts_.tile.k / parts_.scale_block(), parts_.tile.n);
}

}  // namespace tartan::TARTAN_ABI
