// SPDX-License-Identifier: Apache-2.0
// The gated delta rule in chunks and token by token, against its recurrence.
#include "tests/kernels/delta_rule_run.h"

namespace tartan {
namespace {

using namespace testing_delta_rule;

Target target_of(const char* arch) { return *Target::parse(arch); }

Device checked() { return *Device::open("emulator", {.checks = Checks::all}); }

DeltaRule on(const char* arch, DeltaRule with = {}) { return tuned(with, target_of(arch)); }

TEST(DeltaRule, IsTheRecurrenceOfOneChunk) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    Device device = checked();
    expect_prefill(device, target_of(arch), on(arch), {.lengths = {64}});
  }
}

TEST(DeltaRule, IsTheRecurrenceOfPackedSequences) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    Device device = checked();
    expect_prefill(device, target_of(arch), on(arch),
                   {.key_dim = 64, .value_dim = 64, .lengths = {150, 0, 1, 64, 63, 65}, .heads = 2,
                    .before = 3, .after = 70});
  }
}

}  // namespace
}  // namespace tartan
