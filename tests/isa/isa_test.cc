// SPDX-License-Identifier: Apache-2.0
// The instruction table against a recording (tests/data/isa/forms.txt), and lane maps against
// figures copied by hand.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "compiler/isa/target_hint.h"
#include "tartan/isa/fragment.h"
#include "tartan/isa/instruction.h"

namespace tartan::isa {
namespace {

struct Recorded {
  std::map<std::string, std::string> forms;  // "family|mnemonic|operands" -> "version|targets"
};

Recorded read_recorded() {
  std::ifstream in(TEST_DATA "/isa/forms.txt");
  Recorded out;
  std::map<std::string, std::string> targets;
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '=') {
      targets[line.substr(1, 1)] = line.substr(3);
      continue;
    }
    std::vector<std::string> fields;
    std::stringstream stream(line);
    for (std::string field; std::getline(stream, field, '|');) fields.push_back(field);
    // Operands contain bars: "addr=[.u32|.u64]". The first two and the last two fields do not.
    const std::size_t n = fields.size();
    std::string operands = fields[2];
    for (std::size_t i = 3; i + 2 < n; ++i) operands += "|" + fields[i];
    out.forms[fields[0] + "|" + fields[1] + "|" + operands] =
        fields[n - 2] + "|" + targets.at(fields[n - 1]);
  }
  return out;
}

std::string current_targets(const Since& since) {
  std::string out;
  for (const ArchRow& row : archs)
    if (row.current && since.has(row.arch)) out += (out.empty() ? "" : " ") + row.arch.text();
  return out;
}

TEST(Isa, TableMatchesTheRecording) {
  Recorded recorded = read_recorded();
  ASSERT_EQ(recorded.forms.size(), 1553u + 2148u);
  std::size_t compared = 0;
  for (const auto& list : {forms(), wgmma_forms()})
    for (const Form& form : list) {
      const auto row = find(form);
      ASSERT_TRUE(row) << spell(form);
      const std::string key =
          std::string(family(form)) + "|" + spell(form) + "|" + operands_text(*row);
      const auto found = recorded.forms.find(key);
      ASSERT_NE(found, recorded.forms.end()) << "not recorded: " << key;
      EXPECT_EQ(row->since.ptx.text() + "|" + current_targets(row->since), found->second) << key;
      recorded.forms.erase(found);
      ++compared;
    }
  EXPECT_EQ(compared, 3701u);
  EXPECT_TRUE(recorded.forms.empty()) << "missing: " << recorded.forms.begin()->first;
}

TEST(Isa, SpellingReadsBack) {
  for (const auto& list : {forms(), wgmma_forms()})
    for (Form form : list) {
      const FormText read = parse_form(spell(form));
      EXPECT_TRUE(read.sync && read.unknown.empty() && read.repeated.empty()) << spell(form);
      form.stride = form.a_in_registers = false;  // not written in the spelling
      EXPECT_EQ(spell(read.form), spell(form));
      EXPECT_TRUE(read.form == form) << spell(form);
    }
}

TEST(Isa, QualifiersInAnyOrder) {
  const FormText cute = parse_form("ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16");
  EXPECT_EQ(spell(cute.form), "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16");
  const FormText mixed = parse_form("mma.m16n8k32.satfinite.row.sync.col.s32.s8.aligned.u8.s32");
  EXPECT_EQ(spell(mixed.form), "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32");
  EXPECT_EQ(parse_form("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f99").unknown,
            std::vector<std::string_view>{"f99"});
}

TEST(Isa, TargetNames) {
  EXPECT_EQ(*Arch::parse("sm_90a"), (Arch{90, 'a'}));
  for (const char* wrong : {"sm_91", "sm_80a", "sm_", "sm_9 0", "90", "sm_90b", "sm_120aa", ""})
    EXPECT_FALSE(Arch::parse(wrong)) << wrong;
  EXPECT_EQ(Target::parse("sm90a").diags()[0].message,
            "unknown target sm90a; the nearest is sm_90a");
  try {  // a program that does not look
    (void)*Target::parse("sm90a");
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("the nearest is sm_90a"), std::string::npos);
  }
  EXPECT_TRUE((Since{{8, 7}, 120, Reach::Family}.has(Arch{121, 'f'})));
  EXPECT_FALSE((Since{{8, 7}, 120, Reach::Family}.has(Arch{121, 0})));
  EXPECT_FALSE((Since{{8, 0}, 90, Reach::ExactArch}.has(Arch{100, 'a'})));
  const Since some{.ptx = {9, 4}, .sm = 100, .reach = Reach::ArchOnly, .only = {100, 103}};
  for (const Arch arch : {Arch{100, 'a'}, Arch{103, 'a'}}) EXPECT_TRUE(some.has(arch));
  for (const Arch arch : {Arch{100, 'f'}, Arch{101, 'a'}, Arch{107, 'a'}})
    EXPECT_FALSE(some.has(arch)) << arch.text();
}

// Versions that the assembler accepts.
TEST(Isa, Versions) {
  std::string all;
  for (Version each{1, 0}; each <= newest_version; each = each.next()) {
    EXPECT_TRUE(each.exists()) << each.text();
    all += each.text() + " ";
  }
  EXPECT_EQ(all,
            "1.0 1.1 1.2 1.3 1.4 1.5 2.0 2.1 2.2 2.3 3.0 3.1 3.2 4.0 4.1 4.2 4.3 5.0 5.1 6.0 6.1 "
            "6.2 6.3 6.4 6.5 7.0 7.1 7.2 7.3 7.4 7.5 7.6 7.7 7.8 8.0 8.1 8.2 8.3 8.4 8.5 8.6 8.7 "
            "8.8 9.0 9.1 9.2 9.3 9.4 9.5 ");
  for (const char* text : {"0.9", "5.5", "7.9", "8.9", "9.6", "99.9"})
    EXPECT_FALSE(Version::parse(text)->exists()) << text;
  EXPECT_EQ(nearest_version({7, 9}).text(), "7.8");
  EXPECT_EQ(nearest_version({99, 9}).text(), "9.5");
  EXPECT_EQ(target_hint("compute_90a"), "; the nearest is sm_90a");
  EXPECT_EQ(target_hint("90"), "; the nearest is sm_90");
  EXPECT_EQ(target_hint("sm_9O"), "; the nearest is sm_90");
  EXPECT_EQ(target_hint("H100"), "; the GPU H100 has sm_90a");
  EXPECT_EQ(target_hint("sm_91a"), "; the nearest is sm_90a");
  EXPECT_NE(target_hint("sm_97a").find("has this number"), std::string::npos);
  EXPECT_EQ(target_hint("foo"), ": expected a name such as sm_90a");
}

TEST(Isa, NearestFormIsLegal) {
  const Target sm_75 = *Target::parse("sm_75");
  const Form wanted = parse_form("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").form;
  const auto near = nearest(wanted, sm_75);
  ASSERT_TRUE(near);
  EXPECT_EQ(spell(*near), "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32");
  EXPECT_TRUE(find(*near)->since.has(sm_75));
  EXPECT_EQ(oldest(find(wanted)->since).text(), "sm_80");
}

// PTX ISA 9.0, 9.7.14.5.8, "Matrix fragments for mma.m16n8k16 with floating point type", formulas
// copied by hand.
TEST(Isa, MapOfM16n8k16MatchesTheManual) {
  const Form form = parse_form("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").form;
  for (int lane = 0; lane < 32; ++lane) {
    const int group_id = lane >> 2, in_group = lane % 4;
    for (int i = 0; i < 8; ++i) {
      const int row = (i < 2 || (i >= 4 && i < 6)) ? group_id : group_id + 8;
      const int col = (in_group * 2) + (i & 1) + (i >= 4 ? 8 : 0);
      EXPECT_EQ(coord(form, Operand::a, lane, i), (Coord{0, row, col})) << "a " << lane << " " << i;
    }
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(coord(form, Operand::b, lane, i),
                (Coord{0, (in_group * 2) + (i & 1) + (i >= 2 ? 8 : 0), group_id}))
          << "b " << lane << " " << i;
      EXPECT_EQ(coord(form, Operand::c, lane, i),
                (Coord{0, i < 2 ? group_id : group_id + 8, (in_group * 2) + (i & 1)}))
          << "c " << lane << " " << i;
    }
  }
}

// The same section's .m8n8k4 with f16 and f32 accumulators.
TEST(Isa, MapOfM8n8k4MatchesTheManual) {
  const Form form = parse_form("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32").form;
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 8; ++i) {
      const int x = lane & 1, row = lane < 16 ? x + (i & 2) : x + (i & 2) + 4,
                col = (i & 4) + (lane & 2) + (i & 1);
      EXPECT_EQ(coord(form, Operand::c, lane, i), (Coord{lane % 16 / 4, row, col}));
    }
}

}  // namespace
}  // namespace tartan::isa
