#include "ignis/onnx/test_model.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

namespace ignis::onnx {
namespace {

using ignis::testing::test_seed;

using namespace testing;

// A dense float64 array with named extents, for the naive loops.
struct Array {
  Shape shape;
  std::vector<double> v;
  explicit Array(Shape s) : shape(std::move(s)), v(static_cast<size_t>(element_count(shape))) {}
  double& at(std::initializer_list<int64_t> index) {
    int64_t flat = 0;
    size_t axis = 0;
    for (const int64_t i : index) flat = flat * shape[axis++] + i;
    return v[static_cast<size_t>(flat)];
  }
  HostTensor host() const { return f32(shape, v); }
};

Array random_array(Shape shape, std::mt19937_64& rng) {
  Array a(std::move(shape));
  std::uniform_real_distribution<double> d(-1, 1);
  for (double& x : a.v) x = static_cast<double>(static_cast<float>(d(rng)));
  return a;
}

constexpr int64_t kSteps = 4, kBatch = 3, kInput = 2, kHidden = 5;
const std::vector<int64_t> kLengths{4, 2, 1};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double bound(double x, double clip) { return std::min(std::max(x, -clip), clip); }

struct Parameters {
  Array x, w, r, b, h0, c0, p;
  Parameters(int64_t directions, int64_t gates, std::mt19937_64& rng)
      : x(random_array({kSteps, kBatch, kInput}, rng)),
        w(random_array({directions, gates * kHidden, kInput}, rng)),
        r(random_array({directions, gates * kHidden, kHidden}, rng)),
        b(random_array({directions, 2 * gates * kHidden}, rng)),
        h0(random_array({directions, kBatch, kHidden}, rng)),
        c0(random_array({directions, kBatch, kHidden}, rng)),
        p(random_array({directions, 3 * kHidden}, rng)) {}

  // X W^T + Wb of one gate and, apart, H R^T + Rb.
  double input_part(int64_t d, int64_t row, int64_t t, int64_t n) {
    double sum = b.at({d, row});
    for (int64_t i = 0; i < kInput; ++i) sum += x.at({t, n, i}) * w.at({d, row, i});
    return sum;
  }
  double hidden_part(int64_t d, int64_t row, const std::vector<double>& h, int64_t gates) {
    double sum = b.at({d, gates * kHidden + row});
    for (int64_t i = 0; i < kHidden; ++i) sum += h[static_cast<size_t>(i)] * r.at({d, row, i});
    return sum;
  }
};

// Runs `step(direction, batch, time, h, c)` over every sequence and collects Y [steps, directions, batch, hidden].
template <typename Step>
void walk(int64_t directions, bool is_reverse, Parameters& p, Array& y, Array& last_h,
          Array& last_c, Step step) {
  for (int64_t d = 0; d < directions; ++d) {
    for (int64_t n = 0; n < kBatch; ++n) {
      std::vector<double> h(kHidden), c(kHidden);
      for (int64_t i = 0; i < kHidden; ++i) {
        h[static_cast<size_t>(i)] = p.h0.at({d, n, i});
        c[static_cast<size_t>(i)] = p.c0.at({d, n, i});
      }
      const int64_t length = kLengths[static_cast<size_t>(n)];
      for (int64_t i = 0; i < length; ++i) {
        const int64_t t = is_reverse || d == 1 ? length - 1 - i : i;
        step(d, n, t, h, c);
        for (int64_t k = 0; k < kHidden; ++k) y.at({t, d, n, k}) = h[static_cast<size_t>(k)];
      }
      for (int64_t k = 0; k < kHidden; ++k) {
        last_h.at({d, n, k}) = h[static_cast<size_t>(k)];
        last_c.at({d, n, k}) = c[static_cast<size_t>(k)];
      }
    }
  }
}

HostTensor lengths() { return HostTensor::from<int64_t>(DType::Int32, {kBatch}, kLengths); }

void expect_near(const HostTensor& got, const Array& expected, const char* what) {
  ASSERT_EQ(got.shape, expected.shape) << what;
  const std::vector<double> values = doubles(got);
  // float32 sums of a dozen terms over four steps.
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected.v[i], 1e-5) << what << " " << i;
}

TEST(Lstm, BothDirectionsWithLengthsPeepholesAndClip) {
  std::mt19937_64 rng(test_seed());
  SCOPED_TRACE(test_seed());
  Parameters p(2, 4, rng);
  const double clip = 0.75;
  Array y({kSteps, 2, kBatch, kHidden}), h({2, kBatch, kHidden}), c({2, kBatch, kHidden});
  walk(2, false, p, y, h, c,
       [&](int64_t d, int64_t n, int64_t t, std::vector<double>& hs, std::vector<double>& cs) {
         const std::vector<double> before = hs;
         for (int64_t k = 0; k < kHidden; ++k) {
           const size_t at = static_cast<size_t>(k);
           const auto sum = [&](int64_t gate) {
             return p.input_part(d, gate * kHidden + k, t, n) +
                    p.hidden_part(d, gate * kHidden + k, before, 4);
           };
           const double i = sigmoid(bound(sum(0) + p.p.at({d, k}) * cs[at], clip));
           const double f = sigmoid(bound(sum(2) + p.p.at({d, 2 * kHidden + k}) * cs[at], clip));
           const double g = std::tanh(bound(sum(3), clip));
           cs[at] = f * cs[at] + i * g;
           const double o = sigmoid(bound(sum(1) + p.p.at({d, kHidden + k}) * cs[at], clip));
           hs[at] = o * std::tanh(cs[at]);
         }
       });
  auto result = OneNode("LSTM", 14,
                        {attr("hidden_size", kHidden), attr("direction", "bidirectional"),
                         attr("clip", 0.75f)})
                    .input(p.x.host())
                    .input(p.w.host())
                    .input(p.r.host())
                    .input(p.b.host())
                    .input(lengths())
                    .input(p.h0.host())
                    .input(p.c0.host())
                    .input(p.p.host())
                    .run(3);
  ASSERT_TRUE(result) << result.error().to_string();
  expect_near((*result)[0], y, "Y");
  expect_near((*result)[1], h, "Y_h");
  expect_near((*result)[2], c, "Y_c");
}

TEST(Gru, ReverseWithBothFormsOfReset) {
  std::mt19937_64 rng(test_seed());
  SCOPED_TRACE(test_seed());
  for (const bool is_linear_first : {false, true}) {
    Parameters p(1, 3, rng);
    Array y({kSteps, 1, kBatch, kHidden}), h({1, kBatch, kHidden}), c({1, kBatch, kHidden});
    walk(1, true, p, y, h, c,
         [&](int64_t d, int64_t n, int64_t t, std::vector<double>& hs, std::vector<double>&) {
           const std::vector<double> before = hs;
           std::vector<double> z(kHidden), reset(kHidden), reset_h(kHidden);
           for (int64_t k = 0; k < kHidden; ++k) {
             const size_t at = static_cast<size_t>(k);
             z[at] = sigmoid(p.input_part(d, k, t, n) + p.hidden_part(d, k, before, 3));
             reset[at] = sigmoid(p.input_part(d, kHidden + k, t, n) +
                                 p.hidden_part(d, kHidden + k, before, 3));
             reset_h[at] = reset[at] * before[at];
           }
           for (int64_t k = 0; k < kHidden; ++k) {
             const size_t at = static_cast<size_t>(k);
             const int64_t row = 2 * kHidden + k;
             const double part = is_linear_first ? reset[at] * p.hidden_part(d, row, before, 3)
                                                 : p.hidden_part(d, row, reset_h, 3);
             const double candidate = std::tanh(p.input_part(d, row, t, n) + part);
             hs[at] = (1 - z[at]) * candidate + z[at] * before[at];
           }
         });
    auto result = OneNode("GRU", 14,
                          {attr("hidden_size", kHidden), attr("direction", "reverse"),
                           attr("linear_before_reset", is_linear_first ? 1 : 0)})
                      .input(p.x.host())
                      .input(p.w.host())
                      .input(p.r.host())
                      .input(p.b.host())
                      .input(lengths())
                      .input(p.h0.host())
                      .run(2);
    ASSERT_TRUE(result) << result.error().to_string();
    expect_near((*result)[0], y, "Y");
    expect_near((*result)[1], h, "Y_h");
  }
}

TEST(Rnn, ActivationsTakeTheirParametersInOrder) {
  std::mt19937_64 rng(test_seed());
  SCOPED_TRACE(test_seed());
  Parameters p(2, 1, rng);
  Array y({kSteps, 2, kBatch, kHidden}), h({2, kBatch, kHidden}), c({2, kBatch, kHidden});
  walk(2, false, p, y, h, c,
       [&](int64_t d, int64_t n, int64_t t, std::vector<double>& hs, std::vector<double>&) {
         const std::vector<double> before = hs;
         for (int64_t k = 0; k < kHidden; ++k) {
           const double sum = p.input_part(d, k, t, n) + p.hidden_part(d, k, before, 1);
           // Forward: LeakyRelu(0.25); backward: Affine(0.5, 2).
           hs[static_cast<size_t>(k)] = d == 0 ? (sum >= 0 ? sum : 0.25 * sum) : 0.5 * sum + 2;
         }
       });
  auto result = OneNode("RNN", 14,
                        {attr("hidden_size", kHidden), attr("direction", "bidirectional"),
                         strings("activations", {"LeakyRelu", "Affine"}),
                         testing::floats("activation_alpha", {0.25f, 0.5f}),
                         testing::floats("activation_beta", {2.0f})})
                    .input(p.x.host())
                    .input(p.w.host())
                    .input(p.r.host())
                    .input(p.b.host())
                    .input(lengths())
                    .input(p.h0.host())
                    .run(2);
  ASSERT_TRUE(result) << result.error().to_string();
  expect_near((*result)[0], y, "Y");
  expect_near((*result)[1], h, "Y_h");
}

TEST(Rnn, RefusesWeightsThatDoNotFit) {
  const HostTensor x = f32({1, 1, 2}, {1, 2});
  EXPECT_FALSE(OneNode("RNN", 14)
                   .input(x)
                   .input(f32({1, 3, 4}, std::vector<double>(12)))
                   .input(f32({1, 3, 3}, std::vector<double>(9)))
                   .run(2));
  EXPECT_FALSE(OneNode("RNN", 14, {strings("activations", {"Sine"})})
                   .input(x)
                   .input(f32({1, 1, 2}, {1, 1}))
                   .input(f32({1, 1, 1}, {1}))
                   .run(2));
}

}  // namespace
}  // namespace ignis::onnx
