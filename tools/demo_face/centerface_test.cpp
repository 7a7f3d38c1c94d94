#include "tools/demo_face/centerface.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ignis::demo {
namespace {

// A 6 x 8 grid (a picture of 32 x 24 pixels) without any face.
struct Outputs {
  HostTensor heatmap = HostTensor::zeros(DType::Float32, {1, 1, 6, 8});
  HostTensor scale = HostTensor::zeros(DType::Float32, {1, 2, 6, 8});
  HostTensor offset = HostTensor::zeros(DType::Float32, {1, 2, 6, 8});
  HostTensor landmarks = HostTensor::zeros(DType::Float32, {1, 10, 6, 8});

  static void set(HostTensor& t, int64_t channel, int64_t row, int64_t column, float value) {
    t.data<float>()[(channel * 6 + row) * 8 + column] = value;
  }
  void add(int64_t row, int64_t column, float score, float height_cells, float width_cells) {
    set(heatmap, 0, row, column, score);
    set(scale, 0, row, column, std::log(height_cells));
    set(scale, 1, row, column, std::log(width_cells));
  }
  Result<std::vector<Face>> decode() const {
    return decode_faces({heatmap, scale, offset, landmarks});
  }
};

TEST(DecodeFaces, NoCellAboveTheThresholdIsNoFace) {
  Outputs o;
  o.add(2, 3, 0.5F, 2, 2);  // the threshold itself does not count
  o.add(4, 6, std::numeric_limits<float>::quiet_NaN(), 2, 2);
  EXPECT_TRUE(o.decode()->empty());
}

TEST(DecodeFaces, BoxAndLandmarksByHand) {
  Outputs o;
  o.add(2, 3, 0.9F, 3, 2);                    // 12 px high, 8 px wide
  Outputs::set(o.offset, 0, 2, 3, 0.25F);     // y
  Outputs::set(o.offset, 1, 2, 3, -0.25F);    // x
  Outputs::set(o.landmarks, 0, 2, 3, 0.5F);   // first landmark: half the height down,
  Outputs::set(o.landmarks, 1, 2, 3, 0.25F);  // a quarter of the width to the right
  const std::vector<Face> faces = *o.decode();
  ASSERT_EQ(faces.size(), 1U);
  const Face& f = faces[0];
  // Centre: x = (3 - 0.25 + 0.5) * 4 = 13, y = (2 + 0.25 + 0.5) * 4 = 11.
  EXPECT_NEAR(f.upper_left.x_px, 9, 1e-4);
  EXPECT_NEAR(f.upper_left.y_px, 5, 1e-4);
  EXPECT_NEAR(f.lower_right.x_px, 17, 1e-4);
  EXPECT_NEAR(f.lower_right.y_px, 17, 1e-4);
  EXPECT_NEAR(f.landmarks[0].x_px, 11, 1e-4);
  EXPECT_NEAR(f.landmarks[0].y_px, 11, 1e-4);
  EXPECT_NEAR(f.landmarks[4].x_px, 9, 1e-4);
  EXPECT_FLOAT_EQ(f.score, 0.9F);
}

TEST(DecodeFaces, BetterBoxHidesAnOverlappingOne) {
  Outputs o;
  o.add(2, 3, 0.8F, 4, 4);
  o.add(2, 4, 0.9F, 4, 4);  // shares 12 of 20 cells with it: 0.6
  o.add(2, 0, 0.7F, 1, 1);  // far away
  const std::vector<Face> faces = *o.decode();
  ASSERT_EQ(faces.size(), 2U);
  EXPECT_FLOAT_EQ(faces[0].score, 0.9F);
  EXPECT_FLOAT_EQ(faces[1].score, 0.7F);
}

TEST(DecodeFaces, OutputsThatDoNotBelongTogetherAreRefused) {
  Outputs o;
  o.scale = HostTensor::zeros(DType::Float32, {1, 2, 6, 7});
  ASSERT_FALSE(o.decode());
  EXPECT_EQ(o.decode().error().code(), ErrorCode::InvalidArgument);
  o = Outputs();
  o.heatmap = HostTensor::zeros(DType::Float32, {6, 8});
  EXPECT_FALSE(o.decode());
}

TEST(MakeInput, PadsToAMultipleOf32AndKeepsColourOrder) {
  tools::Image image{33, 2, std::vector<uint8_t>(33 * 2 * 3, 7)};
  image.pixel(32, 1)[0] = 10;
  image.pixel(32, 1)[2] = 30;
  const HostTensor input = make_input(image);
  EXPECT_EQ(input.shape, (Shape{1, 3, 32, 64}));
  EXPECT_EQ(input.data<float>()[1 * 64 + 32], 10.0F);
  EXPECT_EQ(input.data<float>()[(2 * 32 + 1) * 64 + 32], 30.0F);
  EXPECT_EQ(input.data<float>()[1 * 64 + 33], 0.0F);
  EXPECT_EQ(input.data<float>()[2 * 64], 0.0F);
}

TEST(DrawFaces, StaysInsideThePicture) {
  tools::Image image{16, 16, std::vector<uint8_t>(16 * 16 * 3, 0)};
  Face face;
  face.upper_left = {-50, 4};
  face.lower_right = {80, 12};
  face.landmarks.fill({1e6F, -1e6F});
  draw_faces(image, {face});
  EXPECT_EQ(image.pixel(8, 4)[1], 224);
  EXPECT_EQ(image.pixel(8, 8)[1], 0);
  EXPECT_EQ(image.pixel(8, 2)[1], 0);
}

}  // namespace
}  // namespace ignis::demo
