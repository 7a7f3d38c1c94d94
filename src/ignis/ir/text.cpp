#include "ignis/ir/text.h"

#include "ignis/ir/structure.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

namespace ignis::ir {
namespace {

constexpr AxisKind kAxisKinds[] = {AxisKind::Loop, AxisKind::Reduce, AxisKind::Thread,
                                   AxisKind::Vector, AxisKind::Unroll};

// ---- printing ----

std::string quoted(const std::string& text) {
  static const char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20 || u == 0x7F) {
      out += "\\x";
      out += kHex[u >> 4];
      out += kHex[u & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string exact_decimal(double v) {
  if (std::isnan(v)) return "nan";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  return std::string(buffer, end);
}

std::string constant_text(const Node& n) {
  if (n.is_invalid()) return "Invalid";
  if (is_float(n.dtype())) return exact_decimal(n.const_float());
  if (n.dtype() == DType::Bool) return n.const_int() != 0 ? "true" : "false";
  if (n.dtype() == DType::UInt64) return std::to_string(static_cast<uint64_t>(n.const_int()));
  return std::to_string(n.const_int());
}

std::string join(const std::vector<std::string>& parts) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) out += (i > 0 ? ", " : "") + parts[i];
  return out;
}

std::string shape_text(const Shape& shape) {
  if (shape.empty()) return "scalar";
  std::string out;
  for (size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? "x" : "") + std::to_string(shape[i]);
  return out;
}

std::vector<std::string> raw_arg(const Arg& arg) {
  std::vector<std::string> parts;
  for (const int64_t v : arg.ints) parts.push_back(std::to_string(v));
  if (!arg.text.empty()) parts.push_back(quoted(arg.text));
  return parts;
}

std::vector<std::string> param_arg(const Node& n) {
  const ParamArg param = decode_param(n);
  std::vector<std::string> parts{std::to_string(param.slot), quoted(param.name),
                                 "shape " + shape_text(param.shape)};
  if (!param.layout.digits.empty()) parts.push_back("layout " + param.layout.to_string());
  // A layout whose short form does not read back the same (a halo of zeros, say) is printed in full.
  const auto layout =
      param.layout.digits.empty()
          ? Result<Layout>(Layout{})
          : parse_layout(param.layout.to_string(), static_cast<int>(param.shape.size()));
  ParamArg again = param;
  if (layout) again.layout = *layout;
  if (!layout || encode(again) != n.arg()) {
    parts = raw_arg(n.arg());
    parts.insert(parts.begin(), "raw");
  }
  return parts;
}

std::vector<std::string> arg_text(const Node& n) {
  switch (n.op()) {
    case Op::Param: return param_arg(n);
    case Op::Range: return {letter(n.axis_kind()) + std::to_string(n.id_arg())};
    case Op::Reduce:
    case Op::ReduceAxes: {
      std::vector<std::string> parts = raw_arg(n.arg());
      parts[0] = std::string(to_string(n.reduce_op()));
      return parts;
    }
    default: return raw_arg(n.arg());
  }
}

// ---- parsing ----

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Reads one line from left to right.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  void skip_space() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\t' || text_[0] == '\r'))
      text_.remove_prefix(1);
  }
  bool at_end() {
    skip_space();
    return text_.empty();
  }
  char peek() {
    skip_space();
    return text_.empty() ? '\0' : text_[0];
  }
  bool eat(std::string_view token) {
    skip_space();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  std::string_view word() {
    skip_space();
    return take(is_word);
  }
  /// What `of` accepts, without skipping space first.
  template <typename F>
  std::string_view take(F of) {
    size_t n = 0;
    while (n < text_.size() && of(text_[n])) ++n;
    const std::string_view result = text_.substr(0, n);
    text_.remove_prefix(n);
    return result;
  }
  template <typename T>
  std::optional<T> number() {
    skip_space();
    T value{};
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }
  std::optional<std::string> string() {
    if (!eat("\"")) return std::nullopt;
    std::string out;
    while (!text_.empty()) {
      const char c = text_[0];
      text_.remove_prefix(1);
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (text_.empty()) break;
      const char e = text_[0];
      text_.remove_prefix(1);
      if (e != 'x') {
        out += e;
        continue;
      }
      if (text_.size() < 2) break;
      unsigned value = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + 2, value, 16);
      if (error != std::errc() || end != text_.data() + 2) return std::nullopt;
      out += static_cast<char>(value);
      text_.remove_prefix(2);
    }
    return std::nullopt;
  }
  std::string rest() const { return std::string(text_.substr(0, 40)); }

 private:
  std::string_view text_;
};

Error bad(const std::string& what) { return Error(ErrorCode::InvalidArgument, what); }

class Parser {
 public:
  explicit Parser(Graph& graph) : graph_(graph) {}

  Result<std::vector<Node>> run(std::string_view text) {
    int line = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      ++line;
      if (const Status status = parse_line(text.substr(0, end)); !status) {
        return Error(ErrorCode::InvalidArgument,
                     "Line " + std::to_string(line) + ": " + status.error().message());
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (!roots_.empty()) return roots_;
    if (!last_) return bad("Line " + std::to_string(line) + ": The text has no node.");
    return std::vector<Node>{last_};
  }

 private:
  Status parse_line(std::string_view line) {
    Cursor at(strip_comment(line));
    if (at.at_end()) return Status::ok();
    if (!roots_.empty()) return bad("Text follows the roots.");
    if (at.eat("=>")) {
      do {
        IGNIS_TRY_ASSIGN(const Node root, node(at));
        roots_.push_back(root);
      } while (at.eat(","));
      return at.at_end() ? Status::ok() : Status(bad("Unexpected '" + at.rest() + "'."));
    }
    IGNIS_TRY_ASSIGN(const uint64_t label, this->label(at));
    if (nodes_.contains(label)) return bad("%" + std::to_string(label) + " is defined twice.");
    if (!at.eat("=")) return bad("'=' is expected, not '" + at.rest() + "'.");
    IGNIS_TRY_ASSIGN(const Op op, parse_op(at.word()));
    if (!at.eat(".")) return bad("'.' and a dtype are expected, not '" + at.rest() + "'.");
    DType dtype = DType::Void;
    int lanes = 1;
    IGNIS_TRY(parse_type(at.word(), dtype, lanes));
    IGNIS_TRY_ASSIGN(const Node made, parse_node(at, op, dtype, lanes));
    if (!at.at_end()) return bad("Unexpected '" + at.rest() + "'.");
    nodes_[label] = made;
    last_ = made;
    return Status::ok();
  }

  static std::string_view strip_comment(std::string_view line) {
    bool in_string = false;
    for (size_t i = 0; i + 1 < line.size(); ++i) {
      if (line[i] == '\\' && in_string) ++i;
      else if (line[i] == '"') in_string = !in_string;
      else if (!in_string && line[i] == '/' && line[i + 1] == '/') return line.substr(0, i);
    }
    return line;
  }

  static Result<uint64_t> label(Cursor& at) {
    if (!at.eat("%")) return bad("A node '%n' is expected, not '" + at.rest() + "'.");
    const auto number = at.number<uint64_t>();
    if (!number) return bad("A node's number is expected, not '" + at.rest() + "'.");
    return *number;
  }
  Result<Node> node(Cursor& at) {
    IGNIS_TRY_ASSIGN(const uint64_t number, label(at));
    const auto it = nodes_.find(number);
    if (it == nodes_.end()) return bad("%" + std::to_string(number) + " is not defined.");
    return it->second;
  }

  // "f32", "f32x8"
  static Status parse_type(std::string_view word, DType& dtype, int& lanes) {
    const size_t x = word.rfind('x');
    if (x != std::string_view::npos && x + 1 < word.size() &&
        std::all_of(word.begin() + static_cast<std::ptrdiff_t>(x) + 1, word.end(), is_digit)) {
      const auto [end, error] =
          std::from_chars(word.data() + x + 1, word.data() + word.size(), lanes);
      if (error != std::errc()) return bad("'" + std::string(word) + "' has too many lanes.");
      word = word.substr(0, x);
    }
    IGNIS_TRY_ASSIGN(dtype, parse_dtype(word));
    return Status::ok();
  }

  Result<Node> parse_node(Cursor& at, Op op, DType dtype, int lanes) {
    if (op == Op::Const) return parse_constant(at, dtype);
    std::vector<Node> sources;
    if (at.peek() == '%') {
      do {
        IGNIS_TRY_ASSIGN(const Node source, node(at));
        sources.push_back(source);
      } while (at.eat(","));
    }
    Arg arg;
    if (at.eat("[")) {
      IGNIS_TRY(parse_arg(at, op, arg));
      if (!at.eat("]")) return bad("']' is expected, not '" + at.rest() + "'.");
    }
    IGNIS_TRY(check_structure(op, dtype, lanes, sources, arg));
    return graph_.make(op, dtype, sources, std::move(arg), lanes);
  }

  Result<Node> parse_constant(Cursor& at, DType dtype) {
    if (dtype == DType::Void) return bad("A constant has a value.");
    if (at.eat("Invalid")) return graph_.invalid(dtype);
    if (dtype == DType::Bool) {
      if (at.eat("true")) return graph_.constant(dtype, 1);
      if (at.eat("false")) return graph_.constant(dtype, 0);
      return bad("true or false is expected, not '" + at.rest() + "'.");
    }
    if (is_float(dtype)) {
      const auto v = at.number<double>();
      if (!v) return bad("A number is expected, not '" + at.rest() + "'.");
      return graph_.constant_float(dtype, *v);
    }
    if (dtype == DType::UInt64) {
      const auto v = at.number<uint64_t>();
      if (!v) return bad("A uint64 is expected, not '" + at.rest() + "'.");
      return graph_.constant(dtype, static_cast<int64_t>(*v));
    }
    const auto v = at.number<int64_t>();
    if (!v) return bad("An integer is expected, not '" + at.rest() + "'.");
    return graph_.constant(dtype, *v);
  }

  Status parse_arg(Cursor& at, Op op, Arg& arg) {
    if (op == Op::Param && !at.eat("raw")) return parse_param(at, arg);
    if (op == Op::Range) {
      const char kind = at.peek();
      for (const AxisKind k : kAxisKinds) {
        if (letter(k) != kind) continue;
        at.eat(std::string_view(&kind, 1));
        const auto id = at.number<int64_t>();
        if (!id) return bad("A range's id is expected, not '" + at.rest() + "'.");
        arg.ints = {*id, static_cast<int64_t>(k)};
        return Status::ok();
      }
      return bad("A range's kind is one of L R t v u, not '" + at.rest() + "'.");
    }
    bool first = true;
    do {
      if (at.peek() == ']') return first ? Status::ok() : Status(bad("An argument is expected."));
      if (first && (op == Op::Reduce || op == Op::ReduceAxes)) {
        IGNIS_TRY_ASSIGN(const Op by, parse_op(at.word()));
        arg.ints.push_back(static_cast<int64_t>(by));
      } else if (at.peek() == '"') {
        const auto text = at.string();
        if (!text) return bad("The text is not closed.");
        arg.text = *text;
        return Status::ok();
      } else {
        const auto v = at.number<int64_t>();
        if (!v) return bad("An integer is expected, not '" + at.rest() + "'.");
        arg.ints.push_back(*v);
      }
      first = false;
    } while (at.eat(","));
    return Status::ok();
  }

  // slot, "name", shape 2x3[, layout …]
  static Status parse_param(Cursor& at, Arg& arg) {
    ParamArg param;
    const auto slot = at.number<int64_t>();
    if (!slot || !at.eat(",")) return bad("A Param's slot is expected, not '" + at.rest() + "'.");
    param.slot = *slot;
    const auto name = at.string();
    if (!name || !at.eat(",") || !at.eat("shape"))
      return bad("A Param's name and shape are expected.");
    param.name = *name;
    if (!at.eat("scalar")) {
      do {
        const auto extent = at.number<int64_t>();
        if (!extent || *extent < 0 || *extent > kMaxElements || param.shape.size() >= kMaxRank) {
          return bad("A Param's extent is expected, not '" + at.rest() + "'.");
        }
        param.shape.push_back(*extent);
      } while (at.eat("x"));
    }
    if (at.eat(",")) {
      if (!at.eat("layout")) return bad("A layout is expected, not '" + at.rest() + "'.");
      at.skip_space();
      const std::string_view text = at.take([](char c) {
        return is_digit(c) || c == ':' || c == 'x' || c == ',' || c == ';' || c == '+';
      });
      IGNIS_TRY_ASSIGN(param.layout, parse_layout(text, static_cast<int>(param.shape.size())));
    }
    arg = encode(param);
    return Status::ok();
  }

  Graph& graph_;
  std::unordered_map<uint64_t, Node> nodes_;
  std::vector<Node> roots_;
  Node last_;
};

}  // namespace

std::string print_text(std::span<const Node> roots) {
  std::string out;
  std::unordered_map<uint32_t, size_t> labels;
  const auto name = [&](const Node& n) { return "%" + std::to_string(labels.at(n.id())); };
  for (const Node& n : toposort(roots)) {
    const size_t label = labels.size();
    labels[n.id()] = label;
    out += name(n) + " = ";
    out += to_string(n.op());
    out += '.';
    out += to_string(n.dtype());
    if (n.lanes() != 1) out += "x" + std::to_string(n.lanes());
    std::vector<std::string> sources;
    for (int i = 0; i < n.source_count(); ++i) sources.push_back(name(n.src(i)));
    if (!sources.empty()) out += " " + join(sources);
    if (n.is(Op::Const)) {
      out += " " + constant_text(n);
    } else if (const auto arg = arg_text(n); !arg.empty()) {
      std::string text = join(arg);
      if (arg[0] == "raw") text.erase(3, 1);  // no comma after the word
      out += " [" + text + "]";
    }
    out += '\n';
  }
  out += "=> ";
  for (size_t i = 0; i < roots.size(); ++i) out += (i > 0 ? ", " : "") + name(roots[i]);
  return out + "\n";
}
std::string print_text(const Node& root) { return print_text(std::span<const Node>(&root, 1)); }

Result<std::vector<Node>> parse_text(Graph& graph, std::string_view text) {
  return Parser(graph).run(text);
}

Result<Layout> parse_layout(std::string_view text, int rank) {
  const auto refuse = [&] {
    return bad("'" + std::string(text.substr(0, 80)) + "' is no layout.");
  };
  Layout layout;
  Cursor at(text);
  const auto dim_of = [&](std::optional<int64_t> dim) { return dim && *dim >= 0 && *dim < rank; };
  if (at.peek() != ';' && !at.at_end()) {
    do {
      const auto dim = at.number<int64_t>();
      if (!dim_of(dim) || !at.eat(":")) return refuse();
      const auto divisor = at.number<int64_t>();
      if (!divisor || *divisor < 1 || *divisor > kMaxElements || !at.eat("x")) return refuse();
      const auto extent = at.number<int64_t>();
      if (!extent || *extent < 0 || *extent > kMaxElements) return refuse();
      layout.digits.push_back({static_cast<int>(*dim), *divisor, *extent});
    } while (at.eat(","));
  }
  while (at.eat(";")) {
    const auto dim = at.number<int64_t>();
    if (!dim_of(dim) || !at.eat("+")) return refuse();
    const auto lo = at.number<int64_t>();
    if (!lo || *lo < 0 || *lo > kMaxElements || !at.eat("+")) return refuse();
    const auto hi = at.number<int64_t>();
    if (!hi || *hi < 0 || *hi > kMaxElements) return refuse();
    layout.halo_lo.resize(static_cast<size_t>(rank));
    layout.halo_hi.resize(static_cast<size_t>(rank));
    layout.halo_lo[static_cast<size_t>(*dim)] = *lo;
    layout.halo_hi[static_cast<size_t>(*dim)] = *hi;
  }
  if (!at.at_end()) return refuse();
  return layout;
}

}  // namespace ignis::ir
