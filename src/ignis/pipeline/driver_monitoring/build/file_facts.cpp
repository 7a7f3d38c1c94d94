#include "ignis/pipeline/driver_monitoring/build/file_facts.h"

#include <string_view>
#include <utility>
#include <vector>

namespace ignis::pipeline {
namespace {

std::vector<PortShape> shapes_of(const std::vector<onnx::ValueInfo>& values) {
  std::vector<PortShape> ports;
  for (const onnx::ValueInfo& value : values) {
    PortShape port{value.name, value.dtype, {}};
    for (const onnx::Dim& dim : value.dims) port.dims.push_back(dim.value);
    ports.push_back(std::move(port));
  }
  return ports;
}

std::array<std::byte, 32> bytes_of_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::array<std::byte, 32> bytes{};
  for (size_t i = 0; i < bytes.size() && 2 * i + 1 < hex.size(); ++i) {
    bytes[i] = static_cast<std::byte>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  }
  return bytes;
}

}  // namespace

ModelFacts file_facts(const std::string& path, const onnx::ModelInfo& info) {
  ModelFacts facts;
  facts.path = path;
  facts.digest = bytes_of_hex(info.digest);
  for (const auto& [name, text] : info.metadata) facts.metadata[name] = text;
  facts.inputs = shapes_of(info.inputs);
  facts.outputs = shapes_of(info.outputs);
  return facts;
}

Result<ModelFacts> read_file_facts(const std::string& path) {
  IGNIS_TRY_ASSIGN(const onnx::ModelInfo info, onnx::read_info(path));
  return file_facts(path, info);
}

}  // namespace ignis::pipeline
