// SPDX-License-Identifier: Apache-2.0
// Speed of the emulator on ordinary code and whole kernels, and of decoding PTX. Goals, on one
// core: 1 G lane-instructions/s for every common class of instruction, 20 MB/s of text decoded; a
// product of two 1024 x 1024 matrices in 2 s on two cores.
//
// A class is measured by a loop of `copies` of its instruction on four warps. The rate counts only
// those instructions, so it includes the loop's overhead.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "runtime/emulator/decode/decoder.h"
#include "tartan/ptx/parser.h"
#include "tartan/runtime/device.h"

namespace tartan {
namespace {

template <typename T>
T checked(Result<T> result) {
  if (result) return std::move(*result);
  std::fputs(result.diags().text().c_str(), stderr);
  std::exit(1);
}
void checked(const Status& status) {
  if (status) return;
  std::fputs(status.diags().text().c_str(), stderr);
  std::exit(1);
}

constexpr int copies = 32, rounds = 500, threads = 128;

// The operands of a class's instructions: %tid in tid; addresses that are 4, 16 or 80 bytes (rows
// of a padded tile) apart per lane, or the same for all lanes, in shared memory (s...) and in
// global memory (g...); q is true in odd lanes.
constexpr std::string_view kernel_text = R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 buffer, .param .u32 rounds)
{{
  .reg .pred p, q, more;
  .reg .b16 h<8>;
  .reg .b32 r<16>, tid, lane, left, s4, s16, s80, s0;
  .reg .b64 rd<8>, g4, g16, g80, g0, generic;
  .reg .f32 f<8>;
  .reg .f64 fd<4>;
  .shared .align 128 .b8 tile[16384];
  ld.param.u64 g0, [buffer];
  ld.param.u32 left, [rounds];
  mov.u32 tid, %tid.x;
  mov.u32 lane, %laneid;
  mov.u32 s0, tile;
  mad.lo.u32 s4, tid, 4, s0;
  mad.lo.u32 s16, tid, 16, s0;
  mad.lo.u32 s80, tid, 80, s0;
  mad.wide.u32 g4, tid, 4, g0;
  mad.wide.u32 g16, tid, 16, g0;
  mad.wide.u32 g80, tid, 80, g0;
  cvt.u64.u32 generic, s4;
  cvta.shared.u64 generic, generic;
  mov.b32 r0, 3;
  mov.b32 r1, tid;
  mov.b32 r2, 5;
  mov.b32 r3, 0x3C003C00;
  mov.f32 f0, 0f3F800000;
  cvt.rn.f32.u32 f1, tid;
  mov.f32 f2, 0f3F000000;
  mov.f64 fd0, 0d3FF0000000000000;
  cvt.f64.f32 fd1, f1;
  mov.b16 h0, 0x3C00;
  cvt.u64.u32 rd0, tid;
  mov.u64 rd1, 7;
  and.b32 r4, tid, 1;
  setp.ne.u32 q, r4, 0;
  setp.ne.u32 p, r4, 2;
again:
{}  sub.u32 left, left, 1;
  setp.ne.u32 more, left, 0;
  @more bra again;
  ret;
}}
)";

void instruction(benchmark::State& state, const char* text) {
  std::string body;
  for (int i = 0; i < copies; ++i) body += fmt::format("  {};\n", text);
  Device device = checked(Device::open("emulator", {.threads = 1}));
  LoadedKernel kernel =
      checked(checked(device.load(fmt::format(kernel_text, body), "instruction")).kernel("kernel"));
  const Buffer buffer = checked(device.allocate(1 << 16));
  const Arguments arguments = Arguments().add(buffer).add(std::uint32_t{rounds});
  for (auto _ : state) {
    checked(kernel.launch({.grid = {1}, .block = {threads}}, arguments));
    checked(device.synchronize());
  }
  state.counters["lane-instructions"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * copies * rounds * threads,
                         benchmark::Counter::kIsRate);
}

#define CLASS(name, text) BENCHMARK_CAPTURE(instruction, name, text)->Unit(benchmark::kMillisecond)
CLASS(mov_b32, "mov.b32 r5, r1");
CLASS(add_s32, "add.s32 r5, r1, r2");
CLASS(mad_lo_s32, "mad.lo.s32 r5, r1, r2, r0");
CLASS(mul_wide_u32, "mul.wide.u32 rd2, r1, r2");
CLASS(add_s64, "add.s64 rd2, rd0, rd1");
CLASS(shl_b32, "shl.b32 r5, r1, 3");
CLASS(and_b32, "and.b32 r5, r1, r2");
CLASS(lop3_b32, "lop3.b32 r5, r1, r2, r0, 0x6A");
CLASS(prmt_b32, "prmt.b32 r5, r1, r2, 0x5410");
CLASS(bfe_u32, "bfe.u32 r5, r1, 2, 3");
CLASS(min_s32, "min.s32 r5, r1, r2");
CLASS(setp_lt_s32, "setp.lt.s32 p, r1, r2");
CLASS(setp_lt_f32, "setp.lt.f32 p, f1, f2");
CLASS(selp_b32, "selp.b32 r5, r1, r2, q");
CLASS(predicated_add, "@q add.s32 r5, r1, r2");
CLASS(add_f32, "add.f32 f3, f1, f2");
CLASS(fma_f32, "fma.rn.f32 f3, f1, f2, f0");
CLASS(max_f32, "max.f32 f3, f1, f2");
CLASS(fma_f16x2, "fma.rn.f16x2 r5, r3, r3, r3");
CLASS(add_f64, "add.f64 fd2, fd0, fd1");
CLASS(fma_f64, "fma.rn.f64 fd2, fd0, fd1, fd0");
CLASS(ex2_f32, "ex2.approx.ftz.f32 f3, f2");
CLASS(cvt_f16_f32, "cvt.rn.f16.f32 h1, f1");
CLASS(cvt_f32_f16, "cvt.f32.f16 f3, h0");
CLASS(cvt_f16x2_f32, "cvt.rn.f16x2.f32 r5, f1, f2");
CLASS(cvt_f32_s32, "cvt.rn.f32.s32 f3, r1");
CLASS(ld_param, "ld.param.u64 rd2, [buffer]");
CLASS(ld_shared_b32, "ld.shared.b32 r5, [s4]");
CLASS(ld_shared_b32_rows, "ld.shared.b32 r5, [s80]");
CLASS(ld_shared_b32_one, "ld.shared.b32 r5, [s0]");
CLASS(ld_shared_b16, "ld.shared.b16 h1, [s4]");
CLASS(ld_shared_b64, "ld.shared.b64 rd2, [s16]");
CLASS(ld_shared_v4, "ld.shared.v4.b32 {r5, r6, r7, r8}, [s16]");
CLASS(ld_shared_v4_rows, "ld.shared.v4.b32 {r5, r6, r7, r8}, [s80]");
CLASS(st_shared_b32, "st.shared.b32 [s4], r1");
CLASS(st_shared_b32_rows, "st.shared.b32 [s80], r1");
CLASS(st_shared_v4, "st.shared.v4.b32 [s16], {r1, r2, r3, r4}");
CLASS(ld_generic_b32, "ld.b32 r5, [generic]");
CLASS(ld_global_b32, "ld.global.b32 r5, [g4]");
CLASS(ld_global_b32_rows, "ld.global.b32 r5, [g80]");
CLASS(ld_global_b32_half, "@q ld.global.b32 r5, [g4]");
CLASS(ld_global_v4, "ld.global.v4.b32 {r5, r6, r7, r8}, [g16]");
CLASS(st_global_b32, "st.global.b32 [g4], r1");
CLASS(st_global_b32_rows, "st.global.b32 [g80], r1");
CLASS(st_global_v2_rows, "st.global.v2.b32 [g80], {r1, r2}");
CLASS(st_global_v4, "st.global.v4.b32 [g16], {r1, r2, r3, r4}");
CLASS(ldmatrix_x4, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r5, r6, r7, r8}, [s80]");
CLASS(ldmatrix_x4_trans, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {r5, r6, r7, r8}, [s80]");
CLASS(ldmatrix_x2, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r5, r6}, [s80]");
CLASS(stmatrix_x4, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [s80], {r1, r2, r3, r4}");
CLASS(cp_async_16, "cp.async.cg.shared.global [s16], [g16], 16");
CLASS(shfl_bfly, "shfl.sync.bfly.b32 r5, r1, 8, 31, -1");
CLASS(shfl_down, "shfl.sync.down.b32 r5, r1, 8, 31, -1");
CLASS(shfl_idx_lane, "shfl.sync.idx.b32 r5, r1, lane, 31, -1");
CLASS(vote_ballot, "vote.sync.ballot.b32 r5, q, -1");
CLASS(redux_add, "redux.sync.add.s32 r5, r1, -1");
CLASS(atom_shared_add, "atom.shared.add.u32 r5, [s4], r1");
CLASS(atom_global_add, "atom.global.add.u32 r5, [g4], r1");
CLASS(red_global_add_one, "red.global.add.u32 [g0], r2");
CLASS(red_global_add_f32, "red.global.add.f32 [g4], f1");
CLASS(bar_sync, "bar.sync 0");
#undef CLASS

// ---- Kernels, compiled by nvcc.

const std::string& compiled() {
  static const std::string text = [] {
    std::ostringstream out;
    out << std::ifstream(SOURCE_ROOT "/tests/data/programs/kernels_sm80.ptx").rdbuf();
    return out.str();
  }();
  return text;
}

// C = A * B, f16, tiles of 64 x 64 x 32; the argument: host threads.
void gemm(benchmark::State& state) {
  constexpr std::uint32_t size = 1024;
  Device device = checked(
      Device::open("emulator", {.hardware = "sm_90", .threads = static_cast<int>(state.range(0))}));
  LoadedKernel kernel =
      checked(checked(device.load(compiled(), "kernels_sm80.ptx")).kernel("mma_gemm_64x64x32"));
  std::vector<std::uint16_t> numbers(size * size);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<std::uint16_t>(0x3000 + i * 2654435761u % 0x0FFF);
  Buffer a = checked(device.allocate(size * size * 2)),
         b = checked(device.allocate(size * size * 2));
  const Buffer c = checked(device.allocate(size * size * 4));
  checked(a.write(numbers));
  checked(b.write(numbers));
  for (auto _ : state) {
    checked(kernel.launch({.grid = {size / 64, size / 64}, .block = {128}},
                          Arguments().add(a).add(b).add(c).add(size).add(size).add(size)));
    checked(device.synchronize());
  }
  const Report report = device.report();
  state.counters["multiply-adds"] =
      benchmark::Counter(static_cast<double>(report.multiply_adds), benchmark::Counter::kIsRate);
  state.counters["lane-instructions"] = benchmark::Counter(
      static_cast<double>(report.lane_instructions), benchmark::Counter::kIsRate);
}
BENCHMARK(gemm)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

// Rows of 4096 numbers, one block per row.
void softmax(benchmark::State& state) {
  constexpr std::uint32_t columns = 4096, rows = 256;
  Device device = checked(Device::open("emulator", {.threads = static_cast<int>(state.range(0))}));
  LoadedKernel kernel =
      checked(checked(device.load(compiled(), "kernels_sm80.ptx")).kernel("softmax_rows"));
  Buffer in = checked(device.allocate(columns * rows * 4));
  const Buffer out = checked(device.allocate(columns * rows * 4));
  checked(in.write(std::vector<float>(columns * rows, 1.0f)));
  for (auto _ : state) {
    checked(
        kernel.launch({.grid = {rows}, .block = {128}}, Arguments().add(in).add(out).add(columns)));
    checked(device.synchronize());
  }
  state.counters["lane-instructions"] = benchmark::Counter(
      static_cast<double>(device.report().lane_instructions), benchmark::Counter::kIsRate);
}
BENCHMARK(softmax)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

// ---- Decoding: every kernel of a module.

void rate(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(compiled().size()) * state.iterations());
}

void parse_and_decode(benchmark::State& state) {
  Device device = checked(Device::open("emulator"));
  for (auto _ : state) {
    const Module module = checked(device.load(compiled(), "kernels_sm80.ptx"));
    for (const std::string& name : module.kernels())
      benchmark::DoNotOptimize(checked(module.kernel(name)));
  }
  rate(state);
}
BENCHMARK(parse_and_decode)->Unit(benchmark::kMillisecond);

void decode(benchmark::State& state) {
  Diags diags;
  const ptx::Module tree =
      ptx::parse(std::make_shared<Source>("kernels_sm80.ptx", compiled()), diags);
  for (auto _ : state)
    for (const std::string_view name : tree.kernels())
      benchmark::DoNotOptimize(emulator::Decoder(tree, {}, emulator::Hardware::sm_90, diags)
                                   .decode(*tree.function(name)));
  if (!diags.ok()) state.SkipWithError(diags.text().c_str());
  rate(state);
}
BENCHMARK(decode)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tartan

BENCHMARK_MAIN();
