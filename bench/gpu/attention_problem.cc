// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/attention_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "bench/gpu/words.h"

namespace gpu {

using namespace tartan;

namespace {

// A named part of a configuration. A new option of the kernel needs a new row.
struct Option {
  std::string_view name;
  void (*set)(kernels::Attention& options, int value);
  std::string_view help;
};

constexpr Option options[] = {
    {"queries", [](kernels::Attention& a, int value) { a.queries_per_block = value; },
     "queries of a block"},
    {"keys", [](kernels::Attention& a, int value) { a.keys_per_step = value; }, "keys of a step"},
    {"warps", [](kernels::Attention& a, int value) { a.warps = value; }, "warps that multiply"},
    {"stages", [](kernels::Attention& a, int value) { a.stages = value; },
     "stages of the rings for K and V"},
    {"producers", [](kernels::Attention& a, int value) { a.producers = value; },
     "warps that copy for the others"},
    {"persistent", [](kernels::Attention& a, int value) { a.persistent = value != 0; },
     "1: blocks compute tile after tile"},
    {"together", [](kernels::Attention& a, int value) { a.together = value != 0; },
     "1: both products of a step follow each other"},
    {"blocks", [](kernels::Attention& a, int value) { a.blocks_per_multiprocessor = value; },
     "blocks that a multiprocessor has at a time"},
    {"window", [](kernels::Attention& a, int value) { a.window = value != 0; },
     "keys of a sliding window"},
    {"softcap",
     [](kernels::Attention& a, int value) {
       a.softcap = value == 1   ? kernels::Softcap::by_exp
                   : value == 2 ? kernels::Softcap::by_tanh
                                : kernels::Softcap::none;
     },
     "scores are capped at 20: by exp (1), by tanh.approx (2)"},
    {"sinks", [](kernels::Attention& a, int value) { a.sinks = value != 0; }, "1: with sinks"},
};

}  // namespace

double AttentionProblem::operations(int window) const {
  double pairs = 0;
  for (const int each : packed.empty() ? std::vector{length} : packed) {
    pairs += 1.0 * each * each / (causal ? 2 : 1);
    if (causal && window && window < each) pairs -= 0.5 * (each - window) * (each - window);
  }
  return 4.0 * batch * heads * pairs * head_dim;
}

std::size_t AttentionProblem::elements(int of_heads) const {
  std::size_t out = 1;
  for (const int each : {batch, of_heads, length, head_dim}) out *= static_cast<std::size_t>(each);
  return out;
}

std::vector<int> AttentionProblem::starts() const {
  std::vector<int> out(packed.size() + 1);
  std::partial_sum(packed.begin(), packed.end(), out.begin() + 1);
  return out;
}

std::string AttentionProblem::text() const {
  const std::string of_heads =
      fmt::format("{} heads of {}{}", heads, head_dim,
                  kv_heads == heads ? "" : fmt::format(" ({} of keys)", kv_heads));
  const char* const mask = causal ? "causal" : "full";
  if (!packed.empty())
    return fmt::format("{}, {} packed sequences of {} to {} queries and keys, {} in all, {}, {}",
                       name(type), packed.size(), *std::min_element(packed.begin(), packed.end()),
                       *std::max_element(packed.begin(), packed.end()), length, of_heads, mask);
  return fmt::format("{}, {} queries and keys, {}, batch {}, {}", name(type), length, of_heads,
                     batch, mask);
}

std::optional<AttentionConfig> read_attention_config(const std::string& word) {
  AttentionConfig out{.text = word};
  if (word == "default") return out;
  for (const std::string_view part : split(word, ':')) {
    if (part == "hopper" || part == "few") {
      out.hopper = true, out.knows_keys = part == "few";
      continue;
    }
    const auto named = read_named(part);
    const Option* found = nullptr;
    for (const Option& option : options)
      if (named && option.name == named->name) found = &option;
    if (!found) return {};
    out.settings.push_back({found->set, named->value});
    if (found->name == "window") out.window = named->value;
  }
  return out;
}

std::string attention_config_help() {
  std::string out = "  hopper what is fastest on sm_90a\n  few the same for the number of keys\n";
  for (const Option& option : options) out += fmt::format("  {}=N {}\n", option.name, option.help);
  return out;
}

kernels::Attention options_of(const AttentionConfig& config, const AttentionProblem& problem) {
  kernels::Attention out;
  out.head_dim = problem.head_dim, out.type = problem.type, out.causal = problem.causal;
  out.packed = !problem.packed.empty();
  if (config.knows_keys) {
    const std::vector<int>& lengths = problem.packed;
    out.keys = lengths.empty() ? problem.length : *std::max_element(lengths.begin(), lengths.end());
    if (config.window) out.keys = std::min(out.keys, config.window);
  }
  if (config.hopper) out = kernels::tuned(out, *Target::parse("sm_90a"));
  for (const auto& [set, value] : config.settings) set(out, value);
  return out;
}

Dim3 grid_of(const AttentionConfig& config, const AttentionProblem& problem, int multiprocessors) {
  const kernels::Attention options = options_of(config, problem);
  const auto heads = static_cast<unsigned>(problem.heads);
  if (!problem.packed.empty())
    return {options.blocks(*std::max_element(problem.packed.begin(), problem.packed.end())), heads,
            static_cast<unsigned>(problem.packed.size())};
  const auto batch = static_cast<unsigned>(problem.batch);
  if (options.persistent)
    return {
        options.persistent_blocks(problem.length, problem.heads, problem.batch, multiprocessors), 1,
        batch};
  return {options.blocks(problem.length), heads, batch};
}

std::vector<AttentionArgument> arguments_of(const AttentionConfig& config,
                                            const AttentionProblem& problem) {
  const float scale = 1 / std::sqrt(static_cast<float>(problem.head_dim));
  const kernels::Attention options = options_of(config, problem);
  std::vector<AttentionArgument> out = {{.integer = problem.length},
                                        {.integer = problem.length},
                                        {.integer = problem.heads},
                                        {.integer = problem.kv_heads},
                                        {.real = scale}};
  if (options.window) out.push_back({.integer = config.window});
  if (options.softcap != kernels::Softcap::none) out.push_back({.real = 20});
  if (options.packed) out.push_back({.integer = static_cast<int>(problem.packed.size())});
  for (const char* buffer : {"Q", "K", "V", "O", "LSE"}) out.push_back({.buffer = buffer});
  if (options.sinks) out.push_back({.buffer = "sinks"});
  if (options.packed) out.insert(out.end(), 2, {.buffer = "starts"});
  return out;
}

}  // namespace gpu
