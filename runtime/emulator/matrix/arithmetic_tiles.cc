// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "runtime/emulator/matrix/arithmetic.h"
#include "runtime/emulator/matrix/scratch_store.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

std::optional<TileFormat> tile_format(Type type, bool through_half) {
  switch (type) {
    case Type::f16: return TileFormat::f16;
    case Type::bf16: return TileFormat::bf16;
    case Type::tf32: return TileFormat::tf32;
    case Type::e5m2: return TileFormat::e5m2;
    case Type::e4m3: return through_half ? TileFormat::e4m3_as_half : TileFormat::e4m3;
    default: return std::nullopt;
  }
}

bool any(const std::uint8_t* flags, int count) {
  std::uint64_t sum = 0, word = 0;
  int i = 0;
  for (; i + 8 <= count; i += 8) {
    std::memcpy(&word, flags + i, 8);
    sum |= word;
  }
  for (; i < count; ++i) sum |= flags[i];
  return sum != 0;
}

void negate(float* values, int count) {
  for (int i = 0; i < count; ++i) values[i] = -values[i];
}

}  // namespace

Scratch::Scratch() : store_(std::make_unique<Store>()) {}
Scratch::~Scratch() = default;

// Sparse products run as dense ones: A is expanded, with zeros, which do not affect sums, between
// its elements.
void Arithmetic::prepare_tiles(Path path) {
  const bool pairs = method_ == Method::half_pairs;
  if (m_ % 16 || matrices_ != 1) return;
  if (method_ == Method::integer || method_ == Method::scaled_groups) {
    kernel_ = tile_kernel(path);
  } else if ((pairs || method_ == Method::fused_sum) && !form_.block_scale) {
    const auto a = tile_format(a_.type, pairs), b = tile_format(b_.type, pairs);
    if (!a || !b || sum_.length % 4) return;
    format_a_ = *a;
    format_b_ = *b;
    kernel_ = tile_kernel(path);
  }
  for (int k = 0; k < k_; ++k) {
    const int group = sparse_ ? 4 : 2;  // places in a row that half_pairs adds together
    const int paired = k / (2 * group) * group + k % group + (k / group % 2 ? k_ / 2 : 0);
    order_.push_back(static_cast<std::uint8_t>(pairs ? paired : k));
    identity_.push_back(static_cast<std::uint8_t>(k));
  }
  step_ = sparse_ ? 2 * sum_.length : sum_.length;
}

void Arithmetic::run_tile(const Images& images, const std::uint32_t* a, const std::uint32_t* b,
                          const std::uint32_t* c, std::uint32_t* d) const {
  Scratch::Store& store = images.scratch->store();
  TileFactor left = store.a.factor(k_, m_, false), right = store.b.factor(k_, n_, true);
  kernel_->unpack(format_b_, {b, k_ / b_.per_cell, n_, order_.data()}, right);
  if (!sparse_) {
    kernel_->unpack(format_a_, {a, k_ / a_.per_cell, m_, order_.data()}, left);
  } else {
    TileFactor stored = store.compressed.factor(stored_, m_, false);
    kernel_->unpack(format_a_, {a, stored_ / a_.per_cell, m_, identity_.data()}, stored);
    std::fill_n(left.value, k_ * m_, 0.0f);
    std::fill_n(left.exponent, k_ * m_, zero_exponent);
    std::copy_n(stored.special, m_, left.special);
    left.lowest = stored.lowest;
    left.highest = stored.highest;
    each_stored(images, [&](int row, int index, int k, bool legal) {
      const int to = order_[static_cast<std::size_t>(k)] * m_ + row;
      left.value[to] = stored.value[index * m_ + row];
      left.exponent[to] = stored.exponent[index * m_ + row];
      if (!legal) left.special[row] = 1;
    });
  }
  if (!fits(left, right)) return run_terms(images, a, b, c, d);
  if (images.negate_a) negate(left.value, k_ * m_);
  if (images.negate_b) negate(right.value, k_ * n_);

  const int elements = m_ * n_;
  std::uint8_t* redo = store.redo.get(elements);
  const bool half = sum_.accumulator == f16, pairs = method_ == Method::half_pairs;
  const std::uint32_t* start = pairs ? nullptr : c;
  if (form_.c == f16 && !half) {
    std::uint32_t* widened = store.widened.get(elements);
    for (int i = 0; i < elements; ++i) widened[i] = std::bit_cast<std::uint32_t>(from_half(c[i]));
    start = widened;
  }
  const Tile tile{m_,         n_,        k_,  step_, left, right, start, d, redo, sum_.fraction,
                  sum_.floor, sum_.kept, half};
  bool complete = kernel_->multiply(tile);

  if (pairs && half) {
    for (int i = 0; i < elements; ++i)
      d[i] = to_half(static_cast<double>(from_half(c[i])) + static_cast<double>(from_half(d[i])));
  } else if (pairs) {
    for (int i = 0; i < elements; ++i)
      d[i] = canonical(std::bit_cast<float>(c[i]) + std::bit_cast<float>(d[i]));
  } else if (form_.d == f16 && !half) {
    for (int i = 0; i < elements; ++i)
      d[i] = to_half(static_cast<double>(std::bit_cast<float>(d[i])));
  }

  if (any(left.special, m_) || any(right.special, n_)) {
    if (complete) std::fill_n(redo, elements, std::uint8_t{0});
    complete = false;
    for (int col = 0; col < n_; ++col)
      for (int row = 0; row < m_; ++row)
        redo[col * m_ + row] |= left.special[row] | right.special[col];
  }
  if (!complete) run_terms(images, a, b, c, d, redo);
}

void Arithmetic::run_integer_tile(const Images& images, const std::uint32_t* a,
                                  const std::uint32_t* b, const std::uint32_t* c,
                                  std::uint32_t* d) const {
  Scratch::Store& store = images.scratch->store();
  std::int16_t* left = store.a.factor(k_, m_, false).exponent;
  std::int16_t* right = store.b.factor(k_, n_, false).exponent;
  const auto unpack = [&](const Factor& factor, const std::uint32_t* image, std::int16_t* to) {
    kernel_->unpack_integers(
        factor.container, info(factor.type).is_signed,
        {image, factor.along / factor.per_cell, factor.outer, identity_.data()}, to);
  };
  unpack(b_, b, right);
  if (!sparse_) {
    unpack(a_, a, left);
  } else {
    std::int16_t* stored = store.compressed.factor(stored_, m_, false).exponent;
    unpack(a_, a, stored);
    std::fill_n(left, k_ * m_, std::int16_t{0});
    // Elements with the same place meet the same element of B: add them.
    each_stored(images, [&](int row, int index, int k, bool) {
      left[k * m_ + row] = static_cast<std::int16_t>(left[k * m_ + row] + stored[index * m_ + row]);
    });
  }
  kernel_->multiply_integers(m_, n_, k_, left, right, d);
  constexpr std::int64_t low = std::numeric_limits<std::int32_t>::min(),
                         high = std::numeric_limits<std::int32_t>::max();
  for (int i = 0; i < m_ * n_; ++i) {
    const std::int64_t sum =
        std::int64_t{static_cast<std::int32_t>(c[i])} + static_cast<std::int32_t>(d[i]);
    d[i] = static_cast<std::uint32_t>(form_.satfinite ? std::clamp(sum, low, high) : sum);
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
