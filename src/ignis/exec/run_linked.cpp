#include "ignis/exec/run_linked.h"

#include "ignis/base/math.h"
#include "ignis/exec/synchronize.h"
#include "ignis/runtime/reasons.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

namespace ignis::exec {

using runtime::QueuedDevice;
using runtime::Submitted;
using runtime::WaitLimits;

namespace {

/// Of how many runs records are kept when nobody asks for them.
constexpr size_t kKeptRecords = 65'536;
constexpr size_t kKeptTimes = 1'024;

/// The token of all that was announced on a device.
Submitted announced_on(QueuedDevice& device) {
  for (;;) {
    const uint64_t restarts = device.timeline().restarts.load();
    const Submitted token = Submitted::after_submit(device, device.timeline().announced.load());
    if (device.timeline().restarts.load() == restarts) return token;
  }
}

}  // namespace

/// One run of a linked schedule, or a wait for all of them. Its caller holds running_.
class Run {
 public:
  Run(LinkedSchedule& linked, std::span<const BoundInput> inputs, const RunOptions& options)
      : linked_(linked),
        machine_(*linked.machine_),
        inputs_(inputs),
        variables_(options.variables),
        limits_(options.limits),
        end_ns_(runtime::add_ns(now_ns(), std::max<int64_t>(0, limits_.deadline_ns))) {}

  Status start(bool waits) {
    IGNIS_TRY(linked_.check_devices());
    IGNIS_TRY(check_one_shot());
    IGNIS_TRY(check_variables());
    IGNIS_TRY(check_inputs());
    // Its time slots are used again.
    IGNIS_TRY(read_times());
    const Machine::StageLock stages(machine_, linked_.stages_, end_ns_);
    IGNIS_TRY(stages.status());
    times_.run = ++linked_.runs_;
    note_who_is_at_work();
    IGNIS_TRY(fill_tables());
    keep_inputs();
    Status status = run_steps();
    if (linked_.ring_token_ != nullptr) linked_.ring_token_->seal();
    if (status) {
      linked_.bound_before_.clear();  // every fence of the run before was passed
      if (waits) status = finish();
    }
    if (linked_.queues_->is_profiled) keep(linked_.times_, kKeptTimes).push_back(times_);
    return status;
  }

  /// Waits for everything that was submitted.
  Status finish() {
    linked_.waited_.clear();
    for (const LinkedStep& step : linked_.steps_) {
      if (step.batch == nullptr) continue;
      const auto submitted = step.batch->fence->submitted();
      linked_.waited_.insert(linked_.waited_.end(), submitted.begin(), submitted.end());
    }
    const int64_t begin_ns = now_ns();
    IGNIS_TRY(wait_for_waited());
    times_.completion_ns += now_ns() - begin_ns;
    IGNIS_TRY(read_times());
    linked_.bound_.clear();
    linked_.bound_before_.clear();
    return Status::ok();
  }

 private:
  int64_t now_ns() const { return machine_.clock().now_ns(); }
  WaitLimits remaining() const {
    return {std::max<int64_t>(0, end_ns_ - now_ns()), limits_.stall_ns};
  }

  template <typename T>
  static std::vector<T>& keep(std::vector<T>& records, size_t most) {
    if (records.size() >= most) {
      records.erase(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(most / 2));
    }
    return records;
  }

  Status check_one_shot() const {
    if (linked_.mode_ != LinkMode::Ring || linked_.runs_ == 0) return Status::ok();
    return Error(ErrorCode::InvalidArgument,
                 "A link with slots of the run-time ring runs once; link the template anew.",
                 "OneShot");
  }

  Status check_variables() const {
    if (variables_.size() == linked_.variables_.size()) return Status::ok();
    return Error(ErrorCode::InvalidArgument,
                 "The schedule has " + std::to_string(linked_.variables_.size()) +
                     " run-time variables; the run gives values for " +
                     std::to_string(variables_.size()) + ".",
                 "MissingVariable");
  }

  Status check_inputs() {
    if (linked_.queues_->has_link_time_inputs) return Status::ok();  // at link
    const auto wanted = static_cast<size_t>(linked_.queues_->input_count);
    if (inputs_.size() < wanted) {
      return Error(ErrorCode::InvalidArgument,
                   "The schedule has " + std::to_string(wanted) + " inputs; the run binds " +
                       std::to_string(inputs_.size()) + ".",
                   "MissingInput");
    }
    for (const ScheduleBuffer& buffer : linked_.queues_->buffers) {
      if (buffer.input >= 0) IGNIS_TRY(check_input(buffer));
    }
    return linked_.aliases_->check(inputs_);
  }

  Status check_input(const ScheduleBuffer& buffer) const {
    const std::vector<Placement>& lanes = inputs_[static_cast<size_t>(buffer.input)].lanes;
    if (lanes.size() < buffer.devices.size()) {
      return Error(ErrorCode::InvalidArgument,
                   "Buffer '" + buffer.name + "' (input " + std::to_string(buffer.input) +
                       ") has " + std::to_string(buffer.devices.size()) + " lanes; the run binds " +
                       std::to_string(lanes.size()) + ".",
                   "MissingInput");
    }
    for (size_t i = 0; i < buffer.devices.size(); ++i) {
      const Placement& lane = lanes[i];
      if (lane.memory == nullptr) {
        return Error(ErrorCode::InvalidArgument,
                     "Buffer '" + buffer.name + "' (input " + std::to_string(buffer.input) +
                         ") has no memory for lane " + std::to_string(i) + ".",
                     "MissingInput");
      }
      if (lane.size_bytes < buffer.size_bytes ||
          !is_range_inside(lane.offset_bytes, lane.size_bytes, lane.memory->size_bytes())) {
        return Error(ErrorCode::InvalidArgument,
                     "Buffer '" + buffer.name + "' (input " + std::to_string(buffer.input) +
                         ") has " + std::to_string(buffer.size_bytes) + " bytes; the run binds " +
                         std::to_string(lane.size_bytes) + " bytes at " +
                         std::to_string(lane.offset_bytes) + " of " +
                         std::to_string(lane.memory->size_bytes()) + ".",
                     "InputTooSmall");
      }
      if (lane.memory->owner() != buffer.devices[i]) {
        return Error(ErrorCode::InvalidArgument,
                     "Buffer '" + buffer.name + "' (input " + std::to_string(buffer.input) +
                         ") is compiled for memory of '" + buffer.devices[i] +
                         "'; the run binds memory of '" + lane.memory->owner() + "'.",
                     "InputDevice");
      }
    }
    return Status::ok();
  }

  /// What this run submits itself is ordered by timelines and by the template; only what began before it is not.
  void note_who_is_at_work() {
    for (size_t i = 0; i < linked_.owners_.size(); ++i) {
      const std::string& owner = linked_.owners_[i];
      std::vector<Submitted>& before = linked_.before_[i];
      before.clear();
      if (QueuedDevice* device = machine_.find(owner)) before.push_back(announced_on(*device));
      for (size_t k = 0;; ++k) {
        const std::optional<Submitted> token = machine_.pending().at(owner, k);
        if (!token) break;
        before.push_back(*token);
      }
      // What a lost device had under way has ended; whoever submitted it is told.
      std::erase_if(before,
                    [](const Submitted& token) { return token.is_reached() || !token.is_alive(); });
    }
  }

  /// Mapping may be refused: before anything is submitted.
  Status fill_tables() {
    std::copy(variables_.begin(), variables_.end(), linked_.variables_.begin());
    for (LinkedStep& step : linked_.steps_) {
      if (step.batch == nullptr) continue;
      LinkedBatch& linked = *step.batch;
      for (size_t i = 0; i < linked.batch->table.size(); ++i) {
        const TableEntry& entry = linked.batch->table[i];
        const Placement& at =
            inputs_[static_cast<size_t>(entry.input)].lanes[static_cast<size_t>(entry.lane)];
        IGNIS_TRY_ASSIGN(const uint64_t base,
                         linked.devices[static_cast<size_t>(entry.device)]->map(at.memory));
        linked.values[i] = base + at.offset_bytes;
      }
      std::copy(variables_.begin(), variables_.end(),
                linked.values.end() - static_cast<std::ptrdiff_t>(variables_.size()));
    }
    return Status::ok();
  }

  /// Inputs live until their run is complete. Those of the run before go when its fences are passed.
  void keep_inputs() {
    if (linked_.queues_->has_link_time_inputs) return;
    linked_.bound_before_.insert(linked_.bound_before_.end(), linked_.bound_.begin(),
                                 linked_.bound_.end());
    linked_.bound_.clear();
    for (const BoundInput& input : inputs_) {
      for (const Placement& lane : input.lanes) linked_.bound_.push_back(lane.memory);
    }
  }

  Status run_steps() {
    for (size_t i = 0; i < linked_.steps_.size(); ++i) {
      const TemplateStep& step = linked_.queues_->steps[i];
      const int64_t begin_ns = now_ns();
      IGNIS_TRY(wait_before(i, step));
      const int64_t middle_ns = now_ns();
      times_.before_ns += middle_ns - begin_ns;
      if (step.is_host) IGNIS_TRY(make_visible(step.batch));
      if (linked_.steps_[i].other != nullptr) {
        IGNIS_TRY(run_other(*linked_.steps_[i].other, static_cast<int>(i)));
        times_.host_ns += now_ns() - middle_ns;
        continue;
      }
      Status status = submit(*linked_.steps_[i].batch);
      if (!status) {
        lose_partners(i);
        return status;
      }
      if (step.is_host) host_step_ = static_cast<int>(i);
      times_.submit_ns += now_ns() - middle_ns;
    }
    return Status::ok();
  }

  std::span<const Submitted> before(std::string_view owner) const {
    const auto found = std::lower_bound(linked_.owners_.begin(), linked_.owners_.end(), owner);
    return linked_.before_[static_cast<size_t>(found - linked_.owners_.begin())];
  }
  void wait_for_owner(std::string_view owner, const QueuedDevice* accessor) {
    for (const Submitted& token : before(owner)) {
      // An accessor's own queues start after all that was announced on it.
      if (&token.device() != accessor) linked_.waited_.push_back(token);
    }
  }
  void wait_for_batch(int step) {
    const std::span<const Submitted> submitted =
        linked_.steps_[static_cast<size_t>(step)].batch->fence->submitted();
    linked_.waited_.insert(linked_.waited_.end(), submitted.begin(), submitted.end());
  }

  Status wait_before(size_t index, const TemplateStep& step) {
    linked_.waited_.clear();
    for (const int earlier : step.after) {
      IGNIS_CHECK(earlier >= 0 && static_cast<size_t>(earlier) < index);
      if (linked_.steps_[static_cast<size_t>(earlier)].batch != nullptr) wait_for_batch(earlier);
    }
    const LinkedBatch* batch = linked_.steps_[index].batch.get();
    // The worker does host runs in order; whatever else follows one starts when it is complete.
    if (host_step_ >= 0 && !(batch != nullptr && batch->is_host)) {
      wait_for_batch(std::exchange(host_step_, -1));
    }
    for (const TouchedOwner& touched : step.batch.touched) {
      wait_for_owner(touched.owner, batch == nullptr
                                        ? nullptr
                                        : batch->devices[static_cast<size_t>(touched.accessor)]);
    }
    if (!step.is_host && machine_.host() != nullptr) {
      // Batches of others touch a device's memory under its own timeline, host runs do not.
      for (const std::string& name : step.batch.devices) {
        for (const Submitted& token : before(name)) {
          if (&token.device() == machine_.host()) linked_.waited_.push_back(token);
        }
      }
    }
    return wait_for_waited();
  }

  Status wait_for_waited() {
    if (linked_.waited_.empty()) return Status::ok();
    machine_.count_synchronization();
    return wait_for(linked_.waited_, remaining());
  }

  Status submit(LinkedBatch& linked) {
    IGNIS_TRY(linked.fence->run(linked.submits, remaining(), linked.patch));
    const std::span<const Submitted> submitted = linked.fence->submitted();
    if (linked_.ring_token_ != nullptr) linked_.ring_token_->add(submitted);
    for (const TouchedOwner& touched : linked.batch->touched) {
      if (linked.is_host && touched.owner == machine_.options().host_name) continue;  // its own
      machine_.pending().note(touched.owner, submitted[static_cast<size_t>(touched.accessor)]);
    }
    machine_.pending().note_batch(submitted);
    linked_.has_unread_times_ = linked_.queues_->is_profiled;
    return Status::ok();
  }

  /// Half of a network copy waits for a partner that never comes.
  void lose_partners(size_t failed) {
    for (size_t i = failed; i > 0 && linked_.steps_[i - 1].batch != nullptr; --i) {
      const LinkedBatch& partner = *linked_.steps_[i - 1].batch;
      if (partner.batch->waits) return;
      for (QueuedDevice* device : partner.devices) {
        device->report_hang("the other half of a network copy was not submitted");
      }
    }
  }

  /// Calls that only the caller knows.
  Status run_other(LinkedOther& run, int step) {
    for (const InputPointer& input : run.inputs) {
      const Placement& at =
          inputs_[static_cast<size_t>(input.input)].lanes[static_cast<size_t>(input.lane)];
      if (at.memory->host() == nullptr) {
        return Error(ErrorCode::InvalidArgument,
                     "Input " + std::to_string(input.input) +
                         " is not within the host's reach, and a call of the host uses it.",
                     std::string(runtime::reason::kNotMappable));
      }
      run.pointers[input.pointer] = at.memory->host() + at.offset_bytes + input.offset_bytes;
    }
    const std::vector<BatchCall>& calls = run.batch->calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      const std::span<void* const> pointers(run.pointers.data() + run.first_pointer[i],
                                            calls[i].arguments.size());
      const int64_t begin_ns = runtime::Clock::real().now_ns();
      IGNIS_TRY(machine_.options().other_call(calls[i], pointers));
      if (!linked_.queues_->is_profiled) continue;
      record(calls[i], step, machine_.options().host_name, static_cast<uint64_t>(begin_ns),
             static_cast<uint64_t>(runtime::Clock::real().now_ns()), 1000);
    }
    return Status::ok();
  }

  void record(const BatchCall& call, int step, const std::string& device, uint64_t start_ticks,
              uint64_t end_ticks, uint32_t ticks_per_us) {
    CallRecord made;
    made.run = linked_.runs_;
    made.step = step;
    made.tag = call.tag;
    made.name = call.name;
    made.device = device;
    made.start_ticks = start_ticks;
    made.end_ticks = end_ticks;
    made.seconds = seconds_between(start_ticks, end_ticks, ticks_per_us);
    keep(linked_.records_, kKeptRecords).push_back(std::move(made));
  }

  /// What devices wrote that are not coherent with the host.
  Status make_visible(const Batch& run) {
    for (QueuedDevice* device : machine_.options().devices) {
      if (device->capabilities().is_host_coherent || !device->is_online()) continue;
      for (const BatchCall& call : run.calls) {
        for (const BufferRange& range : call.arguments) {
          IGNIS_TRY(make_range_visible(*device, range));
        }
      }
    }
    return Status::ok();
  }
  Status make_range_visible(QueuedDevice& device, const BufferRange& range) {
    if (range.size_bytes == 0) return Status::ok();
    const ScheduleBuffer& buffer = linked_.queues_->buffers[static_cast<size_t>(range.buffer)];
    if (buffer.variable >= 0) return Status::ok();
    const auto lane = static_cast<size_t>(range.lane);
    const Placement& at = buffer.input >= 0 && !linked_.queues_->has_link_time_inputs
                              ? inputs_[static_cast<size_t>(buffer.input)].lanes[lane]
                              : linked_.buffers_[static_cast<size_t>(range.buffer)][lane];
    const uint64_t begin = at.offset_bytes + range.offset_bytes;
    return device.make_visible(at.memory, begin, begin + range.size_bytes);
  }

  /// Reads the time slots of the last run, once it is complete.
  Status read_times() {
    if (!linked_.has_unread_times_) return Status::ok();
    linked_.waited_.clear();
    for (const LinkedStep& step : linked_.steps_) {
      if (step.batch == nullptr) continue;
      const auto submitted = step.batch->fence->submitted();
      linked_.waited_.insert(linked_.waited_.end(), submitted.begin(), submitted.end());
    }
    const bool is_complete = std::all_of(linked_.waited_.begin(), linked_.waited_.end(),
                                         [](const Submitted& token) { return token.is_reached(); });
    if (!is_complete) IGNIS_TRY(wait_for_waited());
    const int64_t begin_ns = now_ns();
    for (size_t i = 0; i < linked_.steps_.size(); ++i) {
      if (linked_.steps_[i].batch != nullptr) {
        IGNIS_TRY(read_times_of(*linked_.steps_[i].batch, static_cast<int>(i)));
      }
    }
    times_.read_back_ns += now_ns() - begin_ns;
    linked_.has_unread_times_ = false;
    return Status::ok();
  }

  Status read_times_of(const LinkedBatch& linked, int step) {
    for (const BatchCall& call : linked.batch->calls) {
      if (call.start_slot < 0) continue;
      QueuedDevice& device = *linked.devices[static_cast<size_t>(call.device)];
      const Placement& slots = linked.slots[static_cast<size_t>(call.device)];
      if (!device.capabilities().is_host_coherent) {
        IGNIS_TRY(device.make_visible(slots.memory, slots.offset_bytes,
                                      slots.offset_bytes + slots.size_bytes));
      }
      const auto stamp = [&](int slot) {
        uint64_t ticks = 0;
        std::memcpy(&ticks,
                    slots.memory->host() + slots.offset_bytes +
                        kSlotBytes * static_cast<uint64_t>(slot) + sizeof(uint64_t),
                    sizeof ticks);
        return ticks;
      };
      record(call, step, device.name(), stamp(call.start_slot), stamp(call.end_slot),
             device.capabilities().ticks_per_us);
      machine_.count_timestamp_reads(2);
    }
    return Status::ok();
  }

  LinkedSchedule& linked_;
  Machine& machine_;
  std::span<const BoundInput> inputs_;
  std::span<const int64_t> variables_;
  WaitLimits limits_;
  int64_t end_ns_;
  int host_step_ = -1;  ///< the last host run that was submitted and not waited for
  RunTimes times_;

 public:
  /// One run at a time.
  static Status lock(LinkedSchedule& linked, const WaitLimits& limits,
                     std::unique_lock<BoundedMutex>& lock) {
    lock = std::unique_lock(linked.running_, std::defer_lock);
    const bool is_mine = limits.deadline_ns <= 0
                             ? lock.try_lock()
                             : lock.try_lock_for(std::chrono::nanoseconds(limits.deadline_ns));
    if (is_mine) return Status::ok();
    return Error(ErrorCode::Timeout,
                 "Another run of this linked schedule is still under way after " +
                     std::to_string(limits.deadline_ns / 1'000'000) + " ms.",
                 "Busy");
  }
  static std::vector<CallRecord>& records(LinkedSchedule& linked) { return linked.records_; }
  static std::vector<RunTimes>& times(LinkedSchedule& linked) { return linked.times_; }
};

Status run(LinkedSchedule& linked, std::span<const BoundInput> inputs, const RunOptions& options) {
  std::unique_lock<BoundedMutex> lock;
  IGNIS_TRY(Run::lock(linked, options.limits, lock));
  return Run(linked, inputs, options).start(options.waits);
}

Status wait(LinkedSchedule& linked, const WaitLimits& limits) {
  std::unique_lock<BoundedMutex> lock;
  IGNIS_TRY(Run::lock(linked, limits, lock));
  return Run(linked, {}, {.limits = limits}).finish();
}

Status make_readable(Machine& machine, const Placement& placement, const WaitLimits& limits) {
  const std::string& owner = placement.memory->owner();
  machine.count_synchronization();
  if (QueuedDevice* device = machine.find(owner)) {
    IGNIS_TRY(synchronize(*device, machine.pending(), limits));
  } else {
    IGNIS_TRY(synchronize_owner(owner, machine.pending(), limits));
  }
  return make_visible(machine, placement);
}

Status make_visible(Machine& machine, const Placement& placement) {
  for (QueuedDevice* device : machine.options().devices) {
    if (device->capabilities().is_host_coherent || !device->is_online()) continue;
    IGNIS_TRY(device->make_visible(placement.memory, placement.offset_bytes,
                                   placement.offset_bytes + placement.size_bytes));
  }
  return Status::ok();
}

std::vector<CallRecord> take_records(LinkedSchedule& linked) {
  std::unique_lock<BoundedMutex> lock;
  if (!Run::lock(linked, RunOptions().limits, lock)) return {};
  return std::exchange(Run::records(linked), {});
}

std::vector<RunTimes> take_times(LinkedSchedule& linked) {
  std::unique_lock<BoundedMutex> lock;
  if (!Run::lock(linked, RunOptions().limits, lock)) return {};
  return std::exchange(Run::times(linked), {});
}

}  // namespace ignis::exec
