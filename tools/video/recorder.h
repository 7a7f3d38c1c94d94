#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ignis::tools {

struct RecorderOptions {
  int width_px = 0, height_px = 0;  ///< even; of every picture
  double fps = 20;                  ///< 1..240
  /// True: picture n is shown at n / fps. False: pictures lie as far apart as their times.
  bool has_even_times = false;
  int queue_limit = 8;  ///< pictures that wait for the encoder, 1..64
  int quality = 26;     ///< H.264's constant rate factor, 0 (best) to 51
  uint64_t size_limit_bytes = uint64_t{8} << 30;
  std::string encoder;  ///< FFmpeg's name; empty: libx264 where there is one, else mpeg4
};

/// Writes an mp4 file with an encoder on a thread of its own, below the normal priority.
///
/// The caller's thread only copies the picture: with a full queue the picture is dropped and counted, and with a full disk
/// the recording stops and says so; whoever is being recorded goes on. The file is made of fragments, so what was written
/// before a crash or a full disk can be played. Cabin pictures are personal data: the file's mode is 0600.
class Recorder {
 public:
  /// Errors: InvalidArgument for options or a path that cannot be written, Unsupported, reason "NoEncoder".
  static Result<std::unique_ptr<Recorder>> create(const std::string& path,
                                                  const RecorderOptions& options);
  /// Closes, if close() was not called; an error is logged.
  ~Recorder();

  /// Takes a picture of the recorder's size; its time is SOF. From one thread at a time, as write_rgb.
  /// \param wait  how long to wait for room in the queue.
  /// Errors: OutOfMemory, reason "QueueFull": this picture is dropped, the next may find room. InvalidArgument, reason
  /// "LayoutChanged", for another size: likewise. Else the recording has stopped, and every call says why: OutOfMemory,
  /// reason "DiskFull" or "SizeLimit"; Internal for other faults.
  Status write(const pipeline::Frame& frame, std::chrono::nanoseconds wait = {});
  /// The same for 8-bit RGB, row by row: 3 * width * height bytes. `time_ns` is the picture's, on any clock.
  Status write_rgb(std::span<const uint8_t> rgb, uint64_t time_ns,
                   std::chrono::nanoseconds wait = {});
  /// Encodes what waits, completes the file and tells how the recording went. Bounded: what takes longer than `limit` is
  /// left out.
  Status close(std::chrono::nanoseconds limit = std::chrono::seconds(30));

  uint64_t written_count() const;  ///< pictures given to the encoder
  uint64_t dropped_count() const;  ///< pictures that found no room
  /// Ok, or why the recording has stopped.
  Status status() const;

 private:
  struct State;
  explicit Recorder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ignis::tools
