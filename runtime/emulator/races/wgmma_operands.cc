// SPDX-License-Identifier: Apache-2.0
// Tiles that products read: whether their boxes are full, and fit what the descriptor says.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/matrix/wgmma.h"
#include "runtime/emulator/races/order.h"

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

std::string swizzle_name(std::uint32_t span) {
  return span ? fmt::format("a {}-byte swizzle", span) : "no swizzle";
}

}  // namespace

// Looks at two rows of every eight, so at every 8x8 matrix of the tile.
bool Order::read(Warp& warp, const TileOperand& operand) {
  if (!check_start(warp, operand)) return false;
  bool any = false;
  const MatrixDescriptor& descriptor = *operand.descriptor;
  const auto address = [&](int x, int k) {
    return descriptor.address(operand.mn_major, operand.element_bits, x, k);
  };
  const auto look = [&](std::uint64_t first, std::uint64_t last) {
    return check_chunk(warp, operand, first, any) && check_chunk(warp, operand, last, any) &&
           check_rows(warp, operand, first, last);
  };
  for (int x = 0; x < operand.outer; x += 8) {
    if (!operand.mn_major) {
      if (!look(address(x, 0), address(x + 7, 0))) return false;
    } else {
      for (int k = 0; k < operand.k; k += 8)
        if (!look(address(x, k), address(x, k + 7))) return false;
    }
  }
  if (any || mbarriers_.empty()) return true;
  const std::uint64_t start = address(0, 0);
  warp.fail("unwritten-tile"_rule,
            fmt::format("{} at shared address 0x{:x} was never written, neither by a copy nor by a "
                        "store: the wait before this wgmma returned early",
                        operand.name, start),
            0, start);
  return false;
}

bool Order::in_tensor_box(const Warp& warp, std::uint64_t address) const {
  const Shared& shared = shared_[warp.block->rank()];
  const std::uint64_t at = address / chunk;
  const std::uint32_t index = at < shared.box.size() ? shared.box[at] : 0;
  return index && shared.boxes[index - 1].shape.tensor;
}

// Rows with a swizzle have no continuation: what lies behind belongs to the next row.
bool Order::check_start(Warp& warp, const TileOperand& operand) {
  const MatrixDescriptor& descriptor = *operand.descriptor;
  const auto width = static_cast<std::uint32_t>(descriptor.width);
  if (!width || operand.mn_major || operand.long_rows || !in_tensor_box(warp, descriptor.start))
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

bool Order::known_to_warpgroup(const Warp& warp, const Box& box) {
  const std::size_t first = entry(warp) - warp.index % warps_of_warpgroup;
  for (std::size_t i = 0; i < warps_of_warpgroup; ++i)
    if (clocks_[first + i][box.entry] > box.phase) return true;
  return false;
}

bool Order::check_chunk(Warp& warp, const TileOperand& operand, std::uint64_t address, bool& any) {
  Shared& shared = shared_[warp.block->rank()];
  const std::uint64_t at = address / chunk;
  if (at >= shared.box.size()) return any = true;  // a fault that the product reports
  const std::uint32_t index = shared.box[at];
  if (!index) {
    any |= shared.written[at].time != 0;
    if (fenced(shared.written[at])) return true;
    warp.fail("proxy-fence"_rule,
              fmt::format("{} at shared address 0x{:x} was written by ordinary stores: insert "
                          "fence.proxy.async between the store and the following barrier",
                          operand.name, at * chunk),
              0, at * chunk);
    return false;
  }
  any = true;
  Box& box = shared.boxes[index - 1];
  const auto width = static_cast<std::uint32_t>(operand.descriptor->width);
  if (box.shape.tensor && box.shape.span != width) {
    warp.fail(
        "matrix-descriptor"_rule,
        fmt::format(
            "swizzle mismatch: the descriptor of {} has {}, the copy of line {} wrote the box at "
            "0x{:x} with {}; make bits 62 and 63 of the descriptor agree with the tensor map",
            operand.name, swizzle_name(width), warp.block->line(box.pc), box.first * chunk,
            swizzle_name(box.shape.span)),
        0, address);
    return false;
  }
  if (!known_to_warpgroup(warp, box)) {
    warp.fail(
        "asynchronous-race"_rule,
        fmt::format("race: {} is in the box at 0x{:x} that the copy of line {} fills: no thread of "
                    "the warpgroup has waited for mbarrier 0x{:x} to end phase {} (parity {})",
                    operand.name, box.first * chunk, warp.block->line(box.pc), box.mbarrier,
                    box.phase, box.phase % 2),
        0, address);
    return false;
  }
  constexpr auto of_warpgroup = static_cast<std::uint32_t>(warps_of_warpgroup);
  const std::uint32_t warpgroup = warp.index / of_warpgroup;
  auto read = std::ranges::find(box.reads, warpgroup, &Read::warpgroup);
  if (read == box.reads.end()) read = box.reads.insert(read, Read{});
  *read = {.warpgroup = warpgroup, .group = commits_[entry(warp)], .pc = warp.pc - 1};
  return true;
}

// Eight rows of one tile in boxes of two tensors: it starts between them.
bool Order::check_rows(Warp& warp, const TileOperand& operand, std::uint64_t first,
                       std::uint64_t last) {
  const Shared& shared = shared_[warp.block->rank()];
  if (last / chunk >= shared.box.size() || first / chunk >= shared.box.size()) return true;
  const std::uint32_t one = shared.box[first / chunk], other = shared.box[last / chunk];
  if (one == other || !one || !other) return true;
  const Box &a = shared.boxes[one - 1], &b = shared.boxes[other - 1];
  if (a.shape.source == b.shape.source) return true;
  warp.fail("matrix-descriptor"_rule,
            fmt::format("the descriptor of {} starts at 0x{:x}: the rows of one 8x8 matrix are in "
                        "two boxes, at 0x{:x} and, of another tensor, at 0x{:x}",
                        operand.name, operand.descriptor->start, a.first * chunk, b.first * chunk),
            0, operand.descriptor->start);
  return false;
}

}  // namespace tartan::inline TARTAN_ABI::emulator
