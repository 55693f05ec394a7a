// SPDX-License-Identifier: Apache-2.0
// activation(gate) * up against a loop in double.
#include <cmath>

#include "tests/kernels/activations.h"
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Activation;
using kernels::Gate;
using testing_gemm::activated;
using testing_gemm::Bytes;

Bytes encoded(Type type, const std::vector<double>& values) {
  Bytes out;
  for (const double value : values) {
    const std::uint64_t word = testing_numbers::float_bits(type, value);
    for (int byte = 0; byte < bits(type) / 8; ++byte)
      out.push_back(static_cast<std::byte>(word >> 8 * byte));
  }
  return out;
}

// The largest error, relative to 1 and the result. Elements beyond `count` must stay unchanged.
double error(const Gate& options, std::uint32_t count, unsigned blocks) {
  std::vector<double> gate, up;
  for (std::uint32_t i = 0; i < count; ++i) {
    gate.push_back(static_cast<int>(i * 37 % 97) / 8.0 - 6);
    up.push_back(static_cast<int>(i * 11 % 29) / 4.0 - 3);
  }
  const Bytes gates = encoded(options.type, gate), ups = encoded(options.type, up);
  constexpr std::size_t guard = 64;
  const testing_gemm::Launch launch{
      {blocks}, [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
        buffers.push_back(testing_gemm::buffer_of(device, gates));
        buffers.push_back(testing_gemm::buffer_of(device, ups));
        Buffer out = *device.allocate(gates.size() + guard);
        EXPECT_TRUE(out.fill(0xAB));
        arguments.add(count).add(buffers[0]).add(buffers[1]).add(out);
        return out;
      }};
  const bool exact = options.activation <= Activation::relu;  // the others approximate
  Bytes got =
      testing_gemm::run(kernels::gate(options), testing_gemm::target("sm_80"), launch, exact);
  if (got.size() != gates.size() + guard) return INFINITY;
  EXPECT_TRUE(
      std::all_of(got.end() - guard, got.end(), [](std::byte b) { return b == std::byte{0xAB}; }));
  got.resize(gates.size());
  const std::vector<double> values = testing_numbers::decode(options.type, got);
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double want = activated(options.activation, gate[i]) * up[i];
    const double off = std::abs(values[i] - want) / (1 + std::abs(want));
    worst = off <= worst ? worst : off;  // NaN counts
  }
  return worst;
}

TEST(Gate, EveryActivationAndType) {
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu,
                                      Activation::silu, Activation::sigmoid})
    for (const auto& [type, tolerance] :
         {std::pair{f16, 1e-3}, std::pair{bf16, 8e-3}, std::pair{f32, 1.5e-3}}) {
      SCOPED_TRACE(fmt::format("{}, activation {}", name(type), static_cast<int>(activation)));
      EXPECT_LE(error({activation, type}, 1000, 1), tolerance);
    }
}

TEST(Gate, EverySizeAndGrid) {
  EXPECT_EQ(kernels::gate_elements(f16), 2048);
  EXPECT_EQ(kernels::gate_elements(f32), 1024);
  for (const std::uint32_t count : {2u, 510u, 2046u, 2048u, 2050u, 5000u})
    for (const Type type : {f16, f32}) {
      SCOPED_TRACE(fmt::format("{} of {}", count, name(type)));
      const auto blocks = count / static_cast<unsigned>(kernels::gate_elements(type)) + 1;
      EXPECT_LE(error({.type = type}, count, blocks), 1e-3);
      EXPECT_LE(error({.type = type}, count, blocks + 3), 1e-3);
    }
  EXPECT_LE(error({.type = f32}, 1023, 1), 1e-3);
}

TEST(Gate, RefusesOtherTypes) {
  const auto compiled =
      compile(kernels::gate({.type = Type::e4m3}), testing_gemm::target("sm_90a"));
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.diags()[0].message, "unsupported type e4m3: expected f16, bf16 or f32");
}

}  // namespace
}  // namespace tartan
