#include "ignis/onnx/ops.h"

#include "ignis/onnx/test_import.h"

#include <cmath>
#include <limits>
#include <set>

// Meanings of operators on which other engines went wrong, and the rules of the versions. The values were worked out by
// hand from the standard.
namespace ignis::onnx {
namespace {

using namespace ignis::testing;  // NOLINT: the builder

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

int onnx_type(DType dtype) {
  for (int type = 1; type < 21; ++type) {
    if (dtype_of(type) == dtype) return type;
  }
  return 0;
}

/// One node whose inputs are the model's inputs, in order, and then constants.
struct OneNode {
  int64_t opset = 17;
  OnnxNode node{"Identity", {}, {}};
  std::vector<HostTensor> inputs = {};  ///< named "a", "b", …
  std::vector<OnnxMessage> constants = {};
  std::vector<std::string> outputs = {"y"};
};

Result<std::vector<HostTensor>> compute(const OneNode& one) {
  OnnxModel model(one.opset);
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    std::vector<OnnxDim> dims;
    for (const int64_t d : one.inputs[i].shape) dims.emplace_back(d);
    model.graph.input(std::string(1, static_cast<char>('a' + i)), onnx_type(one.inputs[i].dtype),
                      dims);
  }
  for (const OnnxMessage& constant : one.constants) model.graph.initializer(constant);
  for (const std::string& name : one.outputs) model.graph.output(name, OnnxType::Float, {});
  model.graph.node(one.node);
  return run_model(model, one.inputs);
}

/// The first output's values, or the error's text in the test's log.
std::vector<double> values(const OneNode& one) {
  const auto outputs = compute(one);
  if (!outputs) {
    ADD_FAILURE() << outputs.error().to_string();
    return {};
  }
  return values_of((*outputs)[0]);
}

void expect_same(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) EXPECT_TRUE(std::isnan(actual[i])) << i << ": " << actual[i];
    else EXPECT_EQ(actual[i], expected[i]) << i;
  }
}

TEST(Ops, NamesAndVersionsAreFound) {
  EXPECT_EQ(find_op("", "Gelu", 19), nullptr);
  ASSERT_NE(find_op("", "Gelu", 20), nullptr);
  EXPECT_EQ(find_op("ai.onnx", "Relu", 7), find_op("", "Relu", 7));
  EXPECT_EQ(find_op("com.example", "Relu", 7), nullptr);
  std::set<std::pair<std::string, int>> seen;
  for (const OpEntry& row : all_ops()) {
    EXPECT_TRUE(
        seen.emplace(std::string(row.domain) + "::" + std::string(row.name), row.since).second)
        << row.name << " has two rows for version " << row.since;
    EXPECT_NE(row.handler, nullptr) << row.name;
  }
}

TEST(Ops, IntegerDivisionAndRemainder) {
  const std::vector<HostTensor> ab{int64s({4}, {8, -8, 7, -7}), int64s({4}, {-3, 3, -2, 2})};
  EXPECT_EQ(values({.node = OnnxNode("Div", {"a", "b"}, {"y"}), .inputs = ab}),
            (std::vector<double>{-2, -2, -3, -3}));
  EXPECT_EQ(values({.node = OnnxNode("Mod", {"a", "b"}, {"y"}), .inputs = ab}),
            (std::vector<double>{-1, 1, -1, 1}));
  EXPECT_EQ(values({.node = OnnxNode("Mod", {"a", "b"}, {"y"}).attr("fmod", 1), .inputs = ab}),
            (std::vector<double>{2, -2, 1, -1}));
}

TEST(Ops, RoundGoesToEven) {
  const auto y = values({.node = OnnxNode("Round", {"a"}, {"y"}),
                         .inputs = {floats({6}, {0.5, 1.5, 2.5, -0.5, -1.5, -2.5})}});
  EXPECT_EQ(y, (std::vector<double>{0, 2, 2, -0.0, -2, -2}));
  ASSERT_EQ(y.size(), 6u);
  EXPECT_TRUE(std::signbit(y[3]));
}

TEST(Ops, CastSaturatesAndNanGivesZero) {
  EXPECT_EQ(values({.node = OnnxNode("Cast", {"a"}, {"y"}).attr("to", OnnxType::Int8),
                    .inputs = {floats({6}, {300, kNan, kInf, -kInf, 50, -50})}}),
            (std::vector<double>{127, 0, 127, -128, 50, -50}));
}

TEST(Ops, CastToFp8WithAndWithoutSaturation) {
  // Largest finite values: e4m3fn 448 (its next grid point would be 480), e5m2 57344 (then 65536).
  const HostTensor x = floats({8}, {448, 464, 465, 1000, -1000, kInf, kNan, 1});
  const auto cast = [&](int type, int saturate) {
    return values(
        {.opset = 19,
         .node = OnnxNode("Cast", {"a"}, {"y"}).attr("to", type).attr("saturate", saturate),
         .inputs = {x}});
  };
  expect_same(cast(OnnxType::Float8E4M3FN, 1), {448, 448, 448, 448, -448, 448, kNan, 1});
  expect_same(cast(OnnxType::Float8E4M3FN, 0), {448, 448, kNan, kNan, kNan, kNan, kNan, 1});
  const auto wide = [&](int saturate) {
    return OneNode{.opset = 19,
                   .node = OnnxNode("Cast", {"a"}, {"y"})
                               .attr("to", OnnxType::Float8E5M2)
                               .attr("saturate", saturate),
                   .inputs = {floats({6}, {57344, 61439, 61440, -61440, kInf, kNan})}};
  };
  expect_same(values(wide(1)), {57344, 57344, 57344, -57344, 57344, kNan});
  const auto refused = compute(wide(0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unsupported);
}

TEST(Ops, SixtyFourBitIntegersStayWhole) {
  const int64_t big = (int64_t{1} << 40) + 3;
  const auto y = compute({.node = OnnxNode("Add", {"a", "one"}, {"y"}),
                          .inputs = {int64s({1}, {big})},
                          .constants = {onnx_ints("one", {}, {1})}});
  ASSERT_TRUE(y);
  EXPECT_EQ(element_as_int((*y)[0], 0), 1099511627780);
}

TEST(Ops, SoftmaxOfTheVersions) {
  const HostTensor zeros = floats({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(values({.opset = 11, .node = OnnxNode("Softmax", {"a"}, {"y"}), .inputs = {zeros}}),
            (std::vector<double>{.25, .25, .25, .25}));
  EXPECT_EQ(values({.opset = 13, .node = OnnxNode("Softmax", {"a"}, {"y"}), .inputs = {zeros}}),
            (std::vector<double>{.5, .5, .5, .5}));
  // Hardmax over all axes from 1 on as one, then over the last.
  const HostTensor x = floats({1, 2, 2}, {1, 3, 3, 2});
  EXPECT_EQ(values({.opset = 11, .node = OnnxNode("Hardmax", {"a"}, {"y"}), .inputs = {x}}),
            (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(values({.opset = 13, .node = OnnxNode("Hardmax", {"a"}, {"y"}), .inputs = {x}}),
            (std::vector<double>{0, 1, 1, 0}));
}

TEST(Ops, AveragePoolDividesByTheRealWindow) {
  const HostTensor x = floats({1, 1, 4}, {1, 2, 3, 4});
  const auto pool = [&](std::vector<int64_t> pads, int include) {
    return values({.node = OnnxNode("AveragePool", {"a"}, {"y"})
                               .attr("kernel_shape", std::vector<int64_t>{3})
                               .attr("strides", std::vector<int64_t>{2})
                               .attr("ceil_mode", 1)
                               .attr("pads", std::move(pads))
                               .attr("count_include_pad", include),
                   .inputs = {x}});
  };
  EXPECT_EQ(pool({0, 0}, 0), (std::vector<double>{2, 3.5}));
  EXPECT_EQ(pool({1, 1}, 1), (std::vector<double>{1, 3, 2}));
  EXPECT_EQ(pool({1, 1}, 0), (std::vector<double>{1.5, 3, 4}));
}

TEST(Ops, ConvTransposeSizes) {
  const auto y = compute({.node = OnnxNode("ConvTranspose", {"a", "b"}, {"y"})
                                      .attr("strides", std::vector<int64_t>{2})
                                      .attr("pads", std::vector<int64_t>{1, 1})
                                      .attr("output_padding", std::vector<int64_t>{1}),
                          .inputs = {HostTensor::zeros(DType::Float32, {1, 1, 28}),
                                     HostTensor::zeros(DType::Float32, {1, 1, 3})}});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ((*y)[0].shape, (Shape{1, 1, 56}));
}

TEST(Ops, SliceClampsAndCountsBackwards) {
  const HostTensor x = floats({5}, {0, 1, 2, 3, 4});
  const auto slice = [&](int64_t start, int64_t end, int64_t step) {
    return values({.node = OnnxNode("Slice", {"a", "s", "e", "ax", "st"}, {"y"}),
                   .inputs = {x},
                   .constants = {onnx_ints("s", {1}, {start}), onnx_ints("e", {1}, {end}),
                                 onnx_ints("ax", {1}, {-1}), onnx_ints("st", {1}, {step})}});
  };
  EXPECT_EQ(slice(0, INT64_MAX, 1), (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_EQ(slice(-3, 100, 1), (std::vector<double>{2, 3, 4}));
  EXPECT_EQ(slice(1, -1, 2), (std::vector<double>{1, 3}));
  EXPECT_EQ(slice(-1, INT64_MIN, -1), (std::vector<double>{4, 3, 2, 1, 0}));
  EXPECT_EQ(slice(100, 0, -2), (std::vector<double>{4, 2}));
  EXPECT_EQ(slice(3, 1, 1), (std::vector<double>{}));
  EXPECT_EQ(slice(0, 5, INT64_MAX), (std::vector<double>{0}));
  EXPECT_EQ(slice(4, INT64_MIN, INT64_MIN), (std::vector<double>{4}));
  // Version 1 has attributes.
  EXPECT_EQ(values({.opset = 9,
                    .node = OnnxNode("Slice", {"a"}, {"y"})
                                .attr("starts", std::vector<int64_t>{1})
                                .attr("ends", std::vector<int64_t>{INT64_MAX}),
                    .inputs = {x}}),
            (std::vector<double>{1, 2, 3, 4}));
}

TEST(Ops, PadModes) {
  const HostTensor x = floats({3}, {1, 2, 3});
  const auto pad = [&](const char* mode, int64_t lo, int64_t hi) {
    return values({.opset = 19,
                   .node = OnnxNode("Pad", {"a", "p"}, {"y"}).attr("mode", mode),
                   .inputs = {x},
                   .constants = {onnx_ints("p", {2}, {lo, hi})}});
  };
  EXPECT_EQ(pad("constant", 1, 2), (std::vector<double>{0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(pad("constant", -1, 1), (std::vector<double>{2, 3, 0}));
  EXPECT_EQ(pad("reflect", 2, 1), (std::vector<double>{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(pad("edge", 1, 2), (std::vector<double>{1, 1, 2, 3, 3, 3}));
  EXPECT_EQ(pad("wrap", 2, 1), (std::vector<double>{2, 3, 1, 2, 3, 1}));
  const auto broken = compute({.node = OnnxNode("Pad", {"a", "p"}, {"y"}),
                               .inputs = {x},
                               .constants = {onnx_ints("p", {2}, {-2, -2})}});
  EXPECT_FALSE(broken);
}

TEST(Ops, ReshapeZeroMeansCopyOrZero) {
  const HostTensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto y = compute({.node = OnnxNode("Reshape", {"a", "s"}, {"y"}),
                          .inputs = {x},
                          .constants = {onnx_ints("s", {3}, {0, -1, 1})}});
  ASSERT_TRUE(y);
  EXPECT_EQ((*y)[0].shape, (Shape{2, 3, 1}));
  const auto empty = compute({.node = OnnxNode("Reshape", {"a", "s"}, {"y"}).attr("allowzero", 1),
                              .inputs = {HostTensor::zeros(DType::Float32, {0, 3})},
                              .constants = {onnx_ints("s", {2}, {3, 0})}});
  ASSERT_TRUE(empty) << empty.error().to_string();
  EXPECT_EQ((*empty)[0].shape, (Shape{3, 0}));
  EXPECT_FALSE(compute({.node = OnnxNode("Reshape", {"a", "s"}, {"y"}),
                        .inputs = {x},
                        .constants = {onnx_ints("s", {1}, {7})}}));
}

TEST(Ops, AxesMovedFromAttributesToInputs) {
  const HostTensor x = floats({1, 2}, {1, 2});
  const auto old =
      compute({.opset = 11,
               .node = OnnxNode("Unsqueeze", {"a"}, {"y"}).attr("axes", std::vector<int64_t>{0, 3}),
               .inputs = {x}});
  ASSERT_TRUE(old) << old.error().to_string();
  EXPECT_EQ((*old)[0].shape, (Shape{1, 1, 2, 1}));
  const auto now = compute({.opset = 13,
                            .node = OnnxNode("Unsqueeze", {"a", "axes"}, {"y"}),
                            .inputs = {x},
                            .constants = {onnx_ints("axes", {2}, {0, 3})}});
  ASSERT_TRUE(now);
  EXPECT_EQ((*now)[0].shape, (Shape{1, 1, 2, 1}));
}

TEST(Ops, SplitEvenlyAndWithARest) {
  const HostTensor x = floats({5}, {0, 1, 2, 3, 4});
  const auto y = compute({.opset = 18,
                          .node = OnnxNode("Split", {"a"}, {"y", "z", "w"}).attr("num_outputs", 3),
                          .inputs = {x},
                          .outputs = {"y", "z", "w"}});
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(values_of((*y)[0]), (std::vector<double>{0, 1}));
  EXPECT_EQ(values_of((*y)[2]), (std::vector<double>{4}));
  EXPECT_FALSE(compute({.opset = 13,
                        .node = OnnxNode("Split", {"a"}, {"y", "z"}),
                        .inputs = {x},
                        .outputs = {"y", "z"}}));
}

TEST(Ops, ClipKeepsNanAndCrossedBoundsGiveTheUpper) {
  const HostTensor x = floats({3}, {-5, kNan, 5});
  expect_same(values({.node = OnnxNode("Clip", {"a", "lo", "hi"}, {"y"}),
                      .inputs = {x},
                      .constants = {onnx_floats("lo", {}, {-1}), onnx_floats("hi", {}, {1})}}),
              {-1, kNan, 1});
  expect_same(values({.node = OnnxNode("Clip", {"a", "", "hi"}, {"y"}),
                      .inputs = {x},
                      .constants = {onnx_floats("hi", {}, {1})}}),
              {-5, kNan, 1});
  expect_same(
      values({.opset = 6, .node = OnnxNode("Clip", {"a"}, {"y"}).attr("min", 0.0f), .inputs = {x}}),
      {0, kNan, 5});
  expect_same(values({.node = OnnxNode("Clip", {"a", "lo", "hi"}, {"y"}),
                      .inputs = {floats({2}, {-5, 5})},
                      .constants = {onnx_floats("lo", {}, {3}), onnx_floats("hi", {}, {1})}}),
              {1, 1});
}

TEST(Ops, BroadcastOfTheOldVersions) {
  // Before operator set 7 the axis says where the second operand lies.
  const auto y =
      values({.opset = 6,
              .node = OnnxNode("Add", {"a", "b"}, {"y"}).attr("broadcast", 1).attr("axis", 0),
              .inputs = {floats({2, 2}, {0, 0, 0, 0}), floats({2}, {1, 2})}});
  EXPECT_EQ(y, (std::vector<double>{1, 1, 2, 2}));
}

TEST(Ops, MixedTypesAreRefused) {
  const auto y = compute(
      {.node = OnnxNode("Add", {"a", "b"}, {"y"}), .inputs = {floats({1}, {1}), int64s({1}, {1})}});
  ASSERT_FALSE(y);
  EXPECT_EQ(y.error().code(), ErrorCode::InvalidArgument);
}

TEST(Ops, HugeResultsAreRefusedBeforeTheyAreMade) {
  const int64_t big = int64_t{1} << 40;
  for (const OneNode& one : {
           OneNode{.node = OnnxNode("ConstantOfShape", {"s"}, {"y"}),
                   .constants = {onnx_ints("s", {2}, {big, big})}},
           OneNode{.node = OnnxNode("Expand", {"a", "s"}, {"y"}),
                   .inputs = {floats({1}, {1})},
                   .constants = {onnx_ints("s", {2}, {big, big})}},
           OneNode{.node = OnnxNode("Tile", {"a", "s"}, {"y"}),
                   .inputs = {floats({2}, {1, 1})},
                   .constants = {onnx_ints("s", {1}, {INT64_MAX})}},
           OneNode{.node = OnnxNode("Pad", {"a", "s"}, {"y"}),
                   .inputs = {floats({1}, {1})},
                   .constants = {onnx_ints("s", {2}, {INT64_MAX, INT64_MAX})}},
           OneNode{.node = OnnxNode("Range", {"l", "h", "d"}, {"y"}),
                   .constants = {onnx_ints("l", {}, {INT64_MIN}), onnx_ints("h", {}, {INT64_MAX}),
                                 onnx_ints("d", {}, {1})}},
       }) {
    EXPECT_FALSE(compute(one));
  }
}

TEST(Ops, ABlockSizeWhoseSquareOverflowsIsRefused) {
  for (const int64_t block : {int64_t{0}, int64_t{-1}, int64_t{1} << 32, INT64_MIN}) {
    EXPECT_FALSE(compute({.node = OnnxNode("DepthToSpace", {"a"}, {"y"}).attr("blocksize", block),
                          .inputs = {HostTensor::zeros(DType::Float32, {1, 4, 2, 2})}}));
    EXPECT_FALSE(compute({.node = OnnxNode("SpaceToDepth", {"a"}, {"y"}).attr("blocksize", block),
                          .inputs = {HostTensor::zeros(DType::Float32, {1, 4, 2, 2})}}));
  }
}

TEST(Ops, PoolIndicesAndUnpool) {
  const HostTensor x = floats({1, 1, 2, 4}, {1, 5, 2, 0, 3, 4, 8, 7});
  const auto pooled = compute({.node = OnnxNode("MaxPool", {"a"}, {"y", "i"})
                                           .attr("kernel_shape", std::vector<int64_t>{2, 2})
                                           .attr("strides", std::vector<int64_t>{2, 2}),
                               .inputs = {x},
                               .outputs = {"y", "i"}});
  ASSERT_TRUE(pooled) << pooled.error().to_string();
  EXPECT_EQ(values_of((*pooled)[0]), (std::vector<double>{5, 8}));
  EXPECT_EQ(values_of((*pooled)[1]), (std::vector<double>{1, 6}));
  EXPECT_EQ(values({.node = OnnxNode("MaxUnpool", {"a", "b"}, {"y"})
                                .attr("kernel_shape", std::vector<int64_t>{2, 2})
                                .attr("strides", std::vector<int64_t>{2, 2}),
                    .inputs = {(*pooled)[0], (*pooled)[1]}}),
            (std::vector<double>{0, 5, 0, 0, 0, 0, 8, 0}));
}

}  // namespace
}  // namespace ignis::onnx
