#pragma once

#include "ignis/engine/callable/capture.h"
#include "ignis/engine/capture/inputs.h"
#include "ignis/engine/eager/recorder.h"

#include <memory>
#include <string>
#include <vector>

namespace ignis::engine {

/// A tensor of the captured function's result.
struct TracedLeaf {
  std::string path;  ///< where it is in the result
  /// Dense. In mode Borrow its memory stays; in others nobody else holds its storage, which becomes a parameter.
  Array array;
};

/// What a recording came to.
struct Traced {
  exec::CapturedRef captured;
  CaptureReport report;
};

/// Turns recorded calls into a capture (capture spec 4, steps 5 to 9): inputs become parameters, one-time calls are split off,
/// temporaries are planned, queues compiled and encoded. Output number i of the capture is leaf i.
/// Errors: InvalidArgument (NothingCaptured); as compile_queues() and exec::Captured::make().
Result<Traced> trace(const Workspace& workspace, Recording recording, const InputCollector& inputs,
                     const std::vector<TracedLeaf>& leaves, exec::GuardSet guards,
                     const CaptureOptions& options);

/// The same capture with the values of its state as they are now.
Result<exec::CapturedRef> with_state(const Workspace& workspace, const exec::CapturedRef& captured,
                                     exec::Replay& replay);

}  // namespace ignis::engine
