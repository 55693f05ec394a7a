// SPDX-License-Identifier: Apache-2.0
// Directives and registers of PTX 9.1 to 9.5 (each verdict is ptxas's, CUDA 13.5), and texts that
// are newer than Tartan.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "tartan/ptx/parser.h"
#include "tartan/verify/verify.h"

namespace tartan {
namespace {

std::string header(const std::string& version, const std::string& target) {
  return fmt::format(".version {}\n.target {}\n.address_size 64\n", version, target);
}

std::string kernel(const std::string& directives, const std::string& body = "") {
  return ".visible .entry k() " + directives + "\n{\n.reg .b32 r; .reg .b64 d;\n" + body +
         "\nret;\n}\n";
}

// "level id" of each diagnostic, with commas between.
std::string said(const std::string& text, const verify::Options& options = {}) {
  std::string out;
  for (const Diag& diag : verify::check(std::make_shared<const Source>("k.ptx", text), options))
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ",
                       diag.level == Level::Error ? "error" : "warning", diag.id);
  return out;
}

bool taken(const std::string& text) { return said(text).find("error") == std::string::npos; }

struct Case {
  const char *version, *target;
  std::string text;
  bool taken;
};

void expect_verdicts(const std::vector<Case>& cases) {
  for (const Case& each : cases)
    EXPECT_EQ(taken(header(each.version, each.target) + each.text), each.taken)
        << each.version << " " << each.target << "\n"
        << each.text << said(header(each.version, each.target) + each.text);
}

TEST(NewerDirectives, Language) {
  expect_verdicts({{"9.2", "sm_75", kernel(".language 5"), true},
                   {"9.1", "sm_75", kernel(".language 5"), false},
                   {"9.2", "sm_90", kernel(".language 11"), false},
                   {"9.2", "sm_90", kernel(".language 1, 5, 10"), true},
                   {"9.2", "sm_90", kernel(".language \"cuda c++\""), true},
                   {"9.2", "sm_90", kernel(".language \"PTX\", \"NVVM\""), true},
                   {"9.2", "sm_90", kernel(".language \"CUDA\""), false},
                   {"9.2", "sm_90", kernel(".language"), false},
                   {"9.2", "sm_90", kernel("", ".language 5;"), false},
                   {"9.2", "sm_90", ".func f() .language 5 {ret;}\n", true},
                   {"9.2", "sm_90", kernel(".language \"Fortran\" .maxntid 32"), true},
                   {"9.2", "sm_90", kernel(".language 3 .language 4"), true}});
}

TEST(NewerDirectives, MemoryPerBlock) {
  const std::string size = "mov.u32 r, %perctamemorysize;";
  expect_verdicts({{"9.4", "sm_80", kernel(".minperctamemory 4"), true},
                   {"9.4", "sm_75", kernel(".minperctamemory 4"), false},
                   {"9.3", "sm_80", kernel(".minperctamemory 4"), false},
                   {"9.4", "sm_80", kernel(".minperctamemory 0"), true},
                   {"9.4", "sm_80", kernel(".minperctamemory 4294967296"), false},
                   {"9.4", "sm_80", kernel(".minperctamemory 1, 2"), false},
                   {"9.4", "sm_80", kernel(".minperctamemory"), false},
                   {"9.4", "sm_80", ".func f() .minperctamemory 4 {ret;}\n", false},
                   {"9.4", "sm_80", kernel(".minperctamemory 4", size), true},
                   {"9.4", "sm_80", kernel("", size), false},
                   {"9.4", "sm_75", kernel(".minperctamemory 4", size), false},
                   {"9.4", "sm_80", ".func f() {.reg .b32 r; " + size + " ret;}\n", true}});
}

TEST(NewerDirectives, PragmasAndLines) {
  const std::string pragma = ".pragma \"mma_throughput\";", line = ".loc_intermediate 1 2 3";
  expect_verdicts({{"9.3", "sm_75", kernel("", pragma), true},
                   {"9.2", "sm_75", kernel("", pragma), false},
                   {"9.3", "sm_75", pragma + kernel(""), false},
                   {"9.3", "sm_75", kernel(pragma), false},
                   {"9.4", "sm_75", kernel("", line), true},
                   {"9.3", "sm_75", kernel("", line), false},
                   {"9.4", "sm_75", kernel("", line + ";"), false},
                   {"9.4", "sm_75", kernel("", ".loc_intermediate 1 2\n"), false}});
}

TEST(NewerDirectives, ArePrinted) {
  const std::string text =
      header("9.4", "sm_80") + kernel(".language 5, 10 .language \"PTX\" .minperctamemory 4",
                                      ".loc_intermediate 1 2 3\n.pragma \"mma_throughput\";");
  Diags diags;
  const auto read = [&](const std::string& from) {
    return ptx::print(ptx::parse(std::make_shared<const Source>("k.ptx", from), diags));
  };
  const std::string once = read(text);
  EXPECT_EQ(read(once), once);
  EXPECT_TRUE(diags.empty());
  for (const char* part : {".language 5, 10", ".language \"PTX\"", ".minperctamemory 4",
                           ".loc_intermediate 1 2 3", ".pragma \"mma_throughput\";"})
    EXPECT_NE(once.find(part), std::string::npos) << part << once;
}

TEST(NewerThanKnown, IsOneWarning) {
  const std::string plain = kernel("", "add.u32 r, r, r;");
  EXPECT_EQ(said(header("9.6", "sm_90") + plain), "warning newer-than-known");
  EXPECT_EQ(said(header("10.0", "sm_90") + plain), "warning newer-than-known");
  EXPECT_EQ(said(header("9.5", "sm_130a") + plain), "warning newer-than-known");
  EXPECT_EQ(said(header("9.6", "sm_130a") + plain), "warning newer-than-known");
  EXPECT_EQ(said(header("9.5", "sm_107a") + plain), "");
  EXPECT_EQ(said(header("9.6", "sm_130a") + plain, {.arch = Arch{90, 'a'}}),
            "warning newer-than-known")
      << "the version";
  EXPECT_EQ(said(header("9.5", "sm_130a") + plain, {.arch = Arch{90, 'a'}}), "");
}

TEST(NewerThanKnown, OthersStayErrors) {
  const std::string plain = kernel("");
  for (const char* version : {"11.0", "8.9", "99.9"})
    EXPECT_EQ(said(header(version, "sm_90") + plain), "error unknown-version") << version;
  for (const char* target : {"sm_99", "sm_94a", "sm_1300", "sm_130b", "sm_0130", "sm_"})
    EXPECT_EQ(said(header("9.0", target) + plain), "error unknown-target") << target;
}

// A GPU to come is judged as the nearest older one with its suffix.
TEST(NewerThanKnown, TargetsHaveRelatives) {
  const std::string of_rubin = kernel("", "set.eq.u8x4 r, r, r;"),
                    of_blackwell = kernel("", ".reg .b32 e; tcgen05.wait::ld.sync.aligned;");
  EXPECT_EQ(said(header("9.5", "sm_108a") + of_rubin), "warning newer-than-known");
  EXPECT_EQ(said(header("9.5", "sm_104a") + of_rubin),
            "warning newer-than-known, warning target-support");
  EXPECT_EQ(said(header("9.5", "sm_102a") + of_blackwell), "warning newer-than-known");
  EXPECT_EQ(said(header("9.6", "sm_103a") + of_rubin),
            "warning newer-than-known, error target-support")
      << "a later version gives an older GPU no instructions of a newer one";
}

TEST(NewerThanKnown, UnknownInstructionsAreWarnings) {
  const std::string text = kernel("",
                                  "quantum.add.u32 r, r;\nadd.later.u32 r, r, r;\n"
                                  "mma.sync.aligned.m99n8k16.row.col.f32.f16.f16.f32 r, r;");
  const std::string found = said(header("9.6", "sm_90") + text);
  EXPECT_EQ(found.find("error"), std::string::npos) << found;
  EXPECT_NE(found.find("warning unknown-instruction"), std::string::npos) << found;
  EXPECT_NE(found.find("warning unknown-qualifier"), std::string::npos) << found;
  EXPECT_NE(said(header("9.5", "sm_90") + text).find("error unknown-instruction"),
            std::string::npos);
  EXPECT_NE(said(header("9.6", "sm_90") + kernel("", "add.u32 r, r;")).find("error operand-count"),
            std::string::npos)
      << "what is known is judged";
}

}  // namespace
}  // namespace tartan
