#include "ignis/ir/layout_index.h"

#include "ignis/ir/simplify.h"

#include <algorithm>

namespace ignis::ir {

Node flat_offset(Graph& g, std::span<const Node> index, const Layout& layout) {
  DType dtype = DType::WeakInt;
  for (const Node& n : index) {
    if (n.dtype() != DType::WeakInt) dtype = DType::Int64;
  }
  Node offset = g.constant(dtype, 0);
  for (size_t i = 0; i < layout.digits.size(); ++i) {
    const LayoutDigit& digit = layout.digits[i];
    const auto dim = static_cast<size_t>(digit.dim);
    Node at = g.cast(index[dim], dtype);
    if (!layout.halo_lo.empty() && layout.halo_lo[dim] != 0) {
      at = g.alu(Op::Add, {at, g.constant(dtype, layout.halo_lo[dim])});
    }
    if (digit.divisor != 1) at = g.alu(Op::Floordiv, {at, g.constant(dtype, digit.divisor)});
    const bool most_significant = std::none_of(
        layout.digits.begin(), layout.digits.end(),
        [&](const LayoutDigit& d) { return d.dim == digit.dim && d.divisor > digit.divisor; });
    if (!most_significant) at = g.alu(Op::Floormod, {at, g.constant(dtype, digit.extent)});
    const int64_t stride = layout.digit_stride(i);
    offset = g.alu(Op::Add,
                   {offset, stride == 1 ? at : g.alu(Op::Mul, {at, g.constant(dtype, stride)})});
  }
  return simplify(g, offset);
}

}  // namespace ignis::ir
