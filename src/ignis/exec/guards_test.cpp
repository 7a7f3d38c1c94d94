// Capture spec, section 11.

#include "ignis/exec/guards.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

namespace ignis::exec {
namespace {

std::array<GuardValue, 1> guard_m(int64_t m) { return {GuardValue{"m", m}}; }

TEST(FrozenControl, FZ1_AGuardedValueThatChangesIsAMismatch) {
  // x * m, x = 10, m = 1 … 5: call 1 is direct, call 2 captures.
  GuardedArtifacts artifacts;
  const auto found = artifacts.select(guard_m(2));
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
  ASSERT_TRUE(artifacts.add(guard_m(2)));
  for (const int64_t m : {3, 4, 5}) {
    const auto third = artifacts.select(guard_m(m));
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().code(), ErrorCode::InvalidArgument);
    EXPECT_EQ(third.error().reason(), "GuardMismatch");
    EXPECT_NE(third.error().message().find("'m' was 2 at the capture and is " + std::to_string(m)),
              std::string::npos)
        << third.error().to_string();
  }
  const auto again = artifacts.select(guard_m(2));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, 0U);
}

TEST(FrozenControl, APolicySelectsOrMakesABoundedNumberOfArtifacts) {
  GuardedArtifacts artifacts({GuardPolicy::OnChange::Select, 3});
  for (const int64_t m : {1, 2, 3}) {
    const auto found = artifacts.select(guard_m(m));
    ASSERT_TRUE(found);
    EXPECT_FALSE(*found);
    const auto made = artifacts.add(guard_m(m));
    ASSERT_TRUE(made);
    EXPECT_EQ(*made, static_cast<size_t>(m - 1));
  }
  const auto fourth = artifacts.select(guard_m(4));
  ASSERT_FALSE(fourth);
  EXPECT_EQ(fourth.error().code(), ErrorCode::OutOfMemory);
  EXPECT_EQ(fourth.error().reason(), "TooManyArtifacts");
  EXPECT_FALSE(artifacts.add(guard_m(4)));
  EXPECT_FALSE(artifacts.add(guard_m(2)));
  EXPECT_EQ(*artifacts.select(guard_m(2)).value(), 1U);
  artifacts.clear();
  EXPECT_FALSE(artifacts.select(guard_m(4)).value());
}

TEST(FrozenControl, GuardsOfEveryKindAreCompared) {
  std::string side = "left";
  const std::array<GuardValue, 4> captured = {
      GuardValue{"flag", true}, GuardValue{"count", int64_t{1}}, GuardValue{"scale", 2.0},
      GuardValue{"side", std::string_view(side)}};
  const GuardSet guards = GuardSet::make(captured).value();
  EXPECT_TRUE(guards.check(captured));
  for (size_t i = 0; i < captured.size(); ++i) {
    std::array<GuardValue, 4> current = captured;
    if (i == 0) current[i].value = false;
    if (i == 1) current[i].value = int64_t{2};
    if (i == 2) current[i].value = 2.5;
    if (i == 3) current[i].value = std::string_view("right");
    const Status status = guards.check(current);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().reason(), "GuardMismatch");
    EXPECT_NE(status.error().message().find(std::string(captured[i].name)), std::string::npos);
    // Another kind with the same bits is another value.
    current = captured;
    current[i].value =
        i == 1 ? decltype(GuardValue::value)(true) : decltype(GuardValue::value)(int64_t{1});
    EXPECT_FALSE(guards.check(current)) << captured[i].name;
  }
  // The set owns its text.
  side = "nope";
  std::array<GuardValue, 4> current = captured;
  current[3].value = std::string_view("left");
  EXPECT_TRUE(guards.check(current));
}

TEST(FrozenControl, NamesCountAndNaNDoesNot) {
  const GuardSet guards = GuardSet::make(guard_m(1)).value();
  const std::array<GuardValue, 1> other = {GuardValue{"n", int64_t{1}}};
  const Status status = guards.check(other);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message().find("[m]"), std::string::npos);
  EXPECT_NE(status.error().message().find("[n]"), std::string::npos);
  EXPECT_FALSE(guards.check({}));

  const std::array<GuardValue, 1> nan = {GuardValue{"x", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_TRUE(GuardSet::make(nan).value().check(nan));
  const std::array<GuardValue, 1> zero = {GuardValue{"x", 0.0}};
  const std::array<GuardValue, 1> minus_zero = {GuardValue{"x", -0.0}};
  EXPECT_FALSE(GuardSet::make(zero).value().check(minus_zero));

  const std::array<GuardValue, 2> twice = {GuardValue{"x", 0.0}, GuardValue{"x", 1.0}};
  const auto made = GuardSet::make(twice);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().reason(), "DuplicateGuard");
}

TEST(FrozenControl, MandatoryGuardsThatAreMissingAreListed) {
  const std::array<GuardValue, 2> some = {GuardValue{"driver_side", std::string_view("left")},
                                          GuardValue{"model_size", int64_t{2}}};
  const auto missing = missing_mandatory_guards(GuardSet::make(some).value());
  EXPECT_EQ(missing, (std::vector<std::string_view>{"camera_format", "model_instance"}));
}

}  // namespace
}  // namespace ignis::exec
