// SPDX-License-Identifier: Apache-2.0
// README.md and the pages under docs/, bench/ and tests/data/: everything that a reader may copy
// from them works. Commands run with the output that the page shows, C++ and CMake are excerpts of
// files that are built, figures are those of docs/performance.md. (Links: scripts/lint.)
//
// Blocks: `sh` has commands, `console` commands ("$ ...") and their output, where a line "..."
// stands for any lines; white space is ignored, so that a page may wrap a long message.
// TARTAN_REBASE=1 rewrites the output of console blocks without "..."; then read the diff.
#include <unistd.h>

#include <algorithm>

#include "tests/tools/layout_command.h"

namespace tartan::layout_test {
namespace {

namespace fs = std::filesystem;

const fs::path root = SOURCE_ROOT;

// ---- Pages and their blocks.

struct Block {
  std::string language;
  std::size_t line;  // of the first line inside, counted from 0
  Words lines;
};

struct Page {
  std::string name;  // below the root
  Words lines;
  std::vector<Block> blocks;
  [[nodiscard]] std::string place(const Block& block) const {
    return name + ":" + std::to_string(block.line + 1);
  }
};

Page page_of(const std::string& name) {
  Page page{name, lines_of(read_file(root / name)), {}};
  bool inside = false;
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    if (page.lines[i].starts_with("```")) {
      inside = !inside;
      if (inside) page.blocks.push_back({page.lines[i].substr(3), i + 1, {}});
    } else if (inside) {
      page.blocks.back().lines.push_back(page.lines[i]);
    }
  }
  EXPECT_FALSE(inside) << name << ": a block does not end";
  return page;
}

bool generated(const std::string& name) {
  return name == "docs/isa.md" || name == "docs/opcodes.md" || name == "docs/diagnostics.md";
}

std::vector<Page> pages() {
  std::vector<Page> out;
  for (const std::string name : {".", "docs", "bench"})
    for (const auto& entry : fs::directory_iterator((root / name).lexically_normal()))
      if (entry.path().extension() == ".md")
        out.push_back(page_of(entry.path().lexically_relative(root)));
  for (const auto& entry : fs::recursive_directory_iterator(root / "tests/data"))
    if (entry.path().filename() == "README.md")
      out.push_back(page_of(entry.path().lexically_relative(root)));
  std::ranges::sort(out, {}, &Page::name);
  EXPECT_GE(out.size(), 16u);
  return out;
}

// Trimmed, with a single space for each run of white space.
std::string squeezed(const std::string& text) {
  std::string out;
  for (const std::string& word : split(text)) out += (out.empty() ? "" : " ") + word;
  return out;
}

// ---- Commands.

// A folder to run the commands of a page in: keeps their output out of the tree.
class Folder {
 public:
  Folder() : path_(fs::path(testing::TempDir()) / ("docs_pages_" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_ / "bin");
    fs::create_symlink(TARTAN_COMMAND, path_ / "bin/tartan");
    fs::create_directory_symlink(root / "tests", path_ / "tests");
  }
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] Ran run(const std::string& command) const {
    return test::shell("cd " + path_.string() + " && PATH=$PWD/bin:$PATH && { " + command +
                       "\n} 2>&1");
  }

 private:
  fs::path path_;
};

// The commands of a block: a backslash at the end of a line continues it.
Words commands_of(const Words& lines) {
  Words out;
  bool open = false;
  for (std::string line : lines) {
    const bool continues = line.ends_with('\\');
    if (continues) line.pop_back();
    if (open) out.back() += line;
    else if (!squeezed(line).empty() && !line.starts_with('#')) out.push_back(line);
    open = continues;
  }
  for (std::string& line : out)
    if (const std::size_t comment = line.find("  # "); comment != std::string::npos)
      line.resize(comment);
  return out;
}

// Commands that no test runs, by prefix, with the reason.
const std::map<std::string, std::string>& not_run() {
  static const std::map<std::string, std::string> commands = {
      {"scripts/", "builds and tests this tree"},
      {"cmake ", "builds this tree"},
      {"build/release/bin/", "measures, for minutes or on a GPU"},
      {"python3 bench/", "takes PyTorch and a GPU"},
      {"PYTHONPATH=", "takes an installed prefix, as bindings_installed does"},
      {"cc ", "the same"},
      {"rustc ", "the same"},
  };
  return commands;
}

// For a command that is not run: its program exists and knows the options.
void expect_known(const std::string& command, const std::string& place) {
  Words words = split(command);
  if (words[0].starts_with("PYTHONPATH=")) words.erase(words.begin());
  const std::set<std::string> takes_a_file = {"python3", "cc", "rustc"};
  const std::string& program = words[takes_a_file.contains(words[0]) ? 1 : 0];
  if (program == "cmake") return;
  const std::string name = fs::path(program).filename();
  if (!program.starts_with("build/release/bin/")) {
    EXPECT_TRUE(fs::exists(root / program)) << place << ": " << command;
    return;
  }
  const std::string lists = read_file(root / "bench/CMakeLists.txt") +
                            read_file(root / "examples/CMakeLists.txt") +
                            read_file(root / "tools/CMakeLists.txt");
  EXPECT_TRUE(lists.find(name) != std::string::npos || fs::exists(root / "bench" / (name + ".cc")))
      << place << ": no program " << name;
  const fs::path built = fs::path(TARTAN_COMMAND).parent_path() / name;
  if (!fs::exists(built)) return;
  const std::string help = test::shell(built.string() + " --help 2>&1").out;
  for (const std::string& word : words) {
    if (!word.starts_with("--") || word.starts_with("--benchmark_")) continue;
    EXPECT_NE(help.find(word), std::string::npos) << place << ": " << name << " has no " << word;
  }
}

bool has_code_generation() { return run("emit --list", true).code == 0; }

TEST(DocsPages, CommandsRun) {
  if (!has_code_generation()) GTEST_SKIP() << "this build has no code generation";
  std::set<std::string> used;
  int ran_commands = 0;
  for (const Page& page : pages()) {
    const Folder folder;
    for (const Block& block : page.blocks) {
      if (block.language != "sh") continue;
      for (const std::string& command : commands_of(block.lines)) {
        const auto reason = std::ranges::find_if(
            not_run(), [&](const auto& entry) { return command.starts_with(entry.first); });
        if (reason != not_run().end()) {
          used.insert(reason->first);
          expect_known(command, page.place(block));
          continue;
        }
        const Ran ran = folder.run(command);
        EXPECT_EQ(ran.code, 0) << page.place(block) << ": " << command << "\n" << ran.out;
        ++ran_commands;
      }
    }
  }
  EXPECT_GE(ran_commands, 12);
  for (const auto& [begin, reason] : not_run())
    EXPECT_TRUE(used.contains(begin)) << "no page has a command " << begin << ": drop the line";
}

// Whether `shown` equals `printed`, except for its "..." lines.
bool shows(const Words& shown, const std::string& printed) {
  // The place of a message in generated PTX changes with every comment in it.
  static const std::regex ptx_place(R"(\.ptx:\d+:\d+:)");
  const auto plain = [](const std::string& text) {
    return squeezed(std::regex_replace(text, ptx_place, ".ptx:"));
  };
  std::string rest = plain(printed), part;
  bool open = false;  // "..." came before `part`
  const auto take = [&] {
    const std::size_t at = rest.find(part);
    if (at == std::string::npos || (!open && at != 0)) return false;
    rest = squeezed(rest.substr(at + part.size()));
    part.clear();
    return true;
  };
  for (const std::string& line : shown) {
    if (line == "...") {
      if (!take()) return false;
      open = true;
    } else {
      part += (part.empty() ? "" : " ") + plain(line);
    }
  }
  const bool ends_open = !shown.empty() && shown.back() == "...";
  return take() && (ends_open || rest.empty());
}

TEST(DocsPages, ShownOutputIsChecked) {
  const std::string printed = "a  b\nc d\ne\n";
  EXPECT_TRUE(shows({"a b", "c", "d e"}, printed));
  EXPECT_TRUE(shows({"a b", "...", "e"}, printed));
  EXPECT_TRUE(shows({"...", "c d", "..."}, printed));
  EXPECT_TRUE(shows({"x.ptx:1:2: error: a"}, "x.ptx:7:2: error: a\n"));
  EXPECT_FALSE(shows({"x.ptx:1:2: error: a"}, "x.ptx:1:2: error: b\n"));
  EXPECT_FALSE(shows({"a b", "c d"}, printed));
  EXPECT_FALSE(shows({"b", "..."}, printed));
  EXPECT_FALSE(shows({"...", "d", "...", "c", "..."}, printed));
  EXPECT_FALSE(shows({}, printed));
  EXPECT_TRUE(shows({}, ""));
}

// Lines of at most 100 columns; lines of an excerpt, which begin with a blank, are unchanged.
Words wrapped(const std::string& text) {
  Words out;
  for (std::string line : lines_of(text)) {
    line = replaced(line, "\t", "    ");
    while (line.size() > 100 && !line.starts_with(' ')) {
      const std::size_t at = line.rfind(' ', 100);
      if (at == std::string::npos) break;
      out.push_back(line.substr(0, at));
      line.erase(0, at + 1);
    }
    out.push_back(line);
  }
  return out;
}

struct Shown {
  std::string command;
  std::size_t first;  // line of the output in the page
  Words output;
};

std::vector<Shown> shown_of(const Block& block) {
  std::vector<Shown> out;
  for (std::size_t i = 0; i < block.lines.size(); ++i) {
    const std::string& line = block.lines[i];
    const bool continues = !out.empty() && out.back().command.ends_with('\\');
    if (continues) out.back().command.back() = ' ', out.back().command += line, ++out.back().first;
    else if (line.starts_with("$ ")) out.push_back({line.substr(2), block.line + i + 1, {}});
    else if (!out.empty()) out.back().output.push_back(line);
    else ADD_FAILURE() << "a console block begins with a command: " << line;
  }
  return out;
}

TEST(DocsPages, ConsoleOutputMatchesThePage) {
  if (!has_code_generation()) GTEST_SKIP() << "this build has no code generation";
  int compared = 0;
  for (Page page : pages()) {
    const Folder folder;
    std::vector<std::pair<Shown, Words>> changes;
    for (const Block& block : page.blocks) {
      if (block.language != "console") continue;
      for (const Shown& shown : shown_of(block)) {
        const Ran ran = folder.run(shown.command);
        EXPECT_TRUE(ran.code == 0 || ran.code == 1) << page.place(block) << ": " << ran.out;
        const bool same = shows(shown.output, ran.out);
        EXPECT_TRUE(same) << page.name << ":" << shown.first << ": $ " << shown.command
                          << " prints\n"
                          << ran.out << "TARTAN_REBASE=1 rewrites the page";
        if (!same && std::ranges::find(shown.output, "...") == shown.output.end())
          changes.emplace_back(shown, wrapped(ran.out));
        ++compared;
      }
    }
    if (!test::rebases() || changes.empty()) continue;
    for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
      const auto at = page.lines.begin() + static_cast<std::ptrdiff_t>(change->first.first);
      page.lines.insert(
          page.lines.erase(at, at + static_cast<std::ptrdiff_t>(change->first.output.size())),
          change->second.begin(), change->second.end());
    }
    std::ofstream file(root / page.name);
    for (const std::string& line : page.lines) file << line << '\n';
  }
  EXPECT_GE(compared, 6);
}

// ---- C++, CMake and messages.

// The text of built files, without indentation.
std::string flat(const Words& lines) {
  std::string out = "\n";
  for (const std::string& line : lines)
    if (const std::string text = squeezed(line); !text.empty()) out += text + "\n";
  return out;
}

const std::vector<std::string>& sources(const std::string& language) {
  static std::map<std::string, std::vector<std::string>> all;
  if (!all.empty()) return all[language];
  for (const std::string folder :
       {"examples", "tests/bindings", "tests/dsl", "tests/library", "include", "compiler", "dsl",
        "kernels", "runtime", "library", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string name = entry.path().filename(), kind = entry.path().extension();
      if (kind == ".cc" || kind == ".h")
        all["cpp"].push_back(flat(lines_of(read_file(entry.path()))));
      if (kind == ".c" || kind == ".rs" || kind == ".py")
        all[kind == ".c"    ? "c"
            : kind == ".py" ? "python"
                            : "rust"]
            .push_back(flat(lines_of(read_file(entry.path()))));
      if (name == "CMakeLists.txt") all["cmake"].push_back(flat(lines_of(read_file(entry.path()))));
    }
  return all[language];
}

TEST(DocsPages, CodeIsAnExcerptOfBuiltSources) {
  std::map<std::string, int> found;
  for (const Page& page : pages())
    for (const Block& block : page.blocks) {
      if (!std::set<std::string>{"cpp", "cmake", "c", "python", "rust"}.contains(block.language))
        continue;
      const std::string code = flat(block.lines);
      ++found[block.language];
      EXPECT_TRUE(std::ranges::any_of(sources(block.language),
                                      [&](const auto& s) { return s.find(code) != s.npos; }))
          << page.place(block) << ": no source has these lines";
    }
  EXPECT_GE(found["cpp"], 2);
  EXPECT_GE(found["cmake"], 2);
  EXPECT_GE(found["python"], 5);
  EXPECT_GE(found["c"], 4);
}

// "FILE:LINE: error: MESSAGE [id]" in a text block is a message that a test has recorded.
TEST(DocsPages, MessagesAreRecorded) {
  const std::string recorded = read_file(fs::path(TEST_DATA) / "misuse.txt");
  int messages = 0;
  for (const Page& page : pages())
    for (const Block& block : page.blocks) {
      if (block.language != "text") continue;
      std::string text;
      for (const std::string& line : block.lines) text += line + " ";
      text = squeezed(text);
      static const std::regex message(R"( error: (.*? \[[a-z-]+\]))");
      for (std::sregex_iterator at(text.begin(), text.end(), message), end; at != end; ++at) {
        EXPECT_NE(recorded.find((*at)[1]), std::string::npos)
            << page.place(block) << ": not in tests/data/misuse.txt: " << (*at)[1];
        ++messages;
      }
    }
  EXPECT_GE(messages, 1);
}

// No block is skipped because its ``` has no language.
TEST(DocsPages, BlocksNameTheirLanguage) {
  const std::set<std::string> known = {"sh",   "console", "cpp", "cmake",  "text", "ptx",
                                       "json", "diff",    "c",   "python", "rust", "mermaid"};
  for (const Page& page : pages())
    for (const Block& block : page.blocks)
      EXPECT_TRUE(known.contains(block.language))
          << page.place(block) << ": a block of \"" << block.language << "\"";
}

// ---- Figures, form and words.

TEST(DocsPages, ReadmeHasTheFiguresOfPerformance) {
  const Words figures = lines_of(read_file(root / "docs/performance.md"));
  int rows = 0;
  for (const std::string& line : page_of("README.md").lines)
    if (line.starts_with("| ") && !line.starts_with("| TFLOP/s")) {
      EXPECT_NE(std::ranges::find(figures, line), figures.end()) << line;
      ++rows;
    }
  EXPECT_GE(rows, 3);
}

TEST(DocsPages, LinesHaveAtMostAHundredColumns) {
  for (const Page& page : pages()) {
    if (generated(page.name) || page.name == "CHANGES.md" || page.name == "docs/demo.md") continue;
    for (std::size_t i = 0; i < page.lines.size(); ++i) {
      const std::string& line = page.lines[i];
      const auto columns =
          std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; });  // of UTF-8
      if (split(line + " .").front().starts_with('|')) continue;                   // a table
      EXPECT_LE(columns, 100) << page.name << ":" << i + 1;
    }
  }
  EXPECT_LE(page_of("README.md").lines.size(), 125u) << "README is three screens";
}

// docs/glossary.md lists the words that pages must not use.
TEST(DocsPages, WordsFollowTheGlossary) {
  Words unused;
  bool listed = false;
  for (const std::string& line : page_of("docs/glossary.md").lines) {
    if (line.starts_with("## ")) listed = line == "## Words that we do not use";
    if (!listed || !line.starts_with("| \"")) continue;
    const std::string cell = line.substr(0, line.find(" |", 2));
    for (std::size_t at = cell.find('"'); at != std::string::npos;) {
      const std::size_t end = cell.find('"', at + 1);
      unused.push_back(cell.substr(at + 1, end - at - 1));
      at = cell.find('"', end + 1);
    }
  }
  EXPECT_GE(unused.size(), 10u);
  for (const Page& page : pages()) {
    if (generated(page.name) || page.name == "CHANGES.md" || page.name == "docs/glossary.md" ||
        page.name == "docs/demo.md")
      continue;
    std::string text;  // a phrase may continue on the next line
    for (const std::string& line : page.lines) text += line + " ";
    text = squeezed(text);
    for (const std::string& words : unused)
      EXPECT_EQ(text.find(words), std::string::npos) << page.name << " says \"" << words << '"';
  }
}

}  // namespace
}  // namespace tartan::layout_test
