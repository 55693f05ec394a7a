// SPDX-License-Identifier: Apache-2.0
// Codes of a sparse product's metadata that the manual does not define, in launches with checks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

struct Product {
  std::string variant = "sp::ordered_metadata", shape = "m16n8k16", type = "f16";
  std::string metadata;  // code that sets r5
  int selector = 0;
  Checks checks = Checks::all;
};

KernelRun loaded(const Product& product) {
  const std::string body =
      "mov.f32 f1, 0f00000000;\nmov.b32 r4, 0;\n" + product.metadata +
      fmt::format(
          "mma.{0}.sync.aligned.{1}.row.col.f32.{2}.{2}.f32 {{f2, f3, f4, f5}}, {{r4, r4}}, "
          "{{r4, r4}}, {{f1, f1, f1, f1}}, r5, {3};\nst.global.f32 [rd1], f2;\n",
          product.variant, product.shape, product.type, product.selector);
  DeviceOptions options;
  options.checks = product.checks;
  return run_body(body, {.grid = {1}, .block = {32}}, 1024, options);
}

KernelRun run(const Product& product) {
  KernelRun out = loaded(product);
  EXPECT_EQ(out.complaint, "") << product.metadata;
  return out;
}

std::string found(const Product& product) {
  const KernelRun out = run(product);
  return out.findings.empty() ? "" : out.findings[0].id;
}

std::string all(std::uint32_t word) { return fmt::format("mov.b32 r5, {};\n", word); }

TEST(SparseMetadata, IllegalCodes) {
  for (const std::uint32_t equal : {0x44444440u, 0x44544444u, 0xA4444444u, 0x444F4444u}) {
    EXPECT_EQ(found({.metadata = all(equal)}), "sparse-metadata") << equal;
    EXPECT_EQ(found({.variant = "sp", .metadata = all(equal)}), "sparse-metadata") << equal;
  }
  for (const std::uint32_t descending : {1u, 2u, 3u, 6u, 7u, 11u})
    EXPECT_EQ(found({.metadata = all(0x44444440 | descending)}), "sparse-metadata") << descending;
  for (const std::uint32_t code : {8u, 9u, 12u, 13u})
    EXPECT_EQ(found({.shape = "m16n8k8", .type = "tf32", .metadata = all(0x44444440 | code)}),
              "sparse-metadata");
  // In the lane that the selector names.
  EXPECT_EQ(found({.metadata = all(0x44444444) + "setp.eq.u32 p, r0, 6;\n@p mov.b32 r5, 0;\n",
                   .selector = 2}),
            "sparse-metadata");
}

TEST(SparseMetadata, Selectors) {
  const std::string codes = all(0x44444444);
  for (const int illegal : {-1, 4, 132224})
    EXPECT_NE(loaded({.metadata = codes, .selector = illegal}).complaint.find("0 to 3"),
              std::string::npos)
        << illegal;
  EXPECT_NE(loaded({.shape = "m16n8k8", .type = "tf32", .metadata = codes, .selector = 4})
                .complaint.find("0 to 3"),
            std::string::npos);
}

TEST(SparseMetadata, LegalCodes) {
  for (const std::uint32_t code : {4u, 8u, 9u, 12u, 13u, 14u}) {
    EXPECT_EQ(found({.metadata = all(code * 0x11111111)}), "") << code;
    EXPECT_EQ(found({.variant = "sp", .metadata = all(code * 0x11111111)}), "") << code;
  }
  for (const std::uint32_t code : {4u, 14u})
    EXPECT_EQ(found({.shape = "m16n8k8", .type = "tf32", .metadata = all(code * 0x11111111)}), "");
  // Without .ordered_metadata the order is free.
  EXPECT_EQ(found({.variant = "sp", .metadata = all(0x11111111)}), "");
  EXPECT_EQ(found({.variant = "sp", .metadata = all(0xBBBBBBBB)}), "");
  // Of lanes that the selector does not name, nothing is read.
  EXPECT_EQ(found({.metadata = all(0x44444444) + "setp.eq.u32 p, r0, 6;\n@p mov.b32 r5, 0;\n",
                   .selector = 1}),
            "");
  EXPECT_EQ(found({.metadata = all(0), .checks = Checks::none}), "");
}

TEST(SparseMetadata, TheMessageNamesTheCode) {
  const KernelRun out = run({.metadata = all(0x444B4444)});
  ASSERT_EQ(out.findings.size(), 1u);
  EXPECT_EQ(out.findings[0].message,
            "illegal sparse metadata: expected increasing indices, found 0b1011 (indices 3 and 2) "
            "for row 8, group 0 of A, in bits 16 to 19 of 0x444b4444");
  EXPECT_EQ(out.findings[0].lane, 0);
}

}  // namespace
}  // namespace tartan::test
