#pragma once

#include "ignis/engine/queues/dependencies.h"
#include "ignis/engine/queues/device_table.h"
#include "ignis/exec/queue_template.h"

#include <span>
#include <string>
#include <vector>

namespace ignis::engine {

/// A call with its arguments resolved and its device chosen; not yet in a batch.
struct PlacedCall {
  exec::BatchCall call;
  std::string device;  ///< empty: the host path
  /// First half of a network copy; the other half is the next call. The two stay in one run.
  bool is_send = false;
};

/// A stretch of the schedule: host calls, or enqueued calls in groups of one peer group each. Numbers are indices of calls.
struct CallRun {
  bool is_host = false;
  std::vector<std::vector<int>> groups;  ///< a host run has one
  bool operator==(const CallRun&) const = default;
};

/// Cuts a schedule into runs and groups (queue spec 3.3). Grouping moves calls of different groups past each other, so a run
/// ends before a call that touches
///  - bytes of a call of another group in it, with a write;
///  - a device of another group in it. Batches that share a device run one after the other, by its timeline: a receive in the
///    first would wait for a send in the second for ever.
/// Both halves of a network copy are looked at before the first, for a run that ends between them would wait for a send that
/// nobody receives.
std::vector<CallRun> cut_runs(const DeviceTable& table,
                              std::span<const exec::ScheduleBuffer> buffers, const BaseTable& bases,
                              std::span<const PlacedCall> calls);

struct QueueChoice {
  int all_to_all = 0;   ///< at least 1: peer copies use several copy queues
  int copy_queues = 0;  ///< how many; 0: as many as there are peers, at most 8
};

/// Copy queue of a copy between peers: ((destination - source - 1) mod peers) mod queues, indices into the sorted peers.
int choose_copy_queue(int destination, int source, int peers, int queues);

/// Makes the batch of one group: its devices (peers that own an argument included, in name order), tags, queues, owners that
/// it touches. Streams are still to be built.
exec::Batch make_batch(const DeviceTable& table, const QueueChoice& choice,
                       std::span<const exec::ScheduleBuffer> buffers,
                       std::span<const PlacedCall> calls, std::span<const int> group);

/// Makes the host run of one group: a batch of the host, which touches all owners of its calls' memory, itself included.
exec::Batch make_host_batch(const DeviceTable& table, std::span<const exec::ScheduleBuffer> buffers,
                            std::span<const PlacedCall> calls, std::span<const int> group);

}  // namespace ignis::engine
