// SPDX-License-Identifier: Apache-2.0
#include "kernels/delta/delta_inverse.h"

#include "tartan/dsl/math.h"
#include "tartan/dsl/warp.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int size = 64, half = 32;
constexpr int lead = size + 4;  // against bank conflicts

}  // namespace

DeltaInverse::DeltaInverse(Builder& k)
    : k_(k), s_(k.shared("sInverse", f32, row_major(size, size, lead))) {}

void DeltaInverse::write(const WarpTile& negative) const {
  for_each(negative, [&](Scalar x, ElementPlace at) { write(at.row, at.col, x); });
}

void DeltaInverse::write(const Scalar& row, const Scalar& col, const Scalar& negative) const {
  k_.write(s_, col, row, negative);
}

void DeltaInverse::invert() const {
  // Neighbouring CTAs divide the work among other warps: a multiprocessor's quarters get equal
  // parts.
  const Scalar turn = (k_.warp() + k_.block_x()) % 4;
  k_.when(turn == 0, [&] { substitute(0); });
  k_.when(turn == 1, [&] { substitute(half / 2); });
  k_.barrier();
  k_.when(turn >= 2, [&] { join((turn - 2) * 16); });
  k_.barrier();
}

// Columns `first` to first + 15 of both blocks, whose rows above `first` are zeros.
void DeltaInverse::substitute(int first) const {
  constexpr int barrier = 1;
  const Scalar lane = k_.lane(), base = lane / 16 * half, col = lane % 16 + first;
  std::vector<Scalar> x;
  for (int i = 0; i < half; ++i)
    x.push_back(select(col == i, k_.constant(f32, 1), k_.constant(f32, 0)));
  for (int l = first; l + 1 < half; ++l)
    for (int from = (l + 1) / 4 * 4; from < half; from += 4) {
      const std::vector<Scalar> column = k_.read_vector(s_, base + l, base + from, 4);
      for (int e = 0; e < 4; ++e) {
        const auto i = static_cast<std::size_t>(from + e);
        if (from + e > l)
          x[i] = fma(column[static_cast<std::size_t>(e)], x[static_cast<std::size_t>(l)], x[i]);
      }
    }
  k_.barrier(barrier, 64);  // both warps have read
  for (int i = 0; i < half; ++i) k_.write(s_, base + i, base + col, x[static_cast<std::size_t>(i)]);
}

// A warp has 16 columns of the block below, as the rows of its transpose: T11^T * (-N21)^T * T22^T.
// The accumulators of the first product are operand A of the second, with the elements along k in
// another order, in which operand B is read, too.
void DeltaInverse::join(const Scalar& first) const {
  constexpr int across = half / 8;
  const FragmentKind a = operand_a(m16n8k8, tf32), b = operand_b(m16n8k8, tf32);
  const auto load = [&](const FragmentKind& kind, const auto& element) {
    std::vector<Scalar> out;
    const int count = kind.operand == Operand::a ? 4 : 2;
    for (int i = 0; i < count; ++i) {
      const ElementPlace at = k_.place(kind, i);
      out.push_back(element(at.row, at.col));
    }
    return k_.pack(kind, out);
  };
  std::vector<Fragment> left;
  for (int s = 0; s < across; ++s)
    left.push_back(load(a, [&](const Scalar& row, const Scalar& col) {
      return k_.read(s_, col + 8 * s, first + row);
    }));
  std::vector<Fragment> middle;
  for (int j = 0; j < across; ++j) {
    Fragment sum;
    for (int s = 0; s < across; ++s) {
      const Fragment right = load(b, [&](const Scalar& row, const Scalar& col) {
        return k_.read(s_, row + 8 * s, col + (half + 8 * j));
      });
      const auto step = static_cast<std::size_t>(s);
      sum = s == 0 ? k_.mma(left[step], right, zero(f32)) : k_.mma(left[step], right, sum);
    }
    const std::vector<Scalar> x = k_.elements(sum);
    middle.push_back(k_.pack(a, std::vector<Scalar>{x[0], x[2], x[1], x[3]}));
  }
  const Scalar group = k_.lane() / 4, pair = k_.lane() % 4 * 2;
  for (int j = 0; j < across; ++j) {
    Fragment sum;
    for (int s = 0; s < across; ++s) {
      const std::vector<Scalar> x =
          k_.read_vector(s_, group + (half + 8 * j), pair + (half + 8 * s), 2);
      const Fragment right = k_.pack(b, x);
      const auto step = static_cast<std::size_t>(s);
      sum = s == 0 ? k_.mma(middle[step], right, zero(f32)) : k_.mma(middle[step], right, sum);
    }
    const std::vector<Scalar> x = k_.elements(sum);
    for (int i = 0; i < 4; ++i) {
      const ElementPlace at = k_.place(sum.kind(), i);
      k_.write(s_, at.col + (half + 8 * j), first + at.row, x[static_cast<std::size_t>(i)]);
    }
  }
}

std::vector<Scalar> DeltaInverse::read(const Scalar& row, const Scalar& col, int count) const {
  std::vector<Scalar> out = k_.read_vector(s_, row, col, count);
  const Scalar above = (row < half) & (col >= half);
  for (Scalar& each : out) each = select(above, k_.constant(f32, 0), each);
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels
