// SPDX-License-Identifier: Apache-2.0
// Words for warps, bits, atomic operations and synchronization on the emulator, against C++.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <bit>
#include <cstring>
#include <numeric>

#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"
#include "tests/support/numbers.h"

namespace tartan {
namespace {

std::vector<const char*> targets() {
  std::vector<const char*> out = {"sm_75", "sm_80", "sm_90a", "sm_120a"};
  std::erase_if(out, [](const char* each) { return !test::engine_runs(*Target::parse(each)); });
  return out;
}

// Runs `body` with an input and an output of `type`; the output starts as zeros.
std::vector<std::byte> bytes_of(Type type, const std::vector<std::byte>& input, std::size_t size,
                                const char* target, int threads,
                                const std::function<void(Builder&, Global, Global)>& body,
                                unsigned blocks = 1) {
  const auto compiled = compile(kernel("words", {.block = threads},
                                       [&](Builder& k) {
                                         auto in = k.global("in", type, row_major(1, 1024));
                                         body(k, in, k.global("out", type, row_major(1, 1024)));
                                       }),
                                Target::parse(target)->arch);
  EXPECT_TRUE(compiled) << compiled.diags().text();
  if (!compiled) return {};
  Device device = test::open_engine();
  Buffer in = *device.allocate(8192), out = *device.allocate(8192);
  EXPECT_TRUE(in.fill(0) && out.fill(0));
  std::vector<std::byte> whole(8192);
  std::memcpy(whole.data(), input.data(), input.size());
  EXPECT_TRUE(in.write(whole));
  const auto module = device.load(compiled->ptx);
  EXPECT_TRUE(module) << module.diags().text();
  if (!module) return {};
  LoadedKernel loaded = *module->kernel("words");
  EXPECT_TRUE(loaded.launch({.grid = {blocks}, .block = {static_cast<unsigned>(threads)}},
                            Arguments().add(in).add(out)));
  const auto done = device.synchronize();
  EXPECT_TRUE(done) << done.diags().text();
  for (const Finding& finding : device.findings())
    ADD_FAILURE() << finding.id << ": " << finding.message;
  auto got = *out.read_all<std::byte>();
  got.resize(size);
  return got;
}

// One element of T for each of 32 lanes.
template <typename T>
std::vector<T> lanes(Type type, const std::vector<T>& input, const char* target,
                     const std::function<Scalar(Builder&, Scalar)>& f) {
  std::vector<std::byte> bytes(input.size() * sizeof(T));
  std::memcpy(bytes.data(), input.data(), bytes.size());
  const auto got = bytes_of(type, bytes, 32 * sizeof(T), target, 32,
                            [&](Builder& k, const Global& in, const Global& out) {
                              k.write(out, 0, k.thread(), f(k, k.read(in, 0, k.thread())));
                            });
  std::vector<T> out(32);
  if (got.size() == 32 * sizeof(T)) std::memcpy(out.data(), got.data(), got.size());
  return out;
}

template <typename T>
std::vector<T> ramp(T from, T step) {
  std::vector<T> out;
  for (int i = 0; i < 32; ++i) out.push_back(static_cast<T>(from + static_cast<T>(i) * step));
  return out;
}

template <typename T>
void expect_shuffles(Type type, const char* target) {
  SCOPED_TRACE(fmt::format("{} {}", target, name(type)));
  const auto x = ramp<T>(static_cast<T>(3), static_cast<T>(5));
  const auto expect = [&](const std::function<Scalar(Builder&, Scalar)>& f,
                          const std::function<int(int)>& from) {
    const auto got = lanes<T>(type, x, target, f);
    for (int i = 0; i < 32; ++i)
      EXPECT_EQ(got[static_cast<std::size_t>(i)], x[static_cast<std::size_t>(from(i))]) << i;
  };
  expect([](Builder&, Scalar v) { return shuffle_up(v, 3); },
         [](int i) { return i < 3 ? i : i - 3; });
  expect([](Builder&, Scalar v) { return shuffle_down(v, 5); },
         [](int i) { return i + 5 > 31 ? i : i + 5; });
  expect([](Builder&, Scalar v) { return shuffle(v, 7); }, [](int) { return 7; });
  expect([](Builder& k, Scalar v) { return shuffle(v, 31 - k.lane()); },
         [](int i) { return 31 - i; });
  expect([](Builder&, Scalar v) { return shuffle_xor(v, 9); }, [](int i) { return i ^ 9; });
}

TEST(Words, ShufflesOfEveryWidth) {
  for (const char* target : targets()) {
    expect_shuffles<std::uint32_t>(u32, target);
    expect_shuffles<float>(f32, target);
    expect_shuffles<double>(f64, target);
    expect_shuffles<std::int64_t>(s64, target);
    expect_shuffles<std::uint16_t>(f16, target);
    expect_shuffles<std::uint8_t>(u8, target);
  }
}

TEST(Words, PrefixSum) {
  const auto got = lanes<std::uint32_t>(u32, ramp(1U, 3U), "sm_80", [](Builder& k, Scalar x) {
    Scalar sum = x;
    for (int by = 1; by < 32; by *= 2) sum += select(k.lane() >= by, shuffle_up(sum, by), 0);
    return sum;
  });
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], sum += 1 + 3 * i);
}

TEST(Words, Votes) {
  for (const char* target : targets()) {
    const auto got = lanes<std::uint32_t>(u32, ramp(0U, 1U), target, [](Builder&, Scalar x) {
      return ballot(x % 3 == 0) + select(any_lane(x == 31), 1, 0) +
             select(all_lanes(x < 31), 4, 0) + select(all_lanes(x < 32), 8, 0);
    });
    for (const auto each : got) EXPECT_EQ(each, 0x49249249U + 9);
  }
}

TEST(Words, Bits) {
  std::vector<std::uint32_t> x;
  for (std::uint32_t i = 0; i < 32; ++i) x.push_back(0x9E3779B9U * (i + 1));
  const auto logic = lanes<std::uint32_t>(u32, x, "sm_80", [](Builder&, Scalar v) {
    return lop3(v, v >> 3, 0x0F0F0F0F, (0xF0 & 0xCC) | 0xAA) ^ lop3(v, 7, v << 5, 0x96);
  });
  const auto bytes = lanes<std::uint32_t>(
      u32, x, "sm_80", [](Builder&, Scalar v) { return prmt(v, v >> 4, 0x7531); });
  const auto signs =
      lanes<std::uint32_t>(u32, x, "sm_80", [](Builder&, Scalar v) { return prmt(v, 0, 0xB803); });
  const auto dots = lanes<std::int32_t>(
      s32, std::vector<std::int32_t>(x.begin(), x.end()), "sm_80",
      [](Builder& k, Scalar v) { return dp4a(v, k.convert(v, u32) >> 1, k.constant(s32, 100)); });
  for (std::size_t i = 0; i < 32; ++i) {
    const std::uint32_t v = x[i];
    EXPECT_EQ(logic[i], ((v & v >> 3) | 0x0F0F0F0F) ^ (v ^ 7 ^ v << 5));
    const std::uint64_t both = std::uint64_t{v >> 4} << 32 | v;
    const auto byte = [&](int n) { return static_cast<std::uint32_t>(both >> 8 * n & 0xFF); };
    EXPECT_EQ(bytes[i], byte(1) | byte(3) << 8 | byte(5) << 16 | byte(7) << 24);
    const auto sign = [&](int n) { return (v >> (8 * n + 7) & 1) ? 0xFFU : 0U; };
    EXPECT_EQ(signs[i], (v >> 24) | (v & 0xFF) << 8 | sign(0) << 16 | sign(3) << 24);
    std::int32_t sum = 100;
    for (int n = 0; n < 4; ++n)
      sum +=
          static_cast<std::int8_t>(v >> 8 * n) * static_cast<std::int32_t>(v >> 1 >> 8 * n & 0xFF);
    EXPECT_EQ(dots[i], sum);
  }
}

// The assembler would convert the number where st takes its register: it is moved before.
TEST(Words, LowBitsOfNumbers) {
  const auto added = [](Builder& k, const Scalar& x) {
    return k.bitcast(k.convert(x, f32) + 12582912.0, u32);
  };
  for (const char* target : targets()) {
    const std::vector<std::uint8_t> bytes = ramp<std::uint8_t>(0, 7);
    EXPECT_EQ(bytes, lanes<std::uint8_t>(Type::u8, bytes, target, [&](Builder& k, Scalar x) {
                return k.convert(added(k, x), Type::u8);
              }));
    const std::vector<std::uint16_t> words = ramp<std::uint16_t>(3, 1999);
    EXPECT_EQ(words, lanes<std::uint16_t>(Type::u16, words, target, [&](Builder& k, Scalar x) {
                return k.convert(select(x > 500, added(k, x), k.convert(x, u32)), Type::u16);
              }));
  }
  const auto compiled =
      compile(kernel("narrow", {.block = 32},
                     [&](Builder& k) {
                       const auto out = k.global("out", Type::u8, row_major(1, 32));
                       k.write(out, 0, k.thread(), k.convert(added(k, k.thread()), Type::u8));
                     }),
              *Arch::parse("sm_80"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  const std::size_t store = compiled->ptx.find("st.global.b8"),
                    from = compiled->ptx.find("], %r", store) + 3,
                    end = compiled->ptx.find(';', from);
  ASSERT_NE(end, std::string::npos) << compiled->ptx;
  const std::string moved = "mov.b32 " + compiled->ptx.substr(from, end - from) + ", %r";
  EXPECT_NE(compiled->ptx.find(moved), std::string::npos) << compiled->ptx;
}

// Both halves are what single numbers give.
TEST(Words, PackedArithmetic) {
  for (const char* target : targets())
    for (const Type single : {f16, bf16}) {
      if (single == bf16 && std::string_view(target) == "sm_75") continue;
      SCOPED_TRACE(fmt::format("{} {}", target, name(single)));
      const Type pair = single == f16 ? f16x2 : bf16x2;
      std::vector<std::uint32_t> x;
      for (int i = 0; i < 32; ++i)
        x.push_back(static_cast<std::uint32_t>(
            testing_numbers::float_bits(single, i % 16 * 0.25 - 3) |
            testing_numbers::float_bits(single, 5 - i % 16 * 0.5) << 16));
      const auto f = [](const Scalar& v) {
        return maximum(fma(v, v, abs(v) * 0.5) - 1.5, -v + 2) + minimum(v, 0.25);
      };
      const auto got = lanes<std::uint32_t>(u32, x, target, [&](Builder& k, Scalar v) {
        return k.bitcast(f(k.bitcast(v, pair)), u32);
      });
      for (std::size_t i = 0; i < 32; ++i)
        for (int half = 0; half < 2; ++half) {
          const double v = testing_numbers::float_value(single, x[i] >> 16 * half & 0xFFFF);
          const double expected =
              std::max(v * v + std::fabs(v) * 0.5 - 1.5, -v + 2) + std::min(v, 0.25);
          EXPECT_EQ(
              testing_numbers::float_value(single, got[i] >> 16 * half & 0xFFFF),
              testing_numbers::float_value(single, testing_numbers::float_bits(single, expected)))
              << v;
        }
    }
}

TEST(Words, AtomicOperations) {
  const auto word_at = [](const std::vector<std::byte>& bytes, std::size_t i) {
    std::uint32_t out = 0;
    std::memcpy(&out, &bytes[4 * i], 4);
    return out;
  };
  for (const char* target : targets())
    for (const bool in_shared : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", target, in_shared));
      const auto got =
          bytes_of(u32, {}, 64, target, 64, [&](Builder& k, const Global&, const Global& out) {
            auto s = k.shared("s", u32, row_major(1, 16));
            k.when(k.thread() < 16, [&] { k.write(s, 0, k.thread(), 0); });
            k.barrier();
            const auto all = [&](const auto& memory) {
              const Scalar t = k.thread();
              k.atomic(AtomicOp::add, memory, 0, 0, t);
              k.atomic(AtomicOp::max, memory, 0, 1, t * 3, {.scope = MemoryScope::cta});
              k.atomic(AtomicOp::bit_or, memory, 0, 2, Scalar(1) << t % 8);
              k.atomic(AtomicOp::bit_xor, memory, 0, 3, t, {.order = MemoryOrder::acq_rel});
              k.atomic(AtomicOp::inc, memory, 0, 4, 9);
              k.compare_exchange(memory, 0, 5, 0, t + 1);
              k.when(t == 3, [&] { k.atomic(AtomicOp::exchange, memory, 0, 6, 42); });
            };
            if (!in_shared) return all(out);
            all(s);
            k.barrier();
            k.when(k.thread() < 16, [&] { k.write(out, 0, k.thread(), k.read(s, 0, k.thread())); });
          });
      ASSERT_EQ(got.size(), 64u);
      EXPECT_EQ(word_at(got, 0), 63U * 32);
      EXPECT_EQ(word_at(got, 1), 63U * 3);
      EXPECT_EQ(word_at(got, 2), 255U);
      EXPECT_EQ(word_at(got, 3), 0U);
      EXPECT_EQ(word_at(got, 4), 64U % 10);
      EXPECT_GE(word_at(got, 5), 1U);
      EXPECT_EQ(word_at(got, 6), 42U);
    }
}

TEST(Words, AtomicSumsOfFloats) {
  for (const Type type : {f32, f64, f16, bf16, f16x2}) {
    SCOPED_TRACE(name(type));
    const auto got =
        bytes_of(type, {}, 8, "sm_90a", 32, [&](Builder& k, const Global&, const Global& out) {
          k.atomic(AtomicOp::add, out, 0, 0, k.constant(type, 0.5));
        });
    ASSERT_EQ(got.size(), 8u);
    std::uint64_t word = 0;
    std::memcpy(&word, got.data(), static_cast<std::size_t>(bits(type)) / 8);
    const Type single = type == f16x2 ? f16 : type;
    EXPECT_EQ(testing_numbers::float_value(single, type == f16x2 ? word & 0xFFFF : word), 16);
    if (type == f16x2) {
      EXPECT_EQ(testing_numbers::float_value(f16, word >> 16), 16);
    }
  }
}

// The last of the blocks, by a counter, adds what all have written.
TEST(Words, LastBlockSums) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    const auto got = bytes_of(
        u32, {}, 4, target, 32,
        [&](Builder& k, const Global& in, const Global& out) {
          k.when(k.elect(), [&] {
            k.write(in, 0, k.block_x() + 1, k.block_x() * 10);
            k.fence();
            const Scalar ticket = k.atomic(AtomicOp::inc, in, 0, 0, k.blocks_x() - 1,
                                           {.order = MemoryOrder::acq_rel});
            k.when(ticket == k.blocks_x() - 1, [&] {
              k.fence();
              auto sum = k.variable(k.constant(u32, 0));
              k.loop(0, k.blocks_x(), 1, [&](Scalar i) { sum += k.read(in, 0, i + 1); });
              k.write(out, 0, 0, sum);
            });
          });
        },
        8);
    std::uint32_t sum = 0;
    ASSERT_EQ(got.size(), 4u);
    std::memcpy(&sum, got.data(), 4);
    EXPECT_EQ(sum, 280U);
  }
}

// Two warps hand numbers to two others.
TEST(Words, NamedBarriers) {
  for (const char* target : targets()) {
    const auto got =
        bytes_of(u32, {}, 256, target, 128, [](Builder& k, const Global&, const Global& out) {
          auto s = k.shared("s", u32, row_major(1, 64));
          k.when(
              k.warp() < 2,
              [&] {
                k.write(s, 0, k.thread(), k.thread() * 7);
                k.arrive(3, 128);
              },
              [&] {
                k.barrier(3, 128);
                const Scalar i = k.thread() - 64;
                k.write(out, 0, i, k.read(s, 0, 63 - i));
              });
        });
    ASSERT_EQ(got.size(), 256u);
    for (std::uint32_t i = 0; i < 64; ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, &got[4 * i], 4);
      EXPECT_EQ(word, (63 - i) * 7);
    }
  }
}

// Four warps in turn, by barriers whose numbers the GPU computes: each adds to what it finds.
TEST(Words, BarriersByNumbersOfTheGpu) {
  for (const char* target : targets()) {
    const auto got =
        bytes_of(u32, {}, 4, target, 128, [](Builder& k, const Global&, const Global& out) {
          auto s = k.shared("s", u32, row_major(1, 1));
          const auto number = [&](const Scalar& warp) { return k.convert(warp + 2, u32); };
          k.when(
              k.warp() == 0, [&] { k.write(s, 0, 0, 5); },
              [&] { k.barrier(number(k.warp()), 64); });
          const Scalar next = k.read(s, 0, 0) * 10 + k.warp();
          k.warp_sync();
          k.write_if(s, 0, 0, next, k.lane() == 0);
          k.when(
              k.warp() < 3, [&] { k.arrive(number(k.warp() + 1), 64); },
              [&] { k.write(out, 0, 0, next); });
        });
    ASSERT_EQ(got.size(), 4u);
    std::uint32_t word = 0;
    std::memcpy(&word, got.data(), 4);
    EXPECT_EQ(word, 50123U);
  }
}

TEST(Words, DependentLaunches) {
  const auto text = [](const char* target) {
    const auto compiled = compile(kernel("dependent", {},
                                         [](Builder& k) {
                                           k.griddepcontrol_wait();
                                           k.griddepcontrol_launch_dependents();
                                         }),
                                  *Target::parse(target));
    EXPECT_TRUE(compiled) << compiled.diags().text();
    return compiled ? compiled->ptx : "";
  };
  EXPECT_NE(text("sm_90a").find("griddepcontrol.wait"), std::string::npos);
  EXPECT_NE(text("sm_90a").find("griddepcontrol.launch_dependents"), std::string::npos);
  EXPECT_EQ(text("sm_80").find("griddepcontrol"), std::string::npos);
}

TEST(Words, AnyInstructionByName) {
  std::vector<std::uint32_t> x;
  for (std::uint32_t i = 0; i < 32; ++i) x.push_back(0x9E3779B9U * (i + 1));
  for (const char* target : targets()) {
    const auto got = lanes<std::uint32_t>(u32, x, target, [](Builder& k, Scalar v) {
      const Scalar ones = k.instruction("popc.b32", {v})[0];
      const Scalar turned = k.bitcast(k.instruction("brev.b32", {v})[0], u32);
      const Scalar part = k.instruction("bfe.u32", {v, 5, 9})[0];
      const auto wide = k.instruction("mul.wide.u32", {v, k.convert(3, u32)})[0];
      EXPECT_EQ(wide.type(), u64);
      return ones + turned * part + k.convert(wide >> 32, u32);
    });
    for (std::size_t i = 0; i < 32; ++i) {
      std::uint32_t turned = 0;
      for (int bit = 0; bit < 32; ++bit) turned |= (x[i] >> bit & 1) << (31 - bit);
      EXPECT_EQ(got[i], static_cast<std::uint32_t>(std::popcount(x[i])) +
                            turned * (x[i] >> 5 & 0x1FF) +
                            static_cast<std::uint32_t>(std::uint64_t{x[i]} * 3 >> 32));
    }
  }
}

TEST(Words, InstructionsOnMemoryByName) {
  const auto got =
      bytes_of(u32, {}, 16, "sm_90a", 32, [](Builder& k, const Global&, const Global& out) {
        const Scalar at = k.address(out, 0, 0);
        k.when(k.thread() == 0, [&] {
          k.instruction("st.global.v4.u32", {at, k.constant(u32, 1), k.constant(u32, 2),
                                             k.constant(u32, 3), k.constant(u32, 4)});
          const auto x = k.instruction("ld.global.v2.u32", {at + 8});
          EXPECT_EQ(x.size(), 2u);
          k.instruction("red.global.add.u32", {at, x[0] * x[1]});
        });
      });
  std::uint32_t words[4] = {};
  ASSERT_EQ(got.size(), 16u);
  std::memcpy(words, got.data(), 16);
  EXPECT_EQ(words[0], 13U);
  EXPECT_EQ(words[3], 4U);
}

TEST(Words, StatementsOfPtx) {
  for (const char* target : targets()) {
    const auto got = lanes<std::uint32_t>(u32, ramp(1U, 7U), target, [](Builder& k, Scalar v) {
      const auto r = k.ptx(
          "{\n.reg .pred $p;\nsetp.gt.u32 $p, %2, %3;\n@$p add.u32 %0, %2, %3;\n"
          "@!$p sub.u32 %0, %3, %2;\nmov.u32 %1, %laneid;\n}",
          {u32, u32}, {v, 100});
      return r[0] * 64 + r[1];
    });
    for (std::uint32_t i = 0; i < 32; ++i) {
      const std::uint32_t v = 1 + 7 * i;
      EXPECT_EQ(got[i], (v > 100 ? v + 100 : 100 - v) * 64 + i);
    }
  }
}

TEST(Words, MistakesNameTheLine) {
  test::expect_told(
      [](Builder& k, const Scalar& i, const Scalar& x) {
        k.ptx("add.s32 %0, %1, %2;", {u32}, {i, x});
        k.ptx("add.s32 %0, %1;", {u32}, {i});
        k.ptx("add.s32 %0, %1, %3;", {u32}, {i, i});
        k.ptx("mov.u32 %0, %1;", {u32}, {i, i});
        k.ptx("fence.proxy.async;", {}, {});
        k.ptx("ret; } .visible .entry other() { ret;", {}, {});
        k.instruction("popc.b32", {i, i});
        k.instruction("popc.b16", {i});
        k.instruction("poppc.b32", {i});
        k.instruction("bra", {i});
        shuffle_up(i, 32);
        shuffle(i, x);
        ballot(i);
        lop3(i, i, i, 256);
        prmt(i, k.convert(i, u64), 0);
        dp4a(x, i, i);
        auto g = k.global("h", f32, row_major(1, 64));
        k.atomic(AtomicOp::max, g, 0, 0, x);
        k.atomic(AtomicOp::add, g, 0, 0, i < 3);
        k.barrier(0, 64);
        k.arrive(2, 40);
        k.barrier(i + 1, 40);
        k.arrive(x, 64);
        k.bitcast(i, f16);
        k.bitcast(i, f16x2) < 1;
      },
      {"in \"add.s32 %0, %1, %2;\"",
       "in \"add.s32 %0, %1;\"",
       "no operand %3",
       "%2 does not occur",
       "in \"fence.proxy.async;\"",
       "leaves the kernel",
       "wrong number of operands: expected popc",
       "unknown instruction popc.b16",
       "unknown instruction poppc.b32",
       "bra",
       "expected a lane from 0 to 31, found 32",
       "a shuffle's lane: expected an integer",
       "expected a condition of type pred",
       "lop3: expected a table from 0 to 255",
       "prmt: expected operands of 32 bits",
       "dp4a: expected integers",
       "max.f32",
       "element type mismatch: h has elements of f32, the value is pred",
       "named barrier: expected a number from 1 to 15",
       "found barrier 2 of 40 threads",
       "named barrier: expected 32 to 64 threads in whole warps, found 40",
       "named barrier: expected a number of type u32, found f32",
       "bitcast: expected types of one size",
       "no such operation on a value of type f16x2"});
}

}  // namespace
}  // namespace tartan
