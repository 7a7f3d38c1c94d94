#include "ignis/pipeline/driver_monitoring/consumer/alerts.h"

#include <gtest/gtest.h>

namespace ignis::pipeline {
namespace {

const PolicySettings kPolicy;

AlertInput input(Attention attention) {
  AlertInput result;
  result.attention = attention;
  result.watches_wheel = attention == Attention::Unknown;
  result.elapsed_s = result.seen_s = 0.05;
  return result;
}

void run(Alerts& alerts, const AlertInput& turn, double seconds) {
  for (int i = 0; i < static_cast<int>(seconds * 20 + 0.5); ++i) alerts.step(turn);
}

AlertLevel after(const AlertInput& turn, double seconds) {
  Alerts alerts(kPolicy);
  run(alerts, turn, seconds);
  return alerts.level();
}

TEST(Alerts, SeenDistractionWarnsAt5And8And13Seconds) {
  const AlertInput turn = input(Attention::Distracted);
  EXPECT_EQ(after(turn, 4.95), AlertLevel::None);
  EXPECT_EQ(after(turn, 5), AlertLevel::Notice);
  EXPECT_EQ(after(turn, 7.95), AlertLevel::Notice);
  EXPECT_EQ(after(turn, 8), AlertLevel::Prompt);
  EXPECT_EQ(after(turn, 12.95), AlertLevel::Prompt);
  EXPECT_EQ(after(turn, 13), AlertLevel::Top);
}

TEST(Alerts, UntouchedWheelWarnsAt5And15And25Seconds) {
  const AlertInput turn = input(Attention::Unknown);
  EXPECT_EQ(after(turn, 4.95), AlertLevel::None);
  EXPECT_EQ(after(turn, 5), AlertLevel::Notice);
  EXPECT_EQ(after(turn, 14.95), AlertLevel::Notice);
  EXPECT_EQ(after(turn, 15), AlertLevel::Prompt);
  EXPECT_EQ(after(turn, 24.95), AlertLevel::Prompt);
  EXPECT_EQ(after(turn, 25), AlertLevel::Top);
}

TEST(Alerts, ATouchAnswersBelowTheTop) {
  Alerts alerts(kPolicy);
  run(alerts, input(Attention::Unknown), 20);
  AlertInput touch = input(Attention::Unknown);
  touch.is_touched = true;
  alerts.step(touch);
  EXPECT_EQ(alerts.level(), AlertLevel::None);
  EXPECT_EQ(alerts.wheel_s(), 0);
  run(alerts, input(Attention::Unknown), 25);
  alerts.step(touch);
  EXPECT_EQ(alerts.level(), AlertLevel::Top);
}

TEST(Alerts, RecoveryIsFasterNearTheTop) {
  Alerts alerts(kPolicy);
  run(alerts, input(Attention::Distracted), 12.95);
  const double near_top = alerts.vision_s();
  alerts.step(input(Attention::Attentive));
  // 1.25 + 3.75 * 12.95 / 13 = 4.98558 seconds a second
  EXPECT_NEAR(near_top - alerts.vision_s(), 0.05 * 4.98558, 1e-6);
  Alerts fresh(kPolicy);
  run(fresh, input(Attention::Distracted), 1.3);
  fresh.step(input(Attention::Attentive));
  EXPECT_NEAR(fresh.vision_s(), 1.3 - 0.05 * (1.25 + 3.75 * 0.1), 1e-9);
  run(fresh, input(Attention::Attentive), 10);
  EXPECT_EQ(fresh.vision_s(), 0);
}

TEST(Alerts, TheTopDoesNotRecoverByLooking) {
  Alerts alerts(kPolicy);
  run(alerts, input(Attention::Distracted), 13);
  run(alerts, input(Attention::Attentive), 2);
  EXPECT_EQ(alerts.level(), AlertLevel::Top);
  AlertInput off = input(Attention::Attentive);
  off.is_engaged = false;
  alerts.step(off);
  EXPECT_EQ(alerts.level(), AlertLevel::None);
}

TEST(Alerts, UnknownNeverRecovers) {
  Alerts alerts(kPolicy);
  run(alerts, input(Attention::Distracted), 6);
  const double before = alerts.vision_s();
  run(alerts, input(Attention::Unknown), 4);
  EXPECT_EQ(alerts.vision_s(), before);
  EXPECT_NEAR(alerts.wheel_s(), 4, 1e-9);
}

TEST(Alerts, HidingTheFaceAfterThePromptDoesNotStopTheClock) {
  Alerts alerts(kPolicy);
  run(alerts, input(Attention::Distracted), 8);
  ASSERT_EQ(alerts.level(), AlertLevel::Prompt);
  run(alerts, input(Attention::Unknown), 5);
  EXPECT_EQ(alerts.level(), AlertLevel::Top);
}

TEST(Alerts, NoneWhenSlowOrNotEngaged) {
  AlertInput slow = input(Attention::Distracted);
  slow.is_slow = true;
  EXPECT_EQ(after(slow, 60), AlertLevel::None);
  AlertInput off = input(Attention::Distracted);
  off.is_engaged = false;
  EXPECT_EQ(after(off, 60), AlertLevel::None);
}

TEST(Alerts, NoResponseFor5SecondsLocksOut) {
  Alerts alerts(kPolicy);
  run(alerts, input(Attention::Distracted), 13 + 4.9);
  EXPECT_EQ(alerts.lockout_s(), 0);
  run(alerts, input(Attention::Distracted), 0.1);
  EXPECT_EQ(alerts.lockouts(), 1);
  EXPECT_NEAR(alerts.lockout_s(), 60, 1e-9);
  run(alerts, input(Attention::Distracted), 30);
  EXPECT_EQ(alerts.lockouts(), 1) << "one alert locks out once";
  EXPECT_NEAR(alerts.lockout_s(), 30, 1e-6);
}

TEST(Alerts, TwoTopAlertsLockOutForLongerEachTime) {
  Alerts alerts(kPolicy);
  AlertInput off = input(Attention::Unknown);
  off.is_engaged = false;
  for (const double expected_s : {60.0, 300.0, 900.0, 1800.0, 1800.0}) {
    run(alerts, input(Attention::Distracted), 13);
    EXPECT_EQ(alerts.top_alerts(), 1);
    EXPECT_EQ(alerts.lockout_s(), 0);
    alerts.step(off);
    run(alerts, input(Attention::Distracted), 13);
    EXPECT_NEAR(alerts.lockout_s(), expected_s, 1e-9);
    EXPECT_EQ(alerts.top_alerts(), 0);
    run(alerts, off, expected_s + 0.05);
    EXPECT_EQ(alerts.lockout_s(), 0);
  }
  EXPECT_EQ(alerts.lockouts(), 5);
}

}  // namespace
}  // namespace ignis::pipeline
