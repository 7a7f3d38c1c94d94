#include "ignis/ir/order.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace ignis::ir {
namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2);
  h *= 0xBF58476D1CE4E5B9ull;
  return h ^ (h >> 31);
}

template <typename T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

const StructuralOrder::Key& StructuralOrder::of(const Node& node) {
  if (const Key* known = keys_.find(node.id()); known != nullptr && known->hash != 0) return *known;
  std::vector<Node> stack{node};
  while (!stack.empty()) {
    const Node top = stack.back();
    uint64_t h = mix(static_cast<uint64_t>(top.op()), static_cast<uint64_t>(top.dtype()));
    h = mix(h, static_cast<uint64_t>(top.lanes()));
    int64_t first_range = top.is(Op::Range) ? top.id_arg() : std::numeric_limits<int64_t>::max();
    bool ready = true;
    for (int i = 0; i < top.source_count(); ++i) {
      const Key& k = keys_[top.src(i).id()];
      if (k.hash == 0) {
        stack.push_back(top.src(i));
        ready = false;
        continue;
      }
      h = mix(h, k.hash);
      first_range = std::min(first_range, k.first_range);
    }
    if (!ready) continue;
    const Arg& arg = top.arg();
    for (const int64_t v : arg.ints) h = mix(h, static_cast<uint64_t>(v));
    for (const char c : arg.text) h = mix(h, static_cast<uint8_t>(c));
    keys_[top.id()] = {h == 0 ? 1 : h, first_range};
    stack.pop_back();
  }
  return keys_[node.id()];
}

int StructuralOrder::compare(const Node& a, const Node& b) {
  if (a == b) return 0;
  const Key ka = of(a), kb = of(b);
  if (ka.first_range != kb.first_range) return three_way(ka.first_range, kb.first_range);
  const bool a_range = a.is(Op::Range), b_range = b.is(Op::Range);
  if (a_range != b_range) return a_range ? -1 : 1;
  if (ka.hash != kb.hash) return three_way(ka.hash, kb.hash);
  // Equal hashes of different nodes: compare fields, then sources. Practically never reached, so recursion is fine.
  if (const int c = three_way(a.op(), b.op()); c != 0) return c;
  if (const int c = three_way(a.dtype(), b.dtype()); c != 0) return c;
  if (const int c = three_way(a.lanes(), b.lanes()); c != 0) return c;
  if (const int c = three_way(a.arg().ints, b.arg().ints); c != 0) return c;
  if (const int c = three_way(a.arg().text, b.arg().text); c != 0) return c;
  if (const int c = three_way(a.source_count(), b.source_count()); c != 0) return c;
  for (int i = 0; i < a.source_count(); ++i) {
    if (const int c = compare(a.src(i), b.src(i)); c != 0) return c;
  }
  return 0;
}

}  // namespace ignis::ir
