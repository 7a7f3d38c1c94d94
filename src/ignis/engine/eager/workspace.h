#pragma once

#include "ignis/base/target.h"
#include "ignis/engine/eager/array.h"
#include "ignis/engine/eager/recorder.h"
#include "ignis/engine/program_cache.h"
#include "ignis/engine/queues/template_cache.h"
#include "ignis/exec/machine.h"
#include "ignis/runtime/device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ignis::engine {

struct WorkspaceOptions {
  std::string cpu =
      "cpu";  ///< SPEC of the host: its programs run there, and kernels are compiled for its target
  int threads = 0;  ///< of the host; 0: what the affinity mask and the cgroup quota allow
  /// An open host device instead of `cpu`, for devices that share it.
  std::shared_ptr<runtime::Device> host{};
  std::vector<runtime::QueuedDevice*> devices{};  ///< outlive the workspace and its arrays
  std::string default_device = "CPU";             ///< of arrays that say nothing
  FloatLevel float_level = FloatLevel::Finite;
  std::shared_ptr<ProgramCache> program_cache{};  ///< null: one in memory of its own
  QueueOptions queues{};
  /// Of all waits of one run, and of a read by the host.
  runtime::WaitLimits limits{30'000'000'000, 30'000'000'000};
  bool waits = false;    ///< runs come back when all is complete, not when it is submitted
  int most_plans = 256;  ///< compiled expressions that are kept, least recently used out
  runtime::Clock* clock = nullptr;  ///< null: the real one, or the simulated world's
  uint64_t seed = 0;                ///< of random numbers
};

/// Memory of somebody else.
struct ExternalMemory {
  std::byte* bytes = nullptr;         ///< aligned to the elements
  uint64_t size_bytes = 0;            ///< at least that of dtype and shape
  std::string layout;                 ///< exec::frame_layout(), or empty
  std::shared_ptr<const void> keeps;  ///< lives as long as any array or run that uses it
  bool is_writable = false;
};

struct WorkspaceCounts {
  uint64_t plans_made = 0, plan_hits = 0;  ///< expressions that were compiled, or were known
  uint64_t runs = 0;
  TemplateCacheCounts templates;
};

/// A device is "CPU" or an open device's name. "CUDA,CUDA:1" means both: such an array has a lane on each, every function is
/// computed by each lane on its own part, shape() is that of a lane, and the host writes and reads the lanes joined along the
/// leading axis. copy_to() cuts and joins.
///
/// Where arrays live: a graph, open devices, and what was compiled for them. Copies are the same workspace. One thread uses a
/// workspace and its arrays at a time.
///
/// Functions that compute run at once, unless a recorder is set: then their calls are recorded and nothing runs. Errors of all
/// that touch values: InvalidArgument with the reason
///  - StaleValue: an expression over what was there before a write; realize it before assigning;
///  - LostValue: it reads a storage that no array holds any more;
///  - UnknownInput: it reads an input of another origin; OtherWorkspace: it belongs to another graph;
///  - WrongDevice: its arrays lie on different devices; VirtualArray: there is no storage;
///  - StaleOutput: it is the result of a replay that a later one has written over;
///  - PoisonedTensor: a call that wrote it failed; DataAccessDuringCapture: a host reads while calls are recorded, or a run in a
///    paused block needs what only recorded calls would write;
/// DeviceLost with the reason StorageLost when its device was reopened and did not keep it; as compiling, linking and running.
class Workspace {
 public:
  /// Errors: as runtime::open_device().
  static Result<Workspace> create(WorkspaceOptions options = {});

  const std::shared_ptr<ir::Graph>& graph() const;
  const std::shared_ptr<exec::Machine>& machine() const;
  const WorkspaceOptions& options() const;
  TemplateCache& templates() const;
  TemplateCache::Environment environment() const;
  WorkspaceCounts counts() const;

  // --- arrays ---
  /// While calls are recorded these two are calls as well, so that each replay starts from the data.
  Result<Array> from_host(const HostTensor& value, const std::string& device = {}) const;
  Result<Array> zeros(const Shape& shape, DType dtype = DType::Float32,
                      const std::string& device = {}) const;
  /// Memory of the host that stays where it is; devices map it.
  Result<Array> wrap(const ExternalMemory& memory, DType dtype, const Shape& shape) const;
  /// Memory of a device or the host with contents, a part of a block perhaps: the output of a replay.
  Result<Array> adopt(const exec::Placement& at, DType dtype, const Shape& shape) const;
  /// Not computed before it is realized. `device` is for expressions that read no array.
  Result<Array> lazy(const tensor::Tensor& value, const std::string& device = {}) const;
  /// A number that each run binds: rank 0, int64. The same name gives the same tensor, whatever its value is.
  /// Errors: InvalidArgument with the reason VariableConflict for another range.
  Result<tensor::Tensor> variable(const std::string& name, int64_t min, int64_t max) const;
  /// Its value for runs from now on; before the first it is `min`. Errors: NotFound; InvalidArgument (OutOfRange).
  Status bind(const std::string& name, int64_t value) const;

  // --- computing ---
  /// Gives all of them storage, in one graph. What has storage, or can have none, stays as it is.
  Status realize(std::span<Array* const> arrays) const;
  Status realize(Array& array) const;
  /// Computes and gives storage at once.
  Result<Array> compute(const tensor::Tensor& value, const std::string& device = {}) const;
  /// Writes a value of its dtype (a weak one fits any) and shape (a scalar fills it) into its storage, in place; other views
  /// of it see it. A value that reads the storage at other elements than it writes is computed aside first.
  Status assign(Array& to, const tensor::Tensor& value) const;
  Status assign(Array& to, const Array& value) const;
  /// Storage of its own; of a virtual array too.
  Result<Array> clone(const Array& array) const;
  /// The same when its elements lie one after the other and are all there is, else a clone.
  Result<Array> contiguous(const Array& array) const;
  /// On another device, or the host, by a copy of the queue chain.
  Result<Array> copy_to(const Array& array, const std::string& device) const;
  /// Equal counters of the generator give equal numbers on every device: float32 in [0, 1). The generator's state lies on the
  /// device, and each call, recorded ones as well, moves it on.
  Result<Array> random_uniform(const Shape& shape, const std::string& device = {}) const;
  /// Starts the generators of all devices anew.
  Status manual_seed(uint64_t seed) const;

  // --- the host reads ---
  /// The elements, dense and row-major; realizes first. Waits until they may be read.
  Result<HostTensor> to_host(const Array& array) const;
  /// Waits for all that was submitted on the devices.
  Status synchronize() const;

  // --- recording ---
  /// From now on calls are recorded; null: they run. The recorder outlives this. One at a time.
  /// Errors: InvalidArgument with the reason NestedCapture.
  Status set_recorder(Recorder* recorder) const;
  /// While a pause lives, calls run at once and are not recorded.
  class Pause {
   public:
    explicit Pause(const Workspace& workspace);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    std::shared_ptr<WorkspaceState> state_;
  };
  bool is_recording() const;
  /// While it lives, so do all arrays' storages that are made: expressions over arrays that went out of scope stay good.
  class Keeper {
   public:
    explicit Keeper(const Workspace& workspace);
    ~Keeper();
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;

   private:
    std::shared_ptr<WorkspaceState> state_;
    std::vector<StorageRef> kept_;
    std::vector<StorageRef>* outer_;
  };
  /// Runs a schedule whose buffers have memory or are numbered inputs, as an eager run.
  Status run(const exec::Schedule& schedule, std::vector<exec::BoundInput> inputs = {}) const;
  /// Runs what was recorded, once and as it is, with the values that variables have now.
  Status run(Recording recording) const;
  /// Its storage was written by a run that the workspace does not know of: tensors taken before are stale. Allocates nothing.
  void note_written(const Array& array) const;

 private:
  explicit Workspace(std::shared_ptr<WorkspaceState> state) : state_(std::move(state)) {}
  std::shared_ptr<WorkspaceState> state_;
};

}  // namespace ignis::engine
