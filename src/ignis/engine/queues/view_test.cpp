#include "ignis/engine/queues/view.h"

#include "ignis/engine/queues/test_world.h"

#include <gtest/gtest.h>

namespace ignis::engine {
namespace {

exec::BufferView as_items(exec::BufferView view, int item_bytes) {
  exec::ViewStep step;
  step.kind = exec::ViewStep::Kind::Reinterpret;
  step.item_bytes = item_bytes;
  view.steps.push_back(step);
  return view;
}

TEST(View, OffsetsAddUpInBytesThroughAnyNesting) {
  TestWorld world;
  const exec::BufferView floats = world.buffer("f", {"A", "B"}, 256, 4);
  const auto resolve = [&](const exec::BufferView& view) {
    return resolve_view(world.schedule.buffers, view).value();
  };
  const exec::BufferRange expected{0, 0, 32, 32, 4};
  EXPECT_EQ(resolve(slice(select_lane(floats, 0), 8, 16)), expected);
  EXPECT_EQ(resolve(select_lane(slice(floats, 8, 16), 0)), expected);
  EXPECT_EQ(resolve(slice(select_lane(slice(floats, 4, 32), 0), 4, 12)), expected);
  // Bytes [8, 12) of a float view, then its last byte.
  const exec::BufferRange last_byte{0, 1, 11, 1, 1};
  EXPECT_EQ(resolve(slice(as_items(select_lane(slice(floats, 2, 3), 1), 1), 3, 4)), last_byte);
  const exec::BufferRange all_lanes{0, exec::kAllLanes, 0, 256, 4};
  EXPECT_EQ(resolve(floats), all_lanes);
}

TEST(View, OneDeviceIsLaneZero) {
  TestWorld world;
  const exec::BufferView bytes = world.buffer("b", {"A"}, 8);
  EXPECT_EQ(resolve_view(world.schedule.buffers, bytes)->lane, 0);
  EXPECT_EQ(resolve_view(world.schedule.buffers, select_lane(bytes, 0))->lane, 0);
}

TEST(View, WhatDoesNotFitIsRefusedWithBothValues) {
  TestWorld world;
  const exec::BufferView bytes = world.buffer("b", {"A", "B"}, 10);
  const auto message = [&](const exec::BufferView& view) -> std::string {
    const auto range = resolve_view(world.schedule.buffers, view);
    if (range) return "";
    EXPECT_EQ(range.error().code(), ErrorCode::InvalidArgument);
    return range.error().message();
  };
  EXPECT_EQ(message(slice(bytes, 4, 11)), "A view of buffer 'b' takes the elements [4, 11) of 10.");
  EXPECT_NE(message(slice(bytes, -1, 4)), "");
  EXPECT_NE(message(slice(bytes, 5, 4)), "");
  EXPECT_NE(message(slice(slice(bytes, 2, 4), 0, 3)), "");  // beyond the slice, within the buffer
  EXPECT_EQ(message(select_lane(bytes, 2)), "A view of buffer 'b' selects lane 2 of 2.");
  EXPECT_NE(message(select_lane(bytes, -1)), "");
  EXPECT_EQ(message(select_lane(select_lane(bytes, 0), 1)),
            "A view of buffer 'b' selects lane 1 of lane 0.");
  EXPECT_EQ(message(as_items(bytes, 4)),
            "A view of buffer 'b' reads 10 bytes at byte 0 as items of 4 bytes.");
  EXPECT_NE(message(as_items(slice(bytes, 2, 6), 4)), "");  // at byte 2
  EXPECT_NE(message(as_items(bytes, 0)), "");
  exec::BufferView nowhere;
  nowhere.buffer = 7;
  EXPECT_EQ(message(nowhere), "A view names buffer 7 of 1.");
  EXPECT_EQ(message(slice(bytes, 10, 10)), "");
}

}  // namespace
}  // namespace ignis::engine
