#include "ignis/pipeline/driver_monitoring/consumer/consumer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <random>

namespace ignis::pipeline {
namespace {

constexpr uint64_t kPeriodNs = 50'000'000;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A driver who looks straight ahead (at the natural offsets), with open eyes and no phone.
DriverData attentive() {
  DriverData data;
  data.has_lists = true;
  data.face_orientation = {0.011f, -0.075f, 0};
  data.face_orientation_std = {0.05f, 0.05f, 0.05f};
  data.face_position_std = {0.01f, 0.01f};
  data.face_prob = 0.95f;
  data.left_eye_prob = data.right_eye_prob = 0.9f;
  data.left_blink_prob = data.right_blink_prob = 0.05f;
  data.sunglasses_prob = 0.05f;
  data.phone_prob = 0.05f;
  return data;
}

/// A consumer fed at 20 Hz.
class Drive {
 public:
  explicit Drive(ConsumerOptions options = with_camera()) : consumer_(std::move(options)) {
    car_.is_known = true;
    car_.is_engaged = true;
    car_.speed_mps = 20;
    car_.brake_prob = 0;
    state_.left = attentive();
    quality_.valid = true;
    quality_.known_left = quality_.known_right = kAllDriverFields;
    quality_.known_wheel = true;
    std::memcpy(quality_.profile.data(), "comma-553", 9);
    quality_.profile_version = 3;
    quality_.warp_id = 4 << 16 | 1;  // of a camera profile of version 1
  }
  static ConsumerOptions with_camera() {
    ConsumerOptions options;
    options.camera = known_cameras()[0];
    return options;
  }

  DriverMessage message() {
    DriverMessage result;
    state_.frame_id = quality_.frame_id = ++frame_id_;
    result.state = state_;
    result.quality = quality_;
    result.is_envelope_valid = quality_.valid;
    return result;
  }
  Verdict turn(const std::function<void(DriverMessage&)>& change = {}) {
    DriverMessage next = message();
    if (change) change(next);
    return consumer_.step(&next, car_, rpy_, now_ += kPeriodNs);
  }
  Verdict turns(int count) {
    Verdict verdict;
    for (int i = 0; i < count; ++i) verdict = turn();
    return verdict;
  }
  Verdict nothing(int count = 1) {
    Verdict verdict;
    for (int i = 0; i < count; ++i) {
      verdict = consumer_.step(nullptr, car_, rpy_, now_ += kPeriodNs);
    }
    return verdict;
  }

  Consumer consumer_;
  CarState car_;
  DriverState state_;
  DriverStateQuality quality_;
  std::optional<std::array<float, 3>> rpy_ = std::array<float, 3>{0, 0, 0};
  uint64_t now_ = 1'000'000'000;
  uint32_t frame_id_ = 0;
};

TEST(Consumer, AnAttentiveDriverIsAttentive) {
  Drive drive;
  const Verdict verdict = drive.turns(40);
  EXPECT_TRUE(verdict.is_valid);
  EXPECT_EQ(verdict.unknown, Unknown::Nothing);
  EXPECT_EQ(verdict.attention, Attention::Attentive);
  EXPECT_EQ(verdict.face_seen, Answer::Yes);
  EXPECT_EQ(verdict.pose_distracted, Answer::No);
  EXPECT_EQ(verdict.eyes_closed, Answer::No);
  EXPECT_EQ(verdict.phone_used, Answer::No);
  EXPECT_FALSE(verdict.watches_wheel);
  EXPECT_EQ(verdict.alert, AlertLevel::None);
  EXPECT_EQ(verdict.wheel_s, 0);
}

TEST(Consumer, DistractionIsCertainAfterSixFramesAndAlertsFollow) {
  Drive drive;
  drive.turns(10);
  drive.state_.left.phone_prob = 0.51f;
  EXPECT_EQ(drive.turns(5).attention, Attention::Undecided);
  EXPECT_EQ(drive.turn().attention, Attention::Distracted);
  EXPECT_EQ(drive.turns(98).alert, AlertLevel::None);
  EXPECT_EQ(drive.turn().alert, AlertLevel::Notice);  // 100 certain frames
  drive.state_.left.phone_prob = 0.5f;                // not above the threshold
  EXPECT_EQ(drive.turn().phone_used, Answer::No);
  EXPECT_EQ(drive.turns(5).attention, Attention::Attentive);
}

struct SignalRow {
  const char* name;
  std::function<void(DriverData&)> change;
  bool is_distracted;
};

TEST(Consumer, ThresholdsOfEachSignal) {
  const SignalRow rows[] = {
      {"face at the threshold", [](DriverData& d) { d.face_prob = 0.7f - 1e-6f; }, false},
      {"both eyes closed", [](DriverData& d) { d.left_blink_prob = d.right_blink_prob = 0.87f; },
       true},
      {"mean of both at the threshold",
       [](DriverData& d) {
         d.left_blink_prob = 0.99f;
         d.right_blink_prob = 0.73f;  // mean 0.86
       },
       false},
      {"the only usable eye closed",
       [](DriverData& d) {
         d.left_blink_prob = 0.9f;
         d.right_eye_prob = 0.6f;
       },
       true},
      {"closed behind dark glasses",
       [](DriverData& d) {
         d.left_blink_prob = d.right_blink_prob = 0.99f;
         d.sunglasses_prob = 0.91f;
       },
       false},
      {"looks down", [](DriverData& d) { d.face_orientation[0] = 0.011f - 0.45f; }, true},
      {"looks down a little", [](DriverData& d) { d.face_orientation[0] = 0.011f - 0.447f; },
       false},
      {"looks up", [](DriverData& d) { d.face_orientation[0] = 1.0f; }, false},
      {"looks right", [](DriverData& d) { d.face_orientation[1] = -0.075f - 0.505f; }, true},
      {"looks right a little", [](DriverData& d) { d.face_orientation[1] = -0.075f - 0.503f; },
       false},
      {"looks left", [](DriverData& d) { d.face_orientation[1] = -0.075f + 0.505f; }, true},
  };
  for (const SignalRow& row : rows) {
    Drive drive;
    drive.turns(10);
    row.change(drive.state_.left);
    EXPECT_EQ(drive.turns(10).attention == Attention::Distracted, row.is_distracted) << row.name;
  }
}

TEST(Consumer, BrakingAheadMakesTheYawLimitStrict) {
  Drive drive;
  drive.turns(10);
  drive.state_.left.face_orientation[1] = -0.075f - 0.45f;  // between 0.4020 and 0.5042
  EXPECT_EQ(drive.turn().pose_distracted, Answer::No);
  drive.car_.brake_prob = 0.4;
  EXPECT_EQ(drive.turn().pose_distracted, Answer::Yes);
  drive.car_.brake_prob.reset();  // not known: strict
  EXPECT_EQ(drive.turn().pose_distracted, Answer::Yes);
  drive.car_.brake_prob = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(drive.turn().pose_distracted, Answer::Yes);
}

TEST(Consumer, ABendExcusesALookIntoIt) {
  Drive drive;
  drive.turns(10);
  drive.state_.left.face_orientation[1] = -0.075f + 0.6f;  // to the left
  drive.car_.steering_angle_deg = 100;                     // 0.183 rad of allowance
  EXPECT_EQ(drive.turn().pose_distracted, Answer::No);
  drive.car_.steering_angle_deg = -100;
  EXPECT_EQ(drive.turn().pose_distracted, Answer::Yes);
}

// --- what is absent is unknown, never attentive (weakness 18) ---

struct AbsenceRow {
  const char* name;
  std::function<void(DriverMessage&)> change;
  Unknown unknown;
};

std::vector<AbsenceRow> absence_rows() {
  const auto field = [](DriverField f) {
    return [f](DriverMessage& m) { m.quality->known_left &= ~bit(f); };
  };
  std::vector<AbsenceRow> rows = {
      {"no state", [](DriverMessage& m) { m.state.reset(); }, Unknown::NoState},
      {"no companion", [](DriverMessage& m) { m.quality.reset(); }, Unknown::NoCompanion},
      {"companion of another frame", [](DriverMessage& m) { ++m.quality->frame_id; },
       Unknown::FrameMismatch},
      {"envelope not valid", [](DriverMessage& m) { m.is_envelope_valid = false; },
       Unknown::NotValid},
      {"companion not valid", [](DriverMessage& m) { m.quality->valid = false; },
       Unknown::NotValid},
      {"valid with a blocking reason",
       [](DriverMessage& m) { m.quality->reasons = Reason::FrameStale; }, Unknown::NotValid},
      {"empty lists", [](DriverMessage& m) { m.state->left.has_lists = false; },
       Unknown::EmptyLists},
      {"nothing known of the side", [](DriverMessage& m) { m.quality->known_left = 0; },
       Unknown::UnknownField},
      {"NaN face", [](DriverMessage& m) { m.state->left.face_prob = kNan; }, Unknown::BadValue},
      {"blink above 1", [](DriverMessage& m) { m.state->left.left_blink_prob = 1.5f; },
       Unknown::BadValue},
      {"NaN orientation", [](DriverMessage& m) { m.state->left.face_orientation[1] = kNan; },
       Unknown::BadValue},
      {"std of 0", [](DriverMessage& m) { m.state->left.face_orientation_std[0] = 0; },
       Unknown::BadValue},
      {"NaN std", [](DriverMessage& m) { m.state->left.face_orientation_std[1] = kNan; },
       Unknown::BadValue},
  };
  for (const DriverField f :
       {DriverField::FaceOrientation, DriverField::FaceOrientationStd, DriverField::FacePosition,
        DriverField::FaceProb, DriverField::LeftEyeProb, DriverField::RightEyeProb,
        DriverField::LeftBlinkProb, DriverField::RightBlinkProb, DriverField::SunglassesProb,
        DriverField::PhoneProb}) {
    static std::vector<std::string> names;
    names.reserve(16);
    names.push_back("unknown field " + std::to_string(static_cast<int>(f)));
    rows.push_back({names.back().c_str(), field(f), Unknown::UnknownField});
  }
  return rows;
}

TEST(Consumer, WhatIsAbsentIsUnknownNeverAttentive) {
  for (const AbsenceRow& row : absence_rows()) {
    SCOPED_TRACE(row.name);
    Drive drive;
    ASSERT_EQ(drive.turns(20).attention, Attention::Attentive);
    for (int i = 0; i < 100; ++i) {
      const Verdict verdict = drive.turn(row.change);
      ASSERT_EQ(verdict.attention, Attention::Unknown);
      EXPECT_EQ(verdict.unknown, row.unknown) << to_string(verdict.unknown);
      EXPECT_TRUE(verdict.watches_wheel);
    }
    // 5 s without a touch.
    EXPECT_GE(drive.turn(row.change).alert, AlertLevel::Notice);
    // It ends with the cause (a state that was missing also upset the rate: ten intervals).
    EXPECT_EQ(drive.turns(15).attention, Attention::Attentive);
  }
}

TEST(Consumer, AMissingMessageIsUnknownAndTimePasses) {
  Drive drive;
  drive.turns(20);
  EXPECT_EQ(drive.nothing().attention, Attention::Unknown);
  EXPECT_EQ(drive.nothing().unknown, Unknown::NoMessage);
  EXPECT_EQ(drive.nothing(8).unknown, Unknown::NotAlive);
  const Verdict verdict = drive.nothing(90);
  EXPECT_EQ(verdict.alert, AlertLevel::Notice);
  EXPECT_NEAR(verdict.wheel_s, 5, 1e-6);
  EXPECT_EQ(drive.nothing(400).alert, AlertLevel::Top);
}

// Section 8: inputs alive, at the right rate and valid, or nothing is known.
TEST(Consumer, MessagesAtTheWrongRateAreUnknown) {
  for (const uint64_t extra_ns : {uint64_t{20'000'000}, uint64_t{0} - 15'000'000}) {
    Drive drive;
    drive.turns(20);
    Verdict verdict;
    for (int i = 0; i < 20; ++i) {
      drive.now_ += extra_ns;  // 14.3 Hz, 28.6 Hz
      verdict = drive.turn();
    }
    EXPECT_EQ(verdict.unknown, Unknown::WrongRate);
    EXPECT_FALSE(verdict.is_valid);
    EXPECT_EQ(verdict.attention, Attention::Unknown);
  }
}

TEST(Consumer, APauseOfTheConsumerCountsAsTimeUnwatched) {
  Drive drive;
  drive.turns(20);
  drive.now_ += 16'000'000'000;
  EXPECT_EQ(drive.nothing().alert, AlertLevel::Prompt);
}

TEST(Consumer, ARepeatedFrameIsNotSeenTwice) {
  Drive drive;
  drive.turns(20);
  const uint32_t last = drive.frame_id_;
  const Verdict verdict =
      drive.turn([&](DriverMessage& m) { m.state->frame_id = m.quality->frame_id = last; });
  EXPECT_EQ(verdict.unknown, Unknown::RepeatedFrame);
  EXPECT_EQ(verdict.attention, Attention::Unknown);
}

TEST(Consumer, UnknownDoesNotWashADistractionAway) {
  Drive drive;
  drive.turns(10);
  drive.state_.left.phone_prob = 0.9f;
  const double before = drive.turns(20).distraction;
  EXPECT_EQ(drive.nothing(5).distraction, before);
}

TEST(Consumer, WithoutCalibrationThePoseIsUnknown) {
  Drive drive;
  drive.turns(10);
  drive.rpy_.reset();
  const Verdict verdict = drive.turn();
  EXPECT_EQ(verdict.unknown, Unknown::NoCalibration);
  EXPECT_EQ(verdict.attention, Attention::Unknown);
  EXPECT_FALSE(verdict.pose);
  EXPECT_EQ(verdict.eyes_closed, Answer::No) << "what does not need it is still told";
}

TEST(Consumer, ClosedEyesCountEvenWithoutAPose) {
  Drive drive;
  drive.turns(10);
  drive.rpy_.reset();
  drive.state_.left.left_blink_prob = drive.state_.left.right_blink_prob = 0.95f;
  EXPECT_EQ(drive.turns(10).attention, Attention::Distracted);
}

TEST(Consumer, ADeploymentMayWaiveWhatItsModelCannotTell) {
  ConsumerOptions options = Drive::with_camera();
  options.waived_fields = bit(DriverField::PhoneProb);
  Drive drive(options);
  drive.quality_.known_left &= ~bit(DriverField::PhoneProb);
  const Verdict verdict = drive.turns(20);
  EXPECT_EQ(verdict.attention, Attention::Attentive);
  EXPECT_EQ(verdict.phone_used, Answer::Unknown);
}

TEST(Consumer, NoFaceFallsBackToTheWheel) {
  Drive drive;
  drive.turns(10);
  drive.state_.left.face_prob = 0.3f;
  const Verdict verdict = drive.turns(100);
  EXPECT_EQ(verdict.face_seen, Answer::No);
  EXPECT_EQ(verdict.attention, Attention::Unknown);
  EXPECT_TRUE(verdict.watches_wheel);
  EXPECT_EQ(verdict.alert, AlertLevel::Notice);
  drive.car_.is_touched = true;
  EXPECT_EQ(drive.turn().alert, AlertLevel::None);
}

TEST(Consumer, HighStdFallsBackAfter200Frames) {
  Drive drive;
  drive.turns(10);
  drive.state_.left.face_orientation_std = {0.3f, 0.05f, 0.05f};
  EXPECT_FALSE(drive.turns(199).watches_wheel);
  const Verdict verdict = drive.turn();
  EXPECT_TRUE(verdict.watches_wheel);
  EXPECT_EQ(verdict.attention, Attention::Unknown);
}

TEST(Consumer, AnUncertainCameraIsToldAfter1200FramesUntil40GoodOnes) {
  Drive drive;
  drive.state_.left.face_orientation_std = {0.11f, 0.05f, 0.05f};
  drive.turns(1);  // the first message has no rate yet: nothing is looked at
  EXPECT_FALSE(drive.turns(1199).is_camera_uncertain);
  EXPECT_TRUE(drive.turn().is_camera_uncertain);
  drive.state_.left.face_orientation_std = {0.05f, 0.05f, 0.05f};
  EXPECT_TRUE(drive.turns(39).is_camera_uncertain);
  EXPECT_FALSE(drive.turn().is_camera_uncertain);
}

TEST(Consumer, LearnsTheDriversOwnPoseAtSpeed) {
  Drive drive;
  drive.state_.left.face_orientation = {0.05f, -0.2f, 0};
  drive.turns(1200);  // 1199 of them are looked at
  EXPECT_FALSE(drive.turn().is_pose_learned);
  const Verdict verdict = drive.turn();
  EXPECT_TRUE(verdict.is_pose_learned);
  EXPECT_NEAR(verdict.pose_offset.pitch_rad, 0.05, 1e-6);
  EXPECT_NEAR(verdict.pose_offset.yaw_rad, 0.2, 1e-6);
  EXPECT_NEAR(verdict.pose_limit.pitch_rad, 0.3237, 1e-9);  // brake 0: slack
  EXPECT_NEAR(verdict.pose_limit.yaw_rad, 0.5042, 1e-9);
}

TEST(Consumer, LearnedOffsetsAreHeldInTheirRange) {
  Drive high, low;
  high.car_.is_engaged = low.car_.is_engaged = false;
  high.state_.left.face_orientation = {0.5f, -0.5f, 0};
  low.state_.left.face_orientation = {-0.5f, 0.5f, 0};
  EXPECT_NEAR(high.turns(1203).pose_offset.pitch_rad, 0.124, 1e-9);
  EXPECT_NEAR(high.turn().pose_offset.yaw_rad, 0.289, 1e-9);
  EXPECT_NEAR(low.turns(1203).pose_offset.pitch_rad, -0.0881, 1e-9);
  EXPECT_NEAR(low.turn().pose_offset.yaw_rad, -0.0246, 1e-9);
}

TEST(Consumer, DoesNotLearnWhenSlowDistractedOrUnknown) {
  Drive slow, distracted, unknown;
  slow.car_.speed_mps = 13;
  distracted.state_.left.phone_prob = 0.9f;
  unknown.car_.is_known = false;
  EXPECT_FALSE(slow.turns(1300).is_pose_learned);
  EXPECT_FALSE(distracted.turns(1300).is_pose_learned);
  EXPECT_FALSE(unknown.turns(1300).is_pose_learned);
}

TEST(Consumer, TheSideWithTheWheelIsWatched) {
  Drive drive;
  drive.car_.is_engaged = false;
  drive.state_.wheel_on_right_prob = 0.9f;
  drive.state_.right = attentive();
  drive.state_.right.face_orientation[1] = 0.075f;  // towards the middle
  drive.turns(1);                                   // has no rate
  EXPECT_EQ(drive.turns(300).side, Side::Left);
  const Verdict verdict = drive.turn();  // push 301
  EXPECT_EQ(verdict.side, Side::Right);
  EXPECT_TRUE(verdict.is_side_ready);
  EXPECT_NEAR(verdict.pose->yaw_rad, 0.075, 1e-6);
}

TEST(Consumer, AOneSidedModelNamesTheSide) {
  Drive drive;
  drive.car_.is_engaged = false;
  drive.quality_.known_left = 0;
  drive.quality_.known_wheel = false;
  drive.state_.left = DriverData();
  drive.state_.right = attentive();
  drive.state_.right.face_orientation[1] = 0.075f;
  const Verdict verdict = drive.turns(20);
  EXPECT_EQ(verdict.side, Side::Right);
  EXPECT_EQ(verdict.attention, Attention::Attentive);
}

// Weakness 17: one version number that both sides check.
TEST(Consumer, AnotherVersionIsUnknown) {
  for (int i = 0; i < 4; ++i) {
    ConsumerOptions options = Drive::with_camera();
    options.profile = i == 1 ? "comma-38" : "comma-553";
    options.profile_version = i == 2 ? 4 : 3;
    options.warp_id = i == 3 ? 5 << 16 | 1 : 4 << 16 | 1;
    Drive drive(options);
    const Verdict verdict = drive.turns(20);
    EXPECT_EQ(verdict.unknown, i == 0 ? Unknown::Nothing : Unknown::VersionMismatch) << i;
    EXPECT_EQ(verdict.attention, i == 0 ? Attention::Attentive : Attention::Unknown) << i;
  }
}

TEST(Consumer, AnotherVersionOfTheCameraProfileIsUnknown) {
  ConsumerOptions options = Drive::with_camera();
  options.camera.version = 2;  // its pose constants are not those of the producer's warp
  Drive drive(options);
  const Verdict verdict = drive.turns(20);
  EXPECT_EQ(verdict.unknown, Unknown::VersionMismatch);
  EXPECT_EQ(verdict.attention, Attention::Unknown);
  EXPECT_FALSE(verdict.pose);
}

TEST(Consumer, ADeploymentMayMakeCalibrationReasonsBlocking) {
  ConsumerOptions options = Drive::with_camera();
  options.also_blocking = Reason::CalibStale;
  Drive drive(options);
  drive.quality_.reasons = Reason::CalibStale;
  EXPECT_EQ(drive.turns(20).unknown, Unknown::NotValid);
  Drive usual;
  usual.quality_.reasons = Reason::CalibStale;
  EXPECT_EQ(usual.turns(20).unknown, Unknown::Nothing);
}

// Whatever is taken away from whichever message: no frame without everything is attentive.
TEST(Consumer, NoLossOfDataMakesADriverAttentive) {
  std::mt19937 generator(3);  // fixed: a failure repeats itself
  const auto rng = [&] { return static_cast<uint32_t>(generator()); };
  const uint32_t needed =
      kAllDriverFields & ~bit(DriverField::SleepProb) & ~bit(DriverField::FacePositionStd);
  Drive drive;
  drive.turns(20);
  int attentive_turns = 0;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t lost_fields = rng() % 4 == 0 ? rng() & kAllDriverFields : 0;
    const uint32_t reasons = rng() % 4 == 0 ? rng() & ((uint32_t{1} << kReasonCount) - 1) : 0;
    const uint32_t flags = rng() % 4 == 0 ? rng() : 0;
    const Verdict verdict = drive.turn([&](DriverMessage& m) {
      m.quality->known_left &= ~lost_fields;
      m.quality->reasons = Reasons(reasons);
      if ((flags & 1) != 0) m.state->left.has_lists = false;
      if ((flags & 2) != 0) m.is_envelope_valid = false;
      if ((flags & 4) != 0) m.quality->valid = false;
      if ((flags & 8) != 0) m.state->left.face_orientation[0] = kNan;
      if ((flags & 16) != 0) ++m.quality->frame_id;
      if ((flags & 32) != 0) m.quality.reset();
    });
    if (verdict.attention != Attention::Attentive) continue;
    ++attentive_turns;
    ASSERT_EQ(lost_fields & needed, 0u);
    ASSERT_TRUE((Reasons(reasons) & kBlockingReasons).is_empty());
    ASSERT_EQ(flags & 63, 0u);
  }
  EXPECT_GT(attentive_turns, 5000);
}

TEST(Consumer, AnUnknownCarIsTheCautiousCase) {
  Drive drive;
  drive.turns(20);
  drive.car_ = CarState();
  EXPECT_EQ(drive.nothing(100).alert, AlertLevel::Notice) << "engaged and moving, untouched";
  drive.car_.is_known = true;
  drive.car_.is_engaged = true;
  drive.car_.speed_mps = kNan;
  EXPECT_EQ(drive.nothing(1).alert, AlertLevel::Notice);
  drive.car_.speed_mps = 1;
  EXPECT_EQ(drive.nothing(1).alert, AlertLevel::None);
}

}  // namespace
}  // namespace ignis::pipeline
