// SPDX-License-Identifier: Apache-2.0
// Floating-point sums and extremes in memory (atom, red, cp.reduce.async.bulk) against a Hopper
// GPU: above all subnormal numbers, which some memories flush.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "tartan/runtime/device.h"

namespace tartan {
namespace {

using Words = std::vector<std::uint32_t>;

constexpr unsigned blocks = 3, threads = 32;
constexpr std::size_t words = blocks * threads * 4;  // 16 bytes a thread

const std::string recording_path = std::string(TEST_DATA) + "/emulator/sums_sm_90.bin";

enum class Where : std::uint8_t { global, shared, generic_global, generic_shared, bulk };

/// One instruction on a thread's 16 bytes: `count` elements of `width` bits at their start.
struct Sum {
  std::string name;  // without the state space, which replaces "{}"
  Where where;
  int width, count;
  bool gives = false;  // also returns the old value
};

std::vector<Sum> sums() {
  std::vector<Sum> out;
  for (const Where where :
       {Where::global, Where::shared, Where::generic_global, Where::generic_shared}) {
    for (const auto& [type, width] : {std::pair{"f32", 32}, {"f64", 64}})
      for (const char* name : {"red", "atom"})
        out.push_back({fmt::format("{}{{}}.add.{}", name, type), where, width, 1, name[0] == 'a'});
    for (const auto& [type, width] :
         {std::pair{"f16", 16}, {"bf16", 16}, {"f16x2", 32}, {"bf16x2", 32}})
      for (const char* name : {"red", "atom"})
        out.push_back(
            {fmt::format("{}{{}}.add.noftz.{}", name, type), where, width, 1, name[0] == 'a'});
  }
  for (const char* name : {"red", "atom"}) {
    const bool gives = name[0] == 'a';
    for (const int count : {2, 4})
      out.push_back(
          {fmt::format("{}{{}}.v{}.f32.add", name, count), Where::global, 32, count, gives});
    for (const char* type : {"f16", "bf16"})
      for (const char* operation : {"add", "min", "max"}) {
        for (const int count : {2, 8})
          out.push_back({fmt::format("{}{{}}.v{}.{}.{}.noftz", name, count, type, operation),
                         Where::global, 16, count, gives});
        out.push_back({fmt::format("{}{{}}.v4.{}x2.{}.noftz", name, type, operation), Where::global,
                       32, 4, gives});
      }
  }
  for (const char* operation : {"add.f32", "add.f64", "add.noftz.f16", "add.noftz.bf16", "min.f16",
                                "max.f16", "min.bf16", "max.bf16"})
    out.push_back({fmt::format("cp.reduce.async.bulk.global.shared::cta.bulk_group.{}", operation),
                   Where::bulk, std::string_view(operation).ends_with("f64") ? 64 : 32, 2});
  return out;
}

std::string list(const char* name, const Sum& sum) {
  std::string out;
  for (int i = 0; i < sum.count; ++i)
    out += fmt::format("{}{}{}_{}", i ? ", " : "", name, sum.width, i);
  return sum.count > 1 ? "{" + out + "}" : out;
}

// Each thread's 16 bytes of `place` and of `by`; the old values go to `old`.
std::string kernel(const Sum& sum, std::size_t index) {
  std::string out = fmt::format(R"(
.visible .entry sum{}(.param .u64 place, .param .u64 by, .param .u64 old)
{{
.reg .b64 %rd<6>;
.reg .b32 %r<8>;
.reg .b16 a16_<8>, d16_<8>;
.reg .b32 a32_<4>, d32_<4>;
.reg .b64 a64_<2>, d64_<2>;
.shared .align 16 .b8 there[512];
ld.param.u64 %rd0, [place];
ld.param.u64 %rd1, [by];
ld.param.u64 %rd2, [old];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mad.lo.u32 %r2, %r1, {}, %r0;
mul.wide.u32 %rd3, %r2, 16;
add.u64 %rd0, %rd0, %rd3;
add.u64 %rd1, %rd1, %rd3;
add.u64 %rd2, %rd2, %rd3;
mov.u32 %r2, there;
mad.lo.u32 %r2, %r0, 16, %r2;
)",
                                index, threads);
  if (sum.where == Where::bulk)
    return out + fmt::format(R"(ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd1];
st.shared.v4.b32 [%r2], {{%r4, %r5, %r6, %r7}};
fence.proxy.async.shared::cta;
{} [%rd0], [%r2], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
ret;
}}
)",
                             sum.name);
  for (int i = 0; i < sum.count; ++i)
    out += fmt::format("ld.global.b{0} a{0}_{1}, [%rd1+{2}];\n", sum.width, i, i * sum.width / 8);
  const bool shared = sum.where == Where::shared || sum.where == Where::generic_shared;
  const char *address = "%rd0", *space = "";
  if (shared) {
    out +=
        "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd0];\n"
        "st.shared.v4.b32 [%r2], {%r4, %r5, %r6, %r7};\n";
    if (sum.where == Where::generic_shared) {
      out += "cvt.u64.u32 %rd4, %r2;\ncvta.shared.u64 %rd4, %rd4;\n";
      address = "%rd4";
    } else {
      address = "%r2", space = ".shared";
    }
  } else if (sum.where == Where::global) {
    space = ".global";
  }
  out += fmt::format(fmt::runtime(sum.name), space);
  out += fmt::format(" {}[{}], {};\n", sum.gives ? list("d", sum) + ", " : "", address,
                     list("a", sum));
  if (sum.gives)
    for (int i = 0; i < sum.count; ++i)
      out += fmt::format("st.global.b{0} [%rd2+{2}], d{0}_{1};\n", sum.width, i, i * sum.width / 8);
  if (shared)
    out +=
        "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2];\n"
        "st.global.v4.b32 [%rd0], {%r4, %r5, %r6, %r7};\n";
  return out + "ret;\n}\n";
}

std::string module_of(const std::vector<Sum>& all) {
  std::string out = ".version 8.1\n.target sm_90\n.address_size 64\n";
  for (std::size_t i = 0; i < all.size(); ++i) out += kernel(all[i], i);
  return out;
}

// Around zero, the smallest normal number, one and the largest; infinities and NaNs.
std::uint64_t number(const Sum& sum, std::mt19937& random) {
  const bool brain = sum.name.find("bf16") != std::string::npos;
  const bool half = sum.name.find("f16") != std::string::npos;
  const int digits = half ? (brain ? 7 : 10) : sum.width == 64 ? 52 : 23;
  const int width = half ? 16 : sum.width;
  const std::uint64_t one = (std::uint64_t{1} << (width - digits - 2)) - 1;  // exponent of 1
  const std::uint64_t exponents[] = {0, 0, 0, 1, 1, 2, one, one + 1, 2 * one, 2 * one + 1};
  const std::uint64_t mask = (std::uint64_t{1} << digits) - 1;
  const std::uint64_t any = std::uint64_t{random()} << 32 | random();
  const std::uint64_t fractions[] = {0, 1, mask, any & mask, any & 7};
  return std::uint64_t{random() % 2} << (width - 1) | exponents[random() % 10] << digits |
         fractions[random() % 5];
}

// Every pair of infinities and NaNs occurs in f64: memory has them in groups of four, the addends
// in turn.
std::uint64_t special(bool added, std::size_t i) {
  constexpr std::uint64_t them[] = {0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000123,
                                    0xFFF0000000000456};
  return them[added ? i % 4 : i / 4];
}

Words numbers(const Sum& sum, unsigned seed) {
  std::mt19937 random(seed);
  Words out;
  const std::size_t apart = sum.where == Where::bulk ? 2 : 4;  // words between sums of f64
  while (out.size() < words) {
    if (sum.width == 64 && out.size() % apart == 0 && out.size() / apart < 16) {
      const std::uint64_t both = special(seed % 2 != 0, out.size() / apart);
      out.push_back(static_cast<std::uint32_t>(both));
      out.push_back(static_cast<std::uint32_t>(both >> 32));
      continue;
    }
    if (sum.name.find("f16") != std::string::npos) {
      const auto low = number(sum, random), high = number(sum, random);
      out.push_back(static_cast<std::uint32_t>(high << 16 | low));
      continue;
    }
    const std::uint64_t both = number(sum, random);
    out.push_back(static_cast<std::uint32_t>(both));
    if (sum.width == 64) out.push_back(static_cast<std::uint32_t>(both >> 32));
  }
  return out;
}

Buffer filled(Device& device, const Words& content) {
  Buffer out = *device.allocate(content.size() * 4);
  EXPECT_TRUE(out.write(std::as_bytes(std::span(content))));
  return out;
}

// The memory afterwards, then the old values, sum by sum.
Words run(Device& device) {
  const auto all = sums();
  const auto module = device.load(module_of(all), "sums.ptx");
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  Words out;
  if (!module) return out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Buffer place = filled(device, numbers(all[i], 2 * static_cast<unsigned>(i))),
           by = filled(device, numbers(all[i], 2 * static_cast<unsigned>(i) + 1)),
           old = filled(device, Words(words));
    auto loaded = *module->kernel(fmt::format("sum{}", i));
    EXPECT_TRUE(loaded.launch({.grid = {blocks}, .block = {threads}},
                              Arguments().add(place).add(by).add(old)));
    const auto status = device.synchronize();
    EXPECT_TRUE(status) << (status ? "" : status.diags().text());
    for (const Finding& finding : device.findings())
      ADD_FAILURE() << all[i].name << ": " << finding.message;
    for (const Buffer* each : {&place, &old}) {
      const auto content = each->read_all<std::uint32_t>();
      out.insert(out.end(), content->begin(), content->end());
    }
  }
  return out;
}

Words recording() {
  std::ifstream file(recording_path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  Words out(bytes.size() / 4);
  std::memcpy(out.data(), bytes.data(), out.size() * 4);
  return out;
}

void compare(const Words& expected, const Words& got) {
  const auto all = sums();
  ASSERT_EQ(expected.size(), all.size() * 2 * words);
  ASSERT_EQ(got.size(), expected.size());
  int shown = 0;
  for (std::size_t i = 0; i < got.size() && shown < 40; ++i) {
    if (got[i] == expected[i]) continue;
    const std::size_t index = i / (2 * words), at = i % words;
    ADD_FAILURE() << fmt::format(
        "{} (place {}), {} word {}: {:#010x} by {:#010x} gives {:#010x}, recorded {:#010x}",
        all[index].name, static_cast<int>(all[index].where),
        i % (2 * words) < words ? "new" : "old", at,
        numbers(all[index], 2 * static_cast<unsigned>(index))[at],
        numbers(all[index], 2 * static_cast<unsigned>(index) + 1)[at], got[i], expected[i]);
    ++shown;
  }
}

TEST(EmulatorSums, GivesWhatAGpuRecorded) {
  Device device = *Device::open("emulator");
  compare(recording(), run(device));
}

// On a Hopper GPU: the recording equals today's results. TARTAN_RECORD=FILE writes it.
TEST(EmulatorSums, TheRecordingIsCurrent) {
  auto device = Device::open("cuda");
  if (!device || device->arch().sm != 90) GTEST_SKIP() << "no Hopper GPU here";
  const Words got = run(*device);
  if (const char* path = std::getenv("TARTAN_RECORD"))
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(got.data()),
               static_cast<std::streamsize>(got.size() * 4));
  compare(recording(), got);
}

// The assembler knows every one of them.
TEST(EmulatorSums, Assemble) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no ptxas";
  const std::string path = testing::TempDir() + "tartan_sums_" + std::to_string(getpid()) + ".ptx";
  std::ofstream(path) << module_of(sums());
  EXPECT_EQ(std::system(("ptxas -arch sm_90 -o /dev/null " + path).c_str()), 0);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tartan
