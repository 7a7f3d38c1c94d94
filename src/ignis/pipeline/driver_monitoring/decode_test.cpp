#include "ignis/pipeline/driver_monitoring/decode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace ignis::pipeline {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Two units in the last place of the expected value.
void expect_2ulp(float actual, double expected) {
  const auto nearest = static_cast<float>(expected);
  const float ulp = std::nextafter(nearest, kInf) - nearest;
  EXPECT_LE(std::abs(static_cast<double>(actual) - expected), 2.0 * static_cast<double>(ulp))
      << actual << " against " << expected;
}

// Section 10.2; the table's nine digits are refined by the formula in double.
TEST(Decode, ScalarsOfTheContract) {
  const double floor = 1.0 / (1.0 + std::exp(11.0));
  EXPECT_NEAR(floor, 1.67014218e-05, 1e-13);
  for (const float x : {-1000.0f, -12.0f, -11.0f, -kInf}) {
    expect_2ulp(probability_of_logit(x), floor);
  }
  const std::pair<float, double> probabilities[] = {{-10.5f, 2.75356911e-05},
                                                    {-1.0f, 0.268941421},
                                                    {0.0f, 0.5},
                                                    {0.5f, 0.622459331},
                                                    {5.0f, 0.993307149}};
  for (const auto& [x, rounded] : probabilities) {
    const double exact = 1.0 / (1.0 + std::exp(-static_cast<double>(x)));
    EXPECT_NEAR(exact, rounded, 1e-9);
    expect_2ulp(probability_of_logit(x), exact);
  }
  EXPECT_EQ(probability_of_logit(kInf), 1.0f);
  EXPECT_TRUE(std::isnan(probability_of_logit(kNan)));

  for (const float x : {-3.0f, 0.0f, 1.0f, 10.0f})
    expect_2ulp(safe_exp(x), std::exp(static_cast<double>(x)));
  EXPECT_NEAR(safe_exp(-3), 0.0497870684, 4e-9);
  EXPECT_NEAR(safe_exp(10), 22026.4658, 1e-2);
  for (const float x : {11.0f, 11.5f, 100.0f, kInf}) expect_2ulp(safe_exp(x), std::exp(11.0));
  EXPECT_NEAR(std::exp(11.0), 59874.1417, 1e-4);
  EXPECT_EQ(safe_exp(-kInf), 0.0f);
  EXPECT_TRUE(std::isnan(safe_exp(kNan)));

  // log(1 + e^x) by hand: ln 2, and the asymptotes.
  expect_2ulp(softplus(0), 0.69314718055994531);
  EXPECT_EQ(softplus(100), 100.0f);
  expect_2ulp(softplus(-100), 3.720075976020836e-44);
}

HeadTable table_553() { return *make_head_table(*default_slices(553), 553); }

// Section 10.3: v[i] = ((37 i mod 101) - 50) / 25.
std::vector<float> packet_vector() {
  std::vector<float> v(553);
  for (int i = 0; i < 553; ++i) {
    v[static_cast<size_t>(i)] = static_cast<float>((37 * i % 101) - 50) / 25.0f;
  }
  return v;
}

void expect_side(const DriverData& data, const std::array<double, 18>& want) {
  const float got[18] = {data.face_orientation[0],
                         data.face_orientation[1],
                         data.face_orientation[2],
                         data.face_position[0],
                         data.face_position[1],
                         data.face_orientation_std[0],
                         data.face_orientation_std[1],
                         data.face_orientation_std[2],
                         data.face_position_std[0],
                         data.face_position_std[1],
                         data.face_prob,
                         data.left_eye_prob,
                         data.right_eye_prob,
                         data.left_blink_prob,
                         data.right_blink_prob,
                         data.sunglasses_prob,
                         data.phone_prob,
                         data.sleep_prob};
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(got[i]), want[i], 1e-6 * std::max(1.0, std::abs(want[i]))) << i;
  }
}

TEST(Decode, PacketMappingOfTheContract) {
  const HeadTable table = table_553();
  const Decoded decoded = decode_two_sided(table, packet_vector());
  EXPECT_TRUE(decoded.reasons.is_empty()) << decoded.head;
  EXPECT_EQ(decoded.unused_non_finite, 0u);
  const Prediction& p = decoded.prediction;
  EXPECT_TRUE(p.left.has_lists && p.right.has_lists && p.known_wheel);
  EXPECT_EQ(p.known_left, kAllDriverFields);
  EXPECT_EQ(p.known_right, kAllDriverFields);
  {
    SCOPED_TRACE("left");
    expect_side(p.left,
                {-2, -0.52, 0.96, -1.6, -0.12, 0.3011942, 1.32313, 5.812437, 0.449329, 1.973878,
                 0.4013123, 0.746494, 0.1854274, 0.5, 0.8145726, 0.253506, 0.5986877, 0.8676111});
  }
  {
    SCOPED_TRACE("right");
    expect_side(p.right, {-0.68, 0.8, -1.76, -0.28, 1.2, 1.127497, 4.953033, 0.3828929, 1.682028,
                          7.389056, 0.7150421, 0.1624651, 0.4600851, 0.7891817, 0.224436, 0.5597136,
                          0.8481288, 0.3015348});
  }
  EXPECT_NEAR(p.wheel_on_right_prob, 0.6547535, 1e-7);
}

// The reference's decode lets NaN pass and has no finiteness check (weakness 2).
TEST(Decode, NonFiniteValuesNameTheirHead) {
  const HeadTable table = table_553();
  const struct {
    size_t index;
    float value;
    const char* head;
  } cases[] = {{3, kNan, "face_descs_lhd"},       {5, kInf, "face_descs_lhd"},
               {0, -kInf, "face_descs_lhd"},      {12, kNan, "face_prob_lhd"},
               {19, kInf, "sleep_prob_lhd"},      {31, kNan, "face_descs_rhd"},
               {34, -kInf, "right_eye_prob_rhd"}, {40, kNan, "wheel_on_right"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.index);
    std::vector<float> v = packet_vector();
    v[c.index] = c.value;
    const Decoded decoded = decode_two_sided(table, v);
    EXPECT_TRUE(decoded.reasons.has(Reason::NonFinite));
    EXPECT_EQ(decoded.head, c.head);
    EXPECT_EQ(decoded.unused_non_finite, 0u);
    EXPECT_EQ(decoded.prediction.known_left, 0u);
    EXPECT_EQ(decoded.prediction.left, DriverData());
    EXPECT_EQ(decoded.prediction.right, DriverData());
    EXPECT_FALSE(decoded.prediction.known_wheel);
  }
  // Two at fault: the first in the vector is named.
  std::vector<float> v = packet_vector();
  v[14] = v[38] = kNan;
  EXPECT_EQ(decode_two_sided(table, v).head, "right_eye_prob_lhd");
}

TEST(Decode, UnusedValuesAreCountedOnly) {
  const HeadTable table = table_553();
  std::vector<float> v = packet_vector();
  v[100] = kNan;
  v[552] = kInf;
  const Decoded decoded = decode_two_sided(table, v);
  EXPECT_TRUE(decoded.reasons.is_empty());
  EXPECT_EQ(decoded.unused_non_finite, 2u);
  EXPECT_EQ(decoded.prediction.known_left, kAllDriverFields);
}

TEST(Decode, AStdOfZeroIsARangeViolation) {
  const HeadTable table = table_553();
  std::vector<float> v = packet_vector();
  v[27] = -200;  // e^-200 is no float32 above 0
  const Decoded decoded = decode_two_sided(table, v);
  EXPECT_EQ(decoded.reasons, Reasons(Reason::RangeViolation));
  EXPECT_EQ(decoded.head, "face_descs_rhd");
  EXPECT_FALSE(decoded.prediction.right.has_lists);
}

TEST(Decode, EqualUsedValuesAreDegenerate) {
  const HeadTable table = table_553();
  for (const float value : {0.0f, -0.25f}) {
    std::vector<float> v(553, value);
    for (size_t i = 41; i < v.size(); ++i) v[i] = static_cast<float>(i);  // features may differ
    const Decoded decoded = decode_two_sided(table, v);
    EXPECT_EQ(decoded.reasons, Reasons(Reason::DegenerateOutput));
    EXPECT_EQ(decoded.prediction.known_left, 0u);
  }
  std::vector<float> v(553, 0.0f);
  v[39] = 0.5f;
  EXPECT_TRUE(decode_two_sided(table, v).reasons.is_empty());
}

// The reference accepts short vectors: an empty position list, and still a valid message (weakness 3).
TEST(Decode, AnotherLengthIsOutputSize) {
  const HeadTable table = table_553();
  for (const size_t count : {size_t{0}, size_t{552}, size_t{554}, size_t{38}}) {
    const Decoded decoded = decode_two_sided(table, std::vector<float>(count, 1.0f));
    EXPECT_EQ(decoded.reasons, Reasons(Reason::OutputSize));
    EXPECT_FALSE(decoded.prediction.left.has_lists);
  }
  EXPECT_EQ(decode_one_sided(DriverSide::Left, std::vector<float>(553, 1.0f)).reasons,
            Reasons(Reason::OutputSize));
}

TEST(Decode, AGenerationWithoutSleepHeadsDoesNotKnowSleep) {
  const HeadTable table = *make_head_table(*default_slices(551), 551);
  std::vector<float> v = packet_vector();
  v.resize(551);
  const Decoded decoded = decode_two_sided(table, v);
  EXPECT_TRUE(decoded.reasons.is_empty());
  EXPECT_EQ(decoded.prediction.known_left, kAllDriverFields & ~bit(DriverField::SleepProb));
  EXPECT_EQ(decoded.prediction.left.sleep_prob, 0.0f);
}

// Outputs that a real model gave for a frontal face.
std::vector<float> one_sided_vector() {
  std::vector<float> v(38, 0.25f);
  const float head[13] = {-0.1754f, -0.0483f, 0.0492f, 0.1218f,  -0.0794f, 1.3603f, -2.8777f,
                          -2.7978f, -3.5819f, -4.559f, -4.7294f, -3.09f,   0.9754f};
  std::copy(std::begin(head), std::end(head), v.begin());
  v[21] = 0.9992f;
  v[30] = 0.9973f;
  v[31] = 0.0126f;
  v[32] = 0.0131f;
  v[33] = 0.0226f;
  return v;
}

TEST(Decode, OneSidedModelFillsTheSideItIsGiven) {
  const uint32_t known =
      kAllDriverFields & ~(bit(DriverField::PhoneProb) | bit(DriverField::SleepProb));
  const Decoded left = decode_one_sided(DriverSide::Left, one_sided_vector());
  ASSERT_TRUE(left.reasons.is_empty());
  EXPECT_EQ(left.prediction.known_left, known);
  EXPECT_EQ(left.prediction.known_right, 0u);
  EXPECT_FALSE(left.prediction.known_wheel);
  EXPECT_EQ(left.prediction.right, DriverData());
  const DriverData& data = left.prediction.left;
  EXPECT_EQ(data.face_orientation, (std::array<float, 3>{-0.1754f, -0.0483f, 0.0492f}));
  // Squashed in the graph: taken as they are. Std = log(1 + e^x), e^-2.8777 = 0.056264, by hand.
  EXPECT_FLOAT_EQ(data.face_prob, 0.9754f);
  EXPECT_FLOAT_EQ(data.left_eye_prob, 0.9992f);
  EXPECT_FLOAT_EQ(data.right_eye_prob, 0.9973f);
  EXPECT_FLOAT_EQ(data.left_blink_prob, 0.0126f);
  EXPECT_FLOAT_EQ(data.right_blink_prob, 0.0131f);
  EXPECT_FLOAT_EQ(data.sunglasses_prob, 0.0226f);
  EXPECT_NEAR(data.face_orientation_std[0], 0.05474, 1e-5);
  // The window of 251x502 at (1079, 157) of 1928x1208: x = 1079 + 0.6218 * 251 = 1235.07, y = 157 + 0.4206 * 502 = 368.14.
  EXPECT_NEAR(data.face_position[0], 1235.0718 / 1928 - 0.5, 1e-6);
  EXPECT_NEAR(data.face_position[1], 368.1412 / 1208 - 0.5, 1e-6);
  // log(1 + e^-4.559) = 0.010417, of 251 px.
  EXPECT_NEAR(data.face_position_std[0], 0.010417 * 251 / 1928, 1e-6);
}

TEST(Decode, AMirroredViewIsMirroredBack) {
  const Decoded right = decode_one_sided(DriverSide::Right, one_sided_vector());
  ASSERT_TRUE(right.reasons.is_empty());
  EXPECT_EQ(right.prediction.known_left, 0u);
  EXPECT_NE(right.prediction.known_right, 0u);
  const DriverData& data = right.prediction.right;
  EXPECT_EQ(data.face_orientation, (std::array<float, 3>{-0.1754f, 0.0483f, -0.0492f}));
  EXPECT_FLOAT_EQ(data.left_eye_prob, 0.9973f);
  EXPECT_FLOAT_EQ(data.left_blink_prob, 0.0131f);
  // x = 630 + (0.5 - 0.1218) * 251 = 724.93.
  EXPECT_NEAR(data.face_position[0], 724.9282 / 1928 - 0.5, 1e-6);
}

TEST(Decode, OneSidedFaultsAreNamed) {
  std::vector<float> v = one_sided_vector();
  v[21] = kNan;
  Decoded decoded = decode_one_sided(DriverSide::Left, v);
  EXPECT_TRUE(decoded.reasons.has(Reason::NonFinite));
  EXPECT_EQ(decoded.head, "left_eye_prob");
  EXPECT_EQ(decoded.prediction.known_left, 0u);
  v = one_sided_vector();
  v[5] = v[13] = v[35] = kNan;  // unused
  decoded = decode_one_sided(DriverSide::Left, v);
  EXPECT_TRUE(decoded.reasons.is_empty());
  EXPECT_EQ(decoded.unused_non_finite, 3u);
  v = one_sided_vector();
  v[33] = 1.25f;
  decoded = decode_one_sided(DriverSide::Left, v);
  EXPECT_EQ(decoded.reasons, Reasons(Reason::RangeViolation));
  EXPECT_EQ(decoded.head, "sunglasses_prob");
  v = one_sided_vector();
  v[10] = -200;
  EXPECT_EQ(decode_one_sided(DriverSide::Left, v).reasons, Reasons(Reason::RangeViolation));
  EXPECT_EQ(decode_one_sided(DriverSide::Left, std::vector<float>(38, 0.0f)).reasons,
            Reasons(Reason::DegenerateOutput));
}

}  // namespace
}  // namespace ignis::pipeline
