// SPDX-License-Identifier: Apache-2.0
// st.async and red.async, which complete transactions of an mbarrier, and st.bulk (PTX
// ISA 9.0, 9.7.9).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// ---- st.bulk: zeros.

// op.list: the address; op.a: how many bytes, in 32 bits if op.flags says so.
void fill_shared(Warp& warp, const Op& op) {
  const Op where = address_at(warp, op.list);
  std::uint64_t at[32];
  addresses(warp, where, at);
  constexpr std::uint64_t word = 8, most = std::uint64_t{1} << 24;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint64_t bytes =
        op.flags ? lanes<std::uint32_t>(warp, op.a)[lane] : lanes<std::uint64_t>(warp, op.a)[lane];
    if (bytes % word != 0 || bytes > most)
      return warp.fail(
          "misaligned-access"_rule,
          fmt::format("illegal size of st.bulk, {} bytes: expected a multiple of 8 up to 2^24",
                      bytes),
          lane);
    if (where.window == Window::generic && window_of(at[lane]) != Window::shared)
      return warp.fail(
          "memory-fault"_rule,
          fmt::format("st.bulk requires a shared memory address, found 0x{:x}", at[lane]), lane,
          at[lane]);
    if (bytes == 0) continue;
    std::byte* const to = resolve_range(warp, lane, where.window, at[lane], bytes, word);
    if (!to) return;
    std::memset(to, 0, bytes);
    note_lane_access(warp, lane, {where.window, at[lane], bytes}, true);
    tell(warp, &ValueEvents::fill, to, bytes);
  }
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
  struct Values {
    std::byte bytes[4][8];
  };
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    Values values;
    for (std::uint32_t k = 0; k < op.count; ++k) {
      std::byte* const value = values.bytes[k];
      if (size == 8) std::memcpy(value, &lanes<std::uint64_t>(warp, slots[k])[lane], 8);
      else std::memcpy(value, &lanes<std::uint32_t>(warp, slots[k])[lane], 4);
    }
    Move move = [&warp, count = op.count, values, size, slots, reduction, lane,
                 target = to.at[lane]] {
      for (std::uint32_t k = 0; k < count; ++k) {
        const StoredBytes stored{target + k * size, values.bytes[k], size, reduction};
        tell(warp, &ValueEvents::store_register, lane, slots[k], stored);
        move_bytes(stored.to, stored.from, size, reduction);
      }
    };
    const auto strong = reduction ? std::optional(Scope::cluster) : std::nullopt;
    if (!complete_transactions(
            warp, lane, barrier.at[lane], size * op.count,
            {.at = to.at[lane], .room = size * op.count, .strong = strong, .generic = true},
            std::move(move)))
      return;
  }
}

void decode_to_barrier(Decoder& d, Reduction reduction, Type type, int count) {
  d.spelling.ignore("weak relaxed cluster shared::cluster");
  // What the assembler makes of st.async.shared::cta completes at the mbarrier without saying so.
  const bool here = !reduction && d.spelling.has("shared shared::cta");
  if (!d.spelling.has("mbarrier::complete_tx::bytes") && !here)
    return d.unsupported("expected .mbarrier::complete_tx::bytes at the end");
  const bool wide = !reduction && type == Type::b128;
  if (!wide && bits(type) != 32 && bits(type) != 64) return d.unsupported();
  if (!d.expect_operands(3, 3)) return;
  const ptx::Operand& data = d.operand(1);
  const auto elements =
      data.kind == ptx::OperandKind::Vector ? d.children(data) : std::span(&data, 1);
  if (static_cast<int>(elements.size()) != count)
    return d.error("register-count"_rule, fmt::format("{} expects {} values, found {}",
                                                      d.spelling.text(), count, elements.size()));
  std::vector<std::uint32_t> slots;
  for (const ptx::Operand& element : elements) slots.push_back(d.source(element, type));
  constexpr std::uint32_t half = 32 * 8;  // behind the lower halves of all lanes are the upper ones
  if (wide) slots.push_back(slots[0] + half);
  const std::uint32_t list = append_address(d, d.operand(0), Window::cluster);
  append_address(d, d.operand(2), Window::cluster);
  d.append(slots);
  Op& op = d.emit(store_async);
  op.list = list;
  op.count = static_cast<std::uint8_t>(slots.size());
  op.flags = static_cast<std::uint8_t>(wide ? 8 : bits(type) / 8);
  op.value = reinterpret_cast<std::uintptr_t>(reduction);
}

}  // namespace

void decode_store_bulk(Decoder& d) {
  d.spelling.ignore("weak");
  const Window window = d.spelling.has("shared::cta") ? Window::shared : Window::generic;
  if (!d.expect_operands(3, 3)) return;
  if (d.integer(d.operand(2)).value_or(1) != 0)
    return d.unsupported("st.bulk stores zeros only: expected the value 0");
  const auto size = d.register_of(d.operand(1));
  const bool narrow = size && bits(size->type) == 32;
  const std::uint32_t list = append_address(d, d.operand(0), window),
                      bytes = d.source(1, narrow ? size->type : Type::u64);
  Op& op = d.emit(fill_shared);
  op.list = list;
  op.a = bytes;
  op.flags = narrow;
}

void decode_store_async(Decoder& d) {
  decode_to_barrier(d, nullptr, d.spelling.type(), d.spelling.vector_length());
}

void decode_reduction_async(Decoder& d) {
  const std::string_view name = reduction_name(d);
  const Type type = d.spelling.type();
  const Reduction reduction = find_reduction(name, type);
  if (!reduction) return d.unsupported();
  decode_to_barrier(d, reduction, type, 1);
}

}  // namespace tartan::TARTAN_ABI::emulator
