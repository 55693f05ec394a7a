// SPDX-License-Identifier: Apache-2.0
// Undefined bits beside a slow account of them: random programs, of whose every bit is kept what it
// is and what it might be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

constexpr std::size_t warp_lanes = 32, registers = 6, word_bits = 32;

// What a bit is in the emulator, whose memory starts as zeros, and whether it might be the other.
struct Bit {
  bool is = false, open = false;
  bool may_be(bool what) const { return open || is == what; }
};
using Word = std::array<Bit, word_bits>;

std::uint32_t value(const Word& word) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < word_bits; ++i) out |= std::uint32_t{word[i].is} << i;
  return out;
}
bool open(const Word& word) {
  return std::ranges::any_of(word, [](const Bit& bit) { return bit.open; });
}
Word word_of(std::uint32_t value, bool is_open = false) {
  Word out;
  for (std::size_t i = 0; i < word_bits; ++i) out[i] = {(value >> i & 1) != 0, is_open};
  return out;
}

// All that a function of bits may give for what its sources may be.
Bit judge(const std::vector<Bit>& from, const std::function<bool(const std::vector<bool>&)>& f) {
  bool zero = false, one = false;
  std::vector<bool> is;
  for (const Bit& bit : from) is.push_back(bit.is);
  for (unsigned choice = 0; choice < 1u << from.size(); ++choice) {
    std::vector<bool> may;
    bool possible = true;
    for (std::size_t i = 0; i < from.size(); ++i) {
      may.push_back((choice >> i & 1) != 0);
      possible &= from[i].may_be(may.back());
    }
    if (possible) (f(may) ? one : zero) = true;
  }
  return {f(is), zero && one};
}

class RandomDefinedness {
 public:
  explicit RandomDefinedness(unsigned seed) : random_(seed) {
    text_ = "mov.u32 r3, tile;\nshl.b32 r3, r0, 2;\nmov.u32 r4, tile;\nadd.u32 r3, r3, r4;\n";
    for (auto& each : registers_) each.fill(word_of(0, true));
    memory_.fill(word_of(0, true));
    active_.fill(true);
    const int steps = 6 + pick(20);
    for (step_ = 0; step_ < steps; ++step_) step();
    leave_branch();
    for (std::size_t r = 0; r < registers; ++r) use(r);
  }
  const std::string& text() const { return text_; }
  /// Lines of text() that use undefined values, with the first lane that does.
  const std::map<int, int>& uses() const { return uses_; }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  std::size_t some() { return static_cast<std::size_t>(pick(registers)); }
  static std::string name(std::size_t r) { return fmt::format("r{}", 10 + r); }
  void add(const std::string& line) { text_ += line + "\n"; }
  int line() const { return static_cast<int>(std::ranges::count(text_, '\n')); }

  // Sets register d of the active lanes.
  void set(std::size_t d, const std::function<Word(std::size_t)>& of_lane) {
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
      if (!active_[lane]) continue;
      const Word word = of_lane(lane);
      after_[d][lane] = word;
    }
    for (std::size_t lane = 0; lane < warp_lanes; ++lane)
      if (active_[lane]) registers_[d][lane] = after_[d][lane];
  }
  void bitwise(std::size_t d, const std::vector<std::size_t>& from,
               const std::function<bool(const std::vector<bool>&)>& f) {
    set(d, [&](std::size_t lane) {
      Word out;
      for (std::size_t i = 0; i < word_bits; ++i) {
        std::vector<Bit> bits;
        for (const std::size_t r : from) bits.push_back(registers_[r][lane][i]);
        out[i] = judge(bits, f);
      }
      return out;
    });
  }
  // Bit i of the result is the source's bit place(i), a zero below 0.
  void move_bits(std::size_t d, std::size_t a, const std::function<int(int)>& place) {
    set(d, [&](std::size_t lane) {
      Word out;
      for (int i = 0; i < static_cast<int>(word_bits); ++i)
        if (const int from = place(i); from >= 0)
          out[static_cast<std::size_t>(i)] = registers_[a][lane][static_cast<std::size_t>(from)];
      return out;
    });
  }

  void step() {
    const std::size_t d = some(), a = some(), b = some(), c = some();
    switch (pick(16)) {
      case 0: {
        const std::uint32_t number = random_();
        add(fmt::format("mov.b32 {}, {};", name(d), number));
        return set(d, [=](std::size_t) { return word_of(number); });
      }
      case 1:
        add(fmt::format("mov.b32 {}, r0;", name(d)));
        return set(d, [](std::size_t lane) { return word_of(static_cast<std::uint32_t>(lane)); });
      case 2:
        add(fmt::format("and.b32 {}, {}, {};", name(d), name(a), name(b)));
        return bitwise(d, {a, b}, [](const auto& x) { return x[0] && x[1]; });
      case 3:
        add(fmt::format("or.b32 {}, {}, {};", name(d), name(a), name(b)));
        return bitwise(d, {a, b}, [](const auto& x) { return x[0] || x[1]; });
      case 4:
        add(fmt::format("xor.b32 {}, {}, {};", name(d), name(a), name(b)));
        if (a == b) return set(d, [](std::size_t) { return word_of(0); });
        return bitwise(d, {a, b}, [](const auto& x) { return x[0] != x[1]; });
      case 5: {
        const int table = pick(256);
        add(fmt::format("lop3.b32 {}, {}, {}, {}, {};", name(d), name(a), name(b), name(c), table));
        return bitwise(d, {a, b, c},
                       [=](const auto& x) { return table >> (4 * x[0] + 2 * x[1] + x[2]) & 1; });
      }
      case 6: {
        const int n = pick(34);
        add(fmt::format("shl.b32 {}, {}, {};", name(d), name(a), n));
        return move_bits(d, a, [=](int i) { return i - n; });
      }
      case 7: {
        const int n = pick(34), top = static_cast<int>(word_bits) - 1;
        if (pick(2)) {
          add(fmt::format("shr.s32 {}, {}, {};", name(d), name(a), n));
          return move_bits(d, a, [=](int i) { return std::min(i + n, top); });
        }
        add(fmt::format("shr.u32 {}, {}, {};", name(d), name(a), n));
        return move_bits(d, a, [=](int i) { return i + n > top ? -1 : i + n; });
      }
      case 8: {
        const int at = pick(40), length = pick(34), top = static_cast<int>(word_bits) - 1;
        const bool is_signed = pick(2) != 0;
        add(fmt::format("bfe.{}32 {}, {}, {}, {};", is_signed ? "s" : "u", name(d), name(a), at,
                        length));
        return move_bits(d, a, [=](int i) {
          if (length == 0) return -1;
          const int last = std::min(at + length - 1, top);
          if (i < length && at + i <= top) return at + i;
          return is_signed ? last : -1;
        });
      }
      case 9: {
        const int which = static_cast<int>(random_() & 0xFFFF);
        add(fmt::format("prmt.b32 {}, {}, {}, {};", name(d), name(a), name(b), which));
        return set(d, [=, this](std::size_t lane) {
          Word out;
          for (std::size_t i = 0; i < word_bits; ++i) {
            const int nibble = which >> i / 8 * 4 & 15;
            const Word& from = registers_[nibble & 4 ? b : a][lane];
            out[i] = from[static_cast<std::size_t>(8 * (nibble & 3)) + (nibble & 8 ? 7 : i % 8)];
          }
          return out;
        });
      }
      case 10:
        add(fmt::format("add.u32 {}, {}, {};", name(d), name(a), name(b)));
        return set(d, [=, this](std::size_t lane) {
          const Word &x = registers_[a][lane], &y = registers_[b][lane];
          return word_of(value(x) + value(y), open(x) || open(y));
        });
      case 11: {
        add(fmt::format("setp.lt.u32 p, {}, {};", name(a), name(b)));
        add(fmt::format("selp.b32 {}, {}, {}, p;", name(d), name(a), name(c)));
        return set(d, [=, this](std::size_t lane) {
          const Word &x = registers_[a][lane], &y = registers_[b][lane], &z = registers_[c][lane];
          const Bit p{value(x) < value(y), open(x) || open(y)};
          Word out;
          for (std::size_t i = 0; i < word_bits; ++i)
            out[i] = judge({p, x[i], z[i]}, [](const auto& s) { return s[0] ? s[1] : s[2]; });
          return out;
        });
      }
      case 12:
        add(fmt::format("st.shared.b32 [r3], {};", name(a)));
        for (std::size_t lane = 0; lane < warp_lanes; ++lane)
          if (active_[lane]) memory_[lane] = registers_[a][lane];
        return;
      case 13:
        add(fmt::format("ld.shared.b32 {}, [r3];", name(d)));
        return set(d, [this](std::size_t lane) { return memory_[lane]; });
      case 14:
        if (inside_) return leave_branch();
        return pick(2) ? branch(a, b) : shuffle(d, a);
      default: return use(a);
    }
  }

  void shuffle(std::size_t d, std::size_t a) {
    const auto mask = static_cast<std::size_t>(pick(32));
    add(fmt::format("shfl.sync.bfly.b32 {}, {}, {}, 31, -1;", name(d), name(a), mask));
    const auto before = registers_[a];
    set(d, [&](std::size_t lane) { return before[lane ^ mask]; });
  }

  void branch(std::size_t a, std::size_t b) {
    add(fmt::format("setp.lt.u32 q, {}, {};", name(a), name(b)));
    add(fmt::format("@q bra L{};", step_));
    inside_ = true;
    label_ = step_;
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
      const Word &x = registers_[a][lane], &y = registers_[b][lane];
      if (open(x) || open(y)) uses_.try_emplace(line(), static_cast<int>(lane));
      active_[lane] = !(value(x) < value(y));
    }
  }
  void leave_branch() {
    if (!inside_) return;
    add(fmt::format("L{}:", label_));
    inside_ = false;
    active_.fill(true);
  }

  void use(std::size_t r) {
    add(fmt::format("st.global.b32 [rd1], {};", name(r)));
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
      Word& word = registers_[r][lane];
      if (!active_[lane] || !open(word)) continue;
      uses_.try_emplace(line(), static_cast<int>(lane));
      for (Bit& bit : word) bit.open = false;
    }
  }

  std::mt19937 random_;
  std::string text_;
  std::array<std::array<Word, warp_lanes>, registers> registers_, after_{};
  std::array<Word, warp_lanes> memory_;
  std::array<bool, warp_lanes> active_{};
  bool inside_ = false;
  int step_ = 0, label_ = 0;
  std::map<int, int> uses_;
};

TEST(RandomDefinedness, AsASlowAccountSays) {
  const std::string shared = ".shared .align 16 .b8 tile[128];\n";
  DeviceOptions options;
  options.checks = Checks::all;
  constexpr unsigned programs = 400;
  int with = 0, without = 0;
  for (unsigned seed = 0; seed < programs; ++seed) {
    const RandomDefinedness program(seed);
    const KernelRun run =
        run_body(program.text(), {.grid = {1}, .block = {warp_lanes}}, 1024, options, shared);
    ASSERT_EQ(run.complaint, "") << program.text();
    const std::string text = kernel_text(program.text(), shared);
    const std::size_t at = text.find(program.text());
    const auto first = static_cast<int>(
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    std::map<int, int> found;
    for (const Finding& each : run.findings) {
      ASSERT_EQ(each.id, "uninitialized-read") << program.text() << each.message;
      const auto [place, fresh] = found.try_emplace(each.line - first, each.lane);
      if (!fresh) place->second = std::min(place->second, each.lane);
    }
    ASSERT_EQ(found, program.uses()) << "seed " << seed << "\n" << program.text();
    ++(program.uses().empty() ? without : with);
  }
  EXPECT_GT(with, 200);
  EXPECT_GT(without, 0);
}

}  // namespace
}  // namespace tartan::test
