#include "ignis/codegen/render/c.h"

#include "ignis/codegen/codegen.h"
#include "ignis/codegen/render/semantics.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace ignis::codegen {

using ir::Node;
using ir::Op;

namespace {

std::string bare_literal(const Node& n) {
  const DType d = n.dtype();
  if (is_float(d)) {
    const double v = n.const_float();
    const char* const suffix = d == DType::Float32 ? "f" : "";
    if (std::isnan(v)) return fmt::format("__builtin_nan{}(\"\")", suffix);
    if (std::isinf(v)) return fmt::format("{}__builtin_inf{}()", v < 0 ? "-" : "", suffix);
    return fmt::format("{:a}{}", v, suffix);
  }
  const int64_t v = n.const_int();
  if (d == DType::UInt64) return fmt::format("{}ull", static_cast<uint64_t>(v));
  if (d == DType::UInt32) return fmt::format("{}u", static_cast<uint32_t>(v));
  // C has no negative literals: the lowest value is a difference.
  if (v == INT64_MIN) return "-9223372036854775807ll - 1";
  if (d == DType::Int64) return fmt::format("{}ll", v);
  return v == INT32_MIN ? "-2147483647 - 1" : std::to_string(v);
}

std::string literal(const Node& n) {
  const std::string text = bare_literal(n);
  return text[0] == '-' ? "(" + text + ")" : text;
}

class CRenderer {
 public:
  CRenderer(const Program& program, const Target& target) : program_(program), target_(target) {}

  Result<std::string> render() {
    IGNIS_TRY(collect_types());
    text_ = fmt::format("/* {} for {} */\n{}\n", entry_symbol(program_), target_.name(), kCHelpers);
    for (const auto& [dtype, lanes] : vector_types_) declare_vector(dtype, lanes);
    text_ += fmt::format("\nvoid {}(void* const* buffers, i64 part, i64 parts) {{\n",
                         entry_symbol(program_));
    for (const Node& n : program_.list) render_node(n);
    text_ += "}\n";
    return text_;
  }

 private:
  // ---- types -------------------------------------------------------------------------------------------------

  Status collect_types() {
    for (const Node& n : program_.list) {
      if (n.lanes() == 1) continue;
      if (!std::has_single_bit(static_cast<unsigned>(n.lanes()))) {
        return Error(
            ErrorCode::Unsupported,
            fmt::format("The C renderer has no vectors of {} lanes, which kernel '{}' uses.",
                        n.lanes(), program_.name));
      }
      vector_types_.emplace(n.dtype(), n.lanes());
    }
    return Status::ok();
  }

  /// `f32x8` is the value, `f32x8_u` the same in memory at an element's alignment.
  void declare_vector(DType dtype, int lanes) {
    const std::string type = c_type(dtype, lanes), element = c_type(dtype, 1);
    const int bytes = lanes * size_bytes(dtype);
    text_ +=
        fmt::format("typedef {0} {1} __attribute__((vector_size({2})));\n", element, type, bytes);
    text_ += fmt::format("typedef {0} {1}_u __attribute__((vector_size({2}), aligned({3})));\n",
                         element, type, bytes, size_bytes(dtype));
  }

  // ---- statements --------------------------------------------------------------------------------------------

  void line(const std::string& statement) {
    text_ += std::string(static_cast<size_t>(2 * depth_), ' ') + statement + "\n";
  }
  static std::string name(const Node& n) { return fmt::format("v{}", n.id()); }
  std::string value(const Node& n) const { return n.is(Op::Const) ? literal(n) : name(n); }
  static std::string type(const Node& n) { return c_type(n.dtype(), n.lanes()); }
  void define(const Node& n, const std::string& expression) {
    line(fmt::format("{} {} = {};", type(n), name(n), expression));
  }
  /// A vector computed lane by lane.
  void define_lanes(const Node& n, const std::string& expression) {
    line(fmt::format("{} {}; LANES({}) {}[l] = {};", type(n), name(n), n.lanes(), name(n),
                     expression));
  }
  void define_list(const Node& n, const std::vector<std::string>& lanes) {
    if (n.lanes() == 1) return define(n, lanes[0]);
    define(n, fmt::format("({}){{{}}}", type(n), fmt::join(lanes, ", ")));
  }

  void render_node(const Node& n) {
    switch (n.op()) {
      case Op::Const: break;
      case Op::Param: param(n); break;
      case Op::Special: define(n, n.arg().text); break;
      case Op::Range: open_loop(n); break;
      case Op::End:
        --depth_;
        line("}");
        break;
      case Op::Reg: line(fmt::format("{} {};", type(n), name(n))); break;
      case Op::Index: index(n); break;
      case Op::Load: n.src(0).is(Op::Reg) ? define(n, name(n.src(0))) : load(n); break;
      case Op::Store: store(n); break;
      case Op::Stack: stack(n); break;
      case Op::Broadcast:
        define_list(n, std::vector<std::string>(static_cast<size_t>(n.lanes()), value(n.src(0))));
        break;
      case Op::Extract: define(n, lane(n.src(0), n.arg().ints[0])); break;
      case Op::Shuffle: shuffle(n); break;
      default: elementwise(n); break;
    }
  }

  void open_loop(const Node& n) {
    if (is_branch(n)) {
      line(fmt::format("if ({}) {{", value(n.src(0).src(0))));
      ++depth_;
      line(fmt::format("i64 {} = 0;", name(n)));
      return;
    }
    line(fmt::format("for (i64 {0} = 0; {0} < {1}; ++{0}) {{", name(n), value(n.src(0))));
    ++depth_;
  }

  void param(const Node& n) {
    line(fmt::format("{0}* {1} = ({0}*)buffers[{2}];", c_type(n.dtype(), 1), name(n), n.id_arg()));
  }
  void index(const Node& n) {
    line(fmt::format("{}* {} = {} + {};", c_type(n.dtype(), 1), name(n), name(n.src(0)),
                     value(n.src(1))));
  }

  static std::string lane(const Node& n, int64_t i) {
    return n.lanes() == 1 ? (n.is(Op::Const) ? literal(n) : name(n))
                          : fmt::format("{}[{}]", name(n), i);
  }
  void stack(const Node& n) {
    std::vector<std::string> lanes;
    for (int i = 0; i < n.source_count(); ++i) lanes.push_back(value(n.src(i)));
    define_list(n, lanes);
  }
  void shuffle(const Node& n) {
    const int width = n.src(0).lanes();
    std::vector<std::string> lanes;
    for (const int64_t i : n.arg().ints) lanes.push_back(lane(n.src(i < width ? 0 : 1), i % width));
    define_list(n, lanes);
  }

  /// Operations that C has for whole vectors with the meaning of ours.
  static bool is_vector_operator(const Node& n) {
    if (n.dtype() == DType::Bool) return false;
    return n.is(Op::Add) || n.is(Op::Sub) || n.is(Op::Mul) || n.is(Op::Fdiv) || n.is(Op::And) ||
           n.is(Op::Or) || n.is(Op::Xor);
  }
  void elementwise(const Node& n) {
    const bool whole = n.lanes() == 1 || is_vector_operator(n);
    std::vector<std::string> operands;
    for (int i = 0; i < n.source_count(); ++i) {
      operands.push_back(value(n.src(i)) + (whole ? "" : "[l]"));
    }
    if (n.lanes() > 1 && whole) {
      const char* const sign = n.is(Op::Add)    ? "+"
                               : n.is(Op::Sub)  ? "-"
                               : n.is(Op::Mul)  ? "*"
                               : n.is(Op::Fdiv) ? "/"
                               : n.is(Op::And)  ? "&"
                               : n.is(Op::Or)   ? "|"
                                                : "^";
      return define(n, fmt::format("{} {} {}", operands[0], sign, operands[1]));
    }
    const std::string expression = c_scalar_expression(n, target_, operands);
    n.lanes() == 1 ? define(n, expression) : define_lanes(n, expression);
  }

  // ---- memory ------------------------------------------------------------------------------------------------

  void load(const Node& n) {
    const std::string at = name(n.src(0));
    const std::string normal = n.dtype() == DType::Bool ? " != 0" : "";  // any byte but 0 is true
    if (n.source_count() == 3 && (n.lanes() > 1)) {
      const std::string gate = value(n.src(2)) + (n.src(2).lanes() > 1 ? "[l]" : "");
      return define_lanes(n,
                          fmt::format("{} ? {}[l]{} : {}[l]", gate, at, normal, value(n.src(1))));
    }
    if (n.source_count() == 3) {
      return define(n,
                    fmt::format("{} ? *{}{} : {}", value(n.src(2)), at, normal, value(n.src(1))));
    }
    if (n.lanes() == 1) return define(n, fmt::format("*{}{}", at, normal));
    if (n.dtype() == DType::Bool) return define_lanes(n, fmt::format("{}[l]{}", at, normal));
    define(n, fmt::format("*({}_u*){}", type(n), at));
  }

  void store(const Node& n) {
    const Node to = n.src(0), v = n.src(1);
    if (to.is(Op::Reg)) return line(fmt::format("{} = {};", name(to), value(v)));
    const std::string at = name(to);
    if (n.source_count() == 3 && n.src(2).lanes() > 1) {
      return line(fmt::format("LANES({}) if ({}[l]) {}[l] = {}[l];", v.lanes(), value(n.src(2)), at,
                              value(v)));
    }
    const std::string gate = n.source_count() == 3 ? fmt::format("if ({}) ", value(n.src(2))) : "";
    const std::string place = v.lanes() == 1 ? "*" + at : fmt::format("*({}_u*){}", type(v), at);
    line(fmt::format("{}{} = {};", gate, place, value(v)));
  }

  const Program& program_;
  const Target& target_;
  std::set<std::pair<DType, int>> vector_types_;
  std::string text_;
  int depth_ = 1;
};

}  // namespace

Result<std::string> render_c(const Program& program, const Target& target) {
  IGNIS_TRY(verify_program(program));
  return CRenderer(program, target).render();
}

}  // namespace ignis::codegen
