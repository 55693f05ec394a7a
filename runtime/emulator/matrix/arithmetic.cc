// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/arithmetic.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <limits>

#include "runtime/emulator/matrix/scalar.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int longest = 256;  // products of one result, b1 apart (those are counted by words)

// 8-bit containers keep e2m1 in bits 2..5 and the six-bit formats in bits 0..5.
std::uint32_t unpad(Type type, int container, std::uint32_t raw) {
  if (container != 8) return raw;
  if (type == Type::e2m1) return raw >> 2 & 0xF;
  return bits(type) == 6 ? raw & 0x3F : raw;
}

std::int32_t integer(Type type, std::uint32_t raw) {
  const int unused = 32 - bits(type);
  return info(type).is_signed ? static_cast<std::int32_t>(raw << unused) >> unused
                              : static_cast<std::int32_t>(raw);
}

// ue8m0: 2^(bits - 127). Bit 7 of ue4m3 is ignored.
Term decode_scale(Type type, std::uint32_t bits) {
  if (type == Type::ue4m3) return decode(format(Type::ue4m3), bits & 0x7F);
  return {1, static_cast<std::int16_t>(static_cast<int>(bits) - 127),
          bits == 0xFF ? Special::nan : Special::none};
}

// An 8-bit or smaller float as f16: exact; a subnormal may become normal.
Term as_half(Term term) {
  if (term.special != Special::none || term.significand == 0) return term;
  const auto magnitude = static_cast<std::uint64_t>(std::abs(term.significand));
  return decode(format(Type::f16), encode(format(Type::f16), term.significand < 0, magnitude,
                                          term.exponent, Round::nearest_even, 11));
}

}  // namespace

Arithmetic::Arithmetic(const isa::Form& form, const NumericRule& rule, bool transposed, Path path)
    : form_(form), method_(rule.method), sparse_(form.sparsity != isa::Sparsity::dense) {
  m_ = transposed ? form.shape.n : form.shape.m;
  n_ = transposed ? form.shape.m : form.shape.n;
  k_ = form.shape.k;
  stored_ = sparse_ ? k_ / 2 : k_;
  matrices_ = isa::fragment(form, Operand::c).matrices;
  const auto factor = [&](Type type, int outer, int along) {
    const int container = isa::container_bits(form, type);
    return Factor{type, format(type), outer, along, container, std::max(32, container) / container};
  };
  a_ = factor(transposed ? form.b : form.a, m_, stored_);
  b_ = factor(transposed ? form.a : form.b, n_, k_);

  const bool half = form.c == f16 && form.d == f16;
  const bool emulated = method_ == Method::half_pairs;
  sum_.product_fraction = emulated ? 20 : a_.format.fraction_bits + b_.format.fraction_bits;
  if (form.scale_type == Type::ue4m3)
    sum_.product_fraction += 2 * format(Type::ue4m3).fraction_bits;
  sum_.accumulator = half ? f16 : f32;
  sum_.length = emulated ? stored_ / 2 : rule.length;
  sum_.fraction = rule.fraction;
  sum_.floor = half ? rule.floor_f16 : rule.floor_f32;
  sum_.kept = rule.kept;
  prepare_tiles(path);
}

std::uint32_t Arithmetic::raw(const Factor& factor, const std::uint32_t* image, int outer, int k) {
  const std::uint32_t cell = image[k / factor.per_cell * factor.outer + outer];
  if (factor.container == 32) return cell;
  return cell >> (k % factor.per_cell * factor.container) & ((1u << factor.container) - 1);
}

Term Arithmetic::number(const Factor& factor, std::uint32_t raw, bool through_half) {
  // tf32: the register's low 13 bits are ignored.
  const Term term = decode(
      factor.format, factor.type == tf32 ? raw >> 13 : unpad(factor.type, factor.container, raw));
  if (!through_half) return term;
  Term half = term;
  half.exponent = static_cast<std::int16_t>(term.exponent - factor.format.fraction_bits);
  return as_half(half);
}

// Row (column) after row, k ascending.
std::vector<Term> Arithmetic::terms(const Factor& factor, const std::uint32_t* image,
                                    bool negate) const {
  std::vector<Term> out;
  out.reserve(static_cast<std::size_t>(factor.outer * factor.along));
  for (int outer = 0; outer < factor.outer; ++outer)
    for (int k = 0; k < factor.along; ++k) {
      Term term = number(factor, raw(factor, image, outer, k), method_ == Method::half_pairs);
      if (negate) term.significand = -term.significand;
      out.push_back(term);
    }
  return out;
}

// Block scales. A word's bytes are the scales of neighbouring blocks of k. For rows, lane 4 * (row
// mod 8) + 2 * thread_a holds the scale of the upper eight rows, the next lane that of the lower
// eight; for columns, lane 4 * col + thread_b.
Term Arithmetic::scale_of_row(const Images& images, int row, int block) const {
  const std::uint32_t word = images.scale_a[4 * (row % 8) + 2 * images.thread_a + row / 8];
  return decode_scale(form_.scale_type, word >> (8 * (images.byte_a + block)) & 0xFF);
}

Term Arithmetic::scale_of_column(const Images& images, int col, int block) const {
  const std::uint32_t word = images.scale_b[4 * col + images.thread_b];
  return decode_scale(form_.scale_type, word >> (8 * (images.byte_b + block)) & 0xFF);
}

// One scale for a row and one for a column, which are powers of two.
void Arithmetic::scale(const Images& images, std::vector<Term>& a, std::vector<Term>& b) const {
  const auto apply = [](Term* first, int count, const Term& scale) {
    for (Term* term = first; term != first + count; ++term) {
      term->exponent = static_cast<std::int16_t>(term->exponent + scale.exponent);
      if (scale.special == Special::nan) term->special = Special::nan;
    }
  };
  for (int row = 0; row < m_; ++row)
    apply(&a[static_cast<std::size_t>(row * stored_)], stored_, scale_of_row(images, row, 0));
  for (int col = 0; col < n_; ++col)
    apply(&b[static_cast<std::size_t>(col * k_)], k_, scale_of_column(images, col, 0));
}

std::uint32_t Arithmetic::code(const Images& images, int row, int j) const {
  const isa::MetadataBits at = isa::metadata(form_, row, j, images.selector);
  return images.metadata[at.lane] >> at.lowest & 15;
}

// The elements of a column of B that are multiplied by a row's stored elements of A. Codes that the
// manual does not define select what their bits say; those of tf32 then combine two halves into one
// element.
void Arithmetic::select(const Images& images, int row, int col, const std::uint32_t* image,
                        const Term* dense, Term* selected) const {
  const int width = a_.container == 32 ? 2 : a_.container == 4 ? 8 : 4;
  for (int j = 0; j < k_ / width; ++j) {
    const std::uint32_t code = this->code(images, row, j);
    const std::uint32_t low = code & 3, high = code >> 2;
    if (width == 2) {
      const auto half = [&](std::uint32_t i) {
        return raw(b_, image, col, 2 * j + static_cast<int>(i / 2)) >> (16 * (i % 2)) & 0xFFFF;
      };
      selected[j] = number(b_, half(low) | half(high) << 16, false);
    } else if (width == 4) {
      selected[2 * j] = dense[4 * j + static_cast<int>(low)];
      selected[2 * j + 1] = dense[4 * j + static_cast<int>(high)];
    } else {
      for (int e = 0; e < 2; ++e) {
        selected[4 * j + e] = dense[8 * j + 2 * static_cast<int>(low) + e];
        selected[4 * j + 2 + e] = dense[8 * j + 2 * static_cast<int>(high) + e];
      }
    }
  }
}

// C is added last, as IEEE arithmetic does.
std::uint32_t Arithmetic::pairs(const Term* a, const Term* b, std::uint32_t c) const {
  Term first[longest], second[longest];
  const int half = stored_ / 2;
  for (int k = 0, at[2] = {0, half}; k < stored_; ++k) {
    const int to = at[k % 4 / 2]++;
    first[to] = a[k];
    second[to] = b[k];
  }
  const std::uint32_t sum = fused_sum(sum_, first, second, stored_, 0);
  if (sum_.accumulator == f16)
    return to_half(static_cast<double>(from_half(c)) + static_cast<double>(from_half(sum)));
  return canonical(std::bit_cast<float>(c) + std::bit_cast<float>(sum));
}

// One element of D; `c` has the type of C, the result the type of D.
std::uint32_t Arithmetic::product(const Term* a, const Term* b, std::uint32_t c) const {
  if (method_ == Method::half_pairs) return pairs(a, b, c);
  if (form_.c == f16 && sum_.accumulator == f32) c = std::bit_cast<std::uint32_t>(from_half(c));
  const std::uint32_t sum = fused_sum(sum_, a, b, stored_, c);
  return form_.d == f16 && sum_.accumulator == f32
             ? to_half(static_cast<double>(std::bit_cast<float>(sum)))
             : sum;
}

void Arithmetic::run_terms(const Images& images, const std::uint32_t* a, const std::uint32_t* b,
                           const std::uint32_t* c, std::uint32_t* d,
                           const std::uint8_t* wanted) const {
  std::vector<Term> rows = terms(a_, a, images.negate_a), cols = terms(b_, b, images.negate_b);
  if (form_.block_scale) scale(images, rows, cols);
  for (int row = 0; row < m_; ++row)
    for (int col = 0; col < n_; ++col) {
      if (wanted && !wanted[col * m_ + row]) continue;
      const Term* column = &cols[static_cast<std::size_t>(col * k_)];
      Term selected[longest];
      if (sparse_) {
        select(images, row, col, b, column, selected);
        if (a_.type == tf32 && images.negate_b)
          for (int k = 0; k < stored_; ++k) selected[k].significand = -selected[k].significand;
        column = selected;
      }
      d[col * m_ + row] =
          product(&rows[static_cast<std::size_t>(row * stored_)], column, c[col * m_ + row]);
    }
}

void Arithmetic::run_scalar(const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
                            std::uint32_t* d) const {
  const auto floats = [this](const Factor& factor, const std::uint32_t* image, int outer) {
    std::array<float, 4> out{};
    for (int k = 0; k < k_; ++k)
      out[static_cast<std::size_t>(k)] = from_half(raw(factor, image, outer, k));
    return out;
  };
  for (int row = 0; row < m_; ++row)
    for (int col = 0; col < n_; ++col) {
      const auto x = floats(a_, a, row), y = floats(b_, b, col);
      const std::uint32_t bits = c[col * m_ + row];
      const float start = form_.c == f16 ? from_half(bits) : std::bit_cast<float>(bits);
      d[col * m_ + row] = method_ == Method::half_tree ? half_tree(x.data(), y.data(), start)
                                                       : float_chain(x.data(), y.data(), k_, start);
    }
}

void Arithmetic::run_integers(const Images& images, const std::uint32_t* a, const std::uint32_t* b,
                              const std::uint32_t* c, std::uint32_t* d) const {
  const auto unpack = [](const Factor& factor, const std::uint32_t* image) {
    std::vector<Term> out;  // the significand of a term is the integer: select() works on terms
    for (int outer = 0; outer < factor.outer; ++outer)
      for (int k = 0; k < factor.along; ++k)
        out.push_back({integer(factor.type, raw(factor, image, outer, k)), 0, Special::none});
    return out;
  };
  const std::vector<Term> rows = unpack(a_, a), cols = unpack(b_, b);
  constexpr std::int64_t low = std::numeric_limits<std::int32_t>::min(),
                         high = std::numeric_limits<std::int32_t>::max();
  for (int row = 0; row < m_; ++row)
    for (int col = 0; col < n_; ++col) {
      const Term* left = &rows[static_cast<std::size_t>(row * stored_)];
      const Term* right = &cols[static_cast<std::size_t>(col * k_)];
      Term selected[longest];
      if (sparse_) {
        select(images, row, col, b, right, selected);
        right = selected;
      }
      std::int64_t sum = static_cast<std::int32_t>(c[col * m_ + row]);
      for (int k = 0; k < stored_; ++k)
        sum += std::int64_t{left[k].significand} * right[k].significand;
      if (form_.satfinite) sum = std::clamp(sum, low, high);
      d[col * m_ + row] = static_cast<std::uint32_t>(sum);
    }
}

void Arithmetic::run_bits(const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
                          std::uint32_t* d) const {
  for (int col = 0; col < n_; ++col)
    for (int row = 0; row < m_; ++row) {
      std::uint32_t sum = c[col * m_ + row];
      for (int cell = 0; cell < k_ / 32; ++cell) {
        const std::uint32_t x = a[cell * m_ + row], y = b[cell * n_ + col];
        sum += static_cast<std::uint32_t>(
            std::popcount(form_.bit_op == isa::BitOp::xor_popc ? x ^ y : x & y));
      }
      d[col * m_ + row] = sum;
    }
}

void Arithmetic::run(const Images& images) const {
  if (method_ == Method::fma_chain) {
    return fma_chain(form_.rounding, m_, n_, k_, static_cast<const std::uint64_t*>(images.a),
                     static_cast<const std::uint64_t*>(images.b),
                     static_cast<const std::uint64_t*>(images.c),
                     static_cast<std::uint64_t*>(images.d));
  }
  for (int matrix = 0; matrix < matrices_; ++matrix) {
    const auto* a = static_cast<const std::uint32_t*>(images.a) + matrix * a_.cells();
    const auto* b = static_cast<const std::uint32_t*>(images.b) + matrix * b_.cells();
    const auto* c = static_cast<const std::uint32_t*>(images.c) + matrix * m_ * n_;
    auto* d = static_cast<std::uint32_t*>(images.d) + matrix * m_ * n_;
    switch (method_) {
      case Method::integer:
        kernel_ ? run_integer_tile(images, a, b, c, d) : run_integers(images, a, b, c, d);
        break;
      case Method::scaled_groups: run_groups(images, a, b, c, d); break;
      case Method::popcount: run_bits(a, b, c, d); break;
      case Method::float_chain:
      case Method::half_tree: run_scalar(a, b, c, d); break;
      default: kernel_ ? run_tile(images, a, b, c, d) : run_terms(images, a, b, c, d); break;
    }
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
