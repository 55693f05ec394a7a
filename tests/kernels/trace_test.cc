// SPDX-License-Identifier: Apache-2.0
// Timestamps that kernels write, run on the emulator, whose own timeline of the same run says what
// they must be.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <tartan/tartan.h>

#include <filesystem>
#include <numeric>

#include "runtime/manifest_arguments.h"
#include "tartan/ptx/parser.h"
#include "tartan/runtime/trace.h"
#include "tartan/verify/verify.h"
#include "tests/paths.h"
#include "tests/support/shell.h"
#include "tests/support/timeline_checks.h"

namespace tartan::test {
namespace {

Manifest emitted(const std::string& words) {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("tartan_trace_{}", getpid());
  std::filesystem::create_directories(folder);
  const Ran made = shell(fmt::format("cd {} && {} emit {} -o k.ptx --manifest k.json 2>&1",
                                     folder.string(), TARTAN_COMMAND, words));
  EXPECT_EQ(made.code, 0) << made.out;
  auto manifest = read_manifest((folder / "k.json").string());
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(manifest) << manifest.diags().text();
  return manifest ? *std::move(manifest) : Manifest{};
}

struct Launched {
  std::shared_ptr<Timeline> own;  // the emulator's
  Timeline written{{.ctas = 4, .events = 1'000'000}};
  std::vector<std::vector<std::byte>> buffers;
};

// A launch of `text`, with the same bytes in its buffers each time.
void launch(const Manifest& manifest, const ptx::Traced& text, Launched& out) {
  out.own = std::make_shared<Timeline>(TimelineLimits{.ctas = 4, .events = 1'000'000});
  auto device = Device::open("emulator", {.timeline = out.own});
  ASSERT_TRUE(device);
  auto module = device->load(text.text);
  ASSERT_TRUE(module) << module.diags().text();
  auto kernel = module->kernel(manifest.kernel);
  ASSERT_TRUE(kernel) << kernel.diags().text();
  std::map<std::string, Buffer> buffers;
  for (const ManifestBuffer* each : manifest.all_buffers()) {
    auto buffer = device->allocate(each->size);
    ASSERT_TRUE(buffer);
    std::vector<std::uint8_t> bytes(each->size);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::uint8_t>(i % 2 ? 0x3c : 17 * i + i / 256);
    ASSERT_TRUE(buffer->write(bytes));
    buffers.emplace(each->name, *buffer);
  }
  const auto arguments = manifest_arguments(
      manifest.params, [&](const std::string& name) { return buffers.at(name).address(); });
  ASSERT_TRUE(arguments);
  std::optional<Result<Trace>> trace;
  if (!text.lines.empty()) {
    trace.emplace(Trace::start(*device, *module, text, manifest.kernel, manifest.launch,
                               out.written.limits()));
    ASSERT_TRUE(*trace) << trace->diags().text();
  }
  const Status launched = kernel->launch(manifest.launch, *arguments);
  ASSERT_TRUE(launched) << launched.diags().text();
  ASSERT_TRUE(device->synchronize());
  if (trace) {
    ASSERT_TRUE((*trace)->add_to(out.written));
  }
  for (const auto& [name, buffer] : buffers) out.buffers.push_back(*buffer.read_all<std::byte>());
}

// What both timelines say of an event: all but its time, and how far neighbours are one slice.
struct Step {
  std::string text;
  std::uint64_t count;
  bool operator==(const Step&) const = default;
};

using Steps = std::map<std::pair<std::uint32_t, int>, std::vector<Step>>;  // by CTA and warp

// `lines`: of the text that ran, those of the text before.
Steps steps(const Timeline& timeline, const std::vector<int>& lines = {}) {
  Steps out;
  std::map<std::pair<std::uint32_t, int>, std::string> before;
  for (const TimelineEvent& event : timeline.events()) {
    const bool shown = event.kind == Kind::copy || event.kind == Kind::product ||
                       event.kind == Kind::commit || event.kind == Kind::arrive ||
                       event.kind == Kind::wait;
    if (!shown || is_second(event)) continue;  // who arrives last does not wait on the emulator
    EXPECT_TRUE(event.ended) << event.name;
    auto& of_warp = out[{event.cta, event.warp}];
    const bool run = event.opcode.starts_with("cp.async.c") || event.opcode.starts_with("mma.");
    const bool joins = run && before[{event.cta, event.warp}] == event.opcode &&
                       !event.opcode.starts_with("cp.async.commit");
    before[{event.cta, event.warp}] = event.opcode;
    if (joins) {
      of_warp.back().count += event.count;
      continue;
    }
    std::string what(name(event.kind));
    const int line = lines.empty() ? event.line : lines[static_cast<std::size_t>(event.line)];
    what += fmt::format(" line {} {}", line, event.source);
    if (event.barrier >= 0 && !event.opcode.starts_with("barrier.cluster.wait"))
      what += " " + timeline.barriers()[static_cast<std::size_t>(event.barrier)].name;
    if (const auto at = event.name.find("phase parity"); at != std::string::npos)
      what += " " + event.name.substr(at);
    of_warp.push_back({what, run ? event.count : 1});
  }
  return out;
}

// The timestamps that a launch writes are those of the emulator's own timeline, and its results are
// those of the kernel without.
void expect_as_emulated(const std::string& words) {
  SCOPED_TRACE(words);
  const Manifest manifest = emitted(words);
  const std::string ptx(manifest.ptx.text());
  const auto text = ptx::traced(ptx, "k.ptx");
  ASSERT_TRUE(text) << text.diags().text();
  const Diags checked = verify::check(std::make_shared<Source>("traced", text->text));
  EXPECT_TRUE(checked.ok()) << checked.text();
  Launched plain, ran;
  launch(manifest, {.text = ptx}, plain);
  launch(manifest, *text, ran);
  if (testing::Test::HasFatalFailure()) return;
  EXPECT_EQ(ran.buffers, plain.buffers);
  ASSERT_EQ(ran.written.launches().size(), 1u);
  EXPECT_EQ(ran.written.launches()[0].left_out, 0u);
  EXPECT_EQ(ran.written.launches()[0].kept_ctas, ran.own->launches()[0].kept_ctas);
  const Steps own = steps(*ran.own, text->lines), written = steps(ran.written);
  ASSERT_EQ(written.size(), own.size());
  for (const auto& [warp, expected] : own) {
    const auto found = written.find(warp);
    ASSERT_NE(found, written.end());
    const std::size_t most = std::min(found->second.size(), expected.size());
    for (std::size_t i = 0; i < most; ++i) {
      EXPECT_EQ(found->second[i].text, expected[i].text) << warp.first << ", warp " << warp.second;
      EXPECT_EQ(found->second[i].count, expected[i].count) << expected[i].text;
    }
    ASSERT_EQ(found->second.size(), expected.size())
        << "warp " << warp.second << ", after " << (most ? expected[most - 1].text : "");
  }
  for (std::size_t i = 0; i < ran.own->ctas().size(); ++i) {
    EXPECT_EQ(ran.written.ctas()[i].place, ran.own->ctas()[i].place);
    EXPECT_EQ(ran.written.ctas()[i].roles, ran.own->ctas()[i].roles);
  }
  for (const TimelineEvent& each : ran.written.events()) EXPECT_TRUE(each.ended) << each.name;
}

TEST(Trace, WritesWhatTheEmulatorShows) {
  for (const char* words : {
           "one_mma --target sm_80",
           "gemm --target sm_80 --m 128 --n 128 --k 128 --tile 64x64x32",
           "gemm --target sm_80 --m 128 --n 128 --k 256 --tile 64x64x32 --stream-blocks 3",
           "gemm --target sm_90a --m 128 --n 64 --k 256 --tile 128x64x64 --warps 4x1 --producers 4",
           "gemm --target sm_90a --m 256 --n 64 --k 256 --tile 128x64x64 --warps 4x1 --producers 4 "
           "--cluster 2",
           "gemm --target sm_90a --m 128 --n 128 --k 256 --tile 64x64x64 --warps 4x1 --producers 4 "
           "--persistent",
       })
    expect_as_emulated(words);
}

TEST(Trace, KeepsTheLinesOfTheText) {
  const Manifest manifest = emitted("one_mma --target sm_80");
  const std::string ptx(manifest.ptx.text());
  const auto text = ptx::traced(ptx);
  ASSERT_TRUE(text);
  const Source before("before", ptx), after("after", text->text);
  ASSERT_EQ(text->lines.size(), static_cast<std::size_t>(std::ranges::count(text->text, '\n') + 2));
  int kept = 0, last = 0;
  for (std::size_t line = 1; line < text->lines.size(); ++line) {
    if (!text->lines[line]) continue;
    EXPECT_GT(text->lines[line], last);
    last = text->lines[line];
    EXPECT_EQ(after.line_text(static_cast<int>(line)), before.line_text(last));
    ++kept;
  }
  EXPECT_GT(kept, 40);
  const auto again = ptx::traced(text->text, "twice.ptx");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.diags()[0].message, "twice.ptx has timestamps already: it declares tartan_trace");
}

constexpr const char* barriers = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry loop() {
	.reg .b32 %r<2>;
	.reg .pred %p<2>;
	mov.b32 %r1, 0;
again:
	bar.sync 0;
	add.s32 %r1, %r1, 1;
	setp.lt.u32 %p1, %r1, 3000;
	@%p1 bra again;
	ret;
}
)";

// A loop of more barriers than a thread has records for.
TEST(Trace, CountsWhatDoesNotFit) {
  const auto text = ptx::traced(barriers);
  ASSERT_TRUE(text);
  auto device = Device::open("emulator");
  auto module = device->load(text->text);
  ASSERT_TRUE(module) << module.diags().text();
  Timeline timeline;
  const Launch shape{.grid = {2}, .block = {64}};
  {
    const auto trace = Trace::start(*device, *module, *text, "loop", shape);
    ASSERT_TRUE(trace) << trace.diags().text();
    ASSERT_TRUE(module->kernel("loop")->launch(shape, {}));
    ASSERT_TRUE(trace->add_to(timeline));
  }
  // 4096 records are a beginning, an end, and 4094 of the 6000 before and after barriers.
  EXPECT_EQ(timeline.launches()[0].left_out, 4 * (6000 - 4094));
  EXPECT_NE(timeline.summary().find("; 7624 more were left out"), std::string::npos)
      << timeline.summary();
  // Nobody has records now: nothing is written.
  ASSERT_TRUE(module->kernel("loop")->launch(shape, {}));
  const auto wrong = Trace::start(*device, *module, *text, "lop", shape);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.diags()[0].message.find("found no kernel of that name"), std::string::npos);
}

TEST(Trace, KeepsTheFirstEvents) {
  const auto text = ptx::traced(barriers);
  auto device = Device::open("emulator");
  auto module = device->load(text->text);
  ASSERT_TRUE(module) << module.diags().text();
  Timeline all({.events = 1'000'000}), first({.events = 100});
  const Launch shape{.grid = {2}, .block = {64}};
  const auto trace = Trace::start(*device, *module, *text, "loop", shape);
  ASSERT_TRUE(trace) << trace.diags().text();
  ASSERT_TRUE(module->kernel("loop")->launch(shape, {}));
  ASSERT_TRUE(trace->add_to(all));
  ASSERT_TRUE(trace->add_to(first));
  ASSERT_GT(all.events().size(), 10'000u);
  ASSERT_EQ(first.events().size(), 100u);
  EXPECT_EQ(first.launches()[0].left_out,
            all.launches()[0].left_out + all.events().size() - first.events().size());
  const auto lives = [](const Timeline& of) {
    return std::ranges::count(of.events(), Kind::warp, &TimelineEvent::kind);
  };
  EXPECT_EQ(lives(first), 4);
  std::uint64_t last = 0;
  for (const TimelineEvent& each : first.events())
    if (each.kind != Kind::warp) last = std::max(last, each.begin);
  const auto before = std::ranges::count_if(all.events(), [&](const TimelineEvent& each) {
    return each.kind != Kind::warp && each.begin < last;
  });
  EXPECT_LE(before, 96) << "nothing earlier was left out";
}

// The option's text is that of ptx::traced(), and what a launch writes is a timeline.
TEST(Trace, IsAnOptionOfKernels) {
  const auto compiled = [](bool trace) {
    return compile(kernel("indices", {.block = 64, .trace = trace},
                          [](Builder& k) {
                            auto out = k.global("out", s32, row_major(1, 64));
                            k.barrier();
                            k.write(out, 0, k.thread(), k.thread());
                          }),
                   *Target::parse("sm_80"));
  };
  const auto plain = compiled(false), text = compiled(true);
  ASSERT_TRUE(plain) << plain.diags().text();
  ASSERT_TRUE(text) << text.diags().text();
  EXPECT_EQ(plain->ptx.find(ptx::trace_variable), std::string::npos);
  EXPECT_EQ(text->ptx, ptx::traced(plain->ptx)->text);
  auto device = Device::open("emulator");
  auto module = device->load(text->ptx);
  ASSERT_TRUE(module) << module.diags().text();
  auto out = device->allocate(256);
  ASSERT_TRUE(out);
  const Launch shape{.grid = {1}, .block = {64}};
  Timeline timeline;
  const auto trace = Trace::start(*device, *module, {.text = text->ptx}, "indices", shape);
  ASSERT_TRUE(trace) << trace.diags().text();
  ASSERT_TRUE(module->kernel("indices")->launch(shape, Arguments().add(*out)));
  ASSERT_TRUE(trace->add_to(timeline));
  std::vector<std::int32_t> expected(64);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(*out->read_all<std::int32_t>(), expected);
  const auto waits = std::ranges::count(timeline.events(), Kind::wait, &TimelineEvent::kind);
  EXPECT_EQ(waits, 2) << "the barrier, of each warp";
}

TEST(Trace, IsInNanoseconds) {
  Launched ran;
  const Manifest manifest = emitted("one_mma --target sm_80");
  launch(manifest, *ptx::traced(std::string(manifest.ptx.text())), ran);
  const auto json = nlohmann::json::parse(ran.written.json());
  EXPECT_NE(json.at("otherData").at("time").dump().find("timestamps"), std::string::npos);
  EXPECT_EQ(json.at("otherData").at("launches").at(0).at("measured_on"), "emulator");
  const auto& first = json.at("traceEvents").at(0);
  EXPECT_EQ(first.at("args").at("name"), "one_mma, CTA 0,0,0 (ns, timestamps of the kernel)");
}

}  // namespace
}  // namespace tartan::test
