#include "ignis/exec/model.h"

#include "ignis/exec/check_plan.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace ignis::exec {

using runtime::WaitLimits;
using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

namespace {

Error wrong_size(const char* what, const Port& port, uint64_t have, int64_t want) {
  return Error(ErrorCode::InvalidArgument,
               std::string(what) + " '" + port.name + "' is given " + std::to_string(have) +
                   " bytes; " + std::string(to_string(port.dtype)) + " " +
                   ignis::to_string(port.shape) + " has " + std::to_string(want) + ".",
               "WrongSize");
}

Status check_port(const char* what, const Port& port, ConstBytes bytes) {
  const int64_t want = element_count(port.shape) * size_bytes(port.dtype);
  if (bytes.size() != static_cast<uint64_t>(want)) {
    return wrong_size(what, port, bytes.size(), want);
  }
  if (reinterpret_cast<uintptr_t>(bytes.data()) % static_cast<uintptr_t>(size_bytes(port.dtype)) !=
      0) {
    return Error(ErrorCode::InvalidArgument,
                 std::string(what) + " '" + port.name + "' of dtype " +
                     std::string(to_string(port.dtype)) + " is not aligned to its elements.",
                 "Misaligned");
  }
  if (bytes.data() == nullptr && want != 0) {
    return Error(ErrorCode::InvalidArgument,
                 std::string(what) + " '" + port.name + "' is a null pointer.", "Null");
  }
  return {};
}

bool overlap(ConstBytes a, ConstBytes b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() &&
         b.data() < a.data() + a.size();
}

}  // namespace

// Calls write outputs before the last one has read its inputs.
Status check_ports(const Plan& plan, std::span<const ConstBytes> inputs,
                   std::span<const Bytes> outputs) {
  const auto check_count = [](const char* what, size_t have, size_t want) -> Status {
    if (have == want) return {};
    return Error(ErrorCode::InvalidArgument,
                 std::to_string(have) + " " + what + " are given; the program has " +
                     std::to_string(want) + ".",
                 "WrongCount");
  };
  IGNIS_TRY(check_count("inputs", inputs.size(), plan.inputs.size()));
  IGNIS_TRY(check_count("outputs", outputs.size(), plan.outputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    IGNIS_TRY(check_port("Input", plan.inputs[i], inputs[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    IGNIS_TRY(check_port("Output", plan.outputs[i], outputs[i]));
  }
  const auto aliased = [](const Port& a, const Port& b) {
    return Error(
        ErrorCode::InvalidArgument,
        "Output '" + a.name + "' overlaps '" + b.name + "' in memory; each needs bytes of its own.",
        "AliasedArguments");
  };
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (overlap(outputs[o], inputs[i])) return aliased(plan.outputs[o], plan.inputs[i]);
    }
    for (size_t i = 0; i < o; ++i) {
      if (overlap(outputs[o], outputs[i])) return aliased(plan.outputs[o], plan.outputs[i]);
    }
  }
  return {};
}

WaitLimits limits_until(runtime::Deadline deadline) {
  const int64_t left = std::chrono::duration_cast<std::chrono::nanoseconds>(
                           deadline - std::chrono::steady_clock::now())
                           .count();
  return {std::max<int64_t>(left, 0), std::numeric_limits<int64_t>::max()};
}

Status end_run(Status status, runtime::QueuedDevice& queue, const WaitLimits& limits,
               const std::function<Status(const WaitLimits&)>& wait) {
  if (status || status.error().code() != ErrorCode::Timeout || status.error().reason() == "Busy") {
    return status;
  }
  const WaitLimits again{std::max<int64_t>(limits.deadline_ns, 1'000'000), limits.stall_ns};
  if (!wait(again) && queue.is_online()) {
    queue.report_hang("a run that had not ended after twice its time");
  }
  return status;
}

struct Model::State {
  Plan plan;
  std::shared_ptr<runtime::Device> device;
  std::shared_ptr<Machine> machine;
  std::shared_ptr<Replay> replay;
  PrepareReport prepared;
  std::vector<RawPort> inputs, outputs;  // scratch
};

Model::Model(std::shared_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

Model::~Model() {
  // An abandoned thread may still be inside a program: everything it can reach stays.
  if (state_ != nullptr && !state()) runtime::abandon(std::move(state_));
}

Result<Model> Model::create(Plan plan, std::shared_ptr<runtime::Device> device) {
  IGNIS_CHECK(device != nullptr);
  IGNIS_TRY(check_plan(plan));
  if (plan.captured == nullptr) {
    return Error(ErrorCode::InvalidArgument,
                 "The plan was not captured: nobody decided how queues run it.", "NotCaptured");
  }
  if (plan.captured->input_count() != plan.inputs.size() ||
      plan.captured->outputs.size() != plan.outputs.size()) {
    return Error(ErrorCode::InvalidArgument,
                 "The plan has " + std::to_string(plan.inputs.size()) + " inputs and " +
                     std::to_string(plan.outputs.size()) + " outputs, its capture " +
                     std::to_string(plan.captured->input_count()) + " and " +
                     std::to_string(plan.captured->outputs.size()) + ".",
                 "BadPlan");
  }
  if (device->queue() == nullptr) {
    return Error(ErrorCode::Unsupported, "Device '" + device->name() + "' runs no programs.",
                 "NoQueue");
  }
  auto state = std::make_shared<State>();
  state->device = std::move(device);
  MachineOptions machine_options;
  machine_options.host = state->device;
  state->machine = Machine::create(std::move(machine_options));
  state->plan = std::move(plan);
  IGNIS_TRY_ASSIGN(state->replay, Replay::create(state->plan.captured, state->machine));
  IGNIS_TRY_ASSIGN(state->prepared, state->replay->prepare(RunOptions().limits, false));
  state->inputs.resize(state->plan.inputs.size());
  state->outputs.resize(state->plan.outputs.size());
  return Model(std::move(state));
}

const Plan& Model::plan() const { return state_->plan; }
const std::shared_ptr<Machine>& Model::machine() const { return state_->machine; }
const std::shared_ptr<runtime::Device>& Model::device() const { return state_->device; }
const PrepareReport& Model::prepared() const { return state_->prepared; }

Status Model::state() const { return state_->device->state(); }

Status Model::run(std::span<const ConstBytes> inputs, std::span<const Bytes> outputs,
                  runtime::Deadline deadline) {
  State& state = *state_;
  IGNIS_TRY(check_ports(state.plan, inputs, outputs));
  const WaitLimits limits = limits_until(deadline);
  if (limits.deadline_ns == 0) {
    return Error(ErrorCode::Timeout, "The deadline passed before the run began.");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Inputs and outputs are one kind of port; inputs are only read.
    state.inputs[i] = {const_cast<std::byte*>(inputs[i].data()), inputs[i].size()};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    state.outputs[i] = {outputs[i].data(), outputs[i].size()};
  }
  return end_run(state.replay->run_raw(state.inputs, state.outputs, limits), *state.device->queue(),
                 limits, [&state](const WaitLimits& again) { return state.replay->wait(again); });
}

}  // namespace ignis::exec
