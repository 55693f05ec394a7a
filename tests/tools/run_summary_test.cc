// SPDX-License-Identifier: Apache-2.0
// What `tartan run` says while it runs and when it is done: the progress line on a terminal,
// Ctrl-C, the summary, and whether anything was compared.
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>

#include "tests/tools/run_command.h"

namespace tartan::run_command_test {
namespace {

// ---- On a terminal.

class Terminal {
 public:
  explicit Terminal(const std::string& command) {
    pid_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
  }
  ~Terminal() { close(terminal_); }

  // Reads until `words` have come, or the time is over.
  bool wait_for(const std::string& words, std::chrono::seconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (text_.find(words) == std::string::npos) {
      pollfd ready{terminal_, POLLIN, 0};
      char buffer[1024];
      if (std::chrono::steady_clock::now() > end) return false;
      if (poll(&ready, 1, 100) <= 0) continue;
      const ssize_t size = read(terminal_, buffer, sizeof buffer);
      if (size <= 0) return false;
      text_.append(buffer, static_cast<std::size_t>(size));
    }
    return true;
  }
  void interrupt() const { [[maybe_unused]] const auto size = ::write(terminal_, "\3", 1); }
  int exit_code() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& text() const { return text_; }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
  std::string text_;
};

TEST_F(RunCommand, ProgressAndInterrupt) {
  auto json = manifest();
  json["kernel"] = "forever";
  json["grid"] = {7};
  Terminal terminal(command(json, "--max-steps 1000000000000"));
  ASSERT_TRUE(terminal.wait_for("CTA 1 of 7, line 21, ", std::chrono::seconds(60)))
      << terminal.text();
  const auto asked = std::chrono::steady_clock::now();
  terminal.interrupt();
  EXPECT_TRUE(terminal.wait_for("7 CTAs, ", std::chrono::seconds(20))) << terminal.text();
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(2));
  EXPECT_TRUE(terminal.wait_for("1 error, not finished", std::chrono::seconds(1)));
  EXPECT_EQ(terminal.exit_code(), 130);
  for (const char* words :
       {"interrupted: 0 of 7 CTAs done", "CTA 0,0,0 and ", ": warp 0 at line 21"})
    EXPECT_NE(terminal.text().find(words), std::string::npos) << terminal.text();
  EXPECT_EQ(terminal.text().find("expected"), std::string::npos) << terminal.text();
}

// Warps at a barrier are told apart from those that run; --json stays one object.
TEST_F(RunCommand, InterruptSaysWhereWarpsAre) {
  write("wait.ptx", R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry wait()
{
  .reg .pred %p;
  .reg .b32 %r;
  mov.u32 %r, %tid.x;
  setp.lt.u32 %p, %r, 64;
  @%p bra $again;
  bar.sync 0;
  ret;
$again:
  bra $again;
}
)");
  const nlohmann::ordered_json json = {{"ptx", "wait.ptx"},
                                       {"kernel", "wait"},
                                       {"grid", {1}},
                                       {"block", {128}},
                                       {"params", nlohmann::ordered_json::array()}};
  for (const char* schedule : {"", " --schedule 3"}) {
    const std::filesystem::path out = folder / "found.json";
    Terminal terminal(command(json, fmt::format("--json{} > {}", schedule, out.string())));
    ASSERT_TRUE(terminal.wait_for("CTA 1 of 1, line 14, ", std::chrono::seconds(60)))
        << terminal.text();
    terminal.interrupt();
    EXPECT_EQ(terminal.exit_code(), 130) << terminal.text();
    std::ifstream written(out);
    const auto found = nlohmann::json::parse(written).at("findings");
    ASSERT_EQ(found.size(), 1u) << found.dump();
    EXPECT_EQ(found[0]["id"], "interrupted");
    EXPECT_EQ(found[0]["message"],
              "interrupted: 0 of 1 CTA done\nCTA 0,0,0: warps 2 and 3 at line 11, for barrier 0, "
              "which has 64 threads and waits for all threads of the CTA; warps 0 and 1 at line "
              "14");
  }
}

// Without a launch that could say something, and the second time, Ctrl-C ends it at once.
TEST_F(RunCommand, InterruptBeforeALaunch) {
  const Ran ran =
      shell(fmt::format("mkfifo {0}/fifo; timeout -s INT --preserve-status 1 {1} run - < "
                        "{0}/fifo & sleep 2 > {0}/fifo; wait $!",
                        folder.string(), TARTAN_COMMAND));
  EXPECT_EQ(ran.code, 130) << ran.out;
  EXPECT_EQ(ran.out, "");
}

// ---- What a run comes to, in a line.

TEST_F(RunCommand, SumsUpInALine) {
  const auto summary = [&](const nlohmann::ordered_json& json, const std::string& words) {
    const Ran ran = test::shell(fmt::format("({}) 2>&1 >/dev/null", command(json, words)));
    std::string text = ran.out;  // the time is another one each time
    if (const std::size_t end = text.find(" s, "); end != text.npos) {
      const std::size_t begin = text.rfind(' ', end - 1) + 1;
      EXPECT_LT(std::stod(text.substr(begin, end - begin)), 60) << text;
      text.replace(begin, end - begin, "T");
    }
    return text;
  };
  auto json = manifest();
  EXPECT_EQ(summary(json, ""), "");
  const std::string equal =
      "copy: emulator (sm_80), 1 CTA, T s, no findings, out equals the reference (16 bytes)\n";
  EXPECT_EQ(summary(json, "-v"), equal);
  EXPECT_EQ(summary(json, "--verbose --json"), equal);
  write("ones.bin", std::string(16, '\2'));
  EXPECT_EQ(summary(json, "-v"),
            "copy: emulator (sm_80), 1 CTA, T s, no findings, out differs from the reference in 16 "
            "of 16 bytes\n");
  json["params"][1] = {{"buffer", "out"},
                       {"bytes", 16},
                       {"expect", "floats.bin"},
                       {"compare", {{"type", "f32"}, {"max_rel", 0.5}}}};
  write("floats.bin", std::string(16, '\1'));
  EXPECT_EQ(summary(json, "-v --hardware sm_90"),
            "copy: emulator (sm_90), 1 CTA, T s, no findings, out agrees with the reference (4 "
            "elements, as f32 within 0.5 relative)\n");
  json["kernel"] = "racy";
  json["block"] = {64};
  json["grid"] = {1500};
  EXPECT_TRUE(
      summary(json, "-v --ignore memory-fault").find("racy: emulator (sm_80), 1,500 CTAs, ") !=
      std::string::npos);
}

TEST_F(RunCommand, WarnsWhereNothingIsCompared) {
  auto json = manifest();
  json["params"][1] = {{"buffer", "out"}, {"bytes", 16}};
  const std::string warning = "manifest.json: warning: nothing compared: ";
  const Ran plain = run(json);
  EXPECT_EQ(plain.code, 0);
  EXPECT_TRUE(plain.out.starts_with(warning)) << plain.out;
  EXPECT_TRUE(plain.out.ends_with("[nothing-compared]\n")) << plain.out;
  for (const char* words : {"--require-expectations", "--error nothing-compared"}) {
    const Ran required = run(json, words);
    EXPECT_EQ(required.code, 1) << required.out;
    EXPECT_TRUE(required.out.starts_with("manifest.json: error: nothing compared: "))
        << required.out;
  }
  EXPECT_EQ(run(json, "--ignore nothing-compared").out, "");
  const auto object = nlohmann::json::parse(run(json, "--json").out);
  EXPECT_EQ(object.at("warnings").at(0).at("id"), "nothing-compared");
  EXPECT_TRUE(object.at("findings").empty());
  EXPECT_EQ(run(manifest(), "--require-expectations").code, 0);
  // What did not run to its end says so already.
  json["kernel"] = "forever";
  EXPECT_EQ(run(json, "--max-steps 1000 --require-expectations").out.find("nothing compared"),
            std::string::npos);
}

TEST_F(RunCommand, NoProgressLineInAPipe) {
  auto json = manifest();
  json["kernel"] = "forever";
  // --foreground: one signal. Without it timeout sends a second one to the group, and a second
  // Ctrl-C ends the process at once.
  const Ran ran = shell(fmt::format("timeout --foreground -s INT 3 sh -c '{}'",
                                    command(json, "--max-steps 1000000000000")));
  EXPECT_EQ(ran.out,
            "small.ptx:21: error: interrupted: 0 of 1 CTA done\n  CTA 0,0,0: warp 0 at line 21 "
            "[interrupted]\n");
}

}  // namespace
}  // namespace tartan::run_command_test
