// SPDX-License-Identifier: Apache-2.0
// Attention over sequences of different lengths that are packed into one, against each of them
// alone in double precision.
#include <algorithm>
#include <numeric>

#include "tests/kernels/attention_run.h"

namespace tartan {
namespace {

using kernels::Attention;
using testing_attention::Elements;
using testing_attention::Inputs;
using testing_attention::Lengths;
using testing_attention::Outputs;

constexpr std::uint16_t untouched = 0xFFFF;  // NaN

struct Sequences {
  std::vector<int> queries, keys;  // of each
  int heads = 1, kv_heads = 1;
  int before = 0, after = 0;  // rows that belong to none

  std::vector<int> starts(const std::vector<int>& lengths) const {
    std::vector<int> out{before};
    for (const int each : lengths) out.push_back(out.back() + each);
    return out;
  }
  int most_queries() const { return *std::max_element(queries.begin(), queries.end()); }
  std::string text() const {
    std::string out = fmt::format("heads {}/{}:", heads, kv_heads);
    for (std::size_t i = 0; i < queries.size(); ++i)
      out += fmt::format(" {}x{}", queries[i], keys[i]);
    return out;
  }
};

// All sequences' rows: [row][head][element].
struct Packed {
  Sequences of;
  std::vector<int> query_starts, key_starts;
  int queries, keys;  // rows in all
  Elements q, k, v;
  float scale;

  Packed(const Attention& options, Sequences sequences)
      : of(std::move(sequences)),
        query_starts(of.starts(of.queries)),
        key_starts(of.starts(of.keys)),
        queries(query_starts.back() + of.after),
        keys(key_starts.back() + of.after),
        q(testing_attention::elements(options.type, size(options, queries, of.heads), 11)),
        k(testing_attention::elements(options.type, size(options, keys, of.kv_heads), 12)),
        v(testing_attention::elements(options.type, size(options, keys, of.kv_heads), 13)),
        scale(3 / std::sqrt(static_cast<float>(options.head_dim))) {}

  static std::size_t size(const Attention& options, int rows, int heads) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(heads) *
           Inputs::width(options);
  }
};

std::size_t index(int row, int heads, int head, const Attention& options, std::size_t column) {
  return (static_cast<std::size_t>(row) * static_cast<std::size_t>(heads) +
          static_cast<std::size_t>(head)) *
             Inputs::width(options) +
         column;
}

// One sequence, as attention() without `packed` takes it.
Inputs sequence(const Attention& options, const Packed& in, std::size_t number,
                const Lengths& size) {
  Inputs out(options, size);
  out.scale = in.scale;
  const auto take = [&](Elements& to, const Elements& from, int first, int rows, int heads) {
    std::size_t i = 0;
    for (int head = 0; head < heads; ++head)
      for (int row = first; row < first + rows; ++row)
        for (std::size_t c = 0; c < Inputs::width(options); ++c)
          to.set(i++, from.bits[index(row, heads, head, options, c)]);
  };
  take(out.q, in.q, in.query_starts[number], size.queries, size.heads);
  take(out.k, in.k, in.key_starts[number], size.keys, size.kv_heads);
  take(out.v, in.v, in.key_starts[number], size.keys, size.kv_heads);
  return out;
}

struct Bits {
  std::vector<std::uint16_t> o;
  std::vector<std::uint32_t> lse;
};

Bits run(Device& device, const Target& target, const Attention& options, const Packed& in) {
  const auto compiled = compile(kernels::attention(options), target);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
  if (!compiled) return {};
  const auto buffer = [&](const auto& data) {
    Buffer out = *device.allocate(std::max<std::size_t>(data.size() * sizeof(data[0]), 16));
    EXPECT_TRUE(out.write(data));
    return out;
  };
  const std::size_t rows =
      static_cast<std::size_t>(in.queries) * static_cast<std::size_t>(in.of.heads);
  Bits out{std::vector(rows * Inputs::width(options), untouched),
           std::vector<std::uint32_t>(rows, 0xFFFFFFFF)};
  const Buffer q = buffer(in.q.bits), k = buffer(in.k.bits), v = buffer(in.v.bits),
               query_starts = buffer(in.query_starts), key_starts = buffer(in.key_starts);
  Buffer o = buffer(out.o), lse = buffer(out.lse);
  auto module = device.load(compiled->ptx, compiled->name);
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return {};
  LoadedKernel loaded = *module->kernel(compiled->name);
  const int sequences = static_cast<int>(in.of.queries.size());
  Arguments arguments;
  const Inputs defaults(options, {0, 0, in.of.heads, in.of.kv_heads});
  arguments.add(in.queries).add(in.keys).add(in.of.heads).add(in.of.kv_heads).add(in.scale);
  if (options.window) arguments.add(defaults.window);
  if (options.softcap != kernels::Softcap::none) arguments.add(defaults.cap);
  arguments.add(sequences);
  arguments.add(q).add(k).add(v).add(o).add(lse);
  const Buffer sinks = buffer(defaults.sinks);
  if (options.sinks) arguments.add(sinks);
  arguments.add(query_starts).add(key_starts);
  device.clear_findings();
  const Dim3 grid{options.blocks(std::max(in.of.most_queries(), 1)),
                  static_cast<unsigned>(in.of.heads), static_cast<unsigned>(sequences)};
  const auto launched = launch(loaded, *compiled, grid, arguments);
  EXPECT_TRUE(launched) << (launched ? "" : launched.diags().text());
  const auto status = device.synchronize();
  EXPECT_TRUE(status) << (status ? "" : status.diags().text());
  if (!launched || !status) return {};
  for (const Finding& finding : device.findings())
    ADD_FAILURE() << finding.id << ": " << finding.message;
  return {*o.read_all<std::uint16_t>(), *lse.read_all<std::uint32_t>()};
}

void expect_sequences(const Attention& options, const Packed& in, const Bits& got) {
  const Sequences& of = in.of;
  if (got.o.empty()) return;
  std::vector<bool> owned(got.lse.size());
  for (std::size_t i = 0; i < of.queries.size(); ++i) {
    SCOPED_TRACE(fmt::format("sequence {}", i));
    const Lengths size{of.queries[i], of.keys[i], of.heads, of.kv_heads};
    Outputs found;
    for (int head = 0; head < of.heads; ++head)
      for (int row = in.query_starts[i]; row < in.query_starts[i + 1]; ++row) {
        for (std::size_t c = 0; c < Inputs::width(options); ++c)
          found.o.push_back(testing_numbers::float_value(
              options.type, got.o[index(row, of.heads, head, options, c)]));
        const std::size_t at =
            static_cast<std::size_t>(head) * static_cast<std::size_t>(in.queries) +
            static_cast<std::size_t>(row);
        found.lse.push_back(static_cast<double>(std::bit_cast<float>(got.lse[at])));
        owned[at] = true;
      }
    testing_attention::expect_near(
        options, found,
        testing_attention::reference(options, size, sequence(options, in, i, size)));
  }
  for (int head = 0; head < of.heads; ++head)
    for (int row = 0; row < in.queries; ++row) {
      const std::size_t at = static_cast<std::size_t>(head) * static_cast<std::size_t>(in.queries) +
                             static_cast<std::size_t>(row);
      if (owned[at]) continue;
      EXPECT_EQ(got.lse[at], 0xFFFFFFFF) << "LSE of row " << row << " of no sequence";
      EXPECT_EQ(got.o[index(row, of.heads, head, options, 0)], untouched) << "row " << row;
    }
}

void expect_packed(Device& device, const Target& target, const Attention& options,
                   const Sequences& of) {
  SCOPED_TRACE(fmt::format("d {} {} {} {} on {} {}", options.head_dim, name(options.type),
                           options.causal ? "causal" : "full", of.text(), target.text(),
                           device.name()));
  const Packed in(options, of);
  expect_sequences(options, in, run(device, target, options, in));
}

// Lengths around the tiles of a kernel: m queries, n keys.
std::vector<Sequences> awkward(int m, int n) {
  return {{.queries = {1, 0, m + 1, 3}, .keys = {1, 5, n + 1, 0}, .heads = 2, .kv_heads = 1},
          {.queries = {m, 7, m - 1}, .keys = {n, 2 * n + 9, 2}, .before = 3, .after = 5},
          {.queries = {0}, .keys = {0}, .after = 1},
          {.queries = {5, 5, 5, 5}, .keys = {n - 1, n, 3, 70}, .heads = 4, .kv_heads = 2}};
}

std::vector<Attention> kinds() {
  return {
      {.head_dim = 64, .packed = true},
      {.head_dim = 64, .type = bf16, .causal = true, .packed = true},
      {.head_dim = 128, .causal = true, .packed = true},
      {.head_dim = 128, .type = bf16, .packed = true},
      {.head_dim = 64,
       .causal = true,
       .window = true,
       .softcap = kernels::Softcap::by_exp,
       .sinks = true,
       .packed = true},
      {.head_dim = 64, .type = bf16, .packed = true, .keys = 100},
      {.head_dim = 128, .causal = true, .packed = true, .keys = 100},
      {.head_dim = 256, .type = bf16, .causal = true, .window = true, .packed = true, .keys = 50}};
}

void expect_all(Device& device, const Target& target) {
  for (const Attention& each : kinds()) {
    const Attention options = tuned(each, target);
    for (const Sequences& of : awkward(options.tile_queries(), options.keys_per_step))
      expect_packed(device, target, options, of);
  }
}

class PackedAttention : public testing::TestWithParam<const char*> {};

TEST_P(PackedAttention, EmulatorAgreesAtAwkwardLengths) {
  Device device = *Device::open("emulator");
  expect_all(device, *Target::parse(GetParam()));
}

// What other sequences have, and rows of none, changes no bit of a sequence's result.
TEST_P(PackedAttention, NoSequenceSeesAnother) {
  Device device = *Device::open("emulator");
  const Target target = *Target::parse(GetParam());
  const std::vector<Attention> all = kinds();
  for (const Attention& each : {all[1], all[3], all[5], all[6]}) {
    const Attention options = tuned(each, target);
    const int m = options.tile_queries(), n = options.keys_per_step;
    Packed in(options, {.queries = {9, m + 3, 2, 20},
                        .keys = {n + 9, 5, n / 2, 40},
                        .heads = 2,
                        .kv_heads = 1,
                        .before = 1,
                        .after = 4});
    const Bits expected = run(device, target, options, in);
    expect_sequences(options, in, expected);
    for (const std::size_t own : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
      Packed other = in;
      const std::uint16_t nan = each.type == f16 ? 0x7E00 : 0x7FC0;
      const auto spoil = [&](Elements& all, const std::vector<int>& starts, int rows, int heads) {
        for (int row = 0; row < rows; ++row)
          if (row < starts[own] || row >= starts[own + 1])
            for (int head = 0; head < heads; ++head)
              for (std::size_t c = 0; c < Inputs::width(options); ++c) {
                const std::size_t at = index(row, heads, head, options, c);
                if (row % 3) all.set(at, nan);
                else all.set(at, row % 2 ? -30000.0 : 30000.0);
              }
      };
      spoil(other.q, other.query_starts, other.queries, 2);
      spoil(other.k, other.key_starts, other.keys, 1);
      spoil(other.v, other.key_starts, other.keys, 1);
      const Bits got = run(device, target, options, other);
      ASSERT_EQ(got.o.size(), expected.o.size());
      int apart = 0;
      for (int row = in.query_starts[own]; row < in.query_starts[own + 1]; ++row)
        for (int head = 0; head < 2; ++head) {
          const std::size_t at =
              static_cast<std::size_t>(head) * static_cast<std::size_t>(in.queries) +
              static_cast<std::size_t>(row);
          apart += got.lse[at] != expected.lse[at];
          for (std::size_t c = 0; c < Inputs::width(options); ++c)
            apart += got.o[index(row, 2, head, options, c)] !=
                     expected.o[index(row, 2, head, options, c)];
        }
      EXPECT_EQ(apart, 0) << "sequence " << own << ", d " << options.head_dim;
    }
  }
}

// The same targets that attention_test.cc has: mma.sync with and without cp.async, wgmma and TMA,
// tcgen05.
INSTANTIATE_TEST_SUITE_P(Targets, PackedAttention, testing::Values("sm_80", "sm_90a", "sm_100a"),
                         [](const auto& each) { return std::string(each.param); });

TEST(AttentionPacked, GpuAgrees) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  std::vector<Target> targets{Target::of(device->arch())};
  if (device->arch().sm == 90) targets.push_back(*Target::parse("sm_90a"));
  for (const Target& target : targets) {
    expect_all(*device, target);
    for (const Attention& each : kinds())
      expect_packed(*device, target, tuned(each, target),
                    {.queries = {270, 1, 193, 300, 0, 65},
                     .keys = {350, 77, 193, 300, 50, 700},
                     .heads = 4,
                     .kv_heads = 2});
  }
}

}  // namespace
}  // namespace tartan
