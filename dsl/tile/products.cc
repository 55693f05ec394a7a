// SPDX-License-Identifier: Apache-2.0
// Products of tiles: fragments that each warp multiplies, or wgmma.
#include <algorithm>
#include <utility>

#include "dsl/layout/addressing.h"
#include "dsl/layout/fragments.h"
#include "dsl/layout/placement.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/tile/tiled_parts.h"
#include "dsl/units/tcgen05/tensor_product.h"
#include "dsl/units/wgmma/warpgroup_mma.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/tiled_mma.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

bool fits(const TiledParts& mma, const Tensor& a, const Tensor& b) {
  return require_shape(*mma.state, a, mma.tile.m, mma.tile.k, "A of the tiled MMA") &
             require_shape(*mma.state, b, mma.tile.k, columns_of_b(mma), "B of the tiled MMA") &&
         in_order(*mma.state, a, b);
}

bool fits(const TiledParts& mma, const Shared& a, const Shared& b) {
  return fits(mma, tensor_of(a), tensor_of(b));
}

bool fits(const TiledParts& mma, std::size_t count_a, std::size_t count_b) {
  const auto m = static_cast<std::size_t>(mma.fragments_m()),
             n = static_cast<std::size_t>(mma.fragments_n());
  if (count_a == m && count_b == n) return true;
  mma.state->log.report(
      "fragment-mismatch"_rule,
      fmt::format("first k-step of another tile: expected {} and {} fragments of A and B per warp, "
                  "found {} and {}",
                  m, n, count_a, count_b));
  return false;
}

// Registers for addresses and temporaries, as measured: threads that copy need more, and so do
// operands that ldmatrix cannot transpose.
int registers_beside(const KernelState& state, const Shared& a, const Shared& b) {
  int out = 32;
  if (state.config.options.producers == 0) out += 16;
  for (const auto& [side, along] : {std::pair{&a, Major::row}, {&b, Major::col}})
    if (side->layout().major() != along) out += bits(side->element()) == 16 ? 8 : 32;
  return out;
}

}  // namespace

WarpTile multiply_tile(const TiledParts& mma, const WarpTile& c, bool fresh, const Side& a,
                       const Side& b, const Beside& row, const Beside& column) {
  const int m = mma.fragments_m(), n = mma.fragments_n();
  if (c.fragments().empty()) return mma.state->log.note_empty("the accumulators"), WarpTile{};
  std::vector<Fragment> sums = c.fragments();
  if (sums.size() != static_cast<std::size_t>(m * n)) {
    mma.state->log.report(
        "fragment-mismatch"_rule,
        fmt::format("wrong number of accumulators per warp of {}: expected {}, found {}{}",
                    *mma.text, m * n, sums.size(),
                    c.place().product ? " of " + *c.place().product : ""));
    return {};
  }
  if (!at_place(mma, Operand::c, c)) return {};
  for (int step = 0; step < mma.steps(); ++step) {
    const std::vector<Fragment> left = a(step), right = b(step);
    if (left.size() != static_cast<std::size_t>(m) || right.size() != static_cast<std::size_t>(n))
      return {};
    for (int i = 0; i < m; ++i) {
      MmaOptions options = mma.options;
      if (row) row(options, i, step);
      for (int j = 0; j < n; ++j) {
        // In serpentine order: neighbours share a fragment.
        const int x = i % 2 ? n - 1 - j : j;
        if (column) column(options, x, step);
        Fragment& sum = sums[static_cast<std::size_t>(i * n + x)];
        sum = multiply_fragments(*mma.state, left[static_cast<std::size_t>(i)],
                                 right[static_cast<std::size_t>(x)],
                                 fresh && step == 0 ? nullptr : &sum, mma.kind.c, options);
      }
    }
  }
  return WarpTile(std::move(sums), n, c.place());
}

// Accumulators of wgmma; multiply_tile() reports errors of others.
bool by_warpgroups(const TiledParts& mma, const WarpTile& c, bool sparse) {
  const auto& sums = c.fragments();
  return mma.warpgroup && mma.kind.shape.sparse == sparse &&
         sums.size() == static_cast<std::size_t>(mma.fragments_m() * mma.fragments_n()) &&
         std::none_of(sums.begin(), sums.end(), [&](const Fragment& each) {
           return is_bad(each) || state_of(each) != mma.state;
         });
}

/// A product of a tiled MMA in the making: its operands, checked, and how they are multiplied.
class TileProduct {
 public:
  TileProduct(const TiledParts& mma, const MmaOperand& a, const MmaOperand& b,
              const std::source_location& at)
      : mma_(mma), a_(a), b_(b), begun_(KernelState::begins(mma.state, at)) {}

  /// The same in tensor memory, where that has a place for the sum; false: it has none.
  bool into(Accumulator& sum, bool fresh) const {
    if (!begun_ || !by_tensor_memory() || !sum.tensor_ || !accumulates(mma_, *sum.tensor_))
      return false;
    if (has_arrived() && fits_kind()) multiply_into(*sum.tensor_, fresh);
    return true;
  }

  /// `fresh`: A * B, else added to `sum`.
  WarpTile with(const WarpTile& sum, bool fresh) const {
    if (!begun_ || !has_arrived() || !fits_kind()) return {};
    if (by_tensor_memory()) return through_tensor_memory(sum, fresh);
    if (a_.data_.scales)
      return scaled_product(mma_, sum, fresh, *shared(a_), *a_.data_.scales, *shared(b_),
                            *b_.data_.scales);
    if (a_.data_.metadata)
      return sparse_product(mma_, sum, fresh, *shared(a_), *a_.data_.metadata, *shared(b_));
    if (const WarpTile* const a = fragments(a_)) return with_fragments(sum, fresh, *a, *shared(b_));
    if (const WarpTile* const b = fragments(b_)) return with_fragments(sum, fresh, *shared(a_), *b);
    return from_memory(sum, fresh, *shared(a_), *shared(b_));
  }

  WarpTile with_first(const WarpTile& sum, const FirstStep& first,
                      const std::function<void()>& next) const {
    if (!begun_ || !has_arrived() || !has_first(Operand::a, a_) || !has_first(Operand::b, b_))
      return {};
    if (first.empty()) return with(sum, false);
    const Shared &a = *shared(a_), &b = *shared(b_);
    if (!fits(mma_, first.a_.size(), first.b_.size()) || !fits(mma_, a, b)) return {};
    if (!mma_.state->has_body(next != nullptr, "an MMA whose first k-step is loaded")) return {};
    // Fragments are loaded one k-step ahead.
    using Fragments = std::vector<Fragment>;
    Fragments left(first.a_.begin(), first.a_.end()), right(first.b_.begin(), first.b_.end());
    const Side load_a = side_a(mma_, a), load_b = side_b(mma_, b);
    const auto one_ahead = [&](int step, Fragments& loaded, const Side& load) {
      Fragments now = std::exchange(loaded, {});
      if (step + 1 < mma_.steps()) loaded = load(step + 1);
      return now;
    };
    return multiply_tile(
        mma_, sum, false, [&](int step) { return one_ahead(step, left, load_a); },
        [&](int step) {
          Fragments now = one_ahead(step, right, load_b);
          if (step + 1 == mma_.steps()) next();
          return now;
        });
  }

 private:
  static const Shared* shared(const MmaOperand& of) { return std::get_if<Shared>(&of.elements_); }
  static const WarpTile* fragments(const MmaOperand& of) {
    return std::get_if<WarpTile>(&of.elements_);
  }

  // Products by tcgen05 have B in shared memory, and consumers issue them.
  bool by_tensor_memory() const {
    return mma_.tensor && mma_.state->roles.current == Role::consumer &&
           in_shared_memory(b_).has_value();
  }

  // Of an operand that is, or was loaded from there.
  static std::optional<Tensor> in_shared_memory(const MmaOperand& of) {
    if (const Shared* const memory = shared(of)) return tensor_of(*memory);
    const auto& loaded = fragments(of)->memory_;
    return loaded ? std::optional(*loaded) : std::nullopt;
  }

  // Whether it stands where its operands are in memory; reports the fill callback that copies them.
  bool has_arrived() const {
    KernelState& state = *mma_.state;
    if (!state.fill) return true;
    if (state.roles.current == Role::producer) {
      state.log.report("wrong-role"_rule,
                       "product in a fill callback: expected it in the use callback, which runs "
                       "when the stage has arrived; producer warps execute fill callbacks, and "
                       "consumers have the accumulators");
      return false;
    }
    for (const MmaOperand* const each : {&a_, &b_})
      if (const Shared* const of = shared(*each);
          of && state.fill->copied.contains(tensor_of(*of).memory)) {
        state.log.report("unsynchronized-tile"_rule,
                         fmt::format("product of {} in the fill callback that copies to it: "
                                     "expected it in the use callback, which runs when the copies "
                                     "have arrived",
                                     tensor_of(*of).name));
        return false;
      }
    return true;
  }

  bool refuse(const std::string& message) const {
    mma_.state->log.report("fragment-mismatch"_rule, message);
    return false;
  }

  // Whether the operands have what the kind takes, no more and no less; reports if not.
  bool fits_kind() const {
    const MmaShape& shape = mma_.kind.shape;
    const bool scaled = mma_.options.scale_type != Type::none && !shape.sparse;
    if ((a_.data_.scales || b_.data_.scales) && !scaled)
      return refuse(fmt::format(
          "{} has no scales: block scaling requires a dense kind and .scale_type in tiled_mma()",
          shape.text()));
    if (b_.data_.metadata)
      return refuse(fmt::format("metadata of B, {}: expected none, found {}; only A is sparse",
                                *mma_.text, tensor_of(*b_.data_.metadata).name));
    if (a_.data_.metadata && !shape.sparse)
      return refuse(
          fmt::format("metadata of A, {}: expected none for a dense kind, found {}; "
                      "sparse({}) takes them",
                      *mma_.text, tensor_of(*a_.data_.metadata).name, shape.text()));
    if (!in_memory(shape.sparse || scaled)) return false;
    if (scaled && !(has_scales(Operand::a, a_) & has_scales(Operand::b, b_))) return false;
    if (!shape.sparse || a_.data_.metadata) return true;
    const Layout words = metadata_layout(mma_);
    return refuse(
        fmt::format("metadata of A, {}: expected {{a, {{.metadata = ...}}}} with {} x {} "
                    "words of u32, found none",
                    *mma_.text, *words.rows.constant(), *words.cols.constant()));
  }

  // At most one operand is in registers, and none where `both` are in shared memory.
  bool in_memory(bool both) const {
    const WarpTile *const a = fragments(a_), *const b = fragments(b_);
    for (const auto& [tile, operand] : {std::pair{a, Operand::a}, {b, Operand::b}}) {
      if (!tile) continue;
      if (tile->fragments().empty())
        return mma_.state->log.note_empty(fmt::format("{} of the tiled MMA", letter(operand))),
               false;
      if (both)
        return refuse(
            fmt::format("{} of {} in registers: expected shared memory, as of all "
                        "operands of sparse and block-scaled kinds, found {}",
                        letter(operand), *mma_.text, tile->fragment(0, 0).kind().text()));
    }
    if (!a || !b) return true;
    return refuse(
        fmt::format("A and B of {} in registers: expected at least one of them in shared "
                    "memory, found {} and {}",
                    *mma_.text, a->fragment(0, 0).kind().text(), b->fragment(0, 0).kind().text()));
  }

  bool has_scales(Operand operand, const MmaOperand& of) const {
    if (of.data_.scales) return true;
    const bool is_a = operand == Operand::a;
    const int blocks = mma_.tile.k / mma_.scale_block();
    return refuse(
        fmt::format("scales of {}, {}: expected {{{}, {{.scales = ...}}}} with {} x {} of "
                    "{}, found none",
                    letter(operand), *mma_.text, name(operand), is_a ? mma_.tile.m : blocks,
                    is_a ? blocks : mma_.tile.n, name(mma_.options.scale_type)));
  }

  // Of a product whose first k-step is loaded.
  bool has_first(Operand operand, const MmaOperand& of) const {
    const std::string_view found = fragments(of)       ? "fragments"
                                   : of.data_.scales   ? "scales"
                                   : of.data_.metadata ? "metadata"
                                                       : "";
    return found.empty() ||
           refuse(fmt::format("{} of {} with a first k-step: expected shared memory without scales "
                              "or metadata, found {}; add() without first_step() takes them",
                              letter(operand), *mma_.text, found));
  }

  WarpTile from_memory(const WarpTile& sum, bool fresh, const Shared& a, const Shared& b) const {
    if (!fits(mma_, a, b)) return {};
    if (!by_warpgroups(mma_, sum))
      return multiply_tile(mma_, sum, fresh, side_a(mma_, a), side_b(mma_, b));
    return by_warpgroup(sum, [&] {
      return warpgroup_multiply(*mma_.state, *mma_.warpgroup, mma_.options, sum.fragments(),
                                tensor_of(a), tensor_of(b), mma_.warp_m / 4, {}, fresh);
    });
  }

  WarpTile with_fragments(const WarpTile& sum, bool fresh, const WarpTile& a,
                          const Shared& b) const {
    if (!takes(a, tensor_of(b))) return {};
    if (by_warpgroups(mma_, sum))
      return by_warpgroup(sum, [&] {
        KernelState& state = *mma_.state;
        return a.memory_ ? warpgroup_multiply(state, *mma_.warpgroup, mma_.options, sum.fragments(),
                                              *a.memory_, tensor_of(b), mma_.warp_m / 4, {}, fresh)
                         : warpgroup_multiply(state, *mma_.warpgroup, mma_.options, sum.fragments(),
                                              a, tensor_of(b), fresh);
      });
    const auto column = [&](int step) {
      std::vector<Fragment> out;
      for (int i = 0; i < mma_.fragments_m(); ++i) out.push_back(a.fragment(i, step));
      return out;
    };
    return multiply_tile(mma_, sum, fresh, column, side_b(mma_, b));
  }

  WarpTile with_fragments(const WarpTile& sum, bool fresh, const Shared& a,
                          const WarpTile& b) const {
    if (!require_shape(*mma_.state, tensor_of(a), mma_.tile.m, mma_.tile.k, "A of the tiled MMA") ||
        !takes_fragments(mma_, Operand::b, b, mma_.steps(), mma_.fragments_n()))
      return {};
    const auto row = [&](int step) {
      std::vector<Fragment> out;
      for (int j = 0; j < mma_.fragments_n(); ++j) out.push_back(b.fragment(step, j));
      return out;
    };
    return multiply_tile(mma_, sum, fresh, side_a(mma_, a), row);
  }

  // The same by an accumulator of its own.
  WarpTile through_tensor_memory(const WarpTile& sum, bool fresh) const {
    if (sum.fragments().empty()) return mma_.state->log.note_empty("the accumulators"), WarpTile{};
    if (!at_place(mma_, Operand::c, sum)) return {};
    Accumulator out = make_accumulator(mma_, mma_.state->log.location());
    const bool zero = std::ranges::all_of(
        sum.fragments(), [&](const Fragment& each) { return is_still_zero(*mma_.state, each); });
    if (!fresh && !zero) out = sum;
    multiply_into(*out.tensor_, fresh || zero);
    return out;
  }

  void multiply_into(TensorSum& sum, bool fresh) const {
    const Tensor b = *in_shared_memory(b_);
    if (a_.data_.scales) return multiply_scaled_into(sum, fresh);
    if (a_.data_.metadata) return multiply_sparse_into(sum, fresh);
    if (const auto a = in_shared_memory(a_)) {
      if (fits(mma_, *a, b)) tensor_multiply(mma_, sum, *a, b, fresh);
    } else if (const WarpTile& tile = *fragments(a_); takes(tile, b)) {
      tensor_multiply(mma_, sum, tile, b, fresh);
    }
  }

  void multiply_scaled_into(TensorSum& sum, bool fresh) const {
    const Shared &scales_a = *a_.data_.scales, &scales_b = *b_.data_.scales;
    if (!fit_scaled(mma_, *shared(a_), scales_a, *shared(b_), scales_b) ||
        !are_scales(mma_, scales_a, Operand::a) || !are_scales(mma_, scales_b, Operand::b))
      return;
    tensor_multiply(mma_, sum, tensor_of(*shared(a_)), tensor_of(*shared(b_)), fresh,
                    {.scales_a = &tensor_of(scales_a), .scales_b = &tensor_of(scales_b)});
  }

  void multiply_sparse_into(TensorSum& sum, bool fresh) const {
    const Shared& metadata = *a_.data_.metadata;
    if (!fit_sparse(mma_, *shared(a_), metadata, *shared(b_))) return;
    note_load(*mma_.state, tensor_of(metadata));
    tensor_multiply(mma_, sum, tensor_of(*shared(a_)), tensor_of(*shared(b_)), fresh,
                    {.metadata = &tensor_of(metadata)});
  }

  // Whether these are A in registers, and B, of the tiled MMA; reports if not.
  bool takes(const WarpTile& a, const Tensor& b) const {
    return require_shape(*mma_.state, b, mma_.tile.k, columns_of_b(mma_), "B of the tiled MMA") &&
           takes_fragments(mma_, Operand::a, a, mma_.fragments_m(), mma_.steps());
  }

  WarpTile by_warpgroup(const WarpTile& sum,
                        const std::function<std::vector<Fragment>()>& product) const {
    if (!at_place(mma_, Operand::c, sum)) return {};
    return WarpTile(product(), mma_.fragments_n(), sum.place());
  }

  const TiledParts& mma_;
  const MmaOperand &a_, &b_;
  bool begun_;
};

}  // namespace detail

using detail::fits;
using detail::KernelState;
using detail::rounded;
using detail::tensor_of;

FirstStep TiledMma::first_step(const Shared& a_stage, const Shared& b_stage, Here at) const {
  FirstStep out;
  if (!KernelState::begins(parts_.state, at) || parts_.from_panels() ||
      parts_.kind.shape.shape.m == 0)
    return out;
  const FragmentKind a = operand_a(parts_.kind.shape, parts_.kind.a),
                     b = operand_b(parts_.kind.shape, parts_.kind.b),
                     c = operand_c(parts_.kind.shape, parts_.kind.c);
  const auto words = [](const FragmentKind& kind) {
    const isa::Fragment fragment = kind.fragment();
    return fragment.registers * fragment.register_bits / 32;
  };
  // Fragments of this k-step and of the next one.
  const int needed = parts_.fragments_m() * parts_.fragments_n() * words(c) +
                     2 * (parts_.fragments_m() * words(a) + parts_.fragments_n() * words(b)) +
                     detail::registers_beside(*parts_.state, a_stage, b_stage);
  const bool possible = needed <= parts_.state->config.registers();
  parts_.state->log.choose("first k-step of a stage",
                           possible ? "loaded before the last MMAs of the preceding stage"
                                    : "loaded just before its MMAs",
                           fmt::format("it needs about {} registers, a thread has {}", needed,
                                       parts_.state->config.registers()));
  if (!possible) return out;
  Builder k(parts_.state);
  for (int i = 0; i < parts_.fragments_m(); ++i) out.a_.push_back(k.variable(a, at));
  for (int j = 0; j < parts_.fragments_n(); ++j) out.b_.push_back(k.variable(b, at));
  return out;
}

void TiledMma::load(FirstStep& first, const Shared& a, const Shared& b, Here at) const {
  if (first.empty() || !KernelState::begins(parts_.state, at) ||
      !fits(parts_, first.a_.size(), first.b_.size()) || !fits(parts_, a, b))
    return;
  const std::vector<Fragment> left = side_a(parts_, a)(0), right = side_b(parts_, b)(0);
  if (left.size() == first.a_.size()) std::ranges::copy(left, first.a_.begin());
  if (right.size() == first.b_.size()) std::ranges::copy(right, first.b_.begin());
}

WarpTile TiledMma::operator()(const WarpTile& c, const MmaOperand& a, const MmaOperand& b,
                              Here at) const {
  return detail::TileProduct(parts_, a, b, at).with(c, false);
}
WarpTile TiledMma::fresh(const WarpTile& used, const MmaOperand& a, const MmaOperand& b,
                         Here at) const {
  return detail::TileProduct(parts_, a, b, at).with(used, true);
}
WarpTile TiledMma::operator()(const WarpTile& c, const Shared& a, const Shared& b,
                              const FirstStep& first, const std::function<void()>& next,
                              Here at) const {
  return detail::TileProduct(parts_, a, b, at).with_first(c, first, next);
}

void TiledMma::add(Accumulator& sum, const MmaOperand& a, const MmaOperand& b, Here at) const {
  const detail::TileProduct product(parts_, a, b, at);
  if (!product.into(sum, false)) sum = product.with(sum, false);
}
void TiledMma::multiply(Accumulator& sum, const MmaOperand& a, const MmaOperand& b, Here at) const {
  const detail::TileProduct product(parts_, a, b, at);
  if (!product.into(sum, true)) sum = product.with(sum, true);
}
void TiledMma::add(Accumulator& sum, const MmaOperand& a, const MmaOperand& b,
                   const FirstStep& first, const std::function<void()>& next, Here at) const {
  const detail::TileProduct product(parts_, a, b, at);
  if (!first.empty() || !product.into(sum, false)) sum = product.with_first(sum, first, next);
}

WarpTile TiledMma::load_a(const Shared& a, Here at) const {
  if (!KernelState::begins(parts_.state, at)) return {};
  if (!require_shape(*parts_.state, tensor_of(a), parts_.tile.m, parts_.tile.k,
                     "A of the tiled MMA"))
    return {};
  const FragmentKind kind = operand_a(parts_.kind.shape, parts_.kind.a);
  const isa::Fragment fragment = kind.fragment();
  const WarpPlace place = place_of_a(parts_);
  std::vector<Fragment> out;
  for (int i = 0; i < parts_.fragments_m(); ++i)
    for (int step = 0; step < parts_.steps(); ++step) {
      const Scalar col = parts_.warp_k * parts_.steps() + step,
                   row = (place.row + place.down(i, fragment.rows)) / fragment.rows;
      out.push_back(load_fragment(
          *parts_.state, kind, tensor_of(a.tile({row, col}, {fragment.rows, fragment.cols}, at))));
    }
  WarpTile tile(rounded(parts_, std::move(out), a), parts_.steps(), place);
  if (parts_.from_panels()) tile.memory_ = std::make_shared<const detail::Tensor>(tensor_of(a));
  return tile;
}

}  // namespace tartan::TARTAN_ABI
