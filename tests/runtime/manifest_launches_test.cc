// SPDX-License-Identifier: Apache-2.0
// Manifests with several launches ("then"), and launches that may start early.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/runtime/manifest_folder.h"

namespace tartan {
namespace {

// first: out[i] = in[i] + 1 for 64 threads; second: the same, with lines around its load; `reads`:
// only reads, and writes its own buffer.
std::string pair_of_kernels(const std::string& before_load, const std::string& after_load,
                            const std::string& load = "ld.global.u32 %x, [%in];\n",
                            const std::string& store = "st.global.u32 [%out], %x;\n") {
  const auto kernel = [&](const std::string& name, const std::string& body) {
    return ".visible .entry " + name + R"((.param .u64 out, .param .u64 in)
{
.reg .pred %p;
.reg .b32 %thread, %x;
.reg .b64 %out, %in;
ld.param.u64 %out, [out];
ld.param.u64 %in, [in];
mov.u32 %thread, %tid.x;
mad.wide.u32 %in, %thread, 4, %in;
mad.wide.u32 %out, %thread, 4, %out;
)" + body + "ret;\n}\n";
  };
  return ".version 8.0\n.target sm_90\n.address_size 64\n" +
         kernel("first",
                "griddepcontrol.launch_dependents;\nld.global.u32 %x, [%in];\nadd.u32 %x, %x, 1;\n"
                "st.global.u32 [%out], %x;\n") +
         kernel("second", before_load + load + after_load + "add.u32 %x, %x, 1;\n" + store);
}

class ManifestLaunches : public ManifestTest {
 protected:
  // The ids of the findings of both launches; the second one reads `second_in` and writes
  // `second_out`.
  std::string found(const std::string& ptx, const std::string& second_out = "c",
                    const std::string& second_in = "b", bool programmatic = true) {
    write("pair.ptx", ptx);
    const auto read = read_manifest(
        write("m.json", fmt::format(
                            R"({{"ptx": "pair.ptx", "kernel": "first", "grid": [1], "block": [64],
                "params": [{{"buffer": "b", "bytes": 256, "fill": 0}},
                           {{"buffer": "a", "bytes": 256, "fill": 0}}],
                "buffers": [{{"buffer": "c", "bytes": 256, "fill": 0}}],
                "then": [{{"kernel": "second", "grid": [1], "block": [64], "programmatic": {},
                           "params": [{{"address": "{}"}}, {{"address": "{}"}}]}}]}})",
                            programmatic, second_out, second_in)));
    if (!read) return read.diags().text();
    const Outcome outcome = run(*read, "emulator", {.checks = Checks::all});
    if (!outcome.refused.ok()) return outcome.refused.text();
    std::string ids;
    for (const Finding& each : outcome.findings) {
      ids += (ids.empty() ? "" : ", ") + each.id;
      text = each.message;
    }
    return ids;
  }
  std::string text;  // of the last finding
};

constexpr const char* wait = "griddepcontrol.wait;\n";

TEST_F(ManifestLaunches, RunOneAfterTheOther) {
  write("expect.bin", std::string("\2\0\0\0", 4) + std::string("\2\0\0\0", 4));
  write("pair.ptx", pair_of_kernels("", ""));
  const auto read = read_manifest(write("m.json", R"({"ptx": "pair.ptx", "kernel": "first",
      "grid": [1], "block": [2], "params": [{"buffer": "b", "bytes": 8}, {"buffer": "a", "bytes": 8}],
      "then": [{"kernel": "second", "grid": [1], "block": [2],
                "params": [{"buffer": "c", "bytes": 8, "expect": "expect.bin"}, {"address": "b"}]}]})"));
  ASSERT_TRUE(read) << read.diags().text();
  ASSERT_EQ(read->then.size(), 1u);
  EXPECT_FALSE(read->then[0].launch.programmatic);
  ASSERT_EQ(read->all_buffers().size(), 3u);
  const Outcome outcome = run(*read, "emulator", {.checks = Checks::all});
  EXPECT_EQ(outcome.exit_code(), 0) << outcome.text(true) << outcome.complaints(false);
  ASSERT_EQ(outcome.expectations.size(), 1u);
  EXPECT_EQ(outcome.expectations[0].buffer, "c");
}

TEST_F(ManifestLaunches, WhatNobodyWroteIsNotCompared) {
  write("pair.ptx", pair_of_kernels("", ""));
  write("expect.bin", std::string("\1\0\0\0", 4) + std::string(4, '\0'));
  const auto outcome = [&](int threads) {
    const auto read = read_manifest(write(
        "m.json", fmt::format(R"({{"ptx": "pair.ptx", "kernel": "first", "grid": [1], "block": [{}],
                        "params": [{{"buffer": "b", "bytes": 8, "uninitialized": true,
                                     "expect": "expect.bin"}},
                                   {{"buffer": "a", "bytes": 8}}]}})",
                              threads)));
    return run(*read, "emulator", {.checks = Checks::all});
  };
  const Outcome half = outcome(1);  // right by the zeros that memory happens to hold
  EXPECT_EQ(half.exit_code(), 3);
  ASSERT_EQ(half.findings.size(), 1u);
  EXPECT_EQ(half.findings[0].id, "uninitialized-read");
  EXPECT_EQ(half.findings[0].message,
            "buffer b is compared with what is expected, but 4 of its 8 bytes were never written, "
            "from byte 4 on");
  EXPECT_EQ(outcome(2).exit_code(), 1);  // both are 1
}

TEST_F(ManifestLaunches, MistakesHaveTheirPlace) {
  EXPECT_EQ(
      complaints(R"({"ptx": "small.ptx", "kernel": "store", "grid": [1], "block": [1],
          "params": [{"buffer": "out", "bytes": 4}, {"u32": 7}],
          "then": [{"kernel": "store", "grid": [0], "block": [2048], "programmatic": 1,
                    "params": [{"address": "nothing"}, {"u32": -1}]},
                   {"grid": [1], "block": [1], "params": [{"buffer": "out", "bytes": 4}],
                    "then": []}, 7]})"),
      (Texts{
          "then[0].grid[0]: expected a whole number from 1 to 2147483647, found 0 [manifest]",
          "then[0].block[0]: expected a whole number from 1 to 1024, found 2048 [manifest]",
          "then[0].programmatic: expected true or false, found 1 [manifest]",
          "then[0].params[1].u32: expected a whole number from 0 to 4294967295, found -1 "
          "[manifest]",
          "then[1].then: unknown field: expected kernel, grid, block, dynamic_shared, cluster, "
          "cooperative, programmatic, params [manifest]",
          "then[1].kernel: expected a text, found nothing [manifest]",
          "then[2]: expected a launch, found 7 [manifest]",
          "then[1].params[0].buffer: duplicate name: params[0] is also called out [manifest]",
      }));
  EXPECT_EQ(complaints(R"({"ptx": "small.ptx", "kernel": "store", "grid": [1], "block": [1],
          "params": [{"buffer": "out", "bytes": 4}, {"u32": 7}],
          "then": [{"kernel": "store", "grid": [1], "block": [1],
                    "params": [{"address": "nothing"}, {"u32": 1}]}]})"),
            (Texts{"then[0].params[0].address: unknown buffer nothing: expected one of params or "
                   "buffers [manifest]"}));
}

TEST_F(ManifestLaunches, ADependentLaunchReadsEarly) {
  EXPECT_EQ(found(pair_of_kernels("", wait)), "memory-race");
  EXPECT_NE(text.find("written by st.global.u32 on line 17 of kernel first, and that launch may "
                      "still run: griddepcontrol.wait must come first"),
            std::string::npos)
      << text;
  EXPECT_EQ(found(pair_of_kernels("", "")), "memory-race");  // it never waits
  EXPECT_EQ(found(pair_of_kernels(wait, "")), "");
  EXPECT_EQ(found(pair_of_kernels("griddepcontrol.launch_dependents;\n", "")), "memory-race");
  EXPECT_EQ(found(pair_of_kernels("", wait), "c", "b", false), "");  // an ordinary launch
  EXPECT_EQ(found(pair_of_kernels("", wait), "c", "a"), "");  // what the first one only reads
  EXPECT_EQ(found(pair_of_kernels("", wait), "b", "c"), "");
}

TEST_F(ManifestLaunches, ADependentLaunchWritesEarly) {
  EXPECT_EQ(found(pair_of_kernels("", ""), "a", "c"), "memory-race");  // which is still read
  EXPECT_EQ(found(pair_of_kernels("", ""), "b", "c"), "memory-race");  // which is still written
  EXPECT_EQ(found(pair_of_kernels("", wait), "a", "c"), "");
  EXPECT_EQ(found(pair_of_kernels("", ""), "c", "c"), "");
}

TEST_F(ManifestLaunches, OneThreadMayWaitForAll) {
  const std::string first_waits =
      "setp.ne.u32 %p, %thread, 0;\n@%p bra READY;\ngriddepcontrol.wait;\nREADY:\n";
  EXPECT_EQ(found(pair_of_kernels(first_waits, "")), "memory-race");
  EXPECT_EQ(found(pair_of_kernels(first_waits + "bar.sync 0;\n", "")), "");
  EXPECT_EQ(found(pair_of_kernels(first_waits + "bar.warp.sync -1;\n", "")), "memory-race");
  EXPECT_EQ(found(pair_of_kernels("bar.sync 0;\n" + first_waits, "")), "memory-race");
}

TEST_F(ManifestLaunches, CopiesAndAtomicsAreAccessesToo) {
  const auto copied = [](const std::string& before) {
    std::string ptx =
        pair_of_kernels(before, "",
                        "cp.async.ca.shared.global [tile], [%in], 4;\ncp.async.wait_all;\n"
                        "mov.u32 %x, 0;\n");
    return ptx.insert(ptx.find(".visible .entry second"), ".shared .align 16 .b8 tile[4];\n");
  };
  EXPECT_NE(found(copied("")).find("memory-race"), std::string::npos);
  EXPECT_EQ(found(copied(wait)).find("memory-race"), std::string::npos);
  // Two atomics do not race with each other; with an ordinary store, one does.
  std::string both = pair_of_kernels("", "", "red.global.add.u32 [%in], 1;\nmov.u32 %x, 0;\n");
  EXPECT_EQ(found(both), "memory-race");
  both.replace(both.find("st.global.u32 [%out], %x;"), 25, "red.global.add.u32 [%out], %x;");
  EXPECT_EQ(found(both), "");
}

TEST_F(ManifestLaunches, AreForHopperAndLater) {
  std::string old = pair_of_kernels(wait, "");
  EXPECT_EQ(found(old), "");
  write("pair.ptx", old);
  const auto read = read_manifest(write("m.json", R"({"ptx": "small.ptx", "kernel": "store",
      "grid": [1], "block": [1], "programmatic": true,
      "params": [{"buffer": "out", "bytes": 4}, {"u32": 7}]})"));
  ASSERT_TRUE(read) << read.diags().text();
  const Outcome outcome = run(*read, "emulator");
  EXPECT_NE(outcome.refused.text().find("unsupported on sm_80, requires sm_90"), std::string::npos)
      << outcome.refused.text();
}

}  // namespace
}  // namespace tartan
