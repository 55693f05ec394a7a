// SPDX-License-Identifier: Apache-2.0
// What of PTX 9.1 to 9.5 runs, and what is refused by name. The statements are those of
// tests/data/isa/newer.
#include <fmt/format.h>

#include <algorithm>

#include "tartan/verify/verify.h"
#include "tests/emulator/kernel.h"
#include "tests/verify/newer_sweep.h"

namespace tartan {
namespace {

using sweep::newer::Statement;
using sweep::newer::Verdict;

// A target that has the statement in PTX 9.5, but nothing in 9.0; empty without one.
std::string target_of(const Statement& statement) {
  for (const std::string_view target : sweep::newer::targets)
    if (statement.verdict(target, 0) == Verdict::Taken && !target.starts_with("sm_107")) return {};
  for (const std::string_view target : sweep::newer::targets)
    if (statement.verdict(target, 5) == Verdict::Taken) return std::string(target);
  return {};
}

std::string text_of(const Statement& statement, const std::string& target) {
  return sweep::newer::header(target, "9.5") + sweep::newer::function(1) + statement.text +
         "\nret;\n}\n";
}

// Some are taken by the assembler alone: tests/data/isa/newer/explained.txt.
bool is_legal(const Statement& statement, const std::string& target) {
  return verify::check(std::make_shared<const Source>("k.ptx", text_of(statement, target)))
             .count(Level::Error) == 0;
}

// Words whose meaning no manual gives, or that do what the emulator has not: reports of copies,
// overrides of tensor maps, copies to other nodes.
constexpr std::string_view refused_words[] = {"mbarrier::report::validity",
                                              "override::",
                                              "im2col_no_offs::w",
                                              "fabric",
                                              "multimem.",
                                              "spcompress",
                                              "spdecompress",
                                              "trace.mark",
                                              "tensormap.",
                                              "applypriority.async",
                                              "sync_restrict::read",
                                              "sync_restrict::proxy::async",
                                              "%locality_domain",
                                              "%perctamemory"};

// The same of tcgen05, what sm_107 adds among it.
constexpr std::string_view refused_tensor_words[] = {"exclusive", "kind::ti16",
                                                     "decompress::", "sync_restrict", "spcompress"};

// A prefetch does nothing, whatever it names.
bool is_emulated(std::string_view text) {
  if (text.find(".prefetch.") != text.npos) return true;
  if (text.find("tcgen05.") != text.npos) {
    return std::ranges::none_of(
        refused_tensor_words, [&](std::string_view word) { return text.find(word) != text.npos; });
  }
  return std::ranges::none_of(refused_words,
                              [&](std::string_view word) { return text.find(word) != text.npos; });
}

std::string refusal(const Statement& statement, const std::string& target) {
  auto engine = emulator::make_engine({});
  auto module = (*engine)->load(text_of(statement, target), "newer.ptx");
  if (!module) return module.diags().text();
  auto kernel = (*module)->kernel("k1");
  return kernel ? "" : kernel.diags().text();
}

// No word of what is new is overlooked: a statement runs, or is refused by name.
TEST(NewerInstructions, RunOrAreRefusedByName) {
  std::size_t run = 0, refused = 0;
  for (const std::string& family : sweep::newer::families)
    for (const Statement& each : sweep::newer::read_family(TEST_DATA "/isa/newer/", family)) {
      const std::string target = target_of(each);
      if (target.empty() || !is_legal(each, target)) continue;
      const std::string complaint = refusal(each, target);
      // As ptxas, the checker takes addresses of 16 bits, which lead nowhere.
      if (complaint.find("an address requires a register of 32 or 64 bits") != complaint.npos)
        continue;
      if (is_emulated(each.text)) {
        EXPECT_EQ(complaint, "") << target << " " << each.text;
        ++run;
      } else {
        EXPECT_NE(complaint.find("[unsupported-instruction]"), std::string::npos)
            << target << " " << each.text << " " << complaint;
        ++refused;
      }
    }
  EXPECT_GE(run, 200u);
  EXPECT_GE(refused, 400u);
}

TEST(NewerInstructions, OfUnknownMeaningSaySo) {
  for (const char* text : {"fence.alias.sync_restrict::read.release.sys;",
                           "cp.async.bulk.wait_group.sync_restrict::proxy::async 0;"}) {
    const std::string complaint = refusal({.cells = {}, .code = {}, .text = text}, "sm_107a");
    EXPECT_NE(complaint.find("semantics unknown"), std::string::npos) << complaint;
  }
}

TEST(NewerInstructions, OfATextThatIsNewerThanKnownRefuseTheirKernelAlone) {
  const std::string text =
      ".version 9.9\n.target sm_199a\n.address_size 64\n"
      ".visible .entry k(.param .u64 out) { .reg .b64 a; .reg .b32 r;\nld.param.u64 a, [out];\n"
      "mov.u32 r, 7;\nst.global.u32 [a], r;\nret; }\n"
      ".visible .entry other() { .reg .b32 r;\nquantum.add.u32 r, r;\nret; }\n";
  const test::KernelRun run = test::run_text(text, {.grid = {1}, .block = {1}}, 1);
  ASSERT_TRUE(run.launched) << run.complaint;
  EXPECT_EQ(run.out[0], 7u);
  auto engine = emulator::make_engine({});
  auto module = (*engine)->load(text, "newer.ptx");
  ASSERT_TRUE(module);
  EXPECT_FALSE((*module)->warnings().empty());
  const auto other = (*module)->kernel("other");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.diags()[0].id, "unsupported-instruction");
  EXPECT_NE(other.diags()[0].message.find("quantum.add.u32"), std::string::npos);
}

}  // namespace
}  // namespace tartan
