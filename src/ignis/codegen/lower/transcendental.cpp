#include "ignis/codegen/lower/transcendental.h"

#include "ignis/codegen/lower/functions.h"
#include "ignis/codegen/lower/walk.h"

namespace ignis::codegen {

using ir::Node;
using ir::Op;

namespace {

bool is_transcendental(const Node& node) {
  switch (node.op()) {
    case Op::Exp:
    case Op::Exp2:
    case Op::Log:
    case Op::Log2:
    case Op::Sin:
    case Op::Cos:
    case Op::Erf:
    case Op::Tanh:
    case Op::Atan: return true;
    case Op::Pow: return is_float(node.dtype());
    default: return false;
  }
}

Expr apply(Op op, const Expr& x) {
  switch (op) {
    case Op::Exp: return exp_of(x);
    case Op::Exp2: return exp2_of(x);
    case Op::Log: return log_of(x);
    case Op::Log2: return log2_of(x);
    case Op::Sin: return sin_of(x);
    case Op::Cos: return cos_of(x);
    case Op::Erf: return erf_of(x);
    case Op::Tanh: return tanh_of(x);
    case Op::Atan: return atan_of(x);
    default: IGNIS_CHECK(false) << ir::to_string(op); return x;
  }
}

}  // namespace

Node lower_transcendentals(ir::Graph& graph, const Node& sink, const Target& target) {
  return rebuild_all(sink, [&](const Node& node, std::span<const Node> sources) {
    if (!is_transcendental(node)) return graph.rebuild(node, sources);
    const DType wide = node.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
    const Expr x = Expr(graph, sources[0]).cast(wide);
    const Expr y = node.is(Op::Pow) ? pow_of(x, Expr(graph, sources[1]).cast(wide), target.has_fma)
                                    : apply(node.op(), x);
    return y.cast(node.dtype()).node();
  });
}

}  // namespace ignis::codegen
