// SPDX-License-Identifier: Apache-2.0
// Mutants of the kernels for the gradients of attention; and that those of one block of keys are
// race-free and deadlock-free in every schedule. Sums of several blocks depend on their order,
// unless they wait for each other.
#include <cmath>
#include <limits>

#include "tests/mutation/builtin_runs.h"
#include "tests/mutation/soak.h"

namespace tartan::mutation {
namespace {

using kernels::AttentionBackward;

struct Lengths {
  int queries, keys, heads = 1, kv_heads = 1;
};

Argument floats(std::int64_t count, const std::function<double(int)>& value) {
  Argument out = in(4 * count);
  out.contents.resize(out.bytes);
  for (int i = 0; i < count; ++i) {
    const auto each = static_cast<float>(value(i));
    std::memcpy(out.contents.data() + std::size_t{4} * i, &each, 4);
  }
  return out;
}

/// What the first kernel writes: logarithms of weights and, for the rows, D. Rows that do not exist
/// have weights of zero.
Argument stats(const AttentionBackward& with, const Lengths& size) {
  const int m = with.queries_per_step, blocks = static_cast<int>(with.row_blocks(size.queries));
  return floats(size.heads * with.stat_elements(size.queries), [=](int i) {
    const int row = i / (2 * m) % blocks * m + i % m;
    if (i / m % 2) return row < size.queries ? i % 5 - 2.0 : 0.0;
    return row < size.queries ? i % 7 / 2.0 - 6 : -std::numeric_limits<double>::infinity();
  });
}

std::int64_t elements(const AttentionBackward& with, int rows, int heads) {
  return std::int64_t{with.head_dim} * rows * heads;
}

Subject rows(const std::string& name, const AttentionBackward& with, const char* target,
             const std::vector<Lengths>& sizes) {
  const Compiled compiled = compiled_for(attention_backward_rows(with), target);
  std::vector<Run> runs;
  for (const Lengths& size : sizes) {
    const std::int64_t q = 2 * elements(with, size.queries, size.heads);
    std::vector<Argument> arguments{scalar(size.queries),
                                    scalar(size.heads),
                                    in(q),
                                    in(q),
                                    in(4 * size.queries * size.heads),
                                    out(4 * size.heads * with.stat_elements(size.queries)),
                                    out(4 * size.heads * with.sum_elements(size.queries))};
    if (with.deterministic)
      arguments.push_back(out(4 * with.turn_elements(size.queries, size.heads)));
    runs.push_back(run_of(
        compiled, {with.row_blocks(size.queries), static_cast<unsigned>(size.heads)}, arguments));
  }
  return subject_of("attention_backward_rows/" + name, compiled, std::move(runs));
}

Subject keys(const std::string& name, const AttentionBackward& with, const char* target,
             const std::vector<Lengths>& sizes) {
  const Compiled compiled = compiled_for(attention_backward(with), target);
  std::vector<Run> runs;
  for (const Lengths& size : sizes) {
    const std::int64_t q = 2 * elements(with, size.queries, size.heads),
                       kv = 2 * elements(with, size.keys, size.kv_heads);
    const auto zero = [](int) { return 0.0; };
    std::vector<Argument> arguments{scalar(size.queries),
                                    scalar(size.keys),
                                    scalar(size.heads),
                                    scalar(size.kv_heads),
                                    scalar(0.01F),
                                    in(q),
                                    in(kv),
                                    in(kv),
                                    in(q),
                                    stats(with, size),
                                    floats(size.heads * with.sum_elements(size.queries), zero),
                                    out(kv),
                                    out(kv)};
    if (with.deterministic)
      arguments.push_back(floats(with.turn_elements(size.queries, size.heads), zero));
    runs.push_back(run_of(compiled, {with.blocks(size.keys), static_cast<unsigned>(size.kv_heads)},
                          arguments));
  }
  return subject_of("attention_backward/" + name, compiled, std::move(runs));
}

Subject queries(const std::string& name, const AttentionBackward& with, const char* target,
                const std::vector<Lengths>& sizes) {
  const Compiled compiled = compiled_for(attention_backward_queries(with), target);
  std::vector<Run> runs;
  for (const Lengths& size : sizes)
    runs.push_back(run_of(compiled,
                          {with.row_blocks(size.queries), static_cast<unsigned>(size.heads)},
                          {scalar(size.queries), scalar(size.heads), scalar(0.5F),
                           in(4 * size.heads * with.sum_elements(size.queries)),
                           out(2 * elements(with, size.queries, size.heads))}));
  return subject_of("attention_backward_queries/" + name, compiled, std::move(runs));
}

AttentionBackward on(const char* target, const AttentionBackward& with) {
  return tuned(with, *Target::parse(target));
}

const std::vector<Lengths> awkward{{75, 60, 2, 1}, {16, 64}, {150, 1}, {64, 33}, {1, 64}};

/// Of one block of keys. Some so long that an arrival too few adds up to a warp's.
std::vector<Subject> gradients() {
  const AttentionBackward plain, causal{.causal = true};
  return {rows("sm_80", plain, "sm_80", awkward),
          keys("sm_80", plain, "sm_80", awkward),
          keys("causal", causal, "sm_80", awkward),
          keys("sm_90a", on("sm_90a", causal), "sm_90a",
               {{300, 100, 2, 1}, {64, 128}, {16, 1}, {200, 128, 12, 1}}),
          keys("sm_90a_128", on("sm_90a", {.head_dim = 128}), "sm_90a",
               {{200, 70}, {64, 128}, {1152, 100}}),
          queries("sm_80", plain, "sm_80", awkward),
          queries("sm_90a", on("sm_90a", {.head_dim = 128}), "sm_90a", {{100, 0, 2}, {64, 0}})};
}

/// Of several blocks, which wait for each other.
std::vector<Subject> in_order() {
  const AttentionBackward with{.causal = true, .deterministic = true};
  return {rows("in_order", with, "sm_80", {{75, 0, 2}, {64, 0}}),
          keys("in_order", with, "sm_80", {{75, 150, 2, 1}, {64, 100}}),
          keys("sm_90a_in_order", on("sm_90a", with), "sm_90a", {{150, 200, 10, 1}})};
}

TEST(MutationOfGradients, OneBlock) { soak(gradients(), "gradients.txt"); }

TEST(MutationOfGradients, InOrder) { soak(in_order(), "gradients_in_order.txt"); }

TEST(SchedulesOfGradients, OneRunDecidesOneBlock) {
  for (const Subject& each : gradients()) expect_decided(each);
}

}  // namespace
}  // namespace tartan::mutation
