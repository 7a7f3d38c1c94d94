#include "ignis/base/host_tensor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ignis {
namespace {

TEST(Shape, PrintsAndCounts) {
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Shape{1, 3, 224}), "[1, 3, 224]");
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 0, 5}), 0);
  EXPECT_EQ(element_count({2, 3, 5}), 30);
}

TEST(Shape, RefusesNegativeAndOversizedExtents) {
  for (const Shape& shape : {Shape{-1}, Shape{0, -1}, Shape{int64_t{1} << 40, int64_t{1} << 40}}) {
    const Result<int64_t> count = checked_element_count(shape);
    ASSERT_FALSE(count) << to_string(shape);
    EXPECT_EQ(count.error().code(), ErrorCode::InvalidArgument);
  }
  // A zero extent makes any product zero, whatever the other extents are.
  EXPECT_EQ(*checked_element_count({int64_t{1} << 40, int64_t{1} << 40, 0}), 0);
}

TEST(HostTensor, StoresEveryIntegerDtype) {
  for (const DType d : {DType::Bool, DType::Int8, DType::UInt8, DType::Int16, DType::UInt16,
                        DType::Int32, DType::UInt32, DType::Int64, DType::UInt64}) {
    HostTensor t = HostTensor::zeros(d, {4});
    EXPECT_EQ(t.bytes.size(), 4U * static_cast<size_t>(size_bytes(d)));
    store_element_int(t, 1, int_max(d));
    store_element_int(t, 2, int_min(d));
    EXPECT_EQ(element_as_int(t, 0), 0);
    EXPECT_EQ(element_as_int(t, 1), int_max(d)) << to_string(d);
    EXPECT_EQ(element_as_int(t, 2), int_min(d)) << to_string(d);
    EXPECT_EQ(element_as_int(t, 3), 0);
  }
}

TEST(HostTensor, ConvertsOnStore) {
  HostTensor i8 = HostTensor::zeros(DType::Int8, {3});
  store_element(i8, 0, 300.0);
  store_element(i8, 1, std::nan(""));
  store_element_int(i8, 2, 300);
  EXPECT_EQ(element_as_int(i8, 0), 127);  // a float saturates
  EXPECT_EQ(element_as_int(i8, 1), 0);
  EXPECT_EQ(element_as_int(i8, 2), 44);  // an integer wraps

  HostTensor f16 = HostTensor::zeros(DType::Float16, {2});
  store_element(f16, 0, 0.1);
  store_element_int(f16, 1, 2049);  // a tie between 2048 and 2050
  EXPECT_EQ(f16.data<uint16_t>()[0], 0x2e66);
  EXPECT_EQ(element_as_double(f16, 1), 2048.0);
}

TEST(HostTensor, ReadsUint64AsAPositiveDouble) {
  const HostTensor t = HostTensor::from<uint64_t>(DType::UInt64, {1}, {UINT64_MAX});
  EXPECT_EQ(element_as_double(t, 0), 18446744073709551616.0);
}

TEST(HostTensor, FromKeepsRowMajorOrder) {
  const HostTensor t = HostTensor::from<float>(DType::Float32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(t.data<float>()[1], 2.0F);
  EXPECT_EQ(t.data<float>()[2], 3.0F);
}

TEST(HostTensorDeathTest, ElementOutsideIsACheck) {
  const HostTensor t = HostTensor::zeros(DType::Float32, {2});
  EXPECT_DEATH((void)element_as_double(t, 2), "element 2 of f32\\[2\\]");
  EXPECT_DEATH((void)element_as_double(t, -1), "element -1");
}

}  // namespace
}  // namespace ignis
