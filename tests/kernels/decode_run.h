// SPDX-License-Identifier: Apache-2.0
// tests/kernels/decode_run.h - runs the decoding kernel over a cache of shuffled pages, and
// computes the expected result in double, from the same rounded elements.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <cmath>
#include <numeric>

#include "tartan/kernels/decode.h"
#include "tests/kernels/two_launches.h"
#include "tests/support/numbers.h"

namespace tartan::testing_decode {

struct Sizes {
  std::vector<int> lengths;
  int kv_heads = 1;
  unsigned blocks = 3;
};

using Bits = std::vector<std::uint16_t>;

/// In (-1, 1).
inline Bits elements(Type type, std::size_t count, unsigned seed) {
  Bits out(count);
  for (std::uint16_t& each : out) {
    seed = seed * 1664525 + 1013904223;
    const double x = (static_cast<int>(seed >> 8 & 0xffff) - 32768) / 32768.0;
    each = static_cast<std::uint16_t>(testing_numbers::float_bits(type, x));
  }
  return out;
}

/// A cache whose pages are in no order, and which has NaN wherever no key is.
struct Cache {
  int most_pages = 1, pages = 0;
  std::vector<std::int32_t> table;
  Bits k, v, q;

  Cache(const kernels::Decode& with, const Sizes& size) {
    for (const int length : size.lengths) {
      const int count = (length + with.page - 1) / with.page;
      most_pages = std::max(most_pages, count), pages += count;
    }
    pages += 2;
    int prime = 7;
    while (std::gcd(prime, pages) != 1) ++prime;
    int next = 0;
    const std::size_t of_page = static_cast<std::size_t>(with.page) * with.head_dim * size.kv_heads;
    const auto nan =
        static_cast<std::uint16_t>(testing_numbers::float_bits(with.type, std::nan("")));
    k.assign(pages * of_page, nan), v = k;
    for (const int length : size.lengths) {
      for (int i = 0; i < most_pages; ++i) {
        const bool exists = i * with.page < length;
        const int page = exists ? next++ * prime % pages : 1 << 30;  // never read
        table.push_back(page);
        for (int head = 0; exists && head < size.kv_heads; ++head) {
          const std::size_t at = page * of_page + of_page / size.kv_heads * head;
          const std::size_t count =
              static_cast<std::size_t>(std::min(with.page, length - i * with.page)) * with.head_dim;
          std::ranges::copy(elements(with.type, count, 2 * (page * 31 + head) + 1), k.begin() + at);
          std::ranges::copy(elements(with.type, count, 2 * (page * 31 + head) + 2), v.begin() + at);
        }
      }
    }
    q = elements(with.type,
                 size.lengths.size() * with.queries * size.kv_heads * with.group * with.head_dim,
                 5);
  }
};

inline float scale_of(const kernels::Decode& with) {
  return 3 / std::sqrt(static_cast<float>(with.head_dim));
}

inline std::vector<double> reference(const kernels::Decode& with, const Sizes& size,
                                     const Cache& in) {
  const int d = with.head_dim;
  std::vector<double> out;
  const auto value = [&](std::uint16_t bits) {
    return testing_numbers::float_value(with.type, bits);
  };
  std::size_t row = 0;
  for (std::size_t s = 0; s < size.lengths.size(); ++s)
    for (int token = 0; token < with.queries; ++token)
      for (int head = 0; head < size.kv_heads * with.group; ++head, ++row) {
        const int seen = size.lengths[s] - with.queries + token + 1;
        const auto at = [&](int key) {
          const std::size_t page = in.table[s * in.most_pages + key / with.page];
          return ((page * size.kv_heads + head / with.group) * with.page + key % with.page) * d;
        };
        std::vector<double> scores, o(d);
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int j = 0; j < seen; ++j) {
          double score = 0;
          for (int c = 0; c < d; ++c) score += value(in.q[row * d + c]) * value(in.k[at(j) + c]);
          scores.push_back(score * scale_of(with));
          top = std::max(top, scores.back());
        }
        for (int j = 0; j < seen; ++j) {
          const double weight = std::exp(scores[j] - top);
          sum += weight;
          for (int c = 0; c < d; ++c) o[c] += weight * value(in.v[at(j) + c]);
        }
        for (const double each : o) out.push_back(seen > 0 ? each / sum : 0);
      }
  return out;
}

/// The kernel's results of two launches on one work space; fails the test on any error.
inline std::vector<double> run(Device& device, const Target& target, const kernels::Decode& with,
                               const Sizes& size, const Cache& in) {
  const auto compiled = compile(kernels::decode(with), target);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
  if (!compiled) return {};
  EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
  const auto buffer = [&](const auto& data) {
    Buffer out = *device.allocate(std::max<std::size_t>(data.size() * sizeof(data[0]), 16));
    EXPECT_TRUE(out.write(data));
    return out;
  };
  const Buffer q = buffer(in.q), k = buffer(in.k), v = buffer(in.v), table = buffer(in.table),
               lengths =
                   buffer(std::vector<std::int32_t>(size.lengths.begin(), size.lengths.end())),
               counters = buffer(std::vector<std::int32_t>(size.lengths.size() * size.kv_heads));
  Buffer o = *device.allocate(in.q.size() * 2),
         p = *device.allocate(static_cast<std::size_t>(with.partial_elements(size.blocks)) * 4),
         l = *device.allocate(static_cast<std::size_t>(with.weight_elements(size.blocks)) * 4);
  auto module = device.load(compiled->ptx, compiled->name);
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return {};
  LoadedKernel loaded = *module->kernel(compiled->name);
  Arguments arguments;
  arguments.add(static_cast<int>(size.lengths.size())).add(size.kv_heads).add(in.most_pages);
  arguments.add(scale_of(with)).add(q).add(k).add(v).add(table).add(lengths).add(o).add(p).add(l);
  arguments.add(counters);
  const std::vector<std::byte> bytes =
      test::two_launches(device, loaded, *compiled, size.blocks, arguments, o);
  return testing_numbers::decode(with.type, bytes);
}

/// As in attention_run.h: rounding of weights and results, twice.
inline void expect_decode(Device& device, const Target& target, const kernels::Decode& with,
                          const Sizes& size) {
  std::string lengths;
  for (const int each : size.lengths) lengths += fmt::format(" {}", each);
  SCOPED_TRACE(fmt::format(
      "d {} {} queries {} group {} page {} keys {} stages {} producers {}, "
      "lengths{}, {} heads, {} blocks, on {}",
      with.head_dim, name(with.type), with.queries, with.group, with.page, with.keys_per_step,
      with.stages, with.producers, lengths, size.kv_heads, size.blocks, target.text()));
  const Cache cache(with, size);
  const std::vector<double> got = run(device, target, with, size, cache);
  if (got.empty()) return;
  const std::vector<double> expected = reference(with, size, cache);
  ASSERT_EQ(got.size(), expected.size());
  const double u = std::ldexp(1, with.type == f16 ? -11 : -8);
  const std::string wrong = reference::difference(
      got, expected, static_cast<std::size_t>(with.head_dim), {.absolute = 4 * u});
  EXPECT_EQ(wrong, "");
}

}  // namespace tartan::testing_decode
