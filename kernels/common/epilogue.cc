// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/epilogue.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <tuple>

#include "tartan/dsl/math.h"
#include "tartan/dsl/warp.h"

namespace tartan::TARTAN_ABI::kernels::detail {
namespace {

bool is_byte(Type type) { return type == s8 || type == u8; }
bool is_small_float(Type type) { return type == Type::e4m3 || type == Type::e5m2; }

}  // namespace

Finisher::Finisher(Builder& k, const Epilogue& options, Type sum, Type c, const Scalar& m,
                   const Scalar& n, bool transposed)
    : k_(k),
      options_(options),
      sum_(sum),
      c_(c),
      in_(sum == f64 ? f64 : f32),
      transposed_(transposed) {
  k.require(
      TypeSet{f32, f16, bf16, f64, s32, s8, u8, Type::e4m3, Type::e5m2}.has(c),
      fmt::format("type of C: expected f32, f16, bf16, e4m3, e5m2, f64, s32, s8 or u8, found {}",
                  name(c)));
  if (is_small_float(c) && !has_eight_bits(k.target()))
    k.require(false, fmt::format("C of {} needs cvt.rn.satfinite.{}x2.f32, which requires sm_89 "
                                 "and PTX 8.1; the target is {}; the nearest supported type is f16",
                                 name(c), name(c), k.target().text()));
  k.require(c != s32 || (sum == s32 && options.empty()),
            "C of s32 requires s32 accumulators and no epilogue; use c = f32, f16 or s8 with an "
            "epilogue");
  k.require((c == f64) == (sum == f64),
            "f64 accumulators require C of f64, and C of f64 requires f64 accumulators");
  k.require(in_ == f32 || options.activation == Activation::none ||
                options.activation == Activation::relu,
            "gelu, silu and sigmoid are unsupported for f64: their approximations are f32");
  const Layout layout = transposed ? col_major(n, m) : row_major(m, n);
  out_ = k.global("C", c, layout);
  if (options.alpha) alpha_ = k.param("alpha", in_);
  if (options.beta) beta_ = k.param("beta", in_);
  if (options.row_scales) row_scales_ = k.global("row_scales", in_, row_major(1, m));
  if (options.column_scales) column_scales_ = k.global("column_scales", in_, row_major(1, n));
  if (options.bias) bias_ = k.global("bias", in_, row_major(1, n));
  if (options.residual) residual_ = k.global("residual", c, layout);
}

void Finisher::select_matrix(const Scalar& i, const Scalar& stride) {
  out_ = out_.matrix(i, stride);
  if (options_.residual) residual_ = residual_.matrix(i, stride);
}

Scalar activated(Builder& k, Activation activation, const Scalar& x) {
  const auto number = [&](double value) { return k.constant(x.type(), value); };
  const auto sigmoid = [&] {
    return reciprocal(exp2(x * number(-1.4426950408889634)) + number(1));
  };
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return relu(x);
    case Activation::gelu: {
      const Scalar inner =
          x * fma(x * x, number(0.044715 * 0.7978845608028654), number(0.7978845608028654));
      const Scalar half = x * number(0.5);
      return fma(half, tanh(inner), half);
    }
    case Activation::silu: return x * sigmoid();
    case Activation::sigmoid: return sigmoid();
  }
  return x;
}

// An index may be out of bounds: then nothing is stored, so the value does not matter, but the load
// must stay inside the matrix.
Scalar Finisher::vector_value(const Global& from, const Scalar& i) {
  return k_.read(from, 0, minimum(i, from.layout().cols - 1));
}

Scalar Finisher::residual_value(const Global& part, const Scalar& row, const Scalar& col) {
  const auto inside = [&](const std::optional<Edge>& edge, const Scalar& i) {
    if (!edge) return i;
    return minimum(k_.convert(i, s32), k_.convert(edge->limit - edge->origin - 1, s32));
  };
  return k_.convert(k_.read(part, inside(part.row_edge(), row), inside(part.col_edge(), col)), in_);
}

// Beyond the edge: 0, without a read. An element of the edge in its place, as residual_value()
// takes one, would be one that another thread stores.
Scalar Finisher::old_value(const Global& part, const Scalar& row, const Scalar& col) {
  std::optional<Scalar> inside;
  const auto limit = [&](const std::optional<Edge>& edge, const Scalar& i) {
    if (!edge) return;
    const Scalar within = k_.convert(i, s32) < k_.convert(edge->limit - edge->origin, s32);
    inside = inside ? *inside & within : within;
  };
  limit(part.row_edge(), row);
  limit(part.col_edge(), col);
  return k_.convert(inside ? k_.read_if(part, row, col, *inside) : k_.read(part, row, col), in_);
}

// `row`, `col`: in C. C and the residual are read separately.
void Finisher::read_of_row(Others& to, const Scalar& row) {
  if (options_.row_scales) to.row_scale = vector_value(row_scales_, row);
}

void Finisher::read_of_column(Others& to, const Scalar& col) {
  if (options_.column_scales) to.column_scale = vector_value(column_scales_, col);
  if (options_.bias) to.bias = vector_value(bias_, col);
}

Scalar Finisher::finished(const Scalar& sum, const Others& with) {
  Scalar x = k_.convert(sum, in_);
  if (options_.alpha) x = x * alpha_;
  if (options_.row_scales) x = x * with.row_scale;
  if (options_.column_scales) x = x * with.column_scale;
  if (options_.beta) x = fma(beta_, with.old, x);
  if (options_.bias) x = x + with.bias;
  x = activated(k_, options_.activation, x);
  if (options_.residual) x = x + with.residual;
  return x;
}

// The number in the low byte. From 1.5 * 2^23 on, an f32 has no fraction: adding that rounds to
// nearest even, four times as fast as a conversion. NaN becomes the lowest number.
Scalar Finisher::rounded(const Scalar& x) {
  const Scalar low = c_ == s8 ? -128 : 0, high = c_ == s8 ? 127 : 255;
  return k_.bitcast(minimum(maximum(x, low), high) + k_.constant(f32, 12582912), u32);
}

Scalar Finisher::converted(const Scalar& x) { return k_.convert(is_byte(c_) ? rounded(x) : x, c_); }

// Converts two values to 8 bits with one instruction.
std::pair<Scalar, Scalar> Finisher::converted(const Scalar& x, const Scalar& y) {
  if (!is_small_float(c_)) return {converted(x), converted(y)};
  const Scalar pair = convert_pair(x, y, c_);
  return {k_.convert(pair, u8), k_.convert(pair >> 8, u8)};
}

void Finisher::store(const Scalar& sum, const Scalar& row, const Scalar& col) {
  // Tiles of one element: their addresses are computed in 64 bits.
  const auto one = [&](const Global& of) { return of.tile({row, col}, {1, 1}); };
  const auto value = [&](const Global& of) { return k_.convert(k_.read(one(of), 0, 0), in_); };
  if (c_ == s32) return k_.write(one(out_), 0, 0, sum);
  Others with;
  read_of_row(with, row), read_of_column(with, col);
  if (options_.beta) with.old = value(out_);
  if (options_.residual) with.residual = value(residual_);
  k_.write(one(out_), 0, 0, converted(finished(sum, with)));
}

void Finisher::store(const WarpTile& sums, const Tile& tile, const Scalar& row, const Scalar& col,
                     const Part& of_tile) {
  const int width = tile.n / of_tile.count;
  const auto part_of = [&](const Global& matrix) {
    const Global whole = matrix.tile({row, col}, {tile.m, tile.n});
    return of_tile.count == 1 ? whole : whole.tile({0, of_tile.number}, {tile.m, width});
  };
  const Global part = part_of(out_);
  if (sums.fragments().empty()) return;
  if (options_.empty() && (c_ == sum_ || (sum_ == f32 && (c_ == f16 || c_ == bf16))))
    return k_.store(part, convert(sums, c_));
  const FragmentKind from = sums.fragment(0, 0).kind(), kind{from.shape, Operand::c, c_};
  const Global added = options_.residual ? part_of(residual_) : part;
  const Scalar top = k_.convert(row, s32) * tile.m,
               left = k_.convert(col, s32) * tile.n + k_.convert(of_tile.number, s32) * width;
  const auto elements = from.fragment().elements();
  const auto place = [&](int i, int j, int element) {
    const isa::Fragment shape = from.fragment();
    const ElementPlace in = k_.place(from, element);
    return std::pair{k_.convert(sums.place().row + in.row + sums.place().down(i, shape.rows), s32),
                     k_.convert(sums.place().col + in.col + j * shape.cols, s32)};
  };
  // The values of the tile's rows are the same in all of its columns: read once and kept.
  std::map<std::pair<int, int>, Others> of_rows;  // by row of fragments, and element
  std::map<std::pair<int, int>, std::vector<Others>> others;
  const auto read = [&](int i, int j) {
    for (int e = 0; e < elements; ++e) {
      const auto [r, c] = place(i, j, e);
      const auto [kept, is_new] = of_rows.try_emplace({i, e});
      if (is_new && transposed_) read_of_column(kept->second, top + r);
      if (is_new && !transposed_) read_of_row(kept->second, top + r);
      Others with = kept->second;
      if (transposed_) read_of_row(with, left + c);
      else read_of_column(with, left + c);
      if (options_.beta) with.old = old_value(part, r, c);
      if (options_.residual) with.residual = residual_value(added, r, c);
      others[{i, j}].push_back(with);
    }
  };
  const auto finish = [&](int i, int j) {
    std::vector<Scalar> out = k_.elements(sums.fragment(i, j));
    const std::vector<Others> with = others.extract({i, j}).mapped();
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = finished(out[e], with[e]);
    return out;
  };
  if (!kind.exists()) {
    for (int i = 0; i < sums.down(); ++i)
      for (int j = 0; j < sums.across(); ++j) {
        read(i, j);
        std::vector<Finished> out;
        for (const Scalar& x : finish(i, j)) {
          const auto [r, c] = place(i, j, static_cast<int>(out.size()));
          out.push_back({r, c, x});
        }
        store_elements(part, out);
      }
    return;
  }
  const int matrices = options_.beta + options_.residual,
            vectors = transposed_ ? options_.row_scales : options_.column_scales + options_.bias;
  k_.store(part, sums,
           {.kind = kind,
            .read = read,
            .registers = elements * matrices + elements / 2 * vectors,
            .finished = [&](int i, int j) {
              if (options_.empty() && sum_ == s32 && is_byte(c_))
                return saturated(kind, k_.elements(sums.fragment(i, j)));
              return converted(kind, finish(i, j));
            }});
}

Fragment Finisher::converted(const FragmentKind& kind, std::span<const Scalar> elements) {
  std::vector<Scalar> values;
  if (is_small_float(c_)) {
    for (std::size_t i = 0; i < elements.size(); i += 4) {
      const Scalar low = convert_pair(elements[i], elements[i + 1], c_),
                   high = convert_pair(elements[i + 2], elements[i + 3], c_);
      values.push_back(k_.convert(low, u32) | k_.convert(high, u32) << 16);
    }
    return k_.fragment(kind, values);
  }
  if (is_byte(c_)) {
    const auto pair = [&](std::size_t i) {
      return prmt(rounded(elements[i]), rounded(elements[i + 1]), 0x0040);
    };
    for (std::size_t i = 0; i < elements.size(); i += 4)
      values.push_back((pair(i) & 0xFFFF) | pair(i + 2) << 16);
    return k_.fragment(kind, values);
  }
  for (const Scalar& each : elements) values.push_back(k_.convert(each, c_));
  return k_.pack(kind, values);
}

// Each instruction converts two values to 8 bits.
Fragment Finisher::saturated(const FragmentKind& kind, std::span<const Scalar> elements) {
  const std::string packs = fmt::format("cvt.pack.sat.{}.s32.b32", name(c_));
  std::vector<Scalar> values;
  for (std::size_t i = 0; i < elements.size(); i += 4) {
    const Scalar high =
        k_.instruction(packs, {elements[i + 3], elements[i + 2], k_.constant(u32, 0)})[0];
    values.push_back(k_.instruction(packs, {elements[i + 1], elements[i], high})[0]);
  }
  return k_.fragment(kind, values);
}

// If a lane's elements do not fill a register: neighbours in a row that are both in bounds are
// written together.
void Finisher::store_elements(const Global& part, std::vector<Finished>& out) {
  const bool pair = !part.col_edge() || part.col_edge()->limit.multiple() % 2 == 0;
  for (std::size_t i = 0; i < out.size(); i += pair ? 2 : 1) {
    if (pair) std::tie(out[i].value, out[i + 1].value) = converted(out[i].value, out[i + 1].value);
    else out[i].value = converted(out[i].value);
    const auto write = [&](const Finished& each) {
      k_.write(part, each.row, each.col, each.value);
    };
    const auto inside = [&](const std::optional<Edge>& edge, const Scalar& at) {
      return edge ? edge->origin + at < edge->limit : Scalar(1);
    };
    k_.when(inside(part.row_edge(), out[i].row), [&] {
      k_.when(inside(part.col_edge(), out[i].col), [&] {
        write(out[i]);
        if (pair) write(out[i + 1]);
      });
    });
  }
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
