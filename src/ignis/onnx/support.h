#pragma once

#include "ignis/base/result.h"
#include "ignis/onnx/import.h"
#include "ignis/onnx/model.h"

#include <vector>

namespace ignis::onnx {

/// Operators of a model with their counts, by descending count then name; nested graphs and called functions'
/// bodies are included, calls of the model's own functions are not counted as operators.
std::vector<OpCount> count_ops(const ModelProto& model);

/// Looks at every operator and type before anything is built. Errors: Unsupported (reason MissingOperators) with one
/// sentence that lists all missing operators and types, or InvalidArgument for a model without a known operator set.
Status check_support(const ModelProto& model);

}  // namespace ignis::onnx
