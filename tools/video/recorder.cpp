#include "tools/video/recorder.h"

#include "ignis/base/log.h"

#include "tools/video/av.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace ignis::tools {
namespace {

constexpr int kIoBufferBytes = 1 << 16;
/// Of presentation times: a microsecond.
constexpr AVRational kTimeBase{1, 1'000'000};
/// A camera that stood still must not make a video of hours.
constexpr int64_t kMaxGapUs = 10'000'000;
/// How far below the others the encoder's thread runs.
constexpr int kNiceness = 10;

enum class Kind : uint8_t { Nv12, I420, Rgb };

/// One waiting picture, rows without padding.
struct Picture {
  Kind kind = Kind::Nv12;
  uint64_t time_ns = 0;
  std::vector<uint8_t> bytes;  ///< keeps its memory from picture to picture
};

/// The file as FFmpeg writes it. At a fixed address: FFmpeg holds a pointer.
struct Output {
  OwnedFd fd;
  uint64_t size_limit_bytes = 0;
  uint64_t size_bytes = 0;
  int fault = 0;  ///< errno of the first write that failed
  bool is_too_large = false;

  static int write(void* opaque, uint8_t* buffer, int size_bytes) {
    Output& output = *static_cast<Output*>(opaque);
    if (output.fault != 0 || output.is_too_large) return AVERROR(EIO);
    const auto size = static_cast<size_t>(size_bytes);
    if (output.size_bytes + size > output.size_limit_bytes) {
      output.is_too_large = true;
      return AVERROR(EIO);
    }
    for (size_t done = 0; done < size;) {
      const ssize_t count = ::write(output.fd.get(), buffer + done, size - done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        output.fault = count < 0 ? errno : EIO;
        return AVERROR(EIO);
      }
      done += static_cast<size_t>(count);
    }
    output.size_bytes += size;
    return size_bytes;
  }
};

void copy_rows(const std::byte* from, int64_t stride, int row_bytes, int rows, uint8_t* to) {
  for (int y = 0; y < rows; ++y) {
    std::memcpy(to + static_cast<int64_t>(y) * row_bytes, from + y * stride,
                static_cast<size_t>(row_bytes));
  }
}

const AVCodec* choose_encoder(const std::string& wanted) {
  if (!wanted.empty()) return avcodec_find_encoder_by_name(wanted.c_str());
  for (const char* name : {"libx264", "libopenh264", "mpeg4"}) {
    if (const AVCodec* codec = avcodec_find_encoder_by_name(name)) return codec;
  }
  return nullptr;
}

Status check_options(const RecorderOptions& options) {
  const bool has_size = options.width_px >= 16 && options.height_px >= 16 &&
                        options.width_px <= 4096 && options.height_px <= 4096 &&
                        options.width_px % 2 == 0 && options.height_px % 2 == 0;
  if (!has_size || !(options.fps >= 1 && options.fps <= 240) || options.queue_limit < 1 ||
      options.queue_limit > 64 || options.quality < 0 || options.quality > 51) {
    return Error(ErrorCode::InvalidArgument,
                 "A recording of " + std::to_string(options.width_px) + "x" +
                     std::to_string(options.height_px) + " at " + std::to_string(options.fps) +
                     " Hz with a queue of " + std::to_string(options.queue_limit) +
                     " and quality " + std::to_string(options.quality) +
                     " is refused; sides are even and 16 to 4096, rates 1 to 240 Hz, queues 1 to "
                     "64, qualities 0 to 51.",
                 "BadRecording");
  }
  return Status::ok();
}

}  // namespace

struct Recorder::State {
  std::string path;
  RecorderOptions options;
  Output output;

  // The encoder's thread alone uses these once it runs.
  AvIo io;
  struct FreeOutput {
    void operator()(AVFormatContext* context) const { avformat_free_context(context); }
  };
  std::unique_ptr<AVFormatContext, FreeOutput> format;
  AvCodec codec;
  AvFramePtr frame;
  AvPacketPtr packet;
  AvScaler scaler;
  AVStream* stream = nullptr;
  int64_t last_pts_us = -1;
  uint64_t last_time_ns = 0;

  mutable std::mutex mutex;  ///< guards what follows
  std::condition_variable changed;
  std::vector<Picture> waiting;  ///< oldest first; a handful
  std::vector<Picture> spare;    ///< with their memory
  bool is_closing = false;
  bool is_finished = false;
  std::optional<std::chrono::steady_clock::time_point> give_up_at;
  std::optional<Error> fault;
  uint64_t written = 0, dropped = 0;
  bool is_closed = false;

  std::thread thread;

  Status open();
  Status open_encoder(const AVCodec* encoder);
  void run();
  Status encode(const Picture& picture);
  Status fill_frame(const Picture& picture);
  int64_t next_pts_us(uint64_t time_ns);
  Status drain();
  Status av_fault(int code, const char* step) const;
  /// Queues a picture that `fill` writes into `size_bytes` bytes.
  template <typename Fill>
  Status queue(Kind kind, uint64_t time_ns, size_t size_bytes, std::chrono::nanoseconds wait,
               Fill fill);
};

Status Recorder::State::av_fault(int code, const char* step) const {
  if (output.is_too_large) {
    return Error(ErrorCode::OutOfMemory,
                 "The recording '" + path + "' has reached its limit of " +
                     std::to_string(options.size_limit_bytes) + " bytes and stops.",
                 "SizeLimit");
  }
  if (output.fault == ENOSPC || output.fault == EDQUOT) {
    return Error(ErrorCode::OutOfMemory,
                 "The disk is full: the recording '" + path + "' stops after " +
                     std::to_string(output.size_bytes) + " bytes.",
                 "DiskFull");
  }
  if (output.fault != 0) {
    return Error(ErrorCode::Internal, "The recording '" + path + "' cannot be written: " +
                                          std::strerror(output.fault) + ".");
  }
  return Error(ErrorCode::Internal, "The recording '" + path + "' stops in " + std::string(step) +
                                        ": " + av_words(code) + ".");
}

Status Recorder::State::open() {
  IGNIS_TRY(load_av());
  const AVCodec* encoder = choose_encoder(options.encoder);
  if (encoder == nullptr) {
    return Error(
        ErrorCode::Unsupported,
        "This FFmpeg has no encoder '" +
            (options.encoder.empty() ? "libx264', 'libopenh264' or 'mpeg4" : options.encoder) +
            "'; record to a .nv12 file instead.",
        "NoEncoder");
  }
  IGNIS_TRY(open_encoder(encoder));

  output.fd = OwnedFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK,
                             S_IRUSR | S_IWUSR));
  if (output.fd.get() < 0) {
    return Error(ErrorCode::InvalidArgument,
                 "The recording '" + path + "' cannot be made: " + std::strerror(errno) + ".");
  }
  output.size_limit_bytes = options.size_limit_bytes;
  auto* buffer = static_cast<uint8_t*>(av_malloc(kIoBufferBytes));
  if (buffer == nullptr) return Error(ErrorCode::OutOfMemory, "There is no memory for FFmpeg.");
  io.reset(avio_alloc_context(buffer, kIoBufferBytes, 1, &output, nullptr, Output::write, nullptr));
  if (io == nullptr) {
    av_free(buffer);
    return Error(ErrorCode::OutOfMemory, "There is no memory for FFmpeg.");
  }
  AVFormatContext* context = nullptr;
  int code = avformat_alloc_output_context2(&context, nullptr, "mp4", nullptr);
  if (code < 0) return av_fault(code, "opening");
  format.reset(context);
  context->pb = io.get();
  context->flags |= AVFMT_FLAG_CUSTOM_IO;
  stream = avformat_new_stream(context, nullptr);
  if (stream == nullptr) return Error(ErrorCode::OutOfMemory, "There is no memory for FFmpeg.");
  code = avcodec_parameters_from_context(stream->codecpar, codec.get());
  stream->time_base = kTimeBase;
  stream->avg_frame_rate = codec->framerate;
  AVDictionary* settings = nullptr;
  av_dict_set(&settings, "movflags", "frag_keyframe+empty_moov+default_base_moof", 0);
  if (code >= 0) code = avformat_write_header(context, &settings);
  av_dict_free(&settings);
  avio_flush(io.get());
  if (code < 0 || io->error < 0) return av_fault(code < 0 ? code : io->error, "its beginning");
  return Status::ok();
}

Status Recorder::State::open_encoder(const AVCodec* encoder) {
  codec.reset(avcodec_alloc_context3(encoder));
  frame.reset(av_frame_alloc());
  packet.reset(av_packet_alloc());
  if (codec == nullptr || frame == nullptr || packet == nullptr) {
    return Error(ErrorCode::OutOfMemory, "There is no memory for FFmpeg.");
  }
  codec->width = options.width_px;
  codec->height = options.height_px;
  codec->pix_fmt = AV_PIX_FMT_YUV420P;
  codec->framerate = av_d2q(options.fps, 100'000);
  // MPEG-4 counts time in at most 16 bits for a second; the file's own times are finer.
  codec->time_base = std::string_view(encoder->name) == "mpeg4" ? AVRational{1, 60'000} : kTimeBase;
  codec->gop_size = std::max(1, static_cast<int>(std::lround(options.fps)));  // a fragment a second
  codec->max_b_frames = 0;
  codec->thread_count = 1;
  codec->color_range = AVCOL_RANGE_MPEG;
  codec->colorspace = AVCOL_SPC_SMPTE170M;
  codec->color_primaries = AVCOL_PRI_SMPTE170M;
  codec->color_trc = AVCOL_TRC_SMPTE170M;
  codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  AVDictionary* settings = nullptr;
  if (std::string_view(encoder->name) == "libx264") {
    av_dict_set(&settings, "preset", "ultrafast", 0);
    av_dict_set_int(&settings, "crf", options.quality, 0);
  } else {
    codec->flags |= AV_CODEC_FLAG_QSCALE;
    codec->global_quality = FF_QP2LAMBDA * std::clamp(2 + options.quality / 6, 1, 31);
  }
  int code = avcodec_open2(codec.get(), encoder, &settings);
  av_dict_free(&settings);
  if (code < 0) {
    return Error(ErrorCode::Unsupported,
                 "The encoder '" + std::string(encoder->name) + "' does not take " +
                     std::to_string(options.width_px) + "x" + std::to_string(options.height_px) +
                     ": " + av_words(code) + ".",
                 "NoEncoder");
  }
  frame->format = codec->pix_fmt;
  frame->width = codec->width;
  frame->height = codec->height;
  code = av_frame_get_buffer(frame.get(), 0);
  if (code < 0) return Error(ErrorCode::OutOfMemory, "There is no memory for FFmpeg.");
  return Status::ok();
}

Status Recorder::State::fill_frame(const Picture& picture) {
  const int code = av_frame_make_writable(frame.get());
  if (code < 0) return av_fault(code, "taking memory");
  const int width = options.width_px, height = options.height_px;
  const AVPixelFormat kind = picture.kind == Kind::Rgb    ? AV_PIX_FMT_RGB24
                             : picture.kind == Kind::Nv12 ? AV_PIX_FMT_NV12
                                                          : AV_PIX_FMT_YUV420P;
  const uint8_t* planes[4] = {};
  int strides[4] = {};
  uint8_t* filled[4] = {};
  av_image_fill_arrays(filled, strides, picture.bytes.data(), kind, width, height, 1);
  std::copy(filled, filled + 4, planes);
  scaler.reset(sws_getCachedContext(scaler.release(), width, height, kind, width, height,
                                    codec->pix_fmt, SWS_POINT, nullptr, nullptr, nullptr));
  if (scaler == nullptr) return av_fault(AVERROR(EINVAL), "converting pixels");
  if (sws_scale(scaler.get(), planes, strides, 0, height, frame->data, frame->linesize) != height) {
    return av_fault(AVERROR(EINVAL), "converting pixels");
  }
  return Status::ok();
}

int64_t Recorder::State::next_pts_us(uint64_t time_ns) {
  const auto period_us = static_cast<int64_t>(1e6 / options.fps);
  const uint64_t before_ns = std::exchange(last_time_ns, time_ns);
  if (last_pts_us < 0) return 0;
  if (options.has_even_times) return last_pts_us + period_us;
  // A clock that stands still or goes back is the camera's fault, and is to be seen in the video all the same.
  if (time_ns <= before_ns) return last_pts_us + period_us;
  const auto gap_us =
      static_cast<int64_t>(std::min<uint64_t>((time_ns - before_ns) / 1000, kMaxGapUs));
  return last_pts_us + std::max<int64_t>(1000, gap_us);
}

Status Recorder::State::encode(const Picture& picture) {
  IGNIS_TRY(fill_frame(picture));
  last_pts_us = next_pts_us(picture.time_ns);
  frame->pts = av_rescale_q(last_pts_us, kTimeBase, codec->time_base);
  frame->pict_type = AV_PICTURE_TYPE_NONE;
  const int code = avcodec_send_frame(codec.get(), frame.get());
  if (code < 0) return av_fault(code, "encoding");
  return drain();
}

/// Writes what the encoder has ready.
Status Recorder::State::drain() {
  for (;;) {
    int code = avcodec_receive_packet(codec.get(), packet.get());
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return Status::ok();
    if (code < 0) return av_fault(code, "encoding");
    av_packet_rescale_ts(packet.get(), codec->time_base, stream->time_base);
    packet->stream_index = stream->index;
    code = av_write_frame(format.get(), packet.get());
    av_packet_unref(packet.get());
    // A fragment that could not be written shows only in the byte stream.
    if (code >= 0 && io->error < 0) code = io->error;
    if (code < 0) return av_fault(code, "writing");
  }
}

void Recorder::State::run() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNiceness);
  Status status;
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return is_closing || !waiting.empty(); });
    if (waiting.empty()) break;
    if (give_up_at && std::chrono::steady_clock::now() >= *give_up_at) {
      dropped += waiting.size();
      break;
    }
    Picture picture = std::move(waiting.front());
    waiting.erase(waiting.begin());
    lock.unlock();
    status = encode(picture);
    lock.lock();
    spare.push_back(std::move(picture));
    if (!status) break;
    ++written;
    changed.notify_all();
  }
  if (status) {
    lock.unlock();
    // Ends the stream: the encoder gives what it held back, the muxer its last fragment.
    int code = avcodec_send_frame(codec.get(), nullptr);
    status = code < 0 ? av_fault(code, "encoding") : drain();
    if (status) {
      code = av_write_trailer(format.get());
      avio_flush(io.get());
      if (code >= 0 && io->error < 0) code = io->error;
      if (code < 0) status = av_fault(code, "its end");
    }
    lock.lock();
  }
  if (!status) {
    fault = std::move(status).error();
    dropped += waiting.size();
    waiting.clear();
  }
  is_finished = true;
  changed.notify_all();
}

template <typename Fill>
Status Recorder::State::queue(Kind kind, uint64_t time_ns, size_t size_bytes,
                              std::chrono::nanoseconds wait, Fill fill) {
  Picture picture;
  {
    std::unique_lock<std::mutex> lock(mutex);
    const auto has_room = [&] {
      return fault || is_closing || std::cmp_less(waiting.size(), options.queue_limit);
    };
    if (!has_room() && wait.count() > 0) changed.wait_for(lock, wait, has_room);
    if (fault) return Error(*fault);
    if (is_closing) {
      return Error(ErrorCode::InvalidArgument, "The recording '" + path + "' is closed.");
    }
    if (std::cmp_greater_equal(waiting.size(), options.queue_limit)) {
      ++dropped;
      return Error(ErrorCode::OutOfMemory,
                   "The encoder of '" + path + "' is behind by " +
                       std::to_string(options.queue_limit) + " pictures; this one is left out.",
                   "QueueFull");
    }
    if (!spare.empty()) {
      picture = std::move(spare.back());
      spare.pop_back();
    }
  }
  // Outside the lock: the encoder's thread need not wait for the copy. Only one thread writes, so the room stays.
  picture.kind = kind;
  picture.time_ns = time_ns;
  picture.bytes.resize(size_bytes);
  fill(picture.bytes.data());
  const std::lock_guard<std::mutex> lock(mutex);
  waiting.push_back(std::move(picture));
  changed.notify_all();
  return Status::ok();
}

Recorder::Recorder(std::unique_ptr<State> state) : state_(std::move(state)) {}

Recorder::~Recorder() {
  if (state_->is_closed) return;
  const Status status = close();
  if (!status) IGNIS_LOG(Warning, "video") << status.error().to_string();
}

Result<std::unique_ptr<Recorder>> Recorder::create(const std::string& path,
                                                   const RecorderOptions& options) {
  IGNIS_TRY(check_options(options));
  auto state = std::make_unique<State>();
  state->path = path;
  state->options = options;
  IGNIS_TRY(state->open());
  state->waiting.reserve(static_cast<size_t>(options.queue_limit) + 1);
  state->spare.reserve(static_cast<size_t>(options.queue_limit) + 2);
  State& shared = *state;
  state->thread = std::thread([&shared] { shared.run(); });
  return std::unique_ptr<Recorder>(new Recorder(std::move(state)));
}

Status Recorder::write(const pipeline::Frame& frame, std::chrono::nanoseconds wait) {
  State& s = *state_;
  const pipeline::FrameLayout& layout = frame.layout;
  const int width = s.options.width_px, height = s.options.height_px;
  if (layout.width_px != width || layout.height_px != height ||
      std::cmp_less(frame.bytes.size(), layout.size_bytes)) {
    return Error(ErrorCode::InvalidArgument,
                 "The recording '" + s.path + "' has pictures of " + std::to_string(width) + "x" +
                     std::to_string(height) + "; this frame is " + std::to_string(layout.width_px) +
                     "x" + std::to_string(layout.height_px) + " and is left out.",
                 "LayoutChanged");
  }
  const bool is_nv12 = layout.format == pipeline::PixelFormat::Nv12;
  const int64_t luma_bytes = int64_t{width} * height;
  const std::byte* bytes = frame.bytes.data();
  return s.queue(is_nv12 ? Kind::Nv12 : Kind::I420, frame.info.timestamp_sof_ns,
                 static_cast<size_t>(luma_bytes + luma_bytes / 2), wait, [&](uint8_t* to) {
                   copy_rows(bytes, layout.y_stride, width, height, to);
                   if (is_nv12) {
                     copy_rows(bytes + layout.u_offset, layout.uv_stride, width, height / 2,
                               to + luma_bytes);
                     return;
                   }
                   copy_rows(bytes + layout.u_offset, layout.uv_stride, width / 2, height / 2,
                             to + luma_bytes);
                   copy_rows(bytes + layout.v_offset, layout.uv_stride, width / 2, height / 2,
                             to + luma_bytes + luma_bytes / 4);
                 });
}

Status Recorder::write_rgb(std::span<const uint8_t> rgb, uint64_t time_ns,
                           std::chrono::nanoseconds wait) {
  State& s = *state_;
  const size_t size_bytes = size_t{3} * static_cast<size_t>(s.options.width_px) *
                            static_cast<size_t>(s.options.height_px);
  if (rgb.size() != size_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 "The recording '" + s.path + "' takes pictures of " + std::to_string(size_bytes) +
                     " bytes of RGB; this one has " + std::to_string(rgb.size()) + ".",
                 "LayoutChanged");
  }
  return s.queue(Kind::Rgb, time_ns, size_bytes, wait,
                 [&](uint8_t* to) { std::memcpy(to, rgb.data(), size_bytes); });
}

Status Recorder::close(std::chrono::nanoseconds limit) {
  State& s = *state_;
  if (!s.is_closed) {
    {
      const std::lock_guard<std::mutex> lock(s.mutex);
      s.is_closing = true;
      s.give_up_at = std::chrono::steady_clock::now() + limit;
    }
    s.changed.notify_all();
    s.thread.join();  // at most one picture beyond the limit
    s.is_closed = true;
  }
  return status();
}

uint64_t Recorder::written_count() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->written;
}

uint64_t Recorder::dropped_count() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->dropped;
}

Status Recorder::status() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->fault) return Error(*state_->fault);
  return Status::ok();
}

}  // namespace ignis::tools
