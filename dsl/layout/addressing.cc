// SPDX-License-Identifier: Apache-2.0
// Addresses of elements, and how wide an access may be.
#include <numeric>

#include "dsl/layout/addressing.h"
#include "dsl/state/scalars.h"

namespace tartan::TARTAN_ABI::detail {

Scalar widened(KernelState& state, const Scalar& x) {
  if (x.constant() || is_bad(x) || bits(x.type()) == 64) return x;
  Scalar out = state.scalar(state.f().convert(wraps(x) ? state.value(x) : state.dynamic(x), u64),
                            x.multiple());
  return wraps(x) ? out : out + addend(x);
}

namespace {

constexpr int global_alignment = 16, shared_alignment = 128;  // bytes, of every matrix

std::int64_t bytes_of(std::int64_t elements, Type type) { return elements * bits(type) / 8; }

}  // namespace

ir::Value byte_offset(ir::FunctionBuilder& f, ir::Value elements, Type element) {
  const int size = bits(element);
  if (size == 8) return elements;
  if (size == 6)  // four in three bytes
    return f.multiply(f.divide(elements, f.constant(elements.type, 4)),
                      f.constant(elements.type, 3));
  if (size < 8) return f.divide(elements, f.constant(elements.type, 8 / size));
  return f.multiply(elements, f.constant(elements.type, size / 8));
}

namespace {

// swizzle(offset) in bytes. The XOR is linear: constants that add without a carry are XORed to the
// swizzled rest, so that neighbouring accesses share it; whole periods go to [base+constant].
ir::Pointer swizzled(KernelState& state, ir::Pointer from, const Scalar& offset,
                     const Tensor& tensor) {
  ir::FunctionBuilder& f = state.f();
  const Swizzle swizzle = tensor.layout.swizzle;
  if (const auto constant = offset.constant())
    return f.offset(from, bytes_of(swizzle(*constant), tensor.type));
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
  const ir::Value plain = state.value(rest, u32);
  const ir::Value source = f.bit_and(
      f.shift_right(plain, f.constant(u32, std::int64_t{swizzle.shift})), f.constant(u32, mask));
  ir::Value bytes = byte_offset(f, f.bit_xor(plain, source), tensor.type);
  if (apart) bytes = f.bit_xor(bytes, f.constant(u32, bytes_of(apart, tensor.type)));
  const ir::Pointer out = f.offset(from, bytes);
  return periods ? f.offset(out, bytes_of(periods, tensor.type)) : out;
}

}  // namespace

namespace {

// The largest distance that index * stride surely does not exceed; none: nobody knows.
std::optional<std::int64_t> farthest(const Scalar& index, const Scalar& extent,
                                     const Scalar& stride, bool is_part) {
  constexpr std::int64_t words = 0xffffffff;
  const auto by = stride.constant(), most = extent.constant(), at = index.constant();
  if (by == 0 || at == 0) return 0;
  // A tile has few rows: with a leading dimension that is a parameter, they are close enough.
  if (!by) return is_part && most ? std::optional<std::int64_t>(0) : std::nullopt;
  std::int64_t last = at ? *at : most ? *most - 1 : words, out = 0;
  if (!at && bits(index.type()) <= 32)
    last = std::min<std::int64_t>(last, static_cast<std::int64_t>(ones(index) & words));
  if (last < 0 || *by < 0 || __builtin_mul_overflow(last, *by, &out)) return std::nullopt;
  return out;
}

// Whether all offsets of elements are numbers of 32 bits. Those of shared memory are.
bool is_near(const KernelState& state, const Tensor& tensor, const Scalar& row, const Scalar& col) {
  const Layout& layout = tensor.layout;
  if (state.memories.of(tensor).in_shared || layout.swizzle.bits) return true;
  if (layout.is_nested()) {
    const auto extent = layout.rows.constant(), along = layout.cols.constant();
    return tensor.divided && extent && along;
  }
  if (bits(row.type()) == 64 || bits(col.type()) == 64) return false;
  const auto down = farthest(row, layout.rows, layout.row_stride, tensor.divided),
             across = farthest(col, layout.cols, layout.col_stride, tensor.divided);
  return down && across && *down <= 0xffffffff - *across;
}

Scalar element_offset(KernelState& state, const Tensor& tensor, const Scalar& row,
                      const Scalar& col) {
  if (is_near(state, tensor, row, col)) return tensor.layout.offset(row, col);
  Layout far = tensor.layout;
  far.row_stride = widened(state, far.row_stride);
  far.col_stride = widened(state, far.col_stride);
  return far.row_offset(widened(state, row)) + far.col_offset(widened(state, col));
}

ir::Pointer place_of(KernelState& state, const Tensor& tensor, const Scalar& row,
                     const Scalar& col) {
  ir::FunctionBuilder& f = state.f();
  const Memory& memory = state.memories.of(tensor);
  const Type type = memory.in_shared ? u32 : u64;
  ir::Pointer out = memory.base;
  // Addends become the constant of [base+constant], unless they wrap around.
  const auto moved = [&](const Scalar& elements) {
    const ir::Value count =
        wraps(elements) ? state.value(elements, type) : f.convert(state.dynamic(elements), type);
    return f.offset(out, byte_offset(f, count, tensor.type));
  };
  const auto known = [&](const Scalar& elements) { return wraps(elements) ? 0 : addend(elements); };
  if (is_bad(tensor.base)) return out;  // reported where it was made
  std::int64_t fixed = tensor.base.constant().value_or(0);
  if (!tensor.base.constant()) out = moved(tensor.base), fixed = known(tensor.base);
  const Scalar offset = tensor.offset + element_offset(state, tensor, row, col);
  if (is_bad(offset)) return out;
  if (tensor.layout.swizzle.bits) {
    out = swizzled(state, out, offset, tensor);
    return fixed ? f.offset(out, bytes_of(fixed, tensor.type)) : out;
  }
  if (offset.type() != Type::none) out = moved(offset);
  const std::int64_t constant = fixed + known(offset);
  return constant ? f.offset(out, bytes_of(constant, tensor.type)) : out;
}

}  // namespace

ir::Pointer address_of(KernelState& state, const Tensor& tensor, const Scalar& row,
                       const Scalar& col) {
  state.memories.of(tensor).ever_read = true;
  return place_of(state, tensor, row, col);
}

ir::Pointer written_address_of(KernelState& state, const Tensor& tensor, const Scalar& row,
                               const Scalar& col) {
  if (Memory& memory = state.memories.of(tensor); !memory.in_shared) memory.ever_written = true;
  return place_of(state, tensor, row, col);
}

std::optional<ir::Pointer> checked_address(KernelState& state, const Tensor& tensor,
                                           const Scalar& row, const Scalar& col) {
  if (!state.owns(tensor, tensor.name) || tensor.memory < 0) return std::nullopt;
  if (!(state.is_index(row, "a row") & state.is_index(col, "a column"))) return std::nullopt;
  return address_of(state, tensor, row, col);
}

std::optional<ir::Value> is_inside(KernelState& state, const Tensor& tensor, const Scalar& row,
                                   const Scalar& col) {
  std::optional<ir::Value> out;
  const auto check = [&](const std::optional<Edge>& edge, const Scalar& index) {
    if (!edge) return;
    const ir::Value inside = state.value(edge->origin + index < edge->limit, Type::pred);
    out = out ? state.f().bit_and(*out, inside) : inside;
  };
  check(tensor.row_edge, row);
  check(tensor.col_edge, col);
  return out;
}

ir::Value has_row(KernelState& state, const Tensor& tensor, const Scalar& index) {
  const Scalar row = state.scalar(state.value(index, u32));
  ir::Value out = state.value(row < tensor.layout.rows, Type::pred);
  if (bits(index.type()) == 64)
    out = state.value(state.scalar(state.value(index, u64)) < widened(state, tensor.layout.rows));
  if (const auto& edge = tensor.row_edge)
    out = state.f().bit_and(out, state.value(edge->origin + row < edge->limit, Type::pred));
  return out;
}

Tensor from_row(KernelState& state, const Tensor& tensor, const Scalar& index) {
  Tensor out = tensor;
  out.base = tensor.base + widened(state, index) * widened(state, tensor.layout.row_stride);
  out.row_edge.reset();
  return out;
}

int aligned_bytes(const KernelState& state, const Tensor& tensor, std::int64_t row_step,
                  std::int64_t col_step) {
  const std::int64_t element = bits(tensor.type);
  std::int64_t known = state.memories.of(tensor).in_shared ? shared_alignment : global_alignment;
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

bool constant_shape(const Tensor& tensor, std::int64_t& rows, std::int64_t& cols) {
  const auto r = tensor.layout.rows.constant(), c = tensor.layout.cols.constant();
  if (!r || !c) return false;
  rows = *r, cols = *c;
  return true;
}

bool require_shape(KernelState& state, const Tensor& tensor, std::int64_t rows, std::int64_t cols,
                   std::string_view what) {
  if (!state.owns(tensor, tensor.name) || tensor.memory < 0) return false;
  std::int64_t r = 0, c = 0;
  if (constant_shape(tensor, r, c) && r == rows && c == cols) return true;
  std::string message = fmt::format("wrong tile shape for {}: expected {}x{} elements, {} is {}",
                                    what, rows, cols, tensor.name, tensor.layout.text());
  if (r == cols && c == rows)
    message += fmt::format("; {}.transposed() has that shape", tensor.name);
  else message += fmt::format("; take {}.tile({{row, col}}, {{{}, {}}})", tensor.name, rows, cols);
  state.log.report("layout-mismatch"_rule, std::move(message));
  return false;
}

}  // namespace tartan::TARTAN_ABI::detail
