// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/late.h - asynchronous operations of a cluster that are issued and not
// done.
//
// Without a schedule the emulator does them when they are issued. Under one they wait here until
// the schedule picks them, or until somebody waits for their group:
//
//   cp.async                    cp.async.wait_group and wait_all, and the arrivals of
//                               cp.async.mbarrier.arrive, which are operations of their own
//   copies of a bulk group      first they read, then they write: wait_group ends both,
//                               wait_group.read what they read
//   what completes at an mbarrier (bulk and tensor copies, st.async, red.async)
//                               nothing but the schedule
//   wgmma                       in the order of issue in a warpgroup: wgmma.wait_group
//
// The race detector hears of all of them when they are issued: it knows for itself how late they
// may be.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "runtime/emulator/machine/observers.h"
#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

class Late {
 public:
  using Step = std::function<void()>;

  /// The cluster begins: there are none.
  void start();
  /// Lanes of the warp's current instruction have issued `done`. Of a bulk group: `reads` goes
  /// first.
  void issue(Warp& warp, std::uint32_t lanes, AsyncKind kind, Step done, Step reads = {});
  /// They close a group, or wait for all but the last `pending` of them; none: for all that they
  /// issued. `reads`: for what those read alone.
  void commit(const Warp& warp, std::uint32_t lanes, AsyncKind kind);
  void wait(const Warp& warp, std::uint32_t lanes, AsyncKind kind,
            std::optional<std::uint32_t> pending, bool reads = false);

  bool empty() const { return operations_.empty(); }
  std::size_t size() const { return operations_.size(); }
  /// A number that no other operation of the cluster has.
  std::uint64_t number(std::size_t at) const { return operations_[at].number; }
  /// Whether it may be next: of the products of a warpgroup the first one.
  bool can_advance(std::size_t at) const;
  /// Does its next step.
  void advance(std::size_t at);

 private:
  struct Operation {
    std::uint64_t number = 0;
    Warp* warp = nullptr;
    std::uint32_t pc = 0, lanes = 0;
    AsyncKind kind = AsyncKind::copy;
    std::array<std::uint32_t, 4> groups = {};  // of products: as each warp counts them
    Step reads, done;
  };
  using Groups = std::array<std::uint32_t, 32>;  // closed, by lane

  Groups& closed(const Warp& warp, AsyncKind kind) { return closed_[{&warp, kind}]; }
  bool concerns(const Operation& operation, const Warp& warp, std::uint32_t lanes,
                AsyncKind kind) const;
  void perform(const Operation& operation, const Step& step);
  void finish(std::size_t at);
  template <typename Which>
  void finish_all(Which&& which, bool reads);

  std::deque<Operation> operations_;  // in the order of issue
  std::map<std::pair<const Warp*, AsyncKind>, Groups> closed_;
  std::uint64_t issued_ = 0;
};

}  // namespace tartan::TARTAN_ABI::emulator
