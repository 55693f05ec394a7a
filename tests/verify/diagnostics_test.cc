// SPDX-License-Identifier: Apache-2.0
// Output of diagnostics: escaping for terminals, limits, levels of rules, SARIF.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "compiler/support/json_text.h"
#include "compiler/support/nearest.h"
#include "compiler/support/sarif.h"
#include "tartan/verify/verify.h"

namespace tartan {
namespace {

using nlohmann::json;

Diags check(std::string text, const verify::Options& options = {}) {
  return verify::check(std::make_shared<const Source>("k.ptx", std::move(text)), options);
}

const std::string head = ".version 8.4 .target sm_90a .visible .entry k() { .reg .b32 %r<9>; ";

// ---- Output to a terminal.

TEST(Diagnostics, PrintableEscapesWhatTerminalsObey) {
  EXPECT_EQ(printable("plain text"), "plain text");
  EXPECT_EQ(printable("a\x1b[31mb\r\n\t\x7f"), "a\\x1b[31mb\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
            "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");                             // C1
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");                    // from right to left
  EXPECT_EQ(printable("\x9b\xff\xc3"), "\\x9b\\xff\\xc3");                    // no UTF-8
  EXPECT_EQ(printable("\xc0\x80\xed\xa0\x80"), "\\xc0\\x80\\xed\\xa0\\x80");  // overlong, surrogate
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Diagnostics, TextIsPrintable) {
  Diags diags = Diags::one("file"_rule, {"a\x1b]0;title\x07\n.ptx", 2, 9}, "x\x1b[2J\nsecond\x08");
  EXPECT_EQ(diags.text(),
            "a\\x1b]0;title\\x07\\x0a.ptx:2:9: error: x\\x1b[2J\n  second\\x08 [file]\n");
  for (const bool colour : {false, true})
    for (const Diag& diag : check(head + "mov.u32 %r1, \x1b[31m%x; \xe2\x80\xae ret; }")) {
      std::string text = to_text(diag, colour);
      if (colour)
        for (const char* ours : {"\x1b[1m", "\x1b[1;31m", "\x1b[0m", "\x1b[1;32m"})
          for (std::size_t at = text.find(ours); at != std::string::npos; at = text.find(ours))
            text.erase(at, std::string_view(ours).size());
      for (const char c : text)
        EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << text;
      EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos) << text;
    }
}

TEST(Diagnostics, CaretStandsUnderTheEscapedPlace) {
  const auto lines = [](const std::string& before, std::size_t mistakes = 1) {
    const Diags diags =
        check(".version 8.4\n.target sm_90a\n.visible .entry k() {.reg .b32 %r<2>;\n" + before +
              "mov.u32 %r1, %long;\nret; }");
    EXPECT_EQ(diags.size(), mistakes) << diags.text();
    const std::string text = to_text(diags[mistakes - 1], false);
    const std::size_t source = text.find('\n') + 1, caret = text.find('\n', source) + 1;
    const std::string shown = text.substr(source, caret - source - 1), mark = text.substr(caret);
    std::size_t column = 0;  // of characters, as a terminal counts them
    for (const char c : shown.substr(0, shown.find("%long")))
      column += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    EXPECT_EQ(mark.find('^'), column) << text;
    EXPECT_EQ(mark.substr(mark.find('^')), "^~~~~") << text;
    return shown;
  };
  EXPECT_EQ(lines("\t"), "\tmov.u32 %r1, %long;");
  EXPECT_EQ(lines("/* \x1b\x07 */ "), "/* \\x1b\\x07 */ mov.u32 %r1, %long;");
  lines("/* gr\xc3\xbc\xc3\x9f \xe2\x82\xac */ ", 2);  // which is no ASCII
}

// ---- Limits.

TEST(Diagnostics, LimitKeepsTheFirstOfTheText) {
  verify::Options options;
  std::string text = head + "\n";
  // One pass finds the undeclared registers, the parser the bad syntax before them.
  for (int i = 0; i < 500; ++i) text += "mov.u32 %x, 1;\nmov.u32 %r1 2;\n";
  text += "ret; }";
  const Diags all = check(text, options);
  EXPECT_EQ(all.count(Level::Error), 1000u);
  EXPECT_EQ(all.left_out(), 0u);
  for (const int most : {1, 7, 100, 999, 1000, 2000}) {
    options.max_errors = most;
    const Diags some = check(text, options);
    const std::size_t kept = std::min<std::size_t>(1000, static_cast<std::size_t>(most));
    ASSERT_EQ(some.size(), kept);
    EXPECT_EQ(some.left_out(), 1000 - kept);
    EXPECT_FALSE(some.ok());
    for (std::size_t i = 0; i < kept; ++i) EXPECT_EQ(to_string(some[i]), to_string(all[i]));
    EXPECT_EQ(json::parse(some.json())["truncated"], 1000 - kept);
  }
}

// 200,000 errors on one line once took minutes: each measured the line, and some walked over all
// statements. Linear time is a few seconds at the slowest; quadratic time is far more.
TEST(Diagnostics, ManyErrorsTakeLinearTime) {
  constexpr int many = 200'000;
  struct Case {
    const char *what, *statement;
  };
  for (const Case& each :
       {Case{"undeclared registers", "add.s32 %x1, %x2, %x3; "},
        {"syntax", "add.s32 %r1 %r2; "},
        {"labels", "bra $L1; "},
        {"opcodes", "foo.bar %r1; "},
        {"redefinitions", ".reg .b32 %q; "},
        {"forms", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f33 {%r1}; "}}) {
    std::string text = head;
    for (int i = 0; i < many; ++i) text += each.statement;
    verify::Options options;
    options.max_errors = 100;
    const auto begin = std::chrono::steady_clock::now();
    const Diags diags = check(text + "ret; }", options);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(diags.count(Level::Error), 100u) << each.what;
    EXPECT_GE(diags.left_out() + 100, std::size_t{many} - 1) << each.what;
    EXPECT_LT(seconds.count(), 30) << each.what;
  }
}

TEST(Diagnostics, DeepNestingIsRefusedOrRead) {
  constexpr int deep = 300'000;
  const auto repeated = [](std::string_view piece) {
    std::string out;
    for (int i = 0; i < deep; ++i) out += piece;
    return out;
  };
  for (const std::string& wrong :
       {"mov.b32 %r1, " + repeated("(") + "1;", "mov.b32 %r1, " + repeated("-") + "1;",
        "mov.b32 %r1, " + repeated("1?1:") + "1;", "mov.b32 " + repeated("{") + "%r1;",
        "ld.u32 %r1, " + repeated("[") + "%r1;"}) {
    const Diags diags = check(head + wrong + " ret; }");
    EXPECT_EQ(diags.count(Level::Error), 1u) << wrong.substr(0, 40);
    EXPECT_NE(diags.text().find("nested"), std::string::npos) << diags.text();
  }
  EXPECT_FALSE(check(head + repeated("{ ")).ok());
  EXPECT_FALSE(check(".version 8.4 .target sm_90a .global .b32 x[4] = " + repeated("{")).ok());
  // Blocks may be nested, and sums may be long, without a limit.
  EXPECT_TRUE(check(head + repeated("{ ") + repeated("} ") + "ret; }").ok());
  EXPECT_TRUE(check(head + "mov.b32 %r1, " + repeated("1+") + "1; ret; }").ok());
  // Lookup of the function's labels from there is fast.
  EXPECT_TRUE(check(head + "$L: " + repeated("{ bra $L; ") + repeated("} ") + "ret; }").ok());
}

// ---- Levels.

TEST(Diagnostics, LevelsOfRules) {
  const std::string text = head + "mov.u32 %x, 1; bra $none; ret; }";
  const auto levels = [&](std::optional<Level> level) {
    verify::Options options;
    EXPECT_TRUE(options.levels.set("undeclared-register", level));
    EXPECT_FALSE(options.levels.set("no-such-rule", level));
    return check(text, options);
  };
  EXPECT_EQ(check(text).count(Level::Error), 2u);
  const Diags warned = levels(Level::Warning);
  EXPECT_EQ(warned.count(Level::Error), 1u);
  EXPECT_EQ(warned.count(Level::Warning), 1u);
  EXPECT_EQ(levels(std::nullopt).size(), 1u);
  EXPECT_EQ(levels(Level::Note).count(Level::Note), 1u);
  // Also for the parser's rules.
  verify::Options options;
  options.levels.set("syntax"_rule, std::nullopt);
  options.max_errors = 1;
  const Diags rest = check(head + "mov.u32 %r1 2; mov.u32 %x, 1; ret; }", options);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].id, "undeclared-register");
  EXPECT_EQ(rest.left_out(), 0u);
}

// ---- Other forms.

// The properties that SARIF 2.1.0 requires, in their places.
TEST(Diagnostics, SarifHasWhatTheStandardRequires) {
  verify::Options options;
  options.max_errors = 2;
  Diags diags;
  diags.append(check(head + "\nmov.u32 %x, 1;\nmov.u32 %r1 \x1b;\nbra $none;\nret; }", options));
  diags.append(Diags::one("file"_rule, {"/tmp/a b#\xc3\xbc.ptx", 0, 0}, "cannot read the file"));
  diags.append(Diags::one("usage"_rule, {}, "no file at all"));
  const json log = json::parse(to_sarif(diags, "1.2.3", false));
  EXPECT_EQ(log.at("version"), "2.1.0");
  ASSERT_EQ(log.at("runs").size(), 1u);
  const json& run = log["runs"][0];
  const json& driver = run.at("tool").at("driver");
  EXPECT_EQ(driver.at("name"), "tartan");
  EXPECT_EQ(driver["version"], "1.2.3");
  EXPECT_EQ(driver["rules"].size(), std::size(rules));
  EXPECT_EQ(run.at("invocations")[0].at("executionSuccessful"), false);
  EXPECT_EQ(run["properties"]["truncated"], 1);
  ASSERT_EQ(run.at("results").size(), 4u);
  for (const json& result : run["results"]) {
    EXPECT_FALSE(result.at("message").at("text").get<std::string>().empty());
    EXPECT_EQ(driver["rules"].at(result.at("ruleIndex").get<std::size_t>()).at("id"),
              result.at("ruleId"));
    EXPECT_EQ(result.at("level"), "error");
  }
  const json first = run["results"][0].at("locations").at(0).at("physicalLocation");
  EXPECT_EQ(first.at("artifactLocation").at("uri"), "k.ptx");
  EXPECT_EQ(first.at("region"), json({{"startLine", 2}, {"startColumn", 9}, {"endColumn", 11}}));
  const json file = run["results"][2]["locations"][0]["physicalLocation"];
  EXPECT_EQ(file["artifactLocation"]["uri"], "file:///tmp/a%20b%23%C3%BC.ptx");
  EXPECT_FALSE(file.contains("region"));
  EXPECT_FALSE(run["results"][3].contains("locations"));
  for (const json& rule : driver["rules"]) {
    EXPECT_FALSE(rule.at("shortDescription").at("text").get<std::string>().empty());
    const std::string level = rule.at("defaultConfiguration").at("level");
    EXPECT_TRUE(level == "error" || level == "warning" || level == "note") << level;
  }
}

TEST(Diagnostics, NestingOfJson) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') + "1" +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_FALSE(nested_too_deep(nested(most_json_nesting)));
  EXPECT_EQ(nested_too_deep(nested(most_json_nesting + 1)), std::size_t{most_json_nesting});
  EXPECT_FALSE(nested_too_deep("\"" + nested(200) + "\\\"" + nested(200) + "\""));
  EXPECT_FALSE(nested_too_deep("[\"" + std::string(300, '{')));  // a string that does not end
  std::string flat;
  for (int i = 0; i < 1000; ++i) flat += "[{}],";
  EXPECT_FALSE(nested_too_deep(flat));
}

TEST(Diagnostics, NearestWords) {
  const std::vector<std::string_view> words{"check", "print", "replay", "run"};
  EXPECT_EQ(nearest_hint("chekc", words), "; the nearest is check");
  EXPECT_EQ(nearest_hint("rnu", words, "--"), "; the nearest is --run");
  EXPECT_EQ(nearest_hint("", words), "");
  EXPECT_EQ(nearest_hint("version", words), "");
  EXPECT_EQ(nearest_hint(std::string(1'000'000, 'x'), words), "");
  EXPECT_EQ(nearest_hint("x", {}), "");
  const std::vector<std::string_view> alike{".v2", ".v4", ".v8"};
  EXPECT_EQ(nearest_hint(".v3", alike), "; the nearest are .v2, .v4 and .v8");
  EXPECT_EQ(nearest_hint(".V4", alike), "; the nearest is .v4");
}

}  // namespace
}  // namespace tartan
