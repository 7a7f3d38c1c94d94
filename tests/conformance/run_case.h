#pragma once

#include "tests/conformance/case_files.h"

#include <string>

namespace ignis::conformance {

enum class Verdict : uint8_t {
  Pass,
  PassWithConstants,  ///< after inputs that decide shapes were given as constants (see run_case)
  Refused,            ///< Unsupported at load
  Wrong,              ///< a value, shape or dtype differs
  Failed,             ///< another error: the model is valid, so this is a fault
  Crash,              ///< the process died or ran out of time
  NoModel,            ///< the case names an archive to download
};
std::string_view to_string(Verdict verdict);

struct Outcome {
  Verdict verdict = Verdict::Pass;
  std::string detail;
};

struct RunOptions {
  std::string device = "cpu:interp";
  /// When not empty: the model is compiled for `device` into an artifact, which this command runs (ArtifactRunner).
  std::string runner;
  /// |value - expected| <= atol + rtol * |expected| for floats; integers and bools are compared exactly. The defaults
  /// are those of the standard's own runner.
  double rtol = 1e-3, atol = 1e-7;
};

/// Imports the case's model with the shapes of its inputs, runs each data set and compares.
///
/// An import that fails with reason NeedsConstant names the inputs whose values decide a shape (Reshape's shape, a
/// Slice's ends, k of TopK); it is repeated with those inputs as constants, until it succeeds or names none that is new.
Outcome run_case(const Case& test_case, const RunOptions& options);

/// Empty when equal within the tolerance, else the worst difference.
std::string compare(const HostTensor& value, const HostTensor& expected, const RunOptions& options);

}  // namespace ignis::conformance
