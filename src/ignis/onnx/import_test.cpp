#include "ignis/onnx/import.h"

#include "ignis/onnx/info.h"
#include "ignis/onnx/test_import.h"

namespace ignis::onnx {
namespace {

using namespace ignis::testing;  // NOLINT: the builder

OnnxModel add_model() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {"batch", 3}).output("y", OnnxType::Float, {"batch", 3});
  model.graph.initializer(onnx_floats("w", {3}, {1, 2, 3}));
  model.graph.node(OnnxNode("Add", {"x", "w"}, {"y"}).name("plus"));
  return model;
}

Error error_of(const OnnxModel& model, const ImportOptions& options = test_options()) {
  auto imported = import_bytes(model.bytes(), options);
  return imported ? Error(ErrorCode::Internal, "The import succeeded.", "Succeeded")
                  : std::move(imported).error();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Import, ComputesASmallModel) {
  ImportOptions options = test_options();
  options.dims["batch"] = 2;
  const auto model = import_bytes(add_model().bytes(), options);
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(model->input_names, std::vector<std::string>{"x"});
  EXPECT_EQ(model->output_names, std::vector<std::string>{"y"});
  EXPECT_EQ(model->inputs[0].shape(), (Shape{2, 3}));
  ASSERT_EQ(model->layers.size(), 1u);
  EXPECT_EQ(model->layers[0].name, "plus");
  EXPECT_EQ(model->layers[0].op, "Add");
  EXPECT_EQ(model->layers[0].value, model->outputs[0].node());
  const auto y = evaluate_model(*model, {floats({2, 3}, {10, 20, 30, 40, 50, 60})});
  ASSERT_TRUE(y);
  EXPECT_EQ(values_of((*y)[0]), (std::vector<double>{11, 22, 33, 41, 52, 63}));
}

TEST(Import, InfoSaysWhatTheFileHolds) {
  TempFolder folder;
  const std::string path = (folder.path() / "m.onnx").string();
  OnnxModel model = add_model();
  model.graph.node(OnnxNode("Mystery", {"x"}, {"z"}).domain("com.example"));
  model.extra.message(14, OnnxMessage().text(1, "author").text(2, "me"));
  {
    FILE* file = std::fopen(path.c_str(), "wb");
    const std::string bytes = model.bytes();
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  }
  const auto info = read_info(path);
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->opset, 17);
  ASSERT_EQ(info->inputs.size(), 1u);
  EXPECT_EQ(info->inputs[0].to_string(), "f32 [batch, 3]");
  EXPECT_EQ(info->parameter_count, 3);
  EXPECT_EQ(info->weight_bytes, 12);
  EXPECT_EQ(info->metadata.at("author"), "me");
  EXPECT_EQ(info->digest.size(), 64u);
  ASSERT_EQ(info->ops.size(), 2u);
  EXPECT_EQ(info->ops[0].op, "Add");
  EXPECT_TRUE(info->ops[0].supported);
  EXPECT_EQ(info->ops[1].op, "com.example::Mystery");
  EXPECT_FALSE(info->ops[1].supported);
}

TEST(Import, TheDigestIsBlake2b256) {
  // From the BLAKE2 authors' b2sum -l 256.
  EXPECT_EQ(digest_hex("abc"), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

TEST(Import, OpenDimsNameTheInputAndTheSymbol) {
  const Error error = error_of(add_model());
  EXPECT_EQ(error.reason(), "OpenDim");
  EXPECT_TRUE(contains(error.message(), "'x'")) << error.message();
  EXPECT_TRUE(contains(error.message(), "'batch'")) << error.message();

  ImportOptions options = test_options();
  options.dims["bach"] = 2;
  EXPECT_TRUE(contains(error_of(add_model(), options).message(), "'bach'"));
  options = test_options();
  options.shapes["X"] = {2, 3};
  EXPECT_TRUE(contains(error_of(add_model(), options).message(), "'X'"));
  options = test_options();
  options.shapes["x"] = {2, 3, 4};
  EXPECT_EQ(error_of(add_model(), options).code(), ErrorCode::InvalidArgument);
}

TEST(Import, AShapeBindsItsSymbolsForAllInputs) {
  OnnxModel model(17);
  model.graph.input("a", OnnxType::Float, {"n"})
      .input("b", OnnxType::Float, {"n"})
      .output("y", OnnxType::Float, {"n"});
  model.graph.node(OnnxNode("Add", {"a", "b"}, {"y"}));
  ImportOptions options = test_options();
  options.shapes["a"] = {5};
  const auto imported = import_bytes(model.bytes(), options);
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->inputs[1].shape(), (Shape{5}));
  options.shapes["b"] = {1};
  EXPECT_EQ(error_of(model, options).code(), ErrorCode::InvalidArgument);
}

TEST(Import, AShapeReplacesFixedExtentsToo) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {10, 3}).output("y", OnnxType::Float, {10, 3});
  model.graph.node(OnnxNode("Relu", {"x"}, {"y"}));
  ImportOptions options = test_options();
  options.shapes["x"] = {1, -1};
  const auto imported = import_bytes(model.bytes(), options);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->outputs[0].shape(), (Shape{1, 3}));
}

TEST(Import, ListsAllThatIsMissingAtOnce) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {1})
      .input("s", OnnxType::String, {1})
      .output("y", OnnxType::Float, {1});
  OnnxGraph branch;
  branch.node(OnnxNode("Inner", {"x"}, {"i"})).output("i", OnnxType::Float, {1});
  model.graph.node(OnnxNode("Foo", {"x"}, {"a"})).node(OnnxNode("Foo", {"a"}, {"b"}));
  model.graph.node(OnnxNode("Bar", {"b"}, {"c"}).domain("com.example"));
  model.graph.node(OnnxNode("If", {"c"}, {"y"})
                       .attr_graph("then_branch", branch)
                       .attr_graph("else_branch", branch));
  const Error error = error_of(model);
  EXPECT_EQ(error.code(), ErrorCode::Unsupported);
  EXPECT_EQ(error.reason(), "MissingOperators");
  for (const char* part : {"Foo (2)", "com.example::Bar (1)", "Inner (2)", "STRING (input 's')"}) {
    EXPECT_TRUE(contains(error.message(), part)) << error.message();
  }
}

TEST(Import, ANewerOperatorSetIsRefused) {
  OnnxModel model(23);
  model.graph.input("x", OnnxType::Float, {1})
      .output("y", OnnxType::Float, {1})
      .node(OnnxNode("Relu", {"x"}, {"y"}));
  EXPECT_EQ(error_of(model).code(), ErrorCode::Unsupported);
  // An operator that the model's set does not have yet is missing too.
  OnnxModel old(19);
  old.graph.input("x", OnnxType::Float, {1})
      .output("y", OnnxType::Float, {1})
      .node(OnnxNode("Gelu", {"x"}, {"y"}));
  EXPECT_TRUE(contains(error_of(old).message(), "Gelu"));
}

TEST(Import, BrokenGraphsAreNamed) {
  const auto reason_of = [](const std::vector<OnnxNode>& nodes) {
    OnnxModel model(17);
    model.graph.input("x", OnnxType::Float, {1}).output("y", OnnxType::Float, {1});
    for (const OnnxNode& node : nodes) model.graph.node(node);
    return error_of(model);
  };
  const Error cycle =
      reason_of({OnnxNode("Add", {"x", "b"}, {"a"}).name("first"),
                 OnnxNode("Relu", {"a"}, {"b"}).name("second"), OnnxNode("Neg", {"b"}, {"y"})});
  EXPECT_EQ(cycle.reason(), "Cycle");
  EXPECT_TRUE(contains(cycle.message(), "'first'")) << cycle.message();
  EXPECT_EQ(reason_of({OnnxNode("Add", {"x", "nothing"}, {"y"})}).reason(), "MissingName");
  EXPECT_EQ(reason_of({OnnxNode("Relu", {"x"}, {"z"})}).reason(), "MissingName");
  EXPECT_EQ(reason_of({OnnxNode("Relu", {"x"}, {"y"}), OnnxNode("Neg", {"x"}, {"y"})}).reason(),
            "DuplicateName");
  EXPECT_EQ(reason_of({OnnxNode("Relu", {"x"}, {"x"}), OnnxNode("Neg", {"x"}, {"y"})}).reason(),
            "DuplicateName");
  EXPECT_EQ(reason_of({OnnxNode("Relu", {"y"}, {"y"})}).reason(), "Cycle");

  const Error arity = reason_of({OnnxNode("Add", {"x"}, {"y"}).name("lonely")});
  EXPECT_EQ(arity.code(), ErrorCode::InvalidArgument);
  EXPECT_TRUE(contains(arity.to_string(), "lonely")) << arity.to_string();
  const Error mistyped =
      reason_of({OnnxNode("Concat", {"x", "x"}, {"y"}).name("joined").attr("axis", 1.5f)});
  EXPECT_TRUE(contains(mistyped.to_string(), "'axis'")) << mistyped.to_string();
  const Error axis =
      reason_of({OnnxNode("Concat", {"x", "x"}, {"y"}).name("joined").attr("axis", 7)});
  EXPECT_TRUE(contains(axis.to_string(), "joined")) << axis.to_string();
  EXPECT_EQ(reason_of({}).reason(), "MissingName");
}

TEST(Import, NodesMayStandInAnyOrder) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2}).output("y", OnnxType::Float, {2});
  model.graph.node(OnnxNode("Neg", {"a"}, {"y"})).node(OnnxNode("Abs", {"x"}, {"a"}));
  const auto y = run_model(model, {floats({2}, {-1, 2})});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(values_of((*y)[0]), (std::vector<double>{-1, -2}));
}

TEST(Import, ShapeArithmeticIsFolded) {
  // Reshape to [shape(x)[0], -1], as exporters write it.
  OnnxModel model(13);
  model.graph.input("x", OnnxType::Float, {2, 3, 4}).output("y", OnnxType::Float, {2, 12});
  model.graph.initializer(onnx_ints("zero", {}, {0})).initializer(onnx_ints("minus", {1}, {-1}));
  model.graph.initializer(onnx_ints("axes", {1}, {0}));
  model.graph.node(OnnxNode("Shape", {"x"}, {"s"}))
      .node(OnnxNode("Gather", {"s", "zero"}, {"n"}).attr("axis", 0));
  model.graph.node(OnnxNode("Unsqueeze", {"n", "axes"}, {"n1"}));
  model.graph.node(OnnxNode("Concat", {"n1", "minus"}, {"wanted"}).attr("axis", 0));
  model.graph.node(OnnxNode("Reshape", {"x", "wanted"}, {"y"}));
  const auto imported = import_bytes(model.bytes(), test_options());
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->outputs[0].shape(), (Shape{2, 12}));
  EXPECT_EQ(imported->layers.size(), 1u) << "only the Reshape depends on the input";
}

TEST(Import, AShapeThatIsAnInputHasToBeGiven) {
  OnnxModel model(13);
  model.graph.input("x", OnnxType::Float, {6})
      .input("s", OnnxType::Int64, {2})
      .output("y", OnnxType::Float, {2, 3});
  model.graph.node(OnnxNode("Reshape", {"x", "s"}, {"y"}));
  const Error error = error_of(model);
  EXPECT_EQ(error.reason(), "NeedsConstant");
  EXPECT_TRUE(contains(error.message(), "model input 's'")) << error.message();
  ImportOptions options = test_options();
  options.constants["s"] = int64s({2}, {3, -1});
  const auto imported = import_bytes(model.bytes(), options);
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->input_names, std::vector<std::string>{"x"});
  EXPECT_EQ(imported->outputs[0].shape(), (Shape{3, 2}));
  options.constants["s"] = floats({2}, {3, 2});
  EXPECT_EQ(error_of(model, options).code(), ErrorCode::InvalidArgument);
}

TEST(Import, SparseAndRepeatedInitialisers) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2, 2}).output("y", OnnxType::Float, {2, 2});
  model.graph.sparse_initializer(
      onnx_sparse(onnx_floats("w", {2}, {5, 7}), onnx_ints("", {2, 2}, {0, 1, 1, 0}), {2, 2}));
  model.graph.node(OnnxNode("Add", {"x", "w"}, {"y"}));
  const auto y = run_model(model, {floats({2, 2}, {0, 0, 0, 0})});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(values_of((*y)[0]), (std::vector<double>{0, 5, 7, 0}));

  OnnxModel outside(17);
  outside.graph.output("w", OnnxType::Float, {2});
  outside.graph.sparse_initializer(
      onnx_sparse(onnx_floats("w", {1}, {5}), onnx_ints("", {1}, {2}), {2}));
  EXPECT_EQ(error_of(outside).reason(), "Malformed");
  OnnxModel huge(17);
  huge.graph.output("w", OnnxType::Float, {2});
  huge.graph.sparse_initializer(
      onnx_sparse(onnx_floats("w", {1}, {5}), onnx_ints("", {1}, {2}), {int64_t{1} << 32}));
  EXPECT_EQ(error_of(huge).reason(), "LimitExceeded");

  OnnxModel twice(17);
  twice.graph.output("w", OnnxType::Float, {1});
  twice.graph.initializer(onnx_floats("w", {1}, {5})).initializer(onnx_floats("w", {1}, {6}));
  EXPECT_EQ(error_of(twice).reason(), "DuplicateName");
}

TEST(Import, AFunctionIsInlinedWithItsAttributes) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2}).output("y", OnnxType::Float, {2});
  model.graph.node(
      OnnxNode("Twist", {"x"}, {"y"}).domain("local").name("call").attr("slope", 0.5f));
  OnnxNode leaky("LeakyRelu", {"n"}, {"out"});
  leaky.attr_of_caller("alpha", "slope", 1);
  model.extra.message(25, onnx_function("local", "Twist", {"in"}, {"out"},
                                        {OnnxNode("Neg", {"in"}, {"n"}), leaky}, 17));
  model.extra.message(8, OnnxMessage().text(1, "local").varint(2, 1));
  const auto y = run_model(model, {floats({2}, {4, -3})});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(values_of((*y)[0]), (std::vector<double>{-2, 3}));
}

TEST(Import, AFunctionThatCallsItselfIsRefused) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2}).output("y", OnnxType::Float, {2});
  OnnxNode call("F", {"x"}, {"y"});
  call.domain("local");
  model.graph.node(call);
  model.extra.message(25, onnx_function("local", "F", {"x"}, {"y"}, {call}, 17));
  model.extra.message(8, OnnxMessage().text(1, "local").varint(2, 1));
  EXPECT_EQ(error_of(model).reason(), "LimitExceeded");
}

}  // namespace
}  // namespace ignis::onnx
