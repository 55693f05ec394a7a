// SPDX-License-Identifier: Apache-2.0
// f32 is rounded to tf32 to nearest even on every path that copies, converts and multiplies it.
#include <bit>
#include <random>

#include "tartan/kernels/sparse.h"
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::Launch;

constexpr std::uint32_t nan_bits = 0x7FFFFFFF, infinity_bits = 0x7F800000;

// The nearest with 10 bits of mantissa, by comparing both neighbours.
std::uint32_t nearest_even(std::uint32_t word) {
  const std::uint32_t sign = word & 0x80000000, size = word & 0x7FFFFFFF;
  if (size > infinity_bits) return nan_bits;
  const std::uint32_t down = size & ~std::uint32_t{0x1FFF}, up = down + 0x2000;
  const std::uint32_t below = size - down, above = up - size;
  const bool to_down = below < above || (below == above && (down >> 13 & 1) == 0);
  return sign | (to_down ? down : up);
}

// Ties of both kinds, their neighbours, the limits of the range, and others.
std::vector<std::uint32_t> words(std::size_t count) {
  std::vector<std::uint32_t> out = {0x3F801000, 0x3F803000, 0x3F800FFF, 0x3F801001, 0x3F802FFF,
                                    0x3F803001, 0x3F800000, 0x3FFFF000, 0x3FFFEFFF, 0x7F7FFFFF,
                                    0x7F7FEFFF, 0x7F7FF000, 0x7F800000, 0x7FFFFFFF, 0x7FC00000,
                                    0x00000000, 0x00801000, 0x00803000, 0x00800FFF, 0x7FFFE000};
  for (std::size_t i = 0, fixed = out.size(); i < fixed; ++i) out.push_back(out[i] | 0x80000000);
  std::mt19937 random(13);
  while (out.size() < count) {
    std::uint32_t word = static_cast<std::uint32_t>(random());
    if (out.size() % 2) word = (word & ~std::uint32_t{0x1FFF}) | 0x1000;
    const bool normal = (word & infinity_bits) != 0 && (word & 0x7FFFFFFF) < infinity_bits;
    if (normal) out.push_back(word);
  }
  out.resize(count);
  return out;
}

bool same(std::uint32_t got, std::uint32_t expected) {
  if (expected == nan_bits) return (got & 0x7FFFFFFF) > infinity_bits;
  return got == expected || (got | expected) == 0x80000000;  // sums of zeros are plus zero
}

Bytes bytes_of(const std::vector<std::uint32_t>& values) {
  Bytes out(values.size() * 4);
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::vector<std::uint32_t> words_of(const Bytes& bytes) {
  std::vector<std::uint32_t> out(bytes.size() / 4);
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

constexpr int size = 64;

// A diagonal of numbers times ones, or ones times a diagonal: each row or column of C is one
// number.
struct Diagonal {
  std::vector<std::uint32_t> numbers;
  bool of_a;

  std::vector<std::uint32_t> matrix(bool diagonal) const {
    constexpr std::uint32_t one = 0x3F800000;
    std::vector<std::uint32_t> out(size * size, diagonal ? 0 : one);
    for (std::size_t i = 0; i < size && diagonal; ++i) out[i * size + i] = numbers[i];
    return out;
  }
  Launch launch(const Gemm& options, bool sparse) const {
    return {{options.blocks(size, size)},
            [this, sparse](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
              arguments.add(size).add(size).add(size);
              Bytes a = bytes_of(matrix(of_a));
              std::vector<Bytes> inputs;
              if (sparse) {
                auto compressed = kernels::compress(a, size, size, f32);
                EXPECT_TRUE(compressed);
                inputs = {compressed->values, bytes_of(compressed->metadata)};
              } else {
                inputs = {a};
              }
              inputs.push_back(bytes_of(matrix(!of_a)));
              for (const Bytes& each : inputs) {
                buffers.push_back(testing_gemm::buffer_of(device, each));
                arguments.add(buffers.back());
              }
              Buffer c = *device.allocate(size * size * 4);
              EXPECT_TRUE(c.fill(0xFF));
              arguments.add(c);
              return c;
            }};
  }
  int wrong(const std::vector<std::uint32_t>& c) const {
    EXPECT_EQ(c.size(), std::size_t{size} * size);
    int out = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      const std::uint32_t from = numbers[of_a ? i / size : i % size];
      if (same(c[i], nearest_even(from)) || out++ > 0) continue;
      ADD_FAILURE() << fmt::format("0x{:08x}: expected 0x{:08x}, got 0x{:08x}", from,
                                   nearest_even(from), c[i]);
    }
    return out;
  }
};

struct Path {
  const char *target, *instruction;  // a part of the text that identifies the path
  Gemm options;
  bool sparse = false;
};

std::vector<Path> paths() {
  Gemm plain{.m = 0, .n = 0, .k = 0, .a = f32, .b = f32};
  plain.multiple = 64, plain.multiple_c = 64;
  Gemm ragged = plain, engine = plain, warpgroups = plain;
  ragged.multiple = ragged.multiple_c = 1;
  engine.producers = 2;
  warpgroups.tile = {.m = 64, .n = 64, .k = 32, .warps_m = 4, .warps_n = 1};
  warpgroups.producers = 4;
  Gemm by_threads = warpgroups;  // whose rows TMA cannot address
  by_threads.multiple = 2;
  return {{"sm_80", "cp.async.cg", plain},
          {"sm_80", "cp.async.ca", ragged},
          {"sm_89", "mma.sync", plain},
          {"sm_90", "cvt.rn.tf32.f32", plain},
          {"sm_90", "cp.async.bulk.tensor", engine},
          {"sm_90a", "wgmma.mma_async", warpgroups},
          {"sm_90a", "cvt.rn.tf32.f32", by_threads},
          {"sm_120", "cvt.rn.tf32.f32", plain},
          {"sm_80", "mma.sp", plain, true},
          {"sm_90a", "wgmma.mma_async.sp", warpgroups, true}};
}

TEST(GemmTf32, EveryPathRoundsToNearestEven) {
  const std::vector<std::uint32_t> all = words(256);
  for (const Path& path : paths())
    for (std::size_t first = 0; first < all.size(); first += size)
      for (const bool of_a : {true, false}) {
        SCOPED_TRACE(fmt::format("{} {}, from {} on, {}", path.target, path.instruction, first,
                                 of_a ? "A" : "B"));
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
        const Diagonal diagonal{{begin, begin + size}, of_a};
        if (path.sparse && !of_a) continue;  // ones are not sparse
        const Kernel kernel =
            path.sparse ? kernels::sparse_gemm(path.options) : kernels::gemm(path.options);
        const Target target = testing_gemm::target_of(path.target);
        const auto compiled = compile(kernel, target);
        ASSERT_TRUE(compiled) << compiled.diags().text();
        EXPECT_NE(compiled->ptx.find(path.instruction), std::string::npos);
        EXPECT_EQ(compiled->ptx.find("cvt.rna"), std::string::npos);
        std::vector<Device*> devices = {&testing_gemm::emulator()};
        if (testing_gemm::runs_on_gpu(target)) devices.push_back(testing_gemm::gpu());
        for (Device* device : devices)
          EXPECT_EQ(diagonal.wrong(words_of(testing_gemm::run_on(
                        *device, *compiled, diagonal.launch(path.options, path.sparse)))),
                    0);
      }
}

}  // namespace
}  // namespace tartan
