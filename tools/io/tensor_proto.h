#pragma once

#include "tools/io/npy.h"

#include <span>

namespace ignis::tools {

/// Reads a serialised ONNX TensorProto (the .pb files of the ONNX test-set layout): its name and values. External
/// data are refused. Errors: InvalidArgument; Unsupported for an element type that no dtype stands for.
Result<NamedTensor> parse_tensor_proto(std::span<const std::byte> bytes);

}  // namespace ignis::tools
