#include "ignis/pipeline/messages/log.h"

#include "ignis/pipeline/messages/wire.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr size_t kReadAheadBytes = size_t{64} << 10;
// The shortest message is the framing and the root pointer.
constexpr size_t kMinMessageBytes = 16;
// This many whole messages after the last failure, the file counts as in order again.
constexpr uint64_t kCalmMessages = 400;

std::string system_words(int error) { return std::generic_category().message(error); }

enum class Failure : uint8_t { DiskFull, WriteFailed, BufferFull, SizeLimit };
constexpr size_t kFailureKinds = 4;

}  // namespace

// ---- writing -------------------------------------------------------------------------------------------------------

/// One file and the thread that writes it. The thread owns it too: when a disk never answers, close() leaves both behind.
struct LogWriter::File {
  std::string path;
  LogOptions options;
  int descriptor = -1;

  std::mutex mutex;
  std::condition_variable wake;  ///< for the thread: there is something to write, or it shall stop
  std::condition_variable done;  ///< for flush and close: everything is written, or it has stopped
  // All below is guarded by the mutex, except what the thread has swapped out.
  std::vector<std::byte> pending;  ///< reserved once; whole messages
  std::vector<uint32_t> pending_sizes;
  bool is_writing = false, shall_stop = false, has_stopped = false;
  LogCounters counters;
  struct Report {
    bool is_waiting = false, is_muted = false;
    int system_error = 0;
  };
  std::array<Report, kFailureKinds> reports;
  uint64_t calm_messages = 0;

  std::thread thread;

  ~File() {
    if (descriptor >= 0) ::close(descriptor);
  }

  static Result<std::shared_ptr<File>> open(const std::string& path, const LogOptions& options);
  bool append(std::span<const std::byte> message);
  void run();
  /// Writes whole messages at `offset` (which moves behind them); tells what failed and how many were written.
  size_t write_batch(std::span<const std::byte> bytes, std::span<const uint32_t> sizes,
                     uint64_t& offset_bytes, std::optional<Failure>& failure, int& system_error);
  void note(Failure failure, int system_error);  ///< mutex held
  std::optional<Error> take_error();
};

Result<std::shared_ptr<LogWriter::File>> LogWriter::File::open(const std::string& path,
                                                               const LogOptions& options) {
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorCode::InvalidArgument, "The log '" + path + "' cannot be opened: " + why,
                 "LogOpen");
  };
  auto file = std::make_shared<File>();
  file->path = path;
  file->options = options;
  // O_NONBLOCK: a pipe without a reader must not hold the program up; it is refused below.
  file->descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
  if (file->descriptor < 0) return refuse(system_words(errno) + ".");
  struct stat status{};
  if (::fstat(file->descriptor, &status) != 0) return refuse(system_words(errno) + ".");
  if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode)) return refuse("it is no plain file.");
  if (S_ISREG(status.st_mode)) {
    if (::flock(file->descriptor, LOCK_EX | LOCK_NB) != 0) {
      return refuse("another writer has it; end that one or choose another name.");
    }
    if (::ftruncate(file->descriptor, 0) != 0) return refuse(system_words(errno) + ".");
  }
  file->pending.reserve(options.buffer_bytes);
  file->pending_sizes.reserve(options.buffer_bytes / kMinMessageBytes);

  // Signals are for the threads of the program; one for a file that grew too long would end it.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  std::optional<Error> error;
  try {
    file->thread = std::thread([file] { file->run(); });
  } catch (const std::system_error& exception) {
    error = refuse(std::string("no thread can be started: ") + exception.what() + ".");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error) return *std::move(error);
  return file;
}

bool LogWriter::File::append(std::span<const std::byte> message) {
  const std::lock_guard lock(mutex);
  if (shall_stop || message.empty() || message.size() > options.buffer_bytes - pending.size() ||
      pending_sizes.size() == pending_sizes.capacity()) {
    ++counters.lost;
    note(Failure::BufferFull, 0);
    return false;
  }
  pending.insert(pending.end(), message.begin(), message.end());
  pending_sizes.push_back(static_cast<uint32_t>(message.size()));
  wake.notify_one();
  return true;
}

void LogWriter::File::run() {
  std::vector<std::byte> bytes;
  std::vector<uint32_t> sizes;
  bytes.reserve(options.buffer_bytes);
  sizes.reserve(options.buffer_bytes / kMinMessageBytes);
  uint64_t offset_bytes = 0;

  std::unique_lock lock(mutex);
  while (true) {
    wake.wait(lock, [&] { return shall_stop || !pending.empty(); });
    if (pending.empty()) break;
    std::swap(bytes, pending);
    std::swap(sizes, pending_sizes);
    is_writing = true;
    lock.unlock();
    std::optional<Failure> failure;
    int system_error = 0;
    const size_t written = write_batch(bytes, sizes, offset_bytes, failure, system_error);
    lock.lock();
    counters.written += written;
    counters.lost += sizes.size() - written;
    if (failure) {
      note(*failure, system_error);
    } else {
      calm_messages += written;
      if (calm_messages >= kCalmMessages) {
        for (Report& report : reports) report.is_muted = false;
      }
    }
    bytes.clear();
    sizes.clear();
    is_writing = false;
    if (pending.empty()) done.notify_all();
  }
  has_stopped = true;
  done.notify_all();
}

size_t LogWriter::File::write_batch(std::span<const std::byte> bytes,
                                    std::span<const uint32_t> sizes, uint64_t& offset_bytes,
                                    std::optional<Failure>& failure, int& system_error) {
  size_t allowed_bytes = 0;
  for (const uint32_t size : sizes) {
    if (offset_bytes + allowed_bytes + size > options.size_limit_bytes) {
      failure = Failure::SizeLimit;
      break;
    }
    allowed_bytes += size;
  }

  size_t done_bytes = 0;
  while (done_bytes < allowed_bytes) {
    const auto offset = static_cast<off_t>(offset_bytes + done_bytes);
    const std::byte* from = bytes.data() + done_bytes;
    const size_t size = allowed_bytes - done_bytes;
    const ssize_t count = options.write ? options.write(descriptor, from, size, offset)
                                        : ::pwrite(descriptor, from, size, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      system_error = count < 0 ? errno : ENOSPC;
      const bool is_full =
          system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG;
      failure = is_full ? Failure::DiskFull : Failure::WriteFailed;
      break;
    }
    done_bytes += std::min(static_cast<size_t>(count), size);
  }

  size_t whole_bytes = 0, whole = 0;
  while (whole < sizes.size() && whole_bytes + sizes[whole] <= done_bytes) {
    whole_bytes += sizes[whole++];
  }
  offset_bytes += whole_bytes;
  // The part of a message that still found room goes away, so that a reader finds a clean end. Should that fail, the next
  // message is written over it.
  if (whole_bytes != done_bytes && ::ftruncate(descriptor, static_cast<off_t>(offset_bytes)) != 0 &&
      system_error == 0) {
    system_error = errno;
  }
  return whole;
}

void LogWriter::File::note(Failure failure, int system_error) {
  calm_messages = 0;
  Report& report = reports[static_cast<size_t>(failure)];
  if (report.is_muted) return;
  report = {.is_waiting = true, .is_muted = true, .system_error = system_error};
}

std::optional<Error> LogWriter::File::take_error() {
  const std::lock_guard lock(mutex);
  for (size_t i = 0; i < reports.size(); ++i) {
    Report& report = reports[i];
    if (!report.is_waiting) continue;
    report.is_waiting = false;
    const std::string end = " " + std::to_string(counters.lost) + " messages are lost so far, " +
                            std::to_string(counters.written) + " are in it.";
    switch (static_cast<Failure>(i)) {
      case Failure::DiskFull:
        return Error(ErrorCode::OutOfMemory,
                     "The log '" + path + "' finds no space (" + system_words(report.system_error) +
                         "); it goes on when there is some." + end,
                     "DiskFull");
      case Failure::WriteFailed:
        return Error(ErrorCode::DeviceLost,
                     "The log '" + path + "' cannot be written (" +
                         system_words(report.system_error) + ")." + end,
                     "WriteFailed");
      case Failure::BufferFull:
        return Error(ErrorCode::OutOfMemory,
                     "The log '" + path + "' is written too slowly for its buffer of " +
                         std::to_string(options.buffer_bytes) + " bytes." + end,
                     "BufferFull");
      case Failure::SizeLimit:
        return Error(ErrorCode::OutOfMemory,
                     "The log '" + path + "' has reached its limit of " +
                         std::to_string(options.size_limit_bytes) + " bytes." + end,
                     "SizeLimit");
    }
  }
  return std::nullopt;
}

LogWriter::LogWriter(std::shared_ptr<File> events, std::shared_ptr<File> quality,
                     std::chrono::nanoseconds close_limit)
    : events_(std::move(events)), quality_(std::move(quality)), close_limit_(close_limit) {}

LogWriter::LogWriter(LogWriter&& other) noexcept = default;

LogWriter& LogWriter::operator=(LogWriter&& other) noexcept {
  std::swap(events_, other.events_);
  std::swap(quality_, other.quality_);
  std::swap(close_limit_, other.close_limit_);
  return *this;
}

LogWriter::~LogWriter() { (void)close(); }

Result<LogWriter> LogWriter::open(const std::string& path, LogOptions options) {
  IGNIS_TRY_ASSIGN(std::shared_ptr<File> events, File::open(path, options));
  // From here on the destructor stops the first file's thread.
  LogWriter writer(std::move(events), nullptr, options.close_limit);
  IGNIS_TRY_ASSIGN(writer.quality_, File::open(quality_log_path(path), options));
  return writer;
}

bool LogWriter::append_event(std::span<const std::byte> message) {
  return events_ != nullptr && events_->append(message);
}

bool LogWriter::append_quality(std::span<const std::byte> message) {
  return quality_ != nullptr && quality_->append(message);
}

std::optional<Error> LogWriter::take_error() {
  for (const auto& file : {events_, quality_}) {
    if (file == nullptr) continue;
    if (std::optional<Error> error = file->take_error()) return error;
  }
  return std::nullopt;
}

LogCounters LogWriter::counters() const {
  LogCounters sum;
  for (const auto& file : {events_, quality_}) {
    if (file == nullptr) continue;
    const std::lock_guard lock(file->mutex);
    sum.written += file->counters.written;
    sum.lost += file->counters.lost;
  }
  return sum;
}

Status LogWriter::flush(std::chrono::nanoseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (const auto& file : {events_, quality_}) {
    if (file == nullptr) continue;
    std::unique_lock lock(file->mutex);
    if (!file->done.wait_until(lock, deadline,
                               [&] { return file->pending.empty() && !file->is_writing; })) {
      return Error(ErrorCode::Timeout, "The log '" + file->path + "' is not written after " +
                                           std::to_string(limit.count()) + " ns.");
    }
  }
  return Status::ok();
}

Status LogWriter::close() {
  const auto deadline = std::chrono::steady_clock::now() + close_limit_;
  std::optional<Error> first;
  for (std::shared_ptr<File>* each : {&events_, &quality_}) {
    const std::shared_ptr<File> file = std::exchange(*each, nullptr);
    if (file == nullptr) continue;
    bool has_stopped = false;
    size_t left_bytes = 0;
    {
      std::unique_lock lock(file->mutex);
      file->shall_stop = true;
      file->wake.notify_one();
      has_stopped = file->done.wait_until(lock, deadline, [&] { return file->has_stopped; });
      left_bytes = file->pending.size();
    }
    if (has_stopped) {
      file->thread.join();
    } else {
      file->thread.detach();
    }
    std::optional<Error> error = file->take_error();
    if (!has_stopped) {
      error = Error(ErrorCode::Timeout,
                    "The disk of the log '" + file->path + "' does not answer within " +
                        std::to_string(close_limit_.count()) + " ns; " +
                        std::to_string(left_bytes) + " bytes and those under way are given up.");
    }
    if (!first) first = std::move(error);
  }
  if (first) return *std::move(first);
  return Status::ok();
}

// ---- reading -------------------------------------------------------------------------------------------------------

LogReader::LogReader(int descriptor, std::string path)
    : descriptor_(descriptor), path_(std::move(path)), buffer_(kReadAheadBytes / 8) {}

LogReader::LogReader(LogReader&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      offset_bytes_(other.offset_bytes_),
      begin_(other.begin_),
      end_(other.end_),
      buffer_(std::move(other.buffer_)) {}

LogReader& LogReader::operator=(LogReader&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  std::swap(offset_bytes_, other.offset_bytes_);
  std::swap(begin_, other.begin_);
  std::swap(end_, other.end_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

LogReader::~LogReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<LogReader> LogReader::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) {
    return Error(ErrorCode::NotFound,
                 "The log '" + path + "' cannot be opened: " + system_words(errno) + ".");
  }
  LogReader reader(descriptor, path);
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error(ErrorCode::InvalidArgument, "The log '" + path + "' is no plain file.", "LogOpen");
  }
  return reader;
}

Result<size_t> LogReader::buffer(size_t wanted_bytes) {
  if (end_ - begin_ >= wanted_bytes) return end_ - begin_;
  auto* bytes = reinterpret_cast<std::byte*>(buffer_.data());  // NOLINT
  std::memmove(bytes, bytes + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() * 8 < wanted_bytes) {
    buffer_.resize((wanted_bytes + 7) / 8);
    bytes = reinterpret_cast<std::byte*>(buffer_.data());  // NOLINT
  }
  while (end_ < wanted_bytes) {
    const ssize_t count = ::pread(descriptor_, bytes + end_, buffer_.size() * 8 - end_,
                                  static_cast<off_t>(offset_bytes_ + end_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return Error(ErrorCode::DeviceLost, "The log '" + path_ + "' cannot be read at byte " +
                                              std::to_string(offset_bytes_ + end_) + ": " +
                                              system_words(errno) + ".");
    }
    if (count == 0) break;
    end_ += static_cast<size_t>(count);
  }
  return end_ - begin_;
}

Result<std::span<const std::byte>> LogReader::next() {
  IGNIS_TRY_ASSIGN(size_t available, buffer(8));
  if (available == 0) {
    return Error(ErrorCode::NotFound, "The log '" + path_ + "' ends.", "EndOfLog");
  }
  const auto head = [&] {
    const auto* bytes = reinterpret_cast<const std::byte*>(buffer_.data());  // NOLINT
    return std::span(bytes + begin_, end_ - begin_);
  };
  auto size_bytes = framed_size(head());
  if (size_bytes && *size_bytes == 0) {  // a table of many segments
    IGNIS_TRY_ASSIGN(available, buffer(kMaxSegmentTableBytes));
    size_bytes = framed_size(head());
  }
  if (!size_bytes) {
    return std::move(size_bytes)
        .error()
        .with_context("byte " + std::to_string(offset_bytes_) + " of '" + path_ + "'");
  }
  const size_t wanted = *size_bytes == 0 ? available + 1 : *size_bytes;
  IGNIS_TRY_ASSIGN(available, buffer(wanted));
  if (available < wanted) {
    return Error(ErrorCode::InvalidArgument,
                 "The log '" + path_ + "' ends inside a message: it has " +
                     std::to_string(available) + " of " +
                     (*size_bytes == 0 ? "more" : std::to_string(*size_bytes)) + " bytes at byte " +
                     std::to_string(offset_bytes_) + ". All messages before it are whole.",
                 "TruncatedMessage");
  }
  const std::span<const std::byte> message = head().first(wanted);
  begin_ += wanted;
  offset_bytes_ += wanted;
  return message;
}

std::string quality_log_path(const std::string& path) { return path + ".quality"; }

}  // namespace ignis::pipeline
