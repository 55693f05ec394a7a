// SPDX-License-Identifier: Apache-2.0
// kernels/scaled/scaled_products.h - the kernel that scaled_gemm() and k_grouped_gemm() both are.
// Not installed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tartan/kernels/scaled_gemm.h"

namespace tartan::TARTAN_ABI::kernels::detail {

inline constexpr int scale_block = 128;  // elements along k that share a scale

/// Options of both. `along_k`: groups lie along k and SB has a scale for each column, as in
/// KGroupedGemm; `accumulate` is its.
struct ScaledProducts : ScaledGemm {
  bool along_k = false, accumulate = false;
};

/// Whether the options go together; reports all that do not.
bool is_possible(Builder& k, const ScaledProducts& options);

/// Whether the CTAs of a cluster share A, not B.
inline bool shares_a(const ScaledGemm& options) {
  return options.cluster > 1 && (options.share_a || options.grouping != Grouping::none);
}

/// A CTA's tile, of one group.
struct ScaledTile {
  Scalar row, col;
  Global a, scales_a, b, scales_b, c;
  std::function<Scalar(const Scalar& row)> row_of = {};  // of C; -1: none. All rows: none
  std::optional<Scalar> whole = {};                      // all rows of the tile exist
  Scalar first = 0;                                      // the group's first k-tile
  std::optional<Scalar> begin = {}, stages = {};         // after it; all: none
  Scalar stage_of_k(const Scalar& t) const { return begin ? t + *begin : t; }
};

/// The kernel's parameters and shared memory. A stage has products of `blocks_k` k-tiles one after
/// the other, each of all parts: 16 rows for each warp, by tcgen05 32, and n / parts_n columns.
struct ScaledOperands {
  ScaledOperands(Builder& builder, const ScaledProducts& with);

  int parts() const { return parts_m * options.parts_n; }
  /// Rows of fragments that a warp has of a part.
  int down() const { return part.m / (16 * part.warps_m); }
  /// Scales of columns that a stage has, along k.
  int columns_of_scales() const;
  /// The place in A's rings of a stage's product `i`.
  Scalar slot_a(const Scalar& stage, int i) const;
  /// The column of C in which a part begins.
  Scalar left_of(const ScaledTile& at, int part) const;

  Builder& k;
  const ScaledProducts& options;
  Tile part;
  int parts_m;
  Scalar m, n, depth, steps, groups = 1;
  Global a, scales_a, b, scales_b, c, list;  // list: what the GPU knows of groups
  TiledMma mma;
  Ring shared_a, shared_b, shared_scales_a, shared_scales_b;
};

/// What the products of a tile are multiplied by: scales of SA times scales of SB.
class Factors {
 public:
  using Values = std::vector<Scalar>;
  using Reading = std::function<Values()>;

  explicit Factors(const ScaledOperands& operands) : of_(operands) {}
  virtual ~Factors() = default;
  /// Reads the scales of product `i` of stage t. What it returns multiplies them.
  virtual Reading read(const WarpTile& product, const Scalar& t, const Scalar& stage, int i) = 0;
  /// Once the products of stage t have begun.
  virtual void read_next(const Scalar&) {}
  /// The factor of element `e` of fragment `i` of a product with these values, and `former` columns
  /// in the first block of columns that it is in.
  virtual Scalar of(const Values& values, const Scalar& former, std::size_t i,
                    std::size_t e) const = 0;
  /// Those of a product that is promoted in the next stage; zeros before the first.
  void keep(const Values& values);
  Values kept() const;

 protected:
  /// Fragments of a product side by side: those of the next rows follow.
  std::size_t across() const { return static_cast<std::size_t>(of_.part.n / 8); }
  void begin_with_zeros(int count);
  RowValues scales_of_rows(const WarpTile& product, const Scalar& stage, int i) const;

  const ScaledOperands& of_;

 private:
  std::vector<ScalarVariable> kept_;
};
std::unique_ptr<Factors> factors_of(const ScaledOperands& operands, const ScaledTile& at,
                                    const Accumulator& product);

}  // namespace tartan::TARTAN_ABI::kernels::detail
