#pragma once

#include "ignis/schedule/indexing.h"
#include "ignis/schedule/schedule.h"
#include "ignis/schedule/split.h"

#include <map>
#include <unordered_map>
#include <vector>

// What split.cpp decides and write_draft.cpp writes down.
namespace ignis::schedule {

/// Identifies one reading for memo tables.
using ReadingKey = std::vector<uint32_t>;
ReadingKey key_of(const ir::Node& node, int kernel, const Indices& indices);

/// A kernel under construction.
struct KernelRoot {
  ir::Node value;               ///< tensor node stored
  bool reads_realised = false;  ///< `value` is a leaf or lies in another buffer: a plain copy
  int buffer = 0;
  std::vector<ir::Node> ranges;
  std::vector<int64_t> store_offset;  ///< per axis of the buffer; empty: none
  int store_axis = -1;                ///< Stack: the axis that is not one of the value's
  uint32_t order = 0;
  int64_t next_range = 0;
  bool has_contraction = false;
};

/// The ranges among a kernel's output indices.
std::vector<ir::Node> loops_of(const KernelRoot& root);

/// Kernels of a tensor graph, and what their expressions refer to.
struct SplitPlan {
  ir::Graph& graph;
  Schedule& schedule;
  std::vector<KernelRoot> roots;
  std::unordered_map<ir::Node, int> realised;  ///< tensor node -> buffer

  /// Buffer of a constant or an input of the graph.
  int buffer_of_leaf(const ir::Node& leaf);
  /// Ranges of a ReduceAxes that `kernel` reads at `indices`: the same ones each time.
  std::vector<ir::Node> reduce_ranges(const ir::Node& reduce, int kernel, const Indices& indices);
  std::unordered_map<ir::Node, int> leaf_buffers;
  std::map<ReadingKey, std::vector<ir::Node>> ranges_of_reduces;
};

/// Indices of a ReduceAxes' source, from its own and the ranges of the reduced axes.
Indices with_reduced(const ir::Node& reduce, const Indices& outer,
                     const std::vector<ir::Node>& ranges);

/// Writes the kernel of a root, `kernel` its number. Errors: Unsupported naming the node that cannot be placed.
Result<Draft> write_draft(SplitPlan& plan, int kernel);

}  // namespace ignis::schedule
