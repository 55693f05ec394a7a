// SPDX-License-Identifier: Apache-2.0
// What a FunctionBuilder records, before LLVM has a part in it.
#include <gtest/gtest.h>

#include "compiler/ir/function_text.h"
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

// A number of loops that both roles count, a barrier of the first one, and what each does in turn.
TEST(Recorded, TheSecondRoleTakesWhatItsOwnWorkNeeds) {
  FunctionBuilder f = simple("sm_90a");
  const Pointer out = f.pointer_param(1);
  const int body = f.mark();
  f.at_mark(body, [&] {
    const Value count = f.load(f.pointer_param(0), u32);
    const Value unused = f.add(count, f.constant(u32, 7));
    f.store(out, unused);
    f.for_range(f.constant(u32, 0), count, f.constant(u32, 1), [&](Value i) {
      f.barrier();
      f.if_of_role(f.compare(Compare::lt, i, f.constant(u32, 7)), [&] {
        f.by_role([&] { f.barrier(3, 64); }, [&] { f.store(out, f.multiply(i, i)); });
      });
    });
  });
  f.barrier(4, 32);
  EXPECT_TRUE(f.take_second_role(body).empty());
  EXPECT_EQ(body_of(f),
            "  mark\n"
            "    %2: u32 = load %1\n"
            "    %4: u32 = add %2 7\n"
            "    store.u32 %0 %4\n"
            "    set.u32 %7 0\n"
            "    for.u32 %7 %2 1\n"
            "      %8: u32\n"
            "      barrier\n"
            "      %10: pred = compare %8 7 #2\n"
            "      if %10\n"
            "        mark\n"
            "          barrier_of_some #3 #64\n"
            "  barrier_of_some #4 #32\n"
            "  %12: u32 = load %1\n"
            "  set.u32 %7 0\n"
            "  for.u32 %7 %12 1\n"
            "    %13: u32\n"
            "    %14: u32 = multiply %13 %13\n"
            "    store.u32 %0 %14\n");
}

std::vector<Need> missed(const std::function<void(FunctionBuilder&, Pointer)>& described) {
  FunctionBuilder f = simple("sm_90a");
  const Pointer out = f.pointer_param(1);
  const int body = f.mark();
  f.at_mark(body, [&] { described(f, out); });
  return f.take_second_role(body);
}

TEST(Recorded, TheSecondRoleDoesNotHaveWhatTheFirstAloneDoes) {
  const std::vector<Need> result = missed([](FunctionBuilder& f, Pointer out) {
    const Value made = f.statement("atom.global.inc.u32 %0, [%1], 1;", std::vector<Type>{u32},
                                   std::vector{f.global_address(out)}, false)[0];
    f.by_role([] {},
              [&] {
                f.if_then(f.compare(Compare::lt, made, f.constant(u32, 1)),
                          [&] { f.store(out, f.constant(u32, 1)); });
              });
  });
  ASSERT_EQ(result.size(), 1U);
  EXPECT_EQ(result[0].what, Need::Of::result);

  const std::vector<Need> thread = missed([](FunctionBuilder& f, Pointer out) {
    const Value made = f.add(f.special(isa::SpecialRegister::tid_x), f.constant(u32, 1));
    f.by_role([] {}, [&] { f.store(out, made); });
  });
  ASSERT_EQ(thread.size(), 1U);
  EXPECT_EQ(thread[0].what, Need::Of::thread);

  const std::vector<Need> variable = missed([](FunctionBuilder& f, Pointer out) {
    const Variable count = f.variable(f.constant(u32, 1));
    f.by_role([&] { f.set(count, f.constant(u32, 2)); }, [] {});
    f.by_role([] {}, [&] { f.store(out, f.get(count)); });
  });
  ASSERT_EQ(variable.size(), 1U);
  EXPECT_EQ(variable[0].what, Need::Of::variable);
}

TEST(Recorded, AHalfHasItsOwnEffectsAndWhatTheseNeed) {
  FunctionBuilder f = simple("sm_90a");
  const Pointer out = f.pointer_param(1);
  const int apart = f.detached_mark();
  const Value index = f.stand_in(u32);
  f.at_mark(apart, [&] {
    const Value shared = f.add(index, f.constant(u32, 1));
    f.store(out, shared);
    f.split();
    f.store(out, f.multiply(shared, shared));
  });
  const Value first = f.special(isa::SpecialRegister::ctaid_x);
  EXPECT_TRUE(f.copy_of(apart, Half::behind, std::vector<Renamed>{{index.id, first.id}}).empty());
  EXPECT_TRUE(
      f.copy_of(apart, Half::before, std::vector<Renamed>{{index.id, f.constant(u32, 5).id}})
          .empty());
  EXPECT_EQ(body_of(f),
            "  %5: u32 = special #9\n"
            "  %6: u32 = add %5 1\n"
            "  %7: u32 = multiply %6 %6\n"
            "  store.u32 %0 %7\n"
            "  %9: u32 = add 5 1\n"
            "  store.u32 %0 %9\n");
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
