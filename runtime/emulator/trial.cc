// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/trial.h"

#include <algorithm>
#include <cstring>

namespace tartan::TARTAN_ABI::detail {

// splitmix64.
std::uint64_t Contents::draw() {
  std::uint64_t x = state_ += 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

void Contents::fill(std::span<std::byte> to) {
  // A NaN in every format from f64 to e5m2, wherever it begins.
  constexpr std::uint64_t nans = 0x7FFF7FFF7FFF7FFF;
  for (std::size_t at = 0; at < to.size(); at += 8) {
    const std::uint64_t word = kind_ == Kind::ones   ? ~std::uint64_t{0}
                               : kind_ == Kind::nans ? nans
                                                     : draw();
    std::memcpy(to.data() + at, &word, std::min<std::size_t>(8, to.size() - at));
  }
}

RacingReads::Key RacingReads::key(const Place& place) {
  return {place.grid << 32 | place.warp, place.memory, place.address / piece};
}

void RacingReads::add(const Place& place, std::uint32_t from, std::uint32_t to, std::uint32_t pc) {
  if (given_up_) return;
  const auto [found, fresh] = reads_.try_emplace(key(place), Reads{.from = from, .to = to});
  Reads& reads = found->second;
  reads.from = std::min(reads.from, from);
  reads.to = std::max(reads.to, to);
  if (std::ranges::find(reads.pcs, pc) == reads.pcs.end()) reads.pcs.push_back(pc);
  if (reads_.size() > most) give_up();
}

std::optional<std::uint32_t> RacingReads::find(const Place& place, std::uint32_t time,
                                               std::uint32_t pc) const {
  const auto found = reads_.find(key(place));
  if (found == reads_.end()) return std::nullopt;
  const Reads& reads = found->second;
  if (time < reads.from || time > reads.to) return std::nullopt;
  const auto unused = [&](std::uint32_t each) { return !is_used(place.grid, each); };
  if (std::ranges::find(reads.pcs, pc) != reads.pcs.end())
    return unused(pc) ? std::optional(pc) : std::nullopt;
  // An earlier read of what another one then read again: it stands for that one.
  const auto one = std::ranges::find_if(reads.pcs, unused);
  return one == reads.pcs.end() ? std::nullopt : std::optional(*one);
}

}  // namespace tartan::TARTAN_ABI::detail
