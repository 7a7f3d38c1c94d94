#pragma once

#include "ignis/engine/eager/array.h"
#include "ignis/engine/queues/plan_schedule.h"
#include "ignis/exec/schedule.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ignis::engine {

/// What a buffer of a recording is. Its number, name, devices and size are those of the schedule's buffer.
struct RecordedBuffer {
  uint64_t base =
      0;  ///< the storage, as Array::base(); 0: of a plan's own, a constant or a temporary
  /// An array, or the expression of one, reached the storage when the recording ended: it has memory, and who holds the array
  /// may read and write it.
  bool is_live = false;
  bool existed_before =
      false;  ///< the storage had its contents before the recording began: an implicit or explicit input
  bool is_constant = false;  ///< a plan's constant, or a storage that was marked
  bool is_generator_state = false;
  bool reads_zeros =
      false;  ///< scratch that starts as zeros and has memory of its own, which no plan of memory may share
  std::string variable;  ///< the run-time variable whose value it holds; empty: none
  /// The memory of a storage that is a part of a block; place_parts() gives it to the schedule's buffer.
  exec::Placement part;
};

struct RecordedCall {
  bool draws_random = false;
};

/// A storage that recorded calls write.
struct WrittenStorage {
  std::weak_ptr<Storage> storage;
  bool existed_before = false;  ///< as RecordedBuffer::existed_before
};

/// Calls that a function would have run. What has memory is in schedule.buffers[i].memory: storages from before, storages that
/// are live, constants; and parts of blocks once place_parts() was called. All others are placeholders that any plan of memory may
/// place, or run-time variables.
struct Recording {
  exec::Schedule schedule;
  std::vector<RecordedBuffer> buffers;  ///< one for each of the schedule
  std::vector<RecordedCall> calls;      ///< one for each of the schedule
  std::vector<std::string> variables;   ///< by ScheduleBuffer::variable
  std::vector<WrittenStorage> written;  ///< by its calls

  /// Gives buffers that are parts of blocks, and are no numbered inputs by now, their memory: they become looks at the block.
  /// Before anything that asks which buffers have memory.
  void place_parts();

  /// After each run of the calls: values that arrays had before are not taken for theirs now. Tensors of storages that the
  /// recording made go on and read what the last run wrote; those of older storages that its calls write are stale, as after
  /// an assign(). Allocates nothing.
  void note_replayed() const;
  /// The buffer of a storage, or -1 when no call touches it.
  int find(uint64_t base) const;
  std::vector<int> constant_buffers() const;
  std::vector<int> random_calls() const;
};

/// Collects what a workspace would run (Workspace::set_recorder). Not used twice.
class Recorder {
 public:
  Recorder() = default;
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Whether a recorded call reads or writes the array's storage.
  bool touches(const Array& array) const { return touched_.contains(array.base()); }
  /// Calls so far.
  size_t call_count() const { return recording_.schedule.calls.size(); }

  /// Ends the recording: what arrays reach gets memory. The recorder must not be a workspace's any more.
  /// Errors: OutOfMemory; what devices return. Then, as without this call, what the calls would have written is poisoned.
  Result<Recording> finish();
  /// The calls have run, all of them: what they write has its contents.
  void mark_computed();
  /// They have not and will not: reading what they write is an error from here on.
  void poison();

 private:
  friend class Workspace;
  friend struct WorkspaceState;

  /// A storage as a buffer of the joint schedule.
  int add(const StorageRef& storage, bool is_written);
  /// Calls of a plan; `ports` are the storages of its inputs and outputs, `key` says which plan it is.
  Status add(const PlanSchedule& plan, const std::string& key, const std::vector<StorageRef>& ports,
             const std::string& device, bool draws_random);
  void add_copy(const StorageRef& to, const StorageRef& from);

  struct Touched {
    int buffer = 0;
    std::weak_ptr<Storage> storage;
    bool is_written = false;
  };
  Recording recording_;
  std::shared_ptr<exec::Machine> machine_;  // of the workspace
  std::map<uint64_t, Touched> touched_;     // by storage
  std::map<std::string, int> arenas_;       // that read zeros, by plan
  bool is_finished_ = false;
};

}  // namespace ignis::engine
