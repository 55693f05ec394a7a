// SPDX-License-Identifier: Apache-2.0
// Scalar arithmetic. Floating-point multiply and add are not fused (.rn) except by fma().
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cassert>

#include <llvm/IR/InlineAsm.h>

#include "compiler/codegen/impl.h"
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

llvm::Value* FunctionBuilder::Impl::bits_as(llvm::Value* of, llvm::Type* type) {
  return of->getType() == type ? of : build.CreateBitCast(of, type);
}

llvm::Type* FunctionBuilder::Impl::arithmetic_type(Type of) {
  if (!packed(of)) return type(of);
  return llvm::FixedVectorType::get(type(of == Type::f16x2 ? f16 : bf16), 2);
}

llvm::Value* FunctionBuilder::Impl::arithmetic(Value of) {
  return bits_as(get(of), arithmetic_type(of.type));
}

Value FunctionBuilder::Impl::from_arithmetic(llvm::Value* of, Type type) {
  return value(bits_as(of, this->type(type)), type);
}

llvm::Value* FunctionBuilder::Impl::resize(llvm::Value* of, llvm::Type* type, bool sign) {
  return sign ? build.CreateSExtOrTrunc(of, type) : build.CreateZExtOrTrunc(of, type);
}

Value FunctionBuilder::special(isa::SpecialRegister which) {
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
  return impl_->value(impl_->call(found->id, {}), u32);
}

bool FunctionBuilder::is_constant(Value value) const {
  return value.valid() && llvm::isa<llvm::Constant>(impl_->get(value));
}

Value FunctionBuilder::constant(Type type, std::int64_t value) {
  if (real_valued(type) || type == tf32) return constant(type, static_cast<double>(value));
  llvm::Type* const as = impl_->type(type);
  return impl_->value(
      llvm::ConstantInt::get(
          as, llvm::APInt(as->getIntegerBitWidth(), static_cast<std::uint64_t>(value), true, true)),
      type);
}

Value FunctionBuilder::undefined(Type type) {
  return impl_->value(llvm::PoisonValue::get(impl_->type(type)), type);
}

Value FunctionBuilder::constant(Type type, double value) {
  if (type == tf32) return convert(constant(f32, value), tf32);
  if (packed(type)) {
    llvm::Type* const vector = impl_->arithmetic_type(type);
    return impl_->from_arithmetic(llvm::ConstantFP::get(vector, value), type);
  }
  if (!floating(type)) return constant(type, static_cast<std::int64_t>(value));
  return impl_->value(llvm::ConstantFP::get(impl_->type(type), value), type);
}

Value FunctionBuilder::Impl::binary(Operation integer, Operation real, Value x, Value y) {
  assert(same_arithmetic(x, y));
  return from_arithmetic(
      build.CreateBinOp(real_valued(x.type) ? real : integer, arithmetic(x), arithmetic(y)),
      x.type);
}

Value FunctionBuilder::add(Value x, Value y) {
  return impl_->binary(llvm::Instruction::Add, llvm::Instruction::FAdd, x, y);
}

Value FunctionBuilder::subtract(Value x, Value y) {
  return impl_->binary(llvm::Instruction::Sub, llvm::Instruction::FSub, x, y);
}

Value FunctionBuilder::multiply(Value x, Value y) {
  return impl_->binary(llvm::Instruction::Mul, llvm::Instruction::FMul, x, y);
}

Value FunctionBuilder::divide(Value x, Value y) {
  const bool sign = info(x.type).is_signed;
  return impl_->binary(sign ? llvm::Instruction::SDiv : llvm::Instruction::UDiv,
                       llvm::Instruction::FDiv, x, y);
}

Value FunctionBuilder::remainder(Value x, Value y) {
  const bool sign = info(x.type).is_signed;
  return impl_->binary(sign ? llvm::Instruction::SRem : llvm::Instruction::URem,
                       llvm::Instruction::FRem, x, y);
}

Value FunctionBuilder::bit_and(Value x, Value y) {
  return impl_->value(impl_->build.CreateAnd(impl_->get(x), impl_->get(y)), x.type);
}
Value FunctionBuilder::bit_or(Value x, Value y) {
  return impl_->value(impl_->build.CreateOr(impl_->get(x), impl_->get(y)), x.type);
}
Value FunctionBuilder::bit_xor(Value x, Value y) {
  return impl_->value(impl_->build.CreateXor(impl_->get(x), impl_->get(y)), x.type);
}

Value FunctionBuilder::shift_left(Value x, Value y) {
  auto* const l = impl_->get(x);
  return impl_->value(impl_->build.CreateShl(l, impl_->resize(impl_->get(y), l->getType(), false)),
                      x.type);
}

Value FunctionBuilder::shift_right(Value x, Value y) {
  auto* const l = impl_->get(x);
  auto* const r = impl_->resize(impl_->get(y), l->getType(), false);
  return impl_->value(
      info(x.type).is_signed ? impl_->build.CreateAShr(l, r) : impl_->build.CreateLShr(l, r),
      x.type);
}

Value FunctionBuilder::minimum(Value x, Value y) {
  using namespace llvm::Intrinsic;
  const llvm::Intrinsic::ID id = real_valued(x.type)      ? minnum
                                 : info(x.type).is_signed ? smin
                                                          : umin;
  return impl_->from_arithmetic(
      impl_->call(id, {impl_->arithmetic(x), impl_->arithmetic(y)}, impl_->arithmetic_type(x.type)),
      x.type);
}

Value FunctionBuilder::maximum(Value x, Value y) {
  using namespace llvm::Intrinsic;
  const llvm::Intrinsic::ID id = real_valued(x.type)      ? maxnum
                                 : info(x.type).is_signed ? smax
                                                          : umax;
  return impl_->from_arithmetic(
      impl_->call(id, {impl_->arithmetic(x), impl_->arithmetic(y)}, impl_->arithmetic_type(x.type)),
      x.type);
}

Value FunctionBuilder::fma(Value x, Value y, Value z) {
  if (!real_valued(x.type)) return add(multiply(x, y), z);
  return impl_->from_arithmetic(
      impl_->call(llvm::Intrinsic::fma,
                  {impl_->arithmetic(x), impl_->arithmetic(y), impl_->arithmetic(z)},
                  impl_->arithmetic_type(x.type)),
      x.type);
}

// Assembly: LLVM has intrinsics for some of these only, and may transform them.
Value FunctionBuilder::approximate(Approximation which, Value x) {
  assert(x.type == f32);
  static constexpr const char* names[] = {"ex2.approx.ftz.f32", "lg2.approx.ftz.f32",
                                          "rcp.approx.ftz.f32", "rsqrt.approx.ftz.f32",
                                          "tanh.approx.f32"};
  llvm::Type* const type = impl_->type(f32);
  auto* const text = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false),
                                          std::string(names[static_cast<int>(which)]) + " $0, $1;",
                                          "=f,f", /*hasSideEffects=*/false);
  return impl_->value(impl_->build.CreateCall(text, {impl_->get(x)}), f32);
}

Value FunctionBuilder::negate(Value x) {
  auto* const of = impl_->arithmetic(x);
  return impl_->from_arithmetic(
      real_valued(x.type) ? impl_->build.CreateFNeg(of) : impl_->build.CreateNeg(of), x.type);
}

Value FunctionBuilder::absolute(Value x) {
  llvm::Type* const type = impl_->arithmetic_type(x.type);
  if (real_valued(x.type))
    return impl_->from_arithmetic(impl_->call(llvm::Intrinsic::fabs, impl_->arithmetic(x), type),
                                  x.type);
  return impl_->value(
      impl_->call(llvm::Intrinsic::abs, {impl_->get(x), impl_->build.getFalse()}, type), x.type);
}

Value FunctionBuilder::floor(Value x) {
  return impl_->value(impl_->call(llvm::Intrinsic::floor, impl_->get(x), impl_->type(x.type)),
                      x.type);
}

Value FunctionBuilder::compare(Compare how, Value x, Value y) {
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
  return impl_->value(impl_->build.CreateCmp(predicate, impl_->get(x), impl_->get(y)), Type::pred);
}

Value FunctionBuilder::select(Value condition, Value x, Value y) {
  return impl_->value(
      impl_->build.CreateSelect(impl_->get(condition), impl_->get(x), impl_->get(y)), x.type);
}

// Assembly: LLVM has intrinsics for these, but selects them only from PTX 8.1 on.
Value FunctionBuilder::convert_pair(Value low, Value high, Type to) {
  assert(low.type == f32 && high.type == f32 && eight_bits(to));
  llvm::Type *const from = impl_->type(f32), *const type = impl_->type(u16);
  auto* const text = llvm::InlineAsm::get(
      llvm::FunctionType::get(type, {from, from}, false),
      "cvt.rn.satfinite." + std::string(name(to)) + "x2.f32 $0, $1, $2;", "=h,f,f",
      /*hasSideEffects=*/false);
  return impl_->value(impl_->build.CreateCall(text, {impl_->get(high), impl_->get(low)}), u16);
}

// f16 represents every eight-bit float exactly.
Value FunctionBuilder::Impl::widen(Value x) {
  llvm::Type *const from = type(u16), *const to = type(b32);
  auto* const text =
      llvm::InlineAsm::get(llvm::FunctionType::get(to, {from}, false),
                           "cvt.rn.f16x2." + std::string(tartan::name(x.type)) + "x2 $0, $1;",
                           "=r,h", /*hasSideEffects=*/false);
  llvm::Value* const pair = build.CreateCall(text, {resize(get(x), from, false)});
  return value(bits_as(resize(pair, from, false), type(f16)), f16);
}

namespace {

// To nearest even, as cvt.rn.tf32.f32 does: sm_80 has only cvt.rna, which rounds ties away from
// zero. The sum is x plus half a unit of the last kept bit, minus one if that bit is zero. An
// infinity stays one, a NaN might not.
Value rounded_to_tf32(FunctionBuilder& f, Value x) {
  const Value word = f.bitcast(x, u32);
  const Value odd =
      f.bit_and(f.shift_right(word, f.constant(u32, 13)), f.constant(u32, std::int64_t{1}));
  const Value rounded = f.add(f.add(word, f.constant(u32, 0xFFF)), odd);
  return f.bitcast(f.select(f.compare(Compare::ne, x, x), f.constant(u32, 0x7FFFE000), rounded),
                   tf32);
}

}  // namespace

Value FunctionBuilder::convert(Value x, Type to) {
  if (x.type == to) return x;
  if (eight_bits(x.type)) return convert(impl_->widen(x), to);
  if (eight_bits(to)) {
    const Value pair = convert_pair(convert(x, f32), constant(f32, 0.0), to);
    return impl_->value(impl_->resize(impl_->get(pair), impl_->type(to), false), to);
  }
  auto& build = impl_->build;
  llvm::Value* const from = impl_->get(x);
  llvm::Type* const type = impl_->type(to);
  const bool sign = info(x.type).is_signed;
  if (to == tf32) {
    if (x.type != f32) return convert(convert(x, f32), tf32);
    if (!target().has(Feature::tf32_conversion)) return rounded_to_tf32(*this, x);
    return impl_->value(impl_->call(llvm::Intrinsic::nvvm_f2tf32_rn, from), tf32);
  }
  if (x.type == tf32) return convert(bitcast(x, f32), to);
  if (to == Type::pred) return compare(Compare::ne, x, constant(x.type, std::int64_t{0}));
  if (floating(x.type) && floating(to)) {
    if (x.type == to) return x;
    if (bits(x.type) == bits(to)) return convert(convert(x, f32), to);  // f16 and bf16
    return impl_->value(
        bits(to) > bits(x.type) ? build.CreateFPExt(from, type) : build.CreateFPTrunc(from, type),
        to);
  }
  if (floating(x.type))
    return impl_->value(
        info(to).is_signed ? build.CreateFPToSI(from, type) : build.CreateFPToUI(from, type), to);
  if (floating(to))
    return impl_->value(sign ? build.CreateSIToFP(from, type) : build.CreateUIToFP(from, type), to);
  return impl_->value(impl_->resize(from, type, sign), to);
}

Value FunctionBuilder::bitcast(Value x, Type to) {
  assert(bits(x.type) == bits(to));
  return impl_->value(impl_->bits_as(impl_->get(x), impl_->type(to)), to);
}

Value FunctionBuilder::pack(Value low, Value high, Type to) {
  assert(bits(low.type) == 16 && bits(high.type) == 16 && bits(to) == 32);
  auto& build = impl_->build;
  auto* const vector = llvm::FixedVectorType::get(impl_->type(low.type), 2);
  llvm::Value* pair =
      build.CreateInsertElement(llvm::PoisonValue::get(vector), impl_->get(low), std::uint64_t{0});
  pair = build.CreateInsertElement(pair, impl_->bits_as(impl_->get(high), vector->getElementType()),
                                   std::uint64_t{1});
  return impl_->value(impl_->bits_as(pair, impl_->type(to)), to);
}

std::pair<Value, Value> FunctionBuilder::unpack(Value x, Type to) {
  assert(bits(x.type) == 32 && bits(to) == 16);
  auto& build = impl_->build;
  llvm::Value* const pair =
      impl_->bits_as(impl_->get(x), llvm::FixedVectorType::get(impl_->type(to), 2));
  const Value low = impl_->value(build.CreateExtractElement(pair, std::uint64_t{0}), to);
  return {low, impl_->value(build.CreateExtractElement(pair, std::uint64_t{1}), to)};
}

}  // namespace tartan::TARTAN_ABI::codegen
