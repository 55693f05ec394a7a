// SPDX-License-Identifier: Apache-2.0
// Matrix descriptors: addresses by hand, and accesses outside shared memory. matrix_golden_test.cc
// checks results.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "runtime/emulator/matrix/wgmma.h"
#include "tartan/isa/fragment.h"
#include "tartan/isa/instruction.h"

namespace tartan::emulator {
namespace {

std::uint64_t pack(std::uint64_t start, std::uint64_t leading, std::uint64_t stride,
                   std::uint64_t mode, std::uint64_t base = 0) {
  return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | base << 49 | mode << 62;
}

TEST(MatrixDescriptor, FieldsAndIgnoredBits) {
  const std::uint64_t ignored = 0x3ull << 14 | 0x3ull << 30 | 0x7ull << 46 | 0x3FFull << 52;
  const MatrixDescriptor descriptor =
      MatrixDescriptor::of(pack(0x1230, 0x80, 0x400, 1, 5) | ignored);
  EXPECT_EQ(descriptor.start, 0x1230u);
  EXPECT_EQ(descriptor.leading, 0x80u);
  EXPECT_EQ(descriptor.stride, 0x400u);
  EXPECT_EQ(descriptor.base, 5);
  EXPECT_EQ(descriptor.width, 128);
  EXPECT_EQ(MatrixDescriptor::of(pack(0, 0, 0, 2)).width, 64);
  EXPECT_EQ(MatrixDescriptor::of(pack(0, 0, 0, 3)).width, 32);
  EXPECT_EQ(MatrixDescriptor::of(pack(0, 0, 0, 0)).width, 0);
}

TEST(MatrixDescriptor, AddressesByHand) {
  const auto at = [](std::uint64_t bits, bool mn_major, int x, int k) {
    return MatrixDescriptor::of(bits).address(mn_major, 16, x, k);
  };
  // No swizzle, K-major: eight rows of 16 bytes, then the next eight rows (stride) or columns
  // (leading).
  const std::uint64_t plain = pack(0x1000, 128, 256, 0);
  EXPECT_EQ(at(plain, false, 0, 0), 0x1000u);
  EXPECT_EQ(at(plain, false, 3, 7), 0x1000u + 3 * 16 + 14);
  EXPECT_EQ(at(plain, false, 0, 8), 0x1000u + 128);
  EXPECT_EQ(at(plain, false, 8, 0), 0x1000u + 256);
  // MN-major: the two offsets are swapped.
  EXPECT_EQ(at(plain, true, 7, 1), 0x1000u + 16 + 14);
  EXPECT_EQ(at(plain, true, 8, 0), 0x1000u + 256);
  EXPECT_EQ(at(plain, true, 0, 8), 0x1000u + 128);
  // 128-byte rows: row r's chunk c is at chunk c ^ r.
  const std::uint64_t swizzled = pack(0x1000, 16, 1024, 1);
  EXPECT_EQ(at(swizzled, false, 0, 9), 0x1000u + 16 + 2);
  EXPECT_EQ(at(swizzled, false, 5, 8), 0x1000u + 5 * 128 + (1 ^ 5) * 16);
  EXPECT_EQ(at(swizzled, false, 13, 0), 0x1000u + 1024 + 5 * 128 + 5 * 16);
  // The base offset is subtracted from the row.
  EXPECT_EQ(at(pack(0x1080, 16, 1024, 1, 1), false, 0, 8), 0x1080u + 16);
  // 64 and 32-byte rows repeat after four and two lines of 128 bytes.
  EXPECT_EQ(at(pack(0, 16, 512, 2), false, 2, 0), 128u + 16);
  EXPECT_EQ(at(pack(0, 16, 256, 3), false, 4, 0), 128u + 16);
}

// Every mode gives each element its own place.
TEST(MatrixDescriptor, NoTwoElementsShareAnAddress) {
  for (int mode = 0; mode < 4; ++mode)
    for (const bool mn_major : {false, true}) {
      const int width = mode ? 256 >> mode : 16;
      // Dense tiles: K-major 64 x 16; MN-major the same, blocks of `width` bytes along x.
      const std::uint64_t stride = mode ? 8 * static_cast<unsigned>(width) : mn_major ? 128 : 256;
      const std::uint64_t leading = mode ? 2 * stride : mn_major ? 1024 : 128;
      const MatrixDescriptor descriptor =
          MatrixDescriptor::of(pack(2048, leading, stride, static_cast<unsigned>(mode)));
      std::set<std::uint64_t> addresses;
      for (int x = 0; x < 64; ++x)
        for (int k = 0; k < 16; ++k) addresses.insert(descriptor.address(mn_major, 16, x, k));
      EXPECT_EQ(addresses.size(), 64u * 16u) << "mode " << mode << ", mn_major " << mn_major;
    }
}

struct Warpgroup {
  isa::Form form;
  std::vector<std::vector<std::uint32_t>> d;
  std::vector<std::uint32_t*> pointers;
  std::vector<std::uint16_t> shared = std::vector<std::uint16_t>(4096, 0x3C00);  // 8 KB of ones

  explicit Warpgroup(const char* mnemonic) : form(isa::parse_form(mnemonic).form) {
    d.assign(static_cast<std::size_t>(isa::fragment(form, Operand::d).registers),
             std::vector<std::uint32_t>(128, 0x40000000));  // 2
    for (auto& reg : d) pointers.push_back(reg.data());
  }
  WgmmaOperands operands(std::uint64_t a, std::uint64_t b) {
    WgmmaOperands out;
    out.d = pointers.data();
    out.a_descriptor = a;
    out.b_descriptor = b;
    out.shared = std::as_bytes(std::span(shared));
    return out;
  }
};

TEST(WgmmaProduct, ScalesAndNegates) {
  Warpgroup group("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16");
  auto product = WgmmaProduct::make(group.form);
  ASSERT_TRUE(product);
  EXPECT_EQ(product->multiply_adds(), 64u * 8 * 16);
  WgmmaOperands operands = group.operands(pack(0, 128, 256, 0), pack(0, 128, 256, 0));
  Scratch scratch;
  ASSERT_TRUE(product->run(operands, scratch));
  for (const auto& reg : group.d)
    for (const std::uint32_t word : reg) ASSERT_EQ(word, 0x41900000u);  // 2 + 16
  operands.scale_a = -1;
  operands.scale_d = false;
  for (auto& reg : group.d) reg.assign(128, 0x7FC00000);  // not read
  ASSERT_TRUE(product->run(operands, scratch));
  for (const auto& reg : group.d)
    for (const std::uint32_t word : reg) ASSERT_EQ(word, 0xC1800000u);  // -16
}

TEST(WgmmaProduct, FaultsOutsideSharedMemory) {
  Warpgroup group("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16");
  auto product = WgmmaProduct::make(group.form);
  ASSERT_TRUE(product);
  Scratch scratch;
  const auto status =
      product->run(group.operands(pack(8192 - 1024, 128, 256, 0), pack(0, 128, 256, 0)), scratch);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.diags()[0].id, "memory-fault");
  for (const auto& reg : group.d)
    for (const std::uint32_t word : reg) ASSERT_EQ(word, 0x40000000u);
  EXPECT_FALSE(
      WgmmaProduct::make(isa::parse_form("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32").form));
}

}  // namespace
}  // namespace tartan::emulator
