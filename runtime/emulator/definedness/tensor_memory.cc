// SPDX-License-Identifier: Apache-2.0
// Undefined bits of tensor memory: nobody has written what an allocation gives, and of a cell that
// holds 16 bits no source says what is above them. A register of tcgen05.ld is undefined up to
// tcgen05.wait::ld.
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/emulator/definedness/definedness.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/matrix/tensor_shift.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using Place = UndefinedOrigin::Place;
constexpr std::uint32_t upper_half = 0xFFFF0000;
// Why an element is undefined, in marks that add up.
constexpr std::uint8_t defined = 0, unwritten = 1, by_shift = 2;

std::size_t cell_at(isa::TensorCell first, std::uint32_t place) {
  return TensorMemory::index(first.lane + static_cast<int>(place >> 16),
                             first.column + static_cast<int>(place & 0xFFFF));
}

std::uint64_t address_of(std::size_t cell) {
  return cell / TensorMemory::columns << 16 | cell % TensorMemory::columns;
}

}  // namespace

std::vector<std::uint32_t>& ClusterDefinedness::tensor(const Warp& warp) {
  return tensor_[warp.block->rank()];
}

std::uint32_t ClusterDefinedness::cell_origin(const Warp& warp, std::size_t cell) {
  const bool shifted = is_shifted(warp.block->rank(), cell);
  return launch_.reports.origin({.place = shifted ? Place::shifted : Place::tensor,
                                 .address = address_of(cell),
                                 .pc = warp.pc - 1});
}

void ClusterDefinedness::note_shifted(std::uint32_t rank, std::size_t cell, bool shifted) {
  if (shifted_.empty()) {
    if (!shifted) return;
    shifted_.assign(tensor_.size(),
                    std::vector<bool>(std::size_t{TensorMemory::lanes} * TensorMemory::columns));
  }
  shifted_[rank][cell] = shifted;
}

void ClusterDefinedness::gave_columns(Warp& warp, const TensorMemory::Allocation& given) {
  if (launch_.poisoned) return;
  for (int lane = 0; lane < TensorMemory::lanes; ++lane) {
    const std::size_t first = TensorMemory::index(lane, static_cast<int>(given.first));
    for (std::size_t cell = first; cell < first + given.count; ++cell) {
      tensor(warp)[cell] = ~0u;
      note_shifted(warp.block->rank(), cell, false);
    }
  }
}

// A read of the registers waits for the load by itself.
void ClusterDefinedness::load_tensor(Warp& warp, const TensorMove& move, isa::TensorCell first) {
  if (launch_.poisoned) return;
  const std::vector<std::uint32_t>& cells = tensor(warp);
  const auto per = static_cast<std::size_t>(move.access.per_register());
  RegisterShadow& bits = shadow(warp);
  std::array<std::uint32_t, 32> reduced{}, origins{};  // of any register of a lane
  const auto bring = [&](std::uint32_t slot, std::uint32_t lane, std::uint32_t undefined,
                         std::uint32_t origin) {
    bits.set(slot, 32, lane, undefined);
    bits.origin(slot, 32, lane) = origin;
  };
  for (std::size_t r = 0; r < move.registers.size(); ++r) {
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      std::uint32_t undefined = 0, origin = 0;
      for (std::size_t part = 0; part < per; ++part) {
        const std::size_t cell = cell_at(first, move.places[32 * (r * per + part) + lane]);
        const std::uint32_t found = per == 2 ? (cells[cell] & 0xFFFF) << 16 * part : cells[cell];
        undefined |= found;
        if (found) origin = cell_origin(warp, cell);
      }
      if (undefined) reduced[lane] = ~0u, origins[lane] = origin;
      bring(move.registers[r], lane, undefined, origin);
    }
    bits.settle(move.registers[r], 32);
  }
  if (move.reduced) {
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      bring(*move.reduced, lane, reduced[lane], origins[lane]);
    bits.settle(*move.reduced, 32);
  }
  settle(warp);
}

void ClusterDefinedness::store_tensor(Warp& warp, const TensorMove& move, isa::TensorCell first) {
  if (launch_.poisoned) return;
  std::vector<std::uint32_t>& cells = tensor(warp);
  const auto per = static_cast<std::size_t>(move.access.per_register());
  RegisterShadow& bits = shadow(warp);
  for (std::size_t r = 0; r < move.registers.size(); ++r)
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const auto found = static_cast<std::uint32_t>(
          bits.holds(move.registers[r])
              ? bits.get(move.registers[r], 32, static_cast<std::uint32_t>(lane))
              : 0);
      const std::uint32_t origin =
          found ? bits.origin(move.registers[r], 32, static_cast<std::uint32_t>(lane)) : 0;
      const bool shifted = origin && launch_.reports.of(origin).place == Place::shifted;
      for (std::size_t part = 0; part < per; ++part) {
        const std::size_t cell = cell_at(first, move.places[32 * (r * per + part) + lane]);
        cells[cell] = per == 2 ? (found >> 16 * part & 0xFFFF) | upper_half : found;
        note_shifted(warp.block->rank(), cell, shifted);
      }
    }
}

void ClusterDefinedness::copy_to_tensor(Warp& warp, const std::byte* from, isa::TensorCell to,
                                        std::uint64_t bytes, std::uint32_t rank) {
  if (launch_.poisoned) return;
  constexpr std::size_t words = 4;
  const Piece source = piece(warp, from);
  std::uint32_t* const cells = &tensor_[rank][TensorMemory::index(to.lane, to.column)];
  const bool any = any_undefined(source, bytes);
  if (any && bytes == 4 * words) std::memcpy(cells, source.bits, 4 * words);
  else std::fill_n(cells, words, any ? ~0u : 0u);
  for (std::size_t word = 0; word < words; ++word)
    note_shifted(rank, TensorMemory::index(to.lane, to.column) + word, false);
}

// A row whose neighbours hold the same is the same after a shift, whichever way.
std::uint8_t ClusterDefinedness::mark_of_shifted(Warp& warp, std::uint32_t rank,
                                                 const TensorArea& rows, isa::TensorCell at) {
  TensorMemory& memory = warp.block->cluster().block(rank).tensor();
  std::uint8_t mark = defined;
  bool alike = true;
  for (const int lane : shift_neighbours(rows.lane, rows.lanes, at.lane)) {
    const std::size_t cell = TensorMemory::index(lane, at.column);
    if (tensor_[rank][cell]) mark |= is_shifted(rank, cell) ? by_shift : unwritten;
    alike &= memory.cell(lane, at.column) == memory.cell(at.lane, at.column);
  }
  return mark || alike ? mark : by_shift;
}

void ClusterDefinedness::shift_tensor(Warp& warp, const TensorArea& rows, std::uint32_t rank) {
  if (launch_.poisoned) return;
  for (int column = rows.column; column < rows.column + rows.columns; ++column) {
    std::array<std::uint8_t, TensorMemory::lanes> marks{};
    for (int i = 0; i < rows.lanes; ++i)
      marks[static_cast<std::size_t>(i)] =
          mark_of_shifted(warp, rank, rows, {rows.lane + i, column});
    for (int i = 0; i < rows.lanes; ++i) {
      const std::size_t cell = TensorMemory::index(rows.lane + i, column);
      const std::uint8_t mark = marks[static_cast<std::size_t>(i)];
      tensor_[rank][cell] = mark ? ~0u : 0u;
      note_shifted(rank, cell, mark == by_shift);
    }
  }
}

// An undefined bit of a factor's row or column makes those of D undefined.
void ClusterDefinedness::multiply_tensor(Warp& warp, const TensorProductPlaces& places) {
  if (launch_.poisoned) return;
  const std::uint32_t own = places.rank.value_or(warp.block->rank());
  std::vector<std::uint32_t>& cells = tensor_[own];
  constexpr std::uint64_t chunk = 16;
  const std::size_t rows = places.d_lane.size();
  const std::size_t per_part = rows / static_cast<std::size_t>(places.parts);
  std::vector<std::uint8_t> of_row(per_part), of_column(static_cast<std::size_t>(places.columns));
  const auto look = [&](std::span<const TileChunk> chunks, int bytes,
                        std::vector<std::uint8_t>& marks) {
    for (const TileChunk& each : chunks) {
      const std::vector<std::byte>& shared = shared_[each.rank.value_or(own)];
      if (each.address + chunk > shared.size()) continue;
      const auto from = shared.begin() + static_cast<std::ptrdiff_t>(each.address);
      if (std::all_of(from, from + bytes, [](std::byte bits) { return bits == std::byte{0}; }))
        continue;
      for (int i = each.first; i < each.first + each.count; ++i)
        if (static_cast<std::size_t>(i) < marks.size())
          marks[static_cast<std::size_t>(i)] = unwritten;
    }
  };
  look(places.a, places.a_bytes, of_row);
  look(places.b, places.b_bytes, of_column);
  for (std::size_t row = per_part; row < rows; ++row) of_row.push_back(of_row[row - per_part]);
  const auto mark = [&](std::size_t cell) {
    return !cells[cell] ? defined : is_shifted(own, cell) ? by_shift : unwritten;
  };
  for (std::size_t row = 0; places.a_cells.columns && row < rows; ++row) {
    const TensorArea part{places.d_lane[row / per_part * per_part], static_cast<int>(per_part)};
    for (int i = 0; i < places.a_cells.columns; ++i) {
      const int column = places.a_cells.column + i, lane = places.d_lane[row];
      of_row[row] |= places.shifts_a ? mark_of_shifted(warp, own, part, {lane, column})
                                     : mark(TensorMemory::index(lane, column));
    }
  }
  std::uint8_t all = defined;
  for (const TensorArea& area : places.others)
    for (int i = 0; i < area.lanes; ++i)
      for (int column = 0; column < area.columns; ++column)
        all |= mark(TensorMemory::index(area.lane + i, area.column + column));
  const int of_part = places.columns / places.parts;
  for (std::size_t row = 0; row < rows; ++row) {
    const int lane = places.d_lane[row];
    if (places.disabled && places.disabled[lane / 32] >> lane % 32 & 1) continue;
    for (int column = 0; column < of_part; ++column) {
      const std::size_t at = TensorMemory::index(lane, places.d_column + column);
      std::uint32_t& cell = cells[at];
      const std::size_t n =
          row / per_part * static_cast<std::size_t>(of_part) + static_cast<std::size_t>(column);
      const std::uint32_t kept = places.half ? cell & 0xFFFF : cell;
      const int undefined =
          all | of_row[row] | of_column[n] | (places.accumulates && kept ? mark(at) : defined);
      cell = (undefined ? ~0u : 0) | (places.half ? upper_half : 0);
      note_shifted(own, at, undefined == by_shift);
    }
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
