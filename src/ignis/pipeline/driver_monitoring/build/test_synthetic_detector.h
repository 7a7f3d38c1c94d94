#pragma once

#include "tests/support/onnx_builder.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace ignis::pipeline::testing {

/// A detector with the interface of centre-point face detectors. Its heat is the mean of R, G and B over 4x4 pixels, as a
/// share of 255; boxes are 20 cells high and 16 wide, landmarks where a frontal face has them.
struct SyntheticDetector {
  bool has_nan = false;

  std::string bytes() const {
    using ignis::testing::OnnxNode, ignis::testing::OnnxType;
    ignis::testing::OnnxModel model(17);
    auto& graph = model.graph;
    graph.input("input.1", OnnxType::Float, {10, 3, 32, 32});
    const auto map = [&](const std::string& name, int64_t channels, float weight,
                         const std::vector<float>& bias) {
      graph.output(name, OnnxType::Float, {10, channels, 8, 8})
          .initializer(ignis::testing::onnx_floats(
              name + "_w", {channels, 3, 4, 4},
              std::vector<float>(static_cast<size_t>(channels * 48), weight)))
          .initializer(ignis::testing::onnx_floats(name + "_b", {channels}, bias))
          .node(OnnxNode("Conv", {"input.1", name + "_w", name + "_b"}, {name})
                    .attr("kernel_shape", std::vector<int64_t>{4, 4})
                    .attr("strides", std::vector<int64_t>{4, 4}));
    };
    const float nan = std::numeric_limits<float>::quiet_NaN();
    map("537", 1, 1.0f / (48 * 255), {has_nan ? nan : 0});
    map("538", 2, 0, {std::log(20.0f), std::log(16.0f)});
    map("539", 2, 0, {0, 0});
    // Eyes 64 apart on a box 128 wide: y and x shares of the generic face, the nose in the middle.
    map("540", 10, 0,
        {0.5f - 33 / 160.0f, 0.25f, 0.5f - 33 / 160.0f, 0.75f, 0.5f, 0.5f, 0.5f + 30 / 160.0f,
         0.5f - 26 / 128.0f, 0.5f + 30 / 160.0f, 0.5f + 26 / 128.0f});
    return model.bytes();
  }

  /// Writes the file into a folder of temporary files and returns its path.
  std::string write(const std::string& name) const {
    const std::filesystem::path path = std::filesystem::temp_directory_path() / name;
    std::ofstream(path, std::ios::binary) << bytes();
    return path.string();
  }
};

}  // namespace ignis::pipeline::testing
