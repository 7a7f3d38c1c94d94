#include "ignis/exec/golden.h"

#include "ignis/runtime/device.h"

#include <algorithm>
#include <memory>

namespace ignis::exec {
namespace {

const GoldenTensor* find(const std::vector<GoldenTensor>& tensors, const std::string& name) {
  for (const GoldenTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

Status check_port(const char* what, const Port& port, const GoldenTensor* tensor) {
  if (tensor != nullptr && tensor->value.dtype == port.dtype && tensor->value.shape == port.shape) {
    return {};
  }
  const std::string have = tensor == nullptr ? "nothing"
                                             : std::string(to_string(tensor->value.dtype)) + " " +
                                                   ignis::to_string(tensor->value.shape);
  return Error(ErrorCode::InvalidArgument,
               "The golden data has " + have + " for " + what + " '" + port.name +
                   "'; the program has " + std::string(to_string(port.dtype)) + " " +
                   ignis::to_string(port.shape) + ".",
               "GoldenMisfit");
}

// Kept for an abandoned thread when the device is lost.
struct Memory {
  std::vector<HostTensor> inputs, outputs;
};

}  // namespace

Result<std::vector<GoldenOutcome>> check_golden(Model& program, const GoldenCase& golden,
                                                std::chrono::nanoseconds timeout) {
  const Plan& plan = program.plan();
  const auto memory = std::make_shared<Memory>();
  std::vector<std::span<const std::byte>> inputs;
  std::vector<std::span<std::byte>> outputs;
  for (const Port& port : plan.inputs) {
    const GoldenTensor* tensor = find(golden.inputs, port.name);
    IGNIS_TRY(check_port("input", port, tensor));
    memory->inputs.push_back(tensor->value);
  }
  for (const Port& port : plan.outputs) {
    if (const GoldenTensor* tensor = find(golden.outputs, port.name)) {
      IGNIS_TRY(check_port("output", port, tensor));
    }
    memory->outputs.push_back(HostTensor::zeros(port.dtype, port.shape));
  }
  for (const GoldenTensor& tensor : golden.outputs) {
    const auto is_named = [&](const Port& port) { return port.name == tensor.name; };
    if (std::any_of(plan.outputs.begin(), plan.outputs.end(), is_named)) continue;
    return Error(ErrorCode::InvalidArgument,
                 "The golden data has an output '" + tensor.name + "', which the program has not.",
                 "GoldenMisfit");
  }
  for (const HostTensor& tensor : memory->inputs) inputs.emplace_back(tensor.bytes);
  for (HostTensor& tensor : memory->outputs) outputs.emplace_back(tensor.bytes);
  Status status = program.run(inputs, outputs, runtime::deadline_after(timeout));
  if (!status) {
    const ErrorCode code = status.error().code();
    if (code == ErrorCode::Timeout || code == ErrorCode::DeviceLost) runtime::abandon(memory);
    return std::move(status).error();
  }
  std::vector<GoldenOutcome> outcomes;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const GoldenTensor* want = find(golden.outputs, plan.outputs[i].name);
    if (want == nullptr) continue;
    GoldenOutcome outcome;
    outcome.output = want->name;
    outcome.got = std::move(memory->outputs[i]);
    outcome.want = want->value;
    outcome.tolerance = want->tolerance;
    outcome.comparison = compare(outcome.got, outcome.want, outcome.tolerance);
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

bool has_passed(const std::vector<GoldenOutcome>& outcomes) {
  return std::all_of(outcomes.begin(), outcomes.end(),
                     [](const GoldenOutcome& outcome) { return outcome.comparison.passed; });
}

}  // namespace ignis::exec
