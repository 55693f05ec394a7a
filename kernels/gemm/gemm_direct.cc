// SPDX-License-Identifier: Apache-2.0
// Each warp has a few columns of B, along which its lanes read side by side: a lane's elements are
// multiplied by those of A in the same places, and the sums of the lanes are added at the end.
// Where rows begin at any element, lanes read the aligned words beneath them, take the next word
// from the next lane and shift both: no element is loaded alone but the last ones of a row.
#include "kernels/gemm/gemm_direct.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/common/epilogue.h"
#include "kernels/gemm/gemm_schedule.h"
#include "kernels/gemm/gemm_tiles.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels::detail {
namespace {

constexpr int lanes = 32, word_bytes = 4;
constexpr int most_rows = 8, most_columns = 8, most_accesses = 16;  // of a warp; of a lane

bool is_integer(const Gemm& options) { return !info(options.a).floating; }
int columns_of(const Gemm& options) { return options.tile.n / std::max(options.tile.warps_n, 1); }

// A row of A or a column of B, as words from the one on that its first element is in.
struct Line {
  Global words;
  Scalar shift;  // bits of that word before it
};

class Direct {
 public:
  Direct(Builder& k, const Gemm& options)
      : k_(k),
        options_(options),
        element_(bits(options.a) / 8),
        access_(direct_bytes(options) / word_bytes),
        shifted_(direct_shifts(options)),
        columns_(columns_of(options)) {}

  static int multiple_bytes(const Gemm& options);
  void describe();

 private:
  using Words = std::vector<Scalar>;
  struct Step {
    std::vector<Words> a, b;  // of each row, and of each column
  };

  std::size_t index(int row, int col) const {
    return static_cast<std::size_t>(row * columns_ + col);
  }
  int rows() const { return options_.tile.m; }
  Line line(const Global& row) const;
  Words read(const Line& from, const Scalar& first) const;
  Step read_step(const Scalar& first) const;
  Words numbers(const Scalar& word, Type type) const;
  void multiply(const Step& step);
  void multiply_rest();
  Words sums_of_lanes() const;

  Builder& k_;
  const Gemm& options_;
  int element_, access_;  // bytes, and words
  bool shifted_;          // rows may begin at any element
  int columns_;           // of a warp
  Scalar m_, n_, depth_, words_;
  Scalar warp_k_, warp_n_;
  std::vector<Line> a_, b_;
  std::vector<Global> a_rows_, b_columns_;
  std::vector<ScalarVariable> sums_;
};

// What bytes of a row are a multiple of, and the distances of matrices.
int Direct::multiple_bytes(const Gemm& options) {
  const int known = std::max(options.multiple, 1), sure = options.k ? options.k : known,
            apart = options.batched ? std::gcd(sure, known) : sure;
  return static_cast<int>(std::gcd(std::int64_t{apart} * bits(options.a) / 8, 16));
}

Line Direct::line(const Global& row) const {
  const int per_word = word_bytes / element_;
  Scalar shift = 0;
  if (shifted_ && row.offset().multiple() % per_word != 0)
    shift = k_.convert(row.offset(), u32) % per_word * (8 * element_);
  return {.words = row.as(u32), .shift = shift};
}

// This lane's words of a step, from number `first` on; zeros beyond the last one.
Direct::Words Direct::read(const Line& from, const Scalar& first) const {
  Words out;
  const int apart = lanes * access_;
  if (!shifted_) {
    for (int i = 0; i < options_.stages; ++i) {
      const Scalar at = first + i * apart,
                   inside = multiple_of(minimum(at, words_ - access_), access_);
      for (const Scalar& word : k_.read_vector(from.words, 0, inside, access_))
        out.push_back(select(at < words_, word, 0));
    }
    return out;
  }
  // One more than the whole words: the last one is shifted into its predecessor.
  for (int i = 0; i <= options_.stages; ++i)
    out.push_back(k_.read(from.words, 0, minimum(first + i * apart, words_)));
  for (int i = 0; i < options_.stages; ++i) {
    Scalar word = out[i];
    if (!(from.shift.constant() == 0)) {
      const Scalar next = shuffle(select(k_.lane() == 0, out[i + 1], word), k_.lane() + 1);
      word = k_.instruction("shf.r.wrap.b32", {word, next, from.shift})[0];
    }
    out[i] = select(first + i * apart < words_, k_.bitcast(word, u32), 0);
  }
  out.pop_back();
  return out;
}

Direct::Step Direct::read_step(const Scalar& first) const {
  Step out;
  for (const Line& each : b_) out.b.push_back(read(each, first));
  for (const Line& each : a_) out.a.push_back(read(each, first));
  return out;
}

// The elements of a word, in f32; four integers in one, as dp4a() takes them.
Direct::Words Direct::numbers(const Scalar& word, Type type) const {
  if (is_integer(options_)) return {k_.bitcast(word, type == s8 ? s32 : u32)};
  if (type == bf16) return {k_.bitcast(word << 16, f32), k_.bitcast(word & 0xFFFF0000, f32)};
  std::vector<Scalar> out;
  const auto add = [&](const Scalar& pair) {
    const auto [low, high] = k_.halves(pair, f16);
    out.push_back(k_.convert(low, f32)), out.push_back(k_.convert(high, f32));
  };
  if (type == f16) return add(word), out;
  const auto [low, high] = k_.halves(word, Type::u16);
  const std::string converts = fmt::format("cvt.rn.f16x2.{}x2", name(type));
  const Type pair_type = type == Type::e4m3 ? Type::e4m3x2 : Type::e5m2x2;
  for (const Scalar& pair : {low, high})
    add(k_.instruction(converts, {k_.bitcast(pair, pair_type)})[0]);
  return out;
}

void Direct::multiply(const Step& step) {
  Words sums(sums_.begin(), sums_.end());
  for (std::size_t w = 0; w < step.a[0].size(); ++w) {
    std::vector<Words> a;
    for (int r = 0; r < rows(); ++r) a.push_back(numbers(step.a[r][w], options_.a));
    for (int c = 0; c < columns_; ++c) {
      const Words b = numbers(step.b[c][w], options_.b);
      for (int r = 0; r < rows(); ++r) {
        Scalar& sum = sums[index(r, c)];
        for (std::size_t e = 0; e < b.size(); ++e)
          sum = is_integer(options_) ? dp4a(a[r][e], b[e], sum) : fma(a[r][e], b[e], sum);
      }
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) sums_[i] = sums[i];
}

// What is beyond the whole words: an element for each of the first lanes.
void Direct::multiply_rest() {
  const Scalar at = k_.convert(words_ * (word_bytes / element_), u32) + k_.lane(),
               own = (at < k_.convert(depth_, u32)) & (warp_k_ == 0);
  const Type type = is_integer(options_) ? s32 : f32;
  std::vector<Scalar> a, b;
  for (const Global& each : b_columns_) b.push_back(k_.read_if(each, 0, at, own));
  for (const Global& each : a_rows_) a.push_back(k_.read_if(each, 0, at, own));
  for (Scalar& each : a) each = k_.convert(each, type);
  for (Scalar& each : b) each = k_.convert(each, type);
  for (int r = 0; r < rows(); ++r)
    for (int c = 0; c < columns_; ++c) {
      const Scalar sum = sums_[index(r, c)];
      sums_[index(r, c)] = is_integer(options_) ? Scalar(sum + a[r] * b[c]) : fma(a[r], b[c], sum);
    }
}

// The sums of all lanes, of a power of two of them: number i in the lanes from 32 / count * i on.
// In each step lanes exchange half of what they have.
Direct::Words Direct::sums_of_lanes() const {
  Words out;
  for (const ScalarVariable& each : sums_) out.emplace_back(each);
  out.resize(std::bit_ceil(out.size()), k_.constant(out[0].type(), 0));
  for (int mask = lanes / 2; mask > 0; mask /= 2) {
    if (out.size() == 1) {
      out[0] = out[0] + shuffle_xor(out[0], mask);
      continue;
    }
    const std::size_t half = out.size() / 2;
    const Scalar upper = (k_.lane() & mask) != 0;
    for (std::size_t i = 0; i < half; ++i) {
      const Scalar given = select(upper, out[i], out[i + half]),
                   kept = select(upper, out[i + half], out[i]);
      out[i] = kept + shuffle_xor(given, mask);
    }
    out.resize(half);
  }
  return out;
}

void Direct::describe() {
  const Tile& tile = options_.tile;
  const auto integer = [&](const Scalar& x) { return k_.convert(x, u32); };
  m_ = size(k_, "m", options_.m, 1), n_ = size(k_, "n", options_.n, 1);
  depth_ = size(k_, "k", options_.k, options_.multiple);
  if (!sizes_are_possible(k_, tile, m_, n_, depth_)) return;
  const auto stride_a = stride(k_, "stride_a", options_, options_.multiple),
             stride_b = stride(k_, "stride_b", options_, options_.multiple),
             stride_c = stride(k_, "stride_c", options_, options_.multiple_c);
  Global A = k_.global("A", options_.a, row_major(m_, depth_)),
         B = k_.global("B", options_.b, col_major(depth_, n_)).transposed();
  Finisher finisher(k_, options_.epilogue, options_.accumulator, options_.c, m_, n_);
  if (options_.batched) {
    A = A.matrix(k_.block_z(), stride_a), B = B.matrix(k_.block_z(), stride_b);
    finisher.select_matrix(k_.block_z(), stride_c);
  }
  // Of rows that begin anywhere, the words behind which another one ends inside of the row.
  const Scalar row_bytes = integer(depth_) * element_;
  words_ = shifted_ ? (maximum(row_bytes, 4) - 4) / word_bytes : row_bytes / word_bytes;
  warp_n_ = k_.warp() % tile.warps_n, warp_k_ = k_.warp() / tile.warps_n;
  const auto [tile_row, tile_col] = k_.block_tile(m_, n_, tile, options_.group);
  const Scalar top = integer(tile_row) * tile.m,
               left = integer(tile_col) * tile.n + warp_n_ * columns_;
  const auto existing = [&](const Scalar& i, const Scalar& count, int by) {
    return count.multiple() % by == 0 ? i : minimum(i, integer(count) - 1);
  };
  for (int c = 0; c < columns_; ++c) {
    b_columns_.push_back(B.row(existing(left + c, n_, tile.n)));
    b_.push_back(line(b_columns_.back()));
  }
  for (int r = 0; r < rows(); ++r) {
    a_rows_.push_back(A.row(existing(top + r, m_, tile.m)));
    a_.push_back(line(a_rows_.back()));
  }
  for (int i = 0; i < rows() * columns_; ++i)
    sums_.push_back(k_.variable(k_.constant(options_.accumulator, 0)));
  const int own = lanes * access_ * options_.stages;  // words of a warp's step
  if (shifted_) multiply_rest();
  k_.loop(warp_k_ * own, words_, own * tile.warps_k,
          [&](Scalar first) { multiply(read_step(first + k_.lane() * access_)); });
  const Words sums = sums_of_lanes();
  const int count = static_cast<int>(std::bit_ceil(sums_.size())), each = lanes / count;
  const auto finish = [&](const Scalar& sum, const Scalar& number, const Scalar& first_col) {
    const Scalar row = top + number / columns_, col = first_col + number % columns_;
    k_.when((number < rows() * columns_) & (row < integer(m_)) & (col < integer(n_)),
            [&] { finisher.store(sum, k_.convert(row, s32), k_.convert(col, s32)); });
  };
  if (tile.warps_k == 1) {
    k_.when(k_.lane() % each == 0, [&] { finish(sums[0], k_.lane() / each, left); });
    return;
  }
  const Shared parts =
      k_.shared("parts", options_.accumulator, row_major(tile.warps_n * tile.warps_k, count));
  k_.when(k_.lane() % each == 0, [&] { k_.write(parts, k_.warp(), k_.lane() / each, sums[0]); });
  k_.barrier();
  k_.when(k_.thread() < tile.warps_n * count, [&] {
    const Scalar of = k_.thread() / count, number = k_.thread() % count;
    Scalar sum = k_.read(parts, of, number);
    for (int i = 1; i < tile.warps_k; ++i)
      sum = sum + k_.read(parts, of + i * tile.warps_n, number);
    finish(sum, number, integer(tile_col) * tile.n + of * columns_);
  });
}

bool multiplies(Type a, Type b) {
  const TypeSet types{f16, bf16, Type::e4m3, Type::e5m2, s8, Type::u8};
  return types.has(a) && types.has(b) && bits(a) == bits(b) &&
         info(a).floating == info(b).floating && (bits(a) == 8 || a == b);
}

// Whether the target converts the elements.
bool converts(const Gemm& options, const Target& target) {
  return is_integer(options) || bits(options.a) == 16 || has_eight_bits(target);
}

// Reports what such a kernel does not do.
bool is_possible(Builder& k, const Gemm& options) {
  const Tile& tile = options.tile;
  const auto in = [&](const std::string& what, int value, int least, int most) {
    return k.require(value >= least && value <= most,
                     fmt::format("direct, {} = {}: expected {} to {}; the nearest is {}", what,
                                 value, least, most, std::clamp(value, least, most)));
  };
  const auto is = [&](const char* what, int value, int wanted) {
    return k.require(value == wanted,
                     fmt::format("direct, {} = {}: expected {}", what, value, wanted));
  };
  const bool integers = is_integer(options);
  bool out = k.require(multiplies(options.a, options.b),
                       fmt::format("direct, A of {} and B of {}: expected f16, bf16, e4m3, e5m2, "
                                   "s8 or u8, both of 16 bits and the same, both of fp8 or both "
                                   "integers; other types take direct = false",
                                   name(options.a), name(options.b)));
  if (!out) return false;
  const Type sums = integers ? s32 : f32;
  out &= k.require(options.accumulator == sums,
                   fmt::format("direct, accumulator = {}: expected {}, for products of {}",
                               name(options.accumulator), name(sums), name(options.a)));
  out &= k.require(converts(options, k.target()),
                   fmt::format("direct, A of {}: requires sm_89 and PTX 8.1 to convert it, the "
                               "target is {}; the nearest supported type is f16",
                               name(options.a), k.target().text()));
  out &= k.require(options.a_major == Major::row && options.b_major == Major::col,
                   "direct: A must be row-major and B column-major: lanes read both along k");
  const bool rows = in("tile.m", tile.m, 1, most_rows);
  out &= rows & is("warps_m", tile.warps_m, 1) & is("products", tile.products, 1) &
         in("stages", options.stages, 1, most_accesses);
  if (in("warps_n", tile.warps_n, 1, 32) & in("warps_k", tile.warps_k, 1, 32)) {
    out &= k.require(tile.n > 0 && tile.n % tile.warps_n == 0,
                     fmt::format("direct, tile.n = {}: expected a multiple of warps_n = {}; the "
                                 "nearest is {}",
                                 tile.n, tile.warps_n, nearest_multiple(tile.n, tile.warps_n)));
    out &= in("tile.n / warps_n", columns_of(options), 1, most_columns) && rows &&
           in("tile.m * tile.n / warps_n", tile.m * columns_of(options), 1, lanes);
    out &= is("tile.k", tile.k, direct_step(options));
  } else {
    out = false;
  }
  return out & is_one_way(k, options);
}

}  // namespace

int direct_bytes(const Gemm& options) {
  return std::max(Direct::multiple_bytes(options), word_bytes);
}

bool direct_shifts(const Gemm& options) { return Direct::multiple_bytes(options) < word_bytes; }

int direct_step(const Gemm& options) {
  return std::clamp(options.tile.warps_k, 1, 32) * lanes * direct_bytes(options) * 8 /
         std::max(bits(options.a), 8);
}

bool direct_takes(const Gemm& options, const Target& target) {
  return multiplies(options.a, options.b) && converts(options, target) &&
         options.accumulator == (is_integer(options) ? s32 : f32) &&
         options.a_major == Major::row && options.b_major == Major::col;
}

void describe_direct(Builder& k, const Gemm& options) {
  if (!is_possible(k, options)) return;
  follow_previous_launch(k);
  Direct(k, options).describe();
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
