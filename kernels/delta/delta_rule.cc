// SPDX-License-Identifier: Apache-2.0
// The delta rule over the chunks of a sequence. A CTA has some rows of a head's state, S, in
// accumulators, and goes through the chunks; all is transposed, so that what one product gives is
// operand A of the next, in registers. With T and W of the first kernel (transforms, weights), the
// gates' products b_i, and a chunk's keys, queries and values as rows of K, Q and V:
//
//   D = (V^T - S * K^T o b) * T^T              the corrections of a chunk's tokens
//   O^T = scale * (S * Q^T o b + D * W^T)
//   S = S * b_last + (D o b_last / b) * K
#include "tartan/kernels/delta_rule.h"

#include <algorithm>

#include "kernels/common/keys.h"
#include "kernels/delta/delta_shape.h"
#include "tartan/dsl/math.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int c = DeltaRule::chunk;

// Options that is_possible() refuses must not stop the description before it says so.
int warps_of(const DeltaRule& with) { return std::clamp(with.values_per_block / 16, 1, 32); }

// The body of the kernel.
class Recurrence {
 public:
  Recurrence(Builder& k, const DeltaRule& with)
      : k_(k),
        with_(with),
        d_(with.key_dim),
        rows_(with.values_per_block),
        windows_(with.producers > 0 && k.target().arch.has(Feature::tma)) {}

  void describe() {
    const Scalar tokens = k_.param("tokens", s32), heads = k_.param("heads", s32),
                 key_heads = k_.param("key_heads", s32), sequences = k_.param("sequences", s32);
    scale_ = k_.param("scale", f32);
    const auto keys = [&](const char* name) {
      const Scalar& of = with_.channel_gates ? heads : key_heads;
      return k_.global(name, with_.type, row_major(tokens, of * d_));
    };
    Q_ = keys(with_.channel_gates ? "Qg" : "Q"), K_ = keys(with_.channel_gates ? "Kg" : "K");
    if (with_.channel_gates) Ke_ = keys("Ke");
    V_ = k_.global("V", with_.type, row_major(tokens, heads * with_.value_dim));
    const Global starts = k_.global("starts", s32, row_major(1, sequences + 1));
    transforms_ = k_.global("transforms", with_.type, row_major(c, c));
    weights_ = k_.global("weights", with_.type, row_major(c, c));
    decays_ = k_.global("decays", f32, with_.channel_gates ? row_major(1, d_) : row_major(2, c));
    O_ = k_.global("O", with_.type, row_major(tokens, heads * with_.value_dim));
    const auto state = [&](const char* name) {
      return k_.global(name, f32, row_major(with_.value_dim, d_));
    };
    if (with_.initial_state) S0_ = state("S0");
    if (with_.final_state) S1_ = state("S1");
    const MmaKind kind = k_.best_mma(with_.type, with_.type, f32);
    if (kind.shape.shape.m == 0) return;  // best_mma() has reported it
    const int warps = warps_of(with_);
    const auto product = [&](int n, int depth) {
      return k_.tiled_mma(kind, {.m = rows_, .n = n, .k = depth, .warps_m = warps, .warps_n = 1});
    };
    of_state_ = product(c, d_), of_chunk_ = product(c, c), to_state_ = product(d_, c);
    const RingLayout of_keys = of_state_.shared_b(with_.stages, Major::col);
    sQ_ = k_.shared("sQ", with_.type, of_keys), sK_ = k_.shared("sK", with_.type, of_keys);
    if (with_.channel_gates) sKe_ = k_.shared("sKe", with_.type, of_keys);
    const RingLayout of_tokens = of_chunk_.shared_b(with_.stages, Major::col);
    sT_ = k_.shared("sT", with_.type, of_tokens), sW_ = k_.shared("sW", with_.type, of_tokens);
    sV_ = k_.shared("sV", with_.type,
                    RingLayout{row_major(c, rows_).swizzled({3, 3, 3}), with_.stages});
    sDecays_ = k_.shared("sDecays", f32, RingLayout{decays_.layout(), with_.stages});
    const DeltaPlace at(k_, heads, key_heads, starts);
    state_ = k_.convert(k_.block_z(), s32) * heads + at.head;
    first_row_ = k_.convert(k_.block_x(), s32) * rows_;
    k_.roles([&] { sequence(at); });
  }

 private:
  void sequence(const DeltaPlace& at) {
    auto s = to_state_.accumulator();
    if (with_.initial_state) s = loaded(s);
    const Scalar key_head = with_.channel_gates ? at.head : at.key_head,
                 col = at.head * with_.value_dim + first_row_;
    k_.pipeline(
        {.stages = with_.stages}, ceil_div(at.count, c),
        [&](Scalar t, Scalar stage) {
          const auto keys = [&](const Global& of) {
            return tile(of, at, t, key_head * d_, d_).transposed();
          };
          k_.copy(keys(K_), sK_[stage]);
          k_.copy(keys(Q_), sQ_[stage]);
          if (with_.channel_gates) k_.copy(keys(Ke_), sKe_[stage]);
          k_.copy(tile(V_, at, t, col, rows_), sV_[stage]);
          k_.copy(decays_.matrix(at.matrix(t)), sDecays_[stage]);
          k_.copy(transforms_.matrix(at.matrix(t)).transposed(), sT_[stage]);
          k_.copy(weights_.matrix(at.matrix(t)).transposed(), sW_[stage]);
        },
        [&](Scalar t, Scalar stage) {
          const WarpTile o = step(s, stage, minimum(at.count - t * c, c));
          store(o, at.first + t * c, col, minimum(at.count - t * c, c));
        });
    if (with_.final_state) for_state(S1_, s);
  }

  // A chunk's tokens; those beyond the sequence are zeros, or, by TMA, those of the next one.
  Global tile(const Global& of, const DeltaPlace& at, const Scalar& t, const Scalar& col,
              int width) {
    if (windows_) return of.window({at.first + t * c, col}, {c, width});
    return of.window({at.first, col}, {at.count, width}).tile({t, 0}, {c, width});
  }

  WarpTile step(Accumulator& s, const Scalar& stage, const Scalar& count) {
    const MmaShape shape = of_state_.kind().shape;
    const bool channels = with_.channel_gates;
    const Ring& keys = channels ? sKe_ : sK_;
    if (windows_) k_.when(count < c, [&] { clear(keys[stage].transposed(), count); });
    const WarpTile rounded = operand_a(convert(s, with_.type), shape);
    auto found = of_state_.accumulator(), o = of_state_.accumulator(), d = of_chunk_.accumulator();
    of_state_.multiply(found, rounded, sK_[stage]);
    of_state_.multiply(o, rounded, sQ_[stage]);
    const WarpTile wrong = corrections(found, stage, count);
    of_chunk_.multiply(d, operand_a(convert(wrong, with_.type), shape), sT_[stage]);
    if (!channels) o = columns(o, sDecays_[stage], 0);
    if (channels) s = columns(s, sDecays_[stage], 0);
    else s *= k_.read(sDecays_[stage], 0, c - 1);
    // The output is stored during the product that changes the state.
    const WarpTile changes = d.load(), whole = operand_a(convert(changes, with_.type), shape);
    of_chunk_.add(o, whole, sW_[stage]);
    const WarpTile late =
        channels ? whole
                 : operand_a(convert(columns(changes, sDecays_[stage], 1), with_.type), shape);
    to_state_.add(s, late, keys[stage].transposed());
    const Scalar scale = scale_;
    return map(o, [&](Scalar x) { return x * scale; });
  }

  // x times a row of `by`, column by column, which is read where it is used.
  WarpTile columns(const WarpTile& x, const Shared& by, int row) {
    return each_fragment(x, [&](int, int, const std::vector<Scalar>& own, const Scalar& col) {
      const std::vector<Scalar> b = k_.read_vector(by, row, col, 2);
      return std::vector<Scalar>{own[0] * b[0], own[1] * b[1], own[2] * b[0], own[3] * b[1]};
    });
  }

  // V^T - S * K^T o b; zeros for what is no token: a product with a weight of zero would make NaN
  // of the next sequence's.
  WarpTile corrections(const WarpTile& found, const Scalar& stage, const Scalar& count) {
    const Shared values = sV_[stage].transposed();
    const Scalar zero = k_.constant(f32, 0);
    std::vector<Scalar> own;
    return each_fragment(found, [&](int i, int j, const std::vector<Scalar>& x, const Scalar& col) {
      if (j % 2 == 0)
        own = k_.elements(k_.load(operand_a(m16n8k16, with_.type),
                                  values.tile({found.row(i) / 16, j / 2}, {16, 16})));
      std::vector<Scalar> b(2, k_.constant(f32, 1));
      if (!with_.channel_gates) b = k_.read_vector(sDecays_[stage], 0, col, 2);
      std::vector<Scalar> out;
      for (std::size_t e = 0; e < 4; ++e) {
        const Scalar v = k_.convert(own[static_cast<std::size_t>(j % 2) * 4 + e], f32);
        const Scalar wrong = with_.channel_gates ? v - x[e] : fma(x[e] * -1, b[e % 2], v);
        out.push_back(select(k_.convert(col, s32) + static_cast<int>(e % 2) < count, wrong, zero));
      }
      return out;
    });
  }

  // f(row and column of fragments, a lane's elements, the column of the first one), fragment by
  // fragment.
  WarpTile each_fragment(
      const WarpTile& x,
      const std::function<std::vector<Scalar>(int, int, const std::vector<Scalar>&, const Scalar&)>&
          f) {
    const ColumnValues cols = col_places(x);
    std::vector<Fragment> out;
    for (int i = 0; i < x.down(); ++i)
      for (int j = 0; j < x.across(); ++j) {
        const Fragment& each = x.fragment(i, j);
        out.push_back(k_.pack(each.kind(),
                              f(i, j, k_.elements(each), cols[static_cast<std::size_t>(2 * j)])));
      }
    return WarpTile(std::move(out), x.across(), x.place());
  }

  // Zeros for rows that are another sequence's.
  void clear(const Shared& keys, const Scalar& first) {
    const int vectors = d_ / 8;
    k_.loop(first * vectors + k_.convert(k_.thread(), s32), c * vectors, 32 * warps_of(with_),
            [&](Scalar i) {
              k_.ptx("st.shared.v4.b32 [%0], {%1, %1, %1, %1};", {},
                     {k_.address(keys, i / vectors, i % vectors * 8), k_.constant(u32, 0)});
            });
    k_.instruction("fence.proxy.async.shared::cta", {});  // of what TMA wrote and wgmma reads
    k_.barrier();
  }

  void store(const WarpTile& o, const Scalar& row, const Scalar& col, const Scalar& count) {
    const WarpTile out = convert(o, with_.type);
    const auto rows = [&](const Scalar& rows) {
      return O_.window({row, col}, {rows, rows_}).transposed().tile({0, 0}, {rows_, c});
    };
    k_.when(
        count == c, [&] { k_.store(rows(c), out); }, [&] { k_.store(rows(count), out); });
  }

  WarpTile loaded(const WarpTile& like) {
    const Global from = S0_.matrix(state_);
    return each_fragment(like, [&](int i, int, const std::vector<Scalar>&, const Scalar& col) {
      const Scalar row = first_row_ + k_.convert(like.row(i), s32) + k_.convert(k_.lane(), s32) / 4;
      std::vector<Scalar> x = k_.read_vector(from, row, col, 2);
      for (const Scalar& each : k_.read_vector(from, row + 8, col, 2)) x.push_back(each);
      return x;
    });
  }

  void for_state(const Global& all, const WarpTile& s) {
    const Global to = all.matrix(state_);
    const ColumnValues cols = col_places(s);
    for (int i = 0; i < s.down(); ++i)
      for (int j = 0; j < s.across(); ++j) {
        const std::vector<Scalar> x = k_.elements(s.fragment(i, j));
        const Scalar row = first_row_ + k_.convert(s.row(i), s32) + k_.convert(k_.lane(), s32) / 4;
        const Scalar& col = cols[static_cast<std::size_t>(2 * j)];
        k_.write_vector(to, row, col, std::vector<Scalar>{x[0], x[1]});
        k_.write_vector(to, row + 8, col, std::vector<Scalar>{x[2], x[3]});
      }
  }

  Builder& k_;
  const DeltaRule with_;
  const int d_, rows_;
  const bool windows_;
  Scalar scale_, state_, first_row_;
  Global Q_, K_, Ke_, V_, O_, transforms_, weights_, decays_, S0_, S1_;
  TiledMma of_state_, of_chunk_, to_state_;
  Ring sQ_, sK_, sKe_, sV_, sT_, sW_, sDecays_;
};

}  // namespace

Kernel delta_rule(const DeltaRule& options) {
  return kernel("delta_rule", {.block = 32 * warps_of(options), .producers = options.producers},
                [=](Builder& k) {
                  if (is_possible(k, options)) Recurrence(k, options).describe();
                })
      .keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
