#include "ignis/onnx/test_import.h"

// If, Loop and Scan: decided at import, or refused by name.
namespace ignis::onnx {
namespace {

using namespace ignis::testing;  // NOLINT: the builder

HostTensor bools(Shape shape, const std::vector<int>& values) {
  return HostTensor::from(DType::Bool, std::move(shape), values);
}

OnnxGraph branch(const OnnxNode& node, const std::string& output) {
  OnnxGraph graph;
  graph.node(node).output(output, OnnxType::Float, {2});
  return graph;
}

OnnxModel if_model() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2})
      .input("c", OnnxType::Bool, {})
      .output("y", OnnxType::Float, {2});
  model.graph.node(OnnxNode("If", {"c"}, {"y"})
                       .attr_graph("then_branch", branch(OnnxNode("Neg", {"x"}, {"t"}), "t"))
                       .attr_graph("else_branch", branch(OnnxNode("Abs", {"x"}, {"e"}), "e")));
  return model;
}

TEST(If, AKnownConditionTakesItsBranch) {
  for (const int c : {0, 1}) {
    ImportOptions options = test_options();
    options.constants["c"] = bools({}, {c});
    const auto model = import_bytes(if_model().bytes(), options);
    ASSERT_TRUE(model) << model.error().to_string();
    ASSERT_EQ(model->layers.size(), 2u) << "the branch's node and the If itself";
    EXPECT_EQ(model->layers[0].op, c == 1 ? "Neg" : "Abs");
    const auto y = evaluate_model(*model, {floats({2}, {-1, 2})});
    ASSERT_TRUE(y);
    EXPECT_EQ(values_of((*y)[0]),
              c == 1 ? (std::vector<double>{1, -2}) : (std::vector<double>{1, 2}));
  }
}

TEST(If, AnOpenConditionComputesBothBranches) {
  for (const int c : {0, 1}) {
    const auto y = run_model(if_model(), {floats({2}, {-1, 2}), bools({}, {c})});
    ASSERT_TRUE(y) << y.error().to_string();
    EXPECT_EQ(values_of((*y)[0]),
              c == 1 ? (std::vector<double>{1, -2}) : (std::vector<double>{1, 2}));
  }
}

TEST(If, BranchesOfDifferentFormsNeedAKnownCondition) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2})
      .input("c", OnnxType::Bool, {})
      .output("y", OnnxType::Float, {2});
  model.graph.node(
      OnnxNode("If", {"c"}, {"y"})
          .name("choose")
          .attr_graph("then_branch", branch(OnnxNode("Neg", {"x"}, {"t"}), "t"))
          .attr_graph("else_branch",
                      branch(OnnxNode("Concat", {"x", "x"}, {"e"}).attr("axis", 0), "e")));
  const auto y = run_model(model, {floats({2}, {-1, 2}), bools({}, {1})});
  ASSERT_FALSE(y);
  EXPECT_EQ(y.error().code(), ErrorCode::Unsupported);
  EXPECT_EQ(y.error().reason(), "DataDependent");
  EXPECT_NE(y.error().to_string().find("choose"), std::string::npos);
}

/// s = s + x, and s as a scan output; the condition is passed through.
OnnxGraph sum_body() {
  OnnxGraph body;
  body.input("i", OnnxType::Int64, {})
      .input("go", OnnxType::Bool, {})
      .input("s", OnnxType::Float, {2});
  body.node(OnnxNode("Identity", {"go"}, {"go_on"})).node(OnnxNode("Add", {"s", "x"}, {"s2"}));
  body.node(OnnxNode("Identity", {"s2"}, {"seen"}));
  body.output("go_on", OnnxType::Bool, {})
      .output("s2", OnnxType::Float, {2})
      .output("seen", OnnxType::Float, {2});
  return body;
}

OnnxModel loop_model(const std::vector<int64_t>& trips) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2}).output("last", OnnxType::Float, {2});
  model.graph.output("all", OnnxType::Float, {OnnxDim(), 2});
  model.graph.initializer(onnx_floats("zero", {2}, {0, 0}));
  if (!trips.empty()) model.graph.initializer(onnx_ints("trips", {}, trips));
  model.graph.node(OnnxNode("Loop", {trips.empty() ? "" : "trips", "", "zero"}, {"last", "all"})
                       .name("loop")
                       .attr_graph("body", sum_body()));
  return model;
}

TEST(Loop, UnrollsAKnownTripCount) {
  const auto y = run_model(loop_model({3}), {floats({2}, {1, 10})});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(values_of((*y)[0]), (std::vector<double>{3, 30}));
  EXPECT_EQ((*y)[1].shape, (Shape{3, 2}));
  EXPECT_EQ(values_of((*y)[1]), (std::vector<double>{1, 10, 2, 20, 3, 30}));
}

TEST(Loop, NoIterationGivesTheInitialValueAndAnEmptyScan) {
  const auto y = run_model(loop_model({0}), {floats({2}, {1, 10})});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(values_of((*y)[0]), (std::vector<double>{0, 0}));
  EXPECT_EQ((*y)[1].shape, (Shape{0, 2}));
}

TEST(Loop, EndsWhenItsConditionBecomesFalse) {
  // Counts in an integer that no input touches: go on while i < 4.
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {1}).output("y", OnnxType::Float, {1});
  model.graph.initializer(onnx_ints("four", {}, {4}));
  OnnxGraph body;
  body.input("i", OnnxType::Int64, {})
      .input("go", OnnxType::Bool, {})
      .input("s", OnnxType::Float, {1});
  body.node(OnnxNode("Less", {"i", "four"}, {"go_on"})).node(OnnxNode("Add", {"s", "x"}, {"s2"}));
  body.output("go_on", OnnxType::Bool, {}).output("s2", OnnxType::Float, {1});
  model.graph.node(OnnxNode("Loop", {"", "", "x"}, {"y"}).attr_graph("body", body));
  const auto y = run_model(model, {floats({1}, {1})});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(values_of((*y)[0]), (std::vector<double>{6}))
      << "the iterations 0 to 4, and the initial value";
}

TEST(Loop, EndlessAndHugeLoopsAreRefused) {
  ImportOptions options = test_options();
  options.limits.max_total_nodes = 2000;
  const auto endless = import_bytes(loop_model({}).bytes(), options);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().reason(), "LimitExceeded");
  const auto huge = import_bytes(loop_model({INT64_MAX}).bytes(), options);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().reason(), "LimitExceeded");
}

TEST(Loop, ATripCountFromAnInputIsRefusedByName) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2})
      .input("n", OnnxType::Int64, {})
      .output("last", OnnxType::Float, {2});
  model.graph.node(
      OnnxNode("Loop", {"n", "", "x"}, {"last"}).name("loop").attr_graph("body", sum_body()));
  const auto imported = import_bytes(model.bytes(), test_options());
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), ErrorCode::Unsupported);
  EXPECT_NE(imported.error().to_string().find("'n'"), std::string::npos)
      << imported.error().to_string();
  EXPECT_NE(imported.error().to_string().find("loop"), std::string::npos);
}

TEST(Loop, NestedLoopsStayWithinTheWorkLimit) {
  // Ten levels of a thousand iterations: 10^30 nodes from a small file.
  OnnxGraph body = sum_body();
  for (int level = 0; level < 10; ++level) {
    OnnxGraph outer;
    const std::string s = "s" + std::to_string(level), out = "o" + std::to_string(level);
    outer.input("i" + s, OnnxType::Int64, {})
        .input("g" + s, OnnxType::Bool, {})
        .input(s, OnnxType::Float, {2});
    outer.node(OnnxNode("Loop", {"trips", "", s}, {out, "all" + out}).attr_graph("body", body));
    outer.node(OnnxNode("Identity", {"g" + s}, {"go" + s}));
    outer.output("go" + s, OnnxType::Bool, {}).output(out, OnnxType::Float, {2});
    outer.output("all" + out, OnnxType::Float, {2});
    body = outer;
  }
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2}).output("y", OnnxType::Float, {2});
  model.graph.initializer(onnx_ints("trips", {}, {1000}));
  model.graph.node(OnnxNode("Loop", {"trips", "", "x"}, {"y", "all"}).attr_graph("body", body));
  ImportOptions options = test_options();
  options.limits.max_total_nodes = 20000;
  const auto imported = import_bytes(model.bytes(), options);
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().reason(), "LimitExceeded");
}

TEST(Scan, RunsAlongAnAxisInBothDirections) {
  OnnxGraph body;
  body.input("s", OnnxType::Float, {2}).input("step", OnnxType::Float, {2});
  body.node(OnnxNode("Add", {"s", "step"}, {"s2"})).node(OnnxNode("Identity", {"s2"}, {"seen"}));
  body.output("s2", OnnxType::Float, {2}).output("seen", OnnxType::Float, {2});
  for (const int64_t direction : {0, 1}) {
    OnnxModel model(17);
    model.graph.input("x", OnnxType::Float, {2, 3}).output("last", OnnxType::Float, {2});
    model.graph.output("all", OnnxType::Float, {2, 3});
    model.graph.initializer(onnx_floats("zero", {2}, {0, 0}));
    model.graph.node(OnnxNode("Scan", {"zero", "x"}, {"last", "all"})
                         .attr("num_scan_inputs", 1)
                         .attr("scan_input_axes", std::vector<int64_t>{1})
                         .attr("scan_input_directions", std::vector<int64_t>{direction})
                         .attr("scan_output_axes", std::vector<int64_t>{-1})
                         .attr_graph("body", body));
    const auto y = run_model(model, {floats({2, 3}, {1, 2, 3, 10, 20, 30})});
    ASSERT_TRUE(y) << y.error().to_string();
    EXPECT_EQ(values_of((*y)[0]), (std::vector<double>{6, 60}));
    EXPECT_EQ(values_of((*y)[1]), direction == 0 ? (std::vector<double>{1, 3, 6, 10, 30, 60})
                                                 : (std::vector<double>{3, 5, 6, 30, 50, 60}));
  }
}

TEST(Sequence, IsAListAtImport) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {5}).output("y", OnnxType::Float, {OnnxDim()});
  model.graph.output("n", OnnxType::Int64, {});
  model.graph.initializer(onnx_ints("two", {}, {2})).initializer(onnx_ints("minus", {}, {-1}));
  model.graph.initializer(onnx_ints("zero", {}, {0}));
  // [0 1], [2 3], [4] -> the last one again in front -> without the second -> joined.
  model.graph.node(OnnxNode("SplitToSequence", {"x", "two"}, {"s"}));
  model.graph.node(OnnxNode("SequenceAt", {"s", "minus"}, {"last"}));
  model.graph.node(OnnxNode("SequenceInsert", {"s", "last", "zero"}, {"s2"}));
  model.graph.node(OnnxNode("SequenceErase", {"s2", "two"}, {"s3"}));
  model.graph.node(OnnxNode("SequenceLength", {"s2"}, {"n"}));
  model.graph.node(OnnxNode("ConcatFromSequence", {"s3"}, {"y"}).attr("axis", 0));
  const auto y = run_model(model, {floats({5}, {0, 1, 2, 3, 4})});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(values_of((*y)[0]), (std::vector<double>{4, 0, 1, 4}));
  EXPECT_EQ(values_of((*y)[1]), (std::vector<double>{4}));
}

TEST(Sequence, IsRefusedWhereATensorIsMeant) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {5}).output("y", OnnxType::Float, {5});
  model.graph.node(OnnxNode("SequenceConstruct", {"x", "x"}, {"s"}))
      .node(OnnxNode("Neg", {"s"}, {"y"}).name("bad"));
  const auto y = run_model(model, {floats({5}, {0, 1, 2, 3, 4})});
  ASSERT_FALSE(y);
  EXPECT_EQ(y.error().code(), ErrorCode::Unsupported);
  EXPECT_NE(y.error().to_string().find("bad"), std::string::npos);
  OnnxModel outside(17);
  outside.graph.input("x", OnnxType::Float, {2}).output("y", OnnxType::Float, {2});
  outside.graph.initializer(onnx_ints("two", {}, {2}));
  outside.graph.node(OnnxNode("SequenceConstruct", {"x", "x"}, {"s"}));
  outside.graph.node(OnnxNode("SequenceAt", {"s", "two"}, {"y"}));
  EXPECT_FALSE(run_model(outside, {floats({2}, {0, 1})}));
}

}  // namespace
}  // namespace ignis::onnx
