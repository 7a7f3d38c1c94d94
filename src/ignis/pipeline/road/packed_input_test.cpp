#include "ignis/pipeline/road/packed_input.h"

#include "ignis/pipeline/road/test_fake_road_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ignis::pipeline {
namespace {

using testing::fake_contract;
using testing::fake_input;
using testing::fake_layout;

PackedLayout packed_for(int width_px, int height_px) {
  const FrameLayout layout = *nv12_layout(width_px, height_px);
  return *make_packed_layout(fake_contract(layout), layout);
}

// Section 11.1.
TEST(PackedLayout, HasTheTotalsOfTheContract) {
  EXPECT_EQ(packed_for(1928, 1208).size_bytes, 7471616u);
  EXPECT_EQ(packed_for(1344, 760).size_bytes, 3244544u);
}

TEST(PackedLayout, EachBlockIsRoundedTo128Bytes) {
  const PackedLayout layout = packed_for(1928, 1208);
  ASSERT_EQ(layout.views.size(), 5u);
  const uint64_t offsets[] = {0, 128, 256, 384, 512};
  const uint64_t sizes[] = {72, 32, 8, 8, 2 * 3735552};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(layout.views[i].offset_bytes, offsets[i]);
    EXPECT_EQ(layout.views[i].size_bytes, sizes[i]);
  }
  EXPECT_EQ(layout.frame_bytes, 3735552u);
}

TEST(PackedLayout, FollowsTheArtifactsOrder) {
  RoadContract contract = fake_contract();
  std::swap(contract.inputs[1], contract.inputs[3]);
  const auto layout = make_packed_layout(contract, fake_layout());
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->views[1].name, kActionInput);
  EXPECT_EQ(layout->views[3].name, kDesireInput);
}

using ChangeContract = void (*)(RoadContract&);

TEST(PackedLayout, RefusesWhatTheHostCannotFill) {
  const ChangeContract changes[] = {
      [](RoadContract& c) { c.inputs[0].dtype = DType::Float64; },
      [](RoadContract& c) { c.inputs[0].shape = {2, 3, 4}; },
      [](RoadContract& c) { c.inputs[1].shape = {1, 9}; },
      [](RoadContract& c) { c.inputs[1].shape = {-1, 8}; },
      [](RoadContract& c) { c.inputs[1].shape = {int64_t{1} << 40, int64_t{1} << 40}; },
      [](RoadContract& c) { c.inputs[2].name = "lateral_control_params"; },
      [](RoadContract& c) { c.inputs[2] = c.inputs[3]; },
      [](RoadContract& c) { c.inputs[4].shape[1] -= 1; },
      [](RoadContract& c) { c.inputs[4].dtype = DType::Int8; },
      [](RoadContract& c) { std::swap(c.inputs[3], c.inputs[4]); },
      [](RoadContract& c) { c.inputs.clear(); },
  };
  int row = 0;
  for (const ChangeContract change : changes) {
    RoadContract contract = fake_contract();
    change(contract);
    const auto layout = make_packed_layout(contract, fake_layout());
    EXPECT_FALSE(layout) << row;
    ++row;
  }
  // Frames without the padding are not copied as one block.
  const FrameLayout tight = *tight_nv12_layout(64, 48);
  const auto layout = make_packed_layout(fake_contract(), tight);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().reason(), "ContractMismatch");
}

using ChangeLayout = void (*)(PackedLayout&);

TEST(Views, AreHeldAgainstTheArtifactAtBind) {
  const RoadContract contract = fake_contract();
  const PackedLayout good = *make_packed_layout(contract, fake_layout());
  EXPECT_TRUE(check_views(good, contract.inputs));
  const ChangeLayout changes[] = {
      [](PackedLayout& p) { p.views[1].dtype = DType::Float16; },
      [](PackedLayout& p) { p.views[1].shape = {8}; },
      [](PackedLayout& p) { p.views[1].name = "other"; },
      [](PackedLayout& p) { p.views[1].size_bytes = 28; },
      [](PackedLayout& p) { p.views[1].offset_bytes += 4; },
      [](PackedLayout& p) { p.views[1].offset_bytes = 0; },
      [](PackedLayout& p) { p.size_bytes -= 1; },
      [](PackedLayout& p) { p.views[4].offset_bytes = UINT64_MAX - 127; },
      [](PackedLayout& p) { p.views.pop_back(); },
  };
  int row = 0;
  for (const ChangeLayout change : changes) {
    PackedLayout layout = good;
    change(layout);
    const Status status = check_views(layout, contract.inputs);
    ASSERT_FALSE(status) << row;
    EXPECT_EQ(status.error().reason(), "ViewMismatch") << row;
    ++row;
  }
}

TEST(PackedInput, HoldsWhatWasWritten) {
  auto packed = PackedInput::create(*make_packed_layout(fake_contract(), fake_layout()));
  ASSERT_TRUE(packed);
  EXPECT_TRUE(std::all_of(packed->bytes().begin(), packed->bytes().end(),
                          [](std::byte b) { return b == std::byte{0}; }));
  RoadInput input = fake_input();
  std::vector<std::byte> main(static_cast<size_t>(fake_layout().size_bytes), std::byte{1});
  std::vector<std::byte> wide(static_cast<size_t>(fake_layout().size_bytes), std::byte{2});
  input.main.bytes = main;
  input.wide.bytes = wide;
  for (size_t i = 0; i < 9; ++i) {
    input.transforms[0][i] = static_cast<float>(i);
    input.transforms[1][i] = static_cast<float>(10 + i);
  }
  packed->write(input, {0, 0, 0, 1, 0, 0, 0, 0});
  const auto floats = [&](size_t view) {
    std::vector<float> values(packed->view(view).size() / sizeof(float));
    std::memcpy(values.data(), packed->view(view).data(), packed->view(view).size());
    return values;
  };
  EXPECT_EQ(floats(0), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8,  //
                                           10, 11, 12, 13, 14, 15, 16, 17, 18}));
  EXPECT_EQ(floats(1), (std::vector<float>{0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(floats(2), (std::vector<float>{1, 0}));
  EXPECT_EQ(floats(3), (std::vector<float>{0.2f, 0.5f}));
  const auto frames = packed->view(4);
  const size_t half = frames.size() / 2;
  EXPECT_EQ(frames[0], std::byte{1});
  EXPECT_EQ(frames[half - 1], std::byte{1});
  EXPECT_EQ(frames[half], std::byte{2});
  EXPECT_EQ(frames[2 * half - 1], std::byte{2});

  packed->write_warm_up();
  EXPECT_EQ(floats(0), (std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1,  //
                                           1, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(floats(3), (std::vector<float>{0, 0}));
  EXPECT_EQ(packed->view(4)[0], std::byte{0});
}

TEST(RoadInput, WhatNoModelShouldSeeIsRefused) {
  using Change = void (*)(RoadInput&);
  const std::pair<Change, const char*> rows[] = {
      {[](RoadInput& i) { i.wide.layout.width_px = 66; }, "BadFrame"},
      {[](RoadInput& i) { i.main.layout.y_stride += 128; }, "BadFrame"},
      {[](RoadInput& i) { i.main.bytes = i.main.bytes.first(100); }, "BadFrame"},
      {[](RoadInput& i) { i.wide.info.valid = false; }, "BadFrame"},
      {[](RoadInput& i) { i.transforms[0][8] = NAN; }, "NonFiniteInput"},
      {[](RoadInput& i) { i.desire[7] = INFINITY; }, "NonFiniteInput"},
      {[](RoadInput& i) { i.traffic_convention[1] = NAN; }, "NonFiniteInput"},
      {[](RoadInput& i) { i.action_t[0] = -INFINITY; }, "NonFiniteInput"},
  };
  EXPECT_TRUE(check_road_input(fake_input(), fake_layout()));
  for (const auto& [change, reason] : rows) {
    RoadInput input = fake_input();
    change(input);
    const Status status = check_road_input(input, fake_layout());
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().reason(), reason);
  }
}

TEST(DesirePulse, PassesARiseOnceAndElementZeroNever) {
  DesirePulse pulse;
  using Desire = std::array<float, kDesireCount>;
  EXPECT_EQ(pulse.step({1, 0, 0, 0, 0, 0, 0, 0}), Desire{});
  EXPECT_EQ(pulse.step({1, 1, 0, 0, 0, 0, 0, 0}), (Desire{0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(pulse.step({1, 1, 0, 0, 0, 0, 0, 0}), Desire{}) << "held";
  EXPECT_EQ(pulse.step({0, 1, 1, 0, 0, 0, 0, 0}), (Desire{0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(pulse.step({}), Desire{}) << "a fall is no pulse";
  EXPECT_EQ(pulse.step({0, 0.99f, 0, 0, 0, 0, 0, 0}), Desire{}) << "not more than 0.99";
  EXPECT_EQ(pulse.step({0, 1, 0, 0, 0, 0, 0, 0}), Desire{}) << "a rise of 0.01";
  pulse.clear();
  EXPECT_EQ(pulse.step({0, 1, 0, 0, 0, 0, 0, 0}), (Desire{0, 1, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace ignis::pipeline
