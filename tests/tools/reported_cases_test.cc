// SPDX-License-Identifier: Apache-2.0
// Kernels of public bug reports (tests/data/cases): what `tartan run` says about them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/paths.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

void expect_run(const std::string& manifest, int code, const std::string& words) {
  const test::Ran ran = test::shell(fmt::format(
      "cd {}/cases && {} run {}.json --device emulator 2>&1", TEST_DATA, TARTAN_COMMAND, manifest));
  EXPECT_EQ(ran.code, code) << manifest << ": " << ran.out;
  EXPECT_NE(ran.out.find(words), std::string::npos)
      << manifest << ": " << ran.out << "expected: " << words;
}

TEST(ReportedCases, AnAliasIsCalled) {
  expect_run("42-alias-call/k", 0, "as expected, bit for bit");
}

TEST(ReportedCases, AnAddressInTheWrongStateSpaceIsNamed) {
  const std::string folder = "46-ldmatrix-without-shared/",
                    offset =
                        "it is the offset of tile in shared memory: use .shared or cvta.shared",
                    global = "in buffer out: a global address; use .global";
  expect_run(folder + "right", 0, "as expected");
  for (const std::string each : {"k", "n1", "n2"}) expect_run(folder + each, 3, offset);
  for (const std::string each : {"n3", "n4"}) expect_run(folder + each, 3, global);
}

TEST(ReportedCases, TheFieldsOfAMatrixDescriptorAreNamed) {
  const std::string folder = "54-descriptor-offsets-in-bytes/";
  expect_run(folder + "right", 0, "as expected");
  expect_run(folder + "wrong", 3,
             "A: the stride offset leads to 0x1000 for row 8, k 0, beyond 2304 bytes");
  expect_run(folder + "wrong", 3, "stride offset 0x1000 (field 256 · 16)");
  expect_run(folder + "n1_swapped", 3, "B: the leading offset leads to 0x900 for column 0, k 8");
  expect_run(folder + "n2_address_in_bytes", 3, "start address 0x8000 (field 2048 · 16)");
  expect_run(folder + "n2_address_in_bytes", 3, "B: the start address leads to 0x8000");
  expect_run(folder + "n4_sbo64", 3, "stride offset 0x400 (field 64 · 16)");
}

}  // namespace
}  // namespace tartan
