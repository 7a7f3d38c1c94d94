#include "ignis/pipeline/driver_monitoring/build/models.h"

#include "ignis/pipeline/driver_monitoring/build/staged_model.h"

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

Result<Profile> choose_profile(const ModelOptions& options, const onnx::ModelInfo& info) {
  const std::vector<PortShape> inputs = shapes_of(info.inputs), outputs = shapes_of(info.outputs);
  if (options.profile == "auto") return find_profile(inputs, outputs);
  IGNIS_TRY_ASSIGN(const Profile profile, parse_profile(options.profile));
  IGNIS_TRY(check_profile(profile, inputs, outputs));
  return profile;
}

Result<std::unique_ptr<Model>> load(const std::string& path, const ModelOptions& options) {
  IGNIS_TRY_ASSIGN(const onnx::ModelInfo info, onnx::read_info(path));
  IGNIS_TRY_ASSIGN(const Profile profile, choose_profile(options, info));
  switch (profile) {
    case Profile::Comma553: return load_comma_553(path, options, info);
    case Profile::Comma38: return load_comma_38(path, options, info);
    case Profile::Face: return load_face(path, options, info);
  }
  return Error(ErrorCode::Internal, "The profile has no model.");
}

}  // namespace

Result<std::unique_ptr<Model>> load_model(const std::string& path, const ModelOptions& options) {
  Result<std::unique_ptr<Model>> model = load(path, options);
  if (!model) return std::move(model).error().with_context("model '" + path + "'");
  return model;
}

}  // namespace ignis::pipeline
