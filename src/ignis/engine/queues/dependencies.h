#pragma once

#include "ignis/exec/queue_template.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ignis::engine {

/// Bytes [begin, end) of one base that a call touches. A base is one lane of a buffer.
struct Access {
  int base = 0;
  uint64_t begin_bytes = 0, end_bytes = 0;
  bool is_written = false;
  bool operator==(const Access&) const = default;
};

/// Numbers the bases of a schedule's buffers. Lanes that are known to be the same memory, or the same input, are one base; so
/// are all lanes of the inputs of one set of `aliased_inputs`, and there every access counts for the whole base, because
/// nobody knows yet how they lie over each other.
class BaseTable {
 public:
  explicit BaseTable(std::span<const exec::ScheduleBuffer> buffers,
                     std::span<const std::vector<int>> aliased_inputs = {});

  /// What a call touches: one access for each argument and lane. Empty ranges touch nothing.
  std::vector<Access> accesses_of(const exec::BatchCall& call) const;
  void append(const exec::BufferRange& range, bool is_written, std::vector<Access>* to) const;

 private:
  struct Lane {
    int base = 0;
    bool is_whole = false;  ///< every access counts for all bytes
  };
  std::vector<std::vector<Lane>> lanes_;  ///< by buffer
};

/// Whether an access of one call meets one of the other's with at least one write.
bool conflict(std::span<const Access> a, std::span<const Access> b);

/// Finds for each call of a batch which earlier calls it must follow, by byte ranges (queue spec, section 5). Lives for one
/// batch.
class DependencyTracker {
 public:
  /// Owners of what `accesses` meet, ascending and unique; then records them under `tag`. Calls come in tag order.
  /// `queue` is any number of the call's queue. Where it is in order, its reads of one range collapse to the newest.
  std::vector<int> add(int tag, int queue, bool is_in_order, std::span<const Access> accesses);

  /// Records held, for tests and size reports.
  size_t record_count() const;

 private:
  struct Record {
    uint64_t begin_bytes, end_bytes;
    int tag, queue;
  };
  struct Base {
    std::vector<Record> writes, reads;
  };
  static void cut(std::vector<Record>& records, uint64_t begin_bytes, uint64_t end_bytes);
  Base& base(int index);

  std::vector<Base> bases_;
};

/// The bytes of inputs that the calls of a template touch, as QueueTemplate::input_uses.
std::vector<exec::InputUse> collect_input_uses(const exec::QueueTemplate& queue_template);

/// Pairs of inputs (first < second) that may not lie over each other at run: one of them is written, and they are in no
/// common set of aliased_inputs.
std::vector<std::pair<int, int>> must_not_alias(const exec::QueueTemplate& queue_template);

}  // namespace ignis::engine
