#include "ignis/pipeline/frames/reference_ring_client.h"

#include "ignis/pipeline/frames/file_descriptor.h"
#include "ignis/pipeline/frames/layout.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ignis::pipeline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const FrameLayout kSmall = nv12_layout(64, 32).value();

void put(std::vector<std::byte>& bytes, size_t at, uint64_t value, size_t count = 8) {
  for (size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

/// A camera server of the reference protocol: answers every client with the same packet and descriptors.
class ReferenceServer {
 public:
  explicit ReferenceServer(size_t buffers = 3, size_t record_bytes = 112) {
    std::string pattern = (std::filesystem::temp_directory_path() / "ignis-ref-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path = pattern + "/camera";
    reply.assign(buffers * record_bytes,
                 std::byte{0x5a});  // what a record's tail holds is not looked at
    for (size_t i = 0; i < buffers; ++i) {
      const size_t at = i * record_bytes;
      put(reply, at, static_cast<uint64_t>(kSmall.size_bytes));
      put(reply, at + 40, 64), put(reply, at + 48, 32);
      put(reply, at + 56, static_cast<uint64_t>(kSmall.y_stride));
      put(reply, at + 64, static_cast<uint64_t>(kSmall.u_offset));
      memory.emplace_back(::memfd_create("reference", MFD_CLOEXEC));
      EXPECT_EQ(::ftruncate(memory.back().get(), kSmall.size_bytes + 8), 0);
    }
    listener_ = FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~ReferenceServer() {
    is_over_ = true;
    thread_.join();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  /// Fills a buffer with `value` and puts the id behind it.
  void write(size_t index, uint32_t id, uint8_t value) {
    std::vector<std::byte> bytes(static_cast<size_t>(kSmall.size_bytes) + 8, std::byte{value});
    put(bytes, bytes.size() - 8, id);
    EXPECT_EQ(::pwrite(memory[index].get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }

  std::string path;
  std::mutex mutex;  ///< guards the answers below
  std::vector<std::byte> reply;
  std::vector<FileDescriptor> memory;
  std::vector<std::byte> stream_list;
  std::atomic<uint32_t> asked{0};
  std::atomic<int> clients{0};

 private:
  void serve() {
    while (!is_over_) {
      pollfd entry{listener_.get(), POLLIN, 0};
      if (::poll(&entry, 1, 5) <= 0) continue;
      const FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      uint32_t question = 0;
      if (!client || ::recv(client.get(), &question, sizeof(question), 0) != sizeof(question))
        continue;
      const std::lock_guard<std::mutex> lock(mutex);
      asked = question;
      ++clients;
      if (question == 0xffffffff) {
        static_cast<void>(
            !::send(client.get(), stream_list.data(), stream_list.size(), MSG_NOSIGNAL));
        continue;
      }
      std::vector<char> control(CMSG_SPACE(memory.size() * sizeof(int)));
      iovec part{reply.data(), reply.size()};
      msghdr message{};
      message.msg_iov = &part, message.msg_iovlen = 1;
      if (!memory.empty()) {
        message.msg_control = control.data(), message.msg_controllen = control.size();
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(memory.size() * sizeof(int));
        for (size_t i = 0; i < memory.size(); ++i) {
          const int fd = memory[i].get();
          std::memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof(int));
        }
      }
      static_cast<void>(!::sendmsg(client.get(), &message, MSG_NOSIGNAL));
    }
  }

  std::string folder_;
  FileDescriptor listener_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

/// A client with notifications from a list.
struct Client {
  explicit Client(const std::string& path, bool is_latest_only = true) {
    ReferenceRingOptions options;
    options.socket_path = path;
    options.is_latest_only = is_latest_only;
    options.next_notification = [this](std::chrono::nanoseconds) -> Result<ReferenceNotification> {
      if (notifications.empty()) return Error(ErrorCode::Timeout, "No notification came.");
      const ReferenceNotification next = notifications.front();
      notifications.pop_front();
      return next;
    };
    source = ReferenceRingClient::create(options).value();
  }
  void tell(uint64_t index, uint32_t id, uint64_t server_id = 7) {
    notifications.push_back({server_id, index, id, 1000 + id, 2000 + id, true});
  }
  std::deque<ReferenceNotification> notifications;
  std::unique_ptr<ReferenceRingClient> source;
};

TEST(ReferenceRing, ReadsANotification) {
  std::vector<std::byte> packet(48, std::byte{0xee});  // what pads is not looked at
  put(packet, 0, 0x1122334455667788), put(packet, 8, 3), put(packet, 16, 0xfffffffe, 4);
  put(packet, 24, 123456789012), put(packet, 32, 123456789999), packet[40] = std::byte{1};
  const ReferenceNotification expected{0x1122334455667788, 3,   0xfffffffe, 123456789012,
                                       123456789999,       true};
  EXPECT_EQ(decode_reference_notification(packet).value(), expected);
  packet.pop_back();
  EXPECT_EQ(decode_reference_notification(packet).error().reason(), "ReferenceProtocol");
}

TEST(ReferenceRing, GivesFrames) {
  for (const size_t record_bytes : {size_t{72}, size_t{112}, size_t{136}}) {
    ReferenceServer server(3, record_bytes);
    Client client(server.path);
    server.write(1, 100, 0xab);
    client.tell(1, 100);
    const Frame frame = client.source->receive(seconds(20)).value();
    EXPECT_EQ(server.asked.load(), 1u);
    EXPECT_EQ(frame.layout, kSmall);
    EXPECT_EQ(frame.info.frame_id, 100u);
    EXPECT_EQ(frame.info.server_id, 7u);
    EXPECT_EQ(frame.info.timestamp_sof_ns, 1100u);
    EXPECT_EQ(frame.info.timestamp_eof_ns, 2100u);
    EXPECT_TRUE(frame.info.valid);
    ASSERT_EQ(frame.bytes.size(), static_cast<size_t>(kSmall.size_bytes));
    for (const std::byte byte : frame.bytes) ASSERT_EQ(byte, std::byte{0xab});
    server.write(1, 103, 0xcd);  // the frame is a copy
    EXPECT_EQ(frame.bytes[0], std::byte{0xab});
    EXPECT_EQ(client.source->receive(milliseconds(1)).error().code(), ErrorCode::Timeout);
  }
}

TEST(ReferenceRing, ListsStreams) {
  ReferenceServer server;
  const auto list = [&](size_t list_bytes) {
    {
      const std::lock_guard<std::mutex> lock(server.mutex);
      server.stream_list.resize(list_bytes);
      for (size_t at = 0; at + 4 <= list_bytes; at += 4) put(server.stream_list, at, at / 4, 4);
    }
    return list_reference_streams(server.path, seconds(20));
  };
  EXPECT_EQ(list(12).value(), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(list(11).error().reason(), "ReferenceProtocol");
  EXPECT_EQ(list(65 * 4).error().reason(), "ReferenceProtocol");
  EXPECT_EQ(list(64 * 4)->size(), 64u);
}

TEST(ReferenceRing, LatestOnlySkipsAndCounts) {
  ReferenceServer server;
  Client client(server.path);
  server.write(0, 10, 1), client.tell(0, 10);
  EXPECT_EQ(client.source->receive(seconds(20))->info.frame_id, 10u);
  server.write(1, 11, 2), client.tell(1, 11);
  server.write(2, 12, 3), client.tell(2, 12);
  EXPECT_EQ(client.source->receive(seconds(20))->info.frame_id, 12u);
  EXPECT_EQ(client.source->dropped_count(), 1u);
}

TEST(ReferenceRing, AFrameThatWasWrittenOverIsNotHandedOver) {
  ReferenceServer server;
  Client client(server.path, /*is_latest_only=*/false);
  server.write(0, 10, 1), client.tell(0, 10);
  EXPECT_EQ(client.source->receive(seconds(20))->info.frame_id, 10u);
  client.tell(1, 11);  // by now it holds frame 14
  server.write(1, 14, 5), client.tell(1, 14);
  const Frame frame = client.source->receive(seconds(20)).value();
  EXPECT_EQ(frame.info.frame_id, 14u);
  EXPECT_EQ(frame.bytes[0], std::byte{5});
  EXPECT_EQ(client.source->dropped_count(), 3u);
}

TEST(ReferenceRing, AnotherServerOrIndexMeansNewBuffers) {
  ReferenceServer server;
  Client client(server.path);
  server.write(0, 10, 1), client.tell(0, 10);
  const Frame first = client.source->receive(seconds(20)).value();
  client.tell(0, 1, 8);
  EXPECT_EQ(client.source->receive(seconds(20)).error().code(), ErrorCode::DeviceLost);
  server.write(0, 2, 1), client.tell(0, 2, 8);
  const Frame second = client.source->receive(seconds(20)).value();
  EXPECT_EQ(second.info.server_id, 8u);
  EXPECT_GT(second.info.generation, first.info.generation);
  EXPECT_EQ(server.clients.load(), 2);
  client.tell(3, 3, 8);
  EXPECT_EQ(client.source->receive(seconds(20)).error().code(), ErrorCode::DeviceLost);
}

TEST(ReferenceRing, RefusesAnswersThatCannotBeRight) {
  const auto reason = [](const std::function<void(ReferenceServer&)>& change) {
    ReferenceServer server;
    {
      const std::lock_guard<std::mutex> lock(server.mutex);
      change(server);
    }
    Client client(server.path);
    client.tell(0, 0);
    const Result<Frame> frame = client.source->receive(seconds(20));
    return frame ? "a frame" : frame.error().reason();
  };
  EXPECT_EQ(reason([](ReferenceServer&) {}), "a frame");
  EXPECT_EQ(reason([](ReferenceServer& s) { s.memory.pop_back(); }), "ReferenceProtocol");
  EXPECT_EQ(reason([](ReferenceServer& s) { s.memory.clear(); }), "ReferenceProtocol");
  EXPECT_EQ(reason([](ReferenceServer& s) { s.reply.resize(3 * 64); }), "ReferenceProtocol");
  EXPECT_EQ(reason([](ReferenceServer& s) { s.reply.resize(100); }), "ReferenceProtocol");
  EXPECT_EQ(reason([](ReferenceServer& s) { put(s.reply, 40, 66000); }), "ReferenceProtocol")
      << "width";
  EXPECT_EQ(reason([](ReferenceServer& s) { put(s.reply, 48, ~uint64_t{0}); }),
            "ReferenceProtocol");
  EXPECT_EQ(reason([](ReferenceServer& s) { put(s.reply, 56, 32); }), "ReferenceProtocol")
      << "stride";
  EXPECT_EQ(reason([](ReferenceServer& s) { put(s.reply, 64, 0); }), "ReferenceProtocol")
      << "planes overlap";
  EXPECT_EQ(reason([](ReferenceServer& s) { put(s.reply, 0, uint64_t{1} << 40); }),
            "ReferenceProtocol");
  EXPECT_EQ(reason([](ReferenceServer& s) {
              EXPECT_EQ(::ftruncate(s.memory[1].get(), kSmall.size_bytes + 7), 0);
            }),
            "ReferenceProtocol")
      << "short memory";
}

TEST(ReferenceRing, MemoryThatIsCutShortIsAnErrorNotASignal) {
  ReferenceServer server;
  Client client(server.path);
  server.write(0, 10, 1), client.tell(0, 10);
  ASSERT_TRUE(client.source->receive(seconds(20)));
  ASSERT_EQ(::ftruncate(server.memory[0].get(), 100), 0);
  client.tell(0, 11);
  EXPECT_EQ(client.source->receive(seconds(20)).error().reason(), "ReferenceProtocol");
}

TEST(ReferenceRing, TakesRandomAnswersWithoutHarm) {
  std::mt19937_64 rng(11);
  for (int round = 0; round < 200; ++round) {
    ReferenceServer server(1 + rng() % 3);
    std::unique_lock<std::mutex> lock(server.mutex);
    for (uint64_t change = rng() % 4; change > 0; --change) {
      const uint64_t field = std::vector<uint64_t>{0, 40, 48, 56, 64}[rng() % 5];
      put(server.reply, field, rng() >> (rng() % 64));
    }
    if (rng() % 4 == 0) server.reply.resize(rng() % 400);
    lock.unlock();
    Client client(server.path);
    client.tell(rng() % 4, 0);
    const Result<Frame> frame = client.source->receive(milliseconds(100));
    if (!frame) continue;
    EXPECT_TRUE(check_layout(frame->layout, frame->bytes.size()));
  }
}

TEST(ReferenceRing, WithoutAServerItIsLost) {
  Client client("/tmp/ignis-no-such-server");
  client.tell(0, 0);
  EXPECT_EQ(client.source->receive(milliseconds(1)).error().code(), ErrorCode::DeviceLost);
  EXPECT_EQ(list_reference_streams("/tmp/ignis-no-such-server", milliseconds(1)).error().code(),
            ErrorCode::DeviceLost);
  EXPECT_FALSE(list_reference_streams(std::string(200, 'x'), milliseconds(1)));
  EXPECT_FALSE(ReferenceRingClient::create({}));
}

}  // namespace
}  // namespace ignis::pipeline
