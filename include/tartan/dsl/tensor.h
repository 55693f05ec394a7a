// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/tensor.h - matrices in memory: Global (a pointer parameter of the kernel) and Shared
// (shared memory of the block). A tile of either is of the same class.
//
//   Global a = k.global("A", f16, row_major(m, n));
//   Global tile = a.tile({block_row, t}, {64, 32});    // rows 64*block_row .., columns 32*t ..
//   Shared half = s.tile({2 * warp + i, 0}, {16, 16});
#pragma once

#include <concepts>
#include <cstdint>
#include <numeric>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "tartan/dsl/layout.h"
#include "tartan/isa/form.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

/// A place in a matrix: an element, or a tile.
struct Coord {
  Scalar row, col;
};
/// A size in elements.
struct Extent {
  Scalar rows, cols;
};

/// Where a tile exceeds its matrix: row (or column) i of the tile exists if origin + i < limit, as
/// unsigned numbers: an origin below zero is above every limit.
struct Edge {
  Scalar origin, limit;
  /// As many neighbours, from a multiple of their number on, are inside together, or outside.
  std::int64_t multiple() const { return std::gcd(origin.multiple(), limit.multiple()); }
};

namespace detail {

/// The base of Global and Shared. An element's address is base + swizzle(offset +
/// layout.offset(row, col)), in elements from the memory's first byte.
struct Tensor {
  std::shared_ptr<KernelState> state;
  std::string name;
  Type type = Type::none;
  Layout layout;
  Scalar offset;
  int memory = -1;  // which of the kernel's memories; -1: the declaration was refused
  Place declared;
  Scalar base;  // a multiple of the swizzle's period; u64 or constant in global memory
  std::optional<Edge> row_edge, col_edge;
  // In global memory: where this tile begins in the declared matrix, and that matrix's size.
  Scalar row_at = 0, col_at = 0, whole_rows, whole_cols;
  std::optional<Scalar> matrix_at, matrix_stride;  // of a batch; no stride: contiguous
  int batches = 0;                                 // one within the other
  bool divided = false;                            // a tile
  bool ragged_inside = false;  // it exceeds the tile that it was cut from, whatever follows
  bool any_rows_outside = false, any_cols_outside = false;  // View::any_rows_outside()

  Tensor tile(const Scalar& rows, const Scalar& cols, const Scalar& row, const Scalar& col,
              const std::source_location& at) const;
  Tensor window(const Scalar& row, const Scalar& col, const Scalar& rows, const Scalar& cols,
                const std::source_location& at) const;
  Tensor matrix(const Scalar& index, const Scalar* stride, const std::source_location& at) const;
  Tensor of_cta(const Scalar& rank, const std::source_location& at) const;
  Tensor row(const Scalar& i, const std::source_location& at) const;
  Tensor in_elements_of(Type to, const std::source_location& at) const;
};

}  // namespace detail

template <bool in_shared_memory>
class View {
 public:
  View() = default;
  explicit View(detail::Tensor tensor) : tensor_(std::move(tensor)) {}

  const Layout& layout() const { return tensor_.layout; }
  Type element() const { return tensor_.type; }
  /// Of a tile in global memory; none if it is known not to exceed its matrix.
  const std::optional<Edge>& row_edge() const { return tensor_.row_edge; }
  const std::optional<Edge>& col_edge() const { return tensor_.col_edge; }

  /// Tile number `index` of a division into tiles of `size` elements: it begins at row
  /// index.row * size.rows and column index.col * size.cols. Tiles must divide shared memory. In
  /// global memory the last tiles may exceed the matrix: copies zero-fill and stores skip the
  /// elements out of bounds; Builder::read() and write() of single elements do not check.
  ///   k.copy(A.tile({row, t}, {64, 32}), sA[stage]);
  View tile(const Coord& index, const Extent& size,
            const std::source_location& at = std::source_location::current()) const {
    return View(tensor_.tile(size.rows, size.cols, index.row, index.col, at));
  }
  [[deprecated("write tile({row, col}, {rows, cols}): 0.3 has this form no more")]] View tile(
      const Scalar& rows, const Scalar& cols, const Scalar& row, const Scalar& col,
      const std::source_location& at = std::source_location::current()) const {
    return View(tensor_.tile(rows, cols, row, col, at));
  }
  /// The `size` elements from element `origin` on, all of which may be values of the kernel; the
  /// origin may be negative, and the window may reach beyond the matrix. Copies fill with zeros,
  /// and stores leave out, what is outside the matrix or the window. tile() divides a window; tiles
  /// must divide a size that is a constant. Copies are as wide as divisors of `origin.col` and
  /// `size.cols` allow: see multiple_of(). TMA copies tiles of windows whose size is constant.
  ///   Global x = X.window({k.read(first, 0, group), 0}, {k.read(count, 0, group), depth});
  ///   k.copy(x.tile({row, t}, {64, 32}), sX[stage]);       // grouped GEMM, packed sequences
  ///   k.copy(image.window({y - 1, x - 1}, {18, 18}), s);   // with a border of zeros
  View window(const Coord& origin, const Extent& size,
              const std::source_location& at = std::source_location::current()) const
      requires(!in_shared_memory) {
    return View(tensor_.window(origin.row, origin.col, size.rows, size.cols, at));
  }
  [[deprecated("write window({row, col}, {rows, cols}): 0.3 has this form no more")]] View window(
      const Scalar& row, const Scalar& col, const Scalar& rows, const Scalar& cols,
      const std::source_location& at = std::source_location::current()) const
      requires(!in_shared_memory) {
    return View(tensor_.window(row, col, rows, cols, at));
  }
  /// The same matrix, whose tiles may have any rows (or columns) beyond its last one in shared
  /// memory, not zeros: of an operand whose product nobody stores there. Of a matrix whose size is
  /// constant, copies by TMA then repeat what is inside. TMA asks the L2 for what is outside, too,
  /// and for all CTAs in the same place: 128 x 176 tiles of a product with 1128 columns took 1.3
  /// times as long. Other copies, and multicasts, which ask for it once, fill with zeros.
  ///   Global a = k.global("A", bf16, row_major(1000, depth)).any_rows_outside();
  View any_rows_outside() const requires(!in_shared_memory) {
    View out = *this;
    out.tensor_.any_rows_outside = true;
    return out;
  }
  View any_cols_outside() const requires(!in_shared_memory) {
    View out = *this;
    out.tensor_.any_cols_outside = true;
    return out;
  }
  /// Matrix number `index` of a batch: the parameter points to the first matrix, and the next
  /// begins `stride` elements after it; without a stride, they are contiguous.
  ///   Global a = k.global("A", f16, row_major(m, n)).matrix(k.block_z());
  View matrix(const Scalar& index,
              const std::source_location& at = std::source_location::current()) const
      requires(!in_shared_memory) {
    return View(tensor_.matrix(index, nullptr, at));
  }
  View matrix(const Scalar& index, const Scalar& stride,
              const std::source_location& at = std::source_location::current()) const
      requires(!in_shared_memory) {
    return View(tensor_.matrix(index, &stride, at));
  }
  /// Row `i` of a row-major matrix: a matrix of one row, whose length may be a value of the kernel.
  /// For read(), read_vector() and read_if(), which check no bounds.
  ///   const Global x = X.row(k.block_x());
  View row(const Scalar& i, const std::source_location& at = std::source_location::current()) const
      requires(!in_shared_memory) {
    return View(tensor_.row(i, at));
  }
  /// The elements of a row() as larger ones, from the whole one on in which the first element is:
  /// rows of f16 that begin anywhere, read in aligned words. The last one may reach beyond the row.
  ///   const Global words = x.as(u32);
  ///   const Scalar before = x.offset() % 2;            // elements of words[0] in front of the row
  View as(Type to, const std::source_location& at = std::source_location::current()) const
      requires(!in_shared_memory) {
    return View(tensor_.in_elements_of(to, at));
  }
  /// Elements from the address that the launch passes, a multiple of 16 bytes, to the first
  /// element: a u64, or a constant.
  const Scalar& offset() const requires(!in_shared_memory) { return tensor_.base; }
  /// The same matrix in the shared memory of CTA number `rank` of this cluster (distributed shared
  /// memory: mapa, and ld, st and atom of .shared::cluster). A Builder::cluster_barrier() must
  /// precede the first access, so that the CTA has started and what it wrote is visible, and follow
  /// the last one, so that it does not exit before. Threads read, write and copy there; ldmatrix,
  /// wgmma, cp.async and TMA loads do not reach it. In a cluster of one it is the matrix itself.
  ///   k.write(part, 0, k.thread(), x);
  ///   k.cluster_barrier();
  ///   for (int r = 0; r < k.cluster_size(); ++r) sum += k.read(part.of_cta(r), 0, k.thread());
  ///   k.cluster_barrier();
  View of_cta(const Scalar& rank, const std::source_location& at = std::source_location::current())
      const requires in_shared_memory {
    return View(tensor_.of_cta(rank, at));
  }
  /// The same memory with rows and columns exchanged.
  View transposed() const {
    detail::Tensor out = tensor_;
    out.layout = layout().transposed();
    std::swap(out.row_edge, out.col_edge);
    std::swap(out.row_at, out.col_at);
    std::swap(out.whole_rows, out.whole_cols);
    std::swap(out.any_rows_outside, out.any_cols_outside);
    return View(std::move(out));
  }

 private:
  friend struct detail::HandleParts;
  detail::Tensor tensor_;
};

using Global = View<false>;
using Shared = View<true>;

/// A tensor of two to five dimensions in global memory: contiguous, the last dimension innermost
/// (NHWC). Builder::copy_box() copies boxes of it.
class GlobalTensor {
 public:
  GlobalTensor() = default;
  GlobalTensor(Global rows, std::vector<Scalar> extents)
      : rows_(std::move(rows)), extents_(std::move(extents)) {}

  const std::vector<Scalar>& extents() const { return extents_; }
  /// The same memory as a matrix: a row for each index of all dimensions but the last.
  const Global& rows() const { return rows_; }

 private:
  Global rows_;
  std::vector<Scalar> extents_;
};

/// A filter that moves over the pixels of images, for Builder::copy_pixels(). Its numbers are those
/// of each dimension of an image: height and width of NHWC.
struct Filter {
  std::vector<int> size;           // taps
  std::vector<int> stride = {};    // pixels between two positions, 1 to 8; empty: 1
  std::vector<int> padding = {};   // pixels by which it exceeds each edge; empty: 0
  std::vector<int> dilation = {};  // pixels between two taps; empty: 1

  int stride_of(std::size_t d) const { return stride.empty() ? 1 : stride[d]; }
  int padding_of(std::size_t d) const { return padding.empty() ? 0 : padding[d]; }
  int dilation_of(std::size_t d) const { return dilation.empty() ? 1 : dilation[d]; }
  /// Its positions along a dimension of `extent` pixels: the size of the result. A Scalar or an
  /// integer.
  template <typename T>
  T positions(std::size_t d, const T& extent) const {
    return (extent + (2 * padding_of(d) - (size[d] - 1) * dilation_of(d) - 1)) / stride_of(d) + 1;
  }
};

/// The layout of a ring of shared matrices: `stages` of one layout.
struct RingLayout {
  Layout layout;
  int stages = 1;
  Operand operand = Operand::none;  // of TiledMma::shared_a() and shared_b()
};

/// A stage of a ring, and the line that asks for it.
struct RingIndex {
  template <std::convertible_to<Scalar> T>
  RingIndex(const T& stage, const std::source_location& from = std::source_location::current())
      : number(stage), at(from) {}
  Scalar number;
  std::source_location at;
};

/// Shared matrices of one layout, one for each stage of a pipeline.
///   Ring s = k.shared("sA", f16, mma.shared_a(3));
///   k.copy(tile, s[stage]);
class Ring {
 public:
  Ring() = default;
  Ring(Shared first, int stages, std::int64_t distance)
      : first_(std::move(first)), stages_(stages), distance_(distance) {}

  Shared operator[](const RingIndex& stage) const;
  int stages() const { return stages_; }
  const Layout& layout() const { return first_.layout(); }

 private:
  Shared first_;
  int stages_ = 0;
  std::int64_t distance_ = 0;  // elements from one to the next
};

}  // namespace tartan::TARTAN_ABI
