// SPDX-License-Identifier: Apache-2.0
#include "dsl/units/threads/aligned_rows.h"

#include <algorithm>
#include <array>
#include <bit>

#include "dsl/layout/addressing.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/line_ring.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

using ir::Pointer;
using ir::Value;

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
  ir::FunctionBuilder& f = state_.f();
  const Value first =
      f.add(number(rows_.base), f.add(number(rows_.offset), number(rows_.layout.offset(row, 0))));
  return f.bit_and(byte_offset(f, first, rows_.type), f.constant(u32, line_bytes - 1));
}

// Where the ring has k-tile `step`: bytes.
Value AlignedRows::stage(const Scalar& step) {
  ir::FunctionBuilder& f = state_.f();
  return f.multiply(f.remainder(number(step), f.constant(u32, stages_)),
                    f.constant(u32, height_ * count_ * piece_bytes));
}

// Where a stage has a piece of a row: bytes. The pieces of neighbouring rows are in different
// banks.
Value AlignedRows::place(Value row, Value piece) {
  ir::FunctionBuilder& f = state_.f();
  const Value turned = f.bit_and(f.add(piece, row), f.constant(u32, pieces_of_line - 1)),
              line = f.bit_and(piece, f.constant(u32, -pieces_of_line));
  return f.add(f.multiply(row, f.constant(u32, count_ * piece_bytes)),
               f.multiply(f.bit_or(turned, line), f.constant(u32, piece_bytes)));
}

void AlignedRows::begin(const Scalar& step) { copy(step, true); }

void AlignedRows::copy(const Scalar& step) {
  if (pieces_.empty()) return;
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
  ir::FunctionBuilder& f = state_.f();
  if (pieces_.empty()) return;
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
  const auto ends = [&] {
    lines(Inside::any);
    each(last_rows() * per_piece_, [&](std::int64_t i) { copy_end(step, first, thread_ + i); });
  };
  const Value end = f.multiply(number(step + 1), f.constant(u32, count_ * per_piece_));
  f.if_else(f.compare(ir::Compare::le, end, number(length())), inside_k, ends);
}

// Piece number `index` of all rows' lines of a k-tile: the same in all of them.
AlignedRows::Piece AlignedRows::piece(const Scalar& index) {
  const Scalar row = index / count_;
  return piece(row, state_.value(index % count_, u32));
}

AlignedRows::Piece AlignedRows::piece(const Scalar& row, Value number) {
  ir::FunctionBuilder& f = state_.f();
  const Value before = in_line(row), first = f.shift_right(before, f.constant(u32, piece_bits)),
              is_later = f.compare(ir::Compare::ge, number, first), own = f.subtract(number, first),
              place = f.select(is_later, own, f.add(own, f.constant(u32, count_)));
  const Pointer begin =
      f.offset(address_of(state_, rows_, row, 0), f.negate(f.convert(before, s64)));
  return {
      .row = row,
      .number = number,
      .before = before,
      .is_later = is_later,
      .place = this->place(state_.value(row, u32), place),
      .from = f.offset(begin, f.multiply(f.convert(number, u64), f.constant(u64, piece_bytes)))};
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
  return state_.f().compare(ir::Compare::le, number(edge->origin + height_), number(edge->limit));
}

void AlignedRows::copy(const Scalar& step, bool first, const Piece& piece, Inside inside) {
  ir::FunctionBuilder& f = state_.f();
  const auto bytes = [&](Value value) {
    f.copy_async(to(step, first, piece), from(step, piece), piece_bytes, ir::CacheOperator::cg,
                 value);
  };
  const auto copy = [&] {
    if (inside == Inside::all) return bytes({});
    if (inside == Inside::k)
      return bytes(f.select(exists(piece.row), f.constant(u32, piece_bytes), f.constant(u32, 0)));
    const Value valid = this->valid(step, piece);
    f.if_then(f.bit_or(is_whole(valid), is_before_last(piece.row)), [&] { bytes(valid); });
  };
  // In front of the row's first k-tile there is nothing to copy.
  if (first) f.if_then(piece.is_later, copy);
  else copy();
}

// Copies element number `element` of those at the ends of the tile's last_rows(): of pieces of
// which only a part belongs to the row. cp.async would take a part, too, but memory checkers count
// all 16 bytes, and behind the last row there may be nothing.
void AlignedRows::copy_end(const Scalar& step, bool first, const Scalar& element) {
  ir::FunctionBuilder& f = state_.f();
  const auto compare = [&](ir::Compare how, Value x, std::int64_t y) {
    return f.compare(how, x, f.constant(x.type, y));
  };
  const Value last = f.subtract(rows_here(), f.constant(s32, 1)),
              at = f.subtract(last, f.convert(state_.value(element / per_piece_, u32), s32));
  const Scalar row = state_.scalar(f.convert(at, u32));
  const Value left = this->left(step, in_line(row)),
              number = f.convert(f.shift_right(left, f.constant(s32, piece_bits)), u32),
              valid = f.bit_and(f.convert(left, u32), f.constant(u32, piece_bytes - 1));
  const Piece piece = this->piece(row, number);
  Value is_here = f.bit_and(
      compare(ir::Compare::ne, valid, 0),
      f.bit_and(compare(ir::Compare::ge, at, 0), compare(ir::Compare::lt, number, count_)));
  if (first) is_here = f.bit_and(is_here, piece.is_later);
  f.if_then(is_here, [&] {
    const Value byte =
                    f.multiply(state_.value(element % per_piece_, u32), f.constant(u32, element_)),
                inside = f.compare(ir::Compare::lt, byte, valid);
    f.store(f.offset(to(step, first, piece), byte),
            f.load_if(inside, f.offset(from(step, piece), f.convert(byte, u64)),
                      element_ == 1 ? Type::u8 : Type::u16));
  });
}

// Where the piece is in shared memory, of the lines in which k-tile `step` begins.
Pointer AlignedRows::to(const Scalar& step, bool first, const Piece& piece) {
  ir::FunctionBuilder& f = state_.f();
  const Value at = first ? stage(step) : f.select(piece.is_later, stage(step), stage(step + -1));
  return f.offset(written_address_of(state_, ring_, 0, 0), f.add(at, piece.place));
}

// And where in global memory.
Pointer AlignedRows::from(const Scalar& step, const Piece& piece) {
  ir::FunctionBuilder& f = state_.f();
  const Scalar bytes = widened(state_, step) * (count_ * piece_bytes);
  return f.offset(piece.from, f.convert(state_.value(bytes, u64), s64));
}

// Rows of the tile that are inside the matrix, or fewer than one.
Value AlignedRows::rows_here() {
  ir::FunctionBuilder& f = state_.f();
  const Value all = f.constant(s32, height_);
  if (!rows_.row_edge) return all;
  const auto& [origin, limit] = *rows_.row_edge;
  return f.minimum(all, f.convert(f.subtract(number(limit), number(origin)), s32));
}

// Rows at the end of a tile behind whose ends there may be less than a piece: one, unless rows are
// shorter than a piece, or of a length that only the GPU knows.
std::int64_t AlignedRows::last_rows() const {
  const std::int64_t behind = piece_bytes - element_,
                     row = std::max<std::int64_t>(length().constant().value_or(1), 1) * element_;
  return std::min((behind + row - 1) / row, height_);
}

// Whether all of the piece behind the row's end is inside the matrix.
Value AlignedRows::is_before_last(const Scalar& row) {
  ir::FunctionBuilder& f = state_.f();
  return f.compare(ir::Compare::lt, f.convert(state_.value(row + last_rows(), u32), s32),
                   rows_here());
}

Value AlignedRows::exists(const Scalar& row) {
  return state_.value(rows_.row_edge->origin + row < rows_.row_edge->limit, Type::pred);
}

// Bytes between the beginning of the lines of k-tile `step` and the end of the row, of which
// `before` belong to the line in front of its first element: negative behind the end.
Value AlignedRows::left(const Scalar& step, Value before) {
  ir::FunctionBuilder& f = state_.f();
  const auto as_signed = [&](const Scalar& x) { return f.convert(number(x), s32); };
  const Value tile = f.multiply(as_signed(step), f.constant(s32, count_ * per_piece_));
  return f.add(f.multiply(f.subtract(as_signed(length()), tile), f.constant(s32, element_)),
               f.convert(before, s32));
}

// Bytes of that piece in front of the end of its row: 0 to 16.
Value AlignedRows::valid(const Scalar& step, const Piece& piece) {
  ir::FunctionBuilder& f = state_.f();
  const auto constant = [&](std::int64_t value) { return f.constant(s32, value); };
  const Value at = f.multiply(f.convert(piece.number, s32), constant(piece_bytes)),
              left = f.subtract(this->left(step, piece.before), at);
  Value out = f.maximum(f.minimum(left, constant(piece_bytes)), constant(0));
  if (rows_.row_edge) out = f.select(exists(piece.row), out, constant(0));
  return f.convert(out, u32);
}

// Whether so many bytes are whole pieces.
Value AlignedRows::is_whole(Value bytes) {
  ir::FunctionBuilder& f = state_.f();
  return f.compare(ir::Compare::eq, f.bit_and(bytes, f.constant(u32, piece_bytes - 1)),
                   f.constant(u32, 0));
}

void AlignedRows::align(const Scalar& step, const Tensor& to) {
  if (pieces_.empty() || to.memory < 0) return;
  note_load(state_, ring_);
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
  ir::FunctionBuilder& f = state_.f();
  const Value line = state_.value(row, u32), first = state_.value(piece, u32), own = stage(step),
              next = stage(step + 1);
  const Pointer ring = address_of(state_, ring_, 0, 0);
  Words words;
  for (std::int64_t i = 0; i <= count; ++i) {
    const Value number = f.add(first, f.constant(u32, i)),
                last = f.compare(ir::Compare::eq, number, f.constant(u32, count_));
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
  ir::FunctionBuilder& f = state_.f();
  for (const std::size_t by : {2, 1}) {
    const Value moves = f.compare(
        ir::Compare::ne, f.bit_and(bytes, f.constant(u32, by * word_bytes)), f.constant(u32, 0));
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

}  // namespace detail

using detail::tensor_of;

LineRing::LineRing(Builder& k, std::string name, Type type, int rows, int cols, int of_pipeline,
                   Here at)
    : state_(detail::state_of(k)), rows_(rows), cols_(cols), stages_(stages(of_pipeline)) {
  state_->at(at);
  bool good = true;
  const auto expect = [&](bool holds, const Rule& rule, const std::string& text) {
    if (!holds) state_->log.report(rule, fmt::format("lines {}: {}", name, text));
    good &= holds;
  };
  expect(state_->config.has_async_copy(), "no-instruction"_rule,
         fmt::format("cp.async requires sm_80, the target is {}; copy() copies any rows",
                     state_->config.target.text()));
  expect(bits(type) == 8 || bits(type) == 16, "scalar-type"_rule,
         fmt::format("expected elements of 8 or 16 bits, found {}", tartan::name(type)));
  const int line = 8 * detail::line_bytes / std::max(bits(type), 8);
  expect(rows > 0 && cols > 0 && cols % line == 0, "layout-mismatch"_rule,
         fmt::format("expected rows of whole lines of {} elements of {}, found {} x {}", line,
                     tartan::name(type), rows, cols));
  expect(of_pipeline > 0, "layout-mismatch"_rule,
         fmt::format("expected a pipeline of 1 or more stages, found {}", of_pipeline));
  if (good)
    ring_ = k.shared(std::move(name), type, RingLayout{row_major(rows, cols), stages_}, at)[0];
}

// Whether a call is possible: of those that come between start() and the end of the kernel.
bool LineRing::begins(const Here& at, std::string_view call) const {
  if (!detail::KernelState::begins(detail::state_of(tensor_of(ring_)), at)) return false;
  if (pieces_) return true;
  state_->log.report("kernel-option"_rule,
                     fmt::format("{} of lines that have not begun: call start() first", call));
  return false;
}

void LineRing::start(const Global& tile, Here at) {
  if (!detail::KernelState::begins(detail::state_of(tensor_of(ring_)), at)) return;
  const detail::Tensor &from = tensor_of(tile), &ring = tensor_of(ring_);
  if (!detail::state_of(from) || !state_->owns(from, "the tile") || from.memory < 0) return;
  const Layout& layout = from.layout;
  if (state_->roles.current != detail::Role::all)
    return state_->log.report("kernel-option"_rule,
                              "start() inside roles(): all threads of the block copy lines; call "
                              "it outside");
  if (from.type != ring.type || layout.rows.constant() != rows_ ||
      layout.cols.constant() != cols_ || layout.is_nested() || layout.col_stride.constant() != 1)
    return state_->log.report(
        "layout-mismatch"_rule,
        fmt::format("start({}): expected a row-major tile of {} x {} elements of {}, found {} of "
                    "{}",
                    from.name, rows_, cols_, tartan::name(ring.type), layout.text(),
                    tartan::name(from.type)));
  // Without an edge nobody knows how long the rows are.
  if (!from.col_edge)
    return state_->log.report(
        "layout-mismatch"_rule,
        fmt::format("start({}): its rows are whole tiles of {} elements, so they begin on lines; "
                    "copy() copies them as they are",
                    from.name, cols_));
  pieces_ = std::make_shared<detail::AlignedRows>(*state_, from, ring, stages_);
}

void LineRing::begin(const Scalar& step, Here at) {
  if (begins(at, "begin()") && state_->is_index(step, "the k-tile")) pieces_->begin(step);
}

void LineRing::copy(const Scalar& step, Here at) {
  if (begins(at, "copy()") && state_->is_index(step, "the k-tile")) pieces_->copy(step);
}

void LineRing::align(const Scalar& step, const Shared& to, Here at) {
  if (!begins(at, "align()") || !state_->is_index(step, "the k-tile")) return;
  const detail::Tensor& tile = tensor_of(to);
  if (!detail::state_of(tile) || !state_->owns(tile, "the tile") || tile.memory < 0) return;
  const Layout& layout = tile.layout;
  const std::int64_t piece = detail::piece_bytes * 8 / bits(tensor_of(ring_).type);
  // Pieces are contiguous, also in panels; a swizzle moves them whole, or it would cut them.
  const bool whole = layout.major() == Major::row && layout.run() % piece == 0 &&
                     layout.row_multiple(1) % piece == 0 &&
                     layout.col_multiple(piece) % piece == 0 &&
                     (layout.swizzle.bits == 0 || (1 << layout.swizzle.base) >= piece);
  if (tile.type != tensor_of(ring_).type || layout.rows.constant() != rows_ ||
      layout.cols.constant() != cols_ || !whole)
    return state_->log.report(
        "layout-mismatch"_rule,
        fmt::format("align() to {}: expected a row-major tile of {} x {} elements of {} in whole "
                    "pieces of {} bytes, found {} of {}",
                    tile.name, rows_, cols_, tartan::name(tensor_of(ring_).type),
                    detail::piece_bytes, layout.text(), tartan::name(tile.type)));
  pieces_->align(step, tile);
}

}  // namespace tartan::TARTAN_ABI
