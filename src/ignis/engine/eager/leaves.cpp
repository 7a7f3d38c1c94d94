#include "ignis/engine/eager/leaves.h"

#include "ignis/engine/queues/plan_schedule.h"

#include <atomic>
#include <charconv>
#include <string_view>
#include <utility>

namespace ignis::engine {
namespace {

/// Names of our Params; what follows is the storage's id.
constexpr std::string_view kLeafPrefix = "array #";

std::atomic<uint64_t> next_storage_id{1};

}  // namespace

Storage::Storage(std::shared_ptr<LeafTable> table, uint64_t number)
    : leaves(std::move(table)), id(number) {}
Storage::~Storage() { leaves->forget(*this); }

void Storage::set_memory(const exec::Machine& machine,
                         const std::vector<runtime::MemoryRef>& memory) {
  for (size_t i = 0; i < lanes.size(); ++i) {
    lanes[i].memory = memory[i];
    const runtime::QueuedDevice* open = machine.find(lanes[i].device);
    lanes[i].generation = open == nullptr ? 1 : open->generation();
  }
}

StorageRef LeafTable::make(DType dtype, const Shape& shape, const std::string& device) {
  auto made = std::make_shared<Storage>(shared_from_this(), next_storage_id.fetch_add(1));
  made->dtype = dtype;
  made->shape = shape;
  made->device = device;
  for (std::string& name : split_devices(device)) made->lanes.push_back({std::move(name), {}, 1});
  for (const StorageLane& lane : made->lanes) made->input_devices.push_back({lane.device, 1});
  made->size_bytes = static_cast<uint64_t>(element_count(shape) * size_bytes(dtype));
  alive_[made->id] = made.get();
  if (keeper != nullptr) keeper->push_back(made);
  return made;
}

ir::Node LeafTable::leaf(Storage& storage) {
  if (storage.leaf) return storage.leaf;
  ir::ParamArg param;
  param.slot = next_version_++;
  param.name = std::string(kLeafPrefix) + std::to_string(storage.id);
  param.shape = storage.shape;
  storage.leaf = graph_->param(storage.dtype, param);
  by_leaf_[storage.leaf] = &storage;
  return storage.leaf;
}

void LeafTable::outdate(Storage& storage) {
  ++storage.writes;
  if (storage.leaf) by_leaf_.erase(storage.leaf);
  if (storage.computed) by_value_.erase(storage.computed);
  storage.leaf = storage.computed = ir::Node();
}

void LeafTable::note_computed(Storage& storage, const ir::Node& node,
                              const std::vector<StorageRef>& inputs) {
  if (node.is(ir::Op::Param)) return;  // a leaf is found by itself
  Value value{&storage, storage.writes, {}};
  for (const StorageRef& input : inputs) value.inputs.emplace_back(input->id, input->writes);
  const auto [known, is_new] = by_value_.try_emplace(node, value);
  if (!is_new) {
    if (is_current(known->second)) return;  // serves as well
    known->second.storage->computed = ir::Node();
    known->second = std::move(value);
  }
  storage.computed = node;
}

bool LeafTable::is_current(const Value& value) const {
  if (value.storage->writes != value.writes) return false;
  for (const auto& [id, writes] : value.inputs) {
    const auto alive = alive_.find(id);
    if (alive != alive_.end() && alive->second->writes != writes) return false;
  }
  return true;
}

StorageRef LeafTable::computed(const ir::Node& node) const {
  const auto found = by_value_.find(node);
  if (found == by_value_.end() || !is_current(found->second)) return nullptr;
  return found->second.storage->shared_from_this();
}

Result<StorageRef> LeafTable::storage_of(const ir::Node& param) const {
  if (const auto found = by_leaf_.find(param); found != by_leaf_.end()) {
    return found->second->shared_from_this();
  }
  const std::string name = ir::decode_param(param).name;
  uint64_t id = 0;
  if (name.starts_with(kLeafPrefix)) {
    std::from_chars(name.data() + kLeafPrefix.size(), name.data() + name.size(), id);
  }
  if (id == 0) {
    return Error(ErrorCode::InvalidArgument,
                 "The expression reads input '" + name +
                     "', which is no array of this workspace; make it of values of arrays.",
                 "UnknownInput");
  }
  const auto alive = alive_.find(id);
  if (alive == alive_.end()) {
    return Error(
        ErrorCode::InvalidArgument,
        "The expression reads " + name +
            ", which no array holds any more; keep the array, or make the expression lazy() "
            "while it lives.",
        "LostValue");
  }
  const std::string shown = alive->second->name.empty() ? name : "'" + alive->second->name + "'";
  return Error(ErrorCode::InvalidArgument,
               "The expression reads what was in " + shown +
                   " before it was written; realize it before assigning.",
               "StaleValue");
}

void LeafTable::forget(Storage& storage) {
  outdate(storage);
  alive_.erase(storage.id);
}

}  // namespace ignis::engine
