// SPDX-License-Identifier: Apache-2.0
// Suggestions for misspelled instructions: a name within a third of the word's length, or nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tartan/verify/verify.h"

namespace tartan {
namespace {

// The message about one statement; several are joined by line breaks.
std::string message(std::string_view statement) {
  const std::string text = fmt::format(
      ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 8 .b64 bar;\n"
      ".visible .entry k()\n{{\n.reg .b64 a, s, d; .reg .b32 r; .reg .f32 f; .reg .b16 h;\n"
      ".reg .pred p;\n{}\nL: ret;\n}}\n",
      statement);
  std::string out;
  for (const Diag& diag : verify::check(std::make_shared<const Source>("nearest", text)))
    out += (out.empty() ? "" : "\n") + diag.message;
  return out;
}

std::string suggestion(std::string_view statement) {
  const std::string all = message(statement);
  constexpr std::string_view before = "; the nearest ";
  const std::size_t at = all.find(before);
  return at == std::string::npos ? std::string() : all.substr(at + before.size());
}

TEST(Nearest, Opcodes) {
  const std::pair<const char*, const char*> rows[] = {
      {"mbarrier.ival.shared.b64 [bar];", "is mbarrier.inval"},
      {"mbarrier.invl.shared.b64 [bar];", "is mbarrier.inval"},
      {"mbarrier.arive.shared.b64 s, [bar];", "is mbarrier.arrive"},
      {"mbarrier.try_wiat.shared.b64 p, [bar], s;", "is mbarrier.try_wait"},
      {"mbarrier.testwait.shared.b64 p, [bar], s;", "is mbarrier.test_wait"},
      {"mbarier.init.shared.b64 [bar], 1;", "is mbarrier.init"},
      {"mbarier.ival.shared.b64 [bar];", "is mbarrier.inval"},
      {"wgmma.comit_group.sync.aligned;", "is wgmma.commit_group"},
      {"wgmma.fense.sync.aligned;", "is wgmma.fence"},
      {"wgmma.foo.sync.aligned;",
       "are wgmma.mma_async, wgmma.fence, wgmma.commit_group and wgmma.wait_group"},
      {"cp.async.comit_group;", "is cp.async.commit_group"},
      {"cp.async.wait_grp 0;", "is cp.async.wait_group"},
      {"cp.async.wiat_all;", "is cp.async.wait_all"},
      {"cp.asnyc.commit_group;", "is cp.async.commit_group"},
      {"cp.async.bulk.wiat_group 0;", "is cp.async.bulk.wait_group"},
      {"cp.async.bulk.tensr.2d [a], [a];", "is cp.async.bulk.tensor"},
      {"barrier.clster.arrive;", "is barrier.cluster.arrive"},
      {"barrier.cluster.wiat;", "is barrier.cluster.wait"},
      {"fence.mbarier_init.release.cluster;", "is fence.mbarrier_init"},
      {"tcgen05.aloc.cta_group::1.sync.aligned.b32 [a], 32;", "is tcgen05.alloc"},
      {"ldmatrx.sync.aligned.m8n8.x1.shared.b16 {r}, [a];", "is ldmatrix"},
      {"setmaxreg.inc.sync.aligned.u32 40;", "is setmaxnreg"},
      {"move.u32 r, r;", "is mov"},
      {"exti;", "is exit"},
      {"nanoslep 3;", "is nanosleep"},
      {"elect_sync;", "is elect.sync"},
      {"MOV.U32 r, r;", "is mov.u32"},
  };
  for (const auto& [statement, expected] : rows)
    EXPECT_EQ(suggestion(statement), expected) << statement;
  EXPECT_EQ(message("MOV.U32 r, r;"),
            "unknown instruction MOV.U32: PTX is lower case; the nearest is mov.u32");
}

TEST(Nearest, Qualifiers) {
  const std::pair<const char*, const char*> rows[] = {
      {"ld.shred.u32 r, [a];", "is .shared"},
      {"ld.gobal.u32 r, [a];", "is .global"},
      {"ld.volatle.global.u32 r, [a];", "is .volatile"},
      {"ld.relaxd.gpu.global.u32 r, [a];", "is .relaxed"},
      {"ld.global.L2::128b.u32 r, [a];", "is .L2::128B"},
      {"ld.global.L1::evictlast.u32 r, [a];", "is .L1::evict_last"},
      {"ld.v3.u32 {r, r, r}, [a];", "are .v2, .v4 and .v8"},
      {"shfl.sync.dwon.b32 r, r, 1, 31, -1;", "is .down"},
      {"bar.synch 0;", "is .sync"},
      {"fence.proxy.asnyc;", "is .async"},
      {"sin.aprox.f32 f, f;", "is .approx"},
      {"atom.gobal.add.u32 r, [a], r;", "is .global"},
      {"vote.ballto.sync.b32 r, p, -1;", "is .ballot"},
      {"cvta.to.globl.u64 a, a;", "is .global"},
      {"bra.unif L;", "is .uni"},
      {"griddepcontrol.launch_dependent;", "is .launch_dependents"},
      {"fence.acq_re.gpu;", "is .acq_rel"},
      {"prefetch.global.L3 [a];", "are .L1 and .L2"},
      {"setp.eq.u33 p, r, r;", "is .u32"},
      {"mov.U32 r, r;", "is .u32"},
      {"add.i32 r, r, r;", "are .f32, .s32 and .u32"},
      {"ld.u128 r, [a];", "is .b128"},
      {"add.u128 r, r, r;", "are .u64, .u32, .u16x2 and .u16"},
      {"ldmatrix.sync.aligned.m8n8.x1.shred.b16 {r}, [a];", "is .shared"},
      {"mma.synch.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f,f,f,f}, {r,r,r,r}, {r,r}, {f,f,f,f};",
       "is .sync"},
  };
  for (const auto& [statement, expected] : rows)
    EXPECT_EQ(suggestion(statement), expected) << statement;
}

TEST(Nearest, NothingNearIsNoSuggestion) {
  for (const char* statement : {"__syncthreads();", "foobar.u32 r;", "sd.u32 r;", "x;",
                                "mbarrier.foo [bar];", "ld.foobar.u32 r, [a];", "printf r;"})
    EXPECT_EQ(suggestion(statement), "") << statement;
  EXPECT_EQ(message("__syncthreads();"), "unknown instruction __syncthreads");
}

TEST(Nearest, FormsAreLegalAndShort) {
  const std::pair<const char*, const char*> rows[] = {
      {"ld.v2.u4 {r, r}, [a];", "are .u8, .u16, .u32 and .u64"},
      {"st.global.u4 [a], r;", "are .u8, .u16, .u32 and .u64"},
      {"mul.wide.u64 d, r, r;", "are .u32 and .u16"},
      {"popc.u32 r, r;", "is .b32"},
      {"fma.f32 f, f, f, f;", "is fma.rn.f32"},
      {"mul.u32 r, r, r;", "is mul.lo.u32"},
      {"mul.u32.wide d, r, r;", "is mul.wide.u32"},
      {"cvt.f16.f32 h, f;", "is cvt.rn.f16.f32"},
      {"sub.sat.u32 r, r, r;", "is sub.u32"},
      {"add.rn.u32 r, r, r;", "is add.u32"},
      {"ld.v2.b128 {r, r}, [a];", "is ld.b128"},
      {"ld.shared.v8.b32 {r, r, r, r, r, r, r, r}, [a];", "is ld.shared.v4.b32"},
  };
  for (const auto& [statement, expected] : rows)
    EXPECT_EQ(suggestion(statement), expected) << statement;
}

TEST(Nearest, TheFormIsShownWhereItIsTheTrouble) {
  EXPECT_EQ(
      message("lop3.b32 r, r, r, r;"),
      "lop3.b32: wrong number of operands: expected 5, found 4; the form is lop3.b32 d, a, b, "
      "c, imm");
  EXPECT_EQ(message("mov.b64 r, r, a;"),
            "mov.b64: wrong number of operands: expected 2, found 3; write {r, r} in braces");
  EXPECT_EQ(
      message("st.global.v2.u32 [a], r, r;"),
      "st.global.v2.u32: wrong number of operands: expected 2, found 3; write {r, r} in braces");
  EXPECT_EQ(message("add.f16 r, r, r;"),
            "add.f16: expected a register of type .f16 as operand d, found r of type .b32");
  EXPECT_EQ(message("cp.async.cg.shared.global [a], [a], 8;"),
            "cp.async.cg.shared.global: expected 16 as operand cp_size, found 8");
}

}  // namespace
}  // namespace tartan
