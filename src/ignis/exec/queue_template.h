#pragma once

#include "ignis/base/program_image.h"
#include "ignis/exec/content_hash.h"
#include "ignis/exec/schedule.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ignis::exec {

/// An address that the words of a stream need and that only a link knows: as the stream's device reaches it.
struct LinkAddress {
  enum class Kind : uint8_t {
    Buffer,    ///< `index` into QueueTemplate::buffers (a wire: this end of it), `lane`
    Program,   ///< `index` into QueueTemplate::programs: where its image is launched
    Signals,   ///< the signal slots of device `index` of the batch
    Timeline,  ///< the reached word of device `index` of the batch
  };
  Kind kind = Kind::Buffer;
  int index = 0;
  int lane = 0;
  uint64_t offset_bytes = 0;
  auto operator<=>(const LinkAddress&) const = default;
};

/// An entry of a batch's address table: where an input lies at this run, as `device` of the batch reaches it.
struct TableEntry {
  int input = 0;
  int lane = 0;
  int device = 0;
  auto operator<=>(const TableEntry&) const = default;
};

/// One queue's stream in a batch, in submit order among the batch's streams.
struct QueueStream {
  int device = 0;  ///< index into Batch::devices
  runtime::QueueId queue;
  int signal = -1;  ///< number of its signal
  std::vector<runtime::Command> commands;
  runtime::EncodedQueue encoded;       ///< empty before encoding
  std::vector<LinkAddress> addresses;  ///< what the numbers of its link-time patches mean
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
  std::vector<CallVariable> variables;
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
  std::vector<TableEntry> table;      ///< what the numbers of its streams' input patches mean
  int submit_program =
      -1;  ///< index into QueueTemplate::submit_programs; -1: run-time holes are filled by a loop
  bool operator==(const Batch&) const = default;
};

/// One step of a template: a batch of queued devices, or a host run: a maximal run of calls that no queue takes, which is a
/// batch of the CPU alone. Calls of kind Other, which only the caller knows, are steps of their own without a stream: the
/// host makes them between what its worker does.
struct TemplateStep {
  bool is_host = false;
  Batch batch;
  /// Earlier batches (indices of steps, ascending) that must be complete before this step runs or is submitted, because no
  /// timeline wait of its own queues orders them. What other steps of the same run of the template left in `pending` need
  /// not be waited for: so a writer of a stage's slot waits for that slot's last reader and not for the device. Host runs
  /// are no part of it: a step after one starts when it is complete in any case.
  std::vector<int> after;
  bool operator==(const TemplateStep&) const = default;
};

/// Bytes of an input that a template touches. Two inputs that lie over each other at run are told by them.
struct InputUse {
  int input = 0;
  int lane = 0;
  uint64_t begin_bytes = 0, end_bytes = 0;
  bool is_written = false;
  bool operator==(const InputUse&) const = default;
};

/// Generated code that fills the run-time holes of a batch (base/submit_program.h). It is for the host's architecture: a
/// template without any means the same and is a little slower to submit.
struct SubmitProgram {
  ProgramImage image;
  ContentHash
      code{};  ///< of the SubmitCode it is made of; the link holds the batch's own stores against it
  bool is_rolled = false;
};

/// A schedule after every decision about queues, and still without an address.
struct QueueTemplate {
  std::vector<ScheduleBuffer> buffers;  ///< stages and wires included
  std::vector<ProgramImage> programs;
  std::vector<SubmitProgram> submit_programs;  ///< of its batches; equal ones once
  std::vector<TemplateStep> steps;
  int input_count = 0;
  bool has_link_time_inputs = false;  ///< a long schedule: input addresses are baked at link
  bool is_profiled = false;
  /// Sorted by input, lane, written or not, begin; those of one kind are disjoint. A written one that meets any use of
  /// another input at run is AliasedArguments, unless both are in one of `aliased_inputs`.
  std::vector<InputUse> input_uses;
  std::vector<std::vector<int>> aliased_inputs;  ///< sets of inputs that count as one base here
};

/// Whether the step is of calls that only the caller knows, which have no stream.
inline bool is_other(const TemplateStep& step) {
  return step.is_host && !step.batch.calls.empty() &&
         step.batch.calls.front().kind == CallKind::Other;
}

/// Run-time variables that a run of the template needs: one more than the largest number.
int count_variables(const QueueTemplate& queues);

/// Bytes of a signal or time slot: a signal word, then a time stamp.
inline constexpr uint64_t kSlotBytes = 16;

/// Slot of a queue's signal among those of its device: its rank among the device's streams.
inline uint64_t signal_slot(const Batch& batch, int signal) {
  const int device = batch.streams[static_cast<size_t>(signal)].device;
  uint64_t slot = 0;
  for (int i = 0; i < signal; ++i) slot += batch.streams[static_cast<size_t>(i)].device == device;
  return slot;
}

/// Bytes that a batch's signals, its epoch and its time slots take on one of its devices.
inline uint64_t slot_bytes(const Batch& batch, int device, bool is_profiled) {
  uint64_t queues = 0;
  for (const QueueStream& stream : batch.streams) queues += stream.device == device;
  return kSlotBytes * (queues + 1 + (is_profiled ? 2 * batch.calls.size() : 0));
}

}  // namespace ignis::exec
