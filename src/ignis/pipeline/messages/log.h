#pragma once

#include "ignis/base/result.h"

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ignis::pipeline {

struct LogOptions {
  size_t buffer_bytes = size_t{4} << 20;          ///< of each file: what a slow disk may lag behind
  uint64_t size_limit_bytes = uint64_t{4} << 30;  ///< of each file; what comes after is not written
  std::chrono::nanoseconds close_limit = std::chrono::seconds(2);  ///< what close() waits at most
  /// pwrite(2) when empty. A test's disk: it may be full or slow.
  std::function<ssize_t(int descriptor, const void* bytes, size_t size_bytes, off_t offset_bytes)>
      write;
};

struct LogCounters {
  uint64_t written = 0;  ///< whole messages in the files
  uint64_t lost = 0;     ///< messages that are not: no space, write error, buffer full, size limit
};

/// Writes events to `F` and companions to `F.quality`, one framed message after another. A thread writes: a full or slow
/// disk never holds up whoever appends. Each file always ends with a whole message as far as the disk allows; a message
/// that finds no space is lost and counted, and writing goes on when there is space again. Files are readable by their
/// owner only. Use it from one thread.
class LogWriter {
 public:
  /// Creates both files, or empties them.
  /// Errors: InvalidArgument, reason "LogOpen", with the path and the system's words, also when another writer has it.
  static Result<LogWriter> open(const std::string& path, LogOptions options = {});
  LogWriter(LogWriter&&) noexcept;
  LogWriter& operator=(LogWriter&&) noexcept;
  ~LogWriter();

  /// Hands one framed message over: false when it is lost at once. Never waits, never allocates.
  bool append_event(std::span<const std::byte> message);
  bool append_quality(std::span<const std::byte> message);
  /// A failure of each kind, once (again only after hundreds of messages without any): OutOfMemory with reason "DiskFull",
  /// "BufferFull" or "SizeLimit", DeviceLost with "WriteFailed". For the user's eyes; the log goes on by itself.
  std::optional<Error> take_error();
  LogCounters counters() const;
  /// Waits until all that was appended is written or lost, at most `limit`. Errors: Timeout.
  Status flush(std::chrono::nanoseconds limit);
  /// Flushes and closes. The destructor does it too, silently.
  /// Errors: Timeout when the disk does not take the rest within close_limit (the rest is given up); the first failure
  /// that take_error() has not shown yet.
  Status close();

 private:
  struct File;
  LogWriter(std::shared_ptr<File> events, std::shared_ptr<File> quality,
            std::chrono::nanoseconds close_limit);

  std::shared_ptr<File> events_, quality_;  ///< shared with the thread that writes
  std::chrono::nanoseconds close_limit_{};
};

/// Reads the framed messages of one file (`F`, `F.quality`) in their order; the file may still be growing.
class LogReader {
 public:
  /// Errors: NotFound when there is no such file; InvalidArgument when it is no plain file.
  static Result<LogReader> open(const std::string& path);
  LogReader(LogReader&&) noexcept;
  LogReader& operator=(LogReader&&) noexcept;
  ~LogReader();

  /// The next message; lives until the next call.
  /// Errors: NotFound, reason "EndOfLog", behind the last whole message; InvalidArgument, reason "TruncatedMessage", when
  /// the file ends inside a message (all before it were whole; calling again tries again), "Framing" or "TooLong" when the
  /// bytes are no message (for good).
  Result<std::span<const std::byte>> next();
  /// Where the next message begins.
  uint64_t offset_bytes() const { return offset_bytes_; }

 private:
  LogReader(int descriptor, std::string path);
  /// Has at least `wanted_bytes` of the file in buffer_, from begin_ on, unless it ends before; gives how many there are.
  Result<size_t> buffer(size_t wanted_bytes);

  int descriptor_ = -1;
  std::string path_;
  uint64_t offset_bytes_ = 0;     ///< of the next message in the file
  size_t begin_ = 0, end_ = 0;    ///< of what is buffered and not yet handed over
  std::vector<uint64_t> buffer_;  ///< words: messages are multiples of eight bytes
};

/// "F.quality" for "F".
std::string quality_log_path(const std::string& path);

}  // namespace ignis::pipeline
