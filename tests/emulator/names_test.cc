// SPDX-License-Identifier: Apache-2.0
// Name resolution on the emulator: scopes, initialisers, state spaces.
#include "runtime/emulator/instructions/table.h"
#include "tests/emulator/kernel.h"

namespace tartan {
namespace {

using test::run_body;
using Words = std::vector<std::uint32_t>;

// The first `count` words that one thread writes.
Words words_of(const std::string& body, std::size_t count, const std::string& declarations = {}) {
  auto run = run_body(body, {.grid = {1}, .block = {1}}, 64, {}, declarations);
  EXPECT_TRUE(run.launched) << run.complaint;
  EXPECT_TRUE(run.findings.empty()) << run.findings[0].message;
  run.out.resize(count);
  return run.out;
}

// The innermost declaration counts, of a register or of a variable.
TEST(EmulatorNames, VariablesHideRegistersOfOuterScopes) {
  EXPECT_EQ(words_of(R"(
    mov.u32 r2, 1000;
    {
      .shared .align 4 .b32 r2;
      .local .align 4 .b32 r3[4];
      mov.u32 r4, r2;
      mov.u32 r5, 33;
      st.shared.u32 [r2], r5;
      ld.shared.u32 r6, [r4];
      st.local.u32 [r3+8], r5;
      ld.local.u32 r7, [r3+8];
      { .reg .b32 r5; mov.u32 r5, 8; add.u32 r6, r6, r5; }
    }
    st.global.u32 [rd0], r6;
    st.global.u32 [rd0+4], r7;
    st.global.u32 [rd0+8], r2;)",
                     3),
            (Words{41, 33, 1000}));
}

TEST(EmulatorNames, ParametersOfCallsHideRegisters) {
  EXPECT_EQ(words_of(R"(
    mov.u32 r9, 7;
    {
      .param .b32 r9;
      .param .b32 r8;
      st.param.b32 [r9], 5;
      call (r8), twice, (r9);
      ld.param.b32 r2, [r8];
    }
    st.global.u32 [rd0], r2;
    st.global.u32 [rd0+4], r9;)",
                     2,
                     ".func (.param .b32 o) twice(.param .b32 i) { .reg .b32 r; ld.param.b32 r, "
                     "[i]; add.u32 r, r, r; st.param.b32 [o], r; ret; }"),
            (Words{10, 7}));
}

TEST(EmulatorNames, RegistersHideVariablesOfOuterScopes) {
  EXPECT_EQ(words_of(R"(
    { .reg .b32 v; mov.u32 v, 3; st.global.u32 [rd0], v; }
    ld.shared.u32 r1, [v];
    st.global.u32 [rd0+4], r1;)",
                     2, ".shared .align 4 .b32 v;"),
            (Words{3, 0}));
}

// .global variables of functions belong to their block, and each has its own address.
TEST(EmulatorNames, GlobalVariablesInsideFunctions) {
  EXPECT_EQ(words_of(R"(
    { .global .u32 g = 1; ld.global.u32 r1, [g]; st.global.u32 [g], 5; }
    { .global .u32 g = 2; .global .u64 at = g; ld.global.u64 rd2, [at]; ld.global.u32 r2, [rd2]; }
    ld.global.u32 r3, [g];
    { .param .b32 a; call (a), of_function; ld.param.b32 r4, [a]; }
    st.global.u32 [rd0], r1;
    st.global.u32 [rd0+4], r2;
    st.global.u32 [rd0+8], r3;
    st.global.u32 [rd0+12], r4;)",
                     4,
                     ".global .u32 g = 7;\n.func (.param .b32 o) of_function() { .reg .b32 r; "
                     ".global .u32 g = 9; ld.global.u32 r, [g]; st.param.b32 [o], r; ret; }"),
            (Words{1, 2, 7, 9}));
}

// a<3>: a0, a1 and a2, each at its alignment.
TEST(EmulatorNames, RowsOfVariables) {
  EXPECT_EQ(
      words_of(R"(
    .shared .align 4 .u32 s<2>;
    .local .b32 l<3>;
    { .global .u32 a<2>; st.global.u32 [a1], 99; }
    st.global.u32 [a0], 1;
    st.global.u32 [a1], 2;
    st.shared.u32 [s0], 3;
    st.shared.u32 [s1], 4;
    st.shared.u32 [m1], 5;
    st.local.u32 [l0], 6;
    st.local.u32 [l2], 7;
    { .param .b32 q<2>; st.param.b32 [q1], 8; ld.param.b32 r7, [q1]; }
    ld.global.u32 r1, [a0];
    ld.global.u32 r2, [a1];
    ld.shared.u32 r3, [s0];
    ld.shared.u32 r4, [s1];
    ld.local.u32 r5, [l0];
    ld.local.u32 r6, [l2];
    mov.u64 rd2, a1;
    mov.u64 rd3, a0;
    sub.u64 rd2, rd2, rd3;
    ld.global.u64 rd4, [at];
    sub.u64 rd4, rd4, rd3;
    ld.shared.u32 r8, [m1];
    st.global.v4.u32 [rd0], {r1, r2, r3, r4};
    st.global.v4.u32 [rd0+16], {r5, r6, r7, r8};
    st.global.v2.u64 [rd0+32], {rd2, rd4};)",
               12, ".global .align 16 .u32 a<3>;\n.shared .u32 m<2>;\n.global .u64 at = a2;\n"),
      (Words{1, 2, 3, 4, 6, 7, 8, 5, 16, 0, 32, 0}));
  for (const char* none : {"a", "a3", "a03"}) {
    const auto run = test::run_body("ld.global.u32 r1, [" + std::string(none) + "];",
                                    {.grid = {1}, .block = {1}}, 1, {}, ".global .u32 a<3>;\n");
    EXPECT_NE(run.complaint, "") << none;
  }
}

// The host finds them by name, too.
TEST(EmulatorNames, HostFindsRowsOfVariables) {
  auto engine = emulator::make_engine({});
  const auto module = (*engine)->load(
      ".version 8.6\n.target sm_90\n.address_size 64\n.visible .global .u64 a<3>;\n", "rows.ptx");
  ASSERT_TRUE(module) << module.diags().text();
  const auto first = (*module)->variable("a0"), last = (*module)->variable("a2");
  ASSERT_TRUE(first && last);
  EXPECT_EQ(last->address - first->address, 16u);
  EXPECT_EQ(last->bytes, 8u);
  for (const char* none : {"a", "a3"}) EXPECT_FALSE((*module)->variable(none)) << none;
}

// 0xFF00(name): the second byte of the address.
TEST(EmulatorNames, BytesOfAddressesInInitialisers) {
  EXPECT_EQ(words_of(R"(
    ld.global.u64 rd2, [bytes];
    mov.u64 rd3, there;
    sub.u64 rd2, rd2, rd3;
    st.global.u64 [rd0], rd2;
    ld.global.u8 r1, [bytes+8];
    cvt.u32.u64 r2, rd3;
    add.u32 r2, r2, 12;
    and.b32 r2, r2, 255;
    sub.u32 r1, r1, r2;
    st.global.u32 [rd0+8], r1;)",
                     3, R"(
.global .align 4 .b8 there[16];
.global .align 8 .b8 bytes[16] = {0xFF(there), 0xFF00(there), 0xFF0000(there), 0xFF000000(there),
  0xFF00000000(there), 0xFF0000000000(there), 0xFF000000000000(there), 0xFF00000000000000(there),
  0xFF(generic(there) + 3*4)};)"),
            (Words{0, 0, 0}));
}

// As on an H200: constants are not global, parameters are.
TEST(EmulatorNames, StateSpacesOfGenericAddresses) {
  const auto spaces = [](const std::string& address) {
    std::string body = address;
    int place = 0;
    for (const char* space : {"global", "const", "shared", "local", "param"})
      body += std::string("isspacep.") + space + " p, rd2;\nselp.u32 r1, 1, 0, p;\n" +
              "st.global.u32 [rd0+" + std::to_string(4 * place++) + "], r1;\n";
    return words_of(body, 5, ".const .u32 c[2] = {1, 2};\n.global .u32 g;\n.shared .u32 s;\n");
  };
  EXPECT_EQ(spaces("mov.u64 rd2, g;"), (Words{1, 0, 0, 0, 0}));
  EXPECT_EQ(spaces("cvta.const.u64 rd2, c;"), (Words{0, 1, 0, 0, 0}));
  EXPECT_EQ(spaces("cvta.shared.u64 rd2, s;"), (Words{0, 0, 1, 0, 0}));
  EXPECT_EQ(spaces(".local .u32 l;\ncvta.local.u64 rd2, l;"), (Words{0, 0, 0, 1, 0}));
  EXPECT_EQ(spaces("mov.u64 rd3, out;\ncvta.param.u64 rd2, rd3;"), (Words{1, 0, 0, 0, 1}));
  EXPECT_EQ(spaces("mov.u64 rd2, rd0;"), (Words{1, 0, 0, 0, 0}));
  EXPECT_EQ(spaces("mov.u64 rd2, 0;"), (Words{1, 0, 0, 0, 0}));
}

// What an H100 says of a texture's address. Rows and arrays have a variable at each address.
TEST(EmulatorNames, OpaqueTypesOfAddresses) {
  const auto types = [](const std::string& address) {
    std::string body = address + "\nmov.u32 r2, 0;\n";
    for (const char* type : {"texref", "surfref"})
      body += std::string("istypep.") + type +
              " p, rd2;\nselp.u32 r1, 1, 0, p;\nshl.b32 r2, r2, 1;\nor.b32 r2, r2, r1;\n";
    return words_of(body + "st.global.u32 [rd0], r2;\n", 1,
                    ".global .texref t;\n.global .surfref s;\n.global .texref row<3>;\n"
                    ".global .u32 g;\n");
  };
  EXPECT_EQ(types("mov.u64 rd2, t;"), Words{2});
  EXPECT_EQ(types("mov.u64 rd2, s;"), Words{1});
  EXPECT_EQ(types("mov.u64 rd2, row2;"), Words{2});
  EXPECT_EQ(types("mov.u64 rd2, g;"), Words{0});
  EXPECT_EQ(types("mov.u64 rd2, rd0;"), Words{0});
  EXPECT_EQ(types("mov.u64 rd2, 0;"), Words{0});
}

// In a function .param::entry still refers to the kernel's parameters.
TEST(EmulatorNames, KernelParametersInFunctions) {
  EXPECT_EQ(words_of(R"(
    mov.u64 rd3, out;
    call (rd2), read, (rd3);
    sub.u64 rd2, rd2, rd0;
    st.global.u64 [rd0], rd2;)",
                     2, R"(
.func (.reg .u64 value) read(.reg .u64 address)
{
  .reg .u64 generic;
  cvta.param::entry.u64 generic, address;
  ld.u64 value, [generic];
  ret;
})"),
            (Words{0, 0}));
}

TEST(EmulatorNames, ConstantsAreRead) {
  EXPECT_EQ(words_of(R"(
    ld.const.u32 r1, [c+4];
    cvta.const.u64 rd2, c;
    ld.u32 r2, [rd2];
    st.global.u32 [rd0], r1;
    st.global.u32 [rd0+4], r2;)",
                     2, ".const .u32 c[2] = {11, 12};"),
            (Words{12, 11}));
}

// Addresses of shared memory ignore the upper half of a 64-bit register.
TEST(EmulatorNames, SharedAddressesHaveThirtyTwoBits) {
  EXPECT_EQ(words_of(R"(
    cvta.shared.u64 rd2, s;
    st.shared.u32 [rd2+4], 21;
    atom.shared.add.u32 r1, [rd2+4], 4;
    ld.shared.u32 r2, [s+4];
    add.u64 rd3, rd2, 0x700000000;
    ld.shared.u32 r3, [rd3+4];
    st.global.u32 [rd0], r1;
    st.global.u32 [rd0+4], r2;
    st.global.u32 [rd0+8], r3;)",
                     3, ".shared .align 8 .b8 s[16];"),
            (Words{21, 25, 25}));
}

TEST(EmulatorNames, VectorRegisters) {
  EXPECT_EQ(words_of(R"(
    .reg .v4 .b32 v, w;
    .reg .v2 .b32 u<3>;
    ld.global.v4.b32 v, [g];
    mov.v4.b32 w, v;
    mov.b32 w.x, v.w;
    mov.b32 v.b, 30;
    mov.v2.b32 u1, {v.y, v.b};
    mov.v2.b32 u1, {u1.y, u1.x};
    mov.b64 rd2, u1;
    mov.b64 u2, rd2;
    st.global.v4.b32 [rd0], w;
    st.global.v2.b32 [rd0+16], u2;
    { .reg .b32 v; mov.b32 v, 5; st.global.b32 [rd0+24], v; }
    add.u32 r1, u0.x, u2.r;
    st.global.b32 [rd0+28], r1;)",
                     8, ".global .align 16 .b32 g[4] = {1, 2, 3, 4};"),
            (Words{4, 2, 3, 4, 30, 2, 5, 30}));
  const auto run = run_body(".reg .v2 .b32 u;\nmov.b32 r1, u.z;");
  EXPECT_NE(run.complaint.find("u.z"), std::string::npos) << run.complaint;
}

TEST(EmulatorNames, KernelsHaveAddresses) {
  EXPECT_EQ(words_of(R"(
    mov.u64 rd2, k;
    ld.global.u64 rd3, [kernels];
    setp.eq.u64 p, rd2, rd3;
    selp.u32 r1, 1, 0, p;
    setp.ne.u64 p, rd2, 0;
    selp.u32 r2, 1, 0, p;
    st.global.u32 [rd0], r1;
    st.global.u32 [rd0+4], r2;)",
                     2, ".entry k(.param .u64 out);\n.global .u64 kernels[1] = {k};"),
            (Words{1, 1}));
}

// As on an H200, with 100 static and 64 dynamic bytes of shared memory.
TEST(EmulatorNames, SpecialRegistersOfTheHardware) {
  std::string body;
  int place = 0;
  for (const char* name :
       {"%nwarpid", "%total_smem_size", "%aggr_smem_size", "%dynamic_smem_size",
        "%reserved_smem_offset_begin", "%reserved_smem_offset_end", "%reserved_smem_offset_cap",
        "%reserved_smem_offset_0", "%nsmid", "%envreg1", "%envreg2", "%envreg31", "%pm0", "%pm7"})
    body += std::string("mov.u32 r1, ") + name + ";\nst.global.u32 [rd0+" +
            std::to_string(4 * place++) + "], r1;\n";
  body += "mov.u64 rd2, %pm3_64;\nst.global.u64 [rd0+56], rd2;\n";
  body += "mov.u64 rd2, %gridid;\nst.global.u64 [rd0+64], rd2;\n";
  const auto run =
      run_body("mov.u32 r1, fixed;\nmov.u32 r2, more;\n" + body,
               {.grid = {1}, .block = {1}, .dynamic_shared = 64}, 18, {},
               ".shared .align 4 .b8 fixed[100];\n.extern .shared .align 4 .b8 more[];\n");
  ASSERT_TRUE(run.launched) << run.complaint;
  EXPECT_EQ(run.out, (Words{64, 256, 1200, 64, 0, 288, 1024, 0, 132, 0, 0, 0, 0, 0, 0, 0, 1, 0}));
  for (const char* name : {"%envreg32", "%pm8", "%envreg01"})
    EXPECT_FALSE(run_body(std::string("mov.u32 r1, ") + name + ";").launched) << name;
}

// A qualifier that the table has and the emulator does not handle is reported.
TEST(EmulatorNames, UnhandledQualifiersAreReported) {
  for (const std::string line : {"add.rn.u32 r2, r0, r0;", "add.u32.u32 r2, r0, r0;",
                                 "add.sat.sat.s32 r2, r0, r0;", "add.foo.u32 r2, r0, r0;"}) {
    const auto run = run_body(line, {.grid = {1}, .block = {1}}, 4);
    EXPECT_NE(run.complaint.find("unsupported-instruction"), std::string::npos)
        << line << run.complaint;
  }
}

// Copies and reductions of whole tiles need the fences of the async proxy, also in kernels with no
// other instruction of it.
TEST(EmulatorNames, RowsSayWhichInstructionsUseTheAsyncProxy) {
  using isa::Opcode;
  for (const Opcode each :
       {Opcode::cp_async_bulk, Opcode::cp_async_bulk_tensor, Opcode::st_async,
        Opcode::cp_reduce_async_bulk, Opcode::cp_reduce_async_bulk_tensor, Opcode::red_async,
        Opcode::wgmma, Opcode::clusterlaunchcontrol_try_cancel})
    EXPECT_TRUE(isa::uses_async_proxy(each)) << isa::name(each);
  for (const Opcode each : {Opcode::cp_async, Opcode::st_bulk, Opcode::ld, Opcode::st, Opcode::atom,
                            Opcode::mbarrier_arrive, Opcode::tensormap_replace, Opcode::mma})
    EXPECT_FALSE(isa::uses_async_proxy(each)) << isa::name(each);
}

}  // namespace
}  // namespace tartan
