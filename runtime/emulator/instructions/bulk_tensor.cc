// SPDX-License-Identifier: Apache-2.0
// Copies through tensor maps (cp.async.bulk.tensor and cp.reduce.async.bulk.tensor; PTX ISA
// 9.7.9.27.1), done when they are issued.
//
// A box lies in shared memory row after row, dimension 0 along the row. With a swizzle a row takes
// the whole span, and the 16-byte chunk at address x goes to x XOR (x >> 7 & mask) << 4: bits of
// the address in shared memory, wherever the box starts.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "compiler/support/counted.h"
#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/instructions/tensor_box.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::size_t map_alignment = 64;
constexpr std::uint64_t shared_alignment = 128;
// In op.flags. `gathers`: four rows, of which each has its coordinate; `of_pixels`: im2col;
// `pairs`: .cta_group::2; `wide`, `wide_128`: im2col::w and im2col::w::128.
constexpr std::uint8_t is_load = 1, is_multicast = 2, gathers = 4, of_pixels = 8, pairs = 16,
                       wide = 32, wide_128 = 64;

constexpr std::string_view reduction_names[] = {"",    "add", "min", "max", "inc",
                                                "dec", "and", "or",  "xor"};

// The map at a lane's address.
std::optional<TensorMap> read_map(Warp& warp, int lane, const Op& where, std::size_t rank,
                                  std::uint8_t flags) {
  std::uint64_t at[32];
  addresses(warp, where, at);
  const std::uint64_t address = at[lane];
  const auto fail = [&](std::string why) {
    warp.fail("tensor-map"_rule, std::move(why), lane, address);
    return std::nullopt;
  };
  const Window window = where.window == Window::generic ? window_of(address) : where.window;
  if (window == Window::local || window == Window::shared || window == Window::cluster)
    return fail(
        fmt::format("the tensor map at 0x{:x} is in {} memory: it must be a kernel parameter, or "
                    "in global or constant memory",
                    address, window == Window::local ? "local" : "shared"));
  const std::byte* const bytes =
      resolve_range(warp, lane, where.window, address, map_bytes, map_alignment);
  if (!bytes) return std::nullopt;
  const auto map = TensorMap::decode(std::span<const std::byte, map_bytes>(bytes, map_bytes));
  if (!map) return fail(map.diags()[0].message);
  if (map->rank() != rank)
    return fail(fmt::format("rank mismatch: the instruction copies {}, the tensor map has {}",
                            detail::counted(rank, "dimension"), map->rank()));
  if (map->im2col.has_value() != ((flags & of_pixels) != 0))
    return fail(map->im2col
                    ? "mode mismatch: the tensor map is im2col, the instruction copies tiles"
                    : "mode mismatch: the instruction is im2col, the tensor map is tiled");
  if (flags & gathers && map->box[1] != 1)
    return fail(fmt::format(
        ".tile::gather4 and .tile::scatter4 require a box of one row, the tensor map's has {}",
        map->box[1]));
  return *map;
}

// Host memory of a box that lies at `address` of a block's shared memory.
std::byte* find_shared(Warp& warp, int lane, Window window, std::uint64_t address,
                       std::uint64_t bytes) {
  if (address % shared_alignment != 0) {
    warp.fail(
        "misaligned-access"_rule,
        fmt::format(
            "misaligned box in shared memory: expected a multiple of {}, found address 0x{:x}",
            shared_alignment, address),
        lane, address);
    return nullptr;
  }
  return resolve_range(warp, lane, window, address, bytes, chunk);
}

// The mbarrier that hears of a box in the shared memory of block `rank`: in that block, or with
// .cta_group::2 in the one of its pair that stands as `mbarrier` does in its own.
std::uint64_t barrier_of(const Warp& warp, const Op& op, std::uint64_t mbarrier,
                         std::uint32_t rank) {
  if (!(op.flags & pairs)) return in_block(mbarrier, rank);
  const std::uint32_t stands = rank_at(mbarrier, warp.block->rank()) & 1;
  return in_block(mbarrier, (rank & ~1u) | stands);
}

// In kernels for pairs of CTAs: the mbarrier is in the block of the box, or with .cta_group::2 in
// one of its pair.
bool hears_of(Warp& warp, const Op& op, int lane, std::uint64_t box, std::uint64_t mbarrier) {
  const std::uint32_t own = warp.block->rank(),
                      rank = rank_at(static_cast<std::uint32_t>(mbarrier), own),
                      of_box = rank_at(static_cast<std::uint32_t>(box), own);
  const int pair = op.flags & pairs ? 1 : 0;
  if (warp.program->cta_group != 2 || rank >> pair == of_box >> pair) return true;
  warp.fail("memory-fault"_rule,
            fmt::format("a copy to shared memory of the CTA of rank {} completes at an mbarrier of "
                        "rank {}: expected one of the same {}",
                        of_box, rank, pair ? "pair" : "CTA, or .cta_group::2 in a pair"),
            lane, mbarrier);
  return false;
}

// op.list: the addresses of the map, the box in shared memory and (loads) the mbarrier, then the
// slots of the coordinates, op.count of them, and of offsets, op.c of them. op.b: the blocks of a
// multicast; op.value: which reduction.
bool load_box(Warp& warp, const Op& op, int lane, std::uint64_t map, TensorBox& box) {
  std::uint64_t targets[32], barriers[32];
  const Op to = address_at(warp, op.list + address_words);
  addresses(warp, to, targets);
  addresses(warp, address_at(warp, op.list + 2 * address_words), barriers);
  const auto bytes = static_cast<std::uint32_t>(box.bytes());
  const auto load = [&](Window window, std::uint64_t target, std::uint64_t barrier) {
    std::byte* at = find_shared(warp, lane, window, target, box.shared_bytes());
    if (!at) return false;
    const std::uint64_t offset = target & shared_offset_mask;
    const bool later = warp.block->cluster().issues_late();
    if (!(later ? box.touch() : box.load(at, offset))) return false;
    Move move;
    if (later) move = [box, at, offset]() mutable { box.load(at, offset); };
    return complete_transactions(warp, lane, barrier, bytes,
                                 {.at = at,
                                  .room = box.shared_bytes(),
                                  .shape = box.shape(),
                                  .from = box.rows(),
                                  .map = map},
                                 std::move(move));
  };
  if (!(op.flags & is_multicast))
    return hears_of(warp, op, lane, targets[lane], barriers[lane]) &&
           load(to.window, targets[lane], barriers[lane]);
  const std::uint32_t blocks = lanes<std::uint32_t>(warp, op.b)[lane];
  if (!check_multicast(warp, lane, blocks)) return false;
  for (std::uint32_t left = blocks; left; left &= left - 1) {
    const auto rank = static_cast<std::uint32_t>(std::countr_zero(left));
    if (!load(Window::cluster, in_block(targets[lane], rank),
              barrier_of(warp, op, barriers[lane], rank)))
      return false;
  }
  return true;
}

Type plain(Type type, std::string_view name) {
  const bool bitwise = name == "and" || name == "or" || name == "xor";
  if (!bitwise || info(type).floating) return type;
  return bits(type) == 64 ? Type::b64 : bits(type) == 32 ? Type::b32 : type;
}

// First it reads `image`, then it writes.
void store_late(Warp& warp, int lane, const TensorBox& box, std::span<const std::byte> image,
                std::uint64_t offset, Reduction reduction) {
  const auto staged = std::make_shared<std::vector<std::byte>>();
  warp.block->cluster().issue(
      warp, 1u << lane, AsyncKind::bulk,
      [box = TensorBox(box), staged, offset, reduction]() mutable {
        box.store(staged->data(), offset, reduction);
      },
      [staged, image] { staged->assign(image.begin(), image.end()); });
}

// Lanes that store the same box to the same place.
std::uint32_t lanes_alike(Warp& warp, const Op& op, int lane, const std::uint64_t* sources) {
  std::uint64_t maps[32];
  addresses(warp, address_at(warp, op.list), maps);
  const std::uint32_t* slots = warp.program->slots.data() + op.list + 2 * address_words;
  return lanes_where(warp.mask, [&](int i) {
    bool same = maps[i] == maps[lane] && sources[i] == sources[lane];
    for (std::size_t k = 0; k < op.count; ++k) {
      const auto* at = lanes<std::int32_t>(warp, slots[k]);
      same = same && at[i] == at[lane];
    }
    return same;
  });
}

bool store_box(Warp& warp, const Op& op, int lane, std::uint64_t map, TensorBox& box) {
  const std::string_view name = reduction_names[op.value];
  const Type type = box.map().type;
  const Reduction reduction = find_reduction(name, plain(type, name), box.map().flush_subnormals);
  if (!name.empty() && !reduction) {
    warp.fail("tensor-map"_rule,
              fmt::format("no reduction .{} for tensors of {}", name, tartan::name(type)), lane);
    return false;
  }
  std::uint64_t sources[32];
  const Op from = address_at(warp, op.list + address_words);
  addresses(warp, from, sources);
  const std::byte* at = find_shared(warp, lane, from.window, sources[lane], box.shared_bytes());
  if (!at || !note_group_copy(warp, lane, {from.window, sources[lane], box.shared_bytes()}, false,
                              std::nullopt))
    return false;
  const std::uint64_t offset = sources[lane] & shared_offset_mask;
  if (warp.block->cluster().issues_late()) {
    if (!box.touch()) return false;
    store_late(warp, lane, box, {at, at + box.shared_bytes()}, offset, reduction);
  } else if (!box.store(at, offset, reduction)) {
    return false;
  }
  const auto strong = reduction ? std::optional(Scope::gpu) : std::nullopt;
  const std::uint32_t alike = lanes_alike(warp, op, lane, sources);
  for (const Stretch& row : box.rows())
    if (!note_group_copy(warp, lane, row, true, strong, alike)) return false;
  return note_group_map(warp, lane, map);
}

// What im2col::w asks of the map and the halo (PTX ISA 9.0, 5.5.5). The driver writes a map for it
// as one for im2col whose other corners are 0, with a swizzle of 64 or 128 bytes.
bool is_wide(Warp& warp, int lane, const TensorMap& map, const BoxCorner& place) {
  const auto fail = [&](std::string why) {
    warp.fail("tensor-map"_rule, std::move(why), lane);
    return false;
  };
  const std::uint32_t halos = place.wide == BoxCorner::Wide::w_128 ? 32 : 512, most_offset = 32;
  if (place.offsets[0] >= halos || place.offsets[1] >= most_offset)
    return fail(fmt::format("wHalo is {}, wOffset {}: expected less than {} and {}",
                            place.offsets[0], place.offsets[1], halos, most_offset));
  if (span_bytes(map.swizzle) < 64)
    return fail(fmt::format("im2col::w with a swizzle of {} bytes: expected 64 or 128",
                            span_bytes(map.swizzle)));
  for (std::size_t i = 1; i < map.im2col->lower.size(); ++i)
    if (map.im2col->lower[i] || map.im2col->upper[i])
      return fail(
          "im2col::w with a tensor map that has corners of the height or depth: expected those of "
          "the width alone, as cuTensorMapEncodeIm2colWide writes them");
  const std::int64_t last = static_cast<std::int64_t>(map.extents[1]) - 1 + map.im2col->upper[0];
  if (place.at[1] > last)
    return fail(fmt::format(
        "coordinate 1 of the first pixel is {}: the tensor map's corners allow at most {}",
        place.at[1], last));
  return true;
}

// The first pixel lies between the corners: an H100 stops with an illegal instruction otherwise.
bool begins_inside(Warp& warp, int lane, const TensorMap& map, const BoxCorner& place) {
  if (!map.im2col) return true;
  if (place.wide != BoxCorner::Wide::no) return is_wide(warp, lane, map, place);
  for (std::size_t i = 1; i + 1 < map.rank(); ++i) {
    const std::int64_t low = map.im2col->lower[i - 1],
                       high =
                           static_cast<std::int64_t>(map.extents[i]) - 1 + map.im2col->upper[i - 1];
    if (place.at[i] >= low && place.at[i] <= high) continue;
    warp.fail("tensor-map"_rule,
              fmt::format(
                  "coordinate {} of the first pixel is {}: the tensor map's corners allow {} to {}",
                  i, place.at[i], low, high),
              lane);
    return false;
  }
  return true;
}

// Stores and reductions may reach beyond the end of a dimension, and lie behind it, but an H200
// stops with an illegal instruction at negative coordinates, even if nothing of the box is inside,
// and whenever a corner of im2col lies before the images.
bool stores_behind_edges(Warp& warp, int lane, const TensorMap& map, const BoxCorner& place,
                         std::string_view reduction) {
  const char* const what = reduction.empty() ? "store" : "reduction";
  for (std::size_t i = 0; i < map.rank(); ++i) {
    if (place.at[i] >= 0) continue;
    warp.fail("tensor-map"_rule,
              fmt::format("{} before an edge of the tensor: expected coordinates of at least 0, "
                          "found {} in dimension {}; only loads may begin there, {}s may reach "
                          "beyond the other edges",
                          what, place.at[i], i, what),
              lane);
    return false;
  }
  for (std::size_t i = 0; map.im2col && i < map.im2col->lower.size(); ++i) {
    if (map.im2col->lower[i] >= 0) continue;
    warp.fail(
        "tensor-map"_rule,
        fmt::format("{} before an edge of the tensor: expected lower corners of at least 0 in "
                    "the tensor map, found {} in dimension {}; only loads may begin there",
                    what, map.im2col->lower[i], i + 1),
        lane);
    return false;
  }
  return true;
}

// What the manual asks of elements that have padding in shared memory (PTX ISA 5.5.1.1).
bool packed_as_copied(Warp& warp, int lane, const TensorMap& map, std::int32_t first, bool loads) {
  const auto fail = [&](const Rule& rule, std::string why) {
    warp.fail(rule, std::move(why), lane);
    return false;
  };
  if (packed_bytes(map.type) == chunk) return true;
  if (!loads && map.type == Type::b4x16_p64)
    return fail("tensor-map"_rule, "elements of b4x16_p64 are loaded only: expected b4 for stores");
  if (!loads && warp.block->cluster().values_are_followed())
    return fail("unsupported-instruction"_rule,
                "stores of b6x16_p32 pack elements, which no comparison of values follows");
  if (first % static_cast<std::int32_t>(map.row()) == 0) return true;
  return fail("misaligned-access"_rule,
              fmt::format("misaligned box: the innermost coordinate of {} must be a multiple of "
                          "{}, found {}",
                          name(map.type), map.row(), first));
}

void copy_box(Warp& warp, const Op& op) {
  const Op where = address_at(warp, op.list);
  const std::uint32_t* slots =
      warp.program->slots.data() + op.list + (op.flags & is_load ? 3 : 2) * address_words;
  const std::size_t rank = op.flags & gathers ? 2 : op.count;
  std::uint64_t maps[32];
  addresses(warp, where, maps);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    auto map = read_map(warp, lane, where, rank, op.flags);
    if (!map) return;
    BoxCorner place;
    if (op.flags & wide) place.wide = BoxCorner::Wide::w;
    if (op.flags & wide_128) place.wide = BoxCorner::Wide::w_128;
    auto& at = place.at;
    for (std::size_t i = 0; i < op.count; ++i) at[i] = lanes<std::int32_t>(warp, slots[i])[lane];
    for (std::size_t i = 0; i < op.c; ++i)
      place.offsets[i] = lanes<std::uint32_t>(warp, slots[op.count + i])[lane];
    if (!begins_inside(warp, lane, *map, place)) return;
    // An H100 stops with an illegal instruction.
    if (const std::int64_t bytes = std::int64_t{at[0]} * bits(map->type) / 8; bytes % chunk) {
      warp.fail("misaligned-access"_rule,
                fmt::format("misaligned box: its innermost coordinate must be a multiple of {} "
                            "bytes, found element {} of {}",
                            chunk, at[0], name(map->type)),
                lane);
      return;
    }
    if (!packed_as_copied(warp, lane, *map, at[0], op.flags & is_load)) return;
    if (!(op.flags & (is_load | gathers)) &&
        !stores_behind_edges(warp, lane, *map, place, reduction_names[op.value]))
      return;
    TensorBox box(warp, lane, std::move(*map), place, op.flags & gathers);
    const bool good = op.flags & is_load ? load_box(warp, op, lane, maps[lane], box)
                                         : store_box(warp, op, lane, maps[lane], box);
    if (!good) return;
  }
}

// ---- Decoding.

// What the spelling says of the map: how many dimensions, and how many coordinates are given.
struct Mode {
  std::size_t rank = 0, coordinates = 0;
  std::uint8_t flags = 0;
};

std::optional<Mode> read_mode(Decoder& d) {
  const std::string_view dimensions = d.spelling.any("1d 2d 3d 4d 5d");
  if (dimensions.empty()) {
    d.unsupported("expected the number of dimensions, .1d to .5d");
    return std::nullopt;
  }
  Mode mode{.rank = static_cast<std::size_t>(dimensions[0] - '0')};
  mode.coordinates = mode.rank;
  const std::string_view name = d.spelling.any(
      "tile tile::gather4 tile::scatter4 im2col im2col_no_offs im2col::w im2col::w::128");
  if (name.starts_with("tile::")) {
    if (mode.rank != 2) d.unsupported("gather4 and scatter4 require 2 dimensions");
    mode.flags = gathers;
    mode.coordinates = 1 + gathered_rows;
  }
  if (name.starts_with("im2col")) {
    if (mode.rank < 3) d.unsupported("im2col requires 3 to 5 dimensions");
    mode.flags = of_pixels | (name == "im2col::w" ? wide : name == "im2col::w::128" ? wide_128 : 0);
    if (mode.flags & (wide | wide_128)) {
      if (d.hardware() < Hardware::sm_100) d.unsupported("im2col::w requires sm_100");
      d.rest_on(Trust::Assumed,
                "places of im2col::w are read from the manual and another emulator");
    }
  }
  if (d.failed()) return std::nullopt;
  return mode;
}

// [map, {x, y}]: appends the map's address; the slots of the coordinates.
std::vector<std::uint32_t> read_tensor(Decoder& d, const ptx::Operand& operand, const Mode& mode,
                                       std::uint32_t& list) {
  std::vector<std::uint32_t> slots;
  if (d.spelling.has("override::global_address") || d.spelling.has("override::global_dim") ||
      d.spelling.has("override::global_dim_stride")) {
    d.unsupported("overrides of tensor maps");
    return slots;
  }
  const auto parts = d.children(operand);
  if (operand.kind != ptx::OperandKind::Address || parts.size() != 2 ||
      parts[1].kind != ptx::OperandKind::Vector) {
    d.error("operand-kind"_rule,
            fmt::format("{} expects [map, {{coordinates}}]", d.spelling.text()));
    return slots;
  }
  const auto coordinates = d.children(parts[1]);
  if (coordinates.size() != mode.coordinates) {
    d.error("operand-count"_rule,
            fmt::format("wrong number of coordinates: {} expects {}, found {}", d.spelling.text(),
                        mode.coordinates, coordinates.size()));
    return slots;
  }
  list = append_address(d, operand, Window::generic);
  for (const ptx::Operand& coordinate : coordinates)
    slots.push_back(d.source(coordinate, Type::s32));
  return slots;
}

// {w, h}: the slots of im2col's offsets; {halo, w} of im2col::w.
std::vector<std::uint32_t> read_offsets(Decoder& d, const ptx::Operand& operand, const Mode& mode) {
  std::vector<std::uint32_t> slots;
  const auto offsets = d.children(operand);
  const std::size_t count = mode.flags & (wide | wide_128) ? 2 : mode.rank - 2;
  if (operand.kind != ptx::OperandKind::Vector || offsets.size() != count) {
    d.error(
        "operand-count"_rule,
        fmt::format(
            "wrong number of im2col offsets: {} expects {} in {{...}} after the mbarrier, found {}",
            d.spelling.text(), count, offsets.size()));
    return slots;
  }
  for (const ptx::Operand& offset : offsets) slots.push_back(d.source(offset, Type::u16));
  return slots;
}

void decode_load(Decoder& d, const Mode& mode) {
  const Type mask_type = multicast_mask(d);
  d.spelling.ignore("mbarrier::report::disabled");
  const bool multicast = mask_type != Type::none,
             of_pair = d.spelling.any("cta_group::1 cta_group::2") == "cta_group::2",
             hinted = d.spelling.has("L2::cache_hint"), offset = mode.flags & of_pixels;
  const auto spaces = read_spaces(d);
  if (!spaces || spaces->from != Window::global || spaces->to == Window::global)
    return d.unsupported("expected a copy from .global to .shared::cta or .shared::cluster");
  const std::size_t blocks_at = offset ? 4 : 3,
                    operands = blocks_at + (multicast ? 1 : 0) + (hinted ? 1 : 0);
  if (!d.expect_operands(operands, operands)) return;
  std::uint32_t list = 0;
  const auto coordinates = read_tensor(d, d.operand(1), mode, list);
  append_address(d, d.operand(0), spaces->to);
  append_address(d, d.operand(2), Window::cluster);
  d.append(coordinates);
  const auto offsets = offset ? read_offsets(d, d.operand(3), mode) : std::vector<std::uint32_t>();
  d.append(offsets);
  const std::uint32_t blocks = multicast ? d.source(blocks_at, mask_type) : 0;
  Op& op = d.emit(copy_box);
  op.list = list;
  op.b = blocks;
  op.c = static_cast<std::uint32_t>(offsets.size());
  op.count = static_cast<std::uint8_t>(mode.coordinates);
  op.flags = static_cast<std::uint8_t>(mode.flags | is_load | (multicast ? is_multicast : 0) |
                                       (of_pair ? pairs : 0));
}

void decode_store(Decoder& d, const Mode& mode, std::string_view reduction) {
  const bool hinted = d.spelling.has("L2::cache_hint");
  const auto spaces = read_spaces(d);
  if (!d.spelling.has("bulk_group") || !spaces || spaces->to != Window::global ||
      spaces->from != Window::shared)
    return d.unsupported("expected a copy from .shared::cta to .global with .bulk_group");
  const std::size_t operands = hinted ? 3 : 2;
  if (!d.expect_operands(operands, operands)) return;
  std::uint32_t list = 0;
  const auto coordinates = read_tensor(d, d.operand(0), mode, list);
  append_address(d, d.operand(1), spaces->from);
  d.append(coordinates);
  Op& op = d.emit(copy_box);
  op.list = list;
  op.count = static_cast<std::uint8_t>(mode.coordinates);
  op.flags = mode.flags;
  op.value = static_cast<std::uint64_t>(std::ranges::find(reduction_names, reduction) -
                                        std::begin(reduction_names));
}

void decode_tensor_copy(Decoder& d) {
  const auto mode = read_mode(d);
  if (!mode) return;
  if (d.spelling.has("mbarrier::complete_tx::bytes")) return decode_load(d, *mode);
  const bool reduces = d.spelling.opcode() == Opcode::cp_reduce_async_bulk_tensor;
  decode_store(d, *mode, reduces ? reduction_name(d) : "");
}

}  // namespace

constexpr EmulatedRow bulk_tensor_rows[] = {
    {Opcode::cp_async_bulk_tensor, decode_tensor_copy, Flow::ByHandler, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
    {Opcode::cp_reduce_async_bulk_tensor, decode_tensor_copy, Flow::ByHandler, ValueSources::None,
     Meaning::Bits, AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(bulk_tensor_rows, topics::bulk_tensor));

}  // namespace tartan::TARTAN_ABI::emulator
