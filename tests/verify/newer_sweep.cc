// SPDX-License-Identifier: Apache-2.0
#include "tests/verify/newer_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/verify/opcode_sweep.h"

namespace tartan::sweep::newer {
namespace {

std::string unpacked(const std::string& path) {
  std::string out;
  FILE* pipe = popen(fmt::format("xz -dc '{}'", path).c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot read " + path);
  char part[65536];
  while (const std::size_t size = std::fread(part, 1, sizeof part, pipe)) out.append(part, size);
  if (pclose(pipe) != 0) throw std::runtime_error("cannot unpack " + path);
  return out;
}

std::string read(const std::string& path) {
  if (!std::filesystem::exists(path)) return unpacked(path + ".xz");
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// The target whose machine code speaks for another's: the nearest one with its suffix.
std::string_view nearest_assembled(std::string_view target) {
  if (std::ranges::find(assembled, target) != std::end(assembled)) return target;
  const bool a = target.ends_with('a'), f = target.ends_with('f');
  if (target == "sm_90a") return "sm_90";
  if (target == "sm_100f" || target == "sm_103f") return "sm_107f";
  if (target == "sm_110a") return "sm_110f";
  if (target == "sm_121a") return "sm_120a";
  if (target == "sm_121f") return "sm_120f";
  if (a || f) throw std::runtime_error("no such target");
  return std::stoi(std::string(target.substr(3))) < 90 ? "sm_80" : "sm_100";
}

// `*` stands for anything, `#` for a number.
bool fits(std::string_view pattern, std::string_view text) {
  const std::size_t special = pattern.find_first_of("*#");
  if (special == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, special))) return false;
  const std::string_view rest = pattern.substr(special + 1);
  if (pattern[special] == '#') {
    std::size_t end = special;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    return end > special && fits(rest, text.substr(end));
  }
  if (rest.empty()) return true;
  for (std::size_t at = special; at <= text.size(); ++at)
    if (fits(rest, text.substr(at))) return true;
  return false;
}

}  // namespace

Verdict Statement::verdict(std::string_view target, int minor) const {
  const auto at = static_cast<std::size_t>(std::ranges::find(targets, target) - targets);
  const char cell = cells.at(at);
  if (cell == '!') return Verdict::Unknown;
  if (cell == '-' || cell - '0' > minor) return Verdict::Refused;
  const auto like = std::ranges::find(assembled, nearest_assembled(target)) - assembled;
  if (code.at(static_cast<std::size_t>(like)) == '!') return Verdict::Unknown;
  return code.find('c') == std::string::npos ? Verdict::Taken : Verdict::Refused;
}

std::vector<Statement> read_family(const std::string& folder, const std::string& family) {
  std::istringstream in(read(folder + family + ".csv"));
  std::vector<Statement> out;
  std::string line;
  std::getline(in, line);  // the names of the columns
  while (std::getline(in, line)) {
    const std::size_t code = line.find(','), message = line.find(',', code + 1),
                      text = line.find(',', message + 1);
    std::string statement = line.substr(text + 1);
    if (statement.ends_with('\r')) statement.pop_back();
    if (statement.starts_with('"')) statement = statement.substr(1, statement.size() - 2);
    for (std::size_t at = 0; (at = statement.find("\"\"", at)) != std::string::npos; ++at)
      statement.erase(at, 1);
    out.push_back({line.substr(0, code), line.substr(code + 1, message - code - 1), statement});
  }
  return out;
}

bool Explained::matches(std::string_view pair, std::string_view text) const {
  if (text.starts_with('@')) text.remove_prefix(text.find(' ') + 1);
  return fits(pairs, pair) && fits(pattern, text) &&
         std::ranges::none_of(except, [&](const std::string& each) { return fits(each, text); });
}

std::vector<Explained> read_explained(const std::string& folder, const std::string& family) {
  std::vector<Explained> out;
  std::ifstream in(folder + "explained.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t colon = line.find(" : ");
    const auto words = split(line.substr(0, colon));
    if (words.at(1) != family) continue;
    std::vector<std::string> patterns = split(line.substr(colon + 3), " ! ");
    out.push_back({words.at(0), words.at(2), patterns[0], {patterns.begin() + 1, patterns.end()}});
  }
  return out;
}

std::string header(const std::string& target, const std::string& version) {
  return fmt::format(
      ".version {}\n.target {}\n.address_size 64\n.global .align 64 .b8 g_b[256];\n"
      ".const .align 16 .b8 c_b[64];\n.global .b32 g_b32;\n",
      version, target);
}

std::string function(std::size_t number) {
  return fmt::format(
      ".visible .entry k{}(.param .align 64 .b8 p_b[128])\n{{\n"
      ".reg .b32 %r<300>;\n.reg .b64 %rd<40>;\n.reg .pred %p<8>;\n.reg .b16 %h<24>;\n"
      ".reg .b8 %c<8>;\n.reg .f32 %f<140>;\n.reg .u32 %u<8>;\n.reg .s32 %s<8>;\n"
      ".reg .u64 %ud<8>;\n.reg .s64 %sd<8>;\n.reg .u16 %uh<8>;\n.reg .s16 %sh<8>;\n"
      ".reg .f64 %d<8>;\n.reg .f16 %hf<8>;\n.reg .b128 %q<8>;\n.shared .align 16 .b32 s_b32;\n"
      ".shared .align 16 .b64 s_bar;\n.local .align 16 .b8 l_b[64];\n",
      number);
}

}  // namespace tartan::sweep::newer
