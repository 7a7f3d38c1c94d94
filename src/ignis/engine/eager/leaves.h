#pragma once

#include "ignis/base/result.h"
#include "ignis/engine/eager/storage.h"
#include "ignis/ir/graph.h"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ignis::engine {

/// Which node of a graph reads which storage. Storages note themselves and are forgotten when they go.
class LeafTable : public std::enable_shared_from_this<LeafTable> {
 public:
  explicit LeafTable(std::shared_ptr<ir::Graph> graph) : graph_(std::move(graph)) {}

  const std::shared_ptr<ir::Graph>& graph() const { return graph_; }
  std::vector<StorageRef>* keeper = nullptr;
  /// A storage without memory; `keeper` holds it too while there is one.
  StorageRef make(DType dtype, const Shape& shape, const std::string& device);
  /// What reads the storage as it is now. Made when it is asked for, so that writes alone make no nodes.
  ir::Node leaf(Storage& storage);
  /// Its contents are others now: what was its leaf is stale, and no expression has its value. Allocates nothing.
  void outdate(Storage& storage);
  /// A replay has written it again: its leaf goes on and reads what is there now, but values that were computed from it are
  /// those of another time. Allocates nothing.
  void note_replayed(Storage& storage) { ++storage.writes; }
  /// The contents of `storage` are the value of `node` over `inputs`; expressions over `node` read it until one of them is
  /// written.
  void note_computed(Storage& storage, const ir::Node& node, const std::vector<StorageRef>& inputs);

  /// What has the value of `node`, or null.
  StorageRef computed(const ir::Node& node) const;
  /// What a Param reads. Errors: InvalidArgument with the reason StaleValue, LostValue or UnknownInput.
  Result<StorageRef> storage_of(const ir::Node& param) const;

 private:
  friend struct Storage;
  void forget(Storage& storage);

  std::shared_ptr<ir::Graph> graph_;
  int64_t next_version_ = 0;
  /// What was there when a value was computed; a storage that is gone was not written since.
  struct Value {
    Storage* storage = nullptr;
    uint64_t writes = 0;
    std::vector<std::pair<uint64_t, uint64_t>> inputs;  // id, writes
  };
  bool is_current(const Value& value) const;

  std::unordered_map<ir::Node, Storage*> by_leaf_;
  std::unordered_map<ir::Node, Value> by_value_;
  std::unordered_map<uint64_t, Storage*> alive_;
};

}  // namespace ignis::engine
