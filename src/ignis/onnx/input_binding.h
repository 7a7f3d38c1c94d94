#pragma once

#include "ignis/onnx/import.h"
#include "ignis/onnx/model.h"

#include <string_view>
#include <vector>

namespace ignis::onnx {

/// A model input with every extent known.
struct BoundInput {
  std::string_view name;
  DType dtype = DType::Float32;
  Shape shape;
  const HostTensor* constant = nullptr;  ///< its value, when it is to be a constant
};

/// Gives each input without initialiser its shape from the file and the options. A whole shape given for an input
/// replaces the file's, fixed extents too; equal symbols mean equal values.
/// Errors: InvalidArgument naming the input and the symbol of an extent that stays open (reason OpenDim), for options
/// that name nothing in the model, and for values that contradict each other or the file.
Result<std::vector<BoundInput>> resolve_inputs(const GraphProto& graph,
                                               const ImportOptions& options);

}  // namespace ignis::onnx
