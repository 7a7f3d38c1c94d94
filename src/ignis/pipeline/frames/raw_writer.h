#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ignis::pipeline {

/// Writes frames so that a FileSource reads them again: the bytes to `path`, their layout, ids and times to `path`.json.
/// Cabin frames are personal data: call it only when the user asked for a recording.
class RawWriter {
 public:
  /// Makes both files anew; the file's mode is 0600.
  /// \param fps           nominal rate, > 0.
  /// \param size_limit    bytes that the raw file may have.
  static Result<std::unique_ptr<RawWriter>> create(const std::string& path, double fps,
                                                   uint64_t size_limit = uint64_t{1} << 40);
  /// Closes, if close() was not called; an error is logged.
  ~RawWriter();

  /// Appends one frame. The first one fixes the layout.
  /// Errors: InvalidArgument, reason "LayoutChanged", for another layout; OutOfMemory, reason "SizeLimit" or "DiskFull";
  /// Internal for other faults of the file. After an error the file holds the frames written before.
  Status write(const Frame& frame);
  /// Completes the index. A recording without close() is read as far as it goes, its index is rewritten now and then.
  Status close();
  uint64_t frame_count() const;

 private:
  struct State;
  explicit RawWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ignis::pipeline
