// SPDX-License-Identifier: Apache-2.0
// Descriptors of tcgen05: what `tartan check` calls illegal the emulator refuses too, and what they
// both take means the same. The emulator is narrower: it refuses what no source tells.
#include <gtest/gtest.h>

#include <random>

#include "compiler/isa/tensor_descriptors.h"
#include "runtime/emulator/matrix/tensor_descriptor.h"

namespace tartan::emulator {
namespace {

constexpr std::uint64_t all = ~std::uint64_t{0};

TEST(EmulatorTensorDescriptors, CheckCallsNoneIllegalThatRuns) {
  std::mt19937 random(11);
  int legal = 0;
  for (int i = 0; i < 400'000; ++i) {
    const auto kind = static_cast<TensorKind>(random() % 7);
    const bool sparse = random() % 2;
    // Near to a legal one: some fields at random.
    std::uint32_t bits = random() & random() & (random() % 2 ? 0x1F9FFFFF : 0xFFFFFFFF);
    if (random() % 2) bits = (bits & ~0x1F000000u) | (random() % 2 ? 8u : 4u) << 24;
    if (random() % 2) bits &= ~0xE080004Fu;
    bits = (bits & ~4u) | static_cast<std::uint32_t>(sparse) << 2;
    InstructionDescriptor out;
    const std::string refused = decode(kind, {.sparse = sparse}, bits, out);
    isa::TensorMma mma{.kind = static_cast<isa::TensorMmaKind>(kind), .sparse = sparse, .sm = 103};
    mma.scales = kind == TensorKind::mxf8f6f4 ? 1 : is_scaled(kind) ? 4 : 0;
    const std::string illegal = isa::instruction_descriptor_fault(mma, {all, bits});
    const bool id = illegal.find("id of") != std::string::npos;  // a matter of the qualifiers
    if (refused.empty()) {
      ++legal;
      EXPECT_TRUE(illegal.empty() || id) << name(kind) << " " << std::hex << bits << illegal;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(legal, 1000);
}

TEST(EmulatorTensorDescriptors, TilesToo) {
  std::mt19937_64 random(12);
  int legal = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::uint64_t bits = random() & random();
    if (random() % 4) bits = (bits & ~(std::uint64_t{7} << 46)) | std::uint64_t{1} << 46;
    if (random() % 4) bits &= ~(std::uint64_t{0x1FF} << 52 | std::uint64_t{0xC000C000});
    const bool wide = random() % 2;
    TileDescriptor out;
    const std::string refused = decode(bits, wide, 32, out);
    const std::string illegal = isa::tile_descriptor_fault({all, bits}, wide, false);
    if (refused.empty()) {
      ++legal;
      EXPECT_EQ(illegal, "") << std::hex << bits;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(legal, 1000);
}

TEST(EmulatorTensorDescriptors, FieldsThatAreUnknownAreNotJudged) {
  const isa::TensorMma mma;
  EXPECT_EQ(isa::instruction_descriptor_fault(mma, {}), "");
  EXPECT_EQ(isa::tile_descriptor_fault({}, true, false), "");
  // All but one bit of N.
  EXPECT_EQ(isa::instruction_descriptor_fault(mma, {all & ~(1u << 17), 0x8000010}), "");
  EXPECT_NE(isa::instruction_descriptor_fault(mma, {all, 0x8000010}), "");
}

}  // namespace
}  // namespace tartan::emulator
