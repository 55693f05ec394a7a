// SPDX-License-Identifier: Apache-2.0
// compiler/ir/shared_accesses.h - accesses to shared memory by the threads of a block, and
// which of them barriers order. Not installed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::ir {

/// Threads of a block: a bit for each lane, by warp.
struct Threads {
  static constexpr int most = 1024;
  std::array<std::uint32_t, most / 32> warps = {};

  static Threads range(int first, int count) {
    Threads out;
    const int end = std::min(first + count, most);
    for (int t = first; t < end;)
      if (t % 32 == 0 && t + 32 <= end) out.warps[static_cast<std::size_t>(t / 32)] = ~0U, t += 32;
      else out.add(t++);
    return out;
  }
  void add(int thread) { warps[static_cast<std::size_t>(thread / 32)] |= 1U << thread % 32; }
  bool has(int thread) const {
    return warps[static_cast<std::size_t>(thread / 32)] >> thread % 32 & 1;
  }
  bool any() const {
    return std::ranges::any_of(warps, [](std::uint32_t each) { return each != 0; });
  }
  int count() const {
    int out = 0;
    for (const std::uint32_t each : warps) out += std::popcount(each);
    return out;
  }
  template <typename Body>
  void each(const Body& body) const {
    for (int i = 0; i < most / 32; ++i)
      for (std::uint32_t left = warps[static_cast<std::size_t>(i)]; left; left &= left - 1)
        body(32 * i + std::countr_zero(left));
  }
  bool meets(const Threads& other) const { return (*this & other).any(); }
  /// Whether all of `other` are among them.
  bool covers(const Threads& other) const { return (other & *this) == other; }
  bool operator==(const Threads&) const = default;
  Threads operator&(const Threads& other) const {
    Threads out;
    for (std::size_t i = 0; i < warps.size(); ++i) out.warps[i] = warps[i] & other.warps[i];
    return out;
  }
  Threads& operator|=(const Threads& other) {
    for (std::size_t i = 0; i < warps.size(); ++i) warps[i] |= other.warps[i];
    return *this;
  }
};

/// Bytes that a thread accesses, for itself or for its team.
struct Part {
  std::int64_t begin = 0, end = 0;
  int thread = 0;
};

struct Access {
  int memory = 0;
  std::uint32_t place = 0;  // in Function::places
  bool reads = false, writes = false, atomic = false;
  bool flying = false;  // it reads until it is waited for
  int team = 1;         // threads that do it together: one, a warp or a warpgroup
  int address = -1;     // the id of the address, where nothing tells what it is in a thread
  std::vector<Part> parts;
  std::vector<std::pair<std::uint32_t, int>> loops;  // around it: operations, iterations

  std::int64_t first = 0, end = 0;  // of all parts
  std::uint64_t digest = 0;         // 0: not computed yet
  int serial = 0;                   // of the walk
  int group = 0;                    // of reads in flight, that are waited for together
  std::int64_t longest = 0;         // part; 0: they are in no order yet
  std::vector<std::size_t> syncs;   // since then
};

/// The accesses since the last barrier of all threads.
class Pending {
 public:
  /// An access and one before it that meet.
  struct Meeting {
    Access before;
    bool within_warp = false;  // all that meet are by lanes of a warp
  };

  /// The first that `now` meets, whose memory is then forgotten. `same`: whether two addresses of
  /// which nothing is known are the same.
  template <typename Same>
  std::optional<Meeting> find(Access& now, const Same& same) {
    sum_up(now);
    for (Access& each : accesses_) {
      if (!disturb(each, now) || now.end <= each.first || each.end <= now.first ||
          (each.loops == now.loops && same(each.address, now.address)))
        continue;
      put_in_order(each);
      const int meets = meeting(each, now);
      if (meets == 0) continue;
      Meeting out{each, meets == 1};
      std::erase_if(accesses_, [&](const Access& one) { return one.memory == now.memory; });
      return out;
    }
    return std::nullopt;
  }
  /// One of the same bytes by the same threads takes the place of an earlier one: whatever is
  /// ordered behind it is ordered behind both.
  void add(Access access);

  /// A barrier of those threads; where they are `all`, nothing before it matters any more.
  void sync(const Threads& threads, const Threads& all);
  void sync_all();
  void sync_warps(const Threads& threads);
  /// Those threads wait for others, whose turn it was.
  void take_turn(const Threads& threads);
  /// They wait for threads of which the description does not tell where they arrive, before or
  /// behind this place: until the next barrier of all threads, what they do and what other warps do
  /// is taken as ordered.
  void await_others(const Threads& threads);
  /// Of the reads in flight that threads of `by` have started, all but the last ones are done.
  void land(const Threads& by, int team, std::size_t but);
  /// What is pending behind the one or the other of two branches.
  void merge(const Pending& other);

 private:
  enum class How : std::uint8_t { group, warps, turn };
  struct Sync {
    How how;
    Threads threads;
  };
  void note(How how, const Threads& threads);
  void forget();
  static void sum_up(Access& access);
  static void put_in_order(Access& access);
  static bool disturb(const Access& x, const Access& y);
  int meeting(const Access& before, const Access& now) const;
  bool is_ordered(const Access& before, int thread, int of_team, int team) const;

  std::vector<Access> accesses_;
  std::vector<Sync> syncs_;
  Threads awaiting_;
};

}  // namespace tartan::TARTAN_ABI::ir
