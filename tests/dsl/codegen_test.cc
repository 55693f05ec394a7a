// SPDX-License-Identifier: Apache-2.0
// FunctionBuilder without matrix instructions: values, memory, control flow, the kernel's frame,
// errors from LLVM.
#include <gtest/gtest.h>

#include "tests/dsl/codegen_testing.h"
#include "tests/support/sanitizer.h"

namespace tartan::codegen {
namespace {

TEST(Values, MultiplyAndAddFuseOnlyOnRequest) {
  FunctionBuilder f = simple("sm_80");
  const Pointer in = f.pointer_param(0), out = f.pointer_param(1);
  const Value x = f.load(in, f32), y = f.load(f.offset(in, 4), f32),
              z = f.load(f.offset(in, 8), f32);
  f.store(out, f.add(f.multiply(x, y), z));
  f.store(f.offset(out, 4), f.fma(x, z, y));
  const std::string ptx = emit_and_assemble(f);
  EXPECT_EQ(count(ptx, "mul.rn.f32"), 1) << ptx;
  EXPECT_EQ(count(ptx, "add.rn.f32"), 1) << ptx;
  EXPECT_EQ(count(ptx, "fma.rn.f32"), 1) << ptx;
}

struct Expected {
  const char* text;
  Value (*make)(FunctionBuilder& f, Value x, Value y);
  Type type;
};

// One operation per kernel, and the instruction that it must become.
TEST(Values, OperationsFollowTheType) {
  const Expected cases[] = {
      {"add.s32", [](FunctionBuilder& f, Value x, Value y) { return f.add(x, y); }, u32},
      {"sub.s64", [](FunctionBuilder& f, Value x, Value y) { return f.subtract(x, y); }, s64},
      {"mul.lo.s32", [](FunctionBuilder& f, Value x, Value y) { return f.multiply(x, y); }, u32},
      {"div.u32", [](FunctionBuilder& f, Value x, Value y) { return f.divide(x, y); }, u32},
      {"div.s32", [](FunctionBuilder& f, Value x, Value y) { return f.divide(x, y); }, s32},
      {"div.rn.f32", [](FunctionBuilder& f, Value x, Value y) { return f.divide(x, y); }, f32},
      {"rem.u32", [](FunctionBuilder& f, Value x, Value y) { return f.remainder(x, y); }, u32},
      {"rem.s32", [](FunctionBuilder& f, Value x, Value y) { return f.remainder(x, y); }, s32},
      {"shr.s32", [](FunctionBuilder& f, Value x, Value y) { return f.shift_right(x, y); }, s32},
      {"shr.u32", [](FunctionBuilder& f, Value x, Value y) { return f.shift_right(x, y); }, u32},
      {"shl.b64", [](FunctionBuilder& f, Value x, Value y) { return f.shift_left(x, y); }, u64},
      {"and.b32", [](FunctionBuilder& f, Value x, Value y) { return f.bit_and(x, y); }, u32},
      {"or.b32", [](FunctionBuilder& f, Value x, Value y) { return f.bit_or(x, y); }, b32},
      {"xor.b32", [](FunctionBuilder& f, Value x, Value y) { return f.bit_xor(x, y); }, s32},
      {"min.s32", [](FunctionBuilder& f, Value x, Value y) { return f.minimum(x, y); }, s32},
      {"max.u32", [](FunctionBuilder& f, Value x, Value y) { return f.maximum(x, y); }, u32},
      {"max.f32", [](FunctionBuilder& f, Value x, Value y) { return f.maximum(x, y); }, f32},
      {"add.rn.f16", [](FunctionBuilder& f, Value x, Value y) { return f.add(x, y); }, f16},
      {"fma.rn.bf16", [](FunctionBuilder& f, Value x, Value y) { return f.fma(x, y, x); }, bf16},
      {"add.rn.f64", [](FunctionBuilder& f, Value x, Value y) { return f.add(x, y); }, f64},
      {"neg.s32", [](FunctionBuilder& f, Value x, Value) { return f.negate(x); }, s32},
      {"neg.f32", [](FunctionBuilder& f, Value x, Value) { return f.negate(x); }, f32},
      {"setp.lt.u32",
       [](FunctionBuilder& f, Value x, Value y) {
         return f.select(f.compare(Compare::lt, x, y), x, f.constant(u32, 7));
       },
       u32},
      {"setp.lt.s32",
       [](FunctionBuilder& f, Value x, Value y) {
         return f.select(f.compare(Compare::lt, x, y), x, f.constant(s32, 7));
       },
       s32},
      {"setp.ge.f32",
       [](FunctionBuilder& f, Value x, Value y) {
         return f.select(f.compare(Compare::ge, x, y), x, f.constant(f32, 7.0));
       },
       f32},
      {"cvt.rn.f16.f32", [](FunctionBuilder& f, Value x, Value) { return f.convert(x, f16); }, f32},
      {"cvt.rn.bf16.f32", [](FunctionBuilder& f, Value x, Value) { return f.convert(x, bf16); },
       f32},
      {"cvt.f32.f16", [](FunctionBuilder& f, Value x, Value) { return f.convert(x, f32); }, f16},
      {"cvt.rzi.s32.f32", [](FunctionBuilder& f, Value x, Value) { return f.convert(x, s32); },
       f32},
      {"cvt.rzi.u32.f32", [](FunctionBuilder& f, Value x, Value) { return f.convert(x, u32); },
       f32},
      {"cvt.rn.f32.s32", [](FunctionBuilder& f, Value x, Value) { return f.convert(x, f32); }, s32},
      {"cvt.rn.f32.u32", [](FunctionBuilder& f, Value x, Value) { return f.convert(x, f32); }, u32},
      {"ld.global.s32",
       [](FunctionBuilder& f, Value x, Value y) {
         return f.add(f.convert(x, s64), f.convert(y, s64));
       },
       s32},
      {"cvt.u64.u32",
       [](FunctionBuilder& f, Value x, Value y) {
         return f.add(f.convert(x, u64), f.convert(y, u64));
       },
       u32},
      {"cvt.rn.f16x2.f32",
       [](FunctionBuilder& f, Value x, Value y) {
         return f.pack(f.convert(x, f16), f.convert(y, f16), b32);
       },
       f32},
      {"cvt.rn.bf16x2.f32",
       [](FunctionBuilder& f, Value x, Value y) {
         return f.pack(f.convert(x, bf16), f.convert(y, bf16), b32);
       },
       f32},
      {"shfl.sync.bfly.b32",
       [](FunctionBuilder& f, Value x, Value) { return f.shuffle_xor(x, 16); }, f32},
      {"shfl.sync.idx.b32", [](FunctionBuilder& f, Value x, Value y) { return f.shuffle(x, y); },
       u32},
  };
  for (const Expected& one : cases) {
    FunctionBuilder f = simple("sm_80");
    const Pointer in =
        f.offset(f.pointer_param(0),
                 f.multiply(f.special(isa::SpecialRegister::tid_x), f.constant(u32, 16)));
    f.store(f.pointer_param(1),
            one.make(f, f.load(in, one.type), f.load(f.offset(in, 8), one.type)));
    const std::string ptx = emit_and_assemble(f);
    EXPECT_NE(ptx.find(one.text), std::string::npos) << one.text << " expected in\n" << ptx;
  }
}

// Ties to even on all targets: before sm_90 only cvt.rna.tf32.f32 exists, which rounds ties away.
TEST(Values, RoundsToTf32) {
  for (const auto& [target, instructions] : {std::pair{"sm_80", 0}, {"sm_89", 0}, {"sm_90", 1}}) {
    FunctionBuilder f = simple(target);
    f.store(f.pointer_param(1), f.convert(f.load(f.pointer_param(0), f32), tf32));
    const std::string ptx = emit_and_assemble(f);
    EXPECT_EQ(count(ptx, "cvt.rn.tf32.f32"), instructions) << ptx;
    EXPECT_EQ(count(ptx, "cvt.rna"), 0) << ptx;
  }
}

TEST(Values, UnsignedDivisionByPowersOfTwoBecomesShifts) {
  FunctionBuilder f = simple("sm_80");
  const Value thread = f.special(isa::SpecialRegister::tid_x), eight = f.constant(u32, 8);
  f.store(f.pointer_param(1), f.add(f.divide(thread, eight), f.remainder(thread, eight)));
  const std::string ptx = emit_and_assemble(f);
  EXPECT_EQ(count(ptx, "div.") + count(ptx, "rem."), 0) << ptx;
  EXPECT_EQ(count(ptx, "shr.u32"), 1) << ptx;
  EXPECT_EQ(count(ptx, "and.b32"), 1) << ptx;
}

TEST(Memory, OffsetsKeepTheirSign) {
  FunctionBuilder f(
      "offsets", *Target::parse("sm_80"), {},
      {{"out", StateSpace::global}, {"u", StateSpace::none, u32}, {"s", StateSpace::none, s32}});
  f.store(f.offset(f.pointer_param(0), f.param(1)), f.constant(u32, 1));
  f.store(f.offset(f.pointer_param(0), f.param(2)), f.constant(u32, 2));
  const std::string ptx = emit_and_assemble(f);
  EXPECT_EQ(count(ptx, "ld.param.b32 \t%rd"), 1)
      << ptx;  // a load widens: to a 64-bit register, with zeros
  EXPECT_EQ(count(ptx, "ld.param.s32 \t%rd"), 1) << ptx;  // or with the sign
}

TEST(Memory, SharedPointersHave32Bits) {
  FunctionBuilder f = simple("sm_80");
  const Pointer fixed = f.shared("fixed", 512, 32), dynamic = f.dynamic_shared(128);
  const Value thread = f.multiply(f.special(isa::SpecialRegister::tid_x), f.constant(u32, 16));
  f.store_vector(f.offset(fixed, thread), f.load_vector(f.pointer_param(0), f32, 4));
  f.store(f.offset(dynamic, thread), f.shared_address(fixed));
  const std::string ptx = emit_and_assemble(f);
  EXPECT_NE(ptx.find(".shared .align 32 .b8 fixed[512];"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find(".extern .shared .align 128 .b8 kernel_shared[];"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("ld.global.v4.b32"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("st.shared.v4.b32"), std::string::npos) << ptx;
  EXPECT_EQ(count(ptx, "cvt.u64") + count(ptx, "cvta"), 0) << ptx;
}

TEST(Memory, AsynchronousCopies) {
  FunctionBuilder f = simple("sm_80");
  const Pointer tile = f.shared("tile", 4096, 16), in = f.pointer_param(0);
  f.copy_async(tile, in, 16, CacheOperator::cg);
  f.copy_async(f.offset(tile, 16), f.offset(in, 16), 16, CacheOperator::ca,
               f.special(isa::SpecialRegister::tid_x));
  f.copy_async(f.offset(tile, 32), f.offset(in, 32), 8, CacheOperator::ca);
  f.copy_async(f.offset(tile, 40), f.offset(in, 40), 4, CacheOperator::ca, f.constant(u32, 0));
  f.copy_async_commit();
  f.copy_async_wait(0);
  f.barrier();
  f.store(f.pointer_param(1), f.load(tile, u32));
  const std::string ptx = emit_and_assemble(f);
  for (const char* const part : {"cp.async.cg.shared.global [tile], [%rd1], 16;",
                                 "cp.async.ca.shared.global [tile+16], [%rd1+16], 16, %r",
                                 "cp.async.ca.shared.global [tile+32], [%rd1+32], 8;",
                                 "cp.async.ca.shared.global [tile+40], [%rd1+40], 4, "})
    EXPECT_NE(ptx.find(part), std::string::npos) << part << "\n" << ptx;
  EXPECT_LT(ptx.find("cp.async.commit_group"), ptx.find("cp.async.wait_group"));
  EXPECT_LT(ptx.find("bar.sync"), ptx.find("ld.shared"));
}

// Every instruction that code generation writes as inline assembly: emit() looks it up in the
// table.
TEST(Memory, AssemblyOfTmaIsInTheTable) {
  FunctionBuilder f("engine", *Target::parse("sm_90a"), {.block = {128, 1, 1}, .cluster = 2},
                    in_out);
  const Pointer map = f.add_tensor_map(), tile = f.shared("tile", 4096, 128),
                bar = f.shared("bar", 8, 8);
  const Value zero = f.constant(u32, 0), elected = f.elect();
  f.mbarrier_init(bar, 1);
  f.mbarrier_init_fence();
  f.cluster_barrier();
  f.prefetch_tensor_map(map);
  f.if_then(elected, [&] {
    f.mbarrier_expect(bar, 2048);
    for (std::size_t rank = 1; rank <= 5; ++rank) {
      const std::vector<Value> corner(rank, zero);
      f.tensor_load(tile, map, corner, bar, rank == 2 ? f.constant(u32, std::int64_t{3}) : Value{});
    }
  });
  f.copy_async(tile, f.pointer_param(0), 16, CacheOperator::cg);
  f.copy_async_arrive(bar);
  f.mbarrier_arrive(bar);
  f.mbarrier_arrive(bar, zero);
  f.mbarrier_wait(bar, zero);
  f.proxy_fence();
  f.if_then(elected, [&] {
    for (std::size_t rank = 1; rank <= 5; ++rank)
      f.tensor_store(map, std::vector<Value>(rank, zero), tile, 512);
    f.bulk_commit();
    f.bulk_wait_read(0);
  });
  f.set_max_registers(40, false);
  const std::string ptx = emit_and_assemble(f);
  for (const char* const opcode :
       {"mbarrier.init", "fence.mbarrier_init", "prefetch.tensormap", "mbarrier.arrive.expect_tx",
        ".multicast::cluster", "cp.async.mbarrier.arrive.noinc", "mapa.shared::cluster",
        "mbarrier.try_wait.parity", "fence.proxy.async", "cp.async.bulk.commit_group",
        "cp.async.bulk.wait_group.read", "elect.sync", "setmaxnreg.dec"})
    EXPECT_GE(count(ptx, opcode), 1) << opcode;
  EXPECT_EQ(count(ptx, "cp.async.bulk.tensor"), 10);
}

TEST(Values, AssemblyOfApproximationsAndConversionsIsInTheTable) {
  FunctionBuilder f = simple("sm_90");
  Value sum = f.load(f.pointer_param(0), f32);
  for (const Approximation each : {Approximation::ex2, Approximation::lg2, Approximation::rcp,
                                   Approximation::rsqrt, Approximation::tanh})
    sum = f.add(sum, f.approximate(each, sum));
  for (const Type type : {Type::e4m3, Type::e5m2}) {
    f.store(f.offset(f.pointer_param(1), type == Type::e4m3 ? 4 : 6),
            f.convert_pair(sum, sum, type));
    sum = f.add(sum, f.convert(f.convert(sum, type), f32));
  }
  f.store(f.pointer_param(1), sum);
  const std::string ptx = emit_and_assemble(f);
  for (const char* const opcode :
       {"ex2.approx.ftz.f32", "lg2.approx.ftz.f32", "rcp.approx.ftz.f32", "rsqrt.approx.ftz.f32",
        "tanh.approx.f32", "cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.f16x2.e5m2x2"})
    EXPECT_GE(count(ptx, opcode), 1) << opcode;
}

TEST(Control, BranchesAndLoopsNest) {
  FunctionBuilder f("control", *Target::parse("sm_80"), {},
                    {{"out", StateSpace::global}, {"n", StateSpace::none, u32}});
  const auto number = [&](std::int64_t n) { return f.constant(u32, n); };
  const Variable sum = f.variable(number(0));
  f.for_range(number(0), f.param(1), number(1), [&](Value i) {
    f.if_else(
        f.compare(Compare::eq, f.bit_and(i, number(1)), number(0)),
        [&] { f.set(sum, f.add(f.get(sum), i)); },
        [&] {
          f.for_range(i, f.param(1), number(2),
                      [&](Value j) { f.set(sum, f.bit_xor(f.get(sum), j)); });
        });
  });
  const Variable left = f.variable(f.get(sum));
  f.while_loop([&] { return f.compare(Compare::gt, f.get(left), number(3)); },
               [&] { f.set(left, f.divide(f.get(left), number(3))); });
  f.if_then(f.compare(Compare::ne, f.get(left), number(0)),
            [&] { f.store(f.pointer_param(0), f.get(left)); });
  const std::string ptx = emit_and_assemble(f);
  EXPECT_EQ(ptx.find("local"), std::string::npos) << ptx;
  EXPECT_EQ(count(ptx, "st.global"), 1) << ptx;
}

// ---- The frame.

TEST(Frame, LaunchBoundsAndParametersAreStated) {
  FunctionBuilder f("frame$1", *Target::parse("sm_90a"),
                    {.block = {64, 2, 1}, .min_blocks = 3, .max_registers = 96},
                    {{"in", StateSpace::global},
                     {"n", StateSpace::none, u32},
                     {"scale", StateSpace::none, f32},
                     {"wide", StateSpace::none, f64}});
  f.store(f.pointer_param(0),
          f.multiply(f.param(2), f.convert(f.add(f.convert(f.param(1), f64), f.param(3)), f32)));
  const std::string ptx = emit_and_assemble(f);
  for (const char* const part :
       {".version 8.0", ".target sm_90a", ".visible .entry frame$1(",
        ".param .u64 .ptr .global .align 1 frame$1_param_0", "frame$1_param_3", ".reqntid 64, 2",
        ".minnctapersm 3", ".maxnreg 96"})
    EXPECT_NE(ptx.find(part), std::string::npos) << part << "\n" << ptx;
  EXPECT_TRUE(ptx.ends_with("}\n"));
}

TEST(Frame, EveryTargetIsEmittedAsAsked) {
  int emitted = 0;
  for (const ArchRow& row : archs) {
    const Target target(row.arch, newest_version);
    FunctionBuilder f("every", target, {}, in_out);
    f.store(f.pointer_param(1), f.load(f.pointer_param(0), u32));
    const std::string ptx = emit(f);
    EXPECT_NE(ptx.find(".version 9.5\n.target " + row.arch.text() + "\n"), std::string::npos)
        << ptx;
    ++emitted;
  }
  EXPECT_GT(emitted, 30);
  for (const Version version :
       {Version{7, 0}, Version{7, 8}, Version{8, 0}, Version{8, 5}, Version{9, 0}, Version{9, 4}}) {
    FunctionBuilder f("versions", Target({80, 0}, version), {}, in_out);
    EXPECT_NE(emit(f).find(".version " + version.text() + "\n"), std::string::npos);
  }
}

TEST(Frame, PtxHasLinesOfTheDescription) {
  FunctionBuilder f = simple("sm_80");
  const auto first = std::source_location::current();
  f.at(first);
  const Value value = f.load(f.pointer_param(0), u32);
  const auto second = std::source_location::current();
  f.at(second);
  f.store(f.pointer_param(1), value);
  const std::string ptx = emit_and_assemble(f);
  const std::size_t file = ptx.find(".file\t1 \"" + std::string(first.file_name()) + "\"");
  EXPECT_NE(file, std::string::npos) << ptx;
  const auto loc = [&](const std::source_location& at) {
    return ptx.find(".loc\t1 " + std::to_string(at.line()) + " " + std::to_string(at.column()));
  };
  EXPECT_LT(loc(first), ptx.find("ld.global")) << ptx;
  EXPECT_LT(ptx.find("ld.global"), loc(second)) << ptx;
  EXPECT_LT(loc(second), ptx.find("st.global")) << ptx;
  EXPECT_EQ(ptx.find(".section"), std::string::npos) << ptx;
}

// A report_fatal_error in LLVM must neither end the process nor affect later calls.
TEST(Errors, LlvmFatalErrorsAreDiagnostics) {
  const test::LeaksExpected here;  // LLVM's objects, on purpose, after a fatal error
  for (int round = 0; round < 3; ++round) {
    FunctionBuilder bad = simple("sm_75", "bad");
    bad.copy_async_wait(0);  // exists from sm_80 on
    const Result<std::string> refused = Code(bad.finish()).emit();
    ASSERT_FALSE(refused);
    ASSERT_EQ(refused.diags().size(), 1U);
    EXPECT_EQ(refused.diags()[0].id, "codegen");
    EXPECT_NE(refused.diags()[0].message.find("wait.group"), std::string::npos)
        << refused.diags()[0].message;

    FunctionBuilder good = simple("sm_75", "good");
    good.store(good.pointer_param(1), good.load(good.pointer_param(0), u32));
    EXPECT_NE(emit(good).find("st.global.b32"), std::string::npos);
  }
}

TEST(Errors, AnImpossibleTargetIsADiagnostic) {
  const test::LeaksExpected here;  // LLVM's objects, on purpose, after a fatal error
  FunctionBuilder f("early", Target({90, 'a'}, {7, 8}), {}, in_out);  // sm_90a came with 8.0
  const Result<std::string> refused = Code(f.finish()).emit();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.diags()[0].id, "codegen");
}

}  // namespace
}  // namespace tartan::codegen
