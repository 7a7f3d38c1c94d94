#include "tools/ignis/dm/recording.h"

#include "ignis/pipeline/frames/frame_pool.h"
#include "ignis/pipeline/frames/raw_writer.h"

#include "tools/ignis/exit_code.h"
#include "tools/video/recorder.h"
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace ignis::tools {
namespace {

using pipeline::Frame;

/// Video. The recorder has its own thread and copies; it is made when the first frame tells the size.
class VideoRecording final : public Recording {
 public:
  VideoRecording(std::string path, double fps) : path_(std::move(path)), fps_(fps) {
    state_.is_on = true;
  }

  void offer(const Frame& frame) override {
    const std::scoped_lock lock(mutex_);
    if (recorder_ == nullptr && !has_failed_) {
      RecorderOptions options;
      options.width_px = frame.layout.width_px;
      options.height_px = frame.layout.height_px;
      options.fps = fps_;
      auto made = Recorder::create(path_, options);
      if (made) {
        recorder_ = *std::move(made);
      } else {
        has_failed_ = true;
        ++state_.errors;
        note_error(state_, made.error());
      }
    }
    if (recorder_ == nullptr) {
      ++state_.lost;
      return;
    }
    if (const Status status = recorder_->write(frame); !status) {
      ++state_.lost;
      if (status.error().reason() != "QueueFull") ++state_.errors;
      note_error(state_, status.error());
    }
    state_.done = recorder_->written_count();
  }

  SinkState state() const override {
    const std::scoped_lock lock(mutex_);
    return state_;
  }

  void close(std::chrono::nanoseconds limit) override {
    const std::scoped_lock lock(mutex_);
    if (recorder_ == nullptr) return;
    if (const Status status = recorder_->close(limit); !status) {
      ++state_.errors;
      note_error(state_, status.error());
    }
    state_.done = recorder_->written_count();
    recorder_.reset();
    has_failed_ = true;  // closed for good
  }

 private:
  std::string path_;
  double fps_;
  mutable std::mutex mutex_;  // nobody holds it for long: the recorder itself never waits
  SinkState state_;
  std::unique_ptr<Recorder> recorder_;
  bool has_failed_ = false;
};

/// Raw frames. A thread writes copies from a small pool.
class RawRecording final : public Recording {
 public:
  static constexpr uint32_t kBuffers = 4;

  explicit RawRecording(std::unique_ptr<pipeline::RawWriter> writer)
      : pool_(kBuffers), writer_(std::move(writer)), thread_([this] { write_all(); }) {
    state_.is_on = true;
  }
  ~RawRecording() override { close(std::chrono::seconds(10)); }

  void offer(const Frame& frame) override {
    if (buffers_in_use_.load() == kBuffers) {  // the usual way to lose one: it shall cost nothing
      const std::scoped_lock lock(mutex_);
      ++state_.lost;
      return;
    }
    auto copy = pool_.acquire(frame.layout);
    const bool fits = copy && copy->bytes.size() <= frame.bytes.size();
    if (fits) {
      std::memcpy(copy->bytes.data(), frame.bytes.data(), copy->bytes.size());
      copy->frame.info = frame.info;
      // The producer may have come round to the bytes meanwhile; then they are of two frames.
      if (frame.memory != nullptr && !frame.memory->is_intact()) copy->frame.info.valid = false;
    }
    {
      const std::scoped_lock lock(mutex_);
      if (!fits || is_closing_) {
        ++state_.lost;
        if (!copy) {
          ++state_.errors;
          note_error(state_, copy.error());
        }
        return;
      }
      ++buffers_in_use_;
      queue_[(first_ + count_++) % kBuffers] = std::move(copy->frame);
    }
    changed_.notify_one();
  }

  SinkState state() const override {
    const std::scoped_lock lock(mutex_);
    return state_;
  }

  void close(std::chrono::nanoseconds limit) override {
    if (!thread_.joinable()) return;
    {
      std::unique_lock lock(mutex_);
      is_closing_ = true;
      changed_.notify_one();
      written_.wait_for(lock, limit, [&] { return count_ == 0; });
      state_.lost += count_;
      count_ = 0;
    }
    thread_.join();  // at most one frame's write is left
    const Status status = writer_->close();
    const std::scoped_lock lock(mutex_);
    if (!status) {
      ++state_.errors;
      note_error(state_, status.error());
    }
  }

 private:
  void write_all() {
    for (;;) {
      Frame frame;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return count_ > 0 || is_closing_; });
        if (count_ == 0) return;
        frame = std::move(queue_[first_]);
        first_ = (first_ + 1) % kBuffers;
        --count_;
      }
      const Status status = writer_->write(frame);
      frame = {};
      --buffers_in_use_;
      {
        const std::scoped_lock lock(mutex_);
        if (status) {
          ++state_.done;
        } else {
          ++state_.lost;
          ++state_.errors;
          note_error(state_, status.error());
        }
      }
      written_.notify_all();
    }
  }

  pipeline::FramePool pool_;  // used by the pipeline's thread only
  std::unique_ptr<pipeline::RawWriter> writer_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_, written_;
  std::array<Frame, kBuffers> queue_;
  std::atomic<uint32_t> buffers_in_use_{0};  ///< waiting, or being written
  uint32_t first_ = 0, count_ = 0;
  bool is_closing_ = false;
  SinkState state_;
  std::thread thread_;
};

}  // namespace

void note_error(SinkState& state, const Error& error) {
  const std::string& text = error.message();
  const size_t length = std::min(text.size(), state.last_error.size() - 1);
  std::copy_n(text.begin(), length, state.last_error.begin());
  state.last_error[length] = '\0';
}

Result<std::unique_ptr<Recording>> Recording::open(const std::string& path, double fps) {
  if (path.ends_with(".mp4")) {
    // The recorder is made with the first frame; a path that cannot be written is to be told now.
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
      return Error(ErrorCode::InvalidArgument,
                   "Recording '" + path + "' cannot be written: " + std::strerror(errno) + ".",
                   "File");
    }
    ::close(fd);
    return std::unique_ptr<Recording>(std::make_unique<VideoRecording>(path, fps));
  }
  auto writer = pipeline::RawWriter::create(path, fps);
  if (!writer) {
    const Error& error = writer.error();
    if (error.code() == ErrorCode::OutOfMemory) return error;
    return Error(ErrorCode::InvalidArgument, error.message(), "File");
  }
  return std::unique_ptr<Recording>(std::make_unique<RawRecording>(*std::move(writer)));
}

}  // namespace ignis::tools
