#pragma once

#include "ignis/base/result.h"
#include "ignis/engine/capture/inputs.h"
#include "ignis/engine/eager/storage.h"
#include "ignis/exec/outputs.h"
#include "ignis/exec/run_time_ring.h"
#include "ignis/tensor/core.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ignis::engine {

class Workspace;
struct ArrayStep;
struct WorkspaceState;

/// A handle of one tensor that has storage, or will have once it is realized. Copies are handles of the same tensor. It keeps
/// its storage, or the storages that its expression reads, and the workspace's state alive.
///
/// Its value is an ordinary lazy tensor: expressions over several arrays are written with those and become arrays again by
/// Workspace::lazy().
class Array {
 public:
  Array() = default;
  explicit operator bool() const { return state_ != nullptr; }

  DType dtype() const;
  /// Of one lane.
  const Shape& shape() const;
  /// Where it lies or will lie, several devices with commas; empty for what has no device.
  const std::string& device() const;
  bool is_realized() const;
  /// A constant without device: realizing does not give it storage, Workspace::clone() makes an array of it.
  bool is_virtual() const;
  /// Which tensor it is: equal for copies of a handle only.
  uint64_t id() const;
  /// Which storage lies under it; views of one base have one. 0: none yet.
  uint64_t base() const;
  /// What it is now. After its storage was written, tensors that were taken before are stale: using them is an error.
  /// Throws a tensor::GraphError with the reason StaleOutput when check() fails.
  tensor::Tensor value() const;

  /// The same array as output number `output` of a replay, valid as long as the handle: what touches it later is StaleOutput.
  /// Views of it carry the handle too. Allocates nothing.
  Array with_result(exec::OutputHandle handle, int output) const;
  /// Of the replay that it is a result of; 0: of none.
  uint64_t sequence() const { return result_ ? result_->sequence() : 0; }
  /// A later replay has written over it.
  bool is_stale() const { return result_ && result_->is_stale(); }
  /// Errors: InvalidArgument with the reason StaleOutput.
  Status check() const;
  /// Whether this handle is the only one of the tensor, and no other array, view or expression reaches its storage.
  bool is_sole() const;

  /// A look at a part: per axis [begin, end). Of a realized array it shares the storage, of another it is its expression.
  /// Errors: InvalidArgument with the reason BadView naming the axis.
  Result<Array> slice(const std::vector<std::pair<int64_t, int64_t>>& bounds) const;
  /// Output axis i is axis perm[i]. Errors: as slice().
  Result<Array> permute(const std::vector<int64_t>& perm) const;
  /// The same elements in another shape. Errors: as slice(); also for an array whose elements do not lie one after the other.
  Result<Array> reshape(const Shape& shape) const;

  /// The whole storage under it, which may be a part of a block. Without memory for an array that is not realized, or only by recorded calls.
  exec::Placement base_memory(int lane = 0) const;
  /// Devices that it lies on; 0 for what has none.
  int lane_count() const;
  /// Of this view, in elements and from the start of the base.
  int64_t offset_elements() const;
  std::vector<int64_t> strides() const;
  bool is_contiguous() const;

  const std::string& name() const;
  /// What messages, profiles and recorded buffers call it.
  Array& set_name(std::string name);
  /// Says that nobody writes its storage while captures that read it live: weights.
  Array& mark_constant();

 private:
  friend class Workspace;
  friend class Recorder;
  friend struct WorkspaceState;
  friend TensorArgument describe(const Array& array);
  struct State;
  Result<Array> view(ArrayStep step, Shape shape, std::vector<int64_t> strides,
                     int64_t offset) const;
  explicit Array(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
  std::optional<exec::OutputHandle> result_;
  int output_ = 0;
};

/// Everything that a capture's signature holds of an array. Nothing is copied or allocated: it is valid while the array and
/// its device live. A virtual array has no device.
TensorArgument describe(const Array& array);

}  // namespace ignis::engine
