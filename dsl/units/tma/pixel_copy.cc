// SPDX-License-Identifier: Apache-2.0
// Pixels under a tap of a filter: by TMA's im2col mode, or row by row.
#include <algorithm>

#include "dsl/layout/addressing.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/units/ptx/assembly.h"
#include "dsl/units/tma/tma_matrix.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

constexpr std::int64_t most_pixels = 1024;  // of one TMA load
constexpr int most_stride = 8;

class PixelCopy {
 public:
  PixelCopy(Builder& k, KernelState& state, const GlobalTensor& from, const Filter& filter,
            const std::vector<Scalar>& tap, const Scalar& channel, const Tensor& to,
            const std::source_location& at)
      : k_(k),
        state_(state),
        from_(from),
        filter_(filter),
        tap_(tap),
        channel_(channel),
        to_(to),
        at_(at),
        dimensions_(from.extents().size() - 2) {}

  bool is_possible() {
    const Tensor& matrix = tensor_of(from_.rows());
    if (from_.extents().size() < 3)
      return refused("operand-count"_rule,
                     fmt::format("copy_pixels: expected images of 1 to 3 dimensions, {} has {} "
                                 "dimensions in all: images, their pixels, channels",
                                 matrix.name, from_.extents().size()));
    return is_filter() && has_taps() && state_.is_index(channel_, "a channel") && has_type();
  }

  // Row by row: the channels of a pixel are contiguous.
  void copy_by_rows(const Scalar& first, const std::string& problem) {
    stop_beyond_filter();
    const auto row_of = [&](const Scalar& i) {
      const Position at = position(first + k_.convert(i, u32, at_));
      Scalar number = as_signed(at.image);
      Scalar inside = at.image < unsigned_extent(0);
      for (std::size_t d = 0; d < dimensions_; ++d) {
        const Scalar pixel = at.pixel[d] + as_signed(tap_[d]) * filter_.dilation_of(d);
        const Scalar extent = as_signed(from_.extents()[d + 1]);
        inside = inside & (k_.bitcast(pixel, u32, at_) < k_.bitcast(extent, u32, at_));
        number = number * extent + pixel;
      }
      return select(inside, number, -1);
    };
    const Global& rows = from_.rows();
    state_.log.choose(fmt::format("pixels of {}", tensor_of(rows).name), "row by row",
                      "the channels of a pixel are contiguous",
                      {"cp.async.bulk.tensor: " + problem});
    copy_tile(state_, tensor_of(rows.window({0, channel_}, {rows.layout().rows, columns()}, at_)),
              to_, {.row_of = row_of});
  }

  /// Why TMA cannot load them; empty if it can.
  std::string problem() {
    if (const std::string problem = tensor_problem(state_, to_, channel_); !problem.empty())
      return problem;
    if (rows() > most_pixels)
      return fmt::format("it loads at most {} pixels, found {}", most_pixels, rows());
    // Corners and offsets share 16 bits among their dimensions.
    const int most = dimensions_ == 1 ? 1 << 15 : dimensions_ == 2 ? 1 << 7 : 1 << 4;
    for (std::size_t d = 0; d < dimensions_; ++d) {
      const int offset = (filter_.size[d] - 1) * filter_.dilation_of(d);
      if (lower(d) < -most || upper(d) < -most || upper(d) >= most || offset >= 2 * most)
        return fmt::format("its corners are -{} to {}, its offsets below {}", most, most - 1,
                           2 * most);
    }
    if (const std::string problem = stage_boxes(to_, true, boxes_); !problem.empty())
      return problem;
    return tensor_numbers(state_, from_, numbers_);
  }

  void copy_by_tma(const Scalar& first) {
    const ir::Pointer map = this->map();
    state_.memories.of(tensor_of(from_.rows())).ever_read = true;
    ir::FunctionBuilder& f = state_.f();
    f.if_then(state_.fill->issuer, [&] {
      stop_beyond_filter();
      const Position at = position(first);
      std::vector<ir::Value> pixel, offsets;  // the innermost dimension first
      for (std::size_t d = dimensions_; d-- > 0;) {
        pixel.push_back(state_.value(at.pixel[d], s32));
        const Scalar offset = k_.convert(tap_[d], u32, at_) * filter_.dilation_of(d);
        offsets.push_back(state_.value(offset, u32));
      }
      for (std::int64_t x = 0; x < columns(); x += boxes_.panel) {
        std::vector<ir::Value> coordinates{state_.value(as_signed(channel_) + x, s32)};
        coordinates.insert(coordinates.end(), pixel.begin(), pixel.end());
        coordinates.push_back(state_.value(at.image, u32));
        f.pixels_load(address_of(state_, to_, 0, x), map, coordinates, offsets, state_.fill->full);
      }
    });
    state_.fill->writes.add_tma_load(static_cast<int>(rows() * columns() * bits(to_.type) / 8));
    state_.log.choose(fmt::format("copy {} to {}", tensor_of(from_.rows()).name, to_.name),
                      fmt::format("cp.async.bulk.tensor.{}d.im2col", dimensions_ + 2),
                      fmt::format("one thread issues {} of {} pixels with {} channels; pixels "
                                  "outside of their image are zero-filled",
                                  columns() / boxes_.panel, rows(), boxes_.panel));
  }

 private:
  // A position of the filter: its image, and the pixel under its first tap.
  struct Position {
    Scalar image;
    std::vector<Scalar> pixel;  // s32, in the tensor's order
  };

  bool refused(const Rule& rule, std::string message) {
    state_.log.report(rule, std::move(message));
    return false;
  }

  bool is_filter() {
    const auto is_list = [&](std::string_view what, const std::vector<int>& list, int least,
                             int most, bool optional) {
      if (list.size() != dimensions_ && !(optional && list.empty()))
        return refused("operand-count"_rule,
                       fmt::format("copy_pixels: {} of a filter: expected {}, one for each "
                                   "dimension of an image, found {}",
                                   what, dimensions_, list.size()));
      for (const int each : list)
        if (each < least || each > most)
          return refused("immediate-range"_rule,
                         fmt::format("copy_pixels: {} of a filter: expected {} to {}, found {}",
                                     what, least, most, each));
      return true;
    };
    constexpr int most = 1 << 15;
    return is_list("sizes", filter_.size, 1, most, false) &&
           is_list("strides", filter_.stride, 1, most_stride, true) &&
           is_list("paddings", filter_.padding, 0, most, true) &&
           is_list("dilations", filter_.dilation, 1, most, true);
  }

  bool has_taps() {
    if (tap_.size() != dimensions_)
      return refused("operand-count"_rule,
                     fmt::format("copy_pixels: a tap: expected {} numbers, one for each dimension "
                                 "of an image, found {}",
                                 dimensions_, tap_.size()));
    for (std::size_t d = 0; d < dimensions_; ++d) {
      if (!state_.is_index(tap_[d], "a tap")) return false;
      const auto known = tap_[d].constant();
      if (known && (*known < 0 || *known >= filter_.size[d]))
        return refused("immediate-range"_rule,
                       fmt::format("copy_pixels: a tap: expected 0 to {}, found {}",
                                   filter_.size[d] - 1, *known));
    }
    return true;
  }

  // Taps that are known at run time only: TMA would read pixels beside the filter's. No assertion,
  // whose call would cost producers the registers that they give away.
  void stop_beyond_filter() {
    Scalar beyond = 0;
    for (std::size_t d = 0; d < dimensions_; ++d)
      if (!tap_[d].constant()) beyond = beyond || k_.convert(tap_[d], u32, at_) >= filter_.size[d];
    if (!beyond.constant())
      state_.f().if_then(state_.value(beyond),
                         [&] { assembled(state_, "trap;", {}, {}, Effect::any); });
  }

  bool has_type() {
    const Tensor& matrix = tensor_of(from_.rows());
    if (matrix.type != to_.type)
      return refused("layout-mismatch"_rule,
                     fmt::format("copy does not convert types: {} is {}, {} is {}", matrix.name,
                                 name(matrix.type), to_.name, name(to_.type)));
    return true;
  }

  std::int64_t rows() const { return *to_.layout.rows.constant(); }
  std::int64_t columns() const { return *to_.layout.cols.constant(); }
  int lower(std::size_t d) const { return -filter_.padding_of(d); }
  int upper(std::size_t d) const {
    return filter_.padding_of(d) - (filter_.size[d] - 1) * filter_.dilation_of(d);
  }

  Scalar as_signed(const Scalar& x) { return detail::as_signed(k_, state_, x, at_); }
  Scalar unsigned_extent(std::size_t d) { return k_.convert(from_.extents()[d], u32, at_); }

  Position position(const Scalar& number) {
    Position out;
    Scalar left = k_.convert(number, u32, at_);
    for (std::size_t d = dimensions_; d-- > 0;) {
      const Scalar extent = as_signed(from_.extents()[d + 1]);
      const Scalar count = k_.convert(filter_.positions(d, extent), u32, at_);
      const Scalar pixel =
          k_.convert(left % count * filter_.stride_of(d), s32, at_) - filter_.padding_of(d);
      out.pixel.insert(out.pixel.begin(), pixel);
      left = left / count;
    }
    out.image = left;
    return out;
  }

  ir::Pointer map() {
    CompiledMap wanted{.extents = numbers_.extents,
                       .strides = numbers_.strides,
                       .box = {static_cast<int>(boxes_.panel), static_cast<int>(rows())},
                       .swizzle = boxes_.swizzle,
                       .pixels = CompiledMap::Pixels{}};
    for (std::size_t d = dimensions_; d-- > 0;) {
      wanted.pixels->lower.push_back(lower(d));
      wanted.pixels->upper.push_back(upper(d));
      wanted.pixels->steps.push_back(filter_.stride_of(d));
    }
    return tensor_map(state_, from_, to_, std::move(wanted));
  }

  Builder& k_;
  KernelState& state_;
  const GlobalTensor& from_;
  const Filter& filter_;
  const std::vector<Scalar>& tap_;
  const Scalar& channel_;
  const Tensor& to_;
  std::source_location at_;
  std::size_t dimensions_;  // of an image
  StageBoxes boxes_;
  TensorNumbers numbers_;
};

}  // namespace
}  // namespace detail

void Builder::copy_pixels(const GlobalTensor& from, const Shared& to, const Filter& filter,
                          const Scalar& first, const std::vector<Scalar>& tap,
                          const Scalar& channel, Here at) {
  state_->at(at);
  const detail::Tensor& matrix = detail::tensor_of(from.rows());
  const detail::Tensor& tile = detail::tensor_of(to);
  if (!state_->owns(matrix, matrix.name) || !state_->owns(tile, tile.name) || matrix.memory < 0 ||
      tile.memory < 0)
    return;
  detail::PixelCopy copy(*this, *state_, from, filter, tap, channel, tile, at);
  if (!copy.is_possible() || !state_->is_index(first, "a position of a filter")) return;
  const std::string problem = copy.problem();
  if (!problem.empty()) return copy.copy_by_rows(first, problem);
  detail::note_fill(*state_, tile);
  copy.copy_by_tma(first);
}

}  // namespace tartan::TARTAN_ABI
