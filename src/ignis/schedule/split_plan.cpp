#include "ignis/schedule/split_plan.h"

#include "ignis/schedule/draft.h"

namespace ignis::schedule {

using ir::AxisKind;
using ir::Node;
using ir::Op;

ReadingKey key_of(const Node& node, int kernel, const Indices& indices) {
  ReadingKey key{node.id(), static_cast<uint32_t>(kernel),
                 indices.valid ? indices.valid.id() + 1 : 0};
  for (const Node& n : indices.at) key.push_back(n.id());
  return key;
}

std::vector<Node> loops_of(const KernelRoot& root) {
  std::vector<Node> loops;
  for (const Node& r : root.ranges) {
    if (r.is(Op::Range)) loops.push_back(r);
  }
  return loops;
}

int SplitPlan::buffer_of_leaf(const Node& leaf) {
  const auto it = leaf_buffers.find(leaf);
  if (it != leaf_buffers.end()) return it->second;
  const bool is_param = leaf.is(Op::Param);
  const int id = add_buffer(schedule, is_param ? BufferRole::Input : BufferRole::Constant,
                            strong(leaf.dtype()), leaf.shape(), ir::Layout::planar(leaf.shape()),
                            is_param ? leaf.arg().text : "w" + std::to_string(leaf.id()));
  if (!is_param) schedule.buffers.back().data = leaf.graph().buffer_data(leaf);
  leaf_buffers[leaf] = id;
  return id;
}

std::vector<Node> SplitPlan::reduce_ranges(const Node& reduce, int kernel, const Indices& indices) {
  std::vector<Node>& ranges = ranges_of_reduces[key_of(reduce, kernel, indices)];
  if (!ranges.empty()) return ranges;
  KernelRoot& root = roots[static_cast<size_t>(kernel)];
  for (size_t a = 1; a < reduce.arg().ints.size(); ++a) {
    const int64_t extent = reduce.src(0).shape()[static_cast<size_t>(reduce.arg().ints[a])];
    ranges.push_back(extent == 1 ? graph.constant(DType::WeakInt, 0)
                                 : graph.range(extent, root.next_range++, AxisKind::Reduce));
  }
  return ranges;
}

Indices with_reduced(const Node& reduce, const Indices& outer, const std::vector<Node>& ranges) {
  Indices inner;
  inner.valid = outer.valid;
  size_t next_outer = 0, next_reduced = 0;
  for (size_t i = 0; i < reduce.src(0).shape().size(); ++i) {
    bool is_reduced = false;
    for (size_t a = 1; a < reduce.arg().ints.size(); ++a) {
      is_reduced |= reduce.arg().ints[a] == static_cast<int64_t>(i);
    }
    inner.at.push_back(is_reduced ? ranges[next_reduced++] : outer.at[next_outer++]);
  }
  return inner;
}

}  // namespace ignis::schedule
