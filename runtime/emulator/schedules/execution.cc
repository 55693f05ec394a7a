// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/schedules/execution.h"

#include <algorithm>
#include <utility>

namespace tartan::TARTAN_ABI::emulator {
namespace {

using Kind = Touch::Kind;

bool of_mbarrier(const Touch& touch) { return touch.kind >= Kind::change; }

bool overlap(const Touch& one, const Touch& other) {
  return one.space == other.space && one.first < other.first + other.bytes &&
         other.first < one.first + one.bytes;
}

bool memory_depends(const Touch& one, const Touch& other) {
  if (one.kind == Kind::read && other.kind == Kind::read) return false;
  return one.kind != Kind::reduce || other.kind != Kind::reduce || one.reduction != other.reduction;
}

// How the order of two touches of an mbarrier matters.
enum class Matter : std::uint8_t { no, orders, races };

Matter matter(const Touch& one, const Touch& other) {
  const bool first_waits = one.kind == Kind::wait, then_waits = other.kind == Kind::wait;
  if (first_waits && then_waits) return Matter::no;
  // The wait saw phase - 1 end: all that made it end had to come first.
  if (then_waits) return one.phase < other.phase ? Matter::orders : Matter::no;
  // It may not come after the end of the next phase.
  if (first_waits) return other.ends && other.phase >= one.phase ? Matter::races : Matter::no;
  if (one.phase != other.phase) return Matter::races;
  // Bytes that are expected too late may miss the phase.
  return (one.kind == Kind::expect) != (other.kind == Kind::expect) ? Matter::races : Matter::no;
}

Matter matter(const Event& one, const Event& other) {
  Matter most = Matter::no;
  for (const Touch& a : one.touches)
    for (const Touch& b : other.touches) {
      if (!overlap(a, b) || of_mbarrier(a) != of_mbarrier(b)) continue;
      if (of_mbarrier(a)) most = std::max(most, matter(a, b));
      else if (memory_depends(a, b)) most = Matter::races;
    }
  return most;
}

// Whether `other` waits for an mbarrier's phase that could have been the one before `one`, too:
// the parity is the same.
bool could_miss(const Event& one, const Event& other) {
  for (const Touch& a : one.touches)
    for (const Touch& b : other.touches)
      if (overlap(a, b) && of_mbarrier(a) && a.ends && b.kind == Kind::wait &&
          b.phase >= a.phase + 2 && (b.phase - a.phase) % 2 == 0)
        return true;
  return false;
}

}  // namespace

bool depend(const Event& one, const Event& other) { return matter(one, other) == Matter::races; }

bool may_depend(const Event& one, const Event& other) {
  for (const Touch& a : one.touches)
    for (const Touch& b : other.touches)
      if (overlap(a, b) &&
          (of_mbarrier(a) != of_mbarrier(b) || of_mbarrier(a) || memory_depends(a, b)))
        return true;
  return false;
}

void Execution::clear() {
  events_.clear();
  before_.clear();
}

void Execution::add(Event event, const std::function<bool(std::size_t)>& knows) {
  const std::size_t now = events_.size();
  std::vector<bool> before(now, false);
  const auto include = [&](std::size_t i) {
    if (before[i]) return;
    before[i] = true;
    for (std::size_t k = 0; k < i; ++k)
      if (before_[i][k]) before[k] = true;
  };
  for (const std::size_t i : event.after) include(i);
  for (std::size_t i = now; i-- > 0;)
    if (!before[i] &&
        (events_[i].agent == event.agent || matter(events_[i], event) != Matter::no || knows(i)))
      include(i);
  events_.push_back(std::move(event));
  before_.push_back(std::move(before));
}

// Dependent, and ordered by nothing but that.
bool Execution::is_race(std::size_t i, std::size_t j) const {
  if (events_[i].agent == events_[j].agent) return false;
  if (could_miss(events_[i], events_[j])) {  // whatever made the parity come round
    for (std::size_t k = i + 1; k < j; ++k)
      if (events_[k].agent == events_[j].agent && before(i, k)) return false;
    return true;
  }
  if (!depend(events_[i], events_[j])) return false;
  if (std::ranges::find(events_[j].after, i) != events_[j].after.end()) return false;
  for (std::size_t k = i + 1; k < j; ++k)
    if (before(i, k) && before(k, j)) return false;
  return true;
}

// Of the events behind i that it is not before, and of j: those agents that could go on first.
std::vector<std::uint64_t> Execution::initials(std::size_t i, std::size_t j) const {
  std::vector<std::size_t> rest;
  for (std::size_t k = i + 1; k < j; ++k)
    if (!before(i, k)) rest.push_back(k);
  rest.push_back(j);
  std::vector<std::uint64_t> out;
  for (std::size_t n = rest.size(); n-- > 0;) {
    const std::size_t k = rest[n];
    const bool first = std::none_of(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(n),
                                    [&](std::size_t earlier) { return before(earlier, k); });
    if (first) out.push_back(events_[k].agent);
  }
  return out;
}

std::vector<Execution::Reversal> Execution::reversals(
    std::optional<std::chrono::steady_clock::time_point> deadline) const {
  std::vector<Reversal> out;
  for (std::size_t j = 0; j < events_.size(); ++j) {
    if (deadline && std::chrono::steady_clock::now() >= *deadline) break;
    for (std::size_t i = 0; i < j; ++i)
      if (is_race(i, j)) out.push_back({i, initials(i, j)});
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::emulator
