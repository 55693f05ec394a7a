// SPDX-License-Identifier: Apache-2.0
// `check` against the assembler on token mutants of the repository's own PTX: one token dropped,
// doubled, swapped or replaced (tests/data/isa/mutants/mutants.py makes and records the same).
//
//   TARTAN_SWEEP=all       every mutant, not one in some
//   TARTAN_SWEEP_SHOW=50   so many disagreements (else 10)
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include "tartan/verify/verify.h"
#include "tests/verify/opcode_sweep.h"

namespace tartan::sweep {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& path) {
  std::ifstream in(path);
  Lines out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

// The file with one of its entries, retargeted.
Lines unit(const std::string& path, int which, const Pair& pair) {
  Lines out;
  int entries = 0;
  bool inside = false;
  for (std::string line : lines_of(path)) {
    if (!inside && (line.starts_with(".visible .entry ") || line.starts_with(".entry ")))
      inside = true, ++entries;
    const bool kept = !inside || entries == which + 1;
    if (inside && line == "}") inside = false;
    if (!kept) continue;
    if (line.starts_with(".version ")) line = ".version " + pair.ptx;
    else if (line.starts_with(".target ")) line = ".target " + pair.target;
    out.push_back(line);
  }
  return out;
}

struct Token {
  std::size_t line = 0, begin = 0, end = 0;
};

bool wordlike(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

// The end of the token at `at`: a word with its dot and its ::parts, or one character.
std::size_t token_end(const std::string& line, std::size_t at, std::size_t limit) {
  const auto in_word = [&](std::size_t i) {
    return i < limit && (wordlike(line[i]) || line[i] == '$' || line[i] == '%');
  };
  std::size_t end = at + (line[at] == '.');
  if (!in_word(end)) return at + 1;
  while (in_word(end)) ++end;
  while (end + 2 < limit && line[end] == ':' && line[end + 1] == ':' && wordlike(line[end + 2]))
    for (end += 2; end < limit && wordlike(line[end]);) ++end;
  return end;
}

std::vector<Token> tokens_of(const Lines& lines) {
  std::vector<Token> out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.starts_with(".version ") || line.starts_with(".target ") ||
        line.starts_with(".address_size "))
      continue;
    const std::size_t limit = std::min(line.find("//"), line.size());
    for (std::size_t at = 0; at < limit;) {
      if (std::isspace(static_cast<unsigned char>(line[at]))) {
        ++at;
        continue;
      }
      const std::size_t end = token_end(line, at, limit);
      out.push_back({i, at, end});
      at = end;
    }
  }
  return out;
}

struct Mutant {
  std::size_t line = 0;
  std::string text;
};

std::optional<Mutant> mutant(const Lines& lines, const std::vector<Token>& tokens,
                             std::uint32_t seed) {
  const std::size_t which = mix(seed + 1) % (tokens.size() - 1);
  const auto [number, begin, end] = tokens[which];
  const std::string& line = lines[number];
  const std::string token = line.substr(begin, end - begin), before = line.substr(0, begin),
                    after = line.substr(end);
  std::string text;
  switch (mix(seed) % 4) {
    case 0: text = before + after; break;
    case 1: text = before + token + (token[0] == '.' ? "" : " ") + token + after; break;
    case 2: {
      const Token& next = tokens[which + 1];
      if (next.line != number) return std::nullopt;
      text = before + line.substr(next.begin, next.end - next.begin) +
             line.substr(end, next.begin - end) + token + line.substr(next.end);
      break;
    }
    default: {
      const Token& other = tokens[mix(seed + 2) % tokens.size()];
      text = before + lines[other.line].substr(other.begin, other.end - other.begin) + after;
    }
  }
  if (text == line) return std::nullopt;
  return Mutant{number, text};
}

// A line of verdicts.txt.
struct Recording {
  std::string file, pair, digits;
  int entry = 0;
  std::size_t count = 0;
  std::uint32_t checksum = 0;

  bool taken(std::size_t i) const {
    const char digit = digits.at(i / 4);
    const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
    return value >> (3 - i % 4) & 1;
  }
};

std::vector<Recording> recordings() {
  std::vector<Recording> out;
  for (const std::string& line : lines_of(TEST_DATA "/isa/mutants/verdicts.txt")) {
    if (line.starts_with("#")) continue;
    std::istringstream in(line);
    Recording& one = out.emplace_back();
    in >> one.file >> one.entry >> one.pair >> one.count >> std::hex >> one.checksum >> one.digits;
  }
  return out;
}

std::vector<Mutant> mutants_of(const Lines& lines, const Recording& recording) {
  constexpr std::uint32_t tried = 110;
  const std::vector<Token> tokens = tokens_of(lines);
  const std::uint32_t seed =
      crc32(fmt::format("{} {} {}", recording.file, recording.entry, recording.pair));
  std::vector<Mutant> out;
  std::string all;
  for (std::uint32_t n = 0; n < tried; ++n) {
    if (auto one = mutant(lines, tokens, mix(seed + 3 * n))) {
      all += fmt::format("{} {}\n", one->line, one->text);
      out.push_back(std::move(*one));
    }
  }
  EXPECT_EQ(out.size(), recording.count) << recording.file;
  EXPECT_EQ(crc32(all), recording.checksum) << recording.file << ": run mutants.py";
  return out;
}

// Mutants that the assembler accepts and `check` rejects, on purpose; docs/check.md has the
// reasons.
bool explained(const std::string& mutant, const std::string& error) {
  const auto says = [&](std::string_view text) { return error.find(text) != std::string::npos; };
  if (says("is repeated")) return true;                                 // a slip: bra.uni.uni
  if (says("expected wgmma") && says("[unknown-form]")) return true;    // wgmma.fence.aligned.sync
  if (says("wgmma.mma_async requires .aligned")) return true;           // so says the manual
  if (mutant.find("wmma.mma.") != std::string::npos)                    // a parameter, a predicate
    return says("[register-type]") || says("[operand-kind]");           // for a fragment's register
  return says("[syntax]") && mutant.find(" s[+") != std::string::npos;  // elements: name[1]
}

// The first error of `check`, or nothing.
std::string first_error(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  for (const Diag& diag : verify::check(std::make_shared<const Source>("mutant", text)))
    if (diag.level == Level::Error)
      return fmt::format("line {}: {} [{}]", diag.place.line, diag.message, diag.id);
  return "";
}

struct Tally {
  std::size_t mutants = 0, taken = 0, wrongly_taken = 0, wrongly_refused = 0;
  std::size_t explained = 0;
};

void compare(const Recording& recording, std::size_t share, std::size_t show, Tally& tally) {
  Lines lines = unit(TEST_DATA "/" + recording.file, recording.entry, Pair(recording.pair));
  ASSERT_EQ(first_error(lines), "") << recording.file << " " << recording.entry;
  const std::vector<Mutant> mutants = mutants_of(lines, recording);
  if (::testing::Test::HasFailure()) return;
  for (std::size_t i = mix(recording.checksum) % share; i < mutants.size(); i += share) {
    const Mutant& one = mutants[i];
    const std::string original = lines[one.line];
    lines[one.line] = one.text;
    const std::string error = first_error(lines);
    lines[one.line] = original;
    const bool taken = recording.taken(i);
    ++tally.mutants, tally.taken += taken;
    if (error.empty() == taken) continue;
    if (taken && explained(one.text, error)) {
      ++tally.explained;
      continue;
    }
    ++(taken ? tally.wrongly_refused : tally.wrongly_taken);
    if (tally.wrongly_refused + tally.wrongly_taken > show) continue;
    fmt::print("  {} of {} {} on {}, line {}\n    {}\n -> {}\n    {}\n",
               taken ? "refuses" : "takes", recording.file, recording.entry, recording.pair,
               one.line + 1, original, one.text, error);
  }
}

// At least 99.5 % agree with the assembler; of those that it accepts, at most 0.1 % are rejected.
TEST(CheckMutants, AgreeWithTheAssembler) {
  const char* how = std::getenv("TARTAN_SWEEP");
  const char* shown = std::getenv("TARTAN_SWEEP_SHOW");
  const bool whole = how && std::string(how) == "all";
  Tally tally;
  for (const Recording& recording : recordings()) {
    compare(recording, whole ? 1 : 16, shown ? std::stoul(shown) : 10, tally);
    if (HasFailure()) return;
  }
  const std::string summary = fmt::format(
      "{} mutants, {} taken by the assembler, {} wrongly taken, {} wrongly refused, "
      "{} explained",
      tally.mutants, tally.taken, tally.wrongly_taken, tally.wrongly_refused, tally.explained);
  fmt::print("{}\n", summary);
  EXPECT_GT(tally.taken, 20u);
  if (is_unfinished("mutants")) GTEST_SKIP() << "unfinished: " << summary;
  EXPECT_LE((tally.wrongly_taken + tally.wrongly_refused) * 200, tally.mutants);
  EXPECT_LE(tally.wrongly_refused * 1000, tally.taken);
}

}  // namespace
}  // namespace tartan::sweep
