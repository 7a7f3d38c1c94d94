#pragma once

#include "ignis/onnx/import.h"
#include "ignis/onnx/model.h"

#include <string>
#include <string_view>

namespace ignis::onnx {

/// What a parsed model says. `bytes` is the file, for the digest.
ModelInfo describe_model(const ModelProto& model, std::string_view bytes);

/// A declared value in the public form; types without a dtype become Void.
ValueInfo describe_value(const ValueInfoProto& value);

/// BLAKE2b-256 in lower-case hex.
std::string digest_hex(std::string_view bytes);

}  // namespace ignis::onnx
