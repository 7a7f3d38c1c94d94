#pragma once

#include "ignis/engine/callable/value.h"
#include "ignis/engine/eager/workspace.h"
#include "ignis/exec/captured.h"
#include "ignis/exec/guards.h"
#include "ignis/exec/replay.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ignis::engine {

struct CaptureOptions {
  int jit =
      1;  ///< 0: never captures; 1: captures, device graphs where there are any; 2: captures, no device graphs
  bool prunes = false;       ///< splits off what needs to run only once
  bool plans_memory = true;  ///< temporaries share memory
  exec::OutputMode output_mode = exec::OutputMode::Borrow;
  int ring_size = 3;                 ///< Ring
  int max_sets = 16;                 ///< Copy, Caller: results that may have a handle at one time
  exec::GuardPolicy guard_policy{};  ///< what a changed guard does
  /// Two inputs may share a storage that the function only reads.
  bool allow_read_only_duplicates = false;
  /// After a capture that failed: on, what was recorded runs directly, so that tensors hold what they should; off, tensors that
  /// it would have written are poisoned.
  bool runs_after_failure = true;
  bool is_profiled = false;
  runtime::WaitLimits limits = exec::RunOptions().limits;  ///< of one replay
  bool waits = true;  ///< replays come back when they are complete; else when submitted
};

/// Why a replay needs what it runs: for reports.
struct CaptureReport {
  std::string groups;  ///< "graph 32 (limit), graph 51 (end)"
  std::string pruned;  ///< a line for each call that runs once, and why the others do not
  std::vector<std::pair<std::string, uint64_t>> peak_bytes;  ///< by device
  int calls = 0;                                             ///< of one replay
  int one_time_calls = 0;
};

/// Runs a function on tensors, records its calls the second time, and from then on replays them without it (capture spec).
/// One object belongs to one instance of what it captures; values that the function looks at on the host are frozen unless they
/// are guarded. Copies are the same object. One thread at a time, as its workspace.
///
/// Errors of call(), after which the object is as before: InvalidArgument with the reasons NestedCapture (a capture object
/// called by the function of another), NothingCaptured, NonTensorReturn, DataAccessDuringCapture, VirtualInput, DuplicateInput,
/// VariableConflict, SignatureMismatch, GuardMismatch, NoCallable, StaleOutput; what the function returns or throws as a
/// tensor::GraphError; as exec::Replay::run().
class Capture {
 public:
  using Function = std::function<Result<Value>(const Arguments&)>;
  static Capture create(Workspace workspace, Function function, CaptureOptions options = {});
  /// A capture from a file: it has no function and starts with two calls behind it. Errors: as exec::Replay::create().
  static Result<Capture> load(Workspace workspace, exec::CapturedRef captured,
                              CaptureOptions options = {});

  /// `outputs` are the caller's arrays in mode Caller, in the order of the result's tensors: each whole, of its type and shape.
  Result<Value> call(const Arguments& arguments, std::span<const Array> outputs = {});

  /// A host value that the function depends on: bool, int64_t, double or std::string. It is read at each call and must outlive
  /// the object. Declare guards before the first call.
  void guard(std::string name, const bool* value);
  void guard(std::string name, const int64_t* value);
  void guard(std::string name, const double* value);
  void guard(std::string name, const std::string* value);

  void set_jit(int jit);
  /// Successful calls since the start or reset().
  int64_t count() const;
  bool is_captured() const;
  /// Forgets what was captured and all calls. Errors: NoCallable.
  Status reset();
  /// Forgets what was captured; the next call captures. For devices whose capabilities changed. Errors: NoCallable.
  Status recapture();

  /// The newest capture, to be written to a file; state that changes from replay to replay with its values of now.
  /// Errors: NotCaptured; as Workspace::to_host().
  Result<exec::CapturedRef> captured() const;
  /// Errors of these: NotCaptured; as exec::Replay.
  Result<CaptureReport> report() const;
  Result<exec::PrepareReport> prepare();
  Result<uint64_t> free_intermediates();
  Result<exec::RebindReport> rebind(const exec::RebindOptions& options = {});
  /// Of the newest capture; null before.
  exec::Replay* replay() const;

 private:
  struct State;
  explicit Capture(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace ignis::engine
