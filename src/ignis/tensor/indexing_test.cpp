#include "ignis/tensor/test_graph.h"

namespace ignis::tensor {
namespace {

using ir::Op;

bool reads_indices(const Tensor& x) {
  for (const ir::Node& node : ir::toposort(x.node())) {
    if (node.is(Op::Gather)) return true;
  }
  return false;
}

TEST_F(TensorTest, Gather) {
  const Tensor x = iota({3, 4});
  const Tensor rows = input(DType::Int64, {2}, {2, -3});
  EXPECT_EQ(values(gather(x, rows, 0)), (Values{8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(values(gather(x, input(DType::Int32, {2, 1}, {3, 0}), 1)), (Values{3, 0, 7, 4, 11, 8}));
  EXPECT_EQ(gather(x, input(DType::Int32, {2, 1}, {3, 0}), 1).shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(values(gather(x, input(DType::UInt8, {}, {1}), 0)), (Values{4, 5, 6, 7}));
  // Out of range: the nearest position, in every engine.
  EXPECT_EQ(values(gather(iota({3}), input(DType::Int64, {3}, {7, -9, 3}), 0)), (Values{2, 0, 2}));
}

TEST_F(TensorTest, ConstantIndicesBecomeSlices) {
  const Tensor x = iota({3, 4});
  const auto constant = [&](Shape shape, std::vector<int64_t> v) {
    return Tensor::constant(graph_, HostTensor::from(DType::Int64, std::move(shape), v));
  };
  const Tensor even = gather(x, constant({2}, {0, 2}), 1);
  EXPECT_FALSE(reads_indices(even));
  EXPECT_EQ(values(even), (Values{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(values(gather(x, constant({3}, {2, 1, 0}), 0)),
            (Values{8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3}));
  EXPECT_EQ(gather(x, constant({}, {-1}), 0).shape(), (Shape{4}));
  EXPECT_EQ(values(gather(x, constant({}, {-1}), 0)), (Values{8, 9, 10, 11}));
  EXPECT_EQ(values(gather(iota({3}), constant({2, 2}, {1, 1, 1, 1}), 0)), (Values{1, 1, 1, 1}));
  EXPECT_EQ(values(gather(iota({3}), constant({4}, {0, -1, 1, 0}), 0)), (Values{0, 2, 1, 0}));
}

TEST_F(TensorTest, GatherElementsAndNd) {
  const Tensor x = iota({2, 3});
  EXPECT_EQ(values(gather_elements(x, input(DType::Int64, {2, 2}, {2, 0, -1, 1}), 1)),
            (Values{2, 0, 5, 4}));
  EXPECT_EQ(values(gather_elements(x, input(DType::Int32, {1, 2}, {1, 0}), 0)), (Values{3, 1}));
  EXPECT_EQ(values(gather_nd(x, input(DType::Int64, {2, 2}, {1, 2, 0, -1}))), (Values{5, 2}));
  EXPECT_EQ(values(gather_nd(x, input(DType::Int64, {1, 1}, {1}))), (Values{3, 4, 5}));
  EXPECT_EQ(values(gather_nd(iota({2, 2, 2}), input(DType::Int64, {2, 1}, {1, 0}), 1)),
            (Values{2, 3, 4, 5}));
}

TEST_F(TensorTest, Scatter) {
  const Tensor x = Tensor::zeros(graph_, {3, 3});
  const Tensor i = input(DType::Int64, {2, 3}, {1, 0, 2, 0, 2, -2}),
               u = input(DType::Float32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values(scatter_elements(x, i, u, 0)), (Values{4, 2, 0, 1, 0, 6, 0, 5, 3}));
  const Tensor row = input(DType::Float32, {1, 4}, {1, 1, 1, 1});
  const Tensor twice = input(DType::Int64, {1, 3}, {2, 2, 9}),
               v = input(DType::Float32, {1, 3}, {3, 5, 7});
  EXPECT_EQ(values(scatter_elements(row, twice, v, 1)), (Values{1, 1, 5, 1}));
  EXPECT_EQ(values(scatter_elements(row, twice, v, 1, ScatterOp::Add)), (Values{1, 1, 9, 1}));
  EXPECT_EQ(values(scatter_elements(row, twice, v, 1, ScatterOp::Mul)), (Values{1, 1, 15, 1}));
  EXPECT_EQ(values(scatter_elements(row, twice, v, 1, ScatterOp::Max)), (Values{1, 1, 5, 1}));
  EXPECT_EQ(values(scatter_elements(row, twice, v, 1, ScatterOp::Min)), (Values{1, 1, 1, 1}));
  EXPECT_EQ(values(scatter_nd(iota({4}), input(DType::Int64, {2, 1}, {3, -4}),
                              input(DType::Float32, {2}, {8, 9}))),
            (Values{9, 1, 2, 8}));
  EXPECT_EQ(values(scatter_nd(iota({2, 2}), input(DType::Int64, {1, 1}, {1}),
                              input(DType::Float32, {1, 2}, {8, 9}))),
            (Values{0, 1, 8, 9}));
  EXPECT_EQ(values(scatter_nd(iota({2, 2}), input(DType::Int64, {2, 1}, {1, 1}),
                              input(DType::Float32, {2, 2}, {8, 9, 10, 20}), ScatterOp::Add)),
            (Values{0, 1, 20, 32}));
  EXPECT_EQ(values(scatter_nd(iota({4}), input(DType::Int64, {1, 1}, {4}),
                              input(DType::Float32, {1}, {8}))),
            (Values{0, 1, 2, 3}));  // outside: dropped
}

TEST_F(TensorTest, OneHot) {
  const Tensor i = input(DType::Int64, {3}, {1, -1, 5});
  EXPECT_EQ(values(one_hot(i, 3)), (Values{0, 1, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(values(one_hot(i, 3, 0, 5, 2)), (Values{2, 2, 2, 5, 2, 2, 2, 5, 2}));
  EXPECT_EQ(one_hot(i, 3, 0, 5, 2).dtype(), DType::Int32);
}

TEST_F(TensorTest, SortAndTopk) {
  const Tensor x = input(DType::Float32, {6}, {3, 1, NAN, 3, -INFINITY, 2});
  const Sorted up = sort(x);
  EXPECT_EQ(values(up.indices), (Values{4, 1, 5, 0, 3, 2}));
  EXPECT_TRUE(std::isnan(values(up.values)[5]));
  const Sorted down = topk(x, 4);
  EXPECT_EQ(values(down.indices), (Values{2, 0, 3, 5}));
  EXPECT_EQ(down.indices.dtype(), DType::Int64);
  const Tensor m = input(DType::Int32, {3, 2}, {5, 1, 2, 9, 7, 4});
  EXPECT_EQ(values(topk(m, 2, 0).values), (Values{7, 9, 5, 4}));
  EXPECT_EQ(values(topk(m, 1, 1, Order::Ascending).indices), (Values{1, 0, 1}));
  EXPECT_EQ(topk(m, 0, 0).values.shape(), (Shape{0, 2}));
}

}  // namespace
}  // namespace ignis::tensor
