// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/definedness/flow_rules.h"

#include <algorithm>
#include <bit>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::Opcode;
using isa::operator""_q;

constexpr std::uint64_t ones(int width) {
  return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

// The bits of an element where a type is a vector of several; else all of its bits.
int element_bits(Type type) {
  const std::string_view text = name(type);
  const int all = std::max(bits(type), 1);
  if (text.ends_with("x2")) return all / 2;
  return text.ends_with("x4") ? all / 4 : all;
}

constexpr bool is_integer(Type type) {
  return type != Type::none && type != Type::pred && !info(type).floating && bits(type) >= 8 &&
         bits(type) <= 64;
}

}  // namespace

FlowRules::FlowRules(ClusterDefinedness& owner, Warp& warp, const InstructionOps& now)
    : owner_(owner),
      warp_(warp),
      now_(now),
      op_(warp.program->ops[now.first + now.count - 1]),
      spelling_(owner.spelling(now)),
      flow_(owner.flow(now)),
      shadow_(owner.shadow(warp)) {
  for (const RegisterUse& use : warp.program->registers.uses_of(now)) {
    if (is_source(use)) sources_.push_back(&use);
    if (use.writes) results_.push_back(&use);
  }
}

bool FlowRules::any_source_holds() const {
  return std::ranges::any_of(sources_,
                             [&](const RegisterUse* use) { return shadow_.holds(use->slot); });
}

std::uint64_t FlowRules::bits_of(const RegisterUse& use, std::uint32_t lane) const {
  if (use.constant) return 0;
  return shadow_.get(use.slot, register_bits(use.type), lane) & ones(bits(use.type));
}

std::uint64_t FlowRules::value_of(const RegisterUse& use, std::uint32_t lane) const {
  switch (register_bits(use.type)) {
    case 1: return predicate(warp_, use.slot) >> lane & 1;
    case 32: return lanes<std::uint32_t>(warp_, use.slot)[lane];
    default: return lanes<std::uint64_t>(warp_, use.slot)[lane];
  }
}

std::uint32_t FlowRules::origin_of(std::uint32_t lane) {
  for (const RegisterUse* use : sources_)
    if (!use->constant && shadow_.lanes(use->slot, register_bits(use->type), 1u << lane, 64))
      return owner_.origin(warp_, *use, lane);
  return guard_origin_;
}

// ---- What decides.

void FlowRules::before() {
  if (warp_.undefined) {
    check_guard();
    check_uses();
  }
  if (!(warp_.mask | guarded_)) return;
  switch (flow_) {
    case Flow::Loads: return load();
    case Flow::Stores: return store();
    case Flow::Atomic: return change_atomically();
    case Flow::LoadsRows:
    case Flow::StoresRows:
    case Flow::Collects:
    case Flow::Transposes:
    case Flow::Multiplies:
    case Flow::ByHandler: return;
    case Flow::Uses: return set_results(warp_.mask, 0);
    default: return propagate();
  }
}

void FlowRules::check_guard() {
  for (const RegisterUse& use : warp_.program->registers.uses_of(now_)) {
    if (use.operand != RegisterUse::guard) continue;
    const std::uint32_t found = shadow_.lanes(use.slot, 1, warp_.group, 1);
    if (!found) return;
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(found));
    if (has_side_effect(flow_))
      return check_use(use, warp_.group,
                       spelling_.opcode == Opcode::bra ? "the predicate of a branch"
                                                       : "the predicate of an instruction");
    guarded_ = found;
    guard_origin_ = owner_.origin(warp_, use, lane);
    return;
  }
}

void FlowRules::check_uses() {
  const bool decide = flow_ == Flow::Uses || flow_ == Flow::ByHandler || flow_ == Flow::Collects ||
                      flow_ == Flow::Atomic;
  for (const RegisterUse& use : warp_.program->registers.uses_of(now_)) {
    if (!use.reads || use.constant || !shadow_.holds(use.slot)) continue;
    if (use.operand == RegisterUse::guard) continue;
    if (use.address) check_use(use, warp_.mask & addressing_lanes(), "an address");
    else if (decide && !is_value(spelling_, use))
      check_use(use, warp_.mask,
                flow_ == Flow::Atomic ? "the operand of an atomic operation" : "an operand");
  }
}

// Those whose addresses the instruction uses.
std::uint32_t FlowRules::addressing_lanes() const {
  if (flow_ != Flow::LoadsRows && flow_ != Flow::StoresRows) return all_lanes;
  const int count = warp_.program->matrices[op_.list].addresses;
  return count >= 32 ? all_lanes : (1u << count) - 1;
}

void FlowRules::check_use(const RegisterUse& use, std::uint32_t lanes, std::string_view what) {
  const int width = register_bits(use.type);
  const std::uint32_t found = shadow_.lanes(use.slot, width, lanes, std::max(bits(use.type), 1));
  for (std::uint32_t m = found; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    owner_.report(warp_, lane, owner_.origin(warp_, use, lane), what);
  }
  shadow_.clear(use.slot, width, found);
}

// ---- Results.

void FlowRules::set_results(std::uint32_t lanes, std::uint32_t origin) {
  for (const RegisterUse* to : results_) {
    const int width = register_bits(to->type);
    if (!origin) {
      shadow_.clear(to->slot, width, lanes);
      continue;
    }
    for (std::uint32_t m = lanes; m; m &= m - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
      shadow_.set(to->slot, width, lane, ~std::uint64_t{0});
      if (width == 128) shadow_.set(to->slot, width, lane, ~std::uint64_t{0}, 1);
      shadow_.origin(to->slot, width, lane) = origin;
    }
    shadow_.settle(to->slot, width);
  }
}

void FlowRules::propagate() {
  const std::uint32_t certain = warp_.mask & ~guarded_;
  if (!any_source_holds()) {
    set_results(certain, 0);
    if (guarded_) set_results(guarded_, guard_origin_);
    return;
  }
  const std::size_t count = std::min(results_.size(), most_results);
  for (std::uint32_t m = certain; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    const std::uint32_t from = origin_of(lane);
    Result results[most_results];
    if (from) evaluate(lane, results);
    for (std::size_t i = 0; i < count; ++i) {
      const RegisterUse& to = *results_[i];
      const int width = register_bits(to.type);
      shadow_.set(to.slot, width, lane, results[i].low & ones(width));
      if (width == 128) shadow_.set(to.slot, width, lane, results[i].high, 1);
      if (results[i].low | results[i].high) shadow_.origin(to.slot, width, lane) = from;
    }
  }
  if (guarded_) set_results(guarded_, guard_origin_);
  for (const RegisterUse* to : results_) shadow_.settle(to->slot, register_bits(to->type));
}

// Before the instruction runs: registers hold what it reads.
void FlowRules::evaluate(std::uint32_t lane, Result* results) {
  if (flow_ == Flow::Copies) return copy(lane, results);
  const std::size_t count = std::min(results_.size(), most_results);
  for (std::size_t i = 0; i < count; ++i) {
    const RegisterUse& to = *results_[i];
    const int width = bits(to.type);
    const auto a = [&] { return bits_of(source(0), lane); };
    const auto b = [&] { return bits_of(source(1), lane); };
    const auto value = [&](std::size_t k) { return value_of(source(k), lane); };
    Result& out = results[i];
    switch (flow_) {
      case Flow::Not: out.low = a(); break;
      case Flow::And: out.low = (a() | b()) & (a() | value(0)) & (b() | value(1)); break;
      case Flow::Or: out.low = (a() | b()) & (a() | ~value(0)) & (b() | ~value(1)); break;
      case Flow::Xor: out.low = source(0).slot == source(1).slot ? 0 : a() | b(); break;
      case Flow::Table:
        out.low = to.type == Type::pred ? spread(lane, to) : from_table(lane);
        break;
      case Flow::ShiftsLeft:
      case Flow::ShiftsRight: out.low = shifted(lane, width); break;
      case Flow::Funnels: out.low = funnelled(lane); break;
      case Flow::Reverses:
        for (int k = 0; k < width; ++k) out.low |= (a() >> k & 1) << (width - 1 - k);
        break;
      case Flow::Extracts: out.low = extracted(lane, width); break;
      case Flow::Inserts: out.low = inserted(lane, width); break;
      case Flow::Permutes: out.low = permuted(lane); break;
      case Flow::Selects:
        if (bits_of(source(2), lane)) out.low = a() | b() | (value(0) ^ value(1));
        else out.low = value(2) ? a() : b();
        break;
      case Flow::Converts: out.low = convert(lane, to); break;
      default: out.low = spread(lane, to); break;
    }
  }
}

// Elements of vectors by themselves where sources and results have as many of them.
std::uint64_t FlowRules::spread(std::uint32_t lane, const RegisterUse& to) const {
  const bool same = sources_.size() == 2 && source(0).slot == source(1).slot;
  if (same && spelling_.opcode == Opcode::sub && is_integer(spelling_.type())) return 0;
  const int width = std::max(bits(to.type), 1), step = element_bits(spelling_.type());
  std::uint64_t any = 0;
  bool alike = step < width && bits(spelling_.type()) == width;
  for (const RegisterUse* use : sources_) {
    any |= bits_of(*use, lane);
    alike &= bits(use->type) == width;
  }
  if (!alike) return any ? ones(width) : 0;
  std::uint64_t out = 0;
  for (int k = 0; k < width; k += step)
    if (any >> k & ones(step)) out |= ones(step) << k;
  return out;
}

// mov of a register, of the parts of one, or of a vector.
void FlowRules::copy(std::uint32_t lane, Result* results) const {
  const auto halves = [&](const RegisterUse& use) {
    Result out{.low = bits_of(use, lane)};
    if (bits(use.type) == 128 && !use.constant) out.high = shadow_.get(use.slot, 128, lane, 1);
    return out;
  };
  const std::size_t count = std::min(results_.size(), most_results);
  if (count == 1 && sources_.size() == 1 && results_[0]->operand != sources_[0]->operand &&
      bits(results_[0]->type) == bits(sources_[0]->type)) {
    results[0] = halves(source(0));
  } else if (bits(source(0).type) > bits(results_[0]->type)) {  // unpacked
    const Result whole = halves(source(0));
    for (std::size_t i = 0; i < count; ++i) {
      const int width = bits(results_[i]->type), at = width * results_[i]->element;
      results[i].low = ((at >= 64 ? whole.high : whole.low) >> (at & 63)) & ones(width);
    }
  } else if (bits(source(0).type) < bits(results_[0]->type)) {  // packed
    for (const RegisterUse* use : sources_) {
      const int at = bits(use->type) * use->element;
      (at >= 64 ? results[0].high : results[0].low) |= bits_of(*use, lane) << (at & 63);
    }
  } else {
    for (std::size_t i = 0; i < count; ++i)
      for (const RegisterUse* use : sources_)
        if (use->element == results_[i]->element) results[i] = halves(*use);
  }
}

// Between integers bits keep their places; the sign's goes on.
std::uint64_t FlowRules::convert(std::uint32_t lane, const RegisterUse& to) const {
  const Type d = spelling_.type(0), a = spelling_.type(1);
  const int width = register_bits(to.type);
  const std::uint64_t from = bits_of(source(0), lane);
  if (is_integer(d) && is_integer(a) && !spelling_.has("sat"_q)) {
    const auto extend = [](std::uint64_t x, Type type) {
      const int size = bits(type);
      x &= ones(size);
      return info(type).is_signed && size < 64 && x >> (size - 1) & 1 ? x | ~ones(size) : x;
    };
    return extend(extend(from, a), d) & ones(width);
  }
  if (bits(d) == 32 && element_bits(d) == 16 && sources_.size() >= 2)  // {a, b}
    return (from ? 0xFFFF0000 : 0) | (bits_of(source(1), lane) ? 0xFFFF : 0);
  return spread(lane, to);
}

std::uint64_t FlowRules::shifted(std::uint32_t lane, int width) const {
  if (bits_of(source(1), lane)) return ones(width);
  const std::uint64_t a = bits_of(source(0), lane), n = value_of(source(1), lane);
  if (flow_ == Flow::ShiftsLeft)
    return n >= static_cast<std::uint64_t>(width) ? 0 : a << n & ones(width);
  const bool top = a >> (width - 1) & 1;
  const auto moved =
      static_cast<int>(std::min<std::uint64_t>(n, static_cast<std::uint64_t>(width)));
  const std::uint64_t low = moved >= 64 ? 0 : a >> moved;
  return info(spelling_.type()).is_signed && top ? low | (ones(width) & ~ones(width - moved)) : low;
}

std::uint64_t FlowRules::funnelled(std::uint32_t lane) const {
  if (bits_of(source(2), lane)) return ones(32);
  const std::uint64_t c = value_of(source(2), lane);
  const std::uint64_t n = spelling_.has("wrap"_q) ? c & 31 : std::min<std::uint64_t>(c, 32);
  const std::uint64_t both = bits_of(source(1), lane) << 32 | bits_of(source(0), lane);
  return spelling_.has("l"_q) ? both << n >> 32 : both >> n & ones(32);
}

std::uint64_t FlowRules::extracted(std::uint32_t lane, int width) const {
  if (bits_of(source(1), lane) | bits_of(source(2), lane)) return ones(width);
  const std::uint64_t a = bits_of(source(0), lane);
  const auto field = [&](std::size_t i) {
    const std::uint64_t n = value_of(source(i), lane);
    return static_cast<int>(width == 32 ? n & 0xFF : std::min<std::uint64_t>(n, 255));
  };
  const int position = field(1), length = field(2);
  if (length == 0) return 0;
  const bool sign =
      info(spelling_.type()).is_signed && (a >> std::min(position + length - 1, width - 1) & 1);
  const std::uint64_t out = position >= width ? 0 : a >> position;
  const int present = std::min(length, std::max(width - position, 0));
  if (present >= width) return out;
  return (out & ones(present)) | (sign ? ones(width) & ~ones(present) : 0);
}

std::uint64_t FlowRules::inserted(std::uint32_t lane, int width) const {
  if (bits_of(source(2), lane) | bits_of(source(3), lane)) return ones(width);
  const auto field = [&](std::size_t i) {
    const std::uint64_t n = value_of(source(i), lane);
    return static_cast<int>(width == 32 ? n & 0xFF : std::min<std::uint64_t>(n, 255));
  };
  const int position = field(2), length = field(3);
  const std::uint64_t b = bits_of(source(1), lane);
  if (position >= width || length == 0) return b;
  const std::uint64_t place = ones(length) << position & ones(width);
  return (b & ~place) | (bits_of(source(0), lane) << position & place);
}

// Without a mode: four bytes of eight, or copies of their top bits.
std::uint64_t FlowRules::permuted(std::uint32_t lane) const {
  constexpr isa::QualifierSet modes = "f4e b4e rc8 ecl ecr rc16";
  if (!(spelling_.words & modes).empty() || bits_of(source(2), lane))
    return bits_of(source(0), lane) | bits_of(source(1), lane) | bits_of(source(2), lane) ? ones(32)
                                                                                          : 0;
  const std::uint64_t both = bits_of(source(1), lane) << 32 | bits_of(source(0), lane);
  const std::uint64_t selector = value_of(source(2), lane);
  std::uint64_t out = 0;
  for (int k = 0; k < 4; ++k) {
    const std::uint64_t which = selector >> 4 * k & 0xF;
    std::uint64_t byte = both >> 8 * (which & 7) & 0xFF;
    if (which & 8) byte = byte & 0x80 ? 0xFF : 0;
    out |= byte << 8 * k;
  }
  return out;
}

// A bit is undefined where what the undefined ones may be changes it.
std::uint64_t FlowRules::from_table(std::uint32_t lane) const {
  std::uint64_t one = 0, zero = 0;
  for (std::uint64_t row = 0; row < 8; ++row) {
    std::uint64_t possible = ones(32);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint64_t value = value_of(source(i), lane);
      possible &= bits_of(source(i), lane) | (row >> (2 - i) & 1 ? value : ~value);
    }
    (op_.value >> row & 1 ? one : zero) |= possible;
  }
  return one & zero;
}

// ---- Collectives.

void FlowRules::gathered() {
  switch (flow_) {
    case Flow::LoadsRows: return load_rows();
    case Flow::StoresRows: return store_rows();
    case Flow::Transposes: return transpose();
    case Flow::Multiplies: return multiply();
    case Flow::Collects: {
      const auto from = undefined_source(warp_.mask);
      return set_results(warp_.mask, from.value_or(0));
    }
    default: return;
  }
}

std::optional<std::uint32_t> FlowRules::undefined_source(std::uint32_t lanes) {
  for (const RegisterUse* use : sources_) {
    if (use->constant) continue;
    const std::uint32_t found =
        shadow_.lanes(use->slot, register_bits(use->type), lanes, std::max(bits(use->type), 1));
    if (found)
      return owner_.origin(warp_, *use, static_cast<std::uint32_t>(std::countr_zero(found)));
  }
  return std::nullopt;
}

}  // namespace tartan::TARTAN_ABI::emulator
