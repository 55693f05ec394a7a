// SPDX-License-Identifier: Apache-2.0
// `tartan layout`, as a command: against published tables and results (data/seeds), against the
// manual's formulas, and for every form of the tables.
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tartan/isa/instruction.h"
#include "tests/tools/layout_command.h"

namespace tartan::layout_test {
namespace {

// ---- Published results.

TEST(Layout, PublishedTables) {
  const Words lines = data_lines("ldmatrix_tables.txt");
  int tables = 0, cells = 0;
  std::string instruction;
  int matrix = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Words head = split(lines[i]);
    ASSERT_EQ(head[0], "instruction");
    instruction = head[1];
    matrix = std::stoi(head[2]);
    // The tables of .x4 also contain those of .x2 and .x1.
    for (const std::string count : {"x4", "x2", "x1"}) {
      const std::string form = matrix == 0 || instruction.find("x4") != std::string::npos
                                   ? std::regex_replace(instruction, std::regex("x[124]"), count)
                                   : instruction;
      if (matrix >= std::stoi(count.substr(1))) continue;
      const Ran ran = run("layout " + form);
      ASSERT_EQ(ran.code, 0) << form;
      const TextTables ours = read_text(ran.out);
      for (int row = 0; row < 8; ++row) {
        const Words words = split(lines[i + 2 + static_cast<std::size_t>(row)]);
        ASSERT_EQ(words.size(), 9u);
        const std::string label = std::regex_replace(words[0], std::regex("Addr"), "");
        EXPECT_EQ(std::stoi(label), row);
        if (words[0].starts_with("Addr")) {
          EXPECT_EQ(ours.address_lanes.at({matrix, row}), std::stoi(label)) << form;
        }
        for (int col = 0; col < 8; ++col, ++cells)
          EXPECT_EQ(ours.boxes.at({matrix * 1000 + row, col}),
                    words[static_cast<std::size_t>(col) + 1])
              << form << " matrix " << matrix << " row " << row << " column " << col;
      }
    }
    i += 9;
    ++tables;
  }
  EXPECT_EQ(tables, 6);
  EXPECT_EQ(cells, 64 * (3 + 2 + 1 + 1 + 3 + 3));
}

TEST(Layout, PublishedRowAddresses) {
  // ".x2 addr0–addr7 addr8–addr15 - -": threads 0-7 give addresses 0 to 7 (matrix 0), threads 8-15
  // those of matrix 1.
  const Words lines = data_lines("row_addresses.txt");
  ASSERT_EQ(lines.size(), 4u);
  static const std::regex range("^addr(\\d+)–addr(\\d+)$");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Words words = split(lines[i]);
    ASSERT_EQ(words.size(), 5u);
    for (const std::string opcode : {"ldmatrix", "stmatrix"}) {
      const json operand =
          layout_json(opcode + ".sync.aligned.m8n8" + words[0] + ".shared.b16")["operands"][0];
      std::set<int> expected, found;
      for (std::size_t group = 0; group < 4; ++group) {
        std::smatch match;
        if (!std::regex_match(words[group + 1], match, range)) continue;
        EXPECT_EQ(std::stoi(match[1]), 8 * static_cast<int>(group));
        for (int at = std::stoi(match[1]); at <= std::stoi(match[2]); ++at) expected.insert(at);
      }
      for (const json& address : operand["row_addresses"]) {
        EXPECT_EQ(address["lane"].get<int>(),
                  8 * address["matrix"].get<int>() + address["row"].get<int>());
        found.insert(address["lane"].get<int>());
      }
      EXPECT_EQ(found, expected) << words[0];
      EXPECT_EQ(operand["row_addresses"].size(), expected.size());
    }
  }
}

TEST(Layout, PublishedResults) {
  const Words lines = data_lines("loaded_values.txt");
  int blocks = 0;
  for (std::size_t i = 0; i < lines.size(); ++blocks) {
    ASSERT_TRUE(lines[i].starts_with("instruction "));
    const std::string instruction = split(lines[i++])[1];
    const Words first = split(lines[i++]), stride = split(lines[i++]);
    std::vector<double> values;
    for (; i < lines.size() && !lines[i].starts_with("instruction "); ++i)
      for (const std::string& word : split(lines[i])) values.push_back(std::stod(word));
    const json operand = layout_json(instruction)["operands"][0];
    const int per_lane =
        operand["registers"].get<int>() * operand["elements_per_register"].get<int>();
    ASSERT_EQ(values.size(), static_cast<std::size_t>(32 * per_lane)) << instruction;
    ASSERT_EQ(operand["cells"].size(), values.size());
    for (const json& cell : operand["cells"]) {
      const int element = cell["register"].get<int>() * 2 + cell["position"].get<int>();
      const int memory = std::stoi(first.at(1 + cell["matrix"].get<std::size_t>())) +
                         cell["row"].get<int>() * std::stoi(stride[1]) + cell["col"].get<int>();
      EXPECT_EQ(values[static_cast<std::size_t>(cell["lane"].get<int>() * per_lane + element)],
                memory)
          << instruction << " " << cell;
    }
  }
  EXPECT_EQ(blocks, 8);
}

// ---- The manual's formulas (PTX ISA 9.0, 9.7.14.5), as it writes them.

using Formula = std::pair<int, int> (*)(int lane, int i);

void expect_formula(const std::string& instruction, const std::string& operand, Formula formula) {
  const json layout = layout_json(instruction + " --operand " + operand);
  ASSERT_EQ(layout["operands"].size(), 1u);
  const int per = layout["operands"][0]["elements_per_register"];
  for (const json& cell : layout["operands"][0]["cells"]) {
    const int i = cell["register"].get<int>() * per + cell["position"].get<int>();
    const auto [row, col] = formula(cell["lane"], i);
    EXPECT_EQ(cell["row"], row) << instruction << " " << operand << " " << cell;
    EXPECT_EQ(cell["col"], col) << instruction << " " << operand << " " << cell;
  }
}

TEST(Layout, ManualFormulas) {
  const std::string f16 = "mma.m16n8k16.row.col.f32.f16.f16.f32";
  expect_formula(f16, "a", [](int lane, int i) {
    return std::pair(i < 2 || (4 <= i && i < 6) ? lane >> 2 : (lane >> 2) + 8,
                     i < 4 ? lane % 4 * 2 + (i & 1) : lane % 4 * 2 + (i & 1) + 8);
  });
  expect_formula(f16, "b", [](int lane, int i) {
    return std::pair(i < 2 ? lane % 4 * 2 + (i & 1) : lane % 4 * 2 + (i & 1) + 8, lane >> 2);
  });
  expect_formula(f16, "c", [](int lane, int i) {
    return std::pair(i < 2 ? lane >> 2 : (lane >> 2) + 8, lane % 4 * 2 + (i & 1));
  });
  const std::string s8 = "mma.m16n8k32.row.col.s32.s8.s8.s32";
  expect_formula(s8, "a", [](int lane, int i) {
    return std::pair(i < 4 || (8 <= i && i < 12) ? lane >> 2 : (lane >> 2) + 8,
                     i < 8 ? lane % 4 * 4 + (i & 3) : lane % 4 * 4 + (i & 3) + 16);
  });
  expect_formula(s8, "b", [](int lane, int i) {
    return std::pair(i < 4 ? lane % 4 * 4 + (i & 3) : lane % 4 * 4 + (i & 3) + 16, lane >> 2);
  });
  const std::string tf32 = "mma.m16n8k8.row.col.f32.tf32.tf32.f32";
  expect_formula(tf32, "a", [](int lane, int i) {
    return std::pair(i % 2 == 0 ? lane >> 2 : (lane >> 2) + 8, i < 2 ? lane % 4 : lane % 4 + 4);
  });
  const std::string quads = "mma.m8n8k4.row.col.f32.f16.f16.f32";
  expect_formula(quads, "a",
                 [](int lane, int i) { return std::pair(lane < 16 ? lane % 4 : lane % 4 + 4, i); });
  expect_formula(quads, "d", [](int lane, int i) {
    const int row = (lane & 1) + (i & 2);
    return std::pair(lane < 16 ? row : row + 4, (i & 4) + (lane & 2) + (i & 1));
  });
  expect_formula("movmatrix.m8n8.trans.b16", "d",
                 [](int lane, int i) { return std::pair(lane % 4 * 2 + i, lane >> 2); });
}

TEST(Layout, QuadPairs) {
  const json layout = layout_json("mma.m8n8k4.row.col.f32.f16.f16.f16");
  for (const json& operand : layout["operands"]) {
    EXPECT_EQ(operand["matrices"], 4);
    for (const json& cell : operand["cells"])
      EXPECT_EQ(cell["matrix"], cell["lane"].get<int>() % 16 / 4) << cell;
  }
}

TEST(Layout, Metadata) {
  // f16 m16n8k32: lanes 2s and 2s+1 of a quad; low half row g, high half row g + 8; 16 columns a
  // lane.
  for (const int selector : {0, 1}) {
    const json metadata = layout_json("mma.sp.m16n8k32.row.col.f32.f16.f16.f32 --selector " +
                                      std::to_string(selector))["metadata"];
    EXPECT_EQ(metadata["cells"].size(), 16u * 8);
    for (const json& cell : metadata["cells"]) {
      const int row = cell["row"], chunk = cell["chunk"];
      EXPECT_EQ(cell["lane"], row % 8 * 4 + 2 * selector + chunk / 4) << cell;
      EXPECT_EQ(cell["lowest_bit"], row / 8 * 16 + chunk % 4 * 4) << cell;
    }
  }
}

// ---- Every form.

Words mnemonics(const std::string& family) {
  Words out;
  const Ran ran = run("isa " + family + " --csv");
  EXPECT_EQ(ran.code, 0);
  for (const std::string& line : lines_of(ran.out)) {
    const std::size_t start = line.find(',') + 1;
    out.push_back(line.substr(start, line.find(',', start) - start));
  }
  if (!out.empty()) out.erase(out.begin());  // the heading
  return out;
}

// Each place of each matrix is held (once per copy), and each element of each lane's registers is
// one place.
void expect_complete(const std::string& mnemonic) {
  const json layout = layout_json(mnemonic);
  ASSERT_TRUE(layout.is_object()) << mnemonic;
  EXPECT_EQ(layout["instruction"], mnemonic);
  ASSERT_FALSE(layout["operands"].empty()) << mnemonic;
  for (const json& operand : layout["operands"]) {
    const int rows = operand["rows"], cols = operand["cols"], matrices = operand["matrices"];
    const int per = operand["elements_per_register"], registers = operand["registers"];
    const int lanes = layout["lanes"], copies = operand["copies"];
    ASSERT_EQ(rows * cols * matrices * copies, lanes * registers * per) << mnemonic;
    std::vector<int> held(static_cast<std::size_t>(rows * cols * matrices));
    std::vector<int> used(static_cast<std::size_t>(lanes * registers * per));
    for (const json& cell : operand["cells"]) {
      const int row = cell["row"], col = cell["col"], matrix = cell["matrix"];
      const int lane = cell["lane"], reg = cell["register"], position = cell["position"];
      ++held.at(static_cast<std::size_t>((matrix * rows + row) * cols + col));
      ++used.at(static_cast<std::size_t>((lane * registers + reg) * per + position));
    }
    EXPECT_TRUE(std::ranges::all_of(held, [&](int n) { return n == copies; })) << mnemonic;
    EXPECT_TRUE(std::ranges::all_of(used, [](int n) { return n == 1; })) << mnemonic;
    const bool in_memory = mnemonic.starts_with("ldmatrix") || mnemonic.starts_with("stmatrix");
    EXPECT_EQ(operand.contains("row_addresses"), in_memory) << mnemonic;
    if (in_memory) {
      EXPECT_EQ(operand["row_addresses"].size(), static_cast<std::size_t>(rows * matrices));
    }
  }
  const bool sparse = mnemonic.find(".sp") != std::string::npos;
  EXPECT_EQ(layout.contains("metadata"), sparse) << mnemonic;
}

// A few through the command; layout_forms_test.cc has every one without a process for each.
TEST(Layout, SomeWarpLevelForms) {
  const Words all = mnemonics("");
  EXPECT_EQ(all.size(), isa::forms().size());
  for (std::size_t i = 0; i < all.size(); i += 97) expect_complete(all[i]);
}

// Of the shapes of wgmma, which differ only in N, the first and a middle one.
TEST(Layout, WarpgroupForms) {
  std::set<std::string> forms;
  for (const std::string& mnemonic : mnemonics("wgmma"))
    if (std::regex_search(mnemonic, std::regex("n(8|96)k.*(e4m3|b1|tf32)"))) forms.insert(mnemonic);
  EXPECT_GT(forms.size(), 8u);
  for (const std::string& mnemonic : forms) expect_complete(mnemonic);
}

// One form of every kind of table: collapsed, in panels, with several matrices, copies, wide
// registers.
const char* const kinds[] = {
    "ldmatrix.m8n8.x4.trans.shared.b16",
    "ldmatrix.m16n16.x2.trans.shared.b8",
    "ldmatrix.m8n16.x4.shared.b8x16.b6x16_p32",
    "stmatrix.m16n8.x4.trans.shared.b8",
    "movmatrix.m8n8.trans.b16",
    "mma.m16n8k16.row.col.f16.f16.f16.f16",
    "mma.m16n8k64.row.col.s32.s4.s4.s32",
    "mma.m16n8k256.row.col.s32.b1.b1.s32.and.popc",
    "mma.m16n8k16.row.col.f64.f64.f64.f64",
    "mma.m8n8k4.col.row.f32.f16.f16.f16",
    "mma.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e5m2.f32",
    "mma.sp.m16n8k64.row.col.s32.u8.s8.s32",
    "wmma.load.a.col.m8n32k16.f16",
    "wmma.mma.row.col.m8n32k16.f32.f32",
    "wmma.mma.row.row.m16n16k16.f16.f32",
    "wmma.store.d.row.m32n8k16.f32",
    "wgmma.mma_async.m64n256k16.f32.f16.f16",
    "wgmma.mma_async.sp.m64n24k64.f16.e4m3.e5m2",
    "tcgen05.ld.32x32b.x32.b32",
    "tcgen05.ld.16x64b.x4.pack::16b.b32",
    "tcgen05.ld.red.16x32bx2.x2.min.f32",
    "tcgen05.st.16x256b.x4.b32",
};

TEST(Layout, TextMatchesData) {
  for (const std::string instruction : kinds) {
    const Ran ran = run("layout " + instruction);
    EXPECT_EQ(ran.code, 0) << instruction;
    EXPECT_EQ(ran.out.find('\033'), std::string::npos) << "colours in a pipe";
    EXPECT_EQ(read_text(ran.out).places, cells_of(layout_json(instruction))) << instruction;
    for (const std::string& line : lines_of(ran.out)) {
      const Words words = split(line);
      if (!words.empty() && words[0] == "row") {
        EXPECT_LE(words.size(), 18u) << line;
      }
    }
  }
}

// Rows and columns are lanes and columns of tensor memory; a lane of the warp is T.
TEST(Layout, TensorMemory) {
  const json layout = layout_json("'tcgen05.ld.x2.pack::16b.16x32bx2.b32 {%r1, %r2}, [%r3], 64'");
  EXPECT_EQ(layout["instruction"], "tcgen05.ld.sync.aligned.16x32bx2.x2.pack::16b.b32");
  const json& operand = layout["operands"][0];
  EXPECT_EQ(operand["operand"], "d");
  EXPECT_EQ(operand["type"], "b16");
  EXPECT_EQ(operand["rows"], 16);
  EXPECT_EQ(operand["cols"], 4);
  EXPECT_EQ(operand["matrices"], 2);
  EXPECT_EQ(operand["elements_per_register"], 2);
  for (const json& cell : operand["cells"]) {
    const int lane = cell["lane"];
    EXPECT_EQ(cell["matrix"], lane / 16) << cell;
    EXPECT_EQ(cell["row"], lane % 16) << cell;
    EXPECT_EQ(cell["col"], 2 * cell["register"].get<int>() + cell["position"].get<int>()) << cell;
  }
  const std::string text = run("layout tcgen05.st.16x32bx2.x2.b32").out;
  EXPECT_NE(text.find("half_split_offset columns behind"), std::string::npos);
  EXPECT_NE(text.find("matrix 1: T16-T31"), std::string::npos) << text;
  EXPECT_EQ(run("layout tcgen05.st.x2.sync.16x32bx2.aligned.b32").out, text);
}

TEST(Layout, RunsOfOneRegisterAreOneCell) {
  const Ran ran = run("layout mma.m16n8k32.row.col.s32.s8.s8.s32 --operand a");
  const Words first = split(lines_of(ran.out).at(4));
  EXPECT_EQ(first, (Words{"0", "T0V0-3:R0", "T1V0-3:R0", "T2V0-3:R0", "T3V0-3:R0", "T0V8-11:R2",
                          "T1V8-11:R2", "T2V8-11:R2", "T3V8-11:R2"}));
}

TEST(Layout, NotesWhatTheManualLeavesUnspecified) {
  EXPECT_NE(run("layout wmma.load.a.row.m16n16k16.f16").out.find("the map recorded on sm_90"),
            std::string::npos);
  const std::string wgmma = run("layout wgmma.mma_async.m64n8k16.f32.f16.f16").out;
  EXPECT_NE(wgmma.find("b is read from shared memory"), std::string::npos);
  EXPECT_NE(wgmma.find("T127V"), std::string::npos);
}

// ---- Arguments.

TEST(Layout, AnyOrderOfQualifiers) {
  const std::string manual = run("layout ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16").out;
  EXPECT_EQ(run("layout ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16").out, manual);
  EXPECT_EQ(run("layout ldmatrix.m8n8.x4.trans.shared.b16").out, manual);
  EXPECT_EQ(run("layout 'ldmatrix.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];'").out, manual);
}

void expect_error(const std::string& words, const std::string& message) {
  const Ran ran = run("layout " + words, true);
  EXPECT_EQ(ran.code, 2) << words;
  EXPECT_NE(ran.out.find(message), std::string::npos) << words << ":\n" << ran.out;
}

TEST(Layout, InvalidSpellingNamesTheNearestForm) {
  expect_error("mma.m16n8k16.f32.f16.f16.f32",
               "nearest form is mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 [unknown-form]");
  expect_error("ldmatrix.m8n8.x3.shared.b16",
               "no qualifier .x3; the nearest form is ldmatrix.sync.aligned.m8n8.x1.shared.b16");
  expect_error("wgmma.mma_async.m64n20k16.f32.f16.f16",
               "nearest form is wgmma.mma_async.sync.aligned.m64n");
  expect_error("mma.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0",
               "kind::mxf4");
  expect_error("tcgen05.ld.16x256b.x2", "the nearest is tcgen05.ld.sync.aligned.16x256b.x2.b32");
  expect_error("tcgen05.ld.16x265b.x2.b32",
               "tcgen05.ld does not accept .16x265b; the nearest is .16x256b [unknown-qualifier]");
  expect_error("tcgen05.st.16x256b.x64.b32", "accesses at most 128 registers");
  expect_error("tcgen05.st.16x64b.x2.pack::16b.b32", "does not accept .pack::16b");
  expect_error("tcgen05.lod.16x64b.x2.b32", "the nearest is tcgen05.ld [unknown-instruction]");
  expect_error("tcgen05.cp.cta_group::1.128x256b", "tcgen05.cp has no lane map");
  expect_error("tcgen05.ld.16x64b.x2.b32 --operand a", "expected one of d [usage]");
  expect_error("tcgen05.ld.16x64b.x2.b32 --selector 0", "is not sparse [usage]");
  expect_error("wmma", "not a matrix instruction");
  expect_error("''", "");
  expect_error("mma.", "[unknown-qualifier]");
  expect_error("ldmatrix.m8n8.x1.shared.b16 --operand a",
               "has no such fragment: expected one of d [usage]");
  expect_error("wgmma.mma_async.m64n8k16.f32.f16.f16 --operand b", "expected one of a, d [usage]");
  expect_error("mma.m16n8k16.row.col.f32.f16.f16.f32 --selector 1", "is not sparse [usage]");
  expect_error("mma.sp.m16n8k32.row.col.f32.f16.f16.f32 --selector 2", "takes 0 to 1 [usage]");
  expect_error("ldmatrix.m8n8.x1.shared.b16 --svg a.svg --json", "");
  expect_error("ldmatrix.m8n8.x1.shared.b16 --svg /no/such/folder/a.svg", "[file]");
}

// Runs the command on its own terminal.
std::string on_terminal(const char* instruction, bool no_colour) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    if (no_colour) setenv("NO_COLOR", "1", 1);
    else unsetenv("NO_COLOR");
    execl(TARTAN_COMMAND, "tartan", "layout", instruction, nullptr);
    _exit(127);
  }
  std::string out;
  std::array<char, 4096> buffer;
  for (ssize_t size; (size = ::read(terminal, buffer.data(), buffer.size())) > 0;)
    out.append(buffer.data(), static_cast<std::size_t>(size));
  close(terminal);
  waitpid(child, nullptr, 0);
  std::erase(out, '\r');
  return out;
}

TEST(Layout, ColoursOnATerminalOnly) {
  const char* const instruction = "ldmatrix.m8n8.x1.shared.b16";
  const std::string plain = run(std::string("layout ") + instruction).out;
  const std::string coloured = on_terminal(instruction, false);
  std::set<std::string> backgrounds;
  const std::regex code("\033\\[([0-9;]*)m");
  for (std::sregex_iterator at(coloured.begin(), coloured.end(), code), end; at != end; ++at)
    if ((*at)[1].str().find("48;") != std::string::npos) backgrounds.insert((*at)[1]);
  EXPECT_EQ(backgrounds.size(), 32u) << "one background for each lane";
  std::string stripped;
  for (const std::string& line : lines_of(std::regex_replace(coloured, code, "")))
    stripped += std::regex_replace(line, std::regex(" +$"), "") + '\n';
  EXPECT_EQ(stripped, plain);
  EXPECT_EQ(on_terminal(instruction, true), plain);
}

// ---- Pictures.

// Tags are nested and closed, attributes are quoted, and text has no bare & or <.
void expect_well_formed(const std::string& xml, const std::string& name) {
  static const std::regex tag("<(/?)([a-z]+)((?: [a-zA-Z-]+=\"[^\"<]*\")*)(/?)>"),
      text("[^<&]*(?:&(?:amp|lt|gt);[^<&]*)*");
  Words open;
  std::size_t at = 0;
  int tags = 0;
  for (std::sregex_iterator match(xml.begin(), xml.end(), tag), end; match != end;
       ++match, ++tags) {
    const auto position = static_cast<std::size_t>(match->position());
    const std::string between = xml.substr(at, position - at);
    ASSERT_TRUE(std::regex_match(between, text)) << name << ": " << between.substr(0, 80);
    at = position + static_cast<std::size_t>(match->length());
    if (!(*match)[1].str().empty()) {
      ASSERT_FALSE(open.empty()) << name;
      ASSERT_EQ(open.back(), (*match)[2]) << name;
      open.pop_back();
    } else if ((*match)[4].str().empty()) {
      open.push_back((*match)[2]);
    }
  }
  EXPECT_TRUE(open.empty()) << name;
  EXPECT_GT(tags, 100) << name;
  EXPECT_EQ(xml.substr(at), "\n") << name;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tartan_layout_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

TEST(Layout, PicturesAreWellFormedAndComplete) {
  const TemporaryFolder folder;
  for (const std::string instruction : kinds) {
    if (instruction.find("n256") != std::string::npos) continue;  // 1.7 MB of similar boxes
    const std::string file = folder / "picture.svg";
    ASSERT_EQ(run("layout " + instruction + " --svg " + file).code, 0);
    const std::string svg = read_file(file);
    expect_well_formed(svg, instruction);
    // Each box of the terminal table is in the picture, with its lane on top.
    std::size_t boxes = 0, drawn = 0;
    for (const std::string& line : lines_of(run("layout " + instruction).out))
      for (const std::string& word : split(line))
        boxes += word[0] == 'T' && (word.find(":R") != std::string::npos || word.back() == ']');
    for (std::size_t at = 0; (at = svg.find("class=\"content\"", at)) != std::string::npos; ++at)
      ++drawn;
    EXPECT_EQ(drawn, boxes) << instruction;
  }
}

TEST(Layout, PicturesOfTheDocumentsAreFresh) {
  const TemporaryFolder folder;
  const std::filesystem::path pictures = std::filesystem::path(SOURCE_ROOT) / "docs" / "pictures";
  const std::string index = read_file(pictures / "README.md");
  std::set<std::string> listed;
  for (const std::string& line : lines_of(read_file(pictures / "pictures.txt"))) {
    if (line.starts_with("#")) continue;
    const Words words = split(line);
    ASSERT_EQ(words.size(), 2u) << line;
    listed.insert(words[0] + ".svg");
    ASSERT_EQ(run("layout " + words[1] + " --svg " + (folder / "new.svg")).code, 0);
    EXPECT_EQ(read_file(folder / "new.svg"), read_file(pictures / (words[0] + ".svg")))
        << words[0] << " is stale: run docs/pictures/generate";
    EXPECT_NE(index.find("![" + words[1] + "](" + words[0] + ".svg)"), std::string::npos)
        << words[0] << " is not in README.md: run docs/pictures/generate";
  }
  EXPECT_GE(listed.size(), 14u);
  std::set<std::string> present;
  for (const auto& entry : std::filesystem::directory_iterator(pictures))
    if (entry.path().extension() == ".svg") present.insert(entry.path().filename());
  EXPECT_EQ(present, listed);
}

}  // namespace
}  // namespace tartan::layout_test
