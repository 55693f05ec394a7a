// SPDX-License-Identifier: Apache-2.0
// Time of LLVM from the first call of a FunctionBuilder to PTX text. Goals: under 5 ms for a kernel
// of one matrix instruction, under 30 ms for the big one.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "compiler/codegen/code.h"
#include "compiler/ir/function_builder.h"
#include "tartan/isa/instruction.h"

namespace tartan::codegen {

using namespace ir;

namespace {

isa::Form form(const char* spelling) { return isa::parse_form(spelling).form; }

std::string text(FunctionBuilder& f) {
  Result<std::string> ptx = Code(f.finish()).emit();
  if (!ptx) {
    std::fputs(ptx.diags().text().c_str(), stderr);
    std::exit(1);
  }
  return *ptx;
}

const std::vector<Param> in_out{{"in", StateSpace::global}, {"out", StateSpace::global}};

std::string single_instruction() {
  FunctionBuilder f("single", *Target::parse("sm_80"), {.block = {32, 1, 1}}, in_out);
  const Pointer in = f.offset(
      f.pointer_param(0), f.multiply(f.special(isa::SpecialRegister::laneid), f.constant(u32, 40)));
  const Pointer out = f.offset(
      f.pointer_param(1), f.multiply(f.special(isa::SpecialRegister::laneid), f.constant(u32, 16)));
  std::vector<Value> operands;
  for (int i = 0; i < 6; ++i) operands.push_back(f.load(f.offset(in, 4 * i), b32));
  for (int i = 6; i < 10; ++i) operands.push_back(f.load(f.offset(in, 4 * i), f32));
  const std::vector<Value> d =
      f.matrix(form("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), {}, operands);
  for (int i = 0; i < 4; ++i) f.store(f.offset(out, 4 * i), d[static_cast<std::size_t>(i)]);
  return text(f);
}

// One k loop of a 64x64 warp tile: 16 cp.async, 64 ldmatrix, 256 mma onto 128 accumulators.
std::string big() {
  constexpr int accumulators = 128, rows = 4, columns = 8, steps = 8;
  FunctionBuilder f(
      "big", *Target::parse("sm_80"), {.block = {128, 1, 1}},
      {{"in", StateSpace::global}, {"out", StateSpace::global}, {"blocks", StateSpace::none, u32}});
  const auto number = [&](std::int64_t n) { return f.constant(u32, n); };
  const Value thread = f.special(isa::SpecialRegister::tid_x);
  const Pointer tile = f.offset(f.dynamic_shared(128), f.multiply(thread, number(16)));
  const Pointer in = f.offset(f.pointer_param(0), f.multiply(thread, number(16)));
  const isa::Form load = form("ldmatrix.sync.aligned.m8n8.x4.shared.b16"),
                  product = form("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  std::vector<Variable> sums;
  for (int i = 0; i < accumulators; ++i) sums.push_back(f.variable(f.constant(f32, 0.0)));
  f.for_range(number(0), f.param(2), number(1), [&](Value block) {
    const Pointer from = f.offset(in, f.multiply(block, number(65536)));
    for (int i = 0; i < 16; ++i)
      f.copy_async(f.offset(tile, 2048 * i), f.offset(from, 4096 * i), 16, CacheOperator::cg);
    f.copy_async_commit();
    f.copy_async_wait(0);
    f.barrier();
    for (int step = 0; step < steps; ++step) {
      std::vector<std::vector<Value>> a, b;
      for (int i = 0; i < rows; ++i)
        a.push_back(f.matrix(load, f.offset(tile, 4096 * step + 512 * i), {}));
      for (int i = 0; i < columns / 2; ++i)
        b.push_back(f.matrix(load, f.offset(tile, 4096 * step + 2048 + 512 * i), {}));
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c) {
          const auto first = static_cast<std::size_t>(4 * (columns * r + c));
          std::vector<Value> operands = a[static_cast<std::size_t>(r)];
          const std::vector<Value>& right = b[static_cast<std::size_t>(c / 2)];
          operands.insert(operands.end(), right.begin() + 2 * (c % 2),
                          right.begin() + 2 * (c % 2) + 2);
          for (std::size_t i = 0; i < 4; ++i) operands.push_back(f.get(sums[first + i]));
          const std::vector<Value> d = f.matrix(product, {}, operands);
          for (std::size_t i = 0; i < 4; ++i) f.set(sums[first + i], d[i]);
        }
    }
    f.barrier();
  });
  const Pointer out = f.offset(f.pointer_param(1), f.multiply(thread, number(512)));
  for (int i = 0; i < accumulators; ++i)
    f.store(f.offset(out, 4 * i), f.get(sums[static_cast<std::size_t>(i)]));
  return text(f);
}

void measure(benchmark::State& state, std::string (*kernel)()) {
  std::size_t bytes = kernel().size();
  for (auto _ : state) benchmark::DoNotOptimize(bytes = kernel().size());
  state.counters["ptx_bytes"] = static_cast<double>(bytes);
}
BENCHMARK_CAPTURE(measure, single_instruction, single_instruction)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(measure, mma256_ldmatrix64, big)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tartan::codegen

int main(int argc, char** argv) {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t bytes = tartan::codegen::single_instruction().size();
  const std::chrono::duration<double, std::milli> first = std::chrono::steady_clock::now() - start;
  std::printf("first kernel of the process, LLVM's start included: %.2f ms (%zu bytes of PTX)\n",
              first.count(), bytes);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
