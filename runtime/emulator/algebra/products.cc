// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "runtime/emulator/algebra/steps.h"
#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// A matrix of values, row by row.
struct Matrix {
  Matrix(int rows, int cols) : rows(rows), cols(cols), refs(size()) {}
  std::size_t size() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }
  Ref& at(int row, int col) { return refs[static_cast<std::size_t>(row * cols + col)]; }
  int rows, cols;
  std::vector<Ref> refs;
};

// The numbers of a matrix's values, and which rows have nothing but numbers.
struct Factors {
  Factors(const Values& values, Matrix& matrix, bool by_columns)
      : lines(by_columns ? matrix.cols : matrix.rows), plain(static_cast<std::size_t>(lines), 1) {
    const int length = by_columns ? matrix.rows : matrix.cols;
    for (int x = 0; x < lines; ++x)
      for (int k = 0; k < length; ++k) {
        const Value& value = values[by_columns ? matrix.at(k, x) : matrix.at(x, k)];
        numbers.push_back(value.number);
        if (value.kind != Value::Kind::number) plain[static_cast<std::size_t>(x)] = 0;
        constant &= value.constant;
        interpreted &= value.interpreted;
      }
  }
  int lines;
  std::vector<char> plain;
  std::vector<Number> numbers;
  bool constant = true, interpreted = true;
};

// Sum of at most 32 products before a reduction.
Number dot(const Number* a, const Number* b, int count, Number sum) {
  for (int first = 0; first < count; first += 16) {
    UInt128 p = sum.p, q = sum.q;
    for (int k = first; k < std::min(count, first + 16); ++k) {
      p += UInt128{a[k].p} * b[k].p;
      q += UInt128{a[k].q} * b[k].q;
      sum.real += a[k].real * b[k].real;
    }
    sum.p = FieldP::reduce(p);
    sum.q = FieldQ::reduce(q);
  }
  return sum;
}

// d = a * b + d.
void multiply(Values& values, Matrix& a, Matrix& b, Matrix& d, bool negative) {
  const Factors left(values, a, false), right(values, b, true);
  const bool constant = left.constant && right.constant,
             interpreted = left.interpreted && right.interpreted;
  for (int m = 0; m < d.rows; ++m)
    for (int n = 0; n < d.cols; ++n) {
      Ref& sum = d.at(m, n);
      if (left.plain[static_cast<std::size_t>(m)] && right.plain[static_cast<std::size_t>(n)] &&
          values.plain(sum)) {
        const Value before = values[sum];
        Number start = negative ? -before.number : before.number;
        start = dot(&left.numbers[static_cast<std::size_t>(m * a.cols)],
                    &right.numbers[static_cast<std::size_t>(n * a.cols)], a.cols, start);
        sum = values.add(negative ? -start : start, constant && before.constant,
                         interpreted && before.interpreted);
        continue;
      }
      for (int k = 0; k < a.cols; ++k) {
        const Ref factor = negative ? values.apply(Function::negate, a.at(m, k)) : a.at(m, k);
        sum = values.fused(factor, b.at(k, n), sum);
      }
    }
}

// ---- Fragments.

// An operand's registers in the arenas of one or four warps.
struct Registers {
  std::span<Warp> warps;
  const std::vector<std::uint32_t>& slots;
  std::uint8_t bytes;  // of a register

  LaneBytes read(int lane, int reg) const {
    return {warps[static_cast<std::size_t>(lane / 32)],
            {slots[static_cast<std::size_t>(reg)], bytes},
            lane % 32};
  }
  void write(int lane, int reg, const LaneBytes& from) const {
    from.write(warps[static_cast<std::size_t>(lane / 32)],
               {slots[static_cast<std::size_t>(reg)], bytes}, lane % 32);
  }
  int lanes() const { return static_cast<int>(32 * warps.size()); }
};

// An element whose container has so many bits: below a byte what the bits say.
Ref read_element(Warp& warp, const LaneBytes& from, int bit, int container, Type type) {
  Algebra& algebra = algebra_of(warp);
  const int byte = bit / 8;
  if (container >= 8) return algebra.read(&warp, from.tags + byte, from.bits + byte, type);
  if (!algebra.take_bits(from.tags + byte, 1))
    return algebra.undecided(&warp, "reads elements below a byte from a value");
  const auto word =
      static_cast<std::uint32_t>(from.bits[byte] >> bit % 8) & ((1u << container) - 1);
  return algebra.values.constant(decode_element(type, word));
}

// Calls body(matrix, row, col, lane, register, first bit in it) for the elements of an operand.
template <typename Body>
void each_element(const isa::Form& form, Operand operand, int lanes, Body&& body) {
  const isa::Fragment fragment = isa::fragment(form, operand);
  const int elements = fragment.elements() / fragment.copies;
  for (int lane = 0; lane < lanes; ++lane)
    for (int i = 0; i < elements; ++i) {
      const isa::Coord at = isa::coord(form, operand, lane, i);
      body(at.matrix, at.row, at.col, lane, i / fragment.per_register,
           i % fragment.per_register * fragment.container_bits);
    }
}

std::vector<Matrix> read_fragment(Warp& warp, const isa::Form& form, Operand operand, Type type,
                                  const Registers& registers) {
  const isa::Fragment fragment = isa::fragment(form, operand);
  std::vector<Matrix> out(static_cast<std::size_t>(fragment.matrices),
                          Matrix(fragment.rows, fragment.cols));
  each_element(form, operand, registers.lanes(),
               [&](int matrix, int row, int col, int lane, int reg, int bit) {
                 out[static_cast<std::size_t>(matrix)].at(row, col) = read_element(
                     warp, registers.read(lane, reg), bit, fragment.container_bits, type);
               });
  return out;
}

// ---- Sparse A: with zeros where its metadata leaves some out.

template <typename WordOf>
Matrix expand(Algebra& algebra, const isa::Form& form, Matrix& a, int selector,
              const WordOf& word_of) {
  Matrix out(a.rows, form.shape.k);
  std::fill(out.refs.begin(), out.refs.end(), algebra.values.zero());
  const int columns = form.shape.k / isa::codes_per_row(form),  // of a code
      kept = columns / 2;
  algebra.sparse_words |= columns == 2;
  for (int row = 0; row < a.rows; ++row)
    for (int col = 0; col < a.cols; ++col) {
      const isa::MetadataBits place = isa::metadata(form, row, col / kept, selector);
      const std::uint32_t four = word_of(place.lane) >> place.lowest & 15;
      // Two indices of two bits: of an element each; of f32 both of the halves of one; of four
      // bits, of a pair each.
      const int in = col % kept;
      const std::uint32_t index = columns == 2   ? (four & 3) / 2
                                  : columns == 4 ? four >> 2 * in & 3
                                                 : (four >> 2 * (in / 2) & 3) * 2 + in % 2;
      Ref& to = out.at(row, col / kept * columns + static_cast<int>(index));
      to = algebra.values.sum(to, a.at(row, col));
    }
  return out;
}

// Reads a metadata register, of which the bits count.
std::uint32_t metadata_word(Warp& warp, std::uint32_t slot, int lane) {
  const LaneBytes bytes(warp, {slot, 4}, lane);
  Algebra& algebra = algebra_of(warp);
  if (!algebra.take_bits(bytes.tags, 4, as_metadata))
    algebra.give_up(&warp, "sparse metadata is computed from values");
  return static_cast<std::uint32_t>(bytes.word());
}

// Block scales (PTX ISA 9.0, 9.7.14.3, "Block scaling"): a word's bytes are those of neighbouring
// blocks of k. `lane_of` tells whose word has the scales of a row of A, or of a column of B.
template <typename LaneOf>
void scale(Warp& warp, const isa::Form& form, std::uint32_t slot, int first_byte, bool by_columns,
           Matrix& matrix, const LaneOf& lane_of) {
  Algebra& algebra = algebra_of(warp);
  const int blocks = form.scale_vec ? form.scale_vec : form.kind == isa::Kind::mxf4 ? 2 : 1;
  const int lines = by_columns ? matrix.cols : matrix.rows,
            length = by_columns ? matrix.rows : matrix.cols, each = length / blocks;
  for (int x = 0; x < lines; ++x) {
    const LaneBytes word(warp, {slot, 4}, lane_of(x));
    for (int block = 0; block < blocks; ++block) {
      const int byte = first_byte + block;
      const Ref factor = algebra.read(&warp, word.tags + byte, word.bits + byte, form.scale_type);
      for (int i = block * each; i < (block + 1) * each; ++i) {
        Ref& element = by_columns ? matrix.at(i, x) : matrix.at(x, i);
        element = algebra.values.product(factor, element);
      }
    }
  }
}

std::uint8_t register_bytes(const isa::Form& form, Operand operand) {
  return static_cast<std::uint8_t>(isa::fragment(form, operand).register_bits / 8);
}

// What is not followed: all results are undecided where any operand has values.
void follow_bits(Warp& warp, const MatrixOperation& m, std::string why) {
  Algebra& algebra = algebra_of(warp);
  bool good = true;
  for (const auto* slots : {&m.a, &m.b, &m.c})
    for (const std::uint32_t slot : *slots)
      for (int lane = 0; lane < 32; ++lane)
        good &= algebra.take_bits(LaneBytes(warp, {slot, 4}, lane).tags, 4);
  for (const std::uint32_t slot : m.d)
    for (int lane = 0; lane < 32; ++lane) {
      LaneBytes out;
      if (!good) algebra.spoil(&warp, out.tags, 4, why);
      out.write(warp, {slot, 4}, lane);
    }
}

}  // namespace

bool ClusterAlgebra::multiply(Warp& warp, const MatrixOperation& m, const ScalePlaces& places) {
  const isa::Form& form = m.form;
  if (form.bit_op != isa::BitOp::none)
    return follow_bits(warp, m, "single bits are not followed"), true;
  const std::span<Warp> one(&warp, 1);
  const auto fragment = [&](Operand operand, Type type, const std::vector<std::uint32_t>& slots) {
    return read_fragment(warp, form, operand, type, {one, slots, register_bytes(form, operand)});
  };
  std::vector<Matrix> a = fragment(Operand::a, form.a, m.a), b = fragment(Operand::b, form.b, m.b),
                      c = fragment(Operand::c, form.c, m.c);
  if (form.sparsity != isa::Sparsity::dense && m.metadata)
    a[0] = expand(algebra, form, a[0], m.selector,
                  [&](int lane) { return metadata_word(warp, *m.metadata, lane); });
  if (m.scale_a)
    scale(warp, form, *m.scale_a, places.byte_a, false, a[0],
          [&](int row) { return 4 * (row % 8) + 2 * places.thread_a + row / 8; });
  if (m.scale_b)
    scale(warp, form, *m.scale_b, places.byte_b, true, b[0],
          [&](int col) { return 4 * col + places.thread_b; });
  for (std::size_t i = 0; i < a.size(); ++i)
    emulator::multiply(algebra.values, a[i], b[i], c[i], false);
  const Registers registers{one, m.d, register_bytes(form, Operand::d)};
  std::vector<LaneBytes> out(m.d.size() * 32);
  each_element(form, Operand::d, 32, [&](int matrix, int row, int col, int lane, int reg, int bit) {
    algebra.write(out[static_cast<std::size_t>(reg * 32 + lane)].tags + bit / 8,
                  c[static_cast<std::size_t>(matrix)].at(row, col), form.d);
  });
  const int count = static_cast<int>(m.d.size()), copies = isa::fragment(form, Operand::d).copies;
  for (int reg = 0; reg < count / copies; ++reg)
    for (int lane = 0; lane < 32; ++lane)
      registers.write(lane, reg, out[static_cast<std::size_t>(reg * 32 + lane)]);
  return true;
}

void ClusterAlgebra::multiply_warpgroup(Warp& warp, std::span<Warp> warps,
                                        const WarpgroupOperation& w,
                                        const WgmmaOperands& operands) {
  const isa::Form& form = w.product->form();
  const bool sparse = form.sparsity != isa::Sparsity::dense;
  const auto from_shared = [&](std::uint64_t bits, bool mn_major, Type type, int outer, int k,
                               bool is_b) {
    const MatrixDescriptor descriptor = MatrixDescriptor::of(bits);
    const int width = tartan::bits(type);
    const auto size = static_cast<std::size_t>(width) / 8;
    Matrix out(is_b ? k : outer, is_b ? outer : k);
    for (int x = 0; x < outer; ++x)
      for (int i = 0; i < k; ++i) {
        const std::uint64_t at = descriptor.address(mn_major, width, x, i);
        LaneBytes bytes;
        if (at + size <= operands.shared.size()) {  // the handler reports what is not
          algebra.memory.load(operands.shared.data() + at, bytes.tags, size);
          std::memcpy(bytes.bits, operands.shared.data() + at, size);
        }
        out.at(is_b ? i : x, is_b ? x : i) = algebra.read(&warp, bytes.tags, bytes.bits, type);
      }
    return out;
  };
  const int k = form.shape.k, stored = sparse ? k / 2 : k;
  Matrix a = w.a.empty() ? from_shared(operands.a_descriptor, operands.trans_a, form.a,
                                       form.shape.m, stored, false)
                         : read_fragment(warp, form, Operand::a, form.a, {warps, w.a, 4})[0];
  Matrix b = from_shared(operands.b_descriptor, operands.trans_b, form.b, form.shape.n, k, true);
  if (sparse && w.metadata)
    a = expand(algebra, form, a, operands.selector, [&](int lane) {
      return metadata_word(warps[static_cast<std::size_t>(lane / 32)], *w.metadata, lane % 32);
    });
  Matrix d(form.shape.m, form.shape.n);
  if (operands.scale_d) d = read_fragment(warp, form, Operand::d, form.d, {warps, w.d, 4})[0];
  else std::fill(d.refs.begin(), d.refs.end(), algebra.values.zero());
  emulator::multiply(algebra.values, a, b, d, (operands.scale_a < 0) != (operands.scale_b < 0));
  std::vector<LaneBytes> out(w.d.size() * 128);
  each_element(form, Operand::d, 128, [&](int, int row, int col, int lane, int reg, int bit) {
    algebra.write(out[static_cast<std::size_t>(reg * 128 + lane)].tags + bit / 8, d.at(row, col),
                  form.d);
  });
  const Registers registers{warps, w.d, 4};
  for (int reg = 0; reg < static_cast<int>(w.d.size()); ++reg)
    for (int lane = 0; lane < 128; ++lane)
      registers.write(lane, reg, out[static_cast<std::size_t>(reg * 128 + lane)]);
}

}  // namespace tartan::TARTAN_ABI::emulator
