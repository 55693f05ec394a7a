// SPDX-License-Identifier: Apache-2.0
#include "dsl/aligned_rows.h"

#include <algorithm>
#include <array>
#include <bit>

#include "dsl/addressing.h"
#include "dsl/indices.h"
#include "dsl/scalars.h"
#include "dsl/shared_memory.h"

namespace tartan::inline TARTAN_ABI::detail {
namespace {

using codegen::Pointer;
using codegen::Value;

constexpr int word_bytes = 4, piece_bytes = 16, piece_bits = 4, line_bytes = 128;
constexpr int words_of_piece = piece_bytes / word_bytes, pieces_of_line = line_bytes / piece_bytes;

}  // namespace

AlignedRows::AlignedRows(KernelState& state, const Tensor& rows, const Tensor& ring, int stages)
    : state_(state),
      rows_(rows),
      ring_(ring),
      stages_(stages),
      element_(bits(rows.type) / 8),
      per_piece_(piece_bytes / std::max(element_, 1)),
      thread_(thread_index(state)),
      threads_(thread_count(state)) {
  std::int64_t length = 0;
  // What was refused was reported.
  if (rows.memory < 0 || ring.memory < 0 || !constant_shape(rows, height_, length)) return;
  count_ = length / per_piece_;
  for (std::int64_t i = 0; i < height_ * count_; i += threads_)
    pieces_.push_back(piece(thread_ + i));
}

// Calls body(i) for i from 0 on below `count`, divided among the threads.
void AlignedRows::each(std::int64_t count, const std::function<void(std::int64_t i)>& body) {
  for (std::int64_t i = 0; i < count; i += threads_)
    if (i + threads_ <= count) body(i);
    else state_.f().if_then(state_.value(thread_ + i < count), [&] { body(i); });
}

// Where a row begins: bytes from the beginning of its first line on.
Value AlignedRows::in_line(const Scalar& row) {
  codegen::FunctionBuilder& f = state_.f();
  const Value first =
      f.add(number(rows_.base), f.add(number(rows_.offset), number(rows_.layout.offset(row, 0))));
  return f.bit_and(byte_offset(f, first, rows_.type), f.constant(u32, line_bytes - 1));
}

// Where the ring has k-tile `step`: bytes.
Value AlignedRows::stage(const Scalar& step) {
  codegen::FunctionBuilder& f = state_.f();
  return f.multiply(f.remainder(number(step), f.constant(u32, stages_)),
                    f.constant(u32, height_ * count_ * piece_bytes));
}

// Where a stage has a piece of a row: bytes. The pieces of neighbouring rows are in different
// banks.
Value AlignedRows::place(Value row, Value piece) {
  codegen::FunctionBuilder& f = state_.f();
  const Value turned = f.bit_and(f.add(piece, row), f.constant(u32, pieces_of_line - 1)),
              line = f.bit_and(piece, f.constant(u32, -pieces_of_line));
  return f.add(f.multiply(row, f.constant(u32, count_ * piece_bytes)),
               f.multiply(f.bit_or(turned, line), f.constant(u32, piece_bytes)));
}

void AlignedRows::begin(const Scalar& step) { copy(step, true); }

void AlignedRows::copy(const Scalar& step) {
  if (pieces_.empty() || state_.f().is_muted()) return;
  copy(step + 1, false);
  state_.log.choose(fmt::format("copy {} to {}", rows_.name, ring_.name),
                    fmt::format("cp.async.cg, {} bytes per access", piece_bytes),
                    fmt::format("whole lines of {} bytes, which threads then shift to where the "
                                "rows begin",
                                line_bytes),
                    {});
}

// The lines in which k-tile `step` begins, and the one before ends, unless it is the first.
void AlignedRows::copy(const Scalar& step, bool first) {
  codegen::FunctionBuilder& f = state_.f();
  if (pieces_.empty() || f.is_muted()) return;
  note_write(state_, ring_);
  const std::int64_t all = height_ * count_;
  const auto lines = [&](Inside inside) {
    each(all, [&](std::int64_t i) {
      copy(step, first, pieces_[static_cast<std::size_t>(i / threads_)], inside);
    });
  };
  const auto inside_k = [&] {
    const auto rows = rows_inside();
    if (!rows) return lines(Inside::all);
    f.if_else(
        *rows, [&] { lines(Inside::all); }, [&] { lines(Inside::k); });
  };
  // The ends of rows, once.
  const auto ends = [&] {
    f.for_range(state_.value(thread_, u32), f.constant(u32, all), f.constant(u32, threads_),
                [&](Value i) { copy(step, first, piece(state_.scalar(i)), Inside::any); });
  };
  const Value end = f.multiply(number(step + 1), f.constant(u32, count_ * per_piece_));
  f.if_else(f.compare(codegen::Compare::le, end, number(length())), inside_k, ends);
}

// Piece number `index` of all rows' lines of a k-tile: the same in all of them.
AlignedRows::Piece AlignedRows::piece(const Scalar& index) {
  codegen::FunctionBuilder& f = state_.f();
  const Scalar row = index / count_, number = index % count_;
  const Value before = in_line(row), first = f.shift_right(before, f.constant(u32, piece_bits)),
              line = state_.value(number, u32);
  const Value is_later = f.compare(codegen::Compare::ge, line, first),
              own = f.subtract(line, first),
              place = f.select(is_later, own, f.add(own, f.constant(u32, count_)));
  const Pointer begin =
      f.offset(address_of(state_, rows_, row, 0), f.negate(f.convert(before, s64)));
  return {.row = row,
          .number = number,
          .before = before,
          .is_later = is_later,
          .place = this->place(state_.value(row, u32), place),
          .from = f.offset(begin, f.multiply(f.convert(line, u64), f.constant(u64, piece_bytes)))};
}

// Elements of a row of the matrix.
const Scalar& AlignedRows::length() const {
  return rows_.col_edge ? rows_.col_edge->limit : rows_.layout.cols;
}

// As u32: the low bits of what is longer.
Value AlignedRows::number(const Scalar& x) {
  return state_.f().convert(state_.value(x, x.constant() ? u32 : Type::none), u32);
}

// Whether all of the tile's rows are inside the matrix; nothing if they are known to be.
std::optional<Value> AlignedRows::rows_inside() {
  const auto& edge = rows_.row_edge;
  if (!edge) return std::nullopt;
  return state_.f().compare(codegen::Compare::le, number(edge->origin + height_),
                            number(edge->limit));
}

void AlignedRows::copy(const Scalar& step, bool first, const Piece& piece, Inside inside) {
  codegen::FunctionBuilder& f = state_.f();
  const Value at = first ? stage(step) : f.select(piece.is_later, stage(step), stage(step + -1));
  const Pointer to = f.offset(written_address_of(state_, ring_, 0, 0), f.add(at, piece.place));
  const Scalar bytes = widened(state_, step) * (count_ * piece_bytes);
  const Pointer from = f.offset(piece.from, f.convert(state_.value(bytes, u64), s64));
  const auto copy = [&] {
    if (inside == Inside::any) return copy_part(to, from, valid(step, piece));
    Value whole;
    if (inside == Inside::k)
      whole = f.select(exists(piece.row), f.constant(u32, piece_bytes), f.constant(u32, 0));
    f.copy_async(to, from, piece_bytes, codegen::CacheOperator::cg, whole);
  };
  // In front of the row's first k-tile there is nothing to copy.
  if (first) f.if_then(piece.is_later, copy);
  else copy();
}

Value AlignedRows::exists(const Scalar& row) {
  return state_.value(rows_.row_edge->origin + row < rows_.row_edge->limit, Type::pred);
}

// Bytes of that piece in front of the end of its row: 0 to 16.
Value AlignedRows::valid(const Scalar& step, const Piece& piece) {
  codegen::FunctionBuilder& f = state_.f();
  const auto constant = [&](std::int64_t value) { return f.constant(s32, value); };
  const auto as_signed = [&](const Scalar& x) { return f.convert(number(x), s32); };
  const Value tile = f.multiply(as_signed(step), constant(count_ * per_piece_));
  Value left = f.multiply(f.subtract(as_signed(length()), tile), constant(element_));
  left = f.subtract(f.add(left, f.convert(piece.before, s32)),
                    f.multiply(as_signed(piece.number), constant(piece_bytes)));
  Value out = f.maximum(f.minimum(left, constant(piece_bytes)), constant(0));
  if (rows_.row_edge) out = f.select(exists(piece.row), out, constant(0));
  return f.convert(out, u32);
}

// So many bytes of a piece, and zeros. cp.async would take a part of a piece, too, but memory
// checkers count all 16 bytes, and behind the last row there may be nothing.
void AlignedRows::copy_part(Pointer to, Pointer from, Value valid) {
  codegen::FunctionBuilder& f = state_.f();
  const auto constant = [&](std::int64_t value) { return f.constant(u32, value); };
  const Value some =
      f.compare(codegen::Compare::ne, f.bit_and(valid, constant(piece_bytes - 1)), constant(0));
  const auto elements = [&] {
    f.for_range(constant(0), constant(piece_bytes), constant(element_), [&](Value at) {
      const Value inside = f.compare(codegen::Compare::lt, at, valid);
      f.store(f.offset(to, at), f.load_if(inside, f.offset(from, f.convert(at, u64)),
                                          element_ == 1 ? Type::u8 : Type::u16));
    });
  };
  f.if_else(some, elements,
            [&] { f.copy_async(to, from, piece_bytes, codegen::CacheOperator::cg, valid); });
}

void AlignedRows::align(const Scalar& step, const Tensor& to) {
  if (pieces_.empty() || to.memory < 0) return;
  if (state_.f().is_muted() || !require_barrier(state_, ring_)) return;
  const auto share = static_cast<unsigned>(std::max<std::int64_t>(height_ * count_ / threads_, 1));
  std::int64_t together = std::min<std::int64_t>(std::bit_floor(share), 4);
  while (count_ % together) together /= 2;
  // Neighbouring lanes have neighbouring rows, which are in different banks.
  each(height_ * count_ / together, [&](std::int64_t i) {
    const Scalar index = thread_ + i;
    align(step, index % height_, index / height_ * together, together, to);
  });
  note_write(state_, to);
}

void AlignedRows::align(const Scalar& step, const Scalar& row, const Scalar& piece,
                        std::int64_t count, const Tensor& to) {
  codegen::FunctionBuilder& f = state_.f();
  const Value line = state_.value(row, u32), first = state_.value(piece, u32), own = stage(step),
              next = stage(step + 1);
  const Pointer ring = address_of(state_, ring_, 0, 0);
  Words words;
  for (std::int64_t i = 0; i <= count; ++i) {
    const Value number = f.add(first, f.constant(u32, i)),
                last = f.compare(codegen::Compare::eq, number, f.constant(u32, count_));
    const bool may_be_last = i == count;
    const Value at = may_be_last ? f.select(last, next, own) : own,
                in = may_be_last ? f.select(last, f.constant(u32, 0), number) : number;
    const Words loaded =
        f.load_vector(f.offset(ring, f.add(at, place(line, in))), b32, words_of_piece);
    words.insert(words.end(), loaded.begin(), loaded.end());
  }
  words = shifted(words, f.bit_and(in_line(row), f.constant(u32, piece_bytes - 1)));
  for (std::int64_t i = 0; i < count; ++i)
    f.store_vector(
        written_address_of(state_, to, row, (piece + i) * per_piece_),
        std::span(words).subspan(static_cast<std::size_t>(i) * words_of_piece, words_of_piece));
}

// From byte number `bytes` of the first of them on.
AlignedRows::Words AlignedRows::shifted(Words words, Value bytes) {
  codegen::FunctionBuilder& f = state_.f();
  for (const std::size_t by : {2, 1}) {
    const Value moves =
        f.compare(codegen::Compare::ne, f.bit_and(bytes, f.constant(u32, by * word_bytes)),
                  f.constant(u32, 0));
    for (std::size_t i = 0; i + by < words.size(); ++i)
      words[i] = f.select(moves, words[i + by], words[i]);
    words.resize(words.size() - by);
  }
  const Value bits =
      f.shift_left(f.bit_and(bytes, f.constant(u32, word_bytes - 1)), f.constant(u32, 3));
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::array results{b32};
    const std::array operands{words[i], words[i + 1], bits};
    words[i] = f.statement("shf.r.wrap.b32 %0, %1, %2, %3;", results, operands, true)[0];
  }
  return words;
}

}  // namespace tartan::inline TARTAN_ABI::detail
