#include "ignis/exec/replay.h"

#include "ignis/runtime/reasons.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ignis::exec {

using runtime::WaitLimits;

Result<std::shared_ptr<Replay>> Replay::create(CapturedRef captured,
                                               std::shared_ptr<Machine> machine) {
  std::shared_ptr<Replay> made(new Replay(std::move(captured), std::move(machine)));
  IGNIS_TRY(made->bind_devices(false));
  return made;
}

Replay::Replay(CapturedRef captured, std::shared_ptr<Machine> machine)
    : captured_(std::move(captured)),
      machine_(std::move(machine)),
      held_(captured_),
      tokens_(std::make_shared<ReplayTokens>(machine_)),
      shown_captured_(captured_) {}

Replay::~Replay() = default;

WaitLimits Replay::until(int64_t end_ns, const WaitLimits& limits) const {
  return {std::max<int64_t>(0, end_ns - now_ns()), limits.stall_ns};
}

Status Replay::hold(Lock& lock, const WaitLimits& limits) const {
  lock = Lock(running_, std::defer_lock);
  const bool is_mine = limits.deadline_ns <= 0
                           ? lock.try_lock()
                           : lock.try_lock_for(std::chrono::nanoseconds(limits.deadline_ns));
  if (is_mine) return Status::ok();
  return Error(ErrorCode::Timeout,
               "Another replay of this capture is still under way after " +
                   std::to_string(limits.deadline_ns / 1'000'000) + " ms.",
               "Busy");
}

/// Takes the devices as they are now for those that the capture is bound to.
Status Replay::bind_devices(bool takes_any_generation) {
  std::vector<BoundDevice> bound;
  for (const CapturedDevice& captured : captured_->devices) {
    runtime::QueuedDevice* device = machine_->find(captured.name);
    if (device == nullptr) {
      return Error(ErrorCode::NotFound, "Device '" + captured.name + "' is not open.",
                   "NoSuchDevice");
    }
    const runtime::Capabilities& now = device->capabilities();
    if (now.fingerprint() != captured.capabilities.fingerprint()) {
      return Error(ErrorCode::InvalidArgument,
                   "Device '" + captured.name + "' can do other things than at the capture: " +
                       describe_difference(captured.capabilities, now) + "; capture again.",
                   "NeedsRecapture");
    }
    const bool takes_any = takes_any_generation || captured.generation == 0;
    bound.push_back({device, takes_any ? device->generation() : captured.generation});
  }
  devices_ = std::move(bound);
  reached_before_.assign(devices_.size(), 0);
  // The signature knows generations, too.
  std::vector<InputDescription> inputs(captured_->signature.inputs().begin(),
                                       captured_->signature.inputs().end());
  std::vector<std::vector<InputDevice>> lanes(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    lanes[i].assign(inputs[i].devices.begin(), inputs[i].devices.end());
    for (InputDevice& lane : lanes[i]) {
      if (const runtime::QueuedDevice* device = machine_->find(lane.name)) {
        if (takes_any_generation || lane.generation == 0) lane.generation = device->generation();
      } else if (lane.generation == 0) {
        lane.generation = 1;
      }
    }
    inputs[i].devices = lanes[i];
  }
  signature_ = Signature::make(inputs, captured_->signature.variables());
  return Status::ok();
}

Status Replay::check_devices() const {
  for (size_t i = 0; i < devices_.size(); ++i) {
    const BoundDevice& bound = devices_[i];
    const uint64_t generation = bound.device->generation();
    if (generation != bound.generation || is_stale_) {
      return Error(ErrorCode::DeviceLost,
                   "The capture is bound to generation " + std::to_string(bound.generation) +
                       " of device '" + bound.device->name() + "', which is open as generation " +
                       std::to_string(generation) + "; rebind it or capture again.",
                   "StaleCapture");
    }
    if (!bound.device->is_online()) {
      return runtime::device_unavailable(bound.device->name(), bound.device->state());
    }
  }
  if (!is_stale_) return Status::ok();
  return Error(ErrorCode::DeviceLost, "The last rebind of the capture failed; rebind it again.",
               "StaleCapture");
}

Status Replay::check_idle() const {
  if (link_ == nullptr) return Status::ok();
  for (const LinkedStep& step : link_->steps()) {
    if (step.batch == nullptr) continue;
    for (const runtime::Submitted& token : step.batch->fence->submitted()) {
      if (token.is_reached() || !token.is_alive()) continue;
      return Error(ErrorCode::Timeout,
                   "A replay of this capture is still under way on device '" +
                       token.device().name() + "'; wait for it first.",
                   "Busy");
    }
  }
  return Status::ok();
}

/// Everything that only the first replay of a link needs.
Status Replay::make_ready(const WaitLimits& limits) {
  if (link_ != nullptr) return Status::ok();
  const int64_t end_ns = runtime::add_ns(now_ns(), limits.deadline_ns);
  IGNIS_TRY(held_.fill(*machine_, uploaded_));
  if (held_.needs_one_time()) IGNIS_TRY(run_one_time(until(end_ns, limits)));
  LinkOptions options;
  options.held = held_.memory();
  IGNIS_TRY_ASSIGN(std::shared_ptr<LinkedSchedule> linked,
                   link(machine_, captured_->queues, {}, options));
  links_.fetch_add(1, std::memory_order_relaxed);
  feedback_.reset(*captured_, *linked);
  const QueueTemplate& queues = captured_->queues->queues();
  has_other_steps_ = std::any_of(queues.steps.begin(), queues.steps.end(),
                                 [](const TemplateStep& step) { return is_other(step); });
  writes_state_ = std::any_of(captured_->held.begin(), captured_->held.end(),
                              [](const HeldBuffer& held) { return held.is_written; });
  size_t tokens = 0;
  for (const LinkedStep& step : linked->steps()) {
    if (step.batch != nullptr) tokens += step.batch->devices.size();
  }
  tokens_->expect(tokens);
  variables_.resize(static_cast<size_t>(count_variables(queues)));
  link_ = std::move(linked);
  bound_.resize(captured_->input_count() +
                (captured_->output_mode == OutputMode::Borrow ? 0 : captured_->outputs.size()));
  Status status = make_outputs();
  if (!status) drop_link();
  return status;
}

Status Replay::run_one_time(const WaitLimits& limits) {
  LinkOptions options;
  options.held = held_.memory();
  IGNIS_TRY_ASSIGN(const std::shared_ptr<LinkedSchedule> once,
                   link(machine_, captured_->one_time, {}, options));
  IGNIS_TRY(exec::run(*once, {}, {.limits = limits}));
  held_.note_one_time();
  return Status::ok();
}

Status Replay::make_outputs() {
  if (outputs_) return Status::ok();
  std::vector<OutputSpec> specs;
  OutputOptions options;
  options.mode = captured_->output_mode;
  options.ring_size = captured_->ring_size;
  options.max_sets = captured_->max_sets;
  options.first_sequence = next_sequence_;
  options.clock = &machine_->clock();
  std::vector<std::string> owners;
  for (const CapturedOutput& output : captured_->outputs) {
    specs.push_back({output.name, output.range.size_bytes});
    const ScheduleBuffer& buffer =
        captured_->queues->queues().buffers[static_cast<size_t>(output.range.buffer)];
    owners.push_back(buffer.devices[static_cast<size_t>(output.range.lane)]);
    if (options.mode != OutputMode::Borrow) continue;
    const Placement& at = link_->placement(output.range.buffer, output.range.lane);
    if (at.memory == nullptr) {
      return Error(ErrorCode::InvalidArgument, "No call writes output '" + output.name + "'.",
                   "BadCaptured");
    }
    options.borrowed.push_back(
        {at.memory, at.offset_bytes + output.range.offset_bytes, output.range.size_bytes});
  }
  // Handles may outlive this object.
  options.allocate = [machine = machine_, owners](
                         int output, uint64_t size_bytes) -> Result<runtime::MemoryRef> {
    IGNIS_TRY_ASSIGN(const Placement placed, machine->allocate(owners[static_cast<size_t>(output)],
                                                               size_bytes, runtime::Purpose::Data));
    return placed.memory;
  };
  options.make_readable = [tokens = tokens_](uint64_t sequence, int, const Placement& at,
                                             const WaitLimits& limits) {
    return tokens->prove(sequence, at, limits);
  };
  IGNIS_TRY_ASSIGN(outputs_, Outputs::create(std::move(specs), std::move(options)));
  return Status::ok();
}

Result<PrepareReport> Replay::prepare(const WaitLimits& limits, bool makes_dry_run) {
  Lock lock;
  IGNIS_TRY(hold(lock, limits));
  const int64_t begin_ns = now_ns();
  const int64_t end_ns = runtime::add_ns(begin_ns, limits.deadline_ns);
  IGNIS_TRY(check_devices());
  PrepareReport report;
  const UploadCounts before = uploaded_;
  if (link_ == nullptr) {
    IGNIS_TRY(make_ready(until(end_ns, limits)));
    report.link_ns = now_ns() - begin_ns;
    const bool is_seen = writes_state_ || replays_.load(std::memory_order_relaxed) > 0;
    if (makes_dry_run && !is_seen && held_.check()) {
      const int64_t dry_ns = now_ns();
      IGNIS_TRY(make_dry_run(until(end_ns, limits)));
      report.dry_run_ns = now_ns() - dry_ns;
      report.made_dry_run = true;
    }
  }
  report.uploaded = uploaded_.since(before);
  return report;
}

/// Zeros in, and what comes out is thrown away.
Status Replay::make_dry_run(const WaitLimits& limits) {
  for (const ScheduleBuffer& buffer : captured_->queues->queues().buffers) {
    if (buffer.input < 0) continue;
    const auto input = static_cast<size_t>(buffer.input);
    std::vector<Placement>& lanes = bound_[input].lanes;
    const uint64_t size_bytes = input < captured_->input_count()
                                    ? captured_->signature.inputs()[input].base_bytes
                                    : buffer.size_bytes;
    for (size_t lane = lanes.size(); lane < buffer.devices.size(); ++lane) {
      IGNIS_TRY_ASSIGN(const Placement placed, machine_->allocate(buffer.devices[lane], size_bytes,
                                                                  runtime::Purpose::Data));
      lanes.push_back(placed);
    }
  }
  for (size_t i = 0; i < variables_.size(); ++i) {
    variables_[i] = captured_->signature.variables()[i].min;
  }
  return run_bound(limits, true);
}

/// Runs what bound_ holds and lets go of it.
Status Replay::run_bound(const WaitLimits& limits, bool waits) {
  Status status = exec::run(*link_, bound_, {waits, variables_, limits});
  for (BoundInput& bound : bound_) bound.lanes.clear();
  return status;
}

uint64_t Replay::begun() const {
  uint64_t sum = 0;
  for (const LinkedStep& step : link_->steps()) {
    if (step.batch == nullptr) continue;
    for (const Epoch& epoch : step.batch->fence->epochs()) sum += epoch.value + epoch.restarts;
  }
  return sum;
}

void Replay::note_reached() {
  for (size_t i = 0; i < devices_.size(); ++i) {
    reached_before_[i] = devices_[i].device->timeline().reached->load();
  }
}

/// A device that stood still from the beginning of a replay to its deadline hangs: waits further in have shorter limits each,
/// and none of them may have lasted for the stall limit.
void Replay::blame(const Error& error, int64_t begin_ns, const WaitLimits& limits) const {
  if (error.reason() != runtime::reason::kDeadlineExceeded || limits.stall_ns <= 0 ||
      now_ns() - begin_ns < limits.stall_ns) {
    return;
  }
  for (const LinkedStep& step : link_->steps()) {
    if (step.batch == nullptr) continue;
    for (const runtime::Submitted& token : step.batch->fence->submitted()) {
      if (token.is_reached() || !token.is_alive()) continue;
      for (size_t i = 0; i < devices_.size(); ++i) {
        runtime::QueuedDevice& device = *devices_[i].device;
        if (&device != &token.device() || device.only_waits()) continue;
        if (device.timeline().reached->load() != reached_before_[i]) continue;
        device.report_hang("a replay of " + std::to_string(limits.deadline_ns / 1'000'000) +
                           " ms in which it completed nothing");
      }
    }
  }
}

/// The replay failed: what it wrote is nobody's, and what it may still write lives until it cannot.
void Replay::withdraw(OutputTurn turn, bool has_begun) {
  if (!has_begun) return;
  held_.lose_written();
  std::vector<Placement> storage = std::move(turn).withdraw();
  if (storage.empty()) return;
  auto token = std::make_shared<RunToken>();
  for (const LinkedStep& step : link_->steps()) {
    if (step.batch != nullptr) token->add(step.batch->fence->submitted());
  }
  token->seal();
  machine_->retire(std::move(token),
                   std::make_shared<const std::vector<Placement>>(std::move(storage)));
}

Status Replay::wait(const WaitLimits& limits) {
  Lock lock;
  IGNIS_TRY(hold(lock, limits));
  return link_ == nullptr ? Status::ok() : exec::wait(*link_, limits);
}

Result<OutputHandle> Replay::run(const ReplayCall& call) {
  Lock lock;
  const int64_t end_ns = runtime::add_ns(now_ns(), std::max<int64_t>(0, call.limits.deadline_ns));
  IGNIS_TRY(hold(lock, call.limits));
  IGNIS_TRY(check_devices());
  IGNIS_TRY(captured_->guards.check(call.guards));
  IGNIS_TRY(signature_.check(call.inputs, call.variables));
  return run_ready(call, end_ns);
}

Result<OutputHandle> Replay::run_ready(const ReplayCall& call, int64_t end_ns) {
  IGNIS_TRY(check_memory(call));
  IGNIS_TRY(make_ready(until(end_ns, call.limits)));
  IGNIS_TRY(held_.check());
  IGNIS_TRY_ASSIGN(OutputTurn turn, outputs_->begin(until(end_ns, call.limits), call.outputs));
  {
    const std::lock_guard shown(shown_mutex_);
    next_sequence_ = turn.sequence() + 1;
  }
  const size_t inputs = captured_->input_count();
  for (size_t i = 0; i < inputs; ++i) {
    bound_[i].lanes.assign(call.memory[i].lanes.begin(), call.memory[i].lanes.end());
  }
  std::span<const Placement> parameters;
  if (captured_->output_mode != OutputMode::Borrow) parameters = turn.places();
  for (size_t i = 0; i < parameters.size(); ++i) {
    bound_[inputs + i].lanes.assign(1, parameters[i]);
  }
  for (size_t i = 0; i < variables_.size(); ++i) variables_[i] = call.variables[i].value;
  const int64_t begin_ns = now_ns();
  const uint64_t before = begun();
  note_reached();
  Result<int> copied =
      feedback_.apply(*captured_, *link_, parameters, bound_, until(end_ns, call.limits));
  if (!copied) {
    for (BoundInput& bound : bound_) bound.lanes.clear();
    return std::move(copied).error();
  }
  shadow_copies_.fetch_add(static_cast<uint64_t>(*copied), std::memory_order_relaxed);
  submitted_ = turn.sequence();
  Status status = run_bound(until(end_ns, call.limits), call.waits);
  if (!status) {
    blame(status.error(), begin_ns, call.limits);
    const bool is_refusal =
        status.error().code() == ErrorCode::InvalidArgument || status.error().reason() == "Busy";
    withdraw(std::move(turn), begun() != before || (has_other_steps_ && !is_refusal));
    return std::move(status).error();
  }
  tokens_->note(turn.sequence(), *link_);
  if (call.waits) tokens_->note_complete(turn.sequence());
  replays_.fetch_add(1, std::memory_order_relaxed);
  return std::move(turn).finish();
}

/// What the descriptions promise: the signature knows nothing of the memory itself.
Status Replay::check_memory(const ReplayCall& call) const {
  const std::span<const InputDescription> inputs = captured_->signature.inputs();
  if (call.memory.size() != inputs.size()) {
    return Error(ErrorCode::InvalidArgument,
                 "The capture has " + std::to_string(inputs.size()) +
                     " inputs; the call brings memory for " + std::to_string(call.memory.size()) +
                     ".",
                 "MissingInput");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<Placement>& lanes = call.memory[i].lanes;
    const bool fits = lanes.size() == inputs[i].devices.size() &&
                      std::all_of(lanes.begin(), lanes.end(), [&](const Placement& lane) {
                        return lane.memory != nullptr && lane.size_bytes == inputs[i].base_bytes;
                      });
    if (fits) continue;
    return Error(ErrorCode::InvalidArgument,
                 "Input '" + std::string(inputs[i].name) + "' has " +
                     std::to_string(inputs[i].devices.size()) + " lanes of " +
                     std::to_string(inputs[i].base_bytes) +
                     " bytes; the call brings other memory than it describes.",
                 "InputTooSmall");
  }
  for (size_t i = 0; i < call.outputs.size() && i < captured_->outputs.size(); ++i) {
    const std::byte* host =
        call.outputs[i].memory == nullptr ? nullptr : call.outputs[i].memory->host();
    const uint32_t alignment = captured_->outputs[i].alignment_bytes;
    if (host == nullptr ||
        (reinterpret_cast<uintptr_t>(host) + call.outputs[i].offset_bytes) % alignment == 0) {
      continue;
    }
    return Error(ErrorCode::InvalidArgument,
                 "Output '" + captured_->outputs[i].name + "' needs storage aligned to " +
                     std::to_string(alignment) + " bytes.",
                 "OutputMismatch");
  }
  return Status::ok();
}

CapturedRef Replay::captured() const {
  const std::lock_guard lock(shown_mutex_);
  return shown_captured_;
}
uint64_t Replay::next_sequence() const {
  const std::lock_guard lock(shown_mutex_);
  return next_sequence_;
}

ReplayCounts Replay::counts() const {
  return {links_.load(std::memory_order_relaxed), replays_.load(std::memory_order_relaxed),
          shadow_copies_.load(std::memory_order_relaxed)};
}

}  // namespace ignis::exec
