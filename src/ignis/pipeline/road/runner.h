#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/road/packed_input.h"
#include "ignis/runtime/device.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ignis::pipeline {

/// Which of two models produced an output. Numbers are those of a message's `tier`.
enum class RoadTier : uint8_t { Big = 0, Small = 1 };
std::string_view to_string(RoadTier tier);

/// Why a runner does not run, or not fully.
enum class RoadFault : uint8_t {
  None,
  NotConfigured,     ///< there is no such model
  LoadFailed,        ///< making, binding or warming up ended in an error
  LoadTimeout,       ///< it was not done within the load limit
  ContractMismatch,  ///< the artifact's inputs, slices or sizes are not what the host can serve
  RunFailed,         ///< a run ended in an error
  RunTimeout,        ///< a run did not end in time
  NonFinite,         ///< a run's output held a NaN or an infinity
  Unavailable,       ///< no runner is left
};
std::string_view to_string(RoadFault fault);

/// A road network behind its warp, with its recurrent state: what may hang. Everything is called from one helper thread.
class RoadModel {
 public:
  virtual ~RoadModel() = default;
  /// Compiles, allocates, and clears the state, for frames of this layout. Errors: as Session::load.
  virtual Status load(const FrameLayout& layout) = 0;
  /// Valid after load().
  virtual const RoadContract& contract() const = 0;
  /// Upload, warp, network, read-back, in this order. Each state output becomes the input of the next run when the run
  /// succeeds. `output` has contract().output_count values. Errors: Timeout, DeviceLost, Internal; then the state is
  /// undefined until reset_state().
  virtual Status run(const PackedInput& input, std::span<float> output,
                     runtime::Deadline deadline) = 0;
  /// Every recurrent state to its reset value.
  virtual void reset_state() = 0;
};

struct RunnerState {
  enum class Kind : uint8_t { Absent, Loading, Ready, Degraded, Failed };
  Kind kind = Kind::Absent;
  RoadFault reason = RoadFault::None;  ///< of Degraded and Failed, and of Absent after a load

  bool operator==(const RunnerState&) const = default;
};
/// "Failed(RunTimeout)".
std::string to_string(const RunnerState& state);

/// One successful run.
struct RoadOutput {
  std::span<const float> values;           ///< until the runner's next call
  const RoadContract* contract = nullptr;  ///< of the model that made them; as long as `values`
  RoadTier tier = RoadTier::Big;
  bool is_switch = false;  ///< another tier than the output before: a validity event
  uint64_t pack_ns = 0, run_ns = 0;
};

/// The interface that both tiers and their combination are used through. From one thread.
class RoadRunner {
 public:
  virtual ~RoadRunner() = default;
  virtual RunnerState state() = 0;
  /// Runs one frame pair. `desire_pulse`: see DesirePulse.
  /// Errors: InvalidArgument for an input that no runner should see (the runner stays as it is); Timeout, reason
  /// FrameDeadline, when `deadline` passes before the run limit (the runner stays as it is and may need the rest of its
  /// limit before it takes another frame), reason RunTimeout when the run limit passes; Internal, with the fault's name as
  /// the reason, when the run fails; DeviceLost, reason Unavailable, when there is nothing to run on.
  virtual Result<RoadOutput> run(const RoadInput& input,
                                 const std::array<float, kDesireCount>& desire_pulse,
                                 runtime::Deadline deadline) = 0;
};

struct RoadRunnerOptions {
  RoadTier tier = RoadTier::Big;
  std::string name = "road";
  std::chrono::nanoseconds run_limit = std::chrono::milliseconds(150);
  std::chrono::nanoseconds load_limit = std::chrono::seconds(60);
  /// How long destruction waits for the thread before it leaves it behind.
  std::chrono::nanoseconds close_limit = std::chrono::milliseconds(200);
  /// Runs on zero frames after the first one, each within the run limit and finite, before it counts as ready.
  int qualification_runs = 3;
  /// When given, the model is Absent unless this file is really there (check_artifact_file).
  std::string artifact_path;
  /// Makes the model; called on the helper thread, where it may hang.
  std::function<Result<std::unique_ptr<RoadModel>>()> make_model;
  /// Called while the helper thread runs a frame, on the caller's.
  std::function<void()> while_running;
};

/// One model on a thread of its own, watched by the caller's clock.
///
/// Neither load nor run can hold the caller longer than its limit, whatever the device does. When a limit passes the
/// runner is Failed for good and fenced off: the thread and all it touches (model, buffers, output) are left to
/// runtime::abandon, and what it may still complete is ignored. A frame's own deadline bounds the wait only: a frame that
/// came late is no fault of the model.
class FencedRunner : public RoadRunner {
 public:
  explicit FencedRunner(RoadRunnerOptions options);
  FencedRunner(const FencedRunner&) = delete;
  FencedRunner& operator=(const FencedRunner&) = delete;
  ~FencedRunner() override;

  /// Begins to load for frames of this layout: make, bind, check, warm up, qualify, clear. Once. Without a model or its
  /// file the runner stays Absent.
  void start_load(const FrameLayout& layout);
  /// Waits for the load, at most until its limit or `deadline`.
  RunnerState wait_loaded(runtime::Deadline deadline);
  RunnerState state() override;
  Result<RoadOutput> run(const RoadInput& input,
                         const std::array<float, kDesireCount>& desire_pulse,
                         runtime::Deadline deadline) override;
  /// What failed, in a sentence; empty while nothing has.
  const std::string& fault_text() const { return fault_text_; }
  /// Null before it is ready.
  const RoadContract* contract() const;

 private:
  struct Core;
  void fail(RoadFault fault, std::string text);
  void fence();
  void take_load_result();
  bool wait_until_idle(runtime::Deadline deadline);
  Status finish_run(runtime::Deadline deadline);

  RoadRunnerOptions options_;
  std::shared_ptr<Core>
      core_;  ///< shared with the thread; null before the load and when fenced off
  RunnerState state_;
  std::string fault_text_;
  runtime::Deadline load_end_;
  FrameLayout layout_;
  bool is_run_open_ = false;  ///< a run was begun and its end not seen yet
  runtime::Deadline run_end_;
  uint32_t run_frame_id_ = 0;
};

}  // namespace ignis::pipeline
