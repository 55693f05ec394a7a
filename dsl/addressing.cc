// SPDX-License-Identifier: Apache-2.0
// Addresses of elements, and how wide an access may be.
#include <numeric>

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

codegen::Value KernelState::zero(Type type) {
  return info(type).floating ? f().constant(type, 0.0) : f().constant(type, std::int64_t{0});
}

Scalar KernelState::wide(const Scalar& x) {
  if (x.constant() || is_bad(x) || bits(x.type()) == 64) return x;
  Scalar out = scalar(f().convert(wraps(x) ? value(x) : dynamic(x), u64), x.multiple());
  return wraps(x) ? out : out + addend(x);
}

namespace {

std::int64_t bytes_of(std::int64_t elements, Type type) { return elements * bits(type) / 8; }

}  // namespace

// Elements as bytes; several elements of less than a byte share one.
codegen::Value KernelState::byte_offset(codegen::Value elements, Type element) {
  const int size = bits(element);
  if (size == 8) return elements;
  if (size == 6)  // four in three bytes
    return f().multiply(f().divide(elements, f().constant(elements.type, 4)),
                        f().constant(elements.type, 3));
  if (size < 8) return f().divide(elements, f().constant(elements.type, 8 / size));
  return f().multiply(elements, f().constant(elements.type, size / 8));
}

// swizzle(offset) in bytes. The XOR is linear: what a constant adds without a carry is XORed to the
// swizzled rest, so that neighbouring accesses share that; whole periods are left for
// [base+constant].
codegen::Pointer KernelState::swizzled(codegen::Pointer from, const Scalar& offset,
                                       const Tensor& tensor) {
  const Swizzle swizzle = tensor.layout.swizzle;
  if (const auto constant = offset.constant())
    return f().offset(from, bytes_of(swizzle(*constant), tensor.type));
  const std::int64_t period = std::int64_t{1} << (swizzle.bits + swizzle.base + swizzle.shift);
  const bool whole = wraps(offset) || addend(offset) < 0;
  const std::int64_t periods = whole ? 0 : addend(offset) / period * period;
  Scalar rest = offset + -periods;
  std::int64_t apart = 0;
  if (!whole && (ones(rest + -addend(rest)) & static_cast<std::uint64_t>(addend(rest))) == 0) {
    apart = swizzle(addend(rest));
    rest = rest + -addend(rest);
  }
  const std::int64_t mask = ((std::int64_t{1} << swizzle.bits) - 1) << swizzle.base;
  const codegen::Value plain = value(rest, u32);
  const codegen::Value source =
      f().bit_and(f().shift_right(plain, f().constant(u32, std::int64_t{swizzle.shift})),
                  f().constant(u32, mask));
  codegen::Value bytes = byte_offset(f().bit_xor(plain, source), tensor.type);
  if (apart) bytes = f().bit_xor(bytes, f().constant(u32, bytes_of(apart, tensor.type)));
  const codegen::Pointer out = f().offset(from, bytes);
  return periods ? f().offset(out, bytes_of(periods, tensor.type)) : out;
}

codegen::Pointer KernelState::pointer(const Tensor& tensor, const Scalar& row, const Scalar& col) {
  const Memory& memory = memories[static_cast<std::size_t>(tensor.memory)];
  const Type type = memory.in_shared ? u32 : u64;
  codegen::Pointer out = memory.base;
  // Addends become the [base+constant] of the address, unless they wrap around.
  const auto moved = [&](const Scalar& elements) {
    const codegen::Value count =
        wraps(elements) ? value(elements, type) : f().convert(dynamic(elements), type);
    return f().offset(out, byte_offset(count, tensor.type));
  };
  const auto known = [&](const Scalar& elements) { return wraps(elements) ? 0 : addend(elements); };
  if (is_bad(tensor.base)) return out;  // reported where it was made
  std::int64_t fixed = tensor.base.constant().value_or(0);
  if (!tensor.base.constant()) out = moved(tensor.base), fixed = known(tensor.base);
  const Scalar offset = tensor.offset + tensor.layout.offset(row, col);
  if (is_bad(offset)) return out;
  if (tensor.layout.swizzle.bits) {
    out = swizzled(out, offset, tensor);
    return fixed ? f().offset(out, bytes_of(fixed, tensor.type)) : out;
  }
  if (offset.type() != Type::none) out = moved(offset);
  const std::int64_t constant = fixed + known(offset);
  return constant ? f().offset(out, bytes_of(constant, tensor.type)) : out;
}

std::optional<codegen::Value> KernelState::exists(const Tensor& tensor, const Scalar& row,
                                                  const Scalar& col) {
  std::optional<codegen::Value> out;
  const auto check = [&](const std::optional<Edge>& edge, const Scalar& index) {
    if (!edge) return;
    const codegen::Value inside = value(edge->origin + index < edge->limit, Type::pred);
    out = out ? f().bit_and(*out, inside) : inside;
  };
  check(tensor.row_edge, row);
  check(tensor.col_edge, col);
  return out;
}

int KernelState::aligned_bytes(const Tensor& tensor, std::int64_t row_step,
                               std::int64_t col_step) const {
  const std::int64_t element = bits(tensor.type);
  std::int64_t known =
      memories[static_cast<std::size_t>(tensor.memory)].in_shared ? 128 : alignment;
  known *= 8;  // in bits from here on
  known = std::gcd(known, tensor.base.multiple() * element);
  known = std::gcd(known, tensor.offset.multiple() * element);
  known = std::gcd(known, tensor.layout.row_multiple(row_step) * element);
  known = std::gcd(known, tensor.layout.col_multiple(col_step) * element);
  known = std::gcd(known, tensor.layout.run() * element);
  // The swizzle leaves the low `base` bits of the offset alone.
  if (tensor.layout.swizzle.bits) known = std::gcd(known, element << tensor.layout.swizzle.base);
  return static_cast<int>((known & -known) / 8);
}

bool KernelState::constant_shape(const Tensor& tensor, std::int64_t& rows, std::int64_t& cols) {
  const auto r = tensor.layout.rows.constant(), c = tensor.layout.cols.constant();
  if (!r || !c) return false;
  rows = *r, cols = *c;
  return true;
}

bool KernelState::require_shape(const Tensor& tensor, std::int64_t rows, std::int64_t cols,
                                std::string_view what) {
  if (!owns(tensor, tensor.name) || tensor.memory < 0) return false;
  std::int64_t r = 0, c = 0;
  if (constant_shape(tensor, r, c) && r == rows && c == cols) return true;
  std::string message = fmt::format("wrong tile shape for {}: expected {}x{} elements, {} is {}",
                                    what, rows, cols, tensor.name, tensor.layout.text());
  if (r == cols && c == rows)
    message += fmt::format("; {}.transposed() has that shape", tensor.name);
  else message += fmt::format("; take {}.tile({}, {}, row, col)", tensor.name, rows, cols);
  report("layout-mismatch"_rule, std::move(message));
  return false;
}

}  // namespace tartan::inline TARTAN_ABI::detail
