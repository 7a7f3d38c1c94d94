#include "ignis/pipeline/driver_monitoring/artifact_model.h"

#include "ignis/exec/model.h"

#include <utility>

namespace ignis::pipeline {
namespace {

class ArtifactProgram final : public StageProgram {
 public:
  ArtifactProgram(exec::Model program, std::shared_ptr<runtime::Device> device)
      : device_(std::move(device)), program_(std::move(program)) {
    inputs_.resize(program_.plan().inputs.size());
    outputs_.resize(program_.plan().outputs.size());
  }
  const std::vector<exec::Port>& inputs() const override { return program_.plan().inputs; }
  const std::vector<exec::Port>& outputs() const override { return program_.plan().outputs; }
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
             std::chrono::steady_clock::time_point deadline) override {
    const auto size_of = [&](const exec::Port& port) {
      return static_cast<size_t>(
          program_.plan().buffers[static_cast<size_t>(port.buffer)].size_bytes);
    };
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i] = {static_cast<const std::byte*>(inputs[i]), size_of(this->inputs()[i])};
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i] = {static_cast<std::byte*>(outputs[i]), size_of(this->outputs()[i])};
    }
    return program_.run(inputs_, outputs_, deadline);
  }
  bool is_lost() const override { return !device_->state(); }

 private:
  std::shared_ptr<runtime::Device> device_;
  exec::Model program_;
  std::vector<std::span<const std::byte>> inputs_;  // sized once: a run allocates nothing
  std::vector<std::span<std::byte>> outputs_;
};

std::vector<PortShape> shapes_of(const std::vector<exec::Port>& ports) {
  std::vector<PortShape> shapes;
  for (const exec::Port& port : ports) shapes.push_back({port.name, port.dtype, port.shape});
  return shapes;
}

}  // namespace

Result<std::unique_ptr<StageProgram>> ArtifactPrograms::make_program(const std::string& part) {
  runtime::DeviceOptions device_options;
  device_options.threads = options_.threads;
  device_options.spin = options_.spin;
  IGNIS_TRY_ASSIGN(std::shared_ptr<runtime::Device> device,
                   runtime::open_device(options_.device, device_options));
  if (device->target().renderer == "interp") {
    return Error(ErrorCode::Unsupported,
                 "An artifact holds programs, and the reference device '" + options_.device +
                     "' runs graphs.",
                 "TargetMismatch");
  }
  IGNIS_TRY_ASSIGN(exec::Plan plan, artifact_.plan_for(device->target(), part));
  IGNIS_TRY_ASSIGN(exec::Model program, exec::Model::create(std::move(plan), device));
  return std::unique_ptr<StageProgram>(
      std::make_unique<ArtifactProgram>(std::move(program), std::move(device)));
}

// The file's shapes are bound, and check_profile() looked at them.
Result<std::unique_ptr<StageProgram>> ArtifactPrograms::make_network(
    const std::map<std::string, Shape>&) {
  return make_program("");
}

Result<std::unique_ptr<StageProgram>> ArtifactPrograms::make_warp(const WarpRequest& request) {
  auto program = make_program(request.name());
  if (program || program.error().reason() != "NoPart") return program;
  std::string names;
  for (const std::string& name : artifact_.parts()) {
    names += (names.empty() ? "'" : ", '") + name + "'";
  }
  return Error(ErrorCode::Unsupported,
               "The artifact has no '" + request.name() + "'; it has " +
                   (names.empty() ? "none" : names) +
                   ". Compile the model again with --intrinsics for the camera.",
               "UnknownGeometry");
}

Result<ModelFacts> read_artifact_facts(const exec::Artifact& artifact, const std::string& path,
                                       const std::string& device) {
  IGNIS_TRY_ASSIGN(const Target target, runtime::find_target(device));
  IGNIS_TRY_ASSIGN(const exec::Plan plan, artifact.plan_for(target));
  ModelFacts facts;
  facts.path = path;
  facts.digest = artifact.identity();
  const std::string prefix = "metadata.";
  for (const auto& [name, text] : artifact.manifest()) {
    if (name.starts_with(prefix)) facts.metadata[name.substr(prefix.size())] = text;
  }
  facts.inputs = shapes_of(plan.inputs);
  facts.outputs = shapes_of(plan.outputs);
  facts.slices = artifact.slices();
  return facts;
}

Result<Profile> artifact_profile(const exec::Artifact& artifact, const ModelFacts& facts,
                                 const std::string& wanted) {
  if (wanted != "auto") return parse_profile(wanted);
  if (artifact.geometry() && !artifact.geometry()->profile.empty()) {
    return parse_profile(artifact.geometry()->profile);
  }
  return find_profile(facts.inputs, facts.outputs);
}

Result<std::unique_ptr<Model>> load_artifact_model(const exec::Artifact& artifact,
                                                   const std::string& path,
                                                   const StageOptions& options,
                                                   const std::string& profile) {
  IGNIS_TRY_ASSIGN(const ModelFacts facts, read_artifact_facts(artifact, path, options.device));
  IGNIS_TRY_ASSIGN(const Profile known, artifact_profile(artifact, facts, profile));
  return make_staged_model(known, facts, options,
                           std::make_unique<ArtifactPrograms>(artifact, options));
}

Result<std::unique_ptr<Model>> load_artifact_model(const std::string& path,
                                                   const StageOptions& options,
                                                   const std::string& profile) {
  IGNIS_TRY_ASSIGN(const exec::Artifact artifact, exec::Artifact::open(path));
  return load_artifact_model(artifact, path, options, profile);
}

}  // namespace ignis::pipeline
