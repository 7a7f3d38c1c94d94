#include "ignis/codegen/linearize/blocks.h"

namespace ignis::codegen {

using ir::Graph;
using ir::Node;
using ir::Op;

BlockBuilder::BlockBuilder(Graph& graph) : graph_(graph), top_(std::make_unique<Block>()) {}

Node BlockBuilder::place(const Node& node) {
  if (home_.count(node) != 0) return node;
  Block* block = top_.get();
  for (int i = 0; i < node.source_count(); ++i) block = deeper(block, home(node.src(i)));
  append(block, node);
  return node;
}

void BlockBuilder::append(Block* block, const Node& node) {
  block->items.emplace_back(node);
  home_[node] = block;
}

Block* BlockBuilder::home(const Node& node) const {
  const auto it = home_.find(node);
  IGNIS_CHECK(it != home_.end()) << "a value is used before it is placed: " << to_string(node.op());
  return it->second;
}

Node BlockBuilder::value(Op op, DType dtype, std::span<const Node> sources, ir::Arg arg,
                         int lanes) {
  return place(graph_.make(op, dtype, sources, std::move(arg), lanes));
}

Node BlockBuilder::add(const Node& a, const Node& b) {
  if (a.is_const() && b.is_const()) return constant(DType::Int64, a.const_int() + b.const_int());
  if (a.is_const_value(0)) return b;
  if (b.is_const_value(0)) return a;
  return value(Op::Add, DType::Int64, {a, b});
}
Node BlockBuilder::mul(const Node& a, int64_t c) {
  if (a.is_const()) return constant(DType::Int64, a.const_int() * c);
  if (c == 1) return a;
  if (c == 0) return constant(DType::Int64, 0);
  return value(Op::Mul, DType::Int64, {a, constant(DType::Int64, c)});
}
Node BlockBuilder::div(const Node& a, int64_t c) {
  if (a.is_const()) return constant(DType::Int64, a.const_int() / c);
  if (c == 1) return a;
  return value(Op::Cdiv, DType::Int64, {a, constant(DType::Int64, c)});
}
Node BlockBuilder::mod(const Node& a, int64_t c) {
  if (a.is_const()) return constant(DType::Int64, a.const_int() % c);
  if (c == 1) return constant(DType::Int64, 0);
  return value(Op::Cmod, DType::Int64, {a, constant(DType::Int64, c)});
}
Node BlockBuilder::min(const Node& a, const Node& b) {
  if (a.is_const() && b.is_const())
    return constant(DType::Int64, std::min(a.const_int(), b.const_int()));
  return value(Op::Min, DType::Int64, {a, b});
}
Node BlockBuilder::max(const Node& a, const Node& b) {
  if (a.is_const() && b.is_const())
    return constant(DType::Int64, std::max(a.const_int(), b.const_int()));
  return value(Op::Max, DType::Int64, {a, b});
}

Block* BlockBuilder::open(Block* parent, const Node& end) {
  auto block = std::make_unique<Block>();
  block->range =
      graph_.make(Op::Range, DType::Int64, {end},
                  ir::Arg{{next_range_++, static_cast<int64_t>(ir::AxisKind::Loop)}, {}});
  block->parent = parent;
  block->depth = parent->depth + 1;
  Block* raw = block.get();
  home_[block->range] = raw;
  open_[raw] = std::move(block);
  return raw;
}

void BlockBuilder::close(Block* block) {
  const auto it = open_.find(block);
  IGNIS_CHECK(it != open_.end());
  std::unique_ptr<Block> owned = std::move(it->second);
  open_.erase(it);
  if (!owned->items.empty()) {
    block->parent->items.emplace_back(std::move(owned));
  }
}

Node BlockBuilder::declare_reg(Block* block, DType dtype, int lanes) {
  const Node reg =
      graph_.make(Op::Reg, dtype, std::span<const Node>{}, ir::Arg{{next_reg_++}, {}}, lanes);
  append(block, reg);
  return reg;
}

Node BlockBuilder::read_reg(Block* block, const Node& reg) {
  const Node read =
      graph_.make(Op::Load, reg.dtype(), {reg}, ir::Arg{{next_read_++}, {}}, reg.lanes());
  append(block, read);
  return read;
}

void BlockBuilder::write_reg(Block* block, const Node& reg, const Node& v) {
  append(block, graph_.make(Op::Store, DType::Void, {reg, v}));
}

std::vector<Node> BlockBuilder::take() {
  IGNIS_CHECK(open_.empty());
  std::vector<Node> list;
  struct Frame {
    Block* block;
    size_t next;
  };
  std::vector<Frame> stack{{top_.get(), 0}};
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next == frame.block->items.size()) {
      if (frame.block->range)
        list.push_back(graph_.make(Op::End, DType::Void, {frame.block->range}));
      stack.pop_back();
      continue;
    }
    auto& item = frame.block->items[frame.next++];
    if (const Node* node = std::get_if<Node>(&item)) {
      list.push_back(*node);
    } else {
      Block* inner = std::get<std::unique_ptr<Block>>(item).get();
      list.push_back(inner->range);
      stack.push_back({inner, 0});
    }
  }
  return list;
}

}  // namespace ignis::codegen
