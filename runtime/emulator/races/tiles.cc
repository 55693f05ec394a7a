// SPDX-License-Identifier: Apache-2.0
// Tiles that products read: whether they were written, lie as their descriptors say, and are
// ordered behind those who wrote them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/matrix/wgmma.h"
#include "runtime/emulator/races/async_judge.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint64_t chunk = 16;  // bytes: a row of an 8x8 matrix
static_assert(chunk == Shadow::chunk_bytes);

std::string swizzle_name(std::uint32_t span) {
  return span ? fmt::format("a {}-byte swizzle", span) : "no swizzle";
}

}  // namespace

// The box that a copy left there, if nobody has written over it.
const Box* ClusterRaces::box_at(std::uint32_t rank, std::uint64_t address) {
  const Box* const box = boxes_[rank].at(address);
  if (!box) return nullptr;
  const Past now = shared_[rank].last_write(address);
  const bool there =
      now.warp == box->filled.warp && now.time == box->filled.time && now.deed.pc() == box->pc;
  return there ? box : nullptr;
}

void ClusterRaces::filled(const Warp& warp, const std::byte* at, std::uint64_t bytes,
                          const BoxShape& shape, const Epoch& who) {
  const auto address = address_of(at);
  if (!address) return;
  const std::uint32_t pc = warp.pc - 1;
  boxes_[rank_at(*address, 0)].add({.first = *address & shared_offset_mask,
                                    .shape = shape,
                                    .pc = pc,
                                    .filled = {who.warp, who.time, Deed(pc, 0, 0)}},
                                   bytes);
}

// Rows with a swizzle have no continuation: what lies behind belongs to the next row.
bool ClusterRaces::check_start(Warp& warp, const TileOperand& operand) {
  const MatrixDescriptor& descriptor = *operand.descriptor;
  const auto width = static_cast<std::uint32_t>(descriptor.width);
  if (!width || operand.mn_major || operand.long_rows ||
      !box_at(warp.block->rank(), descriptor.start))
    return true;
  const std::uint32_t inside = descriptor.start % width, bytes = 32;
  if (inside + bytes <= width) return true;
  warp.fail("matrix-descriptor"_rule,
            fmt::format("the descriptor of {} starts at 0x{:x}, {} bytes into a row of {}: the {} "
                        "bytes per row that wgmma reads exceed its end",
                        operand.name, descriptor.start, inside, width, bytes),
            0, descriptor.start);
  return false;
}

// The first and the last row of an 8x8 matrix: in boxes with the descriptor's swizzle, and not in
// those of two tensors.
bool ClusterRaces::check_box(Warp& warp, const TileOperand& operand, std::uint64_t first,
                             std::uint64_t last) {
  const std::uint32_t rank = warp.block->rank();
  const Box *const one = box_at(rank, first), *const other = box_at(rank, last);
  const auto width = static_cast<std::uint32_t>(operand.descriptor->width);
  for (const Box* box : {one, other})
    if (box && box->shape.span != width) {
      warp.fail("matrix-descriptor"_rule,
                fmt::format("swizzle mismatch: the descriptor of {} has {}, the copy of line {} "
                            "wrote the box at 0x{:x} with {}; make bits 62 and 63 of the "
                            "descriptor agree with the tensor map",
                            operand.name, swizzle_name(width), warp.block->line(box->pc),
                            box->first, swizzle_name(box->shape.span)),
                0, box == one ? first : last);
      return false;
    }
  if (!one || !other || one->shape.source == other->shape.source) return true;
  warp.fail("matrix-descriptor"_rule,
            fmt::format("the descriptor of {} starts at 0x{:x}: the rows of one 8x8 matrix are in "
                        "two boxes, at 0x{:x} and, of another tensor, at 0x{:x}",
                        operand.name, operand.descriptor->start, one->first, other->first),
            0, operand.descriptor->start);
  return false;
}

bool ClusterRaces::has_swizzle_of_boxes(Warp& warp, int lane, const TensorTile& tile,
                                        std::uint32_t rank) {
  const std::uint32_t own = warp.block->rank();
  for (const TileChunk& each : tile.chunks) {
    const Box* const box = each.rank.value_or(own) == rank ? box_at(rank, each.address) : nullptr;
    if (!box || box->shape.span == tile.span) continue;
    warp.fail(
        "matrix-descriptor"_rule,
        fmt::format("swizzle mismatch: the descriptor of {} has {}, the copy of line {} wrote "
                    "the box at 0x{:x} with {}; make bits 61 to 63 of the descriptor agree "
                    "with the tensor map",
                    tile.name ? std::string(1, tile.name) : "the source", swizzle_name(tile.span),
                    warp.block->line(box->pc), box->first, swizzle_name(box->shape.span)),
        lane, each.address);
    return false;
  }
  return true;
}

// Whether those who wrote the tiles have let the warpgroup know.
bool ClusterRaces::issue_product(Warp& warp, std::span<Warp> warps, const WarpgroupOperation& w,
                                 const WgmmaOperands& operands) {
  const isa::Form& form = w.product->form();
  const bool sparse = form.sparsity != isa::Sparsity::dense;
  const auto read = [&](char name, std::uint64_t bits, int mn_major, Type type, int outer, int k) {
    const MatrixDescriptor descriptor = MatrixDescriptor::of(bits);
    return read_tile(warp, {.name = name,
                            .descriptor = &descriptor,
                            .mn_major = mn_major != 0,
                            .long_rows = sparse && name == 'B',
                            .element_bits = tartan::bits(type),
                            .outer = outer,
                            .k = k});
  };
  const int stored = sparse ? form.shape.k / 2 : form.shape.k;
  if (w.a.empty() &&
      !read('A', operands.a_descriptor, operands.trans_a, form.a, form.shape.m, stored))
    return false;
  if (!read('B', operands.b_descriptor, operands.trans_b, form.b, form.shape.n, form.shape.k))
    return false;
  for (const Warp& each : warps) clocks_.issue_product(each, warp.pc - 1);
  return true;
}

// Rows of K-major tiles go along k, those of MN-major ones along x.
bool ClusterRaces::read_tile(Warp& warp, const TileOperand& operand) {
  if (!check_start(warp, operand)) return false;
  AsyncAccess access{.who = clocks_.product_epoch(warp), .operand = operand.name};
  // A warp reads 16 rows of A and all of B.
  const int of_warp = operand.name == 'A' ? 16 : operand.outer;
  bool any = false;
  for (int first = 0; first < operand.outer; first += of_warp) {
    access.warps = operand.name == 'A' ? 1u << first / of_warp : 0xF;
    const int last = std::min(first + of_warp, operand.outer);
    const TileRead read = gather_chunks(warp, operand, first, last);
    any = read_chunks(warp, access) || any;
    if (read == TileRead::outside) return true;  // a fault that the product reports
    if (read == TileRead::stopped || cluster_.stopped()) return false;
  }
  if (any || mbarriers_.empty()) return true;
  const std::uint64_t start = operand.address(0, 0);
  warp.fail("unwritten-tile"_rule,
            fmt::format("{}, {}, was never written, neither by a copy nor by a store: the wait "
                        "before this wgmma returned early, or nothing fills it",
                        operand.name, shared_text(warp.block->context(), start)),
            0, start);
  return false;
}

std::uint64_t TileOperand::address(int x, int index) const {
  return descriptor->address(mn_major, element_bits, x, index);
}

// Which chunks of memory hold those of the rows or columns from `first` to `last`.
ClusterRaces::TileRead ClusterRaces::gather_chunks(Warp& warp, const TileOperand& operand,
                                                   int first, int last) {
  const std::uint64_t end = warp.block->shared_bytes();
  chunks_.assign((end + Shadow::page_bytes - 1) / Shadow::page_bytes, 0);
  const int across = static_cast<int>(8 * chunk) / operand.element_bits;  // elements of a chunk
  const int outer_step = operand.mn_major ? across : 1, inner_step = operand.mn_major ? 1 : across;
  for (int x = first; x < last; x += outer_step)
    for (int k = 0; k < operand.k; k += inner_step) {
      const std::uint64_t at = operand.address(x, k);
      if (at + chunk > end) return TileRead::outside;
      const bool first_of_eight = operand.mn_major ? k % 8 == 0 : x % 8 == 0;
      const auto [last_x, last_k] = operand.mn_major ? std::pair(x, k + 7) : std::pair(x + 7, k);
      if (first_of_eight && !check_box(warp, operand, at, operand.address(last_x, last_k)))
        return TileRead::stopped;
      chunks_[at / Shadow::page_bytes] |= std::uint64_t{1} << at % Shadow::page_bytes / chunk;
    }
  return TileRead::whole;
}

// Whether any of them was ever written.
bool ClusterRaces::read_chunks(Warp& warp, const AsyncAccess& access) {
  const std::uint32_t rank = warp.block->rank();
  const Past now{access.who.warp, access.who.time, Deed(warp.pc - 1, 0, 0)};
  AsyncJudge judge(*this, warp, 0, access, {.shared = true, .rank = rank});
  bool any = false;
  for (std::uint64_t page = 0; page < chunks_.size(); ++page)
    if (chunks_[page]) any = shared_[rank].read_chunks(page, chunks_[page], now, judge) || any;
  return any;
}

}  // namespace tartan::TARTAN_ABI::emulator
