#include "ignis/codegen/lower/dtypes.h"

#include "ignis/base/float_formats.h"
#include "ignis/codegen/lower/float_codes.h"
#include "ignis/codegen/lower/walk.h"

namespace ignis::codegen {

using ir::Node;
using ir::Op;

namespace {

class Emulator {
 public:
  explicit Emulator(ir::Graph& graph) : graph_(graph) {}

  Node rewrite(const Node& node, std::span<const Node> sources) {
    const bool is_narrow = is_narrow_float(node.dtype());
    switch (node.op()) {
      case Op::Param:
      case Op::Index:
      case Op::Reg:
        if (!is_narrow) break;
        return graph_.make(node.op(), code_dtype(node.dtype()), sources, node.arg(), node.lanes());
      case Op::Const:
        if (!is_narrow || node.is_invalid()) break;
        return with_code(graph_.constant_float(DType::Float32, node.const_float()),
                         constant_code(node));
      case Op::Load: return is_narrow ? load(node, sources) : graph_.rebuild(node, sources);
      case Op::Store: return store(node, sources);
      case Op::Cast: return cast(node, sources[0]);
      case Op::Bitcast: return bitcast(node, sources[0]);
      case Op::Where: return is_narrow ? select(node, sources) : graph_.rebuild(node, sources);
      default: break;
    }
    if (!is_narrow) return graph_.rebuild(node, sources);
    return graph_.make(node.op(), DType::Float32, sources, node.arg(), node.lanes());
  }

 private:
  /// Remembers the code that a float32 value stands for: moves then need no conversion.
  Node with_code(const Node& value, const Node& code) {
    codes_.emplace(value, code);
    return value;
  }
  Node decoded(DType format, const Node& code) {
    if (code.is_const()) {  // fold: one conversion routine for all
      const double value = decode_float(format, static_cast<uint64_t>(code.const_int()));
      return with_code(graph_.constant_float(DType::Float32, value), code);
    }
    const Node value = decode(format, Expr(graph_, code)).node();
    formats_[value] = format;
    return with_code(value, code);
  }
  Node constant_code(const Node& constant) {
    const uint64_t code = encode_float(constant.dtype(), constant.const_float());
    return graph_.constant(code_dtype(constant.dtype()), static_cast<int64_t>(code));
  }
  /// The code of a value of `format`: the one it was made from, or its rounding.
  Node code_of(DType format, const Node& value) {
    if (value.is_const()) {
      const uint64_t code = encode_float(format, value.const_float());
      return graph_.constant(code_dtype(format), static_cast<int64_t>(code));
    }
    const auto known = formats_.find(value);
    if (known != formats_.end() && known->second == format) return codes_.at(value);
    return encode(format, Expr(graph_, value)).node();
  }

  Node load(const Node& node, std::span<const Node> sources) {
    const DType format = node.dtype();
    std::vector<Node> inputs(sources.begin(), sources.end());
    if (inputs.size() > 1)
      inputs[1] = node.src(1).is_invalid() ? graph_.constant(code_dtype(format), 0)
                                           : code_of(format, inputs[1]);
    return decoded(format,
                   graph_.make(Op::Load, code_dtype(format), inputs, node.arg(), node.lanes()));
  }

  Node store(const Node& node, std::span<const Node> sources) {
    const DType format = node.src(1).dtype();
    if (!is_narrow_float(format)) return graph_.rebuild(node, sources);
    std::vector<Node> inputs(sources.begin(), sources.end());
    inputs[1] = code_of(format, inputs[1]);
    return graph_.rebuild(node, inputs);
  }

  Node cast(const Node& node, const Node& source) {
    const DType from = node.src(0).dtype(), to = node.dtype();
    if (!is_narrow_float(to)) {
      return is_narrow_float(from) ? graph_.cast(source, to)
                                   : graph_.rebuild(node, std::span<const Node>(&source, 1));
    }
    if (source.is_const() && source.dtype() != DType::UInt64) {
      return decoded(to, constant_code(graph_.constant_float(to, source.const_float())));
    }
    return decoded(to, encode(to, to_float32(to, source)).node());
  }

  /// The operand of a cast as a float32 that still rounds correctly to `to`.
  Expr to_float32(DType to, const Node& source) {
    const Expr x(graph_, source);
    const DType from = source.dtype();
    if (from == DType::Float64) return float64_to_float32_odd(x);
    if (from == DType::Float32 || from == DType::Bool || size_bytes(from) <= 2)
      return x.cast(DType::Float32);
    // float16 and fp8 overflow far below 2^24, so only bfloat16 sees an integer rounded twice.
    if (to != DType::BFloat16) return x.cast(DType::Float32);
    if (size_bytes(from) == 4) return float64_to_float32_odd(x.cast(DType::Float64));
    // 64 bits: beyond 2^52 the low 12 bits only matter as "not zero".
    const Expr low = x.integer(0xFFF), limit = x.integer(int64_t{1} << 52);
    const Expr has_rest = differ(x & low, x.integer(0));
    const Expr sticky = (x & x.integer(~int64_t{0xFFF})) | has_rest.cast(from).shl(12);
    Expr is_small = x < limit;
    if (!is_unsigned(from)) is_small = is_small & (x > -limit);
    return float64_to_float32_odd(where(is_small, x, sticky).cast(DType::Float64));
  }

  /// Bits of a narrow float are its code; nothing is converted.
  Node bitcast(const Node& node, const Node& source) {
    const DType from = node.src(0).dtype(), to = node.dtype();
    Node word = source;
    if (is_narrow_float(from)) word = code_of(from, source);
    if (is_narrow_float(to)) {
      const DType code = code_dtype(to);
      return decoded(to, word.dtype() == code
                             ? word
                             : graph_.make(Op::Bitcast, code, {word}, {}, node.lanes()));
    }
    return word.dtype() == to ? word : graph_.make(Op::Bitcast, to, {word}, {}, node.lanes());
  }

  /// A choice between two codes is a code.
  Node select(const Node& node, std::span<const Node> sources) {
    const DType format = node.dtype();
    const auto has_code = [&](int i) {
      const Node value = sources[static_cast<size_t>(i)];
      return value.is_const() || (formats_.contains(value) && formats_.at(value) == format);
    };
    if (has_code(1) && has_code(2)) {
      return decoded(format, graph_.make(Op::Where, code_dtype(format),
                                         {sources[0], code_of(format, sources[1]),
                                          code_of(format, sources[2])},
                                         {}, node.lanes()));
    }
    return graph_.make(Op::Where, DType::Float32, sources, {}, node.lanes());
  }

  ir::Graph& graph_;
  std::unordered_map<Node, Node> codes_;     // of decoded values
  std::unordered_map<Node, DType> formats_;  // and their format
};

}  // namespace

Node emulate_dtypes(ir::Graph& graph, const Node& sink, const Target& target) {
  (void)target;  // no CPU target is taken to compute in a narrow float
  bool has_narrow = false;
  for (const Node& node : ir::toposort(sink)) has_narrow |= is_narrow_float(node.dtype());
  if (!has_narrow) return sink;
  Emulator emulator(graph);
  return rebuild_all(sink, [&](const Node& node, std::span<const Node> sources) {
    return emulator.rewrite(node, sources);
  });
}

}  // namespace ignis::codegen
