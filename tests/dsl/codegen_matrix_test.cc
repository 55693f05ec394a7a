// SPDX-License-Identifier: Apache-2.0
// FunctionBuilder::matrix: every form of the instruction table is emitted as spelled, at its place.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tartan/isa/instruction.h"
#include "tests/dsl/codegen_testing.h"

namespace tartan::codegen {
namespace {

// Matrix instructions of the text, in order, without what has no qualifier.
std::vector<isa::Form> matrix_forms(const std::string& ptx) {
  std::vector<isa::Form> out;
  std::istringstream words(ptx);
  for (std::string word; words >> word;)
    if (isa::matrix_opcode(word) != isa::Opcode::none) out.push_back(isa::parse_form(word).form);
  return out;
}

isa::Form as_written(isa::Form form) {
  form.stride = form.a_in_registers = false;
  return form;
}

// Adds `form` to a kernel: operands loaded from global memory, results stored there.
void add_form(FunctionBuilder& f, const isa::Form& form, Pointer shared) {
  const Pointer in = f.pointer_param(0), out = f.pointer_param(1);
  const auto instruction = isa::find(form);
  std::vector<Value> operands;
  std::int64_t at = 0;
  const auto load = [&](Type type) { return f.load(f.offset(in, at += 8), type); };
  for (const isa::OperandSpec& operand : instruction->operands) {
    if (operand.role == isa::Role::d && form.opcode != isa::Opcode::wgmma) continue;
    switch (operand.kind) {
      case isa::OperandKind::Vector:
        for (int i = 0; i < operand.count; ++i) operands.push_back(load(operand.type));
        break;
      case isa::OperandKind::Register:
        operands.push_back(operand.type == Type::pred
                               ? f.compare(Compare::ne, load(u32), f.constant(u32, 0))
                               : load(operand.type));
        break;
      case isa::OperandKind::Address: break;
      case isa::OperandKind::Immediate: operands.push_back(f.constant(s32, operand.high)); break;
      case isa::OperandKind::Pair:  // one constant, one register
        operands.push_back(f.constant(u16, operand.high));
        operands.push_back(load(b16));
        break;
    }
  }
  const Pointer address = form.space == StateSpace::global ? in : shared;
  std::vector<Value> results;
  if (form.opcode == isa::Opcode::wgmma) {
    const auto count = static_cast<std::size_t>(isa::find(form)->operand(isa::Role::d)->count);
    const std::vector<Value> step(operands.begin() + static_cast<std::ptrdiff_t>(count),
                                  operands.end());
    results = f.warpgroup_product(form, std::span(operands).first(count), {&step, 1});
    results = f.warpgroup_wait(0, results);
  } else {
    results = f.matrix(form, address, operands);
  }
  at = 0;
  for (const Value& result : results) f.store(f.offset(out, at += 8), result);
  f.barrier();
}

// Emits `forms`, `per_kernel` at a time, and checks that the text has all of them, in order.
void check_forms(const std::vector<isa::Form>& forms, const Target& target,
                 std::size_t per_kernel) {
  ASSERT_FALSE(forms.empty());
  for (std::size_t first = 0; first < forms.size(); first += per_kernel) {
    FunctionBuilder f("forms", target, {.block = {128, 1, 1}}, in_out);
    const Pointer shared = f.dynamic_shared(128);
    const std::size_t end = std::min(forms.size(), first + per_kernel);
    for (std::size_t i = first; i < end; ++i) add_form(f, forms[i], shared);
    const std::string ptx = emit_and_assemble(f);
    const std::vector<isa::Form> written = matrix_forms(ptx);
    ASSERT_EQ(written.size(), end - first) << ptx;
    for (std::size_t i = first; i < end; ++i)
      EXPECT_EQ(isa::spell(written[i - first]), isa::spell(as_written(forms[i])));
    EXPECT_EQ(ptx.find("llvm."), std::string::npos);
  }
}

class EveryForm : public testing::TestWithParam<const char*> {};

TEST_P(EveryForm, IsEmitted) {
  const Target target(*Arch::parse(GetParam()), newest_version);
  std::vector<isa::Form> forms = isa::forms();
  std::erase_if(forms, [&](const isa::Form& form) { return !isa::find(form)->since.has(target); });
  check_forms(forms, target, 64);
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryForm,
                         testing::Values("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_100f",
                                         "sm_120a", "sm_121f"),
                         [](const auto& info) { return std::string(info.param); });

// Each form at the first version that has it, where LLVM's own requirements could be stricter.
TEST(Matrix, EveryFormIsEmittedForItsOldestTarget) {
  for (const isa::Form& form : isa::forms()) {
    const Since since = isa::find(form)->since;
    const Arch arch = isa::oldest(since);
    const Target target(arch, std::max(since.ptx, find_arch(arch)->first));
    FunctionBuilder f("oldest", target, {.block = {128, 1, 1}}, in_out);
    add_form(f, form, f.dynamic_shared(128));
    const std::vector<isa::Form> written = matrix_forms(emit(f));
    ASSERT_EQ(written.size(), 1U) << isa::spell(form) << " for " << target.text();
    EXPECT_EQ(isa::spell(written[0]), isa::spell(form));
  }
}

// A warp executes these together: LLVM must not sink one into the branch that uses its result.
TEST(Matrix, ProductsDoNotMoveIntoBranches) {
  for (const char* const spelling : {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                                     "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
                                     "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                                     "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16",
                                     "movmatrix.sync.aligned.m8n8.trans.b16",
                                     "mma.sync.aligned.m8n8k4.row.col.rz.f64.f64.f64.f64"}) {
    const isa::Form form = isa::parse_form(spelling).form;
    FunctionBuilder f = simple("sm_80");
    const auto instruction = isa::find(form);
    ASSERT_TRUE(instruction) << spelling;
    std::vector<Value> operands;
    for (const isa::OperandSpec& operand : instruction->operands)
      for (int i = 0; i < operand.count && operand.role != isa::Role::d &&
                      operand.kind != isa::OperandKind::Address;
           ++i)
        operands.push_back(f.load(f.offset(f.pointer_param(0), 8 * i), operand.type));
    const std::vector<Value> d = f.matrix(form, f.dynamic_shared(16), operands);
    f.if_then(f.compare(Compare::eq, f.special(isa::SpecialRegister::laneid), f.constant(u32, 0)),
              [&] {
                for (const Value& value : d) f.store(f.pointer_param(1), value);
              });
    const std::string ptx = emit_and_assemble(f);
    const std::size_t product = ptx.find(spelling), branch = ptx.find("bra");
    ASSERT_NE(product, std::string::npos) << ptx;
    ASSERT_NE(branch, std::string::npos) << ptx;
    EXPECT_LT(product, branch) << ptx;
  }
}

// Two memory instructions in inline assembly with a store between them: neither may move over it.
TEST(Matrix, AssemblyDoesNotMoveAcrossStores) {
  const isa::Form form = isa::parse_form("ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16").form;
  FunctionBuilder f = simple("sm_80");
  const Pointer tile = f.shared("tile", 1024, 16);
  const Value first = f.matrix(form, tile, {})[0];
  f.store(tile, f.constant(u32, 42));
  const Value second = f.matrix(form, tile, {})[0];
  f.store(f.pointer_param(1), f.add(first, second));
  const std::string ptx = emit_and_assemble(f);
  EXPECT_EQ(count(ptx, "ldmatrix"), 2) << ptx;
  const std::size_t store = ptx.find("st.shared");
  EXPECT_LT(ptx.find("ldmatrix"), store);
  EXPECT_GT(ptx.rfind("ldmatrix"), store);
}

TEST(Matrix, AddressOffsetsFold) {
  FunctionBuilder f = simple("sm_80");
  const Pointer tile =
      f.offset(f.dynamic_shared(16),
               f.multiply(f.special(isa::SpecialRegister::laneid), f.constant(u32, 16)));
  const Value d = f.matrix(isa::parse_form("ldmatrix.sync.aligned.m8n8.x1.shared.b16").form,
                           f.offset(tile, 1024), {})[0];
  f.store(f.offset(f.pointer_param(1), 64), d);
  const std::string ptx = emit_and_assemble(f);
  EXPECT_NE(ptx.find("+1024]"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("+64]"), std::string::npos) << ptx;
}

TEST(Matrix, WarpgroupProductsAreEmitted) {
  std::vector<isa::Form> forms;
  const std::vector<isa::Form> all = isa::wgmma_forms();
  for (std::size_t i = 0; i < all.size(); i += 41) forms.push_back(all[i]);
  check_forms(forms, Target(*Arch::parse("sm_90a"), newest_version), 1);
}

// Accumulators keep their registers through the loop, and their uses stay after the wait.
TEST(Matrix, WarpgroupAccumulatorsDoNotMove) {
  constexpr int accumulators = 128;
  FunctionBuilder f("loop", *Target::parse("sm_90a"), {.block = {128, 1, 1}},
                    {{"out", StateSpace::global},
                     {"descriptor", StateSpace::none, u64},
                     {"blocks", StateSpace::none, u32}});
  const isa::Form form =
      isa::parse_form("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16").form;
  std::vector<Variable> sums;
  for (int i = 0; i < accumulators; ++i) sums.push_back(f.variable(f.constant(f32, 0.0)));
  f.for_range(f.constant(u32, 0), f.param(2), f.constant(u32, 1), [&](Value) {
    std::vector<Value> accumulators, operands;
    for (const Variable& sum : sums) accumulators.push_back(f.get(sum));
    for (int i = 0; i < 2; ++i) operands.push_back(f.param(1));
    operands.push_back(f.constant(Type::pred, 1));
    for (const std::int64_t immediate : {1, 1, 0, 0})
      operands.push_back(f.constant(s32, immediate));
    std::vector<Value> d =
        f.warpgroup_wait(0, f.warpgroup_product(form, accumulators, {&operands, 1}));
    for (std::size_t i = 0; i < d.size(); ++i) f.set(sums[i], d[i]);
  });
  for (int i = 0; i < accumulators; ++i)
    f.store(f.offset(f.pointer_param(0), 4 * i),
            f.multiply(f.get(sums[static_cast<std::size_t>(i)]), f.constant(f32, 2.0)));
  const std::string ptx = emit_and_assemble(f);
  const std::size_t product = ptx.find("wgmma.mma_async"), wait = ptx.find("wgmma.wait_group");
  ASSERT_NE(wait, std::string::npos);
  EXPECT_EQ(count(ptx.substr(product, wait - product), "mov."), 0) << ptx;
  EXPECT_LT(wait, ptx.find("mul.rn.f32"));
  EXPECT_EQ(ptx.find("local"), std::string::npos);
}

TEST(Threads, EmitTheSameText) {
  const auto text = [] {
    FunctionBuilder f = simple("sm_80");
    add_form(f, isa::parse_form("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").form, {});
    Result<std::string> ptx = Code(f.finish()).emit();
    return ptx ? *ptx : ptx.diags().text();
  };
  const std::string expected = text();
  ASSERT_NE(expected.find("mma.sync"), std::string::npos);
  std::vector<std::thread> threads;
  std::vector<int> same(4);
  for (int& mine : same)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) mine += text() == expected;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, std::vector<int>(4, 25));
}

}  // namespace
}  // namespace tartan::codegen
