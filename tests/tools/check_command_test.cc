// SPDX-License-Identifier: Apache-2.0
// `tartan check` from a user's view: invalid arguments, unreadable files, unwritable outputs.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tartan/version.h"
#include "tests/paths.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

using test::Ran;

Ran tartan_command(const std::string& words) {
  return test::shell(fmt::format("({} {}) 2>&1", TARTAN_COMMAND, words));
}

void refuses(const std::string& words, const std::string& text) {
  const Ran ran = tartan_command(words);
  EXPECT_EQ(ran.code, 2) << words;
  EXPECT_NE(ran.out.find(text), std::string::npos) << words << "\n" << ran.out;
  EXPECT_LT(ran.out.size(), 500u) << ran.out;
}

TEST(CheckCommand, InvalidArguments) {
  refuses("chekc x.ptx", "error: unknown command chekc: expected one of check, print, ");
  refuses("", "error: a command is required; `tartan --help` lists them [usage]");
  refuses("check --jsno x", "error: check: unknown option --jsno; the nearest is --json [usage]");
  refuses("check --colour=never x", "the nearest is --color [usage]");
  refuses("replay a b c", "error: replay: unexpected argument c [usage]");
  refuses("--color=blue check x", "--color");
  refuses("check --json --sarif x", "excludes");
  refuses("check", "FILE is required");
  refuses("check - - < /dev/null", "'-' given twice");
  refuses("check --target compute_90a x", "the nearest is sm_90a");
  refuses("check --target sm_90x x", "the nearest are sm_90 and sm_90a");
  refuses("check --ptx 99.9 x", "--ptx 99.9: unknown PTX version; the nearest is 9.5");
  refuses("check --ptx 7.9 x", "the nearest is 7.8");
  refuses("check --max-errors -1 x", "--max-errors -1: expected a whole number from 0 to ");
  refuses("run --max-steps 0 x", "--max-steps 0: expected a whole number from 1 to ");
  refuses("layout --selector -1 x", "--selector -1: expected a whole number from 0 to 2147483647");
  refuses("check --error undeclared-registr x",
          "error: --error undeclared-registr: unknown rule; the nearest is undeclared-register "
          "[usage]");
  refuses("check --warn all x", "unknown rule");
  refuses("check --warn syntax --ignore syntax x", "--ignore syntax: the rule already has a level");
}

// What would be ignored is refused.
TEST(CheckCommand, OptionsThatDoNotApply) {
  refuses("check --rules x", "--rules: it prints the page of all rules, and takes no FILE");
  refuses("check --rules --target sm_90", "takes no --target");
  refuses("check x --gpu H200", "unknown option --gpu");
  const std::string mma = "mma.m16n8k16.row.col.f32.f16.f16.f32";
  refuses("layout --type f16 " + mma,
          "--type: an option of a matrix in shared memory; " + mma + " is an instruction");
  refuses("layout --selector 0 " + mma,
          "--selector 0: mma.sync.aligned." + mma.substr(4) + " is not sparse");
  refuses("layout --operand a --selector 1 '64x32:(32,1)'",
          "--operand: an option of an instruction; 64x32:(32,1) is a matrix in shared memory");
  refuses("layout --operand a --selector 1 '64x32:(32,1)'", "--selector: an option of an instruc");
  for (const char* option : {"--checks none", "--max-steps 5", "--report", "--schedule 1",
                             "--schedules 2", "--timeout 1", "--hardware sm_80"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find(' '));
    refuses(
        fmt::format("run x --device cuda:1 {}", option),
        name + ": an option of the emulator; expected --device emulator, found --device cuda:1");
  }
  refuses("run x --most-schedules 5", "--most-schedules: an option of --schedules all, found none");
  refuses("run x --most-schedules 5 --schedules 3", "found --schedules 3");
}

TEST(CheckCommand, ListTakesNothingElse) {
  if (code_generator().empty()) GTEST_SKIP() << "this build has no code generation";
  refuses("emit --list gemm", "--list: it lists all kernels, and takes no KERNEL");
  refuses("emit --list --m 5", "takes no --m");
  refuses("emit --list -o x", "takes no -o");
}

// An empty value differs from none.
TEST(CheckCommand, EmptyValues) {
  for (const char* words :
       {"check --target '' x", "check --ptx '' x", "check ''", "print x -o ''",
        "run x --hardware ''", "run x --device ''", "run ''", "isa ''", "isa --target ''",
        "layout ''", "layout x --svg ''", "replay '' x", "check --ignore '' x"})
    refuses(words, "expected a value, found an empty one");
}

// Every command with --json reports errors as JSON, too.
TEST(CheckCommand, ErrorsAsJson) {
  for (const char* words :
       {"check --json", "check --json no_such_file", "check --json --jsno x", "isa nothing --json",
        "isa --json --target sm_1", "isa --json --target ''", "layout nothing --json",
        "layout --json '64x32:(1'", "layout '64x32:(32,1)' --type f9 --json", "replay --json a b",
        "replay --json a", "replay --json a b --hardware sm_1", "no_command --json"}) {
    const Ran ran = test::shell(fmt::format("{} {} 2> /dev/null", TARTAN_COMMAND, words));
    EXPECT_EQ(ran.code, 2) << words;
    const auto json = nlohmann::json::parse(ran.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << words << ran.out;
    EXPECT_EQ(json["schema_version"], 1) << words;
    EXPECT_EQ(json["diagnostics"][0]["level"], "error") << words;
  }
  for (const char* words : {"run --json no_such_file", "run --json", "run --json x y"}) {
    const Ran ran = test::shell(fmt::format("{} {} 2> /dev/null", TARTAN_COMMAND, words));
    EXPECT_EQ(ran.code, 2) << words;
    const auto json = nlohmann::json::parse(ran.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << words << ran.out;
    EXPECT_EQ(json["findings"].size(), 1u) << words;
  }
}

TEST(CheckCommand, Version) {
  const Ran ran = tartan_command("--version");
  EXPECT_EQ(ran.code, 0);
  const std::string generator(code_generator());
  EXPECT_EQ(ran.out, fmt::format("tartan {}{}\n", version(),
                                 generator.empty() ? "" : fmt::format(" ({})", generator)));
  EXPECT_TRUE(generator.empty() || generator.starts_with("LLVM 2")) << generator;
}

TEST(CheckCommand, UnreadableFiles) {
  refuses("check no_such_file", "no_such_file: error: cannot read the file: No such file");
  refuses("check /dev/zero", "not a regular file");
  refuses("check /tmp", "Is a directory");
  for (const char* words :
       {"check --json no_such_file", "check --json --target sm_99 no_such_file"})
    EXPECT_TRUE(nlohmann::json::accept(tartan_command(words).out)) << words;
  const auto json = nlohmann::json::parse(tartan_command("check --json no_such_file").out);
  EXPECT_EQ(json["diagnostics"][0]["file"], "no_such_file");
}

TEST(CheckCommand, FullDisk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  for (const char* words : {"check --rules", "isa", "--help", "check --json no_such_file"}) {
    const Ran ran = tartan_command(fmt::format("{} 2>&1 > /dev/full", words));
    EXPECT_EQ(ran.code, 2) << words;
    EXPECT_NE(ran.out.find("cannot write standard output: "), std::string::npos) << ran.out;
  }
}

// ---- Output for wrong text.

class CheckOutput : public testing::Test {
 protected:
  CheckOutput() : folder(fs::temp_directory_path() / fmt::format("tartan_check_{}", getpid())) {
    fs::create_directories(folder);
    std::string text = ".version 8.4\n.target sm_90a\n.visible .entry k()\n{\n.reg .b32 %r<9>;\n";
    for (int i = 0; i < 250; ++i) text += "mov.u32 %r1, %x;\n";
    std::ofstream(folder / "many.ptx") << text + "bra $none;\nret;\n}\n";
  }
  ~CheckOutput() override { fs::remove_all(folder); }

  Ran check(const std::string& words, const std::string& before = "") {
    return test::shell(fmt::format("cd {} && {} {} check {} 2>&1", folder.string(), before,
                                   TARTAN_COMMAND, words));
  }
  static std::size_t errors(const Ran& ran) {
    std::size_t count = 0;
    for (std::size_t at = ran.out.find("error: "); at != std::string::npos;
         at = ran.out.find("error: ", at + 1))
      ++count;
    return count;
  }

  fs::path folder;
};

TEST_F(CheckOutput, StopsAfterOneHundredErrors) {
  const Ran usual = check("many.ptx");
  EXPECT_EQ(usual.code, 1);
  EXPECT_EQ(errors(usual), 100u);
  EXPECT_TRUE(
      usual.out.ends_with("many.ptx: note: 151 more errors not shown; --max-errors 0 shows all\n"));
  EXPECT_TRUE(check("many.ptx --max-errors 250")
                  .out.ends_with("note: 1 more error not shown; --max-errors 0 "
                                 "shows all\n"));
  const Ran all = check("--max-errors 0 many.ptx");
  EXPECT_EQ(errors(all), 251u);
  EXPECT_EQ(all.out.find("more"), std::string::npos);
  const auto json = nlohmann::json::parse(check("--json many.ptx").out);
  EXPECT_EQ(json["diagnostics"].size(), 100u);
  EXPECT_EQ(json["truncated"], 151);
}

TEST_F(CheckOutput, LevelsOfRules) {
  EXPECT_EQ(errors(check("--ignore undeclared-register many.ptx")), 1u);
  const Ran warned = check("many.ptx --warn undeclared-register --warn undeclared-label");
  EXPECT_EQ(warned.code, 0);
  EXPECT_EQ(errors(warned), 0u);
  EXPECT_NE(warned.out.find("warning: %x is undeclared"), std::string::npos);
  // Warnings as errors.
  const std::string warns = TEST_DATA "/check/bad-provenance.ptx";
  EXPECT_EQ(check(warns).code, 0);
  EXPECT_EQ(check("--error all " + warns).code, 1);
  EXPECT_EQ(check("--error fragment-provenance " + warns).code, 1);
  EXPECT_EQ(check("--error all --ignore fragment-provenance " + warns).code, 0);
}

TEST_F(CheckOutput, Sarif) {
  const Ran ran = check("--sarif many.ptx");
  EXPECT_EQ(ran.code, 1);
  const auto run = nlohmann::json::parse(ran.out)["runs"][0];
  EXPECT_EQ(run["results"].size(), 100u);
  EXPECT_EQ(run["tool"]["driver"]["version"], version());
  EXPECT_EQ(run["invocations"][0]["executionSuccessful"], true);
  const auto failed = nlohmann::json::parse(check("--sarif none.ptx").out)["runs"][0];
  EXPECT_EQ(failed["invocations"][0]["executionSuccessful"], false);
  EXPECT_EQ(failed["results"][0]["ruleId"], "file");
}

TEST_F(CheckOutput, Colours) {
  constexpr const char* escape = "\x1b";
  EXPECT_EQ(check("many.ptx").out.find(escape), std::string::npos);
  EXPECT_NE(check("many.ptx --color=always", "NO_COLOR=1").out.find(escape), std::string::npos);
  EXPECT_NE(check("--color always many.ptx", "TERM=dumb").out.find(escape), std::string::npos);
  // script(1) gives it a terminal.
  const auto on_terminal = [&](const std::string& before, const std::string& words) {
    return test::shell(fmt::format("cd {} && {} script -qec '{} check {}' /dev/null",
                                   folder.string(), before, TARTAN_COMMAND, words))
        .out;
  };
  if (on_terminal("TERM=xterm", "--rules").empty()) GTEST_SKIP() << "no script(1)";
  EXPECT_NE(on_terminal("TERM=xterm", "many.ptx").find(escape), std::string::npos);
  EXPECT_EQ(on_terminal("TERM=xterm", "many.ptx --color=never").find(escape), std::string::npos);
  EXPECT_EQ(on_terminal("TERM=dumb", "many.ptx").find(escape), std::string::npos);
  EXPECT_EQ(on_terminal("TERM=xterm NO_COLOR=1", "many.ptx").find(escape), std::string::npos);
}

}  // namespace
}  // namespace tartan
