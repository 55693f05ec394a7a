// SPDX-License-Identifier: Apache-2.0
// ld, st, ldu, prefetch (PTX ISA 9.0, 9.7.9): one resolution of the whole access, then element by
// element.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Resolves an op's access of `bytes` bytes a lane and calls body(place), place(lane) being a lane's
// host address. Neighbouring lanes in neighbouring places are common enough to be told apart: the
// compiler makes vector code of them.
template <typename Body>
inline void access_lanes(Warp& warp, const Op& op, std::uint32_t bytes, Body&& body) {
  if (const EvenAccess even = resolve_evenly(warp, op, bytes); even.first && even.step) {
    std::byte* const first = even.first;
    return body([=](int lane) { return first + static_cast<std::uint32_t>(lane) * bytes; });
  }
  Access access;
  if (resolve(warp, op, bytes, access)) body([&](int lane) { return access.at[lane]; });
}

template <typename T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// M: the element in memory, with its sign; R: the raw register. op.list: op.count registers.
template <typename M, typename R, std::uint32_t RegisterMask>
void load(Warp& warp, const Op& op) {
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  const auto convert = [](M value) {
    const auto raw = static_cast<R>(value);  // NOLINT(bugprone-signed-char-misuse): sign-extends
    return RegisterMask == 0xFFFFFFFF ? raw : raw & RegisterMask;
  };
  if (op.count == 1) {
    auto* d = lanes<R>(warp, slots[0]);
    if (const EvenAccess even = resolve_evenly(warp, op, sizeof(M)); even.first) {
      if (even.step == 0) std::fill_n(d, 32, convert(read<M>(even.first)));
      else
        for (int i = 0; i < 32; ++i) d[i] = convert(read<M>(even.first + i * sizeof(M)));
      return;
    }
    Access access;
    if (resolve(warp, op, sizeof(M), access))
      each_lane(warp.mask, [&](int i) { d[i] = convert(read<M>(access.at[i])); });
    return;
  }
  Access access;
  if (!resolve(warp, op, static_cast<std::uint32_t>(sizeof(M)) * op.count, access)) return;
  for (int k = 0; k < op.count; ++k) {
    auto* d = lanes<R>(warp, slots[k]);
    each_lane(warp.mask, [&](int i) { d[i] = convert(read<M>(access.at[i] + k * sizeof(M))); });
  }
}

template <typename M, typename R>
void store(Warp& warp, const Op& op) {
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  const auto write = [](std::byte* to, R raw) {
    const auto value = static_cast<M>(raw);
    std::memcpy(to, &value, sizeof value);
  };
  if (op.count == 1) {
    const auto* a = lanes<R>(warp, slots[0]);
    if (const EvenAccess even = resolve_evenly(warp, op, sizeof(M)); even.first && even.step) {
      for (int i = 0; i < 32; ++i) write(even.first + i * sizeof(M), a[i]);
      return;
    }
  }
  Access access;
  if (!resolve(warp, op, static_cast<std::uint32_t>(sizeof(M)) * op.count, access)) return;
  for (int k = 0; k < op.count; ++k) {
    const auto* a = lanes<R>(warp, slots[k]);
    each_lane(warp.mask, [&](int i) { write(access.at[i] + k * sizeof(M), a[i]); });
  }
}

constexpr std::uint32_t sink = ~std::uint32_t{0};  // `_` in a vector: nothing is loaded, or stored

// A vector with `_` in it: memory keeps what stands there. R is as wide as its elements.
template <typename R>
void store_some(Warp& warp, const Op& op) {
  Access access;
  if (!resolve(warp, op, static_cast<std::uint32_t>(sizeof(R)) * op.count, access)) return;
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  for (int k = 0; k < op.count; ++k) {
    if (slots[k] == sink) continue;
    const auto* a = lanes<R>(warp, slots[k]);
    each_lane(warp.mask,
              [&](int i) { std::memcpy(access.at[i] + k * sizeof(R), &a[i], sizeof(R)); });
  }
}

// Such vectors are of 256 bits.
Handler skipping_store(Type type) {
  return bits(type) == 32   ? store_some<std::uint32_t>
         : bits(type) == 64 ? store_some<std::uint64_t>
                            : nullptr;
}

// Vectors of two and four words, four lanes at a time: rows in memory, columns in registers.
using Four = std::uint32_t __attribute__((vector_size(16)));

inline void transpose(Four (&x)[4]) {
  const Four a = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5),
             b = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5),
             c = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7),
             d = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
  x[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  x[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  x[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  x[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

template <int Count>
void load_words(Warp& warp, const Op& op) {
  if (warp.mask != all_lanes) return load<std::uint32_t, std::uint32_t, 0xFFFFFFFF>(warp, op);
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  std::uint32_t* to[Count];
  for (int k = 0; k < Count; ++k) to[k] = lanes<std::uint32_t>(warp, slots[k]);
  access_lanes(warp, op, 4 * Count, [&](auto place) {
    for (int lane = 0; lane < 32; lane += 4) {
      Four x[4] = {};
      for (int i = 0; i < 4; ++i) std::memcpy(&x[i], place(lane + i), 4 * Count);
      transpose(x);
      for (int k = 0; k < Count; ++k) std::memcpy(to[k] + lane, &x[k], 16);
    }
  });
}

template <int Count>
void store_words(Warp& warp, const Op& op) {
  if (warp.mask != all_lanes) return store<std::uint32_t, std::uint32_t>(warp, op);
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  const std::uint32_t* from[Count];
  for (int k = 0; k < Count; ++k) from[k] = lanes<std::uint32_t>(warp, slots[k]);
  access_lanes(warp, op, 4 * Count, [&](auto place) {
    for (int lane = 0; lane < 32; lane += 4) {
      Four x[4] = {};
      for (int k = 0; k < Count; ++k) std::memcpy(&x[k], from[k] + lane, 16);
      transpose(x);
      for (int i = 0; i < 4; ++i) std::memcpy(place(lane + i), &x[i], 4 * Count);
    }
  });
}

void load_128(Warp& warp, const Op& op) {
  Access access;
  if (!resolve(warp, op, 16u * op.count, access)) return;
  for (int k = 0; k < op.count; ++k) {
    auto* d =
        lanes<std::uint64_t>(warp, warp.program->slots[op.list + static_cast<std::uint32_t>(k)]);
    each_lane(warp.mask, [&](int i) {
      std::memcpy(&d[i], access.at[i] + 16 * k, 8);
      std::memcpy(&d[32 + i], access.at[i] + 16 * k + 8, 8);
    });
  }
}

void store_128(Warp& warp, const Op& op) {
  Access access;
  if (!resolve(warp, op, 16u * op.count, access)) return;
  for (int k = 0; k < op.count; ++k) {
    const auto* a =
        lanes<std::uint64_t>(warp, warp.program->slots[op.list + static_cast<std::uint32_t>(k)]);
    each_lane(warp.mask, [&](int i) {
      std::memcpy(access.at[i] + 16 * k, &a[i], 8);
      std::memcpy(access.at[i] + 16 * k + 8, &a[32 + i], 8);
    });
  }
}

template <typename M>
Handler load_into(int register_bits) {
  switch (register_bits) {
    case 16: return sizeof(M) <= 2 ? load<M, std::uint32_t, 0xFFFF> : nullptr;
    case 8: return sizeof(M) <= 1 ? load<M, std::uint32_t, 0xFF> : nullptr;
    case 32: return load<M, std::uint32_t, 0xFFFFFFFF>;
    case 64: return load<M, std::uint64_t, 0xFFFFFFFF>;
    default: return nullptr;
  }
}

Handler load_handler(Type type, int register_bits, int count) {
  if (bits(type) == 32 && register_bits == 32 && (count == 2 || count == 4))
    return count == 2 ? load_words<2> : load_words<4>;
  const bool is_signed = info(type).is_signed;
  switch (bits(type)) {
    case 8:
      return is_signed ? load_into<std::int8_t>(register_bits)
                       : load_into<std::uint8_t>(register_bits);
    case 16:
      return is_signed ? load_into<std::int16_t>(register_bits)
                       : load_into<std::uint16_t>(register_bits);
    case 32:
      return is_signed ? load_into<std::int32_t>(register_bits)
                       : load_into<std::uint32_t>(register_bits);
    case 64: return register_bits == 64 ? load<std::uint64_t, std::uint64_t, 0xFFFFFFFF> : nullptr;
    case 128: return register_bits == 128 ? load_128 : nullptr;
    default: return nullptr;
  }
}

template <typename M>
Handler store_from(int register_bits) {
  return register_bits == 64 ? store<M, std::uint64_t> : store<M, std::uint32_t>;
}

Handler store_handler(Type type, int register_bits, int count) {
  if (bits(type) == 32 && register_bits == 32 && (count == 2 || count == 4))
    return count == 2 ? store_words<2> : store_words<4>;
  switch (bits(type)) {
    case 8: return store_from<std::uint8_t>(register_bits);
    case 16: return store_from<std::uint16_t>(register_bits);
    case 32: return store_from<std::uint32_t>(register_bits);
    case 64: return register_bits == 64 ? store<std::uint64_t, std::uint64_t> : nullptr;
    case 128: return store_128;
    default: return nullptr;
  }
}

// The access's type follows the vector and the hints: the last type of the spelling.
struct Form {
  Type type = Type::none;
  Window window = Window::generic;
  int count = 1;
};

std::optional<Form> read_form(Decoder& d) {
  d.spelling.ignore(scopes_and_orders);
  d.spelling.ignore(cache_hints);
  d.spelling.ignore("ca cg cs cv lu wb wt nc proxy::readonly unified");
  Form form{
      .type = d.spelling.type(), .window = memory_window(d), .count = d.spelling.vector_length()};
  if (d.spelling.types() != 1 || form.type == Type::pred) {
    d.unsupported();
    return std::nullopt;
  }
  return form;
}

bool is_vector(const ptx::Operand& operand) { return operand.kind == ptx::OperandKind::Vector; }

// Emits the access to `data`'s registers. A register may be wider than the element; all of a vector
// are equally wide.
template <typename Registers, typename HandlerOf>
void emit_access(Decoder& d, const Form& form, const ptx::Operand& where, const ptx::Operand& data,
                 Registers&& register_of, HandlerOf&& handler_of) {
  const auto elements = is_vector(data) ? d.children(data) : std::span(&data, 1);
  if (static_cast<int>(elements.size()) != form.count)
    return d.error("register-count"_rule,
                   std::string(d.spelling.text()) +
                       " requires a vector with as many registers as its qualifier says");
  std::vector<std::uint32_t> slots;
  int width = 0;
  for (const ptx::Operand& element : elements) {
    const RegisterRef ref = register_of(element);
    if (ref.slot == sink) {
      slots.push_back(sink);
      continue;
    }
    const int register_bits = bits(ref.type);
    if (width && width != register_bits)
      return d.unsupported("registers of different widths in one vector");
    width = register_bits;
    slots.push_back(ref.slot);
  }
  if (width == 0) width = std::max(bits(form.type), 32);
  const bool stores = d.spelling.opcode() != Opcode::ld && d.spelling.opcode() != Opcode::ldu,
             skips = std::ranges::count(slots, sink) > 0;
  for (std::uint32_t& slot : slots)
    if (slot == sink && !stores) slot = d.scratch(std::max(width, 32));
  if (d.failed()) return;
  const std::uint32_t list = d.append(slots);
  Op& op = d.emit(stores && skips ? skipping_store(form.type)
                                  : handler_of(form.type, width, form.count));
  op.list = list;
  op.count = static_cast<std::uint8_t>(form.count);
  op.writes = stores;
  op.flags = width == 64;
  d.address(op, where, form.window);
}

void decode_load(Decoder& d) {
  const auto form = read_form(d);
  if (!form || !d.expect_operands(2, 3)) return;
  emit_access(
      d, *form, d.operand(1), d.operand(0),
      [&](const ptx::Operand& operand) -> RegisterRef {
        if (operand.text == "_") return {sink, Type::none};
        const auto found = d.register_of(operand);
        if (!found) {
          d.error("undeclared-register"_rule,
                  std::string(operand.text) + " is not a declared register");
          return {};
        }
        return d.flexible(operand, form->type);
      },
      load_handler);
}

void decode_store(Decoder& d) {
  const auto form = read_form(d);
  if (!form || !d.expect_operands(2, 3)) return;
  emit_access(
      d, *form, d.operand(0), d.operand(1),
      [&](const ptx::Operand& operand) -> RegisterRef {
        if (is_vector(d.operand(1)) && operand.text == "_") return {sink, Type::none};
        return d.flexible(operand, form->type);
      },
      store_handler);
}

// st.async.release, to global memory, is an ordinary store that may be late: here it never is.
void decode_late(Decoder& d) {
  if (d.spelling.has("release")) decode_store(d);
  else decode_store_async(d);
}

void no_operation(Warp&, const Op&) {}

void decode_hint(Decoder& d) {
  d.spelling.ignore_all();
  d.emit(no_operation);
}

// createpolicy: a number that programs hand on and do not look into.
void give_policy(Warp& warp, const Op& op) {
  constexpr std::uint64_t policy = std::uint64_t{1} << 60;
  auto* d = lanes<std::uint64_t>(warp, op.d);
  each_lane(warp.mask, [=](int i) { d[i] = policy; });
}

void decode_policy(Decoder& d) {
  d.spelling.ignore_all();
  if (!d.expect_operands(1, 4)) return;
  const std::uint32_t to = d.destination(0, Type::b64);
  d.emit(give_policy).d = to;
}

}  // namespace

Window memory_window(Decoder& d) { return window_of(d.spelling.space(), d.in_kernel()); }

constexpr EmulatedRow load_store_rows[] = {
    {Opcode::ld, decode_load, Flow::Loads, ValueSources::None, Meaning::Loads, AccessKind::Loads,
     Idle::No, nothing},
    {Opcode::ldu, decode_load, Flow::Loads, ValueSources::None, Meaning::Loads, AccessKind::Loads,
     Idle::No, nothing},
    {Opcode::st, decode_store, Flow::Stores, ValueSources::None, Meaning::Stores,
     AccessKind::Stores, Idle::No, nothing},
    {Opcode::st_async, decode_late, Flow::Uses, ValueSources::None, Meaning::Bits, AccessKind::None,
     Idle::No, nothing},
    {Opcode::prefetch, decode_hint, Flow::Spreads, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::Silent, nothing},
    {Opcode::prefetchu, decode_hint, Flow::Spreads, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::Silent, nothing},
    {Opcode::cp_async_bulk_prefetch, decode_hint, Flow::ByHandler, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::Silent, nothing},
    {Opcode::cp_async_bulk_prefetch_tensor, decode_hint, Flow::ByHandler, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::Silent, nothing},
    {Opcode::applypriority, decode_hint, Flow::Spreads, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::Silent, nothing},
    {Opcode::discard, decode_hint, Flow::Spreads, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    computation(Opcode::createpolicy, decode_policy, Flow::Spreads, Meaning::Bits),
};
static_assert(are_rows_of(load_store_rows, topics::load_store));

}  // namespace tartan::TARTAN_ABI::emulator
