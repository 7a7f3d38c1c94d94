#include "ignis/onnx/graph_plan.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace ignis::onnx {
namespace {

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

Error duplicate(std::string_view name) {
  return Error(ErrorCode::InvalidArgument, "The name " + quoted(name) + " is given to two values.",
               "DuplicateName");
}

/// Which node makes each name.
using Producers = std::unordered_map<std::string_view, size_t>;

Result<Producers> find_producers(const std::vector<NodeProto>& nodes,
                                 const std::unordered_set<std::string_view>& given) {
  Producers producers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string_view output : nodes[i].outputs) {
      if (output.empty()) continue;
      if (given.contains(output) || !producers.emplace(output, i).second) return duplicate(output);
    }
  }
  return producers;
}

/// Some nodes of the cycle that keeps the nodes without a place in the order waiting.
std::string describe_cycle(const std::vector<NodeProto>& nodes,
                           const std::vector<size_t>& waiting_for) {
  std::string text;
  int named = 0;
  for (size_t i = 0; i < nodes.size() && named < 3; ++i) {
    if (waiting_for[i] == 0) continue;
    text += (named++ == 0 ? "" : ", ") +
            quoted(nodes[i].name.empty() ? nodes[i].op_type : nodes[i].name);
  }
  return text;
}

}  // namespace

Result<GraphPlan> PlanCache::make_plan(const View& view) {
  const std::unordered_set<std::string_view> given(view.given.begin(), view.given.end());
  IGNIS_TRY_ASSIGN(const Producers producers, find_producers(view.nodes, given));

  // What each node reads: its inputs, and what the graphs it holds capture.
  GraphPlan made;
  std::unordered_set<std::string_view> captured;
  const size_t count = view.nodes.size();
  std::vector<std::vector<size_t>> sources(count), users(count);
  for (size_t i = 0; i < count; ++i) {
    std::vector<std::string_view> reads = view.nodes[i].inputs;
    for (const AttributeProto& attribute : view.nodes[i].attributes) {
      if (attribute.graph == nullptr) continue;
      IGNIS_TRY_ASSIGN(const GraphPlan* inner, plan(*attribute.graph));
      reads.insert(reads.end(), inner->captured.begin(), inner->captured.end());
    }
    for (const std::string_view name : reads) {
      if (name.empty() || given.contains(name)) continue;
      if (const auto producer = producers.find(name); producer != producers.end()) {
        sources[i].push_back(producer->second);
      } else if (captured.insert(name).second) {
        made.captured.push_back(name);
      }
    }
    std::sort(sources[i].begin(), sources[i].end());
    sources[i].erase(std::unique(sources[i].begin(), sources[i].end()), sources[i].end());
    for (const size_t source : sources[i]) users[source].push_back(i);
  }

  // An order that is the file's own where that one is topological.
  std::vector<size_t> waiting_for(count), order;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i) {
    waiting_for[i] = sources[i].size();
    if (waiting_for[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (const size_t user : users[i]) {
      if (--waiting_for[user] == 0) ready.push(user);
    }
  }
  if (order.size() != count) {
    return Error(
        ErrorCode::InvalidArgument,
        "The graph has a cycle through the nodes " + describe_cycle(view.nodes, waiting_for) + ".",
        "Cycle");
  }

  std::vector<bool> live(count, false);
  for (const std::string_view output : view.outputs) {
    if (const auto producer = producers.find(output); producer != producers.end()) {
      live[producer->second] = true;
    } else if (!given.contains(output) && captured.insert(output).second) {
      made.captured.push_back(output);
    }
  }
  for (size_t k = count; k-- > 0;) {
    if (!live[order[k]]) continue;
    for (const size_t source : sources[order[k]]) live[source] = true;
  }
  for (const size_t i : order) {
    if (live[i]) made.nodes.push_back(&view.nodes[i]);
  }
  return made;
}

Result<const GraphPlan*> PlanCache::plan(const void* key, const View& view) {
  if (const auto found = plans_.find(key); found != plans_.end()) return found->second.get();
  IGNIS_TRY_ASSIGN(GraphPlan made, make_plan(view));
  return plans_.emplace(key, std::make_unique<GraphPlan>(std::move(made))).first->second.get();
}

Result<const GraphPlan*> PlanCache::plan(const GraphProto& graph) {
  View view{graph.nodes, {}, {}};
  // An initialiser may also be listed as an input (IR versions before 4 ask for it), but not twice as either.
  std::unordered_set<std::string_view> inputs, initializers;
  for (const ValueInfoProto& input : graph.inputs) {
    if (!inputs.insert(input.name).second) return duplicate(input.name);
    view.given.push_back(input.name);
  }
  const auto add_initializer = [&](std::string_view name) {
    view.given.push_back(name);
    return initializers.insert(name).second;
  };
  for (const TensorProto& tensor : graph.initializers) {
    if (!add_initializer(tensor.name)) return duplicate(tensor.name);
  }
  for (const SparseTensorProto& tensor : graph.sparse_initializers) {
    if (!add_initializer(tensor.values.name)) return duplicate(tensor.values.name);
  }
  for (const ValueInfoProto& output : graph.outputs) view.outputs.push_back(output.name);
  return plan(&graph, view);
}

Result<const GraphPlan*> PlanCache::plan(const FunctionProto& function) {
  return plan(&function, View{function.nodes, function.inputs, function.outputs});
}

}  // namespace ignis::onnx
