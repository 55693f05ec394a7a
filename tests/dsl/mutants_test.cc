// SPDX-License-Identifier: Apache-2.0
// DSL programs with one mistake each: refused at a line of the program, never by LLVM or by the
// check of what was generated; or found by the launch or the emulator; or without effect. What
// gives a wrong number in silence is listed in data/dsl_mutants.txt with the reason.
//
// A sample runs; TARTAN_MUTANTS=all runs all of them, and with it TARTAN_REBASE=1 writes the list
// anew: reasons are kept, new ones are `?`.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/dsl/mutator.h"
#include "tests/support/engine.h"
#include "tests/support/numbers.h"

namespace tartan::test {
namespace {

enum class Fate { refused, launch, found, warned, right, wrong, bad };
constexpr const char* fates[] = {"refused at a line",
                                 "refused at the launch",
                                 "found by the emulator",
                                 "warned of, and wrong",
                                 "right",
                                 "wrong and silent",
                                 "refused without a line"};

struct Verdict {
  Fate fate;
  std::string text;
};

bool is_close(double x, double y) { return std::abs(x - y) <= 1e-3 * (1 + std::abs(y)); }

// Whether every diagnostic names a line of a program, and is about the program.
Verdict refusal(const Diags& diags) {
  for (const Diag& each : diags)
    if (each.id == "codegen" || each.place.line < 1 ||
        each.place.file.find("tests/dsl/mutat") == std::string::npos)
      return {Fate::bad, fmt::format("{}:{}: {} [{}]", each.place.file, each.place.line,
                                     each.message, each.id)};
  return {Fate::refused, diags.text()};
}

Verdict outcome(Device& device, const MutatedProgram& program, const Compiled& compiled) {
  const auto module = device.load(compiled.ptx, compiled.name);
  if (!module) return {Fate::bad, module.diags().text()};
  auto kernel = module->kernel(compiled.name);
  if (!kernel) return {Fate::bad, kernel.diags().text()};
  Arguments arguments;
  std::vector<Buffer> buffers;
  for (const std::int32_t each : program.numbers) arguments.add(each);
  for (const auto& each : program.inputs) {
    buffers.push_back(*device.allocate(each.size()));
    EXPECT_TRUE(buffers.back().write(each));
    arguments.add(buffers.back());
  }
  device.clear_findings();
  const auto launched = launch(*kernel, compiled, program.grid, arguments);
  if (!launched) return {Fate::launch, launched.diags().text()};
  const auto done = device.synchronize();
  if (!done) return {Fate::found, done.diags().text()};
  for (const Finding& each : device.findings())
    return {Fate::found, fmt::format("{}: {}", each.id, each.message)};
  const auto got = testing_numbers::decode(program.type, *buffers.back().read_all<std::byte>());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!is_close(got[i], program.expected[i]))
      return {compiled.warnings.empty() ? Fate::wrong : Fate::warned,
              fmt::format("element {}: {} for {}", i, got[i], program.expected[i])};
  return {Fate::right, ""};
}

Verdict judged(const MutatedProgram& program, const std::string& target, Mutator mutator) {
  const auto compiled = compile(program.make(mutator), *Arch::parse(target));
  if (!compiled) return refusal(compiled.diags());
  Device device = test::open_engine({.max_steps = 200'000, .threads = 1, .checks = Checks::all});
  return outcome(device, program, *compiled);
}

// In a process of its own: a crash is a verdict, too.
Verdict safely_judged(const MutatedProgram& program, const std::string& target,
                      const Mutator::Mutant& mutant) {
  int ends[2];
  if (pipe(ends) != 0) return {Fate::bad, "no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    const Verdict verdict = judged(program, target, Mutator(mutant));
    const std::string text = static_cast<char>('0' + static_cast<int>(verdict.fate)) + verdict.text;
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t count = write(ends[1], text.data() + done, text.size() - done);
      if (count <= 0) break;
      done += static_cast<std::size_t>(count);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t count = 0; (count = read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0 || text.empty()) return {Fate::bad, fmt::format("it crashed: {}", status)};
  return {static_cast<Fate>(text[0] - '0'), text.substr(1)};
}

std::vector<Mutator::Mutant> mutants_of(const MutatedProgram& program, const std::string& target) {
  Mutator recorder;
  EXPECT_TRUE(compile(program.make(recorder), *Arch::parse(target)));
  return recorder.mutants();
}

bool all_of_them() {
  const char* wish = std::getenv("TARTAN_MUTANTS");
  return wish && std::string_view(wish) == "all";
}

const std::string list_path = std::string(TEST_DATA) + "/dsl_mutants.txt";

std::map<std::string, std::string> listed() {
  std::map<std::string, std::string> out;
  std::ifstream file(list_path);
  for (std::string line; std::getline(file, line);)
    if (const std::size_t bar = line.rfind(" | "); bar != std::string::npos)
      out[line.substr(0, bar)] = line.substr(bar + 3);
  return out;
}

TEST(DslMutants, TheProgramsAreRight) {
  for (const MutatedProgram& program : mutated_programs())
    for (const std::string& target : program.targets) {
      const Verdict verdict = judged(program, target, Mutator());
      EXPECT_EQ(verdict.fate, Fate::right)
          << program.name << ", " << target << ": " << verdict.text;
    }
}

TEST(DslMutants, NoMistakeIsSilent) {
  const bool all = all_of_them();
  const auto reasons = listed();
  std::map<std::string, std::string> silent;  // and their reasons
  std::map<Fate, int> counts;
  std::ofstream log;
  if (all) log.open(testing::TempDir() + "dsl_mutants.txt");
  constexpr int every = 25;
  int number = 0;
  for (const MutatedProgram& program : mutated_programs())
    for (const std::string& target : program.targets)
      for (const Mutator::Mutant& mutant : mutants_of(program, target)) {
        if (number++ % every && !all) continue;
        const std::string key = fmt::format("{} {} {}:{} {}", program.name, target, mutant.line,
                                            mutant.column, mutant.text);
        if (all) log << key << std::flush;
        const Verdict verdict = safely_judged(program, target, mutant);
        ++counts[verdict.fate];
        if (all)
          log << ": " << fates[static_cast<int>(verdict.fate)] << ": " << verdict.text << '\n';
        EXPECT_NE(verdict.fate, Fate::bad) << key << ": " << verdict.text;
        if (verdict.fate != Fate::wrong) continue;
        const auto reason = reasons.find(key);
        silent[key] = reason == reasons.end() ? "?" : reason->second;
        if (!std::getenv("TARTAN_REBASE")) {
          EXPECT_NE(silent[key], "?") << key << ": " << verdict.text;
        }
      }
  if (!all) return;
  for (const auto& [fate, count] : counts)
    fmt::print("{:5} {}\n", count, fates[static_cast<int>(fate)]);
  fmt::print("{:5} mutants\n", number);
  EXPECT_GE(number, 2000);
  if (!std::getenv("TARTAN_REBASE")) {
    for (const auto& [key, reason] : reasons)
      EXPECT_TRUE(silent.contains(key)) << key << " is no longer silent";
    return;
  }
  std::ofstream file(list_path);
  file << "# DSL programs with one mistake, wrong in silence: program, target, line:column, "
          "mistake |\n"
          "# why that is another legal program. Written by mutants_test.cc.\n";
  for (const auto& [key, reason] : silent) file << key << " | " << reason << '\n';
}

}  // namespace
}  // namespace tartan::test
