#include "tests/conformance/case_files.h"

#include "ignis/onnx/ops.h"
#include "ignis/onnx/wire.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ignis::conformance {
namespace fs = std::filesystem;
namespace {

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// A length-delimited field.
std::string field(uint32_t number, const std::string& payload) {
  std::string out;
  append_varint(out, (number << 3) | 2);
  append_varint(out, payload.size());
  return out + payload;
}

std::vector<std::string> numbered_files(const fs::path& folder, const std::string& stem) {
  std::vector<std::string> files;
  for (int i = 0;; ++i) {
    const fs::path file = folder / (stem + std::to_string(i) + ".pb");
    if (!fs::exists(file)) return files;
    files.push_back(file.string());
  }
}

}  // namespace

std::vector<Case> find_cases(const std::vector<std::string>& roots) {
  std::vector<Case> cases;
  const auto add = [&cases](const fs::path& folder, const std::string& group) {
    if (!fs::exists(folder / "model.onnx") && !fs::exists(folder / "data.json")) return false;
    cases.push_back({.name = group + "/" + folder.filename().string(),
                     .folder = folder.string(),
                     .has_model = fs::exists(folder / "model.onnx")});
    return true;
  };
  for (const std::string& root : roots) {
    if (!fs::is_directory(root)) continue;
    for (const auto& group : fs::directory_iterator(root)) {
      if (!group.is_directory()) continue;
      if (add(group.path(), fs::path(root).filename().string())) continue;
      for (const auto& entry : fs::directory_iterator(group.path())) {
        if (entry.is_directory()) add(entry.path(), group.path().filename().string());
      }
    }
  }
  std::sort(cases.begin(), cases.end(),
            [](const Case& a, const Case& b) { return a.name < b.name; });
  return cases;
}

Result<HostTensor> read_tensor_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(ErrorCode::NotFound, "'" + path + "' cannot be read.");
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // The wire reader reads whole models: wrap the tensor as the only initialiser of a model's graph.
  const std::string wrapped = field(7, field(5, bytes));
  IGNIS_TRY_ASSIGN(const onnx::ModelProto model, onnx::parse_model(wrapped, onnx::Limits{}));
  if (model.graph.initializers.size() != 1) {
    return Error(ErrorCode::InvalidArgument, "'" + path + "' holds no tensor.");
  }
  const onnx::TensorProto& proto = model.graph.initializers[0];
  const std::optional<DType> dtype = onnx::dtype_of(proto.data_type);
  if (!dtype) {
    return Error(ErrorCode::Unsupported,
                 "Element type " + std::string(onnx::element_type_name(proto.data_type)) + ".");
  }
  HostTensor tensor = HostTensor::zeros(*dtype, proto.dims);
  if (proto.has_raw_data) {
    if (proto.raw_data.size() != tensor.bytes.size()) {
      return Error(ErrorCode::InvalidArgument, "'" + path + "' has raw data of another size.");
    }
    std::transform(proto.raw_data.begin(), proto.raw_data.end(), tensor.bytes.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    return tensor;
  }
  IGNIS_TRY_ASSIGN(tensor.bytes,
                   onnx::decode_typed_data(proto, tensor.count(), size_bytes(*dtype)));
  return tensor;
}

Result<std::vector<DataSet>> read_data_sets(const Case& test_case) {
  std::vector<DataSet> sets;
  for (int i = 0;; ++i) {
    const fs::path folder = fs::path(test_case.folder) / ("test_data_set_" + std::to_string(i));
    if (!fs::is_directory(folder)) return sets;
    DataSet set;
    set.folder = folder.string();
    for (const bool is_input : {true, false}) {
      for (const std::string& file : numbered_files(folder, is_input ? "input_" : "output_")) {
        Result<HostTensor> tensor = read_tensor_file(file);
        auto& values = is_input ? set.inputs : set.outputs;
        if (tensor) values.emplace_back(*std::move(tensor));
        else values.emplace_back(std::nullopt);
      }
    }
    sets.push_back(std::move(set));
  }
}

}  // namespace ignis::conformance
