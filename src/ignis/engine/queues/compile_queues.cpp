#include "ignis/engine/queues/compile_queues.h"

#include "ignis/engine/queues/check_batch.h"
#include "ignis/engine/queues/check_schedule.h"
#include "ignis/engine/queues/enqueue.h"
#include "ignis/engine/queues/lanes.h"
#include "ignis/engine/queues/streams.h"
#include "ignis/engine/queues/view.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace ignis::engine {
namespace {

using exec::BatchCall;
using exec::CallKind;
using exec::QueueTemplate;
using exec::Schedule;
using exec::ScheduleCall;
using exec::TemplateStep;

#ifdef IGNIS_CHECK_BATCHES
constexpr bool kChecksBatches = true;
#else
constexpr bool kChecksBatches = false;
#endif

/// A program's device must reach all that the program touches.
Status check_reach(const DeviceTable& table, const QueueHooks& hooks, const Schedule& schedule,
                   const ScheduleCall& call) {
  std::vector<exec::BufferRange> arguments;
  for (const exec::BufferView& argument : call.arguments) {
    IGNIS_TRY_ASSIGN(const exec::BufferRange range, resolve_view(schedule.buffers, argument));
    arguments.push_back(range);
  }
  const auto device = choose_device(table, schedule.buffers, call.kind, arguments);
  if (!device) return Status::ok();
  for (const exec::BufferRange& range : arguments) {
    if (range.size_bytes == 0) continue;
    const exec::ScheduleBuffer& buffer = schedule.buffers[static_cast<size_t>(range.buffer)];
    IGNIS_TRY_ASSIGN(const bool maps, can_reach(table, hooks, *device, buffer, range.lane));
    if (!maps) {
      return Error(ErrorCode::Unsupported,
                   "Device '" + *device + "' cannot map buffer '" + buffer.name + "' of '" +
                       owners_of(schedule.buffers, range).front() + "', which program call '" +
                       call.name + "' uses; copy it to the device first.",
                   "NotMappable");
    }
  }
  return Status::ok();
}

Result<PlacedCall> place(const DeviceTable& table, const Schedule& schedule,
                         const ScheduleCall& call) {
  PlacedCall placed;
  BatchCall& made = placed.call;
  made.kind = call.kind;
  made.name = call.name;
  made.program = call.program;
  for (const exec::BufferView& argument : call.arguments) {
    IGNIS_TRY_ASSIGN(const exec::BufferRange range, resolve_view(schedule.buffers, argument));
    made.arguments.push_back(range);
  }
  made.outs = call.outs;
  made.ins = call.ins;
  if (call.kind == CallKind::Copy) {
    made.outs = {0};
    made.ins = {1};
  } else if (!call.knows_writes) {
    made.outs.resize(call.arguments.size());
    std::iota(made.outs.begin(), made.outs.end(), 0);
  }
  made.variables = call.variables;
  made.parts = call.parts;
  made.flops = call.flops;
  made.bytes = call.bytes;
  made.is_marked = call.wants_signal;
  placed.device = choose_device(table, schedule.buffers, call.kind, made.arguments).value_or("");
  return placed;
}

/// What a call holds back until it is complete: the timelines of its device and of the peers its queue touches. A later
/// queue that waits for one of them at its start follows it.
std::set<std::string> timelines_of(const exec::Batch& batch, const BatchCall& call) {
  std::set<std::string> names;
  for (const exec::QueueStream& stream : batch.streams) {
    if (stream.device != call.device || stream.queue != call.queue) continue;
    for (const runtime::Command& command : stream.commands) {
      if (command.kind == runtime::Command::Kind::Barrier) continue;
      if (command.kind != runtime::Command::Kind::WaitReached) break;  // the start is over
      names.insert(batch.devices[static_cast<size_t>(command.device)]);
    }
  }
  return names;
}

/// Finds the earlier batches that a step must follow and that no timeline orders.
class StepOrder {
 public:
  StepOrder(const BaseTable& bases, const std::vector<TemplateStep>& steps)
      : bases_(bases), steps_(steps) {}

  /// Steps come in order; `step` is the next.
  std::vector<int> add(const TemplateStep& step) {
    Seen seen;
    for (const BatchCall& call : step.batch.calls) {
      seen.accesses.push_back(bases_.accesses_of(call));
      seen.timelines.push_back(step.is_host ? std::set<std::string>()
                                            : timelines_of(step.batch, call));
    }
    std::vector<int> after;
    for (size_t i = 0; i < seen_.size(); ++i) {
      // A host run that waited for a batch came back before anything behind it is submitted.
      if (steps_[i].is_host || is_complete_[i]) continue;
      if (must_follow(seen, seen_[i])) after.push_back(static_cast<int>(i));
    }
    seen_.push_back(std::move(seen));
    is_complete_.push_back(false);
    if (step.is_host) {
      for (const int i : after) is_complete_[static_cast<size_t>(i)] = true;
    }
    return after;
  }

 private:
  struct Seen {
    std::vector<std::vector<Access>> accesses;     // by call
    std::vector<std::set<std::string>> timelines;  // by call
  };

  static bool must_follow(const Seen& later, const Seen& earlier) {
    for (size_t i = 0; i < later.accesses.size(); ++i) {
      for (size_t k = 0; k < earlier.accesses.size(); ++k) {
        if (!conflict(later.accesses[i], earlier.accesses[k])) continue;
        const bool is_ordered = std::any_of(
            later.timelines[i].begin(), later.timelines[i].end(),
            [&](const std::string& name) { return earlier.timelines[k].contains(name); });
        if (!is_ordered) return true;
      }
    }
    return false;
  }

  const BaseTable& bases_;
  const std::vector<TemplateStep>& steps_;
  std::vector<Seen> seen_;
  std::vector<bool> is_complete_;
};

int count_inputs(const Schedule& schedule) {
  int count = 0;
  for (const exec::ScheduleBuffer& buffer : schedule.buffers) {
    count = std::max(count, buffer.input + 1);
  }
  return count;
}

}  // namespace

Result<Schedule> prepare_schedule(const Schedule& schedule, const DeviceTable& table,
                                  const StageOptions& stage, const QueueHooks& hooks) {
  IGNIS_TRY(check_schedule(schedule, table));
  Schedule prepared;
  prepared.buffers = schedule.buffers;
  prepared.programs = schedule.programs;
  for (const ScheduleCall& call : schedule.calls) {
    IGNIS_TRY_ASSIGN(const std::vector<ScheduleCall> lanes, split_lanes(schedule.buffers, call));
    for (const ScheduleCall& lane : lanes) {
      if (lane.kind == CallKind::Copy) {
        IGNIS_TRY(decompose_copy(table, stage, hooks, lane, prepared));
        continue;
      }
      IGNIS_TRY(check_reach(table, hooks, prepared, lane));
      prepared.calls.push_back(lane);
    }
  }
  return prepared;
}

Result<QueueTemplate> make_template(const Schedule& prepared, size_t call_count,
                                    const DeviceTable& table, const QueueOptions& options) {
  const BaseTable bases(prepared.buffers, options.aliased_inputs);
  std::vector<PlacedCall> calls;
  for (size_t i = 0; i < prepared.calls.size(); ++i) {
    IGNIS_TRY_ASSIGN(PlacedCall placed, place(table, prepared, prepared.calls[i]));
    placed.is_send = i + 1 < prepared.calls.size() &&
                     is_network_pair(prepared, prepared.calls[i], prepared.calls[i + 1]);
    calls.push_back(std::move(placed));
  }

  QueueTemplate made;
  made.buffers = prepared.buffers;
  made.programs = prepared.programs;
  made.is_profiled = options.is_profiled;
  made.aliased_inputs = options.aliased_inputs;
  made.input_count = count_inputs(prepared);
  made.has_link_time_inputs =
      made.input_count > 0 && options.link_time_threshold <= static_cast<int64_t>(call_count);
  StepOrder order(bases, made.steps);
  for (const CallRun& run : cut_runs(table, prepared.buffers, bases, calls)) {
    for (size_t group = 0; group < run.groups.size(); ++group) {
      TemplateStep step;
      step.is_host = run.is_host;
      if (run.is_host) {
        step.batch = make_host_batch(table, prepared.buffers, calls, run.groups[group]);
        if (!is_other(step)) build_host_stream(options.is_profiled, step.batch);
      } else {
        step.batch = make_batch(table, options.queues, prepared.buffers, calls, run.groups[group]);
        // A wait for the first half of a network copy alone would never end.
        step.batch.waits = group + 1 == run.groups.size();
        build_streams(table, prepared.buffers, bases, options.is_profiled, step.batch);
        if (options.is_checked.value_or(kChecksBatches)) {
          IGNIS_TRY(verify_batch(table, prepared.buffers, bases, step.batch));
        }
      }
      step.after = order.add(step);
      made.steps.push_back(std::move(step));
    }
  }
  made.input_uses = collect_input_uses(made);
  return made;
}

Result<QueueTemplate> compile_queues(const Schedule& schedule, const DeviceTable& table,
                                     const QueueOptions& options, const QueueHooks& hooks) {
  IGNIS_TRY_ASSIGN(const Schedule prepared,
                   prepare_schedule(schedule, table, options.stage, hooks));
  return make_template(prepared, schedule.calls.size(), table, options);
}

}  // namespace ignis::engine
