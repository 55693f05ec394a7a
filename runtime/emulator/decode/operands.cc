// SPDX-License-Identifier: Apache-2.0
// Operands as slots: registers, constants, addresses, special registers.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "compiler/isa/special_registers.h"
#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"
#include "runtime/emulator/machine/warp.h"
#include "runtime/emulator/numbers/small_float.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Registers come in four widths: predicate, up to 32 bits, 64, 128.
int width_of(Type type) {
  const int size = bits(type);
  return type == Type::pred ? 1 : size <= 32 ? 32 : size;
}

// The bits of a literal that is read as `type`.
std::uint64_t literal_bits(const ptx::Operand& operand, Type type) {
  if (operand.kind == ptx::OperandKind::Float) {
    // 0f... in a place of 64 bits is its 32 bits as they are: the assembler does not convert it.
    if (bits(type) == 64) return operand.value;
    const float single = operand.type == Type::f32
                             ? std::bit_cast<float>(static_cast<std::uint32_t>(operand.value))
                             : static_cast<float>(std::bit_cast<double>(operand.value));
    if (type == Type::f16) return to_half(single).bits;
    if (type == Type::bf16) return to_bfloat(single).bits;
    return std::bit_cast<std::uint32_t>(single);
  }
  if (type == Type::f32)
    return std::bit_cast<std::uint32_t>(
        static_cast<float>(static_cast<std::int64_t>(operand.value)));
  if (type == Type::f64)
    return std::bit_cast<std::uint64_t>(
        static_cast<double>(static_cast<std::int64_t>(operand.value)));
  if (type == Type::pred) return operand.value ? 0xFFFFFFFF : 0;
  return operand.value;
}

}  // namespace

// ---- Spelling.

std::string_view Spelling::any(const isa::QualifierSet& words) {
  const isa::QualifierSet found = take(words);
  return found.empty() ? std::string_view() : found.first().word();
}

std::string_view Spelling::unused() const {
  if (ignored_) return {};
  if (!read_->unknown.empty()) return read_->unknown;
  if (!read_->repeated.empty() && read_->signatures.empty()) return read_->repeated;
  if (const isa::QualifierSet left = read_->words.without(used_); !left.empty())
    return left.first().word();
  return used_types_ < types() ? name(read_->types[used_types_]) : std::string_view();
}

// ---- The arena.

std::uint32_t Decoder::allocate(int width) {
  if (width == 1) {  // 32 predicates share the room of a register
    if (predicates_left_ == 0) {
      predicates_ = allocate(32);
      predicates_left_ = 32;
    }
    return predicates_ + 4 * (32 - predicates_left_--);
  }
  const auto slot = static_cast<std::uint32_t>(program_.arena.size());
  program_.arena.resize(slot + static_cast<std::size_t>(width) / 8 * 32);
  return slot;
}

std::uint32_t Decoder::scratch(int width) {
  const std::uint32_t slot = allocate(width);
  if (function_ && !function_->entry)
    frame().registers.push_back({slot, static_cast<std::uint32_t>(width) / 8});
  return slot;
}

void Decoder::gather_anywhere(Op& op, const MemberOperands& bits) {
  constexpr int registers = 6 * 64;
  if (!program_.gathering_slot) program_.gathering_slot = allocate(registers);
  op.value = bits.a | bits.b << 8 | bits.c << 16 | bits.d << 24 | bits.list << 32;
}

std::uint32_t Decoder::constant(std::uint64_t value, int width) {
  const auto [at, fresh] = constants_.try_emplace({value, width}, 0);
  if (!fresh) return at->second;
  at->second = allocate(width);
  std::byte* room = program_.arena.data() + at->second;
  if (width == 1) {
    std::memcpy(room, &value, 4);
    return at->second;
  }
  for (int lane = 0; lane < 32; ++lane)
    std::memcpy(room + lane * (width == 32 ? 4 : 8), &value, width == 32 ? 4 : 8);
  return at->second;
}

std::uint32_t Decoder::append(std::span<const std::uint32_t> slots) {
  const auto first = static_cast<std::uint32_t>(program_.slots.size());
  program_.slots.insert(program_.slots.end(), slots.begin(), slots.end());
  return first;
}

std::uint32_t Decoder::special(isa::SpecialRegister which, int width) {
  const auto [at, fresh] = specials_.try_emplace({which, width}, 0);
  if (fresh) {
    at->second = allocate(width);
    program_.specials.push_back({which, width, at->second});
  }
  return at->second;
}

std::uint32_t Decoder::special_source(std::string_view name, Type type, bool& found) {
  using isa::SpecialRegister;
  const std::size_t dot = name.find('.');
  const std::string_view base = name.substr(0, dot),
                         element = dot == std::string_view::npos ? "" : name.substr(dot);
  const isa::SpecialRegisterRow* row = isa::find_special_register(base);
  const bool counter =
      row && (row->first == SpecialRegister::pm || row->first == SpecialRegister::pm_64);
  constexpr std::string_view elements = ".x.y.z.w";
  const std::size_t at = element.size() == 2 ? elements.find(element) : elements.npos;
  // mov reads those that vary.
  found = row && (counter || !row->varies) && row->first != SpecialRegister::warp_sz &&
          (row->vector ? at != elements.npos : dot == std::string_view::npos);
  if (!found) return 0;
  if (row->first >= SpecialRegister::perctamemoryoffset &&
      row->first <= SpecialRegister::locality_domain_supplemental_sm) {
    error("unsupported-instruction"_rule, fmt::format("{} is not emulated", name));
    return 0;
  }
  // Nobody counts events; there is no fourth dimension.
  if (counter || element == ".w") return constant(0, width_of(type));
  const int behind = row->vector  ? static_cast<int>(at / 2)
                     : row->count ? isa::special_number(*row, base)
                                  : 0;
  return special(static_cast<SpecialRegister>(static_cast<int>(row->first) + behind),
                 width_of(type));
}

// ---- Registers.

std::uint32_t Decoder::register_slot(Range& range, std::uint32_t index) {
  std::uint32_t& slot = range.slots[index];
  // Slot 0 is the constant true, which no register is.
  if (slot == 0) slot = new_register(range.declaration.type);
  return slot;
}

// x, y, z, w or r, g, b, a.
constexpr std::string_view element_letters = "xyzwrgba";

std::optional<RegisterRef> Decoder::register_at(const Declared& declared, std::size_t element) {
  Range& range = *declared.range;
  const std::uint32_t vector = range.declaration.vector;
  if (element >= vector) return std::nullopt;
  const auto index = static_cast<std::uint32_t>(declared.index * vector + element);
  return RegisterRef{register_slot(range, index), range.declaration.type};
}

// A whole vector register is none of the registers that instructions take one by one.
std::optional<RegisterRef> Decoder::find_register(std::string_view name) {
  if (const Declared found = declared(name); found.range && found.range->declaration.vector == 1)
    return register_at(found, 0);
  if (!has_vectors_ || name.size() < 3 || name[name.size() - 2] != '.') return std::nullopt;
  const std::size_t letter = element_letters.find(name.back());
  const Declared found = declared(name.substr(0, name.size() - 2));
  if (letter == element_letters.npos || !found.range) return std::nullopt;
  return register_at(found, letter % 4);
}

void Decoder::expand_vectors() {
  expanded_.clear();
  elements_.clear();
  for (const ptx::Operand& operand : operands_) {
    const Declared found =
        operand.kind == ptx::OperandKind::Name ? declared(operand.text) : Declared{};
    const std::uint32_t count = found.range ? found.range->declaration.vector : 1;
    expanded_.push_back(operand);
    if (count == 1) continue;
    ptx::Operand& vector = expanded_.back();
    vector.kind = ptx::OperandKind::Vector;
    vector.first = static_cast<std::uint32_t>(module_.operands.size() + elements_.size());
    vector.count = count;
    for (std::uint32_t i = 0; i < count; ++i) {
      ptx::Operand& element = elements_.emplace_back(operand);
      element_names_.push_back(fmt::format("{}.{}", operand.text, element_letters[i]));
      element.text = element_names_.back();
    }
  }
  operands_ = expanded_;
}

std::uint32_t Decoder::new_register(Type type) { return scratch(width_of(type)); }

std::optional<RegisterRef> Decoder::register_of(const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::Name) return std::nullopt;
  return find_register(operand.text);
}

std::uint32_t Decoder::destination(const ptx::Operand& operand, Type type) {
  if (operand.kind == ptx::OperandKind::Name && operand.text == "_") return scratch(width_of(type));
  const auto found = register_of(operand);
  if (!found) {
    error("undeclared-register"_rule, fmt::format("{} is not a declared register", operand.text));
    return 0;
  }
  if (width_of(found->type) != width_of(type))
    error("register-type"_rule,
          fmt::format("{}: expected a register of type {}, {} is {}", spelling.text(), name(type),
                      operand.text, name(found->type)));
  record(operand, found->slot, type);
  return found->slot;
}

std::vector<std::uint32_t> Decoder::fragment(const ptx::Operand& operand,
                                             const isa::OperandSpec& spec, bool is_destination) {
  std::vector<std::uint32_t> slots;
  const auto elements =
      operand.kind == ptx::OperandKind::Vector ? children(operand) : std::span(&operand, 1);
  if (static_cast<int>(elements.size()) != spec.count) {
    error("register-count"_rule,
          fmt::format("operand {} of {}: expected {} registers, found {}", isa::name(spec.role),
                      spelling.text(), spec.count, elements.size()));
    return slots;
  }
  const Type type = bits(spec.type) == 64 ? Type::b64 : Type::b32;
  for (const ptx::Operand& element : elements)
    slots.push_back(is_destination ? destination(element, type) : source(element, type));
  return slots;
}

std::uint32_t Decoder::symbol_slot(const Symbol& symbol, int width, std::uint64_t offset) {
  if (symbol.framed) {
    const auto [at, fresh] = frame_addresses_.try_emplace({symbol.address + offset, width}, 0);
    if (!fresh) return at->second;
    at->second = scratch(width);
    frame().addresses.push_back(
        {at->second, width, static_cast<std::uint32_t>(symbol.address + offset)});
    return at->second;
  }
  if (symbol.window == Window::constant) offset -= constant_window;
  if (symbol.window != Window::shared) return constant(symbol.address + offset, width);
  auto& slots = symbol.dynamic ? dynamic_addresses_ : static_addresses_;
  const auto [at, fresh] = slots.try_emplace({symbol.address + offset, width}, 0);
  if (!fresh) return at->second;
  at->second = allocate(width);
  move_address(program_.arena.data(), {at->second, width, symbol.dynamic}, symbol.address + offset);
  program_.shared_slots.push_back({at->second, width, symbol.dynamic});
  return at->second;
}

std::uint32_t Decoder::source(const ptx::Operand& operand, Type type) {
  const std::uint32_t slot = find_source(operand, type);
  if (operand.kind != ptx::OperandKind::Not)  // of !p, p was recorded
    record(operand, slot, type, !register_of(operand));
  return slot;
}

std::uint32_t Decoder::find_source(const ptx::Operand& operand, Type type) {
  const int width = width_of(type);
  switch (operand.kind) {
    case ptx::OperandKind::Integer:
    case ptx::OperandKind::Float: {
      std::uint64_t value = literal_bits(operand, type);
      if (width == 32)
        value &= bits(type) >= 32 ? 0xFFFFFFFF : (std::uint64_t{1} << bits(type)) - 1;
      return constant(value, width);
    }
    case ptx::OperandKind::Name: break;
    case ptx::OperandKind::Not:
      if (type == Type::pred) return predicate_source(operand);
      [[fallthrough]];
    default: unsupported("unsupported kind of operand"); return 0;
  }
  if (register_of(operand)) return destination(operand, type);
  bool found = false;
  if (const std::uint32_t slot = special_source(operand.text, type, found); found) return slot;
  if (operand.text == "WARP_SZ") return constant(32, width);
  if (const auto variable = symbol(operand.text)) {
    take_address(operand.text, *variable);
    return symbol_slot(*variable, width, operand.value);
  }
  if (const ptx::Function* function = names_.find(operand.text))
    return constant(emulator::address_of(module_, *function), width);
  undeclared(operand.text);
  return 0;
}

void Decoder::take_address(std::string_view name, const Symbol& symbol) {
  if (!taken_.emplace(symbol.window, name).second) return;
  const std::uint64_t base = symbol.window == Window::constant ? constant_window : 0;
  program_.taken_addresses.push_back(
      {symbol.window,
       {std::string(name), symbol.address - base, symbol.bytes, symbol.dynamic || symbol.framed}});
}

void Decoder::undeclared(std::string_view name) {
  const bool is_elsewhere = std::ranges::any_of(module_.items, [&](const ptx::Item& item) {
    if (item.kind != ptx::ItemKind::Variable) return false;
    const ptx::Variable& variable = module_.variables[item.index];
    return variable.name == name && variable.linkage == ".extern" && variable.unsized;
  });
  error("undeclared-register"_rule,
        is_elsewhere
            ? fmt::format("{} is an .extern array without a size, which no module defines", name)
            : fmt::format("{} is neither a declared register nor a declared variable", name));
}

std::uint32_t Decoder::predicate_source(const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::Not) return source(operand, Type::pred);
  const std::uint32_t from = source(children(operand)[0], Type::pred), to = scratch(1);
  Op& op = emit([](Warp& warp, const Op& o) { set_predicate(warp, o.d, ~predicate(warp, o.a)); });
  op.d = to;
  op.a = from;
  return to;
}

RegisterRef Decoder::flexible(const ptx::Operand& operand, Type type) {
  if (const auto found = register_of(operand)) {
    if (bits(found->type) < bits(type) || (found->type == Type::pred) != (type == Type::pred) ||
        (bits(found->type) == 128) != (bits(type) == 128))
      error("register-type"_rule,
            fmt::format("{}: expected a register of type {} or wider, {} is {}", spelling.text(),
                        name(type), operand.text, name(found->type)));
    record(operand, found->slot, found->type);
    return *found;
  }
  return {source(operand, type), type};
}

std::optional<std::int64_t> Decoder::integer(const ptx::Operand& operand) const {
  if (operand.kind != ptx::OperandKind::Integer) return std::nullopt;
  return static_cast<std::int64_t>(operand.value);
}

int Decoder::immediate(const ptx::Operand& operand, const isa::OperandSpec& spec) {
  const auto value = integer(operand);
  const bool legal =
      value && *value >= spec.low && *value <= spec.high && !(spec.low == -1 && *value == 0);
  if (!legal)
    error("immediate-range"_rule,
          fmt::format("operand {} of {} requires an immediate {} {} {}", isa::name(spec.role),
                      spelling.text(), spec.low, spec.low == -1 ? "or" : "to", spec.high));
  return legal ? static_cast<int>(*value) : 0;
}

void Decoder::address(Op& op, const ptx::Operand& operand, Window window) {
  op.window = window;
  if (operand.kind != ptx::OperandKind::Address || operand.count == 0)
    return error("operand-kind"_rule, fmt::format("{}: expected an address", spelling.text()));
  const ptx::Operand& base = children(operand)[0];
  op.value = operand.value;
  op.wide = true;
  if (base.kind == ptx::OperandKind::Integer) {
    op.a = constant(base.value, 64);
    return;
  }
  if (const auto found = register_of(base)) {
    op.wide = bits(found->type) == 64;
    if (found->type == Type::pred || bits(found->type) == 128 || bits(found->type) < 32)
      return error("register-type"_rule,
                   fmt::format("an address requires a register of 32 or 64 bits, {} is {}",
                               base.text, name(found->type)));
    op.a = found->slot;
    record(base, op.a, found->type);
    return;
  }
  const auto variable = symbol(base.text);
  if (!variable) return undeclared(base.text);
  // A variable's own window says where it is; a generic access to a shared variable's name means
  // its address in the window all the same.
  op.window = variable->window;
  op.a = symbol_slot(*variable, 64);
}

}  // namespace tartan::TARTAN_ABI::emulator
