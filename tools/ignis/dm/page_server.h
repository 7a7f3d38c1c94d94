#pragma once

#include "ignis/base/result.h"

#include "tools/ignis/dm/live_feed.h"
#include "tools/ignis/dm/page_data.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ignis::tools {

/// Serves the live page on this machine's loopback address, and only to pages of its own: requests with another Host
/// (DNS rebinding) or from another site are refused. Runs on threads of its own and only reads the feed.
class PageServer {
 public:
  /// `port` 0 takes a free one. The feed outlives the server. Errors: InvalidArgument with reason "File" when the port
  /// cannot be had.
  static Result<std::unique_ptr<PageServer>> start(int port, LiveFeed& feed, const PageInfo& info);
  /// Ends within about two seconds, whatever the browsers do. Close the feed first.
  ~PageServer();

  int port() const;
  std::string url() const;  ///< "http://127.0.0.1:8780/"
  /// Pictures handed out, those that could not be made, and why.
  SinkState state() const;

 private:
  struct State;
  explicit PageServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// True for "127.0.0.1:PORT", "localhost:PORT" and, on port 80, the names alone.
bool is_own_host(const std::string& host, int port);

}  // namespace ignis::tools
