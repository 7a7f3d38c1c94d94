#include "ignis/base/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ignis {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

HostTensor tensor(const std::vector<double>& v, DType dtype = DType::Float32) {
  HostTensor t = HostTensor::zeros(dtype, {static_cast<int64_t>(v.size())});
  for (size_t i = 0; i < v.size(); ++i) store_element(t, static_cast<int64_t>(i), v[i]);
  return t;
}

TEST(Compare, ToleranceIsAbsolutePlusRelative) {
  const Tolerance t{0.1, 0.5, -1};
  EXPECT_TRUE(compare(tensor({4.5}), tensor({3}), t).passed);  // 1.5 <= 0.1 + 1.5
  EXPECT_FALSE(compare(tensor({4.7}), tensor({3}), t).passed);
  const Comparison c = compare(tensor({1, 2, 9}), tensor({1, 4, 3}), t);
  EXPECT_EQ(c.beyond, 1);
  EXPECT_EQ(c.worst, 2);
  EXPECT_EQ(c.worst_got, 9);
  EXPECT_EQ(c.worst_want, 3);
  EXPECT_EQ(c.max_abs, 6);
  EXPECT_EQ(c.max_rel, 2);
  EXPECT_NEAR(c.mean_abs, 8.0 / 3, 1e-12);
}

TEST(Compare, SpecialValues) {
  const Tolerance t{1, 1, -1};
  EXPECT_TRUE(compare(tensor({kNan, kInf, -kInf}), tensor({kNan, kInf, -kInf}), t).passed);
  EXPECT_FALSE(compare(tensor({kNan}), tensor({1}), t).passed);
  EXPECT_FALSE(compare(tensor({1}), tensor({kNan}), t).passed);
  EXPECT_FALSE(compare(tensor({1}), tensor({kInf}), t).passed);
  EXPECT_FALSE(compare(tensor({kInf}), tensor({-kInf}), t).passed);
  EXPECT_TRUE(compare(tensor({}), tensor({}), t).passed);
  EXPECT_TRUE(compare(tensor({0.0}), tensor({-0.0}), {0, 0, 0}).passed);
}

TEST(Compare, UnitsInTheLastPlace) {
  const double next = static_cast<double>(std::nextafter(1.0f, 2.0f));
  EXPECT_TRUE(compare(tensor({next}), tensor({1}), {0, 0, 1}).passed);
  EXPECT_FALSE(compare(tensor({next}), tensor({1}), {0, 0, 0}).passed);
  EXPECT_EQ(compare(tensor({next}), tensor({1}), {0, 0, 4}).max_ulp, 1);
  // The smallest subnormals on both sides of 0 are two apart.
  const double tiny = static_cast<double>(std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(compare(tensor({tiny}), tensor({-tiny}), {0, 0, 4}).max_ulp, 2);
}

TEST(Compare, IntegersAreExact) {
  HostTensor a = HostTensor::zeros(DType::Int64, {1}), b = a;
  store_element_int(a, 0, 9007199254740993);
  store_element_int(b, 0, 9007199254740992);
  EXPECT_FALSE(compare(a, b, default_tolerance(DType::Int64)).passed);
  EXPECT_TRUE(compare(a, a, default_tolerance(DType::Int64)).passed);
}

TEST(Compare, OtherStatistics) {
  const HostTensor want = tensor({1, 1, 1, 1}), got = tensor({1, 1, 1, 5});
  EXPECT_FALSE(compare(got, want, {1, 0, -1}, Stat::Max).passed);
  EXPECT_TRUE(compare(got, want, {1, 0, -1}, Stat::Mean).passed);  // mean error 1
  EXPECT_TRUE(compare(got, want, {0.1, 0, -1}, Stat::Median).passed);
  EXPECT_FALSE(compare(got, want, {1, 0, -1}, Stat::P99).passed);
  EXPECT_NEAR(compare(got, want, {}, Stat::Nmse).stat, 16.0 / 4, 1e-12);
  EXPECT_NEAR(compare(got, want, {}, Stat::Cosine).cosine, 8 / std::sqrt(28.0 * 4), 1e-12);
  EXPECT_TRUE(compare(tensor({2, 4}), tensor({1, 2}), {0, 1e-9, -1}, Stat::Cosine).passed);
  EXPECT_FALSE(compare(tensor({0, 0}), tensor({1, 2}), {0, 0.5, -1}, Stat::Cosine).passed);
}

}  // namespace
}  // namespace ignis
