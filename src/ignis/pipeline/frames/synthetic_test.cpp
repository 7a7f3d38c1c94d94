#include "ignis/pipeline/frames/synthetic.h"

#include "ignis/pipeline/frames/layout.h"

#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>
#include <vector>

namespace ignis::pipeline {
namespace {

using std::chrono::milliseconds;

/// A face of the plainest kind: bright skin, two dark eyes where the defaults have them.
Portrait plain_portrait() {
  Portrait portrait;
  portrait.width_px = portrait.height_px = 512;
  portrait.rgb.assign(512 * 512 * 3, 180);
  for (const auto& [eye_x, eye_y] : {std::pair{portrait.left_eye_x_px, portrait.left_eye_y_px},
                                     std::pair{portrait.right_eye_x_px, portrait.right_eye_y_px}}) {
    for (int y = 0; y < 512; ++y) {
      for (int x = 0; x < 512; ++x) {
        if (std::hypot(x - eye_x, y - eye_y) > 4) continue;
        for (int c = 0; c < 3; ++c) portrait.rgb[static_cast<size_t>((y * 512 + x) * 3 + c)] = 10;
      }
    }
  }
  return portrait;
}

std::unique_ptr<SyntheticSource> open(SyntheticOptions options) {
  options.pace = Pace::Fast;
  auto source = SyntheticSource::create(plain_portrait(), options);
  EXPECT_TRUE(source) << source.error().to_string();
  return source ? *std::move(source) : nullptr;
}

double luma_at(const Frame& frame, double x, double y, int radius) {
  double sum = 0;
  int count = 0;
  for (int j = -radius; j <= radius; ++j) {
    for (int i = -radius; i <= radius; ++i) {
      const int64_t at = (std::lround(y) + j) * frame.layout.y_stride + std::lround(x) + i;
      sum += static_cast<double>(frame.bytes[static_cast<size_t>(at)]);
      ++count;
    }
  }
  return sum / count;
}

TEST(Synthetic, DriveGoesThroughItsSpells) {
  SyntheticOptions options;
  options.width_px = 320, options.height_px = 200;
  const auto source = open(options);
  // 5 s front, 4 s closed, 4 s glasses, 4 s nobody, 3 s front, at 20 Hz.
  const std::vector<std::pair<int, Shown>> expected = {
      {0, Shown::Front},        {99, Shown::Front},    {100, Shown::EyesClosed},
      {179, Shown::EyesClosed}, {180, Shown::Glasses}, {259, Shown::Glasses},
      {260, Shown::Empty},      {339, Shown::Empty},   {340, Shown::Front},
      {399, Shown::Front},      {400, Shown::Front},   {500, Shown::EyesClosed}};
  for (const auto& [id, shown] : expected) {
    const SyntheticTruth truth = source->truth(static_cast<uint32_t>(id));
    EXPECT_EQ(to_string(truth.shown), to_string(shown)) << id;
    EXPECT_EQ(truth.has_face, shown != Shown::Empty);
    EXPECT_EQ(truth.are_eyes_closed, shown == Shown::EyesClosed);
    EXPECT_EQ(truth.has_glasses, shown == Shown::Glasses);
  }
  EXPECT_EQ(source->truth(99).spell_index, 0);
  EXPECT_EQ(source->truth(100).spell_index, 1);
  EXPECT_EQ(source->truth(400).spell_index, 5);
  EXPECT_DOUBLE_EQ(source->scenario_duration_s(), 20);
}

TEST(Synthetic, EyesAreWhereTheTruthSaysInBothCamerasAndOnBothSides) {
  // The built-in eyes' middle is portrait (224.65, 101.5), so camera A pixel 1079 + 74.65 * 502 / 240 = 1235.1 and
  // 157 + 81.5 * 502 / 240 = 327.5; on the other side 630 + 250 - 156.1 = 723.9. Camera B sees it at 3/4 from the middle.
  struct Case {
    int width_px, height_px;
    CabinSide side;
    double x_px, y_px;
  };
  for (const Case& c : {Case{1928, 1208, CabinSide::Left, 1235.1, 327.5},
                        Case{1928, 1208, CabinSide::Right, 723.9, 327.5},
                        Case{1344, 760, CabinSide::Left, 875.4, 172.6},
                        Case{1344, 760, CabinSide::Right, 491.9, 172.6}}) {
    SCOPED_TRACE(std::to_string(c.width_px) + (c.side == CabinSide::Left ? " left" : " right"));
    SyntheticOptions options;
    options.scenario = "front";
    options.width_px = c.width_px, options.height_px = c.height_px, options.side = c.side;
    const auto source = open(options);
    const auto frame = source->receive(milliseconds(100));
    ASSERT_TRUE(frame) << frame.error().to_string();
    const SyntheticTruth truth = source->truth(frame->info.frame_id);
    EXPECT_NEAR(truth.face_x_px, c.x_px, 9);  // the sway
    EXPECT_NEAR(truth.face_y_px, c.y_px, 6);
    const double half = truth.eye_distance_px / 2;
    EXPECT_LT(luma_at(*frame, truth.face_x_px - half, truth.face_y_px, 2), 60);
    EXPECT_LT(luma_at(*frame, truth.face_x_px + half, truth.face_y_px, 2), 60);
    EXPECT_GT(luma_at(*frame, truth.face_x_px, truth.face_y_px, 2), 130);  // the nose
  }
}

TEST(Synthetic, LidsCoverTheEyesAndGlassesDarkenThem) {
  std::map<std::string, double> eye_luma;
  for (const char* scenario : {"front", "eyes-closed", "glasses", "empty"}) {
    SyntheticOptions options;
    options.scenario = scenario;
    const auto source = open(options);
    const auto frame = source->receive(milliseconds(100));
    ASSERT_TRUE(frame);
    const SyntheticTruth truth = source->truth(frame->info.frame_id);
    // Beside the pupil's middle, where an open eye of the plain portrait is skin and a lens is still dark.
    eye_luma[scenario] =
        luma_at(*frame, truth.face_x_px - truth.eye_distance_px / 2, truth.face_y_px, 3);
  }
  EXPECT_LT(eye_luma["front"], 60);
  EXPECT_GT(eye_luma["eyes-closed"], 140);
  EXPECT_LT(eye_luma["glasses"], 40);
  EXPECT_LT(eye_luma["empty"], 60);
}

TEST(Synthetic, EqualOptionsGiveEqualBytesAndAnotherSeedDoesNot) {
  SyntheticOptions options;
  options.width_px = 322, options.height_px = 202;
  const auto a = open(options), b = open(options);
  options.seed = 2;
  const auto c = open(options);
  int different = 0;
  for (int i = 0; i < 30; ++i) {
    const auto frame_a = a->receive(milliseconds(1)), frame_b = b->receive(milliseconds(1)),
               frame_c = c->receive(milliseconds(1));
    ASSERT_TRUE(frame_a && frame_b && frame_c);
    EXPECT_EQ(frame_a->info.frame_id, static_cast<uint32_t>(i));
    ASSERT_TRUE(std::ranges::equal(frame_a->bytes, frame_b->bytes)) << i;
    different += std::ranges::equal(frame_a->bytes, frame_c->bytes) ? 0 : 1;
  }
  EXPECT_EQ(different, 30);
}

TEST(Synthetic, BothFormatsHoldTheSameSamples) {
  SyntheticOptions options;
  options.width_px = 324, options.height_px = 206;
  const auto nv12 = open(options);
  options.format = PixelFormat::I420;
  const auto i420 = open(options);
  const auto a = nv12->receive(milliseconds(1)), b = i420->receive(milliseconds(1));
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->layout, *nv12_layout(324, 206));
  EXPECT_EQ(b->layout, *i420_layout(324, 206));
  const auto at = [](const Frame& frame, int64_t offset) {
    return frame.bytes[static_cast<size_t>(offset)];
  };
  for (int y = 0; y < 206; ++y) {
    for (int x = 0; x < 324; ++x) {
      ASSERT_EQ(at(*a, y * a->layout.y_stride + x), at(*b, y * b->layout.y_stride + x));
    }
  }
  for (int y = 0; y < 103; ++y) {
    for (int x = 0; x < 162; ++x) {
      const int64_t pair = a->layout.u_offset + y * a->layout.uv_stride + 2 * x;
      ASSERT_EQ(at(*a, pair), at(*b, b->layout.u_offset + y * b->layout.uv_stride + x));
      ASSERT_EQ(at(*a, pair + 1), at(*b, b->layout.v_offset + y * b->layout.uv_stride + x));
    }
  }
}

TEST(Synthetic, NoiseAndExposureAreWhatTheScenarioSays) {
  SyntheticOptions options;
  options.scenario = "empty";
  const auto source = open(options);
  const auto first = source->receive(milliseconds(1));
  ASSERT_TRUE(first);
  // The first and a later frame without motion between them would differ by noise only; neighbours in a flat place do too.
  double sum = 0, sum_of_squares = 0;
  constexpr int kCount = 200 * 200;
  for (int y = 900; y < 1100; ++y) {
    for (int x = 100; x < 300; ++x) {
      const auto at = static_cast<size_t>(y * first->layout.y_stride + x);
      const double difference =
          (static_cast<double>(first->bytes[at]) - static_cast<double>(first->bytes[at + 1])) /
          std::sqrt(2.0);
      sum += difference;
      sum_of_squares += difference * difference;
    }
  }
  EXPECT_NEAR(sum / kCount, 0, 0.05);
  EXPECT_NEAR(std::sqrt(sum_of_squares / kCount), 2.5, 0.25);  // rounding adds 1/12 to the variance

  options.scenario = "night";
  options.width_px = 320, options.height_px = 200;
  const auto night = open(options);
  const auto mean_luma = [](const Frame& frame) { return luma_at(frame, 160, 100, 90); };
  double bright = 0, dark = 0;
  for (int i = 0; i < 200; ++i) {
    const auto frame = night->receive(milliseconds(1));
    ASSERT_TRUE(frame);
    if (i == 0) bright = mean_luma(*frame) - 16;
    if (i == 199) dark = mean_luma(*frame) - 16;
  }
  EXPECT_NEAR(night->truth(0).gain, 0.60, 1e-9);
  EXPECT_NEAR(night->truth(100).gain, 0.25, 1e-9);
  EXPECT_LT(dark, 0.1 * bright);
}

TEST(Synthetic, FaultsComeAsAnnounced) {
  SyntheticOptions options;
  options.scenario = "faults";
  options.width_px = 320, options.height_px = 200;
  options.duration_s = 60;  // twice through, so that what a fault left behind would show
  const auto source = open(options);
  std::set<std::string> seen;
  uint64_t generation = 0, last_sof_ns = 0;
  uint32_t last_id = 0;
  int repeats = 0, last_width_px = 0;
  for (;;) {
    const auto frame = source->receive(milliseconds(1));
    if (!frame) {
      EXPECT_EQ(frame.error().reason(), "EndOfStream");
      break;
    }
    const FrameInfo& info = frame->info;
    const bool is_first = generation == 0;
    // Where ids run backwards the truth of the id is that of 40 frames before.
    const bool is_back = !is_first && info.frame_id < last_id;
    const CameraFault fault = source->truth(is_back ? last_id + 1 : info.frame_id).fault;
    if (!is_first && info.frame_id == last_id) {
      ++repeats;
      EXPECT_EQ(info.timestamp_sof_ns, last_sof_ns);
      seen.insert("repeat");
    } else if (fault == CameraFault::ClockBack) {
      EXPECT_LT(info.timestamp_sof_ns + 1'900'000'000, info.receive_time_ns);
    } else if (fault == CameraFault::ClockAhead) {
      EXPECT_GT(info.timestamp_sof_ns, info.receive_time_ns + 1'900'000'000);
    }
    EXPECT_EQ(info.valid, fault != CameraFault::InvalidFlag);
    EXPECT_EQ(frame->memory->is_intact(), fault != CameraFault::Overwritten);
    EXPECT_EQ(frame->layout.width_px, fault == CameraFault::SizeChange ? 1344 : 320);
    if (!is_first) {
      EXPECT_EQ(info.generation != generation, frame->layout.width_px != last_width_px);
    }
    last_width_px = frame->layout.width_px;
    if (!is_first && info.frame_id == last_id + 41) seen.insert("stop");
    if (is_back) seen.insert("id-backwards");
    if (fault != CameraFault::None) seen.insert(std::string(to_string(fault)));
    generation = info.generation;
    last_sof_ns = info.timestamp_sof_ns;
    last_id = info.frame_id;
    if (is_back) {  // through the backward spell
      for (int i = 1; i < 20; ++i) {
        const auto next = source->receive(milliseconds(1));
        ASSERT_TRUE(next);
        EXPECT_EQ(next->info.frame_id, last_id + 1);
        last_id = next->info.frame_id;
      }
    }
  }
  EXPECT_EQ(seen,
            (std::set<std::string>{"stop", "repeat", "clock-back", "clock-ahead", "id-backwards",
                                   "size-change", "invalid-flag", "overwritten"}));
  EXPECT_EQ(repeats, 40);
}

TEST(Synthetic, APacedSourceDropsWhatNobodyFetchesAndTimesOutWhenStopped) {
  SyntheticOptions options;
  options.scenario = "faults";
  options.width_px = 320, options.height_px = 200;
  options.rate_hz = 200;  // the first spell lasts 0.2 s, the stop as long
  auto opened = SyntheticSource::create(plain_portrait(), options);
  ASSERT_TRUE(opened);
  SyntheticSource& source = **opened;
  const auto first = source.receive(milliseconds(1000));
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(first->info.frame_id, 0u);
  EXPECT_LE(first->info.timestamp_sof_ns, first->info.receive_time_ns);
  std::this_thread::sleep_for(milliseconds(60));
  const auto late = source.receive(milliseconds(1000));
  ASSERT_TRUE(late);
  EXPECT_GE(late->info.frame_id, 5u);
  EXPECT_EQ(source.dropped_count(), late->info.frame_id - 1u);
  EXPECT_LE(late->info.timestamp_sof_ns, late->info.receive_time_ns);
  // Into the stop: it ends with a frame after it, some waits of 20 ms later.
  int timeouts = 0;
  uint32_t id = 0;
  for (int i = 0; i < 1000 && id < 80; ++i) {
    const auto frame = source.receive(milliseconds(20));
    if (frame) {
      id = frame->info.frame_id;
    } else {
      ASSERT_EQ(frame.error().code(), ErrorCode::Timeout) << frame.error().to_string();
      ++timeouts;
    }
  }
  EXPECT_GE(id, 80u);
  EXPECT_GE(timeouts, 1);
}

TEST(Synthetic, EveryFrameIsLateRatherThanNever) {
  SyntheticOptions options;
  options.scenario = "front";
  options.width_px = 320, options.height_px = 200;
  options.rate_hz = 200;
  options.pace = Pace::EveryFrame;
  auto opened = SyntheticSource::create(plain_portrait(), options);
  ASSERT_TRUE(opened);
  uint64_t last_sof_ns = 0;
  for (uint32_t i = 0; i < 12; ++i) {
    if (i == 4) std::this_thread::sleep_for(milliseconds(60));
    const auto frame = (*opened)->receive(milliseconds(5000));
    ASSERT_TRUE(frame) << frame.error().to_string();
    EXPECT_EQ(frame->info.frame_id, i);
    // Later frames are never closer together than the rate says, and none comes from the future.
    if (i > 0) {
      EXPECT_GE(frame->info.timestamp_sof_ns, last_sof_ns + 5'000'000);
    }
    if (i == 4) {  // the gap is that of the reader, not of the past
      EXPECT_GE(frame->info.timestamp_sof_ns, last_sof_ns + 50'000'000);
    }
    last_sof_ns = frame->info.timestamp_sof_ns;
    EXPECT_LE(last_sof_ns, frame->info.receive_time_ns);
  }
  EXPECT_EQ((*opened)->dropped_count(), 0u);
}

TEST(Synthetic, ASteadyStreamAllocatesNothing) {
  SyntheticOptions options;
  options.width_px = 320, options.height_px = 200;
  const auto source = open(options);
  std::array<Frame, 3> held;
  for (size_t i = 0; i < 10; ++i) held[i % 3] = *source->receive(milliseconds(1));
  const int64_t before = testing::allocation_count();
  for (size_t i = 0; i < 390; ++i) held[i % 3] = *source->receive(milliseconds(1));
  EXPECT_EQ(testing::allocation_count(), before);
}

TEST(Synthetic, RefusesWhatCannotBe) {
  SyntheticOptions options;
  options.scenario = "holiday";
  auto result = SyntheticSource::create(plain_portrait(), options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason(), "UnknownScenario");
  EXPECT_NE(result.error().message().find("drive"), std::string::npos);

  options = {};
  options.width_px = 1927;
  EXPECT_FALSE(SyntheticSource::create(plain_portrait(), options));
  options.width_px = 2;
  EXPECT_FALSE(SyntheticSource::create(plain_portrait(), options));
  options = {};
  options.rate_hz = std::nan("");
  EXPECT_FALSE(SyntheticSource::create(plain_portrait(), options));
  Portrait portrait = plain_portrait();
  portrait.rgb.pop_back();
  EXPECT_FALSE(SyntheticSource::create(portrait, {}));
  portrait = plain_portrait();
  portrait.left_eye_x_px = std::nan("");
  EXPECT_FALSE(SyntheticSource::create(portrait, {}));
}

}  // namespace
}  // namespace ignis::pipeline
