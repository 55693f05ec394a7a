// SPDX-License-Identifier: Apache-2.0
// tartan/isa/tensor_memory.h - lane maps of tensor memory: which cell of it each register of
// tcgen05.ld, tcgen05.ld.red and tcgen05.st holds (PTX ISA 9.0, 9.7.16.2.3).
//
// The tensor memory of a CTA has 128 lanes of 512 columns; a cell has 32 bits. A warp accesses its
// quarter: 32 lanes, or the upper or lower 16 of them. A shape makes a cell's lane and column of
// the bits of two numbers, the thread's and the register's. Those of .16x256b.x2, the highest bit
// first:
//
//   lane     r1 t4 t3 t2        column   0    1    2    3    ..  7    8
//   column   r2 t1 t0 r0        lane 0   T0R0 T0R1 T1R0 T1R1 ..  T3R1 T0R4 ..
//                               lane 1   T4R0 T4R1 T5R0 ..
//                               lane 8   T0R2 T0R3 T1R2 ..
//
//   const TensorAccess load = tensor_access("16x256b x2");
//   cell(load, 5, 6)          // register 6 of thread 5: lane 9, column 10
//   holder(load, {9, 10})     // the same, back
#pragma once

#include <optional>

#include "tartan/isa/signature.h"

namespace tartan::TARTAN_ABI::isa {

/// Lanes and columns of a CTA's tensor memory.
inline constexpr int tensor_lanes = 128, tensor_columns = 512;

/// 32 bits of tensor memory.
struct TensorCell {
  int lane = 0, column = 0;
  constexpr bool operator==(const TensorCell&) const = default;
};

/// A bit of the number of a thread in its warp, or of a register in its vector.
enum class NumberBit : std::uint8_t { t0, t1, t2, t3, t4, r0, r1 };

/// A shape of tcgen05.ld and tcgen05.st: the bits that make a cell's lane and column, the lowest
/// first. What the register's number has beyond them continues the column.
struct TensorShape {
  Qualifier word;
  List<NumberBit, 5> lane = {}, column = {};
  bool split = false;  // t4 chooses one of two halves, whose distance is an operand

  constexpr int lanes() const { return 1 << lane.size; }
  constexpr int register_bits() const {
    return lane.size + column.size + (split ? 1 : 0) - 5;  // the others are a thread's
  }
  /// Of a thread, with .x1.
  constexpr int registers() const { return 1 << register_bits(); }
};

/// The shapes.
inline constexpr auto tensor_shapes = [] {
  using enum NumberBit;
  return std::array{
      TensorShape{.word = "32x32b"_q, .lane = {t0, t1, t2, t3, t4}},
      TensorShape{.word = "16x64b"_q, .lane = {t2, t3, t4, t0}, .column = {t1}},
      TensorShape{.word = "16x128b"_q, .lane = {t2, t3, t4, r0}, .column = {t0, t1}},
      TensorShape{.word = "16x256b"_q, .lane = {t2, t3, t4, r1}, .column = {r0, t0, t1}},
      TensorShape{.word = "16x32bx2"_q, .lane = {t0, t1, t2, t3}, .split = true},
  };
}();

/// A tcgen05.ld, .ld.red or .st, with what its lane map depends on.
struct TensorAccess {
  const TensorShape* shape = nullptr;
  int repeats = 1;            // .x1 to .x128
  bool packed = false;        // .pack::16b, .unpack::16b: a register holds two cells' lower halves
  int half_split_offset = 0;  // of a split shape: columns from the first half to the second
  TensorCell first = {};      // the cell of the lowest lane and column: first_cell()

  constexpr int registers() const { return shape->registers() * repeats; }  // of a thread
  constexpr int per_register() const { return packed ? 2 : 1; }
  constexpr int elements() const { return registers() * per_register(); }  // of a thread
  /// Columns of a half, or of all if the shape is not split.
  constexpr int columns() const { return repeats * per_register() << shape->column.size; }
};

/// What .x1 to .x128 says; 1 without.
constexpr int repeats(const QualifierSet& words) {
  constexpr Qualifier all[] = {"x1"_q, "x2"_q, "x4"_q, "x8"_q, "x16"_q, "x32"_q, "x64"_q, "x128"_q};
  for (int i = 0; i < 8; ++i)
    if (words.has(all[i])) return 1 << i;
  return 1;
}

/// The access with these words; its shape is null if they name none.
constexpr TensorAccess tensor_access(const QualifierSet& words) {
  TensorAccess out{.repeats = repeats(words)};
  for (const TensorShape& each : tensor_shapes)
    if (words.has(each.word)) out.shape = &each;
  out.packed = words.has("pack::16b"_q) || words.has("unpack::16b"_q);
  return out;
}

/// Where the access of a warp begins whose operand is `address`: in quarter `warp` % 4 of the
/// lanes, where bit 4 of the address's lane chooses 16 of them.
constexpr TensorCell first_cell(const TensorShape& shape, std::uint32_t address, int warp) {
  const int half = shape.lanes() == 16 ? static_cast<int>(address >> 16 & 16) : 0;
  return {tensor_lanes / 4 * (warp % 4) + half, static_cast<int>(address & 0xFFFF)};
}

namespace detail {

// The number that the bits make of a thread's and a register's.
constexpr int gather(const List<NumberBit, 5>& bits, int thread, int reg) {
  const int both = thread | reg << 5;
  int out = 0;
  for (std::size_t i = 0; i < bits.size; ++i) out |= (both >> static_cast<int>(bits[i]) & 1) << i;
  return out;
}

// The thread and the register, one in the bits above the other, of which it is made.
constexpr int scatter(const List<NumberBit, 5>& bits, int number) {
  int out = 0;
  for (std::size_t i = 0; i < bits.size; ++i) out |= (number >> i & 1) << static_cast<int>(bits[i]);
  return out;
}

}  // namespace detail

/// The cell of element `i` of `thread`: of register i, or if two share a register of its lower
/// (even i) or upper half, each with the lower half of a cell.
constexpr TensorCell cell(const TensorAccess& access, int thread, int i) {
  const TensorShape& shape = *access.shape;
  const int reg = i / access.per_register(), position = i % access.per_register();
  const int further = reg >> shape.register_bits() << shape.column.size;
  const int column = detail::gather(shape.column, thread, reg) | further;
  const int half = shape.split ? thread / 16 * access.half_split_offset : 0;
  return {access.first.lane + detail::gather(shape.lane, thread, reg),
          access.first.column + column * access.per_register() + position + half};
}

/// An element of a thread's registers.
struct TensorHolder {
  int thread = 0, element = 0;
  constexpr bool operator==(const TensorHolder&) const = default;
};

/// Whose element the cell is; nothing of a cell that the access leaves alone. Of halves that
/// overlap the first.
constexpr std::optional<TensorHolder> holder(const TensorAccess& access, TensorCell at) {
  const TensorShape& shape = *access.shape;
  const int lane = at.lane - access.first.lane;
  if (lane < 0 || lane >= shape.lanes()) return std::nullopt;
  for (int half = 0; half <= (shape.split ? 1 : 0); ++half) {
    const int column = at.column - access.first.column - half * access.half_split_offset;
    if (column < 0 || column >= access.columns()) continue;
    const int whole = column / access.per_register(), position = column % access.per_register();
    const int both = detail::scatter(shape.lane, lane) | detail::scatter(shape.column, whole);
    const int reg = both >> 5 | whole >> shape.column.size << shape.register_bits();
    return TensorHolder{(both & 31) | half << 4, reg * access.per_register() + position};
  }
  return std::nullopt;
}

}  // namespace tartan::TARTAN_ABI::isa
