#include "ignis/schedule/draft.h"

#include "ignis/ir/affine.h"

#include <algorithm>
#include <functional>

namespace ignis::schedule {

using ir::Graph;
using ir::Node;
using ir::Op;

std::vector<Node> index_of(const Node& index) {
  std::vector<Node> at;
  for (int i = 1; i < index.source_count(); ++i) at.push_back(index.src(i));
  return at;
}

std::vector<LoadSite> loads_of(const Draft& draft) {
  std::vector<LoadSite> sites;
  std::unordered_map<Node, Node>
      inner;  // node -> innermost Reduce above it, as first met from the root
  std::vector<std::pair<Node, Node>> stack{{draft.sink, Node()}};
  while (!stack.empty()) {
    const auto [n, reduce] = stack.back();
    stack.pop_back();
    const auto [it, fresh] = inner.emplace(n, reduce);
    if (!fresh && (it->second == reduce || !reduce)) continue;
    it->second = reduce;
    const Node below = n.is(Op::Reduce) ? n : reduce;
    for (int i = 0; i < n.source_count(); ++i) stack.emplace_back(n.src(i), below);
  }
  for (const Node& n : ir::toposort(draft.sink)) {
    if (!n.is(Op::Load)) continue;
    const Node index = n.src(0);
    sites.push_back(
        {n, static_cast<int>(index.src(0).arg().ints[0]), index_of(index), inner.at(n)});
  }
  return sites;
}

Node store_of(const Draft& draft) { return draft.sink.src(0); }
std::vector<Node> store_index(const Draft& draft) { return index_of(store_of(draft).src(0)); }

void replace(Graph& graph, Draft& draft, const std::unordered_map<Node, Node>& map) {
  draft.sink = ir::substitute(graph, draft.sink, map);
}

int add_buffer(Schedule& schedule, BufferRole role, DType dtype, const Shape& shape,
               ir::Layout layout, const std::string& name) {
  Buffer buffer;
  buffer.role = role;
  buffer.dtype = dtype;
  buffer.shape = shape;
  buffer.layout = std::move(layout);
  buffer.name = name;
  schedule.buffers.push_back(std::move(buffer));
  return static_cast<int>(schedule.buffers.size()) - 1;
}

Node load_buffer(Graph& g, Draft& draft, int buffer, const Shape& shape, DType dtype,
                 const std::vector<Node>& index) {
  size_t slot = 0;
  while (slot < draft.buffers.size() && draft.buffers[slot] != buffer) ++slot;
  if (slot == draft.buffers.size()) draft.buffers.push_back(buffer);
  ir::ParamArg arg;
  arg.slot = static_cast<int64_t>(slot);
  arg.shape = shape;
  std::vector<Node> sources{g.param(dtype, arg)};
  sources.insert(sources.end(), index.begin(), index.end());
  return g.make(Op::Load, dtype, {g.make(Op::Index, dtype, sources)});
}

Draft copy_draft(Graph& g, const Draft& like, int buffer, const Shape& shape, DType dtype,
                 const std::vector<Node>& ranges, const Node& value) {
  Draft copy;
  copy.order = like.order;
  copy.at_load = false;
  copy.buffers.push_back(buffer);
  std::unordered_map<Node, Node> map;
  for (const Node& n : ir::toposort(value)) {
    if (!n.is(Op::Param)) continue;
    ir::ParamArg arg = ir::decode_param(n);
    copy.buffers.push_back(like.buffers[static_cast<size_t>(arg.slot)]);
    arg.slot = static_cast<int64_t>(copy.buffers.size()) - 1;
    map[n] = g.param(n.dtype(), arg);
  }
  // Fresh ranges, numbered from 0: equal copies are equal kernels.
  std::vector<Node> index;
  for (const Node& r : ranges) {
    if (!r.is(Op::Range)) {
      index.push_back(r);
      continue;
    }
    map[r] =
        g.range(r.range_extent(), static_cast<int64_t>(copy.ranges.size()), ir::AxisKind::Loop);
    copy.ranges.push_back(map[r]);
    index.push_back(map[r]);
  }
  ir::ParamArg arg;
  arg.slot = 0;
  arg.shape = shape;
  std::vector<Node> sources{g.param(dtype, arg)};
  sources.insert(sources.end(), index.begin(), index.end());
  const Node stored = ir::substitute(g, value, map);
  copy.sink = g.make(Op::Sink, DType::Void,
                     {g.make(Op::Store, DType::Void, {g.make(Op::Index, dtype, sources), stored})});
  return copy;
}

int64_t PlainAffine::coefficient(const Node& range) const {
  for (const auto& [r, c] : terms) {
    if (r == range) return c;
  }
  return 0;
}

std::optional<PlainAffine> plain_affine(Graph& g, const Node& expression) {
  const ir::Affine affine = ir::to_affine(g, expression);
  PlainAffine plain;
  plain.constant = affine.constant;
  for (const auto& [atom, c] : affine.terms) {
    if (!atom.is(Op::Range)) return std::nullopt;
    plain.terms.emplace_back(atom, c);
  }
  return plain;
}

}  // namespace ignis::schedule
