#pragma once

// What the FFmpeg parts share. No header of FFmpeg is included outside tools/video.

#include "ignis/base/result.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <string>
#include <utility>

namespace ignis::tools {

struct AvFree {
  void operator()(AVFormatContext* context) const { avformat_close_input(&context); }
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(SwsContext* context) const { sws_freeContext(context); }
  void operator()(AVIOContext* io) const {
    av_free(io->buffer);  // FFmpeg may have replaced the one it was made with
    avio_context_free(&io);
  }
};
using AvInput = std::unique_ptr<AVFormatContext, AvFree>;
using AvCodec = std::unique_ptr<AVCodecContext, AvFree>;
using AvPacketPtr = std::unique_ptr<AVPacket, AvFree>;
using AvFramePtr = std::unique_ptr<AVFrame, AvFree>;
using AvScaler = std::unique_ptr<SwsContext, AvFree>;
using AvIo = std::unique_ptr<AVIOContext, AvFree>;

/// FFmpeg's words for one of its error numbers.
std::string av_words(int code);
/// Sends FFmpeg's own messages to our log instead of to the terminal. Once for the process.
void quiet_av_log();

/// A descriptor that closes itself.
class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  OwnedFd& operator=(OwnedFd other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd();
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace ignis::tools
