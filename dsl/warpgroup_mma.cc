// SPDX-License-Identifier: Apache-2.0
// Tiled products by whole warpgroups: wgmma.mma_async (PTX ISA 9.7.15), operands from shared
// memory.
#include "dsl/warpgroup_mma.h"

#include <algorithm>

namespace tartan::detail {
namespace {

using codegen::Value;

constexpr int step_bytes = 32;  // of one instruction along k

// A tile of shared memory as wgmma sees it: panels with lines of `width` bytes, swizzled as wide,
// one panel behind the other.
struct Panels {
  bool along_k = false;    // whether neighbours lie along k
  std::int64_t width = 0;  // bytes
  std::int64_t lines = 0;  // of each panel
  std::int64_t bytes() const { return width * lines; }
};

std::optional<Panels> panels(const Tensor& tile, bool along_columns) {
  const Layout& layout = tile.layout;
  const Major major = layout.major();
  if (major == Major::none || tile.offset.constant() != 0) return std::nullopt;
  const bool by_rows = major == Major::row;
  const int element = bits(tile.type);
  const std::int64_t line = *(by_rows ? layout.cols : layout.rows).constant();
  const std::int64_t panel = layout.run() ? layout.run() : line;
  Panels out{.along_k = by_rows == along_columns,
             .width = panel * element / 8,
             .lines = *(by_rows ? layout.rows : layout.cols).constant()};
  const auto stride = (by_rows ? layout.row_stride : layout.col_stride).constant();
  const int chunks = out.width == 128 ? 3 : out.width == 64 ? 2 : out.width == 32 ? 1 : 0;
  const Swizzle& swizzle = layout.swizzle;
  const bool swizzled = chunks && swizzle.bits == chunks && swizzle.shift == 3 &&
                        (std::int64_t{element} << swizzle.base) == 128;
  if (stride != panel || line % panel || !swizzled || out.lines % 8) return std::nullopt;
  if (!out.along_k && element != 16) return std::nullopt;
  return out;
}

// Descriptors of an operand for the steps of a tile (section "matrix descriptor"): the address of
// its first element, the distances between panels and between groups of eight lines, the swizzle.
class Descriptors {
 public:
  Descriptors(KernelState& state, const Tensor& tile, const Panels& panels, const Scalar& first)
      : state_(state), panels_(panels) {
    codegen::FunctionBuilder& f = state.f();
    const Value address = f.shared_address(state.pointer(tile, 0, 0));
    const Value begin = state.value(state.scalar(address) + first, u32);
    const std::int64_t apart = panels.along_k ? 16 : panels.bytes();
    low_ = f.bit_or(f.shift_right(begin, f.constant(u32, 4)), f.constant(u32, (apart >> 4) << 16));
    const std::int64_t mode = panels.width == 128 ? 1 : panels.width == 64 ? 2 : 3;
    high_ = (8 * panels.width >> 4) << 32 | mode << 62;
  }

  /// For step number `step` along k of elements of `bits` bits.
  Value at(int step, int bits) const {
    codegen::FunctionBuilder& f = state_.f();
    std::int64_t bytes = 0;
    if (panels_.along_k) {
      const std::int64_t along = std::int64_t{step} * step_bytes;
      bytes = along / panels_.width * panels_.bytes() + along % panels_.width;
    } else {
      bytes = std::int64_t{step} * (8 * step_bytes / bits) * panels_.width;
    }
    const Value low = f.add(low_, f.constant(u32, bytes >> 4));
    return f.bitcast(f.bit_or(f.convert(low, u64), f.constant(u64, high_)), Type::b64);
  }

 private:
  KernelState& state_;
  Panels panels_;
  Value low_;
  std::int64_t high_ = 0;
};

}  // namespace

std::optional<isa::Form> warpgroup_form(const KernelState& state, const MmaKind& kind,
                                        const Tile& tile, std::string& why_not) {
  isa::Form form{.opcode = isa::Opcode::wgmma};
  form.shape = {64, static_cast<std::int16_t>(tile.n),
                static_cast<std::int16_t>(8 * step_bytes / std::max(bits(kind.a), 1))};
  form.d = form.c = kind.c, form.a = kind.a, form.b = kind.b;
  const auto row = isa::find(form);
  const bool integers = kind.a == s8 || kind.a == Type::u8;
  const bool halves = kind.a == f16 || kind.a == bf16;
  if (!state.target.arch.text().starts_with("sm_90a"))
    why_not = fmt::format("the target is {}, not sm_90a", state.target.arch.text());
  else if (!kind.best) why_not = "the description asks for another instruction";
  else if (state.options.producers == 0) why_not = "no producers fill its operands";
  else if (!integers && !halves)
    why_not = fmt::format("products of {} would have other bits", name(kind.a));
  else if (kind.shape.sparse || !row || !row->since.has(state.target))
    why_not = fmt::format("there is none of {} columns of {}", tile.n, name(kind.a));
  else if (tile.warps_n != 1 || tile.warps_m % 4 || tile.m != 16 * tile.warps_m)
    why_not = fmt::format(
        "its warpgroups compute 64 rows and all columns each: warps_m = {}, "
        "warps_n = 1 would do",
        tile.m / 16);
  else if (tile.k % form.shape.k) why_not = fmt::format("k = {} is no multiple of it", tile.k);
  else return form;
  return std::nullopt;
}

std::vector<Fragment> warpgroup_multiply(KernelState& state, const isa::Form& form,
                                         const std::vector<Fragment>& sums, const Shared& a,
                                         const Shared& b, const Scalar& group) {
  const auto panels_a = panels(a, true), panels_b = panels(b, false);
  for (const auto& [found, tile, shape] :
       {std::tuple(&panels_a, &a, "A"), std::tuple(&panels_b, &b, "B")})
    if (!*found)
      state.report(
          "layout-mismatch"_rule,
          fmt::format("wgmma reads {} as shared_{}() lays it out, {} along k alone; {} is {}",
                      shape, *shape == 'A' ? 'a' : 'b', "elements of 8 bits", tile->name,
                      tile->layout().text()));
  if (!panels_a || !panels_b) return {};
  codegen::FunctionBuilder& f = state.f();
  const int element = bits(form.a);
  // A warpgroup's 64 rows: 64 lines of each panel, or as many panels as have 64 elements.
  const std::int64_t rows = panels_a->along_k
                                ? 64 * panels_a->width
                                : 64 * element / 8 / panels_a->width * panels_a->bytes();
  const Descriptors of_a(state, a, *panels_a, group * rows), of_b(state, b, *panels_b, 0);
  std::vector<Value> registers;
  for (const Fragment& each : sums)
    for (const Value& value : KernelState::registers(each)) registers.push_back(value);
  const Value one = f.constant(s32, 1);
  f.warpgroup_fence();
  for (int step = 0; step < *a.layout().cols.constant() / form.shape.k; ++step) {
    std::vector<Value> operands = registers;
    operands.push_back(of_a.at(step, element));
    operands.push_back(of_b.at(step, element));
    operands.push_back(f.constant(Type::pred, 1));
    if (info(form.a).floating) operands.insert(operands.end(), {one, one});
    if (element == 16)
      for (const Panels& each : {*panels_a, *panels_b})
        operands.push_back(f.constant(s32, each.along_k ? 0 : 1));
    registers = f.matrix(form, {}, operands);
  }
  f.warpgroup_commit();
  registers = f.warpgroup_wait(0, registers);
  std::vector<Fragment> out;
  auto next = registers.begin();
  for (const Fragment& each : sums) {
    const auto count = static_cast<std::ptrdiff_t>(KernelState::registers(each).size());
    out.push_back(state.fragment(each.kind(), {next, next + count}));
    next += count;
  }
  return out;
}

}  // namespace tartan::detail
