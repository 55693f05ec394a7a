// SPDX-License-Identifier: Apache-2.0
// Instructions of one lane. A row is a spelling and its operands:
//   "add{.rn,.rz}.f32", "f32 = f32 f32"     stands for add.rn.f32 and add.rz.f32
// An operand is a type. "!" after a result replaces its NaNs, "/" after a source makes it positive,
// "#255" is an immediate up to 255, "amount" a small number ("amount32": an immediate below 32,
// because NVIDIA's assembler folds bit fields that reach further differently from the GPU).
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "tests/emulator/random_writer.h"

namespace tartan::test {
namespace {

struct Row {
  std::string_view spelling, operands;
};

// clang-format off
constexpr Row rows[] = {
    // Integers.
    {"{add,sub,mul.lo,mul.hi,min,max}.{s16,u16}", "b16 = b16 b16"},
    {"{mad.lo,mad.hi,sad}.{s16,u16}", "b16 = b16 b16 b16"},
    {"{abs,neg}.s16", "b16 = b16"},
    {"{div,rem}.u16", "b16 = u16 u16/"},
    {"{div,rem}.s16", "b16 = s16 s16/"},
    {"{add,sub,mul.lo,mul.hi,min,max,mul24.lo,mul24.hi}.{s32,u32}", "b32 = b32 b32"},
    {"{add,sub}.sat.s32", "b32 = b32 b32"},
    {"{mad.lo,mad.hi,sad,mad24.lo,mad24.hi}.{s32,u32}", "b32 = b32 b32 b32"},
    {"{mad.hi,mad24.hi}.sat.s32", "b32 = b32 b32 b32"},
    {"{abs,neg}.s32", "b32 = b32"},
    {"{min,max}.relu.s32", "b32 = b32 b32"},
    {"{min,max}.{s16x2,u16x2}", "b32 = b32 b32"},
    {"{min,max}.s16x2.relu", "b32 = b32 b32"},
    {"add.{s16x2,u16x2}", "b32 = b32 b32"},
    {"{div,rem}.u32", "b32 = u32 u32/"},
    {"{div,rem}.s32", "b32 = s32 s32/"},
    {"mul.wide.{s16,u16}", "b32 = b16 b16"},
    {"mad.wide.{s16,u16}", "b32 = b16 b16 b32"},
    {"{add,sub,mul.lo,mul.hi,min,max}.{s64,u64}", "b64 = b64 b64"},
    {"{mad.lo,mad.hi,sad}.{s64,u64}", "b64 = b64 b64 b64"},
    {"{abs,neg}.s64", "b64 = b64"},
    {"{div,rem}.u64", "b64 = u64 u64/"},
    {"{div,rem}.s64", "b64 = s64 s64/"},
    {"mul.wide.{s32,u32}", "b64 = b32 b32"},
    {"mad.wide.{s32,u32}", "b64 = b32 b32 b64"},
    {"add.cc.u32 D, A, B; addc.u32 E, B, A", "b32 b32 = b32 b32"},
    {"sub.cc.u32 D, A, B; subc.u32 E, B, A", "b32 b32 = b32 b32"},
    {"add.cc.u64 D, A, B; addc.u64 E, B, A", "b64 b64 = b64 b64"},
    {"sub.cc.u64 D, A, B; subc.u64 E, B, A", "b64 b64 = b64 b64"},
    {"mad.lo.cc.u32 D, A, B, A; madc.hi.u32 E, A, B, B", "b32 b32 = b32 b32"},
    {"{add,sub}.cc.u32 D, A, B; {addc,subc}.u32 E, B, C", "b32 b32 = b32 b32 b32"},
    {"{add,sub}.cc.u64 D, A, B; {addc,subc}.u64 E, B, C", "b64 b64 = b64 b64 b64"},
    {"mad.{lo,hi}.cc.u32 D, A, B, C; {addc,subc}.cc.u32 E, B, A; {addc,subc}.u32 E, E, D", "b32 b32 = b32 b32 b32"},
    {"sub.cc.u32 D, A, B; madc.{lo,hi}{,.cc}.u32 E, B, C, A; {addc,subc}.u32 D, D, E", "b32 b32 = b32 b32 b32"},
    // Bits and bytes.
    {"{and,or,xor}.b16", "b16 = b16 b16"},
    {"{and,or,xor}.b32", "b32 = b32 b32"},
    {"{and,or,xor}.b64", "b64 = b64 b64"},
    {"{and,or,xor}.pred", "pred = pred pred"},
    {"not.pred", "pred = pred"},
    {"{and,or,xor}.pred D, !A, B", "pred = pred pred"},
    {"{and,or,xor}.pred D, A, !B", "pred = pred pred"},
    {"{not,cnot}.b16", "b16 = b16"},
    {"{not,cnot,brev,popc,clz}.b32", "b32 = b32"},
    {"{not,cnot,brev}.b64", "b64 = b64"},
    {"{popc,clz}.b64", "b32 = b64"},
    {"bfind{,.shiftamt}.{s32,u32}", "b32 = b32"},
    {"bfind{,.shiftamt}.{s64,u64}", "b32 = b64"},
    {"{shl.b16,shr.u16,shr.s16}", "b16 = b16 amount"},
    {"{shl.b32,shr.u32,shr.s32}", "b32 = b32 amount"},
    {"{shl.b64,shr.u64,shr.s64}", "b64 = b64 amount"},
    {"shf.{l,r}.{clamp,wrap}.b32", "b32 = b32 b32 amount"},
    {"bfe.{s32,u32}", "b32 = b32 amount32 amount32"},
    {"bfe.{s64,u64}", "b64 = b64 amount64 amount64"},
    {"bfi.b32", "b32 = b32 b32 amount32 amount32"},
    {"bfi.b64", "b64 = b64 b64 amount64 amount64"},
    {"bmsk.{clamp,wrap}.b32", "b32 = amount amount"},
    {"szext.{clamp,wrap}.{s32,u32}", "b32 = b32 amount"},
    {"prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}", "b32 = b32 b32 b32"},
    {"lop3.b32", "b32 = b32 b32 b32 #255"},
    {"cvt.pack.sat.{s16,u16}.s32", "b32 = b32 b32"},
    {"cvt.pack.sat.{s8,u8,s4,u4,s2,u2}.s32.b32", "b32 = b32 b32 b32"},
    {"{dp4a,dp2a.lo,dp2a.hi}.{s32,u32}.{s32,u32}", "b32 = b32 b32 b32"},
    {"mov.b32 D, {A, B}", "b32 = b16 b16"},
    {"mov.b64 D, {A, B}", "b64 = b32 b32"},
    {"mov.b32 {D, E}, A", "b16 b16 = b32"},
    {"mov.b64 {D, E}, A", "b32 b32 = b64"},
    // f32.
    {"{add,sub,mul}{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32", "f32 = f32 f32"},
    {"fma{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32", "f32 = f32 f32 f32"},
    {"div{.rn,.rz,.rm,.rp}{,.ftz}.f32", "f32! = f32 f32"},
    {"{rcp,sqrt}{.rn,.rz,.rm,.rp}{,.ftz}.f32", "f32! = f32"},
    {"{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f32", "f32! = f32 f32"},
    {"{abs,neg}{,.ftz}.f32", "f32! = f32"},
    {"copysign.f32", "f32! = f32 f32"},
    {"testp.{finite,infinite,number,notanumber,normal,subnormal}.f32", "pred = f32"},
    // f64.
    {"{add,sub,mul,div}{.rn,.rz,.rm,.rp}.f64", "f64! = f64 f64"},
    {"fma{.rn,.rz,.rm,.rp}.f64", "f64! = f64 f64 f64"},
    {"{rcp,sqrt}{.rn,.rz,.rm,.rp}.f64", "f64! = f64"},
    {"{min,max,copysign}.f64", "f64! = f64 f64"},
    {"{abs,neg}.f64", "f64! = f64"},
    {"testp.{finite,infinite,number,notanumber,normal,subnormal}.f64", "pred = f64"},
    // f16 and bf16.
    {"{add,sub,mul}.rn{,.ftz}{,.sat}.f16", "f16 = f16 f16"},
    {"{add,sub,mul}.rn{,.ftz}{,.sat}.f16x2", "f16x2 = f16x2 f16x2"},
    {"fma.rn{,.ftz}{,.sat,.relu}.f16", "f16 = f16 f16 f16"},
    {"fma.rn{,.ftz}{,.sat,.relu}.f16x2", "f16x2 = f16x2 f16x2 f16x2"},
    {"{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f16", "f16! = f16 f16"},
    {"{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f16x2", "f16x2 = f16x2 f16x2"},
    {"{abs,neg}.f16", "f16! = f16"},
    {"{add,sub,mul}.rn.bf16", "bf16 = bf16 bf16"},
    {"{add,sub,mul}.rn.bf16x2", "bf16x2 = bf16x2 bf16x2"},
    {"fma.rn{,.relu}.bf16", "bf16 = bf16 bf16 bf16"},
    {"fma.rn{,.relu}.bf16x2", "bf16x2 = bf16x2 bf16x2 bf16x2"},
    {"fma.rn.oob{,.relu}.{f16x2,bf16x2}", "b32 = b32 b32 b32"},
    {"{min,max}{,.NaN}{,.xorsign.abs}.bf16", "bf16! = bf16 bf16"},
    {"{min,max}{,.NaN}{,.xorsign.abs}.bf16x2", "bf16x2 = bf16x2 bf16x2"},
    {"{abs,neg}.bf16", "bf16! = bf16"},
    // Video.
    {"{vadd,vsub,vabsdiff,vmin,vmax}.{s32,u32}.{s32,u32}.{s32,u32}{,.sat} D, A, B", "b32 = b32 b32"},
    {"{vadd,vsub,vabsdiff,vmin,vmax}.{s32,u32}.s32.u32{,.sat} D.{b0,b3,h0,h1}, A.b1, B.h1, C", "b32 = b32 b32 b32"},
    {"{vadd,vsub,vmin,vmax}.{s32,u32}.{s32.u32,u32.u32}{,.sat}.{add,min,max} D, A.h1, B, C", "b32 = b32 b32 b32"},
    {"{vshl,vshr}.{s32,u32}.{s32,u32}.u32{,.sat}.{clamp,wrap} D, A, B.b0", "b32 = b32 b32"},
    {"{vshl,vshr}.{s32,u32}.{s32,u32}.u32{,.sat}.wrap.{add,min,max} D, A, B, C", "b32 = b32 b32 b32"},
    {"vset.{s32,u32}.{s32,u32}.{eq,lt,ge}.{add,min,max} D, A.h0, B, C", "b32 = b32 b32 b32"},
    {"vmad.{u32.u32.u32,s32.s32.u32,s32.s32.s32}{,.po}{,.sat}{,.shr7,.shr15} D, A, B.h0, C", "b32 = b32 b32 b32"},
    {"vmad.s32.{u32,s32}.s32{,.sat}{,.shr7,.shr15} D, A, B, -C", "b32 = b32 b32 b32"},
    {"{vadd,vsub,vavrg,vabsdiff,vmin,vmax}{2,4}.{s32,u32}.{s32,u32}.s32{,.sat,.add} D, A, B, C", "b32 = b32 b32 b32"},
    {"vset{2,4}.{s32,u32}.u32.{ne,gt}{,.add} D, A, B, C", "b32 = b32 b32 b32"},
    // Chains.
    {"add.cc.u32 D, A, B; addc.cc.u32 E, B, C; subc.cc.u32 D, D, E; madc.hi.cc.u32 E, E, A, D; subc.u32 D, D, E", "b32 b32 = b32 b32 b32"},
    {"sub.cc.u64 D, A, B; subc.cc.u64 E, B, C; addc.cc.u64 D, D, E; subc.u64 E, E, A", "b64 b64 = b64 b64 b64"},
    {"and.pred D, !A, B; xor.pred E, D, !C; or.pred D, E, !A; not.pred E, D; xor.pred D, D, C", "pred pred = pred pred pred"},
    {"cvt.rzi.s32.f32 E, A; cvt.rn.f16.s32 D, E; cvt.rpi.s32.f16 E, D", "f16 b32 = f32"},
    {"cvt.rn.f16x2.f32 D, A, B; cvt.rn.satfinite.e4m3x2.f16x2 E, D; cvt.rn.relu.f16x2.e4m3x2 D, E", "f16x2 b16 = f32 f32"},
    // Comparison and choice.
    {"setp.{eq,ne,lt,le,gt,ge}.{s16,u16}", "pred = b16 b16"},
    {"setp.{eq,ne,lt,le,gt,ge,lo,ls,hi,hs}.u32", "pred = b32 b32"},
    {"setp.{eq,ne,lt,le,gt,ge}.s32", "pred = b32 b32"},
    {"setp.{eq,ne}.b32", "pred = b32 b32"},
    {"setp.{eq,ne,lt,le,gt,ge}.{s64,u64}", "pred = b64 b64"},
    {"setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}{,.ftz}.f32", "pred = f32 f32"},
    {"setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.f64", "pred = f64 f64"},
    {"setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}{,.ftz}.f16", "pred = f16 f16"},
    {"setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.bf16", "pred = bf16 bf16"},
    {"setp.{lt,geu,nan}{,.ftz}.f16x2", "pred|pred = f16x2 f16x2"},
    {"setp.{eq,lt,ge}.{and,or,xor}.{s32,u32}", "pred|pred = b32 b32 pred"},
    {"setp.{ne,le,gtu,num}.{and,or,xor}{,.ftz}.f32", "pred|pred = f32 f32 pred"},
    {"setp.{gt,leu}.{and,or,xor}.f64", "pred|pred = f64 f64 pred"},
    // 1.0 as an integer must not be 1: NVIDIA's assembler fuses set.f32 and a cvt of its bits.
    {"set.{eq,ltu,gt,nan}{,.ftz}.{u32,s32}.f32", "b32 = f32 f32"},
    {"set.{eq,ltu,gt,nan}{,.ftz}.f32.f32", "f32 = f32 f32"},
    {"set.{eq,lt}.{and,or,xor}.u32.s32", "b32 = b32 b32 pred"},
    {"set.{eq,lt}.{and,or,xor}.f32.s32", "f32 = b32 b32 pred"},
    {"set.{le,neu}.{u32,s32}.f64", "b32 = f64 f64"},
    {"set.{le,neu}.f32.f64", "f32 = f64 f64"},
    {"set.{lt,ge}.f16x2.f16x2", "f16x2 = f16x2 f16x2"},
    {"selp.b16", "b16 = b16 b16 pred"},
    {"selp.b32", "b32 = b32 b32 pred"},
    {"selp.b64", "b64 = b64 b64 pred"},
    {"slct.{b32,s32}.s32", "b32 = b32 b32 b32"},
    {"slct.b32.f32", "b32 = b32 b32 f32"},
    {"slct.b64.s32", "b64 = b64 b64 b32"},
    // Conversions.
    {"cvt{,.sat}.{s8,u8}.{s16,u16}", "b16 = b16"},
    {"cvt{,.sat}.{s8,u8,s16,u16}.{s32,u32}", "b16 = b32"},
    {"cvt{,.sat}.{s8,u8,s16,u16}.{s64,u64}", "b16 = b64"},
    {"cvt.{s16,u16}.{s8,u8}", "b16 = b16"},
    {"cvt.{s32,u32}.{s8,u8,s16,u16}", "b32 = b16"},
    {"cvt.sat.u32.{s8,s16}", "b32 = b16"},
    {"cvt.{s32,u32}.{s64,u64}", "b32 = b64"},
    // Of a float's conversion to 64 bits and this NVIDIA's assembler makes one, which gives 0 for a NaN: the "or" of u64/ keeps them apart.
    {"cvt.sat.{s32,u32}.{s64,u64}", "b32 = u64/"},
    {"cvt.{s64,u64}.{s8,u8,s16,u16}", "b64 = b16"},
    {"cvt.{s64,u64}.{s32,u32}", "b64 = b32"},
    {"cvt{.rni,.rzi,.rmi,.rpi}.{s8,u8,s16,u16}.f16", "b16 = f16"},
    {"cvt{.rni,.rzi,.rmi,.rpi}.{s32,u32}.f16", "b32 = f16"},
    {"cvt{.rni,.rzi,.rmi,.rpi}.{s64,u64}.f16", "b64 = f16"},
    {"cvt{.rni,.rzi,.rmi,.rpi}{,.ftz}.{s8,u8,s16,u16}.f32", "b16 = f32"},
    {"cvt{.rni,.rzi,.rmi,.rpi}{,.ftz}.{s32,u32}.f32", "b32 = f32"},
    {"cvt{.rni,.rzi,.rmi,.rpi}{,.ftz}.{s64,u64}.f32", "b64 = f32"},
    {"cvt{.rni,.rzi,.rmi,.rpi}.{s8,u8,s16,u16}.f64", "b16 = f64"},
    {"cvt{.rni,.rzi,.rmi,.rpi}.{s32,u32}.f64", "b32 = f64"},
    {"cvt{.rni,.rzi,.rmi,.rpi}.{s64,u64}.f64", "b64 = f64"},
    {"cvt{.rn,.rz,.rm,.rp}.f16.{s8,u8,s16,u16}", "f16 = b16"},
    {"cvt{.rn,.rz,.rm,.rp}.f16.{s32,u32}", "f16 = b32"},
    {"cvt{.rn,.rz,.rm,.rp}.f16.{s64,u64}", "f16 = b64"},
    {"cvt{.rn,.rz,.rm,.rp}.f32.{s8,u8,s16,u16}", "f32 = b16"},
    {"cvt{.rn,.rz,.rm,.rp}.f32.{s32,u32}", "f32 = b32"},
    {"cvt{.rn,.rz,.rm,.rp}.f32.{s64,u64}", "f32 = b64"},
    {"cvt{.rn,.rz,.rm,.rp}.f64.{s8,u8,s16,u16}", "f64 = b16"},
    {"cvt{.rn,.rz,.rm,.rp}.f64.{s32,u32}", "f64 = b32"},
    {"cvt{.rn,.rz,.rm,.rp}.f64.{s64,u64}", "f64 = b64"},
    {"cvt.f32.{f16,bf16}", "f32! = f16"},
    {"cvt.f64.f16", "f64! = f16"},
    {"cvt{,.ftz}.f64.f32", "f64! = f32"},
    {"cvt{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32.f64", "f32! = f64"},
    {"cvt{.rni,.rzi,.rmi,.rpi}{,.ftz}{,.sat}.f32.f32", "f32! = f32"},
    {"cvt{.rni,.rzi,.rmi,.rpi}.f64.f64", "f64! = f64"},
    {"cvt{.rni,.rzi,.rmi,.rpi}.f16.f16", "f16! = f16"},
    {"cvt{.rn,.rz}.f16.f32", "f16! = f32"},
    {"cvt{.rn,.rz}.f16.f64", "f16! = f64"},
    {"cvt.rn.relu.{f16,bf16}.f32", "b16 = f32"},
    {"cvt{.rn,.rz}.bf16.f32", "bf16! = f32"},
    {"cvt{.rn,.rz}{,.relu}{,.satfinite}.f16x2.f32", "f16x2 = f32 f32"},
    {"cvt{.rn,.rz}{,.relu}{,.satfinite}.bf16x2.f32", "bf16x2 = f32 f32"},
    {"cvt{.rn,.rz,.rm,.rp}.bf16.f64", "bf16! = f64"},
    {"cvt{.rm,.rp}.{f16,bf16}.f32", "b16 = f32"},
    {"cvt.rna.satfinite.tf32.f32", "f32 = f32"},
    {"cvt{.rn,.rz}{,.relu}.tf32.f32", "f32 = f32"},
    {"cvt.rna.tf32.f32", "f32 = f32"},
    {"cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32", "b16 = f32 f32"},
    {"cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f16x2", "b16 = f16x2"},
    {"cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2}", "f16x2 = b16"},
};
// clang-format on

// Expands "a{b,c}{,d}". Braces with blanks beside them are PTX's own.
void expand(const std::string& text, std::vector<std::string>& out) {
  std::size_t open = text.find('{');
  while (open != std::string::npos && text.find(' ', open) < text.find('}', open))
    open = text.find('{', open + 1);
  if (open == std::string::npos) return out.push_back(text);
  const std::size_t close = text.find('}', open);
  std::istringstream choices(text.substr(open + 1, close - open - 1) + ",");
  for (std::string choice; std::getline(choices, choice, ',');)
    expand(text.substr(0, open) + choice + text.substr(close + 1), out);
}

struct Scalar {
  std::string spelling;
  std::vector<std::string> results, sources;
  bool either;  // results joined by |
};

const std::vector<Scalar>& scalars() {
  static const auto list = [] {
    std::vector<Scalar> out;
    for (const Row& row : rows) {
      Scalar scalar;
      std::string operands(row.operands);
      scalar.either = operands.find('|') != std::string::npos;
      for (char& c : operands)
        if (c == '|') c = ' ';
      std::istringstream words(operands);
      bool after = false;
      for (std::string word; words >> word;) {
        if (word == "=") after = true;
        else (after ? scalar.sources : scalar.results).push_back(word);
      }
      std::vector<std::string> spellings;
      expand(std::string(row.spelling), spellings);
      for (std::string& spelling : spellings) {
        scalar.spelling = std::move(spelling);
        out.push_back(scalar);
      }
    }
    return out;
  }();
  return list;
}

int bits_of(std::string_view type) {
  if (type == "pred") return 1;
  if (type.ends_with("x2")) return 32;
  return std::atoi(type.substr(type.find_first_of("136")).data());
}

// A positive number as divisor; for signed types, divides the smallest number without overflow.
std::string divisor(Writer& w, const std::string& type) {
  const int bits = bits_of(type);
  const std::string reg = w.fresh(Writer::letter(bits)), from = w.source(bits);
  const bool is_signed = type[0] == 's';
  if (is_signed) w.line("and.b{} {}, {}, {};", bits, reg, from, bits == 16 ? 0x7FFF : 0x7FFFFFFF);
  w.line("or.b{} {}, {}, 1;", bits, reg, is_signed ? reg : from);
  return reg;
}

std::string operand(Writer& w, std::string word, bool may_be_number) {
  if (word[0] == '#')
    return std::to_string(w.below(static_cast<std::uint32_t>(std::atoi(word.c_str() + 1)) + 1));
  if (word.starts_with("amount")) {
    const std::uint32_t limit = word == "amount" ? 70 : std::atoi(word.c_str() + 6);
    if (w.chance(40)) return std::to_string(w.below(limit));
    const std::string reg = w.fresh('r');
    const int most = w.chance(80) ? 63 : 511;
    w.line("and.b32 {}, {}, {};", reg, w.source(32), most);
    return reg;
  }
  if (word.back() == '/') {
    word.pop_back();
    return divisor(w, word);
  }
  if (may_be_number && word[0] == 'b' && word[1] != 'f' && w.chance(10))
    return std::to_string(w.below(w.chance(50) ? 100 : 0x7FFF));
  return w.source(bits_of(word), word);
}

// One NaN for all.
void settle(Writer& w, const std::string& reg, std::string_view type) {
  const std::string p = w.fresh('p');
  w.line("setp.nan.{} {}, {}, {};", type, p, reg, reg);
  if (type == "f64") w.line("@{} mov.b64 {}, 0x7FF8000000000000;", p, reg);
  else w.line("@{} mov.b{} {}, 0x{};", p, bits_of(type), reg, type == "f32" ? "7FFFFFFF" : "7FFF");
}

std::string with_operands(const Scalar& scalar, const std::vector<std::string>& results,
                          const std::vector<std::string>& sources) {
  std::string out;
  if (scalar.spelling.find(' ') == std::string::npos) {
    out = fmt::format("{} {}", scalar.spelling, results[0]);
    for (std::size_t i = 1; i < results.size(); ++i)
      out += (scalar.either ? "|" : ", ") + results[i];
    for (const std::string& source : sources) out += ", " + source;
    return out + ";";
  }
  for (const char c : scalar.spelling) {  // D, E and A, B, C stand for the operands
    if (c >= 'A' && c <= 'C') out += sources[static_cast<std::size_t>(c - 'A')];
    else if (c == 'D' || c == 'E') out += results[static_cast<std::size_t>(c - 'D')];
    else out += c;
  }
  return out + ";";
}

}  // namespace

std::vector<std::string> random_scalar_instructions() {
  std::vector<std::string> out;
  for (const Scalar& scalar : scalars()) out.push_back(scalar.spelling);
  return out;
}

namespace {

// NVIDIA's assembler expands these to several instructions, and executes some of them even if the
// guard is false.
bool keeps_guards(const std::string& spelling) {
  return !spelling.starts_with("testp") && !spelling.starts_with("bf") && spelling[0] != 'v' &&
         spelling.find("tf32") == std::string::npos;
}

// cvt to an integer of 8 or 16 bits.
bool narrows(const std::string& spelling) {
  if (!spelling.starts_with("cvt")) return false;
  for (const char* type : {".s8.", ".u8.", ".s16.", ".u16."}) {
    const std::size_t at = spelling.find(type);
    if (at != std::string::npos && spelling.find('.', at + std::strlen(type)) == std::string::npos)
      return true;
  }
  return false;
}

// Results that go through an instruction that the assembler cannot evaluate. It assumes that neg
// and abs do not overflow, and that sqrt of set's result, 0 or 1.0, needs no special case. A pair
// of bytes that is stored beside another 16-bit register in one vector, it packs with that
// register, which then reads as the pair. Integers of 8 and 16 bits it leaves wider than their
// register.
bool is_foreseen(const std::string& spelling) {
  const bool packed = spelling.find(".e4m3x2.f") != std::string::npos ||
                      spelling.find(".e5m2x2.f") != std::string::npos;
  return spelling == "neg.s16" || spelling == "abs.s16" || packed || narrows(spelling) ||
         (spelling.starts_with("set.") && spelling.find("f32.") != std::string::npos);
}

// The assembler merges a comparison with the predicate of the surrounding branch into one FSETP,
// which drops .ftz.
void keep_subnormals(std::string& text) {
  const std::size_t at = text.find(".ftz");
  if (text.find("set") != std::string::npos && at != std::string::npos) text.erase(at, 4);
}

}  // namespace

void scalar_statement(Writer& w) {
  const std::size_t index = w.row(w.program.scalar_rows.size(), 3, scalars().size());
  const Scalar& scalar = scalars()[index];
  w.program.scalar_rows.push_back(index);
  std::vector<std::string> results, sources;
  for (std::size_t i = 0; i < scalar.sources.size(); ++i)
    sources.push_back(operand(w, scalar.sources[i],
                              i > 0 && scalar.spelling.find_first_of(" x") == std::string::npos));
  if (scalar.spelling.starts_with("bfe.") && bits_of(scalar.sources[0]) == 32) {
    // Of a value that is the same in all lanes the assembler takes each field to be so, too.
    const std::string own = w.fresh('r');
    w.copy(own, sources[0], 32);
    sources[0] = own;
  }
  const bool single = scalar.spelling.find(';') == std::string::npos;
  const bool guard = single && w.chance(15) && keeps_guards(scalar.spelling);
  const char* sign = w.chance(30) ? "!" : "";
  const std::string predicate = guard ? fmt::format("@{}{} ", sign, w.source(1)) : "";
  const bool was_guarded = w.guarded;
  w.guarded |= guard;
  for (const std::string& type : scalar.results) results.push_back(w.destination(bits_of(type)));
  w.guarded = was_guarded;
  std::string text = predicate + with_operands(scalar, results, sources);
  if (guard || was_guarded || w.depth > 0) keep_subnormals(text);
  w.line(text);
  if (is_foreseen(scalar.spelling))
    for (std::size_t i = 0; i < results.size(); ++i)
      w.copy(results[i], results[i], bits_of(scalar.results[i]));
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::string type = scalar.results[i];
    if (type.back() == '!') {
      type.pop_back();
      settle(w, results[i], type);
    }
    w.result(results[i], bits_of(type), type, text);
  }
}

}  // namespace tartan::test
