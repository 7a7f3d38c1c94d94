#include "tools/video/ffmpeg_source.h"

#include "ignis/pipeline/frames/frame_pool.h"
#include "ignis/pipeline/frames/layout.h"

#include "tools/video/av.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

namespace ignis::tools {
namespace {

using pipeline::Frame;
using pipeline::monotonic_ns;
using pipeline::Pace;

constexpr int kIoBufferBytes = 1 << 16;
/// Longest pause between two frames that a file is believed.
constexpr uint64_t kMaxGapNs = 10'000'000'000;
/// Frames that readers may hold at once.
constexpr size_t kBufferLimit = 32;

/// The one file, as FFmpeg reads it. At a fixed address: FFmpeg holds a pointer.
struct Input {
  OwnedFd fd;
  uint64_t deadline_ns = 0;  ///< of the step that FFmpeg is in

  static int read(void* opaque, uint8_t* buffer, int size_bytes) {
    const Input& input = *static_cast<Input*>(opaque);
    if (monotonic_ns() > input.deadline_ns) return AVERROR_EXIT;
    for (;;) {
      const ssize_t count = ::read(input.fd.get(), buffer, static_cast<size_t>(size_bytes));
      if (count > 0) return static_cast<int>(count);
      if (count == 0) return AVERROR_EOF;
      if (errno != EINTR) return AVERROR(errno);
    }
  }
  static int64_t seek(void* opaque, int64_t offset, int whence) {
    const Input& input = *static_cast<Input*>(opaque);
    if ((whence & AVSEEK_SIZE) != 0) {
      struct stat status{};
      if (::fstat(input.fd.get(), &status) != 0) return AVERROR(errno);
      return status.st_size;
    }
    const off_t position = ::lseek(input.fd.get(), offset, whence & ~AVSEEK_FORCE);
    return position < 0 ? AVERROR(errno) : position;
  }
  static int is_interrupted(void* opaque) {
    return monotonic_ns() > static_cast<Input*>(opaque)->deadline_ns ? 1 : 0;
  }
};

/// A playlist may name anything on this machine or elsewhere: nothing but the file itself is opened.
int refuse_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EACCES);
}

Result<OwnedFd> open_regular_file(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) {
    return Error(errno == ENOENT ? ErrorCode::NotFound : ErrorCode::InvalidArgument,
                 "The file '" + path + "' cannot be opened: " + std::strerror(errno) + ".");
  }
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error(
        ErrorCode::InvalidArgument,
        "'" + path + "' is not a regular file; a camera is opened with 'v4l2:" + path + "'.",
        "NotAVideo");
  }
  return fd;
}

}  // namespace

struct FfmpegSource::State {
  std::string path;
  FfmpegSourceOptions options;
  Input input;
  AvIo io;  ///< outlives `format`, which reads through it
  AvInput format;
  AvCodec codec;
  AVStream* stream = nullptr;  ///< of `format`
  AvPacketPtr packet;
  AvFramePtr decoded;
  AvScaler scaler;
  pipeline::FramePool pool{kBufferLimit};

  uint32_t next_id = 0;
  uint64_t decoded_count = 0;  ///< since the file's beginning
  bool is_draining = false;    ///< no packet is left, the decoder gives what it still has
  bool is_over = false;
  uint64_t period_ns = 50'000'000;
  double fps = 20;
  std::optional<int64_t> last_pts;
  std::optional<Frame> ready;  ///< decoded ahead
  uint64_t ready_gap_ns = 0;   ///< from the frame before it
  Frame still;                 ///< what a file of one frame repeats
  uint64_t last_due_ns = 0;    ///< of the frame handed over or dropped last; 0: none yet
  uint64_t last_sof_ns = 0;
  uint64_t dropped = 0;

  void start_step() {
    input.deadline_ns = monotonic_ns() + static_cast<uint64_t>(options.step_limit.count());
  }
  Error end_of_stream() const {
    return Error(ErrorCode::NotFound, "'" + path + "' is at its end.", "EndOfStream");
  }
  Error bad_frame(const std::string& words) const {
    return Error(ErrorCode::InvalidArgument,
                 "A part of '" + path + "' behind frame " + std::to_string(next_id) +
                     " cannot be decoded: " + words + ".",
                 "BadFrame");
  }

  Status open();
  Status open_decoder();
  /// Fills `ready`. Errors: those of receive(); Timeout when `limit_ns` passes first.
  Status decode_next(uint64_t limit_ns);
  /// One packet more for the decoder, or the news that there is none.
  Status feed_decoder();
  Status rewind_file();
  Result<Frame> convert();
  uint64_t gap_ns();
};

Status FfmpegSource::State::open() {
  IGNIS_TRY(load_av());
  IGNIS_TRY_ASSIGN(input.fd, open_regular_file(path));
  auto* buffer = static_cast<uint8_t*>(av_malloc(kIoBufferBytes));
  if (buffer == nullptr) return Error(ErrorCode::OutOfMemory, "There is no memory for FFmpeg.");
  io.reset(
      avio_alloc_context(buffer, kIoBufferBytes, 0, &input, Input::read, nullptr, Input::seek));
  if (io == nullptr) {
    av_free(buffer);
    return Error(ErrorCode::OutOfMemory, "There is no memory for FFmpeg.");
  }
  AVFormatContext* context = avformat_alloc_context();
  if (context == nullptr) return Error(ErrorCode::OutOfMemory, "There is no memory for FFmpeg.");
  context->pb = io.get();
  context->interrupt_callback = {Input::is_interrupted, &input};
  context->io_open = refuse_open;
  context->protocol_whitelist = av_strdup("none");  // some formats go past io_open
  context->max_streams = 64;
  context->flags |= AVFMT_FLAG_CUSTOM_IO;
  start_step();
  int code = avformat_open_input(&context, path.c_str(), nullptr, nullptr);  // frees it on failure
  if (code >= 0) {
    format.reset(context);
    code = avformat_find_stream_info(context, nullptr);
  }
  const auto not_a_video = [&](const std::string& words) {
    return Error(ErrorCode::InvalidArgument,
                 "'" + path + "' is no video or picture that FFmpeg reads: " + words + ".",
                 "NotAVideo");
  };
  if (code < 0) return not_a_video(av_words(code));
  const int index = av_find_best_stream(context, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (index < 0) return not_a_video("it holds no pictures");
  stream = context->streams[index];
  for (unsigned i = 0; i < context->nb_streams; ++i) {
    if (static_cast<int>(i) != index) context->streams[i]->discard = AVDISCARD_ALL;
  }
  return open_decoder();
}

Status FfmpegSource::State::open_decoder() {
  const AVCodec* decoder = avcodec_find_decoder(stream->codecpar->codec_id);
  if (decoder == nullptr) {
    return Error(ErrorCode::Unsupported,
                 "This FFmpeg has no decoder for '" +
                     std::string(avcodec_get_name(stream->codecpar->codec_id)) + "' in '" + path +
                     "'.",
                 "NoDecoder");
  }
  codec.reset(avcodec_alloc_context3(decoder));
  packet.reset(av_packet_alloc());
  decoded.reset(av_frame_alloc());
  if (codec == nullptr || packet == nullptr || decoded == nullptr) {
    return Error(ErrorCode::OutOfMemory, "There is no memory for FFmpeg.");
  }
  int code = avcodec_parameters_to_context(codec.get(), stream->codecpar);
  // One more row and column than a frame may have: they are cut off when odd. Codecs round their planes up on their own.
  codec->max_pixels = int64_t{pipeline::kMaxFrameWidthPx + 1} * (pipeline::kMaxFrameHeightPx + 1);
  codec->thread_count = 1;  // the cores belong to the model
  codec->pkt_timebase = stream->time_base;
  if (code >= 0) code = avcodec_open2(codec.get(), decoder, nullptr);
  if (code < 0) {
    return Error(ErrorCode::InvalidArgument,
                 "The video in '" + path + "' (" + std::string(decoder->name) + ", " +
                     std::to_string(stream->codecpar->width) + "x" +
                     std::to_string(stream->codecpar->height) +
                     ") cannot be decoded: " + av_words(code) + ".",
                 "NotAVideo");
  }
  fps = options.still_fps;
  const double stated = av_q2d(stream->avg_frame_rate.num > 0 && stream->avg_frame_rate.den > 0
                                   ? stream->avg_frame_rate
                                   : AVRational{0, 1});
  if (stated >= 0.1 && stated <= 1000 && stream->nb_frames != 1) fps = stated;
  period_ns = static_cast<uint64_t>(1e9 / fps);
  return Status::ok();
}

Status FfmpegSource::State::feed_decoder() {
  if (is_draining) {  // a decoder that wants more when there is no more
    is_over = true;
    return end_of_stream();
  }
  start_step();
  const int code = av_read_frame(format.get(), packet.get());
  if (code < 0) {
    // The decoder may still hold frames back. A file that breaks off is said to be broken once, then it is over.
    is_draining = true;
    avcodec_send_packet(codec.get(), nullptr);
    if (code != AVERROR_EOF) return bad_frame(av_words(code));
    return Status::ok();
  }
  int sent = 0;
  const bool is_ours = packet->stream_index == stream->index;
  if (is_ours) sent = avcodec_send_packet(codec.get(), packet.get());
  av_packet_unref(packet.get());
  if (sent < 0 && sent != AVERROR(EAGAIN)) return bad_frame(av_words(sent));
  return Status::ok();
}

Status FfmpegSource::State::rewind_file() {
  start_step();
  const int code = av_seek_frame(format.get(), -1, 0, AVSEEK_FLAG_BACKWARD);
  if (code < 0) {
    is_over = true;
    return Error(
        ErrorCode::Unsupported,
        "'" + path + "' cannot be played again from its beginning: " + av_words(code) + ".");
  }
  avcodec_flush_buffers(codec.get());
  is_draining = false;
  decoded_count = 0;
  last_pts.reset();
  return Status::ok();
}

uint64_t FfmpegSource::State::gap_ns() {
  const int64_t pts = decoded->best_effort_timestamp;
  const std::optional<int64_t> before =
      std::exchange(last_pts, pts == AV_NOPTS_VALUE ? std::nullopt : std::optional<int64_t>(pts));
  if (!before || !last_pts) return period_ns;
  // In 64 bits and with a check: the times are the file's.
  int64_t ticks = 0;
  if (__builtin_sub_overflow(pts, *before, &ticks) || ticks <= 0) return period_ns;
  const int64_t gap = av_rescale_q(ticks, stream->time_base, AVRational{1, 1'000'000'000});
  if (gap <= 0) return period_ns;
  return std::min(static_cast<uint64_t>(gap), kMaxGapNs);
}

Result<Frame> FfmpegSource::State::convert() {
  const int width_px = decoded->width & ~1, height_px = decoded->height & ~1;
  IGNIS_TRY_ASSIGN(pipeline::FrameLayout layout, pipeline::nv12_layout(width_px, height_px));
  layout.sensor_id = options.sensor_id;
  const auto format_in = static_cast<AVPixelFormat>(decoded->format);
  scaler.reset(sws_getCachedContext(scaler.release(), width_px, height_px, format_in, width_px,
                                    height_px, AV_PIX_FMT_NV12, SWS_POINT, nullptr, nullptr,
                                    nullptr));
  if (scaler == nullptr) return bad_frame("its pixels are of a kind that cannot become NV12");
  if (decoded->color_range == AVCOL_RANGE_JPEG) {
    const int* matrix = sws_getCoefficients(SWS_CS_ITU601);
    sws_setColorspaceDetails(scaler.get(), matrix, 1, matrix, 0, 0, 1 << 16, 1 << 16);
  }
  IGNIS_TRY_ASSIGN(pipeline::WritableFrame writable, pool.acquire(layout));
  auto* bytes = reinterpret_cast<uint8_t*>(writable.bytes.data());
  uint8_t* planes[4] = {bytes, bytes + layout.u_offset, nullptr, nullptr};
  const int strides[4] = {static_cast<int>(layout.y_stride), static_cast<int>(layout.uv_stride), 0,
                          0};
  const int rows =
      sws_scale(scaler.get(), decoded->data, decoded->linesize, 0, height_px, planes, strides);
  if (rows != height_px) return bad_frame("its pixels cannot become NV12");
  return std::move(writable.frame);
}

Status FfmpegSource::State::decode_next(uint64_t limit_ns) {
  for (;;) {
    const int code = avcodec_receive_frame(codec.get(), decoded.get());
    if (code >= 0) {
      ++decoded_count;
      ready_gap_ns = gap_ns();
      Result<Frame> frame = convert();
      av_frame_unref(decoded.get());
      if (!frame) return std::move(frame).error();
      ready = *std::move(frame);
      if (options.repeats_still) still = decoded_count == 1 ? *ready : Frame{};
      return Status::ok();
    }
    if (code == AVERROR_EOF) {
      if (options.repeats_still && decoded_count == 1 && still.memory != nullptr) {
        ready = still;
        ready_gap_ns = static_cast<uint64_t>(1e9 / options.still_fps);
        return Status::ok();
      }
      // A file without a frame must not be played round and round.
      if (!options.is_looped || decoded_count == 0) {
        is_over = true;
        return end_of_stream();
      }
      IGNIS_TRY(rewind_file());
    } else if (code == AVERROR(EAGAIN)) {
      IGNIS_TRY(feed_decoder());
    } else {
      return bad_frame(av_words(code));
    }
    if (monotonic_ns() > limit_ns) {
      return Error(ErrorCode::Timeout, "No frame of '" + path + "' was decoded in time.");
    }
  }
}

FfmpegSource::FfmpegSource(std::unique_ptr<State> state) : state_(std::move(state)) {}
FfmpegSource::~FfmpegSource() = default;

Result<std::unique_ptr<FfmpegSource>> FfmpegSource::open(const std::string& path,
                                                         const FfmpegSourceOptions& options) {
  if (!(options.still_fps >= 1 && options.still_fps <= 240)) {
    return Error(ErrorCode::InvalidArgument, "A still picture at " +
                                                 std::to_string(options.still_fps) +
                                                 " Hz is refused; 1 to 240 Hz are possible.");
  }
  auto state = std::make_unique<State>();
  state->path = path;
  state->options = options;
  IGNIS_TRY(state->open());
  return std::unique_ptr<FfmpegSource>(new FfmpegSource(std::move(state)));
}

Result<Frame> FfmpegSource::receive(std::chrono::nanoseconds timeout) {
  State& s = *state_;
  const uint64_t called_ns = monotonic_ns();
  const uint64_t limit_ns =
      called_ns + static_cast<uint64_t>(std::max<int64_t>(0, timeout.count()));
  for (;;) {
    if (s.is_over) return s.end_of_stream();
    if (!s.ready) IGNIS_TRY(s.decode_next(limit_ns));

    const uint64_t now_ns = monotonic_ns();
    // The clock starts with the first frame; its gap is nothing that happened.
    uint64_t due_ns = s.last_due_ns == 0 ? now_ns : s.last_due_ns + s.ready_gap_ns;
    if (s.options.pace == Pace::Fast) {
      due_ns = std::max(now_ns, s.last_due_ns + 1);
    } else if (due_ns > limit_ns) {
      if (limit_ns > now_ns) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(limit_ns - now_ns));
      }
      return Error(ErrorCode::Timeout, "No frame of '" + s.path + "' is due within " +
                                           std::to_string((limit_ns - called_ns) / 1'000'000) +
                                           " ms.");
    } else if (due_ns > now_ns) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(due_ns - now_ns));
    } else if (s.options.pace == Pace::RealTime && now_ns - due_ns >= s.period_ns) {
      // Nobody fetched it in its time. It was decoded all the same: later frames need it.
      s.last_due_ns = due_ns;
      s.ready.reset();
      ++s.next_id;
      ++s.dropped;
      continue;
    } else if (s.options.pace == Pace::EveryFrame) {
      due_ns = now_ns;  // the rest of the file moves along
    }
    s.last_due_ns = due_ns;
    Frame frame = *std::move(s.ready);
    s.ready.reset();
    frame.info.frame_id = s.next_id++;
    frame.info.timestamp_sof_ns = due_ns;
    frame.info.receive_time_ns = std::max(monotonic_ns(), due_ns);
    frame.info.timestamp_eof_ns = due_ns;
    return frame;
  }
}

uint64_t FfmpegSource::dropped_count() const { return state_->dropped; }

double FfmpegSource::fps() const { return state_->fps; }

std::string FfmpegSource::describe() const {
  const AVCodecParameters& parameters = *state_->stream->codecpar;
  std::string rate = std::to_string(state_->fps);
  rate.resize(rate.find('.') + 2);
  const std::string file = state_->path.substr(state_->path.rfind('/') + 1);
  return file + " (" + avcodec_get_name(parameters.codec_id) + ", " +
         std::to_string(parameters.width) + "x" + std::to_string(parameters.height) + ", " + rate +
         " Hz)";
}

}  // namespace ignis::tools
