// SPDX-License-Identifier: Apache-2.0
// bench/gpu/regret_problems.h - products of many sizes, and the configurations that are measured on
// them: what a choice of configuration is judged by.
//
//   for (const gpu::Drawn& each : gpu::drawn_problems(1, 132)) ...    // seed 1
#pragma once

#include <string>
#include <vector>

#include "bench/gpu/gemm_config.h"

namespace gpu {

/// A product, and why it is in the list: "128", "8", "any" (what n and k are multiples of), "model"
/// (layers of language models, and awkward sizes from reports), "given" (on the command line).
struct Drawn {
  Product product;
  std::string group;
};

/// `count` products from a seed: m is log-uniform in 1..8192, n and k in 512..16384; a third each
/// of the first three groups, in bf16, f16, e4m3 and s8 in turn.
std::vector<Drawn> drawn_problems(unsigned seed, int count);
/// The products of the group "model", in bf16.
std::vector<Drawn> model_problems();

/// One for each of --size and --type, the group "given"; a size may have its own type, after a
/// colon. Exits at a word that is neither.
std::vector<Drawn> given_problems(const std::vector<std::string>& sizes,
                                  const std::vector<std::string>& types);

/// What a kernel with sizes as parameters may rely on: divisors of the leading dimensions of A and
/// B, and of C, in elements.
struct Divisors {
  int operands = 0, c = 0;
  bool operator==(const Divisors&) const = default;
  auto operator<=>(const Divisors&) const = default;
};
/// Of rows of a product: powers of two up to 16 bytes, for C 16 bytes or one element.
Divisors divisors_of(const Product& product);

/// The configurations for products with such divisors; sizes are parameters.
std::vector<Config> regret_configs(const Product& product, const tartan::Target& target);
/// Whether a configuration is worth a measurement: the others compute mostly padding, read B for
/// every few of many rows, or have splits without a k-tile.
bool sensible(const Config& config, const Product& product);

}  // namespace gpu
