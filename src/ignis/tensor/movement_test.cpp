#include "ignis/tensor/test_graph.h"

namespace ignis::tensor {
namespace {

TEST_F(TensorTest, ErrorsNameBothShapesAndOperands) {
  const Tensor a = input(DType::Float32, {2, 3}, {}, "left"),
               b = input(DType::Float32, {4}, {}, "right");
  const std::string text = error_of([&] { a + b; });
  for (const std::string part : {"add", "[2, 3]", "'left'", "[4]", "'right'"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  const std::string product = error_of([&] { matmul(a, b); });
  EXPECT_NE(product.find("[2, 3] 'left'"), std::string::npos) << product;
  EXPECT_NE(product.find("[4] 'right'"), std::string::npos) << product;
  const auto other = std::make_shared<ir::Graph>();
  const Tensor stranger = Tensor::input(other, 0, "stranger", DType::Float32, {4});
  EXPECT_NE(error_of([&] { b + stranger; }).find("different graphs"), std::string::npos);
  const std::function<void()> wrong[] = {
      [&] { reshape(a, {4, 2}); },
      [&] { reshape(a, {-1, 4}); },
      [&] { reshape(a, {-1, -1}); },
      [&] { permute(a, {0, 0}); },
      [&] { permute(a, {0}); },
      [&] { broadcast_to(a, {2, 4}); },
      [&] { broadcast_to(a, {3}); },
      [&] { pad(a, {{0, 0}}); },
      [&] { pad(a, {{-3, 0}, {0, 0}}); },
      [&] { shrink(a, {{0, 3}, {0, 3}}); },
      [&] { slice(a, 0, 0, 1, 0); },
      [&] { select(a, 0, 2); },
      [&] { squeeze(a, {0}); },
      [&] { unsqueeze(a, {0, 0}); },
      [&] { concat({a, b}, 0); },
      [&] { stack({a, b}, 0); },
      [&] { split(a, 1, {1, 1}); },
      [&] { window(a, 1, 4); },
      [&] { window(a, 1, 2, 1, 3); },
      [&] { sum(a, {2}); },
      [&] { sum(a, {0, 0}); },
      [&] { argmax(a, 5); },
      [&] { where(a, a, a); },
      [&] { bitwise_and(a, a); },
      [&] { gather(a, b); },
      [&] { matmul(a, a); },
      [&] { conv(a, b); },
      [&] { topk(a, 4, 1); },
      [&] { einsum("ij,jk->ik", std::vector<Tensor>{a, b}); },
      [&] { layer_norm(a, 1, b, {}); },
  };
  for (size_t i = 0; i < std::size(wrong); ++i) EXPECT_NE(error_of(wrong[i]), "") << i;
}

// Numbers from a hostile model: an error each, no overflow and no memory taken.
TEST_F(TensorTest, HugeExtentsAreRefused) {
  const Tensor a = Tensor::zeros(graph_, {int64_t{1} << 40, 1}),
               b = Tensor::zeros(graph_, {1, int64_t{1} << 40});
  const Tensor x = iota({1, 1, 4});
  PoolOptions pool;
  pool.kernel = {INT64_MAX};
  ConvOptions conv_options;
  conv_options.dilations = {INT64_MAX};
  const std::function<void()> wrong[] = {
      [&] { a + b; },
      [&] { broadcast_to(x, {INT64_MAX, 1, 1, 4}); },
      [&] { tile(x, {INT64_MAX, INT64_MAX, 1}); },
      [&] { repeat_interleave(x, 0, INT64_MAX); },
      [&] { pad(x, {{INT64_MAX, 0}, {0, 0}, {0, 0}}); },
      [&] { pad(x, {{INT64_MIN, 0}, {0, 0}, {0, 0}}); },
      [&] { reshape(x, {INT64_MAX, INT64_MAX}); },
      [&] { window(x, 2, INT64_MAX); },
      [&] { window(x, 2, 2, 1, INT64_MAX); },
      [&] { max_pool(x, pool); },
      [&] { conv(x, x, {}, conv_options); },
      [&] { one_hot(cast(x, DType::Int32), INT64_MAX); },
      [&] { cumsum(a, 0); },
      [&] { sort(a, 0); },
      [&] { slice(x, 2, INT64_MIN, INT64_MIN, 0); },
      [&] { Tensor::arange(graph_, 0, INT64_MAX); },
  };
  for (size_t i = 0; i < std::size(wrong); ++i) EXPECT_NE(error_of(wrong[i]), "") << i;
  EXPECT_EQ(slice(x, 2, INT64_MAX, INT64_MIN, INT64_MIN).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(slice(x, 2, INT64_MIN, INT64_MAX, INT64_MAX).shape(), (Shape{1, 1, 1}));
}

TEST_F(TensorTest, MovementMergesAndDropsWhatDoesNothing) {
  const Tensor x = iota({2, 3, 4});
  EXPECT_EQ(reshape(reshape(x, {6, 4}), {2, 3, 4}).node(), x.node());
  EXPECT_EQ(transpose(transpose(x)).node(), x.node());
  EXPECT_EQ(pad(x, {{0, 0}, {0, 0}, {0, 0}}).node(), x.node());
  EXPECT_EQ(slice(x, 1, 0, INT64_MAX).node(), x.node());
  EXPECT_EQ(broadcast_to(x, {2, 3, 4}).node(), x.node());
  EXPECT_EQ(flip(input(DType::Float32, {1}, {0}), {0}).rank(), 1);
  // A stretched constant stays one under any movement.
  const Tensor ones = Tensor::ones(graph_, {4, 4});
  EXPECT_EQ(*permute(slice(ones, 0, 1, 3), {1, 0}).constant_value(), 1.0);
  EXPECT_EQ((x + Tensor::ones(graph_, {3, 1})).node(), (x + 1).node());
}

TEST_F(TensorTest, SlicesFollowPython) {
  const Tensor x = iota({6});
  EXPECT_EQ(values(slice(x, 0, 1, 5, 2)), (Values{1, 3}));
  EXPECT_EQ(values(slice(x, 0, -2, INT64_MAX)), (Values{4, 5}));
  EXPECT_EQ(values(slice(x, 0, 4, 1, -1)), (Values{4, 3, 2}));
  EXPECT_EQ(values(slice(x, 0, -1, INT64_MIN, -2)), (Values{5, 3, 1}));
  EXPECT_EQ(values(slice(x, 0, 5, -100, -3)), (Values{5, 2}));
  EXPECT_EQ(values(slice(x, 0, 100, -7, -1)), (Values{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(values(slice(x, 0, -100, 100, 4)), (Values{0, 4}));
  EXPECT_EQ(slice(x, 0, 3, 3).shape(), (Shape{0}));
  EXPECT_EQ(slice(x, 0, 1, 5, -1).shape(), (Shape{0}));
  EXPECT_EQ(values(slice(iota({2, 3}), 1, 2, INT64_MIN, -2)), (Values{2, 0, 5, 3}));
  EXPECT_EQ(values(slice(x, 0, 1, 6, 100)), (Values{1}));
}

// Random slices of random shapes against an index loop.
TEST_F(TensorTest, RandomSlices) {
  for (int round = 0; round < 200; ++round) {
    const int64_t n = std::uniform_int_distribution<int64_t>(1, 9)(rng_);
    std::uniform_int_distribution<int64_t> end(-n - 3, n + 3), steps(-4, 4);
    const int64_t begin = end(rng_), stop = end(rng_), step = steps(rng_);
    if (step == 0) continue;
    // Python's slice.indices, written out.
    const auto bound = [&](int64_t at) {
      if (at < 0) at += n;
      return step > 0 ? std::clamp<int64_t>(at, 0, n) : std::clamp<int64_t>(at, -1, n - 1);
    };
    Values expected;
    for (int64_t i = bound(begin); step > 0 ? i < bound(stop) : i > bound(stop); i += step) {
      expected.push_back(static_cast<double>(i));
    }
    const Tensor y = slice(iota({n}), 0, begin, stop, step);
    EXPECT_EQ(values(y), expected) << n << " " << begin << ":" << stop << ":" << step;
    inputs_.clear();
    graph_ = std::make_shared<ir::Graph>();
  }
}

TEST_F(TensorTest, Padding) {
  const Tensor x = iota({3});
  EXPECT_EQ(values(pad(x, {{1, 2}})), (Values{0, 0, 1, 2, 0, 0}));
  EXPECT_EQ(values(pad(x, {{1, 1}}, 7)), (Values{7, 0, 1, 2, 7}));
  EXPECT_EQ(values(pad(x, {{-1, 1}}, 9)), (Values{1, 2, 9}));
  EXPECT_TRUE(std::signbit(values(pad(x, {{1, 0}}, -0.0))[0]));
  EXPECT_EQ(values(pad(x, {{1, 0}}, -INFINITY))[0], -INFINITY);
  EXPECT_EQ(values(pad(slice(x, 0, 0, 0), {{1, 1}}, 5)), (Values{5, 5}));
  EXPECT_EQ(values(pad_mode(iota({4}), {{2, 3}}, PadMode::Reflect)),
            (Values{2, 1, 0, 1, 2, 3, 2, 1, 0}));
  EXPECT_EQ(values(pad_mode(x, {{2, 1}}, PadMode::Edge)), (Values{0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(values(pad_mode(x, {{2, 4}}, PadMode::Wrap)), (Values{1, 2, 0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(values(pad_mode(x, {{5, 5}}, PadMode::Reflect)),
            (Values{1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1}));
  EXPECT_EQ(values(pad_mode(x, {{-1, 1}}, PadMode::Edge)), (Values{1, 2, 2}));
  EXPECT_EQ(values(pad_mode(iota({2, 2}), {{1, 0}, {0, 1}}, PadMode::Edge)),
            (Values{0, 1, 1, 0, 1, 1, 2, 3, 3}));
}

TEST_F(TensorTest, JoiningAndRepeating) {
  const Tensor x = iota({2, 2});
  EXPECT_EQ(values(concat({x, x}, 1)), (Values{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(values(stack({x, x + 10}, 1)), (Values{0, 1, 10, 11, 2, 3, 12, 13}));
  EXPECT_EQ(stack({x, x}, -1).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(values(tile(x, {1, 2})), (Values{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(values(tile(x, {2, 1})), (Values{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(values(repeat_interleave(x, 0, 2)), (Values{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(values(repeat_interleave(x, 1, 2)), (Values{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(values(roll(iota({5}), 0, 2)), (Values{3, 4, 0, 1, 2}));
  EXPECT_EQ(values(roll(iota({5}), 0, -1)), (Values{1, 2, 3, 4, 0}));
  EXPECT_EQ(values(tril(iota({2, 3}))), (Values{0, 0, 0, 3, 4, 0}));
  EXPECT_EQ(values(triu(iota({2, 3}), 1)), (Values{0, 1, 2, 0, 0, 5}));
  EXPECT_EQ(values(tril(iota({2, 3}), 100)), (Values{0, 1, 2, 3, 4, 5}));
  const std::vector<Tensor> parts = split(iota({5}), 0, {2, 0, 3});
  EXPECT_EQ(values(parts[2]), (Values{2, 3, 4}));
  EXPECT_EQ(concat({parts[0], parts[1]}, 0).node(), parts[0].node());
  EXPECT_EQ(chunk(iota({5}), 0, 2).size(), 3u);
  EXPECT_EQ(values(move_axis(iota({2, 1, 3}), 0, 2)), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(window(iota({5}), 0, 2, 2)), (Values{0, 1, 2, 3}));
  EXPECT_EQ(values(select(iota({2, 3}), 1, -1)), (Values{2, 5}));
}

}  // namespace
}  // namespace ignis::tensor
