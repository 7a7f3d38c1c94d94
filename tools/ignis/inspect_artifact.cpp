// ignis inspect ARTIFACT: what a compiled model holds, without running any of it.
#include "ignis/base/hex.h"
#include "ignis/exec/artifact.h"
#include "ignis/runtime/device.h"

#include "tools/ignis/commands.h"
#include "tools/ignis/terminal.h"

#include <cstdio>

namespace ignis::tools {
namespace {

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

Json show_sections(const exec::Artifact& artifact, bool prints) {
  Json json = Json::array();
  Table table({"section", "offset", "bytes", ""});
  for (const exec::Artifact::SectionInfo& section : artifact.sections()) {
    json.push_back({{"kind", section.kind},
                    {"name", section.name},
                    {"offset", section.offset},
                    {"bytes", section.size_bytes},
                    {"mandatory", section.is_mandatory}});
    table.add({section.name, std::to_string(section.offset), std::to_string(section.size_bytes),
               section.is_mandatory ? "" : "optional"});
  }
  if (prints) std::printf("\n%s", table.to_string().c_str());
  return json;
}

/// What the file says of the model beside its programs.
Status show_facts(const exec::Artifact& artifact, bool prints, Json& report) {
  for (const exec::OutputSlice& s : artifact.slices()) {
    report["slices"].push_back({{"output", s.output},
                                {"name", s.name},
                                {"start", s.start},
                                {"stop", s.stop},
                                {"decode", std::string(exec::decode_name(s.decode))},
                                {"required", s.is_required}});
    if (prints)
      std::printf("slice      %s[%lld:%lld] %s, %s%s\n", s.output.c_str(),
                  static_cast<long long>(s.start), static_cast<long long>(s.stop), s.name.c_str(),
                  std::string(exec::decode_name(s.decode)).c_str(),
                  s.is_required ? "" : ", optional");
  }
  for (const exec::StatePair& pair : artifact.state_pairs()) {
    report["state_pairs"].push_back(
        {{"input", pair.input}, {"output", pair.output}, {"reset_value", pair.reset_value}});
    if (prints)
      std::printf("state      %s is the next %s; %g at reset\n", pair.output.c_str(),
                  pair.input.c_str(), pair.reset_value);
  }
  if (const auto& g = artifact.geometry()) {
    report["geometry"] = {
        {"profile", g->profile},   {"width_px", g->width_px},       {"height_px", g->height_px},
        {"focal_px", g->focal_px}, {"center_x_px", g->center_x_px}, {"center_y_px", g->center_y_px},
        {"warp", g->warp},         {"rounding", g->rounding},       {"planes", g->planes},
        {"fill", g->fill}};
    if (prints)
      std::printf(
          "geometry   %s: %dx%d px, focal length %g px, centre (%g, %g), %s of %s, %s, fill %g\n",
          g->profile.c_str(), g->width_px, g->height_px, g->focal_px, g->center_x_px,
          g->center_y_px, g->warp.c_str(), g->planes.c_str(), g->rounding.c_str(), g->fill);
  }
  for (const std::string& part : artifact.parts()) {
    report["parts"].push_back(part);
    if (prints) std::printf("part       %s\n", part.c_str());
  }
  if (const auto& tuning = artifact.tuning()) {
    report["tuning"] = {{"machine", tuning->machine}, {"version", tuning->version}};
    for (const auto& [what, choice] : tuning->choices)
      report["tuning"]["choices"].push_back({{"of", what}, {"choice", choice}});
    if (prints)
      std::printf("tuning     %zu choices, made on %s by version %s\n", tuning->choices.size(),
                  tuning->machine.c_str(), tuning->version.c_str());
  }
  auto golden = artifact.golden();
  if (!golden) return as_model(std::move(golden).error());
  for (const exec::GoldenCase& one : *golden) {
    Json row{{"source", one.source}, {"bytes", one.size_bytes()}};
    for (const exec::GoldenTensor& output : one.outputs)
      row["outputs"].push_back({{"name", output.name},
                                {"atol", output.tolerance.atol},
                                {"rtol", output.tolerance.rtol}});
    report["golden"].push_back(std::move(row));
    if (prints)
      std::printf("golden     %zu inputs, %zu outputs by %s, %s\n", one.inputs.size(),
                  one.outputs.size(), one.source.c_str(),
                  format_bytes(static_cast<double>(one.size_bytes())).c_str());
  }
  return Status::ok();
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
                artifact->is_signed() ? ", signed" : "", to_hex(artifact->identity()).c_str());
    for (const auto& [name, text] : artifact->manifest())
      std::printf("%-22s %s\n", name.c_str(), text.substr(0, 200).c_str());
  }
  Json report{{"schema", "ignis.inspect-artifact/1"},     {"artifact", options.model.path},
              {"identity", to_hex(artifact->identity())}, {"bytes", artifact->file_bytes()},
              {"weight_bytes", artifact->weight_bytes()}, {"signed", artifact->is_signed()},
              {"manifest", artifact->manifest()}};
  IGNIS_TRY(show_facts(*artifact, prints, report));
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
  report["sections"] = show_sections(*artifact, prints);
  IGNIS_TRY(context.write_json(report));
  return Exit::Ok;
}

}  // namespace ignis::tools
