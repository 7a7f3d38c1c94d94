// A program of its own: it counts every allocation of the process.

#include "ignis/pipeline/driver_monitoring/testing/test_host_rig.h"

#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace ignis::pipeline {
namespace {

TEST(Allocations, TheCounterCounts) {
  const int64_t before = ignis::testing::allocation_count();
  auto something = std::make_unique<std::vector<int>>(100);
  EXPECT_EQ(ignis::testing::allocation_count() - before, 2);
}

/// Frames, calibration and reports of a running host; the frames are made before.
int64_t count_in_steady_state(HostRig& rig) {
  rig.options.watches_view = true;
  rig.options.publishes_raw = true;
  rig.start();
  rig.calibrate();
  std::vector<Frame> frames;
  std::vector<uint64_t> at_ns;
  for (int i = 0; i < 120; ++i) {
    frames.push_back(rig.next_frame());
    at_ns.push_back(rig.now_ns);
  }
  Calibration calibration;
  calibration.rpy_rad = {0.01F, 0.02F, 0.03F};
  calibration.status = CalibrationStatus::Calibrated;
  calibration.valid = true;
  int64_t before = 0;
  int valid = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (i == 10) before = ignis::testing::allocation_count();
    rig.now_ns = at_ns[i];
    calibration.log_mono_time_ns = at_ns[i];
    rig.host->calibrate(calibration);
    valid += rig.process(frames[i]).quality.valid ? 1 : 0;
    rig.host->check_watchdog();
  }
  const int64_t count = ignis::testing::allocation_count() - before;
  EXPECT_EQ(valid, 120);
  return count;
}

TEST(Allocations, NoneForAFrameAfterTheTenth) {
  HostRig rig;
  EXPECT_EQ(count_in_steady_state(rig), 0);
}

TEST(Allocations, NoneInTheDecodeOfTwoSides) {
  HostRig rig;
  std::vector<float> output(553);
  for (size_t i = 0; i < output.size(); ++i)
    output[i] = static_cast<float>((37 * i) % 101) / 25 - 2;
  rig.script->set_output(output);
  EXPECT_EQ(count_in_steady_state(rig), 0);
}

}  // namespace
}  // namespace ignis::pipeline
