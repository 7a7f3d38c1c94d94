#include "ignis/pipeline/frames/file_source.h"

#include "ignis/pipeline/frames/file_descriptor.h"
#include "ignis/pipeline/frames/frame_pool.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/raw_index.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr uint64_t kMaxIndexBytes = uint64_t{256} << 20;

struct OpenFile {
  FileDescriptor fd;
  uint64_t size_bytes = 0;
};

Result<OpenFile> open_file(const std::string& path) {
  OpenFile file;
  // Non-blocking, or a pipe without a writer would hold us up before it is refused.
  file.fd = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.fd) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::NotFound : ErrorCode::InvalidArgument;
    return Error(code, "'" + path + "' cannot be opened: " + std::strerror(errno) + ".",
                 "FrameFile");
  }
  struct stat status{};
  if (::fstat(file.fd.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return Error(ErrorCode::InvalidArgument, "'" + path + "' is not a regular file.", "FrameFile");
  file.size_bytes = static_cast<uint64_t>(status.st_size);
  return file;
}

/// Reads `bytes` from `offset` on; returns how many there were.
Result<uint64_t> read_at(int fd, uint64_t offset, std::span<std::byte> bytes) {
  uint64_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return Error(ErrorCode::Internal,
                   std::string("Reading fails: ") + std::strerror(errno) + ".");
    if (count == 0) break;
    done += static_cast<uint64_t>(count);
  }
  return done;
}

/// Nothing when there is no file of that name.
Result<std::optional<RawIndex>> read_index(const std::string& path) {
  Result<OpenFile> file = open_file(path);
  if (!file) {
    if (file.error().code() == ErrorCode::NotFound) return std::optional<RawIndex>();
    return std::move(file).error();
  }
  if (file->size_bytes > kMaxIndexBytes) {
    return Error(ErrorCode::InvalidArgument,
                 "The index '" + path + "' has " + std::to_string(file->size_bytes) +
                     " bytes; at most " + std::to_string(kMaxIndexBytes) + " are read.",
                 "FrameIndex");
  }
  std::string text(file->size_bytes, '\0');
  IGNIS_TRY_ASSIGN(const uint64_t read,
                   read_at(file->fd.get(), 0, std::as_writable_bytes(std::span<char>(text))));
  text.resize(read);
  Result<RawIndex> index = parse_raw_index(text);
  if (!index) return std::move(index).error().with_context("'" + path + "'");
  return std::optional<RawIndex>(*std::move(index));
}

}  // namespace

struct FileSource::State {
  std::string path;
  OpenFile file;
  RawIndex index;
  Pace pace = Pace::RealTime;
  bool is_looped = false;
  uint64_t count = 0;    ///< whole frames in the file
  bool is_torn = false;  ///< the file ends inside a frame, or before the index does
  uint64_t period_ns = 0;
  FramePool pool;

  uint64_t start_ns = 0;  ///< when turn 0 was due; 0: not begun
  uint64_t turn = 0;      ///< the next frame's number, going on through the loops
  bool is_tear_told = false;
  uint64_t dropped = 0;

  Error torn() const;
  RawFrameRecord record_of(uint64_t turn_number) const;
  Result<Frame> receive(std::chrono::nanoseconds timeout);
};

Error FileSource::State::torn() const {
  const uint64_t frame_bytes = static_cast<uint64_t>(index.layout.size_bytes);
  const uint64_t frames = std::max<uint64_t>(index.frames.size(), count + 1);
  return Error(ErrorCode::InvalidArgument,
               "'" + path + "' is torn: " + std::to_string(frames) + " frames of " +
                   std::to_string(frame_bytes) + " bytes need " +
                   std::to_string(frames * frame_bytes) + " bytes; the file has " +
                   std::to_string(file.size_bytes) + ".",
               "TornFile");
}

RawFrameRecord FileSource::State::record_of(uint64_t turn_number) const {
  const uint64_t position = turn_number % count;
  RawFrameRecord record;
  if (position < index.frames.size()) {
    record = index.frames[position];
  } else if (index.frames.empty()) {
    record.id = static_cast<uint32_t>(position);
  } else {
    const uint64_t beyond = position - (index.frames.size() - 1);
    record.id = static_cast<uint32_t>(index.frames.back().id + beyond);
  }
  if (turn_number < count) return record;
  // Ids go on behind the largest one of a pass.
  uint64_t pass = count;
  if (!index.frames.empty()) {
    const uint64_t beyond = count > index.frames.size() ? count - index.frames.size() : 0;
    const uint32_t first = index.frames.front().id;
    const uint32_t last = static_cast<uint32_t>(index.frames.back().id + beyond);
    pass = last >= first ? uint64_t{last - first} + 1 : count;
  }
  record.id = static_cast<uint32_t>(record.id + turn_number / count * pass);
  return record;
}

Result<Frame> FileSource::State::receive(std::chrono::nanoseconds timeout) {
  if (turn >= count && turn % count == 0 && is_torn && !is_tear_told) {
    is_tear_told = true;
    return torn();
  }
  if (turn >= count && !is_looped) {
    return Error(ErrorCode::NotFound, "'" + path + "' has no more frames.", "EndOfStream");
  }
  uint64_t now = monotonic_ns();
  if (start_ns == 0) start_ns = now;
  uint64_t due_ns = now;
  if (pace != Pace::Fast) {
    due_ns = start_ns + turn * period_ns;
    if (pace == Pace::RealTime && now >= due_ns + period_ns) {
      uint64_t skipped = (now - due_ns) / period_ns;
      if (!is_looped) skipped = std::min(skipped, count - 1 - turn);  // the last one always comes
      dropped += skipped;
      turn += skipped;
      due_ns += skipped * period_ns;
    }
    const uint64_t limit_ns = now + static_cast<uint64_t>(std::max<int64_t>(timeout.count(), 0));
    const uint64_t until_ns = std::min(due_ns, limit_ns);
    if (until_ns > now) std::this_thread::sleep_for(std::chrono::nanoseconds(until_ns - now));
    if (due_ns > limit_ns)
      return Error(ErrorCode::Timeout, "The next frame of '" + path + "' is not due yet.");
    // Behind by design: the frame is as old as if it came now.
    if (pace == Pace::EveryFrame) {
      now = monotonic_ns();
      if (now > due_ns + period_ns) {
        start_ns += now - due_ns;
        due_ns = now;
      }
    }
  }
  IGNIS_TRY_ASSIGN(WritableFrame writable, pool.acquire(index.layout));
  const uint64_t offset = turn % count * static_cast<uint64_t>(index.layout.size_bytes);
  IGNIS_TRY_ASSIGN(const uint64_t read, read_at(file.fd.get(), offset, writable.bytes));
  if (read != writable.bytes.size()) {  // cut short since it was opened
    file.size_bytes = offset + read;
    count = std::max<uint64_t>(turn % count, 1);
    turn = count;
    is_looped = false;
    is_torn = is_tear_told = true;
    return torn();
  }
  const RawFrameRecord record = record_of(turn);
  const uint64_t exposure_ns = record.eof_ns > record.sof_ns ? record.eof_ns - record.sof_ns : 0;
  FrameInfo& info = writable.frame.info;
  info.frame_id = record.id;
  info.stream_id = index.stream_id;
  info.valid = record.valid;
  info.timestamp_eof_ns = due_ns;  // never ahead of now
  info.timestamp_sof_ns = due_ns - std::min(exposure_ns, period_ns);
  info.receive_time_ns = monotonic_ns();
  ++turn;
  if (is_looped && turn % count == 0) is_tear_told = false;
  return std::move(writable.frame);
}

FileSource::FileSource(std::unique_ptr<State> state) : state_(std::move(state)) {}
FileSource::~FileSource() = default;

Result<std::unique_ptr<FileSource>> FileSource::open(const std::string& path,
                                                     FileSourceOptions options) {
  auto state = std::make_unique<State>();
  state->path = path;
  IGNIS_TRY_ASSIGN(state->file, open_file(path));
  IGNIS_TRY_ASSIGN(std::optional<RawIndex> index, read_index(path + ".json"));
  if (!index && !options.layout) {
    return Error(
        ErrorCode::InvalidArgument,
        "'" + path +
            "' holds raw frames, and nothing tells their size: give width, height and format, or "
            "write '" +
            path +
            ".json' with {\"format\": \"nv12\", \"width\": 1928, \"height\": 1208, "
            "\"fps\": 20}.",
        "FrameIndex");
  }
  if (index) state->index = *std::move(index);
  if (options.layout) {
    IGNIS_TRY(check_layout(*options.layout, static_cast<uint64_t>(kMaxFrameBytes)));
    state->index.layout = *options.layout;
  }
  const double fps = options.fps == 0 ? state->index.fps : options.fps;
  if (!(fps >= 0.1 && fps <= 1000)) {
    return Error(ErrorCode::InvalidArgument,
                 "A rate of " + std::to_string(fps) +
                     " frames per second is not possible; it lies between 0.1 and "
                     "1000.",
                 "FrameRate");
  }
  state->index.fps = fps;
  state->period_ns = static_cast<uint64_t>(1e9 / fps);
  state->pace = options.pace;
  state->is_looped = options.is_looped;
  const uint64_t frame_bytes = static_cast<uint64_t>(state->index.layout.size_bytes);
  state->count = state->file.size_bytes / frame_bytes;
  state->is_torn =
      state->file.size_bytes % frame_bytes != 0 || state->count < state->index.frames.size();
  if (state->count == 0) return state->torn();
  return std::unique_ptr<FileSource>(new FileSource(std::move(state)));
}

Result<Frame> FileSource::receive(std::chrono::nanoseconds timeout) {
  return state_->receive(timeout);
}
uint64_t FileSource::dropped_count() const { return state_->dropped; }
const FrameLayout& FileSource::layout() const { return state_->index.layout; }
uint64_t FileSource::frame_count() const { return state_->count; }

std::string FileSource::describe() const {
  std::string fps = std::to_string(state_->index.fps);
  fps.erase(fps.find_last_not_of('0') + 1);
  if (fps.ends_with('.')) fps.pop_back();
  return state_->path + " (" + to_string(state_->index.layout) + ", " + fps + " Hz, " +
         std::to_string(state_->count) + " frames)";
}

}  // namespace ignis::pipeline
