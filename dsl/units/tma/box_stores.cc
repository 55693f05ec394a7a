// SPDX-License-Identifier: Apache-2.0
// Boxes of a tile in shared memory, from where TMA (PTX ISA 9.0, 9.7.9.27, cp.async.bulk.tensor to
// global memory) or the warp stores whole lines.
#include "dsl/units/tma/box_stores.h"

#include <algorithm>
#include <span>

#include "dsl/layout/addressing.h"
#include "dsl/layout/fragments.h"
#include "dsl/roles/roles.h"
#include "dsl/roles/warpgroups.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/units/tma/tma_matrix.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

constexpr int box_rows = 16;  // of fragments
constexpr int row_box_bytes = box_rows * 128;
constexpr int shortest_line = 16;  // in bytes

// A warp's boxes, or those of a warpgroup: of wgmma's accumulators, whose 64 adjacent rows are
// lines of 128 bytes of a column-major C; a warp's own 16 rows would be lines of 32, which TMA
// writes slowly, and most of all where they begin inside of sectors.
class BoxStorer {
 public:
  BoxStorer(KernelState& state, const Tensor& to, const WarpTile& tile, StoredFragments& fragments,
            bool adds = false)
      : state_(state),
        to_(to),
        tile_(tile),
        fragments_(fragments),
        adds_(adds),
        matrix_(state, to),
        refused_by_tma_(matrix_.problem_of_stores()),
        threads_(by_warpgroup() ? warpgroup_threads : 32) {}

  /// Why this is not possible; empty if it is.
  std::string problem() {
    if (adds_ && !refused_by_tma_.empty()) return refused_by_tma_;
    const FragmentKind kind = fragments_.kind();
    if (to_.layout.is_nested() || to_.layout.major() == Major::none)
      return fmt::format("neither rows nor columns of {} are contiguous", to_.name);
    if (!by_rows() && bits(to_.type) != 16)
      return fmt::format(
          "{} is not row-major, and stmatrix.trans, which writes columns, requires elements of 16 "
          "bits",
          to_.name);
    if (!by_rows() && !refused_by_tma_.empty())
      return fmt::format("{} is not row-major, and TMA does not reach it: {}", to_.name,
                         refused_by_tma_);
    if (kind.operand != Operand::c || kind.shape.wmma || kind.shape.shape.m != 16 ||
        kind.shape.shape.n != 8 || kind.type != to_.type)
      return fmt::format("{} are not accumulators of m16n8 in {}", kind.text(), name(to_.type));
    if (by_rows() && tile_.across() * bits(to_.type) % shortest_line)
      return fmt::format("its boxes need rows of at least {} bytes", shortest_line);
    // In a ring all consumers meet before they store.
    state_.staging.ring_in_use |= state_.staging.ring >= 0 && !by_all_consumers();
    if (state_.staging.memory >= 0) narrow_to_first_store();
    else if (!make_room()) return "no shared memory is left to stage it";
    if (state_.staging.box_bytes != box_bytes() || state_.staging.threads != threads_)
      return fmt::format(
          "its boxes have {} bytes for each {}, those of the kernel's first store {} "
          "for each {}",
          box_bytes(), owner(threads_), state_.staging.box_bytes, owner(state_.staging.threads));
    return {};
  }

  void store() {
    const std::string refused = refused_by_tma_;
    const bool by_tma = refused.empty();
    state_.staging.used |= by_tma;
    if (threads_ == warpgroup_threads) take_barriers(state_);
    if (state_.staging.ring >= 0) leave_ring();
    const std::vector<Box> all = boxes();
    StoredFragments::Order order;
    for (const Box& box : all)
      for (int x = 0; x < box.cols / 8; ++x) order.emplace_back(box.down, box.left / 8 + x);
    fragments_.store_by(std::move(order));
    const std::size_t each = static_cast<std::size_t>(state_.staging.batch);
    for (std::size_t i = 0; i < all.size(); i += each) {
      const std::span batch = std::span(all).subspan(i, std::min(each, all.size() - i));
      const int number = static_cast<int>(i / each);
      if (by_tma) store_by_tma(batch, number);
      else store_by_warp(batch, number);
    }
    std::vector<std::string> refusals;
    if (!by_tma) refusals.push_back("cp.async.bulk.tensor: " + refused);
    if (!apart_.empty()) refusals.push_back("boxes of a warpgroup's 64 rows: " + apart_);
    std::string shape = fmt::format("boxes of {} x {}", rows(), all.front().cols);
    if (all.back().cols != all.front().cols) shape += fmt::format(" to {}", all.back().cols);
    state_.log.choose(
        fmt::format("{} to {}", adds_ ? "add" : "store", to_.name),
        (adds_    ? "cp.reduce.async.bulk.tensor, "
         : by_tma ? "cp.async.bulk.tensor, "
                  : "rows of ") +
            shape,
        fmt::format("each {} stages {} of its {} boxes at a time in shared memory, {} "
                    "{} the part inside the matrix",
                    owner(threads_), std::min(each, all.size()), all.size(), by_tma ? "TMA" : "and",
                    adds_ ? "adds" : "stores"),
        std::move(refusals));
  }

 private:
  struct Box {
    int down, left, cols;  // row of fragments, column, and columns
  };
  static std::string_view owner(int threads) {
    return threads == warpgroup_threads ? "warpgroup" : "warp";
  }
  bool by_rows() const { return to_.layout.major() == Major::row; }
  // Whether all warps of a warpgroup stage together. Where only this kernel prevents it, says why.
  bool by_warpgroup() {
    if (by_rows() || !tile_.place().by_warpgroup || bits(to_.type) != 16) return false;
    if (state_.partial.split != Split::none)
      apart_ =
          fmt::format("not all of its warps meet the condition at {}", text(state_.partial.place));
    else if (state_.staging.memory >= 0 && state_.staging.threads != warpgroup_threads)
      apart_ = "the kernel's first store is staged by warps";
    else if (!can_have_barriers(state_))
      apart_ = fmt::format("no named barrier is free for each warpgroup: the kernel has number {}",
                           state_.roles.last_named);
    return apart_.empty();
  }
  int rows() const { return threads_ / 32 * box_rows; }  // of a box
  // Splits a row of fragments into boxes: of lines of 128 bytes, and the rest in shorter ones, or
  // in one if its lines are an odd number of 16-byte chunks, which need no swizzle; where columns
  // are contiguous, of equally many columns.
  std::vector<Box> boxes() const {
    std::vector<Box> out;
    const int end = 8 * tile_.across();
    if (!by_rows()) {
      const int cols = columns_together();
      for (int i = 0; i < tile_.down(); ++i)
        for (int left = 0; left < end; left += cols)
          out.push_back({i, left, std::min(cols, end - left)});
      return out;
    }
    for (int i = 0; i < tile_.down(); ++i)
      for (int left = 0, cols = line(128); left < end; left += cols) {
        while (left + cols > end) cols = is_odd(end - left) ? end - left : cols / 2;
        out.push_back({i, left, cols});
      }
    return out;
  }
  bool is_odd(int cols) const { return cols * bits(to_.type) / (8 * shortest_line) % 2 != 0; }
  // Of TMA, for rows of fragments.
  int swizzle(const Box& box) const { return by_rows() && is_odd(box.cols) ? 0 : line_bytes(box); }
  // Of a box whose columns are contiguous.
  int columns_together() const {
    const int parts = (8 * tile_.across() + most_columns_ - 1) / most_columns_;
    return (tile_.across() + parts - 1) / parts * 8;
  }
  // Shared memory for a box: whole periods of its swizzle, which are eight lines of 32 or 128
  // bytes.
  int box_bytes() const { return by_rows() ? row_box_bytes : columns_together() * rows() * 2; }
  int below(const Box& box) const { return tile_.place().down(box.down, box_rows); }
  int line(int bytes) const { return 8 * bytes / bits(to_.type); }
  // Lines are contiguous in C.
  int line_elements(const Box& box) const { return by_rows() ? box.cols : rows(); }
  int lines(const Box& box) const { return by_rows() ? box_rows : box.cols; }
  int line_bytes(const Box& box) const { return line_elements(box) * bits(to_.type) / 8; }

  // Fences and waits for TMA are slow: use few batches.
  void store_by_tma(std::span<const Box> batch, int number) {
    ir::FunctionBuilder& f = state_.f();
    std::vector<ir::Pointer> maps;
    for (const Box& box : batch)
      maps.push_back(
          matrix_.map(line_elements(box), lines(box), swizzle(box), adds_ ? to_.type : Type::none));
    state_.memories.of(to_).ever_written = true;
    wait_for_tma(number ? state_.staging.slots - 1 : 0);
    lay_out(batch, number);
    f.proxy_fence();
    meet();
    f.if_then(is_issuer(), [&] {  // whose part of the tile is the first of the box
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const Scalar row = tile_.place().row + below(batch[i]),
                     col = tile_.place().col + batch[i].left;
        f.tensor_store(maps[i],
                       by_rows() ? matrix_.coordinates(col, row) : matrix_.coordinates(row, col),
                       address_of(state_, staged(number, i, batch[i]), 0, 0),
                       std::int64_t{lines(batch[i])} * line_bytes(batch[i]), adds_);
      }
      f.bulk_commit();
    });
  }

  void store_by_warp(std::span<const Box> batch, int number) {
    // TMA stores of earlier tiles may still read this memory.
    if (state_.config.has_tma() && number == 0) wait_for_tma(0);
    lay_out(batch, number);
    state_.f().warp_sync();
    for (std::size_t i = 0; i < batch.size(); ++i)
      copy_by_warp(state_, staged(number, i, batch[i]), place(batch[i]));
  }

  // A box may begin at any multiple of 8 columns.
  Tensor place(const Box& box) const {
    Tensor out = to_.tile(box_rows, 8, (tile_.place().row + below(box)) / box_rows,
                          (tile_.place().col + box.left) / 8, state_.log.location());
    out.layout.cols = box.cols;
    return out;
  }

  ir::Value is_issuer() { return state_.value(thread_index(state_) % threads_ == 0); }

  // Waits until TMA has read all batches in shared memory except `but`. Others know once they meet.
  void wait_for_tma(int but) {
    state_.f().if_then(is_issuer(), [&] { state_.f().bulk_wait_read(but); });
  }

  // All who stage boxes together.
  void meet() {
    if (threads_ == warpgroup_threads) warpgroup_barrier(state_);
    else state_.f().warp_sync();
  }

  // All consumers have read their last stage.
  void leave_ring() {
    land_all(state_);
    state_.f().barrier(consumers_barrier, thread_count(state_));
  }

  void lay_out(std::span<const Box> batch, int number) {
    meet();
    for (std::size_t i = 0; i < batch.size(); ++i) lay_out(staged(number, i, batch[i]), batch[i]);
  }

  // Allocates shared memory for all boxes of each owner or, if TMA stores them, for two batches, so
  // that one is written while the other is stored; at least for one box. All stores of the kernel
  // share it.
  bool make_room() {
    constexpr int fewest_columns = 32;
    while (!find_room()) {
      if (by_rows() || most_columns_ == fewest_columns) return false;
      most_columns_ /= 2;
    }
    return true;
  }
  bool find_room() {
    // For barriers that are declared later: before the boxes, where they are aligned, or behind.
    constexpr std::int64_t few = 512, reserve = 2048, align = 1024;
    const std::int64_t used = state_.memories.shared_bytes(),
                       begin = state_.memories.shared().next(align);
    const std::int64_t room = find_arch(state_.config.target.arch)->shared_bytes -
                              (begin - used >= few ? begin : used + reserve);
    const int owners = consumer_count(state_) / threads_, all = static_cast<int>(boxes().size());
    const auto fit = [&](std::int64_t bytes) {
      return static_cast<int>(bytes / (owners * box_bytes()));
    };
    const int ring = idle_ring(align), beside = fit(room),
              inside =
                  ring < 0 ? 0 : fit(state_.memories.all()[static_cast<std::size_t>(ring)].bytes);
    const bool in_ring = beside < all && beside < inside;
    const int most = in_ring ? inside : beside;
    if (most < 1) return false;
    if (in_ring) state_.staging.ring = ring;
    const bool by_tma = refused_by_tma_.empty();
    state_.staging.slots = by_tma && most < all && most > 1 ? 2 : 1;
    state_.staging.batch = by_tma ? std::min(all, most / state_.staging.slots) : 1;
    const std::string name = state_.names.unused("staging");
    const int bytes = owners * state_.staging.slots * state_.staging.batch * box_bytes();
    const ir::Pointer base = in_ring ? state_.memories.all()[static_cast<std::size_t>(ring)].base
                                     : state_.memories.share(state_.f(), name, bytes, align);
    state_.staging.memory = state_.memories.add({base, true, bytes});
    state_.staging.box_bytes = box_bytes(), state_.staging.threads = threads_;
    return true;
  }

  // Together, and once.
  bool by_all_consumers() const {
    return state_.partial.once && state_.roles.warpgroups == 0 && !state_.roles.in_stage;
  }

  // The largest ring of the pipelines that have ended, if all consumers store here; or -1. No
  // other CTA may read it.
  int idle_ring(std::int64_t align) const {
    if (state_.staging.beside_rings || !by_all_consumers()) return -1;
    const std::vector<Memory>& all = state_.memories.all();
    int largest = -1;
    for (int i = 0; i < static_cast<int>(all.size()); ++i) {
      const Memory& each = all[static_cast<std::size_t>(i)];
      const bool read_by_others = std::ranges::any_of(
          all, [&](const Memory& remote) { return remote.owner == i && remote.read; });
      if (each.filled && each.aligned >= align && !read_by_others &&
          (largest < 0 || each.bytes > all[static_cast<std::size_t>(largest)].bytes))
        largest = i;
    }
    return largest;
  }

  // Whose boxes may have had little room.
  void narrow_to_first_store() {
    if (!by_rows())
      most_columns_ = std::clamp(state_.staging.box_bytes / (2 * rows()), 8, most_columns_);
  }

  // The place of box i of a batch, for this warp or warpgroup.
  Tensor staged(int batch, std::size_t i, const Box& box) const {
    const int slot = batch % state_.staging.slots * state_.staging.batch + static_cast<int>(i);
    Tensor out{state_.shared_from_this(),
               "the staged tile",
               to_.type,
               (by_rows() ? row_major(box_rows, box.cols) : col_major(rows(), box.cols))
                   .swizzled(swizzle_of_lines(line_bytes(box), to_.type)),
               0,
               state_.staging.memory,
               state_.log.place()};
    const int elements = box_bytes() * 8 / bits(to_.type);
    out.base = consumer_index(state_) / threads_ *
                   (state_.staging.slots * state_.staging.batch * elements) +
               slot * elements;
    return out;
  }

  void lay_out(const Tensor& place, const Box& box) {
    std::vector<Fragment> row;
    for (int x = 0; x < box.cols / 8; ++x) row.push_back(fragments_.next());
    const std::string stored = row.front().kind().text();
    const int across = static_cast<int>(row.size());
    const Scalar part =  // of the box: this warp's rows
        threads_ == warpgroup_threads ? consumer_index(state_) / 32 % warps_of_warpgroup
                                      : Scalar(0);
    const auto put = [&](const Fragment& fragment, int x) {
      Tensor to = place.tile(box_rows, 8, part, x, state_.log.location());
      to.layout.cols = fragment.kind().fragment().cols;
      store_fragment(state_, to, fragment, stored);
    };
    if (bits(to_.type) != 16) {
      for (int x = 0; x < across; ++x) put(row[static_cast<std::size_t>(x)], x);
      return;
    }
    // Two fragments of 16-bit elements form an A of m16n8k16, which one stmatrix.x4 writes.
    if (across % 2) put(row.back(), across - 1), row.pop_back();
    if (row.empty()) return;
    const WarpTile pairs =
        operand_a(WarpTile(std::move(row), across / 2 * 2, {}), m16n8k16, state_.log.location());
    for (int x = 0; x < pairs.across(); ++x) put(pairs.fragment(0, x), 2 * x);
  }

  KernelState& state_;
  const Tensor& to_;
  const WarpTile& tile_;
  StoredFragments& fragments_;
  bool adds_;
  TmaMatrix matrix_;
  std::string refused_by_tma_;  // why TMA cannot reach it
  std::string apart_;           // why the warps of a warpgroup stage boxes of their own
  int threads_;                 // that stage boxes together: of a warp or a warpgroup
  int most_columns_ = 128;      // of a box whose columns are contiguous
};

}  // namespace

bool store_boxes(KernelState& state, const Tensor& to, const WarpTile& tile,
                 StoredFragments& fragments, std::vector<std::string>& refused, bool adds) {
  if (state.roles.current != Role::consumer) return false;
  BoxStorer storer(state, to, tile, fragments, adds);
  if (const std::string problem = storer.problem(); !problem.empty()) {
    refused.push_back("boxes in shared memory: " + problem);
    return false;
  }
  storer.store();
  return true;
}

void finish_stores(KernelState& state) {
  if (!state.staging.used) return;
  state.f().if_then(state.value(thread_index(state) % 32 == 0),
                    [&] { state.f().bulk_wait_read(0); });
}

}  // namespace tartan::TARTAN_ABI::detail
