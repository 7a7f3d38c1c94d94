#include "ignis/codegen/codegen.h"

#include <sstream>
#include <unordered_map>
#include <vector>

namespace ignis::codegen {

using ir::Node;
using ir::Op;

namespace {

bool is_program_dtype(DType d) {
  return d == DType::Bool || (is_int(d) && !is_weak(d)) || d == DType::Float32 ||
         d == DType::Float64;
}

/// What is wrong with one node's own form; empty when nothing is. Order and nesting are the Verifier's.
class NodeRules {
 public:
  explicit NodeRules(const Node& node) : n_(node) {}

  std::string check() const {
    if (n_.lanes() < 1) return "has no lanes";
    switch (n_.op()) {
      case Op::Const:
        if (n_.is_invalid()) return "is an Invalid that no pass removed";
        return scalar(n_) ? own_dtype() : "is a constant of more than one lane";
      case Op::Special:
        if (n_.arg().text != "part" && n_.arg().text != "parts")
          return "is an unknown special value";
        return is_index(n_) ? "" : "is not an int64 scalar";
      case Op::Param: return own_dtype();
      case Op::Range:
        if (n_.source_count() != 1) return "has other sources than its end";
        return is_index(n_) && is_index(src(0))
                   ? ""
                   : "has an end or counter other than an int64 scalar";
      case Op::End:
        return n_.source_count() > 0 && closed_range() ? "" : "closes no range, or several";
      case Op::Reg: return own_dtype();
      case Op::Index:
        if (n_.source_count() != 2 || !src(0).is(Op::Param)) return "is not [param, offset]";
        return is_index(src(1)) ? "" : "has an offset other than an int64 scalar";
      case Op::Load: return load();
      case Op::Store: return store();
      case Op::Stack: return stack();
      case Op::Broadcast:
        return scalar(src(0)) && same_dtype(src(0)) ? ""
                                                    : "does not broadcast a scalar of its dtype";
      case Op::Extract:
        if (n_.arg().ints.size() != 1 || !lane_in(n_.arg().ints[0], src(0).lanes()))
          return "names no lane of its source";
        return scalar(n_) && same_dtype(src(0)) ? "" : "is not a scalar of its source's dtype";
      case Op::Shuffle: return shuffle();
      default: break;
    }
    if (!ir::is_elementwise(n_.op())) return "is not legal in a program";
    return elementwise();
  }

  /// The one range an End closes, or null.
  Node closed_range() const {
    Node range;
    for (int i = 0; i < n_.source_count(); ++i) {
      if (!src(i).is(Op::Range)) continue;
      if (range) return {};
      range = src(i);
    }
    return range;
  }

 private:
  Node src(int i) const { return n_.src(i); }
  static bool scalar(const Node& n) { return n.lanes() == 1; }
  static bool is_index(const Node& n) { return n.dtype() == DType::Int64 && scalar(n); }
  static bool lane_in(int64_t lane, int64_t lanes) { return lane >= 0 && lane < lanes; }
  bool same_dtype(const Node& s) const { return s.dtype() == n_.dtype(); }
  bool same_type(const Node& s) const { return same_dtype(s) && s.lanes() == n_.lanes(); }
  std::string own_dtype() const {
    return is_program_dtype(n_.dtype()) ? "" : "has a dtype that programs do not have";
  }

  /// A gate has one lane for the whole access or one for each.
  static bool is_gate_for(const Node& gate, int lanes) {
    return gate.dtype() == DType::Bool && (scalar(gate) || gate.lanes() == lanes);
  }

  std::string load() const {
    if (n_.source_count() == 0) return "has no source";
    if (src(0).is(Op::Reg)) {
      if (n_.source_count() != 1) return "reads a register behind a gate";
      return same_type(src(0)) ? "" : "differs in dtype or lanes from its register";
    }
    if (!src(0).is(Op::Index)) return "reads neither a register nor an index";
    if (n_.source_count() != 1 && n_.source_count() != 3)
      return "is not [index] or [index, alternative, gate]";
    if (src(0).src(0).dtype() != n_.dtype()) return "has another dtype than its buffer";
    if (n_.source_count() == 1) return "";
    if (!same_type(src(1))) return "differs in dtype or lanes from its alternative";
    return is_gate_for(src(2), n_.lanes()) ? ""
                                           : "has a gate that is no bool of 1 or its own lanes";
  }

  std::string store() const {
    if (n_.source_count() < 2) return "stores no value";
    const Node to = src(0), v = src(1);
    if (to.is(Op::Reg)) {
      if (n_.source_count() != 2) return "writes a register behind a gate";
      return v.dtype() == to.dtype() && v.lanes() == to.lanes()
                 ? ""
                 : "differs in dtype or lanes from its register";
    }
    if (!to.is(Op::Index)) return "writes neither a register nor an index";
    if (n_.source_count() > 3) return "is not [index, value] or [index, value, gate]";
    if (to.src(0).dtype() != v.dtype()) return "stores another dtype than its buffer's";
    if (n_.source_count() == 2) return "";
    return is_gate_for(src(2), v.lanes()) ? ""
                                          : "has a gate that is no bool of 1 or the value's lanes";
  }

  std::string stack() const {
    if (n_.source_count() != n_.lanes()) return "has not one source for each lane";
    for (int i = 0; i < n_.source_count(); ++i) {
      if (!scalar(src(i)) || !same_dtype(src(i)))
        return "has a source that is no scalar of its dtype";
    }
    return "";
  }

  std::string shuffle() const {
    if (!same_dtype(src(0)) || !same_dtype(src(1)) || src(0).lanes() != src(1).lanes()) {
      return "has sources of different dtype or lanes";
    }
    if (static_cast<int>(n_.arg().ints.size()) != n_.lanes())
      return "names not one source lane for each lane";
    for (const int64_t lane : n_.arg().ints) {
      if (!lane_in(lane, 2 * static_cast<int64_t>(src(0).lanes())))
        return "names a lane beyond its sources";
    }
    return "";
  }

  std::string elementwise() const {
    for (int i = 0; i < n_.source_count(); ++i) {
      if (src(i).lanes() != n_.lanes()) return "has an operand of other lanes";
      if (!is_program_dtype(src(i).dtype()))
        return "has an operand of a dtype that programs do not have";
    }
    if (const std::string wrong = own_dtype(); !wrong.empty()) return wrong;
    const DType from = src(0).dtype();
    switch (n_.op()) {
      case Op::Cast: return "";
      case Op::Bitcast:
        if (from == DType::Bool || n_.dtype() == DType::Bool) return "reinterprets a bool";
        return size_bytes(from) == size_bytes(n_.dtype()) ? "" : "changes the size of an element";
      case Op::Where:
        if (from != DType::Bool) return "has a condition other than bool";
        return same_dtype(src(1)) && same_dtype(src(2)) ? "" : "has arms of another dtype";
      case Op::Cmplt:
      case Op::Cmpne:
      case Op::Cmpeq:
        if (n_.dtype() != DType::Bool) return "is a comparison but not bool";
        return src(1).dtype() == from ? "" : "compares different dtypes";
      case Op::Shl:
      case Op::Shr:
        if (!is_int(from) || !is_int(src(1).dtype())) return "shifts other than integers";
        return same_dtype(src(0)) ? "" : "differs in dtype from what it shifts";
      default: break;
    }
    for (int i = 0; i < n_.source_count(); ++i) {
      if (!same_dtype(src(i))) return "has an operand of another dtype";
    }
    return allows(n_.op(), n_.dtype()) ? "" : "is not defined for its dtype";
  }

  static bool allows(Op op, DType d) {
    switch (op) {
      case Op::And:
      case Op::Or:
      case Op::Xor: return !is_float(d);
      case Op::Max:
      case Op::Min: return true;
      case Op::Neg:
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
      case Op::Mulacc:
      case Op::Trunc:
      case Op::Rint: return d != DType::Bool;
      case Op::Sqrt:
      case Op::Fdiv: return is_float(d);
      case Op::Cdiv:
      case Op::Cmod: return is_int(d);
      default: return false;  // operations that lowering has to replace
    }
  }

  const Node& n_;
};

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program), scopes_(1) {}

  Status verify() {
    if (program_.graph == nullptr) return fail("has no graph");
    for (size_t at = 0; at < program_.list.size(); ++at) {
      const Node& n = program_.list[at];
      if (!n || &n.graph() != program_.graph.get()) {
        return fail("holds a node of another graph at " + std::to_string(at));
      }
      const std::string wrong = check(n);
      if (!wrong.empty()) return fail_at(at, wrong);
    }
    if (!open_ranges_.empty()) return fail("ends inside a loop");
    return Status::ok();
  }

 private:
  std::string check(const Node& n) {
    for (int i = 0; i < n.source_count(); ++i) {
      if (!visible_.contains(n.src(i).id())) {
        std::ostringstream text;
        text << "uses a node that does not stand before it, or only in a loop closed since: "
             << n.src(i);
        return text.str();
      }
    }
    const NodeRules rules(n);
    if (std::string wrong = rules.check(); !wrong.empty()) return wrong;
    if (n.is(Op::Store)) return "";  // an effect: the same one may stand in several places
    if (n.is(Op::End)) return close(rules.closed_range());
    if (n.is(Op::Param) && (n.id_arg() < 0 || n.id_arg() >= program_.buffer_count)) {
      return "names a buffer beyond the program's " + std::to_string(program_.buffer_count);
    }
    if (n.is(Op::Range)) {
      open_ranges_.push_back(n);
      scopes_.emplace_back();
    }
    // A second listing would leave open which of the two values a later user means.
    if (!visible_.emplace(n.id(), scopes_.size() - 1).second)
      return "stands twice where it is visible";
    scopes_.back().push_back(n.id());
    return "";
  }

  std::string close(const Node& range) {
    if (open_ranges_.empty() || open_ranges_.back() != range)
      return "does not close the innermost open loop";
    open_ranges_.pop_back();
    for (const uint32_t id : scopes_.back()) visible_.erase(id);
    scopes_.pop_back();
    return "";
  }

  Error fail(const std::string& what) const {
    return Error(ErrorCode::Internal, "Program '" + program_.name + "' " + what + ".");
  }
  Error fail_at(size_t at, const std::string& wrong) const {
    std::ostringstream text;
    text << "is wrong at position " << at << ": " << ir::to_string(program_.list[at].op()) << " '"
         << program_.list[at] << "' " << wrong;
    return fail(text.str());
  }

  const Program& program_;
  std::vector<Node> open_ranges_;
  std::vector<std::vector<uint32_t>> scopes_;  // nodes declared in the body, in each open loop
  std::unordered_map<uint32_t, size_t> visible_;
};

}  // namespace

Status verify_program(const Program& program) { return Verifier(program).verify(); }

}  // namespace ignis::codegen
