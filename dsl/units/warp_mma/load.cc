// SPDX-License-Identifier: Apache-2.0
// Loading fragments: ldmatrix, wmma.load or plain loads, chosen from the layouts.
#include "dsl/cluster/cluster.h"
#include "dsl/layout/addressing.h"
#include "dsl/layout/fragment_map.h"
#include "dsl/layout/fragments.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using ir::Pointer;
using ir::Value;

// The direction of the tile's 16-byte rows, and whether ldmatrix must transpose for the fragment.
struct LdmatrixPlan {
  MatrixTiling tiling;
  isa::Form form;
};

class Loader {
 public:
  Loader(KernelState& state, const FragmentKind& kind, const Tensor& from)
      : state_(state), kind_(kind), from_(from), shared_(state.memories.of(from).in_shared) {}

  Fragment load() {
    if (kind_.shape.wmma) return wmma_load();
    std::string refused;
    if (const auto plan = ldmatrix_plan(1, refused)) return ldmatrix(*plan)[0];
    return plain(refused);
  }

  // Two neighbouring fragments by one ldmatrix, if possible.
  std::vector<Fragment> load_pair() {
    std::string refused;
    const auto plan = kind_.shape.wmma ? std::nullopt : ldmatrix_plan(2, refused);
    return plan ? ldmatrix(*plan) : std::vector<Fragment>{};
  }

 private:
  std::string what() const { return fmt::format("load {} from {}", kind_.text(), from_.name); }

  // For `count` fragments, side by side along m (A) or n (B).
  std::optional<LdmatrixPlan> ldmatrix_plan(int count, std::string& refused) const {
    const auto no = [&](std::string why) {
      refused = "ldmatrix: " + std::move(why);
      return std::nullopt;
    };
    if (!shared_)
      return no(fmt::format("{} is in global memory, ldmatrix reads shared memory", from_.name));
    if (is_remote(state_, from_))
      return no(fmt::format("{} is in another CTA, which only ld reads", from_.name));
    auto tiling = matrix_tiling(kind_);
    if (!tiling) return no("the fragment does not consist of 8x8 matrices with rows of 16 bytes");
    for (std::size_t i = 0, own = tiling->origins.size(); count == 2 && i < own; ++i) {
      isa::Coord origin = tiling->origins[i];
      (kind_.operand == Operand::b ? origin.col : origin.row) +=
          kind_.operand == Operand::b ? kind_.fragment().cols : kind_.fragment().rows;
      tiling->origins.push_back(origin);
    }
    const Major major = from_.layout.major();
    if (major == Major::none)
      return no(fmt::format("neither rows nor columns of {} are contiguous", from_.layout.text()));
    const bool packed = takes_bytes(kind_);
    if (packed && from_.type != Type::b8)
      return no(fmt::format(
          "{} has elements of type {}; copy them to a tile of b8, see TiledMma::stored_a()",
          from_.name, name(from_.type)));
    isa::Form form{.opcode = isa::Opcode::ldmatrix, .shape = {8, 8}, .d = b16};
    if (packed) {
      form.shape = {8, 16}, form.d = Type::b8x16;
      form.a = bits(kind_.type) == 6 ? Type::b6x16_p32 : Type::b4x16_p64;
    }
    form.count = static_cast<std::uint8_t>(tiling->origins.size());
    form.trans = (major == Major::row) != tiling->pairs_along_columns;
    form.space = StateSpace::shared;
    const auto row = isa::find(form);
    if (!row) return no(fmt::format(".x{} does not exist", tiling->origins.size()));
    if (!row->since.has(state_.config.target))
      return no(fmt::format("requires {}", isa::text(row->since)));
    if (form.trans && bits(kind_.type) != 16)
      return no(fmt::format(
          "{} has the opposite major order, and .trans requires elements of 16 bits", from_.name));
    const int line = 128 / bits(from_.type);  // elements of 16 bytes
    const int aligned = major == Major::row ? aligned_bytes(state_, from_, 1, line)
                                            : aligned_bytes(state_, from_, line, 1);
    if (aligned < 16)
      return no(fmt::format("its rows must be 16-byte aligned, {} guarantees only {} bytes",
                            from_.layout.text(), aligned));
    return LdmatrixPlan{std::move(*tiling), form};
  }

  // The lane's row address: lane 8m+i points to row i of matrix m. The matrices' origins are linear
  // in the bits of m.
  std::vector<Fragment> ldmatrix(const LdmatrixPlan& plan) {
    const Scalar lane = state_.scalar(lane_index(state_), 1, 31);
    const auto& origins = plan.tiling.origins;
    Scalar row = origins[0].row, col = origins[0].col;
    for (std::size_t bit = 0; (std::size_t{1} << bit) < origins.size(); ++bit) {
      const isa::Coord& step = origins[std::size_t{1} << bit];
      const Scalar set = lane / (8 << bit) % 2;
      row += set * (step.row - origins[0].row);
      col += set * (step.col - origins[0].col);
    }
    (from_.layout.major() == Major::row ? row : col) += lane % 8;
    const Pointer address = address_of(state_, from_, row, col);
    const std::string reason = fmt::format(
        "{} 8x8 matrices with rows of 16 bytes; {} of {} are contiguous, the fragment needs pairs "
        "along {}{}",
        origins.size(), from_.layout.major() == Major::row ? "rows" : "columns", from_.name,
        plan.tiling.pairs_along_columns ? "rows" : "columns", plan.form.trans ? ", so .trans" : "");
    const std::string_view refused =
        plan.form.trans ? "without .trans: the tile has the opposite major order"
                        : ".trans: the tile already has the fragment's major order";
    state_.log.choose(what(), isa::spell(plan.form), reason, {std::string(refused)});
    std::vector<Value> registers = state_.f().matrix(plan.form, address, {});
    if (plan.form.a == Type::b4x16_p64) to_middle(registers);
    const auto each = static_cast<std::ptrdiff_t>(kind_.fragment().registers);
    std::vector<Fragment> out;
    for (auto at = registers.begin(); at != registers.end(); at += each)
      out.push_back(make_fragment(state_, kind_, std::vector<Value>(at, at + each)));
    return out;
  }

  // ldmatrix leaves four-bit elements at the low end of their bytes; MMAs expect them in the
  // middle.
  void to_middle(std::vector<Value>& registers) {
    for (Value& each : registers)
      each = state_.f().bitcast(
          state_.f().shift_left(state_.f().bitcast(each, u32), state_.f().constant(u32, 2)), b32);
  }

  Fragment wmma_load() {
    if (refuse_remote(state_, from_, "wmma.load")) return {};
    isa::Form form{.opcode = isa::Opcode::wmma_load,
                   .operand = kind_.operand,
                   .shape = kind_.shape.shape,
                   .a_major = from_.layout.major(),
                   .d = kind_.type};
    form.space = shared_ ? StateSpace::shared : StateSpace::global;
    form.stride = true;
    const auto row = isa::find(form);
    if (!row || form.a_major == Major::none || from_.layout.is_nested()) {
      state_.log.report("no-instruction"_rule, fmt::format("wmma.load cannot load {} from {}",
                                                           kind_.text(), from_.layout.text()));
      return {};
    }
    if (!row->since.has(state_.config.target)) return state_.log.refuse_target(*row), Fragment{};
    if (from_.row_edge || from_.col_edge) {
      state_.log.report("tile-divide"_rule,
                        fmt::format("wmma.load needs whole tiles, those of {} "
                                    "exceed its edge; copy through shared memory",
                                    from_.name));
      return {};
    }
    const isa::Fragment fragment = kind_.fragment();
    const int wanted = std::min(32, fragment.elements() / fragment.copies * bits(kind_.type) / 8);
    const int aligned = form.a_major == Major::row ? aligned_bytes(state_, from_, 1, 0)
                                                   : aligned_bytes(state_, from_, 0, 1);
    if (from_.layout.swizzle.bits || aligned < std::min(wanted, 16)) {
      state_.log.report(
          "layout-alignment"_rule,
          fmt::format(
              "wmma.load requires {}-byte aligned rows and no swizzle; {} guarantees {} bytes",
              wanted, from_.layout.text(), aligned));
      return {};
    }
    const Scalar& stride =
        form.a_major == Major::row ? from_.layout.row_stride : from_.layout.col_stride;
    const Value operands[] = {state_.value(stride, u32)};
    state_.log.choose(
        what(), isa::spell(form),
        fmt::format("wmma fragments are opaque: only wmma.load can load them; {} is {}", from_.name,
                    from_.layout.text()));
    return make_fragment(state_, kind_,
                         state_.f().matrix(form, address_of(state_, from_, 0, 0), operands),
                         form.a_major);
  }

  Fragment plain(const std::string& refused) {
    const isa::Fragment fragment = kind_.fragment();
    const bool together = register_contiguous();
    if (!affine_map(kind_, 0) || fragment.container_bits != bits(kind_.type) ||
        (bits(kind_.type) < 8 && !together)) {
      state_.log.report(
          "no-instruction"_rule,
          fmt::format("no instruction loads {} from {}: {}{}", kind_.text(), from_.name, refused,
                      bits(kind_.type) < 8 ? "; keep it contiguous along k" : ""));
      return {};
    }
    std::vector<Value> registers;
    for (int r = 0; r < fragment.registers; ++r)
      registers.push_back(together ? read(r * fragment.per_register, register_type(kind_.type))
                                   : gathered(r, fragment));
    const std::string width =
        fmt::format("ld.{} of {} bits", shared_ ? "shared" : "global",
                    together ? bits(register_type(kind_.type)) : bits(kind_.type));
    state_.log.choose(what(), width, "each lane loads its own elements", {refused});
    return make_fragment(state_, kind_, std::move(registers));
  }

  // Element i of this lane; zero out of bounds.
  Value read(int i, Type type) {
    const Scalar lane = state_.scalar(lane_index(state_), 1, 31), group = lane / 4,
                 member = lane % 4;
    const AffineMap map = *affine_map(kind_, i);
    const Scalar row = group * map.group.row + member * map.member.row + map.origin.row,
                 col = group * map.group.col + member * map.member.col + map.origin.col;
    const auto exists = is_inside(state_, from_, row, col);
    const Pointer place = address_of(state_, from_, row, col);
    if (!exists) return state_.f().load(place, type);
    const ir::Variable out = state_.f().variable(zero_value(state_.f(), type));
    state_.f().if_then(*exists, [&] { state_.f().set(out, state_.f().load(place, type)); });
    return state_.f().get(out);
  }

  // A register from elements that are not contiguous.
  Value gathered(int r, const isa::Fragment& fragment) {
    if (fragment.per_register == 2) {
      const Value low = read(2 * r, u16), high = read(2 * r + 1, u16);
      return state_.f().pack(low, high, b32);
    }
    Value word = state_.f().constant(u32, 0);
    for (int e = 0; e < fragment.per_register; ++e) {
      const Value byte = state_.f().convert(read(fragment.per_register * r + e, Type::u8), u32);
      word = state_.f().bit_or(word, state_.f().shift_left(byte, state_.f().constant(u32, 8 * e)));
    }
    return state_.f().bitcast(word, b32);
  }

  // Whether the elements of each register are contiguous and aligned to the register's size, and
  // the matrix does not end among them.
  bool register_contiguous() const {
    const isa::Fragment fragment = kind_.fragment();
    const int per = fragment.per_register;
    if (per == 1) return true;
    const bool along_columns = kind_.coord(0, 1).col == kind_.coord(0, 0).col + 1;
    if (from_.layout.major() != (along_columns ? Major::row : Major::col)) return false;
    const auto& edge = along_columns ? from_.col_edge : from_.row_edge;
    if (edge && edge->multiple() % per) return false;
    return (along_columns ? aligned_bytes(state_, from_, 1, per)
                          : aligned_bytes(state_, from_, per, 1)) >= fragment.register_bits / 8;
  }

  KernelState& state_;
  const FragmentKind& kind_;
  const Tensor& from_;
  bool shared_;
};

}  // namespace

Fragment load_fragment(KernelState& state, const FragmentKind& kind, const Tensor& from) {
  if (!state.owns(from, from.name) || from.memory < 0) return {};
  const isa::Fragment fragment = kind.fragment();
  if (fragment.registers == 0 || kind.operand == Operand::none) {
    state.log.report("fragment-mismatch"_rule, fmt::format("no such fragment: {}", kind.text()));
    return {};
  }
  const bool right_type =
      from.type == kind.type || (from.type == Type::b8 && takes_bytes(kind)) ||
      (bits(from.type) == bits(kind.type) && (from.type == f32 || kind.type == tf32));
  if (!right_type)
    state.log.report("layout-mismatch"_rule,
                     fmt::format("element type mismatch: {} has elements of {}, {} of {}",
                                 kind.text(), name(kind.type), from.name, name(from.type)));
  if (!require_shape(state, from, fragment.rows, fragment.cols, kind.text()) || !right_type)
    return {};
  note_load(state, from, StageAccess::fragment_load);
  if (!by_all_lanes(state, "load()")) return {};
  return Loader(state, kind, from).load();
}

std::vector<Fragment> load_side(KernelState& state, const FragmentKind& kind, const Tensor& from,
                                int count) {
  const isa::Fragment fragment = kind.fragment();
  const bool down = kind.operand != Operand::b;
  const auto part = [&](int first, int fragments) {
    return from.tile(fragment.rows * (down ? fragments : 1), fragment.cols * (down ? 1 : fragments),
                     down ? first / fragments : 0, down ? 0 : first / fragments,
                     state.log.location());
  };
  std::vector<Fragment> out;
  for (int i = 0; i < count; ++i) {
    if (i % 2 == 0 && count % 2 == 0 && fragment.registers <= 2) {
      const Tensor both = part(i, 2);
      if (both.memory >= 0) {
        note_load(state, both, StageAccess::fragment_load);
        if (!by_all_lanes(state, "load()")) return {};
      }
      const auto pair =
          both.memory < 0 ? std::vector<Fragment>{} : Loader(state, kind, both).load_pair();
      if (!pair.empty()) {
        out.insert(out.end(), pair.begin(), pair.end());
        ++i;
        continue;
      }
    }
    out.push_back(load_fragment(state, kind, part(i, 1)));
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
