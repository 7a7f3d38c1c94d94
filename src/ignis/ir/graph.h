#pragma once

#include "ignis/ir/node.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace ignis::ir {

/// Bytes of a realised Buffer node: weights mapped from a file, or a host array. Immutable.
struct BufferData {
  const std::byte* bytes = nullptr;
  int64_t size_bytes = 0;
  std::shared_ptr<const void> owner;  ///< keeps `bytes` valid
};

/// An arena of hash-consed nodes. Making a node equal to a live one (op, dtype, lanes, sources, arg) returns that one.
/// Ids grow in creation order and sources have smaller ids than their users, so id order is a topological order.
/// Making nodes is serialised by a mutex; reading nodes takes no lock.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Makes a node and derives its shape. A shape or dtype rule that does not hold is a failed check: callers (the
  /// tensor front end, passes) test their inputs before.
  Node make(Op op, DType dtype, std::span<const Node> sources, Arg arg = {}, int lanes = 1);
  Node make(Op op, DType dtype, std::initializer_list<Node> sources, Arg arg = {}, int lanes = 1) {
    return make(op, dtype, std::span<const Node>(sources.begin(), sources.size()), std::move(arg),
                lanes);
  }
  /// Elementwise node whose dtype follows from its sources (comparisons: bool; Where: source 1; else source 0).
  Node alu(Op op, std::initializer_list<Node> sources);

  /// Constants. An integer is wrapped to the dtype, a float rounded to its grid; all NaNs are one constant.
  Node constant(DType dtype, int64_t value);
  Node constant_float(DType dtype, double value);
  /// Constant of any dtype from an exact integer.
  Node constant_like(const Node& like, int64_t value);
  Node invalid(DType dtype = DType::WeakInt);

  /// A fresh storage leaf of the tensor graph; every call gives a new slot.
  Node buffer(DType dtype, const Shape& shape, BufferData data = {});
  /// The data of a Buffer, or null bytes.
  BufferData buffer_data(const Node& buffer) const;

  Node param(DType dtype, const ParamArg& param);
  Node range(int64_t extent, int64_t id, AxisKind kind);
  Node range(const Node& end, int64_t id, AxisKind kind);
  Node cast(const Node& x, DType to);

  /// The same node with other sources (dtype, arg and lanes kept); `node` itself when nothing changes.
  Node rebuild(const Node& node, std::span<const Node> sources);
  /// Copies `root` and what it reaches from another graph into this one (buffer data is shared).
  Node import(const Node& root);

  size_t size() const { return size_.load(std::memory_order_acquire); }

  // Storage of one node. Kept flat: reading a field is one indexed access.
  struct NodeData {
    Op op;
    DType dtype;
    uint8_t reserved = 0;
    uint16_t lanes;
    uint16_t source_count;
    uint32_t arg;    // index of the interned Arg
    uint32_t shape;  // index of the interned Shape
    uint32_t hash;
    const uint32_t* sources;
  };
  const NodeData& data(uint32_t id) const { return chunks_[id >> kChunkBits][id & kChunkMask]; }
  const Arg& arg_at(uint32_t index) const;
  const Shape& shape_at(uint32_t index) const;

 private:
  static constexpr int kChunkBits = 12;
  static constexpr uint32_t kChunkMask = (1u << kChunkBits) - 1;
  static constexpr size_t kMaxChunks = 1u << 14;

  uint32_t intern_arg(Arg&& arg);
  uint32_t intern_shape(Shape&& shape);
  Shape derive_shape(Op op, std::span<const Node> sources, const Arg& arg) const;
  const uint32_t* store_sources(std::span<const Node> sources);
  void grow_table();

  std::mutex mutex_;
  std::atomic<size_t> size_{0};
  std::unique_ptr<std::unique_ptr<NodeData[]>[]> chunks_;
  std::vector<uint32_t> table_;  // open addressing; id + 1, 0 is empty
  struct Interned;               // args and shapes with stable addresses
  std::unique_ptr<Interned> interned_;
  std::vector<std::unique_ptr<uint32_t[]>> source_blocks_;
  size_t source_block_used_ = 0;
  size_t source_block_size_ = 0;
  std::unordered_map<uint32_t, BufferData> buffers_;
  mutable std::mutex buffers_mutex_;
  int64_t next_slot_ = 0;
};

/// What `root` reaches, sources before users, visiting sources in order. Iterative.
std::vector<Node> toposort(const Node& root);
std::vector<Node> toposort(std::span<const Node> roots);

/// A digest of (op, dtype, lanes, arg) and the sources' keys that is equal across graphs and processes.
/// 128 bits of xxh3 over a fixed binary form; version it with kContentKeyVersion when that form changes.
struct ContentKey {
  uint64_t lo = 0, hi = 0;
  bool operator==(const ContentKey&) const = default;
  auto operator<=>(const ContentKey&) const = default;
  std::string to_string() const;
};
inline constexpr int kContentKeyVersion = 1;
ContentKey content_key(const Node& root);

}  // namespace ignis::ir
