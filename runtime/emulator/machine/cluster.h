// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/cluster.h - blocks that run together and reach each other's shared
// memory; most often a single one.
//
// The blocks of a cluster share a host thread and take turns, a slice of each of their warps. A
// cluster can be left after any turn and taken up later: launches keep more clusters than host
// threads in flight, for kernels whose blocks wait for each other.
//
// Shared memory of the block of rank r starts at (r + 2) << 24 of the shared window, as mapa and in
// clusters of several blocks its own variables' names say it (a GPU has r << 24: descriptors of
// wgmma must leave these bits out); a block's own is at 0, too. Bit 24 says which of a pair of
// blocks it is, as on a GPU: kernels clear it to name an mbarrier of the even one.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/emulator/machine/block.h"
#include "runtime/emulator/machine/observers.h"
#include "runtime/emulator/schedules/late.h"

namespace tartan::TARTAN_ABI::emulator {

inline constexpr int rank_shift = 24;
inline constexpr std::uint64_t shared_offset_mask = (std::uint64_t{1} << rank_shift) - 1;
inline constexpr std::uint32_t first_place = 2;  // of rank 0

/// Where shared memory of the block of that rank starts in the shared window.
constexpr std::uint64_t place_of_rank(std::uint32_t rank) {
  return (std::uint64_t{rank} + first_place) << rank_shift;
}
/// The rank of the block that has an address of that window, which need not exist; `own`: of the
/// block that uses it.
constexpr std::uint32_t rank_at(std::uint64_t address, std::uint32_t own) {
  const auto place = static_cast<std::uint32_t>(address >> rank_shift);
  return place == 0 ? own : place - first_place;
}

class Cluster {
 public:
  explicit Cluster(LaunchContext& context);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// The place in the grid of the first block of cluster number `index`.
  static Dim3 first_block(const LaunchContext& context, std::uint64_t index);
  /// Makes this cluster number `index` of the grid, ready to run.
  void start(std::uint64_t index);
  /// Runs all warps for `turns` slices each at most. True when all blocks are done (or stopped by a
  /// finding).
  bool run(int turns);
  const std::optional<Finding>& finding() const { return finding_; }
  /// Adds what the warps did.
  void count(Report& report) const;

  // For blocks, warps and handlers.
  std::uint32_t size() const { return static_cast<std::uint32_t>(blocks_.size()); }
  Block& block(std::uint32_t rank) { return *blocks_[rank]; }
  bool stopped() const { return finding_.has_value(); }
  void stop(Finding finding);
  /// `warp`'s executing lanes arrive at the cluster's barrier, or wait there for the phase that
  /// they arrived in.
  void arrive(Warp& warp, bool relaxed);
  void wait(Warp& warp);
  /// Lanes have exited: nobody waits for them.
  void recheck();
  Scratch scratch;  // of products
  /// The number of another AsyncCopy.
  std::uint64_t next_copy() { return ++copies_; }
  /// `done` is what lanes of the current instruction have issued: it is done at once or, under a
  /// schedule, later. Of a bulk group: `reads` goes first.
  template <typename Done>
  void issue(Warp& warp, std::uint32_t lanes, AsyncKind kind, Done&& done, Late::Step reads = {}) {
    if (late_) return late_->issue(warp, lanes, kind, std::forward<Done>(done), std::move(reads));
    if (reads) reads();
    done();
  }
  /// The executing lanes close a group, or wait for groups (Events::commit, wait).
  void commit(Warp& warp, AsyncKind kind);
  void wait(Warp& warp, AsyncKind kind, std::optional<std::uint32_t> pending, bool reads = false);
  /// For those who can do with less where all is done at once.
  bool issues_late() const { return late_ != nullptr; }

  // Observers.
  /// One that lives as long as the cluster does.
  template <typename T>
  T& add(std::unique_ptr<T> observer) {
    T& made = *observer;
    owned_.push_back(std::move(observer));
    listen(made);
    return made;
  }
  /// One that lives longer.
  template <typename T>
  void listen(T& observer) {
    if constexpr (requires { T::seat; }) seats_[T::seat] = &observer;
    if constexpr (std::derived_from<T, Events>) events_.push_back(&observer);
    if constexpr (std::derived_from<T, ValueEvents>) values_.push_back(&observer);
  }
  template <typename T>
  void dismiss() {
    if (T* const observer = find<T>()) std::erase(events_, observer);
    seats_[T::seat] = nullptr;
  }
  /// Null where nobody has that seat.
  template <typename T>
  T* find() const {
    return static_cast<T*>(seats_[T::seat]);
  }
  bool is_observed() const { return !events_.empty(); }
  bool values_are_followed() const { return !values_.empty(); }
  template <typename... Parameters, typename... Arguments>
  void tell(void (ValueEvents::*what)(Parameters...), Arguments&&... arguments) {
    for (ValueEvents* each : values_) (each->*what)(arguments...);
  }
  template <typename... Parameters, typename... Arguments>
  void tell(void (Events::*what)(Parameters...), Arguments&&... arguments) {
    for (Events* each : events_) (each->*what)(arguments...);
  }
  /// False: one of them has stopped the launch with a finding.
  template <typename... Parameters, typename... Arguments>
  bool ask(bool (ValueEvents::*what)(Parameters...), Arguments&&... arguments) {
    for (ValueEvents* each : values_)
      if (!(each->*what)(arguments...)) return false;
    return true;
  }
  template <typename... Parameters, typename... Arguments>
  bool ask(bool (Events::*what)(Parameters...), Arguments&&... arguments) {
    for (Events* each : events_)
      if (!(each->*what)(arguments...)) return false;
    return true;
  }

  // Under a schedule, whose grid runs it turn by turn.
  Late& late() { return *late_; }
  /// Whether all warps and asynchronous operations are.
  bool done() const;
  /// All has been done.
  void finish();
  /// Nobody can go on: a finding says who waits for what.
  void report_deadlock();

 private:
  void leave(Warp& warp, std::uint32_t lanes);
  void release_if_complete();

  LaunchContext& context_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::unique_ptr<Late> late_;
  std::vector<std::shared_ptr<void>> owned_;
  std::array<void*, seats> seats_ = {};
  std::vector<Events*> events_;
  std::vector<ValueEvents*> values_;
  std::uint64_t copies_ = 0;  // that complete at an mbarrier
  std::optional<Finding> finding_;
  int idle_turns_ = 0;  // in a row, in which warps only found what they wait for not done
  int patience_ = 0;
};

/// Observers of `warp`'s cluster hear what it does.
template <typename Told, typename... Arguments>
void tell(Warp& warp, Told what, Arguments&&... arguments) {
  warp.block->cluster().tell(what, warp, arguments...);
}
template <typename Asked, typename... Arguments>
bool ask(Warp& warp, Asked what, Arguments&&... arguments) {
  return warp.block->cluster().ask(what, warp, arguments...);
}

}  // namespace tartan::TARTAN_ABI::emulator
