#include "ignis/pipeline/driver_monitoring/calibration_gate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ignis::pipeline {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kLimitNs = 2500 * kMs;
constexpr uint64_t kStartNs = 100'000 * kMs;

Calibration message(std::vector<float> rpy_rad, uint64_t made_ns) {
  Calibration calibration;
  calibration.rpy_rad = std::move(rpy_rad);
  calibration.status = CalibrationStatus::Calibrated;
  calibration.valid = true;
  calibration.log_mono_time_ns = made_ns;
  return calibration;
}

TEST(CalibrationGate, ZerosAndMissingBeforeTheFirst) {
  const CalibrationGate gate(kLimitNs);
  EXPECT_EQ(gate.rpy_rad(), (std::array{0.0F, 0.0F, 0.0F}));
  EXPECT_EQ(gate.reasons(kStartNs), Reasons(Reason::CalibMissing));
  EXPECT_EQ(gate.age_ns(kStartNs), kUnknownAge);
}

TEST(CalibrationGate, AGoodOneIsTakenAndGrowsOld) {
  CalibrationGate gate(kLimitNs);
  gate.receive(message({0.1F, -0.5F, 0.5F}, kStartNs - 10 * kMs), kStartNs);
  EXPECT_EQ(gate.rpy_rad(), (std::array{0.1F, -0.5F, 0.5F}));
  EXPECT_EQ(gate.age_ns(kStartNs), 10 * kMs);
  EXPECT_TRUE(gate.reasons(kStartNs + 2490 * kMs).is_empty()) << "2.5 s are not too old.";
  EXPECT_EQ(gate.reasons(kStartNs + 2491 * kMs), Reasons(Reason::CalibStale));
  EXPECT_EQ(gate.rpy_rad()[0], 0.1F) << "The last good one is kept.";
}

TEST(CalibrationGate, EachBadMessageIsNotTaken) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  struct Row {
    const char* name;
    Calibration bad;
    Reasons at_once;  ///< what is said while the good one is still young
  };
  Calibration not_valid = message({0.3F, 0.3F, 0.3F}, kStartNs);
  not_valid.valid = false;
  Calibration uncalibrated = message({0.3F, 0.3F, 0.3F}, kStartNs);
  uncalibrated.status = CalibrationStatus::Uncalibrated;
  Calibration recalibrating = message({0.3F, 0.3F, 0.3F}, kStartNs);
  recalibrating.status = CalibrationStatus::Recalibrating;
  Calibration not_known = message({0.3F, 0.3F, 0.3F}, kStartNs);
  not_known.status = static_cast<CalibrationStatus>(77);
  const Row rows[] = {
      {"two values", message({0.3F, 0.3F}, kStartNs), Reason::CalibShape},
      {"four values", message({0.3F, 0.3F, 0.3F, 0.3F}, kStartNs), Reason::CalibShape},
      {"no values", message({}, kStartNs), Reason::CalibShape},
      {"NaN", message({0.3F, kNan, 0.3F}, kStartNs), Reason::CalibShape},
      {"infinity", message({0.3F, 0.3F, -kInf}, kStartNs), Reason::CalibShape},
      {"0.51 rad", message({0.51F, 0.3F, 0.3F}, kStartNs), Reason::CalibShape},
      {"-0.51 rad", message({0.3F, -0.51F, 0.3F}, kStartNs), Reason::CalibShape},
      {"old", message({0.3F, 0.3F, 0.3F}, kStartNs - 2501 * kMs), Reason::CalibStale},
      {"not valid", not_valid, {}},
      {"uncalibrated", uncalibrated, {}},
      {"recalibrating", recalibrating, {}},
      {"unknown status", not_known, {}},
  };
  for (const Row& row : rows) {
    CalibrationGate gate(kLimitNs);
    gate.receive(message({0.1F, 0.1F, 0.1F}, kStartNs - 100 * kMs), kStartNs - 100 * kMs);
    gate.receive(row.bad, kStartNs);
    EXPECT_EQ(gate.rpy_rad(), (std::array{0.1F, 0.1F, 0.1F})) << row.name;
    EXPECT_EQ(gate.reasons(kStartNs), row.at_once) << row.name;
    EXPECT_EQ(gate.age_ns(kStartNs), 100 * kMs) << row.name;
    EXPECT_TRUE(gate.reasons(kStartNs + 2500 * kMs).has(Reason::CalibStale)) << row.name;
    gate.receive(message({0.2F, 0.2F, 0.2F}, kStartNs + 1), kStartNs + 2);
    EXPECT_TRUE(gate.reasons(kStartNs + 2).is_empty()) << row.name << ": a good one ends it.";
    EXPECT_EQ(gate.rpy_rad()[0], 0.2F);
  }
}

TEST(CalibrationGate, TheSendersClockIsNotTrustedAhead) {
  CalibrationGate gate(kLimitNs);
  gate.receive(message({0.1F, 0.1F, 0.1F}, std::numeric_limits<uint64_t>::max()), kStartNs);
  EXPECT_EQ(gate.age_ns(kStartNs), 0U);
  EXPECT_EQ(gate.reasons(kStartNs + 2501 * kMs), Reasons(Reason::CalibStale));
}

TEST(CalibrationGate, AnOvertakenMessageDoesNotReplaceANewerOne) {
  CalibrationGate gate(kLimitNs);
  gate.receive(message({0.1F, 0.1F, 0.1F}, kStartNs), kStartNs);
  gate.receive(message({0.2F, 0.2F, 0.2F}, kStartNs - 300 * kMs), kStartNs + 1);
  EXPECT_EQ(gate.rpy_rad()[0], 0.1F);
  EXPECT_TRUE(gate.reasons(kStartNs + 1).is_empty());
}

TEST(CalibrationGate, FixedAnglesAreChecked) {
  CalibrationGate gate(kLimitNs);
  gate.fix({0.1F, 0.9F, 0.1F});
  EXPECT_EQ(gate.rpy_rad(), (std::array{0.0F, 0.0F, 0.0F}));
  EXPECT_TRUE(gate.reasons(kStartNs).has(Reason::CalibShape));
  EXPECT_TRUE(gate.reasons(kStartNs).has(Reason::CalibMissing));
}

}  // namespace
}  // namespace ignis::pipeline
