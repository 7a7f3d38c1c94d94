#pragma once

#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/ring_client.h"
#include "ignis/pipeline/frames/ring_server.h"
#include "ignis/pipeline/frames/ring_socket.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

// What the tests of the ring share. Only for tests.

namespace ignis::pipeline {

/// Long enough on a loaded machine; nothing here takes as long.
inline constexpr std::chrono::seconds kLong{20};

/// A name that no other test on this machine uses.
inline std::string unique_ring_name() {
  static std::atomic<int> next{0};
  return "test-" + std::to_string(::getpid()) + "-" + std::to_string(next++);
}

inline FrameInfo info_of(uint32_t id) {
  FrameInfo info;
  info.frame_id = id;
  info.timestamp_sof_ns = 1000 + id;
  info.timestamp_eof_ns = 2000 + id;
  return info;
}

/// Publishes a frame whose bytes all are the low byte of its id. False when it was dropped.
inline bool publish(RingServer& server, uint32_t id) {
  Result<std::span<std::byte>> bytes = server.begin_frame();
  if (!bytes) return false;
  std::fill(bytes->begin(), bytes->end(), static_cast<std::byte>(id));
  server.end_frame(info_of(id));
  return true;
}

/// True when all bytes are those that publish() wrote for the frame's id.
inline bool is_as_published(const Frame& frame) {
  return std::all_of(frame.bytes.begin(), frame.bytes.end(), [&](std::byte byte) {
    return byte == static_cast<std::byte>(frame.info.frame_id);
  });
}

/// Waits until a condition of another thread or process holds.
inline bool eventually(const std::function<bool()>& condition) {
  const uint64_t limit = monotonic_ns() + 20'000'000'000;
  while (!condition()) {
    if (monotonic_ns() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Lets the client connect: it asks in vain. No other client may come or go meanwhile.
inline void connect(RingServer& server, RingClient& client) {
  const uint32_t before = server.counters().clients;
  EXPECT_TRUE(eventually([&] {
    EXPECT_FALSE(client.receive(std::chrono::nanoseconds(0)));
    return server.counters().clients > before && client.describe().find('(') != std::string::npos;
  }));
}

}  // namespace ignis::pipeline
