// SPDX-License-Identifier: Apache-2.0
// Copies from global to shared memory by TMA, box by box (cp.async.bulk.tensor).
#include <algorithm>

#include "compiler/support/counted.h"
#include "dsl/addressing.h"
#include "dsl/indices.h"
#include "dsl/operations.h"
#include "dsl/tma_matrix.h"
#include "tartan/dsl/math.h"

namespace tartan::inline TARTAN_ABI::detail {
namespace {

constexpr std::int64_t longest = longest_in_box;

class BoxCopier {
 public:
  BoxCopier(KernelState& state, const Tensor& from, const Tensor& to)
      : state_(state),
        from_(from),
        to_(to),
        matrix_(state, from),
        line_(*(matrix_.is_row_major() ? to.layout.cols : to.layout.rows).constant()),
        lines_(*(matrix_.is_row_major() ? to.layout.rows : to.layout.cols).constant()) {}

  /// Why TMA cannot copy it; empty if it can.
  std::string problem() {
    if (!state_.fill.starts_tma.valid() && state_.config.has_tma())
      return "TMA loads fill stages of a warp-specialized pipeline only";
    const std::string global = matrix_.problem();
    if (!global.empty()) return global;
    if (from_.layout.major() != to_.layout.major())
      return fmt::format("elements contiguous in {} are not contiguous in {}", from_.layout.text(),
                         to_.layout.text());
    return shared_problem();
  }

  void copy() {
    const Share share = this->share();
    const Heights heights = this->heights(share);
    const bool rounds = state_.memories.of(to_).rounded_to_tf32;
    state_.memories.of(from_).ever_read = true;
    const auto map = [&](std::int64_t lines) {
      return matrix_.map(static_cast<int>(width_), static_cast<int>(lines), swizzle_,
                         rounds ? tf32 : Type::none);
    };
    const codegen::Pointer whole = map(heights.both()),
                           first = heights.second ? map(heights.first) : whole,
                           second = heights.second ? map(heights.second) : whole;
    const auto each_box = [&](const Scalar& along, const Scalar& line) {
      if (!heights.second) return load(whole, along, line, heights.both(), share.blocks);
      const Scalar end = matrix_.outer() + line + heights.both();
      const auto when = [&](const Scalar& condition, const std::function<void()>& loads) {
        state_.f().if_then(state_.value(condition, Type::pred), loads);
      };
      when(end <= *matrix_.lines(),
           [&] { load(whole, along, line, heights.both(), share.blocks); });
      when(end > *matrix_.lines(), [&] {
        load(first, along, line, heights.first, share.blocks);
        load(second, along, line + heights.first, heights.second, share.blocks);
      });
    };
    state_.f().if_then(state_.fill.starts_tma, [&] {
      for (std::int64_t x = 0; x < share.line; x += width_)
        for (std::int64_t y = 0; y < share.lines; y += heights.both())
          each_box(share.along + x, share.first + y);
    });
    const std::int64_t bytes = line_ * lines_ * bits(from_.type) / 8;
    state_.fill.tma_bytes += static_cast<int>(bytes);
    const bool shared = share.blocks.valid();
    state_.fill.by_cluster |= shared;
    constexpr std::string_view policies[] = {"", "; L2 evicts them first", "; L2 evicts them last"};
    const std::string_view evicts = policies[static_cast<int>(state_.fill.eviction)];
    const std::int64_t boxes = share.line / width_ * (share.lines / heights.both());
    const std::string at_edge =
        heights.second ? fmt::format(", at the edge {} and {}", heights.first, heights.second) : "";
    state_.log.choose(
        fmt::format("copy {} to {}", from_.name, to_.name),
        fmt::format("cp.async.bulk.tensor{}{}, boxes of {} x {}{}",
                    shared ? ".multicast::cluster" : "", evicts.empty() ? "" : ".L2::cache_hint",
                    width_, heights.both(), at_edge),
        fmt::format("one thread issues {} of {} bytes{}; {}{}{}", counted(boxes, "TMA load"),
                    width_ * heights.both() * bits(from_.type) / 8, shared ? ctas() : "",
                    repeats_lines() || repeats_along()
                        ? "beyond the edge they repeat what is inside"
                        : "out-of-bounds elements are zero-filled",
                    rounds ? "; rounded to tf32 by TMA" : "", evicts),
        std::move(refused_));
  }

 private:
  std::string shared_problem() {
    StageBoxes boxes;
    const std::string problem = stage_boxes(to_, matrix_.is_row_major(), boxes, true);
    width_ = boxes.panel * boxes.panels, swizzle_ = boxes.swizzle;
    if (problem.empty() && lines_ > longest && lines_ % longest)
      return fmt::format("its boxes do not fit {}", to_.layout.text());
    return problem.empty() && boxes.panels > 1 ? matrix_.divide_lines(boxes.panel) : problem;
  }

  // What this CTA loads by TMA: the whole tile, or its share of a multicast to all blocks of the
  // cluster. Shares begin at multiples of the swizzle's period.
  struct Share {
    std::int64_t line, lines;  // elements of a line, and lines
    Scalar along = 0, first = 0;
    codegen::Value blocks = {};  // blocks that receive it, one bit each; none: this one
  };
  // Lines of a box; at the matrix's edge, of the two that it consists of there.
  struct Heights {
    std::int64_t first, second = 0;
    std::int64_t both() const { return first + second; }
  };
  Heights heights(const Share& share) const {
    constexpr std::int64_t period = 8;  // lines, of the swizzle
    const std::int64_t whole = std::min(share.lines, longest);
    const Scalar begin = matrix_.outer() + share.first;
    if (!repeats_lines() || begin.constant().value_or(begin.multiple()) % whole) return {whole};
    const std::int64_t inside = (*matrix_.lines() % whole + period - 1) / period * period;
    if (inside == 0 || inside >= whole) return {whole};
    return {inside, whole - inside};
  }

  // Whether a tile may lie beyond the matrix's last line, or the end of its lines, and may have
  // others there.
  bool repeats_lines() const {
    return (matrix_.is_row_major() ? from_.any_rows_outside : from_.any_cols_outside) &&
           matrix_.lines().value_or(0) % lines_ != 0;
  }
  bool repeats_along() const {
    return (matrix_.is_row_major() ? from_.any_cols_outside : from_.any_rows_outside) &&
           matrix_.length().value_or(0) % line_ != 0;
  }

  // A box of this tile that starts at element `along` of line `first`.
  void load(codegen::Pointer map, const Scalar& along, const Scalar& first, std::int64_t lines,
            codegen::Value blocks) {
    const bool is_row_major = matrix_.is_row_major();
    const Scalar row = is_row_major ? first : along, col = is_row_major ? along : first;
    Scalar inner = matrix_.inner() + along, outer = matrix_.outer() + first;
    // A tile's first box begins inside.
    if (repeats_lines() && first.constant() != 0)
      outer = select(outer < *matrix_.lines(), outer,
                     std::max(*matrix_.lines() - lines, std::int64_t{0}));
    if (repeats_along() && along.constant() != 0)
      inner = select(inner < *matrix_.length(), inner, (*matrix_.length() - 1) / width_ * width_);
    state_.f().tensor_load(address_of(state_, to_, row, col), map,
                           matrix_.coordinates_at(inner, outer), state_.fill.barrier, blocks,
                           state_.fill.eviction);
  }

  // Those that need the tile: how many, which of them this one is, and their bits.
  struct Receivers {
    int count;
    Scalar number;
    codegen::Value bits;
  };
  Receivers receivers() {
    codegen::FunctionBuilder& f = state_.f();
    const int blocks = state_.config.options.cluster, rows = cluster_rows(state_),
              cols = blocks / rows;
    const Scalar rank = block_of_cluster(state_);
    const auto bits = [&](std::uint32_t of_first, const Scalar& first) {
      const codegen::Value all = f.constant(u32, std::int64_t{of_first});
      return first.constant() ? all : f.shift_left(all, state_.value(first, u32));
    };
    if (state_.fill.among == Among::row) {
      std::uint32_t first = 0;
      for (int i = 0; i < cols; ++i) first |= 1U << (i * rows);
      return {cols, rank / rows, bits(first, rows == 1 ? Scalar(0) : rank % rows)};
    }
    if (state_.fill.among == Among::column && cols > 1)
      return {rows, rank % rows, bits((1U << rows) - 1, rank / rows * rows)};
    return {blocks, rank, bits((1U << blocks) - 1, 0)};
  }
  const char* ctas() const {
    if (state_.config.options.cluster_columns > 1 && state_.fill.among == Among::row)
      return " to all CTAs in its row of the cluster";
    if (state_.config.options.cluster_columns > 1 && state_.fill.among == Among::column)
      return " to all CTAs in its column of the cluster";
    return " to all CTAs of the cluster";
  }
  Share share() {
    Share out{line_, lines_};
    if (!state_.fill.multicasts || state_.config.options.cluster == 1) return out;
    const Arch arch = state_.config.target.arch;
    if (arch.suffix == 0 || arch.sm >= 120) {
      refused_.push_back(
          fmt::format(".multicast::cluster: NVIDIA's assembler advises it only for sm_90a, "
                      "sm_100a, sm_103a, sm_110a and their families, the target is {}",
                      arch.text()));
      return out;
    }
    const Receivers to = receivers();
    const int blocks = to.count;
    if (blocks == 1) return out;
    const std::int64_t lines = lines_ / blocks, line = line_ / blocks;
    if (lines_ % (8 * blocks) == 0 && (lines <= longest || lines % longest == 0)) {
      out.lines = lines, out.first = to.number * lines;
    } else if (line_ % (width_ * blocks) == 0) {
      out.line = line, out.along = to.number * line;
    } else {
      refused_.push_back(
          fmt::format(".multicast::cluster: neither {} rows in groups of 8 nor {} adjacent boxes "
                      "divide among {} CTAs",
                      lines_, line_ / width_, blocks));
      return out;
    }
    out.blocks = to.bits;
    return out;
  }

  KernelState& state_;
  const Tensor& from_;
  const Tensor& to_;
  TmaMatrix matrix_;
  std::vector<std::string> refused_;
  std::int64_t line_, lines_;  // of the tile: elements in one, and how many
  std::int64_t width_ = 1;     // of a box: elements of a line
  int swizzle_ = 0;
};

}  // namespace

bool copy_by_tma(KernelState& state, const Tensor& from, const Tensor& to,
                 std::vector<std::string>& refused) {
  if (state.roles.current != Role::producer || !state.fill.asynchronous) return false;
  if (state.flights.depth() != state.roles.fill_depth) {
    refused.emplace_back("cp.async.bulk.tensor: it is in a loop or condition of the fill callback");
    return false;
  }
  BoxCopier copier(state, from, to);
  if (const std::string problem = copier.problem(); !problem.empty()) {
    refused.push_back("cp.async.bulk.tensor: " + problem);
    return false;
  }
  copier.copy();
  return true;
}

}  // namespace tartan::inline TARTAN_ABI::detail
