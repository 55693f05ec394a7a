// SPDX-License-Identifier: Apache-2.0
// Values that a kernel prints, and what it asserts.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "dsl/layout/fragment_map.h"
#include "dsl/layout/fragments.h"
#include "dsl/state/lanes.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/warp.h"

namespace tartan::TARTAN_ABI {
namespace {

using detail::KernelState;
using ir::Value;

// A value as printf takes it, and the conversion.
struct Printed {
  Value value;
  std::string_view conversion;
};

Printed printed(ir::FunctionBuilder& f, const Value& x) {
  if (x.type == Type::pred) return {f.select(x, f.constant(u32, 1), f.constant(u32, 0)), "%u"};
  if (x.type == f64) return {x, "%g"};
  if (info(x.type).floating && bits(x.type) <= 32 && bits(x.type) >= 16)
    return {f.convert(x.type == f32 ? x : f.convert(x, f32), f64), "%g"};
  if (bits(x.type) == 64) return {x, info(x.type).is_signed ? "%lld" : "%llu"};
  if (info(x.type).is_signed) return {bits(x.type) == 32 ? x : f.convert(x, s32), "%d"};
  if (x.type == b32) return {x, "0x%08x"};
  return {bits(x.type) == 32 ? x : f.convert(x, u32), "%u"};
}

// A name as a part of a format.
std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}

// Prints " = x y z" behind the name and where the thread is.
void print_line(KernelState& state, const std::string& head, std::vector<Value> values,
                std::span<const Value> printed_values) {
  ir::FunctionBuilder& f = state.f();
  std::string format = head + " =";
  for (const Value& each : printed_values) {
    const Printed one = printed(f, each);
    format += fmt::format(" {}", one.conversion);
    values.push_back(one.value);
  }
  f.print(format + "\n", values);
}

std::vector<Value> block_of(Builder& k, KernelState& state) {
  std::vector<Value> out;
  for (const Scalar& each : {k.block_x(), k.block_y(), k.block_z()})
    out.push_back(state.value(each, u32));
  return out;
}

// Whether the condition of a print is one; a constant says always or never.
bool is_condition(KernelState& state, const Scalar& when) {
  return when.constant() || state.is_condition(when);
}

// Calls `print` where the condition holds.
void where(KernelState& state, const Scalar& when, const std::function<void()>& print) {
  if (const auto constant = when.constant()) {
    if (*constant) print();
    return;
  }
  state.f().if_then(state.value(when), print);
}

// A fragment's matrix from `row` and `col` on, printed by lane 0, who gets the elements of others.
void print_matrix(Builder& k, KernelState& state, std::string_view name, const Fragment& fragment,
                  const Scalar& row, const Scalar& col, const Scalar& when, Here at) {
  const FragmentKind& kind = fragment.kind();
  const std::vector<Scalar> elements = k.elements(fragment, at);
  if (std::ranges::any_of(elements, [](const Scalar& x) { return detail::is_bad(x); })) return;
  const isa::Fragment shape = kind.fragment();
  struct Place {
    int lane = 0, element = 0;
  };
  std::vector<Place> places(static_cast<std::size_t>(shape.rows * shape.cols));
  for (int i = 0; i < static_cast<int>(elements.size()); ++i) {
    const detail::LaneMap map = detail::lane_map(kind, i);
    for (int lane = 0; lane < 32; ++lane) {
      isa::Coord to = map.origin;
      for (int bit = 0; bit < 5; ++bit)
        if (lane >> bit & 1)
          to.row += map.steps[static_cast<std::size_t>(bit)].row,
              to.col += map.steps[static_cast<std::size_t>(bit)].col;
      places[static_cast<std::size_t>(to.row * shape.cols + to.col)] = {lane, i};
    }
  }
  const Scalar first = k.lane() == 0;
  const std::string head = escaped(name) + "[row %d, columns %d to %d] (block %u,%u,%u, warp %u)";
  constexpr int most = 16;  // values of a line: vprintf takes 32 arguments
  for (int r = 0; r < shape.rows; ++r)
    for (int from = 0; from < shape.cols; from += most) {
      const int count = std::min(most, shape.cols - from);
      std::vector<Value> values;
      for (int c = from; c < from + count; ++c) {
        const Place& place = places[static_cast<std::size_t>(r * shape.cols + c)];
        const Scalar& x = elements[static_cast<std::size_t>(place.element)];
        values.push_back(state.value(shuffle(x, place.lane, at)));
      }
      const auto number = [&](const Scalar& x) {
        return x.constant() ? state.f().constant(s32, *x.constant())
                            : state.f().convert(state.value(x), s32);
      };
      where(state, first, [&] {
        where(state, when, [&] {
          std::vector<Value> head_values = {number(row + r), number(col + from),
                                            number(col + (from + count - 1))};
          for (const Value& each : block_of(k, state)) head_values.push_back(each);
          head_values.push_back(state.value(k.warp(), u32));
          print_line(state, head, std::move(head_values), values);
        });
      });
    }
}

// Whether a fragment may be printed: its lane map is known.
bool is_known(KernelState& state, const Fragment& fragment) {
  if (!state.owns(fragment, "the fragment") || detail::is_bad(fragment)) return false;
  if (!fragment.kind().shape.wmma) return true;
  state.log.report("no-instruction"_rule,
                   fmt::format("print(): lanes and elements of {} are the hardware's secret; "
                               "store() it, and print() elements that are read back",
                               fragment.kind().text()));
  return false;
}

}  // namespace

void Builder::print(std::string_view name, const Scalar& x, const Scalar& when, Here at) {
  state_->at(at);
  if (detail::is_bad(x) || detail::is_bad(when) || !is_condition(*state_, when)) return;
  const Value value = detail::is_constant(x) ? state_->value(x, s32) : state_->value(x);
  where(*state_, when, [&] {
    std::vector<Value> place = block_of(*this, *state_);
    place.push_back(state_->value(thread(), u32));
    print_line(*state_, escaped(name) + " (block %u,%u,%u, thread %u)", std::move(place),
               std::span(&value, 1));
  });
}

void Builder::print(std::string_view name, const Fragment& fragment, const Scalar& when, Here at) {
  state_->at(at);
  if (detail::is_bad(when) || !is_condition(*state_, when) || !is_known(*state_, fragment) ||
      !by_all_lanes(*state_, "print() of a fragment"))
    return;
  print_matrix(*this, *state_, name, fragment, 0, 0, when, at);
}

void Builder::print(std::string_view name, const WarpTile& tile, const Scalar& when, Here at) {
  state_->at(at);
  if (detail::is_bad(when) || !is_condition(*state_, when) ||
      !by_all_lanes(*state_, "print() of a tile"))
    return;
  for (int i = 0; i < tile.down(); ++i)
    for (int j = 0; j < tile.across(); ++j) {
      const Fragment fragment = tile.fragment(i, j);
      if (!is_known(*state_, fragment)) return;
      const isa::Fragment shape = fragment.kind().fragment();
      print_matrix(*this, *state_, name, fragment,
                   tile.place().row + tile.place().down(i, shape.rows),
                   tile.place().col + j * shape.cols, when, at);
    }
}

void Builder::assert_that(const Scalar& condition, std::string_view text, Here at) {
  state_->at(at);
  if (detail::is_bad(condition)) return;
  const auto constant = condition.constant();
  if (constant && *constant) return;
  if (!constant && !state_->is_condition(condition)) return;
  const Place place = state_->log.place();
  const std::string file = place.file.substr(place.file.rfind('/') + 1);
  const auto fail = [&] { state_->f().fail_assertion(std::string(text), file, place.line); };
  if (constant) return fail();
  ir::FunctionBuilder& f = state_->f();
  f.if_then(f.select(state_->value(condition), f.constant(Type::pred, std::int64_t{0}),
                     f.constant(Type::pred, std::int64_t{1})),
            fail);
}

}  // namespace tartan::TARTAN_ABI
