#pragma once

#include "ignis/engine/session.h"
#include "ignis/exec/artifact_sections.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace ignis {

/// The inputs and answers that an artifact carries to be checked with wherever it is installed.
struct GoldenOptions {
  enum class Mode : uint8_t {
    Auto,  ///< left out when they take more than the limits below
    On,    ///< an error when they take more bytes than the limit
    Off,
  };
  Mode mode = Mode::Auto;
  /// Values of inputs by name; the rest is made up, always the same.
  std::map<std::string, HostTensor> inputs;
  /// Answers by name. Empty: the reference interpreter computes all of them from the model, by no code of the compiler.
  std::map<std::string, HostTensor> outputs;
  /// What each output is held to; empty: default_tolerance() of the narrowest float dtype in the model.
  std::function<Tolerance(const std::string& name, Tolerance otherwise)> tolerance;
  int64_t max_bytes = int64_t{16} << 20;  ///< of all tensors together
  double max_flops = 4e9;                 ///< of the model, when the reference has to compute it
};

namespace engine {

/// Makes the golden case of a model. `session` binds the model; its device is not used.
/// Errors: as onnx::import_model; InvalidArgument for a given value that is of no input or output (reason GoldenMisfit);
/// OutOfMemory for more than the limit (reason GoldenTooLarge).
Result<exec::GoldenCase> make_golden(const std::string& model_path, const SessionOptions& session,
                                     const GoldenOptions& options);

}  // namespace engine
}  // namespace ignis
