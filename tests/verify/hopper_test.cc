// SPDX-License-Identifier: Apache-2.0
// Instructions around TMA: the verifier's verdict on targets and versions against the assembler's,
// recorded and, if it is installed, current; and correct kernels, without any diagnostic.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tartan/isa/spelling.h"
#include "tartan/verify/verify.h"

namespace tartan {
namespace {

// The first version, and the oldest target, for which the assembler of CUDA 13 accepts the
// instruction.
struct Example {
  std::string_view instruction;
  std::string_view version;
  std::string_view target;
};

constexpr Example examples[] = {
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [rd1], r2, [r3]",
     "8.0", "sm_90"},
    {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [r1], [rd1], r2, [r3]", "8.6",
     "sm_90"},
    {"cp.async.bulk.global.shared::cta.bulk_group.cp_mask [rd1], [r1], r2, h1", "8.6", "sm_100"},
    {"cp.async.bulk.prefetch.L2.global [rd1], r2", "8.0", "sm_90"},
    {"cp.async.bulk.commit_group", "8.0", "sm_90"},
    {"cp.async.bulk.wait_group.read 0", "8.0", "sm_90"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [rd1], [r1], r2", "8.0", "sm_90"},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [rd1, {r4, "
     "r5}], [r3]",
     "8.0", "sm_90"},
    {"cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [r1], [rd1, "
     "{r4, r5}], [r3]",
     "8.6", "sm_90"},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::"
     "1 "
     "[r1], [rd1, {r4, r5}], [r3]",
     "8.6", "sm_100a"},
    {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [rd1, {r4, r5}], [r1]", "8.0", "sm_90"},
    {"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [rd1, {r4, r5, r6, r7, "
     "r8}], [r1]",
     "8.6", "sm_100a"},
    {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [rd1, {r4, r5}], [r1]",
     "8.0", "sm_90"},
    {"mbarrier.init.shared.b64 [r1], r2", "7.0", "sm_80"},
    {"mbarrier.init.shared::cta.b64 [r1], r2", "7.8", "sm_80"},
    {"mbarrier.arrive.expect_tx.shared.b64 rd3, [r1], r2", "8.0", "sm_90"},
    {"mbarrier.arrive.release.cta.shared.b64 rd3, [r1]", "8.0", "sm_80"},
    {"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r1]", "8.0", "sm_90"},
    {"mbarrier.arrive.relaxed.cta.shared.b64 rd3, [r1]", "8.6", "sm_90"},
    {"mbarrier.expect_tx.relaxed.cta.shared.b64 [r1], r2", "8.0", "sm_90"},
    {"mbarrier.test_wait.parity.shared.b64 p, [r1], r2", "7.1", "sm_80"},
    {"mbarrier.try_wait.parity.shared.b64 p, [r1], r2", "7.8", "sm_90"},
    {"mbarrier.try_wait.parity.acquire.cluster.shared.b64 p, [r1], r2", "8.0", "sm_90"},
    {"fence.proxy.alias", "7.5", "sm_75"},
    {"fence.proxy.async.shared::cta", "8.0", "sm_90"},
    {"fence.proxy.tensormap::generic.acquire.gpu [rd1], 128", "8.3", "sm_90"},
    {"fence.mbarrier_init.release.cluster", "8.0", "sm_90"},
    {"fence.acq_rel.cluster", "7.8", "sm_90"},
    {"setmaxnreg.inc.sync.aligned.u32 232", "8.0", "sm_90a"},
    {"elect.sync r1|p, -1", "8.0", "sm_90"},
    {"mapa.shared::cluster.u32 r1, r2, r3", "7.8", "sm_90"},
    {"getctarank.u64 r1, rd2", "7.8", "sm_90"},
    {"barrier.cluster.arrive", "7.8", "sm_90"},
    {"barrier.cluster.arrive.relaxed", "8.0", "sm_90"},
    {"barrier.cluster.wait.acquire.aligned", "8.0", "sm_90"},
    {"griddepcontrol.wait", "7.8", "sm_90"},
    {"createpolicy.fractional.L2::evict_last.b64 rd1, 1.0", "7.4", "sm_80"},
    {"prefetch.tensormap [rd1]", "8.0", "sm_90"},
    {"tensormap.replace.tile.global_address.global.b1024.b64 [rd1], rd2", "8.3", "sm_90a"},
    {"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [r1], r2, [r3]", "8.1",
     "sm_90"},
    {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [r1], r2, "
     "[r3]",
     "8.1", "sm_90"},
};

constexpr std::string_view versions[] = {"6.3", "7.0", "7.1", "7.4", "7.5", "7.8",
                                         "8.0", "8.1", "8.3", "8.6", "8.8", "9.0"};
constexpr std::string_view targets[] = {"sm_75",  "sm_80",   "sm_89",   "sm_90",  "sm_90a",
                                        "sm_100", "sm_100a", "sm_100f", "sm_120", "sm_120a"};

std::string module_text(std::string_view version, std::string_view target,
                        std::string_view instruction) {
  return fmt::format(
      ".version {}\n.target {}\n.address_size 64\n.visible .entry k()\n.maxntid 128\n{{\n"
      ".reg .pred p;\n.reg .b16 h1;\n.reg .b32 r<9>;\n.reg .b64 rd<4>;\n{};\nret;\n}}\n",
      version, target, instruction);
}

bool legal(std::string_view version, std::string_view target, std::string_view instruction) {
  return verify::check(
             std::make_shared<const Source>("k.ptx", module_text(version, target, instruction)))
      .ok();
}

bool target_exists(std::string_view version, std::string_view target) {
  return *Version::parse(version) >= find_arch(*Arch::parse(target))->first;
}

TEST(CheckHopper, VersionsAndTargets) {
  for (const Example& one : examples) {
    const Version first = *Version::parse(one.version);
    const std::string_view target = one.target.starts_with("sm_100") ? one.target : "sm_90a";
    for (const std::string_view version : versions) {
      if (!target_exists(version, target)) continue;
      EXPECT_EQ(legal(version, target, one.instruction), *Version::parse(version) >= first)
          << one.instruction << " in PTX " << version;
    }
    const Arch oldest = *Arch::parse(one.target);
    for (const std::string_view other : targets) {
      const Arch arch = *Arch::parse(other);
      const bool family = oldest.suffix == 0 || arch.suffix != 0;
      const bool old_chip = oldest.sm == 100 && oldest.suffix && arch.sm > 110;
      EXPECT_EQ(legal("9.0", other, one.instruction), arch.sm >= oldest.sm && family && !old_chip)
          << one.instruction << " on " << other;
    }
  }
}

// The table has the memory effects of instructions.
TEST(CheckHopper, TableHasMemoryEffects) {
  const isa::Spelling copy = isa::read_spelling(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint");
  ASSERT_EQ(copy.signatures.size(), 1u);
  const isa::Signature& row = *copy.signatures[0];
  ASSERT_EQ(row.memory.size, 3);
  for (const isa::MemoryEffect& effect : row.memory) {
    EXPECT_EQ(effect.proxy, isa::Proxy::Async);
    EXPECT_EQ(effect.completion, isa::Completion::Mbarrier);
  }
  EXPECT_EQ(row.memory[0].access, isa::Access::Write);
  EXPECT_EQ(isa::operand_name(row, 0), "dst");
  EXPECT_EQ(row.memory[1].access, isa::Access::Read);
  EXPECT_EQ(isa::operand_name(row, static_cast<std::size_t>(row.memory[0].bytes_operand)), "size");
  EXPECT_EQ(isa::operand_name(row, static_cast<std::size_t>(row.memory[2].operand)), "mbar");
  EXPECT_EQ(isa::operands(row, copy).size, 5);  // no mask without .multicast::cluster

  const isa::Spelling load = isa::read_spelling("tcgen05.ld.sync.aligned.32x32b.x2.b32");
  ASSERT_EQ(load.signatures.size(), 1u);
  EXPECT_TRUE(load.signatures[0]->results_later);
  EXPECT_EQ(load.signatures[0]->memory[0].completion, isa::Completion::Tcgen05Wait);
}

TEST(CheckHopper, AgreesWithTheAssembler) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no ptxas";
  const std::string path =
      ::testing::TempDir() + "tartan_check_hopper_" + std::to_string(::getpid()) + ".ptx";
  int seen = 0;
  for (const Example& one : examples)
    for (const std::string_view target : {"sm_80", "sm_90", "sm_90a", "sm_100a", "sm_100f"}) {
      if (++seen % 3 != 0) continue;  // a third of them, every target and most instructions
      const Version first = *Version::parse(one.version);
      const std::string version =
          target_exists(one.version, target) ? first.text() : std::string("9.0");
      std::ofstream(path) << module_text(version, target, one.instruction);
      const std::string command =
          fmt::format("ptxas -arch {} {} -o /dev/null > /dev/null 2>&1", target, path);
      EXPECT_EQ(std::system(command.c_str()) == 0, legal(version, target, one.instruction))
          << one.instruction << " on " << target << " in PTX " << version;
    }
  std::remove(path.c_str());
  EXPECT_GT(seen, 100);
}

// ---- Correct kernels.

std::string complaints(const std::string& body) {
  const std::string text =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 ring[];\n"
      ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)\n.maxntid "
      "128\n.minnctapersm 1\n{\n"
      ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n.reg .pred p<2>;\n"
      ".reg .f32 f<8>;\n.reg .b32 r<8>;\n.reg .b64 rd<8>;\nmov.u32 r0, %tid.x;\n"
      "shl.b32 r1, r0, 2;\nmov.u32 r2, tile;\nadd.s32 r3, r2, r1;\nmov.u32 r4, ring;\n"
      "add.s32 r5, r4, r1;\n" +
      body + "\nret;\n}\n";
  return verify::check(std::make_shared<const Source>("k.ptx", text)).text();
}

const std::string product =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0, f1, f2, f3}, rd1, rd2, 1, 1, 1, 0, "
    "0;\n";
const std::string fence = "wgmma.fence.sync.aligned;\n",
                  commit = "wgmma.commit_group.sync.aligned;\n";
const std::string wait = "wgmma.wait_group.sync.aligned 0;\n";
const std::string store_box =
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [rd4, {r0, r0}], ";

TEST(CheckHopper, RightKernelsAreClean) {
  const std::string right[] = {
      "mov.f32 f0, 0f00000000;\n" + fence + product + product + commit + wait +
          "add.f32 f4, f0, f1;",
      // The usual pipeline: one group stays in flight across iterations.
      fence + product + commit + "LOOP:\n" + fence + product + commit +
          "wgmma.wait_group.sync.aligned 1;\n@p0 bra LOOP;\n" + wait + "add.f32 f4, f0, f1;",
      // No iteration waits, and none touches registers of the last one; a block's registers are its
      // own.
      fence + "LOOP:\n" + product + commit + "{\n.reg .f32 f<4>;\nadd.f32 f0, f1, f2;\n}\n" +
          "@p0 bra LOOP;\n" + wait,
      "LOOP:\nmov.f32 f1, 0f00000000;\n" + fence + product + commit + wait + "@p0 bra LOOP;",
      // A register of A may be read while it is in flight.
      fence +
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0, f1, f2, f3}, {r0, r1, r2, r3}, "
          "rd2, 1, 1, 1, 0;\nadd.s32 r6, r1, r2;\n" +
          commit + wait + "mov.b32 r1, 0;",
      "st.shared.u32 [r3], r0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n" + store_box +
          "[r2];",
      // Another piece of dynamic shared memory.
      "st.shared.u32 [r5], r0;\nbar.sync 0;\n" + store_box + "[r4+1024];",
      "st.shared.u32 [r5], r0;\nbar.sync 0;\n" + store_box + "[r2];",
      // What the store writes lies before the box.
      "st.shared.u32 [tile], r0;\nbar.sync 0;\n" + store_box + "[tile+128];",
      "setp.eq.u32 p0, r0, 0;\nbarrier.cluster.arrive;\n@p0 barrier.cluster.wait;",
      "setmaxnreg.inc.sync.aligned.u32 232;",
  };
  for (const std::string& body : right) EXPECT_EQ(complaints(body), "") << body;
}

TEST(CheckHopper, WrongKernelsAreReported) {
  const auto says = [](const std::string& body, std::string_view id) {
    const std::string text = complaints(body);
    EXPECT_NE(text.find(fmt::format("[{}]", id)), std::string::npos) << body << text;
  };
  says("st.shared.u32 [r5], r0;\nbar.sync 0;\n" + store_box + "[r4];", "proxy-fence");
  says("st.shared.u32 [r3], r0;\nfence.proxy.async.global;\nbar.sync 0;\n" + store_box + "[tile];",
       "proxy-fence");
  // The next iteration of a loop uses products of the last one.
  const std::string from_registers =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0, f1, f2, f3}, {r4, r5, r6, r7}, rd2, "
      "1, 1, 1, 0;\n";
  const struct {
    std::string body;
    std::string_view message;
  } rounds[] = {
      {fence + "LOOP:\n" + product + commit + wait + "add.f32 f0, f0, f4;\n@p0 bra LOOP;",
       "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 uses f0, which add.f32 on line 26 "
       "accessed in the preceding iteration: insert wgmma.fence in between"},
      {"LOOP:\nadd.f32 f4, f0, f1;\n" + fence + product + commit + "@p0 bra LOOP;\n" + wait,
       "add.f32 accesses f0 while wgmma.mma_async of line 24 in the preceding iteration "
       "accumulates into it: insert wgmma.wait_group in between"},
      {"LOOP:\n@p1 bra DONE;\nmov.b32 r4, r0;\n" + fence + from_registers + commit +
           "bra LOOP;\nDONE:\n" + wait,
       "mov.b32 accesses r4 while wgmma.mma_async of line 25 in the preceding iteration reads it "
       "as A: insert wgmma.wait_group in between"},
      // Two iterations later: the outer loop.
      {"AROUND:\nmov.f32 f2, 0f00000000;\n" + fence + "LOOP:\n" + product + commit +
           "@p0 bra LOOP;\n@p1 bra AROUND;\n" + wait,
       "mov.f32 accesses f2 while"}};
  for (const auto& [body, message] : rounds) {
    const std::string text = complaints(body);
    EXPECT_NE(text.find(message), std::string::npos) << body << text;
    EXPECT_EQ(text.find("warning"), text.rfind("warning")) << body << text;  // said once
  }
  says("setp.eq.u32 p0, r0, 0;\n@p0 setmaxnreg.dec.sync.aligned.u32 40;", "maybe-divergent");
  says("setp.eq.u32 p0, r0, 0;\n@p0 barrier.cluster.arrive.aligned;", "maybe-divergent");
  says("setp.lt.u32 p0, r0, 7;\n@p0 bra OUT;\n" + fence + product + "OUT:", "maybe-divergent");
}

}  // namespace
}  // namespace tartan
