#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/ir/graph.h"
#include "ignis/tensor/tensor.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ignis::onnx {

/// Bounds on what a model file may ask for; every one is checked before memory is taken.
struct Limits {
  int64_t max_file_bytes = int64_t{16} << 30;
  int64_t max_nodes = 200'000;
  int max_graph_depth = 16;
  int max_message_depth = 64;
  int max_rank = 16;
  int64_t max_elements = int64_t{1} << 33;  ///< of one tensor
  int64_t max_string_bytes = int64_t{1} << 20;
  int64_t max_fold_elements = int64_t{1} << 22;  ///< of a value computed at import
  int64_t max_total_nodes = 2'000'000;  ///< nodes of the tensor graph, unrolled loops included
};

/// A dim of a model's input or output: a number, or a name or nothing when it is left open.
struct Dim {
  int64_t value = -1;  ///< -1: open
  std::string symbol;  ///< may be empty
};

struct ValueInfo {
  std::string name;
  DType dtype = DType::Float32;
  std::vector<Dim> dims;
  bool has_shape = true;
  std::string to_string() const;  ///< "f32 [batch, 3, 224, 224]"
};

struct OpCount {
  std::string op;  ///< "Conv", or "domain::Op" outside the default domain
  int64_t count = 0;
  bool supported = true;
};

/// What a file says before anything is compiled; never fails on an unsupported operator.
struct ModelInfo {
  std::string producer, graph_name;
  int64_t ir_version = 0, opset = 0;
  std::vector<ValueInfo> inputs, outputs;  ///< inputs without initialisers
  std::vector<OpCount> ops;                ///< by descending count, nested graphs included
  std::map<std::string, std::string> metadata;
  int64_t parameter_count = 0, weight_bytes = 0;
  std::string digest;  ///< BLAKE2b-256 of the file, hex
};

struct ImportOptions {
  std::map<std::string, int64_t> dims;  ///< symbol -> value (`--dim`)
  std::map<std::string, Shape>
      shapes;  ///< input name -> whole shape (`--shape`), -1 keeps the model's
  /// Values of the inputs that are to be constants at import, by name; shape-carrying inputs (Reshape's shape,
  /// a Slice's ends) must be known here.
  std::map<std::string, HostTensor> constants;
  Limits limits;
  /// Computes a constant sub-graph on the host (the engine passes the interpreter).
  std::function<Result<HostTensor>(const ir::Node&)> evaluate;
};

/// The value an ONNX node computes, for per-layer comparison.
struct Layer {
  std::string name, op, output;
  ir::Node value;
};

struct Model {
  std::shared_ptr<ir::Graph> graph;
  std::vector<std::string> input_names;
  std::vector<tensor::Tensor> inputs;  ///< Param nodes, slot = position
  std::vector<std::string> output_names;
  std::vector<tensor::Tensor> outputs;
  std::vector<Layer> layers;  ///< in the file's order
  ModelInfo info;
};

/// Reads what the file says. Errors: NotFound, InvalidArgument (malformed, over a limit).
Result<ModelInfo> read_info(const std::string& path, const Limits& limits = {});
/// Builds the tensor graph. Errors: as read_info, and Unsupported listing ALL missing operators and types at once,
/// InvalidArgument naming the node for a shape that does not fit or an open dim that no option binds.
Result<Model> import_model(const std::string& path, const ImportOptions& options = {});
/// The same from bytes (fuzzing, tests); external data is refused.
Result<Model> import_bytes(std::string_view bytes, const ImportOptions& options = {});

}  // namespace ignis::onnx
