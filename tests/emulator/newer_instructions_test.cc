// SPDX-License-Identifier: Apache-2.0
// What PTX 9.1 to 9.5 added is refused by name, and by nothing else: no word of it is overlooked.
// The statements are those of tests/data/isa/newer.
#include <fmt/format.h>

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

// Loads and stores, whose new combinations of words say no more than the old ones; products with
// scales of another known type.
bool is_emulated(std::string_view text) {
  if (text.starts_with('@')) text.remove_prefix(text.find(' ') + 1);
  return text.starts_with("ld.volatile") || text.starts_with("ld.local") ||
         text.starts_with("st.volatile") || text.starts_with("st.local") ||
         text.starts_with("mma.") || text.find("mmio") != std::string_view::npos;
}

std::string refusal(const Statement& statement, const std::string& target) {
  auto engine = emulator::make_engine({});
  auto module = (*engine)->load(text_of(statement, target), "newer.ptx");
  if (!module) return std::string(module.diags()[0].id);
  auto kernel = (*module)->kernel("k1");
  return kernel ? "" : std::string(kernel.diags()[0].id);
}

TEST(NewerInstructions, AreRefusedByName) {
  std::size_t refused = 0;
  for (const std::string& family : sweep::newer::families)
    for (const Statement& each : sweep::newer::read_family(TEST_DATA "/isa/newer/", family)) {
      const std::string target = target_of(each);
      if (target.empty() || !is_legal(each, target) || is_emulated(each.text)) continue;
      EXPECT_EQ(refusal(each, target), "unsupported-instruction") << target << " " << each.text;
      ++refused;
    }
  EXPECT_GE(refused, 700u);
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
