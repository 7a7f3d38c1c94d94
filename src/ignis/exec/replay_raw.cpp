// The light path of a replay: ports by number, memory by address.

#include "ignis/exec/replay.h"

#include <algorithm>
#include <utility>

namespace ignis::exec {

using runtime::WaitLimits;

/// One memory for each port, which is moved from run to run.
Status Replay::make_windows() {
  const auto refuse = [](const std::string& what) {
    return Error(ErrorCode::Unsupported, "This capture is not replayed by addresses: " + what + ".",
                 "RawPorts");
  };
  if (captured_->output_mode != OutputMode::Caller) return refuse("the caller owns no outputs");
  if (captured_->guards.size() > 0) return refuse("it has guards");
  if (!captured_->signature.variables().empty()) return refuse("it has variables");
  const std::string& host = machine_->options().host_name;
  for (const CapturedDevice& device : captured_->devices) {
    // A device keeps its mapping of a memory, wherever that moves.
    if (device.name != host) return refuse("device '" + device.name + "' maps memory");
  }
  std::vector<std::shared_ptr<ExternalMemory>> made;
  for (const InputDescription& input : captured_->signature.inputs()) {
    if (input.devices.size() != 1 || input.devices[0].name != host) {
      return refuse("input '" + std::string(input.name) + "' is not the host's");
    }
    made.push_back(std::make_shared<ExternalMemory>(host, nullptr, input.base_bytes));
  }
  for (const CapturedOutput& output : captured_->outputs) {
    const ScheduleBuffer& buffer =
        captured_->queues->queues().buffers[static_cast<size_t>(output.range.buffer)];
    if (buffer.devices.front() != host) {
      return refuse("output '" + output.name + "' is not the host's");
    }
    made.push_back(std::make_shared<ExternalMemory>(host, nullptr, output.range.size_bytes));
  }
  windows_ = std::move(made);
  raw_.resize(windows_.size());
  for (size_t i = 0; i < windows_.size(); ++i) {
    raw_[i].lanes = {{windows_[i], 0, windows_[i]->size_bytes()}};
  }
  return Status::ok();
}

Status Replay::run_raw(std::span<const RawPort> inputs, std::span<const RawPort> outputs,
                       const WaitLimits& limits) {
  Lock lock;
  IGNIS_TRY(hold(lock, limits));
  IGNIS_TRY(check_devices());
  if (link_ == nullptr || windows_.empty()) {
    IGNIS_TRY(make_ready(limits));
    if (windows_.empty()) IGNIS_TRY(make_windows());
  }
  if (!captured_->held.empty()) IGNIS_TRY(held_.check());
  const size_t input_count = captured_->input_count();
  if (inputs.size() != input_count || outputs.size() != captured_->outputs.size()) {
    return Error(ErrorCode::InvalidArgument,
                 "The capture has " + std::to_string(input_count) + " inputs and " +
                     std::to_string(captured_->outputs.size()) + " outputs; the call brings " +
                     std::to_string(inputs.size()) + " and " + std::to_string(outputs.size()) + ".",
                 "MissingInput");
  }
  for (size_t i = 0; i < windows_.size(); ++i) {
    const bool is_input = i < input_count;
    const RawPort& port = is_input ? inputs[i] : outputs[i - input_count];
    const uint64_t size_bytes = windows_[i]->size_bytes();
    const uint32_t alignment = is_input ? captured_->signature.inputs()[i].alignment_bytes
                                        : captured_->outputs[i - input_count].alignment_bytes;
    if (port.size_bytes != size_bytes || (port.bytes == nullptr && size_bytes != 0) ||
        reinterpret_cast<uintptr_t>(port.bytes) % alignment != 0) {
      const std::string name = is_input ? std::string(captured_->signature.inputs()[i].name)
                                        : captured_->outputs[i - input_count].name;
      return Error(ErrorCode::InvalidArgument,
                   "Port '" + name + "' takes " + std::to_string(size_bytes) +
                       " bytes aligned to " + std::to_string(alignment) + "; " +
                       std::to_string(port.size_bytes) + " bytes at an address that " +
                       std::to_string(alignment_class(reinterpret_cast<uintptr_t>(port.bytes))) +
                       " divides are given.",
                   is_input ? "SignatureMismatch" : "OutputMismatch");
    }
    static std::byte nothing{};  // an address for ports without elements
    windows_[i]->move_to(size_bytes == 0 ? &nothing : port.bytes);
  }
  const uint64_t before = writes_state_ ? begun() : 0;
  Status status = exec::run(*link_, raw_, {.limits = limits});
  if (status) {
    replays_.fetch_add(1, std::memory_order_relaxed);
    return status;
  }
  const bool is_refusal =
      status.error().code() == ErrorCode::InvalidArgument || status.error().reason() == "Busy";
  if (writes_state_ && (begun() != before || (has_other_steps_ && !is_refusal))) {
    held_.lose_written();
  }
  return status;
}

}  // namespace ignis::exec
