// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/regret_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string_view>

#include "bench/gpu/words.h"
#include "kernels/tuner/gemm_candidates.h"

namespace gpu {

using namespace tartan;

namespace {

// A whole number, log-uniform in first..last. The arithmetic of std::uniform_real_distribution is
// the library's own choice; this one is the same everywhere.
int log_uniform(std::mt19937& random, int first, int last) {
  const double at = static_cast<double>(random()) / 0x1p32;
  return static_cast<int>(first * std::pow(double(last) / first, at) + 0.5);
}

int rounded(int size, int multiple) {
  return size < multiple ? size : (size + multiple / 2) / multiple * multiple;
}

constexpr std::string_view groups[] = {"128", "8", "any"};
constexpr int multiples[] = {128, 8, 1};
constexpr const char* types[] = {"bf16", "f16", "e4m3", "s8"};

}  // namespace

std::vector<Drawn> drawn_problems(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::vector<Drawn> out;
  for (int i = 0; i < count; ++i) {
    const auto group = static_cast<std::size_t>(i % 3), type = static_cast<std::size_t>(i / 3 % 4);
    Drawn& each = out.emplace_back();
    (void)read_type(types[type], each.product);
    const int multiple = multiples[group];
    each.product.m = rounded(log_uniform(random, 1, 8192), multiple);
    each.product.n = rounded(log_uniform(random, 512, 16384), multiple);
    each.product.k = rounded(log_uniform(random, 512, 16384), multiple);
    each.group = groups[group];
  }
  return out;
}

std::vector<Drawn> model_problems() {
  static constexpr const char* sizes[] = {"4096",
                                          "8192",
                                          "1000",
                                          "512x5120x5120",
                                          "640x10240x2560",
                                          "32x4096x14336",
                                          "32x4096x11008",
                                          "4096x24576x1536",
                                          "2048x12288x1536",
                                          "8x28672x8192",
                                          "8x8192x28672",
                                          "16x8192x8192",
                                          "16x10240x8192",
                                          "1x8192x8192",
                                          "2048x7168x2048",
                                          "3072x1024x8192",
                                          "128x4096x4096",
                                          "64x14336x4096",
                                          "256x14336x4096",
                                          "1024x4096x4096",
                                          "4096x2112x7168",
                                          "777x3333x2000"};
  std::vector<Drawn> out;
  for (const char* size : sizes) {
    Drawn& each = out.emplace_back();
    (void)read_type("bf16", each.product);
    (void)read_size(size, each.product);
    each.group = "model";
  }
  return out;
}

std::vector<Drawn> given_problems(const std::vector<std::string>& sizes,
                                  const std::vector<std::string>& types) {
  std::vector<Drawn> out;
  for (const std::string& word : sizes) {
    const std::size_t colon = word.find(':');
    const std::string size = word.substr(0, colon);
    const auto own = colon == word.npos ? types : std::vector{word.substr(colon + 1)};
    for (const std::string& type : own) {
      Drawn& each = out.emplace_back();
      if (!read_size(size, each.product)) refuse("--size", size, "N or MxNxK");
      if (!read_type(type, each.product))
        refuse(colon == word.npos ? "--type" : "--size", type, "an element type");
      each.group = "given";
    }
  }
  return out;
}

Divisors divisors_of(const Product& product) {
  const int whole = 128 / bits(product.a), whole_c = 128 / bits(product.c);
  return {std::gcd(product.k, whole), product.n % whole_c == 0 ? whole_c : 1};
}

namespace {

// As of read_config(), but the tile's k in lines of 128 bytes. By TMA:
constexpr std::string_view by_tma[] = {
    // wgmma, persistent
    "128x256x1:8x1:4:4:persistent:group=16", "128x256x1:8x1:3:4:persistent:group=16",
    "128x256x1:8x1:4:4:persistent", "128x256x1:8x1:4:4:persistent:group=16:cluster=2",
    "128x240x1:8x1:4:4:persistent:group=16", "128x224x1:8x1:4:4:persistent:group=16",
    "128x208x1:8x1:4:4:persistent:group=16", "128x208x1:8x1:4:4:persistent:group=16:cluster=2",
    "128x192x1:8x1:4:4:persistent:group=16", "128x176x1:8x1:5:4:persistent:group=16",
    "128x160x1:8x1:5:4:persistent:group=16", "128x144x1:8x1:5:4:persistent:group=16",
    "128x128x1:8x1:6:4:persistent", "128x128x1:8x1:6:4:persistent:cluster=2",
    "256x128x1:16x1:4:4:persistent", "256x128x1:8x1:4:4:persistent",
    "192x128x1:12x1:4:4:persistent", "192x160x1:12x1:4:4:persistent",
    "192x192x1:12x1:4:4:persistent", "256x96x1:16x1:4:4:persistent", "64x256x1:4x1:4:4:persistent",
    "128x96x1:8x1:6:4:persistent", "128x64x1:8x1:8:4:persistent",
    // a tile for each CTA
    "128x256x1:8x1:4:4", "128x224x1:8x1:4:4", "128x192x1:8x1:4:4", "128x176x1:8x1:5:4",
    "128x160x1:8x1:5:4", "128x144x1:8x1:5:4", "128x128x1:8x1:6:4", "128x112x1:8x1:6:4",
    "128x96x1:8x1:7:4", "128x80x1:8x1:7:4", "128x64x1:8x1:8:4", "128x32x1:8x1:8:4",
    "192x128x1:12x1:4:4", "256x128x1:16x1:4:4", "64x256x1:4x1:4:4", "64x192x1:4x1:6:4",
    "64x128x1:4x1:8:4", "64x128x1:4x1:6:4", "64x96x1:4x1:8:4", "64x64x1:4x1:8:4", "64x48x1:4x1:8:4",
    "64x32x1:4x1:8:4", "64x128x1:4x1:8:4:cluster=2", "128x128x1:8x1:6:4:cluster=2",
    // clusters that share A and B
    "128x256x1:8x1:4:4:persistent:group=16:cluster=2:cluster_columns=2",
    "128x208x1:8x1:4:4:persistent:group=16:cluster=2:cluster_columns=2",
    "128x256x1:8x1:4:4:cluster=2:cluster_columns=2",
    "128x208x1:8x1:4:4:cluster=2:cluster_columns=2",
    "128x160x1:8x1:5:4:cluster=2:cluster_columns=2",
    "128x128x1:8x1:6:4:cluster=2:cluster_columns=2", "128x96x1:8x1:7:4:cluster=2:cluster_columns=2",
    "128x80x1:8x1:7:4:cluster=2:cluster_columns=2", "128x64x1:8x1:8:4:cluster=2:cluster_columns=2",
    "64x128x1:4x1:8:4:cluster=2:cluster_columns=2", "64x64x1:4x1:8:4:cluster=2:cluster_columns=2",
    "192x128x1:12x1:4:4:cluster=2:cluster_columns=2",
    "192x192x1:12x1:4:4:cluster=2:cluster_columns=2", "192x128x1:12x1:4:4:cluster=2",
    "128x80x1:8x1:7:4:cluster=2", "128x64x1:8x1:8:4:cluster=2", "128x160x1:8x1:5:4:cluster=2",
    "64x64x1:4x1:8:4:cluster=4", "64x128x1:4x1:8:4:cluster=4",
    // two or more CTAs per multiprocessor
    "64x128x1:4x1:4:4", "64x64x1:4x1:5:4", "64x64x1:4x1:3:4", "128x64x1:8x1:4:4", "64x32x1:4x1:5:4",
    "128x128x1:8x1:2:4",
    // k-tiles of two lines
    "64x64x2:4x1:5:4", "64x64x2:4x1:3:4", "64x32x2:4x1:7:4", "64x128x2:4x1:4:4", "128x64x2:8x1:4:4",
    "128x128x2:8x1:3:4",
    // split-K, stream-K
    "64x64x1:4x1:8:4:splits=2", "64x64x1:4x1:8:4:splits=4", "64x64x1:4x1:8:4:splits=8",
    "64x128x1:4x1:8:4:splits=2", "64x128x1:4x1:8:4:splits=4", "64x128x1:4x1:8:4:splits=8",
    "128x128x1:8x1:6:4:splits=2", "128x128x1:8x1:6:4:splits=4", "128x256x1:8x1:4:4:splits=2",
    "128x256x1:8x1:4:4:splits=4", "128x256x1:8x1:4:4:splits=8", "64x256x1:4x1:4:4:splits=4",
    "128x128x1:8x1:6:4:stream=132", "128x256x1:8x1:4:4:stream=132", "64x128x1:4x1:8:4:stream=132",
    // mma.sync, few rows
    "16x64x2:1x4:8", "16x64x2:1x4:8:4", "16x64x1:1x4:8:4", "16x64x4:1x4:5:4", "16x32x4:1x4:8:4",
    "16x32x2:1x4:8:4", "16x128x2:1x4:5:4", "16x128x1:1x4:8:4", "32x64x2:1x4:8", "32x64x2:1x4:8:4",
    "32x64x1:1x4:8:4", "32x32x4:1x4:6:4", "32x32x2:1x4:8:4", "32x128x2:1x4:5:4", "32x128x1:1x4:8:4",
    "16x64x2:1x4:4:4", "16x64x2:1x4:4", "32x64x2:1x4:4:4", "16x64x2:1x4:8:4:splits=2",
    "16x64x2:1x4:8:4:splits=4", "16x128x2:1x4:5:4:splits=4", "32x64x2:1x4:8:4:splits=2",
    "32x64x2:1x4:8:4:splits=4", "64x64x2:2x2:5:4",
    // mma.sync
    "128x256x2:2x4:2:4:persistent", "128x256x1:2x4:3:4", "128x128x1:2x2:4:4", "64x128x1:2x2:5:4",
    "64x64x1:2x2:8:4", "128x256x1:2x4:3", "128x128x1:2x2:3", "64x64x1:2x2:4", "32x64x2:2x2:4"};

// Rows of A and B that are no multiples of 16 bytes: threads copy.
constexpr std::string_view by_threads[] = {
    // mma.sync
    "128x256x1:2x4:2", "128x256x1:2x4:3", "128x256x1:2x4:4", "256x128x1:4x2:3",
    "128x256x1:2x4:3:persistent", "128x128x1:2x2:2", "128x128x1:2x2:3", "128x128x1:2x2:4",
    "128x128x1:2x4:3", "128x128x1:2x4:4", "128x128x1:4x2:3", "128x128x1:2x2:3:persistent",
    "128x192x1:2x4:3", "128x64x1:2x2:3", "128x64x1:2x2:4", "128x64x1:4x1:4", "128x96x1:2x2:3",
    "64x256x1:1x4:3", "64x256x1:2x4:3", "64x192x1:1x4:3", "64x128x1:2x2:3", "64x128x1:2x2:4",
    "64x128x1:1x4:4", "64x96x1:2x2:4", "64x64x1:2x2:3", "64x64x1:2x2:4", "64x64x1:2x2:6",
    "64x64x2:2x2:3", "64x32x1:2x2:4", "32x64x2:2x2:4", "32x64x1:2x2:4", "32x64x2:1x4:4",
    "32x128x1:1x4:4", "32x128x2:1x4:3", "32x32x2:1x4:6", "32x64x2:1x4:6", "16x64x2:1x4:4",
    "16x64x2:1x4:8", "16x64x1:1x4:8", "16x128x2:1x4:4", "16x128x1:1x4:6", "16x32x2:1x4:8",
    "16x32x4:1x4:5", "16x256x1:1x4:4", "64x64x1:1x4:4", "64x64x2:1x4:3", "64x64x1:4x1:4",
    "64x64x1:2x2:8", "64x128x1:4x1:3", "64x32x2:2x2:4", "32x64x1:1x4:6", "32x128x1:2x2:4",
    "32x32x1:1x4:8", "16x64x4:1x4:4", "16x128x1:1x4:3", "16x256x1:1x4:3",
    // split-K
    "16x64x2:1x4:6:splits=16", "32x64x2:1x4:5:splits=16", "64x64x1:2x2:4:splits=16",
    "64x128x1:2x2:4:splits=8", "16x64x2:1x4:6:splits=2", "16x64x2:1x4:6:splits=4",
    "16x64x2:1x4:6:splits=8", "32x64x2:1x4:5:splits=2", "32x64x2:1x4:5:splits=4",
    "32x64x2:1x4:5:splits=8", "64x64x1:2x2:4:splits=2", "64x64x1:2x2:4:splits=4",
    "64x64x1:2x2:4:splits=8", "64x128x1:2x2:4:splits=2", "64x128x1:2x2:4:splits=4",
    "128x128x1:2x2:3:splits=2", "128x128x1:2x2:3:splits=4", "128x256x1:2x4:3:splits=2",
    "128x256x1:2x4:3:stream=132", "128x128x1:2x2:3:stream=132",
    // producers
    "128x256x1:2x4:3:4", "128x128x1:2x2:4:4", "128x128x1:2x4:4:4", "64x128x1:2x2:6:4",
    "64x64x1:2x2:6:4", "64x64x1:2x2:6:2", "32x64x2:1x4:6:4", "16x64x2:1x4:8:4",
    // wgmma
    "128x256x1:8x1:4:4", "128x256x1:8x1:3:4", "128x256x1:8x1:4:4:persistent", "128x192x1:8x1:4:4",
    "128x192x1:8x1:4:8", "128x128x1:8x1:6:4", "128x128x1:8x1:6:8", "128x64x1:8x1:6:4",
    "64x256x1:4x1:4:4", "64x256x1:4x1:4:8", "64x128x1:4x1:6:4", "64x128x1:4x1:6:8",
    "64x128x1:4x1:4:4", "64x64x1:4x1:8:4", "64x64x1:4x1:5:4", "64x32x1:4x1:8:4"};

Config config_of(std::string_view words, const Product& product) {
  const std::size_t colon = words.find(':'), by = words.rfind('x', colon);
  const int lines = words[by + 1] - '0';
  auto out = *read_config(fmt::format("{}{}{}", words.substr(0, by + 1),
                                      lines * 1024 / bits(product.a), words.substr(colon)));
  out.dynamic = true;
  return out;
}

}  // namespace

std::vector<Config> regret_configs(const Product& product, const Target& target) {
  const bool hopper = target.arch.text() == "sm_90a";
  const bool tma = hopper && divisors_of(product).operands * bits(product.a) == 128;
  std::vector<Config> out;
  const auto add = [&](const auto& all) {
    for (const std::string_view words : all) {
      const Config config = config_of(words, product);
      if (hopper || (config.gemm.tile.warps_n > 1 &&
                     kernels::detail::runs(options_of(config, product), target)))
        out.push_back(config);
    }
  };
  if (tma) add(by_tma);
  else add(by_threads);
  Config chosen = completed({.tuned = true}, product, target);
  chosen.text.erase(0, std::string_view("tuned, ").size());
  const auto same = [&](const Config& each) { return each.text == chosen.text; };
  chosen.dynamic = true;
  if (std::none_of(out.begin(), out.end(), same)) out.push_back(chosen);
  return out;
}

bool sensible(const Config& config, const Product& product) {
  const kernels::Gemm& gemm = config.gemm;
  const Tile& tile = gemm.tile;
  constexpr std::int64_t most_workspace = std::int64_t{1} << 27;  // elements
  if (tile.m > 2 * std::max(product.m, 32)) return false;
  if (tile.m <= 32 && product.m > 256) return false;
  if (gemm.splits > 1 && product.k < 2 * gemm.splits * tile.k) return false;
  const bool partial = gemm.splits > 1 || gemm.stream_blocks > 0;
  return !partial || gemm.workspace_elements(product.m, product.n) <= most_workspace;
}

}  // namespace gpu
