// Linear quantisation and products of quantised integers. Rounding is to nearest even, results saturate.
#include "ignis/onnx/ops_common.h"

#include <optional>

namespace ignis::onnx {
namespace {

namespace t = tensor;

// Brings a scale or zero point against `x`: a scalar as it is, a vector along `axis`, a blocked one repeated.
Result<Tensor> spread(const OpContext& ctx, const Tensor& v, const Tensor& x, int64_t axis,
                      int64_t block_size) {
  if (v.count() == 1) return t::reshape(v, {});
  if (block_size > 0) {
    if (v.rank() != x.rank()) {
      return ctx.error("A blocked scale has the rank of x, " + x.describe() + "; it is " +
                       v.describe() + ".");
    }
    const int64_t extent = x.dim(static_cast<int>(axis));
    const int64_t blocks = v.dim(static_cast<int>(axis));
    if (block_size > extent || (extent + block_size - 1) / block_size != blocks) {
      return ctx.error("Blocks of " + std::to_string(block_size) + " do not divide axis " +
                       std::to_string(axis) + " of " + x.describe() + " into " +
                       std::to_string(blocks) + ".");
    }
    const Tensor repeated = t::repeat_interleave(v, axis, block_size);
    return t::slice(repeated, axis, 0, x.dim(static_cast<int>(axis)));  // the last block may be cut
  }
  if (v.rank() != 1 || v.count() != x.dim(static_cast<int>(axis))) {
    return ctx.error("Scale or zero point " + v.describe() + " does not fit axis " +
                     std::to_string(axis) + " of " + x.describe() + ".");
  }
  Shape shape(x.shape().size(), 1);
  shape[static_cast<size_t>(axis)] = v.count();
  return t::reshape(v, shape);
}

// saturate(round(x) + zero_point) for a float x.
Tensor saturate(const Tensor& x, const std::optional<Tensor>& zero_point, DType dtype) {
  Tensor y = t::round(x);
  if (zero_point) y = y + t::cast(*zero_point, y.dtype());
  const double lo = static_cast<double>(int_min(dtype));
  const double hi = static_cast<double>(int_max(dtype));
  return t::cast(t::clamp(y, lo, hi), dtype);
}

// The axis attribute; meaningless (and often out of range) when the scale is a scalar.
int64_t quant_axis(const OpContext& ctx, const Tensor& x, const Tensor& scale) {
  if (scale.count() == 1 || x.rank() == 0) return 0;
  if (x.rank() == 1) return 0;
  return ctx.axis(ctx.attr_int("axis", 1), x.rank());
}

OpOutputs quantize_linear(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& scale_in = ctx.input(1);
  const int64_t axis = quant_axis(ctx, x, scale_in);
  const int64_t block = ctx.attr_int("block_size", 0);
  DType dtype = ctx.has_input(2) ? ctx.input(2).dtype() : DType::UInt8;
  if (ctx.attr_int("output_dtype", 0) != 0) dtype = ctx.attr_dtype("output_dtype", dtype);
  IGNIS_TRY_ASSIGN(const Tensor scale, spread(ctx, scale_in, x, axis, block));
  std::optional<Tensor> zero;
  if (ctx.has_input(2)) {
    IGNIS_TRY_ASSIGN(zero, spread(ctx, ctx.input(2), x, axis, block));
  }
  // Divide in float32 at least: a float16 quotient would be rounded twice.
  const DType wide = scale.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  const Tensor quotient = t::cast(x, wide) / t::cast(scale, wide);
  if (is_fp8(dtype)) {
    if (ctx.attr_int("saturate", 1) == 0) {
      return ctx.unsupported("QuantizeLinear to " + std::string(to_string(dtype)) +
                             " with saturate 0.");
    }
    return one(t::cast(zero ? quotient + t::cast(*zero, wide) : quotient, dtype));
  }
  if (!is_int(dtype))
    return ctx.unsupported("QuantizeLinear to " + std::string(to_string(dtype)) + ".");
  return one(saturate(quotient, zero, dtype));
}

OpOutputs dequantize_linear(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t axis = quant_axis(ctx, x, ctx.input(1));
  const int64_t block = ctx.attr_int("block_size", 0);
  IGNIS_TRY_ASSIGN(const Tensor scale, spread(ctx, ctx.input(1), x, axis, block));
  DType dtype = ctx.input(1).dtype();
  if (ctx.attr_int("output_dtype", 0) != 0) dtype = ctx.attr_dtype("output_dtype", dtype);
  const DType wide = dtype == DType::Float64 ? DType::Float64 : DType::Float32;
  Tensor value = x;
  if (ctx.has_input(2)) {
    IGNIS_TRY_ASSIGN(const Tensor zero, spread(ctx, ctx.input(2), x, axis, block));
    // The difference of two small integers is exact in int32, and so is that of two int32 that have the same sign.
    value = is_float(x.dtype()) ? t::cast(x, wide) - t::cast(zero, wide)
                                : t::cast(x, DType::Int32) - t::cast(zero, DType::Int32);
  }
  return one(t::cast(t::cast(value, wide) * t::cast(scale, wide), dtype));
}

OpOutputs dynamic_quantize_linear(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor lowest = t::minimum(t::min(x), 0.0);
  const Tensor highest = t::maximum(t::max(x), 0.0);
  const Tensor scale = (highest - lowest) / 255.0;
  // All zeros give scale 0; the quotients 0 / 0 then become 0 in the cast.
  const Tensor zero = t::cast(t::round(t::clamp(t::neg(lowest) / scale, 0.0, 255.0)), DType::UInt8);
  return std::vector<Tensor>{saturate(x / scale, zero, DType::UInt8), scale, zero};
}

// x - zero_point as int32.
Tensor centred(const Tensor& x, const std::optional<Tensor>& zero_point) {
  const Tensor wide = t::cast(x, DType::Int32);
  return zero_point ? wide - t::cast(*zero_point, DType::Int32) : wide;
}

// A scale or zero point of a matrix: scalar, per row (a) or per column (b) as a vector, or already of full rank.
Tensor per_row(const Tensor& v) {
  if (v.count() == 1) return t::reshape(v, {});
  return v.rank() == 1 ? t::unsqueeze(v, {1}) : v;
}
Tensor per_column(const Tensor& v) { return v.count() == 1 ? t::reshape(v, {}) : v; }
// A scalar, or one value an output channel, against [M, …] weights (axis 0) or [N, M, …] results (axis 1).
Tensor per_channel(const Tensor& v, int64_t axis, int rank) {
  if (v.count() == 1) return t::reshape(v, {});
  Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = v.count();
  return t::reshape(v, shape);
}

OpOutputs q_linear_matmul(const OpContext& ctx) {
  const Tensor a = centred(ctx.input(0), per_row(ctx.input(2)));
  const Tensor b = centred(ctx.input(3), per_column(ctx.input(5)));
  const Tensor product = t::matmul(a, b, DType::Int32);
  const Tensor factor = per_row(t::cast(ctx.input(1), DType::Float32)) *
                        per_column(t::cast(ctx.input(4), DType::Float32)) /
                        per_row(t::cast(ctx.input(6), DType::Float32));
  const Tensor zero = per_row(ctx.input(7));
  return one(saturate(t::cast(product, DType::Float32) * factor, zero, ctx.input(7).dtype()));
}

OpOutputs matmul_integer(const OpContext& ctx) {
  std::optional<Tensor> a_zero, b_zero;
  if (ctx.has_input(2)) a_zero = per_row(ctx.input(2));
  if (ctx.has_input(3)) b_zero = per_column(ctx.input(3));
  return one(t::matmul(centred(ctx.input(0), a_zero), centred(ctx.input(1), b_zero), DType::Int32));
}

// The attributes of Conv; `w` is [M, C / group, kernel…].
t::ConvOptions conv_options(const OpContext& ctx, const Tensor& x, const Tensor& w) {
  const Shape& shape = x.shape();
  const WindowAttributes window =
      window_attributes(ctx, Shape(shape.begin() + 2, shape.end()),
                        std::vector<int64_t>(w.shape().begin() + 2, w.shape().end()));
  t::ConvOptions options;
  options.strides = window.strides;
  options.dilations = window.dilations;
  options.pads_lo = window.pads_lo;
  options.pads_hi = window.pads_hi;
  options.groups = ctx.attr_int("group", 1);
  return options;
}

OpOutputs q_linear_conv(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& w = ctx.input(3);
  if (x.rank() < 3 || w.rank() != x.rank()) {
    return ctx.error("x " + x.describe() + " and w " + w.describe() + " do not fit.");
  }
  const t::ConvOptions options = conv_options(ctx, x, w);
  // Subtracting before the convolution makes the padding stand for the zero point.
  Tensor sum = t::conv(centred(x, per_channel(ctx.input(2), 1, x.rank())),
                       centred(w, per_channel(ctx.input(5), 0, w.rank())), std::nullopt, options,
                       DType::Int32);
  if (ctx.has_input(8)) sum = sum + per_channel(ctx.input(8), 1, sum.rank());
  const Tensor factor = per_channel(ctx.input(1), 1, sum.rank()) *
                        per_channel(ctx.input(4), 1, sum.rank()) /
                        per_channel(ctx.input(6), 1, sum.rank());
  const Tensor zero = per_channel(ctx.input(7), 1, sum.rank());
  return one(saturate(t::cast(sum, DType::Float32) * factor, zero, ctx.input(7).dtype()));
}

OpOutputs conv_integer(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& w = ctx.input(1);
  if (x.rank() < 3 || w.rank() != x.rank()) {
    return ctx.error("x " + x.describe() + " and w " + w.describe() + " do not fit.");
  }
  const t::ConvOptions options = conv_options(ctx, x, w);
  std::optional<Tensor> x_zero, w_zero;
  if (ctx.has_input(2)) x_zero = per_channel(ctx.input(2), 1, x.rank());
  if (ctx.has_input(3)) w_zero = per_channel(ctx.input(3), 0, w.rank());
  return one(t::conv(centred(x, x_zero), centred(w, w_zero), std::nullopt, options, DType::Int32));
}

// clang-format off
constexpr OpEntry kOps[] = {
    {"", "QuantizeLinear",        10, 2, 3, quantize_linear},
    {"", "DequantizeLinear",      10, 2, 3, dequantize_linear},
    {"", "DynamicQuantizeLinear", 11, 1, 1, dynamic_quantize_linear},
    {"", "QLinearMatMul",         10, 8, 8, q_linear_matmul},
    {"", "MatMulInteger",         10, 2, 4, matmul_integer},
    {"", "QLinearConv",           10, 8, 9, q_linear_conv},
    {"", "ConvInteger",           10, 2, 4, conv_integer},
};
// clang-format on

}  // namespace

std::span<const OpEntry> quant_ops() { return kOps; }

}  // namespace ignis::onnx
