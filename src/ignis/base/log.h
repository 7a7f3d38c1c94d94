#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string_view>

namespace ignis {

enum class LogLevel : uint8_t { Debug, Info, Warning, Error, Off };

/// "debug", "info", "warning", "error", "off".
std::string_view to_string(LogLevel level);

/// One message. The views live until the sink returns.
struct LogRecord {
  LogLevel level;
  std::string_view area;  ///< the layer that speaks: "onnx", "engine", "cpu"
  std::string_view text;  ///< a sentence, without a line break at the end
  std::string_view file;
  int line;
};
using LogSink = std::function<void(const LogRecord&)>;

/// Sends every record of at least `lowest` to `sink`, one at a time, from whichever thread speaks. There is no sink
/// at first: the library is silent until its user asks. An empty sink makes it silent again. A sink that logs loses
/// what it logs.
void set_log_sink(LogSink sink, LogLevel lowest = LogLevel::Warning);

/// True when a record of this level reaches a sink; one load.
bool is_logged(LogLevel level);

namespace detail {

/// Builds one record's text and hands it to the sink when destroyed.
class LogMessage {
 public:
  LogMessage(LogLevel level, std::string_view area, std::string_view file, int line)
      : level_(level), area_(area), file_(file), line_(line) {}
  LogMessage(const LogMessage&) = delete;
  LogMessage& operator=(const LogMessage&) = delete;
  ~LogMessage();
  template <typename T>
  LogMessage& operator<<(const T& value) {
    text_ << value;
    return *this;
  }

 private:
  LogLevel level_;
  std::string_view area_;
  std::string_view file_;
  int line_;
  std::ostringstream text_;
};

struct LogVoidify {
  void operator&(const LogMessage&) const {}
};

/// Says yes at most once in every `interval_ms`; the first time always. Safe from many threads.
class LogRateLimit {
 public:
  bool is_due(int64_t interval_ms);

 private:
  std::atomic<int64_t> next_ns_{0};
};

}  // namespace detail
}  // namespace ignis

/// IGNIS_LOG(Warning, "onnx") << "…"; the operands are not computed when nobody listens.
#define IGNIS_LOG(level, area) IGNIS_LOG_IF(level, area, true)

/// As IGNIS_LOG, when `condition` holds too (it is asked only when somebody listens).
#define IGNIS_LOG_IF(level, area, condition)                     \
  !(::ignis::is_logged(::ignis::LogLevel::level) && (condition)) \
      ? static_cast<void>(0)                                     \
      : ::ignis::detail::LogVoidify() &                          \
            ::ignis::detail::LogMessage(::ignis::LogLevel::level, (area), __FILE__, __LINE__)

/// As IGNIS_LOG, but this place speaks only once in the life of the process.
#define IGNIS_LOG_ONCE(level, area)                                        \
  IGNIS_LOG_IF(level, area, ([]() -> bool {                                \
                 static std::atomic<bool> spoken{false};                   \
                 return !spoken.exchange(true, std::memory_order_relaxed); \
               })())

/// As IGNIS_LOG, but this place speaks at most once in `interval_ms`.
#define IGNIS_LOG_EVERY_MS(level, area, interval_ms)         \
  IGNIS_LOG_IF(level, area, ([]() -> bool {                  \
                 static ::ignis::detail::LogRateLimit limit; \
                 return limit.is_due(interval_ms);           \
               })())
