#pragma once

#include "ignis/engine/session.h"

#include "tools/ignis/common.h"
#include "tools/ignis/roofline.h"

#include <string>
#include <vector>

namespace ignis::tools {

/// Memory of the inputs and outputs of a session, in the form run_raw takes.
struct Bound {
  std::vector<HostTensor> inputs, outputs;
  std::vector<const void*> input_pointers;
  std::vector<void*> output_pointers;

  Bound(const Session& session, std::vector<HostTensor> values);
  Status run(Session& session) {
    return session.run_raw(input_pointers.data(), output_pointers.data());
  }
};

/// A profiled run: every call, and what was before the first and after the last.
struct ProfiledRun {
  std::vector<CallInfo> calls;
  RunStages stages;
};
using ProfiledRuns = std::vector<ProfiledRun>;
Result<ProfiledRuns> profile_runs(Session& session, Bound& bound, int runs);
/// The calls of one run, each with the median of its times.
std::vector<CallInfo> median_calls(const ProfiledRuns& runs);
/// Each stage with the median of its times.
RunStages median_stages(const ProfiledRuns& runs);

Json to_json(const RunStages& stages);

/// One row of a profile: calls that belong together.
struct ProfileRow {
  std::string name;
  std::string layer;  ///< of a single call
  int calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
  double least_s = 0;    ///< what the machine would need at its best; 0: not measured
  std::string bound;     ///< "fma" or the level of memory that bounds the slowest of its calls
  std::string schedule;  ///< of a single call or kernel
  Notes why;             ///< likewise: what was compared to choose it
};
/// Op: the operators that a kernel's name begins with, in the model's words ("conv_relu"). Layer: calls that compute the
/// same layers.
enum class ProfileBy : uint8_t { Call, Kernel, Op, Layer };
/// The rows, the slowest first; equal ones in order of first appearance. `roofline` (may be null) gives what bounds them.
std::vector<ProfileRow> sum_by(const std::vector<CallInfo>& calls, ProfileBy by,
                               const Roofline* roofline = nullptr);
/// The first `top` rows with shares, rates and the total; then the schedule of each and why it has it, if that is wanted.
void print_profile(const std::vector<ProfileRow>& rows, int top, bool shows_schedules = false);

/// Trace events as chrome://tracing and Perfetto read them (microseconds): the stages of loading one after the other, then
/// the runs, each with its submit, its calls by the device's time stamps, and its completion.
Json make_trace(const StageTimes& stages, const ProfiledRuns& runs);

}  // namespace ignis::tools
