// SPDX-License-Identifier: Apache-2.0
// Shuffles weights for mixed_gemm(), on the host.
#include <fmt/format.h>

#include <cstring>
#include <functional>

#include "tartan/kernels/mixed_gemm.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int columns = 16, rows = 64;  // what is padded

// Where an element of a chunk of 16 columns x 64 rows is: bits from the chunk's first one.
std::size_t bit_of(int width, int column, int row) {
  const int mma = row / 16, half = row % 2, member = row % 8 / 2, group = column % 8,
            reg = column / 8 + 2 * (row % 16 / 8), lane = 4 * group + member;
  if (width == 4) return static_cast<std::size_t>(lane * 128 + mma * 32 + 4 * (reg + 4 * half));
  const int block = mma / 2, word = 2 * (mma % 2) + reg / 2, byte = reg % 2 + 2 * half;
  return static_cast<std::size_t>(block * 4096 + lane * 128 + word * 32 + 8 * byte);
}

class Shuffler {
 public:
  Shuffler(int n, int k, const MixedGemm& options)
      : n_(static_cast<std::size_t>(n)),
        k_(static_cast<std::size_t>(k)),
        width_(bits(options.weight)),
        groups_((k_ + static_cast<std::size_t>(options.group) - 1) /
                static_cast<std::size_t>(options.group)) {}

  std::size_t groups() const { return groups_; }

  std::vector<std::uint64_t> weights(std::span<const std::uint8_t> from) const {
    const std::size_t across = (n_ + columns - 1) / columns, along = (k_ + rows - 1) / rows,
                      chunk = static_cast<std::size_t>(columns * rows * width_ / 64);
    std::vector<std::uint64_t> out(across * along * chunk);
    for (std::size_t j = 0; j < n_; ++j)
      for (std::size_t i = 0; i < k_; ++i) {
        const std::size_t first = (j / columns * along + i / rows) * chunk;
        const std::size_t bit =
            bit_of(width_, static_cast<int>(j % columns), static_cast<int>(i % rows));
        out[first + bit / 64] |= std::uint64_t{from[j * k_ + i]} << bit % 64;
      }
    return out;
  }

  // A row for each group of k, two columns in a word.
  template <typename Word, typename Element>
  std::vector<Word> pairs(const std::function<Element(std::size_t)>& from) const {
    const std::size_t line = (n_ + columns - 1) / columns * 8;
    std::vector<Word> out(groups_ * line);
    for (std::size_t j = 0; j < n_; ++j)
      for (std::size_t i = 0; i < groups_; ++i) {
        Word& word = out[i * line + j / columns * 8 + j % 8];
        const auto shift = j % columns / 8 * 8 * sizeof(Element);
        word = static_cast<Word>(word | Word{from(j * groups_ + i)} << shift);
      }
    return out;
  }

 private:
  std::size_t n_, k_;
  int width_;
  std::size_t groups_;
};

}  // namespace

Result<ShuffledWeights> shuffled_weights(std::span<const std::uint8_t> weights,
                                         std::span<const std::byte> scales,
                                         std::span<const std::uint8_t> zeros, int n, int k,
                                         const MixedGemm& options) {
  Diags diags;
  const auto require = [&](bool holds, const std::string& otherwise) {
    if (!holds) diags.report("kernel-option"_rule, {}, otherwise);
  };
  const auto size = [&](const char* what, int value, int wanted) {
    require(value >= 0 && (wanted == 0 || value == wanted),
            fmt::format("{} = {}: expected {}", what, value,
                        wanted ? fmt::format("{}, as the options have it", wanted) : "0 or more"));
  };
  size("n", n, options.n), size("k", k, options.k);
  require(options.weight == Type::u4 || options.weight == Type::u8,
          fmt::format("weights of {}: expected u4 or u8", name(options.weight)));
  require(options.type == f16 || options.type == bf16,
          fmt::format("scales of {}: expected f16 or bf16", name(options.type)));
  require(options.group == 64 || options.group == 128,
          fmt::format("group = {}: expected 64 or 128", options.group));
  if (!diags.ok()) return diags;
  const Shuffler shuffler(n, k, options);
  const std::size_t columns_of = static_cast<std::size_t>(n),
                    count = columns_of * static_cast<std::size_t>(k),
                    pairs = columns_of * shuffler.groups();
  require(weights.size() == count,
          fmt::format("weights: expected {} x {} = {}, found {}", n, k, count, weights.size()));
  require(scales.size() == 2 * pairs,
          fmt::format("scales: expected {} x {} of 2 bytes, found {} bytes", n, shuffler.groups(),
                      scales.size()));
  require(
      zeros.size() == (options.zeros ? pairs : 0),
      options.zeros
          ? fmt::format("zeros: expected {} x {}, found {}", n, shuffler.groups(), zeros.size())
          : fmt::format("zeros: expected none without MixedGemm::zeros, found {}", zeros.size()));
  if (!diags.ok()) return diags;
  const auto in_range = [&](std::span<const std::uint8_t> values, const char* what,
                            std::size_t line) {
    for (std::size_t i = 0; bits(options.weight) == 4 && i < values.size(); ++i)
      if (values[i] > 15)
        return require(false, fmt::format("{} of column {}, number {}: expected 0 to 15, found {}",
                                          what, i / line, i % line, values[i]));
  };
  in_range(weights, "weight", static_cast<std::size_t>(k));
  in_range(zeros, "zero point", shuffler.groups());
  if (!diags.ok()) return diags;
  ShuffledWeights out;
  out.weights = shuffler.weights(weights);
  out.scales = shuffler.pairs<std::uint32_t, std::uint16_t>([&](std::size_t i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, &scales[2 * i], sizeof(bits));
    return bits;
  });
  if (options.zeros)
    out.zeros =
        shuffler.pairs<std::uint16_t, std::uint8_t>([&](std::size_t i) { return zeros[i]; });
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels
