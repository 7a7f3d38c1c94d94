#pragma once

#include "ignis/exec/artifact_sections.h"
#include "ignis/exec/model.h"

#include <chrono>
#include <vector>

namespace ignis::exec {

/// One output of a golden case beside what a run gave.
struct GoldenOutcome {
  std::string output;
  HostTensor got, want;
  Tolerance tolerance;
  Comparison comparison;
};

/// Runs the golden case once and compares each of its outputs.
/// Errors: InvalidArgument with the reason GoldenMisfit when the case's tensors are not the program's inputs and outputs;
/// as Model::run().
Result<std::vector<GoldenOutcome>> check_golden(Model& program, const GoldenCase& golden,
                                                std::chrono::nanoseconds timeout);
/// Every output is within its tolerance.
bool has_passed(const std::vector<GoldenOutcome>& outcomes);

}  // namespace ignis::exec
