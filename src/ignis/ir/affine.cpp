#include "ignis/ir/affine.h"

#include <algorithm>

namespace ignis::ir {
namespace {

uint64_t size_of(int64_t v) {
  return v < 0 ? ~static_cast<uint64_t>(v) + 1 : static_cast<uint64_t>(v);
}

// Sorts, merges equal atoms, drops zeros. False when a coefficient leaves int64.
bool normalize(Affine& affine, StructuralOrder& order) {
  auto& terms = affine.terms;
  if (terms.size() > 1) {
    // Few terms: merging by search keeps the order's hashes out of the common case.
    for (size_t i = 0; i < terms.size(); ++i) {
      for (size_t j = i + 1; j < terms.size();) {
        if (terms[j].first != terms[i].first) {
          ++j;
          continue;
        }
        if (__builtin_add_overflow(terms[i].second, terms[j].second, &terms[i].second))
          return false;
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
      }
    }
  }
  std::erase_if(terms, [](const auto& t) { return t.second == 0; });
  std::sort(terms.begin(), terms.end(), [&](const auto& a, const auto& b) {
    const uint64_t sa = size_of(a.second), sb = size_of(b.second);
    return sa != sb ? sa > sb : order.less(a.first, b.first);
  });
  return true;
}

// Sums of more terms than this stay as they are: merging is quadratic, and addresses are short.
constexpr size_t kMaxTerms = 64;

bool collect(const Node& root, Affine& out, RangeAnalysis* ranges) {
  std::vector<std::pair<Node, int64_t>> stack{{root, 1}};
  while (!stack.empty()) {
    const auto [node, scale] = stack.back();
    stack.pop_back();
    const auto scaled = [&](int64_t by) -> std::optional<int64_t> {
      int64_t result = 0;
      if (__builtin_mul_overflow(scale, by, &result)) return std::nullopt;
      return result;
    };
    const auto add_constant = [&](int64_t value) {
      const auto term = scaled(value);
      return term && !__builtin_add_overflow(out.constant, *term, &out.constant);
    };
    if (node.is_const()) {
      if (!add_constant(node.const_int())) return false;
      continue;
    }
    switch (node.op()) {
      case Op::Add:
        stack.emplace_back(node.src(1), scale);
        stack.emplace_back(node.src(0), scale);
        continue;
      case Op::Sub:
      case Op::Neg: {
        const auto minus = scaled(-1);
        if (!minus) return false;
        if (node.is(Op::Neg)) {
          stack.emplace_back(node.src(0), *minus);
        } else {
          stack.emplace_back(node.src(1), *minus);
          stack.emplace_back(node.src(0), scale);
        }
        continue;
      }
      case Op::Mul: {
        const int constant = node.src(1).is_const() ? 1 : node.src(0).is_const() ? 0 : -1;
        if (constant < 0) break;
        const auto by = scaled(node.src(constant).const_int());
        if (!by) return false;
        stack.emplace_back(node.src(1 - constant), *by);
        continue;
      }
      case Op::Shl: {
        if (!node.src(1).is_const()) break;
        const int64_t count = node.src(1).const_int();
        if (count < 0 || count > 62) break;
        const auto by = scaled(int64_t{1} << count);
        if (!by) return false;
        stack.emplace_back(node.src(0), *by);
        continue;
      }
      default: break;
    }
    if (ranges != nullptr) {
      const Interval interval = ranges->interval(node);
      if (interval.is_point()) {
        if (!add_constant(interval.lo)) return false;
        continue;
      }
    }
    if (scale != 0) out.terms.emplace_back(node, scale);
    if (out.terms.size() + stack.size() > kMaxTerms) return false;
  }
  return true;
}

}  // namespace

int64_t Affine::coefficient(const Node& atom) const {
  for (const auto& [node, c] : terms) {
    if (node == atom) return c;
  }
  return 0;
}

Affine to_affine(const Node& node, StructuralOrder& order, RangeAnalysis* ranges) {
  Affine affine;
  if (collect(node, affine, ranges) && normalize(affine, order)) return affine;
  return {0, {{node, 1}}};
}

Affine to_affine(Graph&, const Node& node) {
  StructuralOrder order;
  return to_affine(node, order);
}

Node from_affine(Graph& graph, const Affine& affine, DType dtype) {
  Node sum;
  for (const auto& [atom, coefficient] : affine.terms) {
    const Node term = coefficient == 1
                          ? atom
                          : graph.make(Op::Mul, dtype, {atom, graph.constant(dtype, coefficient)});
    sum = sum ? graph.make(Op::Add, dtype, {sum, term}) : term;
  }
  if (!sum) return graph.constant(dtype, affine.constant);
  if (affine.constant == 0) return sum;
  return graph.make(Op::Add, dtype, {sum, graph.constant(dtype, affine.constant)});
}

std::optional<Affine> add_scaled(const Affine& a, const Affine& b, int64_t scale,
                                 StructuralOrder& order) {
  Affine sum = a;
  int64_t term = 0;
  if (__builtin_mul_overflow(b.constant, scale, &term) ||
      __builtin_add_overflow(sum.constant, term, &sum.constant)) {
    return std::nullopt;
  }
  for (const auto& [atom, coefficient] : b.terms) {
    if (__builtin_mul_overflow(coefficient, scale, &term)) return std::nullopt;
    sum.terms.emplace_back(atom, term);
  }
  if (!normalize(sum, order)) return std::nullopt;
  return sum;
}

Node substitute(Graph& graph, const Node& root, const std::unordered_map<Node, Node>& map) {
  std::unordered_map<uint32_t, Node> done;
  const auto result_of = [&](const Node& node) -> Node {
    const auto it = done.find(node.id());
    return it == done.end() ? Node() : it->second;
  };
  std::vector<Node> stack{root}, sources;
  while (!stack.empty()) {
    const Node top = stack.back();
    if (result_of(top)) {
      stack.pop_back();
      continue;
    }
    if (const auto it = map.find(top); it != map.end()) {
      done[top.id()] = it->second;
      stack.pop_back();
      continue;
    }
    bool ready = true;
    sources.clear();
    for (int i = 0; i < top.source_count(); ++i) {
      sources.push_back(result_of(top.src(i)));
      if (!sources.back()) {
        stack.push_back(top.src(i));
        ready = false;
      }
    }
    if (!ready) continue;
    done[top.id()] = graph.rebuild(top, sources);
    stack.pop_back();
  }
  return result_of(root);
}

bool chooses_by(const Node& value, const Node& range) {
  constexpr int kBorders = 2;
  const auto is_range = [&](const Node& n) { return (n.is(Op::Cast) ? n.src(0) : n) == range; };
  int comparisons = 0;
  for (const Node& n : toposort(value)) {
    if (!n.is(Op::Cmplt)) continue;
    comparisons +=
        (is_range(n.src(0)) && n.src(1).is_const()) || (is_range(n.src(1)) && n.src(0).is_const());
  }
  return comparisons > kBorders;
}

bool depends_on(const Node& root, const Node& node) {
  if (root == node) return true;
  SideArray<bool> seen;
  std::vector<Node> stack{root};
  while (!stack.empty()) {
    const Node top = stack.back();
    stack.pop_back();
    // Sources have smaller ids than their users: nothing below a smaller id can reach `node`.
    if (top.id() < node.id() || seen[top.id()]) continue;
    if (top == node) return true;
    seen[top.id()] = true;
    for (int i = 0; i < top.source_count(); ++i) stack.push_back(top.src(i));
  }
  return false;
}

const std::vector<Node>& OpenRanges::of(const Node& node) {
  static const auto kEmpty = std::make_shared<const Set>();
  const auto by_id = [](const Node& a, const Node& b) {
    return a.id_arg() != b.id_arg() ? a.id_arg() < b.id_arg() : a.id() < b.id();
  };
  std::vector<Node> stack{node};
  while (!stack.empty()) {
    const Node top = stack.back();
    if (sets_[top.id()]) {
      stack.pop_back();
      continue;
    }
    bool ready = true;
    for (int i = 0; i < top.source_count(); ++i) {
      if (sets_[top.src(i).id()]) continue;
      stack.push_back(top.src(i));
      ready = false;
    }
    if (!ready) continue;
    stack.pop_back();
    // Most nodes have the same set as their first source with any: share it.
    std::shared_ptr<const Set> set = kEmpty;
    const bool ends = top.is(Op::Reduce) || top.is(Op::End);
    const int used = ends ? 1 : top.source_count();
    for (int i = 0; i < used; ++i) {
      const auto& other = sets_[top.src(i).id()];
      if (other == set || other->empty()) continue;
      if (set->empty()) {
        set = other;
        continue;
      }
      if (std::includes(set->begin(), set->end(), other->begin(), other->end(), by_id)) continue;
      auto merged = std::make_shared<Set>();
      std::set_union(set->begin(), set->end(), other->begin(), other->end(),
                     std::back_inserter(*merged), by_id);
      set = std::move(merged);
    }
    const auto edited = [&](auto edit) {
      auto copy = std::make_shared<Set>(*set);
      edit(*copy);
      set = std::move(copy);
    };
    if (ends) {
      for (int i = 1; i < top.source_count(); ++i) {  // what a loop's own bounds use stays open
        const auto& bounds = sets_[top.src(i).id()];
        edited([&](Set& s) {
          for (const Node& r : *bounds) {
            if (r != top.src(i) && !std::binary_search(s.begin(), s.end(), r, by_id)) {
              s.insert(std::lower_bound(s.begin(), s.end(), r, by_id), r);
            }
          }
        });
      }
      edited([&](Set& s) {
        std::erase_if(s, [&](const Node& r) {
          for (int i = 1; i < top.source_count(); ++i) {
            if (top.src(i) == r) return true;
          }
          return false;
        });
      });
    } else if (top.is(Op::Range)) {
      edited([&](Set& s) { s.insert(std::lower_bound(s.begin(), s.end(), top, by_id), top); });
    }
    sets_[top.id()] = std::move(set);
  }
  return *sets_[node.id()];
}

std::vector<Node> open_ranges(const Node& node) {
  OpenRanges open;
  return open.of(node);
}

}  // namespace ignis::ir
