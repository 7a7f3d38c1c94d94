#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace ignis::pipeline {

enum class Pace : uint8_t {
  RealTime,  ///< at the rate; frames that nobody fetched in time are skipped and counted, as a camera does
  EveryFrame,  ///< at the rate, but late rather than never
  Fast,        ///< at once when asked
};

struct FileSourceOptions {
  std::optional<FrameLayout> layout;  ///< for a file without an index
  double fps = 0;                     ///< 0: the index's, 20 when it has none
  Pace pace = Pace::RealTime;
  bool is_looped = false;  ///< begins anew after the last frame; ids go on rising
};

/// Raw frames of a file: one or many, one behind the other, with an index `F.json` beside `F` (raw_index.h) or a layout
/// from the caller.
///
/// Ids and the valid flag come from the index, else ids count from 0. The clip starts with the first receive(). SOF is
/// made from the pace, so that a frame's age is what it would be with a camera; EOF - SOF is that of the index.
/// receive(): NotFound, reason "EndOfStream", behind the last frame; InvalidArgument, reason "TornFile", with the bytes
/// expected and found when the file ends inside a frame (the stream ends there).
class FileSource final : public FrameSource {
 public:
  /// Errors: NotFound when there is no such file, InvalidArgument for a wrong index ("FrameIndex"), no index and no
  /// layout, or a file that holds no frame ("TornFile").
  static Result<std::unique_ptr<FileSource>> open(const std::string& path,
                                                  FileSourceOptions options = {});
  ~FileSource() override;

  Result<Frame> receive(std::chrono::nanoseconds timeout) override;
  uint64_t dropped_count() const override;
  std::string describe() const override;

  const FrameLayout& layout() const;
  uint64_t frame_count() const;

 private:
  struct State;
  explicit FileSource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ignis::pipeline
