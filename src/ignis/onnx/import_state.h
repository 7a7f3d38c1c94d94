#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/onnx/external.h"
#include "ignis/onnx/import.h"
#include "ignis/onnx/model.h"
#include "ignis/onnx/wire.h"
#include "ignis/tensor/tensor.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ignis::onnx {

/// What one import shares between all nodes: the tensor graph that grows, the constants of the file, and the values
/// that were already computed on the host.
///
/// Invariant: a node is folded at most once, and everything here is bounded by the limits, work included.
class ImportState {
 public:
  ImportState(const ImportOptions& options, FileBytes file, ExternalFiles external);

  const std::shared_ptr<ir::Graph>& graph() const { return graph_; }
  const Limits& limits() const { return options_.limits; }

  /// A constant of the file as a graph constant, made once per message. Aligned raw and external data stays in the
  /// mapping; everything else is copied.
  Result<tensor::Tensor> constant(const TensorProto& proto);
  Result<tensor::Tensor> constant(const SparseTensorProto& proto);
  /// A constant from host values. One element becomes a scalar constant in the shape, so that rules see its value.
  tensor::Tensor constant(HostTensor value) const;

  /// True when `node` is computed from a model input.
  bool depends_on_input(const ir::Node& node);
  /// Names of the model inputs that `node` is computed from, at most three.
  std::vector<std::string> inputs_of(const ir::Node& node) const;
  /// The value of a node that depends on no input. `what` names it in messages.
  Result<HostTensor> fold(const ir::Node& node, const std::string& what);
  /// Replaces a small constant expression by its value, so that chains of shape arithmetic stay short. Returns the
  /// tensor itself when it is not small, not constant, or cannot be folded.
  tensor::Tensor fold_small(const tensor::Tensor& tensor);

  /// Counts one translated node or loop iteration, and the bytes of constants made since the last one. Errors:
  /// InvalidArgument (LimitExceeded) when the model asks for more work than max_total_nodes, or for constants far
  /// larger than its files, however small it is.
  Status count_work();

 private:
  const ImportOptions& options_;
  FileBytes file_;
  ExternalFiles external_;
  std::shared_ptr<ir::Graph> graph_;
  std::unordered_map<const void*, tensor::Tensor>
      constants_;                                    // by TensorProto or SparseTensorProto
  std::vector<int8_t> depends_;                      // by node id: -1 unknown, 0, 1
  std::unordered_map<uint32_t, HostTensor> folded_;  // by node id
  int64_t folded_elements_ = 0;
  int64_t work_ = 0;
  size_t nodes_counted_ = 0;
  int64_t made_bytes_ = 0;    // of all constants of the graph …
  int64_t mapped_bytes_ = 0;  // … of which these are only views of a file
};

/// Bytes and type of a TensorProto, checked against its dims.
struct TensorContents {
  DType dtype = DType::Float32;
  Shape shape;
  ir::BufferData data;
  bool is_view = false;  ///< `data` lies in a mapped file
};
Result<TensorContents> read_tensor(const TensorProto& proto,
                                   const std::shared_ptr<const void>& file_owner,
                                   ExternalFiles& external);

}  // namespace ignis::onnx
