#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/base/result.h"
#include "ignis/onnx/import.h"
#include "ignis/onnx/model.h"
#include "ignis/tensor/tensor.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::onnx {

using tensor::Tensor;

/// Everything import computes once per model and handlers reach through their context: the graph that is built, the
/// limits, the evaluator with its memo, and how attribute tensors are read.
class ImportState;

/// What a handler sees of the node it translates.
///
/// Mistyped or missing attributes and absent required inputs are thrown as GraphError, as the tensor operators throw
/// theirs; the importer catches both in one place and adds the node's name and op. A handler that can say more
/// returns an Error (`ctx.error(…)`, `ctx.unsupported(…)`).
class OpContext {
 public:
  OpContext(ImportState& state, const NodeProto& node, int64_t opset, const AttributeMap& of_caller,
            std::span<const std::optional<Tensor>> inputs)
      : state_(state), node_(node), opset_(opset), of_caller_(of_caller), inputs_(inputs) {}

  std::string_view op() const { return node_.op_type; }
  /// Version of the node's operator set that the model asks for.
  int64_t opset() const { return opset_; }
  /// The tensor graph under construction.
  const std::shared_ptr<ir::Graph>& graph() const;
  const Limits& limits() const;

  /// Inputs as listed; trailing absent ones are not counted, an absent one in the middle is.
  int input_count() const { return static_cast<int>(inputs_.size()); }
  bool has_input(int i) const;
  /// A present input, else a GraphError names it.
  const Tensor& input(int i) const;
  /// All inputs of a variadic operator.
  std::vector<Tensor> inputs() const;

  /// True when the value of input `i` depends on no model input, so const_input can succeed.
  bool is_const_input(int i) const;
  /// The value of an input that must be known at import: folded through ImportOptions::evaluate where needed, each
  /// value once. Errors: InvalidArgument with reason "NeedsConstant" naming the model inputs it depends on,
  /// InvalidArgument with reason "LimitExceeded" above max_fold_elements.
  Result<HostTensor> const_input(int i) const;
  /// The same as integers, flattened (any integer dtype).
  Result<std::vector<int64_t>> const_ints(int i) const;
  /// The only element of a one-element input, as a double or an integer.
  Result<double> const_float(int i) const;
  Result<int64_t> const_int(int i) const;

  bool has_attr(std::string_view name) const { return attribute(name) != nullptr; }
  /// The attribute as it is in the file, or null.
  const AttributeProto* attribute(std::string_view name) const {
    return find_attribute(node_, of_caller_, name);
  }
  int64_t attr_int(std::string_view name, int64_t fallback) const;
  /// A required attribute.
  int64_t attr_int(std::string_view name) const;
  double attr_float(std::string_view name, double fallback) const;
  std::string attr_string(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> attr_ints(std::string_view name, std::vector<int64_t> fallback = {}) const;
  std::vector<float> attr_floats(std::string_view name, std::vector<float> fallback = {}) const;
  std::vector<std::string> attr_strings(std::string_view name,
                                        std::vector<std::string> fallback = {}) const;
  /// A dense tensor attribute as a constant of the graph (external data and sparse ones included).
  Result<Tensor> attr_tensor(std::string_view name) const;
  /// The dtype of an ONNX element type number ("to", "dtype"). Throws a GraphError for one that has no dtype.
  DType attr_dtype(std::string_view name, DType fallback) const;

  /// `axis` counted from the end when negative; a GraphError when outside [-rank, rank).
  int64_t axis(int64_t value, int64_t rank) const;

  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  /// The node lists output `i` with a name.
  bool wants_output(int i) const {
    return i < output_count() && !node_.outputs[static_cast<size_t>(i)].empty();
  }

  /// A constant of the graph that holds a copy of `value`.
  Tensor constant(const HostTensor& value) const;
  /// A scalar constant of a dtype.
  Tensor scalar(DType dtype, double value) const;
  Tensor scalar_int(DType dtype, int64_t value) const;
  /// A 1-D int64 constant.
  Tensor ints(const std::vector<int64_t>& values) const;

  /// InvalidArgument about this node.
  Error error(std::string message) const {
    return Error(ErrorCode::InvalidArgument, std::move(message));
  }
  /// Unsupported: well-formed, but this importer has no translation.
  Error unsupported(std::string message) const {
    return Error(ErrorCode::Unsupported, std::move(message));
  }

 private:
  const AttributeProto* attr(std::string_view name, AttributeType type) const;

  ImportState& state_;
  const NodeProto& node_;
  int64_t opset_;
  const AttributeMap& of_caller_;
  std::span<const std::optional<Tensor>> inputs_;
};

/// One value per output of the node, in order. Trailing outputs that nobody wants may be left away; a wanted output
/// that is missing is an error of the handler.
using OpOutputs = Result<std::vector<Tensor>>;
using OpHandler = OpOutputs (*)(const OpContext&);

/// One operator from a version of its domain on, until a later row of the same name takes over. Most operators have
/// one row and switch on ctx.opset().
struct OpEntry {
  std::string_view domain;  ///< "" is the default domain
  std::string_view name;
  int since = 1;       ///< the first operator-set version this row is for
  int min_inputs = 0;  ///< these are present (checked before the handler runs)
  int max_inputs = 0;  ///< -1: any number
  OpHandler handler = nullptr;
};

/// The row for an operator at a version, or null. "ai.onnx" is the default domain.
const OpEntry* find_op(std::string_view domain, std::string_view name, int64_t opset);
/// All rows, in the order of ops.cpp.
std::vector<OpEntry> all_ops();

// The tables, one per file `ops_<area>.cpp`, each at the end of its file; listed by hand in ops.cpp. To add an area:
// write the file, declare its table here, add it to `kTables` in ops.cpp and to CMakeLists.txt.
std::span<const OpEntry> math_ops();
std::span<const OpEntry> activation_ops();
std::span<const OpEntry> shape_ops();
std::span<const OpEntry> nn_ops();
std::span<const OpEntry> pool_ops();
std::span<const OpEntry> reduce_ops();
std::span<const OpEntry> norm_ops();
std::span<const OpEntry> resize_ops();
std::span<const OpEntry> sample_ops();
std::span<const OpEntry> rnn_ops();
std::span<const OpEntry> quant_ops();
std::span<const OpEntry> index_ops();
std::span<const OpEntry> loss_ops();
std::span<const OpEntry> signal_ops();
std::span<const OpEntry> misc_ops();
std::span<const OpEntry> training_ops();

/// Helpers shared by the op files.
/// The dtype of a TensorProto.DataType, or nothing for strings, complex and the types of less than a byte.
std::optional<DType> dtype_of(int32_t element_type);
/// "FLOAT", "STRING", … as the standard spells it.
std::string_view element_type_name(int32_t element_type);

}  // namespace ignis::onnx
