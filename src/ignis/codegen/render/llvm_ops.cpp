#include "ignis/codegen/render/llvm_ops.h"

#include "ignis/base/check.h"
#include "ignis/codegen/render/semantics.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <cmath>

namespace ignis::codegen {

using ir::Node;
using ir::Op;
using llvm::Value;

namespace {

llvm::Type* element_type(llvm::LLVMContext& context, DType dtype) {
  switch (dtype) {
    case DType::Bool: return llvm::Type::getInt1Ty(context);
    case DType::Float32: return llvm::Type::getFloatTy(context);
    case DType::Float64: return llvm::Type::getDoubleTy(context);
    default: break;
  }
  IGNIS_CHECK(is_int(dtype) && !is_weak(dtype)) << to_string(dtype);
  return llvm::Type::getIntNTy(context, static_cast<unsigned>(bits(dtype)));
}

llvm::Type* with_lanes(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

/// SSE2 has no rounding instruction, and LLVM would call the C library for it.
bool has_rounding(const Target& target) { return target.isa != Isa::Sse2; }

class Elementwise {
 public:
  Elementwise(llvm::IRBuilder<>& builder, const Target& target, const Node& node,
              llvm::ArrayRef<Value*> operands)
      : b_(builder), target_(target), node_(node), x_(operands) {}

  Value* render() {
    const DType from = node_.src(0).dtype();
    const bool floats = is_float(from), is_signed = !is_unsigned(from) && from != DType::Bool;
    switch (node_.op()) {
      case Op::Cast: return cast(from, node_.dtype());
      case Op::Bitcast: return b_.CreateBitCast(x_[0], type(node_.dtype()));
      case Op::Neg: return floats ? b_.CreateFNeg(x_[0]) : b_.CreateNeg(x_[0]);
      case Op::Trunc: return floats ? trunc() : x_[0];
      case Op::Rint: return floats ? rint() : x_[0];
      case Op::Sqrt: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x_[0]);
      case Op::Add: return floats ? b_.CreateFAdd(x_[0], x_[1]) : b_.CreateAdd(x_[0], x_[1]);
      case Op::Sub: return floats ? b_.CreateFSub(x_[0], x_[1]) : b_.CreateSub(x_[0], x_[1]);
      case Op::Mul: return floats ? b_.CreateFMul(x_[0], x_[1]) : b_.CreateMul(x_[0], x_[1]);
      case Op::Fdiv: return b_.CreateFDiv(x_[0], x_[1]);
      case Op::Cdiv: return is_signed ? b_.CreateSDiv(x_[0], x_[1]) : b_.CreateUDiv(x_[0], x_[1]);
      case Op::Cmod: return is_signed ? b_.CreateSRem(x_[0], x_[1]) : b_.CreateURem(x_[0], x_[1]);
      case Op::Max:
      case Op::Min: return floats ? float_extremum() : int_extremum(is_signed);
      case Op::And: return b_.CreateAnd(x_[0], x_[1]);
      case Op::Or: return b_.CreateOr(x_[0], x_[1]);
      case Op::Xor: return b_.CreateXor(x_[0], x_[1]);
      case Op::Shl: return b_.CreateShl(x_[0], shift_count());
      case Op::Shr:
        return is_signed ? b_.CreateAShr(x_[0], shift_count())
                         : b_.CreateLShr(x_[0], shift_count());
      case Op::Cmplt:
        if (floats) return b_.CreateFCmpOLT(x_[0], x_[1]);
        return is_signed ? b_.CreateICmpSLT(x_[0], x_[1]) : b_.CreateICmpULT(x_[0], x_[1]);
      case Op::Cmpne:
        return floats ? b_.CreateFCmpUNE(x_[0], x_[1]) : b_.CreateICmpNE(x_[0], x_[1]);
      case Op::Cmpeq:
        return floats ? b_.CreateFCmpOEQ(x_[0], x_[1]) : b_.CreateICmpEQ(x_[0], x_[1]);
      case Op::Where: return b_.CreateSelect(x_[0], x_[1], x_[2]);
      case Op::Mulacc: return mulacc(floats);
      default: break;
    }
    IGNIS_CHECK(false) << "not an elementwise operation of a program: " << node_;
    return nullptr;
  }

 private:
  llvm::Type* type(DType dtype) {
    return register_type(b_.getContext(), dtype, node_.src(0).lanes());
  }
  Value* float_constant(double value) { return llvm::ConstantFP::get(x_[0]->getType(), value); }

  Value* shift_count() { return b_.CreateZExtOrTrunc(x_[1], x_[0]->getType()); }

  Value* mulacc(bool floats) {
    if (!floats) return b_.CreateAdd(b_.CreateMul(x_[0], x_[1]), x_[2]);
    if (!target_.has_fma) return b_.CreateFAdd(b_.CreateFMul(x_[0], x_[1]), x_[2]);
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x_[0]->getType()}, {x_[0], x_[1], x_[2]});
  }

  Value* int_extremum(bool is_signed) {
    const bool max = node_.is(Op::Max);
    const auto id = is_signed ? (max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                              : (max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
    return b_.CreateBinaryIntrinsic(id, x_[0], x_[1]);
  }

  /// See is_never_nan: the compare and select are one maxps, which returns its second operand on NaN.
  Value* float_extremum() {
    const bool max = node_.is(Op::Max);
    const auto beyond = [&](Value* a, Value* c) {
      Value* const better = max ? b_.CreateFCmpOGT(a, c) : b_.CreateFCmpOLT(a, c);
      return b_.CreateSelect(better, a, c);
    };
    if (target_.arch == Arch::AArch64) {  // fmax passes NaN on; of two zeros it takes +0
      const auto id = max ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum;
      return b_.CreateBinaryIntrinsic(id, x_[0], x_[1]);
    }
    if (is_never_nan(node_.src(0))) return beyond(x_[0], x_[1]);
    if (is_never_nan(node_.src(1))) return beyond(x_[1], x_[0]);
    Value* const is_nan = b_.CreateFCmpUNO(x_[0], x_[0]);
    return b_.CreateSelect(is_nan, x_[0], beyond(x_[0], x_[1]));
  }

  /// |x| rounded to even by adding 2^23 (2^52), exact below that; the caller keeps x beyond it and for NaN.
  Value* magic_rounded(Value* magnitude, Value* magic) {
    return b_.CreateFSub(b_.CreateFAdd(magnitude, magic), magic);
  }
  Value* magic() { return float_constant(node_.dtype() == DType::Float32 ? 0x1p23 : 0x1p52); }
  Value* keep_large_and_sign(Value* rounded, Value* magnitude, Value* limit) {
    Value* const with_sign = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rounded, x_[0]);
    return b_.CreateSelect(b_.CreateFCmpOLT(magnitude, limit), with_sign, x_[0]);
  }

  Value* rint() {
    if (has_rounding(target_)) {
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x_[0]);
    }
    Value* const magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x_[0]);
    return keep_large_and_sign(magic_rounded(magnitude, magic()), magnitude, magic());
  }

  Value* trunc() {
    if (has_rounding(target_)) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x_[0]);
    Value* const magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x_[0]);
    Value* const rounded = magic_rounded(magnitude, magic());
    Value* const less = b_.CreateFSub(rounded, float_constant(1));
    Value* const floored = b_.CreateSelect(b_.CreateFCmpOGT(rounded, magnitude), less, rounded);
    return keep_large_and_sign(floored, magnitude, magic());
  }

  Value* cast(DType from, DType to) {
    if (from == to) return x_[0];
    llvm::Type* const result = type(to);
    if (is_float(from)) {
      if (to == DType::Bool) return b_.CreateFCmpUNE(x_[0], float_constant(0));
      if (is_float(to)) return b_.CreateFPCast(x_[0], result);
      return saturating_cast(from, to);
    }
    const bool zero_extends = from == DType::Bool || is_unsigned(from);
    if (is_float(to)) {
      return zero_extends ? b_.CreateUIToFP(x_[0], result) : b_.CreateSIToFP(x_[0], result);
    }
    if (to == DType::Bool) {
      return b_.CreateICmpNE(x_[0], llvm::Constant::getNullValue(x_[0]->getType()));
    }
    return b_.CreateIntCast(x_[0], result, !zero_extends);
  }

  Value* saturating_cast(DType from, DType to) {
    llvm::Type* const result = type(to);
    const bool to_unsigned = is_unsigned(to);
    if (target_.arch == Arch::AArch64) {  // fcvtzs and fcvtzu do just this
      const auto id = to_unsigned ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat;
      return b_.CreateIntrinsic(id, {result, x_[0]->getType()}, {x_[0]});
    }
    Value* const zero = llvm::Constant::getNullValue(result);
    Value* const is_nan = b_.CreateFCmpUNO(x_[0], x_[0]);
    const int value_bits = bits(to) - (to_unsigned ? 0 : 1);
    const double low = to_unsigned ? 0.0 : -std::ldexp(1.0, value_bits);
    // Both bounds are floats when the integer has at most as many bits as the significand: clamp there, where it
    // is one max and one min, and convert by way of int32, which every target has as a vector instruction.
    if (bits(to) <= 16 || (bits(to) <= 32 && from == DType::Float64 && !to_unsigned)) {
      Value* const high = float_constant(std::ldexp(1.0, value_bits) - 1);
      Value* x = x_[0];
      x = b_.CreateSelect(b_.CreateFCmpOGT(x, float_constant(low)), x, float_constant(low));
      x = b_.CreateSelect(b_.CreateFCmpOLT(x, high), x, high);
      Value* const wide = b_.CreateFPToSI(x, type(DType::Int32));
      return b_.CreateSelect(is_nan, zero, b_.CreateIntCast(wide, result, true));
    }
    // The conversion is poison out of range; a select does not look at the arm it leaves out.
    Value* r = to_unsigned ? b_.CreateFPToUI(x_[0], result) : b_.CreateFPToSI(x_[0], result);
    const auto width = static_cast<unsigned>(bits(to));
    const llvm::APInt max =
        to_unsigned ? llvm::APInt::getMaxValue(width) : llvm::APInt::getSignedMaxValue(width);
    const llvm::APInt min =
        to_unsigned ? llvm::APInt::getMinValue(width) : llvm::APInt::getSignedMinValue(width);
    Value* const too_high = b_.CreateFCmpOGE(x_[0], float_constant(std::ldexp(1.0, value_bits)));
    r = b_.CreateSelect(too_high, llvm::ConstantInt::get(result, max), r);
    // Unordered: NaN takes this arm as well, which is right at once for unsigned types.
    Value* const too_low = b_.CreateFCmpULT(x_[0], float_constant(low));
    r = b_.CreateSelect(too_low, llvm::ConstantInt::get(result, min), r);
    return to_unsigned ? r : b_.CreateSelect(is_nan, zero, r);
  }

  llvm::IRBuilder<>& b_;
  const Target& target_;
  const Node& node_;
  llvm::ArrayRef<Value*> x_;
};

}  // namespace

llvm::Type* register_type(llvm::LLVMContext& context, DType dtype, int lanes) {
  return with_lanes(element_type(context, dtype), lanes);
}

llvm::Type* memory_type(llvm::LLVMContext& context, DType dtype, int lanes) {
  return register_type(context, dtype == DType::Bool ? DType::UInt8 : dtype, lanes);
}

llvm::Constant* constant_value(llvm::LLVMContext& context, const Node& node) {
  llvm::Type* const type = register_type(context, node.dtype(), 1);
  if (is_float(node.dtype())) return llvm::ConstantFP::get(type, node.const_float());
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(node.const_int()));
}

Value* render_elementwise(llvm::IRBuilder<>& builder, const Target& target, const Node& node,
                          llvm::ArrayRef<Value*> operands) {
  return Elementwise(builder, target, node, operands).render();
}

}  // namespace ignis::codegen
