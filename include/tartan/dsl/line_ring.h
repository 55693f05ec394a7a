// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/line_ring.h - copies of rows that begin at any element of global memory.
//
// cp.async takes 4, 8 or 16 bytes, from a multiple of their number on: rows that begin elsewhere
// would be copied in words, or element by element, and a tile's part of a row lies in two lines of
// the second-level cache, which are asked for twice. A LineRing reads each row line by line, each
// line once, in pieces of 16 bytes. A piece goes to where the tile's row has it in a ring of shared
// memory, up to a shift of less than 16 bytes, so that a line belongs to two stages:
//
//   global memory  |......aa aaaaaaaa|aaaabbbb bbbbbbbb|bb..     a, b: two k-tiles of a row
//   stages         ......aa aaaaaaaa aaaa | bbbb bbbbbbbb bb..   copy()
//   tile           aaaaaaaa aaaaaa                              align(), after a barrier
//
// All threads of the block copy and align, outside of Builder::roles(). From sm_80 on.
//
//   LineRing lines(k, "lines", f16, 64, 64, stages);            // 64 rows of 64 elements
//   const Shared tile = k.shared("tile", f16, row_major(64, 64));
//   lines.start(A.tile({k.block_y(), 0}, {64, 64}));
//   lines.begin(0);
//   k.pipeline({.stages = stages}, steps, [&](Scalar t, Scalar) { lines.copy(t); },
//              [&](Scalar t, Scalar) {
//                lines.align(t, tile);
//                k.barrier();
//                ...                                            // multiply `tile`
//              });
#pragma once

#include <memory>
#include <source_location>
#include <string>
#include <string_view>

#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI {

namespace detail {
class AlignedRows;
}

/// The lines of an operand that a block multiplies, of all k-tiles.
class LineRing {
 public:
  using Here = std::source_location;

  /// Declares the shared memory, `stages(of_pipeline)` k-tiles of `rows` x `cols` elements of 8 or
  /// 16 bits, where `cols` elements are whole lines of 128 bytes.
  LineRing(Builder& k, std::string name, Type type, int rows, int cols, int of_pipeline,
           Here at = Here::current());

  /// Stages of the ring for a pipeline of so many: the last one's lines reach into the next.
  static constexpr int stages(int of_pipeline) { return of_pipeline + 1; }

  /// Computes where this thread's pieces are: before the loop over k-tiles. `tile` is the one of
  /// k-tile 0, row-major, of `rows` x `cols`; the others follow it along its rows. Rows that are
  /// known to be whole tiles begin on lines: copy() takes them, and this refuses them.
  void start(const Global& tile, Here at = Here::current());
  /// Copies the lines in which k-tile `step` begins: once, before the first copy().
  void begin(const Scalar& step, Here at = Here::current());
  /// Copies the lines in which k-tile `step` ends and the next one begins, for a stage of the
  /// pipeline. What is beyond the matrix is zero.
  void copy(const Scalar& step, Here at = Here::current());
  /// Shifts the pieces of k-tile `step` to a row-major tile in shared memory, which a barrier()
  /// shows to the others. One must precede it, as pipeline() has it before `use`.
  void align(const Scalar& step, const Shared& to, Here at = Here::current());

 private:
  bool begins(const Here& at, std::string_view call) const;

  std::shared_ptr<detail::KernelState> state_;
  Shared ring_;
  int rows_, cols_, stages_;
  std::shared_ptr<detail::AlignedRows> pieces_;  // since start()
};

}  // namespace tartan::TARTAN_ABI
