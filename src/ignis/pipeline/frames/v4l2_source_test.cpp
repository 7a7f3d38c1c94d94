#include "ignis/pipeline/frames/v4l2_source.h"

#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/v4l2_device.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <linux/videodev2.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ignis::pipeline {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// One picture that the fake camera will deliver.
struct Shot {
  std::vector<std::byte> bytes;
  uint32_t sequence = 0;
  uint32_t flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC | V4L2_BUF_FLAG_TSTAMP_SRC_EOF;
  uint64_t stamp_us = 5'000'000;
  int64_t bytesused = -1;    ///< -1: as many as there are
  uint32_t wrong_index = 0;  ///< not 0: told instead of the buffer's
};

/// What the fake camera is; shared by the test and the device that the source owns.
struct Camera {
  std::vector<uint32_t> formats = {V4L2_PIX_FMT_YUYV};
  uint32_t width = 8, height = 4;
  uint32_t bytesperline = 0;  ///< 0: without padding
  int64_t sizeimage = -1;     ///< -1: as needed
  uint32_t capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
  uint32_t buffer_count = 4;
  int64_t buffer_bytes = -1;  ///< -1: as large as the picture
  uint32_t quantization = V4L2_QUANTIZATION_DEFAULT;
  bool is_present = true;
  int dequeue_error = 0;  ///< told once instead of a buffer
  bool is_rate_known = true;

  std::deque<Shot> shots;

  // What the source did.
  uint32_t format = 0;
  bool is_open = false, is_streaming = false;
  std::vector<std::vector<std::byte>> buffers;
  std::deque<uint32_t> queued;
  int mapped = 0;
  int opened = 0;

  uint32_t stride() const {
    return bytesperline != 0 ? bytesperline : format == V4L2_PIX_FMT_YUYV ? 2 * width : width;
  }
  uint32_t image_bytes() const {
    if (sizeimage >= 0) return static_cast<uint32_t>(sizeimage);
    const bool has_chroma = format == V4L2_PIX_FMT_NV12 || format == V4L2_PIX_FMT_YUV420;
    return stride() * height * (has_chroma ? 3 : 2) / 2;
  }
};

class FakeDevice final : public V4l2Device {
 public:
  explicit FakeDevice(std::shared_ptr<Camera> camera) : c_(std::move(camera)) {}

  int open(const std::string&) override {
    ++c_->opened;
    if (!c_->is_present) return -ENOENT;
    c_->is_open = true;
    return 0;
  }
  void close() override { c_->is_open = false; }
  void* map(size_t size_bytes, int64_t offset) override {
    std::vector<std::byte>& buffer = c_->buffers.at(static_cast<size_t>(offset));
    if (buffer.size() != size_bytes) return nullptr;
    ++c_->mapped;
    return buffer.data();
  }
  void unmap(void*, size_t) override { --c_->mapped; }
  int wait_readable(uint64_t) override {
    if (!c_->is_present) return -ENODEV;
    return !c_->shots.empty() || c_->dequeue_error != 0 ? 1 : 0;
  }
  int ioctl(unsigned long request, void* argument) override {
    if (!c_->is_present) return -ENODEV;
    switch (request) {
      case VIDIOC_QUERYCAP: return query(*static_cast<v4l2_capability*>(argument));
      case VIDIOC_ENUM_FMT: return list(*static_cast<v4l2_fmtdesc*>(argument));
      case VIDIOC_G_FMT: return tell(*static_cast<v4l2_format*>(argument));
      case VIDIOC_S_FMT:
        c_->format = static_cast<v4l2_format*>(argument)->fmt.pix.pixelformat;
        return tell(*static_cast<v4l2_format*>(argument));
      case VIDIOC_S_PARM: return c_->is_rate_known ? 0 : -ENOTTY;  // 20 Hz it is, as asked
      case VIDIOC_REQBUFS: return request_buffers(*static_cast<v4l2_requestbuffers*>(argument));
      case VIDIOC_QUERYBUF: {
        auto& buffer = *static_cast<v4l2_buffer*>(argument);
        buffer.length = static_cast<uint32_t>(c_->buffers.at(buffer.index).size());
        buffer.m.offset = buffer.index;
        return 0;
      }
      case VIDIOC_QBUF: c_->queued.push_back(static_cast<v4l2_buffer*>(argument)->index); return 0;
      case VIDIOC_DQBUF: return dequeue(*static_cast<v4l2_buffer*>(argument));
      case VIDIOC_STREAMON: c_->is_streaming = true; return 0;
      case VIDIOC_STREAMOFF:
        c_->is_streaming = false;
        c_->queued.clear();
        return 0;
      default: return -ENOTTY;
    }
  }

 private:
  int query(v4l2_capability& capability) {
    std::memcpy(capability.card, "Fake camera", 12);
    capability.capabilities = c_->capabilities;
    return 0;
  }
  int list(v4l2_fmtdesc& description) {
    if (description.index >= c_->formats.size()) return -EINVAL;
    description.pixelformat = c_->formats[description.index];
    return 0;
  }
  int tell(v4l2_format& format) {
    format.fmt.pix.width = c_->width;
    format.fmt.pix.height = c_->height;
    format.fmt.pix.pixelformat = c_->format;
    format.fmt.pix.bytesperline = c_->stride();
    format.fmt.pix.sizeimage = c_->image_bytes();
    format.fmt.pix.quantization = c_->quantization;
    return 0;
  }
  int request_buffers(v4l2_requestbuffers& request) {
    request.count = c_->buffer_count;
    const size_t bytes =
        c_->buffer_bytes >= 0 ? static_cast<size_t>(c_->buffer_bytes) : c_->image_bytes();
    c_->buffers.assign(std::min<uint32_t>(c_->buffer_count, 100), std::vector<std::byte>(bytes));
    return 0;
  }
  int dequeue(v4l2_buffer& buffer) {
    if (c_->dequeue_error != 0) return -std::exchange(c_->dequeue_error, 0);
    if (c_->shots.empty() || c_->queued.empty()) return -EAGAIN;
    const Shot shot = c_->shots.front();
    c_->shots.pop_front();
    buffer.index = c_->queued.front();
    c_->queued.pop_front();
    std::vector<std::byte>& memory = c_->buffers[buffer.index];
    std::copy_n(shot.bytes.begin(), std::min(shot.bytes.size(), memory.size()), memory.begin());
    buffer.bytesused = static_cast<uint32_t>(
        shot.bytesused >= 0 ? shot.bytesused : static_cast<int64_t>(shot.bytes.size()));
    buffer.flags = shot.flags;
    buffer.sequence = shot.sequence;
    buffer.timestamp.tv_sec = static_cast<time_t>(shot.stamp_us / 1'000'000);
    buffer.timestamp.tv_usec = static_cast<suseconds_t>(shot.stamp_us % 1'000'000);
    if (shot.wrong_index != 0) buffer.index = shot.wrong_index;
    return 0;
  }

  std::shared_ptr<Camera> c_;
};

Result<std::unique_ptr<V4l2Source>> open(const std::shared_ptr<Camera>& camera,
                                         V4l2Options options = {}) {
  return V4l2Source::open_with(std::make_unique<FakeDevice>(camera), "/dev/video7", options);
}

/// A picture of `size_bytes`, byte i being i * 3 + seed.
Shot shot(const Camera& camera, uint32_t sequence, unsigned seed = 0) {
  Shot result;
  result.sequence = sequence;
  result.bytes.resize(camera.image_bytes());
  for (size_t i = 0; i < result.bytes.size(); ++i)
    result.bytes[i] = static_cast<std::byte>(i * 3 + seed);
  return result;
}

unsigned at(const Frame& frame, int64_t offset) {
  return std::to_integer<unsigned>(frame.bytes[static_cast<size_t>(offset)]);
}

TEST(V4l2Source, MakesNv12OfYuyv) {
  auto camera = std::make_shared<Camera>();
  camera->width = 4, camera->height = 2;
  auto source = open(camera).value();
  EXPECT_EQ(source->describe(), "v4l2:/dev/video7 (Fake camera, YUYV 4x2)");
  Shot picture;
  picture.sequence = 9;
  // Y U Y V, two rows; chroma of both rows: U (20+41)/2 = 30.5 -> 31, V (30+50)/2 = 40; U (0+255+1)/2 = 128, V 255.
  for (const int byte : {1, 20, 2, 30, 3, 0, 4, 255, 5, 41, 6, 50, 7, 255, 8, 255})
    picture.bytes.push_back(static_cast<std::byte>(byte));
  camera->shots.push_back(picture);
  const Frame frame = source->receive(milliseconds(1)).value();
  EXPECT_EQ(frame.layout, nv12_layout(4, 2).value());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(at(frame, i), static_cast<unsigned>(i + 1));
    EXPECT_EQ(at(frame, frame.layout.y_stride + i), static_cast<unsigned>(i + 5));
  }
  const std::vector<unsigned> chroma = {31, 40, 128, 255};
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(at(frame, frame.layout.u_offset + i), chroma[static_cast<size_t>(i)]);
  EXPECT_EQ(frame.info.frame_id, 9u);
  // The stamp is the end of the frame; the exposure began at most one interval of 50 ms before.
  EXPECT_EQ(frame.info.timestamp_eof_ns, 5'000'000'000u);
  EXPECT_EQ(frame.info.timestamp_sof_ns, 4'950'000'000u);
}

TEST(V4l2Source, CopiesPlanesWithTheCamerasPadding) {
  for (const uint32_t fourcc : {V4L2_PIX_FMT_NV12, V4L2_PIX_FMT_YUV420, V4L2_PIX_FMT_GREY}) {
    SCOPED_TRACE(fourcc);
    auto camera = std::make_shared<Camera>();
    camera->formats = {V4L2_PIX_FMT_MJPEG, V4L2_PIX_FMT_YUYV, fourcc};
    if (fourcc == V4L2_PIX_FMT_GREY) camera->formats.erase(camera->formats.begin() + 1);
    camera->bytesperline = 12;  // 8 pixels and 4 bytes of padding
    auto source = open(camera).value();
    EXPECT_EQ(camera->format, fourcc) << "better than YUYV when the camera has both";
    const Shot picture = shot(*camera, 1);
    camera->shots.push_back(picture);
    const Frame frame = source->receive(milliseconds(1)).value();
    const auto sent = [&](int64_t i) {
      return std::to_integer<unsigned>(picture.bytes[static_cast<size_t>(i)]);
    };
    const FrameLayout& l = frame.layout;
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 8; ++x) EXPECT_EQ(at(frame, y * l.y_stride + x), sent(y * 12 + x));
    for (int y = 0; y < 2; ++y) {
      for (int x = 0; x < 8; ++x) {
        if (fourcc == V4L2_PIX_FMT_NV12) {
          EXPECT_EQ(at(frame, l.u_offset + y * l.uv_stride + x), sent(48 + y * 12 + x));
        } else if (fourcc == V4L2_PIX_FMT_GREY) {
          EXPECT_EQ(at(frame, l.u_offset + y * l.uv_stride + x), 128u);
        } else if (x < 4) {
          EXPECT_EQ(at(frame, l.u_offset + y * l.uv_stride + x), sent(48 + y * 6 + x));
          EXPECT_EQ(at(frame, l.v_offset + y * l.uv_stride + x), sent(60 + y * 6 + x));
        }
      }
    }
    EXPECT_EQ(l.format, fourcc == V4L2_PIX_FMT_YUV420 ? PixelFormat::I420 : PixelFormat::Nv12);
    EXPECT_EQ(l.range, fourcc == V4L2_PIX_FMT_GREY ? ColorRange::Full : ColorRange::Limited);
  }
}

TEST(V4l2Source, HandsOverTheNewestAndCountsTheOthers) {
  auto camera = std::make_shared<Camera>();
  auto source = open(camera).value();
  camera->shots.push_back(shot(*camera, 10));
  EXPECT_EQ(source->receive(milliseconds(1))->info.frame_id, 10u);
  for (uint32_t i = 11; i <= 13; ++i) camera->shots.push_back(shot(*camera, i));
  EXPECT_EQ(source->receive(milliseconds(1))->info.frame_id, 13u);
  EXPECT_EQ(source->dropped_count(), 2u);
  camera->shots.push_back(shot(*camera, 20));  // the driver itself lost 14 to 19
  EXPECT_EQ(source->receive(milliseconds(1))->info.frame_id, 20u);
  EXPECT_EQ(source->dropped_count(), 8u);
  EXPECT_EQ(camera->queued.size(), 4u) << "every buffer is back with the camera";
  EXPECT_EQ(source->receive(nanoseconds(0)).error().code(), ErrorCode::Timeout);
}

TEST(V4l2Source, ManyFramesFlow) {
  auto camera = std::make_shared<Camera>();
  auto source = open(camera).value();
  std::vector<Frame> held;
  std::set<uint32_t> buffers;
  for (uint32_t i = 0; i < 100; ++i) {
    camera->shots.push_back(shot(*camera, i, i));
    held.push_back(source->receive(milliseconds(1)).value());
    buffers.insert(held.back().info.buffer_index);
    if (held.size() > 8) held.erase(held.begin());
    for (const Frame& frame : held) EXPECT_EQ(at(frame, 0), frame.info.frame_id % 256);
  }
  EXPECT_LE(buffers.size(), 10u) << "buffers are used again";
  EXPECT_EQ(source->dropped_count(), 0u);
}

TEST(V4l2Source, StampsAreReadAsTheDriverMeansThem) {
  auto camera = std::make_shared<Camera>();
  auto source = open(camera).value();
  Shot start = shot(*camera, 1);
  start.flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC | V4L2_BUF_FLAG_TSTAMP_SRC_SOE;
  start.stamp_us = 1'000'000;
  camera->shots.push_back(start);
  Frame frame = source->receive(milliseconds(1)).value();
  EXPECT_EQ(frame.info.timestamp_sof_ns, 1'000'000'000u);
  EXPECT_EQ(frame.info.timestamp_eof_ns, 1'050'000'000u);
  Shot other = shot(*camera, 2);
  other.flags = V4L2_BUF_FLAG_TIMESTAMP_UNKNOWN;
  camera->shots.push_back(other);
  frame = source->receive(milliseconds(1)).value();
  EXPECT_EQ(frame.info.timestamp_eof_ns, frame.info.receive_time_ns) << "of no known clock";
}

TEST(V4l2Source, TornFramesAreErrorsAndTheCameraGoesOn) {
  auto camera = std::make_shared<Camera>();
  auto source = open(camera).value();
  for (const int64_t bytesused : {0, 63, 65, 0x7fffffff}) {
    Shot torn = shot(*camera, 5);
    torn.bytesused = bytesused;
    camera->shots.push_back(torn);
    const Result<Frame> frame = source->receive(milliseconds(1));
    ASSERT_FALSE(frame);
    EXPECT_EQ(frame.error().code(), ErrorCode::InvalidArgument);
    EXPECT_EQ(frame.error().reason(), "TornFrame");
    EXPECT_NE(frame.error().message().find(std::to_string(bytesused) + " bytes"),
              std::string::npos);
    EXPECT_NE(frame.error().message().find("has 64"), std::string::npos) << frame.error().message();
  }
  Shot faulty = shot(*camera, 6);
  faulty.flags |= V4L2_BUF_FLAG_ERROR;
  camera->shots.push_back(faulty);
  EXPECT_EQ(source->receive(milliseconds(1)).error().reason(), "TornFrame");
  camera->shots.push_back(shot(*camera, 7));
  EXPECT_EQ(source->receive(milliseconds(1))->info.frame_id, 7u);
  EXPECT_EQ(camera->queued.size(), 4u);
}

TEST(V4l2Source, AnUnpluggedCameraIsLostAndFoundAgain) {
  auto camera = std::make_shared<Camera>();
  auto source = open(camera).value();
  camera->shots.push_back(shot(*camera, 100));
  const Frame before = source->receive(milliseconds(1)).value();
  camera->is_present = false;
  const Result<Frame> lost = source->receive(milliseconds(1));
  EXPECT_EQ(lost.error().code(), ErrorCode::DeviceLost);
  EXPECT_EQ(camera->mapped, 0);
  EXPECT_FALSE(camera->is_open);
  EXPECT_EQ(source->receive(nanoseconds(0)).error().code(), ErrorCode::DeviceLost);
  EXPECT_EQ(source->receive(nanoseconds(0)).error().code(), ErrorCode::DeviceLost);
  EXPECT_EQ(at(before, 0), 0u) << "its pixels are ours";
  // Back, with another size.
  camera->is_present = true;
  camera->width = 16, camera->height = 8;
  camera->shots.push_back(shot(*camera, 0));
  const Frame after = source->receive(std::chrono::seconds(20)).value();
  EXPECT_EQ(after.layout, nv12_layout(16, 8).value());
  EXPECT_EQ(after.info.frame_id, 0u);
  EXPECT_NE(after.info.server_id, before.info.server_id);
  EXPECT_GT(after.info.generation, before.info.generation);
  EXPECT_EQ(source->dropped_count(), 0u);
  EXPECT_GE(camera->opened, 3);
}

TEST(V4l2Source, ADriverFaultIsALoss) {
  auto camera = std::make_shared<Camera>();
  auto source = open(camera).value();
  camera->dequeue_error = EIO;
  EXPECT_EQ(source->receive(milliseconds(1)).error().code(), ErrorCode::DeviceLost);
  camera->shots.push_back(shot(*camera, 1));
  EXPECT_TRUE(source->receive(milliseconds(1))) << "it opens anew at once";
  Shot wrong = shot(*camera, 2);
  wrong.wrong_index = 4;
  camera->shots.push_back(wrong);
  EXPECT_EQ(source->receive(milliseconds(1)).error().code(), ErrorCode::DeviceLost);
  camera->shots.push_back(shot(*camera, 3));
  EXPECT_EQ(source->receive(milliseconds(1))->info.frame_id, 3u);
}

TEST(V4l2Source, RefusesWhatItCannotUse) {
  const auto reason = [](const std::function<void(Camera&)>& change, V4l2Options options = {}) {
    auto camera = std::make_shared<Camera>();
    change(*camera);
    const auto source = open(camera, options);
    EXPECT_EQ(camera->mapped, source ? 4 : 0);
    return source ? std::string() : source.error().reason();
  };
  EXPECT_EQ(reason([](Camera&) {}), "");
  EXPECT_EQ(reason([](Camera& c) { c.is_rate_known = false; }), "");
  EXPECT_EQ(reason([](Camera& c) { c.is_present = false; }), "Camera");
  EXPECT_EQ(reason([](Camera& c) { c.capabilities = V4L2_CAP_META_CAPTURE; }), "CameraKind");
  EXPECT_EQ(reason([](Camera& c) { c.formats = {}; }), "CameraFormat");
  EXPECT_EQ(reason([](Camera& c) { c.bytesperline = 15; }), "CameraFormat");
  EXPECT_EQ(reason([](Camera& c) { c.bytesperline = 0xffffffff; }), "CameraFormat");
  EXPECT_EQ(reason([](Camera& c) { c.sizeimage = 63; }), "CameraFormat");
  EXPECT_EQ(reason([](Camera& c) { c.buffer_count = 1; }), "Camera");
  EXPECT_EQ(reason([](Camera& c) { c.buffer_count = 0xffffffff; }), "Camera");
  EXPECT_EQ(reason([](Camera& c) { c.buffer_bytes = 63; }), "Camera");
  EXPECT_EQ(reason([](Camera& c) { c.width = 7; }), "FrameSize");
  EXPECT_EQ(reason([](Camera& c) { c.width = 0xfffffff0; }), "FrameSize");
  EXPECT_EQ(reason([](Camera&) {}, {.width_px = 64, .height_px = 48}), "CameraSize");
  EXPECT_EQ(reason([](Camera&) {}, {.fps = 0}), "FrameRate");

  auto camera = std::make_shared<Camera>();
  camera->formats = {V4L2_PIX_FMT_MJPEG, V4L2_PIX_FMT_SBGGR10};
  const auto refused = open(camera);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unsupported);
  EXPECT_EQ(refused.error().message(),
            "Camera '/dev/video7' (Fake camera) offers MJPG, BG10; NV12, YU12, YUYV and GREY can "
            "be used.");
}

TEST(V4l2Source, AFileThatIsNoCameraIsRefused) {
  EXPECT_EQ(V4l2Source::open("/dev/null").error().code(), ErrorCode::Unsupported);
  EXPECT_EQ(V4l2Source::open("/dev/no-such-video").error().code(), ErrorCode::NotFound);
}

}  // namespace
}  // namespace ignis::pipeline
