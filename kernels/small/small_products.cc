// SPDX-License-Identifier: Apache-2.0
// Fragments come straight from global memory in accesses of up to 16 bytes, and C goes back so. The
// sum over k may be taken in any order, and rows and columns may be named in any order: so a lane's
// elements of a fragment are chosen to be neighbours in memory, along k the same for A and for B.
// Each access of a warp fills whole sectors of 32 bytes. What has no room in registers while it is
// on its way from memory passes through shared memory.
#include "tartan/kernels/small_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "kernels/common/keys.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int unit = 8;         // rows of A (columns of B), one for each four lanes
constexpr int most_bytes = 16;  // of an access
constexpr int most_warps = 8;   // of a product

int bytes(Type type) { return bits(type) / 8; }
bool is_f64(const SmallProducts& with) { return with.type == f64; }
int granule(const SmallProducts& with) { return is_f64(with) ? 8 : 16; }  // divides all sizes
int step_of(const SmallProducts& with) { return is_f64(with) ? 8 : 32; }
int steps_of(const SmallProducts& with) { return (with.k + step_of(with) - 1) / step_of(with); }

// Whether so many warps divide a size into whole granules.
bool divides(const SmallProducts& with, int warps, int size) {
  return warps >= 1 && warps <= most_warps && size % (granule(with) * warps) == 0;
}

int nearest_size(const SmallProducts& with, int size) {
  const int each = granule(with);
  return (std::clamp(size, each, 64) + each / 2) / each * each;
}

bool is_size(Builder& k, const SmallProducts& with, const char* what, int size) {
  const int each = granule(with), near = nearest_size(with, size);
  return k.require(size == near,
                   fmt::format("{} = {}: expected a multiple of {} from {} to 64, for {}; the "
                               "nearest is {}",
                               what, size, each, each, name(with.type), near));
}

// Whether there are registers to count.
bool has_sizes(const SmallProducts& with) {
  const auto fits = [&](int size) { return size == nearest_size(with, size); };
  return fits(with.m) && fits(with.n) && fits(with.k);
}

bool is_division(Builder& k, const SmallProducts& with, const char* what, int warps, int size) {
  int near = std::clamp(warps, 1, most_warps);
  while (!divides(with, near, size)) --near;
  return k.require(
      warps == near,
      fmt::format("warps_{} = {}: expected 1 to {}, a divisor of {} = {} into parts of "
                  "{}; the nearest is {}",
                  what, warps, most_warps, what, size, granule(with), near));
}

bool is_possible(Builder& k, const SmallProducts& with) {
  if (!k.require(TypeSet{f16, bf16, f64}.has(with.type),
                 fmt::format("type = {}: expected f16, bf16 or f64, for A and B", name(with.type))))
    return false;
  const auto in = [&](const char* what, int value, int most) {
    return k.require(value >= 1 && value <= most,
                     fmt::format("{} = {}: expected 1 to {}; the nearest is {}", what, value, most,
                                 std::clamp(value, 1, most)));
  };
  const bool m = is_size(k, with, "m", with.m), n = is_size(k, with, "n", with.n);
  bool out = m & n & is_size(k, with, "k", with.k);
  out &= k.require(with.c == with.type || (with.c == f32 && !is_f64(with)),
                   fmt::format("c = {}: expected {}{}, for products of {}", name(with.c),
                               is_f64(with) ? "" : "f32 or ", name(with.type), name(with.type)));
  const bool rows = m && is_division(k, with, "m", with.warps_m, with.m),
             columns = n && is_division(k, with, "n", with.warps_n, with.n);
  if (rows && columns)
    out &= k.require(with.team() <= most_warps,
                     fmt::format("warps_m * warps_n = {}: expected up to {} warps; the nearest is "
                                 "{} x {}",
                                 with.team(), most_warps, with.warps_m, most_warps / with.warps_m));
  if (with.staged)
    out &= k.require(is_f64(with) && with.products == 1 && with.team() > 2,
                     fmt::format("staged: expected products of f64, one for each block of three "
                                 "warps or more; found {}, {} and {} x {}",
                                 name(with.type), with.products, with.warps_m, with.warps_n));
  return (in("products", with.products, 8) & in("ahead", with.ahead, 64)) && rows && columns && out;
}

// What a lane has of a chunk of a dimension: `count` neighbours.
struct Chunk {
  int first = 0, count = 1;  // for the first lane
};

// A dimension of whole `groups` of lanes, in chunks of a power of two and at most `most` neighbours
// of each lane.
std::vector<Chunk> chunks(int size, int groups, int most) {
  std::vector<Chunk> out;
  for (int first = 0; first < size; first += groups * out.back().count) {
    int count = most;
    while (groups * count > size - first) count /= 2;
    out.push_back({first, count});
  }
  return out;
}

// Rows of A (columns of B) of this lane: neighbours, one in each of so many units.
struct Part {
  int count = 1;
  Scalar place;        // of the first one
  bool split = false;  // of C's columns: see find_parts()
};

// Of each unit, a lane's elements in the order of their k.
using Elements = std::vector<std::vector<Scalar>>;

struct Step {
  Elements a, b;
};

// The body of the kernel, in parts.
class Products {
 public:
  Products(Builder& k, const SmallProducts& options)
      : k_(k),
        with_(options),
        rows_(options.m / options.warps_m),
        cols_(options.n / options.warps_n) {}

  void describe() {
    const Scalar batch = k_.convert(maximum(k_.param("batch", s32), 0), u32);
    A_ = k_.global("A", with_.type, stored(with_.a_major, with_.m, with_.k));
    B_ = k_.global("B", with_.type, stored(with_.b_major, with_.k, with_.n));
    C_ = k_.global("C", with_.c, row_major(with_.m, with_.n));
    if (with_.staged) {
      shared_a_ = k_.shared("sA", with_.type, padded(with_.a_major, with_.m, with_.k, a_along()));
      shared_b_ = k_.shared("sB", with_.type, padded(with_.b_major, with_.k, with_.n, b_along()));
    }
    shape_ = shape();
    member_ = k_.lane() % 4;
    const Scalar team = k_.warp() / with_.team(), own = k_.warp() % with_.team(),
                 first = (k_.block_x() * with_.teams() + team) * with_.products;
    find_parts(own / with_.warps_n * rows_, own % with_.warps_n * cols_);
    if (!with_.staged) k_.when(first < batch, [&] { multiply(first, batch); });
    else k_.when(k_.block_x() < batch, [&] { multiply_staged(k_.block_x()); });
  }

 private:
  // Of f64 no more than four of k: a larger shape has more elements of a fragment in neighbouring
  // registers, where no load puts them: it takes a move for each.
  MmaShape shape() const {
    if (!is_f64(with_)) return m16n8k16;
    const bool tall = rows_ % 16 == 0;
    return tall && k_.has("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64") ? m16n8k4 : m8n8k4;
  }

  // Of a part of C from (row, col) on. An access to C takes `most_bytes` of a line where it can:
  // columns c and c + 1 of a fragment belong to one lane. Where the neighbours in one of them fill
  // an access, the part is split: one access for the even columns, side by side with those of the
  // other lanes, and one for the odd ones.
  void find_parts(const Scalar& row, const Scalar& col) {
    const Scalar group = k_.lane() / 4;
    const int widest = most_bytes / bytes(with_.type), widest_c = most_bytes / bytes(with_.c);
    for (const Chunk& each : chunks(rows_, unit, with_.a_major == Major::col ? widest : 1))
      row_parts_.push_back({each.count, row + each.first + group * each.count});
    for (const Chunk& each : chunks(cols_, unit, std::min(widest, widest_c))) {
      const bool split = each.count == widest_c;
      const Scalar slot = split ? group % 2 * 4 + group / 2 : group;
      col_parts_.push_back({each.count, col + each.first + slot * each.count, split});
      const Scalar own = split ? member_ * each.count : member_ * (2 * each.count);
      stored_.push_back(col + each.first + own);
    }
  }

  // All products of these warps. Beyond the batch it is the last one again, which is not stored.
  void multiply(const Scalar& first, const Scalar& batch) {
    const int steps = steps_of(with_), all = steps * with_.products;
    std::vector<Step> loaded;
    const auto load = [&](int i) {
      const Scalar number = i < steps ? first : minimum(first + i / steps, batch - 1);
      loaded.push_back(step(A_.matrix(number), B_.matrix(number), i % steps * step_of(with_)));
    };
    for (int i = 0; i < std::min(with_.ahead, all); ++i) load(i);
    std::vector<Fragment> sums;
    for (int i = 0; i < all; ++i) {
      if (i + with_.ahead < all) {
        k_.warp_sync();  // so that the assembler does not load all at once: it has no registers
        load(i + with_.ahead);
      }
      if (i % steps == 0) sums.clear();
      add(sums, loaded[i]);
      loaded[i] = {};
      if ((i + 1) % steps) continue;
      const Scalar number = first + i / steps;
      if (i < steps) store(C_.matrix(number), sums);  // the first product exists
      else k_.when(number < batch, [&] { store(C_.matrix(number), sums); });
    }
  }

  // Padding for which the eight lanes that read 128 bytes at a time find them in different banks
  // (of B along k in two accesses).
  Layout padded(Major major, int rows, int cols, bool along_k) const {
    const int line = major == Major::row ? cols : rows;
    const int pad = along_k ? line % 16 ? 0 : 8 : a_along() || b_along() ? 2 : 4;
    return major == Major::row ? row_major(rows, cols, line + pad)
                               : col_major(rows, cols, line + pad);
  }

  // The block's product, by way of shared memory.
  void multiply_staged(const Scalar& number) {
    const auto fill = [&](const Scalar&, const Scalar&) {
      k_.copy(A_.matrix(number), shared_a_);
      k_.copy(B_.matrix(number), shared_b_);
    };
    k_.pipeline({.stages = 1}, 1, fill, [&](const Scalar&, const Scalar&) {
      std::vector<Fragment> sums;
      for (int i = 0; i < steps_of(with_); ++i)
        add(sums, step(shared_a_, shared_b_, i * step_of(with_)));
      store(C_.matrix(number), sums);
    });
  }

  template <typename Matrix>
  Step step(const Matrix& a, const Matrix& b, int from) const {
    return {a_along() ? elements(a, true, row_parts_, from)
                      : elements(a.transposed(), false, row_parts_, from),
            b_along() ? elements(b.transposed(), true, col_parts_, from)
                      : elements(b, false, col_parts_, from)};
  }

  // Whether the lines of a matrix in memory are along k.
  bool a_along() const { return with_.a_major == Major::row; }
  bool b_along() const { return with_.b_major == Major::col; }

  // This lane's elements of a step: neighbours along k where lines are along k, else of each k.
  template <typename Matrix>
  Elements elements(const Matrix& lines, bool along, const std::vector<Part>& parts,
                    int from) const {
    const int size = std::min(step_of(with_), with_.k - from);
    Elements out;
    for (const Part& part : parts) {
      const std::size_t first = out.size();
      out.resize(first + static_cast<std::size_t>(part.count));
      for (const Chunk& chunk : chunks(size, 4, most_bytes / bytes(with_.type))) {
        const int count = chunk.count, at = from + chunk.first;
        const int reads = along ? part.count : count;
        for (int i = 0; i < reads; ++i) {
          const std::vector<Scalar> x =
              along ? k_.read_vector(lines, part.place + i, member_ * count + at, count)
                    : k_.read_vector(lines, line_along_k(count, at, i), part.place, part.count);
          for (std::size_t e = 0; e < x.size(); ++e)
            out[first + (along ? static_cast<std::size_t>(i) : e)].push_back(x[e]);
        }
      }
    }
    return out;
  }

  // Number `i` of this lane's k in a chunk at `at`. Where no lines are along k, the lanes' are side
  // by side.
  Scalar line_along_k(int count, int at, int i) const {
    if (a_along() || b_along()) return member_ * count + (at + i);
    return member_ + (at + 4 * i);
  }

  // The fragment that begins at this unit and at this one of the lane's k.
  Fragment fragment(const FragmentKind& kind, const Elements& from, int unit_at, int k_at) const {
    const int pack = std::max(32 / bits(with_.type), 1);  // elements of a register
    const bool is_a = kind.operand == Operand::a;
    std::vector<Scalar> out;
    const Shape shape = kind.shape.shape;
    const int count = (is_a ? shape.m : shape.n) * shape.k / 32;
    for (int i = 0; i < count; ++i) {
      const isa::Coord at = kind.coord(0, i);
      const int line = is_a ? at.row : at.col, x = is_a ? at.col : at.row;
      out.push_back(from[unit_at + line / unit][k_at + x / (4 * pack) * pack + x % pack]);
    }
    return k_.pack(kind, out);
  }

  void add(std::vector<Fragment>& sums, const Step& step) const {
    const int high = shape_.shape.m, own = shape_.shape.k / 4;
    const bool fresh = sums.empty();
    for (int x = 0; x < static_cast<int>(step.a[0].size()); x += own) {
      std::vector<Fragment> b;
      for (int j = 0; j < cols_ / unit; ++j)
        b.push_back(fragment(operand_b(shape_, with_.type), step.b, j, x));
      for (int i = 0; i < rows_ / high; ++i) {
        const Fragment a = fragment(operand_a(shape_, with_.type), step.a, i * high / unit, x);
        for (int j = 0; j < cols_ / unit; ++j) {
          if (fresh && x == 0) {
            sums.push_back(k_.mma(a, b[j], zero(is_f64(with_) ? f64 : f32)));
            continue;
          }
          Fragment& sum = sums[i * (cols_ / unit) + j];
          sum = k_.mma(a, b[j], sum);
        }
      }
    }
  }

  void store(const Global& c, const std::vector<Fragment>& sums) const {
    std::vector<std::vector<Scalar>> elements;
    for (const Fragment& sum : sums) {
      elements.push_back(k_.elements(sum));
      for (Scalar& x : elements.back()) x = k_.convert(x, with_.c);
    }
    const int tiles = cols_ / unit, units = shape_.shape.m / unit;
    int u = 0;
    for (const Part& part : row_parts_)
      for (int i = 0; i < part.count; ++i, ++u) {
        const auto fragments = std::span(elements).subspan(u / units * tiles, tiles);
        store_row(c, part.place + i, fragments, u % units * 2);
      }
  }

  // Elements `e` and `e + 1` of each fragment.
  void store_row(const Global& c, const Scalar& row, std::span<const std::vector<Scalar>> from,
                 int e) const {
    for (std::size_t part = 0; part < col_parts_.size(); ++part) {
      const int count = col_parts_[part].count;
      std::vector<Scalar> values;
      for (const int odd : {0, 1}) {
        for (int j = 0; j < count; ++j) values.push_back(from[j][e + odd]);
        if (!col_parts_[part].split) continue;
        k_.write_vector(c, row, stored_[part] + odd * 4 * count, values);
        values.clear();
      }
      if (!values.empty()) k_.write_vector(c, row, stored_[part], values);
      from = from.subspan(count);
    }
  }

  Builder& k_;
  const SmallProducts& with_;
  int rows_, cols_;  // of a warp's part of C
  MmaShape shape_;
  Global A_, B_, C_;
  Shared shared_a_, shared_b_;
  Scalar member_;  // of the four lanes that share a row of A, a column of B
  std::vector<Part> row_parts_, col_parts_;
  std::vector<Scalar> stored_;  // this lane's first column of C, by part
};

// Registers of a lane: sums, operands of a step along k, those of a product.
struct Registers {
  int sums = 0, step = 0, operands = 0;
  int all() const { return sums + operands; }
};

Registers registers(const SmallProducts& with) {
  const int rows = with.m / with.warps_m, cols = with.n / with.warps_n;
  constexpr int lane = 32 * 4;
  const auto of = [&](int depth) { return (rows + cols) * depth * bytes(with.type) / lane; };
  return {rows * cols * (is_f64(with) ? 8 : 4) / lane, of(std::min(step_of(with), with.k)),
          of(with.k)};
}

// Without a bound the assembler aims at more blocks than it has registers for, and spills.
KernelOptions kernel_options(const SmallProducts& with) {
  if (!has_sizes(with) || !divides(with, with.warps_m, with.m) ||
      !divides(with, with.warps_n, with.n))
    return {};
  const Registers own = registers(with);
  const int products = std::clamp(with.products, 1, 8);
  KernelOptions out{.block = std::min(32 * with.team() * with.teams(), 1024)};
  if (with.staged || with.ahead < products * steps_of(with)) {
    out.max_registers = 255;
    return out;
  }
  constexpr int of_multiprocessor = 65536, others = 24;
  out.min_blocks = std::clamp(
      of_multiprocessor / (out.block * (own.sums + own.operands * products + others)), 1, 16);
  return out;
}

}  // namespace

Kernel small_products(const SmallProducts& options) {
  return kernel("small_products", kernel_options(options),
                [=](Builder& k) {
                  if (is_possible(k, options)) Products(k, options).describe();
                })
      .keyed(key_of(options));
}

namespace {

// All divisions of a product among warps.
template <typename Rank>
SmallProducts divided(SmallProducts best, const Rank& rank) {
  best.warps_m = best.warps_n = 1;
  const SmallProducts options = best;
  for (int m = 1; m <= most_warps; ++m)
    for (int n = 1; m * n <= most_warps; ++n) {
      SmallProducts next = options;
      next.warps_m = m, next.warps_n = n;
      if (divides(options, m, options.m) && divides(options, n, options.n) &&
          rank(next) < rank(best))
        best = next;
    }
  return best;
}

}  // namespace

SmallProducts tuned(const SmallProducts& options, const Gpu&) {
  SmallProducts best = options;
  if (!has_sizes(options)) return best;
  best.products = best.ahead = 1;
  // Registers hold less than is on its way from memory then: the most warps, and of those the parts
  // that read the least from shared memory.
  constexpr int most_direct = 16 * 1024;
  const auto of_k = [&](int size) { return size * options.k * bytes(options.type); };
  best.staged = is_f64(options) && of_k(options.m) + of_k(options.n) >= most_direct;
  if (best.staged)
    return divided(best, [](const SmallProducts& with) {
      return std::pair(-with.team(), with.m / with.warps_m + with.n / with.warps_n);
    });
  // With three blocks of four warps on a multiprocessor a lane has 168 registers. The fewest warps
  // for which a product's operands are loaded at once; else those for which three steps are.
  constexpr int most = 144, most_of_steps = 160, few = 64;
  best = divided(best, [](const SmallProducts& with) {
    const Registers own = registers(with);
    const int fits = own.all() <= most ? 0 : own.sums + 3 * own.step <= most_of_steps ? 1 : 2;
    return std::array{fits, fits < 2 ? with.team() : 0, own.all()};
  });
  const Registers own = registers(best);
  const int steps = steps_of(options);
  while (best.products < 4 && best.products * 2 * own.all() <= few) best.products *= 2;
  best.ahead = own.all() > most
                   ? std::clamp((most_of_steps - own.sums) / std::max(own.step, 1) - 1, 1, steps)
               : steps > 1 && !is_f64(options) ? steps - 1
                                               : best.products * steps;
  return best;
}

}  // namespace tartan::TARTAN_ABI::kernels
