// SPDX-License-Identifier: Apache-2.0
// Loads, stores, atomics, and fragments between registers and rows of memory.
#include <algorithm>

#include "runtime/emulator/algebra/steps.h"
#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::operator""_q;

std::size_t element_bytes(const Lift& lift) {
  return static_cast<std::size_t>(std::max(bits(lift.spelling->type(0)), 8)) / 8;
}

bool absent(const LiftedRegister& reg) { return reg.slot == ~0u; }

}  // namespace

bool load_words(Warp& warp, const Op& op, const Lift& lift) {
  const std::size_t size = element_bytes(lift);
  const bool is_signed = info(lift.spelling->type(0)).is_signed;
  const bool signal = lift.spelling->has("acquire"_q) || lift.spelling->has("relaxed"_q) ||
                      lift.spelling->has("volatile"_q);
  Access access;
  if (!resolve(warp, op, static_cast<std::uint32_t>(size * lift.d.size()), access)) return false;
  Algebra& algebra = algebra_of(warp);
  TagMemory& memory = algebra.memory;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    for (std::size_t k = 0; k < lift.d.size(); ++k) {
      if (absent(lift.d[k])) continue;
      LaneBytes bytes;
      memory.load(access.at[lane] + k * size, bytes.tags, size);
      algebra.load(bytes.tags, size, lift.spelling->type(0), signal);
      if (is_signed && size < lift.d[k].bytes) {  // signs fill the rest
        if (algebra.take_bits(bytes.tags, size)) bytes = {};
        else algebra.spoil(&warp, bytes.tags, room_of(lift.d[k]), "extends part of a value");
      }
      bytes.write(warp, lift.d[k], lane);
    }
  }
  return true;
}

bool store_words(Warp& warp, const Op& op, const Lift& lift) {
  const std::size_t size = element_bytes(lift);
  Access access;
  if (!resolve(warp, op, static_cast<std::uint32_t>(size * lift.s.size()), access)) return false;
  TagMemory& memory = algebra_of(warp).memory;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    for (std::size_t k = 0; k < lift.s.size(); ++k)
      if (!absent(lift.s[k]))
        memory.store(access.at[lane] + k * size, LaneBytes(warp, lift.s[k], lane).tags, size);
  }
  return true;
}

namespace {

struct Element {
  Type type = Type::none;
  std::size_t count = 1;
};

Element element_of(Type type) {
  switch (type) {
    case Type::f16x2: return {Type::f16, 2};
    case Type::bf16x2: return {Type::bf16, 2};
    default: return {type, 1};
  }
}

// One lane's update of `size` bytes at `at` by `with`.
void update(Warp& warp, const isa::Spelling& spelling, std::byte* at, const LaneBytes& with,
            std::size_t size) {
  Algebra& algebra = algebra_of(warp);
  LaneBytes old;
  algebra.memory.load(at, old.tags, size);
  std::memcpy(old.bits, at, size);
  const auto none = [&](const LaneBytes& bytes) {
    return std::all_of(bytes.tags, bytes.tags + size, [](Tag tag) { return tag == 0; });
  };
  if (spelling.has("exch"_q)) return algebra.memory.store(at, with.tags, size);
  const Element element = element_of(spelling.type(0));
  const bool integers = !info(element.type).floating;
  if (integers && none(old) && none(with)) return;
  const bool adds = spelling.has("add"_q),
             compares = !integers && (spelling.has("min"_q) || spelling.has("max"_q));
  LaneBytes out;
  if ((adds && (!integers || size == 4)) || compares) {
    const std::size_t bytes = size / element.count;
    const Type type = integers ? Type::s32 : element.type;
    for (std::size_t i = 0; i < size; i += bytes) {
      const Ref a = algebra.read(&warp, old.tags + i, old.bits + i, type),
                b = algebra.read(&warp, with.tags + i, with.bits + i, type);
      const bool greatest = spelling.has("max"_q);
      const Ref made = adds ? algebra.values.sum(a, b) : algebra.values.extremum(a, b, greatest);
      if (!adds && algebra.values.choice(a, b))
        algebra.decide(warp, spelling, made == a ? Decision::first : Decision::other);
      algebra.write(out.tags + i, made, type);
    }
  } else if (!algebra.take_bits(old.tags, size) || !algebra.take_bits(with.tags, size)) {
    algebra.spoil(&warp, out.tags, size,
                  std::string(spelling.text) + " computes with the bits of a value");
  }
  algebra.memory.store(at, out.tags, size);
}

}  // namespace

bool update_memory(Warp& warp, const Op& op, const Lift& lift) {
  const std::size_t size = element_bytes(lift);
  const auto count = static_cast<std::size_t>(isa::written_elements(*lift.spelling));
  Access access;
  if (!resolve(warp, op, static_cast<std::uint32_t>(size * count), access)) return false;
  Algebra& algebra = algebra_of(warp);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    for (std::size_t k = 0; k < count && k < lift.s.size(); ++k) {
      std::byte* const at = access.at[lane] + k * size;
      const LaneBytes with(warp, lift.s[k], lane);
      LaneBytes old;
      algebra.memory.load(at, old.tags, size);
      if (!lift.d.empty()) algebra.load(old.tags, size, lift.spelling->type(0), true);
      update(warp, *lift.spelling, at, with, size);
      if (k < lift.d.size() && !absent(lift.d[k])) old.write(warp, lift.d[k], lane);
    }
  }
  return true;
}

// ---- ldmatrix, stmatrix, movmatrix.

namespace {

// The rows' places, from the lanes that have their addresses.
bool find_rows(Warp& warp, const Op& op, int rows, std::uint32_t bytes, Access& access) {
  const std::uint32_t whole = warp.mask;
  warp.mask = rows >= 32 ? all_lanes : (1u << rows) - 1;
  const bool good = resolve(warp, op, bytes, access);
  warp.mask = whole;
  return good;
}

}  // namespace

bool load_rows(Warp& warp, const Op& op, const Lift&) {
  if (!warp.gather(all_lanes)) return false;
  const MatrixOperation& m = warp.program->matrices[op.list];
  const isa::Fragment fragment = isa::fragment(m.form, Operand::d);
  const std::size_t size = static_cast<std::size_t>(fragment.container_bits) / 8;
  Access access;
  if (!find_rows(warp, op, m.form.shape.m * fragment.matrices, m.row_bytes(), access)) return false;
  Algebra& algebra = algebra_of(warp);
  const bool expands = m.form.a != Type::none && bits(m.form.a) < 8;
  std::vector<LaneBytes> out(m.d.size() * 32);
  const RowElement* place = m.places.data();
  for (int i = 0; i < fragment.elements(); ++i)
    for (int lane = 0; lane < 32; ++lane, ++place) {
      const std::size_t reg = static_cast<std::size_t>(i / fragment.per_register);
      Tag* const tags = out[32 * reg + static_cast<std::size_t>(lane)].tags +
                        static_cast<std::size_t>(i % fragment.per_register) * size;
      if (!expands) {
        algebra.memory.load(access.at[place->row] + place->col * size, tags, size);
        continue;
      }
      Tag row[16] = {};
      algebra.memory.load(access.at[place->row], row, m.row_bytes());
      if (!algebra.take_bits(row, m.row_bytes()))
        algebra.spoil(&warp, tags, size, "unpacks parts of values");
    }
  for (std::size_t r = 0; r < m.d.size(); ++r)
    each_lane(warp.mask, [&](int lane) {
      out[32 * r + static_cast<std::size_t>(lane)].write(warp, {m.d[r], 4}, lane);
    });
  return true;
}

bool store_rows(Warp& warp, const Op& op, const Lift&) {
  if (!warp.gather(all_lanes)) return false;
  const MatrixOperation& m = warp.program->matrices[op.list];
  const isa::Fragment fragment = isa::fragment(m.form, Operand::d);
  const std::size_t size = static_cast<std::size_t>(fragment.container_bits) / 8;
  Access access;
  if (!find_rows(warp, op, 8 * fragment.matrices, m.row_bytes(), access)) return false;
  TagMemory& memory = algebra_of(warp).memory;
  for (int i = 0; i < fragment.elements(); ++i) {
    const LiftedRegister reg{m.c[static_cast<std::size_t>(i / fragment.per_register)], 4};
    const std::size_t at = static_cast<std::size_t>(i % fragment.per_register) * size;
    const RowElement* places = m.places.data() + 32 * i;
    each_lane(warp.mask, [&](int lane) {
      memory.store(access.at[places[lane].row] + places[lane].col * size,
                   LaneBytes(warp, reg, lane).tags + at, size);
    });
  }
  return true;
}

bool transpose_matrix(Warp& warp, const Op& op, const Lift& lift) {
  if (!warp.gather(all_lanes)) return false;
  const isa::Form& form = warp.program->matrices[op.list].form;
  LaneBytes before[32], out[32];
  for (int lane = 0; lane < 32; ++lane) before[lane] = LaneBytes(warp, {op.a, 4}, lane);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 2; ++i) {
      const isa::Coord at = isa::coord(form, Operand::d, lane, i);
      std::copy_n(before[4 * at.row + at.col / 2].tags + at.col % 2 * 2, 2, out[lane].tags + 2 * i);
    }
  each_lane(warp.mask, [&](int lane) { out[lane].write(warp, {op.d, 4}, lane); });
  return lift.inner != nullptr;
}

}  // namespace tartan::TARTAN_ABI::emulator
