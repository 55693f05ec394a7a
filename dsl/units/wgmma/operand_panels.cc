// SPDX-License-Identifier: Apache-2.0
#include "dsl/units/wgmma/operand_panels.h"

#include "dsl/cluster/cluster.h"
#include "dsl/layout/addressing.h"
#include "dsl/units/tma/tma_matrix.h"

namespace tartan::TARTAN_ABI::detail {

using ir::Value;

namespace {

std::optional<OperandPanels> panels(const Tensor& tile, bool along_columns) {
  const Layout& layout = tile.layout;
  const Major major = layout.major();
  const Swizzle by = layout.swizzle;
  if (major == Major::none || tile.offset.multiple() % (1 << (by.bits + by.base + by.shift)))
    return std::nullopt;
  const bool is_row_major = major == Major::row;
  const int element = bits(tile.type);
  const std::int64_t line = *(is_row_major ? layout.cols : layout.rows).constant();
  const std::int64_t panel = layout.run() ? layout.run() : line;
  OperandPanels out{.along_k = is_row_major == along_columns,
                    .width = panel * element / 8,
                    .lines = *(is_row_major ? layout.rows : layout.cols).constant()};
  const auto stride = (is_row_major ? layout.row_stride : layout.col_stride).constant();
  const bool swizzled = tma_swizzle(layout.swizzle, out.width, tile.type).value_or(0) != 0;
  if (stride != panel || line % panel || !swizzled || out.lines % 8) return std::nullopt;
  const auto apart = (is_row_major ? layout.col_stride : layout.row_stride).constant();
  if (line > panel && apart != panel * out.lines) return std::nullopt;  // a part of the lines
  if (!out.along_k && element != 16) return std::nullopt;  // bytes and words lie along k
  return out;
}

std::string_view reader(StageAccess access) {
  return access == StageAccess::tensor_read ? "tcgen05.mma" : "wgmma";
}

}  // namespace

std::optional<OperandPanels> operand_panels(KernelState& state, const Tensor& tile, Operand operand,
                                            StageAccess access) {
  if (refuse_remote(state, tile, reader(access))) return std::nullopt;
  const auto out = panels(tile, operand == Operand::a);
  if (!out)
    state.log.report(
        "layout-mismatch"_rule,
        fmt::format("{0} reads {1} only in the layout of shared_{1}(), with {2} contiguous along "
                    "k; {3} is {4}",
                    reader(access), name(operand), "elements of 8 and 32 bits", tile.name,
                    tile.layout.text()));
  state.roles.note_read(access);
  // The tensor cores drop the low 13 bits of an f32.
  if (tile.type == f32) state.memories.of(tile).rounded_to_tf32 = true;
  return out;
}

TileDescriptors::TileDescriptors(KernelState& state, const Tensor& tile,
                                 const OperandPanels& panels, int step, const Scalar& first,
                                 StageAccess access)
    : state_(state), panels_(panels), step_(step) {
  ir::FunctionBuilder& f = state.f();
  const Value address = f.shared_address(address_of(state, tile, 0, 0));
  const Value begin = state.value(state.scalar(address) + first, u32);
  // Along k, an instruction rarely crosses its panel.
  const std::int64_t apart = panels.along_k && panels.width >= step ? 16 : panels.bytes();
  low_ = f.bit_or(f.shift_right(within_block(begin), f.constant(u32, 4)),
                  f.constant(u32, (apart >> 4) << 16));
  // The two top bits are the same in both: of tcgen05's three, the lowest is for wider atoms.
  const std::int64_t mode = panels.width == 128 ? 1 : panels.width == 64 ? 2 : 3;
  high_ = (8 * panels.width >> 4) << 32 | mode << 62;
  if (access == StageAccess::tensor_read) high_ |= std::int64_t{1} << 46;  // the version
}

Value TileDescriptors::at(int step, int bits) const {
  ir::FunctionBuilder& f = state_.f();
  std::int64_t bytes = 0;
  if (panels_.along_k) {
    const std::int64_t along = std::int64_t{step} * step_;
    bytes = along / panels_.width * panels_.bytes() + along % panels_.width;
  } else {
    bytes = std::int64_t{step} * (8 * step_ / bits) * panels_.width;
  }
  const Value low = f.add(low_, f.constant(u32, bytes >> 4));
  return f.bitcast(f.bit_or(f.convert(low, u64), f.constant(u64, high_)), Type::b64);
}

// In a cluster, shared addresses hold the block's rank above their 18 bits: a descriptor has its
// panel distance there.
Value TileDescriptors::within_block(Value address) const {
  ir::FunctionBuilder& f = state_.f();
  if (state_.config.options.cluster == 1) return address;
  return f.bit_and(address, f.constant(u32, 0x3FFFF));
}

}  // namespace tartan::TARTAN_ABI::detail
