#include "ignis/engine/artifact.h"

#include "ignis/codegen/codegen.h"
#include "ignis/exec/artifact.h"
#include "ignis/exec/golden.h"
#include "ignis/onnx/import.h"
#include "ignis/runtime/device.h"

#include <algorithm>
#include <sstream>

namespace ignis {
namespace {

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
      {"options.float_level", std::string(to_string(options.session.float_level))},
      {"options.winograd", std::string(to_string(options.session.winograd))},
      {"options.chain", std::string(to_string(options.session.chain))},
  };
  for (const auto& [name, text] : info.metadata) manifest["metadata." + name] = text;
  for (const auto& [name, text] : options.manifest) manifest[name] = text;
  return manifest;
}

// Slices and state pairs are about ports that exist.
Status check_facts(const CompileOptions& options, const Session& session) {
  const auto find = [](const std::vector<PortInfo>& ports, const std::string& name) {
    const auto at = std::find_if(ports.begin(), ports.end(),
                                 [&](const PortInfo& port) { return port.name == name; });
    return at == ports.end() ? nullptr : &*at;
  };
  for (const exec::OutputSlice& slice : options.slices) {
    const PortInfo* port = find(session.outputs(), slice.output);
    const int64_t count = port == nullptr ? 0 : element_count(port->shape);
    if (slice.start >= 0 && slice.start < slice.stop && slice.stop <= count) continue;
    return Error(ErrorCode::InvalidArgument,
                 "Slice '" + slice.name + "' is [" + std::to_string(slice.start) + ", " +
                     std::to_string(slice.stop) + ") of output '" + slice.output + "', which has " +
                     std::to_string(count) + " values.",
                 "SliceOutOfRange");
  }
  for (const exec::StatePair& pair : options.state_pairs) {
    const PortInfo* input = find(session.inputs(), pair.input);
    const PortInfo* output = find(session.outputs(), pair.output);
    if (input != nullptr && output != nullptr && input->shape == output->shape &&
        input->dtype == output->dtype) {
      continue;
    }
    return Error(ErrorCode::InvalidArgument,
                 "The state pair '" + pair.input + "' and '" + pair.output +
                     "' is no input and output of one dtype and shape.",
                 "StatePairMisfit");
  }
  return {};
}

// What the program answers to the golden input, where this machine can run it.
Status check_golden(const std::string& spec, const CompileOptions& options, const exec::Plan& plan,
                    const exec::GoldenCase& golden) {
  runtime::DeviceOptions device_options;
  device_options.threads = options.session.threads;
  auto device = runtime::open_device(spec, device_options);
  if (!device) return {};  // code for a machine that is not here
  IGNIS_TRY_ASSIGN(exec::Model program, exec::Model::create(plan, *device));
  IGNIS_TRY_ASSIGN(const std::vector<exec::GoldenOutcome> outcomes,
                   exec::check_golden(program, golden, options.session.timeout));
  for (const exec::GoldenOutcome& outcome : outcomes) {
    const Comparison& c = outcome.comparison;
    if (c.passed) continue;
    std::ostringstream text;
    text << "Output '" << outcome.output << "' of the program for '" << spec << "' is "
         << c.worst_got << " at element " << c.worst << "; the golden answer (" << golden.source
         << ") is " << c.worst_want << ", and " << c.beyond << " of " << c.count
         << " elements are beyond atol " << outcome.tolerance.atol << " and rtol "
         << outcome.tolerance.rtol
         << ". Look with ignis verify --layers, or give wider tolerances.";
    return Error(ErrorCode::InvalidArgument, text.str(), "GoldenMismatch");
  }
  return {};
}

// Golden data when it is wanted and within its limits; else `note` says why there is none.
Result<std::optional<exec::GoldenCase>> make_golden(const std::string& path,
                                                    const CompileOptions& options,
                                                    const exec::Plan& plan, std::string& note) {
  const GoldenOptions& golden = options.golden;
  if (golden.mode == GoldenOptions::Mode::Off) {
    note = "switched off";
    return std::optional<exec::GoldenCase>();
  }
  double flops = 0;
  for (const exec::Call& call : plan.calls) flops += call.flops;
  const bool is_auto = golden.mode == GoldenOptions::Mode::Auto;
  if (is_auto && golden.outputs.empty() && flops > golden.max_flops) {
    note = "the reference would compute " + std::to_string(static_cast<int64_t>(flops / 1e6)) +
           " MFLOP";
    return std::optional<exec::GoldenCase>();
  }
  Result<exec::GoldenCase> made = engine::make_golden(path, options.session, golden);
  if (made) return std::optional(*std::move(made));
  if (!is_auto || made.error().reason() != "GoldenTooLarge") return std::move(made).error();
  note = made.error().message();
  return std::optional<exec::GoldenCase>();
}

}  // namespace

Result<CompiledArtifact> compile_artifact(const std::string& model_path,
                                          const CompileOptions& options) {
  IGNIS_TRY_ASSIGN(const onnx::ModelInfo info, onnx::read_info(model_path));
  CompiledArtifact compiled;
  exec::ArtifactContents contents;
  contents.manifest = make_manifest(model_path, options, info);
  contents.secret_key = options.secret_key;
  contents.slices = options.slices;
  contents.state_pairs = options.state_pairs;
  contents.geometry = options.geometry;
  std::vector<Session> sessions;  // hold the plans
  std::vector<CompileOptions::NamedSessions> parts;
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
    // A record that was ignored says nothing of this code.
    if (session_options.tuning != nullptr && sessions.back().tuning_use().note.empty())
      contents.tuning = *session_options.tuning;
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
    if (!options.make_parts) continue;
    IGNIS_TRY_ASSIGN(CompileOptions::NamedSessions made, options.make_parts(code, session_options));
    parts.push_back(std::move(made));
    for (const auto& [name, part] : parts.back()) {
      contents.targets.push_back({needs, part.plan(), name});
      if (parts.size() == 1) compiled.parts.push_back(name);
    }
  }
  if (!sessions.empty()) {
    IGNIS_TRY(check_facts(options, sessions.front()));
    IGNIS_TRY_ASSIGN(
        std::optional<exec::GoldenCase> golden,
        make_golden(model_path, options, *sessions.front().plan(), compiled.golden_note));
    if (golden) {
      for (size_t i = 0; i < sessions.size(); ++i) {
        IGNIS_TRY(check_golden(options.targets[i], options, *sessions[i].plan(), *golden));
      }
      compiled.golden_bytes = golden->size_bytes();
      contents.golden.push_back(*std::move(golden));
    }
  }
  IGNIS_TRY_ASSIGN(compiled.bytes, exec::make_artifact(contents));
  compiled.inputs = sessions.front().inputs();
  compiled.outputs = sessions.front().outputs();
  return compiled;
}

}  // namespace ignis
