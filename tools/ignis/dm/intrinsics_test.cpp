#include "tools/ignis/dm/intrinsics.h"

#include <gtest/gtest.h>

namespace ignis::tools {
namespace {

TEST(Intrinsics, ReadsSizeFocalAndCentre) {
  const auto camera = parse_intrinsics("1280x720:900.5,630,350.25");
  ASSERT_TRUE(camera);
  EXPECT_EQ(camera->width_px, 1280);
  EXPECT_EQ(camera->height_px, 720);
  EXPECT_EQ(camera->focal_px, 900.5);
  EXPECT_EQ(camera->center_x_px, 630);
  EXPECT_EQ(camera->center_y_px, 350.25);
  EXPECT_EQ(parse_intrinsics("640x480:500")->center_x_px, 320);
  EXPECT_EQ(parse_intrinsics("640x480:500")->center_y_px, 240);
}

TEST(Intrinsics, RefusesEverythingElse) {
  for (const char* text :
       {"", "1280x720", "1280x720:", "1280x720:0", "1280x720:-5", "1280x720:nan", "1280x720:inf",
        "1280x720:900,1", "1280x720:900,1,2,3", "1280x721:900", "12.5x720:900", "8000x720:900",
        "1280X720:900", "1280x720:900 ", "x720:900"}) {
    const auto camera = parse_intrinsics(text);
    ASSERT_FALSE(camera) << text;
    EXPECT_EQ(camera.error().reason(), "Usage");
    EXPECT_NE(camera.error().message().find(std::string("'") + text + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace ignis::tools
