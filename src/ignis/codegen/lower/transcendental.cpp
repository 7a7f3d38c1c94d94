#include "ignis/codegen/lower/transcendental.h"

#include "ignis/codegen/lower/functions.h"
#include "ignis/codegen/lower/walk.h"

#include <limits>
#include <optional>
#include <unordered_map>

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

/// x to a small constant power by products (at most 1.5 ulp) or a square root; with pow()'s answers for zeros and infinities.
std::optional<Expr> constant_power(const Expr& x, const Node& exponent) {
  if (!exponent.is_const()) return std::nullopt;
  const double e = exponent.const_float();
  const Expr square = x * x;
  if (e == 0) return x.number(1);
  if (e == 1) return x;
  if (e == 2) return square;
  if (e == 3) return square * x;
  if (e == 4) return square * square;
  if (e == -1) return x.number(1) / x;
  if (e == 0.5) {
    // pow(-0, 1/2) is +0 and pow(-inf, 1/2) is +inf.
    const Expr infinity = x.number(std::numeric_limits<double>::infinity());
    return where(equal(x, -infinity), infinity, (x + x.number(0)).unary(Op::Sqrt));
  }
  return std::nullopt;
}

/// What may be joined with its reader, because that is its only one.
class SingleUses {
 public:
  explicit SingleUses(const Node& sink) {
    for (const Node& node : ir::toposort(sink)) {
      for (int i = 0; i < node.source_count(); ++i) ++readers_[node.src(i)];
    }
  }
  bool is_single(const Node& node, Op op) const {
    return node.is(op) && readers_.at(node) == 1 &&
           (node.dtype() == DType::Float32 || node.dtype() == DType::Float64);
  }

 private:
  std::unordered_map<Node, int> readers_;
};

/// exp(x) + c and a * (1 / b), with sources that are rebuilt already except below what is joined; null for anything else.
Node join(ir::Graph& graph, const Node& node, std::span<const Node> sources, const SingleUses& uses,
          const std::unordered_map<Node, Node>& arguments) {
  for (size_t i = 0; i < 2 && sources.size() == 2; ++i) {
    const Node source = node.src(static_cast<int>(i)), other = sources[1 - i];
    if (node.is(Op::Add) && uses.is_single(source, Op::Exp) && other.is_const() &&
        other.const_float() >= 1) {
      return exp_plus_of(Expr(graph, arguments.at(source)), other.const_float()).node();
    }
    if (node.is(Op::Mul) && uses.is_single(source, Op::Reciprocal)) {
      return (Expr(graph, other) / Expr(graph, arguments.at(source))).node();
    }
  }
  return {};
}

}  // namespace

Node lower_transcendentals(ir::Graph& graph, const Node& sink, const Target& target,
                           FloatLevel level) {
  const SingleUses uses(sink);
  std::unordered_map<Node, Node> arguments;  // of exponentials and reciprocals that may be joined
  return rebuild_all(sink, [&](const Node& node, std::span<const Node> sources) {
    if (level != FloatLevel::Strict) {
      if (node.is(Op::Exp) || node.is(Op::Reciprocal)) arguments[node] = sources[0];
      if (const Node joined = join(graph, node, sources, uses, arguments)) return joined;
    }
    if (!is_transcendental(node)) return graph.rebuild(node, sources);
    const DType wide = node.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
    const Expr x = Expr(graph, sources[0]).cast(wide);
    if (node.is(Op::Pow)) {
      const auto power =
          constant_power(x, sources[1].is(Op::Cast) ? sources[1].src(0) : sources[1]);
      if (power) return power->cast(node.dtype()).node();
    }
    const Expr y = node.is(Op::Pow) ? pow_of(x, Expr(graph, sources[1]).cast(wide), target.has_fma)
                                    : apply(node.op(), x);
    return y.cast(node.dtype()).node();
  });
}

}  // namespace ignis::codegen
