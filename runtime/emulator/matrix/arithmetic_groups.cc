// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "runtime/emulator/matrix/arithmetic.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int most_outer = 16, most_depth = 128, most_groups = 4;
constexpr int per_cell = 8;  // elements

// Twice a number of format e2m1: an integer.
constexpr std::int16_t doubled(std::uint32_t bits) {
  const Term term = decode(format(Type::e2m1), bits);
  return static_cast<std::int16_t>(term.significand ? term.significand << term.exponent : 0);
}

constexpr auto doubles = [] {
  std::array<std::int16_t, 16> out{};
  for (std::uint32_t bits = 0; bits < out.size(); ++bits) out[bits] = doubled(bits);
  return out;
}();

// A factor's elements as multiply_integers() takes them: (k, outer) at k * outer_count + outer.
struct Fours {
  alignas(64) std::int16_t value[most_depth * most_outer];
  // By cell and outer: bit 4 * i is set where element i of the cell is not zero.
  std::uint32_t present[most_depth / per_cell * most_outer];
};

constexpr std::uint32_t nonzero(std::uint32_t cell) {
  return (cell | cell >> 1 | cell >> 2) & 0x1111'1111;  // the magnitude's three bits
}

void unpack(const std::uint32_t* image, int along, int outer, Fours& to) {
  for (int cell = 0; cell < along / per_cell; ++cell)
    for (int i = 0; i < outer; ++i) {
      const std::uint32_t word = image[cell * outer + i];
      to.present[cell * outer + i] = nonzero(word);
      for (int e = 0; e < per_cell; ++e)
        to.value[(cell * per_cell + e) * outer + i] = doubles[word >> (4 * e) & 0xF];
    }
}

// The sums of the products of rows and columns: (row, column) at column * rows + row.
void multiply(int rows, int columns, int depth, const std::int16_t* a, const std::int16_t* b,
              std::uint32_t* d) {
  for (int col = 0; col < columns; ++col)
    for (int row = 0; row < rows; ++row) {
      int sum = 0;
      for (int k = 0; k < depth; ++k) sum += a[k * rows + row] * b[k * columns + col];
      d[col * rows + row] = static_cast<std::uint32_t>(sum);
    }
}

}  // namespace

// Sparse products run as dense ones: the elements of A go to their places among zeros, two of the
// same place together.
void Arithmetic::run_groups(const Images& images, const std::uint32_t* a, const std::uint32_t* b,
                            const std::uint32_t* c, std::uint32_t* d) const {
  Fours left, right;
  unpack(b, k_, n_, right);
  if (!sparse_) {
    unpack(a, k_, m_, left);
  } else {
    Fours stored;
    unpack(a, stored_, m_, stored);
    std::fill_n(left.value, k_ * m_, std::int16_t{0});
    std::fill_n(left.present, k_ / per_cell * m_, 0u);
    each_stored(images, [&](int row, int index, int k, bool) {
      const std::int16_t value = stored.value[index * m_ + row];
      std::int16_t& to = left.value[k * m_ + row];
      to = static_cast<std::int16_t>(to + value);
      if (value) left.present[k / per_cell * m_ + row] |= 1u << (4 * (k % per_cell));
    });
  }

  const int groups = stored_ / sum_.length, depth = k_ / groups, cells = depth / per_cell;
  const int blocks = form_.scale_vec ? form_.scale_vec : 2;
  std::uint32_t sums[most_groups][most_outer * most_outer];
  Term row_scales[most_groups][most_outer], column_scales[most_groups][most_outer];
  for (int g = 0; g < groups; ++g) {
    const auto multiply_all = kernel_ ? kernel_->multiply_integers : multiply;
    multiply_all(m_, n_, depth, left.value + g * depth * m_, right.value + g * depth * n_, sums[g]);
    const int block = g * blocks / groups;
    for (int row = 0; row < m_; ++row) row_scales[g][row] = scale_of_row(images, row, block);
    for (int col = 0; col < n_; ++col) column_scales[g][col] = scale_of_column(images, col, block);
  }

  for (int col = 0; col < n_; ++col)
    for (int row = 0; row < m_; ++row) {
      Group list[most_groups];
      bool nan = false;
      for (int g = 0; g < groups; ++g) {
        const Term &x = row_scales[g][row], &y = column_scales[g][col];
        nan |= x.special == Special::nan || y.special == Special::nan;
        std::uint32_t present = 0;
        for (int cell = g * cells; cell < (g + 1) * cells; ++cell)
          present |= left.present[cell * m_ + row] & right.present[cell * n_ + col];
        if (!present) continue;
        const auto sum = static_cast<std::int32_t>(sums[g][col * m_ + row]);
        list[g] = {sum * x.significand * y.significand, x.exponent + y.exponent};
      }
      const int at = col * m_ + row;
      d[at] = nan ? format(Type::f32).nan_bits() : group_sum(sum_, list, groups, c[at]);
    }
}

}  // namespace tartan::TARTAN_ABI::emulator
