// SPDX-License-Identifier: Apache-2.0
// bench/gpu/gemm_config.h - parses products and configurations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tartan/kernels/gemm.h"
#include "tartan/runtime/device.h"

namespace gpu {

/// A product. C is m x n.
struct Product {
  int m = 4096, n = 4096, k = 4096;
  tartan::Type a = tartan::f16, b = tartan::f16, c = tartan::f16;
  tartan::Major a_major = tartan::Major::row, b_major = tartan::Major::col;
  bool sparse = false;  // A has zeros in half of its places, in mma.sp's pattern

  double operations() const { return 2.0 * m * n * k; }
  /// "4096x4096x4096 f16 to f16, rc"
  std::string text() const;
};

/// "4096" or "16x8192x8192" (MxNxK) into the sizes of `product`.
bool read_size(const std::string& word, Product& product);
/// "f16", or for A and B: "e4m3xe5m2"; sets C to the usual type of such products, see usual_c().
bool read_type(const std::string& word, Product& product);
/// "rc": A row-major, B column-major.
bool read_majors(const std::string& word, Product& product);
/// f16, bf16: the same; tf32: f32; s8: s32; e4m3, e5m2: bf16.
tartan::Type usual_c(tartan::Type a);

/// A configuration: options of the kernel, and of the launch.
struct Config {
  tartan::kernels::Gemm gemm;
  int blocks = 0;        // of a persistent kernel; 0: one per SM
  bool dynamic = false;  // sizes are parameters
  bool sparse = false;   // A is compressed
  bool alone = false;    // launches begin when the one in front has ended, not beside its end
  bool tuned = false;    // as kernels::tuned() chooses
  std::string text;
};

/// MxNxK:WMxWN:STAGES[:PRODUCERS][:NAME[=NUMBER]]..., such as "128x256x64:8x1:3:4:persistent=132",
/// or "tuned".
std::optional<Config> read_config(const std::string& word);
/// The names, one per line, for --help.
std::string config_help();

/// "128x256x64:8x1:4:4:persistent:group=16", as read_config() takes it.
std::string config_text(const tartan::kernels::Gemm& gemm);

/// The tuned configuration for a product on a target; other configurations are unchanged.
Config completed(const Config& config, const Product& product, const tartan::kernels::Gpu& gpu);

/// The kernel's options for a product; an 8-bit C is scaled by `alpha`.
tartan::kernels::Gemm options_of(const Config& config, const Product& product);

/// Blocks of the launch of gemm(), and of gemm_sum() (0: there is none).
tartan::Dim3 grid_of(const Config& config, const Product& product, int multiprocessors);
unsigned sum_blocks_of(const Config& config, const Product& product);

/// The configurations that are measured by default.
std::vector<Config> usual_configs(const Product& product);
/// The products of the project's tables.
std::vector<Product> usual_products();

}  // namespace gpu
