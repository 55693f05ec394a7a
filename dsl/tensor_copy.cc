// SPDX-License-Identifier: Apache-2.0
// Copies from global to shared memory by the copy engine, box by box (cp.async.bulk.tensor).
#include <algorithm>

#include "dsl/state.h"

namespace tartan::detail {
namespace {

constexpr std::int64_t longest = 256;  // elements of a box along any dimension

Type unsigned_of(int bits) {
  return bits == 8 ? Type::u8 : bits == 16 ? Type::u16 : bits == 32 ? u32 : u64;
}

class BoxCopier {
 public:
  BoxCopier(KernelState& state, const Tensor& from, const Tensor& to)
      : state_(state),
        from_(from),
        to_(to),
        by_rows_(from.layout.major() != Major::col),
        line_(*(by_rows_ ? to.layout.cols : to.layout.rows).constant()),
        lines_(*(by_rows_ ? to.layout.rows : to.layout.cols).constant()) {}

  /// Why the copy engine cannot do it; empty where it can.
  std::string problem() {
    const int element = bits(from_.type);
    if (!state_.has_copy_engine())
      return fmt::format("it exists from sm_90 and PTX 8.0 on, the target is {}",
                         state_.target.text());
    if (!state_.starts_engine.valid())
      return "it fills stages of a pipeline between producers and consumers";
    if (element < 8) return fmt::format("it takes elements of 8 bits and more, not {}", element);
    if (from_.layout.is_nested() || from_.layout.major() == Major::none ||
        from_.layout.major() != to_.layout.major())
      return fmt::format("neighbours in {} are no neighbours in {}", from_.layout.text(),
                         to_.layout.text());
    if (across(from_.layout).multiple() * element % 128)
      return fmt::format("its lines begin on multiples of 16 bytes, {} has them {} bytes apart",
                         from_.name, across(from_.layout).multiple() * element / 8);
    const std::string shared = shared_problem();
    return shared.empty() ? numbers_problem() : shared;
  }

  void copy() {
    const codegen::Pointer map = this->map();
    const std::int64_t height = std::min(lines_, longest);
    state_.f().if_then(state_.starts_engine, [&] {
      for (std::int64_t along = 0; along < line_; along += panel_)
        for (std::int64_t first = 0; first < lines_; first += height) {
          const Scalar row = by_rows_ ? first : along, col = by_rows_ ? along : first;
          state_.f().tensor_load(state_.pointer(to_, row, col), map, coordinates(along, first),
                                 state_.fill_barrier);
        }
    });
    const std::int64_t bytes = line_ * lines_ * bits(from_.type) / 8;
    state_.engine_bytes += static_cast<int>(bytes);
    state_.choose(
        fmt::format("copy {} to {}", from_.name, to_.name),
        fmt::format("cp.async.bulk.tensor, boxes of {} x {}", panel_, height),
        fmt::format("one thread starts {} copies of {} bytes; what hangs over the edge is zero",
                    line_ / panel_ * (lines_ / height), panel_ * height * bits(from_.type) / 8));
  }

 private:
  const Scalar& across(const Layout& layout) const {
    return by_rows_ ? layout.row_stride : layout.col_stride;
  }

  // A box is `panel_` elements of each line, one line behind the other in shared memory, swizzled
  // as the copy engine does.
  std::string shared_problem() {
    const Layout& layout = to_.layout;
    const int element = bits(to_.type);
    panel_ = layout.run() ? layout.run() : line_;
    const std::int64_t bytes = panel_ * element / 8;
    const auto stride = across(layout).constant();
    const Swizzle swizzle = layout.swizzle;
    if (to_.offset.constant() != 0) return fmt::format("{} is a part of its stage", to_.name);
    if (stride != panel_ || line_ % panel_)
      return fmt::format("lines in {} do not lie one behind the other", layout.text());
    if (bytes % 16 || panel_ > longest || (lines_ > longest && lines_ % longest))
      return fmt::format("no boxes of it fit {}", layout.text());
    const bool spans = bytes == 32 || bytes == 64 || bytes == 128;
    const int chunks = bytes == 128 ? 3 : bytes == 64 ? 2 : 1;
    if (swizzle.bits && !(spans && swizzle.bits == chunks && swizzle.shift == 3 &&
                          (element << swizzle.base) == 128))
      return fmt::format("it has no swizzle like that of {}", layout.text());
    swizzle_ = swizzle.bits ? static_cast<int>(bytes) : 0;
    return {};
  }

  // What the map says must be known when the kernel is launched.
  std::string numbers_problem() {
    const auto length = state_.map_number(by_rows_ ? from_.whole_cols : from_.whole_rows),
               count = state_.map_number(by_rows_ ? from_.whole_rows : from_.whole_cols),
               stride = state_.map_number(across(from_.layout));
    if (!length || !count || !stride)
      return fmt::format("the size of {} is computed by the kernel", from_.name);
    extents_ = {*length, *count};
    strides_ = {*stride};
    if (!from_.matrix_at) return {};
    // A batch is a third dimension, as long as it may be: how many there are, the launch knows.
    MapNumber apart{count->value * stride->value, count->params};
    apart.params.insert(apart.params.end(), stride->params.begin(), stride->params.end());
    if (from_.matrix_stride) {
      const auto given = state_.map_number(*from_.matrix_stride);
      if (!given || from_.matrix_stride->multiple() * bits(from_.type) % 128)
        return fmt::format("matrices of {} are not surely a multiple of 16 bytes apart",
                           from_.name);
      apart = *given;
    }
    extents_.push_back({std::int64_t{1} << 31, {}});
    strides_.push_back(apart);
    return {};
  }

  std::vector<codegen::Value> coordinates(std::int64_t along, std::int64_t first) const {
    const Scalar inner = (by_rows_ ? from_.col_at : from_.row_at) + along,
                 outer = (by_rows_ ? from_.row_at : from_.col_at) + first;
    std::vector<codegen::Value> out{state_.value(inner, u32), state_.value(outer, u32)};
    if (from_.matrix_at) out.push_back(state_.value(*from_.matrix_at, u32));
    return out;
  }

  // The same map for all copies of such boxes.
  codegen::Pointer map() {
    const Memory& memory = state_.memories[static_cast<std::size_t>(from_.memory)];
    CompiledMap wanted{.of = memory.param, .type = unsigned_of(bits(from_.type))};
    wanted.extents = extents_, wanted.strides = strides_, wanted.swizzle = swizzle_;
    wanted.box = {static_cast<int>(panel_), static_cast<int>(std::min(lines_, longest))};
    if (from_.matrix_at) wanted.box.push_back(1);
    for (std::size_t i = 0; i < state_.maps.size(); ++i) {
      const CompiledMap& each = state_.maps[i];
      if (state_.map_uses[i].memory == from_.memory && each.box == wanted.box &&
          each.swizzle == wanted.swizzle)
        return state_.map_uses[i].map;
    }
    wanted.name = from_.name + "_map";
    state_.maps.push_back(std::move(wanted));
    state_.map_uses.push_back({from_.memory, state_.f().add_tensor_map()});
    return state_.map_uses.back().map;
  }

  KernelState& state_;
  const Tensor& from_;
  const Tensor& to_;
  bool by_rows_;
  std::int64_t line_, lines_;  // of the tile: elements in one, and how many
  std::int64_t panel_ = 0;
  int swizzle_ = 0;
  std::vector<MapNumber> extents_, strides_;
};

}  // namespace

bool KernelState::copy_boxes(const Tensor& from, const Tensor& to,
                             std::vector<std::string>& refused) {
  if (role != Role::producer || !asynchronous) return false;
  BoxCopier copier(*this, from, to);
  if (const std::string problem = copier.problem(); !problem.empty()) {
    refused.push_back("cp.async.bulk.tensor: " + problem);
    return false;
  }
  copier.copy();
  return true;
}

std::optional<MapNumber> KernelState::map_number(const Scalar& scalar) const {
  if (const auto constant = scalar.constant()) return MapNumber{*constant, {}};
  if (scalar.addend_ || scalar.wraps_) return std::nullopt;
  const auto at = std::find(param_values.begin(), param_values.end(), scalar.value_.id);
  if (at == param_values.end()) return std::nullopt;
  return MapNumber{1, {static_cast<int>(at - param_values.begin())}};
}

}  // namespace tartan::detail
