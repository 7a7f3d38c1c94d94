#include "ignis/codegen/optimize/kernel.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace ignis::codegen {

using ir::AxisKind;
using ir::Graph;
using ir::Node;
using ir::Op;

int64_t Address::coefficient(int axis) const {
  for (const Linear& t : linear) {
    if (t.axis == axis) return t.coefficient;
  }
  return 0;
}

bool Address::depends_on(int axis) const {
  if (coefficient(axis) != 0 || divisor(axis) != 0) return true;
  return std::any_of(opaque.begin(), opaque.end(),
                     [&](const Opaque& t) { return (t.axes & axis_bit(axis)) != 0; });
}

int64_t Address::divisor(int axis) const {
  for (const Div& t : divs) {
    if (t.axis == axis) return t.divisor;
  }
  return 0;
}

int Kernel::axis_of(const Node& range) const {
  const auto it = axis_index_.find(range);
  IGNIS_CHECK(it != axis_index_.end())
      << "range " << range.id_arg() << " is not an axis of the kernel";
  return it->second;
}

AxisMask Kernel::axes_of(const Node& expression) const {
  const auto found = masks_.find(expression);
  if (found != masks_.end()) return found->second;
  for (const Node& n : ir::toposort(expression)) {
    if (masks_.count(n) != 0) continue;
    AxisMask mask = 0;
    if (n.is(Op::Range)) {
      mask = axis_bit(axis_of(n));
    } else if (n.is(Op::Index) && detached_) {
      const Address& a = address(n);
      for (const Address::Linear& t : a.linear) mask |= axis_bit(t.axis);
      for (const Address::Div& t : a.divs) mask |= axis_bit(t.axis);
      for (const Address::Opaque& t : a.opaque) mask |= t.axes;
    } else {
      for (int i = 0; i < n.source_count(); ++i) mask |= masks_.at(n.src(i));
      if (n.is(Op::Reduce)) {
        for (int i = 1; i < n.source_count(); ++i) mask &= ~axis_bit(axis_of(n.src(i)));
      }
    }
    masks_[n] = mask;
  }
  return masks_.at(expression);
}

Result<Address> Kernel::read_address(const Node& offset) {
  const ir::Affine affine = ir::to_affine(*graph_, offset);
  Address address;
  address.constant = affine.constant;
  const auto add_linear = [&](int axis, int64_t c) {
    for (Address::Linear& t : address.linear) {
      if (t.axis != axis) continue;
      t.coefficient += c;
      return;
    }
    address.linear.push_back({axis, c});
  };
  for (const auto& [atom, c] : affine.terms) {
    const Node n = atom.is(Op::Cast) && atom.src(0).is(Op::Range) ? atom.src(0) : atom;
    const bool by_constant = (n.is(Op::Floordiv) || n.is(Op::Floormod)) && n.src(0).is(Op::Range) &&
                             n.src(1).is_const() && n.src(1).const_int() > 0;
    if (n.is(Op::Range)) {
      add_linear(axis_of(n), c);
    } else if (by_constant) {
      const int axis = axis_of(n.src(0));
      const int64_t d = n.src(1).const_int();
      if (n.is(Op::Floormod)) add_linear(axis, c);
      const int64_t dc = n.is(Op::Floormod) ? -c * d : c;
      bool merged = false;
      for (Address::Div& t : address.divs) {
        if (t.axis != axis || t.divisor != d) continue;
        t.coefficient += dc;
        merged = true;
      }
      if (!merged) address.divs.push_back({axis, d, dc});
    } else {
      address.opaque.push_back({n, c, axes_of(n)});
    }
  }
  std::erase_if(address.linear, [](const Address::Linear& t) { return t.coefficient == 0; });
  std::erase_if(address.divs, [](const Address::Div& t) { return t.coefficient == 0; });
  return address;
}

const Address& Kernel::address(const Node& index) const {
  IGNIS_CHECK(detached_ && index.is(Op::Index) && index.src(1).is_const());
  return addresses_[static_cast<size_t>(index.src(1).const_int())];
}

Result<Kernel> Kernel::analyse(std::shared_ptr<Graph> graph, const Node& sink) {
  Kernel kernel;
  kernel.graph_ = std::move(graph);
  kernel.sink_ = sink;
  if (sink.source_count() != 1 || !sink.src(0).is(Op::Store)) {
    return Error(ErrorCode::Unsupported, "A CPU kernel has exactly one Store; this one has " +
                                             std::to_string(sink.source_count()) + " effects.");
  }
  std::unordered_set<Node> reduced;
  std::vector<Node> ranges;
  for (const Node& n : ir::toposort(sink)) {
    if (n.is(Op::Range)) {
      if (n.range_extent() < 0)
        return Error(ErrorCode::Unsupported, "A range has no constant extent.");
      ranges.push_back(n);
    }
    if (!n.is(Op::Reduce)) continue;
    for (int i = 1; i < n.source_count(); ++i) reduced.insert(n.src(i));
  }
  const ir::Affine stored = ir::to_affine(*kernel.graph_, sink.src(0).src(0).src(1));
  std::vector<Node> outputs;
  for (const Node& r : ranges) {
    if (reduced.count(r) == 0) outputs.push_back(r);
  }
  std::stable_sort(outputs.begin(), outputs.end(), [&](const Node& a, const Node& b) {
    const int64_t x = stored.coefficient(a), y = stored.coefficient(b);
    return x != y ? x > y : a.id_arg() < b.id_arg();
  });
  std::erase_if(ranges, [&](const Node& r) { return reduced.count(r) == 0; });
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const Node& a, const Node& b) { return a.id_arg() < b.id_arg(); });
  outputs.insert(outputs.end(), ranges.begin(), ranges.end());
  if (outputs.size() > 64) {
    return Error(ErrorCode::Unsupported,
                 "A kernel has " + std::to_string(outputs.size()) + " loops; 64 is the limit.");
  }
  for (const Node& r : outputs) {
    kernel.axis_index_[r] = static_cast<int>(kernel.axes_.size());
    kernel.axes_.push_back({r, r.range_extent(), reduced.count(r) != 0});
  }
  return kernel;
}

Node Kernel::detach_addresses() {
  std::unordered_map<Node, Node> done;
  std::vector<Node> offsets;
  std::vector<Node> sources;
  for (const Node& n : ir::toposort(sink_)) {
    sources.clear();
    for (int i = 0; i < n.source_count(); ++i) sources.push_back(done.at(n.src(i)));
    if (n.is(Op::Index)) {
      sources[1] = graph_->constant(DType::Int64, static_cast<int64_t>(offsets.size()));
      // The offset as rewritten so far: loads inside it have numbered addresses of their own.
      offsets.push_back(done.at(n.src(1)));
    }
    done[n] = graph_->rebuild(n, sources);
  }
  detached_ = true;
  for (const Node& offset : offsets) {
    Result<Address> address = read_address(offset);
    addresses_.push_back(*std::move(address));
  }
  sink_ = done.at(sink_);
  return sink_;
}

Status Kernel::set_sink(const Node& sink) {
  sink_ = sink;
  return find_sites();
}

Status Kernel::find_sites() {
  reduces_.clear();
  loads_.clear();
  for (const Node& n : ir::toposort(sink_)) {
    if (n.is(Op::Load)) loads_.push_back(n);
    if (!n.is(Op::Reduce)) continue;
    ReduceSite site;
    site.node = n;
    for (int i = 1; i < n.source_count(); ++i) site.axes.push_back(axis_of(n.src(i)));
    site.outer = axes_of(n);
    site.is_product = n.reduce_op() == Op::Add && n.src(0).is(Op::Mul) && is_float(n.dtype());
    std::vector<Node> stack{n.src(0)};
    std::unordered_set<Node> seen;
    while (!stack.empty()) {
      const Node m = stack.back();
      stack.pop_back();
      if (!seen.insert(m).second || m.is(Op::Reduce)) continue;
      if (m.is(Op::Load)) site.loads.push_back(m);
      for (int i = 0; i < m.source_count(); ++i) stack.push_back(m.src(i));
    }
    std::sort(site.loads.begin(), site.loads.end(),
              [](const Node& a, const Node& b) { return a.id() < b.id(); });
    reduces_.push_back(std::move(site));
  }
  return Status::ok();
}

int Kernel::widest_bytes() const {
  int widest = 1;
  for (const Node& n : ir::toposort(stored_value())) {
    if (!n.is(Op::Load) && !n.is(Op::Reduce) && !ir::is_elementwise(n.op())) continue;
    if (is_weak(n.dtype()) || n.dtype() == DType::Void) continue;
    // Index arithmetic of gates is 64 bits wide; it does not decide the vector's width unless it is stored.
    if (n.dtype() == DType::Int64 && stored_value().dtype() != DType::Int64 && !n.is(Op::Load))
      continue;
    widest = std::max(widest, size_bytes(n.dtype()));
  }
  return widest;
}

/// A condition that only looks at where the kernel stands.
bool is_index_rule(const Node& condition) {
  const std::vector<Node> nodes = ir::toposort(condition);
  return std::none_of(nodes.begin(), nodes.end(), [](const Node& n) { return n.is(Op::Load); });
}

double Kernel::flops() const {
  double total = 0;
  std::unordered_set<Node> counted;
  for (const ReduceSite& site : reduces_) {
    double times = 1;
    for (const int a : site.axes)
      times *= static_cast<double>(axes_[static_cast<size_t>(a)].extent);
    for (size_t a = 0; a < axes_.size(); ++a) {
      if ((site.outer & axis_bit(static_cast<int>(a))) != 0)
        times *= static_cast<double>(axes_[a].extent);
    }
    int ops = 1;
    for (const Node& n : ir::toposort(site.node.src(0))) {
      if (n.is(Op::Reduce) || !ir::is_elementwise(n.op()) || !is_float(n.dtype())) continue;
      if (counted.insert(n).second) ++ops;
    }
    total += times * ops;
  }
  // A value is computed once for all axes that it does not move with; a choice by ranges is none at run time.
  for (const Node& n : ir::toposort(stored_value())) {
    if (!ir::is_elementwise(n.op()) || !is_float(n.dtype()) || counted.count(n) != 0) continue;
    if (n.is(Op::Where) && is_index_rule(n.src(0))) continue;
    double times = 1;
    for (size_t a = 0; a < axes_.size(); ++a) {
      if ((axes_of(n) & axis_bit(static_cast<int>(a))) != 0)
        times *= static_cast<double>(axes_[a].extent);
    }
    total += times;
  }
  return total;
}

double Kernel::bytes() const {
  double total = 0;
  for (const Node& n : ir::toposort(sink_)) {
    if (n.is(Op::Param))
      total += static_cast<double>(element_count(n.shape())) * size_bytes(n.dtype());
  }
  return total;
}

namespace {

/// Ranges that occur outside of Index offsets (in gates or as values).
std::unordered_set<Node> ranges_as_values(const Node& sink) {
  std::unordered_set<Node> found, seen;
  std::vector<Node> stack{sink};
  while (!stack.empty()) {
    const Node n = stack.back();
    stack.pop_back();
    if (!seen.insert(n).second) continue;
    if (n.is(Op::Range)) {
      found.insert(n);
      continue;
    }
    const int count = n.is(Op::Index) || n.is(Op::Reduce) ? 1 : n.source_count();
    for (int i = 0; i < count; ++i) stack.push_back(n.src(i));
  }
  return found;
}

bool walks_as_one(const std::vector<ir::Affine>& offsets, const Node& outer, const Node& inner) {
  for (const ir::Affine& a : offsets) {
    if (a.coefficient(outer) != a.coefficient(inner) * inner.range_extent()) return false;
    for (const auto& [atom, c] : a.terms) {
      if (!atom.is(Op::Range) && (ir::depends_on(atom, outer) || ir::depends_on(atom, inner)))
        return false;
    }
  }
  return true;
}

}  // namespace

Node merge_ranges(Graph& g, const Node& sink_in) {
  Node sink = sink_in;
  for (;;) {
    std::vector<Node> ranges;
    std::vector<ir::Affine> offsets;
    std::unordered_map<Node, Node> owner;  // reduce range -> its Reduce
    int64_t max_id = 0;
    for (const Node& n : ir::toposort(sink)) {
      if (n.is(Op::Range)) {
        // Rows of a chain stay a loop of their own.
        if (n.axis_kind() != AxisKind::Thread) ranges.push_back(n);
        max_id = std::max(max_id, n.id_arg());
      }
      if (n.is(Op::Index)) offsets.push_back(ir::to_affine(g, n.src(1)));
      if (n.is(Op::Reduce)) {
        for (int i = 1; i < n.source_count(); ++i) owner[n.src(i)] = n;
      }
    }
    const std::unordered_set<Node> as_value = ranges_as_values(sink);
    std::sort(ranges.begin(), ranges.end(),
              [](const Node& a, const Node& b) { return a.id_arg() < b.id_arg(); });
    Node outer, inner;
    for (const Node& a : ranges) {
      for (const Node& b : ranges) {
        if (a == b || outer || as_value.count(a) != 0 || as_value.count(b) != 0) continue;
        const auto oa = owner.find(a), ob = owner.find(b);
        if ((oa == owner.end()) != (ob == owner.end())) continue;
        if (oa != owner.end() && oa->second != ob->second) continue;
        if (!walks_as_one(offsets, a, b)) continue;
        outer = a;
        inner = b;
      }
    }
    if (!outer) return sink;
    const Node joined =
        g.range(outer.range_extent() * inner.range_extent(), max_id + 1, inner.axis_kind());
    const Node zero = g.constant(DType::WeakInt, 0);
    std::unordered_map<Node, Node> done;
    std::vector<Node> sources;
    for (const Node& n : ir::toposort(sink)) {
      if (n == outer || n == inner) {
        done[n] = n == outer ? zero : joined;
        continue;
      }
      sources.clear();
      for (int i = 0; i < n.source_count(); ++i) {
        if (n.is(Op::Reduce) && i > 0 && n.src(i) == outer) continue;
        sources.push_back(done.at(n.src(i)));
      }
      done[n] = g.rebuild(n, sources);
    }
    sink = done.at(sink);
  }
}

}  // namespace ignis::codegen
