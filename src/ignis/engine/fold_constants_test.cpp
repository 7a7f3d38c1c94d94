#include "ignis/engine/fold_constants.h"

#include "ignis/tensor/tensor.h"

#include <gtest/gtest.h>

namespace ignis::engine {
namespace {

using ir::Op;
using tensor::Tensor;

int count_op(const ir::Node& root, Op op) {
  int count = 0;
  for (const ir::Node& node : ir::toposort(root)) count += node.is(op) ? 1 : 0;
  return count;
}

class FoldConstants : public testing::Test {
 protected:
  Tensor data(Shape shape, std::vector<float> values) {
    return Tensor::constant(graph_, HostTensor::from<float>(DType::Float32, shape, values));
  }
  ir::Node fold(const Tensor& x) {
    auto folded = fold_constants(graph_, {x.node()});
    EXPECT_TRUE(folded) << folded.error().to_string();
    original_ = folded->original;
    return folded->roots[0];
  }

  std::shared_ptr<ir::Graph> graph_ = std::make_shared<ir::Graph>();
  Tensor x_ = Tensor::input(graph_, 0, "x", DType::Float32, {1, 2, 3, 3});
  std::unordered_map<ir::Node, ir::Node> original_;
};

TEST_F(FoldConstants, ABatchNormBecomesAScaleAndAShift) {
  const Tensor y = tensor::batch_norm(x_, data({2}, {1, 2}), data({2}, {3, 4}), data({2}, {5, 6}),
                                      data({2}, {7, 8}));
  EXPECT_GE(count_op(y.node(), Op::Sqrt), 1);
  const ir::Node folded = fold(y);
  EXPECT_EQ(count_op(folded, Op::Sqrt), 0);
  EXPECT_EQ(count_op(folded, Op::Fdiv), 0);
  EXPECT_EQ(folded.shape(), y.shape());
  EXPECT_EQ(original_.at(folded), y.node());
}

TEST_F(FoldConstants, ComputesTheNumbers) {
  const ir::Node folded =
      fold(tensor::add(tensor::mul(data({3}, {1, 2, 3}), 10), data({3}, {1, 1, 2})));
  ASSERT_TRUE(folded.is(Op::Buffer));
  const auto* values = reinterpret_cast<const float*>(graph_->buffer_data(folded).bytes);
  EXPECT_EQ(values[0], 11);
  EXPECT_EQ(values[1], 21);
  EXPECT_EQ(values[2], 32);
}

TEST_F(FoldConstants, OneNumberEverywhereStaysAConstant) {
  const ir::Node folded = fold(tensor::mul(data({3}, {2, 2, 2}), 10));
  EXPECT_EQ(count_op(folded, Op::Buffer), 0);
  EXPECT_EQ(Tensor(graph_, folded).constant_value(), 20.0);
  // The sign of a zero is data.
  EXPECT_EQ(count_op(fold(tensor::mul(data({3}, {0, 0, 0}), -1)), Op::Buffer), 1);
}

TEST_F(FoldConstants, LeavesAloneWhatDependsOnInputsOrIsLarge) {
  const Tensor sum = tensor::add(x_, 1);
  EXPECT_EQ(fold(sum), sum.node());
  const Tensor large =
      tensor::mul(data({70'000}, std::vector<float>(70'000, 0.5f)), data({1}, {3}));
  EXPECT_EQ(fold(large), large.node());
  const Tensor plain = data({2}, {1, 2});
  EXPECT_EQ(fold(plain), plain.node());
}

}  // namespace
}  // namespace ignis::engine
