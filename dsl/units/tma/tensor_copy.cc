// SPDX-License-Identifier: Apache-2.0
// Copies from global to shared memory by TMA, box by box (cp.async.bulk.tensor).
#include <algorithm>

#include "compiler/support/counted.h"
#include "dsl/layout/addressing.h"
#include "dsl/state/operations.h"
#include "dsl/units/tma/tma_matrix.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/math.h"
#include "tartan/isa/advice.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

constexpr std::int64_t longest = longest_in_box;

class BoxCopier {
 public:
  BoxCopier(KernelState& state, const Tensor& from, const Tensor& to, const TmaHints& hints)
      : state_(state),
        from_(from),
        to_(to),
        hints_(hints),
        matrix_(state, from),
        line_(*(matrix_.is_row_major() ? to.layout.cols : to.layout.rows).constant()),
        lines_(*(matrix_.is_row_major() ? to.layout.rows : to.layout.cols).constant()) {}

  /// Why TMA cannot copy it; empty if it can.
  std::string problem() {
    if (!state_.fill->issuer.valid() && state_.config.has_tma())
      return "TMA loads fill stages of a warp-specialized pipeline only";
    const std::string global = matrix_.problem();
    if (!global.empty()) return global;
    if (from_.layout.major() != to_.layout.major())
      return fmt::format("elements contiguous in {} are not contiguous in {}", from_.layout.text(),
                         to_.layout.text());
    return shared_problem();
  }

  /// Whether a promise of the description, multiple_of(), would let it.
  bool lacks_promise() const { return matrix_.lacks_promise(); }

  void copy() {
    const Share share = this->share();
    state_.memories.of(from_).ever_read = true;
    state_.f().if_then(state_.fill->issuer, [&] { load(share); });
    state_.fill->writes.add_tma_load(static_cast<int>(line_ * lines_ * bits(from_.type) / 8),
                                     share.sharing);
    tell(share);
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
    std::int64_t line, lines;  // elements of a line, and lines, of the larger shares
    Scalar along = 0, first = 0;
    ir::Value blocks = {};  // blocks that receive it, one bit each; none: this one
    Sharing sharing = Sharing::none;
    // Whether this CTA's share has a period less; none: all are alike.
    std::optional<Scalar> is_smaller = {};
  };
  static constexpr std::int64_t period = 8;  // lines, of the swizzle

  void load(const Share& share) {
    if (!share.is_smaller) return load(share, share.lines);
    when(!*share.is_smaller, [&] { load(share, share.lines); });
    when(*share.is_smaller, [&] { load(share, share.lines - period); });
  }
  void load(const Share& share, std::int64_t lines) {
    const std::int64_t height = std::min(lines, longest);
    for (std::int64_t x = 0; x < share.line; x += width_)
      for (std::int64_t y = 0; y < lines; y += height)
        load(share, {share.along + x, share.first + y, height, inside(share, height)});
  }

  // Where it begins in this tile, and lines: all, and those inside if the matrix's edge divides it,
  // in whole periods; 0: it never does.
  struct Box {
    Scalar along, first;
    std::int64_t lines, inside;
  };
  void load(const Share& share, const Box& box) {
    if (box.inside == 0) return load(share, box.along, box.first, box.lines);
    const Scalar end = matrix_.outer() + box.first + box.lines;
    when(end <= *matrix_.lines(), [&] { load(share, box.along, box.first, box.lines); });
    when(end > *matrix_.lines(), [&] {
      load(share, box.along, box.first, box.inside);
      load(share, box.along, box.first + box.inside, box.lines - box.inside);
    });
  }
  void when(const Scalar& condition, const std::function<void()>& body) {
    state_.f().if_then(state_.value(condition, Type::pred), body);
  }

  // Of the box of `height` lines that the matrix's edge divides: lines inside, in whole periods; 0:
  // it divides none.
  std::int64_t inside(const Share& share, std::int64_t height) const {
    const Scalar begin = matrix_.outer() + share.first;
    if (!repeats_lines(share) || begin.constant().value_or(begin.multiple()) % height) return 0;
    const std::int64_t out = (*matrix_.lines() % height + period - 1) / period * period;
    return out < height ? out : 0;
  }

  // Whether a tile may lie beyond the matrix's last line, or the end of its lines, and may have
  // others there. What a cluster shares is asked for once, so that zeros cost less than cut boxes.
  bool repeats_lines(const Share& share) const {
    return !share.blocks.valid() &&
           (matrix_.is_row_major() ? from_.any_rows_outside : from_.any_cols_outside) &&
           matrix_.lines().value_or(0) % lines_ != 0;
  }
  bool repeats_along(const Share& share) const {
    return !share.blocks.valid() &&
           (matrix_.is_row_major() ? from_.any_cols_outside : from_.any_rows_outside) &&
           matrix_.length().value_or(0) % line_ != 0;
  }

  // `lines` lines of this tile from element `along` of line `first` on, by one instruction.
  void load(const Share& share, const Scalar& along, const Scalar& first, std::int64_t lines) {
    const bool is_row_major = matrix_.is_row_major();
    const Scalar row = is_row_major ? first : along, col = is_row_major ? along : first;
    Scalar inner = matrix_.inner() + along, outer = matrix_.outer() + first;
    // A tile's first box begins inside.
    if (repeats_lines(share) && first.constant() != 0)
      outer = select(outer < *matrix_.lines(), outer,
                     std::max(*matrix_.lines() - lines, std::int64_t{0}));
    if (repeats_along(share) && along.constant() != 0)
      inner = select(inner < *matrix_.length(), inner, (*matrix_.length() - 1) / width_ * width_);
    state_.f().tensor_load(address_of(state_, to_, row, col), map(lines),
                           matrix_.coordinates_at(inner, outer), state_.fill->full, share.blocks,
                           hints_.eviction);
  }

  ir::Pointer map(std::int64_t lines) {
    const bool rounds = state_.memories.of(to_).rounded_to_tf32;
    return matrix_.map(static_cast<int>(width_), static_cast<int>(lines), swizzle_,
                       rounds ? tf32 : Type::none);
  }

  void tell(const Share& share) {
    const bool rounds = state_.memories.of(to_).rounded_to_tf32, shared = share.blocks.valid();
    constexpr std::string_view policies[] = {"", "; L2 evicts them first", "; L2 evicts them last"};
    const std::string_view evicts = policies[static_cast<int>(hints_.eviction)];
    const std::int64_t height = std::min(share.lines, longest),
                       boxes = share.line / width_ * (share.lines / height);
    std::string heights = std::to_string(height);
    if (share.is_smaller) heights += fmt::format(" or {}", height - period);
    if (const std::int64_t first = inside(share, height))
      heights += fmt::format(", at the edge {} and {}", first, height - first);
    state_.log.choose(
        fmt::format("copy {} to {}", from_.name, to_.name),
        fmt::format("cp.async.bulk.tensor{}{}, boxes of {} x {}",
                    shared ? ".multicast::cluster" : "", evicts.empty() ? "" : ".L2::cache_hint",
                    width_, heights),
        fmt::format("one thread issues {} of {} bytes{}; {}{}{}", counted(boxes, "TMA load"),
                    width_ * height * bits(from_.type) / 8, shared ? ctas() : "",
                    repeats_lines(share) || repeats_along(share)
                        ? "beyond the edge they repeat what is inside"
                        : "out-of-bounds elements are zero-filled",
                    rounds ? "; rounded to tf32 by TMA" : "", evicts),
        std::move(refused_));
  }

  // Those that need the tile: how many, which of them this one is, and their bits.
  struct Receivers {
    Sharing sharing;
    int count;
    Scalar number;
    ir::Value bits;
  };
  Receivers receivers() {
    ir::FunctionBuilder& f = state_.f();
    const int blocks = state_.config.options.cluster, rows = cluster_rows(state_),
              cols = blocks / rows;
    const Scalar rank = block_of_cluster(state_);
    const auto bits = [&](std::uint32_t of_first, const Scalar& first) {
      const ir::Value all = f.constant(u32, std::int64_t{of_first});
      return first.constant() ? all : f.shift_left(all, state_.value(first, u32));
    };
    if (hints_.among == Among::row) {
      std::uint32_t first = 0;
      for (int i = 0; i < cols; ++i) first |= 1U << (i * rows);
      return {Sharing::cross, cols, rank / rows, bits(first, rows == 1 ? Scalar(0) : rank % rows)};
    }
    if (hints_.among == Among::column && cols > 1)
      return {Sharing::cross, rows, rank % rows, bits((1U << rows) - 1, rank / rows * rows)};
    return {Sharing::all, blocks, rank, bits((1U << blocks) - 1, 0)};
  }
  const char* ctas() const {
    if (state_.config.options.cluster_columns > 1 && hints_.among == Among::row)
      return " to all CTAs in its row of the cluster";
    if (state_.config.options.cluster_columns > 1 && hints_.among == Among::column)
      return " to all CTAs in its column of the cluster";
    return " to all CTAs of the cluster";
  }
  Share share() {
    Share out{line_, lines_};
    if (hints_.among == Among::none || state_.config.options.cluster == 1) return out;
    const Arch arch = state_.config.target.arch;
    if (!isa::advised(isa::Advice::multicast, arch)) {
      refused_.push_back(fmt::format(".multicast::cluster: {}, the target is {}",
                                     isa::advice(isa::Advice::multicast).reason, arch.text()));
      return out;
    }
    const Receivers to = receivers();
    const int blocks = to.count;
    if (blocks == 1) return out;
    const std::int64_t lines = lines_ / blocks, line = line_ / blocks;
    if (lines_ % (period * blocks) == 0 && (lines <= longest || lines % longest == 0)) {
      out.lines = lines, out.first = to.number * lines;
    } else if (lines_ % period == 0 && lines_ / period > blocks &&
               lines_ / period / blocks * period < longest) {
      const std::int64_t each = lines_ / period / blocks, more = lines_ / period % blocks;
      out.lines = (each + 1) * period;
      out.first = (to.number * each + minimum(to.number, more)) * period;
      out.is_smaller = to.number >= more;
    } else if (line_ % (width_ * blocks) == 0) {
      out.line = line, out.along = to.number * line;
    } else {
      refused_.push_back(
          fmt::format(".multicast::cluster: neither {} rows in groups of 8 nor {} adjacent boxes "
                      "divide among {} CTAs",
                      lines_, line_ / width_, blocks));
      return out;
    }
    out.blocks = to.bits, out.sharing = to.sharing;
    return out;
  }

  KernelState& state_;
  const Tensor& from_;
  const Tensor& to_;
  TmaHints hints_;
  TmaMatrix matrix_;
  std::vector<std::string> refused_;
  std::int64_t line_, lines_;  // of the tile: elements in one, and how many
  std::int64_t width_ = 1;     // of a box: elements of a line
  int swizzle_ = 0;
};

}  // namespace

bool copy_by_tma(KernelState& state, const Tensor& from, const Tensor& to, const TmaHints& hints,
                 std::vector<std::string>& refused) {
  if (state.roles.current != Role::producer || !state.fill) return false;
  if (state.flights.depth() != state.fill->depth) {
    refused.emplace_back("cp.async.bulk.tensor: it is in a loop or condition of the fill callback");
    return false;
  }
  BoxCopier copier(state, from, to, hints);
  if (const std::string problem = copier.problem(); !problem.empty()) {
    refused.push_back("cp.async.bulk.tensor: " + problem);
    if (copier.lacks_promise())
      state.log.warn("slow-instruction"_rule,
                     fmt::format("copy {} to {}: no TMA: {}; multiple_of() promises a divisor",
                                 from.name, to.name, problem));
    return false;
  }
  copier.copy();
  return true;
}

}  // namespace tartan::TARTAN_ABI::detail
