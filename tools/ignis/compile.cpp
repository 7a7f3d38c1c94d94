// ignis compile: a model into one file that runs without the compiler.
#include "ignis/engine/artifact.h"
#include "ignis/engine/tuning.h"
#include "ignis/pipeline/driver_monitoring/build/compile_parts.h"

#include "tools/ignis/commands.h"
#include "tools/ignis/compare.h"
#include "tools/ignis/dm/intrinsics.h"
#include "tools/ignis/explain_cache.h"
#include "tools/ignis/terminal.h"
#include "tools/ignis/tune.h"
#include "tools/io/files.h"
#include "tools/io/npy.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

namespace ignis::tools {
namespace {

/// The 64 bytes of an Ed25519 secret key, raw as `ignis compile --sign` wants them.
Result<std::vector<std::byte>> read_key(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return as_file(std::move(bytes).error());
  if (bytes->size() != 64) {
    return as_file(Error(ErrorCode::InvalidArgument,
                         "'" + path + "' has " + std::to_string(bytes->size()) +
                             " bytes; an Ed25519 secret key has 64.",
                         "BadKey"));
  }
  return bytes;
}

/// --golden and the tolerances that go with it.
Result<GoldenOptions> read_golden(const CompileCommandOptions& options,
                                  const onnx::ModelInfo& info) {
  GoldenOptions golden;
  using Mode = GoldenOptions::Mode;
  const std::string& text = options.golden;
  if (text == "auto" || text == "on" || text == "off") {
    golden.mode = text == "auto" ? Mode::Auto : text == "on" ? Mode::On : Mode::Off;
  } else {
    golden.mode = Mode::On;
    auto bytes = read_file(text);
    if (!bytes) return as_file(std::move(bytes).error());
    auto tensors = parse_npz(*bytes);
    if (!tensors) return as_file(std::move(tensors).error().with_context("file '" + text + "'"));
    const auto is_output = [&](const std::string& name) {
      return std::any_of(info.outputs.begin(), info.outputs.end(),
                         [&](const onnx::ValueInfo& output) { return output.name == name; });
    };
    for (auto& [name, tensor] : *tensors) {
      (is_output(name) ? golden.outputs : golden.inputs)[name] = std::move(tensor);
    }
  }
  IGNIS_TRY_ASSIGN(const NamedValues rtol, NamedValues::parse(options.rtol, "--rtol"));
  IGNIS_TRY_ASSIGN(const NamedValues atol, NamedValues::parse(options.atol, "--atol"));
  golden.tolerance = [rtol, atol](const std::string& name, Tolerance otherwise) {
    return Tolerance{atol.value(name, otherwise.atol), rtol.value(name, otherwise.rtol),
                     otherwise.ulp};
  };
  return golden;
}

/// What a cabin model's pipeline needs beside the network. The user's cameras count before the known ones.
Result<std::optional<pipeline::Profile>> add_parts(const std::string& path,
                                                   const CompileCommandOptions& options,
                                                   CompileOptions& compile) {
  pipeline::PartsOptions parts;
  parts.profile = options.profile;
  parts.takes_tight_frames = options.takes_tight_frames;
  using pipeline::DriverSide;
  if (options.side == "right") parts.sides = {DriverSide::Right};
  if (options.side == "both") parts.sides = {DriverSide::Left, DriverSide::Right};
  for (const std::string& text : options.intrinsics) {
    IGNIS_TRY_ASSIGN(pipeline::Camera camera, parse_intrinsics(text));
    parts.cameras.push_back(std::move(camera));
  }
  parts.cameras = pipeline::known_cameras_and(parts.cameras);
  auto profile = pipeline::add_parts(path, parts, compile);
  if (profile) {
    if (!*profile && !options.intrinsics.empty()) {
      return usage_error("--intrinsics is for cabin models; '" + path + "' is of no profile.");
    }
    return profile;
  }
  Error error = std::move(profile).error();
  return error.code() == ErrorCode::NotFound ? as_usage(std::move(error))
                                             : as_model(std::move(error));
}

std::string default_output(const std::string& model) {
  const size_t dot = model.rfind('.');
  const bool has_ending = dot != std::string::npos && model.find('/', dot) == std::string::npos;
  return model.substr(0, has_ending ? dot : model.size()) + ".ignis";
}

Json to_json(const CompiledTarget& target) {
  return {{"target", target.name},
          {"kernels", target.kernels},
          {"programs", target.programs},
          {"code_bytes", target.code_bytes},
          {"arena_bytes", target.arena_bytes},
          {"constant_bytes", target.constant_bytes},
          {"import_s", target.times.import_s},
          {"schedule_s", target.times.schedule_s},
          {"lower_s", target.times.lower_s},
          {"compile_s", target.times.compile_s},
          {"cache_s", target.times.cache_s},
          {"pack_s", target.times.pack_s}};
}

}  // namespace

Result<Exit> compile_command(const Context& context, const CompileCommandOptions& options) {
  Progress progress(context.shows_progress());
  IGNIS_TRY_ASSIGN(const BoundModel model, bind_model(options.model, context));
  if (model.artifact) return usage_error("'" + model.path + "' is compiled already.");
  CompileOptions compile;
  compile.session = model.session;
  compile.session.progress = progress.callback();
  compile.session.program_cache = context.program_cache();
  compile.targets = options.targets;
  if (compile.targets.empty()) compile.targets = {context.options().device};
  std::vector<std::byte> key;
  if (!options.key_file.empty()) {
    IGNIS_TRY_ASSIGN(key, read_key(options.key_file));
    compile.secret_key = key;
  }
  IGNIS_TRY_ASSIGN(compile.golden, read_golden(options, model.info));
  IGNIS_TRY_ASSIGN(const std::optional<pipeline::Profile> profile,
                   add_parts(model.path, options, compile));
  std::optional<Tuned> tuned;
  if (options.tune != "off") {
    if (model.session.tuning != nullptr)
      return usage_error("--tune makes a record and --load-tuning takes one; say one of them.");
    IGNIS_TRY_ASSIGN(tuned, tune(model, options, context));
    compile.session.tuning = tuned->record;
    if (!options.save_tuning.empty()) {
      Status saved = write_file(options.save_tuning, engine::format_tuning(*tuned->record));
      if (!saved) return as_file(std::move(saved).error());
    }
    if (context.prints_text()) print_tuned(*tuned);
  } else if (!options.save_tuning.empty()) {
    return usage_error("--save-tuning keeps what a search chose; say --tune fast or --tune 4.");
  }
  const auto begin = std::chrono::steady_clock::now();
  auto compiled = compile_artifact(model.path, compile);
  if (!compiled) {
    Error error = std::move(compiled).error();
    if (error.reason() == "GoldenMismatch") {  // compared and different: nothing is written
      progress.clear();
      std::fprintf(stderr, "error: %s\n", error.message().c_str());
      IGNIS_TRY(context.write_json({{"schema", "ignis.compile/1"},
                                    {"model", model.path},
                                    {"golden", {{"passed", false}, {"note", error.message()}}}}));
      return Exit::Different;
    }
    if (error.reason() == "GoldenMisfit" || error.reason() == "GoldenTooLarge")
      return as_usage(std::move(error));
    if (error.reason() == "DuplicateTarget" || error.reason() == "TargetMismatch" ||
        error.reason() == "UnknownDevice" || error.reason() == "UnknownFeature")
      return as_usage(std::move(error));
    return as_model(std::move(error));
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  progress.clear();
  const std::string path = options.output.empty() ? default_output(model.path) : options.output;
  Status written = write_file(path, compiled->bytes);
  if (!written) return as_file(std::move(written).error());

  std::vector<ProgramLookup> lookups;
  for (const CompiledTarget& target : compiled->targets)
    lookups.insert(lookups.end(), target.lookups.begin(), target.lookups.end());
  const ProgramCache* cache = compile.session.program_cache.get();
  if (context.prints_text() && path != "-" && options.explains_cache) print_cache(cache, lookups);
  if (context.prints_text() && path != "-") {
    Table table({"target", "kernels", "programs", "code", "weights", "memory at run"});
    for (const CompiledTarget& target : compiled->targets) {
      table.add({target.name, std::to_string(target.kernels), std::to_string(target.programs),
                 format_bytes(static_cast<double>(target.code_bytes)),
                 format_bytes(static_cast<double>(target.constant_bytes)),
                 format_bytes(static_cast<double>(target.arena_bytes))});
    }
    std::printf("%s%s: %s in %.2f s\n", table.to_string().c_str(), path.c_str(),
                format_bytes(static_cast<double>(compiled->bytes.size())).c_str(), seconds);
    if (profile) {
      std::printf("cabin model of profile %s, with %zu warps for its cameras\n",
                  std::string(pipeline::to_string(*profile)).c_str(), compiled->parts.size());
    }
    if (compiled->golden_bytes == 0)
      std::printf("no golden data: %s\n", compiled->golden_note.c_str());
  }
  Json report{{"schema", "ignis.compile/1"},
              {"model", model.path},
              {"artifact", path},
              {"bytes", compiled->bytes.size()},
              {"seconds", seconds},
              {"golden",
               {{"passed", compiled->golden_bytes > 0},
                {"bytes", compiled->golden_bytes},
                {"note", compiled->golden_note}}}};
  for (const CompiledTarget& target : compiled->targets)
    report["targets"].push_back(to_json(target));
  if (profile) {
    report["profile"] = std::string(pipeline::to_string(*profile));
    report["parts"] = compiled->parts;
  }
  if (tuned) report["tuning"] = to_json(*tuned);
  if (options.explains_cache) report["cache"] = cache_json(cache, lookups);
  IGNIS_TRY(context.write_json(report));
  return Exit::Ok;
}

}  // namespace ignis::tools
