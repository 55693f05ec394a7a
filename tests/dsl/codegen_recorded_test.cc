// SPDX-License-Identifier: Apache-2.0
// What a FunctionBuilder records, before LLVM has a part in it.
#include <gtest/gtest.h>

#include "compiler/codegen/function_text.h"
#include "tests/dsl/codegen_testing.h"

namespace tartan::codegen {
namespace {

std::string body_of(FunctionBuilder& f) {
  const std::string all = text(f.finish());
  return all.substr(all.find("body\n") + 5);
}

TEST(Recorded, FunctionsReadAsText) {
  FunctionBuilder f = simple("sm_80", "copy");
  const Pointer out = f.pointer_param(1);
  const Value lane = f.special(isa::SpecialRegister::tid_x);
  const Variable sum = f.variable(f.constant(f32, 0.5));
  f.for_range(f.constant(u32, 0), lane, f.constant(u32, 2), [&](Value i) {
    f.if_else(
        f.compare(Compare::lt, i, f.constant(u32, 7)), [&] { f.set(sum, f.constant(f32, 1)); },
        [&] { f.barrier(3, 64); });
  });
  f.store(out, f.get(sum));
  EXPECT_EQ(text(f.finish()),
            "kernel copy(global in, global out) sm_80, PTX 7.8\n"
            "frame\n"
            "  %0: global = pointer_param #1\n"
            "  %3: f32 = variable\n"
            "  %6: u32 = variable\n"
            "body\n"
            "  %1: u32 = special #0\n"
            "  set.f32 %3 0.5\n"
            "  set.u32 %6 0\n"
            "  for.u32 %6 %1 2\n"
            "    %7: u32\n"
            "    %9: pred = compare %7 7 #2\n"
            "    if_else %9\n"
            "      set.f32 %3 1\n"
            "    else\n"
            "      barrier_of_some #3 #64\n"
            "  %11: f32 = get %3\n"
            "  store.f32 %0 %11\n");
}

TEST(Recorded, AMarkHoldsWhatIsDescribedLater) {
  FunctionBuilder f = simple("sm_80");
  const int first = f.mark();
  f.warp_sync();
  const Value one = f.constant(u32, 1);
  f.at_mark(first, [&] { f.store(f.pointer_param(1), one); });
  f.at_mark(first, [&] { f.barrier(); });
  EXPECT_EQ(body_of(f),
            "  mark\n"
            "    store.u32 %1 1\n"
            "    barrier\n"
            "  warp_sync\n");
}

TEST(Recorded, WhatActsIsLeftOutWhileMuted) {
  FunctionBuilder f = simple("sm_90a");
  const Pointer out = f.pointer_param(1);
  EXPECT_FALSE(f.mute(true));
  f.store(out, f.constant(u32, 1));
  f.mbarrier_arrive(out);
  f.cluster_barrier();
  f.tensor_store(out, {}, out);
  const std::vector<Value> results = f.statement("tanh.approx.f32 %0, 0f00000000;",
                                                 std::vector<Type>{f32}, {}, false, "no reason");
  const Value lane = f.special(isa::SpecialRegister::tid_x);
  EXPECT_TRUE(f.mute(false));
  f.store(out, f.shuffle_xor(lane, 1));
  EXPECT_EQ(body_of(f),
            "  %2: f32 = absent \"no reason\"\n"
            "  %3: u32 = special #0\n"
            "  %4: u32 = shuffle_xor %3 #1\n"
            "  store.u32 %0 %4\n");
  EXPECT_EQ(results.size(), 1U);
}

TEST(Recorded, ConstantsAreWhatFoldsOfConstants) {
  FunctionBuilder f = simple("sm_80");
  const Value two = f.constant(u32, 2), lane = f.special(isa::SpecialRegister::tid_x);
  EXPECT_TRUE(f.is_constant(f.add(two, f.multiply(two, two))));
  EXPECT_TRUE(f.is_constant(f.shared_address(f.offset(f.shared("x", 64, 16), 8))));
  EXPECT_FALSE(f.is_constant(lane));
  EXPECT_FALSE(f.is_constant(f.add(lane, two)));
  EXPECT_FALSE(f.is_constant(f.get(f.variable(two))));
}

}  // namespace
}  // namespace tartan::codegen
