#pragma once

#include "ignis/base/program_image.h"
#include "ignis/runtime/queued_device.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ignis::exec {

inline constexpr int kAllLanes = -1;

/// A base buffer of a schedule: one block of memory for each of its devices (lanes).
struct ScheduleBuffer {
  std::string name;
  std::vector<std::string> devices;  ///< canonical names, one for each lane
  uint64_t size_bytes = 0;           ///< of each lane
  int input = -1;                    ///< number of the input that it is bound to at run; -1: none
  std::vector<runtime::MemoryRef>
      memory;            ///< one for each lane when known; empty: a placeholder of the link
  bool is_wire = false;  ///< stands for a far device of a network pair
  int other_end = -1;    ///< a wire: index of the buffer at its other end
  /// Number of the run-time variable that it stands for; -1: none. Such a buffer is an int64 cell of the host that no call
  /// writes and nobody places: each queue that reads it has a cell of its own, which each run fills.
  int variable = -1;
  /// A stage of bounced copies: whom it serves, "CUDA" or "CUDA>AMD"; empty: no stage. The link gives all stages of one host
  /// and one name the same memory, which outlives every template.
  std::string stage_for;
  bool operator==(const ScheduleBuffer&) const = default;
};

/// A look at a buffer, in the order in which it was taken: slices in elements, one lane of several, bytes read as another type.
struct ViewStep {
  enum class Kind : uint8_t { Slice, Lane, Reinterpret };
  Kind kind = Kind::Slice;
  int64_t begin = 0, end = 0;  ///< Slice: elements of the current item size, half-open
  int lane = 0;                ///< Lane
  int item_bytes = 1;          ///< Reinterpret
  bool operator==(const ViewStep&) const = default;
};
struct BufferView {
  int buffer = 0;      ///< index into Schedule::buffers
  int item_bytes = 1;  ///< of an element before any step
  std::vector<ViewStep> steps;
  bool operator==(const BufferView&) const = default;
};

/// What a view comes to: bytes [offset, offset + size) of one lane, or of every lane.
struct BufferRange {
  int buffer = 0;
  int lane = kAllLanes;
  uint64_t offset_bytes = 0, size_bytes = 0;
  int item_bytes = 1;
  bool operator==(const BufferRange&) const = default;
};

enum class CallKind : uint8_t { Program, Copy, Other };

/// An integer that a call binds: `value`, or with a number `run_time` the run's variable of that number plus `value`.
struct CallVariable {
  std::string name;
  int64_t value = 0;
  int run_time = -1;
  bool operator==(const CallVariable&) const = default;
};

/// Bytes of the cell of a run-time variable, and how many a schedule may have.
inline constexpr uint64_t kVariableBytes = 8;
inline constexpr int kMostVariables = 4096;

/// One step of a schedule. A copy has the arguments destination, source.
struct ScheduleCall {
  CallKind kind = CallKind::Program;
  std::string name;
  int program = -1;  ///< index into Schedule::programs
  std::vector<BufferView> arguments;
  std::vector<int> outs, ins;  ///< argument numbers written and read
  bool knows_writes = true;    ///< false: every argument counts as written
  std::vector<CallVariable> variables;
  int64_t parts = 1;
  double flops = 0, bytes = 0;
  bool wants_signal = false;  ///< marked: its queue signals when it is done
  bool operator==(const ScheduleCall&) const = default;
};

/// Calls in order, before anything is decided about queues.
struct Schedule {
  std::vector<ScheduleBuffer> buffers;
  std::vector<ProgramImage> programs;
  std::vector<ScheduleCall> calls;
};

}  // namespace ignis::exec
