// SPDX-License-Identifier: Apache-2.0
// Loading fragments: ldmatrix, wmma.load or plain loads, chosen from the layouts.
#include "compiler/isa/instruction.h"
#include "dsl/fragment_map.h"
#include "dsl/state.h"

namespace tartan::detail {
namespace {

using codegen::Pointer;
using codegen::Value;

// Which way the tile's rows of 16 bytes run, and whether ldmatrix must transpose for the fragment.
struct LdmatrixPlan {
  MatrixTiling tiling;
  isa::Form form;
};

class Loader {
 public:
  Loader(KernelState& state, const FragmentKind& kind, const Tensor& from)
      : state_(state),
        kind_(kind),
        from_(from),
        shared_(state.memories[static_cast<std::size_t>(from.memory)].in_shared) {}

  Fragment load() {
    if (kind_.shape.wmma) return wmma_load();
    std::string refused;
    if (const auto plan = ldmatrix_plan(refused)) return ldmatrix(*plan);
    return plain(refused);
  }

 private:
  std::string what() const { return fmt::format("load {} from {}", kind_.text(), from_.name); }

  std::optional<LdmatrixPlan> ldmatrix_plan(std::string& refused) const {
    const auto no = [&](std::string why) {
      refused = "ldmatrix: " + std::move(why);
      return std::nullopt;
    };
    if (!shared_)
      return no(fmt::format("{} is in global memory, ldmatrix reads shared memory", from_.name));
    auto tiling = matrix_tiling(kind_);
    if (!tiling)
      return no(fmt::format("the fragment does not consist of 8x8 matrices of 16-bit elements"));
    const Major major = from_.layout.major();
    if (major == Major::none)
      return no(fmt::format("neither rows nor columns of {} are contiguous", from_.layout.text()));
    isa::Form form{.opcode = isa::Opcode::ldmatrix, .shape = {8, 8}, .d = b16};
    form.count = static_cast<std::uint8_t>(tiling->origins.size());
    form.trans = (major == Major::row) != tiling->pairs_along_columns;
    form.space = Space::shared;
    const auto row = isa::find(form);
    if (!row) return no(fmt::format("there is no .x{}", tiling->origins.size()));
    if (!row->since.has(state_.target))
      return no(fmt::format("it exists from {} with PTX {} on", isa::oldest(row->since).text(),
                            row->since.ptx.text()));
    const int aligned =
        major == Major::row ? state_.aligned_bytes(from_, 1, 8) : state_.aligned_bytes(from_, 8, 1);
    if (aligned < 16)
      return no(fmt::format(
          "its rows must start on 16-byte boundaries, those of {} are sure of {} bytes only",
          from_.layout.text(), aligned));
    return LdmatrixPlan{std::move(*tiling), form};
  }

  // The lane's row address: lane 8m+i points to row i of matrix m. The matrices' origins are linear
  // in the bits of m.
  Fragment ldmatrix(const LdmatrixPlan& plan) {
    const Scalar lane = state_.scalar(state_.lane());
    const auto& origins = plan.tiling.origins;
    Scalar row = origins[0].row, col = origins[0].col;
    for (std::size_t bit = 0; (std::size_t{1} << bit) < origins.size(); ++bit) {
      const isa::Coord& step = origins[std::size_t{1} << bit];
      const Scalar set = lane / (8 << bit) % 2;
      row += set * (step.row - origins[0].row);
      col += set * (step.col - origins[0].col);
    }
    (from_.layout.major() == Major::row ? row : col) += lane % 8;
    const Pointer address = state_.pointer(from_, row, col);
    const std::string reason = fmt::format(
        "{} 8x8 matrices of 16-bit elements; {} are contiguous in {}, the fragment wants pairs "
        "along {}{}",
        origins.size(), from_.layout.major() == Major::row ? "rows" : "columns", from_.name,
        plan.tiling.pairs_along_columns ? "rows" : "columns", plan.form.trans ? ", so .trans" : "");
    const std::string_view refused =
        plan.form.trans ? "without .trans: the tile is stored the other way"
                        : ".trans: the tile is stored the way the fragment wants it";
    state_.choose(what(), isa::spell(plan.form), reason, {std::string(refused)});
    return state_.fragment(kind_, state_.f().matrix(plan.form, address, {}));
  }

  Fragment wmma_load() {
    isa::Form form{.opcode = isa::Opcode::wmma_load,
                   .operand = kind_.operand,
                   .shape = kind_.shape.shape,
                   .a_major = from_.layout.major(),
                   .d = kind_.type};
    form.space = shared_ ? Space::shared : Space::global;
    form.stride = true;
    const auto row = isa::find(form);
    if (!row || form.a_major == Major::none) {
      state_.report("no-instruction"_rule, fmt::format("wmma.load cannot load {} from {}",
                                                       kind_.text(), from_.layout.text()));
      return {};
    }
    if (!row->since.has(state_.target)) return refuse_target(*row);
    const isa::Fragment fragment = kind_.fragment();
    const int wanted = std::min(32, fragment.elements() / fragment.copies * bits(kind_.type) / 8);
    const int aligned = form.a_major == Major::row ? state_.aligned_bytes(from_, 1, 0)
                                                   : state_.aligned_bytes(from_, 0, 1);
    if (from_.layout.swizzle.bits || aligned < std::min(wanted, 16)) {
      state_.report(
          "layout-alignment"_rule,
          fmt::format(
              "wmma.load needs rows that start on {}-byte boundaries and no swizzle; {} gives {}",
              wanted, from_.layout.text(), aligned));
      return {};
    }
    const Scalar& stride =
        form.a_major == Major::row ? from_.layout.row_stride : from_.layout.col_stride;
    const Value operands[] = {state_.value(stride, u32)};
    state_.choose(what(), isa::spell(form),
                  fmt::format("wmma fragments are opaque: only wmma.load fills them; {} is {}",
                              from_.name, from_.layout.text()));
    return state_.fragment(kind_, state_.f().matrix(form, state_.pointer(from_, 0, 0), operands),
                           form.a_major);
  }

  Fragment refuse_target(const isa::Instruction& row) {
    state_.report(
        "no-instruction"_rule,
        fmt::format("{} exists from {} with PTX {} on, the target is {}", isa::spell(row.form),
                    isa::oldest(row.since).text(), row.since.ptx.text(), state_.target.text()));
    return {};
  }

  Fragment plain(const std::string& refused) {
    const isa::Fragment fragment = kind_.fragment();
    if (!affine_map(kind_, 0) || fragment.per_register > 2) {
      state_.report("no-instruction"_rule, fmt::format("there is no way to load {} from {}: {}",
                                                       kind_.text(), from_.name, refused));
      return {};
    }
    const Scalar lane = state_.scalar(state_.lane()), group = lane / 4, member = lane % 4;
    std::vector<Pointer> places;
    for (int i = 0; i < fragment.elements(); ++i) {
      const AffineMap map = *affine_map(kind_, i);
      places.push_back(
          state_.pointer(from_, group * map.group.row + member * map.member.row + map.origin.row,
                         group * map.group.col + member * map.member.col + map.origin.col));
    }
    std::vector<Value> registers;
    const bool pairs = pair_contiguous();
    for (int r = 0; r < fragment.registers; ++r) {
      if (fragment.per_register == 1) {
        registers.push_back(register_load(places[static_cast<std::size_t>(r)]));
      } else if (pairs) {
        registers.push_back(state_.f().load(places[static_cast<std::size_t>(2 * r)], b32));
      } else {
        const Value low = state_.f().load(places[static_cast<std::size_t>(2 * r)], u16),
                    high = state_.f().load(places[static_cast<std::size_t>(2 * r + 1)], u16);
        registers.push_back(state_.f().pack(low, high, b32));
      }
    }
    const std::string width =
        fmt::format("ld.{} of {} bits", shared_ ? "shared" : "global",
                    fragment.per_register == 2 && !pairs ? 16 : bits(register_type(kind_.type)));
    state_.choose(what(), width, "each lane reads its own elements", {refused});
    return state_.fragment(kind_, std::move(registers));
  }

  Value register_load(Pointer from) { return state_.f().load(from, register_type(kind_.type)); }

  // Both elements of each register are neighbours in memory, on a 4-byte boundary.
  bool pair_contiguous() const {
    if (kind_.fragment().per_register != 2) return false;
    const isa::Coord first = kind_.coord(0, 0), second = kind_.coord(0, 1);
    const bool along_columns = second.col == first.col + 1;
    if (from_.layout.major() != (along_columns ? Major::row : Major::col)) return false;
    return (along_columns ? state_.aligned_bytes(from_, 1, 2)
                          : state_.aligned_bytes(from_, 2, 1)) >= 4;
  }

  KernelState& state_;
  const FragmentKind& kind_;
  const Tensor& from_;
  bool shared_;
};

}  // namespace

Fragment KernelState::load(const FragmentKind& kind, const Tensor& from) {
  if (!owns(from, from.name) || from.memory < 0) return {};
  const isa::Fragment fragment = kind.fragment();
  if (fragment.registers == 0 || kind.operand == Operand::none) {
    report("fragment-mismatch"_rule, fmt::format("there is no fragment {}", kind.text()));
    return {};
  }
  const bool right_type = from.type == kind.type || (bits(from.type) == bits(kind.type) &&
                                                     (from.type == f32 || kind.type == tf32));
  if (!right_type)
    report("layout-mismatch"_rule,
           fmt::format("{} takes elements of type {}, {} has {}", kind.text(), name(kind.type),
                       from.name, name(from.type)));
  if (!require_shape(from, fragment.rows, fragment.cols, kind.text()) || !right_type) return {};
  return Loader(*this, kind, from).load();
}

}  // namespace tartan::detail
