// SPDX-License-Identifier: Apache-2.0
// Programs about the order of accesses to shared memory: each once with what orders it, when it
// must compile without a word and run without a race, and once without, when it must be refused at
// the line of the access.
#pragma once

#include <gtest/gtest.h>
#include <tartan/tartan.h>

#include <functional>
#include <source_location>
#include <string_view>
#include <vector>

#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"

namespace tartan::testing_order {

inline constexpr int block = 128, warps = block / 32;

// What the programs access. All of it is zeros.
struct Given {
  Builder& k;
  Global in, out;  // f32, 128 x 128
  Shared s;        // f32, 1 x 128
  Shared tile;     // f16, 64 x 64
  Global halves;   // f16, 128 x 128
  Scalar t, n;     // the thread; a parameter, 4
  bool right;      // with barriers

  Scalar element(const Scalar& col) const { return k.read(in, 0, col); }
  void order() const {
    if (right) k.barrier();
  }
  void order_warp() const {
    if (right) k.warp_sync();
  }
};

struct Program {
  std::string_view name;
  std::function<void(Given&)> body;
  std::vector<std::string_view> told;  // of the wrong one; none: both are right
  int producers = 0;
};

// Static shared memory is 48 KB at most.
inline Kernel kernel_of(const Program& program, bool right, bool dynamic) {
  return kernel("program", {.block = block, .producers = program.producers}, [=](Builder& k) {
    auto in = k.global("in", f32, row_major(128, 128)),
         out = k.global("out", f32, row_major(128, 128));
    auto halves = k.global("halves", f16, row_major(128, 128));
    auto n = k.param("n", s32);
    auto s = k.shared("s", f32, row_major(1, 128));
    auto tile = k.shared("tile", f16, row_major(64, 64).swizzled(Swizzle{3, 3, 3}));
    if (dynamic) (void)k.shared("room", f32, row_major(100, 128));
    Given given{k, in, out, s, tile, halves, k.thread(), n, right};
    program.body(given);
  });
}

inline void expect_race_free(const Compiled& compiled) {
  Device device =
      test::open_engine({.hardware = compiled.target.arch.text(), .checks = Checks::all});
  std::vector<float> in(128 * 128), out(128 * 128);
  std::vector<std::byte> halves(2 * 128 * 128);
  const auto done = run(device, compiled, {1}, tartan::in(in), in_out(out), in_out(halves), 4);
  EXPECT_TRUE(done) << done.diags().text();
  for (const Finding& finding : device.findings()) {
    // Between loads and TMA the manual asks for a fence that hardware does without.
    if (finding.id != "proxy-fence-read") ADD_FAILURE() << finding.id << ": " << finding.message;
  }
}

inline void check(const Program& program,
                  const std::source_location& at = std::source_location::current()) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const bool dynamic : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << program.name << " on " << target << (dynamic ? ", dynamic" : ""));
      const Arch arch = *Arch::parse(target);
      const auto right = compile(kernel_of(program, true, dynamic), arch);
      EXPECT_TRUE(right) << right.diags().text();
      if (right) expect_race_free(*right);
      if (program.told.empty()) continue;
      test::expect_told(compile(kernel_of(program, false, dynamic), arch), program.told, at);
    }
}

}  // namespace tartan::testing_order
