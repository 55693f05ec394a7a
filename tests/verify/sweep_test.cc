// SPDX-License-Identifier: Apache-2.0
// The verifier's verdict on every kind of matrix instruction, legal and illegal, against recorded
// tables (tests/data/isa): every form known to any manual or assembler, and a sample of all
// combinations of qualifiers, on 23 pairs of target and PTX version.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "tartan/verify/verify.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

enum class Verdict { Illegal, Legal, Undocumented };

struct Row {
  std::string mnemonic, operands;
  Version first, last;  // last 0.0: none
  std::set<std::string> targets;
  Verdict verdict = Verdict::Legal;
};

using test::split;

// forms.txt has family|mnemonic|operands|first|targets, beyond.txt
// class|mnemonic|operands|first|last|targets.
std::vector<Row> read_table(const std::string& path, bool beyond) {
  std::ifstream in(path);
  std::map<std::string, std::set<std::string>> letters;
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '=') {
      const auto words = split(line.substr(1), " ");
      letters[words[0]] = {words.begin() + 1, words.end()};
      continue;
    }
    const auto fields = split(line, "|");
    Row row;
    // "[.u32|.u64]" contains the separator.
    const auto joined = split(line.substr(line.find('|', fields[0].size() + 1) + 1), "|");
    row.mnemonic = fields[1];
    const std::size_t tail = beyond ? 3 : 2;
    for (std::size_t i = 0; i + tail < joined.size(); ++i)
      row.operands += (i ? "|" : "") + joined[i];
    row.first = *Version::parse(joined[joined.size() - tail]);
    if (beyond && !joined[joined.size() - 2].empty())
      row.last = *Version::parse(joined[joined.size() - 2]);
    row.targets = letters.at(joined.back());
    if (fields[0] == "undocumented") row.verdict = Verdict::Undocumented;
    rows.push_back(row);
  }
  return rows;
}

const std::vector<Row>& table() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> out = read_table(TEST_DATA "/isa/forms.txt", false);
    for (Row& row : read_table(TEST_DATA "/isa/beyond.txt", true)) out.push_back(std::move(row));
    return out;
  }();
  return rows;
}

const std::multimap<std::string, const Row*>& by_mnemonic() {
  static const auto index = [] {
    std::multimap<std::string, const Row*> out;
    for (const Row& row : table()) out.emplace(row.mnemonic, &row);
    return out;
  }();
  return index;
}

// "d=4x.f32; addr=[.u32|.u64]" -> "{%f32_0, ...}, [%b64_0]"
std::string operand_text(const std::string& signature) {
  std::string out;
  for (const std::string& each : split(signature, "; ")) {
    const std::string what = each.substr(each.find('=') + 1);
    if (!out.empty()) out += ", ";
    if (const std::size_t x = what.find("x.");
        x != std::string::npos && std::isdigit(static_cast<unsigned char>(what[0]))) {
      const int count = std::stoi(what);
      out += '{';
      for (int i = 0; i < count; ++i)
        out += fmt::format("{}%{}_{}", i ? ", " : "", what.substr(x + 2), i);
      out += '}';
    } else if (what[0] == '[') {
      out += "[%b64_0]";
    } else if (what == "imm") {
      out += each.find("scale") != std::string::npos ? "1" : "0";
    } else if (what[0] == '{') {
      out += "{0, 0}";
    } else {
      out += fmt::format("%{}_0", what.substr(1));
    }
  }
  return out;
}

// .b32 fits every 32-bit operand: generated lines use only .b32, so f32 is treated alike. Register
// types have their own tests.
std::string normal(std::string operands) {
  for (std::size_t at = operands.find("f32"); at != std::string::npos;
       at = operands.find("f32", at))
    operands[at] = 'b';
  return operands;
}

struct Line {
  std::string mnemonic, operands;
};

Verdict recorded(const Line& line, const std::string& arch, Version version) {
  const auto [from, to] = by_mnemonic().equal_range(line.mnemonic);
  for (auto at = from; at != to; ++at) {
    const Row& row = *at->second;
    if (normal(row.operands) == normal(line.operands) && row.targets.contains(arch) &&
        version >= row.first && (row.last == Version{} || version <= row.last))
      return row.verdict;
  }
  return Verdict::Illegal;
}

// Qualifiers in the manual's order; "" stands for none.
using Slots = std::vector<std::vector<std::string>>;
const std::vector<std::string> warp_shapes = {"m8n8k4",   "m16n8k4",  "m16n8k8",   "m16n8k16",
                                              "m16n8k32", "m16n8k64", "m16n8k128", "m8n8k16",
                                              "m8n8k32",  "m8n8k128", "m16n8k256"};
const std::vector<std::string> wmma_shapes = {"m16n16k16", "m32n8k16", "m8n32k16", "m16n16k8",
                                              "m8n8k4",    "m8n8k32",  "m8n8k128", "m16n8k16"};
const std::vector<std::string> inputs = {"f16", "bf16", "tf32", "f64",  "s8",   "u8",   "s4",
                                         "u4",  "b1",   "e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};

const std::vector<Slots>& families() {
  static const std::vector<Slots> all = {
      {{"ldmatrix", "stmatrix"},
       {"sync"},
       {"aligned", ""},
       {"m8n8", "m16n16", "m8n16", "m16n8"},
       {"x1", "x2", "x4", "x8", ""},
       {"", "trans"},
       {"", "shared", "shared::cta", "global"},
       {"b16", "b8", "b8x16", "b32"},
       {"", "b6x16_p32", "b4x16_p64", "b8"}},
      {{"movmatrix"},
       {"sync"},
       {"aligned"},
       {"m8n8", "m16n8"},
       {"", "x1"},
       {"", "trans"},
       {"b16", "b8"}},
      {{"wmma.load", "wmma.store"},
       {"a", "b", "c", "d"},
       {"sync"},
       {"aligned", ""},
       {"row", "col"},
       wmma_shapes,
       {"", "global", "shared", "shared::cta"},
       {"f16", "f32", "bf16", "tf32", "f64", "s8", "u8", "s4", "u4", "b1", "s32"}},
      {{"wmma.mma"},
       {"", "xor.popc", "and.popc"},
       {"sync"},
       {"aligned", ""},
       {"row", "col"},
       {"row", "col"},
       wmma_shapes,
       {"", "rn", "rz"},
       {"f16", "f32", "s32", "f64"},
       {"", "f16.f16", "bf16.bf16", "tf32.tf32", "f64.f64", "s8.s8", "u8.u8", "s8.u8", "s4.s4",
        "u4.u4", "b1.b1"},
       {"f16", "f32", "s32", "f64"},
       {"", "satfinite"}},
      {{"mma", "mma.sp", "mma.sp::ordered_metadata"},
       {"sync"},
       {"aligned"},
       warp_shapes,
       {"row", "col"},
       {"col", "row"},
       {"", "satfinite", "rn"},
       {"f16", "f32", "s32", "f64"},
       inputs,
       inputs,
       {"f16", "f32", "s32", "f64"},
       {"", "", "", "and.popc", "xor.popc"}},
      {{"mma", "mma.sp::ordered_metadata"},
       {"sync"},
       {"aligned"},
       {"m16n8k16", "m16n8k32", "m16n8k64", "m16n8k128"},
       {"row"},
       {"col"},
       {"kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"},
       {"", "block_scale"},
       {"", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X"},
       {"f32", "f16"},
       {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"},
       {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"},
       {"f32", "f16"},
       {"", "ue8m0", "ue4m3"}},
      {{"wgmma.mma_async", "wgmma.mma_async.sp"},
       {"sync"},
       {"aligned"},
       {"m64n8k16", "m64n40k8", "m64n40k32", "m64n48k32", "m64n256k256", "m64n264k16", "m64n16k64"},
       {"", "satfinite"},
       {"f16", "f32", "s32"},
       {"f16", "bf16", "tf32", "e4m3", "s8", "u8", "b1"},
       {"f16", "bf16", "tf32", "e5m2", "s8", "u8", "b1"},
       {"", "and.popc"}},
  };
  return all;
}

std::string combine(const Slots& slots, std::mt19937& random) {
  std::string out;
  for (const auto& slot : slots) {
    const std::string& word = slot[random() % slot.size()];
    if (!word.empty()) out += (out.empty() ? "" : ".") + word;
  }
  return out;
}

std::string default_operands(const std::string& mnemonic) {
  if (mnemonic.starts_with("ldmatrix")) return "d=1x.b32; addr=[.u32|.u64]";
  if (mnemonic.starts_with("stmatrix") || mnemonic.starts_with("wmma.store"))
    return "addr=[.u32|.u64]; c=4x.b32";
  if (mnemonic.starts_with("wmma.load")) return "d=8x.b32; addr=[.u32|.u64]";
  return "d=4x.f32; a=4x.b32; b=2x.b32; c=4x.f32";
}

// Every recorded form once, and `more` combinations of qualifiers, with the operands that the
// tables have for them, or others.
std::vector<Line> lines(unsigned seed, int more) {
  std::mt19937 random(seed);
  std::vector<Line> out;
  for (const Row& row : table())
    if (!row.mnemonic.starts_with("wgmma") || random() % 4 == 0)
      out.push_back({row.mnemonic, row.operands});
  for (int i = 0; i < more; ++i) {
    const std::string mnemonic = combine(families()[random() % families().size()], random);
    const auto [from, to] = by_mnemonic().equal_range(mnemonic);
    const Row& any = table()[random() % table().size()];
    const std::string operands = from != to && random() % 4 ? from->second->operands
                                 : random() % 2             ? any.operands
                                                            : default_operands(mnemonic);
    out.push_back({mnemonic, normal(operands)});
  }
  return out;
}

constexpr int first_line = 16;  // of the instructions in module_text

std::string module_text(const std::string& arch, const std::string& version,
                        const std::vector<Line>& lines) {
  std::string out = fmt::format(
      ".version {}\n.target {}\n.address_size 64\n.visible .entry k()\n{{\n", version, arch);
  for (const std::string_view type :
       {"pred", "b16", "u16", "b32", "u32", "s32", "f32", "f16x2", "b64", "f64"})
    out += fmt::format(".reg .{} %{}_<128>;\n", type, type);
  for (const Line& line : lines)
    out += fmt::format("{} {};\n", line.mnemonic, operand_text(line.operands));
  return out + "ret;\n}\n";
}

TEST(CheckSweep, AgreesWithTheTables) {
  ASSERT_GT(table().size(), 4500u);
  const std::pair<const char*, const char*> pairs[] = {
      {"sm_70", "6.0"},   {"sm_70", "6.2"},   {"sm_72", "6.1"},   {"sm_70", "6.4"},
      {"sm_75", "6.3"},   {"sm_75", "6.5"},   {"sm_80", "7.0"},   {"sm_80", "7.1"},
      {"sm_86", "7.8"},   {"sm_89", "8.4"},   {"sm_89", "8.7"},   {"sm_90", "7.8"},
      {"sm_90a", "8.0"},  {"sm_90a", "8.4"},  {"sm_100", "8.6"},  {"sm_100a", "8.6"},
      {"sm_100f", "8.8"}, {"sm_103a", "8.8"}, {"sm_110a", "9.0"}, {"sm_120", "8.7"},
      {"sm_120a", "8.7"}, {"sm_120f", "8.8"}, {"sm_121a", "9.0"}};
  std::size_t checked = 0, legal = 0, undocumented = 0, disagreements = 0;
  unsigned seed = 1;
  for (const auto& [arch, version] : pairs) {
    const std::vector<Line> all = lines(seed++, 6000);
    auto source = std::make_shared<const Source>(fmt::format("{}-{}", arch, version),
                                                 module_text(arch, version, all));
    const Diags diags = verify::check(source);
    std::map<int, const Diag*>
        errors;  // of a line: one that is no "undocumented-form", if there is one
    for (const Diag& diag : diags) {
      if (diag.level != Level::Error) continue;
      const auto [at, fresh] = errors.try_emplace(diag.place.line, &diag);
      if (!fresh && at->second->id == "undocumented-form") at->second = &diag;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto at = errors.find(first_line + static_cast<int>(i));
      const Verdict ours = at == errors.end()                      ? Verdict::Legal
                           : at->second->id == "undocumented-form" ? Verdict::Undocumented
                                                                   : Verdict::Illegal;
      const Verdict theirs = recorded(all[i], arch, *Version::parse(version));
      ++checked, legal += theirs == Verdict::Legal, undocumented += theirs == Verdict::Undocumented;
      if (ours == theirs) continue;
      if (++disagreements <= 20)
        ADD_FAILURE() << arch << " PTX " << version << ": " << all[i].mnemonic << " ("
                      << all[i].operands << ")\n  recorded " << static_cast<int>(theirs)
                      << ", ours " << static_cast<int>(ours)
                      << (at == errors.end() ? "" : ": " + at->second->message);
    }
  }
  EXPECT_EQ(disagreements, 0u);
  EXPECT_GE(checked, 100000u);
  EXPECT_GE(legal, 10000u);
  EXPECT_GE(undocumented, 1000u);
  fmt::print("{} lines: {} legal, {} undocumented\n", checked, legal, undocumented);
}

// ---- The assembler itself, where it is installed.

int assemble(const std::string& arch, const std::string& version, const std::vector<Line>& lines,
             std::string& log) {
  const std::string base =
      ::testing::TempDir() + "tartan_check_sweep_" + std::to_string(::getpid());
  std::ofstream(base + ".ptx") << module_text(arch, version, lines);
  const int code = std::system(
      fmt::format("ptxas -arch {} {}.ptx -o /dev/null > {}.log 2>&1", arch, base, base).c_str());
  std::ostringstream text;
  text << std::ifstream(base + ".log").rdbuf();
  log = text.str().substr(0, 2000);
  std::remove((base + ".ptx").c_str()), std::remove((base + ".log").c_str());
  return code;
}

TEST(CheckSweep, AgreesWithTheAssembler) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no ptxas";
  const std::pair<const char*, const char*> pairs[] = {{"sm_75", "6.5"},   {"sm_80", "7.1"},
                                                       {"sm_89", "8.7"},   {"sm_90a", "8.4"},
                                                       {"sm_100a", "8.8"}, {"sm_120a", "8.8"}};
  std::mt19937 random(7);
  for (const auto& [arch, version] : pairs) {
    const Version ptx = *Version::parse(version);
    std::vector<Line> good, bad;
    for (const Line& line : lines(99, 3000)) {
      auto source = std::make_shared<const Source>("line", module_text(arch, version, {line}));
      const bool wgmma = line.mnemonic.starts_with(
          "wgmma");  // outside a kernel's warpgroup protocol it only parses
      if (wgmma) continue;
      const Diags diags = verify::check(source);
      const Verdict theirs = recorded(line, arch, ptx);
      if (diags.ok() && random() % 8 == 0) good.push_back(line);
      else if (!diags.ok() && theirs == Verdict::Illegal && bad.size() < 30 && random() % 40 == 0)
        bad.push_back(line);
    }
    ASSERT_GT(good.size(), 5u) << arch;
    ASSERT_GT(bad.size(), 10u) << arch;
    std::string log;
    EXPECT_EQ(assemble(arch, version, good, log), 0) << arch << "\n" << log;
    // One error hides others: each wrong line has its own module.
    for (const Line& line : bad)
      EXPECT_NE(assemble(arch, version, {line}, log), 0)
          << arch << ": " << line.mnemonic << " (" << line.operands << ")";
  }
}

}  // namespace
}  // namespace tartan
