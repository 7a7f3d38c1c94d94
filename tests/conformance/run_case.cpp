#include "tests/conformance/run_case.h"

#include "ignis/interp/interp.h"
#include "ignis/onnx/import.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#ifdef IGNIS_HAS_ENGINE
#include "ignis/engine/session.h"

#include "tests/support/artifact_runner.h"
#endif

namespace ignis::conformance {
namespace {

using Constants = std::map<std::string, HostTensor>;

// Inputs that `message` names as the ones whose value must be known.
std::vector<std::string> named_inputs(const std::string& message, const onnx::ModelInfo& info) {
  std::vector<std::string> names;
  const size_t at = message.find("model input");
  if (at == std::string::npos) return names;
  for (const onnx::ValueInfo& input : info.inputs) {
    if (message.find("'" + input.name + "'", at) != std::string::npos) names.push_back(input.name);
  }
  return names;
}

// What one attempt gives: the outputs, or the error.
using Attempt = Result<std::vector<HostTensor>>;

Result<HostTensor> fold(const ir::Node& node) {
  const ir::Node roots[] = {node};
  IGNIS_TRY_ASSIGN(std::vector<HostTensor> values, interp::evaluate(roots, {}));
  return std::move(values[0]);
}

Attempt run_on_interp(const Case& test_case, const onnx::ImportOptions& options,
                      const std::map<std::string, HostTensor>& values) {
  IGNIS_TRY_ASSIGN(const onnx::Model model,
                   onnx::import_model(test_case.folder + "/model.onnx", options));
  std::vector<HostTensor> inputs;
  for (const std::string& name : model.input_names) {
    const auto found = values.find(name);
    if (found == values.end()) {
      return Error(ErrorCode::Internal, "The data set has no input '" + name + "'.");
    }
    inputs.push_back(found->second);
  }
  std::vector<ir::Node> roots;
  for (const tensor::Tensor& output : model.outputs) roots.push_back(output.node());
  return interp::evaluate(roots, inputs);
}

#ifdef IGNIS_HAS_ENGINE
Attempt in_order(const std::vector<PortInfo>& ports,
                 const std::map<std::string, HostTensor>& values) {
  std::vector<HostTensor> inputs;
  for (const PortInfo& port : ports) {
    const auto found = values.find(port.name);
    if (found == values.end()) {
      return Error(ErrorCode::Internal, "The data set has no input '" + port.name + "'.");
    }
    inputs.push_back(found->second);
  }
  return inputs;
}

// One process runs the artifacts of all cases that this one runs.
Attempt run_artifact(const std::string& model, const RunOptions& run, const SessionOptions& session,
                     const std::map<std::string, HostTensor>& values) {
  static std::unique_ptr<test::ArtifactRunner> runner;
  if (runner == nullptr) {
    IGNIS_TRY_ASSIGN(runner, test::ArtifactRunner::start(run.runner));
  }
  CompileOptions options;
  options.session = session;
  options.targets = {run.device};
  IGNIS_TRY_ASSIGN(const CompiledArtifact artifact, compile_artifact(model, options));
  IGNIS_TRY_ASSIGN(const std::vector<HostTensor> inputs, in_order(artifact.inputs, values));
  return runner->run(artifact, inputs);
}
#endif

Attempt run_on_device(const Case& test_case, [[maybe_unused]] const RunOptions& run,
                      [[maybe_unused]] const onnx::ImportOptions& options,
                      [[maybe_unused]] const std::map<std::string, HostTensor>& values) {
#ifdef IGNIS_HAS_ENGINE
  const std::string model = test_case.folder + "/model.onnx";
  SessionOptions session_options;
  session_options.shapes = options.shapes;
  session_options.constants = options.constants;
  if (!run.runner.empty()) return run_artifact(model, run, session_options, values);
  session_options.device = run.device;
  IGNIS_TRY_ASSIGN(Session session, Session::load(model, session_options));
  IGNIS_TRY_ASSIGN(const std::vector<HostTensor> inputs, in_order(session.inputs(), values));
  return session.run(inputs);
#else
  return Error(ErrorCode::NotFound, "Built without the engine; case " + test_case.name + ".");
#endif
}

std::string join(const Constants& constants) {
  std::string text;
  for (const auto& [name, value] : constants) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The data of old cases as the model declares it: bfloat16 was written as its bits in uint16, and the one element of a
// CastLike's `like` stands for a declared shape.
HostTensor as_declared(const HostTensor& data, const onnx::ValueInfo& declared) {
  HostTensor value = data;
  if (declared.dtype == DType::BFloat16 && value.dtype == DType::UInt16) {
    value.dtype = DType::BFloat16;
  }
  if (value.count() != 1 || !declared.has_shape) return value;
  Shape shape;
  for (const onnx::Dim& dim : declared.dims) shape.push_back(dim.value);
  const bool is_open = std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d < 0; });
  if (is_open || value.shape == shape) return value;
  HostTensor full = HostTensor::zeros(value.dtype, shape);
  for (size_t at = 0; at < full.bytes.size(); at += value.bytes.size()) {
    std::copy(value.bytes.begin(), value.bytes.end(),
              full.bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return full;
}

Outcome run_set(const Case& test_case, const DataSet& set, const onnx::ModelInfo& info,
                const RunOptions& options) {
  std::map<std::string, HostTensor> values;
  onnx::ImportOptions import_options;
  import_options.evaluate = fold;
  for (size_t i = 0; i < set.inputs.size() && i < info.inputs.size(); ++i) {
    if (!set.inputs[i]) continue;
    const HostTensor value = as_declared(*set.inputs[i], info.inputs[i]);
    import_options.shapes[info.inputs[i].name] = value.shape;
    values[info.inputs[i].name] = value;
  }
  const auto attempt = [&] {
    return options.device == "cpu:interp"
               ? run_on_interp(test_case, import_options, values)
               : run_on_device(test_case, options, import_options, values);
  };
  const auto needs_constant = [](const Error& error) {
    return error.reason() == "NeedsConstant" || error.reason() == "DataDependent";
  };
  Attempt result = attempt();
  while (!result && needs_constant(result.error())) {
    bool is_new = false;
    for (const std::string& name : named_inputs(result.error().message(), info)) {
      const auto found = values.find(name);
      if (found == values.end()) continue;
      is_new = import_options.constants.emplace(name, found->second).second || is_new;
    }
    if (!is_new) break;
    result = attempt();
  }
  if (!result) {
    const bool is_refusal = result.error().code() == ErrorCode::Unsupported;
    return {is_refusal ? Verdict::Refused : Verdict::Failed, result.error().to_string()};
  }
  if (result->size() != set.outputs.size()) {
    return {Verdict::Wrong, std::to_string(result->size()) + " outputs instead of " +
                                std::to_string(set.outputs.size())};
  }
  for (size_t i = 0; i < set.outputs.size(); ++i) {
    if (!set.outputs[i]) return {Verdict::Failed, "An expected output is no tensor."};
    HostTensor expected = *set.outputs[i];
    if ((*result)[i].dtype == DType::BFloat16 && expected.dtype == DType::UInt16) {
      expected.dtype = DType::BFloat16;  // old cases: its bits in uint16
    }
    const std::string difference = compare((*result)[i], expected, options);
    if (!difference.empty()) {
      return {Verdict::Wrong, "output " + std::to_string(i) + ": " + difference};
    }
  }
  if (import_options.constants.empty()) return {Verdict::Pass, ""};
  return {Verdict::PassWithConstants, join(import_options.constants)};
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Pass: return "pass";
    case Verdict::PassWithConstants: return "pass with constants";
    case Verdict::Refused: return "refused";
    case Verdict::Wrong: return "WRONG";
    case Verdict::Failed: return "FAILED";
    case Verdict::Crash: return "CRASH";
    case Verdict::NoModel: return "no model file";
  }
  return "";
}

std::string compare(const HostTensor& value, const HostTensor& expected,
                    const RunOptions& options) {
  std::ostringstream text;
  if (value.dtype != expected.dtype || value.shape != expected.shape) {
    text << ignis::to_string(value.dtype) << " " << ignis::to_string(value.shape) << " instead of "
         << ignis::to_string(expected.dtype) << " " << ignis::to_string(expected.shape);
    return text.str();
  }
  int64_t worst = -1, bad = 0;
  double worst_excess = 0;
  for (int64_t i = 0; i < value.count(); ++i) {
    double excess = 0;
    if (is_float(value.dtype)) {
      const double v = element_as_double(value, i), e = element_as_double(expected, i);
      if (v == e || (std::isnan(v) && std::isnan(e))) continue;
      excess = std::abs(v - e) - (options.atol + options.rtol * std::abs(e));
      if (std::isnan(excess) || std::isinf(e)) excess = INFINITY;
    } else {
      excess = element_as_int(value, i) == element_as_int(expected, i) ? 0 : 1;
    }
    if (excess <= 0) continue;
    ++bad;
    if (worst < 0 || excess > worst_excess) {
      worst = i;
      worst_excess = excess;
    }
  }
  if (bad == 0) return "";
  text << bad << " of " << value.count() << " differ; at " << worst << " "
       << element_as_double(value, worst) << " instead of " << element_as_double(expected, worst);
  return text.str();
}

Outcome run_case(const Case& test_case, const RunOptions& options) {
  if (!test_case.has_model) return {Verdict::NoModel, ""};
  const Result<std::vector<DataSet>> sets = read_data_sets(test_case);
  if (!sets) return {Verdict::Failed, sets.error().to_string()};
  const Result<onnx::ModelInfo> info = onnx::read_info(test_case.folder + "/model.onnx");
  if (!info) return {Verdict::Failed, info.error().to_string()};
  if (sets->empty()) return {Verdict::Failed, "The case has no data set."};
  Outcome outcome;
  for (const DataSet& set : *sets) {
    const Outcome one = run_set(test_case, set, *info, options);
    if (one.verdict > outcome.verdict || outcome.detail.empty()) outcome = one;
    if (outcome.verdict > Verdict::PassWithConstants) break;
  }
  return outcome;
}

}  // namespace ignis::conformance
