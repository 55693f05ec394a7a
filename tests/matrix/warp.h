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
    for (const auto& [lane, i] : places(matrix, row, col)) set_element(lane, i, bits);
  }
  std::uint64_t get(int row, int col, int matrix = 0) const {
    const auto [lane, i] = places(matrix, row, col).at(0);
    return element(lane, i);
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
  struct Place {
    int lane, i;
  };
  // The copies of an element. All are looked up when the first one is asked for.
  const std::vector<Place>& places(int matrix, int row, int col) const {
    if (places_.empty()) {
      places_.resize(
          static_cast<std::size_t>(fragment_.matrices * fragment_.rows * fragment_.cols));
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < fragment_.elements(); ++i) {
          const isa::Coord at = isa::coord(form_, operand_, lane, i);
          places_.at(index(at.matrix, at.row, at.col)).push_back({lane, i});
        }
    }
    return places_.at(index(matrix, row, col));
  }
  std::size_t index(int matrix, int row, int col) const {
    return static_cast<std::size_t>((matrix * fragment_.rows + row) * fragment_.cols + col);
  }
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
  mutable std::vector<std::vector<Place>> places_;
};

/// A warp before one instruction.
struct Warp {
  isa::Form form;
  Registers a, b, c, d;
  std::array<std::uint32_t, 32> metadata{}, scale_a{}, scale_b{};
  int selector = 0;
  int byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0;

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
    run(*product);
  }
  void run(const MatrixProduct& product) {
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
    operands.byte_a = byte_a;
    operands.thread_a = thread_a;
    operands.byte_b = byte_b;
    operands.thread_b = thread_b;
    Scratch scratch;
    product.run(operands, scratch);
  }
};

}  // namespace tartan::emulator
