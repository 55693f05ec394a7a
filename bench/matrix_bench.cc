// SPDX-License-Identifier: Apache-2.0
// bench/matrix_bench.cc - multiply-adds per second of the emulator's matrix products, by form and
// path.
#include <benchmark/benchmark.h>

#include <array>
#include <random>

#include "runtime/emulator/matrix/matrix.h"
#include "tartan/isa/fragment.h"

namespace tartan::emulator {
namespace {

// The registers of one operand, filled with numbers of its type near one.
class Registers {
 public:
  Registers(const isa::Fragment& fragment, std::mt19937& random)
      : words_(static_cast<std::size_t>(fragment.registers)) {
    std::normal_distribution<float> normal;
    for (auto& reg : words_)
      for (std::uint64_t& word : reg) {
        word = random();
        if (fragment.type == f16) word = half(normal(random)) | half(normal(random)) << 16;
        if (fragment.type == bf16)
          word = single(normal(random)) >> 16 | (single(normal(random)) & 0xFFFF0000);
        if (fragment.type == f32 || fragment.type == tf32) word = single(normal(random));
        if (bits(fragment.type) == 8 && info(fragment.type).floating) word &= 0xBFBFBFBF;  // no NaN
        if (fragment.type == f64)
          word = std::bit_cast<std::uint64_t>(static_cast<double>(normal(random)));
      }
    for (auto& reg : words_) {
      if (fragment.register_bits == 32)
        for (std::size_t lane = 0; lane < 32; ++lane)
          reinterpret_cast<std::uint32_t*>(reg.data())[lane] =
              static_cast<std::uint32_t>(reg[lane]);
      pointers_.push_back(reg.data());
    }
  }
  void* const* pointers() const { return pointers_.data(); }

 private:
  static std::uint32_t single(float value) { return std::bit_cast<std::uint32_t>(value); }
  static std::uint32_t half(float value) {  // of ordinary size, truncated
    const std::uint32_t bits = single(value + (value < 0 ? -0x1p-10f : 0x1p-10f));
    return (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3FFFF) - (112 << 10));
  }
  std::vector<std::array<std::uint64_t, 32>> words_;
  std::vector<void*> pointers_;
};

void product(benchmark::State& state, const char* mnemonic, Hardware hardware, Path path) {
  const isa::Form form = isa::parse_form(mnemonic).form;
  auto made = MatrixProduct::make(form, hardware, path);
  if (!made) return state.SkipWithError(made.diags().text().c_str());
  std::mt19937 random(1);
  const Registers a(isa::fragment(form, Operand::a), random),
      b(isa::fragment(form, Operand::b), random);
  const Registers c(isa::fragment(form, Operand::c), random),
      d(isa::fragment(form, Operand::d), random);
  std::array<std::uint32_t, 32> metadata, scale;
  metadata.fill(0xE94C'8D4E);
  scale.fill(0x7F7F7F7F);
  MatrixOperands operands;
  operands.a = a.pointers();
  operands.b = b.pointers();
  operands.c = c.pointers();
  operands.d = d.pointers();
  operands.metadata = metadata.data();
  operands.scale_a = operands.scale_b = scale.data();
  Scratch scratch;
  for (auto _ : state) {
    made->run(operands, scratch);
    benchmark::ClobberMemory();
  }
  state.counters["multiply-adds"] = benchmark::Counter(
      static_cast<double>(made->multiply_adds()) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

const char* const half_product = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";

BENCHMARK_CAPTURE(product, f16_f32, half_product, Hardware::sm_90, Path::best);
BENCHMARK_CAPTURE(product, f16_f32_avx512, half_product, Hardware::sm_90, Path::avx512);
BENCHMARK_CAPTURE(product, f16_f32_avx2, half_product, Hardware::sm_90, Path::avx2);
BENCHMARK_CAPTURE(product, f16_f32_portable, half_product, Hardware::sm_90, Path::portable);
BENCHMARK_CAPTURE(product, f16_f32_reference, half_product, Hardware::sm_90, Path::reference);
BENCHMARK_CAPTURE(product, f16_f32_sm_80, half_product, Hardware::sm_80, Path::best);
BENCHMARK_CAPTURE(product, f16_f16, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
                  Hardware::sm_90, Path::best);
BENCHMARK_CAPTURE(product, bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
                  Hardware::sm_90, Path::best);
BENCHMARK_CAPTURE(product, tf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
                  Hardware::sm_90, Path::best);
BENCHMARK_CAPTURE(product, e4m3, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
                  Hardware::sm_90, Path::best);
BENCHMARK_CAPTURE(product, e4m3_sm_89, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
                  Hardware::sm_89, Path::best);
BENCHMARK_CAPTURE(product, s8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", Hardware::sm_90,
                  Path::best);
BENCHMARK_CAPTURE(product, b1, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
                  Hardware::sm_90, Path::best);
BENCHMARK_CAPTURE(product, f64, "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
                  Hardware::sm_90, Path::best);
BENCHMARK_CAPTURE(product, sparse_f16, "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
                  Hardware::sm_90, Path::best);
BENCHMARK_CAPTURE(product, wmma_f16, "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
                  Hardware::sm_90, Path::best);
BENCHMARK_CAPTURE(product, mxf4,
                  "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1."
                  "e2m1.f32.ue8m0",
                  Hardware::sm_120, Path::best);

}  // namespace
}  // namespace tartan::emulator

BENCHMARK_MAIN();
