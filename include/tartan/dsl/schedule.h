// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/schedule.h - how the work of a product is divided among blocks. See
// Builder::each_tile() and stream_tiles().
#pragma once

#include "tartan/dsl/scalar.h"

namespace tartan::TARTAN_ABI {

/// A block's part of a tile: its steps first .. first + count - 1.
struct TileWork {
  Scalar row, col;
  Scalar first, count;
  Scalar whole;  // whether these are all of the tile's steps
  Scalar slot;   // of the workspace, where they are not
};

/// Units of work begin .. end - 1: one worker's share of an even division. The first `units %
/// workers` workers have one more.
struct StreamShare {
  Scalar begin, end;
  /// The type that counts all units, tiles of `rows` x `cols` in `steps` each: s32 if it suffices.
  static Type counter(const Scalar& rows, const Scalar& cols, const Scalar& steps);
  static StreamShare of(const Scalar& units, const Scalar& workers, const Scalar& worker);
  /// The worker that has a unit.
  static Scalar owner(const Scalar& units, const Scalar& workers, const Scalar& unit);
};

}  // namespace tartan::TARTAN_ABI
