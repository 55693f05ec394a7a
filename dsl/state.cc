// SPDX-License-Identifier: Apache-2.0
#include "dsl/state.h"

#include <algorithm>
#include <numeric>

namespace tartan::detail {

KernelState::KernelState(const Kernel& kernel, const Target& target)
    : target(target), options(kernel.options()), place(kernel.place()) {
  codegen::LaunchBounds bounds;
  bounds.block[0] = options.block;
  bounds.min_blocks = options.min_blocks;
  bounds.max_registers = options.max_registers;
  function = std::make_unique<codegen::FunctionBuilder>(kernel.name(), target, bounds);
}

void KernelState::at(const std::source_location& here) {
  place = here;
  if (function) function->at(here);
}

void KernelState::choose(std::string what, std::string taken, std::string reason,
                         std::vector<std::string> refused) {
  // An unrolled loop decides the same thing many times.
  for (const Choice& choice : choices)
    if (choice.place == place && choice.what == what && choice.taken == taken) return;
  choices.push_back(
      {place, std::move(what), std::move(taken), std::move(reason), std::move(refused)});
}

bool KernelState::owns_state(const std::shared_ptr<KernelState>& state, std::string_view what) {
  if (!function || !state) return false;
  if (state.get() == this) return true;
  report("foreign-value"_rule, fmt::format("{} belongs to another kernel", what));
  return false;
}

bool KernelState::fresh_name(const std::string& name, std::string_view what) {
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    names.push_back(name);
    return true;
  }
  report("duplicate-name"_rule,
         fmt::format("{} {}: the kernel already has a parameter or shared matrix of that name",
                     what, name));
  return false;
}

codegen::Value KernelState::lane() {
  return f().bit_and(f().special(codegen::Special::tid_x), f().constant(u32, std::int64_t{31}));
}

codegen::Pointer KernelState::pointer(const Tensor& tensor, const Scalar& row, const Scalar& col) {
  const Memory& memory = memories[static_cast<std::size_t>(tensor.memory)];
  const Scalar offset = tensor.offset + tensor.layout.offset(row, col);
  const std::int64_t bytes = bits(tensor.type) / 8;
  const Type type = memory.in_shared ? u32 : u64;
  if (const Swizzle swizzle = tensor.layout.swizzle; swizzle.bits) {
    if (const auto constant = offset.constant())
      return f().offset(memory.base, swizzle(*constant) * bytes);
    const std::int64_t mask = ((std::int64_t{1} << swizzle.bits) - 1) << swizzle.base;
    const codegen::Value plain = value(offset, u32);
    const codegen::Value source =
        f().bit_and(f().shift_right(plain, f().constant(u32, std::int64_t{swizzle.shift})),
                    f().constant(u32, mask));
    const codegen::Value mixed = f().bit_xor(plain, source);
    return f().offset(memory.base, f().multiply(mixed, f().constant(u32, bytes)));
  }
  codegen::Pointer out = memory.base;
  const bool whole =
      wraps(offset);  // otherwise the addend becomes the [base+constant] of the address
  if (offset.type() != Type::none) {
    const codegen::Value elements =
        whole ? value(offset, type) : f().convert(dynamic(offset), type);
    out = f().offset(out, f().multiply(elements, f().constant(type, bytes)));
  }
  return addend(offset) && !whole ? f().offset(out, addend(offset) * bytes) : out;
}

int KernelState::aligned_bytes(const Tensor& tensor, std::int64_t row_step,
                               std::int64_t col_step) const {
  const std::int64_t element = bits(tensor.type) / 8;
  std::int64_t known =
      memories[static_cast<std::size_t>(tensor.memory)].in_shared ? 128 : alignment;
  known = std::gcd(known, tensor.offset.multiple() * element);
  known = std::gcd(known, tensor.layout.row_stride.multiple() * row_step * element);
  known = std::gcd(known, tensor.layout.col_stride.multiple() * col_step * element);
  // The swizzle leaves the low `base` bits of the offset alone.
  if (tensor.layout.swizzle.bits) known = std::gcd(known, element << tensor.layout.swizzle.base);
  return static_cast<int>(known & -known);
}

bool KernelState::constant_shape(const Tensor& tensor, std::int64_t& rows, std::int64_t& cols) {
  const auto r = tensor.layout.rows.constant(), c = tensor.layout.cols.constant();
  if (!r || !c) return false;
  rows = *r, cols = *c;
  return true;
}

bool KernelState::require_shape(const Tensor& tensor, std::int64_t rows, std::int64_t cols,
                                std::string_view what) {
  std::int64_t r = 0, c = 0;
  if (constant_shape(tensor, r, c) && r == rows && c == cols) return true;
  std::string message = fmt::format("{} takes a tile of {}x{} elements, {} is {}", what, rows, cols,
                                    tensor.name, tensor.layout.text());
  if (r == cols && c == rows)
    message += fmt::format("; {}.transposed() has that shape", tensor.name);
  else message += fmt::format("; take {}.tile({}, {}, row, col)", tensor.name, rows, cols);
  report("layout-mismatch"_rule, std::move(message));
  return false;
}

Fragment KernelState::fragment(const FragmentKind& kind, std::vector<codegen::Value> registers,
                               Major major) {
  Fragment out;
  out.state_ = shared_from_this();
  out.kind_ = kind;
  out.registers_ = std::move(registers);
  out.major_ = major;
  out.made_ = place;
  return out;
}

FragmentVariable KernelState::fragment_variable(const FragmentKind& kind,
                                                std::vector<codegen::Variable> registers) {
  if (registers.empty())
    report("fragment-mismatch"_rule, fmt::format("there is no fragment {}", kind.text()));
  FragmentVariable out;
  out.state_ = shared_from_this();
  out.kind_ = kind;
  out.registers_ = std::move(registers);
  out.made_ = place;
  return out;
}

void KernelState::assign(FragmentVariable& variable, const Fragment& fragment) {
  const auto& state = variable.state_;
  if (!state || !state->owns(fragment, "the fragment") || is_bad(fragment)) return;
  if (!(fragment.kind_ == variable.kind_)) {
    state->report("fragment-mismatch"_rule,
                  fmt::format("a variable for {} cannot hold {}", variable.kind_.text(),
                              fragment.kind_.text()));
    return;
  }
  for (std::size_t i = 0; i < variable.registers_.size(); ++i)
    state->f().set(variable.registers_[i], fragment.registers_[i]);
}

Fragment KernelState::read(const FragmentVariable& variable) {
  const auto& state = variable.state_;
  if (!state || !state->function) return {};
  std::vector<codegen::Value> registers;
  for (const codegen::Variable& each : variable.registers_)
    registers.push_back(state->f().get(each));
  Fragment out = state->fragment(variable.kind_, std::move(registers));
  out.made_ = variable.made_;
  return out;
}

Tensor Tensor::tile(const Scalar& rows, const Scalar& cols, const Scalar& row, const Scalar& col,
                    const std::source_location& at) const {
  Tensor out = *this;
  if (!state || memory < 0) return out;
  state->at(at);
  out.layout.rows = rows;
  out.layout.cols = cols;
  out.offset = offset + layout.offset(row * rows, col * cols);
  const auto check = [&](const Scalar& size, const Scalar& index, const Scalar& whole,
                         std::string_view axis) {
    const auto s = size.constant(), i = index.constant(), w = whole.constant();
    if (!s || *s <= 0) {
      state->report("tile-divide"_rule,
                    fmt::format("a tile's number of {} is a positive constant", axis));
      return false;
    }
    if (w && *w % *s) {
      state->report("tile-divide"_rule,
                    fmt::format("tiles of {} {} do not divide the {} of {} ({})", *s, axis, *w,
                                name, layout.text()));
      return false;
    }
    if (w && i && (*i < 0 || *i >= *w / *s)) {
      state->report("tile-bounds"_rule,
                    fmt::format("tile {} along the {} does not exist: {} has {} of {}", *i, axis,
                                name, *w / *s, *s));
      return false;
    }
    return true;
  };
  const bool good_rows = check(rows, row, layout.rows, "rows"),
             good_cols = check(cols, col, layout.cols, "columns");
  if (!good_rows || !good_cols) out.memory = -1;
  return out;
}

}  // namespace tartan::detail
