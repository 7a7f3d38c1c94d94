#include "ignis/engine/artifact.h"

#include "ignis/codegen/codegen.h"
#include "ignis/exec/artifact.h"
#include "ignis/onnx/import.h"
#include "ignis/runtime/device.h"

namespace ignis {
namespace {

std::string_view to_text(FloatLevel level) {
  switch (level) {
    case FloatLevel::Strict: return "strict";
    case FloatLevel::Finite: return "finite";
    case FloatLevel::Fast: return "fast";
  }
  return "unknown";
}

// The file's name without folder and ending: a path would tie the bytes to a machine.
std::string stem(const std::string& path) {
  const std::string name = path.substr(path.find_last_of('/') + 1);
  return name.substr(0, name.find_last_of('.'));
}

std::map<std::string, std::string> make_manifest(const std::string& path,
                                                 const CompileOptions& options,
                                                 const onnx::ModelInfo& info) {
  std::map<std::string, std::string> manifest = {
      {"model.name", stem(path)},
      {"model.blake2b", info.digest},
      {"model.producer", info.producer},
      {"ignis.version", IGNIS_VERSION},
      {"compiler", codegen::compiler_id()},
      {"options.float_level", std::string(to_text(options.session.float_level))},
  };
  for (const auto& [name, text] : info.metadata) manifest["metadata." + name] = text;
  for (const auto& [name, text] : options.manifest) manifest[name] = text;
  return manifest;
}

}  // namespace

Result<CompiledArtifact> compile_artifact(const std::string& model_path,
                                          const CompileOptions& options) {
  IGNIS_TRY_ASSIGN(const onnx::ModelInfo info, onnx::read_info(model_path));
  CompiledArtifact compiled;
  exec::ArtifactContents contents;
  contents.manifest = make_manifest(model_path, options, info);
  contents.secret_key = options.secret_key;
  std::vector<Session> sessions;  // hold the plans
  for (const std::string& target : options.targets) {
    SessionOptions session_options = options.session;
    session_options.device = "cpu";  // makes the constants ready
    session_options.taps.clear();
    IGNIS_TRY_ASSIGN(Target code, runtime::find_target(target));
    if (code.renderer == "interp") {
      return Error(ErrorCode::InvalidArgument,
                   "Target '" + target + "' is the reference device, which has no code.",
                   "TargetMismatch");
    }
    code.threads =
        session_options.threads > 0 ? session_options.threads : runtime::usable_threads();
    IGNIS_TRY_ASSIGN(Session session, Session::compile_for(model_path, code, session_options));
    sessions.push_back(std::move(session));
    const exec::Plan* plan = sessions.back().plan();
    const exec::TargetNeeds needs{sessions.back().target().arch, sessions.back().target().isa};
    contents.targets.push_back({needs, plan});
    CompiledTarget row;
    row.name = needs.name();
    row.times = sessions.back().times();
    row.lookups = sessions.back().program_lookups();
    row.kernels = sessions.back().kernel_count();
    row.programs = sessions.back().program_count();
    for (const ProgramImage& program : plan->programs) {
      row.code_bytes += static_cast<int64_t>(program.object.size());
    }
    row.arena_bytes = plan->arena_bytes;
    row.constant_bytes = sessions.back().constant_bytes();
    compiled.targets.push_back(std::move(row));
    contents.manifest["options.threads"] = std::to_string(sessions.back().target().threads);
  }
  IGNIS_TRY_ASSIGN(compiled.bytes, exec::make_artifact(contents));
  compiled.inputs = sessions.front().inputs();
  compiled.outputs = sessions.front().outputs();
  return compiled;
}

}  // namespace ignis
