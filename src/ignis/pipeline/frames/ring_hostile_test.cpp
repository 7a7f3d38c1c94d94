// The ring against a server and clients that do not keep to the protocol. Nothing here may crash, hang or hand over a
// frame that is not one.

#include "ignis/pipeline/frames/ring_client.h"
#include "ignis/pipeline/frames/ring_protocol.h"
#include "ignis/pipeline/frames/ring_server.h"
#include "ignis/pipeline/frames/ring_socket.h"
#include "ignis/pipeline/frames/test_ring.h"

#include "tests/support/seed.h"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace ignis::pipeline {
namespace {

using ignis::testing::test_seed;

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

const FrameLayout kSmall = nv12_layout(64, 32).value();

/// A server whose every word a test chooses.
class RawServer {
 public:
  RawServer() : name(unique_ring_name()), listener_(ring::listen_at(name).value()) {
    ring_.server_id = 77;
    ring_.epoch = 1;
    ring_.stream_id = 1;
    ring_.slot_count = 2;
    ring_.layout = kSmall;
    ring_.memory_bytes = ring::memory_bytes(kSmall, 2);
  }
  ring::Ring good_ring() const { return ring_; }

  /// Takes the client in and reads its Hello.
  void accept(RingClient& client) {
    ASSERT_TRUE(eventually([&] {
      socket = FileDescriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK));
      if (!socket) static_cast<void>(client.receive(nanoseconds(0)));
      return static_cast<bool>(socket);
    }));
    ring::Received hello;
    ASSERT_EQ(ring::receive_packet(socket.get(), hello), ring::ReceiveResult::Received);
    ASSERT_EQ(ring::decode(hello.span()).value(), ring::Record(ring::Hello{1}));
  }
  void send(const ring::Record& record, int fd = -1) {
    ASSERT_EQ(ring::send_packet(socket.get(), ring::encode(record).span(), fd),
              ring::SendResult::Sent);
  }
  void send_good_ring() {
    memory = ring::create_shared_memory(ring_.memory_bytes).value();
    send(ring_, memory.fd.get());
  }
  /// Answers the next Pin, if one came.
  bool answer_pin(ring::PinAnswer answer) {
    ring::Received received;
    if (ring::receive_packet(socket.get(), received) != ring::ReceiveResult::Received) return false;
    const Result<ring::Record> record = ring::decode(received.span());
    const auto* pin = std::get_if<ring::Pin>(&*record);
    if (pin == nullptr) return false;
    send(ring::PinReply{pin->epoch, pin->sequence, pin->slot, answer});
    return true;
  }
  void write_slot(uint32_t slot, uint64_t sequence, uint32_t frame_id) {
    memory.mapping.header(slot).frame_id.store(frame_id);
    memory.mapping.header(slot).sequence.store(sequence);
  }

  std::string name;
  FileDescriptor socket;
  ring::SharedMemory memory;

 private:
  FileDescriptor listener_;
  ring::Ring ring_;
};

/// A memfd of this size, sealed or not.
FileDescriptor plain_memory(uint64_t size_bytes, bool is_sealed) {
  FileDescriptor fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size_bytes)), 0);
  const int seals = is_sealed ? F_SEAL_SHRINK | F_SEAL_GROW : 0;
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

/// What the client says after `act` sent something to it.
std::string reason_after(const std::function<void(RawServer&)>& act) {
  RawServer server;
  auto client = RingClient::create(server.name).value();
  server.accept(*client);
  act(server);
  const Result<Frame> frame = client->receive(milliseconds(200));
  return frame ? "a frame" : frame.error().reason();
}

TEST(HostileServer, ItsRingIsRefused) {
  const auto with_ring = [](auto change, uint64_t bytes_off = 0, bool is_sealed = true) {
    return reason_after([&](RawServer& server) {
      ring::Ring record = server.good_ring();
      const uint64_t size = record.memory_bytes - bytes_off;
      change(record);
      server.send(record, plain_memory(size, is_sealed).get());
    });
  };
  EXPECT_EQ(with_ring([](ring::Ring&) {}), "") << "the good one: it only has no frame yet";
  EXPECT_EQ(with_ring([](ring::Ring&) {}, 1), "RingProtocol") << "short memory";
  EXPECT_EQ(with_ring([](ring::Ring&) {}, 0, false), "RingProtocol") << "not sealed";
  EXPECT_EQ(with_ring([](ring::Ring& r) { r.memory_bytes += 4096; }), "RingProtocol");
  EXPECT_EQ(with_ring([](ring::Ring& r) { r.slot_count = 64; }), "RingProtocol");
  EXPECT_EQ(with_ring([](ring::Ring& r) { r.stream_id = 2; }), "RingProtocol");
  EXPECT_EQ(with_ring([](ring::Ring& r) {
              r.layout.width_px = 62;
              r.layout.y_stride = -2048;
            }),
            "RingProtocol");
  EXPECT_EQ(with_ring([](ring::Ring& r) { r.layout.u_offset = int64_t{1} << 40; }), "RingProtocol");
  EXPECT_EQ(with_ring([](ring::Ring& r) { r.layout.size_bytes = int64_t{1} << 62; }),
            "RingProtocol");
}

TEST(HostileServer, ItsDescriptorsAreRefused) {
  EXPECT_EQ(reason_after([](RawServer& s) { s.send(s.good_ring()); }), "RingProtocol") << "none";
  EXPECT_EQ(reason_after([](RawServer& s) {
              const FileDescriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
              s.send(s.good_ring(), file.get());
            }),
            "RingProtocol")
      << "a device, not a memfd";
  EXPECT_EQ(reason_after([](RawServer& s) {
              const FileDescriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
              s.send(s.good_ring(), file.get());
            }),
            "RingProtocol")
      << "a large enough file that can be cut short";
  EXPECT_EQ(reason_after([](RawServer& s) {
              const FileDescriptor memory = plain_memory(4096, true);
              s.send_good_ring();
              s.send(ring::FrameRecord{1, 0, 1, 2, 1, 0, 0, 1, 0}, memory.get());
            }),
            "RingProtocol")
      << "with a record that has none";
}

TEST(HostileServer, ItsRecordsAreRefused) {
  const auto after_ring = [](const ring::Record& record) {
    return reason_after([&](RawServer& server) {
      server.send_good_ring();
      server.send(record);
    });
  };
  EXPECT_EQ(after_ring(ring::Hello{1}), "RingProtocol");
  EXPECT_EQ(after_ring(ring::FrameRecord{1, 2, 1, 2, 1, 0, 0, 1, 0}), "RingProtocol")
      << "slot 2 of 2";
  EXPECT_EQ(after_ring(ring::FrameRecord{2, 0, 1, 2, 1, 0, 0, 1, 0}), "RingProtocol") << "epoch 2";
  EXPECT_EQ(after_ring(ring::Refusal{ring::RefusalCode::NotTrusted, 0}), "RingNotTrusted");
  EXPECT_EQ(after_ring(ring::Refusal{ring::RefusalCode::Version, 7}), "RingVersion");
  EXPECT_EQ(
      reason_after([](RawServer& s) { s.send(ring::FrameRecord{1, 0, 1, 2, 1, 0, 0, 1, 0}); }),
      "RingProtocol")
      << "a frame before its ring";
  EXPECT_EQ(reason_after([](RawServer& s) {
              s.send_good_ring();
              s.send(ring::FrameRecord{1, 0, 1, 2, 5, 0, 0, 1, 0});
              s.send(ring::FrameRecord{1, 1, 2, 2, 5, 0, 0, 1, 0});
            }),
            "RingProtocol")
      << "frame number 5 twice";
  EXPECT_EQ(reason_after([](RawServer& s) {
              s.send_good_ring();
              s.send(s.good_ring(), s.memory.fd.get());
            }),
            "RingProtocol")
      << "the same epoch twice";
  EXPECT_EQ(reason_after([](RawServer& s) {
              ring::Packet packet = ring::encode(ring::Quiet{});
              packet.bytes[4] = std::byte{2};
              static_cast<void>(ring::send_packet(s.socket.get(), packet.span()));
            }),
            "RingVersion");
  EXPECT_EQ(reason_after([](RawServer& s) {
              const std::vector<std::byte> large(5000);
              static_cast<void>(ring::send_packet(s.socket.get(), large));
            }),
            "RingProtocol");
}

TEST(HostileServer, OneThatDoesNotAnswerIsATimeout) {
  RawServer server;
  auto client = RingClient::create(server.name).value();
  server.accept(*client);
  EXPECT_EQ(client->receive(milliseconds(5)).error().code(), ErrorCode::Timeout) << "no ring";
  server.send_good_ring();
  server.write_slot(0, 2, 1);
  server.send(ring::FrameRecord{1, 0, 1, 2, 1, 0, 0, 1, 0});
  EXPECT_EQ(client->receive(milliseconds(5)).error().reason(), "NoAnswer") << "no answer to Pin";
  // The answer that comes too late is given back.
  ASSERT_TRUE(server.answer_pin(ring::PinAnswer::Pinned));
  EXPECT_EQ(client->receive(milliseconds(5)).error().code(), ErrorCode::Timeout);
  ring::Received received;
  ASSERT_EQ(ring::receive_packet(server.socket.get(), received), ring::ReceiveResult::Received);
  EXPECT_EQ(ring::decode(received.span()).value(), ring::Record(ring::Release{1, 2, 0, 0}));
}

TEST(HostileServer, AFrameItWritesOverIsNoticed) {
  RawServer server;
  auto client = RingClient::create(server.name).value();
  server.accept(*client);
  server.send_good_ring();
  const auto receive = [&](uint32_t slot, uint64_t sequence, uint32_t id, uint64_t count,
                           nanoseconds timeout) {
    server.send(ring::FrameRecord{1, slot, id, sequence, count, 0, 0, 1, 0});
    std::thread answer([&] {
      EXPECT_TRUE(eventually([&] { return server.answer_pin(ring::PinAnswer::Pinned); }));
    });
    Result<Frame> frame = client->receive(timeout);
    answer.join();
    return frame;
  };
  // Written over while it is held: the sequence moves, or only the id.
  server.write_slot(0, 2, 1);
  const Result<Frame> first = receive(0, 2, 1, 1, kLong);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->memory->is_intact());
  server.write_slot(0, 3, 1);
  EXPECT_FALSE(first->memory->is_intact());
  server.write_slot(0, 4, 1);
  EXPECT_FALSE(first->memory->is_intact());
  server.write_slot(0, 2, 9);
  EXPECT_FALSE(first->memory->is_intact());
  server.write_slot(0, 2, 1);
  EXPECT_TRUE(first->memory->is_intact());
  // Torn: it says that the slot is pinned, and it is being written.
  server.write_slot(1, 3, 2);
  EXPECT_EQ(receive(1, 2, 2, 2, milliseconds(500)).error().code(), ErrorCode::Timeout);
}

TEST(HostileServer, RandomPacketsDoNoHarm) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 150; ++round) {
    RawServer server;
    auto client = RingClient::create(server.name, {.is_latest_only = rng() % 2 == 0}).value();
    server.accept(*client);
    if (rng() % 4 != 0) server.send_good_ring();
    for (int i = 0; i < 12; ++i) {
      ring::Packet packet;
      int fd = -1;
      switch (rng() % 5) {
        case 0: packet = ring::encode(server.good_ring()), fd = server.memory.fd.get(); break;
        case 1:
          packet = ring::encode(ring::FrameRecord{1, static_cast<uint32_t>(rng() % 3), 1,
                                                  2 * (rng() % 4), rng() % 50, 0, 0, 1, 0});
          break;
        case 2:
          packet = ring::encode(ring::PinReply{1, 2 * (rng() % 4), static_cast<uint32_t>(rng() % 3),
                                               static_cast<ring::PinAnswer>(rng() % 3)});
          break;
        case 3:
          packet = ring::encode(ring::Refusal{static_cast<ring::RefusalCode>(1 + rng() % 5), 0});
          break;
        default:
          packet.size_bytes = 1 + rng() % 255;
          for (size_t k = 0; k < packet.size_bytes; ++k)
            packet.bytes[k] = static_cast<std::byte>(rng());
      }
      if (rng() % 3 == 0) packet.bytes[rng() % packet.size_bytes] = static_cast<std::byte>(rng());
      static_cast<void>(
          ring::send_packet(server.socket.get(), packet.span(), rng() % 8 == 0 ? fd : -1));
      const Result<Frame> frame = client->receive(nanoseconds(0));
      if (!frame) continue;
      EXPECT_TRUE(check_layout(frame->layout, frame->bytes.size()));
    }
  }
}

// ---- clients

/// The server that takes part in each test of clients still serves a good one.
void expect_serves(RingServer& server, const std::string& name) {
  auto client = RingClient::create(name).value();
  connect(server, *client);
  ASSERT_TRUE(publish(server, 200));
  const Frame frame = client->receive(kLong).value();
  EXPECT_TRUE(is_as_published(frame));
}

TEST(HostileClient, IsCutOffForWhatItSends) {
  const std::string name = unique_ring_name();
  auto server = RingServer::create(name, kSmall, {.slot_count = 4}).value();
  ASSERT_TRUE(publish(*server, 1));  // slot 1, sequence 2
  const std::vector<std::vector<ring::Record>> scripts = {
      {ring::Pin{1, 2, 1, 0}},  // before Hello
      {ring::Release{1, 2, 1, 0}},
      {ring::Quiet{}},
      {ring::Hello{1}, ring::Hello{1}},
      {ring::Hello{1}, ring::Pin{1, 2, 4, 0}},  // slot 4 of 4
      {ring::Hello{1}, ring::Pin{1, 2, 0xffffffff, 0}},
      {ring::Hello{1}, ring::Pin{1, 2, 1, 0}, ring::Pin{1, 2, 1, 0}},  // twice
      {ring::Hello{1}, ring::Release{1, 2, 1, 0}},                     // not held
      {ring::Hello{1}, ring::Pin{1, 2, 1, 0}, ring::Release{1, 4, 1, 0}},
      {ring::Hello{1}, ring::Pin{1, 2, 1, 0}, ring::Release{1, 2, 64, 0}},
      {ring::Hello{1}, ring::Release{9, 2, 1, 0}},  // a coming epoch
      {ring::Hello{1}, ring::Refusal{}},
      {ring::Hello{1}, ring::FrameRecord{}},
  };
  uint64_t refused = 0;
  for (size_t i = 0; i < scripts.size(); ++i) {
    SCOPED_TRACE(i);
    const FileDescriptor socket = ring::connect_to(name).value();
    for (const ring::Record& record : scripts[i])
      static_cast<void>(ring::send_packet(socket.get(), ring::encode(record).span()));
    ++refused;
    EXPECT_TRUE(eventually([&] { return server->counters().refused == refused; }));
    EXPECT_EQ(server->counters().pinned, 0u);
  }
  expect_serves(*server, name);
}

TEST(HostileClient, DescriptorsThatItSendsAreClosed) {
  const std::string name = unique_ring_name();
  auto server = RingServer::create(name, kSmall).value();
  const FileDescriptor socket = ring::connect_to(name).value();
  const FileDescriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  static_cast<void>(
      ring::send_packet(socket.get(), ring::encode(ring::Hello{1}).span(), file.get()));
  EXPECT_TRUE(eventually([&] { return server->counters().refused == 1; }));
  expect_serves(*server, name);
}

TEST(HostileClient, ManySocketsThatSayNothingAreBounded) {
  const std::string name = unique_ring_name();
  auto server = RingServer::create(name, kSmall, {.max_clients = 2}).value();
  std::vector<FileDescriptor> sockets;
  uint64_t opened = 0;
  EXPECT_TRUE(eventually([&] {
    Result<FileDescriptor> socket = ring::connect_to(name);
    if (socket) sockets.push_back(*std::move(socket)), ++opened;
    return server->counters().refused > 3;
  })) << opened
      << " sockets";
  sockets.clear();
  expect_serves(*server, name);
}

TEST(HostileClient, RandomPacketsDoNoHarm) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 rng(seed);
  const std::string name = unique_ring_name();
  auto server = RingServer::create(name, kSmall, {.slot_count = 3, .max_clients = 4}).value();
  uint32_t id = 0;
  for (int round = 0; round < 300; ++round) {
    const Result<FileDescriptor> socket = ring::connect_to(name);
    if (!socket) {
      ::usleep(1000);  // more sockets than it has room for wait to be taken in
      continue;
    }
    if (rng() % 4 != 0)
      static_cast<void>(ring::send_packet(socket->get(), ring::encode(ring::Hello{1}).span()));
    for (uint64_t i = rng() % 20; i > 0; --i) {
      if (rng() % 4 == 0) static_cast<void>(publish(*server, ++id));
      ring::Packet packet;
      const uint64_t sequence = 2 * (rng() % 8);
      const auto slot = static_cast<uint32_t>(rng() % 4);
      switch (rng() % 5) {
        case 0: packet = ring::encode(ring::Pin{1, sequence, slot, 0}); break;
        case 1: packet = ring::encode(ring::Release{1, sequence, slot, 0}); break;
        case 2: packet = ring::encode(ring::Quiet{}); break;
        default:
          packet.size_bytes = 1 + rng() % 255;
          for (size_t k = 0; k < packet.size_bytes; ++k)
            packet.bytes[k] = static_cast<std::byte>(rng());
      }
      if (rng() % 3 == 0) packet.bytes[rng() % packet.size_bytes] = static_cast<std::byte>(rng());
      static_cast<void>(ring::send_packet(socket->get(), packet.span()));
    }
  }
  EXPECT_TRUE(eventually([&] { return server->counters().clients == 0; }));
  EXPECT_EQ(server->counters().pinned, 0u);
  expect_serves(*server, name);
}

}  // namespace
}  // namespace ignis::pipeline
