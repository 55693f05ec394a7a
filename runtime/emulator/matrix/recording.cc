// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "compiler/support/json_text.h"
#include "tartan/isa/form.h"
#include "tartan/support/source.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int most_words = 1 << 20;  // per test; more is a damaged index

[[noreturn]] void refuse(const char* name, std::string_view expected, std::string_view found) {
  throw std::runtime_error(fmt::format("{}: expected {}, found {}", name, expected, found));
}

// A number in the range of T, or a text.
template <typename T>
T as(const nlohmann::json& value, const char* name) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) refuse(name, "a text", value.type_name());
    return value.get<std::string>();
  } else {
    using Limits = std::numeric_limits<T>;
    if (!value.is_number_integer()) refuse(name, "a whole number", value.type_name());
    const bool fits = value.is_number_unsigned() ? std::in_range<T>(value.get<std::uint64_t>())
                                                 : std::in_range<T>(value.get<std::int64_t>());
    if (!fits) refuse(name, fmt::format("{} to {}", Limits::min(), Limits::max()), value.dump());
    return value.get<T>();
  }
}

template <typename T>
T field(const nlohmann::json& entry, const char* name) {
  const auto found = entry.find(name);
  if (found == entry.end()) refuse(name, "a value", "nothing");
  return as<T>(*found, name);
}

template <typename T>
T field(const nlohmann::json& entry, const char* name, T otherwise) {
  return entry.contains(name) ? field<T>(entry, name) : otherwise;
}

int count_field(const nlohmann::json& entry, const char* name) {
  const auto value = field<std::int64_t>(entry, name);
  if (value < 0 || value > most_words)
    refuse(name, fmt::format("0 to {}", most_words), fmt::format("{}", value));
  return static_cast<int>(value);
}

// A flag, written as a boolean or as 0 and 1.
bool flag_field(const nlohmann::json& entry, const char* name) {
  const auto found = entry.find(name);
  if (found == entry.end()) return false;
  return found->is_boolean() ? found->get<bool>() : as<int>(*found, name) != 0;
}

RecordedEntry read_entry(const nlohmann::json& json) {
  if (!json.is_object())
    throw std::runtime_error(fmt::format("expected an object, found {}", json.type_name()));
  RecordedEntry entry;
  entry.mnemonic = field<std::string>(json, "mnemonic");
  entry.operand = field<std::string>(json, "operand", "");
  entry.selector = field(json, "selector", 0);
  entry.tests = count_field(json, "tests");
  entry.in_words = count_field(json, "in_words");
  entry.out_words = count_field(json, "out_words");
  entry.memory_bytes = count_field(json, "mem_bytes");
  entry.memory_out = flag_field(json, "mem_out");
  entry.offset = field<std::uint64_t>(json, "offset");
  if (const auto kinds = json.find("kinds"); kinds != json.end() && kinds->is_array())
    for (const auto& each : *kinds) entry.kinds.push_back(as<std::string>(each, "kinds"));
  entry.a_in_registers = flag_field(json, "a_in_registers");
  entry.trans_a = field(json, "trans_a", 0);
  entry.trans_b = field(json, "trans_b", 0);
  entry.scale_a = field(json, "scale_a", 1);
  entry.scale_b = field(json, "scale_b", 1);
  entry.steps = field(json, "steps", 1);
  if (entry.selector < 0 || entry.selector > 3)
    throw std::runtime_error(fmt::format("selector is {}", entry.selector));
  if (entry.steps < 1 || entry.steps > 64)
    throw std::runtime_error(fmt::format("steps is {}", entry.steps));
  if (entry.offset % 4 || entry.memory_bytes % 4)
    throw std::runtime_error("offset and mem_bytes must be multiples of 4");
  const auto bytes = field<std::uint64_t>(json, "bytes", entry.tests * entry.bytes_per_test());
  if (bytes != entry.tests * entry.bytes_per_test())
    throw std::runtime_error(fmt::format("bytes is {}, but the tests take {}", bytes,
                                         entry.tests * entry.bytes_per_test()));
  return entry;
}

Result<std::vector<RecordedEntry>> read_index(const std::string& path) {
  const auto file = read_source(path);
  if (!file) return file.diags();
  if (const auto at = nested_too_deep(file->text()))
    return Diags::one("recording"_rule, file->place(static_cast<std::uint32_t>(*at)),
                      fmt::format("the index is nested too deep: expected at most {} brackets",
                                  most_json_nesting));
  const auto json = nlohmann::json::parse(file->text(), nullptr, false);
  if (json.is_discarded()) return {"recording"_rule, fmt::format("{} is not valid JSON", path)};
  const bool object = json.is_object() && json.contains("entries");
  const auto& list = object ? json.at("entries") : json;
  if (!list.is_array()) return {"recording"_rule, fmt::format("{} has no list of entries", path)};
  std::vector<RecordedEntry> entries;
  for (const auto& entry : list) {
    try {
      entries.push_back(read_entry(entry));
    } catch (const std::exception& error) {
      return {"recording"_rule,
              fmt::format("entry {} of {}: {}", entries.size(), path, error.what())};
    }
  }
  return entries;
}

Result<std::vector<std::uint32_t>> read_words(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return {"file"_rule, fmt::format("cannot read {}: {}", path, error.message())};
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint32_t> words((bytes + 3) / 4);
  if (!file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(bytes)))
    return {"file"_rule, fmt::format("cannot read {}", path)};
  words.resize(bytes / 4);  // a truncated last word is dropped
  return words;
}

}  // namespace

bool RecordedEntry::warpgroup() const { return isa::find_opcode(mnemonic) == isa::Opcode::wgmma; }

std::uint64_t RecordedEntry::bytes_per_test() const {
  const auto lanes = warpgroup() ? 1u : 32u;  // wgmma counts words of all lanes together
  const auto memory = static_cast<std::uint64_t>(memory_bytes);
  return 4u * lanes * static_cast<std::uint64_t>(in_words + out_words) + memory +
         (memory_out ? memory : 0);
}

namespace {

Result<Recording> read_files(const std::string& index_path, const std::string& data_path) {
  auto entries = read_index(index_path);
  if (!entries) return entries.diags();
  auto words = read_words(data_path);
  if (!words) return words.diags();
  for (const RecordedEntry& entry : *entries) {
    const std::uint64_t end =
        entry.offset + static_cast<std::uint64_t>(entry.tests) * entry.bytes_per_test();
    if (end < entry.offset || end > words->size() * 4)
      return {"recording"_rule,
              fmt::format("{} is truncated: it ends at byte {}, {} needs bytes up to {}", data_path,
                          words->size() * 4, entry.mnemonic, end)};
  }
  return Recording{std::move(*entries), std::move(*words)};
}

}  // namespace

Result<Recording> Recording::read(const std::string& index_path, const std::string& data_path) {
  try {
    return read_files(index_path, data_path);
  } catch (const std::bad_alloc&) {
    return {"out-of-memory"_rule, fmt::format("{} does not fit in memory", data_path)};
  }
}

Replay replay(const Recording& recording, Hardware hardware, Path path,
              const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  Replay out;
  for (const RecordedEntry& entry : recording.entries) {
    out.entries.push_back(replay(recording, entry, hardware, path));
    const ReplayedEntry& last = out.entries.back();
    out.words += last.words;
    out.mismatched += last.mismatched;
    out.skipped += last.skipped;
    if (progress) progress(out.entries.size(), recording.entries.size());
  }
  return out;
}

std::string Replay::text() const {
  std::string text;
  for (const ReplayedEntry& e : entries) {
    if (!e.mismatched) continue;
    const std::string place = e.lane < 0 ? fmt::format("memory word {}", e.word)
                                         : fmt::format("register {}, lane {}", e.word, e.lane);
    const auto& kinds = e.entry->kinds;
    const auto test = static_cast<std::size_t>(e.test);
    text += fmt::format(
        "{}: {} of {} words differ; first in test {}{}, {}: expected 0x{:08x}, found 0x{:08x}\n",
        e.entry->mnemonic, e.mismatched, e.words, e.test,
        test < kinds.size() ? " (" + kinds[test] + ")" : "", place, e.expected, e.got);
  }
  if (skipped)
    text += fmt::format("skipped: {} of {} entries with unsupported instructions\n", skipped,
                        entries.size());
  return text + fmt::format("words: {}, mismatched: {}\n", words, mismatched);
}

std::string Replay::json() const {
  auto differences = nlohmann::json::array(), left_out = nlohmann::json::array();
  for (const ReplayedEntry& e : entries) {
    if (e.skipped) left_out.push_back(e.entry->mnemonic);
    if (!e.mismatched) continue;
    differences.push_back({{"mnemonic", e.entry->mnemonic},
                           {"words", e.words},
                           {"mismatched", e.mismatched},
                           {"first",
                            {{"test", e.test},
                             {"word", e.word},
                             {"lane", e.lane},
                             {"expected", e.expected},
                             {"got", e.got}}}});
  }
  return nlohmann::json{{"schema_version", json_schema_version},
                        {"words", words},
                        {"mismatched", mismatched},
                        {"differences", differences},
                        {"skipped", left_out}}
             .dump() +
         "\n";
}

}  // namespace tartan::TARTAN_ABI::emulator
