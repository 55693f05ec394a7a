// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/seeded.h - a schedule drawn from a number.
//
// The seed decides how it draws. Half of the seeds let every agent have its turns alike, for 1 to
// 1024 instructions each; the others give agents priorities, which change now and then, so that
// some run far ahead (the probabilistic concurrency testing of Burckhardt and others, 2010). Of the
// asynchronous operations none, some or all are put off until no lane can go on without them.
#pragma once

#include <unordered_map>

#include "runtime/emulator/schedules/schedule.h"

namespace tartan::inline TARTAN_ABI::emulator {

class Seeded final : public Schedule {
 public:
  explicit Seeded(std::uint64_t seed);

  std::size_t residents(std::size_t most) override;
  std::size_t starts(std::size_t waiting) override;
  Turn next(std::span<const Agent> agents) override;

 private:
  std::uint64_t draw();
  std::uint64_t draw(std::uint64_t below) { return draw() % below; }
  bool put_off(const Agent& agent) const;
  std::uint64_t& priority(const Agent& agent);
  std::size_t first(std::span<const Agent> agents, bool lanes);

  const std::uint64_t seed_;
  std::uint64_t state_;
  bool by_priority_ = false;
  std::uint64_t lateness_ = 0;  // of 4 operations so many are put off
  std::unordered_map<std::uint64_t, std::uint64_t> priorities_;
  std::uint64_t last_ = 0;
  int turns_in_a_row_ = 0;
};

}  // namespace tartan::inline TARTAN_ABI::emulator
