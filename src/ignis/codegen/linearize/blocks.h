#pragma once

#include "ignis/ir/graph.h"

#include <memory>
#include <unordered_map>
#include <variant>
#include <vector>

namespace ignis::codegen {

/// A loop body under construction: nodes and inner loops in execution order.
struct Block {
  ir::Node range;  ///< null for the top of the program
  Block* parent = nullptr;
  int depth = 0;
  std::vector<std::variant<ir::Node, std::unique_ptr<Block>>> items;
};

/// Builds the ordered list of a program. A pure value goes into the innermost loop that one of its sources needs, so
/// whatever does not change in a loop stands before it; equal values are made once. Register reads and writes and
/// stores go where the caller says.
class BlockBuilder {
 public:
  explicit BlockBuilder(ir::Graph& graph);

  ir::Graph& graph() { return graph_; }
  Block* top() { return top_.get(); }

  /// Makes a pure node and places it (constants and params too).
  ir::Node value(ir::Op op, DType dtype, std::span<const ir::Node> sources, ir::Arg arg = {},
                 int lanes = 1);
  ir::Node value(ir::Op op, DType dtype, std::initializer_list<ir::Node> sources, ir::Arg arg = {},
                 int lanes = 1) {
    return value(op, dtype, std::span<const ir::Node>(sources.begin(), sources.size()),
                 std::move(arg), lanes);
  }
  ir::Node constant(DType dtype, int64_t v) { return place(graph_.constant(dtype, v)); }
  ir::Node constant_float(DType dtype, double v) { return place(graph_.constant_float(dtype, v)); }
  /// Int64 arithmetic with folding of constants and identities.
  ir::Node add(const ir::Node& a, const ir::Node& b);
  ir::Node mul(const ir::Node& a, int64_t c);
  ir::Node div(const ir::Node& a, int64_t c);  ///< a >= 0, c > 0
  ir::Node mod(const ir::Node& a, int64_t c);
  ir::Node min(const ir::Node& a, const ir::Node& b);
  ir::Node max(const ir::Node& a, const ir::Node& b);

  ir::Node place(const ir::Node& node);
  /// The loop body a placed node stands in.
  Block* home(const ir::Node& node) const;
  static Block* deeper(Block* a, Block* b) { return a->depth >= b->depth ? a : b; }

  /// Opens a loop in `parent`; close() appends it there. Loops of one parent close in the order they stand.
  Block* open(Block* parent, const ir::Node& end);
  void close(Block* block);

  ir::Node declare_reg(Block* block, DType dtype, int lanes);
  ir::Node read_reg(Block* block, const ir::Node& reg);
  void write_reg(Block* block, const ir::Node& reg, const ir::Node& v);
  void append(Block* block, const ir::Node& node);

  /// The finished list. Every opened block must be closed.
  std::vector<ir::Node> take();

 private:
  ir::Graph& graph_;
  std::unique_ptr<Block> top_;
  std::unordered_map<Block*, std::unique_ptr<Block>> open_;
  std::unordered_map<ir::Node, Block*> home_;
  int64_t next_range_ = 0, next_reg_ = 0, next_read_ = 0;
};

}  // namespace ignis::codegen
