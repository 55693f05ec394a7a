// SPDX-License-Identifier: Apache-2.0
// Time in proportion to the text: of each pattern, a text and one four times as long are checked,
// printed and loaded. Processor time of this thread, and the best of several tries, since other
// programs may run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <string>

#include "tartan/ptx/parser.h"
#include "tartan/runtime/device.h"
#include "tartan/verify/verify.h"
#include "tests/support/sanitizer.h"

namespace tartan {
namespace {

using Piece = std::function<std::string(int i, int n)>;

std::string repeated(int n, const Piece& piece) {
  std::string out;
  for (int i = 0; i < n; ++i) out += piece(i, n);
  return out;
}

// n pieces of the kernel's body, behind n pieces of the module.
struct Pattern {
  std::string name;
  Piece body, module = {};
  std::string before = {}, after = {};
};

std::string listed(int n, std::string_view what) {
  return repeated(n, [&](int i, int) { return fmt::format("{}{}{}", i ? "," : "", what, i); });
}

std::string text_of(const Pattern& of, int n) {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n" +
         (of.module ? repeated(n, of.module) : "") +
         ".visible .entry k()\n{\n.reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p<4>;\n" +
         of.before + repeated(n, of.body) + of.after + "ret;\n}\n";
}

std::string nothing(int, int) { return ""; }

const Pattern patterns[] = {
    {"instructions", [](int i, int) { return fmt::format("add.u32 %r1, %r2, {};\n", i); }},
    {"registers", [](int i, int) { return fmt::format(".reg .b32 a{0}; mov.u32 a{0}, 1;\n", i); }},
    {"branches to anywhere",
     [](int i, int n) {
       return fmt::format("L{}: add.u32 %r1, %r1, 1; @%p0 bra L{};\n", i, i * 7919LL % n);
     }},
    {"registers and branches",
     [](int i, int n) {
       return fmt::format(".reg .b32 z{0}; L{0}: add.u32 z{0}, z{0}, 1; @%p0 bra L{1};\n", i,
                          i * 7919LL % n);
     }},
    {"copies and branches",
     [](int i, int n) {
       return fmt::format(
           "L{}: cp.async.ca.shared.global [%r1], [%d1], 4; @%p0 bra L{}; ld.shared.u32 %r2, "
           "[%r1];\n",
           i, i * 7919LL % n);
     }},
    {"one loop", [](int, int) { return "add.u32 %r1, %r1, 1; @%p0 bra L;\n"; }, {}, "L:\n"},
    {"blocks in each other",
     [](int i, int n) {
       return i < n / 2 ? std::string("{ .reg .b32 q; mov.u32 q, 1;\n") : i < n / 2 * 2 ? "}" : "";
     }},
    {"blocks", [](int, int) { return "{ .reg .b32 q; mov.u32 q, 1; }\n"; }},
    {"functions", nothing, [](int i, int) { return fmt::format(".func f{}() {{ ret; }}\n", i); }},
    {"a chain of calls",
     [](int i, int n) { return i + 1 < n ? "" : fmt::format("call f{};\n", i); },
     [](int i, int) {
       return fmt::format(".func f{}() {{ {} ret; }}\n", i,
                          i ? fmt::format("call f{};", i - 1) : "");
     }},
    {"kernels that call", nothing,
     [](int i, int) {
       const std::string call = i ? fmt::format("call f{0}; call f{1};", i - 1, i / 2) : "";
       return fmt::format(
           ".func f{0}() {{ {1} ret; }}\n.visible .entry e{0}() {{ call f{0}; ret; }}\n", i, call);
     }},
    {"targets of a call",
     [](int i, int n) {
       return i ? "call %d1, names;\n" : "names: .calltargets " + listed(n, "f") + ";\n";
     },
     [](int i, int) { return fmt::format(".func f{}() {{ ret; }}\n", i); }},
    {"calls with too few arguments", [](int, int) { return "call f;\n"; },
     [](int i, int n) {
       return i ? "" : fmt::format(".func f({}) {{ ret; }}\n", listed(n, ".reg .b32 a"));
     }},
    {"targets of a branch",
     [](int i, int n) {
       return i ? fmt::format("L{}: add.u32 %r1, %r1, 1;\n", i)
                : "names: .branchtargets " + listed(n, "L") + ";\nL0: brx.idx %r1, names;\n";
     }},
    {"variables", [](int i, int) { return fmt::format("ld.global.u32 %r1, [g{}];\n", i); },
     [](int i, int) { return fmt::format(".global .u32 g{} = {};\n", i, i); }},
    {"shared variables", [](int i, int) { return fmt::format("ld.shared.u8 %r1, [g{}];\n", i); },
     [](int i, int) { return fmt::format(".shared .u8 g{};\n", i); }},
    {"dynamic variables", [](int i, int) { return fmt::format("ld.shared.u8 %r1, [g{}];\n", i); },
     [](int i, int) { return fmt::format(".extern .shared .u8 g{}[];\n", i); }},
    {"local variables",
     [](int i, int) { return fmt::format(".local .u8 l{0}; st.local.u8 [l{0}], %r1;\n", i); }},
    {"lines of a source",
     [](int i, int) { return fmt::format(".loc {} {} 1\nadd.u32 %r1, %r1, 1;\n", i + 1, i + 1); },
     [](int i, int) { return fmt::format(".file {} \"a{}.cu\"\n", i + 1, i); }},
    {"undeclared names", [](int i, int) { return fmt::format("add.u32 u{0}, u{0}, 1;\n", i); }},
    {"unknown qualifiers", [](int i, int) { return fmt::format("add.u32.q{} %r1, %r1, 1;\n", i); }},
    {"one line", [](int, int) { return "add.u32 %r1, %r1, 1;"; }},
    {"one line of mistakes", [](int, int) { return "add.u32 u, %r1, 1;"; }},
    {"empty statements", [](int, int) { return ";;;;"; }},
    {"a sum", [](int, int) { return "+1"; }, {}, "mov.u32 %r1, 1", ";\n"},
    {"operands", [](int, int) { return ", %r1"; }, {}, "add.u32 %r1", ";\n"},
    {"elements", [](int, int) { return ", %r1"; }, {}, "mov.b32 {%r1", "}, %r2;\n"},
};

void use(const std::string& text) {
  const auto source = std::make_shared<const Source>("k.ptx", text);
  (void)verify::check(source, {.max_errors = 100});
  Diags diags;
  const ptx::Module module = ptx::parse(source, diags);
  if (diags.ok()) (void)ptx::print(module);
  auto device = Device::open("emulator", {.checks = Checks::all});
  const auto loaded = device->load(text, "k.ptx");
  if (!loaded) return;
  (void)loaded->kernel("k");
  (void)loaded->warnings();
}

double seconds(const std::string& text) {
  const auto now = [] {
    std::timespec at{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return static_cast<double>(at.tv_sec) + 1e-9 * static_cast<double>(at.tv_nsec);
  };
  const double begin = now();
  use(text);
  return now() - begin;
}

TEST(Growth, TimeIsInProportionToTheText) {
  if (test::sanitized()) GTEST_SKIP() << "the sanitizer's time is another one";
  constexpr int count = 1000, factor = 4;
  for (const Pattern& each : patterns) {
    const std::string shorter = text_of(each, count), longer = text_of(each, factor * count);
    // Quadratic time is 16 times as long; 20 ms are not worth a look.
    double ratio = 0, least = 1e9, long_one = 1e9;
    for (int i = 0; i < 5; ++i) {
      least = std::min(least, seconds(shorter));
      long_one = std::min(long_one, seconds(longer));
      ratio = long_one / least;
      if (long_one < 0.02 || ratio < 8) break;
    }
    EXPECT_TRUE(long_one < 0.02 || ratio < 8)
        << each.name << ": " << least << " s, and " << long_one << " s for " << factor
        << " times the text";
    EXPECT_LT(long_one, 2) << each.name;
  }
}

}  // namespace
}  // namespace tartan
