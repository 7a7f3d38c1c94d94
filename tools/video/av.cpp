#include "tools/video/av.h"

#include "ignis/base/log.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <string_view>

namespace ignis::tools {

#define IGNIS_AV_DEFINE(library, name) decltype(&::name) name = nullptr;
IGNIS_AV_FUNCTIONS(IGNIS_AV_DEFINE)
#undef IGNIS_AV_DEFINE

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

class Library {
 public:
  Library(const char* name, Status& status) : name_(name), status_(status) {
    if (status_) handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);  // stays loaded
    if (status_ && handle_ == nullptr) fail();
  }
  template <typename Function>
  void find(const char* function, Function& pointer) {
    if (!status_) return;
    pointer = reinterpret_cast<Function>(::dlsym(handle_, function));
    if (pointer == nullptr) fail();
  }

 private:
  void fail() {
    const char* reason = ::dlerror();
    status_ =
        Error(ErrorCode::Unsupported, "Videos need FFmpeg's " + std::string(name_) + ": " +
                                          (reason != nullptr ? reason : "no reason given") + ".");
  }

  const char* name_;
  Status& status_;
  void* handle_ = nullptr;
};

Status load() {
  Status status;
  Library util("libavutil.so." AV_STRINGIFY(LIBAVUTIL_VERSION_MAJOR), status);
  Library codec("libavcodec.so." AV_STRINGIFY(LIBAVCODEC_VERSION_MAJOR), status);
  Library format("libavformat.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR), status);
  Library scale("libswscale.so." AV_STRINGIFY(LIBSWSCALE_VERSION_MAJOR), status);
#define IGNIS_AV_FIND(library, name) library.find(#name, name);
  IGNIS_AV_FUNCTIONS(IGNIS_AV_FIND)
#undef IGNIS_AV_FIND
  if (status) av_log_set_callback(log_from_av);
  return status;
}

}  // namespace

Status load_av() {
  static const Status loaded = load();
  if (loaded) return Status::ok();
  return Error(loaded.error());
}

std::string av_words(int code) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  if (av_strerror(code, text.data(), text.size()) < 0) {
    return "FFmpeg error " + std::to_string(code);
  }
  return text.data();
}

OwnedFd::~OwnedFd() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace ignis::tools
