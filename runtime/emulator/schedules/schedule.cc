// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/schedules/schedule.h"

#include <charconv>
#include <optional>
#include <vector>

#include "runtime/emulator/schedules/explorer.h"
#include "runtime/emulator/schedules/seeded.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Takes a number from the front of the text.
template <typename Number>
std::optional<Number> take(std::string_view& text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(1);
  return true;
}

// "0*12,2,1": 12 times the first, then the third and the second.
std::optional<std::vector<std::uint32_t>> choices(std::string_view text) {
  constexpr std::size_t most = 1 << 24;
  std::vector<std::uint32_t> out;
  do {
    const auto choice = take<std::uint32_t>(text);
    const auto times = take(text, '*') ? take<std::size_t>(text) : std::optional<std::size_t>(1);
    if (!choice || !times || *times > most - out.size()) return std::nullopt;
    out.insert(out.end(), *times, *choice);
  } while (take(text, ','));
  if (!text.empty()) return std::nullopt;
  return out;
}

}  // namespace

std::optional<Schedule::Choice> ListedSchedule::choose() {
  all_.clear();
  for (const auto& [cluster, agents] : agents_)
    all_.insert(all_.end(), agents.begin(), agents.end());
  if (all_.empty()) return std::nullopt;
  const Turn turn = next(all_);
  return Choice{.agent = all_[turn.agent].id, .instructions = turn.instructions};
}

std::unique_ptr<Schedule> make_schedule(std::string_view text) {
  if (take(text, 'x')) {
    auto taken = choices(text);
    return taken ? std::make_unique<Explorer>(std::move(*taken)) : nullptr;
  }
  const auto seed = take<std::uint64_t>(text);
  return seed && text.empty() ? std::make_unique<Seeded>(*seed) : nullptr;
}

}  // namespace tartan::TARTAN_ABI::emulator
