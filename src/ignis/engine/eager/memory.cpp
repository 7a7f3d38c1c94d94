#include "ignis/base/math.h"
#include "ignis/engine/eager/state.h"
#include "ignis/exec/host_memory.h"
#include "ignis/exec/run_linked.h"

#include <cstring>
#include <optional>
#include <utility>

/// How bytes get into arrays, from one to another, and out.
namespace ignis::engine {
namespace {

/// The shape of a lane when what `from` holds is on `lanes` devices: the leading axis is cut, or joined.
Result<Shape> reshape_lanes(const Array& from, size_t lanes) {
  Shape shape = from.shape();
  const auto before = static_cast<int64_t>(from.lane_count()), after = static_cast<int64_t>(lanes);
  if (before == after) return shape;
  const bool fits = !shape.empty() && (before == 1 || after == 1) && shape[0] * before % after == 0;
  if (!fits) {
    return Error(ErrorCode::InvalidArgument,
                 "An array of " + to_string(shape) + " on " + std::to_string(before) +
                     " devices goes to " + std::to_string(after) +
                     "; one of both is 1, and the leading axis is cut in equal parts.",
                 "LaneCount");
  }
  shape[0] = shape[0] * before / after;
  return shape;
}

/// Copies a view's elements out of its base, row by row.
void gather(const std::byte* base, const std::vector<int64_t>& strides, const Shape& shape,
            size_t item, std::byte* to) {
  const size_t rank = shape.size();
  const int64_t count = element_count(shape);
  if (count == 0) return;
  std::vector<int64_t> at(rank, 0);
  const int64_t row = rank == 0 ? 1 : shape[rank - 1];
  const int64_t step = rank == 0 ? 1 : strides[rank - 1];
  for (int64_t done = 0; done < count; done += row) {
    int64_t from = 0;
    for (size_t i = 0; i + 1 < rank; ++i) from += at[i] * strides[i];
    for (int64_t k = 0; k < row; ++k) {
      std::memcpy(to, base + static_cast<size_t>(from + k * step) * item, item);
      to += item;
    }
    for (size_t i = rank - 1; rank > 0 && i-- > 0;) {
      if (++at[i] < shape[i]) break;
      at[i] = 0;
    }
  }
}

}  // namespace

Status WorkspaceState::allocate(Storage& storage) {
  std::vector<runtime::MemoryRef> memory;
  for (const StorageLane& lane : storage.lanes) {
    IGNIS_TRY_ASSIGN(const exec::Placement made,
                     machine->allocate(lane.device, storage.size_bytes, runtime::Purpose::Data));
    memory.push_back(made.memory);
  }
  storage.set_memory(*machine, memory);
  return {};
}

Result<Array> WorkspaceState::make_from_bytes(std::span<const std::byte> bytes, DType dtype,
                                              const Shape& shape, const std::string& device) {
  IGNIS_TRY_ASSIGN(const std::string name, device_name(device));
  StorageRef storage = leaves->make(dtype, shape, name);
  IGNIS_TRY(allocate(*storage));
  IGNIS_TRY(write_memory(*machine, storage->lanes[0].memory, 0, bytes));
  return make_array(std::move(storage));
}

Status WorkspaceState::wait_for(const Storage& storage) const {
  return exec::make_readable(*machine, storage.placement(), options.limits);
}

Result<Array> Workspace::from_host(const HostTensor& value, const std::string& device) const {
  IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(value.shape));
  const int64_t item = is_weak(value.dtype) ? 0 : size_bytes(value.dtype);
  if (item == 0 || value.bytes.size() != static_cast<size_t>(count * item)) {
    return Error(ErrorCode::InvalidArgument,
                 std::string(to_string(value.dtype)) + " " + to_string(value.shape) + " has " +
                     std::to_string(count * item) + " bytes; " +
                     std::to_string(value.bytes.size()) + " are given.",
                 "WrongSize");
  }
  IGNIS_TRY_ASSIGN(const std::string name, state_->device_name(device));
  if (split_devices(name).size() > 1) {
    IGNIS_TRY_ASSIGN(const Array whole, from_host(value, state_->machine->options().host_name));
    return copy_to(whole, name);
  }
  IGNIS_TRY_ASSIGN(Array made,
                   state_->make_from_bytes(value.bytes, value.dtype, value.shape, name));
  // Recorded calls may write it: each replay starts from the data.
  if (is_recording()) return clone(made.set_name("host data").mark_constant());
  return made;
}

Result<Array> Workspace::wrap(const ExternalMemory& memory, DType dtype, const Shape& shape) const {
  IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(shape));
  const int64_t item = is_weak(dtype) ? 0 : size_bytes(dtype);
  const auto needed = static_cast<uint64_t>(count * item);
  const auto address = reinterpret_cast<uint64_t>(memory.bytes);
  if (item == 0 || memory.bytes == nullptr || memory.size_bytes < needed ||
      address % static_cast<uint64_t>(item) != 0) {
    return Error(ErrorCode::InvalidArgument,
                 std::string(to_string(dtype)) + " " + to_string(shape) + " needs " +
                     std::to_string(needed) + " bytes at an address that its elements divide; " +
                     std::to_string(memory.size_bytes) +
                     " bytes at an address with the alignment " +
                     std::to_string(exec::alignment_class(address)) + " are given.",
                 "WrongSize");
  }
  StorageRef storage = state_->leaves->make(dtype, shape, state_->machine->options().host_name);
  storage->set_memory(*state_->machine, {exec::wrap_host_memory(storage->device, memory.bytes,
                                                                memory.size_bytes, memory.keeps)});
  storage->memory_class = exec::MemoryClass::External;
  storage->layout = memory.layout;
  storage->is_writable = memory.is_writable;
  return state_->make_array(std::move(storage));
}

Result<Array> Workspace::adopt(const exec::Placement& at, DType dtype, const Shape& shape) const {
  IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(shape));
  const int64_t item = is_weak(dtype) ? 0 : size_bytes(dtype);
  if (item == 0 || at.memory == nullptr || at.size_bytes < static_cast<uint64_t>(count * item) ||
      !is_range_inside(at.offset_bytes, at.size_bytes, at.memory->size_bytes())) {
    return Error(ErrorCode::InvalidArgument,
                 std::string(to_string(dtype)) + " " + to_string(shape) + " needs " +
                     std::to_string(count * item) + " bytes; " + std::to_string(at.size_bytes) +
                     " at " + std::to_string(at.offset_bytes) + " of a block of " +
                     std::to_string(at.memory == nullptr ? 0 : at.memory->size_bytes()) +
                     " are given.",
                 "WrongSize");
  }
  IGNIS_TRY_ASSIGN(const std::string device, state_->device_name(at.memory->owner()));
  StorageRef storage = state_->leaves->make(dtype, shape, device);
  storage->set_memory(*state_->machine, {at.memory});
  storage->offset_bytes = at.offset_bytes;
  return state_->make_array(std::move(storage));
}

Result<Array> Workspace::zeros(const Shape& shape, DType dtype, const std::string& device) const {
  IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(shape));
  if (is_weak(dtype) || size_bytes(dtype) == 0) {
    return Error(ErrorCode::InvalidArgument,
                 "dtype " + std::string(to_string(dtype)) + " has no storage.", "WrongSize");
  }
  IGNIS_TRY_ASSIGN(const std::string name, state_->device_name(device));
  if (is_recording()) return compute(tensor::Tensor::zeros(graph(), shape, dtype), name);
  StorageRef storage = state_->leaves->make(dtype, shape, name);
  IGNIS_TRY_ASSIGN(const std::vector<runtime::MemoryRef> memory,
                   allocate_zeroed_lanes(*state_->machine, name,
                                         static_cast<uint64_t>(count * size_bytes(dtype))));
  storage->set_memory(*state_->machine, memory);
  return state_->make_array(std::move(storage));
}

Result<Array> Workspace::copy_to(const Array& array, const std::string& device) const {
  if (!array) return no_array();
  IGNIS_TRY_ASSIGN(const std::string name, state_->device_name(device));
  if (array.is_virtual()) {
    IGNIS_TRY_ASSIGN(std::vector<StorageRef> made,
                     state_->compute({tensor::commit(array.value()).node()}, name));
    return state_->make_array(std::move(made.front()));
  }
  IGNIS_TRY_ASSIGN(const Array from, contiguous(array));
  IGNIS_TRY_ASSIGN(Shape shape, reshape_lanes(from, split_devices(name).size()));
  StorageRef to = state_->leaves->make(from.dtype(), shape, name);
  if (!is_recording() || to->size_bytes == 0) IGNIS_TRY(state_->allocate(*to));
  if (to->size_bytes != 0) IGNIS_TRY(state_->copy(to, from.state_->storage));
  return state_->make_array(std::move(to));
}

Result<HostTensor> Workspace::to_host(const Array& array) const {
  if (!array) return no_array();
  if (is_recording()) {
    return Error(ErrorCode::InvalidArgument,
                 "The host reads " +
                     (array.name().empty() ? std::string("an array") : "'" + array.name() + "'") +
                     " while calls are recorded; its value would be frozen. Return it, and read it "
                     "after the replay.",
                 "DataAccessDuringCapture");
  }
  // The result of a replay is not written over while it is read.
  std::optional<exec::OutputPin> pin;
  if (array.result_) {
    IGNIS_TRY_ASSIGN(pin, array.result_->pin());
  }
  Array read = array;
  if (array.is_virtual()) {
    IGNIS_TRY_ASSIGN(read, clone(array));
  } else {
    IGNIS_TRY(realize(read));
  }
  StorageRef storage = read.state_->storage;
  IGNIS_TRY(state_->check_usable(*storage));
  if (storage->lanes.size() > 1) {  // joined along the leading axis
    IGNIS_TRY_ASSIGN(const Array whole, copy_to(read, state_->machine->options().host_name));
    return to_host(whole);
  }
  if (storage->lanes[0].memory->host() == nullptr) {  // the host does not see the memory
    StorageRef seen =
        state_->leaves->make(storage->dtype, storage->shape, state_->machine->options().host_name);
    IGNIS_TRY(state_->allocate(*seen));
    IGNIS_TRY(state_->copy(seen, storage));
    storage = std::move(seen);
  }
  IGNIS_TRY(state_->wait_for(*storage));
  HostTensor made = HostTensor::zeros(read.dtype(), read.shape());
  const auto item = static_cast<size_t>(size_bytes(read.dtype()));
  const std::byte* base = storage->lanes[0].memory->host() + storage->offset_bytes +
                          static_cast<size_t>(read.offset_elements()) * item;
  if (read.is_contiguous()) {
    if (!made.bytes.empty()) std::memcpy(made.bytes.data(), base, made.bytes.size());
  } else {
    gather(base, read.state_->strides, read.shape(), item, made.bytes.data());
  }
  return made;
}

Status Workspace::synchronize() const {
  for (runtime::QueuedDevice* device : state_->machine->options().devices) {
    if (!device->is_online()) continue;
    IGNIS_TRY(exec::synchronize(*device, state_->machine->pending(), state_->options.limits));
  }
  return {};
}

}  // namespace ignis::engine
