#pragma once

#include "ignis/engine/eager/leaves.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ignis::engine {

/// Tensor expressions down to the storages that they read.
struct Expression {
  std::vector<ir::Node> roots;
  std::vector<ir::Node> order;                 ///< every node, sources before users
  std::vector<StorageRef> inputs;              ///< in the order of first use
  std::unordered_map<ir::Node, int> input_of;  ///< the nodes of `order` that are inputs
  /// Whether `storage` is read, and whether every element of every root needs no other element of it.
  bool reads(const Storage& storage) const;
  bool reads_aligned(const Storage& storage) const;
};

/// What is between `roots` and storages. An expression whose value lies in a storage is not looked into.
/// Errors: as LeafTable::storage_of().
Result<Expression> read_expression(const LeafTable& leaves, std::vector<ir::Node> roots);

/// The expression without its storages: equal for equal ones, whatever they read.
struct Pattern {
  std::string key;
  std::vector<ir::BufferData> held;  ///< bytes that the key names by their address
};
Pattern make_pattern(const Expression& expression);

/// A graph of its own with the expression, its inputs being Params in their order.
struct PatternGraph {
  std::shared_ptr<ir::Graph> graph;
  std::vector<ir::Node> inputs, roots;
};
PatternGraph make_graph(const Expression& expression);

}  // namespace ignis::engine
