// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic, comparisons and approximations (PTX ISA 9.0, 9.7.3 to 9.7.6).
#include <fmt/format.h>

#include <string_view>

#include "tests/emulator/scalar_sweep.h"

namespace tartan::scalar_sweep {
namespace {

constexpr Kind b32 = Kind::b32, f32 = Kind::f32, f64 = Kind::f64;
constexpr std::string_view roundings[] = {".rn", ".rz", ".rm", ".rp"};

struct Small {
  std::string_view type;
  Kind kind;
};
constexpr Small small_types[] = {
    {"f16", Kind::f16}, {"f16x2", Kind::f16x2}, {"bf16", Kind::bf16}, {"bf16x2", Kind::bf16x2}};

bool is_bfloat(const Small& small) { return small.type.starts_with('b'); }

std::vector<Kind> times(std::size_t count, Kind kind) { return std::vector<Kind>(count, kind); }

void singles(std::vector<Form>& out) {
  for (const char* ftz : {"", ".ftz"}) {
    for (const char* sat : {"", ".sat"}) {
      for (const std::string_view round : roundings) {
        for (const char* name : {"add", "sub", "mul"})
          out.push_back(
              {fmt::format("{}{}{}{}.f32 d, a, b;", name, round, ftz, sat), 32, times(2, f32)});
        for (const char* name : {"fma", "mad"})
          out.push_back(
              {fmt::format("{}{}{}{}.f32 d, a, b, c;", name, round, ftz, sat), 32, times(3, f32)});
      }
      for (const char* name : {"add", "sub", "mul"})  // nothing to be fused with
        out.push_back({fmt::format("{}{}{}.f32 d, a, b;", name, ftz, sat), 32, times(2, f32)});
    }
    for (const std::string_view round : roundings) {
      out.push_back({fmt::format("div{}{}.f32 d, a, b;", round, ftz), 32, times(2, f32)});
      for (const char* name : {"rcp", "sqrt"})
        out.push_back({fmt::format("{}{}{}.f32 d, a;", name, round, ftz), 32, {f32}});
    }
    for (const char* name : {"abs", "neg"})
      out.push_back({fmt::format("{}{}.f32 d, a;", name, ftz), 32, {f32}});
    for (const char* name : {"min", "max"})
      for (const char* nan : {"", ".NaN"})
        for (const char* sign : {"", ".xorsign.abs"})
          out.push_back(
              {fmt::format("{}{}{}{}.f32 d, a, b;", name, ftz, nan, sign), 32, times(2, f32)});
  }
  out.push_back({"copysign.f32 d, a, b;", 32, times(2, f32)});
}

void doubles(std::vector<Form>& out) {
  for (const std::string_view round : roundings) {
    for (const char* name : {"add", "sub", "mul", "div"})
      out.push_back({fmt::format("{}{}.f64 d, a, b;", name, round), 64, times(2, f64)});
    for (const char* name : {"fma", "mad"})
      out.push_back({fmt::format("{}{}.f64 d, a, b, c;", name, round), 64, times(3, f64)});
    for (const char* name : {"rcp", "sqrt"})
      out.push_back({fmt::format("{}{}.f64 d, a;", name, round), 64, {f64}});
  }
  for (const char* name : {"add", "sub", "mul", "min", "max", "copysign"})
    out.push_back({fmt::format("{}.f64 d, a, b;", name), 64, times(2, f64)});
  for (const char* name : {"abs", "neg"})
    out.push_back({fmt::format("{}.f64 d, a;", name), 64, {f64}});
}

void halves(std::vector<Form>& out) {
  for (const Small& small : small_types) {
    const Kind k = small.kind;
    const std::vector<const char*> flushes =
        is_bfloat(small) ? std::vector<const char*>{""} : std::vector<const char*>{"", ".ftz"};
    const auto form = [&](std::string_view name, std::string_view qualifiers, std::size_t count) {
      constexpr std::string_view operands[] = {"a", "a, b", "a, b, c"};
      out.push_back(
          {fmt::format("{}{}.{} d, {};", name, qualifiers, small.type, operands[count - 1]),
           bits(k), times(count, k)});
    };
    for (const char* ftz : flushes) {
      for (const char* name : {"add", "sub", "mul"})
        for (const char* round : {"", ".rn"}) {
          form(name, fmt::format("{}{}", round, ftz), 2);
          if (!is_bfloat(small)) form(name, fmt::format("{}{}.sat", round, ftz), 2);
        }
      form("fma", fmt::format(".rn{}", ftz), 3);
      if (!is_bfloat(small)) form("fma", fmt::format(".rn{}.sat", ftz), 3);
      form("fma", fmt::format(".rn{}.relu", ftz), 3);
      for (const char* name : {"min", "max"})
        for (const char* nan : {"", ".NaN"})
          for (const char* sign : {"", ".xorsign.abs"})
            form(name, fmt::format("{}{}{}", ftz, nan, sign), 2);
      for (const char* name : {"abs", "neg"}) form(name, ftz, 1);
    }
    form("fma", ".rn.oob", 3);
    form("fma", ".rn.oob.relu", 3);
  }
}

constexpr std::string_view both = "selp.u32 s, 1, 0, p; selp.u32 t, 2, 0, q; or.b32 d, s, t;";

void comparisons(std::vector<Form>& out) {
  constexpr std::string_view relations[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                            "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  const std::vector<std::pair<std::string_view, Kind>> types = {{"f32", f32},
                                                                {"ftz.f32", f32},
                                                                {"f64", f64},
                                                                {"f16", Kind::f16},
                                                                {"ftz.f16", Kind::f16},
                                                                {"f16x2", Kind::f16x2},
                                                                {"ftz.f16x2", Kind::f16x2},
                                                                {"bf16", Kind::bf16},
                                                                {"bf16x2", Kind::bf16x2}};
  for (const auto& [type, kind] : types) {
    // 16-bit types have only one result.
    const bool one = kind == Kind::f16 || kind == Kind::bf16;
    for (const std::string_view relation : relations) {
      out.push_back({one ? fmt::format("setp.{}.{} p, a, b; selp.u32 d, 1, 0, p;", relation, type)
                         : fmt::format("setp.{}.{} p|q, a, b; {}", relation, type, both),
                     32, times(2, kind)});
    }
    for (const char* combine : {"and", "or", "xor"})
      out.push_back({fmt::format("setp.lt.s32 r, c, 0; setp.leu.{}.{} {}, a, b, !r; {}", combine,
                                 type, one ? "p" : "p|q", one ? "selp.u32 d, 1, 0, p;" : both),
                     32,
                     {kind, kind, b32}});
  }
  for (const char* relation : {"lt", "geu", "nan"}) {
    for (const char* ftz : {"", ".ftz"})
      for (const char* to : {"u32", "s32", "f32"})
        out.push_back(
            {fmt::format("set.{}{}.{}.f32 d, a, b;", relation, ftz, to), 32, times(2, f32)});
    for (const char* to : {"u32", "s32", "f32"})
      out.push_back({fmt::format("set.{}.{}.f64 d, a, b;", relation, to), 32, times(2, f64)});
    for (const char* to : {"f16", "u16", "s16"})
      out.push_back({fmt::format("set.{}.{}.f16 d, a, b;", relation, to), 16, times(2, Kind::f16)});
    for (const char* to : {"bf16", "u16", "s16"})
      out.push_back(
          {fmt::format("set.{}.{}.bf16 d, a, b;", relation, to), 16, times(2, Kind::bf16)});
    for (const char* to : {"u32", "s32"}) {
      out.push_back({fmt::format("set.{}.{}.f16 d, a, b;", relation, to), 32, times(2, Kind::f16)});
      out.push_back(
          {fmt::format("set.{}.{}.bf16 d, a, b;", relation, to), 32, times(2, Kind::bf16)});
    }
    out.push_back(
        {fmt::format("set.{}.f16x2.f16x2 d, a, b;", relation), 32, times(2, Kind::f16x2)});
    out.push_back(
        {fmt::format("set.{}.bf16x2.bf16x2 d, a, b;", relation), 32, times(2, Kind::bf16x2)});
  }
  for (const char* what : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}) {
    out.push_back({fmt::format("testp.{}.f32 p, a; selp.u32 d, 1, 0, p;", what), 32, {f32}});
    out.push_back({fmt::format("testp.{}.f64 p, a; selp.u32 d, 1, 0, p;", what), 32, {f64}});
  }
  for (const char* type : {"f32", "f64"}) {
    const Kind k = type[1] == '3' ? f32 : f64;
    out.push_back({fmt::format("slct.{}.s32 d, a, b, c;", type), bits(k), {k, k, b32}});
    out.push_back({fmt::format("slct.{}.f32 d, a, b, c;", type), bits(k), {k, k, f32}});
    out.push_back(
        {fmt::format("setp.lt.s32 p, c, 0; selp.{} d, a, b, p;", type), bits(k), {k, k, b32}});
  }
}

void approximations(std::vector<Form>& out) {
  const auto form = [&](std::string text, int d, std::vector<Kind> sources) {
    out.push_back({std::move(text), d, std::move(sources), true});
  };
  for (const char* ftz : {"", ".ftz"}) {
    for (const char* name : {"rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"})
      form(fmt::format("{}.approx{}.f32 d, a;", name, ftz), 32, {f32});
    for (const char* name : {"div.approx", "div.full"})
      form(fmt::format("{}{}.f32 d, a, b;", name, ftz), 32, times(2, f32));
  }
  form("tanh.approx.f32 d, a;", 32, {f32});
  for (const Small& small : small_types) {
    form(fmt::format("tanh.approx.{} d, a;", small.type), bits(small.kind), {small.kind});
    form(fmt::format("ex2.approx{}.{} d, a;", is_bfloat(small) ? ".ftz" : "", small.type),
         bits(small.kind), {small.kind});
  }
  for (const char* name : {"rcp", "rsqrt"})
    form(fmt::format("{}.approx.ftz.f64 d, a;", name), 64, {f64});
  form("rsqrt.approx.f64 d, a;", 64, {f64});
}

// Each result is the next one's source: one rounding after another.
void chains(std::vector<Form>& out) {
  out.push_back(
      {"fma.rn.f32 s, a, b, c; fma.rz.ftz.f32 s, s, a, b; mul.rp.ftz.f32 s, s, c; "
       "add.rm.f32 s, s, a; div.rn.f32 d, s, b;",
       32, times(3, f32)});
  out.push_back(
      {"mul.rn.ftz.f32 s, a, b; cvt.rn.f16.f32 h, s; fma.rn.ftz.f16 h, h, h, h; "
       "cvt.f32.f16 s, h; max.NaN.f32 s, s, c; cvt.rzi.s32.f32 d, s;",
       32, times(3, f32)});
  out.push_back(
      {"fma.rn.f64 x, a, b, c; div.rz.f64 y, x, a; sqrt.rp.f64 z, y; cvt.rm.ftz.f32.f64 s, z; "
       "cvt.f64.f32 y, s; sub.rn.f64 d, y, c;",
       64, times(3, f64)});
  out.push_back(
      {"fma.rn.f16x2 s, a, b, c; mul.ftz.f16x2 t, s, a; min.NaN.f16x2 t, t, b; "
       "fma.rn.ftz.relu.f16x2 d, t, s, c;",
       32, times(3, Kind::f16x2)});
  out.push_back(
      {"fma.rn.bf16x2 s, a, b, c; mul.rn.bf16x2 t, s, a; max.bf16x2 t, t, b; "
       "fma.rn.relu.bf16x2 d, t, s, c;",
       32, times(3, Kind::bf16x2)});
  // Newton's step for a square root, as nvcc writes it.
  out.push_back(
      {"sqrt.rn.f32 s, a; fma.rn.f32 t, s, s, b; div.rp.f32 t, t, s; neg.f32 t, t; "
       "fma.rm.f32 d, t, 0f3F000000, s;",
       32, times(2, f32)});
}

}  // namespace

std::vector<Form> float_forms() {
  std::vector<Form> out;
  singles(out);
  doubles(out);
  halves(out);
  comparisons(out);
  chains(out);
  approximations(out);
  return out;
}

}  // namespace tartan::scalar_sweep
