#include "ignis/pipeline/driver_monitoring/face_decode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace ignis::pipeline {
namespace {

/// Maps of 10x12 cells with faces put in by hand.
struct Maps {
  static constexpr int64_t kRows = 10, kColumns = 12, kCells = kRows * kColumns;
  std::vector<float> heat = std::vector<float>(kCells, 0.01f);
  std::vector<float> size = std::vector<float>(2 * kCells);
  std::vector<float> offset = std::vector<float>(2 * kCells);
  std::vector<float> landmarks = std::vector<float>(10 * kCells, 0.5f);

  void put(int64_t row, int64_t column, float score, float height_cells, float width_cells) {
    const auto at = static_cast<size_t>(row * kColumns + column);
    heat[at] = score;
    size[at] = std::log(height_cells);
    size[at + kCells] = std::log(width_cells);
    offset[at] = 0.25f;
    offset[at + kCells] = -0.25f;
    // y and x of the eyes, the nose and the corners of the mouth.
    const float shares[10] = {0.3f, 0.3f, 0.3f, 0.7f, 0.5f, 0.5f, 0.75f, 0.35f, 0.75f, 0.65f};
    for (size_t i = 0; i < 10; ++i) landmarks[at + i * kCells] = shares[i];
  }
  FaceMaps view() const { return {kRows, kColumns, heat, size, offset, landmarks}; }
};

TEST(FaceDecode, PutsBoxAndLandmarksWhereTheMapsSay) {
  Maps maps;
  maps.put(4, 6, 0.9f, 6, 4);
  FaceDecoder decoder;
  const FaceDecode found = decoder.decode(maps.view());
  EXPECT_TRUE(found.reasons.is_empty());
  ASSERT_TRUE(found.has_face);
  EXPECT_FLOAT_EQ(found.score, 0.9f);
  // Centre: y (4 + 0.25 + 0.5) * 4 = 19, x (6 - 0.25 + 0.5) * 4 = 25; 24 high and 16 wide.
  EXPECT_NEAR(found.face.x0, 17, 1e-4);
  EXPECT_NEAR(found.face.x1, 33, 1e-4);
  EXPECT_NEAR(found.face.y0, 7, 1e-4);
  EXPECT_NEAR(found.face.y1, 31, 1e-4);
  ASSERT_TRUE(found.face.has_landmarks);
  EXPECT_NEAR(found.face.landmarks[0][0], 17 + 0.3 * 16, 1e-4);
  EXPECT_NEAR(found.face.landmarks[0][1], 7 + 0.3 * 24, 1e-4);
  EXPECT_NEAR(found.face.landmarks[4][0], 17 + 0.65 * 16, 1e-4);
  EXPECT_NEAR(found.face.landmarks[4][1], 7 + 0.75 * 24, 1e-4);
}

TEST(FaceDecode, TakesTheNearestOfSeveralFaces) {
  Maps maps;
  maps.put(2, 2, 0.99f, 2, 2);  // a passenger in the back
  maps.put(6, 8, 0.8f, 6, 5);
  maps.put(6, 9, 0.75f, 7, 6);  // the same face once more, less sure: suppressed although larger
  FaceDecoder decoder;
  const FaceDecode found = decoder.decode(maps.view());
  ASSERT_TRUE(found.has_face);
  EXPECT_FLOAT_EQ(found.face.score, 0.8f);
}

TEST(FaceDecode, NoFaceStillSaysHowSureItIs) {
  Maps maps;
  maps.put(4, 6, 0.4f, 6, 4);
  FaceDecoder decoder;
  const FaceDecode found = decoder.decode(maps.view());
  EXPECT_TRUE(found.reasons.is_empty());
  EXPECT_FALSE(found.has_face);
  EXPECT_FLOAT_EQ(found.score, 0.4f);
}

TEST(FaceDecode, MapsThatCannotBeTrustedAreNamed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  FaceDecoder decoder;
  Maps maps;
  maps.put(4, 6, 0.9f, 6, 4);
  Maps bad = maps;
  bad.heat[3] = nan;
  FaceDecode found = decoder.decode(bad.view());
  EXPECT_TRUE(found.reasons.has(Reason::NonFinite));
  EXPECT_EQ(found.head, "heat");
  EXPECT_FALSE(found.has_face);
  bad = maps;
  bad.size[4 * Maps::kColumns + 6] = 200;  // e^200 cells
  EXPECT_TRUE(decoder.decode(bad.view()).reasons.has(Reason::NonFinite));
  bad = maps;
  bad.landmarks[4 * Maps::kColumns + 6] = nan;
  EXPECT_EQ(decoder.decode(bad.view()).head, "boxes");
  bad = maps;
  bad.size[0] = bad.offset[5] = nan;  // of cells without a face
  EXPECT_TRUE(decoder.decode(bad.view()).reasons.is_empty());
  bad = maps;
  bad.heat[0] = 1.5f;
  EXPECT_EQ(decoder.decode(bad.view()).reasons, Reasons(Reason::RangeViolation));
  bad.heat.assign(Maps::kCells, 0.0f);
  EXPECT_EQ(decoder.decode(bad.view()).reasons, Reasons(Reason::DegenerateOutput));
  FaceMaps view = maps.view();
  view.rows = 11;
  EXPECT_EQ(decoder.decode(view).reasons, Reasons(Reason::OutputSize));
  EXPECT_EQ(decoder.decode({}).reasons, Reasons(Reason::OutputSize));
}

// Above the threshold everywhere: suppression is quadratic, so the number of candidates is bounded.
TEST(FaceDecode, AHeatMapOfFacesOnlyEndsSoon) {
  constexpr int64_t kRows = 128, kColumns = 192, kCells = kRows * kColumns;
  std::vector<float> heat(kCells), zeros(2 * kCells), landmarks(10 * kCells);
  for (size_t i = 0; i < heat.size(); ++i)
    heat[i] = 0.6f + 0.3f * static_cast<float>(i % 97) / 97.0f;
  FaceDecoder decoder;
  EXPECT_TRUE(decoder.decode({kRows, kColumns, heat, zeros, zeros, landmarks}).has_face);
}

}  // namespace
}  // namespace ignis::pipeline
