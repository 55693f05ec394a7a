// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/profile/banks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int warp_lanes = 32;
constexpr int phase_bytes = banks * bank_bytes;

std::uint32_t lanes_from(int first, int count) {
  return count == warp_lanes ? ~std::uint32_t{0} : ((std::uint32_t{1} << count) - 1) << first;
}

bool active(const SharedRequest& request, int lane) { return request.lanes >> lane & 1; }

// Whether lanes `distance` apart share their address, where both load.
bool pairs_share(const SharedRequest& request, int first, int count, int distance) {
  for (int lane = first; lane < first + count; ++lane)
    if (active(request, lane) && active(request, lane ^ distance) &&
        request.at[static_cast<std::size_t>(lane)] !=
            request.at[static_cast<std::size_t>(lane ^ distance)])
      return false;
  return true;
}

// The words that those lanes access, sorted, each once.
std::vector<std::uint64_t> words(const SharedRequest& request, std::uint32_t lanes) {
  std::vector<std::uint64_t> out;
  for (; lanes; lanes &= lanes - 1) {
    const std::uint64_t at = request.at[static_cast<std::size_t>(std::countr_zero(lanes))];
    const std::uint64_t last = (at + request.bytes - 1) / bank_bytes;
    for (std::uint64_t word = at / bank_bytes; word <= last; ++word) out.push_back(word);
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

std::array<std::uint8_t, banks> words_of_banks(const std::vector<std::uint64_t>& words) {
  std::array<std::uint8_t, banks> out = {};
  for (const std::uint64_t word : words) ++out[word % banks];
  return out;
}

template <typename Place>
SharedRequest moved(const SharedRequest& request, Place&& place) {
  SharedRequest out = request;
  for (std::uint64_t& address : out.at) address = place(address);
  return out;
}

bool cured(const SharedRequest& request) {
  const Wavefronts now = wavefronts(request);
  return now.all == now.minimum;
}

std::uint64_t lowest(const SharedRequest& request) {
  std::uint64_t out = ~std::uint64_t{0};
  for (int lane = 0; lane < warp_lanes; ++lane)
    if (active(request, lane)) out = std::min(out, request.at[static_cast<std::size_t>(lane)]);
  return out;
}

// Distances between lanes that may be the rows' length.
std::set<std::uint64_t> row_lengths(const SharedRequest& request) {
  std::set<std::uint64_t> out;
  for (std::size_t lane = 1; lane < warp_lanes; ++lane) {
    if ((request.lanes >> (lane - 1) & 3) != 3) continue;
    const std::uint64_t a = request.at[lane - 1], b = request.at[lane];
    const std::uint64_t length = a < b ? b - a : a - b;
    if (length > request.bytes && length % std::max<std::uint64_t>(request.bytes, 4) == 0)
      out.insert(length);
  }
  return out;
}

}  // namespace

std::vector<std::uint32_t> phases(const SharedRequest& request) {
  const int bytes = static_cast<int>(request.bytes);
  const int size = bytes <= bank_bytes ? warp_lanes : std::max(phase_bytes / bytes, 1);
  std::vector<std::uint32_t> out;
  const auto add = [&](int first, int count) {
    if (const std::uint32_t lanes = request.lanes & lanes_from(first, count)) out.push_back(lanes);
  };
  for (int first = 0; first < warp_lanes;) {
    const bool merges =
        request.load && size < warp_lanes &&
        (pairs_share(request, first, 2 * size, 1) || pairs_share(request, first, 2 * size, 2));
    const int pair = std::min(2 * size, warp_lanes);
    if (merges) add(first, pair);
    else
      for (int half = first; half < first + pair; half += size) add(half, size);
    first += pair;
  }
  return out;
}

Wavefronts wavefronts(const SharedRequest& request) {
  Wavefronts out;
  for (const std::uint32_t lanes : phases(request)) {
    const auto phase = words(request, lanes);
    out.all += std::ranges::max(words_of_banks(phase));
    out.minimum += static_cast<std::uint32_t>((phase.size() + banks - 1) / banks);
  }
  return out;
}

std::array<std::uint8_t, banks> worst_phase(const SharedRequest& request) {
  std::array<std::uint8_t, banks> out = {};
  for (const std::uint32_t lanes : phases(request)) {
    const auto phase = words_of_banks(words(request, lanes));
    if (std::ranges::max(phase) > std::ranges::max(out)) out = phase;
  }
  return out;
}

std::vector<std::string> cures(const SharedRequest& request) {
  std::vector<std::string> out;
  if (cured(request)) return out;
  // TMA's swizzles: bits 4 to 6 of the address get those above bit 7 that tell rows apart.
  constexpr std::uint64_t chunk_shift = 4, row_shift = 7;
  for (const std::uint64_t span : {32, 64, 128}) {
    const std::uint64_t mask = span / 16 - 1;
    if (cured(moved(request, [&](std::uint64_t at) {
          return at ^ (at >> row_shift & mask) << chunk_shift;
        })))
      return {fmt::format("{}-byte swizzle", span)};
  }
  const std::uint64_t first = lowest(request);
  for (const std::uint64_t length : row_lengths(request))
    for (std::uint64_t padding = std::max<std::uint64_t>(request.bytes, bank_bytes); padding <= 16;
         padding *= 2)
      if (cured(moved(request,
                      [&](std::uint64_t at) { return at + (at - first) / length * padding; }))) {
        out.push_back(fmt::format("rows of {} bytes padded to {}", length, length + padding));
        return out;
      }
  return out;
}

}  // namespace tartan::TARTAN_ABI::emulator
