// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/builder.h"

#include <algorithm>
#include <numeric>

#include "dsl/layout/addressing.h"
#include "dsl/layout/fragments.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/math.h"
#include "tartan/isa/feature.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI {
namespace {

using detail::KernelState;
using detail::Tensor;
using detail::tensor_of;
using ir::Value;
using isa::SpecialRegister;

// Element types that memory holds; elements smaller than a byte share one.
bool in_memory(Type type) {
  const int size = bits(type);
  return type != Type::pred && size <= 64 && (size >= 8 || size == 6 || size == 4 || size == 1);
}

std::string_view text(Type type) { return type == Type::none ? "none" : tartan::name(type); }

bool good_name(KernelState& state, const std::string& name, std::string_view what) {
  if (!detail::is_identifier(name)) {
    state.log.report("kernel-name"_rule,
                     fmt::format("{} '{}': {}", what, name, detail::identifier_rule));
    return false;
  }
  if (!state.is_described()) return false;
  if (state.roles.current != detail::Role::all) {
    state.log.report(
        "kernel-option"_rule,
        fmt::format("{} {} is declared inside roles(): declare it outside", what, name));
    return false;
  }
  if (state.names.take(name)) return true;
  state.log.report(
      "duplicate-name"_rule,
      fmt::format("{} {}: name already used by a parameter or shared matrix of the kernel", what,
                  name));
  return false;
}

Tensor refused_tensor(const std::shared_ptr<KernelState>& state, std::string name, Type type,
                      Layout layout) {
  return {state, std::move(name), type, std::move(layout), 0, -1, state->log.place()};
}

Scalar special(KernelState& state, SpecialRegister which) {
  return state.scalar(state.f().special(which));
}

Scalar block_index(KernelState& state, SpecialRegister which, LaunchBound::Of of) {
  const Scalar out = special(state, which);
  state.launch.note_range(detail::HandleParts::value(out).id, {.of = of});
  return out;
}

ir::Eviction eviction(Evict which) {
  switch (which) {
    case Evict::first: return ir::Eviction::first;
    case Evict::last: return ir::Eviction::last;
    case Evict::normal: break;
  }
  return ir::Eviction::normal;
}

}  // namespace

const Target& Builder::target() const {
  state_->log.note_target_read();
  return state_->config.target;
}

bool Builder::has(std::string_view spelling, Here at) const {
  state_->at(at);
  return detail::has_instruction(*state_, spelling);
}

bool Builder::require(bool condition, std::string_view otherwise, Here at) {
  state_->at(at);
  if (!condition) state_->log.report("kernel-option"_rule, std::string(otherwise));
  return condition;
}

Global Builder::global(std::string name, Type type, Layout layout, Here at) {
  state_->at(at);
  bool good = good_name(*state_, name, "parameter");
  if (!in_memory(type)) {
    state_->log.report(
        "scalar-type"_rule,
        fmt::format("{}: element size of a matrix: expected 1, 4, 6 or 8 to 64 bits, found {}",
                    name, text(type)));
    good = false;
  }
  if (layout.swizzle.bits) {
    state_->log.report(
        "layout-mismatch"_rule,
        fmt::format("{}: swizzled layout in global memory; swizzle the shared matrix instead",
                    name));
    good = false;
  }
  if (!layout.problem.empty()) {
    state_->log.report("layout-mismatch"_rule, fmt::format("{}: {}", name, layout.problem));
    good = false;
  }
  for (const Scalar* each : {&layout.rows, &layout.cols, &layout.row_stride, &layout.col_stride})
    good &= state_->is_index(*each, "a size of a matrix");
  for (const Scalar* each : {&layout.rows, &layout.cols})
    if (each->constant().value_or(0) < 0) {
      state_->log.report(
          "layout-mismatch"_rule,
          fmt::format("{}: expected 0 or more rows and columns, found {}", name, layout.text()));
      good = false;
    }
  // The virtual address range of GPUs.
  constexpr std::int64_t most_bytes = std::int64_t{1} << 49;
  if (good && layout.extent().value_or(0) > most_bytes / bits(type) * 8) {
    state_->log.report("layout-mismatch"_rule,
                       fmt::format("{}: {} of {} exceeds the 2^49 bytes that a GPU addresses", name,
                                   layout.text(), tartan::name(type)));
    good = false;
  }
  if (!good) return Global(refused_tensor(state_, std::move(name), type, std::move(layout)));
  detail::Memory memory{state_->f().add_pointer_param(StateSpace::global), false};
  memory.param = state_->launch.add_pointer(
      {name, type, true, layout.extent().value_or(0), detail::span_of(state_->launch, layout)});
  const int number = state_->memories.add(memory);
  detail::Tensor out{state_, std::move(name), type, layout, 0, number, state_->log.place()};
  out.whole_rows = layout.rows, out.whole_cols = layout.cols;
  return Global(std::move(out));
}

Scalar Builder::param(std::string name, Type type, int multiple_of, Here at) {
  state_->at(at);
  bool good = good_name(*state_, name, "parameter");
  const TypeSet allowed{u32, s32, u64, s64, f32, f64};
  if (!allowed.has(type)) {
    state_->log.report(
        "scalar-type"_rule,
        fmt::format(
            "parameter {}: expected a scalar of type u32, s32, u64, s64, f32 or f64, found {}",
            name, text(type)));
    good = false;
  }
  if (!good) return detail::bad_scalar();
  const ir::Value value = state_->f().add_param(type);
  state_->launch.add_scalar(
      {.name = std::move(name), .type = type, .multiple_of = std::max(multiple_of, 1)}, value.id);
  return state_->scalar(value, std::max(multiple_of, 1));
}

namespace {

// Elements from a matrix's first byte to the next matrix: a swizzle permutes within periods of
// 2^(bits + base + shift) elements, so the distance is a multiple of the period.
std::int64_t distance(const Layout& layout, std::int64_t extent, Type type) {
  const Swizzle& s = layout.swizzle;
  const std::int64_t period = s.bits ? std::int64_t{1} << (s.bits + s.base + s.shift) : 1;
  const std::int64_t unit = std::max<std::int64_t>(period, 1024 / bits(type));  // 128 bytes
  return (extent + unit - 1) / unit * unit;
}

}  // namespace

Shared Builder::shared(std::string name, Type type, Layout layout, Here at) {
  return shared(std::move(name), type, RingLayout{std::move(layout), 1}, at)[0];
}

Ring Builder::shared(std::string name, Type type, const RingLayout& ring, Here at) {
  state_->at(at);
  bool good = good_name(*state_, name, "shared matrix");
  const Layout& layout = ring.layout;
  if (!in_memory(type)) {
    state_->log.report(
        "scalar-type"_rule,
        fmt::format("{}: element size of a matrix: expected 1, 4, 6 or 8 to 64 bits, found {}",
                    name, text(type)));
    good = false;
  }
  if (const std::string problem = layout.problem_in_shared(); !problem.empty()) {
    state_->log.report("layout-mismatch"_rule, fmt::format("{}: {}", name, problem));
    good = false;
  }
  if (ring.stages < 1) {
    state_->log.report("layout-mismatch"_rule,
                       fmt::format("{}: number of stages of a ring: expected at least 1, found {}",
                                   name, ring.stages));
    good = false;
  }
  const auto refused = [&] {
    return Ring(Shared(refused_tensor(state_, std::move(name), type, layout)), 1, 0);
  };
  if (!good) return refused();
  // Bytes: many times what any target has, and far below what its tiles would take to describe.
  constexpr std::int64_t most = std::int64_t{1} << 22;
  const std::int64_t extent = std::min(*layout.extent(), most + 1);
  const std::int64_t apart = distance(layout, extent, type);
  // The last matrix ends with its last element, unless a swizzle moves elements.
  const std::int64_t elements = (ring.stages - 1) * apart + (layout.swizzle.bits ? apart : extent);
  if (elements > most) {
    state_->log.report("shared-size"_rule,
                       fmt::format("{}: {}{} exceeds the shared memory of every target", name,
                                   ring.stages > 1 ? fmt::format("a ring of {} ", ring.stages) : "",
                                   layout.text()));
    return refused();
  }
  const std::int64_t bytes = (elements * bits(type) + 7) / 8;
  // TMA and wgmma swizzle by bits of the absolute address.
  const int align =
      layout.swizzle.bits && state_->config.target.arch.has(Feature::tma) ? 1024 : 128;
  const ir::Pointer base = state_->memories.share(state_->f(), name, bytes, align);
  detail::Memory memory{base, true, bytes, ring.stages, ring.operand};
  memory.aligned = align;
  memory.shown = fmt::format(
      "{}: {} {}{}", name, tartan::name(type), layout.text(),
      ring.stages > 1 ? fmt::format(", {} stages {} elements apart", ring.stages, apart) : "");
  const int number = state_->memories.add(std::move(memory));
  detail::Tensor first{state_, std::move(name), type, layout, 0, number, state_->log.place()};
  return Ring(Shared(std::move(first)), ring.stages, apart);
}

Scalar Builder::thread(Here at) { return state_->at(at), thread_index(*state_); }
Scalar Builder::lane(Here at) { return state_->at(at), thread_index(*state_) % 32; }
Scalar Builder::warp(Here at) { return state_->at(at), thread_index(*state_) / 32; }
Scalar Builder::block_x(Here at) {
  return state_->at(at), block_index(*state_, SpecialRegister::ctaid_x, LaunchBound::Of::blocks_x);
}
Scalar Builder::block_y(Here at) {
  return state_->at(at), block_index(*state_, SpecialRegister::ctaid_y, LaunchBound::Of::blocks_y);
}
Scalar Builder::block_z(Here at) {
  return state_->at(at), block_index(*state_, SpecialRegister::ctaid_z, LaunchBound::Of::blocks_z);
}
Scalar Builder::blocks_x(Here at) {
  return state_->at(at), special(*state_, SpecialRegister::nctaid_x);
}
Scalar Builder::blocks_y(Here at) {
  return state_->at(at), special(*state_, SpecialRegister::nctaid_y);
}

void Builder::copy(const Global& from, const Shared& to, Here at) {
  state_->at(at), copy_tile(*state_, tensor_of(from), tensor_of(to));
}
void Builder::copy(const Shared& from, const Global& to, Here at) {
  state_->at(at), copy_tile(*state_, tensor_of(from), tensor_of(to));
}
void Builder::copy(const Global& from, const Shared& to, const CopyOptions& options, Here at) {
  state_->at(at);
  copy_tile(*state_, tensor_of(from), tensor_of(to), {},
            {.among = options.multicast, .eviction = eviction(options.evict)});
}
void Builder::barrier(Here at) {
  state_->at(at);
  if (state_->roles.current == detail::Role::producer)
    return state_->log.report(
        "kernel-option"_rule,
        "barrier() in a fill callback: consumer warps never reach it; move it out of the pipeline");
  block_barrier(*state_);
}

Fragment Builder::load(const FragmentKind& kind, const Shared& from, Here at) {
  return state_->at(at), load_fragment(*state_, kind, tensor_of(from));
}
Fragment Builder::load(const FragmentKind& kind, const Global& from, Here at) {
  return state_->at(at), load_fragment(*state_, kind, tensor_of(from));
}
void Builder::store(const Global& to, const Fragment& fragment, Here at) {
  state_->at(at), store_fragment(*state_, tensor_of(to), fragment);
}
void Builder::store(const Shared& to, const Fragment& fragment, Here at) {
  state_->at(at), store_fragment(*state_, tensor_of(to), fragment);
}

Fragment Builder::convert(const Fragment& fragment, Type to, Here at) {
  state_->at(at);
  if (!state_->owns(fragment, "the fragment") || detail::is_bad(fragment)) return {};
  const FragmentKind& kind = fragment.kind();
  if (kind.type == to) return fragment;
  if (kind.shape.wmma || kind.operand != Operand::c || kind.type != f32 ||
      (to != f16 && to != bf16)) {
    state_->log.report(
        "no-instruction"_rule,
        fmt::format("unsupported conversion from {} to {}: expected accumulators of "
                    "mma.sync, from f32 to f16 or bf16; other types: convert() each "
                    "of elements(), and pack() them as {}",
                    kind.text(), name(to), FragmentKind{kind.shape, kind.operand, to}.text()));
    return {};
  }
  // Both types have element i of a lane at the same place of the matrix; two of the narrower ones
  // share a register.
  const auto from = detail::registers_of(fragment);
  std::vector<Value> registers;
  for (std::size_t i = 0; i + 1 < from.size(); i += 2)
    registers.push_back(state_->f().pack(state_->f().convert(from[i], to),
                                         state_->f().convert(from[i + 1], to), b32));
  return make_fragment(*state_, {kind.shape, Operand::c, to}, std::move(registers));
}

FragmentVariable Builder::variable(const FragmentKind& kind, Here at) {
  state_->at(at);
  const Type type = detail::register_type(kind.type);
  std::vector<ir::Variable> registers;
  for (int i = 0; i < kind.fragment().registers; ++i)
    registers.push_back(state_->f().variable(info(type).floating
                                                 ? state_->f().constant(type, 0.0)
                                                 : state_->f().constant(type, std::int64_t{0})));
  return make_variable(*state_, kind, std::move(registers));
}

std::vector<Scalar> Builder::registers(const Fragment& fragment, Here at) {
  state_->at(at);
  if (!state_->owns(fragment, "the fragment") || detail::is_bad(fragment))
    return std::vector<Scalar>(8, detail::bad_scalar());
  std::vector<Scalar> out;
  for (const Value& value : detail::registers_of(fragment)) out.push_back(state_->scalar(value));
  return out;
}

Scalar Builder::convert(const Scalar& value, Type to, Here at) {
  state_->at(at);
  if (detail::is_bad(value) || (detail::state_of(value) && !state_->owns(value, "the value")))
    return detail::bad_scalar();
  const TypeSet eight_bits{Type::e4m3, Type::e5m2};
  if (eight_bits.has(to) || eight_bits.has(value.type())) {
    if (!has_eight_bits(state_->config.target)) return refuse_eight_bits(*state_);
    if (eight_bits.has(to)) {
      const Value from = value.constant() ? state_->value(value, f32) : state_->value(value);
      return state_->scalar(state_->f().convert(from, to));
    }
  }
  const TypeSet allowed{s8, u8, u16, u32, s32, u64, s64, f16, bf16, f32, f64};
  if (!allowed.has(to) || value.type() == Type::pred) {
    state_->log.report(
        "scalar-type"_rule,
        fmt::format("unsupported conversion from a value of type {} to {}{}", name(value.type()),
                    name(to), value.type() == Type::pred ? "; write select(x, 1, 0)" : ""));
    return detail::bad_scalar();
  }
  // The dropped part is a multiple of a power of two.
  const bool cuts = bits(to) < std::min(bits(value.type()), 32);
  const std::int64_t multiple = value.multiple();
  return state_->scalar(state_->value(value, to),
                        cuts ? std::gcd(multiple, std::int64_t{1} << bits(to)) : multiple);
}

std::pair<Scalar, Scalar> Builder::halves(const Scalar& word, Type to, Here at) {
  state_->at(at);
  if (!word.constant() && !state_->owns(word, "the value"))
    return {detail::bad_scalar(), detail::bad_scalar()};
  if (bits(word.type()) != 32 || bits(to) != 16) {
    state_->log.report(
        "scalar-type"_rule,
        fmt::format("expected a 32-bit value and a 16-bit type for its halves, found {} and {}",
                    name(word.type()), name(to)));
    return {detail::bad_scalar(), detail::bad_scalar()};
  }
  const auto [low, high] = state_->f().unpack(state_->f().bitcast(state_->value(word), b32), to);
  return {state_->scalar(low), state_->scalar(high)};
}

Scalar Builder::word(const Scalar& low, const Scalar& high, Here at) {
  state_->at(at);
  const bool owned = (low.constant() || state_->owns(low, "the low half")) &
                     (high.constant() || state_->owns(high, "the high half"));
  if (!owned || bits(low.type()) != 16 || bits(high.type()) != 16) {
    if (owned)
      state_->log.report(
          "scalar-type"_rule,
          fmt::format("expected two 16-bit values for the halves of a word, found {} and {}",
                      name(low.type()), name(high.type())));
    return detail::bad_scalar();
  }
  return state_->scalar(state_->f().pack(state_->value(low), state_->value(high), b32));
}

Scalar Builder::address(const Shared& tile, const Scalar& row, const Scalar& col, Here at) {
  state_->at(at);
  if (!is_element(*state_, tensor_of(tile), row, col)) return detail::bad_scalar();
  // By the instruction that it is for.
  state_->roles.note_read(detail::StageAccess::load);
  if (state_->has_wgmma) state_->roles.note_read(detail::StageAccess::wgmma_read);
  if (state_->has_tensor_products) state_->roles.note_read(detail::StageAccess::tensor_read);
  detail::Memory& memory = state_->memories.of(tensor_of(tile));
  memory.ever_written = true;  // perhaps
  if (memory.owner >= 0) state_->memories.owner_of(tensor_of(tile)).ever_written = true;
  return state_->scalar(state_->f().shared_address(address_of(*state_, tensor_of(tile), row, col)));
}

std::vector<Scalar> Builder::instruction(std::string_view spelling,
                                         std::span<const Scalar> operands, Here at) {
  state_->at(at);
  return named_instruction(*state_, spelling, operands);
}

}  // namespace tartan::TARTAN_ABI
