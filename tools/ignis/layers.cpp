#include "tools/ignis/layers.h"

#include "ignis/interp/interp.h"

#include "tools/ignis/terminal.h"

#include <algorithm>
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

Result<LayerComparison> compare_value(const HostTensor& got, const HostTensor& want,
                                      const std::string& name, const Tolerances& tolerances) {
  if (got.dtype != want.dtype || got.shape != want.shape) {
    return Error(ErrorCode::Internal, "Value '" + name + "' is " +
                                          std::string(to_string(got.dtype)) + " " +
                                          to_string(got.shape) + " in the program and " +
                                          std::string(to_string(want.dtype)) + " " +
                                          to_string(want.shape) + " in the reference.");
  }
  LayerComparison result;
  result.dtype = got.dtype;
  result.shape = got.shape;
  result.comparison = compare(got, want, tolerances.of(name, got.dtype), tolerances.stat);
  result.flags = inspect_values(got).to_string();
  result.reference_flags = inspect_values(want).to_string();
  return result;
}

/// What each kernel wrote, in the order of the program.
Result<std::vector<LayerComparison>> compare_kernels(Session& session,
                                                     const std::vector<HostTensor>& inputs,
                                                     const Tolerances& tolerances,
                                                     Progress& progress) {
  std::vector<LayerComparison> kernels;
  IGNIS_TRY(session.compare_kernels(inputs, [&](const KernelComparison& kernel) -> Status {
    progress.show("kernel " + kernel.kernel);
    IGNIS_TRY_ASSIGN(LayerComparison result,
                     compare_value(kernel.got, kernel.want, kernel.layer, tolerances));
    result.layer = kernel.layer;
    result.op = kernel.kernel;
    result.call = kernel.call;
    result.stores = kernel.stores;
    kernels.push_back(std::move(result));
    return Status::ok();
  }));
  std::stable_sort(
      kernels.begin(), kernels.end(),
      [](const LayerComparison& a, const LayerComparison& b) { return a.call < b.call; });
  return kernels;
}

/// The kernels of a program without chains that `kernels` has not: those its chains are made of.
Result<std::vector<LayerComparison>> compare_apart(const BoundModel& bound,
                                                   const std::vector<LayerComparison>& kernels,
                                                   const std::vector<HostTensor>& inputs,
                                                   const Tolerances& tolerances,
                                                   Progress& progress) {
  std::set<std::string> compared;
  bool has_chains = false;
  for (const LayerComparison& kernel : kernels) {
    has_chains |= kernel.stores > 1;
    if (kernel.stores == 1) compared.insert(kernel.layer);
  }
  if (!has_chains) return std::vector<LayerComparison>();
  SessionOptions options = bound.session;
  options.progress = progress.callback();
  options.seeded_fault = -1;
  options.chain = Choice::Off;
  IGNIS_TRY_ASSIGN(Session session, load_session(bound, options));
  IGNIS_TRY_ASSIGN(std::vector<LayerComparison> apart,
                   compare_kernels(session, inputs, tolerances, progress));
  std::erase_if(apart, [&](const LayerComparison& each) { return compared.contains(each.layer); });
  return apart;
}

/// One group: a program with these layers as outputs, then the reference's values one by one.
Status compare_group(const BoundModel& bound, const std::vector<const onnx::Layer*>& group,
                     const std::vector<HostTensor>& inputs, const Tolerances& tolerances,
                     Progress& progress, LayerReport& report) {
  SessionOptions options = bound.session;
  options.progress = progress.callback();
  options.seeded_fault = -1;
  for (const onnx::Layer* layer : group) options.taps.push_back(layer->output);
  IGNIS_TRY_ASSIGN(Session session, load_session(bound, options));
  IGNIS_TRY_ASSIGN(std::vector<HostTensor> values, session.run(inputs));
  const size_t first_tap = values.size() - group.size();
  const size_t first_result = report.layers.size();
  report.layers.resize(first_result + group.size());
  std::vector<ir::Node> roots;
  for (const onnx::Layer* layer : group) roots.push_back(layer->value);
  size_t done = 0;
  return interp::evaluate_each(roots, inputs, [&](size_t i, const HostTensor& want) -> Status {
    progress.show("reference " + std::to_string(++done) + "/" + std::to_string(group.size()) + " " +
                  group[i]->name);
    HostTensor& got = values[first_tap + i];
    IGNIS_TRY_ASSIGN(LayerComparison result,
                     compare_value(got, want, group[i]->output, tolerances));
    result.layer = group[i]->name.empty() ? group[i]->output : group[i]->name;
    result.op = group[i]->op;
    result.output = group[i]->output;
    report.layers[first_result + i] = std::move(result);
    got = HostTensor{};  // its memory is not needed any more
    return Status::ok();
  });
}

int first_beyond(const std::vector<LayerComparison>& values) {
  for (size_t i = 0; i < values.size(); ++i)
    if (!values[i].comparison.passed) return static_cast<int>(i);
  return -1;
}

void print_table(const std::vector<LayerComparison>& values, const std::string& name,
                 const std::string& op) {
  Table table({name, op, "dtype", "shape", "max abs", "max rel", "beyond", "worst at", "got",
               "want", "flags", "verdict"});
  for (const LayerComparison& each : values) {
    const Comparison& c = each.comparison;
    table.add({each.layer.substr(0, 60), each.op, std::string(to_string(each.dtype)),
               to_string(each.shape), format_number(c.max_abs, 3), format_number(c.max_rel, 3),
               std::to_string(c.beyond), c.worst >= 0 ? index_text(c.worst, each.shape) : "",
               format_number(c.worst_got, 7), format_number(c.worst_want, 7),
               styled(each.flags, Style::Warning),
               c.passed ? styled("passed", Style::Good) : styled("DIFFERENT", Style::Bad)});
  }
  std::printf("\n%s", table.to_string().c_str());
}

Json values_json(const std::vector<LayerComparison>& values) {
  Json json = Json::array();
  for (const LayerComparison& each : values) {
    const Comparison& c = each.comparison;
    Json value{{"layer", each.layer}, {each.call < 0 ? "op" : "kernel", each.op}};
    if (each.call >= 0) value["call"] = each.call;
    if (each.stores > 1) value["stores"] = each.stores;
    else value["output"] = each.output;
    value.update({{"dtype", std::string(to_string(each.dtype))},
                  {"shape", each.shape},
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
    json.push_back(std::move(value));
  }
  return json;
}

}  // namespace

Tolerance Tolerances::of(const std::string& name, DType dtype) const {
  const auto known = stored.find(name);
  Tolerance t = known != stored.end() ? known->second : default_tolerance(dtype);
  t.rtol = rtol.value(name, t.rtol);
  t.atol = atol.value(name, t.atol);
  t.ulp = ulp.value(name, t.ulp);
  return t;
}

Result<LayerReport> compare_layers(const BoundModel& model, Session& session,
                                   const std::vector<HostTensor>& inputs,
                                   const Tolerances& tolerances, const Context& context) {
  Progress progress(context.shows_progress());
  LayerReport report;
  IGNIS_TRY_ASSIGN(report.kernels, compare_kernels(session, inputs, tolerances, progress));
  IGNIS_TRY_ASSIGN(report.apart,
                   compare_apart(model, report.kernels, inputs, tolerances, progress));
  IGNIS_TRY_ASSIGN(const onnx::Model imported, import_bound(model, context));
  for (const auto& group : group_layers(imported))
    IGNIS_TRY(compare_group(model, group, inputs, tolerances, progress, report));
  report.first_kernel_beyond = first_beyond(report.kernels);
  report.first_apart_beyond = first_beyond(report.apart);
  report.first_layer_beyond = first_beyond(report.layers);
  return report;
}

void print_layers(const LayerReport& report) {
  if (!report.kernels.empty()) print_table(report.kernels, "layers of the kernel", "kernel");
  if (!report.apart.empty()) {
    print_table(report.apart, "layers in a chain, run apart", "kernel");
    std::printf(
        "a chain is compared by what it writes last; above, its kernels in a program without "
        "chains, "
        "of the same bits\n");
  }
  print_table(report.layers, "layer", "op");
  if (report.passed()) {
    std::printf("all %zu kernels and %zu layers are within tolerance\n", report.kernels.size(),
                report.layers.size());
  }
  if (report.first_kernel_beyond >= 0) {
    const LayerComparison& first = report.kernels[static_cast<size_t>(report.first_kernel_beyond)];
    std::printf("%s '%s', which computes %s\n",
                styled("first kernel beyond tolerance:", Style::Bad).c_str(), first.op.c_str(),
                first.layer.c_str());
  }
  if (report.first_apart_beyond >= 0) {
    const LayerComparison& first = report.apart[static_cast<size_t>(report.first_apart_beyond)];
    std::printf("%s '%s', which computes %s\n",
                styled("first kernel of a chain beyond tolerance:", Style::Bad).c_str(),
                first.op.c_str(), first.layer.c_str());
  }
  if (report.first_layer_beyond >= 0) {
    const LayerComparison& first = report.layers[static_cast<size_t>(report.first_layer_beyond)];
    std::printf("%s '%s' (%s), output '%s'\n",
                styled("first layer beyond tolerance:", Style::Bad).c_str(), first.layer.c_str(),
                first.op.c_str(), first.output.c_str());
  }
}

Json to_json(const LayerReport& report) {
  Json json{{"kernels", values_json(report.kernels)}, {"apart", values_json(report.apart)},
            {"layers", values_json(report.layers)},   {"first_kernel_beyond", nullptr},
            {"first_apart_beyond", nullptr},          {"first_layer_beyond", nullptr}};
  if (report.first_kernel_beyond >= 0) {
    const LayerComparison& first = report.kernels[static_cast<size_t>(report.first_kernel_beyond)];
    json["first_kernel_beyond"] = {{"kernel", first.op}, {"layer", first.layer}};
  }
  if (report.first_apart_beyond >= 0) {
    const LayerComparison& first = report.apart[static_cast<size_t>(report.first_apart_beyond)];
    json["first_apart_beyond"] = {{"kernel", first.op}, {"layer", first.layer}};
  }
  if (report.first_layer_beyond >= 0) {
    const LayerComparison& first = report.layers[static_cast<size_t>(report.first_layer_beyond)];
    json["first_layer_beyond"] = {
        {"layer", first.layer}, {"op", first.op}, {"output", first.output}};
  }
  return json;
}

}  // namespace ignis::tools
