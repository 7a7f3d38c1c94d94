// ignis inspect: what a model holds and what the compiler makes of it, without running it.
#include "ignis/base/log.h"
#include "ignis/codegen/codegen.h"
#include "ignis/exec/artifact.h"
#include "ignis/ir/text.h"
#include "ignis/runtime/device.h"
#include "ignis/schedule/schedule.h"

#include "tools/ignis/commands.h"
#include "tools/ignis/terminal.h"

#include <cstdio>
#include <regex>

namespace ignis::tools {
namespace {

Json info_json(const onnx::ModelInfo& info) {
  Json json{{"producer", info.producer},
            {"graph", info.graph_name},
            {"ir_version", info.ir_version},
            {"opset", info.opset},
            {"digest", info.digest},
            {"parameters", info.parameter_count},
            {"weight_bytes", info.weight_bytes},
            {"metadata", info.metadata}};
  for (const auto& [key, values] :
       {std::pair("inputs", &info.inputs), std::pair("outputs", &info.outputs)}) {
    json[key] = Json::array();
    for (const onnx::ValueInfo& value : *values) {
      Json dims = Json::array();
      for (const onnx::Dim& dim : value.dims) {
        if (dim.value >= 0) dims.push_back(dim.value);
        else dims.push_back(dim.symbol.empty() ? "?" : dim.symbol);
      }
      json[key].push_back(
          {{"name", value.name}, {"dtype", std::string(to_string(value.dtype))}, {"dims", dims}});
    }
  }
  return json;
}

void print_info(const std::string& path, const onnx::ModelInfo& info) {
  std::printf(
      "model      %s\nproducer   %s\ngraph      %s\nopset      %lld (IR version %lld)\ndigest     "
      "%s\nparameters %lld (%s)\n",
      path.c_str(), info.producer.c_str(), info.graph_name.c_str(),
      static_cast<long long>(info.opset), static_cast<long long>(info.ir_version),
      info.digest.c_str(), static_cast<long long>(info.parameter_count),
      format_bytes(static_cast<double>(info.weight_bytes)).c_str());
  for (const onnx::ValueInfo& value : info.inputs)
    std::printf("input      %s: %s\n", value.name.c_str(), value.to_string().c_str());
  for (const onnx::ValueInfo& value : info.outputs)
    std::printf("output     %s: %s\n", value.name.c_str(), value.to_string().c_str());
  for (const auto& [key, value] : info.metadata)
    std::printf("metadata   %s: %s\n", key.c_str(), value.substr(0, 200).c_str());
}

/// Operators by count; missing ones are said to be.
Json show_ops(const onnx::ModelInfo& info, bool prints) {
  Json json = Json::array();
  Table table({"operator", "count", "support"});
  int64_t count = 0, missing = 0;
  for (const onnx::OpCount& op : info.ops) {
    json.push_back({{"op", op.op}, {"count", op.count}, {"supported", op.supported}});
    table.add({op.op, std::to_string(op.count),
               op.supported ? "supported" : styled("missing", Style::Bad)});
    count += op.count;
    missing += op.supported ? 0 : op.count;
  }
  if (prints) {
    std::printf("\n%s%lld nodes, %zu kinds, %lld nodes of missing operators\n",
                table.to_string().c_str(), static_cast<long long>(count), info.ops.size(),
                static_cast<long long>(missing));
  }
  return json;
}

/// The model's constants by size, as the graph holds them.
Json show_weights(const onnx::Model& model, bool prints) {
  std::vector<ir::Node> roots;
  for (const tensor::Tensor& output : model.outputs) roots.push_back(output.node());
  std::vector<ir::Node> buffers;
  for (const ir::Node& node : ir::toposort(roots))
    if (node.is(ir::Op::Buffer)) buffers.push_back(node);
  const auto bytes_of = [](const ir::Node& n) {
    return element_count(n.shape()) * size_bytes(n.dtype());
  };
  std::stable_sort(buffers.begin(), buffers.end(),
                   [&](const ir::Node& a, const ir::Node& b) { return bytes_of(a) > bytes_of(b); });
  Table table({"constant", "dtype", "shape", "bytes"});
  Json json = Json::array();
  for (const ir::Node& node : buffers) {
    table.add({"%" + std::to_string(node.id()), std::string(to_string(node.dtype())),
               to_string(node.shape()), std::to_string(bytes_of(node))});
    json.push_back({{"id", node.id()},
                    {"dtype", std::string(to_string(node.dtype()))},
                    {"shape", node.shape()},
                    {"bytes", bytes_of(node)}});
  }
  if (prints) std::printf("\n%s", table.to_string().c_str());
  return json;
}

Json show_shapes(const onnx::Model& model, bool prints) {
  Json json = Json::array();
  Table table({"layer", "op", "output", "dtype", "shape"});
  for (const onnx::Layer& layer : model.layers) {
    json.push_back({{"layer", layer.name},
                    {"op", layer.op},
                    {"output", layer.output},
                    {"dtype", std::string(to_string(layer.value.dtype()))},
                    {"shape", layer.value.shape()}});
    table.add({layer.name, layer.op, layer.output, std::string(to_string(layer.value.dtype())),
               to_string(layer.value.shape())});
  }
  if (prints) std::printf("\n%s", table.to_string().c_str());
  return json;
}

std::string role_text(schedule::BufferRole role) {
  constexpr const char* kNames[] = {"input", "output", "constant", "temporary"};
  return kNames[static_cast<size_t>(role)];
}

std::string kernel_name(const schedule::Kernel& kernel, size_t index) {
  const std::string& text = kernel.sink.arg().text;
  return text.empty() ? "kernel_" + std::to_string(index) : text;
}

std::string layer_text(const schedule::Kernel& kernel, const onnx::Model& model) {
  std::string text;
  for (const onnx::Layer& layer : model.layers) {
    if (std::find(kernel.layers.begin(), kernel.layers.end(), layer.value) == kernel.layers.end())
      continue;
    text += (text.empty() ? "" : ", ") + (layer.name.empty() ? layer.output : layer.name);
  }
  return text;
}

Result<Json> show_kernels(const schedule::Schedule& schedule, const onnx::Model& model,
                          const codegen::Config& config, bool prints) {
  Json json = Json::array();
  Table table({"kernel", "when", "writes", "layout", "MFLOP", "actions", "layers"});
  for (size_t i = 0; i < schedule.kernels.size(); ++i) {
    const schedule::Kernel& kernel = schedule.kernels[i];
    auto lowered = codegen::lower(kernel.sink, config);
    if (!lowered)
      return std::move(lowered).error().with_context("kernel '" + kernel_name(kernel, i) + "'");
    std::string actions, shape, layout;
    Notes why = kernel.why;
    why.insert(why.end(), lowered->why.begin(), lowered->why.end());
    for (const std::string& action : lowered->actions)
      actions += (actions.empty() ? "" : "; ") + action;
    for (const int slot : kernel.written) {
      const schedule::Buffer& buffer =
          schedule.buffers[static_cast<size_t>(kernel.buffers[static_cast<size_t>(slot)])];
      shape += (shape.empty() ? "" : " ") + std::string(to_string(buffer.dtype)) +
               to_string(buffer.shape);
      layout = buffer.layout.is_planar(buffer.shape) ? "planar" : buffer.layout.to_string();
    }
    table.add({kernel_name(kernel, i), kernel.at_load ? "load" : "run", shape, layout,
               format_number(lowered->flops * 1e-6, 4), actions,
               layer_text(kernel, model).substr(0, 60)});
    json.push_back({{"kernel", kernel_name(kernel, i)},
                    {"at_load", kernel.at_load},
                    {"writes", shape},
                    {"layout", layout},
                    {"flops", lowered->flops},
                    {"parallel_units", lowered->parallel_units},
                    {"actions", lowered->actions},
                    {"why", why},
                    {"layers", layer_text(kernel, model)}});
  }
  if (prints)
    std::printf("\n%s%zu kernels, %zu packed constants\n", table.to_string().c_str(),
                schedule.kernels.size(), schedule.packs.size());
  return json;
}

Json show_memory_plan(const schedule::Schedule& schedule, bool prints) {
  Json json{{"arena_bytes", schedule.arena_bytes}, {"buffers", Json::array()}};
  Table table({"buffer", "role", "dtype", "shape", "layout", "bytes", "offset"});
  int64_t temporary_bytes = 0;
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    const schedule::Buffer& buffer = schedule.buffers[i];
    const std::string layout =
        buffer.layout.is_planar(buffer.shape) ? "planar" : buffer.layout.to_string();
    if (buffer.role == schedule::BufferRole::Temporary) temporary_bytes += buffer.size_bytes();
    table.add({buffer.name.empty() ? "#" + std::to_string(i) : buffer.name, role_text(buffer.role),
               std::string(to_string(buffer.dtype)), to_string(buffer.shape), layout,
               std::to_string(buffer.size_bytes()),
               buffer.arena_offset >= 0 ? std::to_string(buffer.arena_offset) : ""});
    json["buffers"].push_back({{"name", buffer.name},
                               {"role", role_text(buffer.role)},
                               {"dtype", std::string(to_string(buffer.dtype))},
                               {"shape", buffer.shape},
                               {"layout", layout},
                               {"bytes", buffer.size_bytes()},
                               {"arena_offset", buffer.arena_offset}});
  }
  if (prints) {
    std::printf("\n%sarena %s for %s of temporaries\n", table.to_string().c_str(),
                format_bytes(static_cast<double>(schedule.arena_bytes)).c_str(),
                format_bytes(static_cast<double>(temporary_bytes)).c_str());
  }
  return json;
}

/// One stage's text of one kernel.
Result<std::string> emit_kernel(const schedule::Kernel& kernel, const codegen::Config& config,
                                const std::string& stage) {
  if (stage == "kernels") return ir::print_text(kernel.sink);
  IGNIS_TRY_ASSIGN(const codegen::Lowered lowered,
                   codegen::lower(kernel.sink, config, stage == "passes"));
  if (stage == "passes") {
    std::string text;
    for (const codegen::PassRecord& pass : lowered.passes) {
      text += "-- " + pass.name + " (" + format_seconds(pass.seconds) + ")\n" + pass.text;
      if (!pass.text.empty() && pass.text.back() != '\n') text += '\n';
    }
    return text;
  }
  if (stage == "c") return codegen::render_c(lowered.program, config.target);
  if (stage == "asm") return codegen::assemble_llvm(lowered.program, config.target);
  IGNIS_TRY_ASSIGN(const ProgramImage image,
                   codegen::compile_llvm(lowered.program, config.target, /*keep_source=*/true));
  return image.source;
}

Result<Json> emit(const InspectOptions& options, const onnx::Model& model,
                  const schedule::Schedule& schedule, const codegen::Config& config, bool prints) {
  Json json = Json::array();
  if (options.emit == "graph") {
    std::vector<ir::Node> roots;
    for (const tensor::Tensor& output : model.outputs) roots.push_back(output.node());
    const std::string text = ir::print_text(roots);
    if (prints) std::fputs(text.c_str(), stdout);
    json.push_back({{"text", text}});
    return json;
  }
  std::regex pattern;
  try {
    pattern = std::regex(options.kernel);
  } catch (const std::regex_error&) {
    return usage_error("--kernel '" + options.kernel + "' is no regular expression.");
  }
  for (size_t i = 0; i < schedule.kernels.size(); ++i) {
    const std::string name = kernel_name(schedule.kernels[i], i);
    if (!options.kernel.empty() && !std::regex_search(name, pattern)) continue;
    auto text = emit_kernel(schedule.kernels[i], config, options.emit);
    if (!text) return std::move(text).error().with_context("kernel '" + name + "'");
    if (prints)
      std::printf("==== %s%s%s\n%s\n", name.c_str(),
                  schedule.kernels[i].at_load ? " (at load)" : "",
                  (" : " + layer_text(schedule.kernels[i], model)).c_str(), text->c_str());
    json.push_back({{"kernel", name}, {"text", *std::move(text)}});
  }
  if (json.empty()) return usage_error("--kernel '" + options.kernel + "' matches no kernel.");
  return json;
}

}  // namespace

Result<Exit> inspect_command(const Context& context, const InspectOptions& options) {
  if (exec::is_artifact(options.model.path)) return inspect_artifact(context, options);
  const bool prints = context.prints_text();
  IGNIS_TRY_ASSIGN(const ModelFile file, read_model(options.model.path, context));
  const onnx::ModelInfo& info = file.info;
  Json report{
      {"schema", "ignis.inspect/1"}, {"model", options.model.path}, {"info", info_json(info)}};
  if (prints && options.emit.empty()) print_info(options.model.path, info);
  if (options.shows_ops) report["ops"] = show_ops(info, prints);

  const bool needs_schedule =
      options.shows_kernels || options.shows_memory_plan || !options.emit.empty();
  if (needs_schedule || options.shows_shapes || options.shows_weights) {
    IGNIS_TRY_ASSIGN(const BoundModel bound, bind_model(options.model, context));
    IGNIS_TRY_ASSIGN(const onnx::Model model, import_bound(bound, context));
    if (options.shows_shapes) report["shapes"] = show_shapes(model, prints);
    if (options.shows_weights) report["weights"] = show_weights(model, prints);
    if (needs_schedule) {
      auto target = runtime::find_target(context.options().device);
      if (!target) return as_device(std::move(target).error());
      std::vector<ir::Node> inputs, outputs;
      for (const tensor::Tensor& t : model.inputs) inputs.push_back(t.node());
      for (const tensor::Tensor& t : model.outputs) outputs.push_back(t.node());
      codegen::Config config;
      config.target = *target;
      config.target.threads = runtime::usable_threads();
      config.float_level = bound.session.float_level;
      schedule::Options choices;
      choices.float_level = bound.session.float_level;
      choices.winograd = bound.session.winograd;
      choices.chain = bound.session.chain;
      IGNIS_TRY_ASSIGN(const schedule::Schedule schedule,
                       schedule::make_schedule(inputs, outputs, config.target, choices));
      if (options.shows_kernels) {
        IGNIS_TRY_ASSIGN(report["kernels"], show_kernels(schedule, model, config, prints));
      }
      if (options.shows_memory_plan) report["memory_plan"] = show_memory_plan(schedule, prints);
      if (!options.emit.empty()) {
        IGNIS_LOG(Info, "cache") << "--emit makes everything anew: it looks nothing up in the "
                                    "program cache and keeps nothing there.";
        IGNIS_TRY_ASSIGN(report["emit"], emit(options, model, schedule, config, prints));
      }
    }
  }
  IGNIS_TRY(context.write_json(report));
  return Exit::Ok;
}

}  // namespace ignis::tools
