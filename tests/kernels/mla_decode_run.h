// SPDX-License-Identifier: Apache-2.0
// tests/kernels/mla_decode_run.h - runs decoding with latent attention over a cache of shuffled
// pages, and computes the expected result in double, from the same rounded elements.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <cmath>
#include <numeric>

#include "tartan/kernels/mla_decode.h"
#include "tests/kernels/two_launches.h"
#include "tests/support/numbers.h"

namespace tartan::testing_mla_decode {

using M = kernels::MlaDecode;
using Bits = std::vector<std::uint16_t>;

struct Sizes {
  std::vector<int> lengths;
  unsigned blocks = 3;
};

// In (-1, 1).
inline Bits elements(Type type, std::size_t count, unsigned seed) {
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

inline constexpr float scale = 0.125F;  // scores within 9 or so of zero

inline std::vector<double> reference_of(const M& with, const Sizes& size, const Cache& in) {
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
inline std::vector<double> run(Device& device, const Target& target, const M& with,
                               const Sizes& size, const Cache& in) {
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
  const std::vector<std::byte> bytes =
      test::two_launches(device, loaded, *compiled, size.blocks, arguments, o);
  return testing_numbers::decode(with.type, bytes);
}

// `largest`: of the values.
inline void expect_mla(Device& device, const Target& target, const M& with, const Sizes& size,
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

inline void expect_mla(Device& device, const Target& target, const M& with, const Sizes& size) {
  expect_mla(device, target, with, size, Cache(with, size));
}

}  // namespace tartan::testing_mla_decode
