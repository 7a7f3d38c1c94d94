#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/bounded_mutex.h"
#include "ignis/exec/captured.h"
#include "ignis/exec/external_memory.h"
#include "ignis/exec/feedback.h"
#include "ignis/exec/held_memory.h"
#include "ignis/exec/linked_schedule.h"
#include "ignis/exec/machine.h"
#include "ignis/exec/outputs.h"
#include "ignis/exec/replay_tokens.h"
#include "ignis/exec/run_linked.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ignis::exec {

/// One replay's arguments. Nothing in it is owned.
struct ReplayCall {
  std::span<const InputDescription> inputs;
  std::span<const BoundInput> memory;  ///< by input: all of its base storage, a place for each lane
  std::span<const VariableBinding> variables{};  ///< sorted by name
  std::span<const GuardValue> guards{};
  std::span<const Placement> outputs{};  ///< mode Caller
  runtime::WaitLimits limits = RunOptions().limits;
  bool waits = true;  ///< comes back when the replay is complete; else when it was submitted
};

/// What a fixed port is bound to: host memory of the caller's.
struct RawPort {
  std::byte* bytes = nullptr;  ///< of an input: only read
  uint64_t size_bytes = 0;
};

/// What getting ready took, on the machine's clock.
struct PrepareReport {
  int64_t link_ns = 0;     ///< weights, one-time calls and link; 0 when all was there
  int64_t dry_run_ns = 0;  ///< 0: none was made
  bool made_dry_run = false;
  UploadCounts uploaded;
};

/// Inputs and what they must give, for a check after a device was lost.
struct ReferenceFrame {
  std::vector<std::vector<std::byte>> inputs;  ///< by input: the bytes of its base
  std::vector<VariableBinding> variables;
  std::vector<std::pair<std::string, std::vector<std::byte>>>
      state;  ///< what the frame starts from
  std::vector<std::vector<std::byte>> outputs;
  /// Floats: |got - expected| is at most absolute + relative * |expected|. Others are equal.
  double absolute = 0, relative = 0;
};

struct RebindOptions {
  std::shared_ptr<Machine> machine{};  ///< null: the one so far
  /// None, or at least two. Each runs as a replay of its own, which counts as a sequence number.
  std::span<const ReferenceFrame> references{};
  runtime::WaitLimits limits = RunOptions().limits;
};

struct RebindReport {
  int64_t total_ns = 0;
  UploadCounts uploaded;
  uint64_t kept_bytes = 0;              ///< of held buffers that were whole
  std::vector<std::string> lost_state;  ///< to be supplied before the next replay
  size_t checked_frames = 0;
};

struct ReplayCounts {
  uint64_t links = 0;  ///< of the schedule; not of shadow copies and one-time calls
  uint64_t replays = 0;
  uint64_t shadow_copies = 0;
};

/// A capture on a machine: what changes from replay to replay (capture spec 10 to 12).
///
/// Replays follow each other; a second caller waits within its limits and is then Busy. The link is made on first use and is
/// that of one schedule and of the devices' generations: another schedule or a reopened device never runs by an old one.
/// Functions may be called from any thread. In the steady state a replay allocates nothing.
class Replay {
 public:
  /// Links nothing yet. A capture that was made in this process and whose devices were reopened since is stale from the start.
  /// Errors: NotFound for a device that is not open; InvalidArgument with the reason NeedsRecapture for a device of other
  /// capabilities than at the capture.
  static Result<std::shared_ptr<Replay>> create(CapturedRef captured,
                                                std::shared_ptr<Machine> machine);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Does all that the first replay would do, and runs once on zeros where nobody can tell: no state is written and no replay
  /// was made. Errors: as run().
  /// `makes_dry_run` off: it is linked and not run.
  Result<PrepareReport> prepare(const runtime::WaitLimits& limits = RunOptions().limits,
                                bool makes_dry_run = true);

  /// Checks devices, guards and inputs, then runs. The handle is good as long as the output mode says.
  ///
  /// Errors, after which nothing has changed: Timeout (Busy, OutputPinned); DeviceLost (StaleCapture, DeviceUnavailable,
  /// StateLost); InvalidArgument (GuardMismatch, SignatureMismatch, as exec::run); OutOfMemory (OutputPoolFull). As exec::run
  /// within the deadline: DeviceHang, DeadlineExceeded, … Then nobody gets the outputs, and state that the replay writes is
  /// StateLost. A device that stood still through all of the deadline is Unavailable.
  Result<OutputHandle> run(const ReplayCall& call);

  /// The light path of a caller whose ports are fixed: mode Caller, no guards, no variables, host memory of one lane each.
  /// Ports as the signature and the outputs have them, in order. Waits until the outputs may be read. Looks at sizes and alignment
  /// and at nothing else of a port. Errors: as run().
  Status run_raw(std::span<const RawPort> inputs, std::span<const RawPort> outputs,
                 const runtime::WaitLimits& limits);

  /// Waits until every replay so far is complete. Errors: as exec::wait().
  Status wait(const runtime::WaitLimits& limits = RunOptions().limits);

  /// Releases what the schedule computes in between, outputs and shadows; the next replay makes them anew and links. Weights
  /// and state stay. Handles are StaleOutput but for mode Copy and Caller. Returns the bytes released; a second call finds none.
  /// Errors: Timeout (Busy) while a replay is under way.
  Result<uint64_t> free_intermediates(const runtime::WaitLimits& limits = RunOptions().limits);

  /// After a device was reopened, or on another machine with devices of the same names: keeps memory that the device can prove
  /// whole, brings weights again, runs one-time calls again and links. Sequence numbers go on. Outputs of before are
  /// StaleOutput. When a reference does not come out the capture stays stale.
  ///
  /// Errors: Timeout (Busy) while a replay is under way; InvalidArgument (NeedsRecapture) when a device has other capabilities;
  /// DeviceLost (DeviceUnavailable, StateLost for references without their state); Internal (ReferenceMismatch).
  Result<RebindReport> rebind(const RebindOptions& options = {});

  /// Brings the bytes of a held buffer, by name, that StateLost named or that is to be set anew; those of all lanes one after
  /// the other. Waits for the replay that is under way. Errors: NotFound, InvalidArgument (StateMismatch).
  Status supply_state(std::string_view name, std::span<const std::byte> bytes,
                      const runtime::WaitLimits& limits = RunOptions().limits);
  /// Where a held buffer lies now; a rebind may move it. Errors: NotFound; as prepare().
  Result<Placement> held_place(std::string_view name, size_t lane = 0);
  /// Errors: Timeout (Busy) while a replay is under way.
  Result<std::vector<std::string>> lost_state(
      const runtime::WaitLimits& limits = RunOptions().limits) const;

  /// Goes on with another schedule of the same capture (Captured::with_schedule()); the next replay links it.
  /// Errors: Timeout (Busy); InvalidArgument (OtherCapture) when inputs, outputs or held buffers are others.
  Status use(CapturedRef captured, const runtime::WaitLimits& limits = RunOptions().limits);
  CapturedRef captured() const;

  ReplayCounts counts() const;
  /// Of the next replay.
  uint64_t next_sequence() const;

 private:
  struct BoundDevice {
    runtime::QueuedDevice* device;
    uint64_t generation;
  };
  using Lock = std::unique_lock<BoundedMutex>;

  Replay(CapturedRef captured, std::shared_ptr<Machine> machine);
  int64_t now_ns() const { return machine_->clock().now_ns(); }
  runtime::WaitLimits until(int64_t end_ns, const runtime::WaitLimits& limits) const;
  Status hold(Lock& lock, const runtime::WaitLimits& limits) const;

  Status bind_devices(bool takes_any_generation);
  Status check_devices() const;
  Status check_idle() const;
  Status make_ready(const runtime::WaitLimits& limits);
  Status run_one_time(const runtime::WaitLimits& limits);
  Status make_outputs();
  Status make_dry_run(const runtime::WaitLimits& limits);
  Status check_memory(const ReplayCall& call) const;
  Result<OutputHandle> run_ready(const ReplayCall& call, int64_t end_ns);
  Status run_bound(const runtime::WaitLimits& limits, bool waits);
  uint64_t begun() const;
  void note_reached();
  void blame(const Error& error, int64_t begin_ns, const runtime::WaitLimits& limits) const;
  void withdraw(OutputTurn turn, bool has_begun);
  Status make_windows();
  void drop_link();
  Status supply(std::string_view name, std::span<const std::byte> bytes);
  Status check_references(const RebindOptions& options, int64_t end_ns, RebindReport& report);
  Status check_reference(const ReferenceFrame& frame, const runtime::WaitLimits& limits);

  mutable BoundedMutex running_;  ///< guards all but what follows its own mutex
  CapturedRef captured_;
  std::shared_ptr<Machine> machine_;
  Signature signature_ = Signature::make({});  ///< with the devices' generations of now
  std::vector<BoundDevice> devices_;
  std::vector<uint64_t> reached_before_;  ///< by device: when the replay began
  bool is_stale_ = false;                 ///< a rebind began and did not end well
  HeldStore held_;
  std::shared_ptr<LinkedSchedule> link_;
  bool has_other_steps_ = false, writes_state_ = false;
  Feedback feedback_;
  std::optional<Outputs> outputs_;
  std::shared_ptr<ReplayTokens> tokens_;
  std::vector<BoundInput> bound_;  ///< inputs, then output parameters; empty places between replays
  uint64_t submitted_ = 0;         ///< the newest replay that was submitted or tried
  std::vector<int64_t> variables_;                        ///< of the run, by number
  std::vector<std::shared_ptr<ExternalMemory>> windows_;  ///< run_raw(): by port
  std::vector<BoundInput> raw_;                           ///< run_raw(): the windows
  UploadCounts uploaded_;

  mutable std::mutex shown_mutex_;  ///< guards what others look at while a replay is under way
  CapturedRef shown_captured_;
  uint64_t next_sequence_ = 1;
  std::atomic<uint64_t> links_{0}, replays_{0}, shadow_copies_{0};
};

}  // namespace ignis::exec
