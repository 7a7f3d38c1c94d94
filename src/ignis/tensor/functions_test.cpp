#include "ignis/tensor/test_graph.h"

#include <numbers>

namespace ignis::tensor {
namespace {

/// Distance in units of the last place of the exact value's float32 grid.
double ulps(double actual, double exact) {
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : HUGE_VAL;
  if (actual == exact) return 0;
  if (std::isinf(actual) || std::isinf(exact)) return std::abs(exact) > 3.4028234e38 ? 0 : HUGE_VAL;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(actual - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

struct Function {
  const char* name;
  std::function<Tensor(const Tensor&)> build;
  std::function<double(double)> exact;
  double lo, hi, bound_ulps;
};

// The reference interpreter rounds each operation once from float64, so this checks the formulas: what the compiled
// polynomials add is tested where they are.
TEST_F(TensorTest, ComposedFunctionsStayWithinTheirBounds) {
  const Function functions[] = {
      {"expm1", [](const Tensor& x) { return expm1(x); }, [](double x) { return std::expm1(x); },
       -20, 20, 4},
      {"log1p", [](const Tensor& x) { return log1p(x); }, [](double x) { return std::log1p(x); },
       -1, 50, 5},
      {"log10", [](const Tensor& x) { return log10(x); }, [](double x) { return std::log10(x); }, 0,
       100, 4},
      {"tan", [](const Tensor& x) { return tan(x); }, [](double x) { return std::tan(x); }, -3, 3,
       5},
      {"asin", [](const Tensor& x) { return asin(x); }, [](double x) { return std::asin(x); }, -1,
       1, 6},
      {"acos", [](const Tensor& x) { return acos(x); }, [](double x) { return std::acos(x); }, -1,
       1, 6},
      {"sinh", [](const Tensor& x) { return sinh(x); }, [](double x) { return std::sinh(x); }, -90,
       90, 6},
      {"sinh", [](const Tensor& x) { return sinh(x); }, [](double x) { return std::sinh(x); }, -2,
       2, 6},
      {"cosh", [](const Tensor& x) { return cosh(x); }, [](double x) { return std::cosh(x); }, -90,
       90, 6},
      {"asinh", [](const Tensor& x) { return asinh(x); }, [](double x) { return std::asinh(x); },
       -3, 3, 8},
      {"asinh", [](const Tensor& x) { return asinh(x); }, [](double x) { return std::asinh(x); },
       -1e6, 1e6, 8},
      {"acosh", [](const Tensor& x) { return acosh(x); }, [](double x) { return std::acosh(x); },
       1.001, 30, 8},
      {"atanh", [](const Tensor& x) { return atanh(x); }, [](double x) { return std::atanh(x); },
       -1, 1, 8},
      {"rsqrt", [](const Tensor& x) { return rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); },
       0, 9, 1.5},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); },
       [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 20, 4},
      {"softplus", [](const Tensor& x) { return softplus(x); },
       [](double x) { return std::log1p(std::exp(x)); }, -20, 20, 6},
  };
  constexpr int64_t kCount = 4000;
  for (const Function& f : functions) {
    SCOPED_TRACE(f.name);
    graph_ = std::make_shared<ir::Graph>();
    inputs_.clear();
    std::uniform_real_distribution<double> pick(f.lo, f.hi), small(-30, 0);
    Values points;
    for (int64_t i = 0; i < kCount; ++i) {
      double x = pick(rng_);
      if (i % 4 == 0 && f.lo <= 0)
        x = std::ldexp(x / f.hi, static_cast<int>(small(rng_)));  // towards 0
      points.push_back(static_cast<float>(x));
    }
    const Values actual = values(f.build(input(DType::Float32, {kCount}, points)));
    double worst = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      if (points[i] < f.lo) continue;
      const double distance = ulps(actual[i], f.exact(points[i]));
      EXPECT_LE(distance, f.bound_ulps) << f.name << "(" << points[i] << ") = " << actual[i];
      worst = std::max(worst, distance);
      if (distance > f.bound_ulps) break;
    }
  }
}

TEST_F(TensorTest, FunctionEdges) {
  const auto at = [&](double v) { return input(DType::Float32, {1}, {v}); };
  const auto one = [&](const Tensor& x) { return values(x)[0]; };
  EXPECT_EQ(one(log1p(at(-1))), -INFINITY);
  EXPECT_EQ(one(log1p(at(INFINITY))), INFINITY);
  EXPECT_TRUE(std::isnan(one(log1p(at(-2)))));
  EXPECT_EQ(one(expm1(at(-INFINITY))), -1);
  EXPECT_EQ(one(expm1(at(1e-30))), static_cast<double>(1e-30f));
  EXPECT_TRUE(std::isnan(one(asin(at(1.5)))));
  EXPECT_TRUE(std::isnan(one(acos(at(-1.5)))));
  EXPECT_NEAR(one(acos(at(-1))), std::numbers::pi, 3e-7);
  EXPECT_NEAR(one(asin(at(1))), std::numbers::pi / 2, 2e-7);
  EXPECT_EQ(one(atanh(at(1))), INFINITY);
  EXPECT_EQ(one(atanh(at(-1))), -INFINITY);
  EXPECT_TRUE(std::isnan(one(atanh(at(1.5)))));
  EXPECT_EQ(one(acosh(at(1))), 0);
  EXPECT_TRUE(std::isnan(one(acosh(at(0.5)))));
  EXPECT_TRUE(std::isnan(one(acosh(at(-2)))));
  EXPECT_EQ(one(asinh(at(-INFINITY))), -INFINITY);
  EXPECT_EQ(one(sinh(at(-INFINITY))), -INFINITY);
  EXPECT_TRUE(std::signbit(one(sinh(at(-0.0)))));
  EXPECT_TRUE(std::signbit(one(asinh(at(-0.0)))));
  EXPECT_EQ(one(cosh(at(INFINITY))), INFINITY);
  EXPECT_EQ(one(sigmoid(at(-INFINITY))), 0);
  EXPECT_EQ(one(softplus(at(INFINITY))), INFINITY);
  EXPECT_EQ(one(softplus(at(-INFINITY))), 0);
  EXPECT_EQ(one(mish(at(100))), 100);
  EXPECT_FALSE(std::signbit(one(abs(at(-0.0)))));
  EXPECT_TRUE(std::signbit(one(floor(at(-0.0)))));
  EXPECT_TRUE(std::isnan(one(sign(at(NAN)))));
  EXPECT_EQ(one(sign(at(-3))), -1);
  const double ys[] = {0.0, -0.0, 1, -1, 2, -2, INFINITY, 0.5},
               xs[] = {1, -1, -0.0, 3, -3, 0, -INFINITY, -INFINITY};
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(one(atan2(at(ys[i]), at(xs[i]))), std::atan2(ys[i], xs[i]), 6e-7)
        << ys[i] << " " << xs[i];
  }
}

TEST_F(TensorTest, RoundingAndSigns) {
  const Tensor x = input(DType::Float32, {6}, {.5, 1.5, 2.5, -.5, -1.5, -2.5});
  EXPECT_EQ(values(round(x)), (Values{0, 2, 2, -0.0, -2, -2}));
  EXPECT_EQ(values(floor(x)), (Values{0, 1, 2, -1, -2, -3}));
  EXPECT_EQ(values(ceil(x)), (Values{1, 2, 3, -0.0, -1, -2}));
  EXPECT_EQ(values(trunc(x)), (Values{0, 1, 2, -0.0, -1, -2}));
  EXPECT_EQ(values(abs(input(DType::Int8, {2}, {-128, -3}))), (Values{-128, 3}));
  EXPECT_EQ(values(copysign(x, input(DType::Float32, {6}, {-1, -0.0, 0, 1, 2, -3}))),
            (Values{-.5, -1.5, 2.5, .5, 1.5, -2.5}));
}

TEST_F(TensorTest, PowersAndRemainders) {
  const Tensor i = input(DType::Int32, {4}, {2, -3, 0, 1});
  EXPECT_EQ(values(pow(i, 3)), (Values{8, -27, 0, 1}));
  EXPECT_EQ(values(pow(i, input(DType::Int32, {4}, {5, 3, 0, -2}))), (Values{32, -27, 1, 1}));
  EXPECT_EQ(values(pow(i, input(DType::Int32, {4}, {-1, -1, 2, -3}))), (Values{0, 0, 0, 1}));
  EXPECT_EQ(values(pow(2, i)), (Values{4, 0, 1, 2}));
  expect_near(pow(input(DType::Float32, {3}, {2, 4, 9}), 0.5), {std::sqrt(2.0), 2, 3}, 1e-6);
  EXPECT_EQ(values(pow(input(DType::Float32, {2}, {3, 2}), input(DType::Int64, {2}, {2, -1}))),
            (Values{9, 0.5}));
  const Tensor a = input(DType::Float32, {4}, {5, -5, 5, -5}),
               b = input(DType::Float32, {4}, {3, 3, -3, -3});
  EXPECT_EQ(values(cmod(a, b)), (Values{2, -2, 2, -2}));
  EXPECT_EQ(values(floormod(a, b)), (Values{2, 1, -1, -2}));
  EXPECT_EQ(values(floordiv(a, b)), (Values{1, -2, -2, 1}));
  EXPECT_EQ(values(cmod(a, INFINITY)), (Values{5, -5, 5, -5}));
}

TEST_F(TensorTest, Activations) {
  const Tensor x = input(DType::Float32, {3}, {-2, 0.25, 4});
  EXPECT_EQ(values(relu(x)), (Values{0, 0.25, 4}));
  expect_near(leaky_relu(x, 0.1), {-0.2, 0.25, 4}, 1e-6);
  EXPECT_EQ(values(prelu(x, input(DType::Float32, {1}, {0.5}))), (Values{-1, 0.25, 4}));
  expect_near(elu(x, 2), {2 * std::expm1(-2.0), 0.25, 4}, 1e-6);
  expect_near(celu(x, 2), {2 * std::expm1(-1.0), 0.25, 4}, 1e-6);
  const auto gelu_of = [](double v) { return 0.5 * v * (1 + std::erf(v / std::numbers::sqrt2)); };
  expect_near(gelu(x), {gelu_of(-2), gelu_of(0.25), gelu_of(4)}, 1e-6);
  const auto tanh_of = [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
  };
  expect_near(gelu(x, GeluForm::Tanh), {tanh_of(-2), tanh_of(0.25), tanh_of(4)}, 1e-6);
  const auto mish_of = [](double v) { return v * std::tanh(std::log1p(std::exp(v))); };
  expect_near(mish(x), {mish_of(-2), mish_of(0.25), mish_of(4)}, 1e-6);
  expect_near(hard_swish(x), {-2.0 / 6, 0.25 * (0.25 / 6 + 0.5), 4}, 1e-6);
  expect_near(hard_sigmoid(x), {0.1, 0.55, 1}, 1e-6);
  expect_near(softsign(x), {-2.0 / 3, 0.2, 0.8}, 1e-6);
  expect_near(silu(x),
              {-2 / (1 + std::exp(2.0)), 0.25 / (1 + std::exp(-0.25)), 4 / (1 + std::exp(-4.0))},
              1e-6);
  EXPECT_EQ(values(shrink_activation(x, 0.5, 1)), (Values{-1, 0, 3}));
  EXPECT_EQ(values(thresholded_relu(x, 1)), (Values{0, 0, 4}));
  EXPECT_EQ(values(isinf(input(DType::Float32, {3}, {INFINITY, -INFINITY, NAN}), true, false)),
            (Values{1, 0, 0}));
  EXPECT_EQ(values(isnan(input(DType::Float16, {2}, {NAN, 1}))), (Values{1, 0}));
}

}  // namespace
}  // namespace ignis::tensor
