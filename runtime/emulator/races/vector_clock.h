// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/vector_clock.h - what a thread knows of the others: for each warp, up to
// which time it knows what each of the 32 lanes did.
//
// A warp's time counts what its lanes tell others, so one number serves all 32 of them as long as
// they tell it together; lanes that go their own ways get a number each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/emulator/machine/scope.h"
#include "runtime/emulator/races/numbers.h"
#include "runtime/emulator/races/shared_times.h"
#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

/// Who is asked, or tells: threads of a CTA reach each other by every scope.
struct ScopedPlace {
  std::uint32_t cta = 0, cluster = 0;
  std::uint32_t owner(Scope scope) const {
    return scope == Scope::gpu ? 0 : scope == Scope::cluster ? cluster : cta;
  }
};

/// What was told at several scopes, each to those whom that reaches. T: join(), and operator==.
template <typename T>
class Scoped {
 public:
  bool empty() const { return parts_.empty(); }
  bool operator==(const Scoped&) const = default;
  /// Somebody at `place` tells it at `scope`, and by that at all narrower ones.
  void tell(const T& what, Scope scope, const ScopedPlace& place) {
    for (std::size_t i = 0; i <= static_cast<std::size_t>(scope); ++i)
      add(what, static_cast<Scope>(i), place);
  }
  /// At that scope alone: those whom the narrower ones reach are told otherwise.
  void add(const T& what, Scope scope, const ScopedPlace& place) {
    part(scope, place.owner(scope)).known.join(what);
  }
  void join(const Scoped& other) {
    for (const Part& each : other.parts_) part(each.scope, each.owner).known.join(each.known);
  }
  /// Calls body(what) for what somebody at `place` hears who listens at `scope`.
  template <typename Body>
  void heard(Scope scope, const ScopedPlace& place, Body&& body) const {
    for (std::size_t i = 0; i <= static_cast<std::size_t>(scope); ++i) {
      const auto each = static_cast<Scope>(i);
      if (const T* known = find(each, place)) body(*known);
    }
  }
  /// What was told at exactly that scope, to those at `place`.
  const T* find(Scope scope, const ScopedPlace& place) const {
    const Part wanted{scope, place.owner(scope), {}};
    const auto at = std::lower_bound(parts_.begin(), parts_.end(), wanted, before);
    return at != parts_.end() && !before(wanted, *at) ? &at->known : nullptr;
  }

 private:
  struct Part {
    Scope scope;
    std::uint32_t owner;
    T known;
    bool operator==(const Part&) const = default;
  };
  static bool before(const Part& one, const Part& other) {
    return std::pair(one.scope, one.owner) < std::pair(other.scope, other.owner);
  }
  Part& part(Scope scope, std::uint32_t owner) {
    Part made{scope, owner, {}};
    const auto at = std::lower_bound(parts_.begin(), parts_.end(), made, before);
    if (at != parts_.end() && !before(made, *at)) return *at;
    return *parts_.insert(at, std::move(made));
  }

  std::vector<Part> parts_;  // in order
};

/// Of fences .sc (PTX ISA 9.0, 8.9.3): `passed`, what was known at those that come before, and
/// `forced`, at those that have to come before the next one. Two fences of which nothing read says
/// which came first may come in either order, and order nothing.
struct Fences {
  Scoped<SharedTimes> passed, forced;
  bool operator==(const Fences&) const = default;
};

/// The same, shared; it does not change.
class SharedFences {
 public:
  bool operator==(const SharedFences&) const = default;
  const Fences* operator->() const { return fences_.get(); }
  explicit operator bool() const { return fences_ != nullptr; }
  void join(const SharedFences& other);
  /// Calls change(fences) for a copy, which becomes these.
  template <typename Change>
  void change(Change&& change) {
    auto made = fences_ ? std::make_shared<Fences>(*fences_) : std::make_shared<Fences>();
    change(*made);
    fences_ = std::move(made);
  }

 private:
  std::shared_ptr<const Fences> fences_;
};

/// What somebody knows, to be kept or handed on.
struct Knowledge {
  SharedTimes times;
  SharedFences fences;
  bool operator==(const Knowledge&) const = default;
  void join(const Knowledge& other) {
    times.join(other.times);
    fences.join(other.fences);
  }
};

/// Entries of the cluster's own numbers lie side by side, as far as they are in use.
class VectorClock {
 public:
  VectorClock() = default;
  VectorClock(std::uint32_t first, std::uint32_t span) : first_(first), span_(span) {}

  const LaneTimes* find(std::uint32_t warp) const;
  bool knows(const Epoch& epoch) const {
    const LaneTimes* times = find(epoch.warp);
    return times && (times->least() >= epoch.time || (*times)[epoch.lane] >= epoch.time);
  }
  void raise(std::uint32_t warp, std::uint32_t lanes, std::uint32_t time);
  void join(const VectorClock& other);
  void join(const Knowledge& other);
  void join(const SharedTimes& other);
  /// What is known of the first `count` numbers of each cluster is also known of those `distance`
  /// further; clusters are spans of this one's length.
  void copy(std::uint32_t count, std::uint32_t distance);
  /// Knows nothing.
  void clear();

  SharedFences& fences() { return fences_; }
  const SharedFences& fences() const { return fences_; }
  SharedTimes times() const;
  Knowledge knowledge() const { return {times(), fences_}; }

 private:
  LaneTimes& own(std::uint32_t at) {
    if (at >= own_.size()) own_.resize(at + 1);
    return own_[at];
  }
  void join_own(const ClusterTimes& theirs);

  std::uint32_t first_ = 0, span_ = 0;
  ClusterTimes own_;
  SharedTimes others_;  // of own clusters, what own_ has as well
  SharedFences fences_;
};

}  // namespace tartan::TARTAN_ABI::emulator
