// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/schedule.h - how the work on a product is divided among blocks. See
// Builder::each_tile() and stream_tiles().
#pragma once

#include "tartan/dsl/scalar.h"

namespace tartan::inline TARTAN_ABI {

/// A block's part of a tile: steps first .. first + count - 1 of the tile's.
struct TileWork {
  Scalar row, col;
  Scalar first, count;
  Scalar whole;  // whether these are all of the tile's steps
  Scalar slot;   // of the workspace, where they are not
};

/// Units of work begin .. end - 1, a worker's of an even division: the first `units % workers` have
/// one more.
struct StreamShare {
  Scalar begin, end;
  /// What counts all units, tiles of `rows` x `cols` in `steps` each: s32 where that surely does.
  static Type counter(const Scalar& rows, const Scalar& cols, const Scalar& steps);
  static StreamShare of(const Scalar& units, const Scalar& workers, const Scalar& worker);
  /// Which worker has a unit.
  static Scalar owner(const Scalar& units, const Scalar& workers, const Scalar& unit);
};

}  // namespace tartan::inline TARTAN_ABI
