#pragma once

#include "tools/ignis/dm/live_feed.h"

#include <atomic>
#include <string>
#include <thread>

namespace ignis::tools {

/// One line that tells a person how the pipeline is: the newest turn, rate, latency, drops, reasons. At most `columns`
/// wide (0: as long as it gets).
std::string status_text(const Snapshot& snapshot, const LiveFeed& feed, size_t columns);

/// Writes that line to standard output: over and over in place on a terminal, once a second as lines of their own
/// otherwise. On a thread of its own; a reader that does not read makes it skip lines.
class StatusLine {
 public:
  explicit StatusLine(LiveFeed& feed);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

 private:
  void run();
  LiveFeed& feed_;
  bool is_terminal_;
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
};

}  // namespace ignis::tools
