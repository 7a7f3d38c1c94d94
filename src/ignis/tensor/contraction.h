#pragma once

#include "ignis/tensor/core.h"

#include <span>

/// Products summed over shared axes. All are built as Mul under ReduceAxes(Add), so that the schedule recognises them
/// from their index maps. Operands meet at the join of their dtypes; the sum accumulates as sum() does (i8 in int32, f16 in
/// float32); the result returns to the join unless `result` states another dtype (e.g. Int32 for i8 products).
namespace ignis::tensor {

/// numpy.matmul: [.., M, K] x [.., K, N], batch axes broadcast, 1-d operands are a row or a column.
Tensor matmul(const Tensor& a, const Tensor& b, std::optional<DType> result = {});
enum class Trans : uint8_t { No, Yes };
/// alpha * op(a) * op(b) + beta * c; `c` is broadcast to [M, N].
Tensor gemm(const Tensor& a, const Tensor& b, const std::optional<Tensor>& c = {}, double alpha = 1,
            double beta = 1, Trans a_form = Trans::No, Trans b_form = Trans::No);
/// General contraction "bij,bjk->bik", as numpy: implicit output, "...", repeated letters (diagonals) in one operand.
Tensor einsum(std::string_view equation, std::span<const Tensor> operands);

/// Per spatial axis; empty vectors mean 1 (strides, dilations) or 0 (pads).
struct ConvOptions {
  std::vector<int64_t> strides, dilations, pads_lo, pads_hi;
  int64_t groups = 1;
  std::vector<int64_t> output_padding;  ///< conv_transpose only: added at the high end
};
/// x [N, C, spatial…], w [M, C / groups, kernel…], bias [M]; any number of spatial axes >= 1.
Tensor conv(const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias = {},
            const ConvOptions& options = {}, std::optional<DType> result = {});
/// x [N, C, spatial…], w [C, M / groups, kernel…]; extent (L - 1) * stride + (k - 1) * dilation + 1 - pads + output_padding.
Tensor conv_transpose(const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias = {},
                      const ConvOptions& options = {});

}  // namespace ignis::tensor
