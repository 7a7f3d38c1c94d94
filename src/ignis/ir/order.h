#pragma once

#include "ignis/ir/node.h"
#include "ignis/ir/side_array.h"

#include <cstdint>

namespace ignis::ir {

/// A total order of nodes by structure alone (op, dtype, lanes, arg, sources): the same in every process and for
/// every order of creation. Ranges come first, by id; the rest by a 64-bit structural hash, full compare on a tie.
class StructuralOrder {
 public:
  /// 64-bit structural hash; equal nodes (also of different graphs) have equal hashes.
  uint64_t key(const Node& node) { return of(node).hash; }
  /// Three-way: negative, 0 (same structure) or positive. Both nodes belong to the same graph.
  int compare(const Node& a, const Node& b);
  bool less(const Node& a, const Node& b) { return compare(a, b) < 0; }

 private:
  struct Key {
    uint64_t hash = 0;  // 0: not computed yet
    int64_t first_range = 0;
  };
  const Key& of(const Node& node);

  SideArray<Key> keys_;
};

}  // namespace ignis::ir
