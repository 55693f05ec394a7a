// SPDX-License-Identifier: Apache-2.0
// wgmma in kernels: an H100's recordings, a naive product in every layout, every form, and errors
// between warps.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "runtime/emulator/matrix/recording.h"
#include "tartan/isa/fragment.h"
#include "tartan/isa/instruction.h"
#include "tests/emulator/wgmma.h"

namespace tartan::test {
namespace {

using Words = std::vector<std::uint32_t>;

Device emulated() { return std::move(*Device::open("emulator")); }

std::string immediates_of(const isa::Form& form, int scale_a, int scale_b, int trans_a,
                          int trans_b) {
  const isa::Instruction instruction = *isa::find(form);
  std::string out;
  for (const isa::OperandSpec& spec : instruction.operands) {
    using isa::Role;
    if (spec.role == Role::imm_scale_a) out += ", " + std::to_string(scale_a);
    if (spec.role == Role::imm_scale_b) out += ", " + std::to_string(scale_b);
    if (spec.role == Role::imm_trans_a)
      out += ", " + std::to_string(form.a_in_registers ? trans_b : trans_a);
    if (spec.role == Role::imm_trans_b) out += ", " + std::to_string(trans_b);
  }
  return out;
}

// ---- Recorded on an H100.

WgmmaCase recorded_case(const emulator::Recording& recording, const emulator::RecordedEntry& entry,
                        int test, Words& expected) {
  isa::Form form = isa::parse_form(entry.mnemonic).form;
  form.a_in_registers = entry.a_in_registers;
  WgmmaCase c{.mnemonic = entry.mnemonic,
              .d_registers = entry.out_words / 128,
              .a_in_registers = entry.a_in_registers,
              .sparse = form.sparsity != isa::Sparsity::dense,
              .steps = entry.steps,
              .selector = entry.selector};
  c.immediates = immediates_of(form, entry.scale_a, entry.scale_b, entry.trans_a, entry.trans_b);
  const std::uint32_t* at =
      recording.words.data() +
      (entry.offset + static_cast<std::uint64_t>(test) * entry.bytes_per_test()) / 4;
  const auto take = [&](int words) {
    const Words out(at, at + words);
    at += words;
    return out;
  };
  const Words header = take(16);
  c.a_descriptor = header[0] | std::uint64_t{header[1]} << 32;
  c.b_descriptor = header[2] | std::uint64_t{header[3]} << 32;
  c.scale_d = header[4] != 0;
  c.a_step = header[5];
  c.b_step = header[6];
  c.d = take(entry.out_words);
  if (c.a_in_registers) c.a = take(entry.steps * 4 * 128);
  if (c.sparse) c.metadata = take(entry.steps * 128);
  c.shared = take(entry.memory_bytes / 4);
  expected = take(entry.out_words);
  return c;
}

TEST(EmulatorWgmma, ReproducesWhatAnH100Recorded) {
  const std::string golden = TEST_DATA "/golden/sm_90_wgmma";
  const auto recording = emulator::Recording::read(golden + ".json", golden + ".bin");
  ASSERT_TRUE(recording) << recording.diags().text();
  Device device = emulated();
  int cases = 0;
  for (const emulator::RecordedEntry& entry : recording->entries)
    for (int test = 0; test < entry.tests; ++test, ++cases) {
      Words expected;
      const WgmmaCase c = recorded_case(*recording, entry, test, expected);
      const Words got = run_wgmma(device, c);
      ASSERT_EQ(got.size(), expected.size()) << c.mnemonic;
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], expected[i]) << c.mnemonic << ", test " << test << ", register "
                                       << i / 128 << ", thread " << i % 128;
    }
  EXPECT_GE(cases, 90);
  EXPECT_EQ(device.report().trust.level, "recorded");
}

// ---- A naive product of small integers, laid out by hand.

struct ElementType {
  const char* name;
  int bits;
  bool floating;
  int exponent_bits, mantissa_bits, bias;
};
constexpr ElementType element_types[] = {
    {"f16", 16, true, 5, 10, 15}, {"bf16", 16, true, 8, 7, 127}, {"tf32", 32, true, 8, 23, 127},
    {"e4m3", 8, true, 4, 3, 7},   {"e5m2", 8, true, 5, 2, 15},   {"s8", 8, false, 0, 0, 0},
    {"u8", 8, false, 0, 0, 0},
};

// 0, 1, 2, 3 or their negatives, which every type represents (u8: no negatives).
std::uint32_t encode(const ElementType& type, int value) {
  if (!type.floating) return static_cast<std::uint32_t>(value) & 0xFF;
  if (value == 0) return 0;
  const int magnitude = std::abs(value), exponent = magnitude >= 2 ? 1 : 0;
  const int fraction = magnitude == 3 ? 1 << (type.mantissa_bits - 1) : 0;
  const auto sign = static_cast<std::uint32_t>(value < 0)
                    << (type.exponent_bits + type.mantissa_bits);
  return sign | static_cast<std::uint32_t>(exponent + type.bias) << type.mantissa_bits |
         static_cast<std::uint32_t>(fraction);
}

struct Layout {
  int width;      // bytes of a swizzled row; 0: none
  bool mn_major;  // neighbours along m or n are neighbours in memory
};

// An operand of `extent` rows of A (columns of B) and `k` elements along k, as a tile without gaps.
struct Tile {
  Tile(const ElementType& type, Layout layout, int extent, int k)
      : type(type), layout(layout), extent(extent), k(k) {}

  const ElementType& type;
  Layout layout;
  int extent, k;

  int bytes() const { return (layout.mn_major ? rounded() * k : extent * row()) * type.bits / 8; }
  // A swizzled row may be longer than the part that one instruction reads; x comes in whole rows.
  int row() const {
    const int row_bytes = k * type.bits / 8;
    return std::max(row_bytes, layout.width) * 8 / type.bits;
  }
  int rounded() const {
    const int unit = layout.width ? layout.width / 2 : 8;
    return (extent + unit - 1) / unit * unit;
  }
  static int swizzled(int width, int line, int chunk) { return chunk ^ (line % 8) * width / 128; }

  int address(int x, int at_k) const {
    const int element = type.bits / 8;
    if (layout.mn_major) {
      const int byte = x * element, line = at_k % 8;
      if (!layout.width) return x / 8 * 128 + at_k / 8 * (extent / 8 * 128) + line * 16 + byte % 16;
      const int block = byte / layout.width, inside = byte % layout.width;
      return (block * (k / 8) + at_k / 8) * 8 * layout.width + line * layout.width +
             swizzled(layout.width, line, inside / 16) * 16 + inside % 16;
    }
    const int byte = at_k * element;
    if (!layout.width)
      return (x / 8 * (row() * element / 16) + byte / 16) * 128 + x % 8 * 16 + byte % 16;
    return x * layout.width + swizzled(layout.width, x, byte / 16) * 16 + byte % 16;
  }

  std::uint64_t descriptor(int start) const {
    std::uint64_t leading = 0, stride = 0;
    if (layout.width) {
      stride = 8u * static_cast<unsigned>(layout.width);
      leading = stride * static_cast<unsigned>(k / 8);
    } else if (layout.mn_major) {
      stride = 128;
      leading = static_cast<unsigned>(extent / 8 * 128);
    } else {
      leading = 128;
      stride = static_cast<unsigned>(row() * type.bits / 8 / 16 * 128);
    }
    const std::uint64_t mode =
        layout.width ? static_cast<unsigned>(2 - (layout.width >= 64) - (layout.width >= 128) + 1)
                     : 0;
    return static_cast<std::uint64_t>(start) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 |
           mode << 62;
  }
};

int small_value(const ElementType& type, int salt, int x, int k) {
  const int value = (x * 5 + k * 3 + salt + x * k) % 7 - 3;
  return std::string_view(type.name) == "u8" ? value + 3 : value;
}

float float_of_half(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
  const float magnitude = exponent ? std::ldexp(static_cast<float>(1024 + fraction), exponent - 25)
                                   : std::ldexp(static_cast<float>(fraction), -24);
  return bits >> 15 ? -magnitude : magnitude;
}

struct NaiveCase {
  const ElementType& a;
  const ElementType& b;
  const char* d;
  int n;
  Layout a_layout, b_layout;
  bool a_in_registers;
};

void check_naive(Device& device, const NaiveCase& one) {
  const int k = 256 / one.a.bits;
  WgmmaCase c;
  c.mnemonic = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(one.n) + "k" +
               std::to_string(k) + "." + one.d + "." + one.a.name + "." + one.b.name;
  const bool half = std::string_view(one.d) == "f16";
  c.d_registers = half ? one.n / 4 : one.n / 2;
  c.a_in_registers = one.a_in_registers;
  isa::Form form = isa::parse_form(c.mnemonic).form;
  form.a_in_registers = one.a_in_registers;
  c.immediates = immediates_of(form, 1, -1, one.a_layout.mn_major, one.b_layout.mn_major);
  const int negate = one.a.floating ? -1 : 1;

  const Tile a(one.a, one.a_layout, 64, k), b(one.b, one.b_layout, one.n, k);
  const int b_start = (a.bytes() + 1023) / 1024 * 1024;
  std::vector<std::uint8_t> shared(static_cast<std::size_t>(b_start + b.bytes()), 0xFF);
  const auto put = [&](const Tile& tile, int start, int salt, int x, int at_k) {
    const std::uint32_t word = encode(tile.type, small_value(tile.type, salt, x, at_k));
    std::memcpy(shared.data() + start + tile.address(x, at_k), &word,
                static_cast<std::size_t>(tile.type.bits) / 8);
  };
  for (int x = 0; x < 64; ++x)
    for (int at_k = 0; at_k < k; ++at_k) put(a, 0, 1, x, at_k);
  for (int x = 0; x < one.n; ++x)
    for (int at_k = 0; at_k < k; ++at_k) put(b, b_start, 2, x, at_k);
  c.shared.resize((shared.size() + 3) / 4);
  std::memcpy(c.shared.data(), shared.data(), shared.size());
  c.a_descriptor = a.descriptor(0);
  c.b_descriptor = b.descriptor(b_start);
  if (one.a_in_registers) {
    c.a_descriptor = 0;
    const int each = 32 / one.a.bits;
    c.a.assign(4 * 128, 0);
    for (int r = 0; r < 4; ++r)
      for (int thread = 0; thread < 128; ++thread)
        for (int e = 0; e < each; ++e) {
          const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + 8 * (r % 2),
                    column = each * (lane % 4) + e + 4 * each * (r / 2);
          c.a[static_cast<std::size_t>(r * 128 + thread)] |=
              encode(one.a, small_value(one.a, 1, row, column)) << e * one.a.bits;
        }
  }
  // The accumulator starts as 5.
  const std::uint32_t five = half ? 0x45004500 : one.a.floating ? 0x40A00000 : 5;
  c.d.assign(static_cast<std::size_t>(c.d_registers) * 128, five);

  const Words got = run_wgmma(device, c);
  ASSERT_EQ(got.size(), c.d.size());
  for (int thread = 0; thread < 128; ++thread)
    for (int i = 0; i < one.n / 2; ++i) {
      const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + 8 * (i / 2 % 2),
                column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
      int sum = 5;
      for (int at_k = 0; at_k < k; ++at_k)
        sum += negate * small_value(one.a, 1, row, at_k) * small_value(one.b, 2, column, at_k);
      const std::uint32_t word = got[static_cast<std::size_t>((half ? i / 2 : i) * 128 + thread)];
      const float value = half             ? float_of_half(word >> i % 2 * 16 & 0xFFFF)
                          : one.a.floating ? std::bit_cast<float>(word)
                                           : static_cast<float>(static_cast<std::int32_t>(word));
      ASSERT_EQ(value, static_cast<float>(sum))
          << c.mnemonic << ": row " << row << ", column " << column << ", A " << one.a_layout.width
          << (one.a_layout.mn_major ? " MN" : " K") << ", B " << one.b_layout.width
          << (one.b_layout.mn_major ? " MN" : " K");
    }
}

std::vector<Layout> layouts(bool majors) {
  std::vector<Layout> out;
  for (const int width : {0, 32, 64, 128})
    for (const bool mn_major : {false, true})
      if (!mn_major || majors) out.push_back({width, mn_major});
  return out;
}

// Every swizzle and major of both operands, for every element type.
TEST(EmulatorWgmma, AgreesWithANaiveProductInEveryLayout) {
  Device device = emulated();
  int cases = 0;
  for (const ElementType& type : element_types) {
    const bool majors = type.bits == 16;
    for (const Layout a : layouts(majors))
      for (const Layout b : layouts(majors)) {
        check_naive(device, {type, type, type.floating ? "f32" : "s32", 32, a, b, false});
        if (HasFatalFailure()) return;
        ++cases;
      }
  }
  EXPECT_EQ(cases, 2 * 64 + 5 * 16);
}

TEST(EmulatorWgmma, AgreesWithANaiveProductInEveryShape) {
  Device device = emulated();
  const ElementType &f16 = element_types[0], &e4m3 = element_types[3], &e5m2 = element_types[4],
                    &s8 = element_types[5], &u8 = element_types[6];
  for (int n = 8; n <= 256; n += 8) {
    check_naive(device, {f16, f16, "f16", n, {128, false}, {n % 64 ? 0 : 128, true}, n % 16 == 0});
    check_naive(device,
                {e4m3, e5m2, n % 16 ? "f16" : "f32", n, {64, false}, {32, false}, n % 24 == 0});
    if (n <= 24 || n % 16 == 0)
      check_naive(device, {u8, s8, "s32", n, {0, false}, {128, false}, n % 32 == 0});
    if (HasFatalFailure()) return;
  }
}

// ---- Every form.

// All operands are zeros: D is unchanged, or becomes zero.
TEST(EmulatorWgmma, EveryFormLoadsAndRuns) {
  Device device = emulated();
  std::set<std::string> seen;
  std::string text;
  std::vector<std::string> names;
  for (const isa::Form& form : isa::wgmma_forms()) {
    WgmmaCase c{.mnemonic = isa::spell(form),
                .d_registers = isa::fragment(form, Operand::d).registers,
                .a_in_registers = form.a_in_registers,
                .sparse = form.sparsity != isa::Sparsity::dense};
    c.immediates = immediates_of(form, 1, 1, 0, 0);
    seen.insert(c.mnemonic + (c.a_in_registers ? " registers" : ""));
    names.push_back("k" + std::to_string(names.size()));
    std::string registers =
        ".reg .pred p;\n.reg .b32 m, a<4>, d<128>;\n.reg .b64 rd_a, rd_b, at;\n";
    const std::string last = "d" + std::to_string(c.d_registers - 1);
    text += ".visible .entry " + names.back() + "(.param .u64 out)\n{\n" + registers +
            "ld.param.u64 at, [out];\nmov.b32 d0, 7;\nmov.b32 " + last +
            ", 7;\nsetp.eq.u32 p, 0, 1;\nmov.b64 rd_a, 0x4000000000010;\nmov.b64 rd_b, rd_a;\n"
            "mov.b32 m, 0x44444444;\n" +
            wgmma_text(c) + "st.global.b32 [at], d0;\nst.global.b32 [at+4], " + last +
            ";\nret;\n}\n";
  }
  EXPECT_EQ(seen.size(), isa::wgmma_forms().size());
  auto module = device.load(wgmma_module(text));
  ASSERT_TRUE(module) << module.diags().text();
  Buffer out = std::move(*device.allocate(8));
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto kernel = module->kernel(names[i]);
    ASSERT_TRUE(kernel) << kernel.diags().text();
    ASSERT_TRUE(out.fill(0xFF));
    ASSERT_TRUE(kernel->launch({.block = {128}, .dynamic_shared = 65536}, Arguments().add(out)));
    ASSERT_TRUE(device.synchronize());
    EXPECT_EQ(*out.read_all<std::uint32_t>(), (Words{0, 0})) << names[i];
  }
}

// ---- Errors.

struct Complaint {
  std::string id, message;
  int line = 0;
};

Complaint complaint_of(const std::string& body, std::uint32_t threads,
                       const DeviceOptions& options = {}) {
  Device device = std::move(*Device::open("emulator", options));
  const std::string text = wgmma_module(
      ".visible .entry k()\n{\n.reg .pred p, q;\n.reg .b32 t, d<4>, a<4>;\n.reg .b64 rd_a, rd_b;\n"
      "mov.u32 t, %tid.x;\nsetp.eq.u32 p, 0, 0;\nmov.b64 rd_a, 0x4000000000010;\nmov.b64 rd_b, "
      "rd_a;\n" +
      body + "\nret;\n}\n");
  auto module = device.load(text);
  if (!module) return {std::string(module.diags()[0].id), module.diags()[0].message, 0};
  auto kernel = module->kernel("k");
  if (!kernel)
    return {std::string(kernel.diags()[0].id), kernel.diags()[0].message,
            kernel.diags()[0].place.line};
  EXPECT_TRUE(kernel->launch({.block = {threads}, .dynamic_shared = 8192}, {}));
  EXPECT_FALSE(device.synchronize());
  const auto findings = device.findings();
  return findings.empty() ? Complaint{}
                          : Complaint{findings[0].id, findings[0].message, findings[0].line};
}

const std::string product =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d0, d1, d2, d3}, rd_a, rd_b, p, 1, 1, 0, "
    "0;";
constexpr int body_line = 14;

TEST(EmulatorWgmma, MissingWarpsAreFindings) {
  EXPECT_EQ(complaint_of(product, 96).id, "divergent-collective");
  EXPECT_EQ(complaint_of(product, 128 + 64).id, "divergent-collective");
  EXPECT_EQ(complaint_of(product, 120).id, "divergent-collective") << "lanes that do not exist";
  const Complaint exited = complaint_of("setp.lt.u32 q, t, 32;\n@q exit;\n" + product, 128);
  EXPECT_EQ(exited.id, "divergent-collective");
  EXPECT_EQ(exited.line, body_line + 2);
  EXPECT_NE(exited.message.find("3 of the 4 warps"), std::string::npos) << exited.message;
  EXPECT_EQ(complaint_of("setp.lt.u32 q, t, 5;\n@q exit;\n" + product, 128).id,
            "divergent-collective");
  const Complaint other =
      complaint_of("setp.lt.u32 q, t, 64;\n@q bra A;\n" + product + "\nret;\nA:\n" + product, 128);
  EXPECT_EQ(other.id, "divergent-collective");
  EXPECT_NE(other.message.find("wait at line"), std::string::npos) << other.message;
}

// What a run of two warpgroups finds, and at which line of the body.
std::string found_in(const std::string& body) {
  Device device = *Device::open("emulator", {.checks = Checks::memory});
  const auto module = device.load(wgmma_module(
      ".visible .entry k()\n{\n.reg .pred p, q;\n.reg .b32 t, n, d<8>;\n.reg .b64 rd_a, rd_b;\n"
      "mov.u32 t, %tid.x;\nsetp.ne.u32 p, 0, 0;\nmov.b64 rd_a, 0x4000000000010;\nmov.b64 rd_b, "
      "rd_a;\nwgmma.fence.sync.aligned;\n" +
      body + "\nret;\n}\n"));
  EXPECT_TRUE(module) << module.diags().text();
  auto kernel = module->kernel("k");
  EXPECT_TRUE(kernel->launch({.block = {256}, .dynamic_shared = 8192}, {}));
  (void)device.synchronize();
  std::string out;
  for (const Finding& each : device.findings())
    out += fmt::format("{} {};", each.id, each.line - body_line);
  return out;
}

TEST(EmulatorWgmma, ProductsThatNobodyWaitsForAreFindings) {
  const std::string commit = "\nwgmma.commit_group.sync.aligned;\n";
  const auto wait = [](int pending) {
    return fmt::format("wgmma.wait_group.sync.aligned {};\n", pending);
  };
  // No wait; one group too few; outside of all groups; behind the last wait; in one warpgroup.
  EXPECT_EQ(found_in(product + commit), "wgmma-wait 1;");
  EXPECT_EQ(found_in(product + commit + product + commit + wait(1)), "wgmma-wait 3;");
  EXPECT_EQ(found_in(product + commit + product + "\n" + wait(0)), "wgmma-wait 3;");
  EXPECT_EQ(found_in(commit + product + "\n" + wait(0)), "wgmma-wait 3;");
  EXPECT_EQ(found_in(product + commit + wait(0) + product + commit), "wgmma-wait 4;");
  EXPECT_EQ(
      found_in("setp.lt.u32 q, t, 128;\n" + product + commit + "@q bra A;\n" + wait(0) + "A:\n"),
      "wgmma-wait 2;");
  // Near misses: a wait for all; for several groups at once; in both branches; in a loop; a group
  // without a product that is left pending; a second wait, for less than is already done.
  EXPECT_EQ(found_in(product + commit + product + commit + wait(0) + wait(1)), "");
  EXPECT_EQ(found_in(product + commit + wait(0)), "");
  EXPECT_EQ(found_in(product + commit + product + commit + wait(0)), "");
  EXPECT_EQ(found_in("setp.lt.u32 q, t, 128;\n" + product + commit + "@q bra A;\n" + wait(0) +
                     "ret;\nA:\n" + wait(0)),
            "");
  EXPECT_EQ(found_in("mov.u32 n, 0;\nL:\n" + product + commit + wait(1) +
                     "add.u32 n, n, 1;\nsetp.lt.u32 q, n, 3;\n@q bra L;\n" + wait(0)),
            "");
  EXPECT_EQ(found_in(product + commit + commit + wait(1)), "");
}

TEST(EmulatorWgmma, OperandsThatDifferAreFindings) {
  const Complaint b = complaint_of("cvt.u64.u32 rd_b, t;\n" + product, 128);
  EXPECT_EQ(b.id, "warpgroup-operand");
  EXPECT_NE(b.message.find("b-desc"), std::string::npos) << b.message;
  EXPECT_EQ(b.line, body_line + 1);
  const Complaint scale = complaint_of("setp.lt.u32 p, t, 127;\n" + product, 128);
  EXPECT_NE(scale.message.find("scale-d"), std::string::npos) << scale.message;
}

TEST(EmulatorWgmma, DescriptorsOutsideSharedMemoryFault) {
  const Complaint fault = complaint_of("mov.b64 rd_b, 0x40000000103FFF;\n" + product, 128);
  EXPECT_EQ(fault.id, "memory-fault");
  EXPECT_EQ(fault.line, body_line + 1);
  EXPECT_NE(fault.message.find("B: the start address leads to 0x3fff0 for column 0, k 0"),
            std::string::npos)
      << fault.message;
}

// Which operand, and which of its fields.
TEST(EmulatorWgmma, DescriptorsThatFaultAreDecoded) {
  const auto fault = [&](const std::string& body) {
    const Complaint complaint = complaint_of(body + product, 128);
    EXPECT_EQ(complaint.id, "memory-fault");
    return complaint.message;
  };
  const auto expect = [](const std::string& message, const std::string& words) {
    EXPECT_NE(message.find(words), std::string::npos) << message << "\n" << words;
  };
  const std::string stride = fault("mov.b64 rd_a, 0x0000200000080000;\n");
  expect(stride, "A: the stride offset leads to");
  expect(stride,
         "start address 0x0 (field 0 \u00b7 16), leading offset 0x80 (field 8 \u00b7 16), "
         "stride offset 0x20000 (field 8192 \u00b7 16), no swizzle");
  expect(fault("mov.b64 rd_b, 0x0000000820000000;\n"), "B: the leading offset leads to");
  expect(fault("mov.b64 rd_a, 0x4000200000010000;\n"), "swizzle of 128 bytes");
}

TEST(EmulatorWgmma, WrongTextIsRefusedBeforeAnythingRuns) {
  const auto refused = [](const std::string& body, const std::string& id,
                          const DeviceOptions& options = {}) {
    const Complaint complaint = complaint_of(body, 128, options);
    EXPECT_EQ(complaint.id, id) << complaint.message;
    EXPECT_EQ(complaint.line, body_line) << complaint.message;
  };
  const std::string start = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 ";
  refused(start + "{d0, d1, d2}, rd_a, rd_b, p, 1, 1, 0, 0;", "register-count");
  refused(start + "{d0, d1, d2, d3}, rd_a, rd_b, p, 2, 1, 0, 0;", "immediate-range");
  refused(start + "{d0, d1, d2, d3}, rd_a, rd_b, p, 0, 1, 0, 0;", "immediate-range");
  refused(start + "{d0, d1, d2, d3}, rd_a, rd_b, p, 1, 1, 0, 2;", "immediate-range");
  refused(start + "{d0, d1, d2, d3}, {a0, a1, a2, a3}, rd_b, p, 1, 1, 0, 0;", "operand-count");
  refused("wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {d0, d1}, rd_a, rd_b, p, 1, 1, 0, 0;",
          "unknown-form");
  refused(product, "unsupported-instruction", {.hardware = "sm_100"});
}

}  // namespace
}  // namespace tartan::test
