#include "ignis/tensor/test_graph.h"

namespace ignis::tensor {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

TEST_F(TensorTest, MatmulFollowsNumpy) {
  Values a, b;
  const Tensor x = random({2, 1, 3, 5}, &a), y = random({4, 5, 2}, &b);
  const Tensor z = matmul(x, y);
  ASSERT_EQ(z.shape(), (Shape{2, 4, 3, 2}));
  Values expected;
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t m = 0; m < 4; ++m) {
      for (int64_t i = 0; i < 3; ++i) {
        for (int64_t j = 0; j < 2; ++j) {
          double total = 0;
          for (int64_t k = 0; k < 5; ++k)
            total += a[at((n * 3 + i) * 5 + k)] * b[at((m * 5 + k) * 2 + j)];
          expected.push_back(total);
        }
      }
    }
  }
  EXPECT_EQ(values(z), expected);  // multiples of 2^-20: exact
  const Tensor v = input(DType::Float32, {2}, {1, 2}),
               w = input(DType::Float32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(values(matmul(v, v)), Values{5});
  EXPECT_EQ(matmul(v, v).rank(), 0);
  EXPECT_EQ(values(matmul(v, w)), (Values{7, 10}));
  EXPECT_EQ(values(matmul(w, v)), (Values{5, 11}));
  EXPECT_EQ(values(matmul(w, w)), (Values{7, 10, 15, 22}));
  EXPECT_EQ(values(gemm(w, w, v, 2, 3, Trans::Yes, Trans::No)),
            (Values{2 * 10 + 3, 2 * 14 + 6, 2 * 14 + 3, 2 * 20 + 6}));
  EXPECT_EQ(values(matmul(slice(w, 1, 0, 0), slice(w, 0, 0, 0))), (Values{0, 0, 0, 0}));
  const Tensor i8 = input(DType::Int8, {2}, {100, 100});
  EXPECT_EQ(values(matmul(i8, i8, DType::Int32)), Values{20000});
}

TEST_F(TensorTest, Einsum) {
  const Tensor a = input(DType::Float32, {2, 3}, {1, 2, 3, 4, 5, 6}),
               b = input(DType::Float32, {3, 2}, {1, 0, 0, 1, 1, 1});
  const auto of = [&](std::string_view text, std::vector<Tensor> operands) {
    return einsum(text, operands);
  };
  EXPECT_EQ(values(of("ij,jk->ik", {a, b})), (Values{4, 5, 10, 11}));
  EXPECT_EQ(values(of("ij, jk", {a, b})), (Values{4, 5, 10, 11}));
  EXPECT_EQ(values(of("ij->ji", {a})), (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(values(of("ij->", {a})), Values{21});
  EXPECT_EQ(values(of("...j->...", {a})), (Values{6, 15}));
  const Tensor m = input(DType::Float32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(values(of("ii->i", {m})), (Values{1, 4}));
  EXPECT_EQ(values(of("ii", {m})), Values{5});
  EXPECT_EQ(values(of("i,j->ij", {select(m, 0, 0), select(m, 0, 1)})), (Values{3, 4, 6, 8}));
  EXPECT_EQ(values(of("ij,jk,kl->il", {m, m, m})), (Values{37, 54, 81, 118}));
  EXPECT_EQ(of("b...ij,b...jk->b...ik", {iota({2, 5, 3, 4}), iota({2, 1, 4, 2})}).shape(),
            (Shape{2, 5, 3, 2}));
  EXPECT_NE(error_of([&] { of("ij,jk->iz", {a, b}); }), "");
  EXPECT_NE(error_of([&] { of("ij", {a, b}); }), "");
  EXPECT_NE(error_of([&] { of("ij,ik->jk", {a, b}); }), "");
}

// The definition, with loops: one input channel group at a time.
Values naive_conv(const Values& x, const Shape& xs, const Values& w, const Shape& ws,
                  int64_t groups, const Shape& s, const Shape& d, const Shape& lo,
                  const Shape& out) {
  Values y;
  const int64_t og = ws[0] / groups;
  for (int64_t n = 0; n < xs[0]; ++n) {
    for (int64_t m = 0; m < ws[0]; ++m) {
      for (int64_t i = 0; i < out[0]; ++i) {
        for (int64_t j = 0; j < out[1]; ++j) {
          double total = 0;
          for (int64_t c = 0; c < ws[1]; ++c) {
            for (int64_t k = 0; k < ws[2]; ++k) {
              for (int64_t l = 0; l < ws[3]; ++l) {
                const int64_t r = i * s[0] + k * d[0] - lo[0], q = j * s[1] + l * d[1] - lo[1];
                if (r < 0 || q < 0 || r >= xs[2] || q >= xs[3]) continue;
                const int64_t channel = m / og * ws[1] + c;
                total += x[at(((n * xs[1] + channel) * xs[2] + r) * xs[3] + q)] *
                         w[at(((m * ws[1] + c) * ws[2] + k) * ws[3] + l)];
              }
            }
          }
          y.push_back(total);
        }
      }
    }
  }
  return y;
}

TEST_F(TensorTest, RandomConvolutions) {
  const auto pick = [&](int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(rng_);
  };
  for (int round = 0; round < 60; ++round) {
    graph_ = std::make_shared<ir::Graph>();
    inputs_.clear();
    const int64_t groups = pick(1, 3);
    const Shape ws{groups * pick(1, 2), pick(1, 3), pick(1, 3), pick(1, 3)};
    const Shape xs{pick(1, 2), groups * ws[1], pick(5, 8), pick(5, 8)};
    ConvOptions options;
    options.groups = groups;
    Shape out;
    for (size_t i = 0; i < 2; ++i) {
      options.strides.push_back(pick(1, 3));
      options.dilations.push_back(pick(1, 2));
      options.pads_lo.push_back(pick(0, 2));
      options.pads_hi.push_back(pick(0, 2));
      const int64_t room = xs[i + 2] + options.pads_lo[i] + options.pads_hi[i] -
                           (ws[i + 2] - 1) * options.dilations[i] - 1;
      out.push_back(room / options.strides[i] + 1);
    }
    Values x, w, b;
    const Tensor tx = random(xs, &x), tw = random(ws, &w), bias = random({ws[0]}, &b);
    const Tensor y = conv(tx, tw, bias, options);
    ASSERT_EQ(y.shape(), (Shape{xs[0], ws[0], out[0], out[1]}));
    Values expected =
        naive_conv(x, xs, w, ws, groups, options.strides, options.dilations, options.pads_lo, out);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] += b[i / at(out[0] * out[1]) % at(ws[0])];
    EXPECT_EQ(values(y), expected);
  }
}

TEST_F(TensorTest, RandomTransposedConvolutions) {
  const auto pick = [&](int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(rng_);
  };
  for (int round = 0; round < 80; ++round) {
    graph_ = std::make_shared<ir::Graph>();
    inputs_.clear();
    const int64_t groups = pick(1, 2);
    const Shape xs{pick(1, 2), groups * pick(1, 2), pick(1, 5), pick(1, 5)};
    const Shape ws{xs[1], pick(1, 2), pick(1, 4), pick(1, 4)};
    ConvOptions options;
    options.groups = groups;
    Shape out;
    for (size_t i = 0; i < 2; ++i) {
      options.strides.push_back(pick(1, 3));
      options.dilations.push_back(pick(1, 2));
      options.pads_lo.push_back(pick(0, 2));
      options.pads_hi.push_back(pick(0, 2));
      options.output_padding.push_back(pick(0, options.strides[i] - 1));
      out.push_back((xs[i + 2] - 1) * options.strides[i] + (ws[i + 2] - 1) * options.dilations[i] +
                    1 - options.pads_lo[i] - options.pads_hi[i] + options.output_padding[i]);
    }
    if (out[0] < 1 || out[1] < 1) continue;
    Values x, w;
    const Tensor tx = random(xs, &x), tw = random(ws, &w);
    const Tensor y = conv_transpose(tx, tw, {}, options);
    const int64_t channels = groups * ws[1];
    ASSERT_EQ(y.shape(), (Shape{xs[0], channels, out[0], out[1]}));
    Values expected(at(element_count(y.shape())), 0.0);  // each input element scatters the kernel
    for (int64_t n = 0; n < xs[0]; ++n) {
      for (int64_t c = 0; c < xs[1]; ++c) {
        for (int64_t m = 0; m < ws[1]; ++m) {
          for (int64_t i = 0; i < xs[2] * xs[3]; ++i) {
            for (int64_t k = 0; k < ws[2] * ws[3]; ++k) {
              const int64_t r = i / xs[3] * options.strides[0] + k / ws[3] * options.dilations[0] -
                                options.pads_lo[0];
              const int64_t q = i % xs[3] * options.strides[1] + k % ws[3] * options.dilations[1] -
                                options.pads_lo[1];
              if (r < 0 || q < 0 || r >= out[0] || q >= out[1]) continue;
              const int64_t channel = c / (xs[1] / groups) * ws[1] + m;
              expected[at(((n * channels + channel) * out[0] + r) * out[1] + q)] +=
                  x[at((n * xs[1] + c) * xs[2] * xs[3] + i)] *
                  w[at((c * ws[1] + m) * ws[2] * ws[3] + k)];
            }
          }
        }
      }
    }
    EXPECT_EQ(values(y), expected) << round;
  }
}

TEST_F(TensorTest, ConvolutionsOfOneAndThreeAxes) {
  const Tensor x = input(DType::Float32, {1, 1, 4}, {1, 2, 3, 4}),
               w = input(DType::Float32, {1, 1, 2}, {1, 10});
  EXPECT_EQ(values(conv(x, w)), (Values{21, 32, 43}));
  ConvOptions uneven;
  uneven.pads_lo = {2};
  EXPECT_EQ(values(conv(x, w, {}, uneven)), (Values{0, 10, 21, 32, 43}));
  const Tensor cube = iota({1, 1, 2, 2, 2}), ones = Tensor::ones(graph_, {1, 1, 2, 2, 2});
  EXPECT_EQ(values(conv(cube, ones)), Values{28});
  ConvOptions stride;
  stride.strides = {2};
  stride.pads_lo = stride.pads_hi = {1};
  stride.output_padding = {1};
  EXPECT_EQ(conv_transpose(iota({1, 1, 28}), iota({1, 1, 3}), {}, stride).shape(),
            (Shape{1, 1, 56}));
}

TEST_F(TensorTest, AveragePoolCountsDeclaredPaddingOnly) {
  const Tensor x = input(DType::Float32, {1, 1, 4}, {1, 2, 3, 4});
  PoolOptions options;
  options.kernel = {3};
  options.strides = {2};
  options.ceil_mode = true;
  EXPECT_EQ(values(avg_pool(x, options)), (Values{2, 3.5}));
  options.pads_lo = options.pads_hi = {1};
  options.count_include_pad = true;
  EXPECT_EQ(values(avg_pool(x, options)), (Values{1, 3, 2}));
  options.count_include_pad = false;
  EXPECT_EQ(values(avg_pool(x, options)), (Values{1.5, 3, 4}));
}

TEST_F(TensorTest, Pools) {
  const Tensor x = input(DType::Float32, {1, 1, 3, 3}, {-1, -2, -3, -4, -5, -6, -7, -8, -9});
  PoolOptions options;
  options.kernel = {2, 2};
  options.pads_lo = {1, 1};
  options.strides = {2, 2};
  EXPECT_EQ(values(max_pool(x, options)), (Values{-1, -2, -4, -5}));  // padding never wins
  EXPECT_EQ(values(max_pool_indices(x, options)), (Values{0, 1, 3, 4}));
  EXPECT_EQ(values(max_pool_indices(x, options, true)), (Values{0, 3, 1, 4}));
  EXPECT_EQ(values(max_pool(cast(x, DType::Int8), options)), (Values{-1, -2, -4, -5}));
  PoolOptions dilated;
  dilated.kernel = {2, 2};
  dilated.dilations = {2, 2};
  EXPECT_EQ(values(max_pool(x, dilated)), (Values{-1}));
  EXPECT_EQ(values(lp_pool(input(DType::Float32, {1, 1, 3}, {3, 4, 0}), {.kernel = {2}})),
            (Values{5, 4}));
  EXPECT_EQ(values(global_avg_pool(x)), Values{-5});
  EXPECT_EQ(values(global_max_pool(x)), Values{-1});
  EXPECT_EQ(global_max_pool(x).shape(), (Shape{1, 1, 1, 1}));
  const Tensor d = iota({1, 4, 1, 2});
  EXPECT_EQ(values(depth_to_space(d, 2)), (Values{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(values(space_to_depth(depth_to_space(d, 2), 2)), values(d));
}

}  // namespace
}  // namespace ignis::tensor
