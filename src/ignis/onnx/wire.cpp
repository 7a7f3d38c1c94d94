#include "ignis/onnx/wire.h"

#include <protozero/pbf_reader.hpp>

#include <cstring>
#include <new>
#include <utility>

namespace ignis::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr uint32_t varint(uint32_t tag) {
  return protozero::tag_and_type(tag, pbf_wire_type::varint);
}
constexpr uint32_t bytes_of(uint32_t tag) {
  return protozero::tag_and_type(tag, pbf_wire_type::length_delimited);
}
constexpr uint32_t fixed32(uint32_t tag) {
  return protozero::tag_and_type(tag, pbf_wire_type::fixed32);
}
constexpr uint32_t fixed64(uint32_t tag) {
  return protozero::tag_and_type(tag, pbf_wire_type::fixed64);
}

/// Left by a reader function inside the parser when the file breaks a rule; leaves parse_model as its Error.
/// protozero itself throws, so the parser's inside uses exceptions and its border does not.
struct ParseFailure {
  Error error;
};

[[noreturn]] void fail_limit(std::string message) {
  throw ParseFailure{Error(ErrorCode::InvalidArgument, std::move(message), "LimitExceeded")};
}
[[noreturn]] void fail_malformed(std::string message) {
  throw ParseFailure{Error(ErrorCode::InvalidArgument, std::move(message), "Malformed")};
}

/// Reads one message kind per function. Counts what it stores: a message of two bytes must not cost a kilobyte for
/// ever, so the number of stored items is bounded, not only the number of bytes.
class Parser {
 public:
  explicit Parser(const Limits& limits)
      : limits_(limits), items_left_(limits.max_nodes * kItemsPerNode) {}

  ModelProto model(pbf_reader r) {
    ModelProto m;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case varint(1): m.ir_version = r.get_int64(); break;
        case bytes_of(2): m.producer_name = text(r); break;
        case bytes_of(3): m.producer_version = text(r); break;
        case bytes_of(7):
          if (m.has_graph) fail_malformed("The model holds two graphs.");
          m.graph = graph(r.get_message(), 1, 1);
          m.has_graph = true;
          break;
        case bytes_of(8): add_opset(m.opsets, opset(r.get_message())); break;
        case bytes_of(14): push(m.metadata, key_value(r.get_message())); break;
        case bytes_of(25): push(m.functions, function(r.get_message())); break;
        default: r.skip();
      }
    }
    return m;
  }

 private:
  static constexpr int64_t kItemsPerNode = 16;

  template <typename T>
  void push(std::vector<T>& list, T&& value) {
    if (--items_left_ < 0) {
      fail_limit("The model lists more than " + std::to_string(limits_.max_nodes * kItemsPerNode) +
                 " names, attributes and values.");
    }
    list.push_back(std::move(value));
  }

  std::string_view text(pbf_reader& r) {
    const protozero::data_view view = r.get_view();
    if (static_cast<int64_t>(view.size()) > limits_.max_string_bytes) {
      fail_limit("A string has " + std::to_string(view.size()) + " bytes; the limit is " +
                 std::to_string(limits_.max_string_bytes) + ".");
    }
    return {view.data(), view.size()};
  }

  void check_message_depth(int depth) const {
    if (depth > limits_.max_message_depth) {
      fail_limit("Messages are nested deeper than " + std::to_string(limits_.max_message_depth) +
                 ".");
    }
  }

  /// Every call of a function looks at these lists.
  static void add_opset(std::vector<OpsetId>& opsets, OpsetId id) {
    constexpr size_t kMostOpsets = 256;
    if (opsets.size() == kMostOpsets) {
      fail_limit("More than " + std::to_string(kMostOpsets) + " operator sets are imported.");
    }
    opsets.push_back(id);
  }

  OpsetId opset(pbf_reader r) {
    OpsetId o;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case bytes_of(1): o.domain = text(r); break;
        case varint(2): o.version = r.get_int64(); break;
        default: r.skip();
      }
    }
    return o;
  }

  KeyValue key_value(pbf_reader r) {
    KeyValue kv;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case bytes_of(1): kv.key = text(r); break;
        case bytes_of(2): kv.value = text(r); break;
        default: r.skip();
      }
    }
    return kv;
  }

  GraphProto graph(pbf_reader r, int graph_depth, int depth) {
    check_message_depth(depth);
    if (graph_depth > limits_.max_graph_depth) {
      fail_limit("Graphs are nested deeper than " + std::to_string(limits_.max_graph_depth) + ".");
    }
    GraphProto g;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case bytes_of(1): add_node(g.nodes, r.get_message(), graph_depth, depth + 1); break;
        case bytes_of(2): g.name = text(r); break;
        case bytes_of(5): push(g.initializers, tensor(r.get_view())); break;
        case bytes_of(11): push(g.inputs, value_info(r.get_message(), depth + 1)); break;
        case bytes_of(12): push(g.outputs, value_info(r.get_message(), depth + 1)); break;
        case bytes_of(15): push(g.sparse_initializers, sparse_tensor(r.get_message())); break;
        default: r.skip();
      }
    }
    return g;
  }

  void add_node(std::vector<NodeProto>& nodes, pbf_reader r, int graph_depth, int depth) {
    if (++nodes_ > limits_.max_nodes) {
      fail_limit("The model has more than " + std::to_string(limits_.max_nodes) + " nodes.");
    }
    nodes.push_back(node(r, graph_depth, depth));
  }

  NodeProto node(pbf_reader r, int graph_depth, int depth) {
    check_message_depth(depth);
    NodeProto n;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case bytes_of(1): push(n.inputs, text(r)); break;
        case bytes_of(2): push(n.outputs, text(r)); break;
        case bytes_of(3): n.name = text(r); break;
        case bytes_of(4): n.op_type = text(r); break;
        case bytes_of(5):
          push(n.attributes, attribute(r.get_message(), graph_depth, depth + 1));
          break;
        case bytes_of(7): n.domain = text(r); break;
        default: r.skip();
      }
    }
    return n;
  }

  AttributeProto attribute(pbf_reader r, int graph_depth, int depth) {
    check_message_depth(depth);
    AttributeProto a;
    // Files of before IR version 2 leave the type away; the field that is there tells it.
    AttributeType seen = AttributeType::Undefined;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case bytes_of(1): a.name = text(r); break;
        case fixed32(2): a.f = r.get_float(), seen = AttributeType::Float; break;
        case varint(3): a.i = r.get_int64(), seen = AttributeType::Int; break;
        case bytes_of(4): a.s = text(r), seen = AttributeType::String; break;
        case bytes_of(5):
          a.tensor = std::make_shared<TensorProto>(tensor(r.get_view()));
          seen = AttributeType::Tensor;
          break;
        case bytes_of(6):
          if (a.graph != nullptr) fail_malformed("An attribute holds two graphs.");
          a.graph =
              std::make_shared<GraphProto>(graph(r.get_message(), graph_depth + 1, depth + 1));
          seen = AttributeType::Graph;
          break;
        case bytes_of(7):
          for (const float v : r.get_packed_float()) push_number(a.floats, v);
          seen = AttributeType::Floats;
          break;
        case fixed32(7): push_number(a.floats, r.get_float()), seen = AttributeType::Floats; break;
        case bytes_of(8):
          for (const int64_t v : r.get_packed_int64()) push_number(a.ints, v);
          seen = AttributeType::Ints;
          break;
        case varint(8): push_number(a.ints, r.get_int64()), seen = AttributeType::Ints; break;
        case bytes_of(9): push(a.strings, text(r)), seen = AttributeType::Strings; break;
        case varint(20): a.type = static_cast<AttributeType>(r.get_int32()); break;
        case bytes_of(21): a.ref_name = text(r); break;
        case bytes_of(22):
          a.sparse = std::make_shared<SparseTensorProto>(sparse_tensor(r.get_message()));
          seen = AttributeType::SparseTensor;
          break;
        default: r.skip();
      }
    }
    if (a.type == AttributeType::Undefined && a.ref_name.empty()) a.type = seen;
    return a;
  }

  /// Numbers of attributes cost at most 8 bytes for one byte of file; their count has its own bound.
  template <typename T>
  void push_number(std::vector<T>& list, T value) {
    if (++numbers_ > kMaxAttributeNumbers) {
      fail_limit("Attributes hold more than " + std::to_string(kMaxAttributeNumbers) + " numbers.");
    }
    list.push_back(value);
  }
  static constexpr int64_t kMaxAttributeNumbers = int64_t{1} << 24;

  void add_dim(std::vector<int64_t>& dims, int64_t dim) const {
    if (static_cast<int>(dims.size()) >= limits_.max_rank) {
      fail_limit("A tensor has more than " + std::to_string(limits_.max_rank) + " dims.");
    }
    dims.push_back(dim);
  }

  TensorProto tensor(protozero::data_view view) {
    TensorProto t;
    t.message = {view.data(), view.size()};
    pbf_reader r(view);
    while (r.next()) {
      switch (r.tag_and_type()) {
        case varint(1): add_dim(t.dims, r.get_int64()); break;
        case bytes_of(1):
          for (const int64_t dim : r.get_packed_int64()) add_dim(t.dims, dim);
          break;
        case varint(2): t.data_type = r.get_int32(); break;
        case bytes_of(8): t.name = text(r); break;
        case bytes_of(9): {
          const protozero::data_view raw = r.get_view();
          t.has_raw_data = true;
          t.raw_data = {raw.data(), raw.size()};
          break;
        }
        case bytes_of(13): push(t.external_data, key_value(r.get_message())); break;
        case varint(14): t.is_external = r.get_int32() == 1; break;
        default: r.skip();
      }
    }
    check_element_count(t.name, t.dims);
    return t;
  }

  void check_element_count(std::string_view name, const std::vector<int64_t>& dims) const {
    const Result<int64_t> count = checked_element_count(dims);
    if (!count) {
      fail_malformed("Tensor '" + std::string(name) + "' has dims " + to_string(dims) + ".");
    }
    if (*count > limits_.max_elements) {
      fail_limit("Tensor '" + std::string(name) + "' has " + std::to_string(*count) +
                 " elements; the limit is " + std::to_string(limits_.max_elements) + ".");
    }
  }

  SparseTensorProto sparse_tensor(pbf_reader r) {
    SparseTensorProto s;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case bytes_of(1): s.values = tensor(r.get_view()); break;
        case bytes_of(2): s.indices = tensor(r.get_view()); break;
        case varint(3): add_dim(s.dims, r.get_int64()); break;
        case bytes_of(3):
          for (const int64_t dim : r.get_packed_int64()) add_dim(s.dims, dim);
          break;
        default: r.skip();
      }
    }
    check_element_count(s.values.name, s.dims);
    return s;
  }

  ValueInfoProto value_info(pbf_reader r, int depth) {
    check_message_depth(depth);
    ValueInfoProto v;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case bytes_of(1): v.name = text(r); break;
        case bytes_of(2): v.type = type(r.get_message()); break;
        default: r.skip();
      }
    }
    return v;
  }

  TypeProto type(pbf_reader r) {
    TypeProto t;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case bytes_of(1): tensor_type(r.get_message(), t), t.kind = TypeProto::Kind::Tensor; break;
        case bytes_of(8):
          tensor_type(r.get_message(), t), t.kind = TypeProto::Kind::SparseTensor;
          break;
        // The element types of these are not read: such values are refused.
        case bytes_of(4): r.skip(), t.kind = TypeProto::Kind::Sequence; break;
        case bytes_of(5): r.skip(), t.kind = TypeProto::Kind::Map; break;
        case bytes_of(7): r.skip(), t.kind = TypeProto::Kind::Opaque; break;
        case bytes_of(9): r.skip(), t.kind = TypeProto::Kind::Optional; break;
        default: r.skip();
      }
    }
    return t;
  }

  void tensor_type(pbf_reader r, TypeProto& t) {
    while (r.next()) {
      switch (r.tag_and_type()) {
        case varint(1): t.element_type = r.get_int32(); break;
        case bytes_of(2):
          t.has_shape = true;
          shape(r.get_message(), t.dims);
          break;
        default: r.skip();
      }
    }
  }

  void shape(pbf_reader r, std::vector<DimProto>& dims) {
    while (r.next()) {
      if (r.tag_and_type() != bytes_of(1)) {
        r.skip();
        continue;
      }
      if (static_cast<int>(dims.size()) >= limits_.max_rank) {
        fail_limit("A shape has more than " + std::to_string(limits_.max_rank) + " dims.");
      }
      dims.push_back(dim(r.get_message()));
    }
  }

  DimProto dim(pbf_reader r) {
    DimProto d;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case varint(1): d.value = r.get_int64(); break;
        case bytes_of(2): d.symbol = text(r); break;
        default: r.skip();
      }
    }
    return d;
  }

  FunctionProto function(pbf_reader r) {
    FunctionProto f;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case bytes_of(1): f.name = text(r); break;
        case bytes_of(4): push(f.inputs, text(r)); break;
        case bytes_of(5): push(f.outputs, text(r)); break;
        case bytes_of(6): push(f.attributes, text(r)); break;
        case bytes_of(7): add_node(f.nodes, r.get_message(), 1, 2); break;
        case bytes_of(9): add_opset(f.opsets, opset(r.get_message())); break;
        case bytes_of(10): f.domain = text(r); break;
        case bytes_of(11): push(f.attribute_defaults, attribute(r.get_message(), 1, 2)); break;
        case bytes_of(13): f.overload = text(r); break;
        default: r.skip();
      }
    }
    return f;
  }

  const Limits& limits_;
  int64_t items_left_;
  int64_t nodes_ = 0;
  int64_t numbers_ = 0;
};

/// Which field holds the typed data of a data type, and as what.
enum class TypedField : uint32_t {
  None = 0,
  Float = 4,
  Int32 = 5,
  Int64 = 7,
  Double = 10,
  UInt64 = 11
};

TypedField typed_field(int32_t data_type) {
  switch (static_cast<ElementType>(data_type)) {
    case ElementType::Float: return TypedField::Float;
    case ElementType::Double: return TypedField::Double;
    case ElementType::Int64: return TypedField::Int64;
    case ElementType::UInt32:
    case ElementType::UInt64: return TypedField::UInt64;
    case ElementType::Int32:
    case ElementType::Int16:
    case ElementType::Int8:
    case ElementType::UInt16:
    case ElementType::UInt8:
    case ElementType::Bool:
    case ElementType::Float16:
    case ElementType::BFloat16:
    case ElementType::Float8E4M3FN:
    case ElementType::Float8E4M3FNUZ:
    case ElementType::Float8E5M2:
    case ElementType::Float8E5M2FNUZ: return TypedField::Int32;
    default: return TypedField::None;
  }
}

/// Appends the low bytes of values up to a known count.
class ElementWriter {
 public:
  ElementWriter(std::string_view name, int64_t count, int element_size_bytes)
      : name_(name), count_(count), element_size_bytes_(static_cast<size_t>(element_size_bytes)) {
    bytes_.resize(static_cast<size_t>(count) * element_size_bytes_);
  }

  void append(uint64_t bits) {
    if (written_ == count_) fail("more");
    std::memcpy(bytes_.data() + static_cast<size_t>(written_) * element_size_bytes_, &bits,
                element_size_bytes_);
    ++written_;
  }

  std::vector<std::byte> take() {
    if (written_ != count_) fail("fewer");
    return std::move(bytes_);
  }

 private:
  [[noreturn]] void fail(const char* how) const {
    fail_malformed("Tensor '" + std::string(name_) + "' holds " + how + " values than its " +
                   std::to_string(count_) + " elements.");
  }

  std::string_view name_;
  int64_t count_;
  size_t element_size_bytes_;
  std::vector<std::byte> bytes_;
  int64_t written_ = 0;
};

template <typename To, typename From>
uint64_t bits_of(From value) {
  uint64_t bits = 0;
  const To stored = static_cast<To>(value);
  std::memcpy(&bits, &stored, sizeof(stored));
  return bits;
}

void read_typed_data(const TensorProto& tensor, TypedField field, ElementWriter& out) {
  pbf_reader r(tensor.message.data(), tensor.message.size());
  const uint32_t tag = static_cast<uint32_t>(field);
  while (r.next()) {
    if (r.tag() != tag) {
      r.skip();
      continue;
    }
    const bool packed = r.wire_type() == pbf_wire_type::length_delimited;
    switch (r.tag_and_type()) {
      case bytes_of(4):
        for (const float v : r.get_packed_float()) out.append(bits_of<float>(v));
        break;
      case fixed32(4): out.append(bits_of<float>(r.get_float())); break;
      case bytes_of(10):
        for (const double v : r.get_packed_double()) out.append(bits_of<double>(v));
        break;
      case fixed64(10): out.append(bits_of<double>(r.get_double())); break;
      case bytes_of(5):
      case bytes_of(7):
      case bytes_of(11):
      case varint(5):
      case varint(7):
      case varint(11):
        // int32, int64 and uint64 varints are all 64-bit numbers on the wire; the element keeps the low bytes.
        if (packed) {
          for (const uint64_t v : r.get_packed_uint64()) out.append(v);
        } else {
          out.append(r.get_uint64());
        }
        break;
      default:
        fail_malformed("Tensor '" + std::string(tensor.name) + "' has data of a wrong wire type.");
    }
  }
}

Error protobuf_error(const char* what) {
  return Error(ErrorCode::InvalidArgument,
               std::string("The file is not a whole protobuf message (") + what + ").",
               "Malformed");
}

}  // namespace

Result<ModelProto> parse_model(std::string_view bytes, const Limits& limits) {
  if (static_cast<int64_t>(bytes.size()) > limits.max_file_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 "The model has " + std::to_string(bytes.size()) + " bytes; the limit is " +
                     std::to_string(limits.max_file_bytes) + ".",
                 "LimitExceeded");
  }
  try {
    ModelProto model = Parser(limits).model(pbf_reader(bytes.data(), bytes.size()));
    if (!model.has_graph) {
      return Error(ErrorCode::InvalidArgument, "The file holds no ONNX graph.", "Malformed");
    }
    return model;
  } catch (ParseFailure& failure) {
    return std::move(failure.error);
  } catch (const protozero::exception& e) {
    return protobuf_error(e.what());
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::OutOfMemory, "The model needs more memory than there is.");
  }
}

Result<std::vector<std::byte>> decode_typed_data(const TensorProto& tensor, int64_t count,
                                                 int element_size_bytes) {
  const TypedField field = typed_field(tensor.data_type);
  if (field == TypedField::None) {
    return Error(ErrorCode::Unsupported, "Tensor '" + std::string(tensor.name) +
                                             "' has data type " + std::to_string(tensor.data_type) +
                                             ".");
  }
  // An element takes at least one byte of the message, so a false count is found before memory is taken for it.
  if (count > static_cast<int64_t>(tensor.message.size())) {
    return Error(ErrorCode::InvalidArgument,
                 "Tensor '" + std::string(tensor.name) + "' holds fewer values than its " +
                     std::to_string(count) + " elements.",
                 "Malformed");
  }
  try {
    ElementWriter out(tensor.name, count, element_size_bytes);
    read_typed_data(tensor, field, out);
    return out.take();
  } catch (ParseFailure& failure) {
    return std::move(failure.error);
  } catch (const protozero::exception& e) {
    return protobuf_error(e.what());
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::OutOfMemory, "The model needs more memory than there is.");
  }
}

Result<FileBytes> map_file(const std::string& path, int64_t max_bytes) {
  IGNIS_TRY_ASSIGN(MappedFile file, ignis::map_file(path, max_bytes));
  return FileBytes::of(std::move(file));
}

}  // namespace ignis::onnx
