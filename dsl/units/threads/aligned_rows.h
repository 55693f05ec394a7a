// SPDX-License-Identifier: Apache-2.0
// dsl/units/threads/aligned_rows.h - the pieces of rows that a LineRing copies and shifts, see
// tartan/dsl/line_ring.h. Not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

/// The rows of an operand that a block multiplies, of all k-tiles. It computes where they are when
/// it is made: in front of the loop over k-tiles.
class AlignedRows {
 public:
  /// `rows`: the tile of the operand with k-tile 0, row-major; `ring`: of so many stages.
  AlignedRows(KernelState& state, const Tensor& rows, const Tensor& ring, int stages);

  /// Copies the lines in which k-tile `step` begins: before the first fill.
  void begin(const Scalar& step);
  /// Copies the lines in which it ends. What is beyond the matrix is zero.
  void copy(const Scalar& step);
  /// Shifts the pieces of k-tile `step` to the tile `to` in shared memory.
  void align(const Scalar& step, const Tensor& to);

 private:
  using Words = std::vector<ir::Value>;
  /// What is known of lines: inside the matrix, at least along k, or nothing.
  enum class Inside : std::uint8_t { all, k, any };

  /// A piece of a row's line that this thread copies.
  struct Piece {
    Scalar row;
    ir::Value number;    // in the lines of a k-tile
    ir::Value before;    // bytes of the line in front of the row
    ir::Value is_later;  // whether it belongs to the later k-tile of two
    ir::Value place;     // in its stage: bytes
    ir::Pointer from;    // of the row's first line
  };

  void each(std::int64_t count, const std::function<void(std::int64_t i)>& body);
  void copy(const Scalar& step, bool first);
  void copy(const Scalar& step, bool first, const Piece& piece, Inside inside);
  void copy_end(const Scalar& step, bool first, const Scalar& element);
  ir::Pointer to(const Scalar& step, bool first, const Piece& piece);
  ir::Pointer from(const Scalar& step, const Piece& piece);
  void align(const Scalar& step, const Scalar& row, const Scalar& piece, std::int64_t count,
             const Tensor& to);
  Words shifted(Words words, ir::Value bytes);

  const Scalar& length() const;
  ir::Value number(const Scalar& x);
  ir::Value in_line(const Scalar& row);
  ir::Value stage(const Scalar& step);
  ir::Value place(ir::Value row, ir::Value piece);
  ir::Value exists(const Scalar& row);
  std::optional<ir::Value> rows_inside();
  ir::Value rows_here();
  std::int64_t last_rows() const;
  ir::Value is_before_last(const Scalar& row);
  ir::Value left(const Scalar& step, ir::Value before);
  ir::Value valid(const Scalar& step, const Piece& piece);
  ir::Value is_whole(ir::Value bytes);
  Piece piece(const Scalar& index);
  Piece piece(const Scalar& row, ir::Value number);

  KernelState& state_;
  Tensor rows_, ring_;
  int stages_, element_, per_piece_;     // element: bytes
  std::int64_t height_ = 0, count_ = 0;  // rows; pieces of a row
  Scalar thread_;
  int threads_;
  std::vector<Piece> pieces_;  // none if the kernel refused a matrix
};

}  // namespace tartan::TARTAN_ABI::detail
