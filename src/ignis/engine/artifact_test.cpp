#include "ignis/engine/artifact.h"

#include "ignis/exec/artifact.h"
#include "ignis/runtime/device.h"

#include "tests/support/onnx_builder.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ignis {
namespace {

using testing::onnx_floats;
using testing::OnnxModel;
using testing::OnnxNode;
using testing::OnnxType;

// y = relu(conv(x, w)) with x [batch, 2, 8, 8]; the convolution has packed weights.
class CompileArtifactTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "ignis-compile-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    std::vector<float> weights;
    for (int i = 0; i < 16 * 2 * 3 * 3; ++i) weights.push_back(static_cast<float>(i % 7 - 3) / 4);
    OnnxModel model(17);
    model.graph.input("x", OnnxType::Float, {"batch", 2, 8, 8})
        .output("y", OnnxType::Float, {"batch", 16, 8, 8})
        .initializer(onnx_floats("w", {16, 2, 3, 3}, weights))
        .node(OnnxNode("Conv", {"x", "w"}, {"c"}).attr("pads", std::vector<int64_t>{1, 1, 1, 1}))
        .node(OnnxNode("Relu", {"c"}, {"y"}));
    std::ofstream(model_path(), std::ios::binary) << model.bytes();
    options_.session.dims["batch"] = 1;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string model_path() const { return folder_ + "/small.onnx"; }
  std::string write(const std::vector<std::byte>& bytes) const {
    const std::string path = folder_ + "/small.ignis";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  static HostTensor input() {
    std::vector<float> values;
    for (int i = 0; i < 2 * 8 * 8; ++i) values.push_back(static_cast<float>(i % 11 - 5));
    return HostTensor::from<float>(DType::Float32, {1, 2, 8, 8}, values);
  }

  std::string folder_;
  CompileOptions options_;
};

TEST_F(CompileArtifactTest, AnswersAsTheModelDoes) {
  options_.targets = {"cpu", "cpu:llvm:sse2"};
  options_.manifest["licence"] = "MIT";
  const auto compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  ASSERT_EQ(compiled->targets.size(), 2u);
  EXPECT_GT(compiled->targets[0].code_bytes, 0);
  EXPECT_EQ(compiled->inputs[0].shape, (Shape{1, 2, 8, 8}));
  const std::string path = write(compiled->bytes);
  const auto artifact = exec::Artifact::open(path);
  ASSERT_TRUE(artifact);
  EXPECT_EQ(artifact->manifest().at("model.name"), "small");
  EXPECT_EQ(artifact->manifest().at("licence"), "MIT");
  EXPECT_EQ(artifact->manifest().at("compiler").substr(0, 8), "llvm 19.");
  EXPECT_EQ(artifact->manifest().at("options.threads"), std::to_string(runtime::usable_threads()));
  EXPECT_EQ(artifact->manifest().at("model.blake2b").size(), 64u);

  SessionOptions reference;
  reference.device = "cpu:interp";
  reference.dims["batch"] = 1;
  auto model = Session::load(model_path(), reference);
  ASSERT_TRUE(model);
  const auto want = model->run({input()});
  for (const char* device : {"cpu", "cpu:llvm:sse2"}) {
    SCOPED_TRACE(device);
    SessionOptions options;
    options.device = device;
    auto session = Session::load(path, options);
    ASSERT_TRUE(session) << session.error().to_string();
    EXPECT_EQ(session->inputs()[0].name, "x");
    const auto got = session->run({input()});
    ASSERT_TRUE(got) << got.error().to_string();
    for (int64_t i = 0; i < got->at(0).count(); ++i) {
      EXPECT_NEAR(element_as_double(got->at(0), i), element_as_double(want->at(0), i), 1e-4);
    }
  }
}

TEST_F(CompileArtifactTest, EqualModelsGiveEqualBytes) {
  options_.session.threads = 2;  // how a kernel may be cut is part of its code
  const auto first = compile_artifact(model_path(), options_);
  const auto second = compile_artifact(model_path(), options_);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->bytes == second->bytes);  // not EXPECT_EQ: nobody wants to read them
}

TEST_F(CompileArtifactTest, SaysWhatDoesNotGo) {
  options_.targets = {"cpu:interp"};
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "TargetMismatch");
  options_.targets = {"cpu:llvm:sse2", "cpu:c:sse2"};
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "DuplicateTarget");
  options_.targets = {};
  EXPECT_FALSE(compile_artifact(model_path(), options_));
  options_.targets = {"cpu"};
  const auto compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled);
  const std::string path = write(compiled->bytes);
  SessionOptions bound;
  bound.dims["batch"] = 1;
  EXPECT_EQ(Session::load(path, bound).error().reason(), "WrongOption");
  SessionOptions reference;
  reference.device = "cpu:interp";
  EXPECT_EQ(Session::load(path, reference).error().reason(), "TargetMismatch");
  auto session = Session::load(path);
  ASSERT_TRUE(session);
  const auto each = [](KernelComparison) { return Status(); };
  EXPECT_EQ(session->compare_kernels({input()}, each).error().reason(), "NoGraph");
}

}  // namespace
}  // namespace ignis
