#include "ignis/exec/fence.h"

#include "ignis/runtime/reasons.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ignis::exec {

using runtime::QueuedDevice;
using runtime::Submitted;
using runtime::WaitEnd;
using runtime::WaitLimits;

/// The limits of one run: one deadline for all of its waits.
class BatchFence::Limits {
 public:
  Limits(runtime::Clock& clock, const WaitLimits& limits)
      : clock_(clock),
        limits_(limits),
        end_ns_(runtime::add_ns(clock.now_ns(), std::max<int64_t>(limits.deadline_ns, 0))) {}

  int64_t end_ns() const { return end_ns_; }
  /// Nobody wants to wait: what is not there now is no fault.
  bool is_look() const { return limits_.deadline_ns <= 0; }
  WaitLimits remaining() const {
    return {std::max<int64_t>(end_ns_ - clock_.now_ns(), 0), limits_.stall_ns};
  }
  std::string to_string() const {
    std::string text = std::to_string(limits_.deadline_ns / 1'000'000) + " ms";
    if (limits_.stall_ns > 0) {
      text += " (" + std::to_string(limits_.stall_ns / 1'000'000) + " ms without a change)";
    }
    return text;
  }

 private:
  runtime::Clock& clock_;
  const WaitLimits& limits_;
  int64_t end_ns_;
};

/// The submission locks of the batch's devices.
class BatchFence::Locks {
 public:
  explicit Locks(std::span<QueuedDevice* const> devices) : devices_(devices) {}
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() {
    while (count_ > 0) devices_[--count_]->unlock_submission();
  }
  Status take(const Limits& limits) {
    for (QueuedDevice* device : devices_) {
      if (!device->try_lock_submission(limits.end_ns())) {
        return Error(ErrorCode::Timeout,
                     "Device '" + device->name() +
                         "' is still busy with another submission after " + limits.to_string() +
                         ".",
                     std::string(runtime::reason::kFenceTimeout));
      }
      ++count_;
    }
    return {};
  }

 private:
  std::span<QueuedDevice* const> devices_;
  size_t count_ = 0;
};

BatchFence::BatchFence(std::vector<QueuedDevice*> devices,
                       std::vector<std::atomic<uint64_t>*> signals)
    : devices_(std::move(devices)), signals_(std::move(signals)) {
  IGNIS_CHECK(!devices_.empty());
  for (size_t i = 1; i < devices_.size(); ++i) {
    IGNIS_CHECK(devices_[i - 1]->name() < devices_[i]->name()) << "locks are taken in name order";
  }
  for (const QueuedDevice* device : devices_) generations_.push_back(device->generation());
  epochs_.resize(devices_.size());
  last_epochs_ = epochs_;
  before_.resize(devices_.size());
  submitted_.reserve(devices_.size());
}

Status BatchFence::check() const {
  for (size_t i = 0; i < devices_.size(); ++i) {
    const QueuedDevice& device = *devices_[i];
    if (device.generation() != generations_[i]) {
      return runtime::stale_link(device.name(), generations_[i], device.generation());
    }
    if (!device.is_online()) return device_unavailable(device.name(), device.state());
  }
  return {};
}

Status BatchFence::run(std::span<const StreamSubmit> streams, const WaitLimits& wait_limits,
                       const PatchCommands& patch) {
  IGNIS_TRY(check());
  const Limits limits(devices_.front()->clock(), wait_limits);
  IGNIS_TRY(wait_for_epochs(limits));

  Locks locks(devices_);
  IGNIS_TRY(locks.take(limits));
  IGNIS_TRY(check());  // it may have been lost while we waited
  IGNIS_TRY(restart_narrow_pairs(limits));
  IGNIS_TRY(wait_for_room(streams, limits));
  for (size_t i = 0; i < devices_.size(); ++i) before_[i] = devices_[i]->timeline().announced;
  if (patch) IGNIS_TRY(patch(before_));
  announce();
  if (pause_) pause_();
  return submit(streams);
}

bool BatchFence::has_passed(size_t device) const {
  const runtime::Timeline& timeline = devices_[device]->timeline();
  // A pair that began anew was drained before.
  return timeline.restarts != epochs_[device].restarts ||
         timeline.reached->load() >= epochs_[device].value;
}

Status BatchFence::wait_for_epochs(const Limits& limits) {
  const auto is_lost = [&] { return !check(); };
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (has_passed(i)) continue;
    QueuedDevice& device = *devices_[i];
    // No more than two words are captured, here and below: std::function would allocate.
    const auto read = [this, i] {
      return has_passed(i) ? UINT64_MAX : devices_[i]->timeline().reached->load();
    };
    switch (wait_at_least(device.clock(), read, UINT64_MAX, limits.remaining(), is_lost)) {
      case WaitEnd::Reached: break;
      case WaitEnd::Abandoned: {
        Status lost = check();
        if (!lost) return lost;
        break;
      }
      case WaitEnd::Stalled:
      case WaitEnd::DeadlineExceeded: return fence_timeout(device, epochs_[i].value, limits);
    }
  }
  return {};
}

Error BatchFence::fence_timeout(QueuedDevice& waited, uint64_t target, const Limits& limits) const {
  // A device whose queues only wait is held up by another of the batch that has not passed either.
  QueuedDevice* device = &waited;
  if (waited.only_waits()) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (!has_passed(i) && !devices_[i]->only_waits()) {
        device = devices_[i];
        target = epochs_[i].value;
        break;
      }
    }
  }
  std::string missing = "reached " + std::to_string(device->timeline().reached->load()) + " of " +
                        std::to_string(target);
  std::string text = "Device '" + device->name() + "' is not done with the last run after " +
                     limits.to_string() + ": it " + missing;
  if (!limits.is_look()) text += " (" + device->report_hang(missing) + ")";
  return Error(ErrorCode::Timeout, text + ".", std::string(runtime::reason::kFenceTimeout));
}

Status BatchFence::restart_narrow_pairs(const Limits& limits) {
  for (QueuedDevice* device : devices_) {
    runtime::Timeline& timeline = device->timeline();
    const uint64_t half = uint64_t{1} << (device->capabilities().signal_bits - 1);
    const uint64_t announced = timeline.announced;
    if (announced + 1 < half) continue;
    const auto read = [&] { return timeline.reached->load(); };
    const auto is_lost = [&] { return !device->is_online(); };
    switch (wait_at_least(device->clock(), read, announced, limits.remaining(), is_lost)) {
      case WaitEnd::Reached: break;
      case WaitEnd::Abandoned: return device_unavailable(device->name(), device->state());
      case WaitEnd::Stalled:
      case WaitEnd::DeadlineExceeded: return fence_timeout(*device, announced, limits);
    }
    // In this order a reader of any two of the words sees the drained pair or the new one (completion.h, synchronize.cpp).
    timeline.announced = 0;
    ++timeline.restarts;
    timeline.reached->store(0);
  }
  return {};
}

Status BatchFence::wait_for_room(std::span<const StreamSubmit> streams, const Limits& limits) {
  for (const StreamSubmit& stream : streams) {
    QueuedDevice& device = *devices_[static_cast<size_t>(stream.device)];
    uint64_t need_bytes = 0;
    for (const StreamSubmit& other : streams) {
      if (other.device == stream.device && other.queue == stream.queue) {
        need_bytes += other.commands.size();
      }
    }
    const std::string& name = device.name();
    if (need_bytes > device.ring_bytes(stream.queue)) {
      return Error(ErrorCode::InvalidArgument,
                   "A submit of " + std::to_string(need_bytes) +
                       " bytes is larger than the ring of " + stream.queue.to_string() +
                       " of device '" + name + "', which holds " +
                       std::to_string(device.ring_bytes(stream.queue)) + ".",
                   std::string(runtime::reason::kSubmitTooLarge));
    }
    const auto read = [&] { return device.free_bytes(stream.queue); };
    if (read() >= need_bytes) continue;  // it only grows while we hold the lock
    const auto is_lost = [&] { return !check(); };
    switch (wait_at_least(device.clock(), read, need_bytes, limits.remaining(), is_lost)) {
      case WaitEnd::Reached: break;
      case WaitEnd::Abandoned: {
        Status lost = check();
        if (!lost) return lost;
        break;
      }
      case WaitEnd::Stalled:
      case WaitEnd::DeadlineExceeded:
        return Error(ErrorCode::OutOfMemory,
                     stream.queue.to_string() + " of device '" + name + "' has room for " +
                         std::to_string(read()) + " bytes; the submit has " +
                         std::to_string(need_bytes) + ", after " + limits.to_string() + ".",
                     std::string(runtime::reason::kQueueFull));
    }
  }
  return {};
}

void BatchFence::announce() {
  last_epochs_ = epochs_;
  for (size_t i = 0; i < devices_.size(); ++i) {
    runtime::Timeline& timeline = devices_[i]->timeline();
    timeline.announced = before_[i] + 1;
    epochs_[i] = {before_[i] + 1, timeline.restarts};
  }
  for (std::atomic<uint64_t>* signal : signals_) signal->store(0);
}

void BatchFence::take_back() {
  for (size_t i = 0; i < devices_.size(); ++i) devices_[i]->timeline().announced = before_[i];
  epochs_ = last_epochs_;
}

Status BatchFence::submit(std::span<const StreamSubmit> streams) {
  for (size_t i = 0; i < streams.size(); ++i) {
    const StreamSubmit& stream = streams[i];
    QueuedDevice& device = *devices_[static_cast<size_t>(stream.device)];
    Status status = device.submit(stream.queue, stream.commands);
    if (status) continue;
    if (i == 0) {
      take_back();
    } else {
      for (QueuedDevice* other : devices_) {
        other->report_hang("a batch was submitted only in part, for device '" + device.name() +
                           "' refused " + stream.queue.to_string());
      }
    }
    return std::move(status).error().with_context("submit to " + stream.queue.to_string() +
                                                  " of device '" + device.name() + "'");
  }
  submitted_.clear();
  for (size_t i = 0; i < devices_.size(); ++i) {
    submitted_.push_back(Submitted::after_submit(*devices_[i], before_[i] + 1));
  }
  return {};
}

}  // namespace ignis::exec
