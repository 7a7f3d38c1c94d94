#include "tools/video/av.h"

#include "ignis/base/log.h"

#include <unistd.h>

#include <array>
#include <cstdarg>
#include <mutex>
#include <string_view>

namespace ignis::tools {
namespace {

void log_from_av(void* context, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_WARNING || !is_logged(LogLevel::Debug)) return;
  std::array<char, 512> line{};
  int prefix = 1;
  av_log_format_line2(context, level, format, arguments, line.data(), static_cast<int>(line.size()),
                      &prefix);
  std::string_view text(line.data());
  while (text.ends_with('\n')) text.remove_suffix(1);
  // Damaged input is the file's fault and comes back as an Error; FFmpeg's own words are for those who look closer.
  IGNIS_LOG(Debug, "video") << text;
}

}  // namespace

std::string av_words(int code) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  if (av_strerror(code, text.data(), text.size()) < 0) {
    return "FFmpeg error " + std::to_string(code);
  }
  return text.data();
}

void quiet_av_log() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(log_from_av); });
}

OwnedFd::~OwnedFd() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace ignis::tools
