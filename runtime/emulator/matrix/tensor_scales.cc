// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/tensor_scales.h"

#include <array>
#include <vector>

#include "runtime/emulator/matrix/fused_sum.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int scale_lanes = 32, upper_lanes = 64, cells_of_lane = 512;
constexpr std::size_t most_groups = 6;  // of 16 elements, with K = 96

// ue8m0: 2^(bits - 127). Bit 7 of ue4m3 is ignored.
Term scale_of_bits(Type type, std::uint32_t bits) {
  if (type == Type::ue4m3) return decode(format(Type::ue4m3), bits & 0x7F);
  return {1, static_cast<std::int16_t>(static_cast<int>(bits) - 127),
          bits == 0xFF ? Special::nan : Special::none};
}

// The scale of block `block` of row or column `i` of `count`; those from `lower` on are 64 lanes
// above the others.
Term scale_at(const TensorOperands& operands, Type type, int column, int id, int count, int lower,
              int i, int block) {
  const int byte = id + block, lane = i % lower % scale_lanes + (i < lower ? 0 : upper_lanes);
  const std::uint32_t cell =
      operands.cells[lane * cells_of_lane + column + byte / 4 * columns_of_scales(count) +
                     i % lower / scale_lanes];
  return scale_of_bits(type, cell >> byte % 4 * 8 & 0xFF);
}

// The elements of a row or column.
std::vector<Term> elements_of(const InstructionDescriptor& what, Type type, int along,
                              const std::uint32_t* image, int count, int i, bool negate) {
  const int container = what.container_bits(type), per_cell = 32 / container;
  std::vector<Term> out;
  for (int k = 0; k < along; ++k) {
    std::uint32_t bits =
        image[k / per_cell * count + i] >> k % per_cell * container & ((1u << container) - 1);
    if (type == Type::e2m1 && container == 8) bits = bits >> 2 & 0xF;
    if (tartan::bits(type) == 6) bits &= 0x3F;
    out.push_back(decode(format(type), bits));
    if (negate) out.back().significand = -out.back().significand;
  }
  return out;
}

// Which elements of a column of B the stored ones of row `m` of A meet.
std::vector<std::size_t> met_by(const ScaledProduct& p, int m) {
  std::vector<std::size_t> out;
  const auto stored = static_cast<std::size_t>(p.what.stored());
  // A code chooses two of four elements, or of pairs of them.
  const std::size_t each = p.what.container_bits(p.what.a) == 4 ? 2 : 1, of_code = 2 * each;
  for (std::size_t i = 0; i < stored; ++i) {
    if (!p.what.sparse) {
      out.push_back(i);
      continue;
    }
    const std::uint32_t code =
        p.codes[static_cast<std::size_t>(m) * (stored / of_code) + i / of_code];
    const std::size_t chosen = code >> i % of_code / each * 2 & 3;
    out.push_back(i / of_code * 2 * of_code + chosen * each + i % each);
  }
  return out;
}

// One sum, the scales in the exponents.
void multiply_bytes(const ScaledProduct& p, const TensorOperands& operands, int first, int rows,
                    const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
                    std::uint32_t* d) {
  const InstructionDescriptor& what = p.what;
  const FusedSum sum{
      .product_fraction = format(what.a).fraction_bits + format(what.b).fraction_bits,
      .length = p.rule.length,
      .fraction = p.rule.fraction,
      .floor = p.rule.floor_f32,
      .kept = p.rule.kept};
  const auto scaled = [&](std::vector<Term> terms, const Term& by) {
    for (Term& each : terms) {
      each.exponent = static_cast<std::int16_t>(each.exponent + by.exponent);
      if (by.special == Special::nan) each.special = Special::nan;
    }
    return terms;
  };
  std::vector<std::vector<Term>> left, right;
  for (int m = 0; m < rows; ++m)
    left.push_back(scaled(elements_of(what, what.a, what.stored(), a, rows, m, what.negates_a),
                          scale_at(operands, what.scale_type, operands.scale_a_column,
                                   what.scale_a_id, what.rows(), what.rows(), first + m, 0)));
  for (int n = 0; n < what.n; ++n)
    right.push_back(scaled(elements_of(what, what.b, what.k, b, what.n, n, what.negates_b),
                           scale_at(operands, what.scale_type, operands.scale_b_column,
                                    what.scale_b_id, what.n, what.columns_of_part(), n, 0)));
  std::vector<Term> met(static_cast<std::size_t>(what.stored()));
  for (int m = 0; m < rows; ++m) {
    const std::vector<std::size_t> which = met_by(p, m);
    for (int n = 0; n < what.n; ++n) {
      for (std::size_t k = 0; k < met.size(); ++k)
        met[k] = right[static_cast<std::size_t>(n)][which[k]];
      d[n * rows + m] = emulator::fused_sum(sum, left[static_cast<std::size_t>(m)].data(),
                                            met.data(), what.stored(), c[n * rows + m]);
    }
  }
}

// A row or column of e2m1, in halves, with its scales.
struct FourBitRow {
  std::vector<int> halves;
  std::array<Term, most_groups> scales;
};

FourBitRow four_bit_row(const ScaledProduct& p, const TensorOperands& operands, Type type,
                        int along, const std::uint32_t* image, int count, int i, bool negate,
                        int column, int id, int of, int lower, int place) {
  FourBitRow out;
  for (const Term& each : elements_of(p.what, type, along, image, count, i, negate))
    out.halves.push_back(each.significand ? each.significand * (1 << each.exponent) : 0);
  for (int block = 0; block < p.blocks; ++block)
    out.scales[static_cast<std::size_t>(block)] =
        scale_at(operands, p.what.scale_type, column, id, of, lower, place, block);
  return out;
}

// Exact sums of groups, each cut once.
void multiply_fours(const ScaledProduct& p, const TensorOperands& operands, int first, int rows,
                    const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
                    std::uint32_t* d) {
  const InstructionDescriptor& what = p.what;
  FusedSum sum{.product_fraction = 2 * format(Type::e2m1).fraction_bits,
               .length = p.rule.length,
               .fraction = p.rule.fraction,
               .floor = p.rule.floor_f32,
               .kept = p.rule.kept};
  if (what.scale_type == Type::ue4m3) sum.product_fraction += 2 * format(Type::ue4m3).fraction_bits;
  std::vector<FourBitRow> left, right;
  for (int m = 0; m < rows; ++m)
    left.push_back(four_bit_row(p, operands, what.a, what.stored(), a, rows, m, what.negates_a,
                                operands.scale_a_column, what.scale_a_id, what.rows(), what.rows(),
                                first + m));
  for (int n = 0; n < what.n; ++n)
    right.push_back(four_bit_row(p, operands, what.b, what.k, b, what.n, n, what.negates_b,
                                 operands.scale_b_column, what.scale_b_id, what.n,
                                 what.columns_of_part(), n));
  const int groups = what.stored() / p.rule.length;
  for (int m = 0; m < rows; ++m) {
    const std::vector<std::size_t> which = met_by(p, m);
    for (int n = 0; n < what.n; ++n) {
      const FourBitRow &x = left[static_cast<std::size_t>(m)],
                       &y = right[static_cast<std::size_t>(n)];
      std::array<Group, most_groups> list;
      bool nan = false;
      for (int g = 0; g < groups; ++g) {
        const auto block = static_cast<std::size_t>(g * p.blocks / groups);
        const Term &of_x = x.scales[block], &of_y = y.scales[block];
        nan |= of_x.special == Special::nan || of_y.special == Special::nan;
        int total = 0;
        bool any = false;
        for (int k = g * p.rule.length; k < (g + 1) * p.rule.length; ++k) {
          const auto of_a = static_cast<std::size_t>(k);
          const int product = x.halves[of_a] * y.halves[which[of_a]];
          total += product;
          any |= product != 0;
        }
        if (any)
          list[static_cast<std::size_t>(g)] = {total * of_x.significand * of_y.significand,
                                               of_x.exponent + of_y.exponent};
      }
      const int at = n * rows + m;
      d[at] = nan ? format(Type::f32).nan_bits() : group_sum(sum, list.data(), groups, c[at]);
    }
  }
}

}  // namespace

void multiply_scaled(const ScaledProduct& product, const TensorOperands& operands, int first,
                     int rows, const std::uint32_t* a, const std::uint32_t* b,
                     const std::uint32_t* c, std::uint32_t* d) {
  const auto multiply =
      product.rule.method == Method::scaled_groups ? multiply_fours : multiply_bytes;
  multiply(product, operands, first, rows, a, b, c, d);
}

}  // namespace tartan::TARTAN_ABI::emulator
