// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/tiled_mma.h - tiled MMA: one MMA instruction over a CTA tile. Which warp computes
// which part, and the shared memory layouts of the operands.
//
//   const Tile tile{.m = 128, .n = 128, .k = 32, .warps_m = 2, .warps_n = 2};
//   auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
//   auto sA = k.shared("sA", f16, mma.shared_a(stages));
//   auto sB = k.shared("sB", f16, mma.shared_b(stages));
//   auto sum = mma.accumulator();
//   const auto use = [&](Scalar, Scalar stage) { mma.add(sum, sA[stage], sB[stage]); };
//   k.pipeline({.stages = stages}, steps, fill, use);
//
// On sm_90a warpgroups multiply (wgmma) if
//
//   - the kind is best_mma()'s, and results have the accumulator type,
//   - producers fill the operands: KernelOptions::producers > 0, pipelines in Builder::roles(),
//   - a warpgroup has all columns and 64 rows, or a multiple: warps_n = warps_k = 1, warps_m a
//     multiple of 4, and m one of 16 * warps_m,
//   - n is a multiple of 8 up to 256 (of s8 and u8 above 32, and with a row-major B: of 16), and k
//     one of the instruction's: 32 bytes of A, 64 for sparse kinds.
//
// So does tcgen05 on sm_100a, sm_100f, sm_103a and sm_110a, whose sums are in tensor memory, with
// 128 or 64 rows of a warpgroup: docs/blackwell.md. Otherwise each warp multiplies fragments of its
// part, and explain() says why.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <variant>

#include "tartan/dsl/tensor.h"
#include "tartan/dsl/tile_arithmetic.h"
#include "tartan/dsl/warp_tile.h"

namespace tartan::TARTAN_ABI {

/// CTA tile: m x n elements of the result, k per k-tile, computed by warps_m x warps_n warps.
///
/// warps_k > 1: as many such groups of warps divide the k-steps of each k-tile (a small tile with a
/// long k). Each has a partial sum; TiledMma::sum() adds them before anything else uses them.
///
/// products > 1: the CTA computes as many tiles, of operands of their own, each by a group of
/// warps. TiledMma::product() is this warp's; sizes and places are those of one tile.
///   const Tile tile{.m = 16, .n = 32, .k = 16, .warps_m = 1, .warps_n = 1, .products = 4};
///   for (int i = 0; i < 4; ++i) k.copy(A.tile({4 * k.block_x() + i, 0}, {16, 16}), sA[i]);
///   k.barrier();
///   mma.add(sum, sA[mma.product()], sB[mma.product()]);           // each warp its own
struct Tile {
  int m = 128, n = 128, k = 32;
  int warps_m = 2, warps_n = 2;
  int warps_k = 1, products = 1;
  constexpr int threads() const {  // at most what an int holds
    std::int64_t warps = 1;
    for (const int each : {warps_m, warps_n, warps_k, products})
      warps = std::clamp<std::int64_t>(warps * each, -(1 << 26), (1 << 26) - 1);
    return static_cast<int>(warps * 32);
  }
  /// gridDim.x of one CTA for each tile of a rows x cols result, as Builder::block_tile() divides
  /// it: rows of tiles are rounded up to whole clusters. 2^32 - 1 if no launch can have that many.
  constexpr std::uint32_t blocks(std::int64_t rows, std::int64_t cols, int cluster = 1) const {
    constexpr std::int64_t most = 0xffffffff;
    const auto covered = [&](std::int64_t size, std::int64_t by) {
      return size <= 0 || by <= 0 ? 0 : std::min((size - 1) / by + 1, most);
    };
    const std::int64_t down = covered(rows, std::int64_t{m} * cluster) * cluster,
                       across = covered(cols, n);
    return static_cast<std::uint32_t>(down && across > most / down ? most : down * across);
  }
};

/// The fragments of a stage's first k-step, loaded while the preceding stage is still multiplied
/// (Builder::pipeline()). Empty with wgmma, which reads shared memory itself.
class FirstStep {
 public:
  bool empty() const { return a_.empty(); }

 private:
  friend class TiledMma;
  friend class detail::TileProduct;
  std::vector<FragmentVariable> a_, b_;
};

namespace detail {

struct TensorForm;

/// The parameters of a tiled MMA, and what follows from them alone.
struct TiledParts {
  std::shared_ptr<KernelState> state;  // none: the description was refused
  MmaKind kind;
  Tile tile;
  MmaOptions options;
  Scalar warp_m, warp_n, warp_k;             // which of the warps this is
  Scalar product;                            // and of which product
  std::optional<isa::Form> warpgroup;        // the wgmma that computes the tile, where one does
  std::shared_ptr<const TensorForm> tensor;  // the same of tcgen05.mma
  std::shared_ptr<const std::string> text;   // for messages: instruction, tile and place

  /// Whether tensor cores read the operands in shared memory.
  bool from_panels() const { return warpgroup || tensor; }
  /// CTAs that divide the columns of B.
  int ctas_of_b() const { return tensor ? options.ctas : 1; }
  /// Of a warp.
  int fragments_m() const { return tile.m / tile.warps_m / kind.shape.shape.m; }
  int fragments_n() const { return tile.n / tile.warps_n / kind.shape.shape.n; }
  int steps() const { return tile.k / kind.shape.shape.k / tile.warps_k; }
  int columns_a() const { return kind.shape.sparse ? tile.k / 2 : tile.k; }
  int scale_block() const;
};

}  // namespace detail

/// What an operand of a tiled MMA has beside its elements, in shared memory like these.
struct OperandData {
  /// Of a block-scaled kind, which needs those of A and of B: one scale for each scale_block()
  /// elements along k. In the layouts of TiledMma::scales_a() and scales_b(), of the scale type.
  std::optional<Shared> scales = {};
  /// Of A of a sparse kind, which needs them: the positions of the elements that A keeps, words of
  /// u32 in the layout of TiledMma::metadata_tile() (see tartan/kernels/sparse.h).
  std::optional<Shared> metadata = {};
};

/// An operand of TiledMma: a stage in shared memory, with its data where the kind has such, or a
/// warp's fragments in registers. Shared memory and tiles are operands by themselves.
///   mma.add(sum, sA[s], sB[s]);                                               // dense
///   mma.add(sum, {sA[s], {.metadata = sE[s]}}, sB[s]);                        // sparse A
///   mma.add(sum, {sA[s], {.scales = sSA[s]}}, {sB[s], {.scales = sSB[s]}});   // block-scaled
///   mma.add(sum, operand_a(convert(p, f16)), sV[s]);                          // A in registers
class MmaOperand {
 public:
  MmaOperand(Shared elements, OperandData data = {})
      : elements_(std::move(elements)), data_(std::move(data)) {}
  MmaOperand(WarpTile fragments) : elements_(std::move(fragments)) {}
  MmaOperand(const Accumulator& fragments) : elements_(static_cast<WarpTile>(fragments)) {}

 private:
  friend class detail::TileProduct;
  std::variant<Shared, WarpTile> elements_;
  OperandData data_;
};

/// The MMA of a CTA tile: which instruction each warp issues for which part, and matching layouts
/// of the operands in shared memory.
class TiledMma {
 public:
  const MmaKind& kind() const { return parts_.kind; }
  const Tile& tile() const { return parts_.tile; }
  /// Which of Tile::products this warp computes: 0 .. products - 1, the same in its whole group.
  const Scalar& product() const { return parts_.product; }
  /// The sum of the partial sums of Tile::warps_k, through shared memory: warps_k 0 first, whatever
  /// the timing. Afterwards each warp has tile.n / (warps_n * warps_k) columns, of the CTA tile as
  /// before. All threads of the block (with roles(): all consumers) must call it.
  ///   k.store(C.tile({row, col}, {tile.m, tile.n}), mma.sum(partial));
  WarpTile sum(const WarpTile& partial, Here at = Here::current()) const;

  /// Layouts for a stage of A (m x k) and B (k x n) in shared memory. `major` is
  /// the contiguous dimension, best as in global memory; none: along k. The swizzle avoids bank
  /// conflicts of both the copy and ldmatrix.
  RingLayout shared_a(int stages = 1, Major major = Major::none) const;
  RingLayout shared_b(int stages = 1, Major major = Major::none) const;

  /// CTAs that multiply together, see MmaOptions::ctas.
  int ctas() const { return parts_.ctas_of_b(); }
  /// What this CTA has of a tile of B, k x n, in shared memory: all, or half of the columns where a
  /// pair of CTAs multiplies.
  ///   k.copy(mma.own_b(B.tile({t, col}, {tile.k, tile.n})), sB[stage]);
  Global own_b(const Global& tile, Here at = Here::current()) const;

  Accumulator accumulator(Here at = Here::current()) const;
  /// A variable for this warp's part of A, in registers.
  Accumulator variable_a(Here at = Here::current()) const;
  /// A variable with one value for each row of the accumulators in which a lane has elements.
  RowVariable row_variable(const Scalar& initial, Here at = Here::current()) const;
  ColumnVariable col_variable(const Scalar& initial, Here at = Here::current()) const;

  /// sum += A * B for the CTA tile, A of tile().m x k and B of k x n elements (a sparse A: k / 2).
  /// At most one of them is in registers: A with one row of warps (warps_n = 1), as operand_a() and
  /// load_a() give it, or B by mma.sync, which all warps along m hold alike. Sparse and
  /// block-scaled kinds have both in shared memory.
  ///   k.pipeline({.stages = 4}, steps, fill,
  ///              [&](Scalar, Scalar s) { mma.add(sum, sA[s], sB[s]); });
  ///
  /// wgmma is asynchronous: it is waited for at the first use of `sum`, other than a product that
  /// accumulates into it. Of two products whose sums are used in turn, the second runs while the
  /// first sum is used.
  ///
  /// Products of tf32 round f32 elements in memory to nearest even, by TMA or the threads; elements
  /// of type tf32 are used unchanged. Sparse kinds: threads read the metadata themselves, with
  /// wgmma too, whose warps take the same words as mma.sp. Block-scaled kinds, (A o scales) * (B o
  /// scales): a warp reads 32 bits of scales at a time, for several fragments; the instruction's
  /// byte-id and thread-id select among them.
  void add(Accumulator& sum, const MmaOperand& a, const MmaOperand& b,
           Here at = Here::current()) const;
  /// sum = A * B: the first product of a sum, which needs neither zeros nor what `sum` was. With
  /// wgmma, what is computed from the old value runs before the product does. A loop that adds
  /// products to sums of its own (promotion) needs no other registers for them:
  ///   mma.multiply(part, sA[stage], sB[stage]);
  ///   sum += part * scales;
  void multiply(Accumulator& sum, const MmaOperand& a, const MmaOperand& b,
                Here at = Here::current()) const;
  /// sum += A * B for a stage whose first fragments are loaded; calls `next` when the last ones
  /// are. Both are in shared memory, of a dense kind without scales.
  void add(Accumulator& sum, const MmaOperand& a, const MmaOperand& b, const FirstStep& first,
           const std::function<void()>& next, Here at = Here::current()) const;
  /// For stages like these; nothing if a thread has too few registers for it.
  FirstStep first_step(const Shared& a, const Shared& b, Here at = Here::current()) const;
  void load(FirstStep& first, const Shared& a, const Shared& b, Here at = Here::current()) const;
  /// The same products as tiles that do not change: c + A * B, and A * B in the registers of
  /// `used`, whose value nobody needs any more. `sum = mma(sum, a, b)` is `mma.add(sum, a, b)`, and
  /// `sum = mma.fresh(sum, a, b)` is `mma.multiply(sum, a, b)`.
  ///   const WarpTile scores = mma(mma.accumulator(), sQ, sK[stage]);
  WarpTile operator()(const WarpTile& c, const MmaOperand& a, const MmaOperand& b,
                      Here at = Here::current()) const;
  WarpTile fresh(const WarpTile& used, const MmaOperand& a, const MmaOperand& b,
                 Here at = Here::current()) const;
  // Old forms: the compiler does not tell five matrices in another order.
  [[deprecated("write add(sum, a, b, first, next): 0.3 has this form no more")]] WarpTile
  operator()(const WarpTile& c, const Shared& a, const Shared& b, const FirstStep& first,
             const std::function<void()>& next, Here at = Here::current()) const;
  [[deprecated(
      "write add(sum, {a, {.metadata = metadata}}, b): 0.3 has this form no more")]] WarpTile
  operator()(const WarpTile& c, const Shared& a, const Shared& metadata, const Shared& b,
             Here at = Here::current()) const {
    return (*this)(c, MmaOperand{a, {.metadata = metadata}}, b, at);
  }
  [[deprecated(
      "write add(sum, {a, {.scales = a_scales}}, {b, {.scales = b_scales}}): "
      "0.3 has this form no more")]] WarpTile
  operator()(const WarpTile& c, const Shared& a, const Shared& a_scales, const Shared& b,
             const Shared& b_scales, Here at = Here::current()) const {
    return (*this)(c, MmaOperand{a, {.scales = a_scales}}, MmaOperand{b, {.scales = b_scales}}, at);
  }
  /// Metadata words (u32) for a stage of A: one row for each 16 rows of A.
  Layout metadata_tile() const;
  /// Layouts of the scales of a stage, in the kind's scale type: A's row-major (m x k /
  /// scale_block()), B's column-major.
  Layout scales_a() const;
  Layout scales_b() const;
  /// Elements along k that share a scale: 32, or 16.
  int scale_block() const { return parts_.scale_block(); }
  /// The element types of A and B in shared memory: the kind's own, but b8 where an element of six
  /// or four bits takes a byte of a register (mxf8f6f4, f8f6f4). A tile of b8 has 16 bytes for each
  /// 16 elements; they are packed into the first 12 or 8 of those, as ldmatrix expands them.
  /// Builder::copy() packs them.
  Type stored_a() const;
  Type stored_b() const;
  /// This warp's part of A, to use several times. Shared memory must not change meanwhile, because
  /// wgmma reads it there.
  WarpTile load_a(const Shared& a, Here at = Here::current()) const;

 private:
  friend class Builder;
  detail::TiledParts parts_;
};

}  // namespace tartan::TARTAN_ABI
