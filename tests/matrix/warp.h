// SPDX-License-Identifier: Apache-2.0
// tests/matrix/warp.h - a warp's registers for one matrix product, addressed by element.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/emulator/matrix/matrix.h"
#include "tartan/isa/fragment.h"

namespace tartan::emulator {

constexpr Path all_paths[] = {Path::reference, Path::portable, Path::avx2, Path::avx512,
                              Path::best};

class Registers {
 public:
  Registers(const isa::Form& form, Operand operand)
      : form_(form), operand_(operand), fragment_(isa::fragment(form, operand)) {
    words_.resize(static_cast<std::size_t>(fragment_.registers));
    for (auto& reg : words_) reg.fill(0);
  }
  /// Sets every copy of element (row, col) of matrix `matrix`.
  void set(int row, int col, std::uint64_t bits, int matrix = 0) {
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < fragment_.elements(); ++i)
        if (isa::coord(form_, operand_, lane, i) == isa::Coord{matrix, row, col})
          set_element(lane, i, bits);
  }
  std::uint64_t get(int row, int col, int matrix = 0) const {
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < fragment_.elements(); ++i)
        if (isa::coord(form_, operand_, lane, i) == isa::Coord{matrix, row, col})
          return element(lane, i);
    ADD_FAILURE() << "no lane holds element " << row << ", " << col;
    return 0;
  }
  void fill(std::uint64_t bits) {
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < fragment_.elements(); ++i) set_element(lane, i, bits);
  }
  /// Fills every element with `draw()`.
  template <typename Draw>
  void fill_with(const Draw& draw) {
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < fragment_.elements(); ++i) set_element(lane, i, draw());
  }
  std::vector<void*> pointers() {
    std::vector<void*> out;
    for (auto& reg : words_) out.push_back(reg.data());
    return out;
  }
  const isa::Fragment& fragment() const { return fragment_; }
  bool operator==(const Registers& other) const { return words_ == other.words_; }

 private:
  std::uint64_t mask() const {
    return fragment_.container_bits == 64 ? ~std::uint64_t{0}
                                          : (std::uint64_t{1} << fragment_.container_bits) - 1;
  }
  std::uint64_t element(int lane, int i) const {
    const auto& reg = words_[static_cast<std::size_t>(i / fragment_.per_register)];
    if (fragment_.register_bits == 64) return reg[static_cast<std::size_t>(lane)];
    return half(reg, lane) >> (i % fragment_.per_register * fragment_.container_bits) & mask();
  }
  void set_element(int lane, int i, std::uint64_t bits) {
    auto& reg = words_[static_cast<std::size_t>(i / fragment_.per_register)];
    if (fragment_.register_bits == 64) {
      reg[static_cast<std::size_t>(lane)] = bits;
      return;
    }
    const int shift = i % fragment_.per_register * fragment_.container_bits;
    const std::uint64_t word = (half(reg, lane) & ~(mask() << shift)) | (bits & mask()) << shift;
    auto* words = reinterpret_cast<unsigned char*>(reg.data());
    const auto narrow = static_cast<std::uint32_t>(word);
    std::memcpy(words + 4 * lane, &narrow, 4);
  }
  static std::uint64_t half(const std::array<std::uint64_t, 32>& reg, int lane) {
    std::uint32_t word;
    std::memcpy(&word, reinterpret_cast<const unsigned char*>(reg.data()) + 4 * lane, 4);
    return word;
  }

  isa::Form form_;
  Operand operand_;
  isa::Fragment fragment_;
  std::vector<std::array<std::uint64_t, 32>>
      words_;  // 32-bit registers use the first half of theirs
};

/// A warp before one instruction.
struct Warp {
  isa::Form form;
  Registers a, b, c, d;
  std::array<std::uint32_t, 32> metadata{}, scale_a{}, scale_b{};
  int selector = 0;

  explicit Warp(const isa::Form& form)
      : form(form),
        a(form, Operand::a),
        b(form, Operand::b),
        c(form, Operand::c),
        d(form, Operand::d) {}
  explicit Warp(const std::string& mnemonic) : Warp(isa::parse_form(mnemonic).form) {}

  void run(Hardware hardware, Path path = Path::best) {
    auto product = MatrixProduct::make(form, hardware, path);
    ASSERT_TRUE(product) << product.diags().text();
    const auto a_registers = a.pointers(), b_registers = b.pointers(), c_registers = c.pointers(),
               d_registers = d.pointers();
    MatrixOperands operands;
    operands.a = a_registers.data();
    operands.b = b_registers.data();
    operands.c = c_registers.data();
    operands.d = d_registers.data();
    operands.metadata = metadata.data();
    operands.selector = selector;
    operands.scale_a = scale_a.data();
    operands.scale_b = scale_b.data();
    product->run(operands);
  }
};

}  // namespace tartan::emulator
