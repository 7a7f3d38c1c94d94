#include "ignis/pipeline/driver_monitoring/stage.h"

#include "ignis/base/check.h"
#include "ignis/runtime/device.h"

#include <utility>

namespace ignis::pipeline {

Stage::Stage(std::unique_ptr<StageProgram> program)
    : program_(std::move(program)), memory_(std::make_shared<std::vector<HostTensor>>()) {
  for (const exec::Port& port : outputs()) {
    memory_->push_back(HostTensor::zeros(port.dtype, port.shape));
  }
  for (HostTensor& output : *memory_) pointers_.push_back(output.bytes.data());
}

Status Stage::run(std::span<const void* const> inputs,
                  std::chrono::steady_clock::time_point deadline) {
  IGNIS_CHECK(inputs.size() == this->inputs().size());
  IGNIS_CHECK(!is_lost_);
  // Refused without starting: a run that is stopped halfway costs the device.
  if (std::chrono::steady_clock::now() >= deadline) {
    return Error(ErrorCode::Timeout, "The deadline had passed before the run began.");
  }
  Status status = program_->run(inputs, pointers_, deadline);
  if (status) return status;
  const ErrorCode code = status.error().code();
  if (code == ErrorCode::Timeout || code == ErrorCode::DeviceLost) abandon();
  return status;
}

void Stage::abandon() {
  runtime::abandon(memory_);
  is_lost_ = true;
}

std::span<const float> Stage::floats(size_t index) const {
  const HostTensor& tensor = (*memory_)[index];
  IGNIS_CHECK(tensor.dtype == DType::Float32);
  return {tensor.data<float>(), static_cast<size_t>(tensor.count())};
}

}  // namespace ignis::pipeline
