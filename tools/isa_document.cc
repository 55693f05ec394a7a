// SPDX-License-Identifier: Apache-2.0
#include "tools/isa_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tartan/isa/fragment.h"
#include "tartan/isa/instruction.h"

namespace tartan::tools {
namespace {

struct Family {
  std::string_view name, about;
};

// clang-format off
constexpr Family families[] = {
    {"ldmatrix", "Loads 8x8 matrices (16x16, 8x16) from shared memory; each lane passes the address of one row."},
    {"stmatrix", "Stores 8x8 matrices (16x8) to shared memory."},
    {"movmatrix", "Transposes an 8x8 matrix across the lanes of a warp."},
    {"wmma.load", "Loads a fragment of wmma.mma. The manual does not specify which lane holds which element; `tartan layout` shows the map that was recorded on sm_90."},
    {"wmma.store", "Stores an accumulator of wmma.mma."},
    {"wmma.mma", "D = A * B + C on fragments that wmma.load filled. f16 forms name two types, those of D and C."},
    {"mma", "D = A * B + C on fragments with a documented layout: `tartan layout` shows it."},
    {"mma.sp", "mma with a 2:4 sparse A: two of each four columns are kept (tf32: one of two); metadata select them."},
    {"mma.block_scale", "mma on elements of 4 to 8 bits (e4m3, e5m2, e3m2, e2m3, e2m1), with one scale per block along k."},
    {"mma.sp.block_scale", "mma with a 2:4 sparse A and with one scale per block along k."},
    {"wgmma", "Asynchronous 64 x N product of a warpgroup. B, and A unless in registers, is read from shared memory through a descriptor."},
};
// clang-format on

// The places of a spelling, each with the words that may be there; "" if it may be empty.
using Places = std::vector<std::set<std::string>>;

struct Line {
  Places places;
  std::string operands, columns, version, targets;

  bool agrees(const Line& other) const {
    return operands == other.operands && columns == other.columns && version == other.version &&
           targets == other.targets;
  }
};

Places split(const std::string& spelling) {
  Places out;
  for (std::size_t from = 0; from <= spelling.size();) {
    const std::size_t dot = std::min(spelling.find('.', from), spelling.size());
    out.push_back({spelling.substr(from, dot - from)});
    from = dot + 1;
  }
  return out;
}

// The number of columns of wgmma as N, and the registers that follow from it.
std::string columns_text(const isa::Form& form, std::string& spelling, std::string& operands) {
  if (form.opcode != isa::Opcode::wgmma) return "";
  const std::string n = fmt::format("n{}k", form.shape.n);
  spelling.replace(spelling.find(n), n.size(), "nNk");
  const int registers = isa::fragment(form, Operand::d).registers;
  const std::string count = fmt::format("d={}x", registers);
  operands.replace(operands.find(count), count.size(),
                   fmt::format("d=N/{}x", form.shape.n / registers));
  return isa::wgmma(form)->every_n ? "N: 8 to 256 in steps of 8"
                                   : "N: 8, 16, 24, then 32 to 256 in steps of 16";
}

// The form as a line of its own. Forms with a stride or .shared::cta have no line: they mark the
// line of the form without.
Line line_of(isa::Form form) {
  const std::string spelling = isa::spell(form);
  const bool cta = form.space == StateSpace::shared_cta;
  if (cta) form.space = StateSpace::shared;
  const auto row = isa::find(form);
  Line out;
  out.operands = isa::operands_text(*row);
  std::string spelled = spelling;
  out.columns = columns_text(form, spelled, out.operands);
  out.places = split(spelled);
  out.version = row->since.ptx.text();
  out.targets = targets_text(row->since);
  if (form.opcode == isa::Opcode::wmma_load || form.opcode == isa::Opcode::wmma_store)
    out.operands += "[; stride=.b32]";
  return out;
}

bool written(const isa::Form& form) {
  // One line for all N, and one with and without a stride.
  return !form.stride && (form.opcode != isa::Opcode::wgmma || form.shape.n == 8);
}

using Merge = bool (*)(Line& line, const Line& other);

// Merges `other` into `line` if one of them has one place more than the other; that place becomes
// optional.
bool merge_option(Line& line, const Line& other) {
  const bool longer = line.places.size() == other.places.size() + 1;
  if (!line.agrees(other) || (!longer && other.places.size() != line.places.size() + 1))
    return false;
  Places whole = longer ? line.places : other.places;
  const Places& part = longer ? other.places : line.places;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    Places without = whole;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    if (without != part || whole[i].contains("")) continue;
    whole[i].insert("");
    line.places = std::move(whole);
    return true;
  }
  return false;
}

// Merges `other` into `line` if they differ only in the words of one place.
bool merge_words(Line& line, const Line& other) {
  if (!line.agrees(other) || line.places.size() != other.places.size()) return false;
  std::size_t different = line.places.size();
  for (std::size_t i = 0; i < line.places.size(); ++i) {
    if (line.places[i] == other.places[i]) continue;
    if (different != line.places.size()) return false;
    different = i;
  }
  if (different == line.places.size()) return false;
  line.places[different].insert(other.places[different].begin(), other.places[different].end());
  return true;
}

bool merge_all(std::vector<Line>& lines, Merge merge) {
  bool any = false;
  for (std::size_t i = 0; i < lines.size(); ++i)
    for (std::size_t j = i + 1; j < lines.size(); ++j)
      if (merge(lines[i], lines[j])) {
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(j--));
        any = true;
      }
  return any;
}

// Merges until no two lines can be merged. Options first: otherwise .trans and .shared would share
// a place.
std::vector<Line> merged(std::vector<Line> lines) {
  bool again = true;
  while (again) {
    while (merge_all(lines, merge_option)) {
    }
    again = merge_all(lines, merge_words);
  }
  return lines;
}

std::string place_text(const std::set<std::string>& words) {
  std::string list;
  std::size_t count = 0;
  for (const std::string& word : words) {
    if (word.empty()) continue;
    list += (count++ ? "," : "") + word;
  }
  if (count > 1) list = '{' + list + '}';
  return words.contains("") ? "[." + list + ']' : '.' + list;
}

std::string line_text(const Line& line) {
  std::string spelling;
  for (const auto& place : line.places) spelling += place_text(place);
  const std::string columns = line.columns.empty() ? "" : "; " + line.columns;
  std::string operands = line.operands;
  for (std::size_t at = operands.find('|'); at != std::string::npos;
       at = operands.find('|', at + 2))
    operands.insert(at, "\\");
  return fmt::format("| `{}` | `{}`{} | {} | {} |\n", spelling.substr(1), operands, columns,
                     line.version, line.targets);
}

void write_family(std::string& out, const Family& family, const std::vector<isa::Form>& forms) {
  std::vector<Line> lines;
  std::size_t count = 0;
  for (const isa::Form& form : forms) {
    if (isa::family(form) != family.name) continue;
    ++count;
    if (written(form)) lines.push_back(line_of(form));
  }
  out += fmt::format("\n## {}\n\n{} {} form{}.\n\n", family.name, family.about, count,
                     count == 1 ? "" : "s");
  out += "| Form | Operands | PTX | Targets |\n|---|---|---|---|\n";
  for (const Line& line : merged(std::move(lines))) out += line_text(line);
}

// The architectures that each phrase of the column represents.
std::string targets_table(const std::vector<isa::Form>& warp, const std::vector<isa::Form>& group) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto* forms : {&warp, &group})
    for (const isa::Form& form : *forms) {
      const Since since = isa::find(form)->since;
      std::string names;
      for (const ArchRow& row : archs)
        if (row.current && since.has(row.arch)) names += " " + row.arch.text();
      const std::pair row{targets_text(since), names.substr(1)};
      if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
    }
  std::sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
    return x.second.size() != y.second.size() ? x.second.size() > y.second.size()
                                              : x.first < y.first;
  });
  std::string out = "| Targets | Names |\n|---|---|\n";
  for (const auto& [phrase, names] : rows) out += fmt::format("| {} | {} |\n", phrase, names);
  return out;
}

}  // namespace

std::string targets_text(const Since& since) {
  const std::string sm = fmt::format("sm_{}", since.sm),
                    to = since.last_sm ? fmt::format("to sm_{}", since.last_sm) : "on";
  if (since.only[0] != 0) {
    std::string out;
    for (const ArchRow& row : archs)
      if (row.current && since.has(row.arch))
        out += fmt::format("{}{}", out.empty() ? "" : ", ", row.arch.text());
    return out;
  }
  if (since.last_sm == since.sm)
    return since.reach == Reach::Family     ? fmt::format("{0}a, {0}f", sm)
           : since.reach == Reach::ArchOnly ? fmt::format("{}a", sm)
                                            : sm;
  switch (since.reach) {
    case Reach::Onward: return fmt::format("{} {}", sm, to);
    case Reach::Family: return fmt::format("{0}a, {0}f {1}", sm, to);
    case Reach::ArchOnly: return fmt::format("{}a {}", sm, to);
    case Reach::ExactArch: return sm + "a";
  }
  return sm;
}

std::string target_names(const Since& since) {
  std::string out;
  for (const ArchRow& row : archs)
    if (row.current && since.has(row.arch)) out += (out.empty() ? "" : " ") + row.arch.text();
  return out;
}

std::string isa_document() {
  const std::vector<isa::Form> warp = isa::forms(), group = isa::wgmma_forms();
  std::string out = fmt::format(
      "# Instructions\n\n<!-- Written by `tartan isa --markdown` from compiler/isa/tables.h: "
      "change it there. -->\n\nEvery documented matrix instruction: {} forms for warps and {} for "
      "warpgroups. `tartan isa` lists them one\nby one, `tartan isa --target sm_90` those of one "
      "GPU.\n\nA row stands for several forms: `{{s8,u8}}` means one of the two, `[.satfinite]` is "
      "optional. `4x.b32` is a vector of\nfour registers, `imm` an immediate. PTX is the first PTX "
      "version that has the form; `.shared::cta` requires 7.8.\nTargets are the names in the table "
      "below, the targets that CUDA 13 compiles for:\n\n",
      warp.size(), group.size());
  out += targets_table(warp, group);
  for (const Family& family : families)
    write_family(out, family, family.name == "wgmma" ? group : warp);
  return out;
}

}  // namespace tartan::tools
