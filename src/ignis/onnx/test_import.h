#pragma once

#include "ignis/interp/interp.h"
#include "ignis/onnx/import.h"

#include "tests/support/onnx_builder.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

// Linked into tests only: imports small models and computes them with the reference interpreter.
namespace ignis::onnx {

inline ImportOptions test_options() {
  ImportOptions options;
  options.evaluate = [](const ir::Node& node) -> Result<HostTensor> {
    const std::vector<ir::Node> roots{node};
    IGNIS_TRY_ASSIGN(std::vector<HostTensor> values, interp::evaluate(roots, {}));
    return std::move(values[0]);
  };
  return options;
}

inline Result<std::vector<HostTensor>> evaluate_model(const Model& model,
                                                      const std::vector<HostTensor>& inputs) {
  std::vector<ir::Node> roots;
  for (const tensor::Tensor& output : model.outputs) roots.push_back(output.node());
  return interp::evaluate(roots, inputs);
}

/// Imports and computes; a failure of either is the result.
inline Result<std::vector<HostTensor>> run_model(const ::ignis::testing::OnnxModel& model,
                                                 const std::vector<HostTensor>& inputs,
                                                 ImportOptions options = test_options()) {
  IGNIS_TRY_ASSIGN(const Model imported, import_bytes(model.bytes(), options));
  return evaluate_model(imported, inputs);
}

inline HostTensor floats(Shape shape, const std::vector<double>& values) {
  return HostTensor::from(DType::Float32, std::move(shape), values);
}
inline HostTensor int64s(Shape shape, const std::vector<int64_t>& values) {
  return HostTensor::from(DType::Int64, std::move(shape), values);
}

inline std::vector<double> values_of(const HostTensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(element_as_double(tensor, i));
  return values;
}

/// A folder of its own that is removed at the end.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ignis_onnx_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ignis::onnx
