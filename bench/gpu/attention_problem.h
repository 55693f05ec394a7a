// SPDX-License-Identifier: Apache-2.0
// bench/gpu/attention_problem.h - the problems and launches of the attention benchmark.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tartan/kernels/attention.h"
#include "tartan/runtime/device.h"

namespace gpu {

struct AttentionProblem {
  int batch = 4, heads = 16, kv_heads = 16, length = 4096, head_dim = 128;  // length: queries, keys
  tartan::Type type = tartan::bf16;
  bool causal = false;
  std::vector<int> packed = {};  // lengths of packed sequences; then batch 1, `length` their sum

  /// Both products, half of them when causal; less with a window of keys (0: without one).
  double operations(int window = 0) const;
  std::size_t elements() const { return elements(heads); }        // of Q and O
  std::size_t kv_elements() const { return elements(kv_heads); }  // of K and V
  std::size_t rows() const { return elements() / static_cast<std::size_t>(head_dim); }
  /// Where the packed sequences begin, and the end of the last one.
  std::vector<int> starts() const;
  /// "bf16, 4096 queries and keys, 16 heads of 128 (4 of keys), batch 4, causal"
  std::string text() const;

 private:
  std::size_t elements(int of_heads) const;
};

struct AttentionConfig {
  std::string text;
  bool hopper = false;      // the fastest on sm_90a, with the settings applied
  bool knows_keys = false;  // of the number of keys
  int window = 0;           // keys; 0: no window
  std::vector<std::pair<void (*)(tartan::kernels::Attention&, int), int>> settings = {};
};

/// NAME=NUMBER[:NAME=NUMBER]..., such as "hopper:keys=64", "few"; "default".
std::optional<AttentionConfig> read_attention_config(const std::string& word);
/// The names, one per line.
std::string attention_config_help();

/// The kernel's options for a problem, and its launch.
tartan::kernels::Attention options_of(const AttentionConfig& config,
                                      const AttentionProblem& problem);
tartan::Dim3 grid_of(const AttentionConfig& config, const AttentionProblem& problem,
                     int multiprocessors);

/// An argument of kernels::attention(), in order: a buffer ("Q", "K", "V", "O", "LSE", "sinks",
/// "starts") or a number.
struct AttentionArgument {
  std::string buffer = {};
  std::optional<int> integer = {};
  float real = 0;
};
std::vector<AttentionArgument> arguments_of(const AttentionConfig& config,
                                            const AttentionProblem& problem);

}  // namespace gpu
