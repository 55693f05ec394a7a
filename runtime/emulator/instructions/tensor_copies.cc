// SPDX-License-Identifier: Apache-2.0
// tcgen05.cp (PTX ISA 9.0, 9.7.16.9): the tensor core copies rows of shared memory to lanes of
// tensor memory, which it may unpack to bytes on the way.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/instructions/tensor_operands.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/matrix/tensor_descriptor.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int chunk_bytes = 16, chunk_words = 4;

// Where the rows of a shape go: row r to lane r % 32 * step + r / 32 * group, and `copies` more of
// it, `distance` lanes apart.
struct CopyShape {
  isa::Qualifier shape, multicast;
  int rows, bytes;  // of a row
  int step, group;
  int copies, distance;
};
constexpr isa::Qualifier no_word{};
const CopyShape copy_shapes[] = {
    {"128x256b"_q, no_word, 128, 32, 1, 32, 0, 0},
    {"4x256b"_q, no_word, 4, 32, 32, 0, 0, 0},
    {"128x128b"_q, no_word, 128, 16, 1, 32, 0, 0},
    {"64x128b"_q, "warpx2::02_13"_q, 64, 16, 1, 32, 1, 64},
    {"64x128b"_q, "warpx2::01_23"_q, 64, 16, 1, 64, 1, 32},
    {"32x128b"_q, "warpx4"_q, 32, 16, 1, 32, 3, 32},
};

// op.flags: what the bytes are made of; whether each CTA of a pair copies from its shared memory.
constexpr std::uint8_t of_six_bits = 1, of_four_bits = 2, of_pair = 4;

// 16 elements of so many bits, one behind the other, each into a byte: six bits at its lowest, four
// above two zeros. No text tells the place in the byte: it is that of mma.sync's operands.
std::array<std::uint32_t, chunk_words> unpacked(const std::byte* from, int width) {
  std::array<std::uint8_t, chunk_bytes> out{};
  for (int i = 0; i < chunk_bytes; ++i) {
    const int bit = i * width, shift = width == 4 ? 2 : 0;
    std::uint32_t word = static_cast<std::uint32_t>(from[bit / 8]);
    if (bit % 8 + width > 8) word |= static_cast<std::uint32_t>(from[bit / 8 + 1]) << 8;
    out[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>((word >> bit % 8 & ((1u << width) - 1)) << shift);
  }
  return std::bit_cast<std::array<std::uint32_t, chunk_words>>(out);
}

int lane_of(const CopyShape& shape, int row) {
  return row % 32 * shape.step + row / 32 * shape.group;
}

bool fail(Warp& warp, int lane, const Rule& rule, std::string message) {
  warp.fail(rule, std::move(message), lane);
  return false;
}

// The cells that it writes.
std::vector<TensorArea> areas(const CopyShape& shape, int first, int column) {
  const int columns = shape.bytes / 4;
  if (shape.step == 1) return {{0, TensorMemory::lanes, column, columns}};
  std::vector<TensorArea> out;
  for (int row = 0; row < shape.rows; ++row)
    out.push_back({first + lane_of(shape, row), 1, column, columns});
  return out;
}

// Of a CTA, to the cells that begin there.
void move_rows(Warp& warp, Block& cta, const Op& op, std::span<const TileChunk> chunks, int first,
               int column) {
  const CopyShape& shape = copy_shapes[op.list];
  const int width = op.flags & of_six_bits ? 6 : op.flags & of_four_bits ? 4 : 8;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::byte* const from = cta.shared() + chunks[i].address;
    std::array<std::uint32_t, chunk_words> words;
    if (width == 8) std::memcpy(words.data(), from, chunk_bytes);
    else words = unpacked(from, width);
    const int at = column + static_cast<int>(i) * chunk_words % (shape.bytes / 4);
    for (int copied = 0; copied <= shape.copies; ++copied) {
      const int target = first + lane_of(shape, chunks[i].first) + copied * shape.distance;
      tell(warp, &ValueEvents::copy_to_tensor, from, isa::TensorCell{target, at},
           static_cast<std::uint64_t>(chunk_bytes * width / 8), cta.rank());
      for (int word = 0; word < chunk_words; ++word)
        cta.tensor().cell(target, at + word) = words[static_cast<std::size_t>(word)];
    }
  }
}

// op.list: the shape; op.b: the descriptor.
bool copy(Warp& warp, const Op& op, int lane) {
  const CopyShape& shape = copy_shapes[op.list];
  const std::vector<Block*> ctas = ctas_of(warp, op.flags & of_pair, lane);
  if (ctas.empty()) return false;
  const std::uint32_t address = tensor_address(warp, op, lane);
  const int first = static_cast<int>(address >> 16), column = static_cast<int>(address & 0xFFFF);
  const int most = shape.step == 1 ? 0 : shape.step - 1;
  if (first > most)
    return fail(warp, lane, "tensor-memory"_rule,
                fmt::format("tcgen05.cp to address 0x{:x} begins in lane {}: expected {}", address,
                            first, most ? "0 to 31" : "0"));
  const std::vector<TensorArea> to = areas(shape, first, column);
  for (Block* cta : ctas)
    if (const std::string why = cta->tensor().fault(to[0]); !why.empty())
      return fail(warp, lane, "tensor-memory"_rule,
                  fmt::format("tcgen05.cp to address 0x{:x}: {}", address, why));
  TileDescriptor tile;
  const std::uint64_t bits = lanes<std::uint64_t>(warp, op.b)[lane];
  if (const std::string why = decode(bits, false, 8, tile); !why.empty())
    return fail(warp, lane, "matrix-descriptor"_rule,
                fmt::format("the descriptor of the source: {}", why));
  std::vector<TileChunk> chunks;
  for (int row = 0; row < shape.rows; ++row)
    for (int at = 0; at < shape.bytes; at += chunk_bytes) {
      const std::uint64_t from = tile.address(false, 8, row, at);
      if (from + chunk_bytes > warp.block->shared_bytes())
        return fail(warp, lane, "memory-fault"_rule,
                    fmt::format("out of bounds: the descriptor of the source leads to 0x{:x} for "
                                "row {}, beyond {} bytes of shared memory; {}",
                                from, row, warp.block->shared_bytes(), tile.text()));
      chunks.push_back({from, row});
    }
  for (Block* cta : ctas) {
    for (TileChunk& each : chunks) each.rank = cta->rank();
    if (!ask(warp, &Events::read_tile, lane,
             TensorTile{0, static_cast<std::uint32_t>(tile.tile.width), chunks}))
      return false;
    for (const TensorArea& area : to)
      if (!ask(warp, &Events::access_tensor, lane,
               TensorTouch{TensorAgent::core, true, false, area, cta->rank()}))
        return false;
  }
  for (Block* cta : ctas) move_rows(warp, *cta, op, chunks, first, column);
  return true;
}

void copy_all(Warp& warp, const Op& op) {
  for (std::uint32_t m = warp.mask; m; m &= m - 1)
    if (!copy(warp, op, std::countr_zero(m))) return;
}

void decode_copy(Decoder& d) {
  const isa::Spelling& spelling = d.spelling.as_read();
  const auto pair = is_matched_of_pair(d);
  if (!pair) return;
  if (!d.expect_operands(2, 2)) return;
  std::uint32_t shape = 0;
  while (!spelling.has(copy_shapes[shape].shape) ||
         (copy_shapes[shape].copies == 1 && !spelling.has(copy_shapes[shape].multicast)))
    ++shape;
  const std::uint32_t descriptor = d.source(1, Type::b64);
  if (spelling.types.size) d.rest_on(Trust::Assumed, "the place of unpacked bits in their byte");
  Op& op = d.emit(copy_all);
  op.b = descriptor;
  op.list = shape;
  if (spelling.types.size)
    op.flags = spelling.type(1) == Type::b6x16_p32 ? of_six_bits : of_four_bits;
  if (*pair) op.flags |= of_pair;
  d.address(op, d.operand(0), Window::global);
}

}  // namespace

constexpr EmulatedRow tensor_copies_rows[] = {
    {Opcode::tcgen05_cp, decode_copy, Flow::ByHandler, ValueSources::None, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(tensor_copies_rows, topics::tensor_copies));

}  // namespace tartan::TARTAN_ABI::emulator
