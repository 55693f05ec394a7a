// SPDX-License-Identifier: Apache-2.0
// Integers, bits, carries, predicates (PTX ISA 9.0, 9.7.1, 9.7.2, 9.7.6 to 9.7.8).
#include <fmt/format.h>

#include <string_view>

#include "tests/emulator/scalar_sweep.h"

namespace tartan::scalar_sweep {
namespace {

constexpr Kind b16 = Kind::b16, b32 = Kind::b32, b64 = Kind::b64, small = Kind::small;

Kind kind_of(std::string_view type) {
  return type.ends_with("64") ? b64 : type.ends_with("16") ? b16 : b32;
}

void arithmetic(std::vector<Form>& out) {
  for (const std::string_view type : {"u16", "s16", "u32", "s32", "u64", "s64"}) {
    const Kind k = kind_of(type);
    for (const char* name : {"add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"})
      out.push_back({fmt::format("{}.{} d, a, b;", name, type), bits(k), {k, k}});
    for (const char* name : {"mad.lo", "mad.hi", "sad"})
      out.push_back({fmt::format("{}.{} d, a, b, c;", name, type), bits(k), {k, k, k}});
    if (k != b64) {
      const Kind wide = k == b16 ? b32 : b64;
      out.push_back({fmt::format("mul.wide.{} d, a, b;", type), bits(wide), {k, k}});
      out.push_back({fmt::format("mad.wide.{} d, a, b, c;", type), bits(wide), {k, k, wide}});
    }
    if (type[0] == 's')
      for (const char* name : {"abs", "neg"})
        out.push_back({fmt::format("{}.{} d, a;", name, type), bits(k), {k}});
  }
  for (const char* name :
       {"add.sat.s32", "sub.sat.s32", "min.relu.s32", "max.relu.s32", "mul24.lo.u32",
        "mul24.hi.u32", "mul24.lo.s32", "mul24.hi.s32", "add.u16x2", "add.s16x2", "min.u16x2",
        "max.u16x2", "min.s16x2", "max.s16x2", "min.relu.s16x2", "max.relu.s16x2"})
    out.push_back({fmt::format("{} d, a, b;", name), 32, {b32, b32}});
  for (const char* name : {"mad.hi.sat.s32", "mad24.lo.u32", "mad24.hi.u32", "mad24.lo.s32",
                           "mad24.hi.s32", "mad24.hi.sat.s32"})
    out.push_back({fmt::format("{} d, a, b, c;", name), 32, {b32, b32, b32}});
  for (const char* first : {"u32", "s32"})
    for (const char* second : {"u32", "s32"})
      for (const char* name : {"dp4a", "dp2a.lo", "dp2a.hi"})
        out.push_back(
            {fmt::format("{}.{}.{} d, a, b, c;", name, first, second), 32, {b32, b32, b32}});
}

// Every first instruction, then every second one with its carry; then a third.
void carries(std::vector<Form>& out) {
  struct Step {
    std::string_view name;
    bool three;  // sources
  };
  constexpr Step firsts[] = {
      {"add.cc", false}, {"sub.cc", false}, {"mad.lo.cc", true}, {"mad.hi.cc", true}};
  constexpr Step nexts[] = {{"addc", false}, {"subc", false}, {"madc.lo", true}, {"madc.hi", true}};
  const auto line = [](const Step& step, std::string_view cc, std::string_view type,
                       std::string_view to, std::string_view two, std::string_view three) {
    return fmt::format("{}{}.{} {}, {}; ", step.name, cc, type, to, step.three ? three : two);
  };
  for (const std::string_view type : {"u32", "s32", "u64", "s64"}) {
    const Kind k = kind_of(type);
    const std::string_view t = k == b64 ? "x" : "s", v = k == b64 ? "y" : "t";
    for (const Step& first : firsts)
      for (const Step& next : nexts) {
        const std::string begin = line(first, "", type, t, "a, b", "a, b, c");
        out.push_back(
            {begin + line(next, "", type, "d", "c, e", "b, c, e"), bits(k), {k, k, k, k}});
        if (type[0] == 's') continue;
        for (const Step& last : {nexts[0], nexts[1]})
          out.push_back({begin + line(next, ".cc", type, v, "c, e", "b, c, e") +
                             line(last, "", type, "d", "a, e", ""),
                         bits(k),
                         {k, k, k, k}});
      }
    // The carry alone, and with the sum.
    for (const Step& first : {firsts[0], firsts[1]})
      for (const char* next : {"addc", "subc"}) {
        out.push_back(
            {line(first, "", type, t, "a, b", "") + fmt::format("{}.{} d, 0, 0;", next, type),
             bits(k),
             {k, k}});
        out.push_back(
            {line(first, "", type, t, "a, 0", "") + fmt::format("{}.{} d, b, 0;", next, type),
             bits(k),
             {k, k}});
        out.push_back(
            {line(first, "", type, t, "0, a", "") + fmt::format("{}.{} d, b, {};", next, type, t),
             bits(k),
             {k, k}});
      }
  }
}

// Numbers of 128 bits and more, and carries that live across predicates and conversions.
void chains(std::vector<Form>& out) {
  // 128 bits: {a, b} and {c, e}.
  const auto wide = [&](const char* text) { out.push_back({text, 64, {b64, b64, b64, b64}}); };
  wide(
      "add.cc.u64 x, a, c; addc.cc.u64 y, b, e; addc.u64 z, 0, 0; xor.b64 d, x, y; add.u64 d, d, "
      "z;");
  wide(
      "sub.cc.u64 x, a, c; subc.cc.u64 y, b, e; subc.u64 z, 0, 0; xor.b64 d, x, y; sub.u64 d, d, "
      "z;");
  wide(
      "mul.lo.u64 x, a, c; mul.hi.u64 y, a, c; mad.lo.cc.u64 y, a, e, y; madc.hi.u64 z, a, e, 0; "
      "mad.lo.cc.u64 y, b, c, y; madc.hi.cc.u64 z, b, c, z; addc.u64 d, 0, 0; mad.lo.cc.u64 z, b, "
      "e, z; "
      "madc.hi.u64 d, b, e, d; xor.b64 d, d, z; xor.b64 d, d, y; add.u64 d, d, x;");
  // A quotient's digits: compare, subtract, use the carry.
  wide(
      "sub.cc.u64 x, a, c; subc.cc.u64 y, b, e; subc.u64 z, 0, 0; setp.eq.u64 p, z, 0; "
      "selp.b64 x, x, a, p; selp.b64 y, y, b, p; add.cc.u64 x, x, x; addc.u64 y, y, y; "
      "sub.cc.u64 x, x, c; subc.cc.u64 y, y, e; addc.u64 d, x, y;");
  const auto word = [&](const char* text) { out.push_back({text, 32, {b32, b32, b32, b32}}); };
  word(
      "add.cc.u32 s, a, b; addc.cc.u32 t, b, c; addc.cc.u32 u, c, e; addc.cc.u32 s, s, t; "
      "addc.cc.u32 t, t, u; addc.cc.u32 u, u, s; addc.u32 d, s, u;");
  word(
      "sub.cc.u32 s, a, b; subc.cc.u32 t, b, c; subc.cc.u32 u, c, e; subc.cc.u32 s, s, t; "
      "subc.cc.u32 t, t, u; addc.cc.u32 u, u, s; subc.u32 d, s, u;");
  word(
      "add.cc.u32 s, a, b; sub.cc.u32 t, b, c; addc.cc.u32 u, c, e; subc.cc.u32 s, s, t; "
      "madc.lo.cc.u32 t, a, e, u; madc.hi.cc.u32 u, a, e, s; addc.u32 d, t, u;");
  // Guarded: a false guard leaves the carry unchanged.
  word(
      "setp.lt.s32 p, e, 0; add.cc.u32 s, a, b; @p sub.cc.u32 s, b, a; addc.cc.u32 t, c, 0; "
      "@!p addc.u32 d, s, t; @p subc.u32 d, s, t;");
  word(
      "setp.gt.u32 p, a, b; @p add.cc.u32 s, a, c; @!p add.cc.u32 s, b, e; selp.u32 t, 1, 0, p; "
      "addc.cc.u32 u, s, t; setp.ne.and.u32 q, u, 0, !p; selp.u32 t, s, u, q; addc.u32 d, t, e;");
  word(
      "cvt.rn.f32.s32 s, a; cvt.rzi.s32.f32 t, s; sub.cc.s32 u, t, a; subc.s32 u, u, b; "
      "cvt.rn.f32.u32 s, u; fma.rn.f32 s, s, s, s; cvt.rni.sat.u8.f32 h, s; cvt.u32.u8 t, h; "
      "mad.lo.cc.u32 d, t, c, e; addc.u32 d, d, t;");
  word(
      "setp.lt.u32 p, a, b; setp.ge.s32 q, c, e; and.pred r, p, !q; xor.pred p, !p, q; "
      "or.pred q, !p, !r; not.pred r, !r; selp.u32 s, 1, 0, p; selp.u32 t, 2, 0, q; "
      "selp.u32 u, 4, 0, r; or.b32 d, s, t; or.b32 d, d, u; @!p add.cc.u32 d, d, a; @p addc.u32 d, "
      "d, 8;");
}

void logic(std::vector<Form>& out) {
  for (const std::string_view type : {"b16", "b32", "b64"}) {
    const Kind k = kind_of(type);
    for (const char* name : {"and", "or", "xor"})
      out.push_back({fmt::format("{}.{} d, a, b;", name, type), bits(k), {k, k}});
    for (const char* name : {"not", "cnot"})
      out.push_back({fmt::format("{}.{} d, a;", name, type), bits(k), {k}});
    out.push_back({fmt::format("shl.{} d, a, b;", type), bits(k), {k, small}});
    for (const char sign : {'u', 's'})
      out.push_back({fmt::format("shr.{}{} d, a, b;", sign, type.substr(1)), bits(k), {k, small}});
    if (k == b16) continue;
    for (const char* name : {"popc", "clz"})
      out.push_back({fmt::format("{}.{} d, a;", name, type), 32, {k}});
    out.push_back({fmt::format("brev.{} d, a;", type), bits(k), {k}});
    for (const char sign : {'u', 's'}) {
      for (const char* name : {"bfind", "bfind.shiftamt"})
        out.push_back({fmt::format("{}.{}{} d, a;", name, sign, type.substr(1)), 32, {k}});
      out.push_back(
          {fmt::format("bfe.{}{} d, a, b, c;", sign, type.substr(1)), bits(k), {k, small, small}});
    }
    out.push_back({fmt::format("bfi.{} d, a, b, c, e;", type), bits(k), {k, k, small, small}});
  }
  for (const char* mode : {"clamp", "wrap"}) {
    out.push_back({fmt::format("bmsk.{}.b32 d, a, b;", mode), 32, {small, small}});
    for (const char sign : {'u', 's'})
      out.push_back({fmt::format("szext.{}.{}32 d, a, b;", mode, sign), 32, {b32, small}});
    for (const char side : {'l', 'r'})
      out.push_back({fmt::format("shf.{}.{}.b32 d, a, b, c;", side, mode), 32, {b32, b32, small}});
  }
  for (const char* mode : {"", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"})
    out.push_back({fmt::format("prmt.b32{} d, a, b, c;", mode), 32, {b32, b32, b32}});
  out.push_back({"fns.b32 d, a, b, c;", 32, {b32, small, small}});
  out.push_back({"and.b32 s, b, 31; and.b32 t, c, 15; sub.s32 t, t, 8; fns.b32 d, a, s, t;",
                 32,
                 {b32, b32, b32}});
  for (const int table : {0x80, 0xFE, 0x96, 0xE8, 0xCA, 0x3C, 0x1D, 0x40, 0x17, 0xF0, 0x55, 0x6B})
    out.push_back({fmt::format("lop3.b32 d, a, b, c, {};", table), 32, {b32, b32, b32}});
  for (const char* combine : {"or", "and"})
    for (const int table : {0x80, 0x96, 0x1D})
      out.push_back({fmt::format("setp.lt.s32 q, a, b; lop3.{}.b32 d|p, a, b, c, {}, q; "
                                 "selp.b32 s, 0x5a5a, 0, p; xor.b32 d, d, s;",
                                 combine, table),
                     32,
                     {b32, b32, b32}});
}

// Comparisons; a predicate and its complement as bits 0 and 1 of d.
void comparisons(std::vector<Form>& out) {
  constexpr std::string_view both = "selp.u32 s, 1, 0, p; selp.u32 t, 2, 0, q; or.b32 d, s, t;";
  for (const std::string_view type :
       {"u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64"}) {
    const Kind k = kind_of(type);
    std::vector<const char*> relations{"eq", "ne"};
    if (type[0] != 'b') relations.insert(relations.end(), {"lt", "le", "gt", "ge"});
    if (type[0] == 'u') relations.insert(relations.end(), {"lo", "ls", "hi", "hs"});
    for (const char* relation : relations)
      out.push_back({fmt::format("setp.{}.{} p|q, a, b; {}", relation, type, both), 32, {k, k}});
    for (const char* combine : {"and", "or", "xor"})
      for (const char* with : {"r", "!r"})
        out.push_back({fmt::format("setp.lt.s32 r, c, 0; "
                                   "setp.{}.{}.{} p|q, a, b, {}; {}",
                                   type[0] == 'b' ? "ne" : "lt", combine, type, with, both),
                       32,
                       {k, k, b32}});
    for (const char* to : {"u32", "s32", "f32"})
      out.push_back({fmt::format("set.{}.{}.{} d, a, b;", type[0] == 'b' ? "eq" : "ge", to, type),
                     32,
                     {k, k}});
    if (type[0] == 'b')
      out.push_back(
          {fmt::format("setp.lt.s32 p, c, 0; selp.{} d, a, b, p;", type), bits(k), {k, k, b32}});
    out.push_back({fmt::format("slct.{}.s32 d, a, b, c;", type), bits(k), {k, k, b32}});
    out.push_back({fmt::format("slct.{}.f32 d, a, b, c;", type), bits(k), {k, k, Kind::f32}});
    out.push_back({fmt::format("slct.ftz.{}.f32 d, a, b, c;", type), bits(k), {k, k, Kind::f32}});
  }
}

}  // namespace

std::vector<Form> integer_forms() {
  std::vector<Form> out;
  arithmetic(out);
  carries(out);
  chains(out);
  logic(out);
  comparisons(out);
  return out;
}

}  // namespace tartan::scalar_sweep
