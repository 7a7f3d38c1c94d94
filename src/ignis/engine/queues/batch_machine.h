#pragma once

#include "ignis/engine/queues/dependencies.h"
#include "ignis/engine/queues/device_table.h"
#include "ignis/exec/queue_template.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ignis::engine {

/// What the checker knows of a batch before it runs anything.
struct BatchFacts {
  const exec::Batch* batch = nullptr;
  std::vector<std::vector<int>> conflicts;  ///< by tag: earlier calls that it must follow
  std::vector<std::vector<bool>> touches;   ///< by tag, by device
  std::vector<bool> is_in_order;            ///< by stream
};
BatchFacts collect_facts(const DeviceTable& table, std::span<const exec::ScheduleBuffer> buffers,
                         const BaseTable& bases, const exec::Batch& batch);

/// Runs the commands of a batch, one at a time, in any order of queues. Timelines count from N, which is 0 here.
class BatchMachine {
 public:
  explicit BatchMachine(const BatchFacts& facts);

  /// Starts with the timeline of `device` one below N.
  void set_late(int device) { reached_[static_cast<size_t>(device)] = -1; }
  /// Call `tag` never completes.
  void hold_back(int tag) { held_ = tag; }

  size_t stream_count() const { return facts_->batch->streams.size(); }
  bool is_finished() const;
  /// Whether the next command of a stream may run now.
  bool can_step(int stream) const;
  /// Runs it; the stream must be able to. What this breaks is the answer: "I-3", "I-6", or nothing.
  std::optional<std::string> step(int stream);

  bool has_started(int tag) const { return started_[static_cast<size_t>(tag)]; }
  /// Where each stream stands; with what was set before, it says all about the machine's state.
  const std::vector<size_t>& positions() const { return position_; }
  const std::vector<int>& order() const { return order_; }
  /// A sentence about the last fault.
  const std::string& what() const { return what_; }
  /// The command that a stream stands at, as text, or "the end".
  std::string where(int stream) const;

 private:
  std::optional<std::string> start_call(size_t stream, int tag);
  std::optional<std::string> store_reached(int device);
  bool is_held(size_t stream) const;

  const BatchFacts* facts_;
  std::vector<size_t> position_;
  std::vector<uint64_t> signals_;  ///< by stream
  std::vector<int> reached_;       ///< by device
  std::vector<bool> started_, completed_;
  std::vector<std::vector<int>> flying_;  ///< by stream: started, not completed
  int held_ = -1;
  std::vector<int> order_;
  std::string what_;
};

}  // namespace ignis::engine
