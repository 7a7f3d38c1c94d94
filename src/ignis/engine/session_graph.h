#pragma once

#include "ignis/engine/compile_graph.h"
#include "ignis/onnx/import.h"

#include <string>

namespace ignis::engine {

/// Reads a model with a session's options bound. Errors: as onnx::import_model.
Result<onnx::Model> import_for_session(const std::string& path, const SessionOptions& options);

/// How a session compiles the graph of `model`, which may be empty where the graph is not a model's; ports have no names
/// yet.
GraphOptions graph_options_of(const SessionOptions& options, const onnx::Model& model);

}  // namespace ignis::engine
