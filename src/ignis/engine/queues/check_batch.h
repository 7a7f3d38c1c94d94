#pragma once

#include "ignis/base/result.h"
#include "ignis/engine/queues/dependencies.h"
#include "ignis/engine/queues/device_table.h"
#include "ignis/exec/queue_template.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ignis::engine {

/// An invariant of queue spec 6.3 that a batch breaks, and how to see it.
struct BatchFault {
  std::string
      invariant;     ///< "I-1" … "I-6"; "I-5" also for a signal that falls or is another queue's
  std::string what;  ///< a sentence
  std::vector<int>
      order;  ///< the streams that were served, command by command; empty where the text alone shows it

  /// "I-6: call 2 … (order 0 0 1)".
  std::string to_string() const;
};

struct CheckOptions {
  /// Orders drawn at random on top of the rotations.
  int random_orders = 0;
  uint64_t seed = 1;
  /// Above 0: every interleaving is walked, as long as there are no more states than that.
  uint64_t max_states = 0;
};

/// Runs a batch's commands with signals and timelines as integers and holds it against I-1 to I-6.
///
/// Served orders: from each queue on, forwards and backwards, one command of each queue in turn and each as far as it goes.
/// Then each call is held back while everything else runs as far as it can. Values only rise and waits are greater-or-equal, so
/// what can run once can run for good: whatever a call does not hold back so, some order runs before it, and no other
/// order has to be tried. A queue that is not in order completes its calls as late as its barriers allow.
///
/// Conflicts come from the calls' byte ranges and not from the tracker that made the streams.
std::optional<BatchFault> check_batch(const DeviceTable& table,
                                      std::span<const exec::ScheduleBuffer> buffers,
                                      const BaseTable& bases, const exec::Batch& batch,
                                      const CheckOptions& options = {});

/// As check_batch, as a Status: Internal with the invariant as reason.
Status verify_batch(const DeviceTable& table, std::span<const exec::ScheduleBuffer> buffers,
                    const BaseTable& bases, const exec::Batch& batch);

}  // namespace ignis::engine
