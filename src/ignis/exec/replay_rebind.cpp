// What happens to a replay between its runs: memory is let go, devices come back, schedules and state are replaced.

#include "ignis/base/compare.h"
#include "ignis/exec/replay.h"
#include "ignis/runtime/reasons.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ignis::exec {

using runtime::WaitLimits;

namespace {

Error reference_mismatch(const std::string& output, int64_t element, const std::string& got,
                         const std::string& expected) {
  return Error(ErrorCode::Internal,
               "After the rebind element " + std::to_string(element) + " of output '" + output +
                   "' is " + got + "; the reference says " + expected +
                   ". The capture stays unavailable.",
               "ReferenceMismatch");
}

Status check_output(const CapturedOutput& output, std::span<const std::byte> got,
                    std::span<const std::byte> expected, const ReferenceFrame& frame) {
  if (got.size() != expected.size()) {
    return Error(ErrorCode::InvalidArgument,
                 "Output '" + output.name + "' has " + std::to_string(got.size()) +
                     " bytes; its reference has " + std::to_string(expected.size()) + ".",
                 "BadReference");
  }
  const Shape flat = {static_cast<int64_t>(expected.size()) / size_bytes(output.dtype)};
  const HostTensor got_values{output.dtype, flat, {got.begin(), got.end()}};
  const HostTensor expected_values{output.dtype, flat, {expected.begin(), expected.end()}};
  Tolerance tolerance;
  if (is_float(output.dtype)) tolerance = {frame.absolute, frame.relative};
  const Comparison result = compare(got_values, expected_values, tolerance);
  if (result.passed) return Status::ok();
  return reference_mismatch(output.name, result.worst, std::to_string(result.worst_got),
                            std::to_string(result.worst_want));
}

}  // namespace

/// What is under way keeps its memory.
void Replay::drop_link() {
  link_.reset();
  feedback_.clear();
}

Result<uint64_t> Replay::free_intermediates(const WaitLimits& limits) {
  Lock lock;
  IGNIS_TRY(hold(lock, limits));
  if (link_ == nullptr) return uint64_t{0};
  // A device that is lost does not come to an end, and holds nothing up either.
  const Status ended = exec::wait(*link_, limits);
  if (!ended && ended.error().code() != ErrorCode::DeviceLost) return ended.error();
  uint64_t bytes = 0;
  const std::vector<ScheduleBuffer>& buffers = captured_->queues->queues().buffers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ScheduleBuffer& buffer = buffers[i];
    if (buffer.input >= 0 || buffer.is_wire || !buffer.stage_for.empty() ||
        captured_->find_held(static_cast<int>(i)) >= 0) {
      continue;
    }
    for (size_t lane = 0; lane < buffer.devices.size(); ++lane) {
      const Placement& at = link_->placement(static_cast<int>(i), static_cast<int>(lane));
      if (at.memory != nullptr) bytes += at.size_bytes;
    }
  }
  bytes += feedback_.size_bytes();
  drop_link();
  if (!outputs_) return bytes;
  switch (captured_->output_mode) {
    case OutputMode::Borrow:  // among the buffers above
      outputs_->invalidate();
      outputs_.reset();
      break;
    case OutputMode::Ring:
      bytes += outputs_->invalidate();
      outputs_.reset();
      break;
    case OutputMode::Copy: bytes += outputs_->release_idle(); break;
    case OutputMode::Caller: break;
  }
  return bytes;
}

Result<RebindReport> Replay::rebind(const RebindOptions& options) {
  Lock lock(running_, std::defer_lock);
  if (!lock.try_lock()) {
    return Error(ErrorCode::Timeout, "A replay of this capture is under way; wait for it first.",
                 "Busy");
  }
  IGNIS_TRY(check_idle());
  if (options.references.size() == 1) {
    return Error(ErrorCode::InvalidArgument,
                 "One reference frame is given; two or more tell that frames follow each other "
                 "rightly.",
                 "BadReference");
  }
  const int64_t begin_ns = now_ns();
  const int64_t end_ns = runtime::add_ns(begin_ns, options.limits.deadline_ns);
  RebindReport report;

  const std::vector<BoundDevice> before = devices_;
  const std::shared_ptr<Machine> machine_before = machine_;
  // Whether the last replay came to its end: what it was writing is nobody's otherwise.
  const bool is_complete =
      link_ == nullptr || tokens_->is_complete(submitted_) || exec::wait(*link_, {0, 0});
  if (options.machine != nullptr) machine_ = options.machine;
  Status bound = bind_devices(true);
  if (!bound) {
    machine_ = machine_before;
    return std::move(bound).error();
  }
  for (const BoundDevice& device : devices_) {
    if (device.device->is_online()) continue;
    Error error = runtime::device_unavailable(device.device->name(), device.device->state());
    devices_ = before;
    machine_ = machine_before;
    return error;
  }

  // From here on nothing of before is used again.
  is_stale_ = true;
  const UploadCounts uploaded = uploaded_;
  drop_link();
  windows_.clear();
  if (outputs_) outputs_->invalidate();
  outputs_.reset();
  tokens_ = std::make_shared<ReplayTokens>(machine_);
  submitted_ = 0;
  if (!is_complete) held_.lose_written();
  report.kept_bytes = held_.keep_good([&](const HeldBuffer&, const Placement& at) {
    for (size_t i = 0; i < before.size(); ++i) {
      const runtime::QueuedDevice& device = *before[i].device;
      if (device.name() != at.memory->owner()) continue;
      if (devices_[i].device != &device) return false;
      return devices_[i].generation == before[i].generation || device.is_whole(*at.memory);
    }
    return true;  // the host's
  });
  IGNIS_TRY(make_ready(until(end_ns, options.limits)));
  IGNIS_TRY(check_references(options, end_ns, report));
  is_stale_ = false;
  report.uploaded = uploaded_.since(uploaded);
  report.lost_state = held_.lost();
  report.total_ns = now_ns() - begin_ns;
  return report;
}

Status Replay::check_references(const RebindOptions& options, int64_t end_ns,
                                RebindReport& report) {
  for (size_t i = 0; i < options.references.size(); ++i) {
    Status status = check_reference(options.references[i], until(end_ns, options.limits));
    if (!status) {
      return std::move(status).error().with_context("reference frame " + std::to_string(i));
    }
    ++report.checked_frames;
  }
  // The frames left theirs.
  if (!options.references.empty()) held_.lose_written();
  return Status::ok();
}

Status Replay::check_reference(const ReferenceFrame& frame, const WaitLimits& limits) {
  const int64_t end_ns = runtime::add_ns(now_ns(), limits.deadline_ns);
  for (const auto& [name, bytes] : frame.state) IGNIS_TRY(supply(name, bytes));
  const std::span<const InputDescription> described = signature_.inputs();
  if (frame.inputs.size() != described.size() ||
      frame.outputs.size() != captured_->outputs.size()) {
    return Error(ErrorCode::InvalidArgument,
                 "A reference frame has " + std::to_string(frame.inputs.size()) + " inputs and " +
                     std::to_string(frame.outputs.size()) + " outputs; the capture has " +
                     std::to_string(described.size()) + " and " +
                     std::to_string(captured_->outputs.size()) + ".",
                 "BadReference");
  }
  std::vector<BoundInput> memory(described.size());
  for (size_t i = 0; i < described.size(); ++i) {
    for (const InputDevice& device : described[i].devices) {
      IGNIS_TRY_ASSIGN(const Placement placed,
                       machine_->allocate(std::string(device.name), described[i].base_bytes,
                                          runtime::Purpose::Data));
      IGNIS_TRY(upload(*machine_, placed, frame.inputs[i], uploaded_));
      memory[i].lanes.push_back(placed);
    }
  }
  std::vector<Placement> callers;
  if (captured_->output_mode == OutputMode::Caller) {
    for (const CapturedOutput& output : captured_->outputs) {
      const ScheduleBuffer& buffer =
          captured_->queues->queues().buffers[static_cast<size_t>(output.range.buffer)];
      IGNIS_TRY_ASSIGN(const Placement placed,
                       machine_->allocate(buffer.devices.front(), output.range.size_bytes,
                                          runtime::Purpose::Data));
      callers.push_back(placed);
    }
  }
  ReplayCall call;
  call.memory = memory;
  call.variables = frame.variables;
  call.outputs = callers;
  call.limits = until(end_ns, limits);
  IGNIS_TRY_ASSIGN(const OutputHandle result, run_ready(call, end_ns));
  for (size_t i = 0; i < captured_->outputs.size(); ++i) {
    std::vector<std::byte> got(captured_->outputs[i].range.size_bytes);
    IGNIS_TRY(result.read(static_cast<int>(i), got, until(end_ns, limits)));
    IGNIS_TRY(check_output(captured_->outputs[i], got, frame.outputs[i], frame));
  }
  return Status::ok();
}

Status Replay::supply(std::string_view name, std::span<const std::byte> bytes) {
  const int found = captured_->find_held(name);
  if (found < 0) {
    return Error(ErrorCode::NotFound,
                 "The capture holds no buffer '" + std::string(name) + "' between replays.",
                 "NoSuchState");
  }
  const auto held = static_cast<size_t>(found);
  const ScheduleBuffer& buffer =
      captured_->queues->queues().buffers[static_cast<size_t>(captured_->held[held].buffer)];
  const size_t lanes = buffer.devices.size();
  if (bytes.size() / lanes != buffer.size_bytes || bytes.size() % lanes != 0) {
    return Error(ErrorCode::InvalidArgument,
                 "Held buffer '" + std::string(name) + "' has " + std::to_string(lanes) +
                     " lanes of " + std::to_string(buffer.size_bytes) + " bytes; " +
                     std::to_string(bytes.size()) + " bytes are supplied.",
                 "StateMismatch");
  }
  for (size_t lane = 0; lane < lanes; ++lane) {
    IGNIS_TRY(held_.supply(*machine_, held, lane,
                           bytes.subspan(lane * buffer.size_bytes, buffer.size_bytes), uploaded_));
  }
  return Status::ok();
}

Status Replay::supply_state(std::string_view name, std::span<const std::byte> bytes,
                            const WaitLimits& limits) {
  Lock lock;
  const int64_t end_ns = runtime::add_ns(now_ns(), limits.deadline_ns);
  IGNIS_TRY(hold(lock, limits));
  IGNIS_TRY(check_devices());
  IGNIS_TRY(make_ready(until(end_ns, limits)));
  IGNIS_TRY(exec::wait(*link_, until(end_ns, limits)));
  return supply(name, bytes);
}

Result<Placement> Replay::held_place(std::string_view name, size_t lane) {
  Lock lock;
  IGNIS_TRY(hold(lock, RunOptions().limits));
  IGNIS_TRY(check_devices());
  IGNIS_TRY(held_.fill(*machine_, uploaded_));
  const int found = captured_->find_held(name);
  if (found >= 0 && lane < held_.memory()[static_cast<size_t>(found)].lanes.size()) {
    return held_.place(static_cast<size_t>(found), lane);
  }
  return Error(ErrorCode::NotFound,
               "The capture holds no buffer '" + std::string(name) + "' with a lane " +
                   std::to_string(lane) + ".",
               "NoSuchState");
}

Result<std::vector<std::string>> Replay::lost_state(const WaitLimits& limits) const {
  Lock lock;
  IGNIS_TRY(hold(lock, limits));
  return held_.lost();
}

Status Replay::use(CapturedRef captured, const WaitLimits& limits) {
  Lock lock;
  IGNIS_TRY(hold(lock, limits));
  const auto differ = [](const std::string& what) {
    return Error(ErrorCode::InvalidArgument,
                 "The schedule belongs to another capture: its " + what + " differ.",
                 "OtherCapture");
  };
  if (captured->signature.hash() != captured_->signature.hash()) return differ("inputs");
  if (captured->output_mode != captured_->output_mode ||
      !std::equal(captured->outputs.begin(), captured->outputs.end(), captured_->outputs.begin(),
                  captured_->outputs.end(), [](const CapturedOutput& a, const CapturedOutput& b) {
                    return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape &&
                           a.range.size_bytes == b.range.size_bytes;
                  })) {
    return differ("outputs");
  }
  if (captured->devices.size() != captured_->devices.size() ||
      !std::equal(captured->devices.begin(), captured->devices.end(), captured_->devices.begin(),
                  [](const CapturedDevice& a, const CapturedDevice& b) {
                    return a.name == b.name &&
                           a.capabilities.fingerprint() == b.capabilities.fingerprint();
                  })) {
    return differ("devices");
  }
  if (!held_.adopt(captured)) return differ("held buffers");
  if (captured->queues != captured_->queues) {
    drop_link();
    if (captured->output_mode == OutputMode::Borrow && outputs_) {
      outputs_->invalidate();
      outputs_.reset();
    }
  }
  captured_ = std::move(captured);
  const std::lock_guard shown(shown_mutex_);
  shown_captured_ = captured_;
  return Status::ok();
}

}  // namespace ignis::exec
