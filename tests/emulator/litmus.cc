// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/litmus.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "tests/support/text_files.h"

namespace tartan::test {
namespace {

struct Thread {
  unsigned cta = 0;
  unsigned place = 0;              // among the threads of its CTA
  std::vector<std::string> lines;  // instructions and labels
};

struct Program {
  std::string name;
  bool racy = false, lanes = false;
  std::vector<Thread> threads;
};

// "A: ld.weak r0, x; beq r0, 0, A" -> the label and two instructions.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::string each : split(text, "; ")) {
    if (const std::size_t colon = each.find(": "); colon != std::string::npos) {
      out.push_back(each.substr(0, colon + 1));
      each = each.substr(colon + 2);
    }
    out.push_back(each);
  }
  return out;
}

std::vector<Program> parse(const std::string& text) {
  std::vector<Program> out;
  for (const std::string& line : split(text, "\n")) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::string start = "  cta ";
    if (!line.starts_with(start)) {
      const std::vector<std::string> words = split(line);
      EXPECT_TRUE(words.size() > 1 && (words[1] == "racy" || words[1] == "fine")) << line;
      out.push_back({words[0], words[1] == "racy", words.back() == "lanes", {}});
      continue;
    }
    std::vector<Thread>& threads = out.back().threads;
    const auto cta = static_cast<unsigned>(std::stoul(line.substr(start.size())));
    const auto place = std::ranges::count(threads, cta, &Thread::cta);
    threads.push_back(
        {cta, static_cast<unsigned>(place), lines_of(line.substr(line.find(':') + 2))});
  }
  return out;
}

bool is_register(const std::string& word) {
  return word.size() > 1 && (word[0] == 'r' || word[0] == 'u') && std::isdigit(word[1]);
}

// The PTX of one program in one placement.
class Translation {
 public:
  Translation(const Program& program, bool lanes) : program_(program), lanes_(lanes) {
    for (const Thread& thread : program.threads) {
      for (const std::string& line : thread.lines) name_words(line);
      ctas_ = std::max(ctas_, thread.cta + 1);
      threads_ = std::max(threads_, lanes ? 32 : 32 * (thread.place + 1));
    }
    for (auto& [name, at] : words_) at = bytes_, bytes_ += 128;
  }

  LitmusTest test() const {
    LitmusTest out{.name = program_.name + (lanes_ ? "-lanes" : ""), .racy = program_.racy};
    out.manifest.name = out.name + ".json";
    out.manifest.ptx = Source(out.name + ".ptx", text());
    out.manifest.kernel = "litmus";
    out.manifest.launch = {.grid = {ctas_}, .block = {threads_}};
    out.manifest.params = {buffer("memory", bytes_),
                           buffer("registers", 64 * program_.threads.size())};
    return out;
  }

 private:
  static ManifestParam buffer(const std::string& name, std::size_t bytes) {
    ManifestParam out;
    out.buffer.emplace();
    out.buffer->name = name;
    out.buffer->size = bytes;
    return out;
  }

  static std::vector<std::string> operands(const std::string& line) {
    const std::size_t space = line.find(' ');
    return space == std::string::npos ? std::vector<std::string>()
                                      : split(line.substr(space + 1), ", ");
  }

  static bool branches(const std::string& line) {
    return line.starts_with("beq ") || line.starts_with("bne ");
  }

  void name_words(const std::string& line) {
    for (const std::string& word : operands(line))
      if (is_register(word)) registers_.insert(word);
      else if (!branches(line) && std::isalpha(word[0])) words_[word] = 0;
  }

  std::string text() const {
    std::string out =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry litmus(.param .u64 memory, .param .u64 registers)\n{\n"
        "\t.reg .pred %p;\n\t.reg .b32 %thread, %place, %lane, %cta, %a;\n"
        "\t.reg .b64 %mem, %out;\n";
    for (const std::string& each : registers_) out += fmt::format("\t.reg .b32 %{};\n", each);
    out +=
        "\tld.param.u64 %mem, [memory];\n\tld.param.u64 %out, [registers];\n"
        "\tmov.u32 %thread, %tid.x;\n\tmov.u32 %cta, %ctaid.x;\n";
    out += lanes_ ? "\tmov.u32 %lane, 0;\n\tmov.u32 %place, %thread;\n"
                  : "\tand.b32 %lane, %thread, 31;\n\tshr.u32 %place, %thread, 5;\n";
    for (std::size_t k = 0; k < program_.threads.size(); ++k)
      out += fmt::format(
          "\tsetp.eq.u32 %p, %cta, {};\n\tsetp.eq.and.u32 %p, %place, {}, %p;\n\t@%p bra P{};\n",
          program_.threads[k].cta, program_.threads[k].place, k);
    out += "\tbra END;\n";
    for (std::size_t k = 0; k < program_.threads.size(); ++k) out += thread_text(k);
    return out + "END:\n\tret;\n}\n";
  }

  std::string thread_text(std::size_t k) const {
    std::set<std::string> own;
    for (const std::string& line : program_.threads[k].lines)
      for (const std::string& word : operands(line))
        if (is_register(word)) own.insert(word);
    std::string out = fmt::format("P{}:\n", k);
    if (!lanes_) out += "\tsetp.ne.u32 %p, %lane, 0;\n\t@%p bra END;\n";
    for (const std::string& each : own) out += fmt::format("\tmov.u32 %{}, 0;\n", each);
    for (const std::string& line : program_.threads[k].lines) out += instruction(k, line);
    for (const std::string& each : own)
      if (each[0] == 'r')
        out += fmt::format("\tst.global.u32 [%out+{}], %{};\n",
                           64 * k + 4 * std::stoul(each.substr(1)), each);
    return out + "\tbra END;\n";
  }

  std::string instruction(std::size_t k, const std::string& line) const {
    const std::string opcode = line.substr(0, line.find(' '));
    const std::vector<std::string> args = operands(line);
    if (line.ends_with(':')) return fmt::format("P{}_{}\n", k, line);
    if (branches(line))
      return fmt::format("\tsetp.{}.s32 %p, %{}, {};\n\t@%p bra P{}_{};\n", opcode.substr(1),
                         args[0], args[1], k, args[2]);
    if (opcode.starts_with("ld."))
      return fmt::format("\t{}.global.u32 %{}, {};\n", opcode, args[0], address(args[1]));
    if (opcode.starts_with("st."))
      return fmt::format("\tmov.u32 %a, {};\n\t{}.global.u32 {}, %a;\n", args[1], opcode,
                         address(args[0]));
    if (opcode.starts_with("red."))
      return fmt::format("\t{} {}, {};\n", typed(opcode), address(args[0]), args[1]);
    if (opcode.starts_with("atom."))
      return fmt::format("\t{} {}{}, {}, {};\n", typed(opcode), args[0] == "_" ? "" : "%", args[0],
                         address(args[1]), args[2]);
    return fmt::format("\t{};\n", line);  // a fence
  }

  std::string address(const std::string& word) const {
    return fmt::format("[%mem+{}]", words_.at(word));
  }

  // atom.relaxed.gpu.exch -> atom.relaxed.gpu.global.exch.b32
  static std::string typed(const std::string& opcode) {
    const std::size_t dot = opcode.rfind('.');
    const std::string operation = opcode.substr(dot + 1);
    return fmt::format("{}.global.{}.{}", opcode.substr(0, dot), operation,
                       operation == "exch" ? "b32" : "u32");
  }

  const Program& program_;
  const bool lanes_;
  unsigned ctas_ = 0, threads_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::string, std::size_t> words_;  // where each starts in `memory`
  std::set<std::string> registers_;
};

}  // namespace

std::vector<LitmusTest> read_litmus(const std::string& path) {
  std::vector<LitmusTest> out;
  for (const Program& each : parse(read_file(path))) {
    out.push_back(Translation(each, false).test());
    if (each.lanes) out.push_back(Translation(each, true).test());
  }
  EXPECT_FALSE(out.empty()) << path;
  return out;
}

}  // namespace tartan::test
