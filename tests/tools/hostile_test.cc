// SPDX-License-Identifier: Apache-2.0
// Inputs that once took time or memory without end, or ended with the wrong exit code: those in
// tests/data/hostile, and larger ones that are made here. Each ends at once, within a limit of
// address space.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tartan/runtime/device.h"
#include "tests/paths.h"
#include "tests/support/sanitizer.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;
using test::Ran;

const std::string data = std::string(TEST_DATA) + "/hostile/";

constexpr std::string_view head = ".version 8.0\n.target sm_90a\n.address_size 64\n";

std::string kernel(const std::string& body, const std::string& before = {}) {
  return fmt::format("{}{}.visible .entry k()\n{{\n{}\nret;\n}}\n", head, before, body);
}

class Hostile : public testing::Test {
 protected:
  Hostile() : folder(fs::temp_directory_path() / fmt::format("tartan_hostile_{}", getpid())) {
    fs::create_directories(folder);
  }
  ~Hostile() override { fs::remove_all(folder); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
    return (folder / name).string();
  }

  // A manifest that launches k of that text.
  std::string launch(const std::string& ptx, const std::string& block = "1") const {
    write("k.ptx", ptx);
    return write("k.json", fmt::format(R"({{"ptx": "k.ptx", "kernel": "k", "grid": [1],
                                           "block": [{}], "params": []}})",
                                       block));
  }

  // What the command prints. Half a minute is far more than it takes on a busy machine.
  Ran run(const std::string& words, const std::string& to = "2>&1",
          const std::string& before = "") const {
    const std::string limit = test::sanitized() ? "true" : "ulimit -v 1000000";
    return test::shell(fmt::format("cd {} && {} && {} timeout 30 {} {} {}", folder.string(), limit,
                                   before, TARTAN_COMMAND, words, to));
  }

  fs::path folder;
};

// ---- Addresses and sizes that a kernel computes.

// Two lanes, so that the race detector takes the way for several accesses.
std::string access_at(const std::string& statement, std::int64_t address) {
  return kernel(
      fmt::format(".reg .b64 a, b; .reg .b32 r, s; .shared .align 128 .b8 m[128];\n"
                  "mov.u64 a, {}; mov.u64 b, 16; mov.u32 r, 16; mov.u32 s, m;\n{}",
                  address, statement));
}

// The finding that ends the launch of kernel k.
std::string last_finding(const std::string& ptx) {
  auto device = Device::open("emulator", {.timeout = 20, .checks = Checks::all});
  auto module = device->load(ptx);
  if (!module) return module.diags().text();
  auto loaded = module->kernel("k");
  if (!loaded) return loaded.diags().text();
  if (Status status = loaded->launch({.block = {2}}, Arguments()); !status)
    return status.diags().text();
  (void)device->synchronize();
  const auto findings = device->findings();
  return findings.empty() ? "" : findings.back().id;
}

TEST(HostileAddresses, AtTheEndOfAllAddresses) {
  const std::string statements[] = {
      "st.global.u8 [a], r;",
      "st.global.u32 [a], r;",
      "st.u32 [a], r;",
      "st.global.v4.u32 [a], {r, r, r, r};",
      "st.release.gpu.global.u32 [a], r;",
      "ld.volatile.global.u32 r, [a];",
      "ld.acquire.gpu.global.u32 r, [a];",
      "ld.global.v2.u64 {b, b}, [a];",
      "ld.u64 b, [a];",
      "atom.global.add.u32 r, [a], 1;",
      "atom.add.u32 r, [a], 1;",
      "atom.global.cas.b64 b, [a], 0, 1;",
      "red.global.add.u32 [a], r;",
      "red.relaxed.sys.add.u64 [a], b;",
      "cp.async.ca.shared.global [s], [a], 16;",
      "cp.async.bulk.global.shared::cta.bulk_group [a], [s], r;",
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [a], [s], r;",
      "tensormap.replace.tile.global_address.global.b1024.b64 [a], b;",
      "tensormap.replace.tile.rank.b1024.b32 [a], 1;",
  };
  for (const std::string& statement : statements)
    for (const std::int64_t address : {-1, -4, -8, -16, -128, -1024, -4096}) {
      const std::string found = last_finding(access_at(statement, address));
      EXPECT_TRUE(found == "memory-fault" || found == "misaligned-access")
          << statement << " at " << address << ": " << found;
    }
}

TEST_F(Hostile, AddressesOfTwoLanes) {
  for (const std::string name : {"01/k.json", "01/null.json"}) {
    const Ran ran = run("run --device emulator --ignore nothing-compared " + data + name);
    EXPECT_EQ(ran.code, 3) << ran.out;
    EXPECT_NE(ran.out.find("[memory-fault]"), std::string::npos) << ran.out;
  }
}

TEST_F(Hostile, MallocOfMoreThanThereIs) {
  const Ran ran = run("run --device emulator " + data + "02/k.json");
  EXPECT_EQ(ran.code, 0) << ran.out;
}

// ---- What kernels print.

// A kernel that prints `format` with these 32-bit arguments.
std::string printing(const std::string& format, std::initializer_list<std::uint32_t> arguments) {
  std::string bytes, stores;
  for (const char c : format) bytes += fmt::format("{}, ", static_cast<int>(c));
  int at = 0;
  for (const std::uint32_t each : arguments) {
    stores += fmt::format("st.local.u32 [l+{}], {};\n", at, each);
    at += 4;
  }
  return kernel(".local .align 8 .b8 l[256]; .reg .b64 f, v; .param .b64 p, q; .param .b32 n;\n" +
                    stores +
                    "mov.u64 f, text; cvta.global.u64 f, f; mov.u64 v, l; cvta.local.u64 v, v;\n"
                    "st.param.b64 [p], f; st.param.b64 [q], v; call (n), vprintf, (p, q);",
                ".extern .func (.param .b32 n) vprintf(.param .b64 f, .param .b64 a);\n" +
                    fmt::format(".global .b8 text[{}] = {{{}0}};\n", format.size() + 1, bytes));
}

TEST_F(Hostile, WidthsAndPrecisionsOfPrint) {
  for (const std::string name : {"03/k.json", "03/k2.json"}) {
    const Ran ran = run("run --device emulator --ignore nothing-compared " + data + name);
    EXPECT_EQ(ran.code, 0) << ran.out;
    EXPECT_EQ(ran.out.size(), 511u);
  }
  const auto printed = [&](const std::string& format,
                           std::initializer_list<std::uint32_t> arguments) {
    const Ran ran = run("run --device emulator --ignore nothing-compared " +
                        launch(printing(format, arguments)));
    EXPECT_EQ(ran.code, 0) << ran.out;
    return ran.out;
  };
  EXPECT_EQ(printed("%*d|", {0x7fffffff, 5}), std::string(510, ' ') + "5|");
  EXPECT_EQ(printed("%*d|", {0x80000000, 5}), "5" + std::string(510, ' ') + "|");
  EXPECT_EQ(printed("%.*d|", {0x7fffffff, 5}), std::string(510, '0') + "5|");
  EXPECT_EQ(printed("%.*d|%.d|", {0xffffffff, 5, 6}), "5|6|");
  EXPECT_EQ(printed("%-4d|%04d|%+d|% d|%4.2d|%#x|%%|%c", {1, 2, 3, 4, 5, 6, 65}),
            "1   |0002|+3| 4|  05|0x6|%|A");
  std::string many, expected;
  for (int i = 0; i < 40; ++i) many += "%c", expected += i < 32 ? std::string(1, '\0') : "%c";
  EXPECT_EQ(printed(many, {}), expected);
}

TEST_F(Hostile, JsonHoldsWhatIsPrinted) {
  const Ran ran = run("run --device emulator --json " + data + "04/k.json", "");
  EXPECT_EQ(ran.code, 0);
  const auto json = nlohmann::json::parse(ran.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << ran.out;
  EXPECT_EQ(json["output"], "hi\n");
  EXPECT_EQ(run("run --device emulator " + data + "04/k.json", "").out, "hi\n");
  // Again for other orders, and in pages: once, and not at all.
  EXPECT_EQ(run("run --device emulator --schedules 3 " + data + "04/k.json", "").out.find("hi\n"),
            run("run --device emulator --schedules 3 " + data + "04/k.json", "").out.rfind("hi\n"));
  EXPECT_TRUE(run("explore " + data + "04/k.json -o -", "").out.starts_with("<!"));
}

// ---- Standard error that cannot be written.

TEST_F(Hostile, StandardErrorIsClosedOrFull) {
  const std::string bad = write("bad.ptx", "x");
  const std::string wrong = launch("x");
  const std::vector<std::string> commands = {"check " + bad,
                                             "print " + bad,
                                             "run --device emulator " + wrong,
                                             "run --device emulator " + data + "01/null.json",
                                             "explore " + bad + " -o page.html",
                                             "equal " + wrong + " " + wrong,
                                             "replay none none",
                                             "isa nosuch",
                                             "layout nosuch",
                                             "nosuch",
                                             "check --nosuch",
                                             "run none.json"};
  for (const std::string& words : commands) {
    const int code = run(words, "2> /dev/null").code;
    EXPECT_GT(code, 0) << words;
    for (const std::string to : {"2>&-", "2> /dev/full"})
      EXPECT_EQ(run(words, to).code, code) << words << to;
  }
  // Nor does what is meant for it go into the file that is written.
  EXPECT_EQ(run("explore " + bad + " -o closed.html", "2>&-").code, 2);
  EXPECT_EQ(fs::file_size(folder / "closed.html"), fs::file_size(folder / "page.html"));
}

// ---- Loading.

TEST_F(Hostile, LoadingTakesNoLongerThanItMay) {
  std::string labels = ".reg .pred %p<4>; .reg .b32 %z<4000>;\n", functions, kernels;
  for (int i = 0; i < 4000; ++i)
    labels += fmt::format("L{0}: add.u32 %z{0}, %z{1}, 1; @%p{2} bra L{3};\n", i, i * 7 % 4000,
                          i % 4, i * 7919 % 4000);
  for (int i = 0; i < 4000; ++i) {
    const std::string call = i ? fmt::format("call f{};", i * 7919 % i) : "";
    functions += fmt::format(".func f{}(){{{}{}{} ret;}}\n", i, call, call, call);
    kernels += fmt::format(".visible .entry k{}(){{call f{}; ret;}}\n", i, i);
  }
  const Ran of_labels = run("run --device emulator --timeout 2 " + launch(kernel(labels)));
  EXPECT_EQ(of_labels.code, 3) << of_labels.out.substr(0, 1000);
  const Ran of_functions =
      run("run --device emulator --timeout 5 " + launch(kernel("", functions + kernels)));
  EXPECT_EQ(of_functions.code, 0) << of_functions.out.substr(0, 1000);
}

TEST_F(Hostile, TargetsOfIndirectCallsAreLimited) {
  std::string functions, taken, list;
  for (int i = 0; i < 1000; ++i) {
    functions += fmt::format(".func f{}(){{ret;}}\n", i);
    list += fmt::format("{}f{}", i ? "," : "", i);
  }
  std::string calls;
  for (int i = 0; i < 1000; ++i) calls += "call t, names;\n";
  const Ran ran =
      run("run --device emulator " +
          launch(kernel(".reg .b64 t; mov.u64 t, f0;\nnames: .calltargets " + list + ";\n" + calls,
                        functions)));
  EXPECT_EQ(ran.code, 2) << ran.out.substr(0, 1000);
  EXPECT_NE(ran.out.find("too many targets of indirect calls"), std::string::npos)
      << ran.out.substr(0, 1000);
}

TEST_F(Hostile, ExploreHasTheLimitsOfRun) {
  const Ran late = run("explore --timeout 0.3 -o page.html " + data + "08/loop.json");
  EXPECT_EQ(late.code, 1) << late.out;
  EXPECT_TRUE(late.out.starts_with("page.html: 1 error: ")) << late.out;
  EXPECT_NE(late.out.find("[time-limit]"), std::string::npos) << late.out;
  const Ran steps = run("explore --max-steps 1000 -o page.html " + data + "08/loop.json");
  EXPECT_EQ(steps.code, 1) << steps.out;
  EXPECT_NE(steps.out.find("[step-limit]"), std::string::npos) << steps.out;
  EXPECT_EQ(run("run --device emulator --timeout 0.3 " + data + "08/loop.json").code, 3);
}

TEST_F(Hostile, ExploreDoesNotWaitForATool) {
  fs::create_directories(folder / "cuda/bin");
  for (const char* name : {"ptxas", "nvdisasm"}) {
    const std::string path = write(std::string("cuda/bin/") + name, "#!/bin/sh\nexec sleep 1000\n");
    fs::permissions(path, fs::perms::owner_all);
  }
  const std::string ptx = write("small.ptx", kernel(""));
  const Ran ran = run("explore --timeout 0.2 -o page.html " + ptx, "2>&1",
                      "CUDA_HOME=" + folder.string() + "/cuda");
  EXPECT_EQ(ran.code, 0) << ran.out;
  const Ran page = test::shell("cat " + (folder / "page.html").string());
  EXPECT_NE(page.out.find("it was not done within the time limit"), std::string::npos);
}

// ---- What is said.

TEST_F(Hostile, ErrorsAreLimited) {
  const std::string text = kernel(std::string(400'000, ';'));
  const std::string json = launch(text), ptx = (folder / "k.ptx").string();
  for (const std::string& words :
       {"print " + ptx, "run --device emulator " + json, "run --device emulator --json " + json,
        "explore " + ptx + " -o page.html", "equal " + json + " " + json}) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 2) << words;
    EXPECT_LT(ran.out.size(), 100'000u) << words;
  }
  EXPECT_NE(run("print " + ptx).out.find("k.ptx: note: stopped after 100 errors"),
            std::string::npos);
  EXPECT_LT(fs::file_size(folder / "page.html"), 2'000'000u);
  const Ran checked = run("check " + ptx);
  EXPECT_EQ(checked.code, 1);
  EXPECT_NE(checked.out.find("399900 more errors not shown"), std::string::npos);
  // Of a manifest, too.
  std::string params;
  for (int i = 0; i < 3000; ++i) params += "{},";
  const Ran fields = run("run " + write("wrong.json", R"({"params": [)" + params + "{}]}"));
  EXPECT_EQ(fields.code, 2);
  EXPECT_LT(fields.out.size(), 100'000u);
}

TEST_F(Hostile, NamesAreCut) {
  const std::string name(1'000'000, 'a');
  for (const std::string& body :
       {"mov.u32 " + name + ", 1;", ".pragma \"" + name + "\";", "bra " + name + ";", name + " 1;",
        "." + name + ";", "call " + name + ";", "mov.u32 %r1, \"" + name + "\";"}) {
    const Ran ran = run("check " + write("long.ptx", kernel(body)));
    EXPECT_LT(ran.out.size(), 10'000u) << body.substr(0, 20);
  }
}

// ---- Files.

TEST_F(Hostile, FilesThatHaveNoEnd) {
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string file : {"pipe", "/dev/zero", "/dev/tty"}) {
    const Ran ran = run("run " + write("k.json", fmt::format(R"({{"ptx": "{}", "kernel": "k",
        "grid": [1], "block": [1], "params": []}})",
                                                             file)));
    EXPECT_EQ(ran.code, 2) << ran.out;
    EXPECT_NE(ran.out.find("not a regular file"), std::string::npos) << ran.out;
  }
}

TEST_F(Hostile, LargeFilesAreNotReadInVain) {
  write("large", "x");
  fs::resize_file(folder / "large", std::uintmax_t{40} << 30);
  const Ran refused = run("check large");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.out.find("larger than 1 GiB"), std::string::npos) << refused.out;
  launch(head.data() + std::string(".visible .entry k(.param .u64 a) { ret; }"));
  write("four", std::string(4096, '\0'));
  const Ran part = run("run --device emulator " + write("part.json", R"({"ptx": "k.ptx",
      "kernel": "k", "grid": [1], "block": [1], "params": [{"buffer": "a", "file": "large",
      "part": [1073741824, 4096], "expect": "four"}]})"));
  EXPECT_EQ(part.code, 0) << part.out;
}

TEST_F(Hostile, RecordingsSayWhatIsWrong) {
  write("data", "data");
  const auto said = [&](const std::string& index) {
    write("index", index);
    const Ran ran = run("replay index data");
    EXPECT_EQ(ran.code, 2) << ran.out;
    return ran.out;
  };
  EXPECT_NE(said("[]").find("nothing to compare"), std::string::npos);
  EXPECT_NE(said("[{}]").find("mnemonic: expected a value, found nothing"), std::string::npos);
  EXPECT_NE(said(R"([{"mnemonic": 1}])").find("mnemonic: expected a text, found number"),
            std::string::npos);
  EXPECT_NE(said(R"([{"mnemonic": "x", "tests": "1"}])").find("tests: expected a whole number"),
            std::string::npos);
  EXPECT_NE(said("[1]").find("entry 0 of index: expected an object, found number"),
            std::string::npos);
}

TEST_F(Hostile, BuffersLargerThanTheHost) {
  launch(head.data() + std::string(".visible .entry k(.param .u64 a) { ret; }"));
  const Ran ran = test::shell(fmt::format(
      "cd {} && timeout 30 {} run --device emulator {} 2>&1", folder.string(), TARTAN_COMMAND,
      write("buffers.json", R"({"ptx": "k.ptx", "kernel": "k", "grid": [1], "block": [1],
          "params": [{"buffer": "a", "bytes": 68719476736}],
          "buffers": [{"buffer": "b", "bytes": 68719476736}, {"buffer": "c", "bytes": 68719476736},
                      {"buffer": "d", "bytes": 68719476736}, {"buffer": "e", "bytes": 68719476736}]})")));
  EXPECT_EQ(ran.code, 2) << ran.out;
  EXPECT_NE(ran.out.find("[out-of-memory]"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace tartan
