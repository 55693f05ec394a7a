// SPDX-License-Identifier: Apache-2.0
#include "dsl/state.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tartan::inline TARTAN_ABI::detail {

KernelState::KernelState(const Kernel& kernel, const Target& target)
    : target(target), options(kernel.options()), place(kernel.place()) {
  codegen::LaunchBounds bounds;
  // Before sm_80 there are no copies beside the threads that someone else could wait for.
  if (target.arch.sm < 80) options.producers = 0;
  bounds.block[0] = all_threads();
  // Registers change hands only where their number is bound.
  if (moves_registers() && options.min_blocks == 0) options.min_blocks = 1;
  bounds.min_blocks = options.min_blocks;
  bounds.max_registers = options.max_registers;
  if (has_copy_engine()) bounds.cluster = options.cluster;
  function = std::make_unique<codegen::FunctionBuilder>(kernel.name(), target, bounds);
}

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto legal = [&](char c) { return letter(c) || digit(c) || c == '_' || c == '$'; };
  return std::all_of(name.begin(), name.end(), legal) && !name.empty() && !digit(name[0]) &&
         (name.size() > 1 || letter(name[0])) && name != "WARP_SZ";
}

void KernelState::at(const std::source_location& here) {
  place = here;
  location = here;
  if (is_described()) return function->at(here);
  // A kernel that is still to be compiled lacks what was meant for it.
  if (function) report("foreign-value"_rule, "this call belongs to another kernel");
  KernelState* const other = Description::current();
  if (!other) return;
  other->place = here;
  other->report("foreign-value"_rule, "this call belongs to another kernel");
}

void KernelState::choose(std::string what, std::string taken, std::string reason,
                         std::vector<std::string> refused) {
  // An unrolled loop decides the same thing many times.
  for (const Choice& choice : choices)
    if (choice.place == place && choice.what == what && choice.taken == taken) return;
  choices.push_back(
      {place, std::move(what), std::move(taken), std::move(reason), std::move(refused)});
}

void KernelState::report(const Rule& rule, std::string message) {
  for (const Diag& each : diags)
    if (each.place == place && each.message == message) return;
  diags.report(rule, place, std::move(message));
}

void KernelState::would_take(const Since& since) {
  if (since.has(target.arch) && since.ptx > target.ptx) wanted = std::max(wanted, since.ptx);
}

void KernelState::refuse_target(const isa::Instruction& row) {
  would_take(row.since);
  const auto nearest = isa::nearest(row.form, target);
  report("no-instruction"_rule,
         fmt::format("{} exists from {} on, the target is {}{}", isa::spell(row.form),
                     isa::text(row.since), target.text(),
                     nearest ? "; the nearest there is " + isa::spell(*nearest) : ""));
}

bool KernelState::fresh_name(const std::string& name, std::string_view what) {
  if (!is_described()) return false;
  if (role != Role::all) {
    report("kernel-option"_rule,
           fmt::format("{} {} is declared inside roles(), which describes its body once for each "
                       "role; declare it outside",
                       what, name));
    return false;
  }
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    names.push_back(name);
    return true;
  }
  report("duplicate-name"_rule,
         fmt::format("{} {}: the kernel already has a parameter or shared matrix of that name",
                     what, name));
  return false;
}

std::string KernelState::unused_name(std::string name) {
  while (std::find(names.begin(), names.end(), name) != names.end()) name += '_';
  names.push_back(name);
  return name;
}

int KernelState::threads() const {
  switch (role) {
    case Role::all: return all_threads();
    case Role::consumer: return options.block;
    case Role::producer: return 32 * options.producers;
  }
  return 0;
}

Scalar KernelState::thread() {
  codegen::Value number = f().special(codegen::Special::tid_x);
  if (role == Role::producer) number = f().subtract(number, f().constant(u32, options.block));
  return scalar(number, 1, std::bit_ceil(static_cast<std::uint64_t>(threads())) - 1);
}

Scalar KernelState::block_of_cluster() {
  return scalar(f().special(codegen::Special::ctaid_x)) % options.cluster;
}

codegen::Value KernelState::lane() { return value(thread() % 32); }

// 128-byte boundaries: what every access needs; swizzles of up to 1024 bytes repeat from their
// memory's first byte, so that needs no more.
codegen::Pointer KernelState::shared_memory(const std::string& name, std::int64_t bytes,
                                            int align) {
  shared_bytes = (shared_bytes + align - 1) / align * align + bytes;
  return f().shared(name, bytes, align);
}

namespace {

std::string text(const Place& place) {
  return fmt::format("{}:{}", place.file.substr(place.file.rfind('/') + 1), place.line);
}

}  // namespace

void KernelState::check_stage(const std::string& ring, const Scalar& stage, int stages) {
  if (const auto number = stage.constant(); number && (*number < 0 || *number >= stages))
    report("tile-bounds"_rule, fmt::format("{} has no stage {}, but {}", ring, *number, stages));
  const auto of_pipeline = stage_counts.find(stage.value_.id);
  if (of_pipeline != stage_counts.end() && !stage.constant() && of_pipeline->second > stages)
    report("tile-bounds"_rule,
           fmt::format("{} has {} stages, its pipeline {}", ring, stages, of_pipeline->second));
}

void KernelState::note_fill(const Tensor& to) {
  Memory& memory = memories[static_cast<std::size_t>(to.memory)];
  if (memory.written_by_consumers)
    report("unsynchronized-tile"_rule,
           fmt::format("{} is filled by producers, and consumers write it at {}: neither waits for "
                       "the other; take a matrix for each",
                       to.name, text(*memory.written_by_consumers)));
  if (memory.filled && memory.filled_by != role_pipeline)
    report("unsynchronized-tile"_rule,
           fmt::format("{} is filled by another pipeline at {}, and producers do not wait for "
                       "those who still use that one's stages; take a ring for each",
                       to.name, text(*memory.filled)));
  memory.filled = place, memory.filled_by = role_pipeline;
}

void KernelState::note_write(const Tensor& to) {
  Memory& memory = memories[static_cast<std::size_t>(to.memory)];
  if (!memory.in_shared) return;
  if (role == Role::producer) {
    plain_copies = true;
    return note_fill(to);
  }
  if (role == Role::consumer) memory.written_by_consumers = place;
  // A pipeline's copies are waited for by the pipeline.
  if (!asynchronous) memory.written = place;
}

bool KernelState::require_barrier(const Tensor& from) {
  Memory& memory = memories[static_cast<std::size_t>(from.memory)];
  threads_read |= memory.in_shared;
  if (!memory.written) return true;
  report("unsynchronized-tile"_rule,
         fmt::format("{} was written at {} and is loaded before any barrier; put a barrier() "
                     "between them",
                     from.name, text(*memory.written)));
  memory.written.reset();  // once is enough
  return false;
}

void KernelState::barrier() {
  land_all();  // behind the barrier others write what products may still be reading
  if (has_copy_engine() && warpgroups &&
      std::any_of(memories.begin(), memories.end(), [](const Memory& m) { return !!m.written; }))
    f().proxy_fence();  // wgmma sees what threads have written behind a fence alone
  if (role == Role::all) f().barrier();
  else f().barrier(consumers_barrier, threads());  // producers are muted
  for (Memory& each : memories) each.written.reset();
}

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
  if (!is_described()) return {};
  Fragment out;
  out.state_ = shared_from_this();
  out.kind_ = kind;
  out.registers_ = std::move(registers);
  out.major_ = major;
  out.made_ = place;
  return out;
}

namespace {

// One axis of tile(): complains, or notes the edge where tiles of `size` need not divide `whole`.
bool cut(KernelState& state, const Tensor& tensor, const Scalar& size, const Scalar& index,
         const Scalar& whole, std::string_view axis, bool may_hang_over,
         std::optional<Edge>& edge) {
  const auto s = size.constant(), i = index.constant(), w = whole.constant();
  if (!s || *s <= 0) {
    state.report("tile-divide"_rule,
                 fmt::format("a tile's number of {} is a positive constant", axis));
    return false;
  }
  const bool divides = whole.multiple() % *s == 0;
  if (w && !divides && (!may_hang_over || edge)) {
    state.report("tile-divide"_rule, fmt::format("tiles of {} {} do not divide the {} of {} ({})",
                                                 *s, axis, *w, tensor.name, tensor.layout.text()));
    return false;
  }
  if (w && i && (*i < 0 || *i >= (*w + *s - 1) / *s)) {
    state.report("tile-bounds"_rule,
                 fmt::format("tile {} along the {} does not exist: {} has {} of {}", *i, axis,
                             tensor.name, (*w + *s - 1) / *s, *s));
    return false;
  }
  if (edge) edge->origin = edge->origin + index * size;
  else if (!divides) edge = Edge{index * size, whole};
  return true;
}

}  // namespace

Tensor Tensor::tile(const Scalar& rows, const Scalar& cols, const Scalar& row, const Scalar& col,
                    const std::source_location& at) const {
  Tensor out = *this;
  if (!state || memory < 0) return out;
  state->at(at);
  if (!state->owns(*this, name)) return out;
  if (!(state->is_index(row, "the tile's row") & state->is_index(col, "the tile's column"))) {
    out.memory = -1;
    return out;
  }
  out.layout.rows = rows;
  out.layout.cols = cols;
  const bool in_shared = state->memories[static_cast<std::size_t>(memory)].in_shared;
  const bool good = cut(*state, *this, rows, row, layout.rows, "rows", !in_shared, out.row_edge) &
                    cut(*state, *this, cols, col, layout.cols, "columns", !in_shared, out.col_edge);
  const auto first = good ? layout.tile(rows, cols) : std::nullopt;
  if (good && !first)
    state->report("tile-divide"_rule,
                  fmt::format("tiles of {}x{} elements cut through the blocks of {} ({})",
                              *rows.constant(), *cols.constant(), name, layout.text()));
  if (!first) {
    out.memory = -1;
    return out;
  }
  out.layout = *first;
  const bool new_edge = (out.row_edge && !row_edge) || (out.col_edge && !col_edge);
  out.ragged_inside |= divided && new_edge;
  out.divided = true;
  if (in_shared) {
    out.offset = offset + layout.offset(row * rows, col * cols);
    return out;
  }
  out.row_at = row_at + row * rows;
  out.col_at = col_at + col * cols;
  const auto wide = [&](const Scalar& x) { return state->wide(x); };
  if (layout.is_nested()) {
    Layout far = layout;
    far.row_stride = wide(layout.row_stride);
    far.col_stride = wide(layout.col_stride);
    out.base = base + far.row_offset(wide(row * rows)) + far.col_offset(wide(col * cols));
  } else {
    out.base = base + wide(row * rows) * wide(layout.row_stride) +
               wide(col * cols) * wide(layout.col_stride);
  }
  return out;
}

Tensor Tensor::matrix(const Scalar& index, const Scalar* stride,
                      const std::source_location& at) const {
  Tensor out = *this;
  if (!state || memory < 0) return out;
  state->at(at);
  if (!state->owns(*this, name)) return out;
  for (const Scalar* each : {&index, stride})
    if (each && !state->is_index(*each, "the matrix's place")) {
      out.memory = -1;
      return out;
    }
  const auto wide = [&](const Scalar& x) { return state->wide(x); };
  const bool by_columns = layout.major() == Major::col;
  const Scalar apart = stride               ? wide(*stride)
                       : layout.is_nested() ? wide(whole_rows) * wide(whole_cols)
                       : by_columns         ? wide(whole_cols) * wide(layout.col_stride)
                                            : wide(whole_rows) * wide(layout.row_stride);
  out.base = base + wide(index) * apart;
  out.matrix_at = index;
  if (stride) out.matrix_stride = *stride;
  ++out.batches;
  for (CompiledParam& param : state->params)
    if (param.pointer && param.name == name) param.elements = 0;  // the launch decides how many
  return out;
}

}  // namespace tartan::inline TARTAN_ABI::detail
