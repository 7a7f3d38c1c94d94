#pragma once

#include "ignis/onnx/import.h"
#include "ignis/pipeline/driver_monitoring/staged_model.h"

#include <string>

namespace ignis::pipeline {

/// What an ONNX file says of its model. Errors: as onnx::read_info().
Result<ModelFacts> read_file_facts(const std::string& path);
ModelFacts file_facts(const std::string& path, const onnx::ModelInfo& info);

}  // namespace ignis::pipeline
