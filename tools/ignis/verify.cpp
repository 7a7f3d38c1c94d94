// ignis verify: the compiled program's answers beside a reference's.
#include "tools/ignis/commands.h"
#include "tools/ignis/compare.h"
#include "tools/ignis/layers.h"
#include "tools/ignis/terminal.h"
#include "tools/io/files.h"
#include "tools/io/npy.h"
#include "tools/io/tensor_proto.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace ignis::tools {
namespace {

/// Reference values by output name; outputs that the reference does not hold are not compared.
using References = std::vector<NamedTensor>;

/// One set of inputs with its reference.
struct Case {
  std::string name;
  std::vector<InputSpec> specs;
  References references;
};

Result<References> read_reference_file(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return as_file(std::move(bytes).error());
  auto tensors = parse_npz(*bytes);
  if (!tensors) return as_file(std::move(tensors).error().with_context("file '" + path + "'"));
  return tensors;
}

/// Reads input_<i>.pb or output_<i>.pb of a data set, in the order of the model's values.
Result<References> read_data_set(const std::string& folder, const std::string& kind,
                                 const std::vector<onnx::ValueInfo>& values) {
  References tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string path = folder + "/" + kind + "_" + std::to_string(i) + ".pb";
    if (!std::filesystem::exists(path)) continue;
    auto bytes = read_file(path);
    if (!bytes) return as_file(std::move(bytes).error());
    auto tensor = parse_tensor_proto(*bytes);
    if (!tensor) return as_file(std::move(tensor).error().with_context("file '" + path + "'"));
    tensors.emplace_back(values[i].name, std::move(tensor->second));
  }
  return tensors;
}

/// The data sets of `folder`, which is one itself or holds test_data_set_<n>.
Result<std::vector<Case>> read_test_data(const std::string& folder, const onnx::ModelInfo& info) {
  std::vector<std::string> folders;
  std::error_code failed;
  if (std::filesystem::exists(folder + "/output_0.pb")) folders.push_back(folder);
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("test_data_set_") && entry.is_directory())
      folders.push_back(entry.path().string());
  }
  if (folders.empty()) {
    return as_file(
        Error(ErrorCode::NotFound,
              "Folder '" + folder + "' holds neither output_0.pb nor a test_data_set_0."));
  }
  std::sort(folders.begin(), folders.end());
  std::vector<Case> cases;
  for (const std::string& each : folders) {
    Case test_case;
    test_case.name = std::filesystem::path(each).filename().string();
    IGNIS_TRY_ASSIGN(References inputs, read_data_set(each, "input", info.inputs));
    for (auto& [name, tensor] : inputs) {
      InputSpec spec;
      spec.name = name;
      spec.kind = InputSpec::Kind::File;
      spec.tensor = std::move(tensor);
      test_case.specs.push_back(std::move(spec));
    }
    IGNIS_TRY_ASSIGN(test_case.references, read_data_set(each, "output", info.outputs));
    cases.push_back(std::move(test_case));
  }
  return cases;
}

/// The cases that an artifact carries; their tolerances go to `tolerances`.
Result<std::vector<Case>> read_golden(const std::string& path, const exec::Artifact& artifact,
                                      Tolerances& tolerances) {
  auto golden = artifact.golden();
  if (!golden) return as_model(std::move(golden).error().with_context(path));
  if (golden->empty()) {
    return usage_error("'" + path +
                       "' carries no golden data; give --ref FILE.npz, or compile the model with "
                       "--golden on.");
  }
  std::vector<Case> cases;
  for (exec::GoldenCase& one : *golden) {
    Case test_case;
    test_case.name = golden->size() == 1 ? "" : "golden " + std::to_string(cases.size());
    for (exec::GoldenTensor& input : one.inputs) {
      InputSpec spec;
      spec.name = input.name;
      spec.kind = InputSpec::Kind::File;
      spec.tensor = std::move(input.value);
      test_case.specs.push_back(std::move(spec));
    }
    for (exec::GoldenTensor& output : one.outputs) {
      tolerances.stored[output.name] = output.tolerance;
      test_case.references.emplace_back(output.name, std::move(output.value));
    }
    cases.push_back(std::move(test_case));
  }
  return cases;
}

struct Verdict {
  Table table{{"output", "dtype", "shape", "max abs", "max rel", "max ulp", "beyond", "worst at",
               "got", "want", "flags", "verdict"}};
  Json outputs = Json::array();
  bool passed = true;
  int64_t compared = 0;
};

Status compare_output(const PortInfo& port, const HostTensor& got, const HostTensor& want,
                      const Tolerances& tolerances, Verdict& verdict) {
  if (got.dtype != want.dtype || got.shape != want.shape) {
    return as_file(Error(ErrorCode::InvalidArgument,
                         "The reference of output '" + port.name + "' has " +
                             std::string(to_string(want.dtype)) + " " + to_string(want.shape) +
                             "; the model gives " + std::string(to_string(got.dtype)) + " " +
                             to_string(got.shape) + "."));
  }
  const Tolerance tolerance = tolerances.of(port.name, port.dtype);
  const Comparison c = compare(got, want, tolerance, tolerances.stat);
  const std::string flags = inspect_values(got).to_string();
  verdict.passed &= c.passed;
  ++verdict.compared;
  verdict.table.add(
      {port.name, std::string(to_string(port.dtype)), to_string(port.shape),
       format_number(c.max_abs, 3), format_number(c.max_rel, 3), format_number(c.max_ulp, 3),
       std::to_string(c.beyond), c.worst >= 0 ? index_text(c.worst, port.shape) : "",
       format_number(c.worst_got, 7), format_number(c.worst_want, 7), styled(flags, Style::Warning),
       c.passed ? styled("passed", Style::Good) : styled("DIFFERENT", Style::Bad)});
  verdict.outputs.push_back({{"output", port.name},
                             {"dtype", std::string(to_string(port.dtype))},
                             {"shape", port.shape},
                             {"max_abs", c.max_abs},
                             {"max_rel", c.max_rel},
                             {"max_ulp", c.max_ulp},
                             {"mean_abs", c.mean_abs},
                             {"cosine", c.cosine},
                             {"nmse", c.nmse},
                             {"stat", c.stat},
                             {"beyond", c.beyond},
                             {"count", c.count},
                             {"worst_index", c.worst},
                             {"worst_got", c.worst_got},
                             {"worst_want", c.worst_want},
                             {"atol", tolerance.atol},
                             {"rtol", tolerance.rtol},
                             {"ulp", tolerance.ulp},
                             {"flags", flags},
                             {"passed", c.passed}});
  return Status::ok();
}

/// Values of a session on another device, under the outputs' names.
Result<References> run_reference(const BoundModel& model, const std::string& device,
                                 const std::vector<HostTensor>& inputs) {
  SessionOptions options = model.session;
  options.device = device;
  options.taps.clear();
  IGNIS_TRY_ASSIGN(Session reference, load_session(model, options));
  IGNIS_TRY_ASSIGN(std::vector<HostTensor> values, reference.run(inputs));
  References references;
  for (size_t i = 0; i < values.size(); ++i)
    references.emplace_back(reference.outputs()[i].name, std::move(values[i]));
  return references;
}

/// Runs `count` more times, the inputs in other memory each time; every answer has to be the first one, bit by bit.
Result<int> soak(Session& session, const std::vector<HostTensor>& inputs,
                 const std::vector<HostTensor>& first, int count, Progress& progress) {
  int different = 0;
  std::vector<std::vector<HostTensor>> kept;  // keeps memory from being used again
  for (int i = 0; i < count; ++i) {
    progress.show("soak " + std::to_string(i + 1) + "/" + std::to_string(count));
    kept.push_back(inputs);
    if (kept.size() > 4) kept.erase(kept.begin());
    IGNIS_TRY_ASSIGN(const std::vector<HostTensor> values, session.run(kept.back()));
    for (size_t o = 0; o < values.size(); ++o) {
      if (values[o].bytes == first[o].bytes) continue;
      ++different;
      break;
    }
  }
  progress.clear();
  return different;
}

Status verify_case(const Context& context, const VerifyOptions& options, const BoundModel& model,
                   Session& session, const Tolerances& tolerances, const References& given,
                   Json& report, bool& passed) {
  Progress progress(context.shows_progress());
  const bool has_reference = !given.empty();
  IGNIS_TRY_ASSIGN(const std::vector<HostTensor> inputs,
                   make_inputs(model, session, has_reference ? Missing::IsError : Missing::IsRandom,
                               context.seed()));
  progress.show("run");
  IGNIS_TRY_ASSIGN(const std::vector<HostTensor> values, session.run(inputs));
  References references = given;
  if (!has_reference) {
    progress.show("reference " + options.ref_device);
    IGNIS_TRY_ASSIGN(references, run_reference(model, options.ref_device, inputs));
  }
  progress.clear();
  Verdict verdict;
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    for (const auto& [name, want] : references) {
      if (name == session.outputs()[i].name)
        IGNIS_TRY(compare_output(session.outputs()[i], values[i], want, tolerances, verdict));
    }
  }
  if (verdict.compared == 0)
    return as_file(Error(ErrorCode::InvalidArgument,
                         "The reference holds none of the model's outputs; nothing was compared."));
  if (context.prints_text()) std::fputs(verdict.table.to_string().c_str(), stdout);
  report["outputs"] = verdict.outputs;
  passed &= verdict.passed;
  if (options.soak > 0) {
    IGNIS_TRY_ASSIGN(const int different, soak(session, inputs, values, options.soak, progress));
    if (context.prints_text())
      std::printf("soak: %d of %d runs gave other bits than the first\n", different, options.soak);
    report["soak"] = {{"runs", options.soak}, {"different", different}};
    passed &= different == 0;
  }
  if (options.compares_layers) {
    IGNIS_TRY_ASSIGN(const LayerReport layers,
                     compare_layers(model, session, inputs, tolerances, context));
    if (context.prints_text()) print_layers(layers);
    report["layers"] = to_json(layers);
    passed &= layers.passed();
  }
  return Status::ok();
}

Result<Tolerances> parse_tolerances(const VerifyOptions& options, const onnx::ModelInfo& info) {
  Tolerances tolerances;
  IGNIS_TRY_ASSIGN(tolerances.rtol, NamedValues::parse(options.rtol, "--rtol"));
  IGNIS_TRY_ASSIGN(tolerances.atol, NamedValues::parse(options.atol, "--atol"));
  IGNIS_TRY_ASSIGN(tolerances.ulp, NamedValues::parse(options.ulp, "--ulp"));
  IGNIS_TRY_ASSIGN(tolerances.stat, parse_stat(options.stat));
  for (const NamedValues* values : {&tolerances.rtol, &tolerances.atol, &tolerances.ulp}) {
    for (const auto& [name, value] : values->by_name()) {
      const bool is_output = std::any_of(info.outputs.begin(), info.outputs.end(),
                                         [&](const onnx::ValueInfo& o) { return o.name == name; });
      // With --layers a tolerance may name any layer's output.
      if (!is_output && !options.compares_layers)
        return usage_error("The model has no output '" + name + "' to give a tolerance for.");
    }
  }
  return tolerances;
}

}  // namespace

Result<Exit> verify_command(const Context& context, const VerifyOptions& given) {
  VerifyOptions options = given;
  const int sources = (options.ref_file.empty() ? 0 : 1) + (options.ref_device.empty() ? 0 : 1) +
                      (options.test_data.empty() ? 0 : 1);
  if (sources > 1) return usage_error("Give one of --ref, --ref-device and --test-data.");
  IGNIS_TRY_ASSIGN(const ModelFile file, read_model(options.model.path, context));
  const onnx::ModelInfo& info = file.info;
  const bool is_golden = sources == 0 && file.artifact.has_value();
  if (file.artifact && (!options.ref_device.empty() || options.compares_layers)) {
    return usage_error("'" + options.model.path +
                       "' holds programs, not the graph that a reference runs; compare it with its "
                       "golden data, or with --ref FILE.npz.");
  }
  if (is_golden && !options.model.inputs.empty()) {
    return usage_error("The golden data brings its own inputs; give --ref FILE.npz with --input.");
  }
  if (sources == 0 && !is_golden) options.ref_device = "cpu:interp";
  IGNIS_TRY_ASSIGN(Tolerances tolerances, parse_tolerances(options, info));

  std::vector<Case> cases(1);
  if (!options.ref_file.empty()) {
    IGNIS_TRY_ASSIGN(cases[0].references, read_reference_file(options.ref_file));
    // The archive may hold the inputs too.
    if (options.model.inputs.empty()) options.model.inputs.push_back("@" + options.ref_file);
  } else if (!options.test_data.empty()) {
    IGNIS_TRY_ASSIGN(cases, read_test_data(options.test_data, info));
  } else if (is_golden) {
    IGNIS_TRY_ASSIGN(cases, read_golden(options.model.path, *file.artifact, tolerances));
  }
  Json report{{"schema", "ignis.verify/1"},
              {"model", options.model.path},
              {"device", context.options().device},
              {"reference", is_golden                     ? "golden"
                            : !options.ref_device.empty() ? options.ref_device
                            : !options.ref_file.empty()   ? options.ref_file
                                                          : options.test_data},
              {"seed", context.seed()},
              {"cases", Json::array()}};
  bool passed = true;
  for (Case& test_case : cases) {
    ModelOptions model_options = options.model;
    IGNIS_TRY_ASSIGN(BoundModel model,
                     bind_case(model_options, file, std::move(test_case.specs), context));
    Progress progress(context.shows_progress());
    model.session.progress = progress.callback();
    model.session.seeded_fault = options.fault;
    if (!model.artifact) model.session.program_cache = context.program_cache();
    IGNIS_TRY_ASSIGN(Session session, load_session(model, model.session));
    progress.clear();
    model.session.progress = {};
    if (context.prints_text() && !test_case.name.empty())
      std::printf("%s\n", test_case.name.c_str());
    Json case_report{{"name", test_case.name}};
    IGNIS_TRY(verify_case(context, options, model, session, tolerances, test_case.references,
                          case_report, passed));
    report["cases"].push_back(std::move(case_report));
  }
  report["passed"] = passed;
  if (context.prints_text()) {
    std::printf(
        "%s (seed %llu)\n",
        passed ? styled("passed", Style::Good).c_str() : styled("DIFFERENT", Style::Bad).c_str(),
        static_cast<unsigned long long>(context.seed()));
  }
  IGNIS_TRY(context.write_json(report));
  return passed ? Exit::Ok : Exit::Different;
}

}  // namespace ignis::tools
