#include "ignis/pipeline/frames/raw_writer.h"

#include "ignis/base/log.h"
#include "ignis/pipeline/frames/file_descriptor.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/raw_index.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

namespace ignis::pipeline {
namespace {

/// Frames that the index on disk may lack while a recording runs.
constexpr size_t kIndexPeriod = 1024;

Error file_error(const std::string& path, int number) {
  const bool is_full = number == ENOSPC || number == EDQUOT || number == EFBIG;
  return Error(is_full ? ErrorCode::OutOfMemory : ErrorCode::Internal,
               "'" + path + "' cannot be written: " + std::strerror(number) + ".",
               is_full ? "DiskFull" : "FrameFile");
}

Result<FileDescriptor> create_file(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return file_error(path, errno);
  return fd;
}

Status write_all(int fd, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(path, errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return Status::ok();
}

}  // namespace

struct RawWriter::State {
  std::string path;
  uint64_t size_limit = 0;
  FileDescriptor fd;
  RawIndex index;
  size_t indexed = 0;  ///< frames that the index on disk knows
  uint64_t size_bytes = 0;
  bool is_closed = false;

  /// The index as a whole, put in place of the old one at once, so that a reader never finds half of it.
  Status write_index() {
    const std::string final_path = path + ".json";
    const std::string new_path = final_path + ".new";
    {
      IGNIS_TRY_ASSIGN(const FileDescriptor file, create_file(new_path));
      const std::string text = to_json(index);
      IGNIS_TRY(write_all(file.get(), new_path, std::as_bytes(std::span<const char>(text))));
    }
    if (std::rename(new_path.c_str(), final_path.c_str()) != 0)
      return file_error(final_path, errno);
    indexed = index.frames.size();
    return Status::ok();
  }
};

RawWriter::RawWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}

RawWriter::~RawWriter() {
  if (Status status = close(); !status) IGNIS_LOG(Error, "frames") << status.error().to_string();
}

Result<std::unique_ptr<RawWriter>> RawWriter::create(const std::string& path, double fps,
                                                     uint64_t size_limit) {
  if (!(fps >= 0.1 && fps <= 1000)) {
    return Error(ErrorCode::InvalidArgument,
                 "A rate of " + std::to_string(fps) +
                     " frames per second is not possible; it lies between 0.1 and "
                     "1000.",
                 "FrameRate");
  }
  auto state = std::make_unique<State>();
  state->path = path;
  state->size_limit = size_limit;
  state->index.fps = fps;
  // An index of an earlier recording would be wrong from here on.
  if (::unlink((path + ".json").c_str()) != 0 && errno != ENOENT)
    return file_error(path + ".json", errno);
  IGNIS_TRY_ASSIGN(state->fd, create_file(path));
  return std::unique_ptr<RawWriter>(new RawWriter(std::move(state)));
}

Status RawWriter::write(const Frame& frame) {
  State& s = *state_;
  if (s.is_closed) {
    return Error(ErrorCode::InvalidArgument, "The recording '" + s.path + "' is closed.",
                 "FrameFile");
  }
  if (s.index.frames.empty()) {
    IGNIS_TRY(check_layout(frame.layout, frame.bytes.size()));
    s.index.layout = frame.layout;
    s.index.stream_id = frame.info.stream_id;
  } else if (!(frame.layout == s.index.layout)) {
    return Error(ErrorCode::InvalidArgument,
                 "Frame " + std::to_string(frame.info.frame_id) + " is " + to_string(frame.layout) +
                     "; the recording '" + s.path + "' is " + to_string(s.index.layout) +
                     ". Begin a new recording.",
                 "LayoutChanged");
  }
  const uint64_t frame_bytes = static_cast<uint64_t>(s.index.layout.size_bytes);
  if (frame.bytes.size() < frame_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 "Frame " + std::to_string(frame.info.frame_id) + " has " +
                     std::to_string(frame.bytes.size()) + " bytes; its layout needs " +
                     std::to_string(frame_bytes) + ".",
                 "TornFrame");
  }
  if (s.size_bytes + frame_bytes > s.size_limit) {
    return Error(ErrorCode::OutOfMemory,
                 "The recording '" + s.path + "' has " + std::to_string(s.size_bytes) +
                     " bytes; one more frame would exceed its limit of " +
                     std::to_string(s.size_limit) + ".",
                 "SizeLimit");
  }
  if (Status status = write_all(s.fd.get(), s.path, frame.bytes.first(frame_bytes)); !status) {
    // Half a frame would shift all that follow.
    if (::ftruncate(s.fd.get(), static_cast<off_t>(s.size_bytes)) == 0)
      ::lseek(s.fd.get(), static_cast<off_t>(s.size_bytes), SEEK_SET);
    return status;
  }
  s.size_bytes += frame_bytes;
  s.index.frames.push_back({frame.info.frame_id, frame.info.timestamp_sof_ns,
                            frame.info.timestamp_eof_ns, frame.info.valid});
  const size_t count = s.index.frames.size();
  if (count < 2 * s.indexed && count < s.indexed + kIndexPeriod) return Status::ok();
  return s.write_index();
}

Status RawWriter::close() {
  State& s = *state_;
  if (s.is_closed) return Status::ok();
  s.is_closed = true;
  s.fd = FileDescriptor();
  if (s.index.frames.empty()) return Status::ok();
  return s.write_index();
}

uint64_t RawWriter::frame_count() const { return state_->index.frames.size(); }

}  // namespace ignis::pipeline
