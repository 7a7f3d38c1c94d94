#include "ignis/pipeline/frames/v4l2_source.h"

#include "ignis/base/log.h"
#include "ignis/pipeline/frames/frame_pool.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/v4l2_device.h"

#include <errno.h>
#include <linux/videodev2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ignis::pipeline {
namespace {

constexpr uint32_t kBufferCount = 4;
/// Between two attempts to open a camera that is gone.
constexpr uint64_t kReopenPeriodNs = 100'000'000;
/// Formats that a camera is asked for, at most.
constexpr uint32_t kMaxFormats = 64;

/// What the camera sends, best first: what needs the least work.
constexpr std::array<uint32_t, 4> kUsable = {V4L2_PIX_FMT_NV12, V4L2_PIX_FMT_YUV420,
                                             V4L2_PIX_FMT_YUYV, V4L2_PIX_FMT_GREY};

/// "YU12"; other bytes than printable ones as '.'.
std::string name_of(uint32_t fourcc) {
  std::string name;
  for (int i = 0; i < 4; ++i) {
    const char c = static_cast<char>(fourcc >> (8 * i) & 0x7f);
    name += c > ' ' && c <= '~' ? c : '.';
  }
  return name;
}

std::string text_of(int negative_errno) { return std::strerror(-negative_errno); }

/// Bytes of one row of luma (of pixels, for YUYV) and of a whole picture, as the camera lays it out.
struct CameraFormat {
  uint32_t fourcc = 0;
  int width_px = 0, height_px = 0;
  uint64_t stride = 0;
  uint64_t needed_bytes = 0;
  ColorRange range = ColorRange::Limited;
};

uint64_t needed_bytes(uint32_t fourcc, uint64_t stride, uint64_t height) {
  switch (fourcc) {
    case V4L2_PIX_FMT_NV12: return stride * height + stride * (height / 2);
    case V4L2_PIX_FMT_YUV420: return stride * height + stride / 2 * (height / 2) * 2;
    default: return stride * height;
  }
}

void copy_rows(const std::byte* from, uint64_t from_stride, std::byte* to, int64_t to_stride,
               int row_bytes, int rows) {
  for (int y = 0; y < rows; ++y)
    std::memcpy(to + y * to_stride, from + static_cast<uint64_t>(y) * from_stride,
                static_cast<size_t>(row_bytes));
}

/// Chroma of two rows becomes one: their mean, rounded up.
void unpack_yuyv(const std::byte* from, uint64_t from_stride, const FrameLayout& layout,
                 std::byte* to) {
  const auto mean = [](std::byte a, std::byte b) {
    return static_cast<std::byte>(
        (std::to_integer<unsigned>(a) + std::to_integer<unsigned>(b) + 1) / 2);
  };
  for (int y = 0; y < layout.height_px; y += 2) {
    const std::byte* upper = from + static_cast<uint64_t>(y) * from_stride;
    const std::byte* lower = upper + from_stride;
    std::byte* luma = to + y * layout.y_stride;
    std::byte* next_luma = luma + layout.y_stride;
    std::byte* chroma = to + layout.u_offset + y / 2 * layout.uv_stride;
    for (int x = 0; x < layout.width_px; x += 2) {
      const std::byte* u = upper + 2 * x;
      const std::byte* l = lower + 2 * x;
      luma[x] = u[0], luma[x + 1] = u[2];
      next_luma[x] = l[0], next_luma[x + 1] = l[2];
      chroma[x] = mean(u[1], l[1]), chroma[x + 1] = mean(u[3], l[3]);
    }
  }
}

}  // namespace

struct V4l2Source::State {
  std::unique_ptr<V4l2Device> device;
  std::string path;
  V4l2Options options;

  bool is_open = false;
  std::string card;
  CameraFormat camera;
  FrameLayout layout;
  double fps = 0;
  struct Buffer {
    void* address = nullptr;
    size_t size_bytes = 0;
  };
  std::vector<Buffer> buffers;
  FramePool pool;
  bool has_sequence = false;
  uint32_t last_sequence = 0;
  uint64_t dropped = 0;
  uint64_t next_open_ns = 0;
  std::string last_fault;

  ~State() { close(); }
  Status open();
  Status open_parts();
  Status check_capabilities();
  Status choose_format();
  Result<CameraFormat> try_format(uint32_t fourcc, int width_px, int height_px);
  void choose_rate();
  Status map_buffers();
  Status start();
  int queue(uint32_t index);
  void close();
  Error lose(const std::string& why);
  Result<Frame> receive(std::chrono::nanoseconds timeout);
  Status reopen(uint64_t deadline_ns);
  Result<v4l2_buffer> dequeue_newest(uint64_t deadline_ns);
  Result<Frame> make_frame(const v4l2_buffer& buffer);
};

// ---- opening

Status V4l2Source::State::open() {
  if (const int error = device->open(path); error < 0) {
    const bool is_absent = error == -ENOENT || error == -ENXIO || error == -ENODEV;
    return Error(is_absent ? ErrorCode::NotFound : ErrorCode::InvalidArgument,
                 "Camera '" + path + "' cannot be opened: " + text_of(error) + ".", "Camera");
  }
  is_open = true;
  Status status = open_parts();
  if (!status) close();
  return status;
}

Status V4l2Source::State::open_parts() {
  IGNIS_TRY(check_capabilities());
  IGNIS_TRY(choose_format());
  choose_rate();
  IGNIS_TRY(map_buffers());
  IGNIS_TRY(start());
  pool.renew();  // the camera counts its frames anew
  has_sequence = false;
  return Status::ok();
}

Status V4l2Source::State::check_capabilities() {
  v4l2_capability capability{};
  if (const int error = device->ioctl(VIDIOC_QUERYCAP, &capability); error < 0) {
    return Error(error == -ENODEV ? ErrorCode::DeviceLost : ErrorCode::Unsupported,
                 "'" + path + "' is not a video device: " + text_of(error) + ".", "Camera");
  }
  const auto* name = reinterpret_cast<const char*>(capability.card);
  card.assign(name, ::strnlen(name, sizeof(capability.card)));
  for (char& c : card)
    if (c < ' ' || c > '~') c = '.';
  const uint32_t flags = (capability.capabilities & V4L2_CAP_DEVICE_CAPS) != 0
                             ? capability.device_caps
                             : capability.capabilities;
  if ((flags & V4L2_CAP_VIDEO_CAPTURE) == 0 || (flags & V4L2_CAP_STREAMING) == 0) {
    return Error(ErrorCode::Unsupported,
                 "'" + path + "' (" + card +
                     ") does not stream single-plane video; it may be the metadata node of a "
                     "camera: try the next number.",
                 "CameraKind");
  }
  return Status::ok();
}

Result<CameraFormat> V4l2Source::State::try_format(uint32_t fourcc, int width_px, int height_px) {
  v4l2_format format{};
  format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  format.fmt.pix.width = static_cast<uint32_t>(width_px);
  format.fmt.pix.height = static_cast<uint32_t>(height_px);
  format.fmt.pix.pixelformat = fourcc;
  format.fmt.pix.field = V4L2_FIELD_NONE;
  if (const int error = device->ioctl(VIDIOC_S_FMT, &format); error < 0) {
    return Error(error == -ENODEV ? ErrorCode::DeviceLost : ErrorCode::Unsupported,
                 "Camera '" + path + "' refuses " + name_of(fourcc) + ": " + text_of(error) + ".",
                 "CameraFormat");
  }
  const v4l2_pix_format& pix = format.fmt.pix;
  const std::string got =
      name_of(pix.pixelformat) + " " + std::to_string(pix.width) + "x" + std::to_string(pix.height);
  if (pix.pixelformat != fourcc) {
    return Error(
        ErrorCode::Unsupported,
        "Camera '" + path + "' gives " + got + " when " + name_of(fourcc) + " is asked for.",
        "CameraFormat");
  }
  if (pix.width != static_cast<uint32_t>(width_px) ||
      pix.height != static_cast<uint32_t>(height_px)) {
    return Error(ErrorCode::InvalidArgument,
                 "Camera '" + path + "' does not give " + std::to_string(width_px) + "x" +
                     std::to_string(height_px) + "; the nearest is " + got + ".",
                 "CameraSize");
  }
  CameraFormat result;
  result.fourcc = fourcc;
  result.width_px = width_px;
  result.height_px = height_px;
  const uint64_t row_bytes = pix.width * uint64_t{fourcc == V4L2_PIX_FMT_YUYV ? 2U : 1U};
  result.stride = pix.bytesperline == 0 ? row_bytes : pix.bytesperline;
  result.needed_bytes = needed_bytes(fourcc, result.stride, pix.height);
  if (result.stride < row_bytes || result.stride > static_cast<uint64_t>(kMaxStrideBytes) ||
      pix.sizeimage < result.needed_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 "Camera '" + path + "' says that " + got + " has rows of " +
                     std::to_string(pix.bytesperline) + " bytes and " +
                     std::to_string(pix.sizeimage) + " in all; it needs " +
                     std::to_string(row_bytes) + " and " + std::to_string(result.needed_bytes) +
                     ".",
                 "CameraFormat");
  }
  const bool is_full = pix.quantization == V4L2_QUANTIZATION_FULL_RANGE ||
                       (pix.quantization == V4L2_QUANTIZATION_DEFAULT &&
                        (pix.colorspace == V4L2_COLORSPACE_JPEG || fourcc == V4L2_PIX_FMT_GREY));
  result.range = is_full ? ColorRange::Full : ColorRange::Limited;
  return result;
}

Status V4l2Source::State::choose_format() {
  std::vector<uint32_t> offered;
  std::string names;
  for (uint32_t i = 0; i < kMaxFormats; ++i) {
    v4l2_fmtdesc description{};
    description.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    description.index = i;
    if (device->ioctl(VIDIOC_ENUM_FMT, &description) < 0) break;
    offered.push_back(description.pixelformat);
    names += (names.empty() ? "" : ", ") + name_of(description.pixelformat);
  }
  v4l2_format now{};
  now.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  if (const int error = device->ioctl(VIDIOC_G_FMT, &now); error < 0) {
    return Error(error == -ENODEV ? ErrorCode::DeviceLost : ErrorCode::Unsupported,
                 "Camera '" + path + "' does not tell its format: " + text_of(error) + ".",
                 "CameraFormat");
  }
  const int width = options.width_px != 0 ? options.width_px
                                          : static_cast<int>(std::min(now.fmt.pix.width, 1U << 16));
  const int height = options.height_px != 0
                         ? options.height_px
                         : static_cast<int>(std::min(now.fmt.pix.height, 1U << 16));
  IGNIS_TRY(nv12_layout(width, height));  // for its bounds
  Error last(ErrorCode::Unsupported,
             "Camera '" + path + "' (" + card + ") offers " +
                 (names.empty() ? "no format" : names) + "; NV12, YU12, YUYV and GREY can be used.",
             "CameraFormat");
  for (const uint32_t fourcc : kUsable) {
    if (std::find(offered.begin(), offered.end(), fourcc) == offered.end()) continue;
    Result<CameraFormat> format = try_format(fourcc, width, height);
    if (!format) {
      last = std::move(format).error();
      continue;
    }
    camera = *format;
    if (camera.fourcc == V4L2_PIX_FMT_YUV420) {
      IGNIS_TRY_ASSIGN(layout, i420_layout(width, height));
    } else {
      IGNIS_TRY_ASSIGN(layout, nv12_layout(width, height));
    }
    layout.range = camera.range;
    layout.sensor_id = options.sensor_id;
    return Status::ok();
  }
  return last;
}

void V4l2Source::State::choose_rate() {
  v4l2_streamparm parameters{};
  parameters.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  parameters.parm.capture.timeperframe.numerator = 1000;
  parameters.parm.capture.timeperframe.denominator =
      static_cast<uint32_t>(std::lround(options.fps * 1000));
  fps = options.fps;
  if (device->ioctl(VIDIOC_S_PARM, &parameters) < 0)
    return;  // many have one rate and cannot be asked
  const v4l2_fract& period = parameters.parm.capture.timeperframe;
  if (period.numerator == 0 || period.denominator == 0) return;
  const double real = static_cast<double>(period.denominator) / period.numerator;
  if (real >= 0.1 && real <= 1000) fps = real;
}

Status V4l2Source::State::map_buffers() {
  v4l2_requestbuffers request{};
  request.count = kBufferCount;
  request.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  request.memory = V4L2_MEMORY_MMAP;
  if (const int error = device->ioctl(VIDIOC_REQBUFS, &request); error < 0) {
    const std::string busy = error == -EBUSY ? " Another program uses it." : "";
    return Error(error == -ENODEV ? ErrorCode::DeviceLost : ErrorCode::Unsupported,
                 "Camera '" + path + "' gives no buffers: " + text_of(error) + "." + busy,
                 "Camera");
  }
  if (request.count < 2 || request.count > 32) {
    return Error(ErrorCode::OutOfMemory,
                 "Camera '" + path + "' has " + std::to_string(request.count) +
                     " buffers; 2 to 32 are needed.",
                 "Camera");
  }
  buffers.reserve(request.count);
  for (uint32_t i = 0; i < request.count; ++i) {
    v4l2_buffer buffer{};
    buffer.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    buffer.memory = V4L2_MEMORY_MMAP;
    buffer.index = i;
    const int error = device->ioctl(VIDIOC_QUERYBUF, &buffer);
    if (error < 0 || buffer.length < camera.needed_bytes) {
      return Error(error == -ENODEV ? ErrorCode::DeviceLost : ErrorCode::InvalidArgument,
                   "Buffer " + std::to_string(i) + " of camera '" + path + "' has " +
                       std::to_string(error < 0 ? 0 : buffer.length) + " bytes; a frame has " +
                       std::to_string(camera.needed_bytes) + ".",
                   "Camera");
    }
    void* address = device->map(buffer.length, buffer.m.offset);
    if (address == nullptr) {
      return Error(ErrorCode::OutOfMemory,
                   "Buffer " + std::to_string(i) + " of camera '" + path + "' cannot be mapped.",
                   "Camera");
    }
    buffers.push_back({address, buffer.length});
  }
  return Status::ok();
}

int V4l2Source::State::queue(uint32_t index) {
  v4l2_buffer buffer{};
  buffer.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  buffer.memory = V4L2_MEMORY_MMAP;
  buffer.index = index;
  return device->ioctl(VIDIOC_QBUF, &buffer);
}

Status V4l2Source::State::start() {
  int error = 0;
  for (uint32_t i = 0; i < buffers.size() && error >= 0; ++i) error = queue(i);
  int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  if (error >= 0) error = device->ioctl(VIDIOC_STREAMON, &type);
  if (error >= 0) return Status::ok();
  return Error(error == -ENODEV ? ErrorCode::DeviceLost : ErrorCode::Unsupported,
               "Camera '" + path + "' does not start: " + text_of(error) + ".", "Camera");
}

void V4l2Source::State::close() {
  if (!is_open) return;
  int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  static_cast<void>(device->ioctl(VIDIOC_STREAMOFF, &type));  // gone is gone
  for (const Buffer& buffer : buffers) device->unmap(buffer.address, buffer.size_bytes);
  buffers.clear();
  device->close();
  is_open = false;
}

Error V4l2Source::State::lose(const std::string& why) {
  close();
  last_fault = "Camera '" + path + "' is lost: " + why + ".";
  next_open_ns = monotonic_ns();
  IGNIS_LOG(Warning, "frames") << last_fault;
  return Error(ErrorCode::DeviceLost, last_fault, "CameraLost");
}

// ---- frames

Status V4l2Source::State::reopen(uint64_t deadline_ns) {
  const uint64_t now = monotonic_ns();
  const uint64_t until_ns = std::min(deadline_ns, next_open_ns);
  if (until_ns > now) std::this_thread::sleep_for(std::chrono::nanoseconds(until_ns - now));
  if (monotonic_ns() < next_open_ns) return Error(ErrorCode::DeviceLost, last_fault, "CameraLost");
  Status status = open();
  if (status) return status;
  next_open_ns = monotonic_ns() + kReopenPeriodNs;
  last_fault = status.error().message();
  return Error(ErrorCode::DeviceLost, last_fault, "CameraLost");
}

/// The newest full buffer; older ones go back and are counted, as nobody wants a picture of the past.
Result<v4l2_buffer> V4l2Source::State::dequeue_newest(uint64_t deadline_ns) {
  v4l2_buffer newest{};
  bool has_one = false;
  // One more round than there are buffers: more cannot be full.
  for (size_t i = 0; i <= buffers.size();) {
    v4l2_buffer buffer{};
    buffer.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    buffer.memory = V4L2_MEMORY_MMAP;
    const int error = device->ioctl(VIDIOC_DQBUF, &buffer);
    if (error == 0) {
      if (buffer.index >= buffers.size()) {
        return lose("it gave buffer " + std::to_string(buffer.index) + " of " +
                    std::to_string(buffers.size()));
      }
      if (has_one && queue(newest.index) < 0) return lose("it does not take a buffer back");
      newest = buffer;
      has_one = true;
      ++i;
      continue;
    }
    if (error != -EAGAIN) return lose(text_of(error));
    if (has_one) break;
    const uint64_t now = monotonic_ns();
    const int ready = device->wait_readable(deadline_ns > now ? deadline_ns - now : 0);
    if (ready < 0) return lose(text_of(ready));
    if (ready == 0) {
      return Error(ErrorCode::Timeout, "No frame came from camera '" + path + "' in time.");
    }
    if (now >= deadline_ns) ++i;  // a device that is always readable and never full
  }
  if (!has_one)
    return Error(ErrorCode::Timeout, "No frame came from camera '" + path + "' in time.");
  return newest;
}

Result<Frame> V4l2Source::State::make_frame(const v4l2_buffer& buffer) {
  const Buffer& memory = buffers[buffer.index];
  const bool has_fault = (buffer.flags & V4L2_BUF_FLAG_ERROR) != 0;
  if (has_fault || buffer.bytesused < camera.needed_bytes || buffer.bytesused > memory.size_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 "Frame " + std::to_string(buffer.sequence) + " of camera '" + path + "' has " +
                     std::to_string(buffer.bytesused) + " bytes" +
                     (has_fault ? " and the driver's error flag" : "") + "; a frame has " +
                     std::to_string(camera.needed_bytes) + ".",
                 "TornFrame");
  }
  IGNIS_TRY_ASSIGN(WritableFrame writable, pool.acquire(layout));
  const auto* from = static_cast<const std::byte*>(memory.address);
  std::byte* to = writable.bytes.data();
  const int w = layout.width_px, h = layout.height_px;
  if (camera.fourcc == V4L2_PIX_FMT_YUYV) {
    unpack_yuyv(from, camera.stride, layout, to);
  } else {
    copy_rows(from, camera.stride, to, layout.y_stride, w, h);
    const std::byte* chroma = from + camera.stride * static_cast<uint64_t>(h);
    if (camera.fourcc == V4L2_PIX_FMT_NV12) {
      copy_rows(chroma, camera.stride, to + layout.u_offset, layout.uv_stride, w, h / 2);
    } else if (camera.fourcc == V4L2_PIX_FMT_YUV420) {
      const uint64_t stride = camera.stride / 2;
      copy_rows(chroma, stride, to + layout.u_offset, layout.uv_stride, w / 2, h / 2);
      copy_rows(chroma + stride * static_cast<uint64_t>(h / 2), stride, to + layout.v_offset,
                layout.uv_stride, w / 2, h / 2);
    } else {
      for (int y = 0; y < h / 2; ++y)
        std::memset(to + layout.u_offset + y * layout.uv_stride, 128, static_cast<size_t>(w));
    }
  }
  FrameInfo& info = writable.frame.info;
  info.frame_id = buffer.sequence;
  info.stream_id = options.stream_id;
  info.receive_time_ns = monotonic_ns();
  const bool is_monotonic =
      (buffer.flags & V4L2_BUF_FLAG_TIMESTAMP_MASK) == V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC;
  const uint64_t stamp_ns = is_monotonic
                                ? static_cast<uint64_t>(buffer.timestamp.tv_sec) * 1'000'000'000U +
                                      static_cast<uint64_t>(buffer.timestamp.tv_usec) * 1000U
                                : info.receive_time_ns;
  const uint64_t period_ns = static_cast<uint64_t>(1e9 / fps);
  if ((buffer.flags & V4L2_BUF_FLAG_TSTAMP_SRC_MASK) == V4L2_BUF_FLAG_TSTAMP_SRC_SOE &&
      is_monotonic) {
    info.timestamp_sof_ns = stamp_ns;
    info.timestamp_eof_ns =
        std::max(stamp_ns, std::min(stamp_ns + period_ns, info.receive_time_ns));
  } else {
    // Rather too old than too young: the exposure cannot have begun before the last frame ended.
    info.timestamp_eof_ns = stamp_ns;
    info.timestamp_sof_ns = stamp_ns - std::min(period_ns, stamp_ns);
  }
  return std::move(writable.frame);
}

Result<Frame> V4l2Source::State::receive(std::chrono::nanoseconds timeout) {
  constexpr int64_t kLongest = int64_t{86400} * 1'000'000'000;
  const uint64_t deadline_ns =
      monotonic_ns() + static_cast<uint64_t>(std::clamp<int64_t>(timeout.count(), 0, kLongest));
  if (!is_open) IGNIS_TRY(reopen(deadline_ns));
  IGNIS_TRY_ASSIGN(const v4l2_buffer buffer, dequeue_newest(deadline_ns));
  Result<Frame> frame = make_frame(buffer);
  if (frame) {
    const uint32_t gap = has_sequence ? buffer.sequence - last_sequence : 1;
    if (gap > 1 && gap < 1U << 31) dropped += gap - 1;
    last_sequence = buffer.sequence;
    has_sequence = true;
  }
  // The pixels are copied; a fault here shows itself with the next frame.
  if (queue(buffer.index) < 0) {
    const Error lost = lose("it does not take a buffer back");
    if (!frame) return lost;
  }
  return frame;
}

V4l2Source::V4l2Source(std::unique_ptr<State> state) : state_(std::move(state)) {}
V4l2Source::~V4l2Source() = default;

Result<std::unique_ptr<V4l2Source>> V4l2Source::open(const std::string& device,
                                                     V4l2Options options) {
  const bool is_number =
      !device.empty() && device.size() <= 3 &&
      std::all_of(device.begin(), device.end(), [](char c) { return c >= '0' && c <= '9'; });
  return open_with(make_v4l2_device(), is_number ? "/dev/video" + device : device, options);
}

Result<std::unique_ptr<V4l2Source>> V4l2Source::open_with(std::unique_ptr<V4l2Device> device,
                                                          const std::string& path,
                                                          V4l2Options options) {
  if (!(options.fps >= 0.1 && options.fps <= 1000)) {
    return Error(ErrorCode::InvalidArgument,
                 "A rate of " + std::to_string(options.fps) +
                     " frames per second is not possible; it lies between 0.1 and 1000.",
                 "FrameRate");
  }
  auto state = std::make_unique<State>();
  state->device = std::move(device);
  state->path = path;
  state->options = options;
  IGNIS_TRY(state->open());
  return std::unique_ptr<V4l2Source>(new V4l2Source(std::move(state)));
}

Result<Frame> V4l2Source::receive(std::chrono::nanoseconds timeout) {
  return state_->receive(timeout);
}
uint64_t V4l2Source::dropped_count() const { return state_->dropped; }
std::string V4l2Source::describe() const {
  return "v4l2:" + state_->path + " (" + state_->card + ", " + name_of(state_->camera.fourcc) +
         " " + std::to_string(state_->layout.width_px) + "x" +
         std::to_string(state_->layout.height_px) + ")";
}

}  // namespace ignis::pipeline
