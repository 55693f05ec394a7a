// SPDX-License-Identifier: Apache-2.0
// tools/kernels/product_options.h - a matrix product in words: the options that gemm and its like
// take from `tartan emit`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tartan/dsl/kernels/block_scaled.h"
#include "tartan/dsl/kernels/gemm.h"
#include "tartan/support/diagnostic.h"

namespace tartan::tools {

/// As they were written; an empty one was not.
struct ProductWords {
  int m = 256, n = 256, k = 256, multiple = 8, multiple_c = 8, splits = 1;
  int stream_blocks = 0, promote = 0;
  std::optional<int> stages, producers, cluster, group;
  bool batched = false, persistent = false;
  std::string type, a, b, accumulator, c, a_major = "row", b_major = "col";
  std::string scale = "ue8m0", kind;
  std::string tile, warps, bit_op;
  std::vector<std::string> epilogue;
};

void add_product_options(CLI::App& command, ProductWords& words);

/// All that is wrong with the words, or the options that they mean.
Result<kernels::Gemm> read_gemm(const ProductWords& words);
/// Of gemm and gemm_sum: with what the words leave open as it was fastest, see kernels::tuned().
kernels::Gemm completed(const ProductWords& words, const kernels::Gemm& read, const Target& target);
/// The same of block_scaled, which has options of its own.
Result<kernels::BlockScaled> read_block_scaled(const ProductWords& words);
/// The element type alone, of kernels that take no more than --type.
Result<Type> read_type(const ProductWords& words);

}  // namespace tartan::tools
