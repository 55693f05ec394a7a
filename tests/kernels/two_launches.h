// SPDX-License-Identifier: Apache-2.0
// tests/kernels/two_launches.h - launches a kernel whose counters must be as before after a launch.
#pragma once

#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include "tests/kernels/findings.h"

namespace tartan::test {

/// The bytes of `out` after two launches on the same buffers, before each of which it is filled
/// with ones. Fails the test, and is empty, if an error or a finding comes up; fails if the second
/// launch gives other bytes.
inline std::vector<std::byte> two_launches(Device& device, LoadedKernel& kernel,
                                           const Compiled& compiled, unsigned blocks,
                                           const Arguments& arguments, Buffer& out) {
  std::vector<std::byte> before;
  for (int launches = 0; launches < 2; ++launches) {
    EXPECT_TRUE(out.fill(0xFF));
    device.clear_findings();
    const auto launched = launch(kernel, compiled, {blocks}, arguments);
    EXPECT_TRUE(launched) << (launched ? "" : launched.diags().text());
    if (!launched) return {};
    const auto status = device.synchronize();
    EXPECT_TRUE(status) << (status ? "" : status.diags().text());
    for (const Finding& finding : defects(device))
      ADD_FAILURE() << finding.id << ": " << finding.message;
    if (!status || testing::Test::HasFailure()) return {};
    const auto now = *out.read_all<std::byte>();
    EXPECT_TRUE(!launches || now == before) << "a second launch differs";
    before = now;
  }
  return before;
}

}  // namespace tartan::test
