// Cabin models out of artifacts: the same answers as from the model file, without a compiler.

#include "ignis/pipeline/driver_monitoring/build/compile_parts.h"

#include "ignis/pipeline/driver_monitoring/artifact_model.h"
#include "ignis/pipeline/driver_monitoring/build/models.h"
#include "ignis/pipeline/driver_monitoring/build/test_frames.h"
#include "ignis/pipeline/driver_monitoring/build/test_synthetic_detector.h"
#include "ignis/pipeline/driver_monitoring/build/test_synthetic_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace ignis::pipeline {
namespace {

using testing::TestFrame;

class CompileParts : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "ignis-parts-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const auto& bytes) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  // Compiles `path` for frames of camera A; returns the artifact's path.
  std::string compile(const std::string& path, Profile want) const {
    CompileOptions options;
    PartsOptions parts;
    parts.cameras = {testing::camera_of(testing::layout_a())};
    parts.takes_tight_frames = true;
    const auto profile = add_parts(path, parts, options);
    EXPECT_TRUE(profile) << profile.error().to_string();
    EXPECT_EQ(*profile, want);
    const auto compiled = compile_artifact(path, options);
    EXPECT_TRUE(compiled) << compiled.error().to_string();
    if (!compiled) return "";
    EXPECT_FALSE(compiled->parts.empty());
    return write("model.ignis", compiled->bytes);
  }
  static void run(Model& model, TestFrame& frame, std::vector<float>& output) {
    const Status bound = model.bind(frame.frame.layout, testing::camera_of(frame.frame.layout));
    ASSERT_TRUE(bound) << bound.error().to_string();
    const auto times = model.run(frame.frame, {0.01f, 0.02f, -0.03f}, testing::soon());
    ASSERT_TRUE(times) << times.error().to_string();
    output.assign(model.output().begin(), model.output().end());
  }
  // Both models give the same output for the same frame, bit for bit: it is the same code.
  static void expect_equal(Model& got, Model& want, const FrameLayout& layout) {
    TestFrame frame(layout);
    frame.fill_random(3);
    std::vector<float> a, b;
    run(got, frame, a);
    run(want, frame, b);
    EXPECT_FALSE(b.empty());
    EXPECT_EQ(a, b);
    EXPECT_TRUE(got.decode().reasons.is_empty() == want.decode().reasons.is_empty());
  }

  std::string folder_;
};

TEST_F(CompileParts, ATwoSidedModelRunsFromItsArtifact) {
  const std::string onnx = write("model.onnx", testing::SyntheticModel().bytes());
  const std::string path = compile(onnx, Profile::Comma553);
  const auto artifact = exec::Artifact::open(path);
  ASSERT_TRUE(artifact) << artifact.error().to_string();
  EXPECT_EQ(artifact->geometry()->profile, "comma-553");
  EXPECT_EQ(artifact->geometry()->width_px, 1440);
  EXPECT_EQ(artifact->geometry()->focal_px, 567);
  EXPECT_TRUE(std::any_of(artifact->slices().begin(), artifact->slices().end(), [](const auto& s) {
    return s.name == "face_descs_lhd" && s.stop - s.start == 12;
  }));
  // Padded rows and tight ones; I420's luma is that of tight NV12.
  EXPECT_EQ(artifact->parts().size(), 2u);
  auto model = load_artifact_model(path);
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ((*model)->identity().hash, artifact->identity());
  EXPECT_EQ((*model)->identity().profile, "comma-553");
  EXPECT_EQ((*model)->identity().checkpoint, "synthetic/1");
  EXPECT_EQ((*model)->identity().name, "model.ignis");
  auto want = load_model(onnx);
  ASSERT_TRUE(want) << want.error().to_string();
  expect_equal(**model, **want, testing::layout_a());
  expect_equal(**model, **want, *tight_nv12_layout(1928, 1208));

  // Another camera: refused by name where there is no compiler, compiled where there is one.
  const FrameLayout other = testing::layout_b();
  const Status refused = (*model)->bind(other, testing::camera_of(other));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "UnknownGeometry");
  EXPECT_NE(refused.error().message().find("1344x760"), std::string::npos);
  EXPECT_NE(refused.error().message().find("1928x1208"), std::string::npos);
  EXPECT_TRUE((*model)->bind(testing::layout_a(), testing::camera_of(testing::layout_a())));
  auto completed = load_model(path);
  ASSERT_TRUE(completed) << completed.error().to_string();
  expect_equal(**completed, **want, other);
}

TEST_F(CompileParts, AFaceDetectorRunsFromItsArtifact) {
  const std::string onnx = write("face.onnx", testing::SyntheticDetector().bytes());
  const std::string path = compile(onnx, Profile::Face);
  auto model = load_artifact_model(path);
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ((*model)->identity().profile, "face");
  auto want = load_model(onnx);
  ASSERT_TRUE(want) << want.error().to_string();
  for (const auto& make : {nv12_layout, tight_nv12_layout, i420_layout}) {
    expect_equal(**model, **want, *make(1928, 1208));
  }
  StageOptions reference;
  reference.device = "cpu:interp";
  EXPECT_FALSE(load_artifact_model(path, reference));
  EXPECT_EQ(load_artifact_model(path, {}, "comma-553").error().reason(), "ArtifactMismatch");
}

TEST_F(CompileParts, OtherModelsAreLeftAsTheyAre) {
  ignis::testing::OnnxModel model(17);
  model.graph.input("x", ignis::testing::OnnxType::Float, {2})
      .output("y", ignis::testing::OnnxType::Float, {2})
      .node(ignis::testing::OnnxNode("Relu", {"x"}, {"y"}));
  const std::string path = write("relu.onnx", model.bytes());
  CompileOptions options;
  PartsOptions parts;
  auto profile = add_parts(path, parts, options);
  ASSERT_TRUE(profile);
  EXPECT_FALSE(profile->has_value());
  EXPECT_FALSE(options.geometry);
  EXPECT_FALSE(options.make_parts);
  parts.profile = "face";
  EXPECT_EQ(add_parts(path, parts, options).error().reason(), "ArtifactMismatch");
  parts.profile = "cat";
  EXPECT_EQ(add_parts(path, parts, options).error().code(), ErrorCode::NotFound);
  parts.profile = "none";
  EXPECT_FALSE(add_parts(path, parts, options)->has_value());
}

}  // namespace
}  // namespace ignis::pipeline
