// SPDX-License-Identifier: Apache-2.0
#include "dsl/units/tcgen05/tensor_product.h"

#include <algorithm>

#include "dsl/layout/fragments.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/units/tcgen05/tensor_sums.h"
#include "dsl/units/wgmma/operand_panels.h"
#include "tartan/isa/feature.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using ir::Value;
using isa::TensorMmaKind;

struct KindRow {
  TensorMmaKind kind;
  std::string_view name;
  Type types[5];  // of A and B, of which it takes any two unless they must be `alike`
  bool alike;
  Type sum;
  // Of block-scaled kinds: mma.sync's name, the type of scales, how many a row has in one step.
  // They have a second spelling, which takes a later PTX version and is the only one of families.
  isa::Kind scaled = isa::Kind::none;
  Type scale = Type::none;
  int scales = 0;
  std::string_view of_families = {};
};
// clang-format off
constexpr KindRow kinds[] = {
    {TensorMmaKind::f16, "f16", {f16, bf16}, true, f32},
    {TensorMmaKind::f16, "f16", {f16}, true, f16},
    {TensorMmaKind::tf32, "tf32", {tf32}, true, f32},
    {TensorMmaKind::f8f6f4, "f8f6f4",
     {e4m3, e5m2, Type::e2m3, Type::e3m2, Type::e2m1}, false, f32},
    {TensorMmaKind::f8f6f4, "f8f6f4",
     {e4m3, e5m2, Type::e2m3, Type::e3m2, Type::e2m1}, false, f16},
    {TensorMmaKind::i8, "i8", {s8, u8}, false, s32},
    {TensorMmaKind::mxf8f6f4, "mxf8f6f4.block_scale.scale_vec::1X",
     {e4m3, e5m2, Type::e2m3, Type::e3m2, Type::e2m1}, false, f32,
     isa::Kind::mxf8f6f4, Type::ue8m0, 1, "mxf8f6f4.block_scale.block32"},
    {TensorMmaKind::mxf4, "mxf4.block_scale.scale_vec::2X", {Type::e2m1}, true, f32,
     isa::Kind::mxf4, Type::ue8m0, 2, "mxf4.block_scale.block32"},
    {TensorMmaKind::mxf4nvf4, "mxf4nvf4.block_scale.scale_vec::2X", {Type::e2m1}, true, f32,
     isa::Kind::mxf4nvf4, Type::ue8m0, 2, "mxf4nvf4.block_scale.block32"},
    {TensorMmaKind::mxf4nvf4, "mxf4nvf4.block_scale.scale_vec::4X", {Type::e2m1}, true, f32,
     isa::Kind::mxf4nvf4, Type::ue4m3, 4, "mxf4nvf4.block_scale.block16"},
};
// clang-format on

const KindRow* row_of(const MmaKind& kind, Type scale) {
  const auto has = [](const KindRow& row, Type type) {
    return std::ranges::find(row.types, type) != std::end(row.types);
  };
  const auto* const out = std::ranges::find_if(kinds, [&](const KindRow& row) {
    return has(row, kind.a) && has(row, kind.b) && (!row.alike || kind.a == kind.b) &&
           row.sum == kind.c && row.scale == scale &&
           (scale == Type::none || row.scaled == kind.shape.kind);
  });
  return out == std::end(kinds) ? nullptr : out;
}

std::string spelling_of(std::string_view kind, int ctas, bool sparse) {
  return fmt::format("tcgen05.mma{}.cta_group::{}.kind::{}", sparse ? ".sp" : "", ctas, kind);
}

bool has(const Target& target, std::string_view kind, bool sparse = false) {
  const std::string text = spelling_of(kind, 1, sparse);
  const isa::Spelling spelling = isa::read_spelling(text);
  return std::ranges::any_of(spelling.signatures, [&](const isa::Signature* each) {
    return isa::missing(*each, spelling, target) == nullptr;
  });
}

// The kind's name that a target has; if it has none, the first one.
std::string_view name_for(const Target& target, const KindRow& row, bool sparse) {
  const bool second = !row.of_families.empty() && !has(target, row.name, sparse);
  return second && has(target, row.of_families, sparse) ? row.of_families : row.name;
}

// Bytes of B along k of one instruction; a sparse A has half of them.
int step_bytes_b(const TensorForm& form) { return tensor_step_bytes * (form.sparse ? 2 : 1); }

// Numbers of columns, as the emulator and CUTLASS allow them.
int multiple_of_columns(TensorMmaKind kind, int rows, int n) {
  if (kind == TensorMmaKind::i8) return n == 8 || n == 24 ? 8 : 16;
  return rows == 128 ? 16 : 8;
}

}  // namespace

std::string spelling_of(const TensorForm& form) {
  return spelling_of(form.name, form.ctas, form.sparse);
}

bool has_tensor_kind(const Target& target, const MmaKind& kind, Type scale) {
  const KindRow* const row = row_of(kind, scale);
  return row && target.has(Feature::tensor_memory) && has(target, name_for(target, *row, false));
}

std::optional<Since> later_tensor_kind(const Target& target, const MmaKind& kind, Type scale) {
  const KindRow* const row = row_of(kind, scale);
  if (!row || !has_tensor_kind({target.arch, newest_version}, kind, scale)) return std::nullopt;
  const std::string text = spelling_of(row->name, 1, false);
  const isa::Spelling spelling = isa::read_spelling(text);
  for (const isa::Signature* const each : spelling.signatures)
    if (const Since* const lacks = isa::missing(*each, spelling, target);
        lacks && lacks->has(target.arch))
      return *lacks;
  return std::nullopt;
}

namespace {

// Why a pair of CTAs cannot multiply; empty if it can.
std::string why_alone(const KernelState& state, const TensorForm& form, const MmaKind& kind,
                      const Tile& tile) {
  const auto& options = state.config.options;
  if (options.cluster != 2 || options.cluster_columns != 1)
    return fmt::format("a pair is a cluster of 2 CTAs, the kernel's are of {}", options.cluster);
  if (form.rows != 128) return "each CTA of a pair has 128 rows of a warpgroup";
  // Half of the columns are whole lines of panels.
  const int unit = kind.a == s8 || kind.a == u8 ? 32 : 16;
  if (tile.n % (2 * unit)) return fmt::format("n = {} is not a multiple of {}", tile.n, 2 * unit);
  return {};
}

}  // namespace

std::shared_ptr<const TensorForm> tensor_form(const KernelState& state, const MmaKind& kind,
                                              const Tile& tile, const MmaOptions& options,
                                              std::string& why_not, std::string& alone) {
  const KindRow* const row = row_of(kind, options.scale_type);
  const int warpgroups = tile.warps_m / 4, rows = warpgroups ? tile.m / warpgroups : 0;
  TensorForm out{.rows = rows};
  why_not.clear();
  // Elements of six and four bits take bytes, except of the kinds of four bits alone.
  const bool bytes =
      row && (row->kind == TensorMmaKind::mxf8f6f4 || row->kind == TensorMmaKind::f8f6f4);
  if (row)
    out.kind = row->kind, out.scales = row->scales, out.sparse = kind.shape.sparse,
    out.name = name_for(state.config.target, *row, out.sparse),
    out.step = 8 * step_bytes_b(out) / (bytes ? 8 : bits(kind.a));
  if (!kind.best) why_not = "the kernel asks for another instruction";
  else if (options.d != Type::none && options.d != kind.c)
    why_not = fmt::format("its results have the accumulator's type, {}", name(kind.c));
  else if ((kind.shape.sparse || options.scale_type != Type::none) && rows != 128)
    why_not = "a warpgroup has 128 rows of a sparse or scaled kind; use m = 32 * warps_m";
  else if (!row || options.satfinite)
    why_not = fmt::format("no kind multiplies {} and {} into {}{}", name(kind.a), name(kind.b),
                          name(kind.c), options.satfinite ? " with .satfinite" : "");
  else if (!has(state.config.target, out.name, out.sparse))
    why_not = fmt::format("{} has no {}", state.config.target.text(),
                          spelling_of(out.name, 1, out.sparse));
  else if (state.config.options.producers == 0) why_not = "no producer warps fill its operands";
  else if (tile.warps_k != 1) why_not = "a warpgroup computes all of k; use warps_k = 1";
  else if (tile.warps_n != 1 || tile.warps_m % 4 || tile.m % warpgroups ||
           (rows != 64 && rows != 128))
    why_not = fmt::format(
        "a warpgroup computes 128 or 64 rows and all columns; use warps_m = {} and warps_n = 1",
        std::max(1, tile.m / 128) * 4);
  else if (const int multiple = multiple_of_columns(row->kind, rows, tile.n);
           tile.n > 256 || tile.n % multiple)
    why_not = fmt::format("n = {}: expected a multiple of {} up to 256", tile.n, multiple);
  else if (tile.k % out.step)
    why_not = fmt::format("k = {} is not a multiple of its k, {}", tile.k, out.step);
  if (!why_not.empty()) return nullptr;
  if (options.ctas == 2) alone = why_alone(state, out, kind, tile);
  if (options.ctas == 2 && alone.empty()) out.ctas = 2;
  return std::make_shared<const TensorForm>(out);
}

std::shared_ptr<TensorSum> declare_tensor_sum(const TiledParts& mma,
                                              std::span<const FragmentVariable> fragments) {
  KernelState& state = *mma.state;
  auto out = std::make_shared<TensorSum>(TensorSum{.ctas = mma.tensor->ctas,
                                                   .rows = mma.tensor->rows,
                                                   .columns = mma.tile.n,
                                                   .type = mma.kind.c,
                                                   .warpgroup = state.roles.warpgroup});
  for (const FragmentVariable& each : fragments)
    out->fragments.push_back(HandleParts::record(each));
  out->begun = state.f().variable(state.f().constant(u32, 0));
  state.tensor_sums.all.push_back(out);
  note(state, *out, TensorSum::What::declared);
  return out;
}

void note(KernelState& state, TensorSum& sum, TensorSum::What what, TensorSum::Part part) {
  const int mark = state.f().mark();
  sum.events.push_back(
      {what, part, state.f().region_of(mark), state.roles.warpgroup, state.log.location()});
}

void note(KernelState& state, TensorSum& sum, TensorSum::What what) {
  note(state, sum, what, {0, sum.columns / 8});
}

bool accumulates(const TiledParts& mma, const TensorSum& sum) {
  return sum.ctas == mma.tensor->ctas && sum.rows == mma.tensor->rows &&
         sum.columns == mma.tile.n && sum.type == mma.kind.c;
}

namespace {

// A of a product, for each k-step: its descriptor, or its address in tensor memory.
struct FirstOperand {
  bool in_tensor_memory = false, mn_major = false;
  std::function<Value(int step)> operand;
};

// What a product reads in tensor memory in addition to its operands.
struct StoredData {
  std::optional<TensorScales> scales = {};
  std::optional<TensorMetadata> metadata = {};
};

// The k-steps of a product, by the thread that issues them.
void issue(const TiledParts& mma, const Value& sum, const Value& begun, const FirstOperand& a,
           const Tensor& b, const OperandPanels& panels_b, const StoredData& stored, bool fresh) {
  KernelState& state = *mma.state;
  ir::FunctionBuilder& f = state.f();
  const TensorForm& form = *mma.tensor;
  isa::TensorProduct product{.m = form.ctas * form.rows,
                             .n = mma.tile.n,
                             .a = mma.kind.a,
                             .b = mma.kind.b,
                             .d = mma.kind.c,
                             .negate_a = mma.options.negate_a,
                             .negate_b = mma.options.negate_b,
                             .mn_major_a = a.mn_major,
                             .mn_major_b = !panels_b.along_k,
                             .scale = mma.options.scale_type};
  product.sparse = form.sparse;
  const auto& [scales, metadata] = stored;
  const TileDescriptors of_b(state, b, panels_b, step_bytes_b(form), 0, StageAccess::tensor_read);
  const std::string text = spelling_of(form) + (a.in_tensor_memory ? " [%0], [%1]" : " [%0], %1") +
                           (scales     ? ", %2, %3, [%5], [%6], %4;"
                            : metadata ? ", %2, [%5], %3, %4;"
                                       : ", %2, %3, %4;");
  for (int step = 0; step < mma.tile.k / form.step; ++step) {
    const Value adds = step > 0 ? f.constant(Type::pred, 1)
                       : fresh  ? f.constant(Type::pred, 0)
                                : f.compare(ir::Compare::ne, begun, f.constant(u32, 0));
    const int scale = step * form.scales, word = scale / 4;
    product.scale_a = product.scale_b = scale % 4;
    const Value descriptor = f.constant(
        b32, static_cast<std::int64_t>(*isa::instruction_descriptor(form.kind, product)));
    std::vector<Value> operands{sum, a.operand(step), of_b.at(step, bits(b.type)), descriptor,
                                adds};
    if (metadata)
      operands.push_back(f.add(metadata->first, f.constant(u32, step * metadata->columns)));
    if (scales) {
      operands.push_back(f.add(scales->a, f.constant(u32, word * scales->columns_a)));
      operands.push_back(f.add(scales->b, f.constant(u32, word * scales->columns_b)));
    }
    (void)f.statement(text, {}, operands, false);
  }
}

// By the thread that issues; `left` describes A there.
void multiply(const TiledParts& mma, TensorSum& sum, const std::function<FirstOperand()>& left,
              const Tensor& b, const OperandPanels& panels_b, const StoredData& stored,
              bool fresh) {
  KernelState& state = *mma.state;
  ir::FunctionBuilder& f = state.f();
  if ((mma.tensor->ctas == 2) != state.tensor_sums.pairs)
    return state.log.report(
        "kernel-option"_rule,
        fmt::format("product of {}: expected {}, as other products of this kernel; the CTAs of a "
                    "pair have all columns of tensor memory together",
                    *mma.text, state.tensor_sums.pairs ? "ctas = 2" : "ctas = 1"));
  note(state, sum, fresh ? TensorSum::What::multiplied : TensorSum::What::added);
  const Value first = first_column(state, sum), begun = f.get(sum.begun);
  f.if_then(issues_products(state),
            [&] { issue(mma, first, begun, left(), b, panels_b, stored, fresh); });
  f.set(sum.begun, f.constant(u32, 1));
  for (const auto& each : sum.fragments) ++each->version;
}

}  // namespace

void tensor_multiply(const TiledParts& mma, TensorSum& sum, const Tensor& a, const Tensor& b,
                     bool fresh, const TensorData& data) {
  KernelState& state = *mma.state;
  const auto panels_a = operand_panels(state, a, Operand::a, StageAccess::tensor_read),
             panels_b = operand_panels(state, b, Operand::b, StageAccess::tensor_read);
  if (!panels_a || !panels_b || !by_all_lanes(state, "mma()")) return;
  const bool ordered = require_barrier(state, a);
  if (!require_barrier(state, b) || !ordered) return;
  const auto left = [&] {
    const Scalar first = mma.warp_m / 4 * panels_a->distance(mma.tensor->rows, bits(a.type));
    const TileDescriptors of_a(state, a, *panels_a, tensor_step_bytes, first,
                               StageAccess::tensor_read);
    return FirstOperand{
        .mn_major = !panels_a->along_k,
        .operand = [of_a, width = bits(a.type)](int step) { return of_a.at(step, width); }};
  };
  const Scalar first_row = mma.warp_m / 4 * mma.tensor->rows;
  StoredData stored;
  if (data.scales_a)
    stored.scales = store_scales(state, sum, first_row, mma.tile.k / mma.scale_block() / 4,
                                 *data.scales_a, *data.scales_b);
  if (data.metadata)
    stored.metadata = store_metadata(state, sum, first_row, mma.tile.k / mma.tensor->step,
                                     bits(mma.kind.a) == 8, *data.metadata);
  multiply(mma, sum, left, b, *panels_b, stored, fresh);
}

void tensor_multiply(const TiledParts& mma, TensorSum& sum, const WarpTile& a, const Tensor& b,
                     bool fresh) {
  KernelState& state = *mma.state;
  const auto panels_b = operand_panels(state, b, Operand::b, StageAccess::tensor_read);
  if (!panels_b || !by_all_lanes(state, "mma()") || !require_barrier(state, b)) return;
  const Value first = store_operand(state, sum, a);
  const auto left = [&] {
    return FirstOperand{.in_tensor_memory = true, .operand = [&](int step) {
                          ir::FunctionBuilder& f = state.f();
                          return f.add(first, f.constant(u32, step * (tensor_step_bytes / 4)));
                        }};
  };
  multiply(mma, sum, left, b, *panels_b, {}, fresh);
}

}  // namespace tartan::TARTAN_ABI::detail
