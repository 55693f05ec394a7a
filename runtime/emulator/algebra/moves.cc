// SPDX-License-Identifier: Apache-2.0
// Instructions that bring bytes elsewhere, and the tags with them.
#include <algorithm>

#include "runtime/emulator/algebra/steps.h"
#include "runtime/emulator/instructions/shuffle.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::Opcode;
using isa::operator""_q;

// The registers' bytes side by side; each has `bytes` of them.
void gather(const Warp& warp, const std::vector<LiftedRegister>& regs, int lane, std::size_t bytes,
            LaneBytes& out) {
  std::size_t at = 0;
  for (const LiftedRegister& reg : regs) {
    const LaneBytes part(warp, reg, lane);
    for (std::size_t i = 0; i < bytes && at < 16; ++i, ++at) {
      out.tags[at] = part.tags[i];
      out.bits[at] = part.bits[i];
    }
  }
}

void scatter(Warp& warp, const std::vector<LiftedRegister>& regs, int lane, std::size_t bytes,
             const LaneBytes& from) {
  std::size_t at = 0;
  for (const LiftedRegister& reg : regs) {
    LaneBytes part;
    for (std::size_t i = 0; i < bytes && at < 16; ++i, ++at) part.tags[i] = from.tags[at];
    if (reg.slot != ~0u) part.write(warp, reg, lane);
  }
}

}  // namespace

bool move_words(Warp& warp, const Op& op, const Lift& lift) {
  if (lift.spelling->type(0) == Type::pred) return true;
  if (!tagged(warp, lift.s)) {
    for (const LiftedRegister& reg : lift.d)
      if (reg.slot != ~0u && tagged(warp, reg)) return forget(warp, op, lift);
    return true;
  }
  const std::size_t whole = std::max<std::size_t>(bits(lift.spelling->type(0)) / 8, 1);
  each_lane(warp.mask, [&](int lane) {
    LaneBytes bytes;
    gather(warp, lift.s, lane, whole / lift.s.size(), bytes);
    scatter(warp, lift.d, lane, whole / lift.d.size(), bytes);
  });
  return true;
}

// Conversions of integers that keep the lower bytes and fill with zeros.
bool resize_word(Warp& warp, const Op& op, const Lift& lift) {
  if (!tagged(warp, lift.s)) return forget(warp, op, lift);
  const auto kept = static_cast<std::size_t>(
      std::min(bits(lift.spelling->type(0)), bits(lift.spelling->type(1))) / 8);
  each_lane(warp.mask, [&](int lane) {
    LaneBytes bytes(warp, lift.s[0], lane);
    std::fill(bytes.tags + kept, std::end(bytes.tags), 0);
    bytes.write(warp, lift.d[0], lane);
  });
  return true;
}

bool select(Warp& warp, const Op& op, const Lift& lift) {
  if (!tagged(warp, lift.s)) return forget(warp, op, lift);
  const std::uint32_t first = predicate(warp, lift.predicate);
  each_lane(warp.mask, [&](int lane) {
    LaneBytes(warp, lift.s[first >> lane & 1 ? 0 : 1], lane).write(warp, lift.d[0], lane);
  });
  return true;
}

bool select_by_sign(Warp& warp, const Op& op, const Lift& lift) {
  if (!tagged(warp, lift.s)) return forget(warp, op, lift);
  each_lane(warp.mask, [&](int lane) {
    const auto by = static_cast<std::uint32_t>(LaneBytes(warp, lift.s[2], lane).word());
    const bool zero = lift.spelling->type(1) == Type::f32 && by << 1 == 0;
    const bool first = !(by >> 31) || zero;
    if (tagged(warp, lift.s[2]))
      algebra_of(warp).decide(warp, *lift.spelling, first ? Decision::first : Decision::other);
    LaneBytes(warp, lift.s[first ? 0 : 1], lane).write(warp, lift.d[0], lane);
  });
  return true;
}

// setp: its predicate is by bits; which lanes it holds in, of those whose operands rest on inputs,
// is told to the algebra.
bool compare_words(Warp& warp, const Op& op, const Lift& lift) {
  if (!tagged(warp, lift.s)) return true;
  const std::uint32_t mask = warp.mask;
  std::uint32_t known = 0;
  Algebra& algebra = algebra_of(warp);
  for (std::uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    for (const LiftedRegister& reg : lift.s) {
      const LaneBytes bytes(warp, reg, lane);
      if (!depends(algebra.values, bytes, room_of(reg))) continue;
      known |= std::uint32_t{1} << lane;
      const Type type = lift.spelling->type(0);
      const auto size =
          std::min<std::size_t>(room_of(reg), static_cast<std::size_t>(bits(type)) / 8);
      algebra.compare(bytes.tags, size, type);
    }
  }
  lift.inner(warp, op);
  const std::uint32_t holds = predicate(warp, op.d) & mask;
  if (holds & known) algebra.decide(warp, *lift.spelling, Decision::first);
  if (~holds & known) algebra.decide(warp, *lift.spelling, Decision::other);
  return false;
}

bool shuffle_lanes(Warp& warp, const Op& op, const Lift& lift) {
  Shuffle mode = Shuffle::idx;
  if (lift.spelling->has("up"_q)) mode = Shuffle::up;
  if (lift.spelling->has("down"_q)) mode = Shuffle::down;
  if (lift.spelling->has("bfly"_q)) mode = Shuffle::bfly;
  std::uint32_t from[32];  // the registers that say so may be the result's
  const auto *b = lanes<std::uint32_t>(warp, op.b), *c = lanes<std::uint32_t>(warp, op.c);
  for (std::uint32_t i = 0; i < 32; ++i) from[i] = shuffle_source(mode, i, b[i], c[i]) & 31;
  lift.inner(warp, op);
  if (warp.leave) return false;
  if (!tagged(warp, lift.s[0])) return forget(warp, op, lift), false;
  LaneBytes before[32];
  for (int lane = 0; lane < 32; ++lane) before[lane] = LaneBytes(warp, lift.s[0], lane);
  each_lane(warp.mask, [&](int lane) { before[from[lane]].write(warp, lift.d[0], lane); });
  return false;
}

bool permute_bytes(Warp& warp, const Op& op, const Lift& lift) {
  if (!tagged(warp, lift.s)) return forget(warp, op, lift);
  constexpr isa::QualifierSet modes = "f4e b4e rc8 ecl ecr rc16";
  if (!(lift.spelling->words & modes).empty()) return compute_bits(warp, op, lift);
  Algebra& algebra = algebra_of(warp);
  each_lane(warp.mask, [&](int lane) {
    const LaneBytes low(warp, lift.s[0], lane), high(warp, lift.s[1], lane);
    const std::uint64_t selector = LaneBytes(warp, lift.s[2], lane).word();
    LaneBytes out;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint64_t nibble = selector >> 4 * i & 15, byte = nibble & 7;
      const Tag tag = byte < 4 ? low.tags[byte] : high.tags[byte - 4];
      if (!(nibble & 8)) out.tags[i] = tag;
      else if (tag && !algebra.take_bits(&tag, 1))
        algebra.spoil(&warp, out.tags + i, 1, "prmt spreads the sign of a value");
    }
    out.write(warp, lift.d[0], lane);
  });
  return true;
}

namespace {

// How far bytes move, in bits: byte i of the result is that at i - up of `from`, those outside are
// zeros. False: by bits, or with signs.
struct ByteShift {
  LaneBytes from;
  std::int64_t up = 0;
  std::size_t room = 4;
  bool whole = false;
};

ByteShift shift_of(Warp& warp, const Lift& lift, int lane) {
  const isa::Spelling& spelling = *lift.spelling;
  ByteShift out{.from = LaneBytes(warp, lift.s[0], lane), .room = room_of(lift.d[0])};
  const auto word = [&](std::size_t i) {
    return static_cast<std::uint32_t>(LaneBytes(warp, lift.s[i], lane).word());
  };
  const auto width = static_cast<std::uint32_t>(bits(spelling.type(0)));
  switch (spelling.opcode) {
    case Opcode::shl: out.up = std::min(word(1), width); break;
    case Opcode::shr: out.up = -static_cast<std::int64_t>(std::min(word(1), width)); break;
    case Opcode::shf: {  // of the pair {b, a}
      const LaneBytes high(warp, lift.s[1], lane);
      std::copy_n(high.tags, 4, out.from.tags + 4);
      const std::uint32_t by = spelling.has("wrap"_q) ? word(2) & 31 : std::min(word(2), 32u);
      out.up = spelling.has("l"_q) ? static_cast<std::int64_t>(by) - 32 : -std::int64_t{by};
      break;
    }
    case Opcode::bfe: {
      const std::uint32_t at = word(1) & 255, length = word(2) & 255;
      out.up = -static_cast<std::int64_t>(std::min(at, width));
      if (length % 8 || at % 8) return out;
      const std::size_t end = (at + length) / 8;
      for (std::size_t i = std::min<std::size_t>(end, 16); i < 16; ++i) out.from.tags[i] = 0;
      break;
    }
    default: return out;
  }
  const bool spreads = info(spelling.type(0)).is_signed && spelling.opcode != Opcode::shl;
  out.whole = out.up % 8 == 0 && !spreads;
  out.up /= 8;
  return out;
}

// bfi of whole bytes.
bool insert_bytes(Warp& warp, const Lift& lift, int lane) {
  const auto word = [&](std::size_t i) {
    return static_cast<std::uint32_t>(LaneBytes(warp, lift.s[i], lane).word()) & 255;
  };
  const std::uint32_t at = word(2), length = word(3);
  if (at % 8 || length % 8) return false;
  const LaneBytes from(warp, lift.s[0], lane);
  LaneBytes into(warp, lift.s[1], lane);
  const std::size_t room = room_of(lift.d[0]);
  for (std::size_t i = 0; i < length / 8 && at / 8 + i < room; ++i)
    into.tags[at / 8 + i] = from.tags[i];
  into.write(warp, lift.d[0], lane);
  return true;
}

}  // namespace

bool shift_bytes(Warp& warp, const Op& op, const Lift& lift) {
  if (!tagged(warp, lift.s)) return forget(warp, op, lift);
  const std::uint32_t all = warp.mask;
  for (std::uint32_t m = all; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    bool done = false;
    if (lift.spelling->opcode == Opcode::bfi) {
      done = insert_bytes(warp, lift, lane);
    } else if (const ByteShift shift = shift_of(warp, lift, lane); shift.whole) {
      LaneBytes out;
      for (std::size_t i = 0; i < shift.room; ++i) {
        const std::int64_t at = static_cast<std::int64_t>(i) - shift.up;
        if (at >= 0 && at < 16) out.tags[i] = shift.from.tags[at];
      }
      out.write(warp, lift.d[0], lane);
      done = true;
    }
    if (done) continue;
    warp.mask = std::uint32_t{1} << lane;
    compute_bits(warp, op, lift);
    warp.mask = all;
  }
  return true;
}

}  // namespace tartan::TARTAN_ABI::emulator
