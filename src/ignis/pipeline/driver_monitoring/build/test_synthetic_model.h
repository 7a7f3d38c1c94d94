#pragma once

#include "ignis/pipeline/driver_monitoring/test_slice_maps.h"

#include "tests/support/onnx_builder.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A small model with the interface of the cabin model of 553 outputs. Linked into tests only.
///
/// The picture of 960x1440 is averaged over 4x6 blocks of 240x240; 24 means (0 … 1) and the three calibration angles go
/// through one matrix.
namespace ignis::pipeline::testing {

struct SyntheticModel {
  int64_t output_count = 553;
  std::optional<std::string> slices = std::string(kSliceMap553);  ///< base64; nothing: no map
  std::string checkpoint = "synthetic/1";
  bool is_zero = false;  ///< every output is 0
  bool is_half = false;  ///< calibration and outputs are float16
  bool is_calibration_first = false;
  std::vector<std::pair<int64_t, float>> biases = {};  ///< further ones: NaN, infinities

  static constexpr int64_t kInputs = 27;
  static float weight(int64_t input, int64_t output) {
    return static_cast<float>((13 * input + 7 * output) % 11 - 5) / 16.0f;
  }
  static float bias(int64_t output) { return static_cast<float>((37 * output % 101) - 50) / 25.0f; }

  /// Bytes of the ONNX file.
  std::string bytes() const {
    std::vector<float> weights(static_cast<size_t>(kInputs * output_count));
    std::vector<float> bias_values(static_cast<size_t>(output_count));
    for (int64_t o = 0; o < output_count && !is_zero; ++o) {
      bias_values[static_cast<size_t>(o)] = bias(o);
      for (int64_t i = 0; i < kInputs; ++i) {
        weights[static_cast<size_t>(i * output_count + o)] = weight(i, o);
      }
    }
    for (const auto& [index, value] : biases) bias_values[static_cast<size_t>(index)] = value;

    using ignis::testing::OnnxMessage, ignis::testing::OnnxNode, ignis::testing::OnnxType;
    ignis::testing::OnnxModel model(17);
    auto& graph = model.graph;
    const int type = is_half ? OnnxType::Float16 : OnnxType::Float;
    if (is_calibration_first) graph.input("calib", type, {1, 3});
    graph.input("input_img", OnnxType::UInt8, {1, 1382400});
    if (!is_calibration_first) graph.input("calib", type, {1, 3});
    graph.output("outputs", type, {1, output_count})
        .initializer(ignis::testing::onnx_ints("picture", {4}, {1, 1, 960, 1440}))
        .initializer(ignis::testing::onnx_ints("row", {2}, {1, 24}))
        .initializer(ignis::testing::onnx_floats("full", {}, {255}))
        .initializer(ignis::testing::onnx_floats("w", {kInputs, output_count}, weights))
        .initializer(ignis::testing::onnx_floats("b", {output_count}, bias_values))
        .node(OnnxNode("Cast", {"input_img"}, {"f"}).attr("to", OnnxType::Float))
        .node(OnnxNode("Reshape", {"f", "picture"}, {"image"}))
        .node(OnnxNode("AveragePool", {"image"}, {"means"})
                  .attr("kernel_shape", std::vector<int64_t>{240, 240})
                  .attr("strides", std::vector<int64_t>{240, 240}))
        .node(OnnxNode("Reshape", {"means", "row"}, {"flat"}))
        .node(OnnxNode("Div", {"flat", "full"}, {"shares"}))
        .node(OnnxNode("Cast", {"calib"}, {"angles"}).attr("to", OnnxType::Float))
        .node(OnnxNode("Concat", {"shares", "angles"}, {"x"}).attr("axis", 1))
        .node(OnnxNode("Gemm", {"x", "w", "b"}, {"y"}))
        .node(OnnxNode("Cast", {"y"}, {"outputs"}).attr("to", type));
    const auto metadata = [&](std::string_view key, std::string_view value) {
      model.extra.message(14, OnnxMessage().text(1, key).text(2, value));
    };
    if (slices) metadata("output_slices", *slices);
    metadata("model_checkpoint", checkpoint);
    return model.bytes();
  }

  /// Writes the file into a folder of temporary files and returns its path.
  std::string write(const std::string& name) const {
    const std::filesystem::path path = std::filesystem::temp_directory_path() / name;
    std::ofstream(path, std::ios::binary) << bytes();
    return path.string();
  }

  /// What the file computes for a warped image, in double.
  std::vector<double> outputs(std::span<const std::byte> image,
                              const std::array<float, 3>& rpy_rad) const {
    std::vector<double> x(kInputs);
    for (int64_t block = 0; block < 24; ++block) {
      int64_t sum = 0;
      for (int64_t i = 0; i < 240 * 240; ++i) {
        const int64_t row = block / 6 * 240 + i / 240, column = block % 6 * 240 + i % 240;
        sum += static_cast<int64_t>(image[static_cast<size_t>(row * 1440 + column)]);
      }
      x[static_cast<size_t>(block)] = static_cast<double>(sum) / (240.0 * 240.0 * 255.0);
    }
    for (size_t i = 0; i < 3; ++i) x[24 + i] = static_cast<double>(rpy_rad[i]);
    std::vector<double> y(static_cast<size_t>(output_count));
    for (int64_t o = 0; o < output_count && !is_zero; ++o) {
      double sum = static_cast<double>(bias(o));
      for (int64_t i = 0; i < kInputs; ++i) {
        sum += x[static_cast<size_t>(i)] * static_cast<double>(weight(i, o));
      }
      y[static_cast<size_t>(o)] = sum;
    }
    for (const auto& [index, value] : biases) {
      y[static_cast<size_t>(index)] = static_cast<double>(value);
    }
    return y;
  }
};

}  // namespace ignis::pipeline::testing
