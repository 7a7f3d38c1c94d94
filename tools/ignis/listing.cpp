#include "tools/ignis/listing.h"

#include "ignis/ir/graph.h"

#include "tools/ignis/terminal.h"

namespace ignis::tools {
namespace {

std::string arg_text(const ir::Node& node) {
  if (node.is_const()) {
    return is_float(node.dtype()) ? format_number(node.const_float(), 9)
                                  : std::to_string(node.const_int());
  }
  std::string text = node.arg().text.empty() ? "" : "'" + node.arg().text + "'";
  if (node.arg().ints.empty()) return text;
  if (node.is(ir::Op::ReduceAxes) || node.is(ir::Op::Reduce)) {
    text += std::string(ir::to_string(node.reduce_op()));
    for (size_t i = 1; i < node.arg().ints.size(); ++i)
      text += " " + std::to_string(node.arg().ints[i]);
    return "(" + text + ")";
  }
  std::string numbers;
  for (const int64_t v : node.arg().ints)
    numbers += (numbers.empty() ? "" : " ") + std::to_string(v);
  return text + "(" + numbers + ")";
}

}  // namespace

std::string list_nodes(const std::vector<ir::Node>& roots) {
  std::string text;
  for (const ir::Node& node : ir::toposort(roots)) {
    text += "%" + std::to_string(node.id()) + " = " + std::string(ir::to_string(node.op())) + " " +
            std::string(to_string(node.dtype()));
    if (!node.shape().empty()) text += " " + to_string(node.shape());
    for (int i = 0; i < node.source_count(); ++i) text += " %" + std::to_string(node.src(i).id());
    const std::string arg = arg_text(node);
    text += (arg.empty() ? "" : " " + arg) + "\n";
  }
  return text;
}

}  // namespace ignis::tools
