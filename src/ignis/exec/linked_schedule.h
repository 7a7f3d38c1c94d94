#pragma once

#include "ignis/exec/aliases.h"
#include "ignis/exec/bounded_mutex.h"
#include "ignis/exec/fence.h"
#include "ignis/exec/link.h"
#include "ignis/exec/patch.h"
#include "ignis/exec/profile.h"
#include "ignis/runtime/completion.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ignis::exec {

/// A batch with real addresses. Its commands, signals and time slots are used again by each run of it.
struct LinkedBatch {
  const Batch* batch = nullptr;
  bool is_host = false;
  std::vector<runtime::QueuedDevice*> devices;
  std::vector<Placement> slots;  ///< by device: signals, the epoch and time slots
  std::vector<std::vector<std::byte>> stream_words;
  std::vector<Placement> parts;
  RunTimeWords words;                 ///< of streams and parts
  std::vector<StreamSubmit> submits;  ///< in submit order
  /// What run-time patches name: the address table, then N of each device, then the run's variables.
  std::vector<uint64_t> values;
  std::optional<BatchFence> fence;
  BatchFence::PatchCommands patch;  ///< writes N and `values` into `words`
};

/// An argument, of a call that the caller makes, that is an input: where its address belongs.
struct InputPointer {
  size_t pointer = 0;  ///< index into LinkedOther::pointers
  int input = 0;
  int lane = 0;
  uint64_t offset_bytes = 0;
};

/// Calls of kind Other with real addresses.
struct LinkedOther {
  const Batch* batch = nullptr;
  std::vector<void*> pointers;        ///< arguments of all calls, one after the other
  std::vector<size_t> first_pointer;  ///< by call
  std::vector<InputPointer> inputs;
};

/// Exactly one of both.
struct LinkedStep {
  std::unique_ptr<LinkedBatch> batch;
  std::unique_ptr<LinkedOther> other;
};

/// What ends when all that was added is complete or its device is lost. Ring slots, and what a dropped link used, wait for it.
class RunToken final : public CompletionToken {
 public:
  bool is_complete() const override;
  bool is_stuck() const override;
  void add(std::span<const runtime::Submitted> submitted);
  /// Nothing more will be added.
  void seal();

 private:
  mutable std::mutex mutex_;
  bool is_sealed_ = false;
  std::vector<runtime::Submitted> submitted_;
};

/// A template with real buffers and nothing unknown but what changes from run to run: what run() (run_linked.h) runs. Runs of
/// one linked schedule follow each other.
class LinkedSchedule {
 public:
  LinkedSchedule() = default;
  /// What is under way keeps its memory.
  ~LinkedSchedule();
  LinkedSchedule(const LinkedSchedule&) = delete;
  LinkedSchedule& operator=(const LinkedSchedule&) = delete;

  Machine& machine() const { return *machine_; }
  const std::shared_ptr<Machine>& shared_machine() const { return machine_; }
  const QueueTemplate& queues() const { return *queues_; }
  LinkMode mode() const { return mode_; }
  /// What linking took, on the machine's clock.
  int64_t link_ns() const { return link_ns_; }
  /// The memory of a buffer's lane, as linked; without memory for an input that each run binds, and for an unused lane.
  const Placement& placement(int buffer, int lane = 0) const {
    return buffers_[static_cast<size_t>(buffer)][static_cast<size_t>(lane)];
  }
  std::span<const LinkedStep> steps() const { return steps_; }
  /// For tests that pause or break a device in the middle of a submit.
  std::span<LinkedStep> steps() { return steps_; }
  /// Ok, or DeviceLost with the reason StaleLink or DeviceUnavailable.
  Status check_devices() const;
  /// Makes this the owner of the template that it was made of.
  void keep(TemplateRef made) { keeps_ = std::move(made); }

 private:
  friend class Linker;
  friend class Run;
  friend class SharedTemplate;
  struct UsedDevice {
    runtime::QueuedDevice* device = nullptr;
    uint64_t generation = 0;
  };

  std::shared_ptr<Machine> machine_;
  TemplateRef keeps_;  ///< null when the template keeps the link
  const QueueTemplate* queues_ = nullptr;
  LinkMode mode_ = LinkMode::Jit;
  int64_t link_ns_ = 0;
  std::vector<UsedDevice> devices_;
  std::vector<std::vector<Placement>> buffers_;  ///< by buffer, by lane
  std::vector<runtime::MemoryRef> kept_;         ///< images and blocks
  std::vector<std::string> stages_;              ///< that it uses, in order
  std::vector<LinkedStep> steps_;

  // Of runs; guarded by running_.
  BoundedMutex running_;
  std::optional<AliasCheck> aliases_;
  std::vector<int64_t> variables_;   ///< of the run, by number
  std::vector<std::string> owners_;  ///< whose memory it touches and that are in no batch with it
  std::vector<std::vector<runtime::Submitted>>
      before_;                              ///< by owner: what was under way when a run began
  std::vector<runtime::Submitted> waited_;  ///< scratch
  std::vector<runtime::MemoryRef> bound_,
      bound_before_;                      ///< inputs of this run and of the one before
  std::shared_ptr<RunToken> ring_token_;  ///< Ring: of its only run
  uint64_t runs_ = 0;
  bool has_unread_times_ = false;
  std::vector<CallRecord> records_;
  std::vector<RunTimes> times_;
};

}  // namespace ignis::exec
