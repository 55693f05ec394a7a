// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/scratch_store.h - what Scratch holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "runtime/emulator/matrix/scratch.h"
#include "runtime/emulator/matrix/tensor_product.h"
#include "runtime/emulator/matrix/tile.h"

namespace tartan::TARTAN_ABI::emulator {

// A cache-line aligned array, kept from one product to the next.
template <typename T>
class Aligned {
 public:
  T* get(int count) {
    if (count > count_) grow(count);
    return data_;
  }

 private:
  void grow(int count) {
    constexpr std::size_t line = 64;
    const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
    storage_.resize(bytes + line);
    void* at = storage_.data();
    std::size_t space = storage_.size();
    data_ = static_cast<T*>(std::align(line, bytes, at, space));
    count_ = count;
  }

  std::vector<std::byte> storage_;
  T* data_ = nullptr;
  int count_ = 0;
};

struct FactorStore {
  Aligned<float> value;
  Aligned<std::int16_t> exponent;
  Aligned<std::uint32_t> doubled;
  Aligned<std::uint8_t> special;

  TileFactor factor(int depth, int outer, bool columns) {
    const int size = depth * outer;
    return {value.get(size),
            columns ? nullptr : exponent.get(size),
            columns ? doubled.get(size) : nullptr,
            special.get(outer),
            0,
            0};
  }
};

struct Scratch::Store {
  FactorStore a, b, compressed;
  Aligned<std::uint8_t> redo;
  Aligned<std::uint32_t> widened;
  struct {
    std::vector<std::uint32_t> a, b, c, d;
  } warpgroup;  // images of its operands
  // By kind, whether it is of a pair, and .ws, and the instruction descriptor.
  std::map<std::tuple<TensorKind, bool, bool, std::uint32_t>, TensorProduct> tensor_products;
};

}  // namespace tartan::TARTAN_ABI::emulator
