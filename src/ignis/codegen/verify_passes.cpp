#include "ignis/codegen/verify_passes.h"

#include "ignis/ir/graph.h"
#include "ignis/ir/range.h"

#include <sstream>
#include <unordered_map>

namespace ignis::codegen {
namespace {

using ir::Node;
using ir::Op;

Error wrong(const Node& n, const std::string& what) {
  std::ostringstream text;
  text << "Node '" << n << "' " << what;
  return Error(ErrorCode::Internal, text.str());
}

bool agree(const Node& a, const Node& b) {
  return a.dtype() == b.dtype() || is_weak(a.dtype()) || is_weak(b.dtype()) || a.is_invalid() ||
         b.is_invalid();
}

Status check_operands(const Node& n) {
  if (n.is(Op::Where)) {
    if (n.src(0).dtype() != DType::Bool) return wrong(n, "has a condition that is no bool.");
    if (!agree(n.src(1), n.src(2))) return wrong(n, "chooses between two dtypes.");
    return Status::ok();
  }
  if (n.is(Op::Shl) || n.is(Op::Shr)) return Status::ok();
  for (int i = 1; i < n.source_count(); ++i) {
    if (!agree(n.src(0), n.src(i))) return wrong(n, "joins two dtypes.");
  }
  return Status::ok();
}

int64_t storage_of(const Node& param) {
  const ir::ParamArg arg = ir::decode_param(param);
  return arg.layout.digits.empty() ? element_count(arg.shape) : arg.layout.storage_count();
}

}  // namespace

Status verify_between_passes(const Node& sink, bool has_addresses) {
  if (!sink.is(Op::Sink) || sink.source_count() != 1 || !sink.src(0).is(Op::Store)) {
    return wrong(sink, "is not a Sink over one Store.");
  }
  std::unordered_map<int64_t, Node> ranges;
  ir::RangeAnalysis analysis;
  for (const Node& n : ir::toposort(sink)) {
    if (ir::is_elementwise(n.op())) IGNIS_TRY(check_operands(n));
    if (n.is(Op::Range) && !ranges.emplace(n.id_arg(), n).second) {
      return wrong(n, "shares its id with another range.");
    }
    if (n.is(Op::Index) && (n.source_count() != 2 || !n.src(0).is(Op::Param) ||
                            is_float(n.src(1).dtype()) || n.src(1).dtype() == DType::Bool)) {
      return wrong(n, "is not [param, one integer].");
    }
    const bool is_access = n.is(Op::Load) || n.is(Op::Store);
    if (!is_access) continue;
    if (!n.src(0).is(Op::Index)) return wrong(n, "does not go through an Index.");
    const bool is_gated = n.source_count() == 3;
    if (!has_addresses || is_gated) continue;
    const ir::Interval span = analysis.interval(n.src(0).src(1));
    const int64_t storage = storage_of(n.src(0).src(0));
    if (span.lo < 0 || span.hi >= storage) {
      std::ostringstream text;
      text << "may reach " << span << " of a buffer of " << storage << " elements.";
      return wrong(n.src(0), text.str());
    }
  }
  return Status::ok();
}

}  // namespace ignis::codegen
