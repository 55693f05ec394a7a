// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/sparse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/common/keys.h"
#include "kernels/gemm/gemm_tiles.h"
#include "tartan/dsl/math.h"
#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

// The longest instruction of a type.
isa::Form instruction(Type type) {
  isa::Form out{.opcode = isa::Opcode::mma, .shape = {16, 8, 0}, .a = type == f32 ? tf32 : type};
  out.shape.k = static_cast<std::int16_t>(512 / bits(type));
  out.sparsity = isa::Sparsity::sp_ordered_metadata;
  return out;
}

int words_each(const isa::Form& form) { return isa::codes_per_row(form) == 16 ? 32 : 16; }

// Which two of four neighbours are kept: the nonzero ones, then others.
std::array<int, 2> kept(const std::array<bool, 4>& nonzero) {
  std::array<int, 2> out{};
  int count = 0;
  for (const bool wanted : {true, false})
    for (int i = 0; i < 4 && count < 2; ++i)
      if (nonzero[static_cast<std::size_t>(i)] == wanted)
        out[static_cast<std::size_t>(count++)] = i;
  std::sort(out.begin(), out.end());
  return out;
}

class Compressor {
 public:
  Compressor(std::span<const std::byte> dense, int m, int k, Type type)
      : dense_(dense), m_(m), k_(k), type_(type), form_(instruction(type)) {}

  Result<Compressed> compress() {
    const int across = (k_ + form_.shape.k - 1) / form_.shape.k * words_each(form_);
    row_words_ = across;
    out_.metadata.assign(static_cast<std::size_t>((m_ + 15) / 16 * across), 0);
    for (int row = 0; row < (m_ + 15) / 16 * 16; ++row)
      for (int col = 0; col < across / words_each(form_) * form_.shape.k; col += group_)
        take(row, col);
    if (!diags_.ok()) return diags_;
    return std::move(out_);
  }

 private:
  bool nonzero(int row, int col) const {
    if (row >= m_ || col >= k_) return false;
    const auto element = dense_.subspan(place(row, col), bytes_);
    // A float's sign bit alone is not a nonzero value.
    const std::byte sign{info(type_).floating ? std::uint8_t{0x7F} : std::uint8_t{0xFF}};
    for (std::size_t i = 0; i < bytes_; ++i)
      if ((element[i] & (i + 1 == bytes_ ? sign : std::byte{0xFF})) != std::byte{0}) return true;
    return false;
  }
  std::size_t place(int row, int col) const {
    return (static_cast<std::size_t>(row) * static_cast<std::size_t>(k_) +
            static_cast<std::size_t>(col)) *
           bytes_;
  }
  void keep(int row, int col) {
    if (row >= m_ || col >= k_) return;
    const auto element = dense_.subspan(place(row, col), bytes_);
    out_.values.insert(out_.values.end(), element.begin(), element.end());
  }

  // One group: its values and its code.
  void take(int row, int col) {
    std::array<bool, 4> there{};
    for (int i = 0; i < group_; ++i) there[static_cast<std::size_t>(i)] = nonzero(row, col + i);
    if (std::count(there.begin(), there.end(), true) > group_ / 2)
      diags_.report(
          "kernel-option"_rule, {},
          fmt::format("row {}, columns {} to {}: at most {} of {} elements may be nonzero", row,
                      col, col + group_ - 1, group_ / 2, group_));
    std::uint32_t code = 0;
    if (group_ == 2) {
      code = there[1] ? 0b1110 : 0b0100;
      keep(row, col + (there[1] ? 1 : 0));
    } else {
      const auto [first, second] = kept(there);
      code = static_cast<std::uint32_t>(first | second << 2);
      keep(row, col + first), keep(row, col + second);
    }
    const int step = col / form_.shape.k, j = col % form_.shape.k / group_;
    const isa::MetadataBits at = isa::metadata(form_, row % 16, j, 0);
    const int each = words_each(form_);
    const int word = each == 32 ? at.lane : at.lane / 4 * 2 + at.lane % 2;
    out_.metadata[static_cast<std::size_t>(row / 16 * row_words_ + step * each + word)] |=
        code << at.lowest;
  }

  std::span<const std::byte> dense_;
  int m_, k_;
  Type type_;
  isa::Form form_;
  std::size_t bytes_ = static_cast<std::size_t>(bits(type_)) / 8;
  int group_ = bits(type_) == 32 ? 2 : 4;
  int row_words_ = 0;
  Compressed out_;
  Diags diags_;
};

}  // namespace

Result<Compressed> compress(std::span<const std::byte> dense, int m, int k, Type type) {
  const int width = bits(type), group = width == 32 ? 2 : 4;
  const bool good = (width == 8 || width == 16 || width == 32) && m > 0 && k > 0 &&
                    k % group == 0 &&
                    dense.size() == static_cast<std::size_t>(m) * static_cast<std::size_t>(k) *
                                        static_cast<std::size_t>(width) / 8;
  if (!good)
    return Diags::one("kernel-option"_rule, {},
                      fmt::format("sparse matrix: expected elements of 8, 16 or 32 bits and rows "
                                  "of whole groups of {}; found {} x {} of {} in {} bytes",
                                  group, m, k, name(type), dense.size()));
  return Compressor(dense, m, k, type).compress();
}

static Kernel described_sparse_gemm(const Gemm& options) {
  using detail::stride;
  Tile tile = options.tile;
  // Two instructions deep: rows of A then have 64 bytes.
  if (tile.k == 0) tile.k = 1024 / std::max(bits(options.a), 1);
  const KernelOptions launch{.block = tile.threads(),
                             .producers = options.producers,
                             .cluster = detail::cluster_size(options)};
  return kernel("sparse_gemm", launch, [=](Builder& k) {
    const int group = bits(options.a) == 32 ? 2 : 4;
    const auto m = detail::size(k, "m", options.m, 1),
               n = detail::size(
                   k, "n", options.n,
                   detail::common_multiple(options.multiple_c,
                                           options.b_major == Major::row ? options.multiple : 1)),
               depth = detail::size(k, "k", options.k,
                                    detail::common_multiple(group, options.multiple));
    if (!detail::sizes_are_possible(k, tile, m, n, depth)) return;
    k.require(options.a_major == Major::row, "sparse A must be row-major");
    if (!k.require(tile.products == 1,
                   fmt::format("tile.products = {}: expected 1, a sparse A has no ping-pong",
                               tile.products)))
      return;
    if (!k.require(!options.swap,
                   "swap is unsupported for a sparse A: instructions have it on the "
                   "left") ||
        !k.require(!options.direct,
                   "direct is unsupported for a sparse A: products of it take "
                   "tensor cores"))
      return;
    k.require(options.stream_blocks == 0 || options.tile.k != 0,
              "gemm_sum() also needs the tile's k for stream_blocks; set tile.k");
    k.require(
        bits(options.a) >= 8 && depth.multiple() % group == 0,
        fmt::format("sparse A: expected elements of at least 8 bits, in groups of {}", group));
    auto kind = k.best_mma(detail::multiplied(options.a), detail::multiplied(options.b),
                           options.accumulator, {.sparsity = isa::Sparsity::sp_ordered_metadata});
    if (kind.shape.shape.m == 0) return;  // best_mma() has said why
    kind.best = detail::suits_warpgroups(options, tile);
    auto mma = k.tiled_mma(kind, tile, {.ctas = options.cluster == 2 ? 2 : 1});
    const Layout words = mma.metadata_tile();
    const Scalar steps = ceil_div(depth, 512 / std::max(bits(options.a), 8));
    const auto stride_a = stride(k, "stride_a", options, std::max(options.multiple / 2, 1)),
               stride_b = stride(k, "stride_b", options, options.multiple),
               stride_c = stride(k, "stride_c", options, options.multiple_c),
               stride_metadata = stride(k, "stride_metadata", options, 4);
    auto A = k.global("A", options.a, row_major(m, depth / 2));
    auto M = k.global("metadata", u32,
                      row_major(ceil_div(m, 16), steps * (bits(options.a) == 8 ? 32 : 16)));
    auto B = k.global("B", options.b, stored(options.b_major, depth, n));
    detail::GemmTiles tiles(k, options, mma, m, n, depth);
    if (options.batched) {
      A = A.matrix(k.block_z(), stride_a);
      M = M.matrix(k.block_z(), stride_metadata);
      B = B.matrix(k.block_z(), stride_b);
      tiles.select_matrix(k.block_z(), stride_c);
    }
    auto sA = k.shared("sA", options.a, mma.shared_a(options.stages, Major::row));
    auto sM = k.shared("sM", u32, RingLayout{words, options.stages});
    auto sB = k.shared("sB", options.b, mma.shared_b(options.stages, options.b_major));
    tiles.compute({[&](Scalar row, Scalar col, Scalar step, Scalar stage) {
                     k.copy(A.tile({row, step}, {tile.m, tile.k / 2}), sA[stage]);
                     k.copy(M.tile({row, step}, {words.rows, words.cols}), sM[stage]);
                     const bool shares = options.cluster > 1 && mma.ctas() == 1;
                     k.copy(mma.own_b(B.tile({step, col}, {tile.k, tile.n})), sB[stage],
                            {.multicast = shares ? Among::cluster : Among::none});
                   },
                   [&](Accumulator& sum, Scalar stage, const detail::Operands::Next&) {
                     mma.add(sum, {sA[stage], {.metadata = sM[stage]}}, sB[stage]);
                   }});
  });
}

Kernel sparse_gemm(const Gemm& options) {
  return described_sparse_gemm(options).keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
