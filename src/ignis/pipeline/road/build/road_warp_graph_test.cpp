#include "ignis/pipeline/road/build/road_warp_graph.h"

#include "ignis/engine/evaluate.h"
#include "ignis/pipeline/road/test_road_frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

namespace ignis::pipeline {
namespace {

using testing::RoadTestFrame;
using Matrix = std::array<float, 9>;

/// One compiled warp for one size, held against the oracle for as many matrices as one likes.
class CompiledRoadWarp {
 public:
  CompiledRoadWarp(int width_px, int height_px, const std::string& device)
      : main_(width_px, height_px), wide_(width_px, height_px), device_(device) {
    // The wide camera sees something else.
    for (std::byte& byte : wide_.bytes) byte ^= std::byte{0x5a};
  }
  void expect_equals_oracle(const Matrix& main, const Matrix& wide) {
    const auto graph = make_road_warp_graph(main_.shape());
    ASSERT_TRUE(graph) << graph.error().to_string();
    const auto copy_bytes = static_cast<size_t>(main_.shape().size_bytes);
    HostTensor frames = HostTensor::zeros(DType::UInt8, {2, main_.shape().size_bytes});
    std::memcpy(frames.bytes.data(), main_.bytes.data(), copy_bytes);
    std::memcpy(frames.bytes.data() + copy_bytes, wide_.bytes.data(), copy_bytes);
    HostTensor transforms = HostTensor::zeros(DType::Float32, {2, 3, 3});
    std::memcpy(transforms.bytes.data(), main.data(), sizeof main);
    std::memcpy(transforms.bytes.data() + sizeof main, wide.data(), sizeof wide);
    EvaluateOptions options;
    options.device = device_;
    options.float_level = FloatLevel::Strict;
    const std::vector<tensor::Tensor> inputs{graph->frames, graph->transforms};
    const std::vector<HostTensor> values{frames, transforms};
    const auto outputs = evaluate({&graph->image, 1}, inputs, values, options);
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    ASSERT_EQ(outputs->front().bytes.size(), 2 * static_cast<size_t>(kRoadImageBytes));
    std::vector<std::byte> expected(2 * kRoadImageBytes);
    const std::span<std::byte> both(expected);
    warp_road(main_.shape(), main_.bytes, main, both.first(kRoadImageBytes));
    warp_road(wide_.shape(), wide_.bytes, wide, both.last(kRoadImageBytes));
    int64_t different = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      different += outputs->front().bytes[i] != expected[i] ? 1 : 0;
    }
    EXPECT_EQ(different, 0) << "of " << expected.size();
  }

 private:
  RoadTestFrame main_, wide_;
  std::string device_;
};

TEST(RoadWarpGraph, EqualsTheOracleForBothCameras) {
  CompiledRoadWarp warp(1928, 1208, "cpu");
  warp.expect_equals_oracle(road_matrix({2648, 964, 604}, kMainModelView),
                            road_matrix({567, 964, 604}, kWideModelView));
}

TEST(RoadWarpGraph, EqualsTheOracleForAnyMatrix) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CompiledRoadWarp warp(644, 482, "cpu");
  const Matrix rows[] = {
      {1, 0, 0, 0, 1, 0, 0, 0, 1},
      {1, 0, 0.5f, 0, 1, 1.5f, 0, 0, 1},
      {1.1f, 0.05f, -20, -0.04f, 0.9f, -30, 1e-4f, -5e-5f, 1},
      {0, 0, 0, 0, 0, 0, 0, 0, 0},
      {1, 0, 0, 0, 1, 0, 0.01f, 0, -1},
      {0, 0, inf, 0, 0, -inf, 0, 0, 1},
      {nan, 0, 0, 0, nan, 0, 0, 0, 1},
      {1e30f, 0, -1e30f, 0, 1e30f, 0, 0, 0, 1},
  };
  for (const Matrix& matrix : rows) warp.expect_equals_oracle(matrix, rows[2]);
}

TEST(RoadWarpGraph, EqualsTheOracleOnTheReferenceDevice) {
  CompiledRoadWarp warp(64, 48, "cpu:interp");
  warp.expect_equals_oracle({0.2f, 0.01f, -5, -0.01f, 0.2f, -3, 1e-4f, -5e-5f, 1},
                            {0.5f, 0, 0.5f, 0, 0.5f, 0.5f, 0, 0, 1});
}

TEST(RoadWarpGraph, AnySizeWorks) {
  std::mt19937 rng(11);  // fixed: a failure repeats itself
  const auto real = [&](double lo, double hi) {
    return static_cast<float>(lo + (hi - lo) * static_cast<double>(rng()) / 4294967295.0);
  };
  for (const auto& [width, height] : {std::pair{2, 2}, {66, 1000}, {1344, 760}}) {
    CompiledRoadWarp warp(width, height, "cpu");
    const Matrix main{real(0.5, 3),
                      real(-0.1, 0.1),
                      real(-300, 300),
                      real(-0.1, 0.1),
                      real(0.5, 3),
                      real(-300, 300),
                      0,
                      0,
                      1};
    warp.expect_equals_oracle(main, {real(0.5, 3), 0, real(-50, 50), 0, real(0.5, 3), real(-50, 50),
                                     real(-1e-3, 1e-3), real(-1e-3, 1e-3), 1});
  }
}

TEST(RoadWarpGraph, RefusesPlanesOutsideTheCopy) {
  const RoadWarpShape good = RoadTestFrame(64, 48).shape();
  EXPECT_TRUE(make_road_warp_graph(good));
  using Change = void (*)(RoadWarpShape&);
  for (const Change change :
       {+[](RoadWarpShape& s) { s.width_px = 0; }, +[](RoadWarpShape& s) { s.height_px = 47; },
        +[](RoadWarpShape& s) { s.stride = 63; }, +[](RoadWarpShape& s) { s.uv_offset = 64 * 47; },
        +[](RoadWarpShape& s) { s.size_bytes = s.uv_offset; },
        +[](RoadWarpShape& s) { s.size_bytes = int64_t{1} << 40; },
        +[](RoadWarpShape& s) { s.width_px = 8192; }}) {
    RoadWarpShape shape = good;
    change(shape);
    const auto graph = make_road_warp_graph(shape);
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().reason(), "WarpSize");
  }
}

}  // namespace
}  // namespace ignis::pipeline
