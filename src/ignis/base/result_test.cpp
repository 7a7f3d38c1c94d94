#include "ignis/base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace ignis {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error(ErrorCode::InvalidArgument, "7 is odd.", "Odd");
  return value / 2;
}

Result<int> quarter(int value) {
  IGNIS_TRY_ASSIGN(const int h, half(value));
  return half(h);
}

Status check_even(int value) {
  IGNIS_TRY(half(value));
  return Status::ok();
}

TEST(Result, CarriesAValueOrAnError) {
  EXPECT_EQ(*quarter(8), 2);
  const Result<int> odd = quarter(7);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(odd.error().reason(), "Odd");
  EXPECT_TRUE(check_even(2));
  EXPECT_FALSE(check_even(3));
}

TEST(Result, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(3);
  std::unique_ptr<int> taken = *std::move(r);
  EXPECT_EQ(*taken, 3);
}

TEST(Error, ContextIsAddedOutwards) {
  Error e = Error(ErrorCode::NotFound, "File 'a' does not exist.")
                .with_context("node 'b'")
                .with_context("model 'c'");
  EXPECT_EQ(e.to_string(), "NotFound: File 'a' does not exist. (in node 'b', in model 'c')");
  const Error copy = e;
  e = std::move(e).with_context("d");
  EXPECT_EQ(copy.context().size(), 2U);  // a copy does not share what is added later
}

TEST(ResultDeathTest, ReadingAValueThatIsNotThereIsACheck) {
  const Result<int> odd = half(7);
  EXPECT_DEATH((void)odd.value(), "7 is odd");
}

TEST(CheckDeathTest, PrintsTheConditionAndTheText) {
  EXPECT_DEATH(IGNIS_CHECK(1 == 2) << "one is " << 1, "check failed: 1 == 2 one is 1");
}

}  // namespace
}  // namespace ignis
