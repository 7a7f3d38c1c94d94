#include "ignis/schedule/cheap_tables.h"

#include "ignis/tensor/tensor.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ignis::schedule {
namespace {

using tensor::Tensor;

class CheapTables : public testing::Test {
 protected:
  Tensor numbers(Shape shape, DType dtype = DType::Int64) {
    std::vector<int64_t> values(static_cast<size_t>(element_count(shape)));
    std::iota(values.begin(), values.end(), 0);
    return Tensor::constant(graph_, HostTensor::from(dtype, shape, values));
  }
  static bool is_table(const Tensor& x) {
    return find_cheap_tables(ir::toposort({x.node()})).count(x.node()) == 1;
  }

  std::shared_ptr<ir::Graph> graph_ = std::make_shared<ir::Graph>();
  Tensor rows_ = numbers({200, 1}), columns_ = numbers({1, 300});
};

TEST_F(CheapTables, ALargeSumOfARowAndAColumn) {
  EXPECT_TRUE(is_table(rows_ + columns_));
  EXPECT_TRUE(is_table(tensor::minimum((rows_ + columns_) * 2, 500)));
}

TEST_F(CheapTables, NotWhatIsSmallOrAsLargeAsItsSources) {
  EXPECT_FALSE(is_table(numbers({20, 1}) + numbers({1, 30})));
  EXPECT_FALSE(is_table(numbers({200, 300}) + columns_));
  EXPECT_FALSE(is_table(tensor::contiguous(rows_ + columns_) * 2));
}

TEST_F(CheapTables, NotWhatCostsMoreThanAReading) {
  EXPECT_FALSE(is_table(((rows_ + columns_) * 3 + 1) * 5));
  EXPECT_FALSE(is_table(tensor::floormod(rows_, columns_ + 1)));
}

TEST_F(CheapTables, NotFloatsNorWhatAnInputGives) {
  EXPECT_FALSE(is_table(numbers({200, 1}, DType::Float32) + numbers({1, 300}, DType::Float32)));
  EXPECT_FALSE(is_table(rows_ + Tensor::input(graph_, 0, "x", DType::Int64, {1, 300})));
}

}  // namespace
}  // namespace ignis::schedule
