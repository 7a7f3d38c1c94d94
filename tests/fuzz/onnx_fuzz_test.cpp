// A bounded run of onnx_fuzz.cpp: damaged copies of good models. Passing is not crashing, also under the sanitizers.
#include "tests/fuzz/mutate.h"
#include "tests/support/onnx_builder.h"
#include <gtest/gtest.h>

namespace ignis {
namespace {

using namespace ignis::testing;  // NOLINT: the builder

std::vector<int64_t> ints(std::initializer_list<int64_t> values) { return values; }

/// A little network: convolution, pooling, shape arithmetic, a product.
OnnxModel network() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {1, 2, 6, 6}).output("y", OnnxType::Float, {1, 3});
  model.graph.initializer(onnx_floats("w", {3, 2, 3, 3}, std::vector<float>(54, 0.5f)));
  model.graph.initializer(onnx_ints("zero", {}, {0})).initializer(onnx_ints("rest", {1}, {-1}));
  model.graph.initializer(onnx_ints("axes", {1}, {0}))
      .initializer(onnx_floats("m", {12, 3}, std::vector<float>(36, 1)));
  model.graph.node(OnnxNode("Conv", {"x", "w"}, {"c"})
                       .attr("pads", ints({1, 1, 1, 1}))
                       .attr("strides", ints({1, 1})));
  model.graph.node(OnnxNode("Relu", {"c"}, {"r"}));
  model.graph.node(OnnxNode("MaxPool", {"r"}, {"p"})
                       .attr("kernel_shape", ints({3, 3}))
                       .attr("strides", ints({3, 3})));
  model.graph.node(OnnxNode("Shape", {"p"}, {"s"}))
      .node(OnnxNode("Gather", {"s", "zero"}, {"n"}).attr("axis", 0));
  model.graph.node(OnnxNode("Unsqueeze", {"n", "axes"}, {"n1"}));
  model.graph.node(OnnxNode("Concat", {"n1", "rest"}, {"shape"}).attr("axis", 0));
  model.graph.node(OnnxNode("Reshape", {"p", "shape"}, {"flat"}));
  model.graph.node(OnnxNode("Gemm", {"flat", "m"}, {"g"}).attr("alpha", 0.5f));
  model.graph.node(OnnxNode("Softmax", {"g"}, {"y"}).attr("axis", -1));
  return model;
}

/// Shapes and control: what reads its arguments at import.
OnnxModel shapes() {
  OnnxModel model(19);
  model.graph.input("x", OnnxType::Float, {2, 6}).output("y", OnnxType::Float, {2, 6});
  model.graph.initializer(onnx_ints("a", {2}, {0, 1})).initializer(onnx_ints("b", {2}, {2, 5}));
  model.graph.initializer(onnx_ints("p", {4}, {1, 0, 0, 2}))
      .initializer(onnx_ints("t", {2}, {2, 3}));
  model.graph.initializer(onnx_ints("n", {}, {3})).initializer(onnx_ints("e", {3}, {4, 1, 6}));
  OnnxGraph body;
  body.input("i", OnnxType::Int64, {})
      .input("g", OnnxType::Bool, {})
      .input("v", OnnxType::Float, {2, 6});
  body.node(OnnxNode("Add", {"v", "x"}, {"v2"})).node(OnnxNode("Identity", {"g"}, {"g2"}));
  body.output("g2", OnnxType::Bool, {}).output("v2", OnnxType::Float, {2, 6});
  model.graph.node(OnnxNode("Loop", {"n", "", "x"}, {"l"}).attr_graph("body", body));
  model.graph.node(OnnxNode("Slice", {"l", "a", "b"}, {"s"}))
      .node(OnnxNode("Pad", {"s", "p"}, {"q"}));
  model.graph.node(OnnxNode("Tile", {"q", "t"}, {"u"})).node(OnnxNode("Expand", {"x", "e"}, {"v"}));
  model.graph.node(OnnxNode("ReduceMean", {"v"}, {"w"}).attr("keepdims", 1));
  model.graph.node(OnnxNode("Split", {"x"}, {"h", "k"}).attr("axis", 1).attr("num_outputs", 2));
  model.graph.node(OnnxNode("Transpose", {"h"}, {"ht"}).attr("perm", ints({1, 0})));
  model.graph.node(OnnxNode("MatMul", {"h", "ht"}, {"hh"}));
  model.graph.node(OnnxNode("Einsum", {"h", "k"}, {"ein"}).attr("equation", "ij,ij->i"));
  model.graph.node(OnnxNode("ReduceSum", {"u"}, {"us"}).attr("keepdims", 0));
  model.graph.node(OnnxNode("Sum", {"us", "w", "hs", "es"}, {"z"}));
  model.graph.node(OnnxNode("ReduceMax", {"hh"}, {"hs"}).attr("keepdims", 0));
  model.graph.node(OnnxNode("ReduceMin", {"ein"}, {"es"}).attr("keepdims", 0));
  model.graph.node(OnnxNode("Range", {"n", "n", "n"}, {"empty"}));
  model.graph.node(OnnxNode("Add", {"x", "z"}, {"y"}));
  return model;
}

/// A function, sparse data, typed data and other kinds of constants.
OnnxModel constants() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {4}).output("y", OnnxType::Float, {4});
  model.graph.sparse_initializer(
      onnx_sparse(onnx_floats("s", {2}, {5, 7}), onnx_ints("", {2}, {1, 3}), {4}));
  OnnxMessage typed;
  typed.varint(1, 4).varint(2, 7).text(8, "i").packed(7, {1, 2, -3, 4});
  model.graph.initializer(typed);
  model.graph.node(OnnxNode("Cast", {"i"}, {"f"}).attr("to", 1));
  model.graph.node(OnnxNode("Constant", {}, {"k"}).attr_tensor("value", onnx_floats("", {1}, {2})));
  model.graph.node(OnnxNode("Add", {"f", "s"}, {"fs"})).node(OnnxNode("Mul", {"fs", "k"}, {"m"}));
  OnnxNode inner("LeakyRelu", {"p"}, {"q"});
  inner.attr_of_caller("alpha", "slope", 1);
  model.graph.node(OnnxNode("F", {"m"}, {"c"}).domain("local").attr("slope", 0.5f));
  model.extra.message(25, onnx_function("local", "F", {"p"}, {"q"}, {inner}, 17));
  model.extra.message(8, OnnxMessage().text(1, "local").varint(2, 1));
  model.graph.node(OnnxNode("Where", {"b", "x", "c"}, {"y"}))
      .node(OnnxNode("Less", {"x", "c"}, {"b"}));
  return model;
}

std::vector<std::byte> bytes_of(const OnnxModel& model) {
  const std::string text = model.bytes();
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

void run(const std::vector<std::byte>& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

TEST(OnnxFuzz, TruncatedModelsNeverCrash) {
  for (const OnnxModel& model : {network(), shapes(), constants()}) {
    const std::vector<std::byte> good = bytes_of(model);
    for (size_t size = 0; size <= good.size(); ++size) {
      run(std::vector<std::byte>(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
    }
  }
}

TEST(OnnxFuzz, DamagedModelsAreRefusedOrReadButNeverCrash) {
  RecordProperty("seed", std::to_string(fuzz::test_seed()));
  SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(fuzz::test_seed()));
  std::mt19937_64 rng(fuzz::test_seed());
  const std::vector<std::vector<std::byte>> files{bytes_of(network()), bytes_of(shapes()),
                                                  bytes_of(constants())};
  for (int i = 0; i < 20000; ++i)
    run(fuzz::mutate(files[static_cast<size_t>(i) % files.size()], rng));
}

}  // namespace
}  // namespace ignis
