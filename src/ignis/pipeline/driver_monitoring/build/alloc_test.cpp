// A program of its own: it counts every allocation of the process while a bound model runs.

#include "ignis/pipeline/driver_monitoring/build/models.h"
#include "ignis/pipeline/driver_monitoring/build/test_frames.h"
#include "ignis/pipeline/driver_monitoring/build/test_synthetic_detector.h"
#include "ignis/pipeline/driver_monitoring/build/test_synthetic_model.h"

#include "tests/support/count_allocations.h"
#include "tests/support/onnx_builder.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ignis::pipeline {
namespace {

// The tenth frame and all that follow cost no allocation, whether there is a face to describe or not.
void expect_no_allocations(const std::string& path) {
  SCOPED_TRACE(path);
  auto model = load_model(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(model) << model.error().to_string();
  testing::TestFrame frame(testing::layout_a());
  ASSERT_TRUE((*model)->bind(frame.frame.layout, testing::camera_of(frame.frame.layout)));
  int64_t made = 0;
  for (int i = 0; i < 30; ++i) {
    for (int x = 0; x < 64; ++x) {
      for (int y = 0; y < 64; ++y) {
        frame.at(0, 900 + 8 * i + x, 500 + y) = std::byte{235};  // a face that moves
      }
    }
    const int64_t before = ignis::testing::allocation_count();
    const auto times = (*model)->run(frame.frame, {0, 0, 0}, testing::soon());
    const Decoded decoded = (*model)->decode();
    if (i >= 10) made += ignis::testing::allocation_count() - before;
    ASSERT_TRUE(times) << times.error().to_string();
    ASSERT_TRUE(decoded.reasons.is_empty());
  }
  EXPECT_EQ(made, 0);
}

TEST(Allocations, TheCounterCounts) {
  const int64_t before = ignis::testing::allocation_count();
  auto something = std::make_unique<std::vector<int>>(100);
  EXPECT_EQ(ignis::testing::allocation_count() - before, 2);
  EXPECT_EQ(something->size(), 100u);
}

// A network with the 38 outputs of the one-sided contract, all between 0 and 1: the planes' means through one layer.
std::string write_one_sided(const std::string& name) {
  using namespace ignis::testing;  // NOLINT: the builder
  std::vector<float> weights, bias;
  for (int i = 0; i < 6 * 38; ++i) weights.push_back(static_cast<float>(i % 11 - 5) / 8);
  for (int i = 0; i < 38; ++i) bias.push_back(static_cast<float>(i % 7 - 3) / 4);
  OnnxModel model(13);
  model.graph.input("input_img", OnnxType::Float, {1, 6, 320, 160})
      .output("outputs", OnnxType::Float, {1, 38})
      .initializer(onnx_floats("w", {6, 38}, weights))
      .initializer(onnx_floats("b", {38}, bias))
      .node(OnnxNode("GlobalAveragePool", {"input_img"}, {"mean"}))
      .node(OnnxNode("Flatten", {"mean"}, {"flat"}))
      .node(OnnxNode("Gemm", {"flat", "w", "b"}, {"logits"}))
      .node(OnnxNode("Sigmoid", {"logits"}, {"outputs"}));
  const std::string path = (std::filesystem::temp_directory_path() / name).string();
  std::ofstream(path, std::ios::binary) << model.bytes();
  return path;
}

TEST(Allocations, ABoundModelMakesNone) {
  expect_no_allocations(write_one_sided("ignis_alloc_38.onnx"));
  expect_no_allocations(testing::SyntheticModel().write("ignis_alloc_553.onnx"));
  expect_no_allocations(testing::SyntheticDetector().write("ignis_alloc_face.onnx"));
}

}  // namespace
}  // namespace ignis::pipeline
