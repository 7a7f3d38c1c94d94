#include "tools/ignis/common.h"

#include "ignis/base/log.h"
#include "ignis/base/settings.h"
#include "ignis/engine/tuning.h"
#include "ignis/exec/artifact.h"
#include "ignis/interp/interp.h"
#include "ignis/runtime/device.h"

#include "tools/ignis/terminal.h"
#include "tools/io/files.h"
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <set>

namespace ignis::tools {
namespace {

Result<int64_t> parse_int(const std::string& text, int64_t lowest, int64_t highest,
                          const std::string& what) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest ||
      value > highest) {
    return usage_error(what + " takes a number from " + std::to_string(lowest) + " to " +
                       std::to_string(highest) + ", not '" + text + "'.");
  }
  return value;
}

}  // namespace

Result<uint64_t> parse_size(const std::string& text, const std::string& option) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const std::map<std::string_view, int> kShift = {{"", 0}, {"K", 10}, {"M", 20}, {"G", 30}};
  const auto shift = kShift.find(unit);
  if (error != std::errc() || shift == kShift.end() || value > (uint64_t{1} << 32)) {
    return usage_error(option + " takes bytes, as in 0, 4096, 100K, 100M or 2G, not '" + text +
                       "'.");
  }
  return value << shift->second;
}

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] != separator) continue;
    parts.push_back(text.substr(from, at - from));
    from = at + 1;
  }
  return parts;
}

/// "0,2-3": restricts the process to these CPUs.
Status apply_cpus(const std::string& list) {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const std::string& part : split(list, ',')) {
    const auto ends = split(part, '-');
    if (ends.size() > 2)
      return usage_error("--cpus takes a list such as 0,2-3, not '" + list + "'.");
    IGNIS_TRY_ASSIGN(const int64_t first, parse_int(ends.front(), 0, CPU_SETSIZE - 1, "--cpus"));
    IGNIS_TRY_ASSIGN(const int64_t last, parse_int(ends.back(), first, CPU_SETSIZE - 1, "--cpus"));
    for (int64_t cpu = first; cpu <= last; ++cpu) CPU_SET(static_cast<size_t>(cpu), &wanted);
  }
  if (::sched_setaffinity(0, sizeof wanted, &wanted) != 0) {
    return usage_error("--cpus " + list + ": this process may run on none of these CPUs.");
  }
  return Status::ok();
}

void install_log(const CommonOptions& options) {
  const LogLevel lowest = options.verbosity >= 2   ? LogLevel::Debug
                          : options.verbosity == 1 ? LogLevel::Info
                          : options.is_quiet       ? LogLevel::Error
                                                   : LogLevel::Warning;
  const bool as_json = options.log_format == "json";
  set_log_sink(
      [as_json](const LogRecord& record) {
        const std::string level(to_string(record.level)), area(record.area), text(record.text);
        if (as_json) {
          const std::string line = Json{{"level", level}, {"area", area}, {"text", text}}.dump(
              -1, ' ', false, Json::error_handler_t::replace);
          std::fprintf(stderr, "%s\n", line.c_str());
        } else {
          std::fprintf(stderr, "%s: %s: %s\n", level.c_str(), area.c_str(), text.c_str());
        }
      },
      lowest);
}

/// {"max_nodes": 1000, …}: the names of onnx::Limits.
Status read_limits(const std::string& path, onnx::Limits& limits) {
  auto bytes = read_file(path);
  if (!bytes) return as_file(std::move(bytes).error());
  const Json file = Json::parse(reinterpret_cast<const char*>(bytes->data()),
                                reinterpret_cast<const char*>(bytes->data()) + bytes->size(),
                                nullptr, /*allow_exceptions=*/false);
  if (!file.is_object())
    return as_file(
        Error(ErrorCode::InvalidArgument, "Limits file '" + path + "' is no JSON object."));
  int64_t depth = limits.max_graph_depth, message_depth = limits.max_message_depth,
          rank = limits.max_rank;
  const std::pair<const char*, int64_t*> kFields[] = {
      {"max_file_bytes", &limits.max_file_bytes},
      {"max_nodes", &limits.max_nodes},
      {"max_graph_depth", &depth},
      {"max_message_depth", &message_depth},
      {"max_rank", &rank},
      {"max_elements", &limits.max_elements},
      {"max_string_bytes", &limits.max_string_bytes},
      {"max_fold_elements", &limits.max_fold_elements},
      {"max_total_nodes", &limits.max_total_nodes}};
  for (const auto& [key, value] : file.items()) {
    int64_t* field = nullptr;
    for (const auto& [name, target] : kFields)
      if (key == name) field = target;
    if (field == nullptr || !value.is_number_integer() || value.get<int64_t>() < 0) {
      return as_file(Error(ErrorCode::InvalidArgument, "Limits file '" + path + "': '" + key +
                                                           "' is no limit with a whole number."));
    }
    *field = value.get<int64_t>();
  }
  limits.max_graph_depth = static_cast<int>(std::min<int64_t>(depth, 1000));
  limits.max_message_depth = static_cast<int>(std::min<int64_t>(message_depth, 1000));
  limits.max_rank = static_cast<int>(std::min<int64_t>(rank, 1000));
  return Status::ok();
}

std::string first_line(const std::string& path, const std::string& prefix = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(prefix, 0) != 0) continue;
    const size_t colon = prefix.empty() ? std::string::npos : line.find(':');
    return colon == std::string::npos ? line : line.substr(std::min(line.size(), colon + 2));
  }
  return "";
}

std::string list_names(const std::vector<onnx::ValueInfo>& values) {
  std::string text;
  for (const onnx::ValueInfo& value : values)
    text += (text.empty() ? "" : ", ") + ("'" + value.name + "'");
  return text.empty() ? "none" : text;
}

const onnx::ValueInfo* find_input(const onnx::ModelInfo& info, const std::string& name) {
  for (const onnx::ValueInfo& input : info.inputs)
    if (input.name == name) return &input;
  return nullptr;
}

/// "name=rest" at the last '=', since names may hold one.
Result<std::pair<std::string, std::string>> split_assignment(const std::string& text,
                                                             const std::string& option) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0)
    return usage_error(option + " takes NAME=VALUE, not '" + text + "'.");
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

/// A tuner's choices from a file.
Result<std::shared_ptr<const exec::TuningRecord>> load_tuning(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return as_file(std::move(bytes).error());
  auto record = engine::parse_tuning(
      std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
  if (!record) return as_file(std::move(record).error().with_context("file '" + path + "'"));
  return std::make_shared<const exec::TuningRecord>(*std::move(record));
}

Status bind_dims(const ModelOptions& options, BoundModel& model) {
  std::set<std::string> symbols;
  for (const onnx::ValueInfo& input : model.info.inputs) {
    for (const onnx::Dim& dim : input.dims)
      if (!dim.symbol.empty()) symbols.insert(dim.symbol);
  }
  std::map<std::string, int64_t>& dims = model.session.dims;
  for (const std::string& text : options.dims) {
    IGNIS_TRY_ASSIGN(const auto assignment, split_assignment(text, "--dim"));
    if (symbols.count(assignment.first) == 0) {
      std::string known;
      for (const std::string& symbol : symbols) known += (known.empty() ? "" : ", ") + symbol;
      return usage_error("The model has no dim '" + assignment.first + "'; its open dims are " +
                         (known.empty() ? "none" : known) + ".");
    }
    IGNIS_TRY_ASSIGN(dims[assignment.first],
                     parse_int(assignment.second, 0, int64_t{1} << 40, "--dim"));
  }
  std::map<std::string, Shape> stated;
  std::set<std::string> replaced;  // by --shape: wins over the file's extents
  for (const std::string& text : options.shapes) {
    IGNIS_TRY_ASSIGN(const auto assignment, split_assignment(text, "--shape"));
    if (find_input(model.info, assignment.first) == nullptr) {
      return usage_error("The model has no input '" + assignment.first + "'; its inputs are " +
                         list_names(model.info.inputs) + ".");
    }
    IGNIS_TRY_ASSIGN(stated[assignment.first], parse_shape(assignment.second));
    // Networks without fixed inner sizes often carry the extents they were exported with.
    replaced.insert(assignment.first);
  }
  for (const InputSpec& spec : model.specs) {
    if (stated.count(spec.name) != 0 || spec.resizes_image) continue;
    if (auto shape = stated_shape(spec)) stated[spec.name] = *std::move(shape);
  }
  // What one input says about a named dim holds for all; fixed extents are the model's to check.
  for (const onnx::ValueInfo& input : model.info.inputs) {
    const auto at = stated.find(input.name);
    if (at == stated.end() || !input.has_shape) continue;
    if (at->second.size() != input.dims.size()) {
      return usage_error("Input '" + input.name + "' is " + input.to_string() +
                         "; the given shape is " + to_string(at->second) + ".");
    }
    for (size_t i = 0; i < input.dims.size(); ++i) {
      const int64_t extent = at->second[i];
      if (extent < 0 || input.dims[i].value >= 0) continue;
      if (!input.dims[i].symbol.empty()) dims.emplace(input.dims[i].symbol, extent);
    }
  }
  for (const onnx::ValueInfo& input : model.info.inputs) {
    const auto at = stated.find(input.name);
    if (!input.has_shape) {
      if (at != stated.end()) model.session.shapes[input.name] = at->second;
      continue;
    }
    Shape shape;
    for (size_t i = 0; i < input.dims.size(); ++i) {
      const onnx::Dim& dim = input.dims[i];
      const auto bound = dims.find(dim.symbol);
      int64_t extent = at != stated.end() && at->second[i] >= 0 ? at->second[i] : dim.value;
      if (dim.value >= 0 && extent != dim.value && replaced.count(input.name) == 0) {
        return usage_error("Input '" + input.name + "' has " + to_string(at->second) +
                           "; the model takes " + input.to_string() + ".");
      }
      if (extent < 0 && !dim.symbol.empty() && bound != dims.end()) extent = bound->second;
      if (extent < 0) {
        const std::string name =
            dim.symbol.empty() ? "dim " + std::to_string(i) : "dim '" + dim.symbol + "'";
        return usage_error("Input '" + input.name + "' is " + input.to_string() + ", and " + name +
                           " is open; give " +
                           (dim.symbol.empty() ? "" : "--dim " + dim.symbol + "=N, ") + "--shape " +
                           input.name + "=... or an input with its shape.");
      }
      shape.push_back(extent);
    }
    model.session.shapes[input.name] = std::move(shape);
  }
  return Status::ok();
}

Status bind_choices(const ModelOptions& options, SessionOptions& session) {
  if (!options.float_level.empty()) {
    IGNIS_TRY_ASSIGN(session.float_level, parse_float_level(options.float_level));
  }
  if (!options.winograd.empty()) {
    IGNIS_TRY_ASSIGN(session.winograd, parse_choice(options.winograd));
  }
  if (!options.chain.empty()) {
    IGNIS_TRY_ASSIGN(session.chain, parse_choice(options.chain));
  }
  return Status::ok();
}

}  // namespace

Result<Context> Context::create(CommonOptions options) {
  Context context;
  choose_color(options.color == "always"  ? ColorMode::Always
               : options.color == "never" ? ColorMode::Never
                                          : ColorMode::Auto);
  install_log(options);
  Settings::environment().warn_about_unknown();
  if (!options.cpus.empty()) IGNIS_TRY(apply_cpus(options.cpus));
  if (!options.limits_file.empty()) IGNIS_TRY(read_limits(options.limits_file, context.limits_));
  if (options.threads != "auto") {
    IGNIS_TRY_ASSIGN(const int64_t threads, parse_int(options.threads, 1, 1024, "--threads"));
    context.threads_ = static_cast<int>(threads);
  }
  if (!options.cache_size.empty()) {
    IGNIS_TRY_ASSIGN(context.cache_bytes_, parse_size(options.cache_size, "--cache-size"));
  }
  if (!(options.timeout_s > 0 && options.timeout_s < 1e9))
    return usage_error("--timeout takes seconds above 0.");
  context.seed_ = options.seed ? *options.seed : std::random_device{}();
  context.options_ = std::move(options);
  return context;
}

SessionOptions Context::session_options() const {
  SessionOptions session;
  session.device = options_.device;
  session.threads = threads_;
  session.timeout = std::chrono::nanoseconds(static_cast<int64_t>(options_.timeout_s * 1e9));
  return session;
}

std::string Context::cache_folder() const {
  if (options_.cache == "off") return "";
  return options_.cache.empty() ? default_cache_folder() : options_.cache;
}

std::shared_ptr<ProgramCache> Context::program_cache() const {
  if (cache_->is_open) return cache_->cache;
  cache_->is_open = true;
  if (options_.cache == "off") return nullptr;
  ProgramCacheOptions cache_options;
  cache_options.folder = cache_folder();
  cache_options.max_disk_bytes = cache_bytes_;
  cache_->cache = ProgramCache::open(cache_options);
  return cache_->cache;
}

Status Context::write_json(const Json& report) const {
  if (options_.json.empty()) return Status::ok();
  const std::string text = report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  Status status = write_file(options_.json, text);
  if (!status) return as_file(std::move(status).error());
  return Status::ok();
}

namespace {

// The ports of a compiled model in the words of a model file.
Result<ModelFile> read_artifact(const std::string& path, const Context& context) {
  auto device = runtime::open_device(context.options().device, {});
  if (!device) return as_device(std::move(device).error());
  auto artifact = exec::Artifact::open(path);
  if (!artifact) return as_model(std::move(artifact).error());
  const auto plan = artifact->plan_for((*device)->target());
  if (!plan) return as_model(Error(plan.error()));
  onnx::ModelInfo info;
  info.graph_name = path;
  const auto describe = [](const exec::Port& port) {
    onnx::ValueInfo value{port.name, port.dtype, {}, true};
    for (const int64_t extent : port.shape) value.dims.push_back({extent, ""});
    return value;
  };
  for (const exec::Port& port : plan->inputs) info.inputs.push_back(describe(port));
  for (const exec::Port& port : plan->outputs) info.outputs.push_back(describe(port));
  info.metadata = artifact->manifest();
  if (const auto digest = info.metadata.find("model.blake2b"); digest != info.metadata.end()) {
    info.digest = digest->second;
  }
  info.weight_bytes = static_cast<int64_t>(artifact->weight_bytes());
  return ModelFile{std::move(info), *std::move(artifact)};
}

}  // namespace

Result<ModelFile> read_model(const std::string& path, const Context& context) {
  if (exec::is_artifact(path)) return read_artifact(path, context);
  auto info = onnx::read_info(path, context.limits());
  if (info) return ModelFile{*std::move(info), {}};
  if (info.error().code() == ErrorCode::NotFound) return as_file(std::move(info).error());
  return as_model(std::move(info).error());
}

Result<BoundModel> bind_model(const ModelOptions& options, const Context& context) {
  IGNIS_TRY_ASSIGN(const ModelFile file, read_model(options.path, context));
  return bind_case(options, file, {}, context);
}

Result<BoundModel> bind_case(const ModelOptions& options, const ModelFile& file,
                             std::vector<InputSpec> more, const Context& context) {
  BoundModel model;
  model.path = options.path;
  model.session = context.session_options();
  model.artifact = file.artifact;
  model.info = file.info;
  std::set<std::string> names;
  for (InputSpec& spec : more) {
    names.insert(spec.name);
    model.specs.push_back(std::move(spec));
  }
  for (const std::string& argument : options.inputs) {
    auto specs = parse_input(argument);
    if (!specs)
      return specs.error().reason() == "Usage" ? std::move(specs).error()
                                               : as_file(std::move(specs).error());
    for (InputSpec& spec : *specs) {
      if (find_input(model.info, spec.name) == nullptr) {
        // An archive may hold more than the inputs (verify --ref reads the same file), a named argument may not.
        if (argument.starts_with('@')) continue;
        return usage_error("The model has no input '" + spec.name + "'; its inputs are " +
                           list_names(model.info.inputs) + ".");
      }
      if (!names.insert(spec.name).second)
        return usage_error("Input '" + spec.name + "' is given twice.");
      model.specs.push_back(std::move(spec));
    }
  }
  IGNIS_TRY(bind_dims(options, model));
  IGNIS_TRY(bind_choices(options, model.session));
  if (model.artifact) {
    const bool chooses = !options.float_level.empty() || !options.winograd.empty() ||
                         !options.chain.empty() || !options.tuning.empty();
    if (chooses || !options.fixed.empty() || !options.dims.empty() || !options.shapes.empty()) {
      return usage_error("'" + options.path +
                         "' is compiled already: --dim, --shape, --fix, --float-level, --winograd, "
                         "--chain and --load-tuning belong to ignis compile.");
    }
    model.session.shapes.clear();
  }
  std::mt19937_64 rng(context.seed());
  for (const std::string& name : options.fixed) {
    const InputSpec* found = nullptr;
    for (const InputSpec& spec : model.specs)
      if (spec.name == name) found = &spec;
    const onnx::ValueInfo* input = find_input(model.info, name);
    if (found == nullptr || input == nullptr)
      return usage_error("--fix " + name + ": no --input gives that input's value.");
    const auto shape = model.session.shapes.find(name);
    IGNIS_TRY_ASSIGN(
        model.session.constants[name],
        make_input(*found, input->dtype,
                   shape == model.session.shapes.end() ? Shape{} : shape->second, rng));
  }
  if (!options.tuning.empty()) {
    IGNIS_TRY_ASSIGN(model.session.tuning, load_tuning(options.tuning));
  }
  return model;
}

Result<onnx::Model> import_bound(const BoundModel& bound, const Context& context) {
  if (bound.artifact) {
    return usage_error(
        "'" + bound.path +
        "' is a compiled model and holds no layers; take the ONNX file it was made from.");
  }
  onnx::ImportOptions import;
  import.dims = bound.session.dims;
  import.shapes = bound.session.shapes;
  import.constants = bound.session.constants;
  import.limits = context.limits();
  import.evaluate = [](const ir::Node& node) -> Result<HostTensor> {
    IGNIS_TRY_ASSIGN(std::vector<HostTensor> values, interp::evaluate(std::span(&node, 1), {}));
    return std::move(values[0]);
  };
  auto model = onnx::import_model(bound.path, import);
  if (!model) return as_model(std::move(model).error());
  return model;
}

Result<Session> load_session(const BoundModel& model, const SessionOptions& options) {
  auto session = model.artifact ? Session::from_artifact(*model.artifact, model.path, options)
                                : Session::load(model.path, options);
  if (session) return session;
  Error error = std::move(session).error();
  if (error.reason() == "UnknownTap") return as_usage(std::move(error));
  // A device is named by a SPEC; what is wrong with it is said before the model is read again.
  auto device = runtime::open_device(options.device, {});
  if (!device) {
    return device.error().code() == ErrorCode::InvalidArgument
               ? as_usage(std::move(device).error())
               : as_device(std::move(device).error());
  }
  return as_model(std::move(error));
}

Status require_inputs(const BoundModel& model) {
  for (const onnx::ValueInfo& input : model.info.inputs) {
    const bool is_given =
        std::any_of(model.specs.begin(), model.specs.end(),
                    [&](const InputSpec& spec) { return spec.name == input.name; });
    if (!is_given) {
      return usage_error("Input '" + input.name + "' (" + input.to_string() +
                         ") is not given; say --input " + input.name + "=@FILE or --input " +
                         input.name + ":uniform(0,1).");
    }
  }
  return Status::ok();
}

Result<std::vector<HostTensor>> make_inputs(const BoundModel& model, const Session& session,
                                            Missing missing, uint64_t seed) {
  std::vector<HostTensor> values;
  std::mt19937_64 rng(seed);
  for (const PortInfo& port : session.inputs()) {
    const InputSpec* spec = nullptr;
    for (const InputSpec& each : model.specs)
      if (each.name == port.name) spec = &each;
    InputSpec random;
    if (spec == nullptr && missing == Missing::IsError) {
      return usage_error("Input '" + port.name + "' (" + std::string(to_string(port.dtype)) + " " +
                         to_string(port.shape) + ") is not given; say --input " + port.name +
                         "=@FILE or --input " + port.name + ":uniform(0,1).");
    }
    if (spec == nullptr) {
      random.name = port.name;
      random.kind = InputSpec::Kind::Random;
      random.generator = is_int(port.dtype) ? "randint" : "uniform";
      random.high = is_int(port.dtype) ? 10 : 1;
      spec = &random;
    }
    IGNIS_TRY_ASSIGN(HostTensor value, make_input(*spec, port.dtype, port.shape, rng));
    values.push_back(std::move(value));
  }
  return values;
}

Json to_json(const PortInfo& port) {
  return Json{
      {"name", port.name}, {"dtype", std::string(to_string(port.dtype))}, {"shape", port.shape}};
}

std::string version_text() {
#ifdef __clang__
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "gcc " __VERSION__;
#endif
  return std::string(IGNIS_VERSION) + " (" + IGNIS_BUILD_TYPE + ", " + compiler + ")";
}

Json describe_machine(const Target* target) {
  utsname system{};
  ::uname(&system);
  Json machine{{"cpu", first_line("/proc/cpuinfo", "model name")},
               {"usable_threads", runtime::usable_threads()},
               {"governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")},
               {"kernel", std::string(system.sysname) + " " + system.release},
               {"ignis", version_text()}};
  if (target != nullptr) machine["target"] = target->name();
  return machine;
}

}  // namespace ignis::tools
