// The one-sided model: its input planes against a plain loop, and the genuine file against golden outputs.

#include "ignis/engine/evaluate.h"
#include "ignis/pipeline/driver_monitoring/build/models.h"
#include "ignis/pipeline/driver_monitoring/build/planes_graph.h"
#include "ignis/pipeline/driver_monitoring/build/test_frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ignis::pipeline {
namespace {

using testing::TestFrame;

Result<HostTensor> run_planes(TestFrame& frame, const Camera& camera, DriverSide side,
                              const char* device = "cpu") {
  IGNIS_TRY_ASSIGN(const PlanesGraph graph, make_planes_graph(frame.frame.layout, camera, side));
  HostTensor bytes = HostTensor::zeros(DType::UInt8, graph.frame.shape());
  bytes.bytes = frame.memory->bytes;
  EvaluateOptions options;
  options.device = device;
  IGNIS_TRY_ASSIGN(std::vector<HostTensor> outputs,
                   evaluate({&graph.planes, 1}, {&graph.frame, 1}, {&bytes, 1}, options));
  return std::move(outputs.front());
}

// One sample of a plane, bilinear, edges repeated; (x, y) in plane pixels with centres at integers.
double sample(TestFrame& frame, int plane, double x, double y) {
  const int part = plane == 0 ? 1 : 2;
  const int width = frame.frame.layout.width_px / part,
            height = frame.frame.layout.height_px / part;
  x = std::clamp(x, 0.0, width - 1.0);
  y = std::clamp(y, 0.0, height - 1.0);
  const int x0 = static_cast<int>(x), y0 = static_cast<int>(y);
  const int x1 = std::min(x0 + 1, width - 1), y1 = std::min(y0 + 1, height - 1);
  const double fx = x - x0, fy = y - y0;
  return (frame.value(plane, x0, y0) * (1 - fx) + frame.value(plane, x1, y0) * fx) * (1 - fy) +
         (frame.value(plane, x0, y1) * (1 - fx) + frame.value(plane, x1, y1) * fx) * fy;
}

// The packing written down once more, from the model's read-me: crop, mirror, scale to 640x320, six planes.
void expect_planes(TestFrame& frame, double left, double top, double width, double height,
                   bool is_mirrored, const HostTensor& got) {
  ASSERT_EQ(got.shape, (Shape{1, 6, 320, 160}));
  int64_t different = 0;
  for (int plane = 0; plane < 6; ++plane) {
    for (int row = 0; row < 320; ++row) {
      for (int column = 0; column < 160; ++column) {
        const int odd_row = plane == 1 || plane == 3 ? 1 : 0;
        const int odd_column = plane == 2 || plane == 3 ? 1 : 0;
        double want = 0;
        if (plane < 4) {
          const int x = 2 * column + odd_column, y = 2 * row + odd_row;
          const double from_left = ((is_mirrored ? 319 - x : x) + 0.5) * width / 320;
          want = sample(frame, 0, left + from_left - 0.5, top + (y + 0.5) * height / 640 - 0.5);
        } else {
          const double from_left = ((is_mirrored ? 159 - column : column) + 0.5) * width / 160;
          want = sample(frame, plane - 3, (left + from_left) / 2 - 0.5,
                        (top + (row + 0.5) * height / 320) / 2 - 0.5);
        }
        want = (std::nearbyint(want) - 128) * 0.0078125;
        const float value = got.data<float>()[(plane * 320 + row) * 160 + column];
        // One step where float32 and double round to different bytes.
        ASSERT_NEAR(value, want, 0.0078126) << plane << ", " << row << ", " << column;
        different += std::abs(value - want) > 1e-6 ? 1 : 0;
      }
    }
  }
  EXPECT_LT(different, 300) << "of 307200: more than rounding explains";
}

TEST(PlanesGraph, CropsMirrorsScalesAndPacks) {
  // Camera A, left: 251x502 at (1079, 157); right: at (630, 157), mirrored. Camera B sees the same rays at 3/4 of the
  // size: 672 + 115 * 0.75 = 758.25, 380 - 447 * 0.75 = 44.75; 672 - 334 * 0.75 = 421.5.
  TestFrame a(testing::layout_a()), b(testing::layout_b()), i420(*i420_layout(1928, 1208));
  for (TestFrame* frame : {&a, &b, &i420}) frame->fill_random(11);
  const struct {
    TestFrame* frame;
    DriverSide side;
    double left, top, width, height;
  } cases[] = {{&a, DriverSide::Left, 1079, 157, 251, 502},
               {&a, DriverSide::Right, 630, 157, 251, 502},
               {&b, DriverSide::Left, 758.25, 44.75, 188.25, 376.5},
               {&b, DriverSide::Right, 421.5, 44.75, 188.25, 376.5},
               {&i420, DriverSide::Right, 630, 157, 251, 502}};
  for (const auto& c : cases) {
    SCOPED_TRACE(to_string(c.frame->frame.layout) +
                 (c.side == DriverSide::Left ? " left" : " right"));
    const auto planes = run_planes(*c.frame, testing::camera_of(c.frame->frame.layout), c.side);
    ASSERT_TRUE(planes) << planes.error().to_string();
    expect_planes(*c.frame, c.left, c.top, c.width, c.height, c.side == DriverSide::Right, *planes);
  }
}

TEST(PlanesGraph, RepeatsTheEdgeWhereTheWindowLeavesThePicture) {
  TestFrame frame(*tight_nv12_layout(640, 480));
  frame.fill_random(12);
  // The window of 141.7x283.4 px starts at x = 560 + 115 * 320 / 567 = 624.9, so only its first columns are inside.
  Camera camera = *parse_camera("640x480,focal=320,center=480:260");
  const auto planes = run_planes(frame, camera, DriverSide::Left);
  ASSERT_TRUE(planes) << planes.error().to_string();
  const double scale = 320.0 / 567;
  expect_planes(frame, 480 + 115 * scale, 260 - 447 * scale, 251 * scale, 502 * scale, false,
                *planes);
  camera.center_x_px = 600;
  const auto outside = run_planes(frame, camera, DriverSide::Left);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().reason(), "UnknownGeometry");
}

std::string models_folder() {
  const char* shared = std::getenv("IGNIS_SHARED");
  return (shared != nullptr ? std::string(shared) : std::string(IGNIS_SOURCE_DIR) + "/../shared") +
         "/models/";
}

std::vector<char> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// A frame in which the left window is 320x640 pixels at (100, 40): the planes are read without any scaling.
TestFrame frame_of_planes(const std::vector<char>& planes, PixelFormat format, bool is_mirrored) {
  TestFrame frame(format == PixelFormat::Nv12 ? *nv12_layout(640, 720) : *i420_layout(640, 720));
  frame.fill_random(13);
  const auto byte = [&](int plane, int row, int column) {
    return static_cast<int>(static_cast<unsigned char>(
        planes[static_cast<size_t>((plane * 320 + row) * 160 + column)]));
  };
  for (int y = 0; y < 640; ++y) {
    for (int x = 0; x < 320; ++x) {
      const int from = is_mirrored ? 319 - x : x;
      frame.at(0, 100 + x, 40 + y) =
          static_cast<std::byte>(byte((y % 2) + 2 * (from % 2), y / 2, from / 2));
    }
  }
  for (int plane = 1; plane <= 2; ++plane) {
    for (int y = 0; y < 320; ++y) {
      for (int x = 0; x < 160; ++x) {
        frame.at(plane, 50 + x, 20 + y) =
            static_cast<std::byte>(byte(plane + 3, y, is_mirrored ? 159 - x : x));
      }
    }
  }
  return frame;
}

Camera camera_of_planes(DriverSide side) {
  Camera camera;
  camera.name = "planes";
  camera.width_px = 640;
  camera.height_px = 720;
  const double scale = 320.0 / 251;
  camera.focal_px = 567 * scale;
  camera.center_x_px = 100 + (side == DriverSide::Left ? -115 : 334) * scale;
  camera.center_y_px = 40 + 447 * scale;
  return camera;
}

class GoldenComma38 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(models_folder() + "golden")) {
      GTEST_SKIP() << "SKIPPED: no golden files at " << models_folder()
                   << "; set IGNIS_SHARED to the folder that holds models/.";
    }
  }
};

// Within 1e-4 from the frame to the output vector, both formats, both sides.
TEST_F(GoldenComma38, EqualsTheReferenceFromTheFrameOn) {
  for (const DriverSide side : {DriverSide::Left, DriverSide::Right}) {
    ModelOptions options;
    options.side = side;
    auto model = load_model(models_folder() + "dmonitoring_model_0.8.9.onnx", options);
    ASSERT_TRUE(model) << model.error().to_string();
    EXPECT_EQ((*model)->identity().profile, "comma-38");
    for (const PixelFormat format : {PixelFormat::Nv12, PixelFormat::I420}) {
      for (const char* name : {"face_front", "face_mirrored", "face_sunglasses", "face_eyes_closed",
                               "flat_grey", "noise"}) {
        SCOPED_TRACE(std::string(name) + ", " + std::string(to_string(format)));
        const std::string golden = models_folder() + "golden/" + name;
        TestFrame frame =
            frame_of_planes(read_bytes(golden + ".u8"), format, side == DriverSide::Right);
        if (std::string(name) == "face_front") {
          const Status bound = (*model)->bind(frame.frame.layout, camera_of_planes(side));
          ASSERT_TRUE(bound) << bound.error().to_string();
        }
        ASSERT_TRUE((*model)->run(frame.frame, {0, 0, 0}, testing::soon()));
        const std::vector<char> bytes = read_bytes(golden + ".out.f32");
        std::vector<float> want(bytes.size() / sizeof(float));
        std::memcpy(want.data(), bytes.data(), bytes.size());
        ASSERT_EQ((*model)->output().size(), want.size());
        for (size_t i = 0; i < want.size(); ++i) {
          ASSERT_NEAR((*model)->output()[i], want[i], 1e-4 + 1e-4 * std::abs(want[i])) << i;
        }
        const Decoded decoded = (*model)->decode();
        EXPECT_TRUE(decoded.reasons.is_empty()) << decoded.head;
        const DriverData& data =
            side == DriverSide::Left ? decoded.prediction.left : decoded.prediction.right;
        EXPECT_EQ(data.face_prob, (*model)->output()[12]);
        EXPECT_EQ(data.face_prob > 0.7f, std::string(name).starts_with("face"));
      }
    }
  }
}

}  // namespace
}  // namespace ignis::pipeline
