// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/arithmetic.h - D = A * B + C on images (see lane_map.h), by a rule.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/emulator/matrix/fused_sum.h"
#include "runtime/emulator/matrix/rule.h"
#include "runtime/emulator/matrix/scratch.h"
#include "runtime/emulator/matrix/tile.h"
#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::emulator {

/// The images of one execution, and its other inputs. For f64 the images have 64-bit cells.
struct Images {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;                        // does not alias c
  const std::uint32_t* metadata = nullptr;  // by lane
  int selector = 0;
  Scratch* scratch = nullptr;
  const std::uint32_t* scale_a = nullptr;  // by lane
  const std::uint32_t* scale_b = nullptr;
  int byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0;
  bool negate_a = false, negate_b = false;  // floating-point types: wgmma's scale immediates
};

class Arithmetic {
 public:
  /// `transposed`: A and B are swapped: images of A are the form's B.
  Arithmetic(const isa::Form& form, const NumericRule& rule, bool transposed, Path path);
  void run(const Images& images) const;
  std::uint64_t multiply_adds() const { return std::uint64_t{1} * matrices_ * m_ * n_ * stored_; }

 private:
  // One factor: A with its m rows, or B with its n columns.
  struct Factor {
    Type type = Type::none;
    Format format;
    int outer = 0;      // rows of A, columns of B
    int along = 0;      // elements of a row (column): k, of sparse A k / 2
    int container = 0;  // bits of an element in its cell
    int per_cell = 0;
    int cells() const { return along / per_cell * outer; }
  };

  static std::uint32_t raw(const Factor& factor, const std::uint32_t* image, int outer, int k);
  static Term number(const Factor& factor, std::uint32_t raw, bool through_half);
  std::vector<Term> terms(const Factor& factor, const std::uint32_t* image, bool negate) const;
  Term scale_of_row(const Images& images, int row, int block) const;
  Term scale_of_column(const Images& images, int col, int block) const;
  void scale(const Images& images, std::vector<Term>& a, std::vector<Term>& b) const;
  void select(const Images& images, int row, int col, const std::uint32_t* image, const Term* dense,
              Term* selected) const;
  std::uint32_t code(const Images& images, int row, int j) const;

  // `wanted`, per element of D: computes those that are not zero (null: all).
  void run_terms(const Images& images, const std::uint32_t* a, const std::uint32_t* b,
                 const std::uint32_t* c, std::uint32_t* d,
                 const std::uint8_t* wanted = nullptr) const;
  void run_integers(const Images& images, const std::uint32_t* a, const std::uint32_t* b,
                    const std::uint32_t* c, std::uint32_t* d) const;
  void run_bits(const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
                std::uint32_t* d) const;
  void run_scalar(const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
                  std::uint32_t* d) const;
  std::uint32_t product(const Term* a, const Term* b, std::uint32_t c) const;
  std::uint32_t pairs(const Term* a, const Term* b, std::uint32_t c) const;

  // Whole tiles in vector registers (arithmetic_tiles.cc).
  void prepare_tiles(Path path);
  void run_tile(const Images& images, const std::uint32_t* a, const std::uint32_t* b,
                const std::uint32_t* c, std::uint32_t* d) const;
  void run_integer_tile(const Images& images, const std::uint32_t* a, const std::uint32_t* b,
                        const std::uint32_t* c, std::uint32_t* d) const;

  // 4-bit floats with block scales (arithmetic_groups.cc).
  void run_groups(const Images& images, const std::uint32_t* a, const std::uint32_t* b,
                  const std::uint32_t* c, std::uint32_t* d) const;

  // Calls visit(row, index of the stored element, k of the dense one, legal). Not legal: two
  // elements have the same place, or one has none.
  template <typename Visit>
  void each_stored(const Images& images, const Visit& visit) const;

  isa::Form form_;
  Method method_;
  FusedSum sum_;
  Factor a_, b_;
  int m_ = 0, n_ = 0, k_ = 0, stored_ = 0, matrices_ = 1;
  bool sparse_ = false;

  const TileKernel* kernel_ = nullptr;  // null: element by element
  TileFormat format_a_ = TileFormat::f16, format_b_ = TileFormat::f16;
  std::vector<std::uint8_t> order_;  // k of B (of dense A too) to its position in the sum
  std::vector<std::uint8_t> identity_;
  int step_ = 0;  // products of one sum
};

template <typename Visit>
void Arithmetic::each_stored(const Images& images, const Visit& visit) const {
  const int width = a_.container == 32 ? 2 : a_.container == 4 ? 8 : 4;
  for (int j = 0; j < k_ / width; ++j)
    for (int row = 0; row < m_; ++row) {
      const std::uint32_t code = this->code(images, row, j);
      const int low = static_cast<int>(code & 3), high = static_cast<int>(code >> 2);
      if (width == 2) {
        visit(row, j, 2 * j + (code == 4 ? 0 : 1), code == 4 || code == 14);
      } else if (width == 4) {
        visit(row, 2 * j, 4 * j + low, low != high);
        visit(row, 2 * j + 1, 4 * j + high, low != high);
      } else {
        for (int e = 0; e < 2; ++e) {
          visit(row, 4 * j + e, 8 * j + 2 * low + e, low != high);
          visit(row, 4 * j + 2 + e, 8 * j + 2 * high + e, low != high);
        }
      }
    }
}

}  // namespace tartan::TARTAN_ABI::emulator
