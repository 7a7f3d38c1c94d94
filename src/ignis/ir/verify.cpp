#include "ignis/ir/verify.h"

#include "ignis/base/float_formats.h"
#include "ignis/ir/simplify.h"
#include "ignis/ir/structure.h"
#include "ignis/ir/text.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <unordered_map>

namespace ignis::ir {
namespace {

Error bad(const Node& node, const std::string& what) {
  return Error(ErrorCode::Internal, "%" + std::to_string(node.id()) + " = " +
                                        std::string(to_string(node.op())) + "." +
                                        std::string(to_string(node.dtype())) + " " + what + ": '" +
                                        print_expr(node) + "'.");
}

std::string name(DType dtype) { return std::string(to_string(dtype)); }

bool agrees(const Node& operand, DType expected) {
  return operand.dtype() == expected || is_weak(operand.dtype()) || is_weak(expected) ||
         operand.is_invalid();
}

bool is_integer(DType d) { return is_int(d) || d == DType::Bool; }

// Operations whose result only a float can hold.
bool is_float_only(Op op) {
  switch (op) {
    case Op::Sqrt:
    case Op::Reciprocal:
    case Op::Exp2:
    case Op::Log2:
    case Op::Exp:
    case Op::Log:
    case Op::Sin:
    case Op::Cos:
    case Op::Erf:
    case Op::Tanh:
    case Op::Atan:
    case Op::Fdiv: return true;
    default: return false;
  }
}
bool is_bitwise(Op op) { return op == Op::And || op == Op::Or || op == Op::Xor; }
bool is_shift(Op op) { return op == Op::Shl || op == Op::Shr; }

Status check_constant(const Node& n) {
  if (n.is_invalid()) return Status::ok();
  const DType d = n.dtype();
  if (!is_float(d)) {
    if (wrap_int(d, n.const_int()) != n.const_int())
      return bad(n, "holds a value its dtype has not");
  } else if (const double v = n.const_float();
             d != DType::WeakFloat && !std::isnan(v) && round_to(d, v) != v) {
    return bad(n, "holds a value its dtype has not");
  }
  return Status::ok();
}

Status check_elementwise(const Node& n) {
  const Op op = n.op();
  const DType dtype = n.dtype();
  for (int i = 0; i < n.source_count(); ++i) {
    const Node s = n.src(i);
    if (s.dtype() == DType::Void) return bad(n, "has a source without a value");
    if (s.lanes() != n.lanes()) return bad(n, "has a source of other lanes");
  }
  if (op == Op::Cast) return Status::ok();
  if (op == Op::Bitcast) {
    const DType from = n.src(0).dtype();
    if (is_weak(from) || is_weak(dtype) || size_bytes(from) != size_bytes(dtype)) {
      return bad(n, "has a source of another size, " + name(from));
    }
    return Status::ok();
  }
  if (is_comparison(op)) {
    if (dtype != DType::Bool) return bad(n, "is a comparison and not bool");
    if (!agrees(n.src(0), n.src(1).dtype()) && !n.src(1).is_invalid()) {
      return bad(n, "compares " + name(n.src(0).dtype()) + " with " + name(n.src(1).dtype()));
    }
    return Status::ok();
  }
  int first = 0;
  if (op == Op::Where) {
    if (n.src(0).dtype() != DType::Bool)
      return bad(n, "has a condition of " + name(n.src(0).dtype()));
    first = 1;
  }
  const int last = is_shift(op) ? 1 : n.source_count();
  for (int i = first; i < last; ++i) {
    if (!agrees(n.src(i), dtype)) return bad(n, "has an operand of " + name(n.src(i).dtype()));
  }
  if (is_shift(op) && !is_int(n.src(1).dtype()))
    return bad(n, "shifts by a " + name(n.src(1).dtype()));
  if ((is_bitwise(op) || is_shift(op)) && !is_integer(dtype))
    return bad(n, "works on bits of a float");
  if (is_float_only(op) && !is_float(dtype)) return bad(n, "needs a float");
  return Status::ok();
}

// What holds in a tensor graph and in a kernel.
Status check_common(const Node& n) {
  std::vector<Node> sources;
  for (int i = 0; i < n.source_count(); ++i) sources.push_back(n.src(i));
  if (const Status status = check_structure(n.op(), n.dtype(), n.lanes(), sources, n.arg());
      !status) {
    return bad(n, "has a bad form (" + status.error().message() + ")");
  }
  if (n.is(Op::Const)) return check_constant(n);
  if (is_elementwise(n.op())) return check_elementwise(n);
  if (n.is(Op::Stack)) {
    for (const Node& s : sources) {
      if (!agrees(s, n.dtype())) return bad(n, "stacks a " + name(s.dtype()));
    }
  }
  return Status::ok();
}

Status check_tensor_node(const Node& n) {
  const Op op = n.op();
  switch (op_class(op)) {
    case OpClass::Loop:
    case OpClass::Memory:
    case OpClass::Vector: return bad(n, "has no place in a tensor graph");
    default: break;
  }
  if (op == Op::Reduce) return bad(n, "has no place in a tensor graph");
  if (n.dtype() == DType::Void) return bad(n, "has no value");
  if (n.lanes() != 1) return bad(n, "is a vector");
  if (!is_movement(op) && op != Op::ReduceAxes) return Status::ok();
  for (int i = 0; i < n.source_count(); ++i) {
    const Node s = n.src(i);
    if (op == Op::Gather && i > 0) {
      if (!is_int(s.dtype())) return bad(n, "has an index of " + name(s.dtype()));
    } else if (!agrees(s, n.dtype())) {
      return bad(n, "changes the dtype from " + name(s.dtype()));
    }
  }
  return Status::ok();
}

class KernelVerifier {
 public:
  Status run(const Node& sink) {
    if (!sink.is(Op::Sink)) return bad(sink, "is no kernel: its root is not a Sink");
    for (const Node& n : toposort(sink)) {
      IGNIS_TRY(check_common(n));
      IGNIS_TRY(check_node(n));
    }
    IGNIS_TRY(check_effects(sink));
    return check_accesses(sink);
  }

 private:
  Status check_node(const Node& n) {
    const Op op = n.op();
    if (is_movement(op) || op == Op::ReduceAxes || op == Op::Buffer)
      return bad(n, "has no place in a kernel");
    if (op_class(op) == OpClass::Vector || op == Op::Reg || n.lanes() != 1) {
      return bad(n, "is of a later stage than a kernel");
    }
    for (int i = 0; i < n.source_count(); ++i) {
      // Pointers and effects go to those who know them only.
      const Node s = n.src(i);
      if (s.is(Op::Param) && op != Op::Index) return bad(n, "uses a buffer without an Index");
      if (s.is(Op::Index) && !((op == Op::Load || op == Op::Store) && i == 0))
        return bad(n, "uses a pointer as a value");
      const bool is_effect = s.dtype() == DType::Void;
      const bool takes_effect =
          op == Op::Sink || op == Op::Group || (op == Op::End && i == 0) || op == Op::After;
      if (is_effect && !takes_effect) return bad(n, "uses an effect as a value");
    }
    switch (op) {
      case Op::Range: {
        if (n.dtype() != DType::WeakInt) return bad(n, "is not weakint");
        if (!is_int(n.src(0).dtype())) return bad(n, "has an end of " + name(n.src(0).dtype()));
        const auto [it, added] = ranges_by_id_.emplace(n.id_arg(), n);
        if (!added && it->second != n) return bad(n, "has the id of another range");
        return Status::ok();
      }
      case Op::Index: {
        const Node param = n.src(0);
        if (!param.is(Op::Param)) return bad(n, "indexes what is no Param");
        if (n.dtype() != param.dtype()) return bad(n, "has not the dtype of its Param");
        if (n.source_count() - 1 != static_cast<int>(param.shape().size())) {
          return bad(n, "has " + std::to_string(n.source_count() - 1) + " indices for a shape of " +
                            ignis::to_string(param.shape()));
        }
        for (int i = 1; i < n.source_count(); ++i) {
          if (!is_int(n.src(i).dtype())) return bad(n, "has an index of " + name(n.src(i).dtype()));
        }
        return Status::ok();
      }
      case Op::Load:
        if (!n.src(0).is(Op::Index)) return bad(n, "reads without an Index");
        if (n.dtype() != n.src(0).dtype()) return bad(n, "has not the dtype of its Index");
        if (n.source_count() == 3) {
          if (!agrees(n.src(1), n.dtype()))
            return bad(n, "has an alternative of " + name(n.src(1).dtype()));
          if (n.src(2).dtype() != DType::Bool)
            return bad(n, "has a gate of " + name(n.src(2).dtype()));
        }
        return Status::ok();
      case Op::Store:
        if (n.dtype() != DType::Void) return bad(n, "has a value");
        if (!n.src(0).is(Op::Index)) return bad(n, "writes without an Index");
        if (!agrees(n.src(1), n.src(0).dtype())) {
          return bad(n, "writes " + name(n.src(1).dtype()) + " to " + name(n.src(0).dtype()));
        }
        if (n.source_count() == 3 && n.src(2).dtype() != DType::Bool)
          return bad(n, "has a gate that is no bool");
        return Status::ok();
      case Op::Reduce:
      case Op::End:
        for (int i = 1; i < n.source_count(); ++i) {
          if (!n.src(i).is(Op::Range)) return bad(n, "closes what is no Range");
        }
        if (op == Op::Reduce && !agrees(n.src(0), n.dtype()))
          return bad(n, "reduces " + name(n.src(0).dtype()));
        return Status::ok();
      case Op::Sink:
      case Op::Group:
        for (int i = 0; i < n.source_count(); ++i) {
          if (n.src(i).dtype() != DType::Void) return bad(n, "joins what is no effect");
        }
        return Status::ok();
      case Op::After:
        return n.src(0).dtype() == n.dtype() ? Status::ok()
                                             : Status(bad(n, "has not the dtype of its value"));
      default: return Status::ok();
    }
  }

  // Every store's value is closed by the loops of its index, or by Ends around it.
  Status check_effects(const Node& sink) {
    struct Item {
      Node effect;
      std::vector<Node> ended;
    };
    std::vector<Item> stack{{sink, {}}};
    while (!stack.empty()) {
      Item item = std::move(stack.back());
      stack.pop_back();
      const Node n = item.effect;
      if (n.is(Op::Store)) {
        std::vector<Node> loops = open_.of(n.src(0));
        loops.insert(loops.end(), item.ended.begin(), item.ended.end());
        std::vector<Node> open = open_.of(n.src(1));
        if (n.source_count() == 3) {
          const auto& gate = open_.of(n.src(2));
          open.insert(open.end(), gate.begin(), gate.end());
        }
        for (const Node& r : open) {
          if (std::find(loops.begin(), loops.end(), r) == loops.end())
            return bad(n, "leaves " + print_expr(r) + " open");
        }
        for (const Node& reduce : toposort(n.src(1))) {
          if (!reduce.is(Op::Reduce)) continue;
          for (int i = 1; i < reduce.source_count(); ++i) {
            if (std::find(loops.begin(), loops.end(), reduce.src(i)) != loops.end()) {
              return bad(
                  n, "stores over " + print_expr(reduce.src(i)) + ", which its value reduces over");
            }
          }
        }
        continue;
      }
      if (!n.is(Op::Sink) && !n.is(Op::Group) && !n.is(Op::End) && !n.is(Op::After)) {
        return bad(n, "is no effect");
      }
      const int effects = n.is(Op::End) ? 1 : n.source_count();
      std::vector<Node> ended = item.ended;
      for (int i = effects; i < n.source_count(); ++i) ended.push_back(n.src(i));
      for (int i = 0; i < effects; ++i) {
        if (n.src(i).dtype() == DType::Void) stack.push_back({n.src(i), ended});
      }
    }
    return Status::ok();
  }

  Status check_accesses(const Node& sink) {
    for (const Node& n : toposort(sink)) {
      if (!n.is(Op::Load) && !n.is(Op::Store)) continue;
      const Node index = n.src(0);
      bool gated = n.source_count() == 3;
      for (int i = 1; i < index.source_count(); ++i) gated |= carries_gate(index.src(i));
      const ParamArg param = decode_param(index.src(0));
      for (int i = 1; i < index.source_count(); ++i) {
        const auto dim = static_cast<size_t>(i - 1);
        Interval legal{0, param.shape[dim] - 1};
        if (param.layout.has_halo()) {
          legal.lo -= param.layout.halo_lo[dim];
          legal.hi += param.layout.halo_hi[dim];
        }
        if (index.src(i).is_invalid() || gated || runs_never(index)) continue;
        if (ranges_.interval(index.src(i)).inside(legal)) continue;
        const Interval proven = simplified_interval(index.src(i));
        if (proven.inside(legal)) continue;
        std::ostringstream text;
        text << "may leave its buffer: index " << dim << ", '" << print_expr(index.src(i))
             << "', lies in " << proven << " and may lie in " << legal;
        return bad(n, text.str());
      }
    }
    return Status::ok();
  }

  static bool carries_gate(const Node& index) {
    return index.is(Op::Where) && (index.src(2).is_invalid() || index.src(1).is_invalid());
  }
  // A loop without iterations around it: nothing is accessed.
  bool runs_never(const Node& index) {
    const auto& open = open_.of(index);
    return std::any_of(open.begin(), open.end(),
                       [&](const Node& r) { return ranges_.interval(r.src(0)).hi <= 0; });
  }
  Interval simplified_interval(const Node& index) {
    if (!scratch_) scratch_ = std::make_unique<Graph>();  // the graph under test stays as it is
    Simplifier simplifier(*scratch_);
    return simplifier.ranges().interval(simplifier(scratch_->import(index)));
  }

  RangeAnalysis ranges_;
  OpenRanges open_;
  std::unordered_map<int64_t, Node> ranges_by_id_;
  std::unique_ptr<Graph> scratch_;
};

}  // namespace

Status verify_tensor(std::span<const Node> roots) {
  for (const Node& n : toposort(roots)) {
    IGNIS_TRY(check_common(n));
    IGNIS_TRY(check_tensor_node(n));
  }
  return Status::ok();
}
Status verify_tensor(const Node& root) { return verify_tensor(std::span<const Node>(&root, 1)); }

Status verify_kernel(const Node& sink) { return KernelVerifier().run(sink); }

}  // namespace ignis::ir
