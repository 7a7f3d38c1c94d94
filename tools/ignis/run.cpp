// ignis run: one run (or a few), what the outputs look like, and the outputs as files.
#include "tools/ignis/commands.h"
#include "tools/ignis/compare.h"
#include "tools/ignis/explain_cache.h"
#include "tools/ignis/terminal.h"
#include "tools/io/files.h"
#include "tools/io/npy.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <regex>

namespace ignis::tools {
namespace {

/// One --output argument: where an output, or all of them (empty name), go.
struct Destination {
  std::string name, path;
};

Result<std::vector<Destination>> parse_destinations(const std::vector<std::string>& arguments,
                                                    const onnx::ModelInfo& info) {
  std::vector<Destination> out;
  for (const std::string& argument : arguments) {
    const size_t at = argument.starts_with('@') ? 0 : argument.find("=@");
    Destination d;
    if (at == std::string::npos)
      return usage_error("--output takes NAME=@FILE or @FILE.npz, not '" + argument + "'.");
    d.name = argument.substr(0, at);
    d.path = argument.substr(at + (d.name.empty() ? 1 : 2));
    const bool is_known =
        d.name.empty() || std::any_of(info.outputs.begin(), info.outputs.end(),
                                      [&](const onnx::ValueInfo& o) { return o.name == d.name; });
    if (!is_known) {
      std::string names;
      for (const onnx::ValueInfo& o : info.outputs)
        names += (names.empty() ? "'" : ", '") + o.name + "'";
      return usage_error("The model has no output '" + d.name + "'; its outputs are " + names +
                         ".");
    }
    if (d.path.empty() || (d.name.empty() && !d.path.ends_with(".npz"))) {
      return usage_error("--output takes NAME=@FILE or @FILE.npz, not '" + argument + "'.");
    }
    out.push_back(std::move(d));
  }
  return out;
}

Status write_tensor(const std::string& path, const std::string& name, const HostTensor& tensor) {
  if (path.ends_with(".npz")) {
    IGNIS_TRY_ASSIGN(const auto file, format_npz({{name, tensor}}));
    return write_file(path, file);
  }
  if (path.ends_with(".npy")) return write_file(path, format_npy(tensor));
  return write_file(path, tensor.bytes);
}

Status write_outputs(const std::vector<Destination>& destinations,
                     const std::vector<PortInfo>& ports, const std::vector<HostTensor>& values,
                     size_t model_outputs) {
  for (const Destination& d : destinations) {
    std::vector<NamedTensor> all;
    for (size_t i = 0; i < model_outputs; ++i) {
      if (d.name.empty()) all.emplace_back(ports[i].name, values[i]);
      else if (ports[i].name == d.name) IGNIS_TRY(write_tensor(d.path, d.name, values[i]));
    }
    if (!d.name.empty()) continue;
    IGNIS_TRY_ASSIGN(const auto file, format_npz(all));
    IGNIS_TRY(write_file(d.path, file));
  }
  return Status::ok();
}

/// Layers whose name or output matches the expression.
Result<std::vector<std::string>> find_taps(const std::string& expression, const BoundModel& model,
                                           const Context& context) {
  if (expression.empty()) return std::vector<std::string>{};
  std::regex pattern;
  try {
    pattern = std::regex(expression);
  } catch (const std::regex_error&) {
    return usage_error("--tap '" + expression + "' is no regular expression.");
  }
  IGNIS_TRY_ASSIGN(const onnx::Model imported, import_bound(model, context));
  std::vector<std::string> taps;
  for (const onnx::Layer& layer : imported.layers) {
    if (std::regex_search(layer.name, pattern) || std::regex_search(layer.output, pattern))
      taps.push_back(layer.output);
  }
  if (taps.empty()) return usage_error("--tap '" + expression + "' matches no layer of the model.");
  return taps;
}

/// A file name for a layer's output, which may hold any character; `position` keeps names apart.
std::string file_name(size_t position, const std::string& name) {
  std::string out = std::to_string(position) + "_";
  for (const char c : name)
    out += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' ? c : '_';
  return out.substr(0, 200) + ".npy";
}

std::string value_text(const HostTensor& tensor, int64_t print_max) {
  const int64_t shown = std::min(tensor.count(), print_max);
  std::string text;
  for (int64_t i = 0; i < shown; ++i) {
    text += i == 0 ? "" : ", ";
    if (is_float(tensor.dtype))
      text += format_number(element_as_double(tensor, i), tensor.dtype == DType::Float64 ? 17 : 9);
    else if (tensor.dtype == DType::UInt64)
      text += std::to_string(static_cast<uint64_t>(element_as_int(tensor, i)));
    else text += std::to_string(element_as_int(tensor, i));
  }
  return shown < tensor.count() ? text + ", …" : text;
}

Json describe(const PortInfo& port, const HostTensor& value, int64_t print_max) {
  const Flags flags = inspect_values(value);
  Json json = to_json(port);
  json["min"] = flags.min;
  json["max"] = flags.max;
  json["mean"] = flags.mean;
  json["nan"] = flags.nan;
  json["inf"] = flags.inf;
  if (print_max > 0) {
    Json values = Json::array();
    for (int64_t i = 0; i < std::min(value.count(), print_max); ++i) {
      if (is_float(value.dtype)) values.push_back(element_as_double(value, i));
      else values.push_back(element_as_int(value, i));
    }
    json["values"] = std::move(values);
  }
  return json;
}

void print_outputs(const std::vector<PortInfo>& ports, const std::vector<HostTensor>& values,
                   int64_t print_max) {
  Table table({"output", "dtype", "shape", "min", "max", "mean", "NaN", "Inf", ""});
  for (size_t i = 0; i < ports.size(); ++i) {
    const Flags flags = inspect_values(values[i]);
    const std::string note = flags.is_all_zero ? "all zero" : flags.is_constant ? "constant" : "";
    table.add({ports[i].name, std::string(to_string(ports[i].dtype)), to_string(ports[i].shape),
               format_number(flags.min), format_number(flags.max), format_number(flags.mean),
               std::to_string(flags.nan), std::to_string(flags.inf), styled(note, Style::Warning)});
  }
  std::fputs(table.to_string().c_str(), stdout);
  for (size_t i = 0; i < ports.size() && print_max > 0; ++i) {
    std::printf("%s = %s\n", ports[i].name.c_str(), value_text(values[i], print_max).c_str());
  }
}

}  // namespace

Result<Exit> run_command(const Context& context, const RunOptions& options) {
  Progress progress(context.shows_progress());
  if (options.dump.empty() != options.tap.empty())
    return usage_error("--dump and --tap go together: where to, and which layers.");
  IGNIS_TRY_ASSIGN(BoundModel model, bind_model(options.model, context));
  IGNIS_TRY(require_inputs(model));  // before minutes may go into compiling
  IGNIS_TRY_ASSIGN(const std::vector<Destination> destinations,
                   parse_destinations(options.outputs, model.info));
  IGNIS_TRY_ASSIGN(model.session.taps, find_taps(options.tap, model, context));
  model.session.progress = progress.callback();
  if (!model.artifact) model.session.program_cache = context.program_cache();
  IGNIS_TRY_ASSIGN(Session session, load_session(model, model.session));
  IGNIS_TRY_ASSIGN(const std::vector<HostTensor> inputs,
                   make_inputs(model, session, Missing::IsError, context.seed()));
  progress.show("run");
  std::vector<HostTensor> values;
  for (int i = 0; i < options.repeat; ++i) {
    IGNIS_TRY_ASSIGN(values, session.run(inputs));
  }
  progress.clear();

  const size_t model_outputs = session.outputs().size() - model.session.taps.size();
  Status written = write_outputs(destinations, session.outputs(), values, model_outputs);
  if (!written) return as_file(std::move(written).error());
  if (!options.dump.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(options.dump, failed);
    for (size_t i = model_outputs; i < values.size(); ++i) {
      written =
          write_file(options.dump + "/" + file_name(i - model_outputs, session.outputs()[i].name),
                     format_npy(values[i]));
      if (!written) return as_file(std::move(written).error());
    }
  }
  if (context.prints_text() && options.explains_cache)
    print_cache(model.session.program_cache.get(), session.program_lookups());
  if (context.prints_text()) print_outputs(session.outputs(), values, options.print_max);
  Json report{{"schema", "ignis.run/1"},
              {"model", model.path},
              {"device", context.options().device},
              {"seed", context.seed()}};
  if (options.explains_cache) {
    report["cache"] = cache_json(model.session.program_cache.get(), session.program_lookups());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    report[i < model_outputs ? "outputs" : "taps"].push_back(
        describe(session.outputs()[i], values[i], options.print_max));
  }
  IGNIS_TRY(context.write_json(report));
  return Exit::Ok;
}

}  // namespace ignis::tools
