// SPDX-License-Identifier: Apache-2.0
// Undefined bits of memory: loads bring them into registers, stores put them there, and to global
// memory nothing goes unnoticed.
#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/emulator/definedness/flow_rules.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/races/watches.h"
#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::operator""_q;
using Place = UndefinedOrigin::Place;

template <typename Body>
void each_of(std::uint32_t lanes, Body&& body) {
  for (std::uint32_t m = lanes; m; m &= m - 1)
    body(static_cast<std::uint32_t>(std::countr_zero(m)));
}

// `size` bytes at `from`, at most 8.
std::uint64_t read_bits(const std::byte* from, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, size);
  return value;
}

}  // namespace

bool ClusterDefinedness::access_defined(Warp& warp, const Op& op, Flow flow) {
  if (flow == Flow::LoadsRows || flow == Flow::StoresRows) return true;  // gathered() sees them
  if (flow != Flow::Loads && flow != Flow::Stores) return false;
  if (!warp.mask) return true;
  std::uint32_t bytes = (*warp.program->observation<RaceWatches>())[warp.pc - 1].bytes;
  if (!bytes) {  // memory of its own, which no race is in
    const isa::Spelling& spelling = this->spelling(*warp.program->registers.at(warp.pc - 1));
    bytes = static_cast<std::uint32_t>(std::max(1, isa::access_bits(spelling) / 8));
  }
  if (const EvenAccess even = resolve_evenly(warp, op, bytes); even.first) {
    const std::uint64_t size = even.step ? 32 * std::uint64_t{bytes} : bytes;
    const Piece at = piece(warp, even.first);
    if (flow == Flow::Stores && at.bits) std::memset(at.bits, 0, size);
    return flow == Flow::Stores || !any_undefined(at, size);
  }
  Access access;
  if (!resolve(warp, op, bytes, access)) return true;  // a finding
  if (flow == Flow::Loads && defined_in_shared(warp, warp.mask, access.at, bytes)) return true;
  bool any = false;
  each_of(warp.mask, [&](std::uint32_t lane) {
    const Piece at = piece(warp, access.at[lane]);
    if (flow == Flow::Loads) any |= any_undefined(at, bytes);
    else if (at.bits) std::memset(at.bits, 0, bytes);
  });
  return !any;
}

// A register may be wider than the element: zeros above, or copies of the sign.
void FlowRules::load() {
  const std::uint32_t lanes = warp_.mask & ~guarded_;
  const auto size = static_cast<std::uint32_t>(std::max(1, isa::access_bits(spelling_) / 8));
  const Type type = spelling_.type();
  const auto element = static_cast<std::uint32_t>(std::max(bits(type), 8) / 8);
  Access access;
  const std::uint32_t whole = warp_.mask;
  warp_.mask = lanes;
  const bool good = !lanes || resolve(warp_, op_, size, access);
  warp_.mask = whole;
  if (!good) return;
  each_of(lanes, [&](std::uint32_t lane) {
    const auto at = owner_.piece(warp_, access.at[lane]);
    const bool any = owner_.any_undefined(at, size);
    for (const RegisterUse* to : results_) {
      const int width = register_bits(to->type);
      const std::uint32_t first = element * to->element;
      std::uint64_t low = 0, high = 0;
      if (any && first + element <= size) {
        low = read_bits(at.bits + first, std::min(element, 8u));
        if (element == 16) high = read_bits(at.bits + first + 8, 8);
      }
      if (info(type).is_signed && element < 8 && low >> (8 * element - 1) & 1)
        low |= ~std::uint64_t{0} << 8 * element;
      shadow_.set(to->slot, width, lane, low);
      if (width == 128) shadow_.set(to->slot, width, lane, high, 1);
      if (low | high)
        shadow_.origin(to->slot, width, lane) =
            owner_.origin(warp_, {at.bits + first, at.place, at.address + first}, lane);
    }
  });
  if (guarded_) set_results(guarded_, guard_origin_);
  for (const RegisterUse* to : results_) shadow_.settle(to->slot, register_bits(to->type));
}

void FlowRules::store() {
  const auto size = static_cast<std::uint32_t>(std::max(1, isa::access_bits(spelling_) / 8));
  const auto element = static_cast<std::uint32_t>(std::max(bits(spelling_.type()), 8) / 8);
  Access access;
  if (!warp_.mask || !resolve(warp_, op_, size, access)) return;
  for (const RegisterUse* use : sources_) {
    const std::uint32_t first = element * use->element;
    if (first + element > size) continue;
    const int width = register_bits(use->type);
    std::uint32_t told = 0;
    each_of(warp_.mask, [&](std::uint32_t lane) {
      const auto at = owner_.piece(warp_, access.at[lane] + first);
      std::uint64_t value[2] = {};
      if (!use->constant && shadow_.holds(use->slot)) {
        value[0] = shadow_.get(use->slot, width, lane);
        if (width == 128) value[1] = shadow_.get(use->slot, width, lane, 1);
        if (element < 8) value[0] &= (std::uint64_t{1} << 8 * element) - 1;
      }
      const bool any = value[0] | value[1];
      const bool decides = any && (!at.bits || at.place == Place::global);
      if (decides) {
        owner_.report(warp_, lane, owner_.origin(warp_, *use, lane),
                      "a value stored to global memory");
        told |= 1u << lane;
        value[0] = value[1] = 0;
      }
      if (!at.bits) return;
      std::memcpy(at.bits, value, element);
      if (any && !decides) owner_.remember(at.bits, element, owner_.origin(warp_, *use, lane));
    });
    if (told) shadow_.clear(use->slot, width, told);
  }
}

// The memory decides what is there afterwards; exchanges only hand it out.
void FlowRules::change_atomically() {
  const auto size = static_cast<std::uint32_t>(std::max(1, isa::access_bits(spelling_) / 8));
  Access access;
  if (!warp_.mask || !resolve(warp_, op_, size, access)) return;
  set_results(warp_.mask, 0);
  if (owner_.defined_in_shared(warp_, warp_.mask, access.at, size)) return;
  const bool exchanges = spelling_.has("exch"_q);
  each_of(warp_.mask, [&](std::uint32_t lane) {
    const auto at = owner_.piece(warp_, access.at[lane]);
    if (!owner_.any_undefined(at, size)) return;
    const std::uint32_t from = owner_.origin(warp_, at, lane);
    std::memset(at.bits, 0, size);
    if (exchanges) return set_results(1u << lane, from);
    owner_.report(warp_, lane, from, "the memory of an atomic operation");
  });
}

// ---- ldmatrix, stmatrix, movmatrix.

// Where the rows are that the lanes name; false after a finding.
bool FlowRules::resolve_rows(int rows, std::uint32_t row_bytes, Access& access) {
  const std::uint32_t whole = warp_.mask;
  warp_.mask = rows >= 32 ? all_lanes : (1u << rows) - 1;
  const bool good = resolve(warp_, op_, row_bytes, access);
  warp_.mask = whole;
  return good;
}

void FlowRules::load_rows() {
  const MatrixOperation& m = warp_.program->matrices[op_.list];
  const isa::Fragment fragment = isa::fragment(m.form, Operand::d);
  const int rows = m.form.shape.m * fragment.matrices;
  const std::uint32_t row_bytes = m.row_bytes();
  Access access;
  if (!resolve_rows(rows, row_bytes, access)) return;
  const std::uint32_t lanes = rows >= 32 ? all_lanes : (1u << rows) - 1;
  if (owner_.defined_in_shared(warp_, lanes, access.at, row_bytes))
    return set_results(warp_.mask, 0);
  ClusterDefinedness::Piece pieces[32];
  bool any = false;
  std::uint32_t from = 0;
  for (int row = 0; row < rows; ++row) {
    pieces[row] = owner_.piece(warp_, access.at[row]);
    if (!owner_.any_undefined(pieces[row], row_bytes)) {
      pieces[row].bits = nullptr;
      continue;
    }
    any = true;
    if (from) continue;
    auto first = pieces[row];
    while (first.bits[0] == std::byte{0}) ++first.bits, ++first.address;
    from = owner_.origin(warp_, first, static_cast<std::uint32_t>(row));
  }
  if (!any) return set_results(warp_.mask, 0);
  const int stored = bits(m.form.a == Type::none ? m.form.d : m.form.a);
  std::uint32_t out[8][32] = {};
  for (int i = 0; i < fragment.elements(); ++i)
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const RowElement place = m.places[static_cast<std::size_t>(32 * i) + lane];
      const std::byte* row = pieces[place.row].bits;
      if (!row) continue;
      const int bit = place.col * stored, last = (bit + stored - 1) / 8;
      std::uint32_t found = 0;
      for (int b = bit / 8; b <= last; ++b)
        found |= static_cast<std::uint32_t>(row[b]) << 8 * (b - bit / 8);
      if (stored != fragment.container_bits && found) found = ~0u;
      const int width = fragment.container_bits;
      if (width < 32) found &= (1u << width) - 1;
      out[i / fragment.per_register][lane] |= found << i % fragment.per_register * width;
    }
  for (std::size_t r = 0; r < m.d.size(); ++r) {
    each_of(warp_.mask, [&](std::uint32_t lane) {
      shadow_.set(m.d[r], 32, lane, out[r][lane]);
      if (out[r][lane]) shadow_.origin(m.d[r], 32, lane) = from;
    });
    shadow_.settle(m.d[r], 32);
  }
}

void FlowRules::store_rows() {
  const MatrixOperation& m = warp_.program->matrices[op_.list];
  const isa::Fragment fragment = isa::fragment(m.form, Operand::d);
  const auto bytes = static_cast<std::size_t>(fragment.container_bits) / 8;
  const std::uint32_t row_bytes = m.row_bytes();
  Access access;
  if (!resolve_rows(8 * fragment.matrices, row_bytes, access)) return;
  ClusterDefinedness::Piece pieces[32];
  for (int row = 0; row < 8 * fragment.matrices; ++row) {
    pieces[row] = owner_.piece(warp_, access.at[row]);
    if (pieces[row].bits) std::memset(pieces[row].bits, 0, row_bytes);
  }
  if (!any_source_holds()) return;
  for (int i = 0; i < fragment.elements(); ++i) {
    const std::uint32_t slot = m.c[static_cast<std::size_t>(i / fragment.per_register)];
    each_of(warp_.mask, [&](std::uint32_t lane) {
      const std::uint64_t found =
          shadow_.get(slot, 32, lane) >> i % fragment.per_register * fragment.container_bits;
      const RowElement place = m.places[static_cast<std::size_t>(32 * i) + lane];
      std::byte* const row = pieces[place.row].bits;
      if (!row || !(found & ((std::uint64_t{1} << fragment.container_bits) - 1))) return;
      std::memcpy(row + place.col * bytes, &found, bytes);
      owner_.remember(row + place.col * bytes, bytes,
                      owner_.origin(warp_, {.slot = slot, .type = Type::b32}, lane));
    });
  }
}

void FlowRules::transpose() {
  if (!any_source_holds()) return set_results(warp_.mask, 0);
  const MatrixOperation& m = warp_.program->matrices[op_.list];
  const std::uint32_t a = m.a.front(), d = m.d.front();
  std::uint32_t out[32] = {}, from[32] = {};
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 2; ++i) {
      const isa::Coord at = isa::coord(m.form, Operand::d, lane, i);
      const auto other = static_cast<std::uint32_t>(4 * at.row + at.col / 2);
      const auto found =
          static_cast<std::uint32_t>(shadow_.get(a, 32, other)) >> at.col % 2 * 16 & 0xFFFF;
      out[lane] |= found << 16 * i;
      if (found) from[lane] = owner_.origin(warp_, {.slot = a, .type = Type::b32}, other);
    }
  each_of(warp_.mask, [&](std::uint32_t lane) {
    shadow_.set(d, 32, lane, out[lane]);
    if (out[lane]) shadow_.origin(d, 32, lane) = from[lane];
  });
  shadow_.settle(d, 32);
}

// ---- wmma.load and wmma.store, element by element.

void ClusterDefinedness::load_element(Warp& warp, int lane, const std::byte* from,
                                      const ElementPlace& place) {
  const auto [slot, shift, width, register_bits] = place;
  const auto l = static_cast<std::uint32_t>(lane);
  const Piece at = piece(warp, from);
  const bool any = any_undefined(at, static_cast<std::uint64_t>(std::max(width, 8) / 8));
  if (!any && !warp.undefined) return;
  RegisterShadow& bits = shadow(warp);
  const std::uint64_t mask = (width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1)
                             << shift;
  const std::uint64_t before = bits.get(slot, register_bits, l);
  bits.set(slot, register_bits, l, any ? before | mask : before & ~mask);
  if (any) bits.origin(slot, register_bits, l) = origin(warp, at, l);
  bits.settle(slot, register_bits);
  settle(warp);
}

void ClusterDefinedness::store_element(Warp& warp, int lane, std::byte* to,
                                       const ElementPlace& place) {
  const auto [slot, shift, width, register_bits] = place;
  const auto l = static_cast<std::uint32_t>(lane);
  const auto bytes = static_cast<std::size_t>(width / 8);
  const Piece at = piece(warp, to);
  RegisterShadow& bits = shadow(warp);
  std::uint64_t found = bits.get(slot, register_bits, l) >> shift;
  if (width < 64) found &= (std::uint64_t{1} << width) - 1;
  const RegisterUse use{.slot = slot, .type = register_bits == 64 ? Type::b64 : Type::b32};
  if (found && (!at.bits || at.place == Place::global)) {
    report(warp, l, origin(warp, use, l), "a value stored to global memory");
    found = 0;
  }
  if (!at.bits) return;
  std::memcpy(at.bits, &found, bytes);
  if (found) remember(at.bits, bytes, origin(warp, use, l));
}

}  // namespace tartan::TARTAN_ABI::emulator
