#include "ignis/onnx/wire.h"

#include "tests/support/onnx_builder.h"
#include <gtest/gtest.h>

namespace ignis::onnx {
namespace {

using namespace ignis::testing;  // NOLINT: the builder

/// A model with one of everything the reader stores.
OnnxModel rich_model() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2, "n", OnnxDim()}).output("y", OnnxType::Float, {2});
  model.graph.initializer(onnx_floats("w", {3}, {1, 2, 3}));
  model.graph.sparse_initializer(
      onnx_sparse(onnx_floats("s", {1}, {5}), onnx_ints("", {1}, {2}), {4}));
  OnnxGraph branch;
  branch.node(OnnxNode("Identity", {"x"}, {"b"})).output("b", OnnxType::Float, {});
  model.graph.node(OnnxNode("Conv", {"x", "", "w"}, {"y"})
                       .name("first")
                       .domain("com.example")
                       .attr("axis", -3)
                       .attr("alpha", 0.5f)
                       .attr("mode", "edge")
                       .attr("pads", std::vector<int64_t>{1, -1, INT64_MAX})
                       .attr_tensor("value", onnx_floats("t", {}, {7}))
                       .attr_graph("body", branch));
  model.extra.message(14, OnnxMessage().text(1, "author").text(2, "me"));
  model.extra.message(
      25, onnx_function("local", "F", {"a"}, {"b"}, {OnnxNode("Neg", {"a"}, {"b"})}, 17));
  return model;
}

TEST(Wire, ReadsEveryField) {
  const std::string bytes = rich_model().bytes();
  const auto model = parse_model(bytes, {});
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(model->producer_name, "onnx_builder");
  ASSERT_EQ(model->opsets.size(), 1u);
  EXPECT_EQ(model->opsets[0].version, 17);
  const GraphProto& graph = model->graph;
  ASSERT_EQ(graph.inputs.size(), 1u);
  ASSERT_EQ(graph.inputs[0].type.dims.size(), 3u);
  EXPECT_EQ(graph.inputs[0].type.dims[0].value, 2);
  EXPECT_EQ(graph.inputs[0].type.dims[1].symbol, "n");
  EXPECT_EQ(graph.inputs[0].type.dims[2].value, -1);
  ASSERT_EQ(graph.initializers.size(), 1u);
  EXPECT_EQ(graph.initializers[0].dims, (std::vector<int64_t>{3}));
  EXPECT_EQ(graph.initializers[0].raw_data.size(), 12u);
  ASSERT_EQ(graph.sparse_initializers.size(), 1u);
  EXPECT_EQ(graph.sparse_initializers[0].dims, (std::vector<int64_t>{4}));
  ASSERT_EQ(graph.nodes.size(), 1u);
  const NodeProto& node = graph.nodes[0];
  EXPECT_EQ(node.name, "first");
  EXPECT_EQ(node.op_type, "Conv");
  EXPECT_EQ(node.domain, "com.example");
  EXPECT_EQ(node.inputs, (std::vector<std::string_view>{"x", "", "w"}));
  EXPECT_EQ(find_attribute(node, {}, "axis")->i, -3);
  EXPECT_EQ(find_attribute(node, {}, "alpha")->f, 0.5f);
  EXPECT_EQ(find_attribute(node, {}, "mode")->s, "edge");
  EXPECT_EQ(find_attribute(node, {}, "pads")->ints, (std::vector<int64_t>{1, -1, INT64_MAX}));
  EXPECT_EQ(find_attribute(node, {}, "value")->tensor->raw_data.size(), 4u);
  EXPECT_EQ(find_attribute(node, {}, "body")->graph->nodes.size(), 1u);
  EXPECT_EQ(find_attribute(node, {}, "absent"), nullptr);
  ASSERT_EQ(model->functions.size(), 1u);
  EXPECT_EQ(model->functions[0].nodes.size(), 1u);
  ASSERT_EQ(model->metadata.size(), 1u);
  EXPECT_EQ(model->metadata[0].value, "me");
}

TEST(Wire, ATruncatedFileIsRefusedOrSmaller) {
  const std::string bytes = rich_model().bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of its own, so that the sanitizer sees a read past the end.
    const std::string cut(bytes.data(), size);
    const auto model = parse_model(cut, {});
    if (!model) {
      EXPECT_EQ(model.error().reason(), "Malformed") << size;
    }
  }
}

TEST(Wire, UnknownFieldsAreSkipped) {
  OnnxModel model = rich_model();
  model.extra.varint(99, 1)
      .fixed32(98, 1)
      .text(97, "later")
      .varint(2, 5);  // field 2 with a wrong wire type
  const std::string bytes = model.bytes();
  const auto parsed = parse_model(bytes, {});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->producer_name, "onnx_builder");
}

TEST(Wire, LimitsHold) {
  const auto reason = [](const OnnxModel& model, const Limits& limits) {
    const std::string bytes = model.bytes();
    const auto parsed = parse_model(bytes, limits);
    return parsed ? std::string("read") : parsed.error().reason();
  };
  Limits limits;
  limits.max_nodes = 3;
  OnnxModel nodes(17);
  for (int i = 0; i < 3; ++i) nodes.graph.node(OnnxNode("Neg", {"a"}, {"b"}));
  EXPECT_EQ(reason(nodes, limits), "read");
  nodes.graph.node(OnnxNode("Neg", {"a"}, {"b"}));
  EXPECT_EQ(reason(nodes, limits), "LimitExceeded");

  // Few nodes, many small things inside one.
  OnnxModel names(17);
  names.graph.node(OnnxNode("Concat", std::vector<std::string>(100, "x"), {"y"}));
  EXPECT_EQ(reason(names, limits), "LimitExceeded");

  limits = {};
  limits.max_string_bytes = 10;
  OnnxModel text(17);
  text.graph.node(OnnxNode("Neg", {"a"}, {"b"}).name("longer than ten"));
  EXPECT_EQ(reason(text, limits), "LimitExceeded");

  limits = {};
  limits.max_elements = 100;
  OnnxModel elements(17);
  elements.graph.initializer(onnx_floats("w", {101}, {}));
  EXPECT_EQ(reason(elements, limits), "LimitExceeded");

  OnnxModel overflow(17);
  overflow.graph.initializer(onnx_floats("w", {int64_t{1} << 40, int64_t{1} << 40}, {}));
  EXPECT_EQ(reason(overflow, {}), "Malformed");
  OnnxModel negative(17);
  negative.graph.initializer(onnx_floats("w", {-1}, {}));
  EXPECT_EQ(reason(negative, {}), "Malformed");

  OnnxModel rank(17);
  rank.graph.initializer(onnx_floats("w", std::vector<int64_t>(17, 1), {1}));
  EXPECT_EQ(reason(rank, {}), "LimitExceeded");
}

TEST(Wire, DeepGraphsAreRefused) {
  OnnxGraph graph;
  for (int depth = 0; depth < 40; ++depth) {
    OnnxGraph outer;
    outer.node(OnnxNode("If", {"c"}, {"y"}).attr_graph("then_branch", graph));
    graph = outer;
  }
  OnnxModel model(17);
  model.graph = graph;
  const std::string bytes = model.bytes();
  const auto parsed = parse_model(bytes, {});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().reason(), "LimitExceeded");
}

TEST(Wire, TypedDataIsReadPackedAndNot) {
  TensorProto tensor;
  OnnxMessage packed, single;
  packed.packed(7, {1, -2, 300});
  single.signed_varint(7, 1).signed_varint(7, -2).signed_varint(7, 300);
  for (const OnnxMessage& message : {packed, single}) {
    tensor.data_type = static_cast<int32_t>(ElementType::Int64);
    tensor.message = message.bytes();
    const auto bytes = decode_typed_data(tensor, 3, 8);
    ASSERT_TRUE(bytes) << bytes.error().to_string();
    int64_t values[3];
    std::memcpy(values, bytes->data(), sizeof values);
    EXPECT_EQ(values[0], 1);
    EXPECT_EQ(values[1], -2);
    EXPECT_EQ(values[2], 300);
    EXPECT_FALSE(decode_typed_data(tensor, 2, 8));
    EXPECT_FALSE(decode_typed_data(tensor, 4, 8));
    EXPECT_FALSE(decode_typed_data(tensor, int64_t{1} << 40, 8))
        << "memory is not taken for a false count";
  }
}

TEST(Wire, FilesThatAreNone) {
  EXPECT_EQ(map_file("/nonexistent/model.onnx", 1 << 20).error().code(), ErrorCode::NotFound);
  EXPECT_EQ(map_file("/", 1 << 20).error().reason(), "NotRegular");
  EXPECT_EQ(map_file("/dev/zero", 1 << 20).error().reason(), "NotRegular");
}

}  // namespace
}  // namespace ignis::onnx
