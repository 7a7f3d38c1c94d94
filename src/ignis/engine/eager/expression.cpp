#include "ignis/engine/eager/expression.h"

#include "ignis/base/byte_io.h"

#include <algorithm>
#include <utility>

namespace ignis::engine {
namespace {

using ir::Node;
using ir::Op;

/// Constants up to this size are compared by their bytes: whoever writes them anew each time gets the same program.
constexpr int64_t kComparedBytes = 4096;

/// Walks down from the roots, each node once.
class Reader {
 public:
  explicit Reader(const LeafTable& leaves) : leaves_(leaves) {}

  Status read(Expression& made) {
    for (const Node& root : made.roots) IGNIS_TRY(visit(root, made));
    return {};
  }

 private:
  Status visit(const Node& root, Expression& made) {
    stack_.push_back({root, 0});
    while (!stack_.empty()) {
      auto& [node, next] = stack_.back();
      if (next == 0 && seen_.contains(node)) {
        stack_.pop_back();
        continue;
      }
      if (next == 0) {
        IGNIS_TRY_ASSIGN(const bool is_input, add_input(node, made));
        if (is_input) {
          stack_.pop_back();
          continue;
        }
      }
      if (next < node.source_count()) {
        const Node source = node.src(next++);
        stack_.push_back({source, 0});
        continue;
      }
      if (seen_.insert({node, true}).second) made.order.push_back(node);
      stack_.pop_back();
    }
    return {};
  }

  Result<bool> add_input(const Node& node, Expression& made) {
    StorageRef storage;
    if (node.is(Op::Param)) {
      IGNIS_TRY_ASSIGN(storage, leaves_.storage_of(node));
    } else {
      storage = leaves_.computed(node);
    }
    if (storage == nullptr) return false;
    const auto known = std::find(made.inputs.begin(), made.inputs.end(), storage);
    made.input_of[node] = static_cast<int>(known - made.inputs.begin());
    if (known == made.inputs.end()) made.inputs.push_back(std::move(storage));
    seen_.insert({node, true});
    made.order.push_back(node);
    return true;
  }

  const LeafTable& leaves_;
  std::unordered_map<Node, bool> seen_;
  std::vector<std::pair<Node, int>> stack_;
};

}  // namespace

bool Expression::reads(const Storage& storage) const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const StorageRef& input) { return input.get() == &storage; });
}

bool Expression::reads_aligned(const Storage& storage) const {
  // From the end: users are seen before their sources.
  std::unordered_map<Node, bool> is_aligned;  // reached from a root through elementwise nodes only
  for (const Node& root : roots) is_aligned[root] = true;
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    const auto input = input_of.find(*node);
    if (input != input_of.end()) {
      if (inputs[static_cast<size_t>(input->second)].get() != &storage) continue;
      // A value that was computed has the storage's shape too.
      if (!is_aligned[*node] || node->shape() != storage.shape) return false;
      continue;
    }
    for (int i = 0; i < node->source_count(); ++i) {
      const Node source = node->src(i);
      const bool keeps =
          is_aligned[*node] && ir::is_elementwise(node->op()) && source.shape() == node->shape();
      const auto [known, is_new] = is_aligned.try_emplace(source, keeps);
      if (!is_new) known->second = known->second && keeps;
    }
  }
  return true;
}

Result<Expression> read_expression(const LeafTable& leaves, std::vector<Node> roots) {
  Expression made;
  made.roots = std::move(roots);
  for (const Node& root : made.roots) {
    if (&root.graph() == leaves.graph().get()) continue;
    return Error(ErrorCode::InvalidArgument,
                 "The expression belongs to the graph of another workspace; an array is read where "
                 "it was made.",
                 "OtherWorkspace");
  }
  IGNIS_TRY(Reader(leaves).read(made));
  return made;
}

Pattern make_pattern(const Expression& expression) {
  Pattern made;
  ByteWriter key;
  std::unordered_map<Node, uint32_t> number;
  for (const Node& node : expression.order) {
    number[node] = static_cast<uint32_t>(number.size());
    const auto input = expression.input_of.find(node);
    const bool is_input = input != expression.input_of.end();
    key.put(static_cast<uint16_t>(is_input ? Op::Param : node.op()));
    key.put(static_cast<uint16_t>(node.dtype()));
    if (is_input || node.is(Op::Buffer)) {
      key.put(static_cast<uint32_t>(node.shape().size()));
      for (const int64_t extent : node.shape()) key.put(extent);
    }
    if (is_input) {
      key.put(static_cast<uint32_t>(input->second));
      continue;
    }
    if (node.is(Op::Buffer)) {
      ir::BufferData data = node.graph().buffer_data(node);
      key.put(data.size_bytes);
      if (data.size_bytes <= kComparedBytes) {
        key.put_raw(std::span(data.bytes, static_cast<size_t>(data.size_bytes)));
      } else {
        key.put(reinterpret_cast<uint64_t>(data.bytes));
        made.held.push_back(std::move(data));
      }
      continue;
    }
    key.put(static_cast<uint32_t>(node.lanes()));
    key.put(static_cast<uint32_t>(node.arg().ints.size()));
    for (const int64_t value : node.arg().ints) key.put(value);
    key.put_text(node.arg().text);
    key.put(static_cast<uint32_t>(node.source_count()));
    for (int i = 0; i < node.source_count(); ++i) key.put(number.at(node.src(i)));
  }
  for (const Node& root : expression.roots) key.put(number.at(root));
  made.key.assign(reinterpret_cast<const char*>(key.bytes().data()), key.bytes().size());
  return made;
}

PatternGraph make_graph(const Expression& expression) {
  PatternGraph made;
  made.graph = std::make_shared<ir::Graph>();
  for (size_t i = 0; i < expression.inputs.size(); ++i) {
    ir::ParamArg param;
    param.slot = static_cast<int64_t>(i);
    param.name = "input_" + std::to_string(i);
    param.shape = expression.inputs[i]->shape;
    made.inputs.push_back(made.graph->param(expression.inputs[i]->dtype, param));
  }
  std::unordered_map<Node, Node> copied;
  std::vector<Node> sources;
  for (const Node& node : expression.order) {
    if (const auto input = expression.input_of.find(node); input != expression.input_of.end()) {
      copied[node] = made.inputs[static_cast<size_t>(input->second)];
      continue;
    }
    if (node.is(Op::Buffer)) {
      copied[node] = made.graph->buffer(node.dtype(), node.shape(), node.graph().buffer_data(node));
      continue;
    }
    sources.clear();
    for (int i = 0; i < node.source_count(); ++i) sources.push_back(copied.at(node.src(i)));
    copied[node] = made.graph->make(node.op(), node.dtype(), sources, node.arg(), node.lanes());
  }
  for (const Node& root : expression.roots) made.roots.push_back(copied.at(root));
  return made;
}

}  // namespace ignis::engine
