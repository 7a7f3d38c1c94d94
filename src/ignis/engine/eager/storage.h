#pragma once

#include "ignis/base/dtype.h"
#include "ignis/base/host_tensor.h"
#include "ignis/exec/machine.h"
#include "ignis/exec/run_time_ring.h"
#include "ignis/exec/signature.h"
#include "ignis/ir/node.h"
#include "ignis/runtime/queued_device.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ignis::engine {

class LeafTable;

/// What is in a storage.
enum class Contents : uint8_t {
  Known,
  Recorded,  ///< recorded calls write it and have not run
  Poisoned,  ///< a call that wrote it failed
};

/// Memory of a storage on one of its devices.
struct StorageLane {
  std::string device;         ///< canonical
  runtime::MemoryRef memory;  ///< null while only recorded calls know it
  uint64_t generation = 1;    ///< of the device when the memory was made
};

/// The memory under arrays: a dense row-major tensor on one device, or one of that shape on each of several: lanes, which
/// calls compute side by side. Arrays and views of it share it.
///
/// Tensor expressions read it through a leaf, a Param of the workspace's graph. Each write makes a new leaf, so that an
/// expression over what was there before is known for what it is.
struct Storage : std::enable_shared_from_this<Storage> {
  Storage(std::shared_ptr<LeafTable> table, uint64_t number);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  const std::shared_ptr<LeafTable> leaves;
  const uint64_t id;  ///< of no other storage of the process
  std::string name;
  std::string device;  ///< canonical, several with commas; empty: a run-time variable
  DType dtype = DType::Float32;
  Shape shape;
  uint64_t size_bytes = 0;  ///< of each lane
  exec::MemoryClass memory_class = exec::MemoryClass::Device;
  std::string layout;              ///< the user's tag
  bool is_writable = true;         ///< false: somebody else's bytes that are only read
  std::vector<StorageLane> lanes;  ///< one for each of its devices; none: a run-time variable
  uint64_t offset_bytes = 0;       ///< in the memory; 0 with several lanes
  Contents contents = Contents::Known;
  bool is_constant = false;         ///< marked: nobody writes it
  bool is_generator_state = false;  ///< of random numbers
  std::string variable;             ///< run-time variable: its name

  /// Gives each lane memory that was made in the present generation of its device.
  void set_memory(const exec::Machine& machine, const std::vector<runtime::MemoryRef>& memory);
  /// Known memory; false while only recorded calls know it.
  bool has_memory() const { return !lanes.empty() && lanes.front().memory != nullptr; }
  exec::Placement placement(size_t lane = 0) const {
    return {lanes[lane].memory, offset_bytes, size_bytes};
  }

  uint64_t writes = 0;  ///< how often its contents have changed
  ir::Node leaf;        ///< reads what is there now
  ir::Node computed;    ///< an expression that has this value; null: none, or no more
  std::vector<exec::InputDevice> input_devices;  ///< for descriptions
};
using StorageRef = std::shared_ptr<Storage>;

}  // namespace ignis::engine
