#pragma once

#include "ignis/base/dtype.h"
#include "ignis/base/result.h"
#include "ignis/exec/guards.h"
#include "ignis/exec/link.h"
#include "ignis/exec/outputs.h"
#include "ignis/exec/queue_template.h"
#include "ignis/exec/run_time_ring.h"
#include "ignis/exec/signature.h"
#include "ignis/runtime/capabilities.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ignis::exec {

/// Bytes that somebody else owns: a part of a mapped file, a copy on the host.
struct HostBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void>
      owner;  ///< keeps them; may be null for bytes that live as long as the process
};

/// What a buffer that keeps its memory from replay to replay holds, and with that where its bytes come from.
enum class HeldKind : uint8_t {
  Weights,  ///< no call writes it: from HeldBuffer::bytes
  OneTime,  ///< what one-time calls wrote: from running them again
  State,    ///< changes from replay to replay, by them or by the caller: from the caller
  Scratch,  ///< starts as zeros; what a replay reads of it else, it has written before: from nowhere
};
std::string_view to_string(HeldKind kind);

/// A buffer of the template that is neither an input nor made by the link.
struct HeldBuffer {
  int buffer = 0;  ///< in Captured::queues, and in Captured::one_time where that has it
  HeldKind kind = HeldKind::State;
  std::string name;
  /// Where it lay when it was captured, by lane; empty for a capture that was read from a file.
  std::vector<Placement> lanes;
  /// By lane, or empty. Of weights: what they are. Of state: what it is when a capture from a file is first used.
  std::vector<HostBytes> bytes;
  bool is_written = false;  ///< by the calls of a replay; Captured::make() knows
};

/// A result of the captured function.
struct CapturedOutput {
  std::string name;
  DType dtype = DType::Float32;
  std::vector<int64_t> shape;
  /// Borrow: a part of a buffer that the link places or that is held. Other modes: all of the buffer of a run-time
  /// parameter, whose input number is that of the output after those of the inputs.
  BufferRange range;
  uint32_t alignment_bytes = 1;  ///< Caller: that its storage has at least; alignment_class()
};

/// A device as it was at the capture.
struct CapturedDevice {
  std::string name;
  runtime::Capabilities capabilities;
  uint64_t generation = 0;  ///< 0: read from a file, so any will do
};

/// A recorded function, ready to be linked (capture spec 4 to 6, 11, 12): plain data without an address, and without a
/// function. Immutable once made, and shared; what changes is Replay's (replay.h).
///
/// The template's inputs are those of the signature in its order; then, unless the mode is Borrow, the outputs. Its run-time
/// variables are those of the signature in its order.
struct Captured {
  TemplateRef queues;  ///< encoded; its buffers have no memory
  /// What runs before the first replay; null: nothing. No buffer of it is an input or a variable.
  TemplateRef one_time;
  /// By input; null or missing: its memory must be within the host's reach when it is fed back. Copies input 1 to input 0.
  std::vector<TemplateRef> shadow_copies;
  Signature signature = Signature::make({});
  std::vector<CapturedOutput> outputs;
  OutputMode output_mode = OutputMode::Borrow;
  int ring_size = 3;  ///< Ring
  int max_sets = 16;  ///< Copy, Caller
  GuardSet guards;
  std::vector<HeldBuffer> held;  ///< by buffer number
  std::vector<CapturedDevice>
      devices;  ///< by name; all that batches run on, see describe_devices()
  /// What a link allocates on each device, in name order: known before it does.
  std::vector<std::pair<std::string, uint64_t>> peak_bytes;
  std::string group_report;  ///< "graph 32 (limit), graph 51 (end)"
  /// Written for any host: without the programs that only the host it was captured on runs.
  bool is_retargetable = false;

  /// Looks at every number of `parts`, sorts what is sorted, finds what is written. Memory that the buffers of a template have
  /// moves to `held`: as State where nothing else is said about the buffer.
  /// Errors: InvalidArgument with the reason BadCaptured, saying what does not fit together.
  static Result<std::shared_ptr<const Captured>> make(Captured parts);

  size_t input_count() const { return signature.inputs().size(); }
  /// The same capture with another program; this one stays as it is, and so does what was linked of it.
  /// Errors: as make().
  Result<std::shared_ptr<const Captured>> with_schedule(TemplateRef replaced) const;
  /// Names of held buffers that only the caller can fill again.
  std::vector<std::string_view> implicit_state() const;
  /// Index in `held` of a name or a buffer; -1: none.
  int find_held(std::string_view name) const;
  int find_held(int buffer) const;
};
using CapturedRef = std::shared_ptr<const Captured>;

/// The devices that a template's batches run on, as they are on `machine`. Errors: NotFound for one that is not open.
Result<std::vector<CapturedDevice>> describe_devices(const QueueTemplate& queues,
                                                     const Machine& machine);

}  // namespace ignis::exec
