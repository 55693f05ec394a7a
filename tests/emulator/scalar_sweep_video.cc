// SPDX-License-Identifier: Apache-2.0
// Video instructions (PTX ISA 9.0, 9.7.17): parts of registers in turn, so that each operation uses
// all of them.
#include <fmt/format.h>

#include <string_view>

#include "tests/emulator/scalar_sweep.h"

namespace tartan::scalar_sweep {
namespace {

constexpr Kind b32 = Kind::b32;
constexpr std::string_view types[] = {"u32", "s32"};
constexpr std::string_view parts[] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};

// Steps through a list, continuing where the last call stopped.
class Turns {
 public:
  template <std::size_t count>
  std::string_view next(const std::string_view (&list)[count]) {
    return list[turn_++ * 5 % count];
  }

 private:
  std::size_t turn_ = 0;
};

void form(std::vector<Form>& out, std::string text) {
  out.push_back({std::move(text), 32, {b32, b32, b32}});
}

// d = a op b, then with c: combined, or merged into c.
void scalar(std::vector<Form>& out, Turns& turns, const std::string& opcode) {
  const auto sources = [&] {
    const std::string_view first = turns.next(parts), second = turns.next(parts);
    return fmt::format("a{}, b{}", first, second);
  };
  form(out, fmt::format("{} d, {};", opcode, sources()));
  constexpr std::string_view combined[] = {"add", "min", "max"};
  const std::string_view second = turns.next(combined);
  form(out, fmt::format("{}.{} d, {}, c;", opcode, second, sources()));
  std::string_view part;
  while (part.empty()) part = turns.next(parts);
  form(out, fmt::format("{} d{}, {}, c;", opcode, part, sources()));
}

void scalars(std::vector<Form>& out) {
  Turns turns;
  for (const std::string_view d : types)
    for (const std::string_view a : types) {
      for (const std::string_view b : types)
        for (const char* sat : {"", ".sat"}) {
          for (const char* name : {"vadd", "vsub", "vabsdiff", "vmin", "vmax"})
            scalar(out, turns, fmt::format("{}.{}.{}.{}{}", name, d, a, b, sat));
        }
      for (const char* sat : {"", ".sat"})
        for (const char* mode : {".clamp", ".wrap"})
          for (const char* name : {"vshl", "vshr"})
            scalar(out, turns, fmt::format("{}.{}.{}.u32{}{}", name, d, a, sat, mode));
    }
  for (const std::string_view a : types)
    for (const std::string_view b : types)
      for (const char* relation : {"eq", "ne", "lt", "le", "gt", "ge"})
        scalar(out, turns, fmt::format("vset.{}.{}.{}", a, b, relation));
}

void products(std::vector<Form>& out) {
  Turns turns;
  for (const std::string_view a : types)
    for (const std::string_view b : types)
      for (const char* sat : {"", ".sat"})
        for (const char* scale : {"", ".shr7", ".shr15"}) {
          const auto sources = [&] {
            const std::string_view first = turns.next(parts), second = turns.next(parts);
            return fmt::format("a{}, b{}", first, second);
          };
          // A product is signed if a source is, or if something is subtracted.
          const std::string_view d = a == "u32" && b == "u32" ? "u32" : "s32";
          form(out, fmt::format("vmad.{}.{}.{}{}{} d, {}, c;", d, a, b, sat, scale, sources()));
          form(out, fmt::format("vmad.{}.{}.{}.po{}{} d, {}, c;", d, a, b, sat, scale, sources()));
          form(out, fmt::format("vmad.s32.{}.{}{}{} d, {}, -c;", a, b, sat, scale, sources()));
          form(out, fmt::format("vmad.s32.{}.{}{}{} d, -{}, c;", a, b, sat, scale, sources()));
        }
}

// Two halves, or four bytes: `lists` of source selectors and of masks.
void parallel(std::vector<Form>& out, char width) {
  constexpr std::string_view halves[] = {"", ".h10", ".h32", ".h01", ".h20", ".h13", ".h00"},
                             bytes[] = {"",       ".b3210", ".b7654", ".b0123",
                                        ".b7531", ".b0000", ".b2640"},
                             half_masks[] = {"", ".h0", ".h1", ".h10"},
                             byte_masks[] = {"", ".b0", ".b2", ".b31", ".b210", ".b3210"};
  Turns turns;
  const auto instruction = [&](const std::string& opcode) {
    const std::string_view mask = width == '2' ? turns.next(half_masks) : turns.next(byte_masks),
                           first = width == '2' ? turns.next(halves) : turns.next(bytes),
                           second = width == '2' ? turns.next(halves) : turns.next(bytes);
    form(out, fmt::format("{} d{}, a{}, b{}, c;", opcode, mask, first, second));
    form(out, fmt::format("{}.add d, a, b, c;", opcode));
  };
  for (const std::string_view a : types)
    for (const std::string_view b : types) {
      for (const std::string_view d : types)
        for (const char* name : {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"}) {
          instruction(fmt::format("{}{}.{}.{}.{}", name, width, d, a, b));
          const std::string opcode = fmt::format("{}{}.{}.{}.{}.sat", name, width, d, a, b);
          form(out, fmt::format("{} d, a, b, c;", opcode));
        }
      for (const char* relation : {"eq", "ne", "lt", "le", "gt", "ge"})
        instruction(fmt::format("vset{}.{}.{}.{}", width, a, b, relation));
    }
}

}  // namespace

std::vector<Form> video_forms() {
  std::vector<Form> out;
  scalars(out);
  products(out);
  parallel(out, '2');
  parallel(out, '4');
  return out;
}

}  // namespace tartan::scalar_sweep
