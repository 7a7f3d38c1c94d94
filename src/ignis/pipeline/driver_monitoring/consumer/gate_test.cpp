#include "ignis/pipeline/driver_monitoring/consumer/gate.h"

#include <gtest/gtest.h>

namespace ignis::pipeline {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStart = 1000 * kMs;

/// A gate that hears a publisher at 20 Hz.
class Road {
 public:
  explicit Road(GateOptions options = {}) : gate_(options, kStart) {}

  DriverStateQuality good() {
    DriverStateQuality quality;
    quality.frame_id = ++frame_id_;
    quality.valid = true;
    quality.publish_time_ns = now_;
    quality.writer_id = 1;
    quality.profile_version = 1;
    quality.warp_id = 1;
    return quality;
  }
  void pass(uint64_t ms) { now_ += ms * kMs; }
  template <typename Change>
  void publish(uint64_t for_ms, Change change) {
    for (uint64_t ms = 0; ms < for_ms; ms += 50) {
      pass(50);
      DriverStateQuality quality = good();
      change(quality);
      gate_.receive(quality, now_);
    }
  }
  void publish_good(uint64_t for_ms) {
    publish(for_ms, [](DriverStateQuality&) {});
  }
  ControlRequest ask() { return gate_.check(now_); }
  bool asks_to_leave() { return ask().kind == ControlRequest::Kind::LeaveControl; }
  uint64_t now() const { return now_; }
  Gate& gate() { return gate_; }

 private:
  Gate gate_;
  uint64_t now_ = kStart;
  uint32_t frame_id_ = 0;
};

TEST(Gate, StartsWithARequestAndEndsItAfterTheStatedTime) {
  Road road;
  EXPECT_TRUE(road.asks_to_leave());
  EXPECT_EQ(road.ask().cause, LeaveCause::Starting);
  EXPECT_EQ(road.ask().since_ns, kStart);
  road.publish_good(2000);  // the first comes at 50 ms: 1.95 s of evidence
  EXPECT_TRUE(road.asks_to_leave());
  road.publish_good(50);
  EXPECT_FALSE(road.asks_to_leave());
}

TEST(Gate, ModelUnavailableAsksAtOnce) {
  Road road;
  road.publish_good(2100);
  ASSERT_FALSE(road.asks_to_leave());
  road.publish(50, [](DriverStateQuality& quality) {
    quality.valid = false;
    quality.reasons = Reason::ModelUnavailable;
  });
  const ControlRequest request = road.ask();
  EXPECT_EQ(request.kind, ControlRequest::Kind::LeaveControl);
  EXPECT_EQ(request.cause, LeaveCause::ModelUnavailable);
  EXPECT_EQ(request.since_ns, road.now());
}

TEST(Gate, NotValidAsksAfterTheLimitOnly) {
  for (const Reason reason : {Reason::FrameTimeout, Reason::NonFinite, Reason::RunTimeout}) {
    Road road;
    road.publish_good(2100);
    const auto bad = [&](DriverStateQuality& quality) {
      quality.valid = false;
      quality.reasons = reason;
    };
    road.publish(1000, bad);
    EXPECT_FALSE(road.asks_to_leave());
    road.publish(50, bad);
    EXPECT_TRUE(road.asks_to_leave());
    EXPECT_EQ(road.ask().cause, LeaveCause::NotValid);
  }
}

TEST(Gate, ABlockingReasonIsNotBelievedToBeValid) {
  Road road;
  road.publish_good(2100);
  road.publish(1100, [](DriverStateQuality& quality) { quality.reasons = Reason::NonFinite; });
  EXPECT_EQ(road.ask().cause, LeaveCause::NotValid);
  // A reason that only informs is no fault, unless the deployment says so.
  Road informed;
  informed.publish(2100, [](DriverStateQuality& quality) { quality.reasons = Reason::CalibStale; });
  EXPECT_FALSE(informed.asks_to_leave());
  GateOptions strict;
  strict.also_blocking = Reason::CalibStale;
  Road blocked(strict);
  blocked.publish(2100, [](DriverStateQuality& quality) { quality.reasons = Reason::CalibStale; });
  EXPECT_EQ(blocked.ask().cause, LeaveCause::NotValid);
}

TEST(Gate, AKilledPublisherIsNoticedWithoutAnyMessage) {
  Road road;
  road.publish_good(2100);
  road.pass(1000);
  EXPECT_FALSE(road.asks_to_leave());
  road.pass(1);
  EXPECT_TRUE(road.asks_to_leave());
  EXPECT_EQ(road.ask().cause, LeaveCause::NoCompanion);
  EXPECT_EQ(road.ask().since_ns, road.now());
}

TEST(Gate, APublisherThatNeverCameIsNoCompanion) {
  Road road;
  road.pass(1001);
  EXPECT_EQ(road.ask().cause, LeaveCause::NoCompanion);
  EXPECT_EQ(road.ask().since_ns, kStart) << "it never ended since the start";
}

TEST(Gate, TwoWritersAskAtOnce) {
  Road road;
  road.publish_good(2100);
  const auto second = [](DriverStateQuality& quality) { quality.writer_id = 2; };
  road.publish(50, second);
  EXPECT_FALSE(road.asks_to_leave()) << "one change may be a restart";
  road.publish_good(50);
  EXPECT_TRUE(road.asks_to_leave());
  EXPECT_EQ(road.ask().cause, LeaveCause::TwoWriters);
  for (int i = 0; i < 100; ++i) {
    road.publish(50, second);
    road.publish_good(50);
  }
  EXPECT_EQ(road.ask().cause, LeaveCause::TwoWriters) << "no recovery while both speak";
}

TEST(Gate, ARestartedPublisherIsOneWriter) {
  Road road;
  road.publish_good(2100);
  road.pass(400);
  road.publish(3000, [](DriverStateQuality& quality) { quality.writer_id = 2; });
  EXPECT_FALSE(road.asks_to_leave());
}

TEST(Gate, OldOrFutureCompanionsAreNoEvidence) {
  for (const int64_t offset_ms : {-501, 1}) {
    Road road;
    road.publish_good(2100);
    road.publish(1100, [&](DriverStateQuality& quality) {
      quality.publish_time_ns += static_cast<uint64_t>(offset_ms * static_cast<int64_t>(kMs));
    });
    EXPECT_TRUE(road.asks_to_leave());
    EXPECT_EQ(road.ask().cause, LeaveCause::StaleCompanion);
  }
}

TEST(Gate, TheSameFrameAgainIsNoEvidence) {
  Road road;
  road.publish_good(2100);
  road.publish(1100, [](DriverStateQuality& quality) { quality.frame_id = 7; });
  EXPECT_EQ(road.ask().cause, LeaveCause::RepeatedFrame);
}

TEST(Gate, OtherVersionsAskAtOnce) {
  GateOptions options;
  options.profile_version = 1;
  options.warp_id = 1;
  for (const bool is_warp : {false, true}) {
    Road road(options);
    road.publish_good(2100);
    ASSERT_FALSE(road.asks_to_leave());
    road.publish(50, [&](DriverStateQuality& quality) {
      (is_warp ? quality.warp_id : quality.profile_version) = 2;
    });
    EXPECT_TRUE(road.asks_to_leave());
    EXPECT_EQ(road.ask().cause, LeaveCause::VersionMismatch);
  }
}

TEST(Gate, IsLatchedUntilValidWithoutABreak) {
  Road road;
  road.publish_good(2100);
  road.publish(50, [](DriverStateQuality& quality) { quality.reasons = Reason::ModelUnavailable; });
  const uint64_t since = road.ask().since_ns;
  road.publish_good(1950);
  EXPECT_TRUE(road.asks_to_leave());
  EXPECT_EQ(road.ask().since_ns, since);
  // One bad companion, or a pause, starts the count anew.
  road.publish(50, [](DriverStateQuality& quality) { quality.valid = false; });
  road.publish_good(1950);
  EXPECT_TRUE(road.asks_to_leave());
  road.pass(300);
  road.publish_good(2000);
  EXPECT_TRUE(road.asks_to_leave());
  EXPECT_EQ(road.ask().cause, LeaveCause::ModelUnavailable);
  EXPECT_EQ(road.ask().since_ns, since);
  road.publish_good(50);
  EXPECT_FALSE(road.asks_to_leave());
}

TEST(Gate, ASilenceBetweenTwoMessagesIsNoticedWithoutPolling) {
  Road road;
  road.publish_good(2100);
  road.pass(5000);
  road.publish_good(50);
  EXPECT_TRUE(road.asks_to_leave());
  EXPECT_EQ(road.ask().cause, LeaveCause::NoCompanion);
}

}  // namespace
}  // namespace ignis::pipeline
