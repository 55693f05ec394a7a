// SPDX-License-Identifier: Apache-2.0
// Boxes of tensors of several dimensions: by TMA, or row by row.
#include <algorithm>
#include <numeric>

#include "dsl/layout/addressing.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/units/tma/tma_matrix.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

class TensorBox {
 public:
  TensorBox(Builder& k, KernelState& state, const GlobalTensor& from,
            const std::vector<Scalar>& origin, const std::vector<int>& size, const Tensor& to,
            const std::source_location& at)
      : k_(k), state_(state), from_(from), origin_(origin), size_(size), to_(to), at_(at) {}

  bool is_possible() {
    const auto refused = [&](const Rule& rule, std::string message) {
      state_.log.report(rule, std::move(message));
      return false;
    };
    const std::size_t rank = from_.extents().size();
    const Tensor& matrix = tensor_of(from_.rows());
    if (origin_.size() != rank || size_.size() != rank)
      return refused("operand-count"_rule,
                     fmt::format("copy_box: {} has {} dimensions, found an origin of {} and a size "
                                 "of {}",
                                 matrix.name, rank, origin_.size(), size_.size()));
    for (const Scalar& each : origin_)
      if (!state_.is_index(each, "the origin of a box")) return false;
    std::int64_t rows = 1;
    for (const int each : size_) {
      if (each < 1 || each > 1 << 16)
        return refused(
            "operand-count"_rule,
            fmt::format("copy_box: sizes of a box: expected 1 to 65536, found {}", each));
      rows = std::min(rows * each, std::int64_t{1} << 40);
    }
    if (matrix.type != to_.type)
      return refused("layout-mismatch"_rule,
                     fmt::format("copy does not convert types: {} is {}, {} is {}", matrix.name,
                                 name(matrix.type), to_.name, name(to_.type)));
    return require_shape(state_, to_, rows / size_.back(), size_.back(), "the box");
  }

  // Row by row: the elements of a row of the tile are contiguous in the tensor.
  void copy_by_rows(std::string refused) {
    const auto& extents = from_.extents();
    const auto row_of = [&](const Scalar& i) {
      Scalar number = 0, left = k_.convert(i, u32, at_);
      std::optional<Scalar> inside;
      std::int64_t below = 1;  // elements of the box in one step of this dimension
      for (std::size_t d = 1; d + 1 < size_.size(); ++d) below *= size_[d];
      for (std::size_t d = 0; d + 1 < size_.size(); ++d) {
        const Scalar at = as_signed(origin_[d]) + k_.convert(left / below, s32, at_);
        const Scalar valid = bits_of(at) < bits_of(as_signed(extents[d]));
        inside = inside ? *inside & valid : valid;
        number = d == 0 ? at : number * as_signed(extents[d]) + at;
        left = left % below;
        if (d + 2 < size_.size()) below /= size_[d + 1];
      }
      return select(*inside, number, -1);
    };
    const Global rows =
        from_.rows().window({0, origin_.back()}, {from_.rows().layout().rows, size_.back()}, at_);
    if (!refused.empty())
      state_.log.choose(fmt::format("box of {}", tensor_of(rows).name), "row by row",
                        "each row of the tile is contiguous in the tensor",
                        {"cp.async.bulk.tensor: " + refused});
    copy_tile(state_, tensor_of(rows), to_, {.row_of = row_of});
  }

  /// Why TMA cannot load it; empty if it can.
  std::string problem() {
    if (const std::string problem = tensor_problem(state_, to_, origin_.back()); !problem.empty())
      return problem;
    for (std::size_t d = 0; d + 1 < size_.size(); ++d)
      if (size_[d] > longest_in_box)
        return fmt::format("a box has at most {} elements along a dimension, found {}",
                           longest_in_box, size_[d]);
    if (const std::string problem = stage_boxes(to_, true, boxes_); !problem.empty())
      return problem;
    return tensor_numbers(state_, from_, numbers_);
  }

  void copy_by_tma() {
    ir::FunctionBuilder& f = state_.f();
    const ir::Pointer map = this->map();
    state_.memories.of(tensor_of(from_.rows())).ever_read = true;
    f.if_then(state_.fill->issuer, [&] {
      for (std::int64_t x = 0; x < size_.back(); x += boxes_.panel) {
        std::vector<ir::Value> coordinates{state_.value(as_signed(origin_.back()) + x, s32)};
        for (std::size_t d = size_.size() - 1; d-- > 0;)
          coordinates.push_back(state_.value(as_signed(origin_[d]), s32));
        f.tensor_load(address_of(state_, to_, 0, x), map, coordinates, state_.fill->full);
      }
    });
    std::int64_t bytes = bits(to_.type) / 8;
    for (const int each : size_) bytes *= each;
    state_.fill->writes.add_tma_load(static_cast<int>(bytes));
    state_.log.choose(fmt::format("copy {} to {}", tensor_of(from_.rows()).name, to_.name),
                      fmt::format("cp.async.bulk.tensor.{}d", size_.size()),
                      fmt::format("one thread issues {} of {} elements of a row; out-of-bounds "
                                  "elements are zero-filled",
                                  size_.back() / boxes_.panel, boxes_.panel));
  }

 private:
  Scalar as_signed(const Scalar& x) { return detail::as_signed(k_, state_, x, at_); }
  Scalar bits_of(const Scalar& x) { return k_.bitcast(x, u32, at_); }

  ir::Pointer map() {
    CompiledMap wanted{.extents = numbers_.extents,
                       .strides = numbers_.strides,
                       .box = {static_cast<int>(boxes_.panel)},
                       .swizzle = boxes_.swizzle};
    for (std::size_t d = size_.size() - 1; d-- > 0;) wanted.box.push_back(size_[d]);
    return tensor_map(state_, from_, to_, std::move(wanted));
  }

  Builder& k_;
  KernelState& state_;
  const GlobalTensor& from_;
  const std::vector<Scalar>& origin_;
  const std::vector<int>& size_;
  const Tensor& to_;
  std::source_location at_;
  StageBoxes boxes_;
  TensorNumbers numbers_;
};

}  // namespace
}  // namespace detail

GlobalTensor Builder::tensor(std::string name, Type type, std::vector<Scalar> extents, Here at) {
  state_->at(at);
  if (extents.size() < 2 || extents.size() > 5) {
    state_->log.report(
        "layout-mismatch"_rule,
        fmt::format("{}: dimensions of a tensor: expected 2 to 5, found {}", name, extents.size()));
    return {};
  }
  Scalar rows = extents[0];
  for (std::size_t d = 1; d + 1 < extents.size(); ++d) rows = rows * extents[d];
  Global matrix = global(std::move(name), type, row_major(rows, extents.back()), at);
  return {std::move(matrix), std::move(extents)};
}

void Builder::copy_box(const GlobalTensor& from, const Shared& to,
                       const std::vector<Scalar>& origin, const std::vector<int>& size, Here at) {
  state_->at(at);
  const detail::Tensor& matrix = detail::tensor_of(from.rows());
  const detail::Tensor& tile = detail::tensor_of(to);
  if (!state_->owns(matrix, matrix.name) || !state_->owns(tile, tile.name) || matrix.memory < 0 ||
      tile.memory < 0)
    return;
  detail::TensorBox box(*this, *state_, from, origin, size, tile, at);
  if (!box.is_possible()) return;
  const std::string problem = box.problem();
  if (!problem.empty()) return box.copy_by_rows(problem);
  detail::note_fill(*state_, tile);
  box.copy_by_tma();
}

}  // namespace tartan::TARTAN_ABI
