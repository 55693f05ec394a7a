// SPDX-License-Identifier: Apache-2.0
// Decoding with latent attention at awkward sizes: on the emulator with all checks, and on a GPU if
// there is one, against the same formula in double.
#include <unistd.h>

#include <cmath>
#include <numeric>

#include "tartan/dsl/kernels/mla_decode.h"
#include "tests/support/machine_code.h"
#include "tests/support/numbers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tartan/tartan.h>

namespace tartan {
namespace {

using M = kernels::MlaDecode;
using Bits = std::vector<std::uint16_t>;

struct Sizes {
  std::vector<int> lengths;
  unsigned blocks = 3;
};

// In (-1, 1).
Bits elements(Type type, std::size_t count, unsigned seed) {
  Bits out(count);
  for (std::uint16_t& each : out) {
    seed = seed * 1664525 + 1013904223;
    const double x = (static_cast<int>(seed >> 8 & 0xffff) - 32768) / 32768.0;
    each = static_cast<std::uint16_t>(testing_numbers::float_bits(type, x));
  }
  return out;
}

// A cache whose pages are in no order, and which has NaN wherever no key is.
struct Cache {
  int most_pages = 1, pages = 2;
  std::vector<std::int32_t> table;
  Bits kv, q;

  Cache(const M& with, const Sizes& size) {
    const auto pages_of = [&](int length) { return (length + with.page - 1) / with.page; };
    for (const int length : size.lengths)
      most_pages = std::max(most_pages, pages_of(length)), pages += pages_of(length);
    int prime = 7, next = 0;
    while (std::gcd(prime, pages) != 1) ++prime;
    const auto nan =
        static_cast<std::uint16_t>(testing_numbers::float_bits(with.type, std::nan("")));
    kv.assign(static_cast<std::size_t>(pages) * with.page * M::key, nan);
    for (const int length : size.lengths)
      for (int i = 0; i < most_pages; ++i) {
        const bool exists = i < pages_of(length);
        const int page = exists ? next++ * prime % pages : 1 << 30;  // never read
        table.push_back(page);
        if (!exists) continue;
        const auto count =
            static_cast<std::size_t>(std::min(with.page, length - i * with.page)) * M::key;
        std::ranges::copy(elements(with.type, count, page + 1),
                          kv.begin() + std::ptrdiff_t{page} * with.page * M::key);
      }
    q = elements(with.type, size.lengths.size() * with.rows() * M::key, 5);
  }
};

constexpr float scale = 0.125F;  // scores within 9 or so of zero

std::vector<double> reference_of(const M& with, const Sizes& size, const Cache& in) {
  std::vector<double> out;
  const auto value = [&](std::uint16_t bits) {
    return testing_numbers::float_value(with.type, bits);
  };
  std::size_t row = 0;
  for (std::size_t s = 0; s < size.lengths.size(); ++s) {
    std::vector<double> keys;
    for (int j = 0; j < size.lengths[s]; ++j) {
      const std::size_t page = in.table[s * in.most_pages + j / with.page];
      for (int c = 0; c < M::key; ++c)
        keys.push_back(value(in.kv[(page * with.page + j % with.page) * M::key + c]));
    }
    for (int r = 0; r < with.rows(); ++r, ++row) {
      const int seen = size.lengths[s] - with.queries + r / with.heads + 1;
      std::vector<double> query, scores, o(M::latent);
      for (int c = 0; c < M::key; ++c) query.push_back(value(in.q[row * M::key + c]));
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int j = 0; j < seen; ++j) {
        scores.push_back(
            scale * std::inner_product(query.begin(), query.end(), keys.begin() + j * M::key, 0.0));
        top = std::max(top, scores.back());
      }
      for (int j = 0; j < seen; ++j) {
        const double weight = std::exp(scores[j] - top);
        sum += weight;
        for (int c = 0; c < M::latent; ++c) o[c] += weight * keys[j * M::key + c];
      }
      for (const double each : o) out.push_back(seen > 0 ? each / sum : 0);
    }
  }
  return out;
}

// The kernel's results of two launches on one work space; fails the test on any error.
std::vector<double> run(Device& device, const Target& target, const M& with, const Sizes& size,
                        const Cache& in) {
  const auto compiled = compile(kernels::mla_decode(with), target);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
  if (!compiled) return {};
  EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
  const auto buffer = [&](const auto& data) {
    Buffer out = *device.allocate(std::max<std::size_t>(data.size() * sizeof(data[0]), 16));
    EXPECT_TRUE(out.write(data));
    return out;
  };
  const std::size_t batch = size.lengths.size();
  const Buffer q = buffer(in.q), kv = buffer(in.kv), table = buffer(in.table),
               lengths =
                   buffer(std::vector<std::int32_t>(size.lengths.begin(), size.lengths.end())),
               counters = buffer(std::vector<std::int32_t>(batch * with.row_tiles()));
  Buffer o = *device.allocate(batch * with.rows() * M::latent * 2),
         p = *device.allocate(static_cast<std::size_t>(with.partial_elements(size.blocks)) * 4),
         l = *device.allocate(static_cast<std::size_t>(with.weight_elements(size.blocks)) * 4);
  auto module = device.load(compiled->ptx, compiled->name);
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return {};
  LoadedKernel loaded = *module->kernel(compiled->name);
  Arguments arguments;
  arguments.add(static_cast<int>(batch)).add(in.most_pages).add(scale);
  arguments.add(q).add(kv).add(table).add(lengths).add(o).add(p).add(l).add(counters);
  std::vector<std::byte> before;
  for (int launches = 0; launches < 2; ++launches) {
    EXPECT_TRUE(o.fill(0xFF));
    device.clear_findings();
    const auto launched = launch(loaded, *compiled, {size.blocks}, arguments);
    EXPECT_TRUE(launched) << (launched ? "" : launched.diags().text());
    if (!launched) return {};
    const auto status = device.synchronize();
    EXPECT_TRUE(status) << (status ? "" : status.diags().text());
    for (const Finding& finding : device.findings())
      ADD_FAILURE() << finding.id << ": " << finding.message;
    if (!status || testing::Test::HasFailure()) return {};
    const auto now = *o.read_all<std::byte>();
    EXPECT_TRUE(!launches || now == before) << "a second launch differs";
    before = now;
  }
  return testing_numbers::decode(with.type, before);
}

// `largest`: of the values.
void expect_mla(Device& device, const Target& target, const M& with, const Sizes& size,
                const Cache& cache, double largest = 1) {
  SCOPED_TRACE(fmt::format(
      "{} queries {} heads {} page {} keys {} stages {} producers {}, {} sequences, {} blocks, "
      "on {}",
      name(with.type), with.queries, with.heads, with.page, with.keys_per_step, with.stages,
      with.producers, size.lengths.size(), size.blocks, target.text()));
  const std::vector<double> got = run(device, target, with, size, cache);
  if (got.empty()) return;
  const std::vector<double> expected = reference_of(with, size, cache);
  ASSERT_EQ(got.size(), expected.size());
  // Rounding of weights and results, twice.
  const double u = std::ldexp(largest, with.type == f16 ? -11 : -8);
  EXPECT_EQ(reference::difference(got, expected, M::latent, {.absolute = 4 * u}), "");
}

void expect_mla(Device& device, const Target& target, const M& with, const Sizes& size) {
  expect_mla(device, target, with, size, Cache(with, size));
}

void expect_on_emulator(const char* target, const M& with, const Sizes& size) {
  Device device = *Device::open("emulator", {.hardware = target, .checks = Checks::all});
  expect_mla(device, *Target::parse(target), with, size);
}

M on(const char* target, M with) { return tuned(with, *Target::parse(target)); }

TEST(MlaDecode, HeadsAndTokens) {
  expect_on_emulator("sm_90a", on("sm_90a", {.heads = 16}), {{130, 0, 1, 64}, 6});
  expect_on_emulator("sm_90a", on("sm_90a", {.type = f16, .heads = 1, .page = 16}), {{33}, 1});
  // Two tiles of rows; the second one is not full, and a token begins in the first one.
  expect_on_emulator("sm_90a", on("sm_90a", {.queries = 3, .heads = 25, .page = 32}),
                     {{100, 2}, 4});
  expect_on_emulator("sm_90a", on("sm_90a", {.heads = 128, .page = 256}), {{130}, 6});
}

TEST(MlaDecode, TargetsWithoutWgmma) {
  expect_on_emulator("sm_80", on("sm_80", {.queries = 2, .heads = 20}), {{70, 0}, 2});
  expect_on_emulator("sm_86", on("sm_86", {.heads = 16}), {{70}, 2});
}

// One block, more blocks than steps, a block for parts of three sequences; nothing but empty ones.
TEST(MlaDecode, BlocksAndLengths) {
  const M with = on("sm_90a", {.heads = 8});
  for (const Sizes& size : {Sizes{{300}, 1}, {{300}, 7}, {{64, 64, 64}, 2}, {{0, 0}, 3}})
    expect_on_emulator("sm_90a", with, size);
}

// Scores that grow from step to step by more than the maximum may stay behind, and fall again.
TEST(MlaDecode, ScoresThatGrow) {
  const M with = on("sm_90a", {.heads = 8});
  const Sizes size{{400}, 2};
  Cache cache(with, size);
  for (int j = 0; j < size.lengths[0]; ++j) {
    const std::size_t page = cache.table[j / with.page];
    for (int c = 0; c < M::key; ++c) {
      std::uint16_t& x = cache.kv[(page * with.page + j % with.page) * M::key + c];
      const double times = j < 300 ? std::ldexp(1, j / 64) : 0.25;
      x = static_cast<std::uint16_t>(testing_numbers::float_bits(
          with.type, times * testing_numbers::float_value(with.type, x)));
    }
  }
  Device device = *Device::open("emulator", {.hardware = "sm_90a", .checks = Checks::all});
  expect_mla(device, *Target::parse("sm_90a"), with, size, cache, 16);
}

TEST(MlaDecode, GpuAgreesWithDoublePrecision) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  const Arch own = device->arch();
  for (const int heads : {16, 64, 100, 128})
    for (const int queries : {1, 3})
      for (const std::string& name : {std::string("sm_80"), own.text()}) {
        const Target target = *Target::parse(name);
        const M with{.queries = queries, .heads = heads};
        const unsigned blocks = 3 * with.row_tiles();
        expect_mla(*device, target, tuned(with, target), {{500, 0, 1, 257, 64}, blocks});
      }
}

// NVIDIA's assembler accepts the text and spills nothing.
TEST(MlaDecode, AssemblesWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const auto& [target, queries] : {std::pair{"sm_80", 1}, {"sm_90a", 1}, {"sm_90a", 3}}) {
    SCOPED_TRACE(fmt::format("{} queries {}", target, queries));
    const auto compiled =
        compile(kernels::mla_decode(on(target, {.queries = queries})), *Target::parse(target));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
    test::expect_good_registers(compiled->ptx, target,
                                testing::TempDir() + std::to_string(getpid()) + "_mla_decode");
  }
}

// One diagnostic per error.
TEST(MlaDecode, RefusesWrongOptions) {
  for (const auto& [options, part] :
       {std::pair{M{.type = f32}, "type = f32: expected f16 or bf16"},
        {M{.queries = 17}, "queries = 17: expected 1 to 16"},
        {M{.heads = 129}, "heads = 129: expected 1 to 128"},
        {M{.heads = 0}, "heads = 0: expected 1 to 128"},
        {M{.page = 48}, "page = 48: expected 16, 32, 64, 128 or 256"},
        {M{.keys_per_step = 128}, "keys_per_step = 128: expected 16, 32 or 64"},
        {M{.stages = 0}, "stages = 0: expected 1 to 256"}}) {
    const auto compiled = compile(kernels::mla_decode(options), *Target::parse("sm_80"));
    ASSERT_FALSE(compiled) << part;
    ASSERT_EQ(compiled.diags().size(), 1U) << compiled.diags().text();
    EXPECT_NE(compiled.diags()[0].message.find(part), std::string::npos)
        << compiled.diags()[0].message;
  }
}

}  // namespace
}  // namespace tartan
