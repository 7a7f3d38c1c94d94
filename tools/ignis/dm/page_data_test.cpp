#include "tools/ignis/dm/page_data.h"

#include "tools/ignis/dm/page_files.h"
#include "tools/ignis/dm/page_server.h"
#include "tools/ignis/dm/reason_text.h"
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ignis::tools {
namespace {

using pipeline::DriverField;
using pipeline::Reason;
using pipeline::Reasons;

Snapshot valid_snapshot() {
  Snapshot s;
  s.has_frame = true;
  s.layout.width_px = 1928;
  s.layout.height_px = 1208;
  s.quality.valid = true;
  s.quality.frame_id = 7;
  s.quality.known_left = bit(DriverField::FaceProb) | bit(DriverField::FacePosition);
  s.state.left.has_lists = true;
  s.state.left.face_prob = 0.75f;
  s.state.left.left_eye_prob = 0.5f;
  s.state.left.face_position = {0.25f, -0.1f};
  return s;
}

TEST(SnapshotJson, UnknownIsNullAndNeverANumber) {
  const auto json = snapshot_json(valid_snapshot());
  EXPECT_EQ(json["left"]["face"], 0.75);
  EXPECT_TRUE(json["left"]["left_eye"].is_null());  // has a value, but the model cannot know it
  EXPECT_TRUE(json["left"]["orientation"].is_null());
  EXPECT_TRUE(json["right"].is_null());
  EXPECT_TRUE(json["wheel"].is_null());
  EXPECT_TRUE(json["face"].is_null());
  EXPECT_TRUE(json["calibration"].is_null());
  EXPECT_TRUE(json["attention"].is_null());
}

TEST(SnapshotJson, PositionIsAShareOfTheReferenceImage) {
  // Camera A is the reference image itself: (0.25 + 0.5) * 1928 = 1446, (-0.1 + 0.5) * 1208 = 483.2.
  const auto json = snapshot_json(valid_snapshot());
  EXPECT_EQ(json["left"]["position_px"][0], 1446.0);
  EXPECT_NEAR(json["left"]["position_px"][1].get<double>(), 483.2, 0.051);
  // Camera B sees the same with 3/4 of the focal length around (672, 380): 672 + 482 * 0.75, 380 - 120.8 * 0.75.
  Snapshot b = valid_snapshot();
  b.layout.width_px = 1344;
  b.layout.height_px = 760;
  const auto json_b = snapshot_json(b);
  EXPECT_EQ(json_b["left"]["position_px"][0], 1033.5);
  EXPECT_NEAR(json_b["left"]["position_px"][1].get<double>(), 289.4, 0.051);
  Snapshot other = valid_snapshot();
  other.layout.width_px = 1280;
  EXPECT_TRUE(snapshot_json(other)["left"]["position_px"].is_null());
}

TEST(SnapshotJson, NotValidShowsNoValues) {
  Snapshot s = valid_snapshot();
  s.quality.valid = false;
  s.quality.reasons = Reasons(Reason::NonFinite) | Reason::CalibMissing;
  s.prediction.has_face_box = true;
  const auto json = snapshot_json(s);
  EXPECT_FALSE(json["valid"].get<bool>());
  EXPECT_TRUE(json["left"].is_null());
  EXPECT_TRUE(json["face"].is_null());
  EXPECT_EQ(json["reasons"], nlohmann::ordered_json({6, 11}));
}

TEST(SnapshotJson, NotFiniteIsNull) {
  Snapshot s = valid_snapshot();
  s.state.left.face_prob = std::nanf("");
  s.state.left.face_position[0] = std::numeric_limits<float>::infinity();
  const auto json = snapshot_json(s);
  EXPECT_TRUE(json["left"]["face"].is_null());
  EXPECT_TRUE(json["left"]["position_px"].is_null());
}

TEST(ReasonText, EveryReasonHasALine) {
  for (int i = 0; i < pipeline::kReasonCount; ++i)
    EXPECT_GT(explain(static_cast<Reason>(i)).size(), 15u) << i;
  EXPECT_EQ(list_reasons({}), "none");
  EXPECT_EQ(list_reasons(Reasons(Reason::FrameStale) | Reason::ViewSuspect),
            "FrameStale, ViewSuspect");
}

TEST(PageServer, KnowsItsOwnName) {
  EXPECT_TRUE(is_own_host("127.0.0.1:8780", 8780));
  EXPECT_TRUE(is_own_host("localhost:8780", 8780));
  EXPECT_TRUE(is_own_host("localhost", 80));
  for (const char* host : {"", "localhost", "127.0.0.1", "127.0.0.1:8781", "evil.example:8780",
                           "127.0.0.1:8780.evil.example", "localhost:87800"}) {
    EXPECT_FALSE(is_own_host(host, 8780)) << host;
  }
}

TEST(PageFiles, AreAllThere) {
  for (const char* path : {"/", "/page.css", "/page.js", "/plot.js", "/overlay.js", "/icon.svg"}) {
    bool is_there = false;
    for (const PageFile& file : page_files())
      is_there = is_there || (file.path == path && file.contents.size() > 100);
    EXPECT_TRUE(is_there) << path;
  }
  // Nothing comes from elsewhere: the page works in a car without a network.
  for (const PageFile& file : page_files()) {
    EXPECT_EQ(file.contents.find("https://"), std::string_view::npos) << file.path;
    EXPECT_EQ(file.contents.find("src=\"http"), std::string_view::npos) << file.path;
  }
}

}  // namespace
}  // namespace ignis::tools
