#include "ignis/pipeline/frames/ring_client.h"
#include "ignis/pipeline/frames/ring_server.h"
#include "ignis/pipeline/frames/test_ring.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace ignis::pipeline {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

const FrameLayout kSmall = nv12_layout(64, 32).value();

struct Pair {
  explicit Pair(RingServerOptions server_options = {}, RingClientOptions client_options = {}) {
    name = unique_ring_name();
    server = RingServer::create(name, kSmall, server_options).value();
    client = RingClient::create(name, client_options).value();
    connect(*server, *client);
  }
  std::string name;
  std::unique_ptr<RingServer> server;
  std::unique_ptr<RingClient> client;
};

TEST(Ring, GivesWhatWasPublished) {
  Pair pair;
  Result<std::span<std::byte>> bytes = pair.server->begin_frame();
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), static_cast<size_t>(kSmall.size_bytes));
  for (size_t i = 0; i < bytes->size(); ++i) (*bytes)[i] = static_cast<std::byte>(i * 7 + i / 251);
  FrameInfo info = info_of(41);
  info.valid = false;
  pair.server->end_frame(info);
  const Frame frame = pair.client->receive(kLong).value();
  EXPECT_EQ(frame.layout, kSmall);
  EXPECT_EQ(frame.info.frame_id, 41u);
  EXPECT_EQ(frame.info.stream_id, 1u);
  EXPECT_EQ(frame.info.server_id, pair.server->server_id());
  EXPECT_NE(frame.info.generation, 0u);
  EXPECT_EQ(frame.info.timestamp_sof_ns, 1041u);
  EXPECT_EQ(frame.info.timestamp_eof_ns, 2041u);
  EXPECT_GT(frame.info.receive_time_ns, 0u);
  EXPECT_FALSE(frame.info.valid);
  ASSERT_EQ(frame.bytes.size(), static_cast<size_t>(kSmall.size_bytes));
  for (size_t i = 0; i < frame.bytes.size(); ++i)
    ASSERT_EQ(frame.bytes[i], static_cast<std::byte>(i * 7 + i / 251)) << "byte " << i;
  EXPECT_TRUE(frame.memory->is_intact());
  EXPECT_EQ(pair.client->receive(milliseconds(1)).error().code(), ErrorCode::Timeout);
}

TEST(Ring, ItsReadersCannotWrite) {
  Pair pair;
  ASSERT_TRUE(publish(*pair.server, 1));
  const Frame frame = pair.client->receive(kLong).value();
  void* page = const_cast<std::byte*>(frame.bytes.data());
  EXPECT_NE(::mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
}

TEST(Ring, LatestOnlyHandsOverTheNewest) {
  Pair pair;
  for (uint32_t id = 1; id <= 5; ++id) ASSERT_TRUE(publish(*pair.server, id));
  const Frame frame = pair.client->receive(kLong).value();
  EXPECT_EQ(frame.info.frame_id, 5u);
  EXPECT_TRUE(is_as_published(frame));
  EXPECT_EQ(pair.client->dropped_count(), 4u);
}

TEST(Ring, EachFrameComesInOrderWhenAskedFor) {
  Pair pair({}, {.is_latest_only = false});
  for (uint32_t id = 1; id <= 6; ++id) ASSERT_TRUE(publish(*pair.server, id));
  for (uint32_t id = 1; id <= 6; ++id) {
    const Frame frame = pair.client->receive(kLong).value();
    EXPECT_EQ(frame.info.frame_id, id);
    EXPECT_TRUE(is_as_published(frame));
  }
  EXPECT_EQ(pair.client->dropped_count(), 0u);
}

TEST(Ring, FramesOverwrittenBeforeTheyWerePinnedAreSkippedAndCounted) {
  Pair pair({.slot_count = 2}, {.is_latest_only = false});
  for (uint32_t id = 1; id <= 6; ++id) ASSERT_TRUE(publish(*pair.server, id));
  // Slots hold 5 and 6 by now.
  EXPECT_EQ(pair.client->receive(kLong)->info.frame_id, 5u);
  EXPECT_EQ(pair.client->receive(kLong)->info.frame_id, 6u);
  EXPECT_EQ(pair.client->dropped_count(), 4u);
}

TEST(Ring, APinnedSlotIsNeverWritten) {
  Pair pair({.slot_count = 4});
  ASSERT_TRUE(publish(*pair.server, 1));
  const Frame held = pair.client->receive(kLong).value();
  for (uint32_t id = 2; id <= 50; ++id) {
    ASSERT_TRUE(publish(*pair.server, id));
    const Frame frame = pair.client->receive(kLong).value();
    EXPECT_NE(frame.info.buffer_index, held.info.buffer_index);
    EXPECT_TRUE(is_as_published(frame));
  }
  EXPECT_TRUE(is_as_published(held));
  EXPECT_TRUE(held.memory->is_intact());
  EXPECT_EQ(pair.server->counters().dropped, 0u);
}

TEST(Ring, WithEverySlotPinnedTheNewFrameIsDroppedAndCounted) {
  Pair pair({.slot_count = 3, .max_pins_per_client = 3});
  std::vector<Frame> held;
  for (uint32_t id = 1; id <= 3; ++id) {
    ASSERT_TRUE(publish(*pair.server, id));
    held.push_back(pair.client->receive(kLong).value());
  }
  EXPECT_EQ(pair.server->counters().pinned, 3u);
  const Result<std::span<std::byte>> refused = pair.server->begin_frame();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::OutOfMemory);
  EXPECT_EQ(refused.error().reason(), "RingExhausted");
  EXPECT_FALSE(publish(*pair.server, 5));
  EXPECT_EQ(pair.server->counters().dropped, 2u);
  EXPECT_EQ(pair.server->counters().published, 3u);
  for (const Frame& frame : held) EXPECT_TRUE(is_as_published(frame));
  // One is released, from another thread: the camera goes on in its slot.
  const uint32_t slot = held[1].info.buffer_index;
  std::thread([frame = std::move(held[1])]() mutable { frame = Frame{}; }).join();
  EXPECT_TRUE(eventually([&] { return pair.server->counters().pinned == 2; }));
  ASSERT_TRUE(publish(*pair.server, 6));
  const Frame frame = pair.client->receive(kLong).value();
  EXPECT_EQ(frame.info.frame_id, 6u);
  EXPECT_EQ(frame.info.buffer_index, slot);
  EXPECT_EQ(pair.client->dropped_count(), 2u) << "what the server dropped is missing here too";
}

TEST(Ring, OneClientMayHoldHalfOfTheSlots) {
  Pair pair({.slot_count = 4});
  std::vector<Frame> held;
  for (uint32_t id = 1; id <= 2; ++id) {
    ASSERT_TRUE(publish(*pair.server, id));
    held.push_back(pair.client->receive(kLong).value());
  }
  ASSERT_TRUE(publish(*pair.server, 3));
  const Result<Frame> refused = pair.client->receive(kLong);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "PinLimit");
  held.pop_back();
  ASSERT_TRUE(publish(*pair.server, 4));
  EXPECT_EQ(pair.client->receive(kLong)->info.frame_id, 4u);
}

TEST(Ring, ServesSeveralClients) {
  Pair pair;
  std::vector<std::unique_ptr<RingClient>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(RingClient::create(pair.name).value());
    connect(*pair.server, *clients.back());
  }
  for (uint32_t id = 1; id <= 20; ++id) {
    ASSERT_TRUE(publish(*pair.server, id));
    for (const auto& client : clients) {
      const Frame frame = client->receive(kLong).value();
      EXPECT_EQ(frame.info.frame_id, id);
      EXPECT_TRUE(is_as_published(frame));
    }
  }
  EXPECT_EQ(pair.server->counters().clients, 6u);
}

TEST(Ring, AClientThatNeverReadsIsCutOffAndStallsNobody) {
  Pair pair({.unread_limit = 10});
  auto sleeper = RingClient::create(pair.name).value();
  connect(*pair.server, *sleeper);
  for (uint32_t id = 1; id <= 500; ++id) {
    ASSERT_TRUE(publish(*pair.server, id));
    EXPECT_EQ(pair.client->receive(kLong)->info.frame_id, id);
  }
  EXPECT_EQ(pair.server->counters().evicted, 1u);
  EXPECT_TRUE(eventually([&] { return pair.server->counters().clients == 1; }));
  // It wakes up, learns that it was left behind, and comes back.
  uint32_t last_id = 0;
  bool was_lost = false;
  EXPECT_TRUE(eventually([&] {
    static_cast<void>(publish(*pair.server, 501));
    const Result<Frame> frame = sleeper->receive(milliseconds(10));
    if (frame) last_id = frame->info.frame_id;
    else if (frame.error().code() == ErrorCode::DeviceLost) was_lost = true;
    return was_lost && last_id == 501;
  }));
}

TEST(Ring, ALayoutChangeBeginsANewGeneration) {
  Pair pair;
  ASSERT_TRUE(publish(*pair.server, 1));
  const Frame before = pair.client->receive(kLong).value();
  const FrameLayout larger = nv12_layout(128, 96).value();
  ASSERT_TRUE(pair.server->change_layout(larger));
  for (uint32_t id = 2; id <= 30; ++id) {
    ASSERT_TRUE(publish(*pair.server, id));
    const Frame frame = pair.client->receive(kLong).value();
    EXPECT_EQ(frame.layout, larger);
    EXPECT_EQ(frame.bytes.size(), static_cast<size_t>(larger.size_bytes));
    EXPECT_GT(frame.info.generation, before.info.generation);
    EXPECT_EQ(frame.info.server_id, before.info.server_id);
    EXPECT_TRUE(is_as_published(frame));
  }
  EXPECT_TRUE(is_as_published(before));
  EXPECT_TRUE(before.memory->is_intact());
}

TEST(Ring, PublishCopiesAFrameAndFollowsItsLayout) {
  Pair pair;
  const FrameLayout i420 = i420_layout(32, 16).value();
  const std::vector<std::byte> bytes(static_cast<size_t>(i420.size_bytes), std::byte{9});
  Frame frame;
  frame.layout = i420;
  frame.info = info_of(9);
  frame.bytes = bytes;
  ASSERT_TRUE(pair.server->publish(frame));
  const Frame received = pair.client->receive(kLong).value();
  EXPECT_EQ(received.layout, i420);
  EXPECT_TRUE(is_as_published(received));
  frame.bytes = frame.bytes.first(100);
  EXPECT_EQ(pair.server->publish(frame).error().reason(), "TornFrame");
}

TEST(Ring, ACancelledFrameIsNeverSeen) {
  Pair pair({.slot_count = 2});
  ASSERT_TRUE(publish(*pair.server, 1));
  ASSERT_TRUE(pair.server->begin_frame());
  pair.server->cancel_frame();
  ASSERT_TRUE(pair.server->begin_frame());
  pair.server->cancel_frame();
  ASSERT_TRUE(publish(*pair.server, 2));
  EXPECT_EQ(pair.client->receive(kLong)->info.frame_id, 2u);
}

TEST(Ring, FramesOutliveTheirClient) {
  Pair pair({.slot_count = 2});
  ASSERT_TRUE(publish(*pair.server, 1));
  Frame held = pair.client->receive(kLong).value();
  pair.client.reset();
  for (uint32_t id = 2; id <= 300; ++id) ASSERT_TRUE(publish(*pair.server, id));
  EXPECT_TRUE(is_as_published(held));
  EXPECT_TRUE(held.memory->is_intact());
  EXPECT_EQ(pair.server->counters().pinned, 1u);
  EXPECT_EQ(pair.server->counters().evicted, 0u) << "it asked not to be told any more";
  held = Frame{};
  EXPECT_TRUE(eventually([&] { return pair.server->counters().clients == 0; }));
  EXPECT_EQ(pair.server->counters().pinned, 0u);
}

TEST(Ring, WithoutAServerItIsLostAndFoundLater) {
  const std::string name = unique_ring_name();
  auto client = RingClient::create(name).value();
  const Result<Frame> none = client->receive(milliseconds(5));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::DeviceLost);
  EXPECT_EQ(none.error().reason(), "NoServer");
  EXPECT_NE(none.error().message().find(name), std::string::npos);
  auto server = RingServer::create(name, kSmall).value();
  connect(*server, *client);
  ASSERT_TRUE(publish(*server, 3));
  EXPECT_EQ(client->receive(kLong)->info.frame_id, 3u);
}

TEST(Ring, RefusesWhatCannotBe) {
  const std::string name = unique_ring_name();
  auto server = RingServer::create(name, kSmall, {.max_clients = 1}).value();
  EXPECT_EQ(RingServer::create(name, kSmall).error().reason(), "NameInUse");
  EXPECT_EQ(RingServer::create("a/b", kSmall).error().reason(), "RingName");
  EXPECT_EQ(RingClient::create("").error().reason(), "RingName");
  EXPECT_EQ(RingServer::create(unique_ring_name(), kSmall, {.slot_count = 1}).error().reason(),
            "RingOptions");
  EXPECT_EQ(RingServer::create(unique_ring_name(), kSmall, {.slot_count = 65}).error().reason(),
            "RingOptions");
  EXPECT_EQ(RingServer::create(unique_ring_name(), FrameLayout{}).error().code(),
            ErrorCode::InvalidArgument);
  const auto reason = [](RingClient& client) {
    std::string found;
    EXPECT_TRUE(eventually([&] {
      const Result<Frame> frame = client.receive(milliseconds(50));
      found = frame ? "" : frame.error().reason();
      return found == "RingStream" || found == "TooManyClients";
    })) << found;
    return found;
  };
  auto other_stream = RingClient::create(name, {.stream_id = 2}).value();
  EXPECT_EQ(reason(*other_stream), "RingStream");
  auto first = RingClient::create(name).value();
  connect(*server, *first);
  auto second = RingClient::create(name).value();
  EXPECT_EQ(reason(*second), "TooManyClients");
}

// ---- across processes

/// A child process that publishes frames of `first_id` on until it is killed.
pid_t fork_server(const std::string& name, uint32_t first_id) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  auto server = RingServer::create(name, kSmall);
  if (!server) ::_exit(1);
  for (uint32_t id = first_id; ::getppid() != 1; ++id) {
    static_cast<void>(publish(**server, id));
    ::usleep(1000);
  }
  ::_exit(0);
}

void kill_and_wait(pid_t child) {
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself with " << WEXITSTATUS(status);
}

TEST(RingProcesses, AKilledServerIsLostAndItsSuccessorFound) {
  const std::string name = unique_ring_name();
  auto client = RingClient::create(name).value();
  uint64_t last_generation = 0;
  uint64_t last_server = 0;
  std::vector<Frame> held;
  for (uint32_t round = 1; round <= 3; ++round) {
    const pid_t child = fork_server(name, round * 1000000);
    ASSERT_GT(child, 0);
    int frames = 0;
    Frame frame;
    ASSERT_TRUE(eventually([&] {
      Result<Frame> next = client->receive(milliseconds(100));
      if (!next) return false;
      EXPECT_TRUE(is_as_published(*next));
      EXPECT_EQ(next->info.frame_id / 1000000, round);
      EXPECT_GE(next->info.generation, last_generation);
      frame = *std::move(next);
      return ++frames == 20;
    }));
    EXPECT_GT(frame.info.generation, last_generation);
    EXPECT_NE(frame.info.server_id, last_server);
    last_generation = frame.info.generation;
    last_server = frame.info.server_id;
    kill_and_wait(child);
    held.push_back(std::move(frame));
    ASSERT_TRUE(eventually([&] {  // frames told of before the end may still be asked for, in vain
      const Result<Frame> next = client->receive(nanoseconds(0));
      return !next && next.error().code() == ErrorCode::DeviceLost;
    }));
  }
  for (const Frame& frame : held)
    EXPECT_TRUE(is_as_published(frame)) << "memory outlives its server";
}

// Section 10.6 of the specification: after a server restart with the same addresses, nothing of the old mapping is used.
TEST(RingProcesses, AServerRestartWithTheSameAddressesBeginsANewGeneration) {
  const std::string name = unique_ring_name();
  auto client = RingClient::create(name).value();
  const std::byte* address = nullptr;
  FrameInfo before;
  for (const uint32_t first_id : {1'000'000u, 2'000'000u}) {
    const pid_t child = fork_server(name, first_id);
    ASSERT_GT(child, 0);
    Result<Frame> frame = Error(ErrorCode::Timeout, "");
    ASSERT_TRUE(eventually([&] {
      frame = client->receive(milliseconds(100));
      return frame && frame->info.buffer_index == 0;
    }));
    EXPECT_TRUE(is_as_published(*frame));
    EXPECT_EQ(frame->info.frame_id / 1'000'000, first_id / 1'000'000);
    if (address != nullptr) {
      EXPECT_NE(frame->info.server_id, before.server_id);
      EXPECT_GT(frame->info.generation, before.generation);
      if (address != frame->bytes.data())
        std::printf("note: this time the kernel put the new mapping elsewhere\n");
    }
    address = frame->bytes.data();
    before = frame->info;
    frame = Error(ErrorCode::Timeout, "");  // the last owner of the old mapping
    kill_and_wait(child);
    ASSERT_TRUE(eventually([&] {
      const Result<Frame> next = client->receive(nanoseconds(0));
      return !next && next.error().code() == ErrorCode::DeviceLost;
    }));
  }
}

TEST(RingProcesses, AKilledClientReleasesItsPins) {
  const std::string name = unique_ring_name();
  // The child first: a forked copy of the server's socket would keep it open.
  const pid_t child = ::fork();
  if (child == 0) {
    auto client = RingClient::create(name);
    std::vector<Frame> held;
    while (::getppid() != 1) {
      Result<Frame> frame = (*client)->receive(milliseconds(20));
      if (frame) held.push_back(*std::move(frame));
    }
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  auto server =
      RingServer::create(name, kSmall, {.slot_count = 4, .max_pins_per_client = 4}).value();
  uint32_t id = 0;
  EXPECT_TRUE(eventually([&] {
    static_cast<void>(publish(*server, ++id));
    return server->counters().pinned == 4;
  }));
  EXPECT_FALSE(server->begin_frame());
  kill_and_wait(child);
  EXPECT_TRUE(eventually([&] { return server->counters().pinned == 0; }));
  EXPECT_TRUE(publish(*server, ++id));
}

TEST(RingThreads, ReadersAndTheCameraRunAtOnce) {
  const std::string name = unique_ring_name();
  auto server =
      RingServer::create(name, kSmall, {.slot_count = 6, .max_pins_per_client = 2}).value();
  std::atomic<bool> is_over{false};
  std::vector<std::thread> readers;
  std::atomic<int> good{0};
  std::atomic<int> bad{0};
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&, i] {
      auto client = RingClient::create(name, {.is_latest_only = i != 0}).value();
      Frame last;
      while (!is_over.load()) {
        Result<Frame> frame = client->receive(milliseconds(5));
        if (!frame) continue;
        const bool is_right = is_as_published(*frame) && frame->memory->is_intact() &&
                              (last.bytes.empty() || is_as_published(last));
        ++(is_right ? good : bad);
        last = *std::move(frame);
      }
    });
  }
  uint32_t id = 0;
  EXPECT_TRUE(eventually([&] {
    static_cast<void>(publish(*server, ++id));
    return good.load() > 300;
  }));
  is_over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(bad.load(), 0);
}

}  // namespace
}  // namespace ignis::pipeline
