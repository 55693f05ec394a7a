// SPDX-License-Identifier: Apache-2.0
// Video instructions against the manual's pseudocode, rewritten with lists of digits, where GPUs
// follow it; on a machine with a GPU, all of them against the GPU. The sweep's recording covers the
// GPU's deviations, too (emulator_sweep_test.cc).
#include <fmt/format.h>

#include <random>
#include <span>

#include "tests/emulator/scalar.h"

namespace tartan {
namespace {

using test::ScalarCase;
__extension__ typedef __int128 Wide;

// One instruction, in the manual's terms.
struct Video {
  std::string name;  // without the number of elements
  int elements = 1;
  bool signed_d = false, signed_a = false, signed_b = false;
  std::string compare, mode;  // vset; vshl and vshr
  bool sat = false, plus_one = false;
  std::string second;                  // add, min, max
  std::string d_part, a_part, b_part;  // ".b0"
  bool minus_a = false, minus_b = false, minus_c = false;
  int scale = 0;

  bool has_third() const {
    return elements > 1 || name == "vmad" || !second.empty() || !d_part.empty();
  }
  std::string text() const;
};

std::string Video::text() const {
  const auto type = [](bool is_signed) { return is_signed ? ".s32" : ".u32"; };
  std::string out = name;
  if (elements > 1) out += std::to_string(elements);
  if (name != "vset") out += type(signed_d);
  out += std::string(type(signed_a)) + type(signed_b);
  if (!compare.empty()) out += "." + compare;
  if (plus_one) out += ".po";
  if (sat) out += ".sat";
  if (scale) out += ".shr" + std::to_string(scale);
  if (!mode.empty()) out += "." + mode;
  if (!second.empty()) out += "." + second;
  out += " d" + d_part + ", " + (minus_a ? "-a" : "a") + a_part + ", " + (minus_b ? "-b" : "b") +
         b_part;
  if (has_third()) out += minus_c ? ", -c" : ", c";
  return out + ";";
}

Wide signed_value(Wide x, int width) {
  return x >= (Wide{1} << (width - 1)) ? x - (Wide{1} << width) : x;
}

// Byte or half `index` of a word.
Wide digit(std::uint32_t word, int width, int index) {
  Wide x = word;
  for (int i = 0; i < index; ++i) x /= Wide{1} << width;
  return x % (Wide{1} << width);
}

Wide part(std::uint32_t word, const std::string& selector, bool is_signed) {
  const int width = selector.empty() ? 32 : selector[1] == 'b' ? 8 : 16;
  const Wide x = digit(word, width, selector.empty() ? 0 : selector[2] - '0');
  return is_signed ? signed_value(x, width) : x;
}

Wide power(int n) { return Wide{1} << n; }

Wide operate(const Video& v, Wide a, Wide b) {
  if (v.name == "vadd") return a + b;
  if (v.name == "vsub") return a - b;
  if (v.name == "vabsdiff") return a > b ? a - b : b - a;
  if (v.name == "vmin") return a < b ? a : b;
  if (v.name == "vmax") return a > b ? a : b;
  if (v.name == "vavrg") {  // halves are rounded away from zero where the sum is not negative
    const Wide sum = a + b;
    if (sum >= 0) return (sum + 1) / 2;
    return sum % 2 == 0 ? sum / 2 : (sum - 1) / 2;
  }
  if (v.name == "vset") {
    const std::string& c = v.compare;
    return c == "eq"   ? a == b
           : c == "ne" ? a != b
           : c == "lt" ? a < b
           : c == "le" ? a <= b
           : c == "gt" ? a > b
                       : a >= b;
  }
  const Wide distance = v.mode == "wrap" ? b % 32 : b > 32 ? 32 : b;
  Wide factor = 1;
  for (Wide i = 0; i < distance; ++i) factor *= 2;
  if (v.name == "vshl") return a * factor;
  return a >= 0 ? a / factor : -((-a + factor - 1) / factor);  // vshr
}

Wide clamp(Wide x, int width, bool is_signed) {
  const Wide low = is_signed ? -power(width - 1) : 0,
             high = is_signed ? power(width - 1) - 1 : power(width) - 1;
  return x < low ? low : x > high ? high : x;
}

Wide modulo(Wide x, int width) {
  const Wide rest = x % power(width);
  return rest < 0 ? rest + power(width) : rest;
}

std::uint32_t scalar(const Video& v, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  Wide t = operate(v, part(a, v.a_part, v.signed_a), part(b, v.b_part, v.signed_b));
  const int width = v.d_part.empty() ? 32 : v.d_part[1] == 'b' ? 8 : 16;
  if (v.sat) t = clamp(t, width, v.signed_d);
  if (!v.d_part.empty()) {
    std::uint32_t out = 0;
    for (int i = 0; i < 32 / width; ++i) {
      const Wide x = i == v.d_part[2] - '0' ? modulo(t, width) : digit(c, width, i);
      out += static_cast<std::uint32_t>(x * power(width * i));
    }
    return out;
  }
  t = modulo(t, 32);
  Wide third = c;
  if (v.signed_d) t = signed_value(t, 32), third = signed_value(third, 32);
  if (v.second == "add") t += third;
  if (v.second == "min") t = t < third ? t : third;
  if (v.second == "max") t = t > third ? t : third;
  return static_cast<std::uint32_t>(modulo(t, 32));
}

std::uint32_t parallel(const Video& v, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const int width = 32 / v.elements;
  const std::string first = v.elements == 2 ? ".h10" : ".b3210",
                    second = v.elements == 2 ? ".h32" : ".b7654";
  const std::string &for_a = v.a_part.empty() ? first : v.a_part,
                    &for_b = v.b_part.empty() ? second : v.b_part,
                    &mask = v.d_part.empty() ? first : v.d_part;
  const auto element = [&](const std::string& selector, int i, bool is_signed) {
    const int number = selector[selector.size() - 1 - static_cast<std::size_t>(i)] - '0';
    const Wide x = digit(number < v.elements ? a : b, width, number % v.elements);
    return is_signed ? signed_value(x, width) : x;
  };
  Wide sum = c, joined = 0;
  for (int i = 0; i < v.elements; ++i) {
    Wide t = operate(v, element(for_a, i, v.signed_a), element(for_b, i, v.signed_b));
    if (v.sat) t = clamp(t, width, v.signed_d);
    const bool counts = mask.find(static_cast<char>('0' + i), 2) != std::string::npos;
    if (counts) sum += t;
    joined += (counts ? modulo(t, width) : digit(c, width, i)) * power(width * i);
  }
  return static_cast<std::uint32_t>(modulo(v.second == "add" ? sum : joined, 32));
}

std::uint32_t multiply_add(const Video& v, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const bool negative = v.minus_a != v.minus_b,
             is_signed = v.signed_a || v.signed_b || negative || v.minus_c;
  Wide product = part(a, v.a_part, v.signed_a) * part(b, v.b_part, v.signed_b);
  if (negative) product = -product;
  Wide third = c;
  if (v.minus_c) third = -signed_value(third, 32);
  else if (is_signed) third = signed_value(third, 32);
  Wide sum = product + third + (v.plus_one ? 1 : 0);
  const Wide unit = power(v.scale);
  sum = sum >= 0 ? sum / unit : -((-sum + unit - 1) / unit);
  if (v.sat) sum = clamp(sum, 32, is_signed);
  return static_cast<std::uint32_t>(modulo(sum, 32));
}

std::uint32_t expected(const Video& v, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  if (v.name == "vmad") return multiply_add(v, a, b, c);
  return v.elements == 1 ? scalar(v, a, b, c) : parallel(v, a, b, c);
}

// Every name with every combination of types, saturation and second operation; other choices are
// random.
class Forms {
 public:
  std::vector<Video> all() {
    for (int types = 0; types < 8; ++types) {
      for (const char* name : {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr"})
        add_scalars(name, types);
      for (int i = 0; i < 24; ++i) add_multiply(types);
      for (const char* name : {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"})
        for (int elements : {2, 4}) add_parallel(name, types, elements);
    }
    for (int types = 0; types < 4; ++types)
      for (const char* compare : {"eq", "ne", "lt", "le", "gt", "ge"}) {
        add_scalars("vset", types, compare);
        for (int elements : {2, 4}) add_parallel("vset", types, elements, compare);
      }
    return std::move(out_);
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  Video made(const std::string& name, int types) {
    return {.name = name,
            .signed_d = (types & 4) != 0,
            .signed_a = (types & 2) != 0,
            .signed_b = (types & 1) != 0};
  }

  std::string any_part(bool always = false) {
    static constexpr const char* parts[] = {".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
    const std::uint32_t i = below(always ? 6 : 9);
    return i < 6 ? parts[i] : "";
  }

  void add_scalars(const std::string& name, int types, const std::string& compare = {}) {
    const bool shift = name == "vshl" || name == "vshr";
    if (shift && types & 1) return;
    for (const char* mode : {"clamp", "wrap"}) {
      if (!shift && mode[0] == 'w') continue;
      for (const bool sat : {false, true})
        for (const char* second : {"", "part", "add", "min", "max"}) {
          Video v = made(name, types);
          if (sat && name == "vset") continue;
          v.compare = compare;
          if (shift) v.mode = mode;
          v.sat = sat;
          if (second == std::string("part")) v.d_part = any_part(true);
          else v.second = second;
          out_.push_back(v);
          v.a_part = any_part();
          v.b_part = any_part();
          out_.push_back(v);
        }
    }
  }

  void add_multiply(int types) {
    Video v = made("vmad", types);
    v.sat = below(2);
    v.scale = std::array{0, 7, 15}[below(3)];
    v.a_part = any_part();
    v.b_part = any_part();
    switch (below(5)) {
      case 0: v.plus_one = true; break;
      case 1: v.minus_a = true; break;
      case 2: v.minus_b = true; break;
      case 3: v.minus_c = true; break;
      default: break;
    }
    out_.push_back(v);
  }

  void add_parallel(const std::string& name, int types, int elements,
                    const std::string& compare = {}) {
    const auto selector = [&] {
      std::string text = elements == 2 ? ".h" : ".b";
      for (int i = 0; i < elements; ++i)
        text += static_cast<char>('0' + below(static_cast<std::uint32_t>(2 * elements)));
      return below(2) ? text : "";
    };
    const auto mask = [&] {
      std::string text = elements == 2 ? ".h" : ".b";
      const std::uint32_t bits = 1 + below((1u << elements) - 1);
      for (int i = elements - 1; i >= 0; --i)
        if (bits >> i & 1) text += static_cast<char>('0' + i);
      return below(2) ? text : "";
    };
    for (const char* how : {"", "sat", "add"}) {
      Video v = made(name, types);
      v.elements = elements;
      v.compare = compare;
      v.sat = how[0] == 's';
      if (v.sat && name == "vset") continue;
      if (how[0] == 'a') v.second = how;
      v.d_part = mask();
      v.a_part = selector();
      v.b_part = selector();
      out_.push_back(v);
    }
  }

  std::mt19937 random_{20261122};
  std::vector<Video> out_;
};

std::vector<ScalarCase> cases_of(const std::vector<Video>& forms) {
  std::vector<ScalarCase> out;
  for (const Video& form : forms) out.push_back({.text = form.text(), .sources = {32, 32, 32}});
  return out;
}

// Forms where an H100 follows the manual: runtime/emulator/instructions/video.cc has its
// deviations.
bool follows_the_manual(const Video& v) {
  const bool extremum = v.second == "min" || v.second == "max",
             is_signed = v.signed_a || v.signed_b, left = v.name == "vshl",
             sum = v.name == "vadd" || v.name == "vsub",
             wide = (!v.signed_a && v.a_part.empty()) || (!v.signed_b && v.b_part.empty());
  if (v.elements > 1) return true;
  if (v.name == "vmad")
    return (!v.sat && v.scale == 0) ||
           ((is_signed || v.minus_a || v.minus_b || v.minus_c) && !wide);
  if (!v.d_part.empty() && (v.sat || v.d_part == ".h1")) return false;
  if (v.sat && left) return false;
  if (v.sat && !v.signed_d && wide && (sum || v.name == "vabsdiff")) return false;
  if (!extremum) return true;
  if (v.name == "vset") return !v.signed_a;
  return v.signed_d && (sum || (v.sat && !left) || (!wide && v.name[1] == 'm'));
}

using Results = std::vector<std::vector<std::uint64_t>>;

Results results_of(detail::Engine& engine, const std::vector<Video>& forms) {
  const Results out = test::run_scalar_cases(engine, cases_of(forms));
  EXPECT_EQ(out.size(), forms.size());
  return out;
}

std::string description(const Video& form, int lane) {
  std::string out = form.text();
  for (int s = 0; s < 3; ++s)
    out += fmt::format(" {}=0x{:x}", "abc"[s], test::scalar_input(32, s, lane));
  return out;
}

TEST(EmulatorVideo, MatchesTheManual) {
  std::vector<Video> forms = Forms().all();
  std::erase_if(forms, [](const Video& form) { return !follows_the_manual(form); });
  ASSERT_GE(forms.size(), 800u);
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  const Results got = results_of(**engine, forms);
  for (std::size_t i = 0; i < got.size(); ++i)
    for (int lane = 0; lane < test::scalar_lanes && !HasFailure(); ++lane) {
      const auto in = [=](int s) {
        return static_cast<std::uint32_t>(test::scalar_input(32, s, lane));
      };
      EXPECT_EQ(got[i][static_cast<std::size_t>(lane)], expected(forms[i], in(0), in(1), in(2)))
          << description(forms[i], lane);
    }
}

TEST(EmulatorVideo, MatchesAGpu) {
  auto gpu = cuda::make_engine(0);
  if (!gpu) GTEST_SKIP() << "no GPU here";
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  const std::vector<Video> forms = Forms().all();
  const Results expected = results_of(**gpu, forms), got = results_of(**engine, forms);
  int wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    for (int lane = 0; lane < test::scalar_lanes && wrong < 100; ++lane) {
      const auto at = static_cast<std::size_t>(lane);
      EXPECT_EQ(got[i][at], expected[i][at]) << description(forms[i], lane);
      wrong += got[i][at] != expected[i][at];
    }
}

struct Example {
  std::string text;
  std::uint32_t a, b, c, d;
};

void expect(detail::Engine& engine, std::span<const Example> examples) {
  for (const Example& example : examples) {
    std::string ptx =
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k0(.param .u64 in, .param "
        ".u64 out)\n{\n.reg .b64 from, to;\n.reg .b32 a, b, c, d;\nld.param.u64 from, [in];\n"
        "ld.param.u64 to, [out];\nld.global.b32 a, [from];\nld.global.b32 b, [from+4];\n"
        "ld.global.b32 c, [from+8];\n" +
        example.text + "\nst.global.u32 [to], d;\nret;\n}\n";
    const auto module = engine.load(ptx, "video.ptx");
    ASSERT_TRUE(module) << module.diags().text();
    const auto kernel = (*module)->kernel("k0");
    ASSERT_TRUE(kernel) << kernel.diags().text();
    const std::uint32_t in[3] = {example.a, example.b, example.c};
    const auto from = engine.allocate(sizeof in), to = engine.allocate(4);
    ASSERT_TRUE(engine.write(*from, std::as_bytes(std::span(in))));
    ASSERT_TRUE((*kernel)->launch({}, Arguments().add(*from).add(*to), nullptr));
    std::uint32_t d = 0;
    ASSERT_TRUE(engine.read(*to, std::as_writable_bytes(std::span(&d, 1))));
    EXPECT_EQ(d, example.d) << example.text;
  }
}

// By hand: nvcc's code for __vsadu4, __vavgu2 and __vaddss2, and the manual's examples.
TEST(EmulatorVideo, ByHand) {
  static const Example examples[] = {
      {"vabsdiff4.u32.u32.u32.add d, a, b, c;", 0x10203040, 0x40302010, 5, 5 + 48 + 16 + 16 + 48},
      {"vavrg2.u32.u32.u32 d, a, b, c;", 0x0003FFFF, 0x0004FFFE, 0, 0x0004FFFF},
      {"vadd2.s32.s32.s32.sat d, a, b, c;", 0x7FFF8000, 0x0001FFFF, 0, 0x7FFF8000},
      {"vadd.s32.u32.s32.sat d, a.b0, b.h0;", 0xFF, 0xFFFF, 0, 254},
      {"vabsdiff.s32.s32.s32.sat d.h0, a.b0, b.b2, c;", 0x80, 0x7F0000, 0x12345678, 0x123400FF},
      {"vmin.s32.s32.s32.sat.add d, a, b, c;", 7, 0xFFFFFFFE, 100, 98},
      {"vmad.u32.u32.u32.shr15 d, a.h0, b.h0, c;", 0x8000, 0x8000, 0x4000, 0x8000},
      {"vmad.s32.s32.u32.sat d, a, b, -c;", 0x7FFFFFFF, 4, 1, 0x7FFFFFFF},
      {"vset4.u32.u32.ne d, a, b, c;", 0x01020304, 0x01FF03FF, 0, 0x00010001},
      {"vshl.s32.u32.u32.clamp d, a, b;", 3, 40, 0, 0},
      {"vadd.u32.u32.u32 d, a, 5;", 7, 0, 0, 12},
  };
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  expect(**engine, examples);
}

// Scalar forms where NVIDIA's assembler deviates from the manual.
TEST(EmulatorVideo, DeviatesFromTheManualLikeGpus) {
  static const Example examples[] = {
      // .sat of the whole d: values beyond u32 are truncated, and vshl's clamp sees 34 bits.
      {"vadd.u32.u32.u32.sat d, a, b;", 0xFFFFFFFF, 2, 0, 1},
      {"vsub.u32.u32.u32.sat d, a, b;", 1, 2, 0, 0},
      {"vshl.u32.u32.u32.sat.clamp d, a, b.h0;", 0x7FFFFFFF, 0xFFFF, 0, 0},
      {"vshl.s32.s32.u32.sat.clamp d, a, b.h0;", 0x80000001, 0x8080, 0, 0x7FFFFFFF},
      // .sat of a part: negative numbers become the largest; shifts are not clamped to the part.
      {"vsub.u32.u32.u32.sat d.b3, a.b1, b, c;", 0, 0x7FFF, 0x80000001, 0xFF000001},
      {"vsub.s32.s32.s32.sat d.b0, a.h1, b.b3, c;", 0xFFFFFFFF, 0x10000, 0x12345678, 0x1234567F},
      {"vshr.u32.u32.u32.sat.clamp d.b1, a, b.h0, c;", 0x80000000, 8, 0x12345678, 0x12340078},
      // d.h1 takes the upper half.
      {"vsub.u32.u32.s32 d.h1, a.b3, b.b1, c;", 0, 0x7FFF, 0x80000001, 0xFFFF0001},
      // Second operations on 64 bits.
      {"vadd.u32.u32.s32.sat.min d, a, b.h0, c;", 0x80808080, 0x7F7F7F7F, 0xFFFFFFFE, 0xFFFFFFFE},
      {"vmin.u32.s32.s32.max d, a.b2, b.b0, c;", 0x80000001, 0x80808080, 0xFFFFFFFE, 0xFFFFFF80},
      {"vset.s32.u32.lt.min d, a.b0, b.h1, c;", 0, 0x7FFF, 0x80000001, 0x80000001},
      // vmad's operands are signed.
      {"vmad.u32.u32.u32.sat d, a.b0, b.h1, c;", 0, 0, 0x80000001, 0},
      {"vmad.u32.u32.u32.shr15 d, a.b2, b.b0, c;", 0, 0, 0x80000001, 0xFFFF0000},
  };
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  expect(**engine, examples);
  if (auto gpu = cuda::make_engine(0)) expect(**gpu, examples);
}

TEST(EmulatorVideo, RefusesWhatTheManualExcludes) {
  for (const char* text :
       {"vadd.u32.u32.u32.add d.b0, a, b, c;", "vadd.u32.u32.u32 d, a, b, c;",
        "vadd2.u32.u32.u32.sat.add d, a, b, c;", "vadd2.u32.u32.u32 d, a.b10, b, c;",
        "vadd2.u32.u32.u32 d, a.h4, b, c;", "vadd.u32.u32.u32 d, a.b4, b;",
        "vadd.u32.u32.u32 d, a.h2, b;", "vadd4.u32.u32.u32 d.b4, a, b, c;",
        "vshl.u32.u32.s32.wrap d, a, b;", "vshl.u32.u32.u32 d, a, b;",
        "vmad.u32.u32.u32.po d, -a, b, c;", "vmad.u32.u32.u32 d, -a, b, -c;",
        "vset.u32.u32 d, a, b;", "vadd.u64.u32.u32 d, a, b;", "add.u32 d, -a, b;"}) {
    auto engine = emulator::make_engine({});
    const auto module =
        (*engine)->load(test::scalar_module({{.text = text, .sources = {32, 32, 32}}}), "v.ptx");
    if (!module) continue;
    const auto kernel = (*module)->kernel("k0");
    ASSERT_FALSE(kernel) << text;
    EXPECT_EQ(kernel.diags()[0].id, "unsupported-instruction") << text;
  }
}

}  // namespace
}  // namespace tartan
