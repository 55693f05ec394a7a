// SPDX-License-Identifier: Apache-2.0
// Bulk copies and reductions (cp.async.bulk, cp.reduce.async.bulk; PTX ISA 9.7.9.27), st.async and
// red.async: what moves bytes and then completes transactions of an mbarrier. All of it is done
// when it is issued.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/emulator/instructions.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/mbarrier.h"
#include "runtime/emulator/memory.h"

namespace tartan::emulator {
namespace {

constexpr std::uint32_t unit = 16;  // addresses and sizes of bulk copies are multiples of it
constexpr std::uint32_t most_bytes = 1u << 20;

void no_operation(Warp&, const Op&) {}

// An address operand in Program::slots: slot, offset (two words), width, window.
constexpr std::uint32_t address_words = 5;

std::uint32_t append_address(Decoder& d, const ptx::Operand& operand, Window window) {
  Op op{};
  d.address(op, operand, window);
  const std::uint32_t words[address_words] = {op.a, static_cast<std::uint32_t>(op.value),
                                              static_cast<std::uint32_t>(op.value >> 32), op.wide,
                                              static_cast<std::uint32_t>(op.window)};
  return d.append(words);
}

Op address_at(Warp& warp, std::uint32_t list) {
  const std::uint32_t* words = warp.program->slots.data() + list;
  Op op{};
  op.a = words[0];
  op.value = words[1] | std::uint64_t{words[2]} << 32;
  op.wide = words[3];
  op.window = static_cast<Window>(words[4]);
  return op;
}

// Host addresses of `bytes[lane]` bytes from the address on: the first and the last unit must exist
// and be of one piece.
bool resolve_range(Warp& warp, std::uint32_t list, const std::uint32_t* bytes, Access& access) {
  const Op op = address_at(warp, list);
  std::uint64_t at[32], last[32] = {};
  addresses(warp, op, at);
  Access end;
  if (!resolve(warp, op.window, at, unit, access)) return false;
  each_lane(warp.mask, [&](int i) { last[i] = at[i] + bytes[i] - unit; });
  if (!resolve(warp, op.window, last, unit, end)) return false;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (end.at[lane] - access.at[lane] == static_cast<std::ptrdiff_t>(bytes[lane] - unit)) continue;
    warp.fail("memory-fault"_rule,
              fmt::format("a bulk copy of {} bytes at 0x{:x} runs from one buffer into another",
                          bytes[lane], at[lane]),
              lane, at[lane]);
    return false;
  }
  return true;
}

// ---- Reductions: element by element, in order.

using Reduction = void (*)(std::byte* to, const std::byte* from, std::uint32_t bytes);

template <typename T, typename F>
void reduce(std::byte* to, const std::byte* from, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to + i, sizeof(T));
    std::memcpy(&b, from + i, sizeof(T));
    a = F::apply(a, b);
    std::memcpy(to + i, &a, sizeof(T));
  }
}

template <typename T>
constexpr bool is_small = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;

struct Add {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (is_small<T>) return from_float<T>(to_float(a) + to_float(b));
    else if constexpr (std::is_same_v<T, float>) return canonical_nan(a + b);
    else return a + b;
  }
};
template <bool Max>
struct Extremum {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (is_small<T>) {
      const float x = to_float(a), y = to_float(b);
      if (x != x) return y != y ? T{nan_16} : b;
      if (y != y) return a;
      if (x == y) return (a.bits >> 15 != 0) == Max ? b : a;
      return (x < y) == Max ? b : a;
    } else {
      return Max ? std::max(a, b) : std::min(a, b);
    }
  }
};
struct And {
  template <typename T>
  static T apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <typename T>
  static T apply(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <typename T>
  static T apply(T a, T b) {
    return a ^ b;
  }
};
struct Increment {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) { return a >= b ? 0 : a + 1; }
};
struct Decrement {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    return a == 0 || a > b ? b : a - 1;
  }
};

struct ReductionRow {
  std::string_view name;
  Type type;
  Reduction apply;
};
constexpr ReductionRow reductions[] = {
    {"add", Type::u32, reduce<std::uint32_t, Add>},
    {"add", Type::s32, reduce<std::uint32_t, Add>},
    {"add", Type::u64, reduce<std::uint64_t, Add>},
    {"add", Type::s64, reduce<std::uint64_t, Add>},
    {"add", Type::f32, reduce<float, Add>},
    {"add", Type::f64, reduce<double, Add>},
    {"add", Type::f16, reduce<Half, Add>},
    {"add", Type::bf16, reduce<Bfloat, Add>},
    {"min", Type::u32, reduce<std::uint32_t, Extremum<false>>},
    {"min", Type::s32, reduce<std::int32_t, Extremum<false>>},
    {"min", Type::u64, reduce<std::uint64_t, Extremum<false>>},
    {"min", Type::s64, reduce<std::int64_t, Extremum<false>>},
    {"min", Type::f16, reduce<Half, Extremum<false>>},
    {"min", Type::bf16, reduce<Bfloat, Extremum<false>>},
    {"max", Type::u32, reduce<std::uint32_t, Extremum<true>>},
    {"max", Type::s32, reduce<std::int32_t, Extremum<true>>},
    {"max", Type::u64, reduce<std::uint64_t, Extremum<true>>},
    {"max", Type::s64, reduce<std::int64_t, Extremum<true>>},
    {"max", Type::f16, reduce<Half, Extremum<true>>},
    {"max", Type::bf16, reduce<Bfloat, Extremum<true>>},
    {"and", Type::b32, reduce<std::uint32_t, And>},
    {"and", Type::b64, reduce<std::uint64_t, And>},
    {"or", Type::b32, reduce<std::uint32_t, Or>},
    {"or", Type::b64, reduce<std::uint64_t, Or>},
    {"xor", Type::b32, reduce<std::uint32_t, Xor>},
    {"xor", Type::b64, reduce<std::uint64_t, Xor>},
    {"inc", Type::u32, reduce<std::uint32_t, Increment>},
    {"dec", Type::u32, reduce<std::uint32_t, Decrement>},
};

Reduction find_reduction(std::string_view name, Type type) {
  for (const ReductionRow& row : reductions)
    if (row.name == name && row.type == type) return row.apply;
  return nullptr;
}

std::string_view reduction_name(Decoder& d) {
  return d.spelling.any({"add", "min", "max", "and", "or", "xor", "inc", "dec"});
}

// Reductions of blocks that run at the same time take turns.
void move_bytes(std::byte* to, const std::byte* from, std::uint32_t bytes, Reduction reduction) {
  static std::mutex mutex;
  if (!reduction) return void(std::memmove(to, from, bytes));
  const std::scoped_lock lock(mutex);
  reduction(to, from, bytes);
}

// ---- Bulk.

// op.list: destination, source and (op.flags) mbarrier addresses; op.a: bytes; op.value: a
// Reduction.
void copy_bulk(Warp& warp, const Op& op) {
  const auto* bytes = lanes<std::uint32_t>(warp, op.a);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (bytes[lane] % unit != 0 || bytes[lane] > most_bytes)
      return warp.fail("misaligned-access"_rule,
                       fmt::format("a bulk copy of {} bytes: multiples of 16 below 2^20 are copied",
                                   bytes[lane]),
                       lane);
  }
  const std::uint32_t whole = warp.mask;
  const auto reduction = reinterpret_cast<Reduction>(static_cast<std::uintptr_t>(op.value));
  Access to, from, barrier;
  warp.mask = lanes_where(whole, [=](int i) { return bytes[i] != 0; });
  bool good = !warp.mask || (resolve_range(warp, op.list, bytes, to) &&
                             resolve_range(warp, op.list + address_words, bytes, from));
  const std::uint32_t moving = warp.mask;
  warp.mask = whole;
  if (good && op.flags)
    good = resolve(warp, address_at(warp, op.list + 2 * address_words), 8, barrier);
  if (!good) return;
  for (std::uint32_t m = whole; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (moving >> lane & 1) move_bytes(to.at[lane], from.at[lane], bytes[lane], reduction);
    if (op.flags) Mbarrier::complete(barrier.at[lane], bytes[lane]);
  }
}

// The spaces of [destination], [source], in the spelling's order.
struct Spaces {
  Window to = Window::generic, from = Window::generic;
};

std::optional<Spaces> read_spaces(Decoder& d) {
  std::vector<Window> found;
  for (std::string_view q : d.spelling.qualifiers()) {
    if (q == "global") found.push_back(Window::global);
    else if (q == "shared::cta" || q == "shared::cluster") found.push_back(Window::shared);
  }
  for (std::string_view q : {"global", "shared::cta", "shared::cluster"}) d.spelling.has(q);
  if (found.size() != 2) return std::nullopt;
  return Spaces{found[0], found[1]};
}

void decode_bulk(Decoder& d, Reduction reduction) {
  const auto spaces = read_spaces(d);
  if (!spaces) return d.unsupported("two state spaces are expected");
  if (d.spelling.has("multicast::cluster"))
    return d.unsupported("clusters of several blocks are not known");
  if (d.spelling.has("cp_mask")) return d.unsupported("byte masks are not known");
  d.spelling.has("level::cache_hint");
  const bool barrier = d.spelling.has("mbarrier::complete_tx::bytes");
  if (!barrier && !d.spelling.has("bulk_group"))
    return d.unsupported("it ends with .bulk_group or .mbarrier::complete_tx::bytes");
  const std::size_t operands = barrier ? 4 : 3;
  if (!d.expect_operands(operands, operands + 1)) return;
  const std::uint32_t list = append_address(d, d.operand(0), spaces->to);
  append_address(d, d.operand(1), spaces->from);
  const std::uint32_t bytes = d.source(2, Type::u32);
  if (barrier) append_address(d, d.operand(3), Window::shared);
  Op& op = d.emit(copy_bulk);
  op.list = list;
  op.a = bytes;
  op.flags = barrier;
  op.value = reinterpret_cast<std::uintptr_t>(reduction);
}

void decode_bulk_reduction(Decoder& d) {
  d.spelling.has("async");
  if (!d.spelling.has("bulk")) return d.unsupported();
  if (d.spelling.has("tensor")) return d.unsupported("tensor maps are not known");
  d.spelling.has("noftz");
  const std::string_view name = reduction_name(d);
  const Reduction reduction = find_reduction(name, d.spelling.type());
  if (!reduction) return d.unsupported();
  decode_bulk(d, reduction);
}

// ---- st.async, red.async: a value to shared memory, and its bytes to an mbarrier.

// op.list: the address, the mbarrier's; then op.count slots of op.flags bytes each.
void store_async(Warp& warp, const Op& op) {
  const std::uint32_t size = op.flags;
  const Op where = address_at(warp, op.list);
  Access to, barrier;
  if (!resolve(warp, where, size * op.count, to) ||
      !resolve(warp, address_at(warp, op.list + address_words), 8, barrier))
    return;
  const auto reduction = reinterpret_cast<Reduction>(static_cast<std::uintptr_t>(op.value));
  const std::uint32_t* slots = warp.program->slots.data() + op.list + 2 * address_words;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    for (std::uint32_t k = 0; k < op.count; ++k) {
      std::byte value[8];
      if (size == 8) std::memcpy(value, &lanes<std::uint64_t>(warp, slots[k])[lane], 8);
      else std::memcpy(value, &lanes<std::uint32_t>(warp, slots[k])[lane], 4);
      move_bytes(to.at[lane] + k * size, value, size, reduction);
    }
    Mbarrier::complete(barrier.at[lane], size * op.count);
  }
}

void decode_to_barrier(Decoder& d, Reduction reduction, Type type, int count) {
  for (std::string_view q : {"async", "weak", "relaxed", "cluster", "shared::cluster"})
    d.spelling.has(q);
  if (!d.spelling.has("mbarrier::complete_tx::bytes"))
    return d.unsupported("it ends with .mbarrier::complete_tx::bytes");
  if (bits(type) != 32 && bits(type) != 64) return d.unsupported();
  if (!d.expect_operands(3, 3)) return;
  const ptx::Operand& data = d.operand(1);
  const auto elements =
      data.kind == ptx::OperandKind::Vector ? d.children(data) : std::span(&data, 1);
  if (static_cast<int>(elements.size()) != count)
    return d.error("register-count"_rule, fmt::format("{} takes {} values, got {}",
                                                      d.spelling.text(), count, elements.size()));
  std::vector<std::uint32_t> slots;
  for (const ptx::Operand& element : elements) slots.push_back(d.source(element, type));
  const std::uint32_t list = append_address(d, d.operand(0), Window::shared);
  append_address(d, d.operand(2), Window::shared);
  d.append(slots);
  Op& op = d.emit(store_async);
  op.list = list;
  op.count = static_cast<std::uint8_t>(count);
  op.flags = static_cast<std::uint8_t>(bits(type) / 8);
  op.value = reinterpret_cast<std::uintptr_t>(reduction);
}

}  // namespace

void decode_bulk_copy(Decoder& d) {
  if (d.spelling.name() == "cp" && d.spelling.has("reduce")) return decode_bulk_reduction(d);
  if (d.spelling.has("tensor")) return d.unsupported("tensor maps are not known");
  const bool wait = d.spelling.has("wait_group");
  if (wait || d.spelling.has("commit_group")) {
    d.spelling.has("read");
    if (d.expect_operands(wait ? 1 : 0, wait ? 1 : 0)) d.emit(no_operation);
    return;
  }
  if (d.spelling.has("prefetch")) {
    d.spelling.ignore_all();
    return void(d.emit(no_operation));
  }
  decode_bulk(d, nullptr);
}

void decode_store_async(Decoder& d) {
  const std::string_view vector = d.spelling.any({"v2", "v4"});
  decode_to_barrier(d, nullptr, d.spelling.type(), vector.empty() ? 1 : vector[1] - '0');
}

void decode_reduction_async(Decoder& d) {
  const std::string_view name = reduction_name(d);
  const Type type = d.spelling.type();
  const Reduction reduction = find_reduction(name, type);
  if (!reduction) return d.unsupported();
  decode_to_barrier(d, reduction, type, 1);
}

}  // namespace tartan::emulator
