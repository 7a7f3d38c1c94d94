#include "ignis/pipeline/driver_monitoring/build/warp_graph.h"

#include "ignis/engine/evaluate.h"
#include "ignis/pipeline/driver_monitoring/test_warp_vectors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

namespace ignis::pipeline {
namespace {

using testing::WarpCase;

Result<std::vector<std::byte>> run(const WarpCase& c, WarpKind kind, const std::string& device) {
  IGNIS_TRY_ASSIGN(const WarpGraph warp, make_warp_graph(c.shape, kind));
  HostTensor luma = HostTensor::zeros(DType::UInt8, warp.luma.shape());
  luma.bytes = c.luma();
  HostTensor matrix = HostTensor::zeros(DType::Float32, {9});
  std::memcpy(matrix.bytes.data(), c.matrix.data(), sizeof c.matrix);
  EvaluateOptions options;
  options.device = device;
  options.float_level = FloatLevel::Strict;
  const std::vector<HostTensor> values{luma, matrix};
  const std::vector<tensor::Tensor> inputs{warp.luma, warp.matrix};
  IGNIS_TRY_ASSIGN(std::vector<HostTensor> outputs,
                   evaluate({&warp.image, 1}, inputs, values, options));
  return std::move(outputs.front().bytes);
}

class CompiledWarp : public ::testing::TestWithParam<const char*> {
 protected:
  void expect_equals_oracle(const WarpCase& c, WarpKind kind) {
    SCOPED_TRACE(c.name);
    const auto output = run(c, kind, GetParam());
    ASSERT_TRUE(output) << output.error().to_string();
    testing::expect_vectors(c, *output);
    std::vector<std::byte> oracle(output->size());
    warp_luma(c.shape, c.luma(), c.matrix, oracle);
    EXPECT_TRUE(*output == oracle);
  }
};

TEST_P(CompiledWarp, EqualsEveryVectorAndTheOracle) {
  for (const WarpCase& c : testing::warp_cases()) {
    expect_equals_oracle(c, WarpKind::Projective);
    if (warp_kind(c.matrix) == WarpKind::AxisAligned) {
      expect_equals_oracle(c, WarpKind::AxisAligned);
    }
  }
}

TEST_P(CompiledWarp, EqualsTheOracleForAnySizeAndMatrix) {
  std::mt19937 rng(7);  // fixed: a failure repeats itself
  const auto within = [&](int lo, int hi) {
    return std::uniform_int_distribution<int>(lo, hi)(rng);
  };
  const auto real = [&](double lo, double hi) {
    return static_cast<float>(std::uniform_real_distribution<double>(lo, hi)(rng));
  };
  for (int i = 0; i < 6; ++i) {
    WarpCase c;
    c.name = "random " + std::to_string(i);
    c.shape = {within(1, 90),  within(1, 70), 0,
               within(1, 100), within(1, 60), static_cast<uint8_t>(within(0, 255))};
    c.shape.source_stride = c.shape.source_width_px + within(0, 9);
    // Halves are frequent: ties must go to even.
    c.matrix = {static_cast<float>(within(-4, 4)) / 2,
                0,
                static_cast<float>(within(-60, 60)) / 2,
                0,
                static_cast<float>(within(-4, 4)) / 2,
                static_cast<float>(within(-60, 60)) / 2,
                0,
                0,
                1};
    expect_equals_oracle(c, WarpKind::AxisAligned);
    expect_equals_oracle(c, WarpKind::Projective);
    c.matrix = {real(-2, 2),   real(-1, 1),       real(-40, 40),     real(-1, 1), real(-2, 2),
                real(-40, 40), real(-0.02, 0.02), real(-0.02, 0.02), real(-1, 1)};
    expect_equals_oracle(c, WarpKind::Projective);
  }
}

TEST_P(CompiledWarp, FillsWhereTheMatrixGivesNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  WarpCase c = testing::projective();
  for (const std::array<float, 9>& matrix :
       {std::array<float, 9>{1, 0, 0, 0, 1, 0, 0, 0, 0}, std::array<float, 9>{},
        std::array<float, 9>{nan, nan, nan, nan, nan, nan, nan, nan, nan},
        std::array<float, 9>{1, 0, inf, 0, 1, 0, 0, 0, 1},
        std::array<float, 9>{0, 0, 1e10f, 0, 1, 0, 0, 0, 1}}) {
    c.matrix = matrix;
    c.points.clear();
    expect_equals_oracle(c, WarpKind::Projective);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, CompiledWarp, ::testing::Values("cpu", "cpu:interp"),
                         [](const auto& row) {
                           return std::string(row.param) == "cpu" ? "Cpu" : "Interpreter";
                         });

TEST(WarpGraph, RefusesSizesThatCannotBe) {
  WarpShape shape{1928, 1208, 2048};
  shape.source_stride = 1900;
  EXPECT_EQ(make_warp_graph(shape, WarpKind::Projective).error().reason(), "WarpStride");
  shape.source_stride = int64_t{1} << 40;
  EXPECT_EQ(make_warp_graph(shape, WarpKind::Projective).error().reason(), "WarpStride");
  shape = {5000, 1208, 5120};
  EXPECT_EQ(make_warp_graph(shape, WarpKind::Projective).error().reason(), "WarpSize");
  shape = {0, 1208, 2048};
  EXPECT_EQ(make_warp_graph(shape, WarpKind::AxisAligned).error().reason(), "WarpSize");
  shape = {1928, 1208, 2048, 1440, 4000};
  EXPECT_EQ(make_warp_graph(shape, WarpKind::AxisAligned).error().reason(), "WarpSize");
}

}  // namespace
}  // namespace ignis::pipeline
