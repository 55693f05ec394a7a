// SPDX-License-Identifier: Apache-2.0
// Which registers the decoder says that instructions read and write.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/emulator/decode/decoder.h"
#include "tartan/ptx/parser.h"

namespace tartan::test {
namespace {

using emulator::RegisterUse;

// "r1<1> %p?" for each use of the kernel's one instruction: "name:bits" of what it reads, "=" in
// front of what it writes, "@" of guards, "[]" of addresses, "#" of constants, "/n" of elements.
std::string uses(const std::string& instruction) {
  const std::string text =
      ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
      ".reg .pred p, q;\n.reg .b16 h<4>;\n.reg .b32 r<20>;\n.reg .b64 rd<20>;\n"
      ".reg .f32 f<200>;\n.shared .b8 tile[16];\n" +
      instruction + "\nret;\n}\n";
  Diags diags;
  const ptx::Module tree = ptx::parse(std::make_shared<Source>("test.ptx", text), diags);
  const emulator::Globals globals;
  emulator::Decoder decoder(tree, globals, emulator::Hardware::sm_90, diags);
  decoder.set_recorded();
  const emulator::Program program = decoder.decode(*tree.function("k"));
  EXPECT_TRUE(diags.ok()) << diags.text();
  std::string out;
  const auto& table = program.registers;
  const auto* now = table.starting_at(0);
  if (!now) return "nothing";
  for (std::uint32_t op = 0; op < now->count; ++op) EXPECT_EQ(table.at(op), now);
  for (const RegisterUse& use : table.uses_of(*now)) {
    if (!out.empty()) out += " ";
    if (use.operand == RegisterUse::guard) out += "@";
    if (use.writes) out += use.reads ? "+=" : "=";
    out += use.constant ? "#" : std::string(table.name(use.slot));
    out += fmt::format(":{}", bits(use.type));
    if (use.element) out += fmt::format("/{}", use.element);
    if (use.address) out += "[]";
  }
  return out;
}

TEST(OpRegisters, ScalarInstructions) {
  EXPECT_EQ(uses("add.u32 r1, r2, 5;"), "=r1:32 r2:32 #:32");
  EXPECT_EQ(uses("@!p mul.wide.u32 rd1, r2, r2;"), "=rd1:64 r2:32 r2:32 @p:1");
  EXPECT_EQ(uses("mov.u32 r1, %tid.x;"), "=r1:32 #:32");
  EXPECT_EQ(uses("mov.b64 {r1, r2}, rd1;"), "rd1:64 =r1:32 =r2:32/1");
  EXPECT_EQ(uses("mov.b64 rd1, {r1, r2};"), "=rd1:64 r1:32 r2:32/1");
  EXPECT_EQ(uses("setp.lt.and.s32 p|q, r1, r2, !p;"), "=p:1 =q:1/1 r1:32 r2:32 p:1");
  EXPECT_EQ(uses("selp.b32 r1, r2, r3, p;"), "=r1:32 r2:32 r3:32 p:1");
  EXPECT_EQ(uses("cvt.u16.u32 h1, r1;"), "r1:32 =h1:16");
  EXPECT_EQ(uses("add.cc.u32 r1, r2, r3;"), "=r1:32 r2:32 r3:32 =CC.CF:1");
  EXPECT_EQ(uses("addc.u32 r1, r2, r3;"), "=r1:32 r2:32 r3:32 CC.CF:1");
  EXPECT_EQ(uses("shfl.sync.down.b32 r1|p, r2, 1, 31, r3;"), "=r1:32 =p:1/1 r2:32 #:32 #:32 r3:32");
}

TEST(OpRegisters, PartsOfVideoInstructions) {
  EXPECT_EQ(uses("vadd.u32.u32.u32 r1, r2.b0, r3.h1;"), "=r1:32 r2:32 r3:32");
  EXPECT_EQ(uses("vadd2.u32.u32.u32 r1.h0, r2, r3, r4;"), "=r1:32 r2:32 r3:32 r4:32");
}

TEST(OpRegisters, Memory) {
  EXPECT_EQ(uses("ld.global.v2.u32 {r1, r2}, [rd1+8];"), "=r1:32 =r2:32/1 rd1:64[]");
  EXPECT_EQ(uses("st.shared.v2.f32 [r1], {f1, 0f00000000};"), "f1:32 #:32/1 r1:32[]");
  EXPECT_EQ(uses("atom.global.cas.b32 r1, [rd1], r2, r3;"), "=r1:32 r2:32 r3:32 rd1:64[]");
  EXPECT_EQ(uses("red.global.add.u32 [rd1], r2;"), "r2:32 rd1:64[]");
  EXPECT_EQ(uses("cp.async.ca.shared.global [r1], [rd1], 16, r2;"), "r2:32 rd1:64[] r1:32[]");
}

TEST(OpRegisters, Matrices) {
  EXPECT_EQ(uses("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r1, r2}, [r3];"),
            "=r1:32 =r2:32/1 r3:32[]");
  EXPECT_EQ(uses("stmatrix.sync.aligned.m8n8.x2.shared.b16 [r3], {r1, r2};"),
            "r3:32[] r1:32 r2:32/1");
  EXPECT_EQ(uses("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f1, f2, f3, f4}, {r1, r2}, "
                 "{r3}, {f1, f2, f5, f6};"),
            "=f1:32 =f2:32/1 =f3:32/2 =f4:32/3 r1:32 r2:32/1 r3:32 f1:32 f2:32/1 f5:32/2 f6:32/3");
  EXPECT_EQ(uses("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f1, f2, f3, f4}, rd1, rd2, p, "
                 "1, 1, 0, 0;"),
            "+=f1:32 +=f2:32/1 +=f3:32/2 +=f4:32/3 rd1:64 rd2:64 p:1");
}

TEST(OpRegisters, NothingWithoutRegisters) { EXPECT_EQ(uses("bar.sync 0;"), "#:32"); }

}  // namespace
}  // namespace tartan::test
