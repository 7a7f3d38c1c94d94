#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/schedule.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::engine {

struct PruneOptions {
  /// Buffers with memory of their own (implicit inputs) whose contents never change: weights.
  std::vector<int> constant_buffers;
  /// Buffers without memory yet that the caller gets to see and may write between replays: returned tensors.
  std::vector<int> exposed_buffers;
  std::vector<int> random_calls;                ///< that draw random numbers
  std::vector<std::string> run_time_variables;  ///< names whose values differ from replay to replay
};

/// Why a call is run by every replay, or only once.
enum class CallFate : uint8_t {
  OneTime,       ///< nothing that it depends on or that it writes can change from replay to replay
  TouchesInput,  ///< an input, or a buffer of an earlier call that does
  WritesWithKept,   ///< a buffer that a kept call writes too: it makes the start value anew (W-5)
  ReadsFromKept,    ///< a buffer that a kept call writes
  WritesAfterKept,  ///< a buffer that an earlier kept call reads
  ReadsState,       ///< an implicit input that is not constant
  WritesState,      ///< a buffer that others may write between replays
  DrawsRandom,
  BindsVariable,   ///< a variable of the run
  HasOtherEffect,  ///< no program and no copy: what it does is not known
};
std::string_view to_string(CallFate fate);

struct PrunedCall {
  CallFate fate = CallFate::OneTime;
  int buffer = -1;  ///< over which
};

/// A captured schedule in two: what runs once, before the first replay, and what each replay runs.
struct Pruned {
  std::vector<int> one_time, kept;  ///< calls in order
  std::vector<PrunedCall> calls;    ///< by call: the report
  /// Buffers that one-time calls write and kept calls read. They must keep their memory: they are held for the planner.
  std::vector<int> held_buffers;
  /// One line for each one-time call, and what each kept call is kept for.
  std::string to_text(const exec::Schedule& schedule) const;
};

/// Splits off one-time work (capture spec 7). Buffers with the same memory or the same input count as one.
///
/// Beyond the rule of the spec a call is kept when it writes what an earlier kept call reads, writes state that others may
/// write, binds a variable of the run, or has effects that are not known: each would give other results than a direct run.
///
/// Errors: InvalidArgument with the reason NothingCaptured when every call is one-time, naming the first; with the reason
/// BadSchedule for numbers that name nothing.
Result<Pruned> prune(const exec::Schedule& schedule, const PruneOptions& options = {});

/// Some calls of a schedule, in order, on the same buffers and programs.
exec::Schedule select_calls(const exec::Schedule& schedule, const std::vector<int>& calls);
/// The same for one-time calls, which run with nothing bound: no buffer is an input or a variable, and none of them is used.
exec::Schedule select_one_time(const exec::Schedule& schedule, const std::vector<int>& calls);

}  // namespace ignis::engine
