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

// Each function of FFmpeg in use, by its library, as a pointer that hides FFmpeg's own name in this namespace: a command that
// plays no video does not load the hundred libraries behind it. Null until load_av().
// clang-format off
#define IGNIS_AV_FUNCTIONS(AV)                                                                                     \
  AV(util, av_d2q) AV(util, av_dict_free) AV(util, av_dict_set) AV(util, av_dict_set_int) AV(util, av_frame_alloc) \
  AV(util, av_frame_free) AV(util, av_frame_get_buffer) AV(util, av_frame_make_writable) AV(util, av_frame_unref)  \
  AV(util, av_free) AV(util, av_image_fill_arrays) AV(util, av_log_format_line2) AV(util, av_log_set_callback)     \
  AV(util, av_malloc) AV(util, av_rescale_q) AV(util, av_strdup) AV(util, av_strerror)                             \
  AV(codec, av_packet_alloc) AV(codec, av_packet_free) AV(codec, av_packet_rescale_ts) AV(codec, av_packet_unref)  \
  AV(codec, avcodec_alloc_context3) AV(codec, avcodec_find_decoder) AV(codec, avcodec_find_encoder_by_name)        \
  AV(codec, avcodec_flush_buffers) AV(codec, avcodec_free_context) AV(codec, avcodec_get_name)                     \
  AV(codec, avcodec_open2) AV(codec, avcodec_parameters_from_context) AV(codec, avcodec_parameters_to_context)     \
  AV(codec, avcodec_receive_frame) AV(codec, avcodec_receive_packet) AV(codec, avcodec_send_frame)                 \
  AV(codec, avcodec_send_packet)                                                                                   \
  AV(format, av_find_best_stream) AV(format, av_read_frame) AV(format, av_seek_frame) AV(format, av_write_frame)   \
  AV(format, av_write_trailer) AV(format, avformat_alloc_context) AV(format, avformat_alloc_output_context2)       \
  AV(format, avformat_close_input) AV(format, avformat_find_stream_info) AV(format, avformat_free_context)         \
  AV(format, avformat_new_stream) AV(format, avformat_open_input) AV(format, avformat_write_header)                \
  AV(format, avio_alloc_context) AV(format, avio_context_free) AV(format, avio_flush)                              \
  AV(scale, sws_freeContext) AV(scale, sws_getCachedContext) AV(scale, sws_getCoefficients) AV(scale, sws_scale)   \
  AV(scale, sws_setColorspaceDetails)
// clang-format on
#define IGNIS_AV_DECLARE(library, name) extern decltype(&::name) name;
IGNIS_AV_FUNCTIONS(IGNIS_AV_DECLARE)
#undef IGNIS_AV_DECLARE

/// Loads FFmpeg's libraries, of the major versions that this was built with, and sends its messages to our log instead of
/// to the terminal. Once for the process; before anything else here. Errors: Unsupported naming what is not there.
Status load_av();

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
