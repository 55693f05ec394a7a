// SPDX-License-Identifier: Apache-2.0
// Single elements of matrices in memory, which each thread reads and writes, and values of a tile's
// rows and columns, which the lane with the line's first element stores.
#include <algorithm>

#include "dsl/layout/addressing.h"
#include "dsl/layout/placement.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/layout/tiles.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI {
namespace detail {

using ir::Value;

namespace {

// Reads and writes check only what is constant; the emulator checks the rest.
bool in_bounds(KernelState& state, const Tensor& tensor, const Scalar& row, const Scalar& col) {
  const auto inside = [&](const Scalar& index, const Scalar& size, std::string_view axis) {
    const auto i = index.constant(), n = size.constant();
    if (!i || (*i >= 0 && (!n || *i < *n))) return true;
    state.log.report("tile-bounds"_rule, fmt::format("{} {} is out of bounds of {}, which is {}",
                                                     axis, *i, tensor.name, tensor.layout.text()));
    return false;
  };
  return inside(row, tensor.layout.rows, "row") & inside(col, tensor.layout.cols, "column");
}

}  // namespace

bool is_element(KernelState& state, const Tensor& tensor, const Scalar& row, const Scalar& col) {
  if (!state.owns(tensor, tensor.name) || tensor.memory < 0) return false;
  if (!(state.is_index(row, "a row") & state.is_index(col, "a column"))) return false;
  if (bits(tensor.type) < 8) {
    state.log.report(
        "scalar-type"_rule,
        fmt::format(
            "{}: elements of type {} are smaller than a byte; load or store them as fragments",
            tensor.name, name(tensor.type)));
    return false;
  }
  return in_bounds(state, tensor, row, col);
}

Scalar widened_element(KernelState& state, ir::Value element) {
  if (element.type != s8 && element.type != u8) return state.scalar(element);
  const Scalar out = state.scalar(state.f().convert(element, element.type == s8 ? s32 : u32), 1,
                                  element.type == s8 ? ~std::uint64_t{0} : 0xff);
  state.widened.insert(HandleParts::value(out).id);
  return out;
}

Scalar one_of(KernelState& state, Scalar result, std::initializer_list<const Scalar*> from) {
  const bool of_bytes = std::ranges::all_of(from, [&](const Scalar* each) {
    if (const auto constant = each->constant()) return *constant >= -128 && *constant <= 255;
    return state.widened.contains(HandleParts::value(*each).id);
  });
  if (of_bytes) state.widened.insert(HandleParts::value(result).id);
  return result;
}

bool takes_low_bits(const KernelState& state, Type element, const Scalar& value) {
  return TypeSet{s8, u8}.has(element) && state_of(value) &&
         state.widened.contains(HandleParts::value(value).id);
}

namespace {

Scalar read_element(KernelState& state, const Tensor& from, const Scalar& row, const Scalar& col) {
  if (!is_element(state, from, row, col)) return bad_scalar();
  return widened_element(state, state.f().load(address_of(state, from, row, col), from.type));
}

Scalar read_element_if(KernelState& state, const Scalar& condition, const Tensor& from,
                       const Scalar& row, const Scalar& col) {
  const auto constant = condition.constant();
  if (constant && *constant) return read_element(state, from, row, col);
  const bool good = constant || state.is_condition(condition);
  if (!is_element(state, from, row, col) || !good) return bad_scalar();
  const Value holds =
      constant ? state.f().constant(Type::pred, std::int64_t{0}) : state.value(condition);
  return widened_element(state,
                         state.f().load_if(holds, address_of(state, from, row, col), from.type));
}

void write_element(KernelState& state, const Tensor& to, const Scalar& row, const Scalar& col,
                   const Scalar& value) {
  if (!is_element(state, to, row, col) || is_bad(value) ||
      (state_of(value) && !state.owns(value, "the value")))
    return;
  const bool narrows = takes_low_bits(state, to.type, value);
  if (value.type() != Type::none && bits(value.type()) != bits(to.type) && !narrows) {
    state.log.report(
        "scalar-type"_rule,
        fmt::format("element type mismatch: {} has elements of {}, the value is {}; convert() it",
                    to.name, name(to.type), name(value.type())));
    return;
  }
  const TypeSet numbers{u32, s32, u64, s64, f32, f64};
  if (numbers.has(value.type()) && numbers.has(to.type) &&
      info(value.type()).floating != info(to.type).floating) {
    state.log.report(
        "scalar-type"_rule,
        fmt::format("{} has elements of {}, the value is {}: its bits would be stored; "
                    "convert() it",
                    to.name, name(to.type), name(value.type())));
    return;
  }
  // Types of equal width are stored unchanged: an f16 as b16, a u32 as b32.
  const Value stored =
      value.type() == Type::none || narrows ? state.value(value, to.type) : state.value(value);
  state.f().store(written_address_of(state, to, row, col), stored);
  note_write(state, to);
}

void write_element_if(KernelState& state, const Scalar& condition, const Tensor& to,
                      const Scalar& row, const Scalar& col, const Scalar& value) {
  const auto constant = condition.constant();
  if (constant && *constant) return write_element(state, to, row, col, value);
  if (!constant && !state.is_condition(condition)) return;
  const Value holds =
      constant ? state.f().constant(Type::pred, std::int64_t{0}) : state.value(condition);
  state.f().if_then(holds, [&] { write_element(state, to, row, col, value); });
}

// Stores a value for each line of a tile to a vector of as many elements.
class LineStorer {
 public:
  LineStorer(Builder& k, KernelState& state, const Tensor& to, const WarpTile& of, Lines lines,
             Here at)
      : k_(k), state_(state), to_(to), of_(of), lines_(lines), at_(at) {}

  bool is_possible(const std::vector<Scalar>& values) const {
    const FragmentKind& kind = of_.fragment(0, 0).kind();
    const std::string_view what = lines_ == Lines::rows ? "row" : "column";
    const auto refused = [&](const Rule& rule, std::string message) {
      state_.log.report(rule, std::move(message));
      return false;
    };
    if (kind.operand != Operand::c || kind.shape.wmma)
      return refused("wrong-role"_rule,
                     fmt::format("store: expected values of the {}s of accumulators of mma.sync or "
                                 "wgmma, found {}",
                                 what, kind.text()));
    if (values.size() != line_count(of_, lines_))
      return refused("operand-count"_rule,
                     fmt::format("wrong number of {0} values: the tile has {1} {0}s per lane, "
                                 "found {2}",
                                 what, line_count(of_, lines_), values.size()));
    const int count = lines_ == Lines::rows ? of_.place().rows : of_.place().cols;
    std::int64_t rows = 0, cols = 0;
    if (constant_shape(to_, rows, cols) && rows * cols == count && (rows == 1 || cols == 1))
      return true;
    return refused("layout-mismatch"_rule,
                   fmt::format("store: expected a matrix of {0} x 1 or 1 x {0} elements, one for "
                               "each {1} of the tile; {2} is {3}",
                               count, what, to_.name, to_.layout.text()));
  }

  void store(const std::vector<Scalar>& values) {
    const LaneLines lanes = lane_lines(of_.fragment(0, 0).kind(), lines_);
    std::size_t next = 0;
    for (int j = 0; j < (lines_ == Lines::rows ? of_.down() : of_.across()); ++j)
      for (const int i : lanes.first) {
        const ElementPlace place = lines_ == Lines::rows ? element_place(k_, of_, j, 0, i, at_)
                                                         : element_place(k_, of_, 0, j, i, at_);
        store(values[next++], lines_ == Lines::rows ? place.row : place.col,
              lines_ == Lines::rows ? place.col : place.row);
      }
  }

 private:
  // The lane that has the first element of its line stores the line's value.
  void store(const Scalar& value, const Scalar& line, const Scalar& along) {
    const bool down = to_.layout.cols.constant() == 1;
    const Scalar row = down ? line : 0, col = down ? 0 : line;
    Scalar holds = along == 0;
    if (const auto inside = is_inside(state_, to_, row, col))
      holds = holds && state_.scalar(*inside);
    write_element_if(state_, holds, to_, row, col, value);
  }

  Builder& k_;
  KernelState& state_;
  const Tensor& to_;
  const WarpTile& of_;
  Lines lines_;
  Here at_;
};

template <typename Values>
void store_lines(KernelState& state, const Tensor& to, const Values& values, const WarpTile& of,
                 Lines lines, Here at) {
  state.at(at);
  auto k = builder_of(of, at);
  if (!k || !state.owns(to, to.name) || to.memory < 0) return;
  if (std::ranges::any_of(values, [](const Scalar& each) { return is_bad(each); })) return;
  const LineSource own = source_of(of, lines);
  if (!same_lines(state, &own, LineParts::source(values).get())) return;
  LineStorer storer(*k, state, to, of, lines, at);
  if (storer.is_possible(values)) storer.store(values);
}

}  // namespace
}  // namespace detail

using detail::Lines;
using detail::tensor_of;

Scalar Builder::read(const Global& from, const Scalar& row, const Scalar& col, Here at) {
  return state_->at(at), detail::read_element(*state_, tensor_of(from), row, col);
}
Scalar Builder::read(const Shared& from, const Scalar& row, const Scalar& col, Here at) {
  state_->at(at);
  state_->roles.note_read(detail::StageAccess::load);
  if (tensor_of(from).memory >= 0) note_read(*state_, tensor_of(from));
  return detail::read_element(*state_, tensor_of(from), row, col);
}
Scalar Builder::read_if(const Global& from, const Scalar& row, const Scalar& col,
                        const Scalar& condition, Here at) {
  state_->at(at);
  return detail::read_element_if(*state_, condition, tensor_of(from), row, col);
}
Scalar Builder::read_if(const Shared& from, const Scalar& row, const Scalar& col,
                        const Scalar& condition, Here at) {
  state_->at(at);
  state_->roles.note_read(detail::StageAccess::load);
  if (tensor_of(from).memory >= 0) note_read(*state_, tensor_of(from));
  return detail::read_element_if(*state_, condition, tensor_of(from), row, col);
}
void Builder::write(const Global& to, const Scalar& row, const Scalar& col, const Scalar& value,
                    Here at) {
  state_->at(at), detail::write_element(*state_, tensor_of(to), row, col, value);
}
void Builder::write(const Shared& to, const Scalar& row, const Scalar& col, const Scalar& value,
                    Here at) {
  state_->at(at), detail::write_element(*state_, tensor_of(to), row, col, value);
}
void Builder::write_if(const Global& to, const Scalar& row, const Scalar& col, const Scalar& value,
                       const Scalar& condition, Here at) {
  state_->at(at), detail::write_element_if(*state_, condition, tensor_of(to), row, col, value);
}
void Builder::write_if(const Shared& to, const Scalar& row, const Scalar& col, const Scalar& value,
                       const Scalar& condition, Here at) {
  state_->at(at), detail::write_element_if(*state_, condition, tensor_of(to), row, col, value);
}

void Builder::store(const Global& to, const RowValues& values, const WarpTile& of, Here at) {
  detail::store_lines(*state_, tensor_of(to), values, of, Lines::rows, at);
}
void Builder::store(const Shared& to, const RowValues& values, const WarpTile& of, Here at) {
  detail::store_lines(*state_, tensor_of(to), values, of, Lines::rows, at);
}
void Builder::store(const Global& to, const ColumnValues& values, const WarpTile& of, Here at) {
  detail::store_lines(*state_, tensor_of(to), values, of, Lines::cols, at);
}
void Builder::store(const Shared& to, const ColumnValues& values, const WarpTile& of, Here at) {
  detail::store_lines(*state_, tensor_of(to), values, of, Lines::cols, at);
}

}  // namespace tartan::TARTAN_ABI
