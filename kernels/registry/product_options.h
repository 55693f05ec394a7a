// SPDX-License-Identifier: Apache-2.0
// kernels/registry/product_options.h - reads the options of gemm and other products.
#pragma once

#include <string>
#include <vector>

#include "kernels/registry/registry.h"
#include "tartan/kernels/block_scaled.h"
#include "tartan/kernels/gemm.h"
#include "tartan/kernels/k_grouped_gemm.h"
#include "tartan/kernels/scaled_gemm.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::builtins {

/// As written, else the defaults. Empty words are not given; of what else is given, Request knows.
struct ProductWords {
  int m = 256, n = 256, k = 256, multiple = 8, multiple_c = 8, splits = 1;
  int stream_blocks = 0, promote = 0;
  int stages = 3, producers = 0, cluster = 1, cluster_columns = 1, group = 8;
  int cluster_splits = 1, products = 1;
  bool batched = false, persistent = false, swap = false, direct = false;
  std::string type, a, b, accumulator, c, a_major = "row", b_major = "col";
  std::string scale = "ue8m0", kind;
  std::string tile, warps, bit_op;
  std::string tuning;  // a file
  std::string gpu;     // a name
  int multiprocessors = 0;
  int workspace = 0;  // bytes
  std::vector<std::string> epilogue;
};

/// Those of scaled_gemm, and k_grouped_gemm.
struct ScaledWords {
  std::string grouping = "none";
  int blocks_k = 1;
  bool share_a = false;
};

void add_product_options(KernelRegistry& registry, ProductWords& words);

/// A size of a launch: constant, or if 0 the argument of that parameter.
inline int size_of(const LaunchSizes& sizes, std::string_view param, int constant) {
  return constant ? constant : static_cast<int>(sizes.of(param));
}

/// The options, or all errors in the text and in the options themselves.
Result<kernels::Gemm> read_gemm(const ProductWords& words);
/// For gemm and gemm_sum: settings that are not given become the fastest, as a file of tune() says
/// if it has the product, else as kernels::tuned() does, with a warning. What is given holds, or is
/// an error.
struct Completed {
  kernels::Gemm gemm;
  Diags warnings;
};
Result<Completed> completed(const ProductWords& words, const kernels::Gemm& read,
                            const Request& request);
/// The same for block_scaled, which has its own options.
Result<kernels::BlockScaled> read_block_scaled(const ProductWords& words);
/// The same for scaled_gemm. Without a tile, the fastest that has what is given: see
/// kernels::tuned().
Result<kernels::ScaledGemm> read_scaled_gemm(const ProductWords& words, const ScaledWords& own,
                                             const Request& request);
/// The same for k_grouped_gemm.
Result<kernels::KGroupedGemm> read_k_grouped_gemm(const ProductWords& words,
                                                  const ScaledWords& scaled, bool accumulate,
                                                  const Request& request);
/// Only the element type, for kernels that take no more than --type.
Result<Type> read_type(const ProductWords& words);

}  // namespace tartan::TARTAN_ABI::builtins
