#include "ignis/runtime/device_life.h"

#include "ignis/runtime/completion.h"
#include "ignis/runtime/reasons.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace ignis::runtime {
namespace {

TEST(DeviceLife, GoesFromOnlineOverStalledToUnavailableAndBack) {
  DeviceLife life;
  EXPECT_TRUE(life.is_online());
  life.stall("R stands at 3");
  EXPECT_EQ(life.state().condition, DeviceCondition::Stalled);
  EXPECT_FALSE(life.is_online());
  life.resume();
  EXPECT_TRUE(life.is_online());
  EXPECT_EQ(life.state().reason, "");
  life.stall("R stands at 3");
  EXPECT_EQ(life.lose("fault 7"), "fault 7");
  EXPECT_EQ(life.lose("something later"), "fault 7") << "the first cause counts";
  life.resume();
  life.stall("again");
  EXPECT_EQ(life.state().condition, DeviceCondition::Unavailable);
  EXPECT_EQ(life.state().reason, "fault 7");
  life.reopen();
  EXPECT_TRUE(life.is_online());
  EXPECT_EQ(life.state().generation, 2u);
  EXPECT_EQ(life.state().reason, "");
}

TEST(DeviceLife, ErrorsNameTheDeviceAndTheWayOut) {
  const Error gone = device_unavailable("CUDA:1", {DeviceCondition::Unavailable, "fault 7", 1});
  EXPECT_EQ(gone.code(), ErrorCode::DeviceLost);
  EXPECT_EQ(gone.reason(), "DeviceUnavailable");
  EXPECT_EQ(gone.message(),
            "Device 'CUDA:1' is not available (fault 7). Reopen it and link again what was linked "
            "for it.");
  const Error stale = stale_link("AMD", 1, 2);
  EXPECT_EQ(stale.code(), ErrorCode::DeviceLost);
  EXPECT_EQ(stale.reason(), "StaleLink");
}

// A lower level never stands for a higher one, and nobody makes a level without its proof.
TEST(Completion, LevelsAreTypesApart) {
  static_assert(!std::is_convertible_v<Submitted, QueueComplete>);
  static_assert(!std::is_convertible_v<Submitted, KernelComplete>);
  static_assert(!std::is_convertible_v<Submitted, DataReadable>);
  static_assert(!std::is_convertible_v<QueueComplete, KernelComplete>);
  static_assert(!std::is_convertible_v<QueueComplete, DataReadable>);
  static_assert(!std::is_convertible_v<KernelComplete, DataReadable>);
  static_assert(!std::is_constructible_v<KernelComplete, QueueComplete>);
  static_assert(!std::is_constructible_v<KernelComplete, Submitted>);
  static_assert(!std::is_constructible_v<DataReadable, KernelComplete>);
  static_assert(!std::is_default_constructible_v<Submitted>);
  static_assert(!std::is_default_constructible_v<QueueComplete>);
  static_assert(!std::is_default_constructible_v<KernelComplete>);
  static_assert(!std::is_default_constructible_v<DataReadable>);
}

}  // namespace
}  // namespace ignis::runtime
