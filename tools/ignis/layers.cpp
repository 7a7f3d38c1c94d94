#include "tools/ignis/layers.h"

#include "ignis/interp/interp.h"

#include "tools/ignis/terminal.h"

#include <cstdio>
#include <set>

namespace ignis::tools {
namespace {

constexpr int64_t kMaxTapBytes = int64_t{512} << 20;  // of one tapped program's extra outputs

int64_t bytes_of(const onnx::Layer& layer) {
  return element_count(layer.value.shape()) * size_bytes(strong(layer.value.dtype()));
}

/// Layers with a value of their own, in groups whose values fit in memory together.
std::vector<std::vector<const onnx::Layer*>> group_layers(const onnx::Model& model) {
  std::vector<std::vector<const onnx::Layer*>> groups;
  std::set<std::string> seen;
  int64_t bytes = kMaxTapBytes;
  for (const onnx::Layer& layer : model.layers) {
    if (layer.output.empty() || !layer.value || !seen.insert(layer.output).second) continue;
    bytes += bytes_of(layer);
    if (bytes > kMaxTapBytes) {
      groups.emplace_back();
      bytes = bytes_of(layer);
    }
    groups.back().push_back(&layer);
  }
  return groups;
}

/// One group: a program with these layers as outputs, then the reference's values one by one.
Status compare_group(const BoundModel& bound, const std::vector<const onnx::Layer*>& group,
                     const std::vector<HostTensor>& inputs, const Tolerances& tolerances,
                     Progress& progress, LayerReport& report) {
  SessionOptions options = bound.session;
  options.progress = progress.callback();
  for (const onnx::Layer* layer : group) options.taps.push_back(layer->output);
  IGNIS_TRY_ASSIGN(Session session, load_session(bound, options));
  IGNIS_TRY_ASSIGN(std::vector<HostTensor> values, session.run(inputs));
  const size_t first_tap = values.size() - group.size();
  const size_t first_result = report.layers.size();
  report.layers.resize(first_result + group.size());
  std::vector<ir::Node> roots;
  for (const onnx::Layer* layer : group) roots.push_back(layer->value);
  size_t done = 0;
  return interp::evaluate_each(roots, inputs, [&](size_t i, HostTensor want) -> Status {
    progress.show("reference " + std::to_string(++done) + "/" + std::to_string(group.size()) + " " +
                  group[i]->name);
    HostTensor& got = values[first_tap + i];
    LayerComparison& result = report.layers[first_result + i];
    result.layer = group[i]->name;
    result.op = group[i]->op;
    result.output = group[i]->output;
    result.port = session.outputs()[first_tap + i];
    if (got.dtype != want.dtype || got.shape != want.shape) {
      return Error(ErrorCode::Internal, "Layer '" + result.output + "' is " +
                                            std::string(to_string(got.dtype)) + " " +
                                            to_string(got.shape) + " in the program and " +
                                            std::string(to_string(want.dtype)) + " " +
                                            to_string(want.shape) + " in the reference.");
    }
    result.tolerance = tolerances.of(result.output, want.dtype);
    result.comparison = compare(got, want, result.tolerance, tolerances.stat);
    result.flags = inspect_values(got).to_string();
    result.reference_flags = inspect_values(want).to_string();
    got = HostTensor{};  // its memory is not needed any more
    return Status::ok();
  });
}

}  // namespace

Tolerance Tolerances::of(const std::string& name, DType dtype) const {
  Tolerance t = default_tolerance(dtype);
  t.rtol = rtol.value(name, t.rtol);
  t.atol = atol.value(name, t.atol);
  t.ulp = ulp.value(name, t.ulp);
  return t;
}

Result<LayerReport> compare_layers(const BoundModel& model, const std::vector<HostTensor>& inputs,
                                   const Tolerances& tolerances, const Context& context) {
  Progress progress(context.shows_progress());
  IGNIS_TRY_ASSIGN(const onnx::Model imported, import_bound(model, context));
  LayerReport report;
  for (const auto& group : group_layers(imported))
    IGNIS_TRY(compare_group(model, group, inputs, tolerances, progress, report));
  for (size_t i = 0; i < report.layers.size() && report.first_beyond < 0; ++i) {
    if (!report.layers[i].comparison.passed) report.first_beyond = static_cast<int>(i);
  }
  return report;
}

void print_layers(const LayerReport& report) {
  Table table({"layer", "op", "dtype", "shape", "max abs", "max rel", "beyond", "worst at", "got",
               "want", "flags", "verdict"});
  for (const LayerComparison& each : report.layers) {
    const Comparison& c = each.comparison;
    table.add({each.layer.empty() ? each.output : each.layer, each.op,
               std::string(to_string(each.port.dtype)), to_string(each.port.shape),
               format_number(c.max_abs, 3), format_number(c.max_rel, 3), std::to_string(c.beyond),
               c.worst >= 0 ? index_text(c.worst, each.port.shape) : "",
               format_number(c.worst_got, 7), format_number(c.worst_want, 7),
               styled(each.flags, Style::Warning),
               c.passed ? styled("passed", Style::Good) : styled("DIFFERENT", Style::Bad)});
  }
  std::printf("\n%s", table.to_string().c_str());
  if (report.first_beyond < 0) {
    std::printf("all %zu layers are within tolerance\n", report.layers.size());
    return;
  }
  const LayerComparison& first = report.layers[static_cast<size_t>(report.first_beyond)];
  std::printf("%s '%s' (%s), output '%s'\n",
              styled("first layer beyond tolerance:", Style::Bad).c_str(), first.layer.c_str(),
              first.op.c_str(), first.output.c_str());
}

Json to_json(const LayerReport& report) {
  Json layers = Json::array();
  for (const LayerComparison& each : report.layers) {
    const Comparison& c = each.comparison;
    layers.push_back({{"layer", each.layer},
                      {"op", each.op},
                      {"output", each.output},
                      {"dtype", std::string(to_string(each.port.dtype))},
                      {"shape", each.port.shape},
                      {"max_abs", c.max_abs},
                      {"max_rel", c.max_rel},
                      {"max_ulp", c.max_ulp},
                      {"mean_abs", c.mean_abs},
                      {"beyond", c.beyond},
                      {"count", c.count},
                      {"worst_index", c.worst},
                      {"worst_got", c.worst_got},
                      {"worst_want", c.worst_want},
                      {"flags", each.flags},
                      {"reference_flags", each.reference_flags},
                      {"passed", c.passed}});
  }
  Json json{{"layers", std::move(layers)}, {"first_beyond", nullptr}};
  if (report.first_beyond >= 0) {
    const LayerComparison& first = report.layers[static_cast<size_t>(report.first_beyond)];
    json["first_beyond"] = {{"layer", first.layer}, {"op", first.op}, {"output", first.output}};
  }
  return json;
}

}  // namespace ignis::tools
