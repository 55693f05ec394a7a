// SPDX-License-Identifier: Apache-2.0
#include <deque>

#include "kernels/scaled/scaled_products.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels::detail {
namespace {

constexpr int block = scale_block;

// SB has a scale for each block of columns: those of a stage are of each k-tile, part, and block of
// columns that the part is in. Global memory answers later than a short product ends, so that they
// are read
//   with one product of a stage and few k-tiles: at the beginning of the tile, each k-tile's by
//   a lane; the first stage's also by all lanes, whose product would wait for a shuffle
//   with several in flight, or k not known: during a product of the stage before
//   with parts one after the other: in the stage. The first part hides the time as well; reading
//   ahead was 1 % slower, shuffles 6 to 11 %.
class BlockFactors final : public Factors {
 public:
  BlockFactors(const ScaledOperands& of, const ScaledTile& at, const Accumulator& product)
      : Factors(of), at_(at), ahead_(of.parts() == 1 || of.options.overlap) {
    // Of each row, times the scale of the first block of columns, and of the next.
    if (!of.options.overlap)
      begin_with_zeros(blocks() * static_cast<int>(row_places(product).size()));
    const auto steps = of.steps.constant();
    if (!ahead_ || of.options.overlap || !steps || *steps > most_words * 32) {
      for (int i = 0; ahead_ && i < scales(); ++i) next_.push_back(of.k.variable(read_if(0, i)));
      return;
    }
    ahead_ = false, words_ = static_cast<int>((*steps + 31) / 32);
    for (int i = 0; i < scales(); ++i) first_.push_back(read_if(0, i));
    const Scalar lane = of.k.convert(of.k.lane(), s32);
    for (int i = 0; i < columns(); ++i)
      for (int word = 0; word < words_; ++word)
        words_of_.push_back(read_step_if(lane + 32 * word, i));
  }

  Reading read(const WarpTile& product, const Scalar& t, const Scalar& stage, int i) override {
    const RowValues rows = scales_of_rows(product, stage, i);
    Values out;
    for (int next = 0; next < blocks(); ++next) {
      const Scalar of_columns = scale(t, i / of_.parts(), i % of_.options.parts_n, next);
      for (const Scalar& row : rows) out.push_back(row * of_columns);
    }
    return [=] { return out; };
  }

  void read_next(const Scalar& t) override {
    for (int i = 0; ahead_ && i < scales(); ++i)
      next_[i] = of_.k.read(at_.scales_b, line_of(i), existing(step_of(t + 1, i)));
  }

  Scalar of(const Values& values, const Scalar& former, std::size_t i,
            std::size_t e) const override {
    const std::size_t row = 2 * (i / across()) + e / 2;
    const int column = 8 * static_cast<int>(i % across());
    return blocks() == 1 ? values[row]
                         : select(former > column, values[row], values[values.size() / 2 + row]);
  }

 private:
  static constexpr int most_words = 4;  // registers for each column

  // Blocks of columns that a part may be in.
  int blocks() const { return block % of_.part.n ? 2 : 1; }
  int columns() const { return of_.options.parts_n * blocks(); }
  int scales() const { return of_.options.blocks_k * columns(); }
  Scalar step_of(const Scalar& t, int i) const {
    return at_.stage_of_k(t) * of_.options.blocks_k + i / columns();
  }

  Scalar scale(const Scalar& t, int b, int part, int next) const {
    const int column = part * blocks() + next, i = b * columns() + column;
    if (words_) return t.constant() ? first_[i] : of_lane(t, b, column);
    if (!ahead_) return b ? read_if(t, i) : of_.k.read(at_.scales_b, line_of(i), step_of(t, i));
    const Scalar value = next_[i];
    return b ? select(step_of(t, i) < of_.steps, value, 0) : value;
  }

  Scalar of_lane(const Scalar& t, int b, int column) const {
    const Scalar step = of_.k.convert(step_of(t, b * columns()), u32);
    const int first = column * words_;
    Scalar value = words_of_[first];
    for (int word = 1; word < words_; ++word)
      value = select(step >= 32 * word, words_of_[first + word], value);
    return shuffle(value, step % 32);
  }

  // 0 where there is no such step.
  Scalar read_if(const Scalar& t, int i) const { return read_step_if(step_of(t, i), i); }
  Scalar read_step_if(const Scalar& step, int i) const {
    const Scalar col = existing(step), row = line_of(i);
    return of_.k.read_if(at_.scales_b, row, col, step < of_.steps);
  }

  Scalar existing(const Scalar& step) const { return minimum(step, of_.steps - 1); }

  Scalar line_of(int i) const {
    const Scalar first = of_.left_of(at_, i / blocks() % of_.options.parts_n) / block;
    return minimum(first + i % blocks(), ceil_div(of_.n, block) - 1);
  }

  const ScaledTile& at_;
  bool ahead_;
  std::deque<ScalarVariable> next_;
  int words_ = 0;                         // of a column, if lanes have the scales
  std::vector<Scalar> first_, words_of_;  // of the first stage; of each column and 32 k-tiles
};

// SB has a scale for each column. Reads of scales compete with the tensor cores for shared memory:
// those of columns come before the first product of a stage, so that it does not wait for them, and
// factors are multiplied while their product is computed.
class ColumnFactors final : public Factors {
 public:
  explicit ColumnFactors(const ScaledOperands& of) : Factors(of) {
    begin_with_zeros(of.part.n / 2 * of.down());
  }

  Reading read(const WarpTile& product, const Scalar&, const Scalar& stage, int i) override {
    if (i == 0) {
      columns_.clear();
      const ColumnValues places = col_places(product);
      for (std::size_t x = 0; x < places.size(); x += 2)
        for (const Scalar& scale : of_.k.read_vector(of_.shared_scales_b[stage], 0, places[x], 2))
          columns_.push_back(scale);
    }
    return [this, rows = scales_of_rows(product, stage, i)] {
      Values out;
      for (std::size_t x = 0; x + 1 < columns_.size(); x += 2)
        for (const Scalar& row : rows)
          for (const std::size_t j : {x, x + 1}) out.push_back(row * columns_[j]);
      return out;
    };
  }

  Scalar of(const Values& values, const Scalar&, std::size_t i, std::size_t e) const override {
    const std::size_t of_column = values.size() / across(), row = 2 * (i / across()) + e / 2;
    return values[i % across() * of_column + 2 * row + e % 2];
  }

 private:
  ColumnValues columns_;
};

}  // namespace

void Factors::begin_with_zeros(int count) {
  for (int i = 0; i < count; ++i) kept_.push_back(of_.k.variable(of_.k.constant(f32, 0)));
}

void Factors::keep(const Values& values) {
  for (std::size_t i = 0; i < values.size(); ++i) kept_[i] = values[i];
}

// With several products in a stage, the promotion comes after the wait for the stage, where other
// warpgroups' products hide it: nothing moves across an instruction of the user's own. Otherwise
// LLVM has it before the wait, which three warpgroups hide better.
Factors::Values Factors::kept() const {
  Values out(kept_.begin(), kept_.end());
  if (of_.parts() > 1)
    for (Scalar& x : out) x = of_.k.ptx("mov.b32 %0, %1;", {f32}, {x})[0];
  return out;
}

RowValues Factors::scales_of_rows(const WarpTile& product, const Scalar& stage, int i) const {
  return map(row_places(product), [&](const Scalar& row) {
    return of_.k.read(of_.shared_scales_a[of_.slot_a(stage, i)], row, 0);
  });
}

std::unique_ptr<Factors> factors_of(const ScaledOperands& operands, const ScaledTile& at,
                                    const Accumulator& product) {
  if (operands.options.along_k) return std::make_unique<ColumnFactors>(operands);
  return std::make_unique<BlockFactors>(operands, at, product);
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
