// The face profile: its RGB picture against a plain loop, and the model on a small synthetic detector.

#include "ignis/engine/evaluate.h"
#include "ignis/pipeline/driver_monitoring/build/models.h"
#include "ignis/pipeline/driver_monitoring/build/rgb_graph.h"
#include "ignis/pipeline/driver_monitoring/build/test_frames.h"
#include "ignis/pipeline/driver_monitoring/build/test_synthetic_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace ignis::pipeline {
namespace {

using testing::SyntheticDetector;
using testing::TestFrame;

double sample(TestFrame& frame, int plane, double x, double y) {
  const int part = plane == 0 ? 1 : 2;
  const int width = frame.frame.layout.width_px / part;
  const int height = frame.frame.layout.height_px / part;
  x = std::clamp(x, 0.0, width - 1.0);
  y = std::clamp(y, 0.0, height - 1.0);
  const int x0 = static_cast<int>(x), y0 = static_cast<int>(y);
  const int x1 = std::min(x0 + 1, width - 1), y1 = std::min(y0 + 1, height - 1);
  const double fx = x - x0, fy = y - y0;
  return (frame.value(plane, x0, y0) * (1 - fx) + frame.value(plane, x1, y0) * fx) * (1 - fy) +
         (frame.value(plane, x0, y1) * (1 - fx) + frame.value(plane, x1, y1) * fx) * fy;
}

TEST(RgbGraph, ScalesConvertsAndPads) {
  FrameLayout full = *i420_layout(200, 300);
  full.range = ColorRange::Full;
  for (const FrameLayout& layout : {*nv12_layout(640, 480), *tight_nv12_layout(96, 64), full}) {
    SCOPED_TRACE(to_string(layout));
    TestFrame frame(layout);
    frame.fill_random(21);
    const auto graph = make_rgb_graph(layout, 96, 64);
    ASSERT_TRUE(graph) << graph.error().to_string();
    HostTensor bytes = HostTensor::zeros(DType::UInt8, graph->frame.shape());
    bytes.bytes = frame.memory->bytes;
    const auto outputs = evaluate({&graph->rgb, 1}, {&graph->frame, 1}, {&bytes, 1}, {});
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    const float* rgb = outputs->front().data<float>();
    const double scale = std::max(layout.width_px / 96.0, layout.height_px / 64.0);
    EXPECT_DOUBLE_EQ(graph->scale, scale);
    for (int y = 0; y < 64; ++y) {
      for (int x = 0; x < 96; ++x) {
        double want[3] = {0, 0, 0};
        if (x * scale < layout.width_px && y * scale < layout.height_px) {
          const double px = (x + 0.5) * scale, py = (y + 0.5) * scale;
          double luma = sample(frame, 0, px - 0.5, py - 0.5);
          double u = sample(frame, 1, px / 2 - 0.5, py / 2 - 0.5) - 128;
          double v = sample(frame, 2, px / 2 - 0.5, py / 2 - 0.5) - 128;
          if (layout.range == ColorRange::Limited) {
            luma = (luma - 16) * 255 / 219;
            u *= 255.0 / 224;
            v *= 255.0 / 224;
          }
          // From the definition: R - Y = 2 (1 - Kr) V', B - Y = 2 (1 - Kb) U', with Kr 0.299 and Kb 0.114.
          want[0] = luma + 2 * (1 - 0.299) * v;
          want[2] = luma + 2 * (1 - 0.114) * u;
          want[1] = (luma - 0.299 * want[0] - 0.114 * want[2]) / 0.587;
          for (double& value : want) value = std::clamp(value, 0.0, 255.0);
        }
        for (int c = 0; c < 3; ++c) {
          ASSERT_NEAR(rgb[(c * 64 + y) * 96 + x], want[c], 0.01) << c << " " << x << " " << y;
        }
      }
    }
  }
}

class FaceModel : public ::testing::Test {
 protected:
  std::unique_ptr<Model> load(const SyntheticDetector& detector, const ModelOptions& options) {
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    const std::string path = detector.write("ignis_face_" + test + ".onnx");
    auto model = load_model(path, options);
    std::filesystem::remove(path);
    EXPECT_TRUE(model) << model.error().to_string();
    return model ? *std::move(model) : nullptr;
  }
};

TEST_F(FaceModel, KnowsFacePoseAndPositionOnly) {
  for (const DriverSide side : {DriverSide::Left, DriverSide::Right}) {
    ModelOptions options;
    options.side = side;
    const auto model = load({}, options);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->identity().profile, "face");
    TestFrame frame(testing::layout_a());
    const Camera camera = testing::camera_of(frame.frame.layout);
    const Status bound = model->bind(frame.frame.layout, camera);
    ASSERT_TRUE(bound) << bound.error().to_string();
    // Grey, and one bright spot: a face about (1200, 500).
    frame.fill([](int plane, int x, int y) {
      if (plane != 0) return 128;
      return std::abs(x - 1200) < 12 && std::abs(y - 500) < 12 ? 235 : 60;
    });
    const auto times = model->run(frame.frame, {0, 0, 0}, testing::soon());
    ASSERT_TRUE(times) << times.error().to_string();
    const Decoded decoded = model->decode();
    ASSERT_TRUE(decoded.reasons.is_empty());
    const Prediction& p = decoded.prediction;
    const bool is_left = side == DriverSide::Left;
    const DriverData& data = is_left ? p.left : p.right;
    const uint32_t known = is_left ? p.known_left : p.known_right;
    EXPECT_EQ(known, bit(DriverField::FaceProb) | bit(DriverField::FaceOrientation) |
                         bit(DriverField::FaceOrientationStd) | bit(DriverField::FacePosition) |
                         bit(DriverField::FacePositionStd));
    EXPECT_EQ(is_left ? p.known_right : p.known_left, 0u);
    EXPECT_FALSE(p.known_wheel);
    EXPECT_GT(data.face_prob, 0.7f);
    EXPECT_EQ(data.left_eye_prob, 0.0f);
    ASSERT_TRUE(p.has_face_box);
    // 1928 / 480 frame pixels for one of the network's; a cell is 4 of those.
    const double cell_px = 4 * 1928.0 / 480;
    EXPECT_NEAR((p.face.x0 + p.face.x1) / 2, 1200, cell_px);
    EXPECT_NEAR((p.face.y0 + p.face.y1) / 2, 500, cell_px);
    EXPECT_NEAR(p.face.x1 - p.face.x0, 16 * cell_px, 0.1);
    EXPECT_LT(p.face.landmarks[0][0], p.face.landmarks[1][0]);
    EXPECT_NEAR(data.face_position[0], 1200.0 / 1928 - 0.5, cell_px / 1928);
    EXPECT_NEAR(data.face_position[1], 500.0 / 1208 - 0.5, cell_px / 1208);
    for (const float angle : data.face_orientation) EXPECT_NEAR(angle, 0, 0.02);
    for (const float std : data.face_orientation_std) EXPECT_GT(std, 0.0f);
  }
}

// The same ray has the same position in another camera's picture.
TEST_F(FaceModel, PositionsAreThoseOfTheReferenceImage) {
  const auto model = load({}, {});
  ASSERT_NE(model, nullptr);
  TestFrame frame(testing::layout_b());
  ASSERT_TRUE(model->bind(frame.frame.layout, testing::camera_of(frame.frame.layout)));
  // (1200, 500) of camera A: 672 + 236 * 0.75 = 849, 380 - 104 * 0.75 = 302.
  frame.fill([](int plane, int x, int y) {
    if (plane != 0) return 128;
    return std::abs(x - 849) < 9 && std::abs(y - 302) < 9 ? 235 : 60;
  });
  ASSERT_TRUE(model->run(frame.frame, {0, 0, 0}, testing::soon()));
  const DriverData data = model->decode().prediction.left;
  const double cell_px = 4 * 1344.0 / 480 / 0.75;
  EXPECT_NEAR(data.face_position[0], 1200.0 / 1928 - 0.5, cell_px / 1928);
  EXPECT_NEAR(data.face_position[1], 500.0 / 1208 - 0.5, cell_px / 1208);
}

TEST_F(FaceModel, NoFaceIsKnownAndNothingElse) {
  const auto model = load({}, {});
  ASSERT_NE(model, nullptr);
  TestFrame frame(testing::layout_a());
  ASSERT_TRUE(model->bind(frame.frame.layout, testing::camera_of(frame.frame.layout)));
  EXPECT_EQ(model->decode().reasons, Reasons(Reason::OutputSize)) << "nothing has run yet";
  frame.fill([](int plane, int x, int) { return plane != 0 ? 128 : 40 + x % 7; });
  ASSERT_TRUE(model->run(frame.frame, {0, 0, 0}, testing::soon()));
  const Decoded decoded = model->decode();
  EXPECT_TRUE(decoded.reasons.is_empty());
  EXPECT_EQ(decoded.prediction.known_left, bit(DriverField::FaceProb));
  EXPECT_FALSE(decoded.prediction.left.has_lists);
  EXPECT_FALSE(decoded.prediction.has_face_box);
  EXPECT_LT(decoded.prediction.left.face_prob, 0.5f);
}

TEST_F(FaceModel, ANonFiniteMapIsNamed) {
  SyntheticDetector detector;
  detector.has_nan = true;
  const auto model = load(detector, {});
  ASSERT_NE(model, nullptr);
  TestFrame frame(testing::layout_a());
  ASSERT_TRUE(model->bind(frame.frame.layout, testing::camera_of(frame.frame.layout)));
  ASSERT_TRUE(model->run(frame.frame, {0, 0, 0}, testing::soon()));
  const Decoded decoded = model->decode();
  EXPECT_TRUE(decoded.reasons.has(Reason::NonFinite));
  EXPECT_EQ(decoded.head, "heat");
  EXPECT_EQ(decoded.prediction.known_left, 0u);
}

}  // namespace
}  // namespace ignis::pipeline
