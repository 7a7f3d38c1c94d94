#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/base/notes.h"
#include "ignis/base/target.h"
#include "ignis/engine/program_cache.h"
#include "ignis/tensor/core.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ignis::exec {
class Artifact;
struct Plan;
struct TuningRecord;
}  // namespace ignis::exec

namespace ignis {

/// Where time went, in seconds. Filled as it happens; a stage that did not happen is 0.
struct StageTimes {
  double import_s = 0, schedule_s = 0, lower_s = 0, compile_s = 0, pack_s = 0;
  double cache_s = 0;    ///< asking the program cache and filling it
  double capture_s = 0;  ///< deciding how queues run the plan
  double link_s = 0;     ///< loading programs, and memory and commands for a device
  double upload_s = 0;  ///< bringing weights to the device; on the CPU they are used where they are
  double first_run_s = 0;
};

struct PassTime {
  std::string name;
  double seconds = 0;
  int64_t calls = 0, rule_attempts = 0, rule_hits = 0;
};

/// What became of a tuning record.
struct TuningUse {
  int applied = 0;  ///< programs made as the record says
  int unused = 0;   ///< choices for kernels that are not there, or do not take them
  std::string
      note;  ///< why the record was ignored as a whole; empty: it was not, or there was none
};

struct SessionOptions {
  std::string device = "cpu";  ///< SPEC of product.md: "cpu", "cpu:llvm:avx2", "cpu:interp"
  int threads = 0;             ///< 0: what the affinity mask and the cgroup quota allow
  std::chrono::nanoseconds spin =
      std::chrono::microseconds(50);  ///< before a waiting thread sleeps; 0: at once
  bool shares_threads =
      true;  ///< off: another session's run that hangs cannot take this one's threads along
  std::map<std::string, int64_t> dims;
  std::map<std::string, Shape> shapes;
  std::map<std::string, HostTensor> constants;  ///< inputs fixed at load (shape-carrying inputs)
  FloatLevel float_level = FloatLevel::Finite;
  Choice winograd =
      Choice::Auto;             ///< products of Winograd for 3 x 3 convolutions; never when strict
  Choice chain = Choice::Auto;  ///< kernels one after the other by bands of rows; the same bits
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< of one run
  /// Layers, by name or by the name of their output, whose values are computed too, by a second program beside the
  /// normal one, which stays as it is. They follow the model's outputs in outputs() and in what a run returns.
  std::vector<std::string> taps;
  int seeded_fault =
      -1;  ///< for tests of a comparison: this one of the distinct programs stores wrong values
  /// Where compiled kernels are looked up and kept; null: every kernel is compiled. Sessions may share one.
  std::shared_ptr<ProgramCache> program_cache;
  /// What a tuner chose for this machine and version (ignis compile --tune). Any other record is ignored, which is logged.
  /// Null: the heuristics alone choose.
  std::shared_ptr<const exec::TuningRecord> tuning;
  /// Called while loading, from any thread, one call at a time.
  std::function<void(const std::string& stage, int done, int total)> progress;
};

struct PortInfo {
  std::string name;
  DType dtype = DType::Float32;
  Shape shape;
};

/// A tensor under the name of a session's input or output.
struct NamedTensor {
  std::string name;
  tensor::Tensor value;
};

struct CallInfo {
  std::string kernel, layer;
  double flops = 0, bytes = 0;
  double begin_s = 0;         ///< of the profiled run, since its first call began
  double seconds = 0;         ///< of the profiled run
  std::string schedule = {};  ///< the kernel's scheduling actions; empty for an artifact
  Notes why = {};             ///< what was compared to choose them, as far as it is known
};

/// Where a profiled run's time went, in seconds by the host's clock.
struct RunStages {
  double submit_s =
      0;  ///< from the call until the first kernel began: checks, addresses, waking threads
  double kernels_s = 0;     ///< from there until the last one ended
  double completion_s = 0;  ///< from there until the caller had the result
};

/// One kernel's result beside the reference's value for it.
struct KernelComparison {
  int call = 0;        ///< position in the program
  std::string kernel;  ///< the program's name
  std::string layer;   ///< the model's layers it computes; may be empty
  int stores =
      1;  ///< more: a chain, of which the last store is compared; rows of the others come and go
  HostTensor got, want;
};

/// A model compiled for one device and one set of shapes, ready to run. Movable; one run at a time per session.
class Session {
 public:
  /// `path` is an ONNX model, or an artifact of compile_artifact(), which is bound and compiled already: it takes no dims,
  /// shapes, constants or taps and runs on no reference device.
  /// Errors: as onnx::import_model or exec::Artifact::open; NotFound for an unknown device or tap; Internal when code
  /// generation fails.
  static Result<Session> load(const std::string& path, const SessionOptions& options = {});
  /// The same from an artifact that is open already; `name` is for messages. `part`: a program beside the model.
  static Result<Session> from_artifact(const exec::Artifact& artifact, const std::string& name,
                                       const SessionOptions& options = {},
                                       const std::string& part = "");
  /// The same from tensors written in C++. `inputs` are Tensor::input() of one graph in the order of their slots. Of the
  /// options, `dims`, `shapes`, `constants` and `taps` belong to model files and are refused here.
  /// Errors: InvalidArgument naming an input that is none or is missing; as load().
  static Result<Session> from_graph(const std::vector<NamedTensor>& inputs,
                                    const std::vector<NamedTensor>& outputs,
                                    const SessionOptions& options = {});
  /// Compiles a model for `target`, which this machine need not be: for its plan(). The options' device, which must be able
  /// to run programs here, makes the constants ready; taps are refused. A run gives TargetMismatch.
  /// Errors: as load().
  static Result<Session> compile_for(const std::string& path, const Target& target,
                                     const SessionOptions& options = {});
  /// compile_for() of such tensors.
  static Result<Session> compile_graph_for(const std::vector<NamedTensor>& inputs,
                                           const std::vector<NamedTensor>& outputs,
                                           const Target& target,
                                           const SessionOptions& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const std::vector<PortInfo>& inputs() const;
  /// The model's outputs, then one for each tap.
  const std::vector<PortInfo>& outputs() const;
  /// Runs once. `inputs` in the order of inputs(). Errors: InvalidArgument naming the input whose shape or dtype
  /// differs, Timeout, DeviceLost.
  Result<std::vector<HostTensor>> run(const std::vector<HostTensor>& inputs);
  /// Runs on the caller's memory, allocating nothing: one pointer for each input and output. Without a deadline the
  /// options' timeout holds. After Timeout or DeviceLost an abandoned thread may still touch that memory: the session is
  /// of no further use and the caller keeps the memory (runtime::abandon).
  Status run_raw(const void* const* inputs, void* const* outputs,
                 std::optional<std::chrono::steady_clock::time_point> deadline = {});
  /// Runs once with a time stamp around each call. `stages` may be null.
  Status profile(const void* const* inputs, void* const* outputs, std::vector<CallInfo>* calls,
                 RunStages* stages = nullptr);
  /// Runs the compiled program call by call, unchanged, and hands over what each kernel wrote beside the reference's
  /// value: the kernel at fault is the first (lowest `call`) that differs. Kernels that write a copy or a piece of a value
  /// are left out. `each` gets the values in the graph's order, one at a time, and may end the comparison with an error.
  /// Nothing is handed over on `cpu:interp`. Errors: as run(); Unsupported for an artifact, which holds no graph.
  Status compare_kernels(const std::vector<HostTensor>& inputs,
                         const std::function<Status(KernelComparison)>& each);

  const StageTimes& times() const;
  /// Of the kernels that were compiled, not of those that the program cache had.
  const std::vector<PassTime>& pass_times() const;
  /// How each distinct kernel came by its program; those of taps come last. Empty for an artifact.
  const std::vector<ProgramLookup>& program_lookups() const;
  const TuningUse& tuning_use() const;
  int64_t arena_bytes() const;
  int64_t constant_bytes() const;
  int kernel_count() const;
  int program_count() const;
  const Target& target() const;  ///< of the programs
  /// Whether the device is lost: by a run that did not come back, here or in another session on the same threads.
  /// Every later run gives DeviceLost; load the model again.
  bool is_lost() const;
  /// What runs; null on the reference device. Lives as long as the session.
  const exec::Plan* plan() const;

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ignis
