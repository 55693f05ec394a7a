// SPDX-License-Identifier: Apache-2.0
// Tiled MMAs by wgmma.mma_async (PTX ISA 9.0, 9.7.15), with operands in shared memory.
#include "dsl/units/wgmma/warpgroup_mma.h"

#include <algorithm>

#include "dsl/layout/fragments.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/units/wgmma/operand_panels.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using ir::Value;

// Bytes of one instruction along k; for a sparse A, of its kept elements.
constexpr int step_bytes = tensor_step_bytes;

// Of B, which is not compressed.
int step_bytes_b(const isa::Form& form) {
  return form.sparsity == isa::Sparsity::dense ? step_bytes : 2 * step_bytes;
}

}  // namespace

std::optional<isa::Form> warpgroup_form(const KernelState& state, const MmaKind& kind,
                                        const Tile& tile, const MmaOptions& options,
                                        const Target& target, std::string& why_not) {
  isa::Form form{.opcode = isa::Opcode::wgmma};
  if (kind.shape.sparse) form.sparsity = isa::Sparsity::sp;
  form.shape = {64, static_cast<std::int16_t>(tile.n),
                static_cast<std::int16_t>(8 * step_bytes_b(form) / std::max(bits(kind.a), 1))};
  form.d = form.c = kind.c, form.a = kind.a, form.b = kind.b;
  form.satfinite = options.satfinite;
  const auto row = isa::find(form);
  if (!kind.best) why_not = "the kernel asks for another instruction";
  else if (options.d != Type::none && options.d != kind.c)
    why_not = fmt::format("its results have the accumulator's type, {}", name(kind.c));
  else if (state.config.options.producers == 0) why_not = "no producer warps fill its operands";
  else if (!row || !row->since.has(target))
    why_not = fmt::format("no form has {} columns of {}{}", tile.n,
                          kind.shape.sparse ? "sparse " : "", name(kind.a));
  else if (tile.m % 64)
    why_not = fmt::format("a warpgroup computes 64 rows, and m = {} is not a multiple", tile.m);
  else if (tile.warps_k != 1) why_not = "a warpgroup computes all of k; use warps_k = 1";
  else if (tile.warps_n != 1 || tile.warps_m % 4 || tile.m % (16 * tile.warps_m) ||
           (form.sparsity != isa::Sparsity::dense && tile.m != 16 * tile.warps_m))
    why_not = fmt::format(
        "a warpgroup computes 64 rows and all columns; use warps_m = {} and warps_n = 1",
        tile.m / 16);
  else if (tile.k % form.shape.k)
    why_not = fmt::format("k = {} is not a multiple of its k", tile.k);
  else return form;
  return std::nullopt;
}

namespace {

// A of a product, for each k-step: its descriptor, or its registers.
struct Left {
  std::function<std::vector<Value>(int step)> operand;
  std::optional<bool> trans = {};    // of a descriptor: whether lines run across k
  std::vector<Value> kept = {};      // registers that must not change until the product is done
  std::vector<Value> metadata = {};  // one word for isa::selectors() k-steps
};

// B: its descriptors.
struct Right {
  Right(KernelState& state, const isa::Form& form, const Tensor& b, const OperandPanels& panels)
      : descriptors(state, b, panels, step_bytes_b(form), 0, StageAccess::wgmma_read),
        trans(!panels.along_k),
        steps(static_cast<int>(*b.layout.rows.constant()) / form.shape.k) {}
  TileDescriptors descriptors;
  bool trans;
  int steps;
};

// One product: the k-steps of a tile, in one wgmma group.
class Product {
 public:
  Product(KernelState& state, const isa::Form& form, const MmaOptions& options,
          std::vector<Fragment> sums, bool fresh = false)
      : state_(state), form_(form), options_(options), sums_(std::move(sums)), fresh_(fresh) {}

  std::vector<Fragment> multiply(Left a, const Right& b) {
    ir::FunctionBuilder& f = state_.f();
    const bool zero = std::all_of(sums_.begin(), sums_.end(), [&](const Fragment& each) {
      return is_still_zero(state_, each);
    });
    std::vector<Value> registers;
    for (const Fragment& each : sums_)
      for (const Value& value : flying_registers(each))
        registers.push_back(zero && !fresh_ ? f.undefined(value.type) : value);
    std::vector<std::vector<Value>> all;
    for (int step = 0; step < b.steps; ++step)
      all.push_back(operands(a, b, step, (zero || fresh_) && step == 0));
    registers = f.warpgroup_product(form_, registers, all);
    a.kept.insert(a.kept.end(), a.metadata.begin(), a.metadata.end());
    return take_off(state_, sums_, registers, std::move(a.kept));
  }

 private:
  std::vector<Value> operands(const Left& a, const Right& b, int step, bool from_zero) {
    ir::FunctionBuilder& f = state_.f();
    std::vector<Value> out = a.operand(step);
    out.push_back(b.descriptors.at(step, bits(form_.b)));
    if (form_.sparsity != isa::Sparsity::dense) {
      const int each = isa::selectors(form_);
      out.push_back(a.metadata[static_cast<std::size_t>(step / each)]);
      out.push_back(f.constant(s32, step % each));
    }
    out.push_back(f.constant(Type::pred, from_zero ? 0 : 1));
    if (info(form_.a).floating) {
      out.push_back(f.constant(s32, options_.negate_a ? -1 : 1));
      out.push_back(f.constant(s32, options_.negate_b ? -1 : 1));
    }
    if (bits(form_.a) == 16) {
      if (a.trans) out.push_back(f.constant(s32, *a.trans ? 1 : 0));
      out.push_back(f.constant(s32, b.trans ? 1 : 0));
    }
    return out;
  }

  KernelState& state_;
  const isa::Form& form_;
  const MmaOptions& options_;
  std::vector<Fragment> sums_;
  bool fresh_;
};

// A warpgroup's accumulators: those of one wgmma, of 64 rows, after the other's.
class Blocks {
 public:
  Blocks(const isa::Form& form, const std::vector<Fragment>& sums)
      : sums_(sums), each_(form.shape.n / 8) {}
  int count() const { return static_cast<int>(sums_.size()) / each_; }
  std::vector<Fragment> of(int block) const {
    const auto first = sums_.begin() + block * each_;
    return {first, first + each_};
  }

 private:
  const std::vector<Fragment>& sums_;
  int each_;
};

void append(std::vector<Fragment>& to, std::vector<Fragment> fragments) {
  to.insert(to.end(), fragments.begin(), fragments.end());
}

}  // namespace

std::vector<Fragment> warpgroup_multiply(KernelState& state, const isa::Form& form,
                                         const MmaOptions& options,
                                         const std::vector<Fragment>& sums, const Tensor& a,
                                         const Tensor& b, const Scalar& group,
                                         std::vector<Value> metadata, bool fresh) {
  const auto panels_a = operand_panels(state, a, Operand::a, StageAccess::wgmma_read),
             panels_b = operand_panels(state, b, Operand::b, StageAccess::wgmma_read);
  if (!panels_a || !panels_b || !by_all_lanes(state, "mma()")) return {};
  note_read(state, a), note_read(state, b);
  // A warpgroup's 64 rows: 64 lines of each panel, or the panels of 64 elements.
  const std::int64_t rows = panels_a->distance(64, bits(form.a));
  const Right right(state, form, b, *panels_b);
  const Blocks blocks(form, sums);
  std::vector<Fragment> out;
  for (int block = 0; block < blocks.count(); ++block) {
    const TileDescriptors of_a(state, a, *panels_a, step_bytes,
                               (group * blocks.count() + block) * rows, StageAccess::wgmma_read);
    Left left{[&](int step) { return std::vector<Value>{of_a.at(step, bits(form.a))}; }};
    left.trans = !panels_a->along_k, left.metadata = metadata;
    append(out,
           Product(state, form, options, blocks.of(block), fresh).multiply(std::move(left), right));
  }
  return out;
}

std::vector<Fragment> warpgroup_multiply(KernelState& state, const isa::Form& form,
                                         const MmaOptions& options,
                                         const std::vector<Fragment>& sums, const WarpTile& a,
                                         const Tensor& b, bool fresh) {
  const auto panels_b = operand_panels(state, b, Operand::b, StageAccess::wgmma_read);
  if (!panels_b || !by_all_lanes(state, "mma()")) return {};
  note_read(state, b);
  isa::Form of_registers = form;
  of_registers.a_in_registers = true;
  const Right right(state, form, b, *panels_b);
  const Blocks blocks(form, sums);
  std::vector<Fragment> out;
  for (int block = 0; block < blocks.count(); ++block) {
    Left left;
    for (int step = 0; step < a.across(); ++step)
      for (const Value& value : registers_of(a.fragment(block, step))) left.kept.push_back(value);
    const std::size_t per_step = left.kept.size() / static_cast<std::size_t>(a.across());
    left.operand = [&, all = left.kept](int step) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(step * per_step);
      return std::vector<Value>(first, first + static_cast<std::ptrdiff_t>(per_step));
    };
    append(out, Product(state, of_registers, options, blocks.of(block), fresh)
                    .multiply(std::move(left), right));
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
