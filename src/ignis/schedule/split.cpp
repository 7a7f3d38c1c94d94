#include "ignis/schedule/split.h"

#include "ignis/schedule/cheap_tables.h"
#include "ignis/schedule/draft.h"
#include "ignis/schedule/indexing.h"
#include "ignis/schedule/split_plan.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ignis::schedule {
namespace {

using ir::AxisKind;
using ir::Graph;
using ir::Node;
using ir::Op;

/// One reading of a tensor node by a kernel.
struct Use {
  int kernel = 0;
  Indices indices;
  std::vector<Node> loops;  ///< ranges around the reading: its work is repeated for their product
  bool same_reading(const Use& o) const { return kernel == o.kernel && indices == o.indices; }
};

bool is_leaf(const Node& n) { return n.is(Op::Const) || n.is(Op::Buffer) || n.is(Op::Param); }

bool is_expensive(Op op) {
  switch (op) {
    case Op::Exp:
    case Op::Exp2:
    case Op::Log:
    case Op::Log2:
    case Op::Sin:
    case Op::Cos:
    case Op::Erf:
    case Op::Tanh:
    case Op::Atan:
    case Op::Pow:
    case Op::Fdiv:
    case Op::Reciprocal:
    case Op::Sqrt:
    case Op::Cdiv:
    case Op::Cmod:
    case Op::Floordiv:
    case Op::Floormod: return true;
    default: return false;
  }
}

class Splitter {
 public:
  Splitter(const std::vector<Node>& inputs, const std::vector<Node>& outputs,
           const Options& options, Schedule& schedule)
      : inputs_(inputs),
        outputs_(outputs),
        options_(options),
        schedule_(schedule),
        g_(*schedule.graph),
        plan_{g_, schedule, {}, {}, {}, {}} {}

  Result<std::vector<Draft>> run();

 private:
  int new_buffer(BufferRole role, DType dtype, const Shape& shape, const std::string& name);
  void collect_facts();
  int start_kernel(const Node& value, int buffer, uint32_t order);
  void read(const Node& node, const Use& use);
  void propagate(const Node& node, const Use& use);
  bool must_realise(const Node& node, const std::vector<Use>& readings);
  bool may_join_rows(const Node& reduce, const Use& use) const;
  bool reads_plain_rows(const Use& use) const;
  bool takes_reduce_along(const Node& reshape, const std::vector<Use>& readings);
  void realise(const Node& node);

  const std::vector<Node>& inputs_;
  const std::vector<Node>& outputs_;
  const Options& options_;
  Schedule& schedule_;
  Graph& g_;

  std::unordered_map<Node, std::vector<Use>> uses_;
  std::unordered_set<Node>
      decided_inline_;  ///< reduces that a reshape above already took into its kernel
  std::unordered_map<Node, int> consumers_;
  std::unordered_set<Node> forced_;  ///< must be addressable: read at data-dependent places
  std::unordered_set<Node> cheap_tables_;
  std::unordered_map<Node, bool> touches_buffer_, touches_input_, expensive_, has_reduce_;
  SplitPlan plan_;
};

int Splitter::new_buffer(BufferRole role, DType dtype, const Shape& shape,
                         const std::string& name) {
  return add_buffer(schedule_, role, strong(dtype), shape, ir::Layout::planar(shape), name);
}

/// Facts about what lies below each node, ids ascending.
void Splitter::collect_facts() {
  const std::vector<Node> order = ir::toposort(outputs_);
  cheap_tables_ = find_cheap_tables(order);
  for (const Node& n : order) {
    bool buffer = n.is(Op::Buffer) || n.is(Op::Param), input = n.is(Op::Param);
    bool costly = is_expensive(n.op()), reduce = n.is(Op::ReduceAxes);
    for (int i = 0; i < n.source_count(); ++i) {
      buffer |= touches_buffer_[n.src(i)];
      input |= touches_input_[n.src(i)];
      costly |= expensive_[n.src(i)];
      reduce |= has_reduce_[n.src(i)];
      ++consumers_[n.src(i)];
    }
    touches_buffer_[n] = buffer;
    touches_input_[n] = input;
    expensive_[n] = costly;
    has_reduce_[n] = reduce;
    if (n.is(Op::Gather)) {
      Node data = n.src(0);
      if (!is_leaf(data)) forced_.insert(data);
      // An address holds no reduction: such an index (the winner of a scatter, an arg-max) is stored first.
      for (int i = 1; i < n.source_count(); ++i) {
        if (has_reduce_[n.src(i)] && !is_leaf(n.src(i))) forced_.insert(n.src(i));
      }
    }
  }
}

int Splitter::start_kernel(const Node& value, int buffer, uint32_t order) {
  KernelRoot root;
  root.value = value;
  root.buffer = buffer;
  root.order = order;
  for (const int64_t extent : value.shape()) {
    root.ranges.push_back(extent == 1 ? g_.constant(DType::WeakInt, 0)
                                      : g_.range(extent, root.next_range++, AxisKind::Loop));
  }
  plan_.roots.push_back(std::move(root));
  return static_cast<int>(plan_.roots.size()) - 1;
}

void Splitter::read(const Node& node, const Use& use) {
  std::vector<Use>& list = uses_[node];
  for (const Use& u : list) {
    // The same value at the same place: one reading. Keep the one in fewer loops.
    if (u.same_reading(use)) return;
  }
  list.push_back(use);
}

std::vector<Node> ranges_in(const Indices& indices) {
  std::vector<Node> found;
  std::vector<Node> roots = indices.at;
  if (indices.valid) roots.push_back(indices.valid);
  for (const Node& n : ir::toposort(roots)) {
    if (n.is(Op::Range)) found.push_back(n);
  }
  std::sort(found.begin(), found.end(),
            [](const Node& a, const Node& b) { return a.id_arg() < b.id_arg(); });
  return found;
}

/// Tells a node's sources where this reading reads them.
void Splitter::propagate(const Node& node, const Use& use) {
  if (node.is(Op::ReduceAxes)) {
    const std::vector<Node> ranges = plan_.reduce_ranges(node, use.kernel, use.indices);
    Use inner{use.kernel, with_reduced(node, use.indices, ranges), ranges_in(use.indices)};
    for (const Node& r : ranges) {
      if (r.is(Op::Range)) inner.loops.push_back(r);
    }
    read(node.src(0), inner);
    return;
  }
  if (node.is(Op::Gather)) {
    Use lookup = use;
    const size_t rank = node.src(1).shape().size();
    lookup.indices.at.assign(use.indices.at.begin(),
                             use.indices.at.begin() + static_cast<std::ptrdiff_t>(rank));
    for (int i = 1; i < node.source_count(); ++i) read(node.src(i), lookup);
    return;  // the data is read at places that only the run knows: it is a buffer
  }
  if (ir::is_movement(node.op())) {
    Use moved = use;
    moved.indices = source_indices(g_, node, use.indices);
    read(node.src(0), moved);
    return;
  }
  for (int i = 0; i < node.source_count(); ++i) {
    if (!node.src(i).shape().empty() || node.shape().empty()) {
      read(node.src(i), use);
    } else {
      read(node.src(i), Use{use.kernel, Indices{{}, use.indices.valid}, use.loops});
    }
  }
}

int64_t product(const std::vector<Node>& loops) {
  int64_t p = 1;
  for (const Node& r : loops) p *= r.range_extent();
  return p;
}

/// The reading is the kernel's leading output ranges in order: rows that an outer loop can hold.
bool Splitter::reads_plain_rows(const Use& use) const {
  if (use.indices.valid) return false;
  const std::vector<Node> rows = loops_of(plan_.roots[static_cast<size_t>(use.kernel)]);
  size_t next = 0;
  for (const Node& n : use.indices.at) {
    if (n.is_const()) continue;
    if (next >= rows.size() || n != rows[next]) return false;
    ++next;
  }
  return true;
}

/// A reduce over trailing axes whose rows are the kernel's rows and that reads about as much as the kernel writes.
bool Splitter::may_join_rows(const Node& reduce, const Use& use) const {
  const Shape& source = reduce.src(0).shape();
  const size_t reduced = reduce.arg().ints.size() - 1;
  for (size_t a = 0; a < reduced; ++a) {
    if (reduce.arg().ints[a + 1] != static_cast<int64_t>(source.size() - reduced + a)) return false;
  }
  if (source.size() > 3 && reduced > 1) return false;  // spatial: its consumers run channels-last
  const int64_t volume = product(loops_of(plan_.roots[static_cast<size_t>(use.kernel)]));
  return reads_plain_rows(use) && element_count(source) <= 2 * volume;
}

bool is_contraction(const Node& reduce) {
  if (reduce.reduce_op() != Op::Add) return false;
  const Node product = reduce.src(0);
  return product.is(Op::Mul) && !product.src(0).is(Op::Const) && !product.src(1).is(Op::Const) &&
         product.src(0) != product.src(1);
}

bool Splitter::must_realise(const Node& node, const std::vector<Use>& readings) {
  if (node.is(Op::Contiguous) || node.is(Op::Cat) || (node.is(Op::Stack) && !node.shape().empty()))
    return true;
  if (forced_.count(node) != 0) return true;
  if (decided_inline_.count(node) != 0) return false;
  if (ir::is_movement(node.op()) && !node.is(Op::Gather)) return takes_reduce_along(node, readings);
  // Padding with another value than 0: where(inside, padded x, value) is an index rule, not a computation.
  if (node.is(Op::Where) && !touches_buffer_[node.src(0)] && !touches_buffer_[node.src(2)])
    return false;
  if (!touches_buffer_[node])
    return node.is(Op::ReduceAxes);  // index arithmetic and constants stay inline
  if (!options_.fuse) return true;
  for (const Use& u : readings) {
    if (u.kernel != readings[0].kernel) return true;
  }
  const Use& use = readings[0];
  KernelRoot& root = plan_.roots[static_cast<size_t>(use.kernel)];
  const int64_t repeats = product(use.loops) / std::max<int64_t>(1, element_count(node.shape()));
  if (node.is(Op::ReduceAxes)) {
    if (readings.size() > 1) return true;
    const bool inside_reduce = std::any_of(use.loops.begin(), use.loops.end(), [](const Node& r) {
      return r.axis_kind() == AxisKind::Reduce;
    });
    if (may_join_rows(node, use) && !is_contraction(node)) return false;
    if (inside_reduce || use.indices.valid || repeats > 1) return true;
    if (!is_contraction(node)) return false;
    // Two register tiles in one loop nest would spill.
    if (root.has_contraction) return true;
    root.has_contraction = true;
    return false;
  }
  // Weights that are computed from weights are computed once, at load.
  if (!touches_input_[node]) return cheap_tables_.count(node) == 0;
  if (readings.size() > 1) {
    // Computing it again is cheaper than memory only a few times over, and only without a reduce of its own below.
    if (readings.size() > 3) return true;
    for (const Use& u : readings) {
      if (u.indices.valid) return true;
      for (const Node& n : u.indices.at) {
        if (!n.is_const() && !n.is(Op::Range)) return true;
      }
      if (product(u.loops) > 2 * element_count(node.shape()) && !reads_plain_rows(u)) return true;
    }
    return false;
  }
  if (repeats <= 1) return false;
  if (reads_plain_rows(use) && has_reduce_[node] && node.shape().size() <= 3) return false;
  if (node.is(Op::Gather)) return true;
  return expensive_[node] || has_reduce_[node] || use.loops.size() != loops_of(root).size();
}

/// A reduce that must be materialised is materialised in the shape that its only user, a reshape, gives it: the model's
/// own axes ([N, C, H, W]), for which layouts are chosen, not the factored ones of the contraction.
bool Splitter::takes_reduce_along(const Node& reshape, const std::vector<Use>& readings) {
  const Node reduce = reshape.src(0);
  if (!reshape.is(Op::Reshape) || !reduce.is(Op::ReduceAxes) || consumers_[reduce] != 1)
    return false;
  std::vector<Use> moved;
  for (Use use : readings) {
    use.indices = source_indices(g_, reshape, use.indices);
    moved.push_back(std::move(use));
  }
  const bool realised = must_realise(reduce, moved);
  decided_inline_.insert(reduce);
  return realised;
}

void Splitter::realise(const Node& node) {
  int buffer = -1;
  for (size_t i = 0; i < outputs_.size() && buffer < 0; ++i) {
    if (outputs_[i] == node) buffer = schedule_.outputs[i];
  }
  if (buffer < 0)
    buffer = new_buffer(BufferRole::Temporary, node.dtype(), node.shape(),
                        "t" + std::to_string(node.id()));
  plan_.realised[node] = buffer;
  if (node.is(Op::Cat) || node.is(Op::Stack)) {
    const bool stacks = node.is(Op::Stack);
    const size_t axis = stacks ? 0 : static_cast<size_t>(node.arg().ints[0]);
    int64_t at = 0;
    for (int i = 0; i < node.source_count(); ++i) {
      const Node piece = node.src(i);
      if (element_count(piece.shape()) != 0) {
        const int k = start_kernel(piece, buffer, node.id());
        KernelRoot& root = plan_.roots[static_cast<size_t>(k)];
        root.store_offset.assign(node.shape().size(), 0);
        root.store_offset[axis] = at;
        if (stacks) root.store_axis = 0;
        root.reads_realised = true;
        read(piece, Use{k, Indices{root.ranges, {}}, loops_of(root)});
      }
      at += stacks ? 1 : piece.shape()[axis];
    }
    return;
  }
  const int k = start_kernel(node, buffer, node.id());
  const KernelRoot& root = plan_.roots[static_cast<size_t>(k)];
  if (node.is(Op::ReduceAxes) && is_contraction(node))
    plan_.roots[static_cast<size_t>(k)].has_contraction = true;
  propagate(node, Use{k, Indices{root.ranges, {}}, loops_of(root)});
}

Result<std::vector<Draft>> Splitter::run() {
  for (const Node& input : inputs_) {
    const int buffer = plan_.buffer_of_leaf(input);
    schedule_.buffers[static_cast<size_t>(buffer)].input =
        static_cast<int>(schedule_.inputs.size());
    schedule_.inputs.push_back(buffer);
  }
  collect_facts();
  std::unordered_set<Node> seen_outputs;
  for (const Node& output : outputs_) {
    const int buffer = new_buffer(BufferRole::Output, output.dtype(), output.shape(),
                                  "out" + std::to_string(schedule_.outputs.size()));
    schedule_.buffers.back().input = static_cast<int>(schedule_.outputs.size());
    schedule_.outputs.push_back(buffer);
    if ((is_leaf(output) || !seen_outputs.insert(output).second) &&
        element_count(output.shape()) != 0) {
      const int k = start_kernel(output, buffer, ~0u);
      KernelRoot& root = plan_.roots[static_cast<size_t>(k)];
      root.reads_realised = true;
      read(output, Use{k, Indices{root.ranges, {}}, loops_of(root)});
    }
  }
  std::vector<Node> order = ir::toposort(outputs_);
  std::sort(order.begin(), order.end(),
            [](const Node& a, const Node& b) { return a.id() > b.id(); });
  for (const Node& node : order) {
    if (is_leaf(node)) continue;
    const bool is_output = seen_outputs.count(node) != 0;
    const auto it = uses_.find(node);
    if (!is_output && it == uses_.end() && forced_.count(node) == 0) continue;
    if (element_count(node.shape()) == 0) continue;
    static const std::vector<Use> kNone;
    const std::vector<Use> readings = it == uses_.end() ? kNone : it->second;
    if (is_output || readings.empty() || must_realise(node, readings)) {
      realise(node);
    } else {
      for (const Use& use : readings) propagate(node, use);
    }
  }
  std::vector<Draft> drafts;
  for (size_t k = 0; k < plan_.roots.size(); ++k) {
    IGNIS_TRY_ASSIGN(Draft draft, write_draft(plan_, static_cast<int>(k)));
    drafts.push_back(std::move(draft));
  }
  std::stable_sort(drafts.begin(), drafts.end(),
                   [](const Draft& a, const Draft& b) { return a.order < b.order; });
  return drafts;
}

}  // namespace

Result<std::vector<Draft>> split_kernels(const std::vector<Node>& inputs,
                                         const std::vector<Node>& outputs, const Options& options,
                                         Schedule& schedule) {
  return Splitter(inputs, outputs, options, schedule).run();
}

}  // namespace ignis::schedule
