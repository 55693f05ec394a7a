// SPDX-License-Identifier: Apache-2.0
// Conversions between all types (PTX ISA 9.0, 9.7.9.21, 9.7.9.22) and moves that split registers.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tests/emulator/scalar_sweep.h"

namespace tartan::scalar_sweep {
namespace {

struct Type {
  std::string_view name;
  Kind kind;  // of a source's register
  int bits;
};
constexpr Type integers[] = {{"u8", Kind::b16, 8},   {"s8", Kind::b16, 8},   {"u16", Kind::b16, 16},
                             {"s16", Kind::b16, 16}, {"u32", Kind::b32, 32}, {"s32", Kind::b32, 32},
                             {"u64", Kind::b64, 64}, {"s64", Kind::b64, 64}};
constexpr Type f16{"f16", Kind::f16, 16}, bf16{"bf16", Kind::bf16, 16}, f32{"f32", Kind::f32, 32},
    f64{"f64", Kind::f64, 64};
constexpr Type floats[] = {f16, bf16, f32, f64};
constexpr std::string_view roundings[] = {".rn", ".rz", ".rm", ".rp"},
                           integral[] = {".rni", ".rzi", ".rmi", ".rpi"};

class Forms {
 public:
  std::vector<Form> out;

  void cvt(std::string_view modes, const Type& to, const Type& from) {
    out.push_back({fmt::format("cvt{}.{}.{} d, a;", modes, to.name, from.name),
                   std::max(to.bits, 16),
                   {from.kind}});
  }
  void packed(std::string_view name, int d, std::string_view operands, std::vector<Kind> sources) {
    out.push_back({fmt::format("{} d, {};", name, operands), d, std::move(sources)});
  }
};

bool is_single(const Type& type) { return type.kind == Kind::f32; }

void between_integers(Forms& forms) {
  for (const Type& to : integers)
    for (const Type& from : integers) {
      forms.cvt("", to, from);
      // .sat matters if the destination's range is smaller.
      const bool narrower = to.bits < from.bits;
      if (narrower || (to.bits == from.bits && to.name[0] != from.name[0]) ||
          (to.name[0] == 'u' && from.name[0] == 's'))
        forms.cvt(".sat", to, from);
    }
}

void with_integers(Forms& forms) {
  for (const Type& integer : integers)
    for (const Type& number : floats) {
      const bool bfloat = number.kind == Kind::bf16;
      if (bfloat && integer.bits == 8) continue;
      for (const std::string_view round : roundings) {
        forms.cvt(round, number, integer);
        if (!bfloat) forms.cvt(fmt::format("{}.sat", round), number, integer);
      }
      for (const std::string_view round : integral) {
        forms.cvt(round, integer, number);
        if (!bfloat) forms.cvt(fmt::format("{}.sat", round), integer, number);
        if (is_single(number)) {
          forms.cvt(fmt::format("{}.ftz", round), integer, number);
          forms.cvt(fmt::format("{}.ftz.sat", round), integer, number);
        }
      }
    }
}

void between_floats(Forms& forms) {
  for (const Type& to : floats)
    for (const Type& from : floats) {
      const bool rounds = to.bits < from.bits ||
                          (to.bits == 16 && from.bits == 16 && to.kind != from.kind),
                 flushes = is_single(to) || is_single(from),
                 saturates = to.kind != Kind::bf16 && from.kind != Kind::bf16;
      std::vector<std::string> modes;
      if (rounds) modes.assign(std::begin(roundings), std::end(roundings));
      else modes.push_back("");
      if (to.kind == from.kind) modes.insert(modes.end(), std::begin(integral), std::end(integral));
      for (const std::string& mode : modes) {
        // f32 to bf16 has no .ftz.
        const bool both = flushes && !(to.kind == Kind::bf16 && is_single(from));
        for (const char* ftz : {"", ".ftz"})
          for (const char* sat : {"", ".sat"}) {
            if ((*ftz && !both) || (*sat && !saturates)) continue;
            forms.cvt(mode + ftz + sat, to, from);
          }
      }
    }
  for (const Type& to : {f16, bf16})
    for (const char* round : {".rn", ".rz"})
      for (const char* mode : {".relu", ".satfinite", ".relu.satfinite"})
        forms.cvt(fmt::format("{}{}", round, mode), to, f32);
}

void packed(Forms& forms) {
  const std::vector<Kind> two{Kind::f32, Kind::f32};
  for (const char* type : {"f16x2", "bf16x2"})
    for (const char* round : {".rn", ".rz"})
      for (const char* mode : {"", ".relu", ".satfinite", ".relu.satfinite"})
        forms.packed(fmt::format("cvt{}{}.{}.f32", round, mode, type), 32, "a, b", two);
  for (const char* mode : {".rn", ".rz", ".rn.relu", ".rz.relu", ".rna", ".rna.satfinite"})
    forms.packed(fmt::format("cvt{}.tf32.f32", mode), 32, "a", {Kind::f32});
  for (const char* type : {"e4m3x2", "e5m2x2"})
    for (const char* relu : {"", ".relu"}) {
      forms.packed(fmt::format("cvt.rn.satfinite{}.{}.f32", relu, type), 16, "a, b", two);
      forms.packed(fmt::format("cvt.rn.satfinite{}.{}.f16x2", relu, type), 16, "a", {Kind::f16x2});
      forms.packed(fmt::format("cvt.rn{}.f16x2.{}", relu, type), 32, "a", {Kind::b16});
    }
  for (const char* type : {"u16", "s16"})
    forms.packed(fmt::format("cvt.pack.sat.{}.s32", type), 32, "a, b", {Kind::b32, Kind::b32});
  for (const char* type : {"u8", "s8", "u4", "s4", "u2", "s2"})
    forms.packed(fmt::format("cvt.pack.sat.{}.s32.b32", type), 32, "a, b, c",
                 {Kind::b32, Kind::b32, Kind::b32});
}

// Registers wider than the value that is read or written.
void wide_registers(Forms& forms) {
  const auto form = [&](const char* text, int d, Kind from) {
    forms.out.push_back({text, d, {from}});
  };
  for (const char* text : {"cvt.u32.u8 d, a;", "cvt.s32.s8 d, a;", "cvt.s16.s8 d, a;",
                           "cvt.u8.s32 d, a;", "cvt.s8.s32 d, a;", "cvt.u16.u32 d, a;",
                           "cvt.s16.s32 d, a;", "cvt.sat.s8.s32 d, a;", "cvt.sat.u8.s16 d, a;"})
    form(text, 32, Kind::b32);
  for (const char* text :
       {"cvt.u64.u8 d, a;", "cvt.s64.s8 d, a;", "cvt.u16.u32 d, a;", "cvt.s8.s16 d, a;",
        "cvt.s32.s64 d, a;", "cvt.sat.s16.s64 d, a;", "cvt.u32.s16 d, a;"})
    form(text, 64, Kind::b64);
  form("cvt.rni.s8.f32 d, a;", 32, Kind::f32);
  form("cvt.rzi.u8.f32 d, a;", 32, Kind::f32);
  form("cvt.rpi.s16.f64 d, a;", 32, Kind::f64);
}

void moves(Forms& forms) {
  forms.out.push_back({"mov.b64 d, {a, b};", 64, {Kind::b32, Kind::b32}});
  forms.out.push_back({"mov.b64 {s, d}, a;", 32, {Kind::b64}});
  forms.out.push_back({"mov.b32 {h, i}, a; mov.b32 d, {i, h};", 32, {Kind::b32}});
  forms.out.push_back(
      {"mov.b32 {h, _}, a; mov.b32 {_, i}, b; mov.b32 d, {h, i};", 32, {Kind::b32, Kind::b32}});
  forms.out.push_back({"mov.b32 {h, i}, a; mov.b64 d, {h, i, i, h};", 64, {Kind::b32}});
  forms.out.push_back({"mov.b64 {h, i, _, _}, a; mov.b32 d, {i, h};", 32, {Kind::b64}});
}

// Conversion chains: each takes the previous one's result.
void chains(Forms& forms) {
  forms.out.push_back(
      {"cvt.rn.f16.f32 h, a; cvt.f64.f16 x, h; cvt.rz.f32.f64 s, x; "
       "cvt.rn.bf16.f32 i, s; cvt.f32.bf16 t, i; cvt.rni.s16.f32 h, t; cvt.s32.s16 d, h;",
       32,
       {Kind::f32}});
  forms.out.push_back(
      {"cvt.rzi.s64.f64 x, a; cvt.rn.f32.s64 s, x; cvt.rpi.u32.f32 t, s; "
       "cvt.rm.f16.u32 h, t; cvt.rmi.s32.f16 u, h; cvt.rp.f64.s32 d, u;",
       64,
       {Kind::f64}});
  forms.out.push_back(
      {"cvt.rn.satfinite.e4m3x2.f32 h, a, b; cvt.rn.f16x2.e4m3x2 s, h; "
       "fma.rn.f16x2 s, s, s, s; cvt.rn.satfinite.e5m2x2.f16x2 i, s; cvt.rn.f16x2.e5m2x2 d, i;",
       32,
       {Kind::f32, Kind::f32}});
  forms.out.push_back(
      {"cvt.sat.u8.s32 h, a; cvt.u32.u8 s, h; cvt.rn.f32.u32 s, s; "
       "cvt.rn.tf32.f32 s, s; mul.rn.f32 s, s, b; cvt.rni.sat.s8.f32 i, s; cvt.s32.s8 d, i;",
       32,
       {Kind::b32, Kind::f32}});
}

}  // namespace

std::vector<Form> conversion_forms() {
  Forms forms;
  between_integers(forms);
  with_integers(forms);
  between_floats(forms);
  packed(forms);
  wide_registers(forms);
  moves(forms);
  chains(forms);
  return forms.out;
}

}  // namespace tartan::scalar_sweep
