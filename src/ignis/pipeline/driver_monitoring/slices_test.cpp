#include "ignis/pipeline/driver_monitoring/slices.h"

#include "ignis/pipeline/driver_monitoring/profile.h"

#include <gtest/gtest.h>

#include <functional>

namespace ignis::pipeline {
namespace {

NamedSlice& find(std::vector<NamedSlice>& slices, const std::string& name) {
  for (NamedSlice& slice : slices) {
    if (slice.name == name) return slice;
  }
  ADD_FAILURE() << name;
  return slices.front();
}

// Section 5.1: sides at 0 and 20, confirmed indices 19, 39, 40 and the total.
TEST(Slices, DefaultTableOf553Outputs) {
  const auto table = make_head_table(*default_slices(553), 553);
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_EQ(table->left.descriptor, (Slice{"face_descs_lhd", 0, 12}));
  EXPECT_EQ(table->right.descriptor, (Slice{"face_descs_rhd", 20, 32}));
  for (int i = 0; i < kHeadCount; ++i) {
    EXPECT_EQ(table->left.heads[static_cast<size_t>(i)].start, 12 + i);
    EXPECT_EQ(table->right.heads[static_cast<size_t>(i)].start, 32 + i);
  }
  EXPECT_EQ(table->left.heads[7], (Slice{"sleep_prob_lhd", 19, 20}));
  EXPECT_EQ(table->right.heads[7], (Slice{"sleep_prob_rhd", 39, 40}));
  EXPECT_EQ(table->wheel_on_right, (Slice{"wheel_on_right", 40, 41}));
  EXPECT_EQ(table->used.size(), 19u);
  EXPECT_EQ(default_slices(553)->back(), (NamedSlice{"features", 41, 553}));
}

// The older generation has no sleep heads: sides of 19, wheel at 38, features from 39.
TEST(Slices, DefaultTableOf551Outputs) {
  const auto table = make_head_table(*default_slices(551), 551);
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_FALSE(table->left.has(Head::Sleep));
  EXPECT_TRUE(table->left.has(Head::Phone));
  EXPECT_EQ(table->right.descriptor.start, 19);
  EXPECT_EQ(table->wheel_on_right.start, 38);
  EXPECT_EQ(default_slices(551)->back(), (NamedSlice{"features", 39, 551}));
}

TEST(Slices, NoDefaultWhereTheLayoutIsNotCertain) {
  for (const int64_t count : {595, 596, 38, 552, 0}) {
    const auto slices = default_slices(count);
    ASSERT_FALSE(slices) << count;
    EXPECT_EQ(slices.error().code(), ErrorCode::Unsupported);
    EXPECT_NE(slices.error().message().find(std::to_string(count)), std::string::npos);
  }
}

struct TableFault {
  const char* name;
  std::function<void(std::vector<NamedSlice>&)> break_it;
  const char* reason;
  Reason bit;
};

TEST(Slices, EachFaultOfATableIsALoadErrorWithItsReason) {
  const TableFault faults[] = {
      // Section 10.6.
      {"a slice ends at 560", [](auto& s) { find(s, "features").stop = 560; }, "SliceOutOfRange",
       Reason::SliceOutOfRange},
      {"a descriptor of 9", [](auto& s) { find(s, "face_descs_lhd").stop = 9; }, "SliceWidth",
       Reason::SliceWidth},
      {"a head ends at 554",
       [](auto& s) { find(s, "wheel_on_right") = {"wheel_on_right", 553, 554}; }, "SliceOutOfRange",
       Reason::SliceOutOfRange},
      {"an empty head", [](auto& s) { find(s, "face_prob_lhd").stop = 12; }, "SliceOutOfRange",
       Reason::SliceOutOfRange},
      {"a head from right to left", [](auto& s) { find(s, "face_prob_lhd").stop = 3; },
       "SliceOutOfRange", Reason::SliceOutOfRange},
      {"a start before the vector", [](auto& s) { find(s, "face_prob_lhd").start = -600; },
       "SliceOutOfRange", Reason::SliceOutOfRange},
      {"the lowest integer", [](auto& s) { find(s, "face_prob_lhd").start = INT64_MIN; },
       "SliceOutOfRange", Reason::SliceOutOfRange},
      {"the highest integer", [](auto& s) { find(s, "face_prob_lhd").stop = INT64_MAX; },
       "SliceOutOfRange", Reason::SliceOutOfRange},
      {"a head of two", [](auto& s) { find(s, "sleep_prob_rhd") = {"sleep_prob_rhd", 38, 40}; },
       "SliceWidth", Reason::SliceWidth},
      {"two heads at one place",
       [](auto& s) { find(s, "left_eye_prob_lhd") = {"left_eye_prob_lhd", 12, 13}; },
       "SliceOverlap", Reason::SliceOverlap},
      {"a head inside the other side's descriptor",
       [](auto& s) { find(s, "face_prob_lhd") = {"face_prob_lhd", 25, 26}; }, "SliceOverlap",
       Reason::SliceOverlap},
      {"features over a head", [](auto& s) { find(s, "features").start = 40; }, "SliceOverlap",
       Reason::SliceOverlap},
      {"no descriptor", [](auto& s) { find(s, "face_descs_rhd").name = "other"; }, "SliceMissing",
       Reason::ArtifactMismatch},
      {"no wheel", [](auto& s) { find(s, "wheel_on_right").name = "other"; }, "SliceMissing",
       Reason::ArtifactMismatch},
      {"an empty map", [](auto& s) { s.clear(); }, "SliceMissing", Reason::ArtifactMismatch},
  };
  for (const TableFault& fault : faults) {
    SCOPED_TRACE(fault.name);
    std::vector<NamedSlice> slices = *default_slices(553);
    fault.break_it(slices);
    const auto table = make_head_table(slices, 553);
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().code(), ErrorCode::InvalidArgument);
    EXPECT_EQ(table.error().reason(), fault.reason) << table.error().message();
    EXPECT_EQ(load_reasons(table.error()), Reasons(Reason::ModelUnavailable) | fault.bit);
  }
}

TEST(Slices, OpenAndNegativeEndsMeanWhatTheyMeanInPython) {
  std::vector<NamedSlice> slices = *default_slices(553);
  find(slices, "face_descs_lhd").start.reset();
  find(slices, "features") = {"features", -512, std::nullopt};
  const auto table = make_head_table(slices, 553);
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_EQ(table->left.descriptor.start, 0);
}

TEST(Profiles, AreFoundByInputsAndOutputs) {
  const PortShape image{"input_img", DType::UInt8, {1, 1382400}};
  const PortShape calib{"calib", DType::Float32, {1, 3}};
  const PortShape planes{"input_img", DType::Float32, {1, 6, 320, 160}};
  const auto map = [](int64_t channels) {
    return PortShape{"map", DType::Float32, {10, channels, 8, 8}};
  };
  const auto vector = [](int64_t count) {
    return PortShape{"outputs", DType::Float32, {1, count}};
  };
  const std::vector<PortShape> both{image, calib}, one{planes};
  const std::vector<PortShape> rgb{{"input.1", DType::Float32, {10, 3, 32, 32}}};
  EXPECT_EQ(*find_profile(both, std::vector{vector(553)}), Profile::Comma553);
  EXPECT_EQ(*find_profile(both, std::vector{vector(17)}), Profile::Comma553);
  EXPECT_EQ(*find_profile(std::vector{calib, image}, std::vector{vector(553)}), Profile::Comma553);
  EXPECT_EQ(*find_profile(one, std::vector{vector(38)}), Profile::Comma38);
  EXPECT_EQ(*find_profile(rgb, std::vector{map(1), map(2), map(2), map(10)}), Profile::Face);
  for (const auto& [inputs, outputs] : {
           std::pair(one, std::vector{vector(39)}),
           std::pair(both, std::vector<PortShape>{}),
           std::pair(rgb, std::vector{map(1), map(2)}),
           std::pair(std::vector<PortShape>{}, std::vector{vector(553)}),
       }) {
    const auto profile = find_profile(inputs, outputs);
    ASSERT_FALSE(profile);
    EXPECT_EQ(profile.error().reason(), "ArtifactMismatch");
    EXPECT_TRUE(load_reasons(profile.error()).has(Reason::ArtifactMismatch));
    EXPECT_TRUE(load_reasons(profile.error()).has(Reason::ModelUnavailable));
  }
  EXPECT_FALSE(check_profile(Profile::Comma38, both, std::vector{vector(553)}));
  EXPECT_EQ(*parse_profile("comma-38"), Profile::Comma38);
  EXPECT_NE(parse_profile("comma").error().message().find("comma-553"), std::string::npos);
}

}  // namespace
}  // namespace ignis::pipeline
