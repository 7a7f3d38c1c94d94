// Transforms, windows, sampling, and the operators of ops_misc.cpp and ops_training.cpp.
#include "ignis/onnx/test_model.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <numbers>
#include <random>

namespace ignis::onnx {
namespace {

using namespace testing;
using Values = std::vector<double>;

void expect_near(const HostTensor& got, const Values& expected, double tolerance) {
  ASSERT_EQ(got.count(), static_cast<int64_t>(expected.size()));
  const Values values = doubles(got);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], tolerance) << i;
}

Values random_values(size_t n) {
  std::mt19937_64 rng(ignis::testing::test_seed());
  std::uniform_real_distribution<double> d(-1, 1);
  Values v(n);
  for (double& x : v) x = static_cast<double>(static_cast<float>(d(rng)));
  return v;
}

// The definition, in float64: pairs of real and imaginary parts.
Values naive_dft(const std::vector<std::complex<double>>& x, size_t bins, double sign) {
  Values out;
  for (size_t k = 0; k < bins; ++k) {
    std::complex<double> sum = 0;
    for (size_t n = 0; n < x.size(); ++n) {
      const double angle =
          sign * 2 * std::numbers::pi * static_cast<double>(k * n) / static_cast<double>(x.size());
      sum += x[n] * std::polar(1.0, angle);
    }
    out.push_back(sum.real());
    out.push_back(sum.imag());
  }
  return out;
}

TEST(Dft, RealSignalOneAndTwoSided) {
  const Values x = random_values(7);
  const std::vector<std::complex<double>> signal(x.begin(), x.end());
  const HostTensor in = f32({1, 7, 1}, x);
  const HostTensor both = run(OneNode("DFT", 17).input(in))[0];
  EXPECT_EQ(both.shape, (Shape{1, 7, 2}));
  expect_near(both, naive_dft(signal, 7, -1), 1e-5);
  const HostTensor half = run(OneNode("DFT", 20, {attr("onesided", 1)}).input(in))[0];
  EXPECT_EQ(half.shape, (Shape{1, 4, 2}));
  expect_near(half, naive_dft(signal, 4, -1), 1e-5);
}

TEST(Dft, LengthPadsAndCutsAndInverseScales) {
  const Values x = random_values(5);
  const auto transformed = [&](int64_t n) {
    std::vector<std::complex<double>> signal(x.begin(), x.begin() + std::min<int64_t>(n, 5));
    signal.resize(static_cast<size_t>(n));
    const HostTensor y = run(OneNode("DFT", 17).input(f32({1, 5, 1}, x)).constant(i64({}, {n})))[0];
    expect_near(y, naive_dft(signal, static_cast<size_t>(n), -1), 1e-5);
  };
  transformed(8);
  transformed(3);
  // Inverse of a complex spectrum.
  const Values z = random_values(8);
  std::vector<std::complex<double>> spectrum;
  for (size_t i = 0; i < 8; i += 2) spectrum.emplace_back(z[i], z[i + 1]);
  Values expected = naive_dft(spectrum, 4, +1);
  for (double& v : expected) v /= 4;
  expect_near(run(OneNode("DFT", 17, {attr("inverse", 1)}).input(f32({1, 4, 2}, z)))[0], expected,
              1e-5);
}

TEST(Stft, FramesAreWindowed) {
  const Values x = random_values(10), w = random_values(4);
  const HostTensor y = run(OneNode("STFT", 17)
                               .input(f32({1, 10, 1}, x))
                               .constant(i64({}, {3}))
                               .input(f32(w))
                               .constant(i64({}, {4})))[0];
  EXPECT_EQ(y.shape, (Shape{1, 3, 3, 2}));
  Values expected;
  for (size_t frame = 0; frame < 3; ++frame) {
    std::vector<std::complex<double>> part;
    for (size_t i = 0; i < 4; ++i) part.emplace_back(x[frame * 3 + i] * w[i]);
    const Values bins = naive_dft(part, 3, -1);
    expected.insert(expected.end(), bins.begin(), bins.end());
  }
  expect_near(y, expected, 1e-5);
}

TEST(HannWindow, PeriodicAndSymmetric) {
  expect_near(run(OneNode("HannWindow", 17).constant(i64({}, {4})))[0], {0, 0.5, 1, 0.5}, 1e-6);
  expect_near(run(OneNode("HannWindow", 17, {attr("periodic", 0)}).constant(i64({}, {5})))[0],
              {0, 0.5, 1, 0.5, 0}, 1e-6);
}

TEST(Det, UpToEightRows) {
  expect_near(run(OneNode("Det", 11).input(f32({2, 2}, {1, 2, 3, 4})))[0], {-2}, 1e-6);
  // A permutation with four exchanges of neighbours' order (odd: -1) times its diagonal.
  expect_near(run(OneNode("Det", 11).input(f32({3, 3}, {0, 2, 0, 3, 0, 0, 0, 0, 5})))[0], {-30},
              1e-6);
  const auto large = OneNode("Det", 11).input(f32({9, 9}, Values(81))).run();
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code(), ErrorCode::Unsupported);
}

TEST(Col2Im, OverlapsAdd) {
  // Blocks of 1 x 2 over an image of 1 x 3 at stride 1: columns {a0, a1}, {b0, b1} give [a0, a1 + b0, b1].
  const HostTensor y = run(OneNode("Col2Im", 18)
                               .input(f32({1, 2, 2}, {1, 10, 2, 20}))
                               .constant(i64({1, 3}))
                               .constant(i64({1, 2})))[0];
  EXPECT_EQ(y.shape, (Shape{1, 1, 1, 3}));
  EXPECT_EQ(doubles(y), (Values{1, 12, 20}));
}

TEST(CenterCropPad, OddRests) {
  const OneNode crop = OneNode("CenterCropPad", 18).input(f32({1, 2, 3, 4})).constant(i64({1}));
  EXPECT_EQ(doubles(run(crop)[0]), (Values{2}));  // begins at floor(3 / 2)
  const OneNode pad = OneNode("CenterCropPad", 18).input(f32({1, 2})).constant(i64({5}));
  EXPECT_EQ(doubles(run(pad)[0]), (Values{0, 1, 2, 0, 0}));
}

TEST(TfIdfVectorizer, CountsPairsWithGaps) {
  // Pool: 1-grams 2, 3; 2-grams (5, 6), (2, 7). Output places 0, 1, 2, 3.
  const std::vector<Attr> attributes{attr("mode", "TF"),
                                     attr("min_gram_length", 1),
                                     attr("max_gram_length", 2),
                                     attr("max_skip_count", 1),
                                     ints("ngram_counts", {0, 2}),
                                     ints("ngram_indexes", {0, 1, 2, 3}),
                                     ints("pool_int64s", {2, 3, 5, 6, 2, 7})};
  const HostTensor y =
      run(OneNode("TfIdfVectorizer", 9, attributes).input(i64({5, 6, 2, 5, 6, 7})))[0];
  // 2 once; 3 never; (5, 6) twice without a gap; (2, 7) only with a gap of 3, too long.
  EXPECT_EQ(doubles(y), (Values{1, 0, 2, 0}));
}

TEST(GridSample, IdentityGridGivesTheImage) {
  const Values x = random_values(6);
  Values grid;
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 3; ++column) {
      grid.push_back(column - 1.0);  // x of the innermost axis first
      grid.push_back(2.0 * row - 1.0);
    }
  }
  for (const char* mode : {"bilinear", "nearest", "bicubic"}) {
    const HostTensor y =
        run(OneNode("GridSample", 16, {attr("mode", mode), attr("align_corners", 1)})
                .input(f32({1, 1, 2, 3}, x))
                .input(f32({1, 2, 3, 2}, grid)))[0];
    expect_near(y, x, 1e-6);
  }
}

TEST(Momentum, FirstStepTakesTheWholeGradient) {
  const auto step = [](int64_t count) {
    return run(OneNode("Momentum", 1,
                       {attr("norm_coefficient", 0.5f), attr("alpha", 0.25f), attr("beta", 0.125f),
                        attr("mode", "standard")},
                       "ai.onnx.preview.training")
                   .input(f32({}, {2}))
                   .input(i64({}, {count}))
                   .input(f32({4}))
                   .input(f32({1}))
                   .input(f32({8})),
               2);
  };
  // g = 0.5 * 4 + 1 = 3; v = 0.25 * 8 + weight * 3; x = 4 - 2 v
  expect_near(step(0)[1], {5}, 1e-6);
  expect_near(step(0)[0], {-6}, 1e-6);
  expect_near(step(3)[1], {2.375}, 1e-6);
}

}  // namespace
}  // namespace ignis::onnx
