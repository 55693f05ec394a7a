// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/bulk.h - what instructions share that move bytes and complete
// transactions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/machine/observers.h"
#include "runtime/emulator/machine/warp.h"

namespace tartan::TARTAN_ABI::emulator {

/// An address operand in Program::slots: slot, offset (two words), width, window.
inline constexpr std::uint32_t address_words = 5;
std::uint32_t append_address(Decoder& d, const ptx::Operand& operand, Window window);
/// The op whose address that is, for addresses() and resolve().
Op address_at(const Warp& warp, std::uint32_t list);

/// Host address of `bytes` bytes (not 0) from one lane's address on, both multiples of `unit`: the
/// first and the last unit must exist and be of one piece. Null after a finding.
std::byte* resolve_range(Warp& warp, int lane, Window window, std::uint64_t address,
                         std::uint64_t bytes, std::uint32_t unit);

/// Null for an unknown name. `flush`: subnormal f32 are zeros, in memory and in the result.
Reduction find_reduction(std::string_view name, Type type, bool flush = false);
/// The reduction that the spelling names; empty if none.
std::string_view reduction_name(Decoder& d);
/// What it does, and to which elements.
struct ReducedElement {
  std::string_view name;
  Type type = Type::none;
};
ReducedElement reduced_by(Reduction reduction);
/// A copy, or a reduction; `to` is a multiple of an element's size.
void move_bytes(std::byte* to, const std::byte* from, std::uint32_t bytes, Reduction reduction);

/// The spaces of [destination], [source], in the spelling's order.
struct Spaces {
  Window to = Window::generic, from = Window::generic;
};
std::optional<Spaces> read_spaces(Decoder& d);

/// Where a shared address lies in the block of rank `rank`, as an address of the cluster.
std::uint64_t in_block(std::uint64_t address, std::uint32_t rank);
/// Whether a multicast may go to the blocks in `mask`; if not, the warp is stopped with a finding.
bool check_multicast(Warp& warp, int lane, std::uint32_t mask);
/// The type of the operand that says to which blocks a copy goes; none if it is no multicast.
Type multicast_mask(Decoder& d);
/// The scope that the spelling names; that of the GPU if none, or a wider one.
Scope scope_named(Decoder& d);
inline constexpr std::uint64_t map_bytes = 128;  // of a tensor map
/// What an asynchronous operation does to memory, where it is not done when it is issued.
using Move = std::function<void()>;
/// Completes `bytes` of the mbarrier at `lane`'s address of the cluster, after `move`.
bool complete_transactions(Warp& warp, int lane, std::uint64_t mbarrier, std::uint32_t bytes,
                           const Filled& filled, Move move = {});
/// The same for an mbarrier in the host's memory.
bool complete_transactions(Warp& warp, int lane, std::byte* mbarrier, std::uint32_t bytes,
                           const Filled& filled, Move move = {});
/// Observers hear that a copy of a bulk group reads or writes there; `alike`: the lanes that issue
/// the same one.
bool note_group_copy(Warp& warp, int lane, const Stretch& where, bool writes,
                     std::optional<Scope> strong, std::uint32_t alike = 0);
/// That such a copy reads a tensor map.
bool note_group_map(Warp& warp, int lane, std::uint64_t map);
/// And of an ordinary access of one lane.
void note_lane_access(Warp& warp, int lane, const Stretch& where, bool writes);

/// st.bulk.
void decode_store_bulk(Decoder& d);

}  // namespace tartan::TARTAN_ABI::emulator
