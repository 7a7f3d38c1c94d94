#include "ignis/pipeline/driver_monitoring/camera.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace ignis::pipeline {
namespace {

FrameLayout layout(int width_px, int height_px, int64_t stride, uint32_t sensor_id = 0) {
  FrameLayout l;
  l.width_px = width_px;
  l.height_px = height_px;
  l.y_stride = stride;
  l.sensor_id = sensor_id;
  return l;
}

std::array<float, 9> model_matrix(const Camera& camera) {
  return warp_matrix(camera, 567.0, 720, 356);
}

TEST(Camera, MatricesOfBothCamerasAreExact) {
  const auto a = find_camera(known_cameras(), layout(1928, 1208, 2048));
  ASSERT_TRUE(a);
  EXPECT_EQ(model_matrix(*a), (std::array<float, 9>{1, 0, 244, 0, 1, 248, 0, 0, 1}));
  const auto b = find_camera(known_cameras(), layout(1344, 760, 1408));
  ASSERT_TRUE(b);
  EXPECT_EQ(model_matrix(*b), (std::array<float, 9>{0.75, 0, 132, 0, 0.75, 113, 0, 0, 1}));
}

// Section 10.6: the same width with height 1200. The reference took any other width for camera A as well.
TEST(Camera, UnknownGeometryNamesWhatIsKnown) {
  for (const FrameLayout& other : {layout(1928, 1200, 2048), layout(640, 480, 640)}) {
    const auto camera = find_camera(known_cameras(), other);
    ASSERT_FALSE(camera);
    EXPECT_EQ(camera.error().code(), ErrorCode::NotFound);
    EXPECT_EQ(camera.error().reason(), "UnknownGeometry");
    EXPECT_NE(camera.error().message().find(std::to_string(other.width_px)), std::string::npos);
    EXPECT_NE(camera.error().message().find("1928x1208"), std::string::npos);
    EXPECT_NE(camera.error().message().find("1344x760"), std::string::npos);
  }
  EXPECT_NE(find_camera({}, layout(2, 2, 2)).error().message().find("nothing"), std::string::npos);
}

TEST(Camera, StrideAndSensorMustFitWhereStated) {
  Camera camera = known_cameras()[0];
  camera.y_stride = 2048;
  camera.sensor_id = 7;
  const std::vector<Camera> cameras{camera};
  EXPECT_TRUE(find_camera(cameras, layout(1928, 1208, 2048, 7)));
  EXPECT_FALSE(find_camera(cameras, layout(1928, 1208, 1928, 7)));
  EXPECT_FALSE(find_camera(cameras, layout(1928, 1208, 2048, 8)));
  EXPECT_FALSE(find_camera(cameras, layout(1928, 1208, 2048)));
}

TEST(Camera, TheOneThatStatesMoreWinsAndADrawIsAnError) {
  Camera own = known_cameras()[0];
  own.name = "wide";
  own.focal_px = 400;
  own.sensor_id = 7;
  std::vector<Camera> cameras{known_cameras()[0], own};
  EXPECT_EQ(find_camera(cameras, layout(1928, 1208, 2048, 7))->name, "wide");
  EXPECT_EQ(find_camera(cameras, layout(1928, 1208, 2048, 3))->name, "cabin-a");
  cameras[1].sensor_id = 0;
  const auto draw = find_camera(cameras, layout(1928, 1208, 2048, 7));
  ASSERT_FALSE(draw);
  EXPECT_EQ(draw.error().reason(), "UnknownGeometry");
  EXPECT_NE(draw.error().message().find("wide"), std::string::npos);
  // The way out that the message names: one's own in place of the known one.
  EXPECT_EQ(find_camera(known_cameras_and({&cameras[1], 1}), layout(1928, 1208, 2048))->name,
            "wide");
  EXPECT_EQ(known_cameras_and({&cameras[1], 1}).size(), 2u);
  EXPECT_EQ(known_cameras_and({}).size(), 2u);
}

TEST(Camera, IntrinsicsGivenByAUser) {
  const auto camera = parse_camera("1280x720,focal=610.5,center=641:359,pose_focal=640,sensor=9");
  ASSERT_TRUE(camera) << camera.error().to_string();
  EXPECT_EQ(camera->width_px, 1280);
  EXPECT_EQ(camera->height_px, 720);
  EXPECT_EQ(camera->focal_px, 610.5);
  EXPECT_EQ(camera->center_x_px, 641);
  EXPECT_EQ(camera->center_y_px, 359);
  EXPECT_EQ(camera->pose_focal_px, 640);
  EXPECT_EQ(camera->sensor_id, 9u);
  EXPECT_EQ(parse_camera("640x480,focal=500")->center_y_px, 240);
  // 500 / 567 = 0.88183…; 320 - 0.88183421 * 720 = -314.92063, worked out by hand.
  const auto m = model_matrix(*parse_camera("640x480,focal=500"));
  EXPECT_FLOAT_EQ(m[0], 0.88183421f);
  EXPECT_FLOAT_EQ(m[2], -314.92063f);
}

TEST(Camera, RefusesWhatIsNoCamera) {
  for (const char* text :
       {"", "x", "1280x720", "1280x720,focal=", "1280x720,focal=0", "1280x720,focal=nan",
        "1280x720,focal=inf", "1280x720,focal=-5", "0x720,focal=5", "5000x720,focal=50",
        "1280.5x720,focal=5", "1280x720,focal=610,", "1280x720,focal=610,centre=1:2",
        "1280x720,focal=610,center=nan:2", "1280x720,focal=610,sensor=-1", "1e300x720,focal=610",
        "1280x720,focal=610x"}) {
    const auto camera = parse_camera(text);
    ASSERT_FALSE(camera) << text;
    EXPECT_EQ(camera.error().reason(), "BadCamera") << text;
  }
}

}  // namespace
}  // namespace ignis::pipeline
