// SPDX-License-Identifier: Apache-2.0
// Storing fragments: stmatrix, wmma.store, vector or plain stores; and converting accumulators.
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

class Storer {
 public:
  Storer(KernelState& state, const Tensor& to, const Fragment& fragment, std::string as)
      : state_(state),
        as_(std::move(as)),
        to_(to),
        kind_(fragment.kind()),
        fragment_(fragment),
        registers_(registers_of(fragment)),
        shared_(state.memories.of(to).in_shared) {}

  void store() {
    if (kind_.shape.wmma) return wmma_store();
    std::string refused;
    if (const auto form = stmatrix_form(refused)) return stmatrix(*form);
    plain(refused);
  }

 private:
  std::string what() const { return fmt::format("store {} to {}", as_, to_.name); }
  const std::vector<Value>& registers() const { return registers_; }

  std::optional<isa::Form> stmatrix_form(std::string& refused) const {
    const auto no = [&](std::string why) {
      refused = "stmatrix: " + std::move(why);
      return std::nullopt;
    };
    if (!shared_)
      return no(fmt::format("{} is in global memory, stmatrix writes shared memory", to_.name));
    if (is_remote(state_, to_))
      return no(fmt::format("{} is in another CTA, which only st writes", to_.name));
    const auto tiling = matrix_tiling(kind_);
    if (!tiling) return no("the fragment does not consist of 8x8 matrices with rows of 16 bytes");
    const Major major = to_.layout.major();
    if (major == Major::none)
      return no(fmt::format("neither rows nor columns of {} are contiguous", to_.layout.text()));
    isa::Form form{.opcode = isa::Opcode::stmatrix, .shape = {8, 8}, .d = b16};
    form.count = static_cast<std::uint8_t>(tiling->origins.size());
    form.trans = (major == Major::row) != tiling->pairs_along_columns;
    form.space = StateSpace::shared;
    if (form.trans && bits(kind_.type) != 16)
      return no(fmt::format(
          "{} has the opposite major order, and .trans requires elements of 16 bits", to_.name));
    const auto row = isa::find(form);
    if (!row) return no(fmt::format(".x{} does not exist", tiling->origins.size()));
    if (!row->since.has(state_.config.target))
      return no(fmt::format("requires {}", isa::text(row->since)));
    const int line = 128 / bits(kind_.type);  // elements of 16 bytes
    const int aligned = major == Major::row ? aligned_bytes(state_, to_, 1, line)
                                            : aligned_bytes(state_, to_, line, 1);
    if (aligned < 16)
      return no(fmt::format("its rows must be 16-byte aligned, {} guarantees only {} bytes",
                            to_.layout.text(), aligned));
    return form;
  }

  void stmatrix(const isa::Form& form) {
    state_.log.choose(what(), isa::spell(form), "rows of 16 bytes to shared memory");
    const auto [row, col] = lane_row(form);
    state_.f().matrix(form, written_address_of(state_, to_, row, col), registers());
  }

  // The row that the lane's address points to, as for ldmatrix.
  std::pair<Scalar, Scalar> lane_row(const isa::Form& form) {
    const Scalar lane = state_.scalar(lane_index(state_), 1, 31);
    const auto origins = matrix_tiling(kind_)->origins;
    Scalar row = origins[0].row, col = origins[0].col;
    for (std::size_t bit = 0; (1 << bit) < form.count; ++bit) {
      const isa::Coord& step = origins[std::size_t{1} << bit];
      const Scalar set = lane / (8 << bit) % 2;
      row += set * (step.row - origins[0].row);
      col += set * (step.col - origins[0].col);
    }
    (to_.layout.major() == Major::row ? row : col) += lane % 8;
    return {row, col};
  }

  void wmma_store() {
    if (refuse_remote(state_, to_, "wmma.store")) return;
    isa::Form form{.opcode = isa::Opcode::wmma_store,
                   .operand = Operand::d,
                   .shape = kind_.shape.shape,
                   .a_major = to_.layout.major(),
                   .d = kind_.type};
    form.space = shared_ ? StateSpace::shared : StateSpace::global;
    form.stride = true;
    const auto row = isa::find(form);
    if (!row || form.a_major == Major::none || to_.layout.is_nested() || to_.layout.swizzle.bits) {
      state_.log.report("no-instruction"_rule, fmt::format("wmma.store cannot store {} to {}",
                                                           kind_.text(), to_.layout.text()));
      return;
    }
    if (!row->since.has(state_.config.target)) return state_.log.refuse_target(*row);
    if (to_.row_edge || to_.col_edge) {
      state_.log.report("tile-divide"_rule,
                        fmt::format("wmma.store needs whole tiles, those of {} "
                                    "exceed its edge; store through shared memory",
                                    to_.name));
      return;
    }
    std::vector<Value> operands = registers();
    operands.push_back(state_.value(
        form.a_major == Major::row ? to_.layout.row_stride : to_.layout.col_stride, u32));
    state_.log.choose(what(), isa::spell(form),
                      "wmma fragments are opaque: only wmma.store knows their layout");
    state_.f().matrix(form, written_address_of(state_, to_, 0, 0), operands);
  }

  void plain(const std::string& refused) {
    const isa::Fragment fragment = kind_.fragment();
    if (!affine_map(kind_, 0)) {
      state_.log.report("no-instruction"_rule, fmt::format("no instruction stores {} to {}: {}",
                                                           kind_.text(), to_.name, refused));
      return;
    }
    const Scalar lane = state_.scalar(lane_index(state_), 1, 31), group = lane / 4,
                 member = lane % 4;
    // Calls `put` with the place of element i, if it is inside the matrix.
    const auto at = [&](int i, const std::function<void(Pointer)>& put) {
      const AffineMap map = *affine_map(kind_, i);
      const Scalar row = group * map.group.row + member * map.member.row + map.origin.row,
                   col = group * map.group.col + member * map.member.col + map.origin.col;
      const Pointer place = written_address_of(state_, to_, row, col);
      const auto exists = is_inside(state_, to_, row, col);
      if (exists) state_.f().if_then(*exists, [&] { put(place); });
      else put(place);
    };
    const bool pairs = pair_contiguous();
    for (int i = 0; i < fragment.elements(); i += pairs ? 2 : 1) {
      const std::size_t reg = static_cast<std::size_t>(i / fragment.per_register);
      if (fragment.per_register == 1 && pairs) {
        const Value both[] = {registers()[reg], registers()[reg + 1]};
        at(i, [&](Pointer place) { state_.f().store_vector(place, both); });
      } else if (fragment.per_register == 1 || (fragment.per_register == 2 && pairs)) {
        at(i, [&](Pointer place) { state_.f().store(place, registers()[reg]); });
      } else if (fragment.per_register == 4) {
        at(i,
           [&](Pointer place) { state_.f().store(place, bytes(registers()[reg], i % 4, pairs)); });
      } else {
        const auto [low, high] = state_.f().unpack(registers()[reg], u16);
        at(i, [&, half = i % 2 ? high : low](Pointer place) { state_.f().store(place, half); });
      }
    }
    const int width = pairs ? 2 * bits(kind_.type) : bits(kind_.type);
    state_.log.choose(what(), fmt::format("st.{} of {} bits", shared_ ? "shared" : "global", width),
                      pairs ? "each lane holds pairs that are contiguous in memory"
                            : "each lane stores its own elements",
                      {refused});
  }

  // One or two bytes of a register.
  Value bytes(Value word, int first, bool two) {
    ir::FunctionBuilder& f = state_.f();
    const Value low = f.shift_right(f.bitcast(word, u32), f.constant(u32, 8 * first));
    return f.convert(low, two ? Type::u16 : Type::u8);
  }

  // Elements 2i and 2i+1 are contiguous and aligned to their pair.
  bool pair_contiguous() const {
    const isa::Coord first = kind_.coord(0, 0), second = kind_.coord(0, 1);
    const bool along_columns = second.col == first.col + 1;
    if (to_.layout.major() != (along_columns ? Major::row : Major::col) ||
        (!along_columns && second.row != first.row + 1))
      return false;
    const auto& edge = along_columns ? to_.col_edge : to_.row_edge;
    if (edge && edge->multiple() % 2) return false;
    const int aligned =
        along_columns ? aligned_bytes(state_, to_, 1, 2) : aligned_bytes(state_, to_, 2, 1);
    return aligned >= 2 * bits(kind_.type) / 8;
  }

  KernelState& state_;
  std::string as_;
  const Tensor& to_;
  const FragmentKind& kind_;
  const Fragment& fragment_;
  std::vector<Value> registers_;
  bool shared_;
};

}  // namespace

void store_fragment(KernelState& state, const Tensor& to, const Fragment& fragment,
                    std::string as) {
  const bool tensor_good = state.owns(to, to.name) && to.memory >= 0;
  if (!state.owns(fragment, "the fragment") || is_bad(fragment) || !tensor_good) return;
  const FragmentKind& kind = fragment.kind();
  if (kind.shape.wmma && kind.operand != Operand::c) {
    state.log.report("wrong-role"_rule,
                     fmt::format("wmma.store: expected accumulators, found {}", kind.text()));
    return;
  }
  const isa::Fragment shape = kind.fragment();
  const bool right_type = to.type == kind.type;
  if (!right_type)
    state.log.report(
        "layout-mismatch"_rule,
        fmt::format(
            "element type mismatch: {} has elements of {}, the fragment is {}; convert() it to {}",
            to.name, name(to.type), kind.text(), name(to.type)));
  if (!require_shape(state, to, shape.rows, shape.cols, "the fragment") || !right_type ||
      !by_all_lanes(state, "store()"))
    return;
  Storer(state, to, fragment, as.empty() ? kind.text() : std::move(as)).store();
  note_write(state, to);
}

}  // namespace tartan::TARTAN_ABI::detail
