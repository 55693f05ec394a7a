// SPDX-License-Identifier: Apache-2.0
// tests/emulator/tensor_gemm.h - one CTA's chain of tcgen05.mma as a kernel, and its result by the
// model of tensor_model.h. Where elements lie in shared and tensor memory is written apart from the
// emulator.
#pragma once

#include <cstdlib>
#include <random>

#include "tests/emulator/tensor_memory.h"
#include "tests/emulator/tensor_model.h"

namespace tartan::test::tensor {

using Words = std::vector<std::uint32_t>;

/// Random cases of a kind: TARTAN_TENSOR_CASES, or as many as usual.
inline int cases(int usual) {
  const char* const asked = std::getenv("TARTAN_TENSOR_CASES");
  return asked ? std::atoi(asked) : usual;
}

/// How a factor lies in shared memory.
struct Layout {
  int width = 0;  // bytes of a swizzled row
  bool mn_major = false;
};

struct Gemm {
  std::string kind = "f16", a = "f16", b = "f16", d = "f32";
  int m = 128, n = 64, steps = 1;
  Layout layout_a, layout_b;
  bool a_in_tensor = false, accumulates = false, saturates = false;
  bool negates_a = false, negates_b = false;
  int half = 0;        // M 64: 16: the upper lanes
  int scale_d = 0;     // of each step
  Words disabled;      // four words
  std::string vector;  // .block32, ...
  int scales = 0;      // of a row and step
  bool ue4m3 = false;
  int scale_id = 0;
  Words a_bits, b_bits, c_bits;  // [row or column][k]; C [row][column]
  bool sparse = false;
  Words metadata;            // [row][step * codes + j]
  Words a_scales, b_scales;  // [row or column][step * scales + i]
  std::string target = "sm_100a";

  bool scaled() const { return kind.starts_with("mx"); }
  bool fours() const { return kind.starts_with("mxf4"); }
  /// Bits from one element to the next.
  int container(const std::string& type) const {
    return fours() ? 4 : kind == "f8f6f4" || kind == "mxf8f6f4" ? 8 : format(type).bits;
  }
  int k() const { return 256 / container(a); }  // of A, as it is stored
  int k_of_b() const { return sparse ? 2 * k() : k(); }
  int depth() const { return k() * steps; }
  int codes() const {
    return container(a) == 32 ? k() : fours() ? k() / 4 : k() / 2;
  }  // of a row and step
};

/// Stores the thread's lane of D, so many columns from `own` on, to rd1 on; `guard`: in front of
/// each store.
inline std::string store_d(const Gemm& g, int columns, const std::string& guard = {}) {
  std::string out;
  for (int first = 0; first < columns; first += 8) {
    out += fmt::format(
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 {}, [own+{}];\ntcgen05.wait::ld.sync.aligned;\n",
        numbered("w", 8), first);
    for (int i = 0; i < 8; ++i)
      out += fmt::format("{}{}st.global.b32 [rd1+{}], w{};\n",
                         g.d == "f16" ? fmt::format("and.b32 w{0}, w{0}, 65535;\n", i) : "", guard,
                         4 * (first + i), i);
  }
  return out;
}

inline int type_code(const std::string& type) {
  const std::pair<const char*, int> codes[] = {{"f16", 0},  {"bf16", 1}, {"tf32", 2}, {"e4m3", 0},
                                               {"e5m2", 1}, {"e2m3", 3}, {"e3m2", 4}, {"e2m1", 5},
                                               {"u8", 0},   {"s8", 1}};
  for (const auto& [name, code] : codes)
    if (type == name) return code;
  return -1;
}

inline std::uint32_t instruction_descriptor(const Gemm& g) {
  const auto bit = [](bool set, int at) { return static_cast<std::uint32_t>(set) << at; };
  std::uint32_t out = bit(g.negates_a, 13) | bit(g.negates_b, 14) | bit(g.layout_a.mn_major, 15) |
                      bit(g.layout_b.mn_major, 16) | static_cast<std::uint32_t>(g.n / 8) << 17 |
                      static_cast<std::uint32_t>(g.m / 16) << 24 | bit(g.sparse, 2);
  const int a = g.fours() ? 1 : type_code(g.a), b = g.fours() ? 1 : type_code(g.b);
  out |= static_cast<std::uint32_t>(a) << 7 | static_cast<std::uint32_t>(b) << 10;
  if (g.scaled())
    return out | bit(!g.ue4m3, 23) | static_cast<std::uint32_t>(g.scale_id) << 4 |
           static_cast<std::uint32_t>(g.scale_id) << 29;
  return out | bit(g.saturates, 3) | (g.kind == "i8" ? 2u : g.d == "f32" ? 1u : 0u) << 4;
}

/// A factor as a tile without gaps: its image, and the descriptor of each step behind its start.
struct Tile {
  Tile(const Gemm& g, bool is_a)
      : type(is_a ? g.a : g.b),
        layout(is_a ? g.layout_a : g.layout_b),
        extent(is_a ? g.m : g.n),
        k(is_a ? g.k() : g.k_of_b()),
        container(g.container(type)),
        steps(g.steps) {
    const Words& bits = is_a ? g.a_bits : g.b_bits;
    image.resize(static_cast<std::size_t>(steps * step_bytes()));
    for (int x = 0; x < extent; ++x)
      for (int i = 0; i < k * steps; ++i)
        put(x, i, bits[static_cast<std::size_t>(x * k * steps + i)]);
  }

  std::string type;
  Layout layout;
  int extent, k, container, steps;
  std::vector<std::uint8_t> image;

  int line_bytes() const { return (layout.mn_major ? rounded() : k) * container / 8; }
  int rounded() const {  // whole rows of a swizzle
    const int unit = std::max(layout.width, 16) * 8 / container;
    return (extent + unit - 1) / unit * unit;
  }
  /// Steps of a K-major tile lie side by side in a swizzled row.
  int steps_per_row() const {
    return layout.mn_major || !layout.width ? 1 : layout.width / line_bytes();
  }
  int lines() const { return layout.mn_major ? k : (extent + 7) / 8 * 8; }
  int step_bytes() const {  // of steps that share rows, all of them
    return layout.mn_major || !layout.width ? lines() * line_bytes() : lines() * layout.width;
  }
  bool wide_atoms() const { return layout.mn_major && container == 32; }
  int stride() const {
    if (!layout.width) return layout.mn_major ? 128 : k * container / 8 / 16 * 128;
    return wide_atoms() ? 4 * 128 : 8 * layout.width;
  }
  int leading() const {
    if (!layout.width) return layout.mn_major ? rounded() * container / 8 / 16 * 128 : 128;
    return layout.mn_major ? lines() * layout.width : 16;
  }

  // Of the byte `across` on line `line` of a step.
  int place(int line, int across) const {
    const int w = layout.width, chunk = across / 16, inside = across % 16;
    if (!w) {
      const int chunk_step = layout.mn_major ? 128 : leading();
      const int group_step = layout.mn_major ? leading() : stride();
      return chunk * chunk_step + line / 8 * group_step + line % 8 * 16 + inside;
    }
    const int block = across / w, at = across % w;
    if (wide_atoms()) {
      const int atom = at / 32 ^ line % 4;
      return block * leading() + line / 4 * 512 + line % 4 * 128 + atom * 32 + at % 32;
    }
    const int atom = at / 16 ^ (line % 8) * w / 128;
    return block * leading() + line / 8 * 8 * w + line % 8 * w + atom * 16 + inside;
  }

  void put(int x, int index, std::uint32_t bits) {
    const int width = format(type).bits, step = index / k, at_k = index % k;
    const int per_row = steps_per_row(), inner = at_k + step % per_row * k;
    const int base = step / per_row * step_bytes();
    const int line = layout.mn_major ? at_k : x, along = layout.mn_major ? x : inner;
    // Fewer bits than their container: 16 of them in a row of 16 bytes.
    int bit = along * container;
    if (width < container) bit = along / 16 * 128 + along % 16 * width;
    for (int i = 0; i < width; ++i) {
      const int across = (bit + i) / 8;
      auto& byte = image[static_cast<std::size_t>(base + place(line, across))];
      byte = static_cast<std::uint8_t>(byte | (bits >> i & 1) << (bit + i) % 8);
    }
  }

  std::uint64_t descriptor(int step) const {
    constexpr std::pair<int, int> modes[] = {{0, 0}, {128, 2}, {64, 4}, {32, 6}};
    std::uint64_t mode = 0;
    for (const auto& [width, code] : modes)
      if (layout.width == width) mode = static_cast<std::uint64_t>(code);
    if (wide_atoms()) mode = 1;
    const int per_row = steps_per_row(),
              start = step / per_row * step_bytes() + step % per_row * (k * container / 8);
    return mode << 61 | std::uint64_t{1} << 46 | static_cast<std::uint64_t>(stride() / 16) << 32 |
           static_cast<std::uint64_t>(leading() / 16) << 16 |
           static_cast<std::uint64_t>(start / 16);
  }
};

/// The lane of row m.
inline int lane_of(const Gemm& g, int m) { return g.m == 128 ? m : m / 16 * 32 + m % 16 + g.half; }

/// Bytes as words, up to a multiple of 1024 bytes.
inline void append(Words& to, const std::vector<std::uint8_t>& bytes) {
  const std::size_t first = to.size();
  to.resize(first + (bytes.size() + 1023) / 1024 * 256);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    to[first + i / 4] |= static_cast<std::uint32_t>(bytes[i]) << 8 * (i % 4);
}

struct Plan {
  std::string text;
  Words in;
};

/// D is in columns 0.., A from column 256 on, scales from column 384.
inline Plan plan(const Gemm& g) {
  const Tile a(g, true), b(g, false);
  Plan out;
  if (!g.a_in_tensor) append(out.in, a.image);
  const std::size_t b_at = 4 * out.in.size();
  append(out.in, b.image);
  const std::size_t image_words = out.in.size();

  // Cells that are written before: by lane, eight at a time.
  std::string before;
  const auto store_cells = [&](int column, int count, auto&& cell) {
    for (int first = 0; first < count; first += 8) {
      before += fmt::format(
          "add.s64 rd2, rd9, {};\nmul.wide.u32 rd3, r0, 32;\nadd.s64 rd2, rd2, "
          "rd3;\n",
          4 * out.in.size());
      for (int lane = 0; lane < 128; ++lane)
        for (int i = 0; i < 8; ++i) out.in.push_back(first + i < count ? cell(lane, first + i) : 0);
      for (int i = 0; i < 8; ++i)
        before += fmt::format("ld.global.b32 v{0}, [rd2+{1}];\n", i, 4 * i);
      const int left = count - first, width = left > 4 ? 8 : left > 2 ? 4 : left;
      before += fmt::format("tcgen05.st.sync.aligned.32x32b.x{}.b32 [own+{}], {};\n", width,
                            column + first, numbered("v", width));
    }
  };
  std::vector<int> row_of(128, -1);
  for (int m = 0; m < g.m; ++m) row_of[static_cast<std::size_t>(lane_of(g, m))] = m;
  const auto row = [&](int lane) { return row_of[static_cast<std::size_t>(lane)]; };
  if (g.accumulates)
    store_cells(0, g.n, [&](int lane, int n) {
      return row(lane) < 0 ? 0 : g.c_bits[static_cast<std::size_t>(row(lane) * g.n + n)];
    });
  if (g.a_in_tensor)
    store_cells(256, 8 * g.steps, [&](int lane, int cell) {
      std::uint32_t word = 0;
      const int container = g.container(g.a), per = 32 / container;
      for (int i = 0; i < per && row(lane) >= 0; ++i) {
        std::uint32_t bits =
            g.a_bits[static_cast<std::size_t>(row(lane) * g.depth() + cell * per + i)];
        if (container == 8 && g.a == "e2m1") bits <<= 2;
        word |= bits << i * container;
      }
      return word;
    });
  for (int step = 0; g.sparse && step < g.steps; ++step) {
    const bool wide = g.container(g.a) >= 16;
    std::vector<std::uint32_t> cells(128 * 2);
    for (int m = 0; m < g.m; ++m)
      for (int j = 0; j < g.codes(); ++j) {
        const std::uint32_t code =
            g.metadata[static_cast<std::size_t>((m * g.steps + step) * g.codes() + j)];
        // By elements of k: two (tf32) or four for a code.
        const int at = j * (g.container(g.a) == 32 ? 2 : 4), half = g.container(g.a) == 32 ? 8 : 16;
        int lane = wide ? m % 8 + 8 * (at / half) + 16 * (m / 16) : m;
        if (g.m == 64) lane = lane / 16 * 32 + lane % 16 + g.half;
        const int bit = wide ? at % half * (16 / half) + 16 * (m / 8 % 2) : at;
        cells[static_cast<std::size_t>(2 * lane + bit / 32)] |= code << bit % 32;
      }
    store_cells(480 + 2 * step, wide ? 1 : 2, [&](int lane, int column) {
      return cells[static_cast<std::size_t>(2 * lane + column)];
    });
  }
  const auto store_scales = [&](int column, int extent, const Words& scales) {
    for (int step = 0; step < g.steps; ++step)
      store_cells(column + 8 * step, (extent + 31) / 32, [&](int lane, int at) {
        const int i = lane % 32 + 32 * at;
        std::uint32_t word = 0x5A5A5A5A;
        for (int s = 0; s < g.scales && i < extent; ++s) {
          const int shift = 8 * (s + g.scale_id);
          word &= ~(0xFFu << shift);
          word |= scales[static_cast<std::size_t>((i * g.steps + step) * g.scales + s)] << shift;
        }
        return word;
      });
  };
  if (g.scaled()) {
    store_scales(384, g.m, g.a_scales);
    store_scales(448, g.n, g.b_scales);
  }

  std::string body = fill_image(image_words);
  body += before;
  body +=
      "tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n"
      "fence.proxy.async.shared::cta;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n"
      "@!q bra ISSUED;\nshr.u32 r4, r4, 4;\ncvt.u64.u32 rd4, r4;\n";
  if (!g.disabled.empty())
    for (int i = 0; i < 4; ++i)
      body += fmt::format("mov.b32 r{}, {};\n", 10 + i, g.disabled[static_cast<std::size_t>(i)]);
  body += fmt::format("mov.b32 r8, 0x{:x};\nadd.u32 r9, ta, {};\n", instruction_descriptor(g),
                      g.half << 16);
  for (int step = 0; step < g.steps; ++step) {
    if (!g.a_in_tensor) body += fmt::format("add.s64 da, rd4, 0x{:x};\n", a.descriptor(step));
    body += fmt::format("add.s64 db, rd4, 0x{:x};\n", b.descriptor(step) + b_at / 16);
    body += fmt::format("setp.ne.u32 p, {}, 0;\n", step || g.accumulates ? 1 : 0);
    body += fmt::format(
        "tcgen05.mma{}.cta_group::1.kind::{}{} [r9], {}, db{}, r8{}{}, p{};\n",
        g.sparse ? ".sp" : "", g.kind, g.scaled() ? ".block_scale" + g.vector : "",
        g.a_in_tensor ? fmt::format("[r9+{}]", 256 + 8 * step) : "da",
        g.sparse ? fmt::format(", [r9+{}]", 480 + 2 * step) : "",
        g.disabled.empty() ? "" : ", {r10, r11, r12, r13}",
        g.scaled() ? fmt::format(", [ta+{}], [ta+{}]", 384 + 8 * step, 448 + 8 * step) : "",
        g.scale_d ? fmt::format(", {}", g.scale_d) : "");
  }
  body +=
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n"
      "ISSUED:\n" +
      wait("done", "WAIT") + "tcgen05.fence::after_thread_sync;\n";
  body += fmt::format(
      "and.b32 r3, r0, 31;\nsub.u32 r3, r3, {};\nsetp.lt.u32 p, r3, {};\n"
      "mul.lo.u32 r3, r0, {};\nmul.wide.u32 rd1, r3, 4;\nadd.s64 rd1, rd0, rd1;\n",
      g.m == 128 ? 0 : g.half, g.m == 128 ? 32 : 16, g.n);
  body += store_d(g, g.n, "@p ");
  out.text = tensor_text(
      body, 512, fmt::format(".shared .align 1024 .b8 image[{}];\n", 4 * image_words), g.target);
  return out;
}

/// What D is: [row][column].
inline Words model(const Gemm& g) {
  Words out(static_cast<std::size_t>(g.m * g.n));
  const Format &fa = format(g.a), &fb = format(g.b);
  const auto row = [&](const Format& f, const Words& bits, int k, int x, int step, bool negate) {
    std::vector<Number> numbers;
    for (int i = 0; i < k; ++i) {
      numbers.push_back(number(f, bits[static_cast<std::size_t>((x * g.steps + step) * k + i)]));
      if (negate) numbers.back().value = -numbers.back().value;
    }
    return numbers;
  };
  const auto scales = [&](const Words& all, int x, int step) {
    const auto at = static_cast<std::size_t>((x * g.steps + step) * g.scales);
    std::vector<Number> out;
    for (int s = 0; s < g.scales; ++s)
      out.push_back(scale(g.ue4m3, all[at + static_cast<std::size_t>(s)]));
    return out;
  };
  const auto all_of = [&](const Format& f, const Words& bits, int k, int extent, bool negate) {
    std::vector<std::vector<Number>> all;
    for (int x = 0; x < extent; ++x)
      for (int step = 0; step < g.steps; ++step) all.push_back(row(f, bits, k, x, step, negate));
    return all;
  };
  std::vector<std::vector<Number>> left, right;
  if (!fa.integer) {
    left = all_of(fa, g.a_bits, g.k(), g.m, g.negates_a);
    right = all_of(fb, g.b_bits, g.k_of_b(), g.n, g.negates_b);
  }
  // Which elements of B the stored ones of a row of A meet.
  std::vector<std::vector<std::size_t>> met;
  for (int m = 0; m < g.m; ++m)
    for (int step = 0; step < g.steps; ++step) {
      std::vector<std::size_t> of_row;
      for (std::size_t i = 0; i < static_cast<std::size_t>(g.k()); ++i) {
        const auto code = [&](std::size_t j) {
          return g.metadata[static_cast<std::size_t>((m * g.steps + step) * g.codes()) + j];
        };
        if (!g.sparse) of_row.push_back(i);
        else if (g.container(g.a) == 32) of_row.push_back(2 * i + (code(i) == 4 ? 0 : 1));
        else if (g.fours())
          of_row.push_back(8 * (i / 4) + 2 * (code(i / 4) >> 2 * (i / 2 % 2) & 3) + i % 2);
        else of_row.push_back(4 * (i / 2) + (code(i / 2) >> 2 * (i % 2) & 3));
      }
      met.push_back(of_row);
    }
  for (int m = 0; m < g.m; ++m)
    for (int n = 0; n < g.n; ++n) {
      const auto at = static_cast<std::size_t>(m * g.n + n);
      std::uint32_t c = g.accumulates ? g.c_bits[at] : 0;
      const int lane = lane_of(g, m);
      const bool kept =
          !g.disabled.empty() && g.disabled[static_cast<std::size_t>(lane / 32)] >> lane % 32 & 1;
      for (int step = 0; step < g.steps && !kept; ++step) {
        const auto& which = met[static_cast<std::size_t>(m * g.steps + step)];
        if (fa.integer) {
          std::int64_t sum = static_cast<std::int32_t>(c);
          for (std::size_t i = 0; i < which.size(); ++i) {
            const auto value = [](const Format& f, std::uint32_t raw) {
              return f.is_signed ? static_cast<int>(static_cast<std::int8_t>(raw))
                                 : static_cast<int>(raw);
            };
            const auto row_at = static_cast<std::size_t>((m * g.steps + step) * g.k()),
                       column_at = static_cast<std::size_t>((n * g.steps + step) * g.k_of_b());
            sum += value(fa, g.a_bits[row_at + i]) * value(fb, g.b_bits[column_at + which[i]]);
          }
          if (g.saturates) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
          c = static_cast<std::uint32_t>(sum);
          continue;
        }
        const bool half = g.d == "f16";
        if (g.scale_d && (step || g.accumulates)) {
          const double value = number(format(g.d), c).value;
          if (std::isfinite(value)) {
            const double less = lowered(value, g.scale_d, half);
            c = half ? to_f16(less) : to_f32(less);
          }
        }
        const auto &a = left[static_cast<std::size_t>(m * g.steps + step)],
                   &column = right[static_cast<std::size_t>(n * g.steps + step)];
        std::vector<Number> b;
        for (const std::size_t i : which) b.push_back(column[i]);
        if (g.fours())
          c = fours_dot(a, b, c, scales(g.a_scales, m, step), scales(g.b_scales, n, step));
        else if (g.scaled())
          c = scaled_dot(a, b, c, scales(g.a_scales, m, step)[0], scales(g.b_scales, n, step)[0]);
        else c = dot(a, b, c, half ? Sum{25, -21, true} : Sum{});
      }
      out[at] = c;
    }
  return out;
}

/// Random bits, by `mode` with few or many special ones.
inline void fill(Gemm& g, std::mt19937& random) {
  const auto draw = [&] { return static_cast<std::uint32_t>(random()); };
  const auto below = [&](std::uint32_t count) { return draw() % count; };
  const auto element = [&](const std::string& name, std::uint32_t mode) -> std::uint32_t {
    const Format& f = format(name);
    const bool tf32 = name == "tf32";
    const std::uint32_t all = f.bits == 32 ? ~0u : (1u << f.bits) - 1, bits = draw() & all;
    if (f.integer || mode == 0 || f.bits < 8) return bits;
    if (below(16) == 0) return 0;
    // Exponents near one, or near the least one.
    const int shift = tf32 || f.bits == 32 ? 23 : f.fraction_bits;
    const std::uint32_t span = mode == 1 ? 5 : 24, most = (1u << f.exponent_bits) - 2,
                        start = mode == 3 ? 0 : static_cast<std::uint32_t>(f.bias) - span / 2;
    const std::uint32_t field =
        std::min(most, (start > most ? 0 : start) + below(std::min(span, most)));
    return (bits & ~(((1u << f.exponent_bits) - 1) << shift)) | field << shift;
  };
  const auto words = [&](Words& to, std::size_t count, auto&& one) {
    to.resize(count);
    for (std::uint32_t& each : to) each = one();
  };
  const std::uint32_t mode = below(8) == 0 ? 0 : 1 + below(3);
  words(g.a_bits, static_cast<std::size_t>(g.m * g.depth()), [&] { return element(g.a, mode); });
  words(g.b_bits, static_cast<std::size_t>(g.n * g.k_of_b() * g.steps),
        [&] { return element(g.b, mode); });
  words(g.c_bits, static_cast<std::size_t>(g.m * g.n),
        [&] { return g.kind == "i8" ? draw() >> below(2) * 16 : element(g.d, mode); });
  words(g.metadata, g.sparse ? static_cast<std::size_t>(g.m * g.steps * g.codes()) : 0,
        [&]() -> std::uint32_t {
          constexpr std::uint32_t fours[] = {4, 8, 12, 9, 13, 14};
          return g.container(g.a) == 32 ? (below(2) ? 4 : 14) : fours[below(6)];
        });
  const std::uint32_t spread = below(2) ? 8 : 60;
  const auto one_scale = [&]() -> std::uint32_t {
    if (below(64) == 0) return draw() & 0xFF;
    return g.ue4m3 ? (draw() & 0x80) | (below(spread) + 30) : 127 - spread / 2 + below(spread);
  };
  const auto count = static_cast<std::size_t>(g.steps * g.scales);
  words(g.a_scales, static_cast<std::size_t>(g.m) * count, one_scale);
  words(g.b_scales, static_cast<std::size_t>(g.n) * count, one_scale);
}

/// "" where the kernel gives what the model says.
inline std::string difference(const Gemm& g,
                              const DeviceOptions& options = {.checks = Checks::all}) {
  const Plan made = plan(g);
  const KernelRun run =
      run_tensor(made.text, static_cast<std::size_t>(128 * g.n), made.in, options);
  if (!run.launched || !run.findings.empty()) return findings_text(run);
  const Words expected = model(g);
  for (int m = 0; m < g.m; ++m)
    for (int n = 0; n < g.n; ++n) {
      const std::uint32_t got = run.out[static_cast<std::size_t>(lane_of(g, m) * g.n + n)],
                          want = expected[static_cast<std::size_t>(m * g.n + n)];
      if (got != want)
        return fmt::format("row {}, column {}: {:08x}, expected {:08x}", m, n, got, want);
    }
  return {};
}

inline std::string text(const Gemm& g) {
  return fmt::format(
      "{} {} x {} -> {}, m{} n{} steps {}, A {}/{}{}, B {}/{}, accumulates {}, negates {}{}, half "
      "{}, scale_d {}, disabled {}, saturates {}, vector {} id {} ue4m3 {}",
      g.sparse ? "sparse " + g.kind : g.kind, g.a, g.b, g.d, g.m, g.n, g.steps, g.layout_a.width,
      g.layout_a.mn_major, g.a_in_tensor ? " in tensor memory" : "", g.layout_b.width,
      g.layout_b.mn_major, g.accumulates, g.negates_a, g.negates_b, g.half, g.scale_d,
      !g.disabled.empty(), g.saturates, g.vector, g.scale_id, g.ue4m3);
}

}  // namespace tartan::test::tensor
