// SPDX-License-Identifier: Apache-2.0
#include "runtime/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tartan/isa/opcode.h"

namespace tartan::TARTAN_ABI {
namespace {

using Instructions = std::span<const InstructionProfile>;

constexpr std::size_t costliest = 10;

struct Totals {
  std::uint64_t executions = 0, lanes = 0, diverged = 0, waits = 0, multiply_adds = 0, copied = 0;
  std::uint64_t shared_requests = 0, wavefronts = 0, conflicts = 0;
  std::uint64_t global_requests = 0, sectors = 0, least_sectors = 0;
};

Totals totals(Instructions instructions) {
  Totals out;
  for (const InstructionProfile& each : instructions) {
    out.executions += each.executions;
    out.lanes += each.lanes;
    out.diverged += each.diverged;
    out.waits += each.waits;
    out.multiply_adds += each.multiply_adds;
    out.copied += each.copied_bytes;
    out.shared_requests += each.shared.requests;
    out.wavefronts += each.shared.wavefronts;
    out.conflicts += each.shared.conflicts();
    out.global_requests += each.global.requests;
    out.sectors += each.global.sectors;
    out.least_sectors += each.global.minimum;
  }
  return out;
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return b ? static_cast<double>(a) / static_cast<double>(b) : 0;
}

std::string totals_text(const Totals& sum) {
  std::string out = fmt::format(
      "lanes per instruction: {:.1f} of 32; {:.1f} % ran while lanes of their warp were "
      "elsewhere\n",
      ratio(sum.lanes, sum.executions), share(sum.diverged, sum.executions));
  if (sum.shared_requests)
    out += fmt::format("shared memory: {} requests, {} wavefronts, {} of them bank conflicts\n",
                       sum.shared_requests, sum.wavefronts, sum.conflicts);
  if (sum.global_requests)
    out += fmt::format(
        "global memory: {} requests, {} sectors of 32 bytes, {:.1f} a request, "
        "{:.1f} at least\n",
        sum.global_requests, sum.sectors, ratio(sum.sectors, sum.global_requests),
        ratio(sum.least_sectors, sum.global_requests));
  if (sum.copied) out += fmt::format("bulk copies: {} bytes\n", sum.copied);
  if (sum.waits)
    out += fmt::format("waits for mbarriers that found them incomplete: {}\n", sum.waits);
  return out;
}

std::string mix_text(Instructions instructions, std::uint64_t all) {
  std::map<std::string, std::uint64_t> counts;
  for (const InstructionProfile& each : instructions)
    counts[std::string(isa::name(isa::find_opcode(each.opcode)))] += each.executions;
  std::vector<std::pair<std::string, std::uint64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater{}, [](const auto& each) { return each.second; });
  std::string out = "instructions:";
  std::uint64_t others = all;
  for (std::size_t i = 0; i < std::min(sorted.size(), costliest); ++i) {
    out +=
        fmt::format("{} {} {:.1f} %", i ? "," : "", sorted[i].first, share(sorted[i].second, all));
    others -= sorted[i].second;
  }
  if (others) out += fmt::format(", others {:.1f} %", share(others, all));
  return out + '\n';
}

std::string place_text(const InstructionProfile& each) {
  return each.source.empty() ? std::string() : fmt::format("  {}", each.source);
}

std::string costliest_text(Instructions instructions) {
  std::vector<const InstructionProfile*> sorted;
  for (const InstructionProfile& each : instructions) sorted.push_back(&each);
  std::ranges::stable_sort(sorted, std::greater{}, [](const auto* each) { return each->cost(); });
  sorted.resize(std::min(sorted.size(), costliest));
  std::string out =
      fmt::format("{:>12} {:>12} {:>6}  costliest instructions\n", "cost", "executions", "line");
  for (const InstructionProfile* each : sorted)
    out += fmt::format("{:>12} {:>12} {:>6}  {}{}\n", each->cost(), each->executions, each->line,
                       each->opcode, place_text(*each));
  return out;
}

// "4444....": the words that each bank delivers.
std::string banks_text(const std::vector<std::uint8_t>& words) {
  std::string out;
  for (const std::uint8_t count : words)
    out += count == 0 ? '.' : count > 9 ? '+' : static_cast<char>('0' + count);
  return out;
}

std::string conflict_text(const InstructionProfile& each) {
  const SharedAccesses& shared = each.shared;
  std::string out = fmt::format(
      "line {}: {}{}: {:.1f} wavefronts a request, {:.1f} without bank conflicts\n"
      "  worst request: {} wavefronts, {} without; words of banks 0 to 31: {}\n",
      each.line, each.opcode, place_text(each), ratio(shared.wavefronts, shared.requests),
      ratio(shared.minimum, shared.requests), shared.worst_wavefronts, shared.worst_minimum,
      banks_text(shared.worst_banks));
  for (const std::string& cure : shared.cures) out += fmt::format("  cure: {}\n", cure);
  return out;
}

}  // namespace

std::string profile_text(Instructions instructions) {
  const Totals sum = totals(instructions);
  std::string out =
      totals_text(sum) + mix_text(instructions, sum.executions) + costliest_text(instructions);
  for (const InstructionProfile& each : instructions)
    if (each.shared.conflicts()) out += conflict_text(each);
  return out;
}

nlohmann::ordered_json profile_json(Instructions instructions) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  for (const InstructionProfile& each : instructions) {
    Json json = {{"kernel", each.kernel}, {"line", each.line},
                 {"opcode", each.opcode}, {"source", each.source},
                 {"cost", each.cost()},   {"executions", each.executions},
                 {"lanes", each.lanes},   {"diverged", each.diverged}};
    if (each.waits) json["waits"] = each.waits;
    if (each.multiply_adds) json["multiply_adds"] = each.multiply_adds;
    if (each.copied_bytes) json["copied_bytes"] = each.copied_bytes;
    if (const SharedAccesses& shared = each.shared; shared.requests) {
      json["shared"] = {{"requests", shared.requests},
                        {"wavefronts", shared.wavefronts},
                        {"conflicts", shared.conflicts()},
                        {"bytes", shared.bytes}};
      if (shared.conflicts()) {
        json["shared"]["worst_banks"] = shared.worst_banks;
        json["shared"]["cures"] = shared.cures;
      }
    }
    if (const GlobalAccesses& global = each.global; global.requests)
      json["global"] = {{"requests", global.requests},
                        {"sectors", global.sectors},
                        {"minimum_sectors", global.minimum},
                        {"bytes", global.bytes}};
    out.push_back(std::move(json));
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI
