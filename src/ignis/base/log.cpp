#include "ignis/base/log.h"

#include <chrono>
#include <mutex>
#include <utility>

namespace ignis {
namespace {

std::atomic<LogLevel> lowest_level{LogLevel::Off};
thread_local bool is_inside_sink = false;

// Never destroyed: objects with static storage may still log while the process ends.
std::mutex& sink_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
LogSink& current_sink() {
  static auto* sink = new LogSink;
  return *sink;
}

}  // namespace

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::Debug: return "debug";
    case LogLevel::Info: return "info";
    case LogLevel::Warning: return "warning";
    case LogLevel::Error: return "error";
    case LogLevel::Off: return "off";
  }
  return "unknown";
}

void set_log_sink(LogSink sink, LogLevel lowest) {
  const std::lock_guard lock(sink_mutex());
  lowest_level.store(sink ? lowest : LogLevel::Off, std::memory_order_relaxed);
  current_sink() = std::move(sink);
}

bool is_logged(LogLevel level) {
  return level >= lowest_level.load(std::memory_order_relaxed) && level != LogLevel::Off;
}

namespace detail {

LogMessage::~LogMessage() {
  if (is_inside_sink) return;
  const std::string text = std::move(text_).str();
  const std::lock_guard lock(sink_mutex());
  if (!current_sink()) return;  // taken away while the text was built
  is_inside_sink = true;
  current_sink()(LogRecord{level_, area_, text, file_, line_});
  is_inside_sink = false;
}

bool LogRateLimit::is_due(int64_t interval_ms) {
  const int64_t now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                             std::chrono::steady_clock::now().time_since_epoch())
                             .count();
  int64_t due_ns = next_ns_.load(std::memory_order_relaxed);
  if (due_ns != 0 && now_ns < due_ns) return false;
  return next_ns_.compare_exchange_strong(due_ns, now_ns + interval_ms * 1'000'000,
                                          std::memory_order_relaxed);
}

}  // namespace detail
}  // namespace ignis
