// SPDX-License-Identifier: Apache-2.0
// Scalar arithmetic. Floating-point multiply and add are not fused (.rn) except by fma().
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cassert>

#include <llvm/IR/InlineAsm.h>

#include "compiler/codegen/llvm_builder.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::codegen {
namespace {

// Types that LLVM treats as floating point. Others of PTX (tf32, e4m3, f16x2) are bits here.
bool floating(Type type) { return type == f16 || type == bf16 || type == f32 || type == f64; }

bool packed(Type type) { return type == Type::f16x2 || type == Type::bf16x2; }
// Types that LLVM computes with as floating point.
bool real_valued(Type type) { return floating(type) || packed(type); }

bool eight_bits(Type type) { return type == Type::e4m3 || type == Type::e5m2; }

// Whether x and y can be added: integers of one width, or floats of one type.
[[maybe_unused]] bool same_arithmetic(Value x, Value y) {
  return real_valued(x.type)
             ? x.type == y.type
             : bits(x.type) == bits(y.type) && !info(x.type).floating && !info(y.type).floating;
}

}  // namespace

llvm::Value* LlvmBuilder::bits_as(llvm::Value* of, llvm::Type* type) {
  return of->getType() == type ? of : build.CreateBitCast(of, type);
}

llvm::Type* LlvmBuilder::arithmetic_type(Type of) {
  if (!packed(of)) return llvm_type(of);
  return llvm::FixedVectorType::get(llvm_type(of == Type::f16x2 ? f16 : bf16), 2);
}

llvm::Value* LlvmBuilder::arithmetic(Value of) {
  return bits_as(get(of), arithmetic_type(of.type));
}

Value LlvmBuilder::from_arithmetic(llvm::Value* of, Type type) {
  return value(bits_as(of, llvm_type(type)), type);
}

llvm::Value* LlvmBuilder::resize(llvm::Value* of, llvm::Type* type, bool sign) {
  return sign ? build.CreateSExtOrTrunc(of, type) : build.CreateZExtOrTrunc(of, type);
}

Value LlvmBuilder::special(isa::SpecialRegister which) {
  using isa::SpecialRegister;
  using namespace llvm::Intrinsic;
  struct Row {
    SpecialRegister which;
    llvm::Intrinsic::ID id;
  };
  constexpr Row rows[] = {{SpecialRegister::tid_x, nvvm_read_ptx_sreg_tid_x},
                          {SpecialRegister::tid_y, nvvm_read_ptx_sreg_tid_y},
                          {SpecialRegister::tid_z, nvvm_read_ptx_sreg_tid_z},
                          {SpecialRegister::ntid_x, nvvm_read_ptx_sreg_ntid_x},
                          {SpecialRegister::ntid_y, nvvm_read_ptx_sreg_ntid_y},
                          {SpecialRegister::ntid_z, nvvm_read_ptx_sreg_ntid_z},
                          {SpecialRegister::ctaid_x, nvvm_read_ptx_sreg_ctaid_x},
                          {SpecialRegister::ctaid_y, nvvm_read_ptx_sreg_ctaid_y},
                          {SpecialRegister::ctaid_z, nvvm_read_ptx_sreg_ctaid_z},
                          {SpecialRegister::nctaid_x, nvvm_read_ptx_sreg_nctaid_x},
                          {SpecialRegister::nctaid_y, nvvm_read_ptx_sreg_nctaid_y},
                          {SpecialRegister::nctaid_z, nvvm_read_ptx_sreg_nctaid_z},
                          {SpecialRegister::laneid, nvvm_read_ptx_sreg_laneid}};
  const Row* found = std::ranges::find(rows, which, &Row::which);
  assert(found != std::end(rows));
  return value(call(found->id, {}), u32);
}

Value LlvmBuilder::constant(Type type, std::int64_t value) {
  if (real_valued(type) || type == tf32) return constant(type, static_cast<double>(value));
  llvm::Type* const as = llvm_type(type);
  return this->value(
      llvm::ConstantInt::get(
          as, llvm::APInt(as->getIntegerBitWidth(), static_cast<std::uint64_t>(value), true, true)),
      type);
}

Value LlvmBuilder::undefined(Type type) {
  return value(llvm::PoisonValue::get(llvm_type(type)), type);
}

Value LlvmBuilder::constant(Type type, double value) {
  if (type == tf32) return convert(constant(f32, value), tf32);
  if (packed(type)) {
    llvm::Type* const vector = arithmetic_type(type);
    return from_arithmetic(llvm::ConstantFP::get(vector, value), type);
  }
  if (!floating(type)) return constant(type, static_cast<std::int64_t>(value));
  return this->value(llvm::ConstantFP::get(llvm_type(type), value), type);
}

Value LlvmBuilder::binary(OperationKind kind, Value x, Value y) {
  using Instruction = llvm::Instruction;
  namespace intrinsic = llvm::Intrinsic;
  const bool real = real_valued(x.type), sign = info(x.type).is_signed;
  const auto by_instruction = [&](Instruction::BinaryOps of_integers,
                                  Instruction::BinaryOps of_reals) {
    assert(same_arithmetic(x, y));
    return from_arithmetic(
        build.CreateBinOp(real ? of_reals : of_integers, arithmetic(x), arithmetic(y)), x.type);
  };
  const auto by_intrinsic = [&](llvm::Intrinsic::ID of_reals, llvm::Intrinsic::ID with_sign,
                                llvm::Intrinsic::ID without) {
    return from_arithmetic(call(real   ? of_reals
                                : sign ? with_sign
                                       : without,
                                {arithmetic(x), arithmetic(y)}, arithmetic_type(x.type)),
                           x.type);
  };
  const auto on_bits = [&](Instruction::BinaryOps which, bool shifts = false) {
    llvm::Value* const left = get(x);
    llvm::Value* const right = shifts ? resize(get(y), left->getType(), false) : get(y);
    return value(build.CreateBinOp(which, left, right), x.type);
  };
  switch (kind) {
    using enum OperationKind;
    case add: return by_instruction(Instruction::Add, Instruction::FAdd);
    case subtract: return by_instruction(Instruction::Sub, Instruction::FSub);
    case multiply: return by_instruction(Instruction::Mul, Instruction::FMul);
    case divide:
      return by_instruction(sign ? Instruction::SDiv : Instruction::UDiv, Instruction::FDiv);
    case remainder:
      return by_instruction(sign ? Instruction::SRem : Instruction::URem, Instruction::FRem);
    case bit_and: return on_bits(Instruction::And);
    case bit_or: return on_bits(Instruction::Or);
    case bit_xor: return on_bits(Instruction::Xor);
    case shift_left: return on_bits(Instruction::Shl, true);
    case shift_right: return on_bits(sign ? Instruction::AShr : Instruction::LShr, true);
    case minimum: return by_intrinsic(intrinsic::minnum, intrinsic::smin, intrinsic::umin);
    default:
      assert(kind == maximum);
      return by_intrinsic(intrinsic::maxnum, intrinsic::smax, intrinsic::umax);
  }
}

Value LlvmBuilder::fma(Value x, Value y, Value z) {
  if (!real_valued(x.type))
    return binary(OperationKind::add, binary(OperationKind::multiply, x, y), z);
  return from_arithmetic(call(llvm::Intrinsic::fma, {arithmetic(x), arithmetic(y), arithmetic(z)},
                              arithmetic_type(x.type)),
                         x.type);
}

// Assembly: LLVM has intrinsics for some of these only, and may transform them.
Value LlvmBuilder::approximate(Approximation which, Value x) {
  assert(x.type == f32);
  static constexpr const char* names[] = {"ex2.approx.ftz.f32", "lg2.approx.ftz.f32",
                                          "rcp.approx.ftz.f32", "rsqrt.approx.ftz.f32",
                                          "tanh.approx.f32"};
  llvm::Type* const type = llvm_type(f32);
  auto* const text = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false),
                                          std::string(names[static_cast<int>(which)]) + " $0, $1;",
                                          "=f,f", /*hasSideEffects=*/false);
  return value(build.CreateCall(text, {get(x)}), f32);
}

Value LlvmBuilder::negate(Value x) {
  auto* const of = arithmetic(x);
  return from_arithmetic(real_valued(x.type) ? build.CreateFNeg(of) : build.CreateNeg(of), x.type);
}

Value LlvmBuilder::absolute(Value x) {
  llvm::Type* const type = arithmetic_type(x.type);
  if (real_valued(x.type))
    return from_arithmetic(call(llvm::Intrinsic::fabs, arithmetic(x), type), x.type);
  return value(call(llvm::Intrinsic::abs, {get(x), build.getFalse()}, type), x.type);
}

// Integers: between -1 and 1 by a maximum and a minimum. Floats: 0 and NaN are their own signs.
Value LlvmBuilder::signum(Value x) {
  llvm::Type* const type = llvm_type(x.type);
  llvm::Value* const of = get(x);
  if (!floating(x.type)) {
    llvm::Value* const above =
        call(llvm::Intrinsic::smax, {of, llvm::ConstantInt::getSigned(type, -1)}, type);
    return value(call(llvm::Intrinsic::smin, {above, llvm::ConstantInt::getSigned(type, 1)}, type),
                 x.type);
  }
  llvm::Value* const one =
      call(llvm::Intrinsic::copysign, {llvm::ConstantFP::get(type, 1.0), of}, type);
  llvm::Value* const has_sign =
      build.CreateFCmpONE(of, llvm::ConstantFP::getZero(type));  // and is no NaN
  return value(build.CreateSelect(has_sign, one, of), x.type);
}

Value LlvmBuilder::floor(Value x) {
  return value(call(llvm::Intrinsic::floor, get(x), llvm_type(x.type)), x.type);
}

Value LlvmBuilder::compare(Compare how, Value x, Value y) {
  using Predicate = llvm::CmpInst::Predicate;
  constexpr Predicate floats[] = {Predicate::FCMP_OEQ, Predicate::FCMP_UNE, Predicate::FCMP_OLT,
                                  Predicate::FCMP_OLE, Predicate::FCMP_OGT, Predicate::FCMP_OGE};
  constexpr Predicate with_sign[] = {Predicate::ICMP_EQ,  Predicate::ICMP_NE,  Predicate::ICMP_SLT,
                                     Predicate::ICMP_SLE, Predicate::ICMP_SGT, Predicate::ICMP_SGE};
  constexpr Predicate without[] = {Predicate::ICMP_EQ,  Predicate::ICMP_NE,  Predicate::ICMP_ULT,
                                   Predicate::ICMP_ULE, Predicate::ICMP_UGT, Predicate::ICMP_UGE};
  const int at = static_cast<int>(how);
  const Predicate predicate = floating(x.type)         ? floats[at]
                              : info(x.type).is_signed ? with_sign[at]
                                                       : without[at];
  return value(build.CreateCmp(predicate, get(x), get(y)), Type::pred);
}

Value LlvmBuilder::select(Value condition, Value x, Value y) {
  return value(build.CreateSelect(get(condition), get(x), get(y)), x.type);
}

// Assembly: LLVM has intrinsics for these, but selects them only from PTX 8.1 on.
Value LlvmBuilder::convert_pair(Value low, Value high, Type to) {
  assert(low.type == f32 && high.type == f32 && eight_bits(to));
  llvm::Type *const from = llvm_type(f32), *const type = llvm_type(u16);
  auto* const text = llvm::InlineAsm::get(
      llvm::FunctionType::get(type, {from, from}, false),
      "cvt.rn.satfinite." + std::string(tartan::name(to)) + "x2.f32 $0, $1, $2;", "=h,f,f",
      /*hasSideEffects=*/false);
  return value(build.CreateCall(text, {get(high), get(low)}), u16);
}

// f16 represents every eight-bit float exactly.
Value LlvmBuilder::widen(Value x) {
  llvm::Type *const from = llvm_type(u16), *const to = llvm_type(b32);
  auto* const text =
      llvm::InlineAsm::get(llvm::FunctionType::get(to, {from}, false),
                           "cvt.rn.f16x2." + std::string(tartan::name(x.type)) + "x2 $0, $1;",
                           "=r,h", /*hasSideEffects=*/false);
  llvm::Value* const pair = build.CreateCall(text, {resize(get(x), from, false)});
  return value(bits_as(resize(pair, from, false), llvm_type(f16)), f16);
}

namespace {

// To nearest even, as cvt.rn.tf32.f32 does: sm_80 has only cvt.rna, which rounds ties away from
// zero. The sum is x plus half a unit of the last kept bit, minus one if that bit is zero. An
// infinity stays one, a NaN might not.
Value rounded_to_tf32(LlvmBuilder& f, Value x) {
  const auto by = [&](OperationKind kind, Value of, std::int64_t number) {
    return f.binary(kind, of, f.constant(u32, number));
  };
  const Value word = f.bitcast(x, u32);
  const Value odd = by(OperationKind::bit_and, by(OperationKind::shift_right, word, 13), 1);
  const Value rounded = f.binary(OperationKind::add, by(OperationKind::add, word, 0xFFF), odd);
  return f.bitcast(
      f.select(f.compare(Compare::ne, x, x), f.constant(u32, std::int64_t{0x7FFFE000}), rounded),
      tf32);
}

}  // namespace

Value LlvmBuilder::convert(Value x, Type to) {
  if (x.type == to) return x;
  if (eight_bits(x.type)) return convert(widen(x), to);
  if (eight_bits(to)) {
    const Value pair = convert_pair(convert(x, f32), constant(f32, 0.0), to);
    return value(resize(get(pair), llvm_type(to), false), to);
  }
  llvm::Value* const from = get(x);
  llvm::Type* const type = llvm_type(to);
  const bool sign = info(x.type).is_signed;
  if (to == tf32) {
    if (x.type != f32) return convert(convert(x, f32), tf32);
    if (!target.has(Feature::tf32_conversion)) return rounded_to_tf32(*this, x);
    return value(call(llvm::Intrinsic::nvvm_f2tf32_rn, from), tf32);
  }
  if (x.type == tf32) return convert(bitcast(x, f32), to);
  if (to == Type::pred) return compare(Compare::ne, x, constant(x.type, std::int64_t{0}));
  if (floating(x.type) && floating(to)) {
    if (x.type == to) return x;
    if (bits(x.type) == bits(to)) return convert(convert(x, f32), to);  // f16 and bf16
    return value(
        bits(to) > bits(x.type) ? build.CreateFPExt(from, type) : build.CreateFPTrunc(from, type),
        to);
  }
  if (floating(x.type))
    return value(
        info(to).is_signed ? build.CreateFPToSI(from, type) : build.CreateFPToUI(from, type), to);
  if (floating(to))
    return value(sign ? build.CreateSIToFP(from, type) : build.CreateUIToFP(from, type), to);
  return value(resize(from, type, sign), to);
}

Value LlvmBuilder::bitcast(Value x, Type to) {
  assert(bits(x.type) == bits(to));
  return value(bits_as(get(x), llvm_type(to)), to);
}

Value LlvmBuilder::pack(Value low, Value high, Type to) {
  assert(bits(low.type) == 16 && bits(high.type) == 16 && bits(to) == 32);
  auto* const vector = llvm::FixedVectorType::get(llvm_type(low.type), 2);
  llvm::Value* pair =
      build.CreateInsertElement(llvm::PoisonValue::get(vector), get(low), std::uint64_t{0});
  pair = build.CreateInsertElement(pair, bits_as(get(high), vector->getElementType()),
                                   std::uint64_t{1});
  return value(bits_as(pair, llvm_type(to)), to);
}

std::pair<Value, Value> LlvmBuilder::unpack(Value x, Type to) {
  assert(bits(x.type) == 32 && bits(to) == 16);
  llvm::Value* const pair = bits_as(get(x), llvm::FixedVectorType::get(llvm_type(to), 2));
  const Value low = value(build.CreateExtractElement(pair, std::uint64_t{0}), to);
  return {low, value(build.CreateExtractElement(pair, std::uint64_t{1}), to)};
}

}  // namespace tartan::TARTAN_ABI::codegen
