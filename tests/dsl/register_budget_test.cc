// SPDX-License-Identifier: Apache-2.0
// Kernels that do not fit into registers: what compile() predicts, against the assembler.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <cstdio>

#include "tests/support/machine_code.h"

namespace tartan {
namespace {

enum class Fate { fits, spills, refused };

struct Row {
  const char* target;
  Type type, sums;
  int m, n, warps, producers, promote;
  Fate fate;
};

kernels::Gemm gemm(const Row& row) {
  kernels::Gemm out{.m = 0, .n = 0, .k = 0};
  out.a = out.b = row.type, out.accumulator = out.c = row.sums;
  out.multiple = 16, out.multiple_c = 4, out.stages = 2;
  out.tile = {.m = row.m, .n = row.n, .k = bits(row.type) == 8 ? 64 : 32, .warps_m = row.warps};
  out.tile.warps_n = 1;
  out.producers = row.producers, out.promote = row.promote;
  return out;
}

TEST(RegisterBudget, WarnsWhereTheAssemblerSpills) {
  const Row rows[] = {
      {"sm_80", f16, f32, 128, 128, 4, 0, 0, Fate::fits},
      {"sm_80", f16, f32, 64, 256, 4, 0, 0, Fate::fits},
      {"sm_80", f16, f32, 128, 256, 4, 0, 0, Fate::spills},
      {"sm_80", f16, f16, 128, 256, 4, 0, 0, Fate::fits},
      {"sm_90a", f16, f32, 128, 256, 8, 4, 0, Fate::fits},
      {"sm_90a", f16, f32, 256, 256, 8, 4, 0, Fate::spills},
      {"sm_90a", s8, s32, 256, 192, 16, 4, 0, Fate::refused},  // C7602
      {"sm_90a", Type::e4m3, f32, 256, 256, 8, 4, 4, Fate::spills},
      {"sm_90a", Type::e4m3, f32, 128, 128, 8, 4, 4, Fate::fits},
  };
  const std::string at = testing::TempDir() + std::to_string(getpid()) + "_tartan_registers";
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("row {}", &row - rows));
    const auto compiled = compile(kernels::gemm(gemm(row)), *Arch::parse(row.target));
    if (row.fate == Fate::refused) {
      ASSERT_FALSE(compiled);
      EXPECT_EQ(compiled.diags()[0].id, "register-pressure") << compiled.diags().text();
      continue;
    }
    ASSERT_TRUE(compiled) << compiled.diags().text();
    bool warned = false;
    for (const Diag& diag : compiled->warnings) warned |= diag.id == "register-pressure";
    EXPECT_EQ(warned, row.fate != Fate::fits) << compiled->warnings.text();
    if (test::has_assembler() && row.fate == Fate::spills) {
      EXPECT_NE(test::spilled_bytes(compiled->ptx, row.target, at), 0);
    }
  }
}

// The tile that the message names is compiled without a warning.
TEST(RegisterBudget, LeadsToATileThatFits) {
  const Row rows[] = {
      {"sm_80", f16, f32, 128, 256, 4, 0, 0, Fate::spills},
      {"sm_80", f16, f32, 256, 128, 8, 0, 4, Fate::spills},
      {"sm_90a", f16, f32, 256, 256, 8, 4, 0, Fate::spills},
      {"sm_90a", s8, s32, 256, 192, 16, 4, 0, Fate::refused},
      {"sm_90a", Type::e4m3, f32, 256, 256, 8, 4, 4, Fate::spills},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("row {}", &row - rows));
    const Arch arch = *Arch::parse(row.target);
    const auto compiled = compile(kernels::gemm(gemm(row)), arch);
    const Diags& diags = compiled ? compiled->warnings : compiled.diags();
    ASSERT_EQ(diags.size(), 1u) << diags.text();
    EXPECT_EQ(diags[0].level, row.fate == Fate::refused ? Level::Error : Level::Warning);
    EXPECT_TRUE(diags[0].place.known());
    // One step, or two where more than the accumulators has to shrink.
    Row smaller = row;
    std::string said = diags.text();
    for (int step = 0; step < 3 && !said.empty(); ++step) {
      const Row before = smaller;
      const std::size_t at = said.find("a tile of ");
      ASSERT_NE(at, std::string::npos) << said;
      ASSERT_EQ(std::sscanf(said.c_str() + at, "a tile of %d x %d", &smaller.m, &smaller.n), 2);
      EXPECT_LT(smaller.m * smaller.n, before.m * before.n);
      const auto fitting = compile(kernels::gemm(gemm(smaller)), arch);
      ASSERT_TRUE(fitting) << fitting.diags().text();
      said = fitting->warnings.text();
    }
    EXPECT_EQ(said, "");
  }
}

}  // namespace
}  // namespace tartan
