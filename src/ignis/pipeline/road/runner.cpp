#include "ignis/pipeline/road/runner.h"

#include "ignis/base/check.h"
#include "ignis/base/log.h"
#include "ignis/pipeline/road/artifact_file.h"
#include "ignis/pipeline/road/decode.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace ignis::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t ns_between(Clock::time_point begin, Clock::time_point end) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(end - begin).count());
}

RoadFault fault_of(const Error& error) {
  if (error.reason() == "NonFinite") return RoadFault::NonFinite;
  return error.code() == ErrorCode::Timeout ? RoadFault::RunTimeout : RoadFault::RunFailed;
}

// The call came back, what it started on the device perhaps not: buffers must outlive it.
bool may_still_run(const Error& error) {
  return error.code() == ErrorCode::Timeout || error.code() == ErrorCode::DeviceLost;
}

// Error of a run whose runner has just failed.
Error run_error(RoadFault fault, const std::string& text) {
  const ErrorCode code = fault == RoadFault::RunTimeout ? ErrorCode::Timeout : ErrorCode::Internal;
  return Error(code, text, std::string(to_string(fault)));
}

enum class Job : uint8_t { None, Load, Run };

// After the copy: what the producer wrote into meanwhile is torn, what it writes into later is no matter.
Status check_intact(const RoadInput& input) {
  for (const Frame* frame : {&input.main, &input.wide}) {
    if (frame->memory == nullptr || frame->memory->is_intact()) continue;
    return Error(ErrorCode::InvalidArgument,
                 "Frame " + std::to_string(frame->info.frame_id) +
                     " was overwritten by its producer while it was copied.",
                 "FrameOverwritten");
  }
  return {};
}

}  // namespace

std::string_view to_string(RoadTier tier) { return tier == RoadTier::Big ? "big" : "small"; }

std::string_view to_string(RoadFault fault) {
  switch (fault) {
    case RoadFault::None: return "None";
    case RoadFault::NotConfigured: return "NotConfigured";
    case RoadFault::LoadFailed: return "LoadFailed";
    case RoadFault::LoadTimeout: return "LoadTimeout";
    case RoadFault::ContractMismatch: return "ContractMismatch";
    case RoadFault::RunFailed: return "RunFailed";
    case RoadFault::RunTimeout: return "RunTimeout";
    case RoadFault::NonFinite: return "NonFinite";
    case RoadFault::Unavailable: return "Unavailable";
  }
  return "?";
}

std::string to_string(const RunnerState& state) {
  switch (state.kind) {
    case RunnerState::Kind::Absent: return "Absent";
    case RunnerState::Kind::Loading: return "Loading";
    case RunnerState::Kind::Ready: return "Ready";
    case RunnerState::Kind::Degraded:
      return "Degraded(" + std::string(to_string(state.reason)) + ")";
    case RunnerState::Kind::Failed: return "Failed(" + std::string(to_string(state.reason)) + ")";
  }
  return "?";
}

/// What the helper thread touches. Everything below `job` belongs to the thread while a job is under way, else to the
/// runner.
struct FencedRunner::Core {
  std::mutex mutex;
  std::condition_variable job_came, job_ended;
  Job job = Job::None;
  bool is_taken = false, is_closing = false, is_fenced = false, has_exited = false;

  std::function<Result<std::unique_ptr<RoadModel>>()> make_model;
  std::chrono::nanoseconds run_limit{};
  int qualification_runs = 0;
  FrameLayout layout;
  runtime::Deadline deadline;
  std::unique_ptr<RoadModel> model;
  std::optional<PackedInput> input;
  std::vector<float> output;
  Status status;
  bool has_wrong_contract = false;
  Clock::time_point run_begin, run_end;
  std::thread thread;  ///< the runner's alone

  void serve();
  Status guarded(Status (Core::*work)());
  Status load();
  Status run();
  Status run_once(runtime::Deadline end);
};

// Nothing of ours throws; what a model is made of might.
Status FencedRunner::Core::guarded(Status (Core::*work)()) {
  try {
    return (this->*work)();
  } catch (const std::exception& e) {
    return Error(ErrorCode::Internal, std::string("The model threw an exception: ") + e.what());
  } catch (...) {
    return Error(ErrorCode::Internal, "The model threw an exception of an unknown type.");
  }
}

Status FencedRunner::Core::run_once(runtime::Deadline end) {
  IGNIS_TRY(model->run(*input, output, end));
  const int64_t at = find_non_finite(output);
  if (at < 0) return {};
  return Error(ErrorCode::Internal,
               "Value " + std::to_string(at) + " of the output is " +
                   std::to_string(output[static_cast<size_t>(at)]) + ".",
               "NonFinite");
}

Status FencedRunner::Core::run() {
  run_begin = Clock::now();
  Status result = run_once(deadline);
  run_end = Clock::now();
  if (!result) model->reset_state();  // a run is destructive
  return result;
}

Status FencedRunner::Core::load() {
  IGNIS_TRY_ASSIGN(model, make_model());
  if (model == nullptr) return Error(ErrorCode::NotFound, "No model was made.");
  IGNIS_TRY(model->load(layout));
  const RoadContract& contract = model->contract();
  has_wrong_contract = true;  // until the checks are through
  IGNIS_TRY(check_slices(contract.slices, contract.output_count));
  constexpr int64_t kMostValues = 1 << 24;
  if (contract.output_count <= 0 || contract.output_count > kMostValues) {
    return Error(ErrorCode::InvalidArgument,
                 "The model's output has " + std::to_string(contract.output_count) +
                     " values; 1 to " + std::to_string(kMostValues) + " are supported.",
                 "OutputSize");
  }
  IGNIS_TRY_ASSIGN(PackedLayout packed, make_packed_layout(contract, layout));
  IGNIS_TRY(check_views(packed, contract.inputs));
  has_wrong_contract = false;
  IGNIS_TRY_ASSIGN(input, PackedInput::create(std::move(packed)));
  output.assign(static_cast<size_t>(contract.output_count), 0.0f);
  // The first run may pay for what is made on first use; the others show that the model keeps its time.
  input->write_warm_up();
  IGNIS_TRY(run_once(deadline));
  for (int i = 0; i < qualification_runs; ++i) {
    IGNIS_TRY(run_once(std::min(deadline, Clock::now() + run_limit)));
  }
  model->reset_state();
  input->clear();
  std::fill(output.begin(), output.end(), 0.0f);
  return {};
}

void FencedRunner::Core::serve() {
  std::unique_lock lock(mutex);
  while (true) {
    job_came.wait(lock, [this] { return is_closing || (job != Job::None && !is_taken); });
    if (job == Job::None) break;
    is_taken = true;
    const Job next = job;
    lock.unlock();
    Status result = guarded(next == Job::Load ? &Core::load : &Core::run);
    lock.lock();
    status = std::move(result);
    job = Job::None;
    is_taken = false;
    job_ended.notify_all();
    if (is_closing) break;
  }
  if (!is_fenced) {
    lock.unlock();
    model.reset();  // here, because it may hang like everything else of the model
    lock.lock();
  }
  has_exited = true;
  job_ended.notify_all();
}

FencedRunner::FencedRunner(RoadRunnerOptions options) : options_(std::move(options)) {}

FencedRunner::~FencedRunner() {
  if (core_ == nullptr) return;
  bool has_exited = false;
  {
    std::unique_lock lock(core_->mutex);
    core_->is_closing = true;
    core_->job_came.notify_all();
    has_exited =
        core_->job_ended.wait_for(lock, options_.close_limit, [this] { return core_->has_exited; });
  }
  if (has_exited) {
    core_->thread.join();
  } else {
    fence();
  }
}

// From here on nobody waits for the thread or reads what it writes. Its memory is never freed: a device may write into
// it whenever it likes, and the model's destructor could hang as well as its run.
void FencedRunner::fence() {
  {
    const std::lock_guard lock(core_->mutex);
    core_->is_closing = core_->is_fenced = true;
    core_->job_came.notify_all();
  }
  core_->thread.detach();
  runtime::abandon(core_);
  core_.reset();
  IGNIS_LOG(Warning, "road") << "The model '" << options_.name
                             << "' is left to itself with all it may still write to.";
}

void FencedRunner::fail(RoadFault fault, std::string text) {
  state_ = {RunnerState::Kind::Failed, fault};
  fault_text_ = std::move(text);
  IGNIS_LOG(Error, "road") << to_string(options_.tier) << " model '" << options_.name
                           << "': " << to_string(fault) << ": " << fault_text_;
}

bool FencedRunner::wait_until_idle(runtime::Deadline deadline) {
  std::unique_lock lock(core_->mutex);
  return core_->job_ended.wait_until(lock, deadline, [this] { return core_->job == Job::None; });
}

void FencedRunner::start_load(const FrameLayout& layout) {
  IGNIS_CHECK(state_.kind == RunnerState::Kind::Absent) << "A runner is loaded once.";
  const Status present =
      options_.make_model == nullptr   ? Status(Error(ErrorCode::NotFound, "No model is given."))
      : options_.artifact_path.empty() ? Status()
                                       : check_artifact_file(options_.artifact_path);
  if (!present) {
    state_.reason = RoadFault::NotConfigured;
    fault_text_ = present.error().to_string();
    return;
  }
  layout_ = layout;
  load_end_ = runtime::deadline_after(options_.load_limit);
  core_ = std::make_shared<Core>();
  core_->make_model = options_.make_model;
  core_->run_limit = options_.run_limit;
  core_->qualification_runs = options_.qualification_runs;
  core_->layout = layout;
  core_->deadline = load_end_;
  core_->job = Job::Load;
  try {
    core_->thread = std::thread([core = core_] { core->serve(); });
  } catch (const std::system_error& e) {
    core_.reset();
    fail(RoadFault::LoadFailed, std::string("No thread could be started: ") + e.what());
    return;
  }
  state_ = {RunnerState::Kind::Loading, RoadFault::None};
}

// The load's job has ended.
void FencedRunner::take_load_result() {
  if (core_->status) {
    state_ = {RunnerState::Kind::Ready, RoadFault::None};
  } else {
    const Error error = core_->status.error();
    fail(core_->has_wrong_contract ? RoadFault::ContractMismatch : RoadFault::LoadFailed,
         error.to_string());
    if (may_still_run(error)) fence();
  }
}

RunnerState FencedRunner::wait_loaded(runtime::Deadline deadline) {
  if (state_.kind != RunnerState::Kind::Loading) return state_;
  if (wait_until_idle(std::min(deadline, load_end_))) {
    take_load_result();
  } else if (Clock::now() >= load_end_) {
    fail(RoadFault::LoadTimeout,
         "The model is not loaded after " +
             std::to_string(options_.load_limit / std::chrono::milliseconds(1)) +
             " ms; what it may still complete is ignored.");
    fence();
  }
  return state_;
}

RunnerState FencedRunner::state() {
  wait_loaded(Clock::now());
  // What it found is in state_; that a run is still open is no news.
  if (is_run_open_) static_cast<void>(finish_run(Clock::now()));
  return state_;
}

// Waits for the open run until `deadline` or its own limit, whichever is first.
Status FencedRunner::finish_run(runtime::Deadline deadline) {
  Core& core = *core_;
  if (!wait_until_idle(std::min(deadline, run_end_))) {
    if (Clock::now() < run_end_) {
      return Error(ErrorCode::Timeout,
                   "The deadline passes while frame " + std::to_string(run_frame_id_) +
                       " runs, before the run limit.",
                   "FrameDeadline");
    }
    is_run_open_ = false;
    fail(RoadFault::RunTimeout,
         "The run of frame " + std::to_string(run_frame_id_) + " does not end within " +
             std::to_string(options_.run_limit / std::chrono::milliseconds(1)) + " ms.");
    fence();
    return run_error(RoadFault::RunTimeout, fault_text_);
  }
  is_run_open_ = false;
  if (core.status) return {};
  const Error error = core.status.error();
  const RoadFault fault = fault_of(error);
  fail(fault, error.to_string());
  if (may_still_run(error)) fence();
  return run_error(fault, fault_text_);
}

const RoadContract* FencedRunner::contract() const {
  return state_.kind == RunnerState::Kind::Ready ? &core_->model->contract() : nullptr;
}

Result<RoadOutput> FencedRunner::run(const RoadInput& input,
                                     const std::array<float, kDesireCount>& desire_pulse,
                                     runtime::Deadline deadline) {
  wait_loaded(Clock::now());
  // The rest of a run whose frame had no time left; its output is of no use any more.
  if (is_run_open_) IGNIS_TRY(finish_run(deadline));
  if (state_.kind != RunnerState::Kind::Ready) {
    return Error(ErrorCode::DeviceLost,
                 "The model '" + options_.name + "' cannot run: it is " + to_string(state_) + ".",
                 "Unavailable");
  }
  IGNIS_TRY(check_road_input(input, layout_));
  const Clock::time_point begin = Clock::now();
  if (begin >= deadline) {
    return Error(ErrorCode::Timeout,
                 "No time is left for frame " + std::to_string(input.main.info.frame_id) + ".",
                 "FrameDeadline");
  }
  Core& core = *core_;
  core.input->write(input, desire_pulse);
  IGNIS_TRY(check_intact(input));
  const Clock::time_point packed = Clock::now();
  run_end_ = runtime::deadline_after(options_.run_limit);
  run_frame_id_ = input.main.info.frame_id;
  is_run_open_ = true;
  {
    const std::lock_guard lock(core.mutex);
    core.deadline = run_end_;
    core.job = Job::Run;
    core.job_came.notify_all();
  }
  if (options_.while_running) options_.while_running();
  IGNIS_TRY(finish_run(deadline));
  RoadOutput output;
  output.values = core.output;
  output.contract = &core.model->contract();
  output.tier = options_.tier;
  output.pack_ns = ns_between(begin, packed);
  output.run_ns = ns_between(core.run_begin, core.run_end);
  return output;
}

}  // namespace ignis::pipeline
