#pragma once

#include "ignis/base/dtype.h"
#include "ignis/base/host_tensor.h"
#include "ignis/exec/run_time_ring.h"
#include "ignis/exec/signature.h"
#include "ignis/ir/node.h"
#include "ignis/runtime/queued_device.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ignis::engine {

class LeafTable;

/// What is in a storage.
enum class Contents : uint8_t {
  Known,
  Recorded,  ///< recorded calls write it and have not run
  Poisoned,  ///< a call that wrote it failed
};

/// The memory under arrays: a dense row-major tensor on one device. Arrays and views of it share it.
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
  std::string device;  ///< canonical; empty: a run-time variable
  DType dtype = DType::Float32;
  Shape shape;
  uint64_t size_bytes = 0;
  exec::MemoryClass memory_class = exec::MemoryClass::Device;
  std::string layout;         ///< the user's tag
  bool is_writable = true;    ///< false: somebody else's bytes that are only read
  uint64_t offset_bytes = 0;  ///< in `memory`
  runtime::MemoryRef memory;  ///< null while only recorded calls know it
  uint64_t generation = 1;    ///< of the device when the memory was made
  Contents contents = Contents::Known;
  bool is_constant = false;         ///< marked: nobody writes it
  bool is_generator_state = false;  ///< of random numbers
  std::string variable;             ///< run-time variable: its name

  exec::Placement placement() const { return {memory, offset_bytes, size_bytes}; }

  uint64_t writes = 0;             ///< how often its contents have changed
  ir::Node leaf;                   ///< reads what is there now
  ir::Node computed;               ///< an expression that has this value; null: none, or no more
  exec::InputDevice input_device;  ///< for descriptions
};
using StorageRef = std::shared_ptr<Storage>;

}  // namespace ignis::engine
