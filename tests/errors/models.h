#pragma once

#include <string>

/// Small ONNX files for the tests of the tool.
namespace ignis::testing {

/// y = relu(x * 2 - 1) for x f32 [2, 3]; layers "scale", "shift", "clip".
std::string small_model();
/// y = softmax(q k) v for two heads of 9 queries and 7 keys, q [1, 2, 9, 4]; layers "scores", "weights", "values".
std::string attention_model();
/// y = x + x for x f32 [batch, 3].
std::string open_model();
/// A node of an operator that does not exist, and one of another.
std::string unsupported_model();
/// Two nodes that need each other.
std::string cyclic_model();
/// A sum of [2, 3] and [4].
std::string shape_error_model();
/// A sum of f32 and int64.
std::string dtype_error_model();
/// A weight that lies in a file above the model's folder.
std::string escaping_model();
/// y f32 [2^15, 2^15]: 4 GiB.
std::string huge_model();
/// If in If in If …, `depth` levels.
std::string nested_model(int depth);

}  // namespace ignis::testing
