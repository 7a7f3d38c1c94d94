#include "ignis/onnx/import_state.h"

#include "ignis/base/float_formats.h"
#include "ignis/onnx/ops.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

namespace ignis::onnx {
namespace {

using tensor::Tensor;

/// Values up to this size are folded as soon as they are made: shapes, axes, scales, single weights.
constexpr int64_t kSmallElements = 1024;
/// … and when this many elements have to be computed for them.
constexpr int64_t kSmallWork = 16 * kSmallElements;
/// Elements that all folding of one import may compute, in units of max_fold_elements.
constexpr int64_t kFoldBudgetFactor = 16;

/// Bytes of constants that a model may make beyond those of its files: folded values, ranges, tables.
constexpr int64_t kMostMadeBytes = int64_t{2} << 30;

Error limit_error(std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message), "LimitExceeded");
}

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

/// Element data must lie at its natural alignment; a protobuf field lies anywhere.
bool is_aligned(const char* p, int size_bytes) {
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(size_bytes) == 0;
}

ir::BufferData own(std::vector<std::byte> bytes) {
  // An empty vector has no address, and null means "no data".
  if (bytes.empty()) bytes.reserve(1);
  auto held = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  return {held->data(), static_cast<int64_t>(held->size()), held};
}

ir::BufferData view_or_copy(std::string_view bytes, const std::shared_ptr<const void>& owner,
                            int element_size_bytes) {
  if (owner != nullptr && !bytes.empty() && is_aligned(bytes.data(), element_size_bytes)) {
    return {reinterpret_cast<const std::byte*>(bytes.data()), static_cast<int64_t>(bytes.size()),
            owner};
  }
  std::vector<std::byte> copy(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return own(std::move(copy));
}

/// Bools are stored as 0 or 1; a file may hold any byte.
ir::BufferData normalise_bools(const ir::BufferData& data) {
  std::vector<std::byte> bytes(static_cast<size_t>(data.size_bytes));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = data.bytes[i] == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  return own(std::move(bytes));
}

/// Elements of all values that `node` is computed from, constants of the file excluded. Stops above `cap`, so it looks
/// at no more than `cap` nodes however many there are.
int64_t elements_to_compute(const ir::Node& node, int64_t cap) {
  int64_t elements = 0;
  std::vector<ir::Node> open{node};
  std::unordered_set<uint32_t> seen{node.id()};
  while (!open.empty() && elements <= cap) {
    const ir::Node n = open.back();
    open.pop_back();
    if (n.is(ir::Op::Buffer)) continue;
    elements += std::max<int64_t>(element_count(n.shape()), 1);
    for (int i = 0; i < n.source_count(); ++i) {
      if (seen.insert(n.src(i).id()).second) open.push_back(n.src(i));
    }
  }
  return elements;
}

HostTensor to_host(const ir::BufferData& data, DType dtype, const Shape& shape) {
  HostTensor value = HostTensor::zeros(dtype, shape);
  if (!value.bytes.empty()) std::memcpy(value.bytes.data(), data.bytes, value.bytes.size());
  return value;
}

}  // namespace

Result<TensorContents> read_tensor(const TensorProto& proto,
                                   const std::shared_ptr<const void>& file_owner,
                                   ExternalFiles& external) {
  const std::optional<DType> dtype = dtype_of(proto.data_type);
  if (!dtype) {
    return Error(ErrorCode::Unsupported, "Tensor " + quoted(proto.name) + " has element type " +
                                             std::string(element_type_name(proto.data_type)) + ".");
  }
  TensorContents contents{*dtype, proto.dims, {}};
  // Bounded by max_elements when the message was read, so the product fits.
  const int64_t count = element_count(proto.dims);
  const int64_t bytes = count * size_bytes(*dtype);
  std::shared_ptr<const void> view_owner = file_owner;
  if (proto.is_external) {
    IGNIS_TRY_ASSIGN(const FileBytes file, external.read(proto, bytes));
    contents.data = view_or_copy(file.bytes, file.owner, size_bytes(*dtype));
    view_owner = file.owner;
  } else if (proto.has_raw_data) {
    if (static_cast<int64_t>(proto.raw_data.size()) != bytes) {
      return Error(ErrorCode::InvalidArgument,
                   "Tensor " + quoted(proto.name) + " holds " +
                       std::to_string(proto.raw_data.size()) + " bytes; its " +
                       std::to_string(count) + " elements take " + std::to_string(bytes) + ".",
                   "Malformed");
    }
    contents.data = view_or_copy(proto.raw_data, file_owner, size_bytes(*dtype));
  } else {
    IGNIS_TRY_ASSIGN(std::vector<std::byte> decoded,
                     decode_typed_data(proto, count, size_bytes(*dtype)));
    contents.data = own(std::move(decoded));
  }
  contents.is_view = contents.data.owner != nullptr && contents.data.owner == view_owner;
  if (*dtype == DType::Bool) contents.data = normalise_bools(contents.data);
  return contents;
}

ImportState::ImportState(const ImportOptions& options, FileBytes file, ExternalFiles external)
    : options_(options),
      file_(std::move(file)),
      external_(std::move(external)),
      graph_(std::make_shared<ir::Graph>()) {}

Result<Tensor> ImportState::constant(const TensorProto& proto) {
  if (const auto found = constants_.find(&proto); found != constants_.end()) return found->second;
  auto contents = read_tensor(proto, file_.owner, external_);
  if (!contents) return std::move(contents).error().with_context("tensor " + quoted(proto.name));
  const TensorContents& c = *contents;
  if (c.is_view) mapped_bytes_ += c.data.size_bytes;
  const Tensor made = element_count(c.shape) == 1
                          ? constant(to_host(c.data, c.dtype, c.shape))
                          : Tensor::from_data(graph_, c.data, c.dtype, c.shape);
  return constants_.emplace(&proto, made.named(std::string(proto.name))).first->second;
}

Result<Tensor> ImportState::constant(const SparseTensorProto& proto) {
  if (const auto found = constants_.find(&proto); found != constants_.end()) return found->second;
  const std::string where = "sparse tensor " + quoted(proto.values.name);
  auto values = read_tensor(proto.values, file_.owner, external_);
  if (!values) return std::move(values).error().with_context(where);
  auto indices = read_tensor(proto.indices, file_.owner, external_);
  if (!indices) return std::move(indices).error().with_context(where);
  const int64_t stored = element_count(values->shape);
  const int64_t count = element_count(proto.dims);
  const int64_t rank = static_cast<int64_t>(proto.dims.size());
  // A few bytes of file must not ask for gigabytes of zeros.
  if (count > std::max(limits().max_fold_elements, 64 * stored)) {
    return limit_error("The " + where + " has " + std::to_string(count) + " elements, " +
                       std::to_string(stored) + " of them stored.");
  }
  const bool linear = indices->shape == Shape{stored};
  if (values->shape.size() != 1 || indices->dtype != DType::Int64 ||
      (!linear && indices->shape != Shape{stored, rank})) {
    return Error(ErrorCode::InvalidArgument,
                 "The " + where + " has values " + to_string(values->shape) + " and indices " +
                     to_string(indices->shape) + ".",
                 "Malformed");
  }
  HostTensor dense = HostTensor::zeros(values->dtype, proto.dims);
  const HostTensor positions = to_host(indices->data, DType::Int64, indices->shape);
  const size_t element_bytes = static_cast<size_t>(size_bytes(values->dtype));
  for (int64_t i = 0; i < stored; ++i) {
    int64_t position = 0;
    bool inside = true;
    if (linear) {
      position = positions.data<int64_t>()[i];
      inside = position >= 0 && position < count;
    } else {
      for (int64_t axis = 0; axis < rank; ++axis) {
        const int64_t index = positions.data<int64_t>()[i * rank + axis];
        const int64_t extent = proto.dims[static_cast<size_t>(axis)];
        inside = inside && index >= 0 && index < extent;
        position = inside ? position * extent + index : 0;
      }
    }
    if (!inside) {
      return Error(
          ErrorCode::InvalidArgument,
          "The " + where + " has an index outside its shape " + to_string(proto.dims) + ".",
          "Malformed");
    }
    std::memcpy(dense.bytes.data() + static_cast<size_t>(position) * element_bytes,
                values->data.bytes + static_cast<size_t>(i) * element_bytes, element_bytes);
  }
  return constants_
      .emplace(&proto, constant(std::move(dense)).named(std::string(proto.values.name)))
      .first->second;
}

Tensor ImportState::constant(HostTensor value) const {
  if (value.count() != 1) return Tensor::constant(graph_, std::move(value));
  const Shape shape = std::exchange(value.shape, Shape{});
  const Tensor scalar = Tensor::constant(graph_, std::move(value));
  return shape.empty() ? scalar : tensor::reshape(scalar, shape);
}

bool ImportState::depends_on_input(const ir::Node& node) {
  if (depends_.size() <= node.id())
    depends_.resize(std::max<size_t>(graph_->size(), node.id() + 1), -1);
  std::vector<ir::Node> open{node};
  while (!open.empty()) {
    const ir::Node n = open.back();
    if (depends_[n.id()] >= 0) {
      open.pop_back();
      continue;
    }
    int8_t depends = n.is(ir::Op::Param) ? 1 : 0;
    bool ready = true;
    for (int i = 0; i < n.source_count() && depends == 0; ++i) {
      const int8_t known = depends_[n.src(i).id()];
      if (known < 0) {
        open.push_back(n.src(i));
        ready = false;
      } else {
        depends = known;
      }
    }
    if (depends == 1 || ready) {
      depends_[n.id()] = depends;
    }
  }
  return depends_[node.id()] == 1;
}

std::vector<std::string> ImportState::inputs_of(const ir::Node& node) const {
  std::vector<std::string> names;
  for (const ir::Node& n : ir::toposort(node)) {
    if (n.is(ir::Op::Param) && names.size() < 3) names.push_back(ir::decode_param(n).name);
  }
  return names;
}

Result<HostTensor> ImportState::fold(const ir::Node& node, const std::string& what) {
  if (const auto found = folded_.find(node.id()); found != folded_.end()) return found->second;
  const int64_t count = element_count(node.shape());
  if (node.is(ir::Op::Buffer)) {
    const ir::BufferData data = graph_->buffer_data(node);
    if (data.bytes != nullptr) {
      folded_elements_ += count;
      if (count > limits().max_fold_elements ||
          folded_elements_ > kFoldBudgetFactor * limits().max_fold_elements) {
        return limit_error("The value of " + what + " has " + std::to_string(count) +
                           " elements, too many to be read at import.");
      }
      return to_host(data, node.dtype(), node.shape());
    }
  }
  if (depends_on_input(node)) {
    std::string names;
    for (const std::string& name : inputs_of(node))
      names += (names.empty() ? "" : ", ") + quoted(name);
    return Error(ErrorCode::InvalidArgument,
                 "The value of " + what +
                     " has to be known at import but is computed from model input " + names + ".",
                 "NeedsConstant");
  }
  const int64_t elements = elements_to_compute(node, limits().max_fold_elements);
  folded_elements_ += elements;
  if (elements > limits().max_fold_elements ||
      folded_elements_ > kFoldBudgetFactor * limits().max_fold_elements) {
    return limit_error("The value of " + what + " takes more than " +
                       std::to_string(limits().max_fold_elements) +
                       " elements to compute at import.");
  }
  if (!options_.evaluate) {
    return Error(
        ErrorCode::InvalidArgument,
        "The value of " + what + " has to be computed at import, and the caller gave no evaluator.",
        "NeedsConstant");
  }
  auto value = options_.evaluate(node);
  if (!value) return std::move(value).error().with_context("folding " + what);
  if (count <= kSmallElements) folded_.emplace(node.id(), *value);
  return value;
}

Tensor ImportState::fold_small(const Tensor& tensor) {
  const ir::Node& node = tensor.node();
  if (!options_.evaluate || node.is(ir::Op::Buffer) || node.is(ir::Op::Const)) return tensor;
  if (tensor.constant_value().has_value() || element_count(node.shape()) > kSmallElements)
    return tensor;
  if (depends_on_input(node) || elements_to_compute(node, kSmallWork) > kSmallWork) return tensor;
  auto value = fold(node, "a constant");
  return value ? constant(*std::move(value)).named(tensor.name()) : tensor;
}

Status ImportState::count_work() {
  const size_t size = graph_->size();
  if (++work_ > limits().max_total_nodes || static_cast<int64_t>(size) > limits().max_total_nodes) {
    return limit_error("The model unfolds to more than " +
                       std::to_string(limits().max_total_nodes) + " nodes.");
  }
  for (; nodes_counted_ < size; ++nodes_counted_) {
    const ir::Node node(graph_.get(), static_cast<uint32_t>(nodes_counted_));
    if (node.is(ir::Op::Buffer))
      made_bytes_ += element_count(node.shape()) * size_bytes(node.dtype());
  }
  // A constant of a file takes at most eight bytes for one of the file (an int64 written as a varint).
  const int64_t files_bytes = static_cast<int64_t>(file_.bytes.size()) + external_.mapped_bytes();
  if (made_bytes_ - mapped_bytes_ > kMostMadeBytes + 8 * files_bytes) {
    return limit_error("The model makes constants of more than " +
                       std::to_string(made_bytes_ - mapped_bytes_) + " bytes.");
  }
  return Status::ok();
}

}  // namespace ignis::onnx
