#include "ignis/engine/shaped_session.h"

#include "tests/support/onnx_builder.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ignis {
namespace {

using testing::onnx_floats;
using testing::OnnxDim;
using testing::OnnxModel;
using testing::OnnxNode;
using testing::OnnxType;

// y = x * w + z with x [batch, 3], z [batch, 2] and w = [[1, -1], [2, -2], [3, -3]].
class ShapedSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "ignis-shaped-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    OnnxModel model(17);
    model.graph.input("x", OnnxType::Float, {"batch", 3})
        .input("z", OnnxType::Float, {"batch", 2})
        .output("y", OnnxType::Float, {"batch", 2})
        .initializer(onnx_floats("w", {3, 2}, {1, -1, 2, -2, 3, -3}))
        .node(OnnxNode("MatMul", {"x", "w"}, {"xw"}))
        .node(OnnxNode("Add", {"xw", "z"}, {"y"}));
    write(model.bytes());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }
  std::string path() const { return folder_ + "/open.onnx"; }

  // Row r of x is (r, 0, 1), z is (10, 20): y = (r + 13, 17 - r).
  static std::vector<HostTensor> rows(int64_t count) {
    std::vector<float> x, z;
    for (int64_t r = 0; r < count; ++r) {
      x.insert(x.end(), {static_cast<float>(r), 0, 1});
      z.insert(z.end(), {10, 20});
    }
    return {HostTensor::from<float>(DType::Float32, {count, 3}, x),
            HostTensor::from<float>(DType::Float32, {count, 2}, z)};
  }
  static void expect_rows(ShapedSession& session, int64_t count) {
    const auto result = session.run(rows(count));
    ASSERT_TRUE(result) << result.error().to_string();
    ASSERT_EQ(result->at(0).shape, (Shape{count, 2}));
    for (int64_t r = 0; r < count; ++r) {
      EXPECT_EQ(element_as_double(result->at(0), 2 * r), static_cast<double>(r + 13));
      EXPECT_EQ(element_as_double(result->at(0), 2 * r + 1), static_cast<double>(17 - r));
    }
  }
  std::string folder_;
};

TEST_F(ShapedSessionTest, EachSetOfShapesIsCompiledOnce) {
  auto session = ShapedSession::open(path());
  ASSERT_TRUE(session) << session.error().to_string();
  ASSERT_EQ(session->inputs().size(), 2u);
  EXPECT_EQ(session->inputs()[0].shape, (Shape{-1, 3}));
  EXPECT_EQ(session->inputs()[0].symbols[0], "batch");
  for (const int64_t count : {1, 4, 1, 7, 4}) expect_rows(*session, count);
  EXPECT_EQ(session->compile_count(), 3);
}

TEST_F(ShapedSessionTest, TheSetUnusedForLongestIsDropped) {
  auto session = ShapedSession::open(path(), {}, 2);
  ASSERT_TRUE(session);
  for (const int64_t count : {1, 2, 1, 3}) expect_rows(*session, count);  // 3 takes the place of 2
  EXPECT_EQ(session->compile_count(), 3);
  expect_rows(*session, 1);
  EXPECT_EQ(session->compile_count(), 3);
  expect_rows(*session, 2);
  EXPECT_EQ(session->compile_count(), 4);
}

TEST_F(ShapedSessionTest, PreparedShapesNeedNoCompileAtRun) {
  auto session = ShapedSession::open(path());
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->prepare({{5, 3}, {5, 2}}));
  expect_rows(*session, 5);
  EXPECT_EQ(session->compile_count(), 1);
}

TEST_F(ShapedSessionTest, WhatTheOptionsBindStaysBound) {
  SessionOptions options;
  options.dims["batch"] = 2;
  auto session = ShapedSession::open(path(), options);
  ASSERT_TRUE(session);
  EXPECT_EQ(session->inputs()[1].shape, (Shape{2, 2}));
  expect_rows(*session, 2);
  EXPECT_EQ(session->run(rows(3)).error().reason(), "WrongShape");
}

TEST_F(ShapedSessionTest, AnInputOfUnknownRankTakesAnyShape) {
  testing::OnnxMessage tensor_type, info;
  tensor_type.varint(1, OnnxType::Float);  // no shape at all
  info.text(1, "x").message(2, testing::OnnxMessage().message(1, tensor_type));
  testing::OnnxMessage graph;
  graph.message(11, info)
      .message(12, testing::onnx_value_info("y", OnnxType::Float, {OnnxDim()}))
      .message(1, OnnxNode("Neg", {"x"}, {"y"}).message());
  testing::OnnxMessage model;
  model.varint(1, 8).message(7, graph).message(8, testing::OnnxMessage().text(1, "").varint(2, 17));
  write(model.bytes());
  auto session = ShapedSession::open(path());
  ASSERT_TRUE(session) << session.error().to_string();
  EXPECT_FALSE(session->inputs()[0].has_rank);
  for (const Shape& shape : {Shape{2}, Shape{3, 1}}) {
    const auto result = session->run({HostTensor::zeros(DType::Float32, shape)});
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(result->at(0).shape, shape);
  }
}

TEST_F(ShapedSessionTest, RefusesShapesTheModelCannotTake) {
  auto session = ShapedSession::open(path());
  ASSERT_TRUE(session);
  const auto message = [&](const Shape& x, const Shape& z) {
    const auto result =
        session->run({HostTensor::zeros(DType::Float32, x), HostTensor::zeros(DType::Float32, z)});
    return result ? std::string("accepted") : result.error().message();
  };
  EXPECT_EQ(message({2, 4}, {2, 2}), "Input 'x' is given [2, 4]; the model takes [batch, 3].");
  EXPECT_EQ(message({3}, {2, 2}), "Input 'x' is given [3]; the model takes [batch, 3].");
  EXPECT_EQ(message({2, 3}, {5, 2}), "Dim 'batch' is 2 in input 'x' and 5 in input 'z'.");
  EXPECT_EQ(session->run({}).error().reason(), "WrongCount");
  expect_rows(*session, 2);
}

TEST_F(ShapedSessionTest, OpensOnlyWhatCanRun) {
  EXPECT_EQ(ShapedSession::open(folder_ + "/none.onnx").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(ShapedSession::open(path(), {}, 0).error().code(), ErrorCode::InvalidArgument);
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {"n"})
      .output("y", OnnxType::Float, {"n"})
      .node(OnnxNode("NoSuchOp", {"x"}, {"t"}))
      .node(OnnxNode("NorThis", {"t"}, {"y"}));
  write(model.bytes());
  const auto refused = ShapedSession::open(path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unsupported);
  EXPECT_NE(refused.error().message().find("NoSuchOp"), std::string::npos);
  EXPECT_NE(refused.error().message().find("NorThis"), std::string::npos);
}

}  // namespace
}  // namespace ignis
