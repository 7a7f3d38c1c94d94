// ignis inspect ARTIFACT: what a compiled model holds, without running any of it.
#include "ignis/exec/artifact.h"
#include "ignis/runtime/device.h"

#include "tools/ignis/commands.h"
#include "tools/ignis/terminal.h"

#include <cstdio>

namespace ignis::tools {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  static const char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

Json show_calls(const exec::Plan& plan, bool prints) {
  Json json = Json::array();
  Table table({"call", "program", "MFLOP", "bytes", "parts", "layers"});
  for (size_t i = 0; i < plan.calls.size(); ++i) {
    const exec::Call& call = plan.calls[i];
    json.push_back({{"name", call.name},
                    {"layer", call.layer},
                    {"flops", call.flops},
                    {"bytes", call.bytes},
                    {"max_parts", call.max_parts}});
    table.add({std::to_string(i), call.name, format_number(call.flops / 1e6, 4),
               format_bytes(call.bytes), std::to_string(call.max_parts), call.layer});
  }
  if (prints) std::printf("\n%s", table.to_string().c_str());
  return json;
}

}  // namespace

Result<Exit> inspect_artifact(const Context& context, const InspectOptions& options) {
  if (options.shows_ops || options.shows_shapes || options.shows_weights || !options.emit.empty()) {
    return usage_error(
        "'" + options.model.path +
        "' is a compiled model: it has --kernels and --memory-plan; the rest belongs "
        "to the ONNX file it was made from.");
  }
  const bool prints = context.prints_text();
  const auto artifact = exec::Artifact::open(options.model.path);
  if (!artifact) return as_model(Error(artifact.error()));
  if (prints) {
    std::printf("artifact   %s (%s%s)\nidentity   %s\n", options.model.path.c_str(),
                format_bytes(static_cast<double>(artifact->file_bytes())).c_str(),
                artifact->is_signed() ? ", signed" : "", hex(artifact->identity()).c_str());
    for (const auto& [name, text] : artifact->manifest())
      std::printf("%-22s %s\n", name.c_str(), text.substr(0, 200).c_str());
  }
  Json report{{"schema", "ignis.inspect-artifact/1"},     {"artifact", options.model.path},
              {"identity", hex(artifact->identity())},    {"bytes", artifact->file_bytes()},
              {"weight_bytes", artifact->weight_bytes()}, {"signed", artifact->is_signed()},
              {"manifest", artifact->manifest()}};
  for (const exec::TargetNeeds& needs : artifact->targets()) {
    Target target = make_target(needs.isa);
    target.arch = needs.arch;
    const auto plan = artifact->plan_for(target);
    if (!plan) return as_model(Error(plan.error()));
    int64_t code_bytes = 0;
    for (const ProgramImage& program : plan->programs)
      code_bytes += static_cast<int64_t>(program.object.size());
    Json row{{"target", needs.name()},
             {"calls", plan->calls.size()},
             {"programs", plan->programs.size()},
             {"code_bytes", code_bytes},
             {"arena_bytes", plan->arena_bytes}};
    if (prints) {
      std::printf("target     %s: %zu calls, %zu programs (%s), %s at run\n", needs.name().c_str(),
                  plan->calls.size(), plan->programs.size(),
                  format_bytes(static_cast<double>(code_bytes)).c_str(),
                  format_bytes(static_cast<double>(plan->arena_bytes)).c_str());
    }
    for (const auto& [key, ports] :
         {std::pair("input", &plan->inputs), std::pair("output", &plan->outputs)}) {
      for (const exec::Port& port : *ports) {
        row[std::string(key) + "s"].push_back(to_json(PortInfo{port.name, port.dtype, port.shape}));
        if (prints)
          std::printf("  %-8s %s: %s %s\n", key, port.name.c_str(),
                      std::string(to_string(port.dtype)).c_str(), to_string(port.shape).c_str());
      }
    }
    if (options.shows_kernels) row["kernels"] = show_calls(*plan, prints);
    if (options.shows_memory_plan) {
      for (const exec::BufferPlan& buffer : plan->buffers) {
        if (buffer.role != exec::BufferRole::Arena) continue;
        row["memory_plan"].push_back(
            {{"name", buffer.name}, {"offset", buffer.arena_offset}, {"bytes", buffer.size_bytes}});
        if (prints)
          std::printf("  %12lld %12lld %s\n", static_cast<long long>(buffer.arena_offset),
                      static_cast<long long>(buffer.size_bytes), buffer.name.c_str());
      }
    }
    report["targets"].push_back(std::move(row));
  }
  IGNIS_TRY(context.write_json(report));
  return Exit::Ok;
}

}  // namespace ignis::tools
