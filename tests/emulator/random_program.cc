// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/random_program.h"

#include <algorithm>
#include <cstring>

#include "tests/emulator/random_writer.h"

namespace tartan::test {
namespace {

void statements(Writer& w, int count);

// A few instructions that only some lanes may reach.
void inner(Writer& w, int count) {
  for (int i = 0; i < count; ++i) {
    const std::uint32_t kind = w.below(10);
    if (kind == 0 && w.depth < 3) statements(w, 1);
    else if (kind == 1) load_statement(w);
    else if (kind == 2) table_statement(w);
    else scalar_statement(w);
  }
}

void divergent_branch(Writer& w) {
  const std::string otherwise = w.label(), end = w.label();
  const bool two_sides = w.chance(60);
  const char* sign = w.chance(50) ? "!" : "";
  w.line("@{}{} bra {};", sign, w.source(1), two_sides ? otherwise : end);
  ++w.depth;
  inner(w, 1 + static_cast<int>(w.below(3)));
  if (two_sides) {
    w.line("bra {};", end);
    w.line("{}:", otherwise);
    inner(w, 1 + static_cast<int>(w.below(3)));
  }
  --w.depth;
  w.line("{}:", end);
  w.diverged = true;
}

// A branch that all lanes take alike: warp and block instructions may be inside.
void uniform_branch(Writer& w) {
  w.converge();  // for both branches
  const std::string p = w.fresh('p'), end = w.label();
  const char* comparison = w.chance(50) ? "lt" : "ge";
  w.line("setp.{}.u32 {}, %uniform, {};", comparison, p, w.below(100));
  w.line("@{} bra.uni {};", p, end);
  const bool was_guarded = w.guarded;
  w.guarded = true;
  statements(w, 1 + static_cast<int>(w.below(3)));
  w.converge();
  w.guarded = was_guarded;
  w.line("{}:", end);
}

void loop(Writer& w) {
  const std::string i = w.fresh('r'), count = w.fresh('r'), p = w.fresh('p'), sum = w.fresh('r');
  const std::string again = w.label();
  const bool divergent = w.chance(50);
  if (divergent) w.line("and.b32 {}, {}, 3;", count, w.source(32));
  else w.line("mov.b32 {}, {};", count, 1 + w.below(4));
  w.line("mov.b32 {}, 0;", i);
  w.line("mov.b32 {}, {};", sum, w.source(32));
  w.line("{}:", again);
  ++w.depth;
  inner(w, 1 + static_cast<int>(w.below(3)));
  const std::string_view steps[] = {"mad.lo.u32 {0}, {0}, 5, {1};", "xor.b32 {0}, {0}, {1};",
                                    "shf.l.wrap.b32 {0}, {0}, {1}, 7;",
                                    "prmt.b32 {0}, {0}, {1}, 0x2543;"};
  const std::string_view form = w.one_of(steps);
  const std::string step = fmt::format(fmt::runtime(form), sum, w.source(32));
  w.line(step);
  --w.depth;
  w.line("add.u32 {}, {}, 1;", i, i);
  w.line("setp.lt.u32 {}, {}, {};", p, i, count);
  w.line("@{} bra {};", p, again);
  w.diverged |= divergent;
  w.result(sum, 32, "b32", "loop: " + step);
}

void jump_table(Writer& w) {
  const std::string table = w.label(), end = w.label(), index = w.fresh('r');
  std::string targets[4];
  for (std::string& target : targets) target = w.label();
  w.line("and.b32 {}, {}, 3;", index, w.source(32));
  w.line("{}: .branchtargets {}, {}, {}, {};", table, targets[0], targets[1], targets[2],
         targets[3]);
  w.line("brx.idx {}, {};", index, table);
  ++w.depth;
  for (const std::string& target : targets) {
    w.line("{}:", target);
    inner(w, 1);
    w.line("bra {};", end);
  }
  --w.depth;
  w.line("{}:", end);
  w.diverged = true;
}

void statements(Writer& w, int count) {
  for (int i = 0; i < count; ++i) {
    const std::uint32_t kind = w.below(100);
    if (kind < 8) divergent_branch(w);
    else if (kind < 12) loop(w);
    else if (kind < 13) jump_table(w);
    else if (kind < 17) load_statement(w);
    else if (kind < 20) table_statement(w);
    else if (w.depth > 0 || kind < 66) scalar_statement(w);
    else if (kind < 70 && !w.guarded) uniform_branch(w);
    else if (kind < 78) collective_statement(w);
    else if (kind < 83) exchange_statement(w);
    else if (kind < 86) reduction_statement(w);
    else if (kind < 88) asynchronous_copy_statement(w);
    else if (kind < 92) matrix_move_statement(w);
    else matrix_statement(w);
  }
}

// Gives every type values before the first statement.
void first_values(Writer& w) {
  struct First {
    std::string_view type;
    int bits;
    Zone zone;
  };
  constexpr First firsts[] = {
      {"f32", 32, Zone::f32},    {"f32", 32, Zone::f32},     {"f32", 32, Zone::f32},
      {"b32", 32, Zone::bits},   {"b32", 32, Zone::bits},    {"f16x2", 32, Zone::f16},
      {"f16x2", 32, Zone::f16},  {"bf16x2", 32, Zone::bf16}, {"f16", 16, Zone::f16},
      {"f16", 16, Zone::f16},    {"bf16", 16, Zone::bf16},   {"b16", 16, Zone::bits},
      {"b64", 64, Zone::bits},   {"f64", 64, Zone::f64},     {"f64", 64, Zone::f64},
      {"bf16x2", 32, Zone::bf16}};
  for (const First& first : firsts) {
    const std::string reg = w.destination(first.bits);
    const std::string text =
        fmt::format("ld.global.b{} {}, {};", first.bits, reg, w.input(first.zone, 8));
    w.line(text);
    w.loaded(reg, first.bits, first.type, text);
  }
  for (const char* special : {"%laneid", "%tid.x", "%ctaid.x"}) {
    const std::string reg = w.destination(32);
    const std::string text = fmt::format("mov.u32 {}, {};", reg, special);
    w.line(text);
    w.result(reg, 32, "b32", text);
  }
  for (int i = 0; i < 2; ++i) {
    const std::string p = w.destination(1);
    const std::string a = w.source(32), b = w.source(32);
    const std::string text = fmt::format("setp.lt.s32 {}, {}, {};", p, a, b);
    w.line(text);
    w.result(p, 1, "pred", text);
  }
}

// ---- Inputs.

struct Format {
  int exponent_bits, fraction_bits;
};

std::uint64_t number(Format format, bool calm, std::mt19937_64& random) {
  const std::uint64_t bits = random();
  const auto dice = static_cast<int>(random() % 1000);
  const int bias = (1 << (format.exponent_bits - 1)) - 1, top = 2 * bias + 1;
  const std::uint64_t fractions = (std::uint64_t{1} << format.fraction_bits) - 1;
  const auto made = [&](std::uint64_t exponent, std::uint64_t fraction) {
    return (bits >> 63) << (format.exponent_bits + format.fraction_bits) |
           exponent << format.fraction_bits | (fraction & fractions);
  };
  const auto between = [&](int low, int high) {
    return static_cast<std::uint64_t>(
        std::max(low, 0) +
        static_cast<int>(random() % static_cast<unsigned>(high - std::max(low, 0) + 1)));
  };
  const int rare = calm ? 20 : 4;  // special values are rarer by this factor
  if (dice < 100 / rare) return made(static_cast<std::uint64_t>(top), 0);              // infinity
  if (dice < 160 / rare) return made(static_cast<std::uint64_t>(top), bits | 1);       // NaN
  if (dice < 240 / rare) return made(static_cast<std::uint64_t>(top) - 1, fractions);  // largest
  if (dice < 400 / rare) return made(between(top - 4, top - 1), bits);
  if (dice < 700 / rare) return made(between(0, 3), bits);  // subnormal, and the smallest normal
  if (dice < 1000 / rare) return made(0, 0);
  if (dice < 1300 / rare) return made(between(bias - 1, bias + 1), 0);  // powers of two
  return made(between(bias - 4, bias + 4), bits);
}

std::uint64_t codes(bool tf32, std::mt19937_64& random) {
  constexpr std::uint64_t legal[] = {0x4, 0x8, 0x9, 0xC, 0xD, 0xE};
  std::uint64_t out = 0;
  for (int i = 0; i < 16; ++i)
    out = out << 4 | (tf32 ? (random() % 2 ? 0x4 : 0xE) : legal[random() % 6]);
  return out;
}

std::vector<std::byte> make_inputs() {
  std::vector<std::byte> out(static_cast<std::size_t>(zones) * zone_bytes);
  std::mt19937_64 random(2026);
  constexpr Format formats[] = {{0, 0}, {5, 10}, {8, 7}, {8, 23}, {11, 52}, {4, 3},
                                {5, 2}, {5, 10}, {8, 7}, {8, 23}, {11, 52}};
  for (int zone = 0; zone < zones; ++zone)
    for (int at = 0; at < zone_bytes; at += 8) {
      std::uint64_t word = random();
      if (zone >= static_cast<int>(Zone::codes)) {
        word = codes(zone == static_cast<int>(Zone::codes_tf32), random);
      } else if (zone > 0) {
        const Format format = formats[zone];
        const int bits = 1 + format.exponent_bits + format.fraction_bits;
        for (int i = 0; i < 64; i += bits) {
          const std::uint64_t one =
              number(format, zone >= static_cast<int>(Zone::calm_f16), random);
          word = bits == 64 ? one : (word << bits | one);
        }
      }
      std::memcpy(out.data() + zone * zone_bytes + at, &word, 8);
    }
  return out;
}

}  // namespace

std::size_t RandomProgram::out_bytes() const {
  return 8 * results.size() * launch.grid.x * launch.block.x;
}

RandomProgram random_program(std::uint64_t seed) {
  RandomProgram program;
  program.seed = seed;
  program.name = fmt::format("random_{}", seed);
  Writer writer(program);
  program.launch.block.x = 32u << writer.below(3);
  program.launch.grid.x = 1 + writer.below(2);
  program.uniform = writer.below(100);
  first_values(writer);
  statements(writer, 22 + static_cast<int>(writer.below(12)));
  program.text = writer.text();
  return program;
}

std::string random_module(const std::vector<RandomProgram>& programs) {
  std::string out =
      ".version 8.6\n.target sm_90\n.address_size 64\n.const .align 4 .b32 table[16] = {";
  for (std::uint32_t i = 0; i < 16; ++i)
    out += fmt::format("{}{}", i ? ", " : "", (i + 1) * 0x9E3779B9u);
  out += "};\n";
  for (const RandomProgram& program : programs) out += program.text;
  return out;
}

const std::vector<std::byte>& random_inputs() {
  static const auto inputs = make_inputs();
  return inputs;
}

}  // namespace tartan::test
