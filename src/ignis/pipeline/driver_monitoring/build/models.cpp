#include "ignis/pipeline/driver_monitoring/build/models.h"

#include "ignis/base/log.h"
#include "ignis/engine/session.h"
#include "ignis/onnx/import.h"
#include "ignis/pipeline/driver_monitoring/artifact_model.h"
#include "ignis/pipeline/driver_monitoring/build/file_facts.h"
#include "ignis/pipeline/driver_monitoring/build/warp_tensors.h"

#include <utility>
#include <vector>

namespace ignis::pipeline {
namespace {

class SessionProgram final : public StageProgram {
 public:
  explicit SessionProgram(Session session) : session_(std::move(session)) {
    for (const PortInfo& port : session_.inputs())
      inputs_.push_back({port.name, port.dtype, port.shape});
    for (const PortInfo& port : session_.outputs())
      outputs_.push_back({port.name, port.dtype, port.shape});
  }
  const std::vector<exec::Port>& inputs() const override { return inputs_; }
  const std::vector<exec::Port>& outputs() const override { return outputs_; }
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
             std::chrono::steady_clock::time_point deadline) override {
    return session_.run_raw(inputs.data(), outputs.data(), deadline);
  }
  bool is_lost() const override { return session_.is_lost(); }

 private:
  Session session_;
  std::vector<exec::Port> inputs_, outputs_;
};

SessionOptions session_options(const ModelOptions& options) {
  SessionOptions session;
  session.device = options.device;
  session.threads = options.threads;
  session.spin = options.spin;
  session.timeout = options.warm_up_limit;
  session.program_cache = options.program_cache;
  session.progress = options.progress;
  return session;
}

Result<std::unique_ptr<StageProgram>> as_program(Result<Session> session) {
  if (!session) return std::move(session).error();
  return std::unique_ptr<StageProgram>(std::make_unique<SessionProgram>(*std::move(session)));
}

Result<std::unique_ptr<StageProgram>> compile_warp(const WarpRequest& request,
                                                   const ModelOptions& options) {
  IGNIS_TRY_ASSIGN(const WarpTensors warp, make_warp_tensors(request));
  SessionOptions session = session_options(options);
  session.float_level = warp.float_level;
  return as_program(Session::from_graph(warp.inputs, warp.outputs, session));
}

class CompiledPrograms final : public ProgramSource {
 public:
  CompiledPrograms(std::string path, ModelOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}
  Result<std::unique_ptr<StageProgram>> make_network(
      const std::map<std::string, Shape>& shapes) override {
    SessionOptions session = session_options(options_);
    session.shapes = shapes;
    return as_program(Session::load(path_, session));
  }
  Result<std::unique_ptr<StageProgram>> make_warp(const WarpRequest& request) override {
    return compile_warp(request, options_);
  }

 private:
  std::string path_;
  ModelOptions options_;
};

// A camera that the artifact was not compiled for is no reason to refuse where a compiler is at hand.
class CompletedPrograms final : public ProgramSource {
 public:
  CompletedPrograms(exec::Artifact artifact, ModelOptions options)
      : programs_(std::move(artifact), options), options_(std::move(options)) {}
  Result<std::unique_ptr<StageProgram>> make_network(
      const std::map<std::string, Shape>& shapes) override {
    return programs_.make_network(shapes);
  }
  Result<std::unique_ptr<StageProgram>> make_warp(const WarpRequest& request) override {
    auto program = programs_.make_warp(request);
    if (program || program.error().reason() != "UnknownGeometry") return program;
    IGNIS_LOG(Warning, "driver_monitoring")
        << "The artifact has no '" << request.name() << "'; it is compiled now.";
    return compile_warp(request, options_);
  }

 private:
  ArtifactPrograms programs_;
  ModelOptions options_;
};

Result<std::unique_ptr<Model>> load(const std::string& path, const ModelOptions& options) {
  if (exec::is_artifact(path)) {
    IGNIS_TRY_ASSIGN(const exec::Artifact artifact, exec::Artifact::open(path));
    IGNIS_TRY_ASSIGN(const ModelFacts facts, read_artifact_facts(artifact, path, options.device));
    IGNIS_TRY_ASSIGN(const Profile profile, artifact_profile(artifact, facts, options.profile));
    return make_staged_model(profile, facts, options,
                             std::make_unique<CompletedPrograms>(artifact, options));
  }
  IGNIS_TRY_ASSIGN(const ModelFacts facts, read_file_facts(path));
  Profile profile = Profile::Face;
  if (options.profile == "auto") {
    IGNIS_TRY_ASSIGN(profile, find_profile(facts.inputs, facts.outputs));
  } else {
    IGNIS_TRY_ASSIGN(profile, parse_profile(options.profile));
  }
  return make_staged_model(profile, facts, options,
                           std::make_unique<CompiledPrograms>(path, options));
}

}  // namespace

Result<std::unique_ptr<Model>> load_model(const std::string& path, const ModelOptions& options) {
  Result<std::unique_ptr<Model>> model = load(path, options);
  if (!model) return std::move(model).error().with_context("model '" + path + "'");
  return model;
}

}  // namespace ignis::pipeline
