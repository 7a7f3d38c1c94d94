#include "ignis/interp/interp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace ignis::interp {
namespace {

using ir::Node;
using ir::Op;

/// A graph with inputs given as float32 or int32 values.
class InterpTest : public testing::Test {
 protected:
  Node input(DType dtype, const Shape& shape, const std::vector<double>& values) {
    HostTensor tensor = HostTensor::zeros(dtype, shape);
    for (size_t i = 0; i < values.size(); ++i)
      store_element(tensor, static_cast<int64_t>(i), values[i]);
    ir::ParamArg arg;
    arg.slot = static_cast<int64_t>(inputs_.size());
    arg.name = "x" + std::to_string(arg.slot);
    arg.shape = shape;
    inputs_.push_back(std::move(tensor));
    return graph_.param(dtype, arg);
  }
  Node iota(const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(element_count(shape)));
    std::iota(values.begin(), values.end(), 0.0);
    return input(DType::Float32, shape, values);
  }
  Node movement(Op op, const Node& x, std::vector<int64_t> arg) {
    return graph_.make(op, x.dtype(), {x}, ir::Arg{std::move(arg), {}});
  }
  Node reduce(Op op, const Node& x, std::vector<int64_t> axes) {
    axes.insert(axes.begin(), static_cast<int64_t>(op));
    return graph_.make(Op::ReduceAxes, x.dtype(), {x}, ir::Arg{std::move(axes), {}});
  }
  Result<std::vector<HostTensor>> run(std::vector<Node> roots, const Options& options = {}) {
    return evaluate(roots, inputs_, options);
  }
  std::vector<double> values(const Node& root) {
    const HostTensor t = run({root}).value()[0];
    EXPECT_EQ(t.dtype, root.dtype());
    EXPECT_EQ(t.shape, root.shape());
    std::vector<double> out;
    for (int64_t i = 0; i < t.count(); ++i) out.push_back(element_as_double(t, i));
    return out;
  }

  ir::Graph graph_;
  std::vector<HostTensor> inputs_;
};
using Values = std::vector<double>;

TEST_F(InterpTest, ConstantsBroadcastAgainstAnyShape) {
  const Node x = iota({2, 3});
  const Node two = graph_.constant_float(DType::Float32, 2);
  EXPECT_EQ(values(graph_.alu(Op::Mul, {x, two})), (Values{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(values(graph_.alu(Op::Add, {two, two})), (Values{4}));
  EXPECT_EQ(values(graph_.alu(Op::Add, {x, graph_.constant(DType::WeakInt, 1)})),
            (Values{1, 2, 3, 4, 5, 6}));
}

TEST_F(InterpTest, BufferReadsItsBytes) {
  const float data[4] = {1, -2, 3.5f, 0};
  const Node b =
      graph_.buffer(DType::Float32, {4}, {reinterpret_cast<const std::byte*>(data), 16, nullptr});
  EXPECT_EQ(values(graph_.alu(Op::Neg, {b})), (Values{-1, 2, -3.5, -0.0}));
  const Node small =
      graph_.buffer(DType::Float32, {5}, {reinterpret_cast<const std::byte*>(data), 16, nullptr});
  ASSERT_FALSE(run({small}));
  EXPECT_EQ(run({small}).error().code(), ErrorCode::InvalidArgument);
}

TEST_F(InterpTest, Stack) {
  const Node a = iota({2}), b = input(DType::Float32, {2}, {7, 8});
  EXPECT_EQ(values(graph_.make(Op::Stack, DType::Float32, {a, b, a})), (Values{0, 1, 7, 8, 0, 1}));
}

TEST_F(InterpTest, Movement) {
  const Node x = iota({2, 3});
  EXPECT_EQ(values(movement(Op::Permute, x, {1, 0})), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(movement(Op::Reshape, movement(Op::Permute, x, {1, 0}), {2, 3})),
            (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(movement(Op::Reshape, x, {3, 1, 2})), (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(movement(Op::Pad, x, {1, 0, 0, 1})),
            (Values{0, 0, 0, 0, 0, 1, 2, 0, 3, 4, 5, 0}));
  EXPECT_EQ(values(movement(Op::Shrink, x, {1, 2, 1, 3})), (Values{4, 5}));
  EXPECT_EQ(values(movement(Op::Flip, x, {0, 1})), (Values{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(values(movement(Op::Contiguous, x, {})), (Values{0, 1, 2, 3, 4, 5}));
  const Node column = movement(Op::Reshape, iota({2}), {2, 1});
  EXPECT_EQ(values(movement(Op::Expand, column, {2, 3})), (Values{0, 0, 0, 1, 1, 1}));
  const Node both = movement(Op::Flip, movement(Op::Permute, x, {1, 0}), {1, 1});
  EXPECT_EQ(values(movement(Op::Shrink, both, {0, 2, 0, 2})), (Values{5, 2, 4, 1}));
}

TEST_F(InterpTest, WindowTakesStrideAndDilation) {
  // 7 elements, kernel 3, stride 2, dilation 2: (7 - 4 - 1) / 2 + 1 = 2 windows {0,2,4} and {2,4,6}.
  EXPECT_EQ(values(movement(Op::Window, iota({7}), {0, 3, 2, 2})), (Values{0, 2, 4, 2, 4, 6}));
  // The new axis is the last one: [2, 3] with kernel 2 over axis 0 is [1, 3, 2].
  EXPECT_EQ(values(movement(Op::Window, iota({2, 3}), {0, 2, 1, 1})), (Values{0, 3, 1, 4, 2, 5}));
}

TEST_F(InterpTest, MovementOfAnOperationThatIsReadOnce) {
  const Node x = iota({2, 3});
  const Node square = graph_.alu(Op::Mul, {x, x});
  EXPECT_EQ(values(movement(Op::Permute, square, {1, 0})), (Values{0, 9, 1, 16, 4, 25}));
  EXPECT_EQ(values(movement(Op::Window, movement(Op::Reshape, square, {6}), {0, 2, 4, 1})),
            (Values{0, 1, 16, 25}));
  EXPECT_EQ(values(reduce(Op::Add, movement(Op::Permute, square, {1, 0}), {1})),
            (Values{9, 17, 29}));
}

TEST_F(InterpTest, Cat) {
  const Node a = iota({2, 1}), b = iota({2, 2});
  EXPECT_EQ(values(graph_.make(Op::Cat, DType::Float32, {a, b}, ir::Arg{{1}, {}})),
            (Values{0, 0, 1, 1, 2, 3}));
  EXPECT_EQ(values(graph_.make(Op::Cat, DType::Float32, {b, b}, ir::Arg{{0}, {}})),
            (Values{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST_F(InterpTest, GatherIsZeroOutside) {
  const Node x = iota({3, 2});
  const Node i = input(DType::Int64, {4}, {2, 0, 3, -1});
  EXPECT_EQ(values(graph_.make(Op::Gather, DType::Float32, {x, i})),
            (Values{4, 5, 0, 1, 0, 0, 0, 0}));
  const Node j = input(DType::Int32, {4}, {1, 1, 0, 0});
  EXPECT_EQ(values(graph_.make(Op::Gather, DType::Float32, {x, i, j})), (Values{5, 1, 0, 0}));
}

TEST_F(InterpTest, Reductions) {
  const Node x = input(DType::Float32, {2, 3}, {1, 2, 3, -4, 5, 6});
  EXPECT_EQ(values(reduce(Op::Add, x, {1})), (Values{6, 7}));
  EXPECT_EQ(values(reduce(Op::Add, x, {0})), (Values{-3, 7, 9}));
  EXPECT_EQ(values(reduce(Op::Mul, x, {0, 1})), (Values{-720}));
  EXPECT_EQ(values(reduce(Op::Max, x, {0})), (Values{1, 5, 6}));
  EXPECT_EQ(values(reduce(Op::Min, x, {1})), (Values{1, -4}));
}

TEST_F(InterpTest, ReductionOfNothingIsTheIdentity) {
  const Node x = input(DType::Float32, {2, 0}, {});
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(values(reduce(Op::Add, x, {1})), (Values{0, 0}));
  EXPECT_EQ(values(reduce(Op::Mul, x, {1})), (Values{1, 1}));
  EXPECT_EQ(values(reduce(Op::Max, x, {1})), (Values{-inf, -inf}));
  EXPECT_EQ(values(reduce(Op::Min, x, {1})), (Values{inf, inf}));
  EXPECT_EQ(values(reduce(Op::Max, input(DType::Int8, {0}, {}), {0})), (Values{-128}));
  EXPECT_EQ(values(reduce(Op::Min, input(DType::UInt8, {0}, {}), {0})), (Values{255}));
}

TEST_F(InterpTest, IntegerReductionsWrap) {
  EXPECT_EQ(values(reduce(Op::Add, input(DType::Int8, {3}, {100, 100, 1}), {0})), (Values{-55}));
  EXPECT_EQ(values(reduce(Op::Mul, input(DType::UInt8, {3}, {16, 16, 3}), {0})), (Values{0}));
  EXPECT_EQ(values(reduce(Op::Add, input(DType::Bool, {3}, {1, 1, 0}), {0})), (Values{1}));
}

TEST_F(InterpTest, SumsAccumulateInFloat64) {
  // In float32 the ones would be lost one by one: 2^24 + 1 = 2^24.
  const Node x = input(DType::Float32, {5}, {16777216, 1, 1, 1, 1});
  EXPECT_EQ(values(reduce(Op::Add, x, {0})), (Values{16777220}));
  // Also when the rows are outputs: the same numbers down the columns.
  const Node y = movement(Op::Expand, movement(Op::Reshape, x, {5, 1}), {5, 100});
  EXPECT_EQ(values(reduce(Op::Add, y, {0})), Values(100, 16777220));
}

TEST_F(InterpTest, MaxKeepsNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Node x = input(DType::Float32, {2, 3}, {1, nan, 3, nan, 1, 2});
  for (const double v : values(reduce(Op::Max, x, {1}))) EXPECT_TRUE(std::isnan(v));
  for (const double v : values(reduce(Op::Min, x, {1}))) EXPECT_TRUE(std::isnan(v));
  const Values columns = values(reduce(Op::Max, x, {0}));
  EXPECT_TRUE(std::isnan(columns[0]) && std::isnan(columns[1]));
  EXPECT_EQ(columns[2], 3);
}

/// [M, K] x [K, N] as a sum over an expanded product.
TEST_F(InterpTest, MatrixProduct) {
  for (const auto& [m, k, n] :
       {std::array<int64_t, 3>{3, 5, 4}, {1, 200, 3}, {2, 3, 1500}, {40, 2, 2}}) {
    inputs_.clear();
    const Node a = iota({m, k}), b = iota({k, n});
    const Node ea = movement(Op::Expand, movement(Op::Reshape, a, {m, 1, k}), {m, n, k});
    const Node bt = movement(Op::Reshape, movement(Op::Permute, b, {1, 0}), {1, n, k});
    const Node eb = movement(Op::Expand, bt, {m, n, k});
    const Values got = values(reduce(Op::Add, graph_.alu(Op::Mul, {ea, eb}), {2}));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += static_cast<double>(
              static_cast<float>(static_cast<double>(i * k + l) * static_cast<double>(l * n + j)));
        }
        EXPECT_EQ(got[static_cast<size_t>(i * n + j)],
                  static_cast<double>(static_cast<float>(sum)));
      }
    }
  }
}

/// A 2-d convolution with padding, stride and two input channels against a plain loop.
TEST_F(InterpTest, Convolution) {
  const int64_t c = 2, h = 5, w = 6, o = 3, kernel = 3, stride = 2, oh = 3, ow = 3;
  const Node x = iota({c, h, w}), weights = iota({o, c, kernel, kernel});
  const Node padded = movement(Op::Pad, x, {0, 0, 1, 1, 1, 1});
  Node v = movement(Op::Window, padded, {1, kernel, stride, 1});  // [c, oh, w+2, kh]
  v = movement(Op::Window, v, {2, kernel, stride, 1});            // [c, oh, ow, kh, kw]
  v = movement(Op::Permute, v, {1, 2, 0, 3, 4});                  // [oh, ow, c, kh, kw]
  v = movement(Op::Expand, movement(Op::Reshape, v, {1, oh, ow, c, kernel, kernel}),
               {o, oh, ow, c, kernel, kernel});
  const Node f = movement(Op::Expand, movement(Op::Reshape, weights, {o, 1, 1, c, kernel, kernel}),
                          {o, oh, ow, c, kernel, kernel});
  const Values got = values(reduce(Op::Add, graph_.alu(Op::Mul, {v, f}), {3, 4, 5}));
  size_t at = 0;
  for (int64_t n = 0; n < o; ++n) {
    for (int64_t y = 0; y < oh; ++y) {
      for (int64_t z = 0; z < ow; ++z, ++at) {
        int64_t sum = 0;
        for (int64_t i = 0; i < c; ++i) {
          for (int64_t p = 0; p < kernel; ++p) {
            for (int64_t q = 0; q < kernel; ++q) {
              const int64_t sy = y * stride + p - 1, sx = z * stride + q - 1;
              if (sy < 0 || sx < 0 || sy >= h || sx >= w) continue;
              sum += ((i * h + sy) * w + sx) * (((n * c + i) * kernel + p) * kernel + q);
            }
          }
        }
        EXPECT_EQ(got[at], static_cast<double>(sum)) << n << " " << y << " " << z;
      }
    }
  }
}

TEST_F(InterpTest, LongChainsOfOperations) {
  Node x = iota({3});
  for (int i = 0; i < 5000; ++i)
    x = graph_.alu(Op::Add, {x, graph_.constant_float(DType::Float32, 1)});
  EXPECT_EQ(values(x), (Values{5000, 5001, 5002}));
}

TEST_F(InterpTest, EqualAndNestedRoots) {
  const Node x = iota({2});
  const Node y = graph_.alu(Op::Add, {x, x}), z = graph_.alu(Op::Mul, {y, y});
  const auto results = run({z, y, x, y}).value();
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].data<float>()[1], 4);
  EXPECT_EQ(results[1].data<float>()[1], 2);
  EXPECT_EQ(results[2].data<float>()[1], 1);
  EXPECT_EQ(results[3].data<float>()[1], 2);
}

TEST_F(InterpTest, ReportsOneValueAtATime) {
  const Node x = iota({2});
  const Node y = graph_.alu(Op::Add, {x, x}), z = graph_.alu(Op::Mul, {y, y});
  const std::vector<Node> roots{z, y};
  std::vector<size_t> order;
  ASSERT_TRUE(evaluate_each(roots, inputs_, [&](size_t index, HostTensor) {
    order.push_back(index);
    return Status::ok();
  }));
  EXPECT_EQ(order, (std::vector<size_t>{1, 0}));
  const Status stopped = evaluate_each(roots, inputs_, [&](size_t, HostTensor) {
    return Status(Error(ErrorCode::Timeout, "enough"));
  });
  EXPECT_EQ(stopped.error().code(), ErrorCode::Timeout);
}

TEST_F(InterpTest, WithoutRoundingFloatsStayFloat64) {
  const Node x = input(DType::Float16, {1}, {1});
  const Node third = graph_.alu(Op::Fdiv, {x, graph_.constant_float(DType::Float16, 3)});
  Options exact;
  exact.round_to_dtype = false;
  const auto results = run({third}, exact).value();
  EXPECT_EQ(results[0].dtype, DType::Float64);
  EXPECT_EQ(results[0].data<double>()[0], 1.0 / 3.0);
  EXPECT_EQ(values(third), (Values{0.333251953125}));  // 1365 * 2^-12
}

TEST_F(InterpTest, RefusesInputsThatDoNotFit) {
  const Node x = iota({2});
  inputs_[0].shape = {1, 2};
  EXPECT_EQ(run({x}).error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(run({x}).error().message(), "Input 'x0' has f32 [1, 2]; the model takes f32 [2].");
  inputs_.clear();
  EXPECT_EQ(run({x}).error().message(), "Input 'x0' is not given.");
}

TEST_F(InterpTest, RefusesTooManyElements) {
  Options options;
  options.max_elements = 100;
  const Node x = movement(Op::Expand, movement(Op::Reshape, iota({2}), {2, 1}), {2, 1000});
  EXPECT_EQ(run({x}, options).error().code(), ErrorCode::OutOfMemory);
  EXPECT_EQ(run({reduce(Op::Add, x, {1})}, options).value()[0].data<float>()[1],
            1000);  // never made as a whole
}

}  // namespace
}  // namespace ignis::interp
