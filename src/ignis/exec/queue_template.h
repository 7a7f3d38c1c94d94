#pragma once

#include "ignis/exec/schedule.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ignis::exec {

/// One queue's stream in a batch, in submit order among the batch's streams.
struct QueueStream {
  int device = 0;  ///< index into Batch::devices
  runtime::QueueId queue;
  int signal = -1;  ///< number of its signal
  std::vector<runtime::Command> commands;
  runtime::EncodedQueue encoded;  ///< empty before encoding
  bool operator==(const QueueStream&) const = default;
};

/// A call of a batch with its arguments resolved.
struct BatchCall {
  int tag = 0;
  CallKind kind = CallKind::Program;
  std::string name;
  int program = -1;
  int device = 0;  ///< index into Batch::devices: where it runs
  runtime::QueueId queue;
  std::vector<BufferRange> arguments;
  std::vector<int> outs, ins;
  std::vector<std::pair<std::string, int64_t>> variables;
  int64_t parts = 1;
  double flops = 0, bytes = 0;
  bool is_marked = false;              ///< stores its signal
  int start_slot = -1, end_slot = -1;  ///< time slots when profiled
  bool operator==(const BatchCall&) const = default;
};

/// Memory of `owner` that the batch touches from `accessor`, an index into Batch::devices.
struct TouchedOwner {
  std::string owner;
  int accessor = 0;
  bool operator==(const TouchedOwner&) const = default;
};

/// Calls submitted together, all in one peer group.
struct Batch {
  std::vector<std::string> devices;   ///< in name order; peers that run no call included
  std::vector<BatchCall> calls;       ///< by tag
  std::vector<QueueStream> streams;   ///< in submit order
  std::vector<TouchedOwner> touched;  ///< owners that are no device of the batch
  bool waits = true;                  ///< false: the "do not wait here" mark
  bool operator==(const Batch&) const = default;
};

/// A maximal run of calls that no queue takes: the host's.
struct HostRun {
  std::vector<BatchCall> calls;
  bool operator==(const HostRun&) const = default;
};

/// One step of a template: a batch or a host run.
struct TemplateStep {
  bool is_batch = false;
  Batch batch;
  HostRun host;
  bool operator==(const TemplateStep&) const = default;
};

/// A schedule after every decision about queues, and still without an address.
struct QueueTemplate {
  std::vector<ScheduleBuffer> buffers;  ///< stages and wires included
  std::vector<ProgramImage> programs;
  std::vector<TemplateStep> steps;
  int input_count = 0;
  bool has_link_time_inputs = false;  ///< a long schedule: input addresses are baked at link
  bool is_profiled = false;
};

}  // namespace ignis::exec
