#include "ignis/pipeline/frames/ring_client.h"

#include "ignis/base/log.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/recycling_allocator.h"
#include "ignis/pipeline/frames/ring_protocol.h"
#include "ignis/pipeline/frames/ring_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace ignis::pipeline {
namespace {

/// Frame records kept for a reader that wants each frame; older ones give way.
constexpr size_t kQueueLimit = 64;
/// Packets read in one go, however fast they come.
constexpr int kPacketsPerPump = 256;
/// How long a server may take to answer a Pin, beyond the caller's limit.
constexpr uint64_t kPinLimitNs = 100'000'000;
/// Between two attempts to connect, and after a server that was refused.
constexpr uint64_t kConnectPeriodNs = 20'000'000;
constexpr uint64_t kRefusedPeriodNs = 100'000'000;

/// The socket to one server; stays open while a frame from it is held, because closing it would release the pins.
class Connection {
 public:
  explicit Connection(FileDescriptor socket) : socket_(std::move(socket)) {
    unsent_.reserve(ring::kMaxSlots);
  }
  int socket() const { return socket_.get(); }
  ring::SendResult send(const ring::Record& record) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ring::send_packet(socket_.get(), ring::encode(record).span());
  }
  /// From any thread. A release that finds the socket full is sent later.
  void release(const ring::Release& record) {
    const std::lock_guard<std::mutex> lock(mutex_);
    flush_locked();
    if (!unsent_.empty() ||
        ring::send_packet(socket_.get(), ring::encode(record).span()) == ring::SendResult::Full) {
      if (unsent_.size() < unsent_.capacity()) unsent_.push_back(record);
      // Else more is unreleased than a ring has slots: the server is hung, and its death frees them.
    }
  }
  void flush() {
    const std::lock_guard<std::mutex> lock(mutex_);
    flush_locked();
  }
  /// The server loses all our pins; frames that are held notice when it writes over them.
  void close() { ::shutdown(socket_.get(), SHUT_RDWR); }

 private:
  void flush_locked() {
    size_t sent = 0;
    while (sent < unsent_.size() &&
           ring::send_packet(socket_.get(), ring::encode(unsent_[sent]).span()) !=
               ring::SendResult::Full) {
      ++sent;
    }
    unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(sent));
  }

  FileDescriptor socket_;
  std::mutex mutex_;
  std::vector<ring::Release> unsent_;
};

/// One memory of one server, mapped.
struct RingMemory {
  std::shared_ptr<Connection> connection;
  ring::Ring ring;
  uint64_t generation = 0;
  ring::Mapping mapping;

  std::span<const std::byte> slot_bytes(uint32_t slot) const {
    return {mapping.bytes() + ring::slots_offset(ring.slot_count) +
                ring::slot_stride(ring.layout) * slot,
            static_cast<size_t>(ring.layout.size_bytes)};
  }
  bool holds(uint32_t slot, uint64_t sequence, uint32_t frame_id) const {
    ring::fence_after_read();
    const ring::SlotHeader& header = mapping.header(slot);
    return header.sequence.load(std::memory_order_acquire) == sequence &&
           header.frame_id.load(std::memory_order_relaxed) == frame_id;
  }
};

/// A pinned slot.
class PinnedSlot final : public FrameMemory {
 public:
  PinnedSlot(std::shared_ptr<RingMemory> memory, const ring::FrameRecord& record)
      : memory_(std::move(memory)),
        slot_(record.slot),
        frame_id_(record.frame_id),
        sequence_(record.sequence) {}
  PinnedSlot(const PinnedSlot&) = delete;
  PinnedSlot& operator=(const PinnedSlot&) = delete;
  ~PinnedSlot() override {
    memory_->connection->release({memory_->ring.epoch, sequence_, slot_, 0});
  }
  bool is_intact() const override { return memory_->holds(slot_, sequence_, frame_id_); }

 private:
  std::shared_ptr<RingMemory> memory_;
  uint32_t slot_;
  uint32_t frame_id_;
  uint64_t sequence_;
};

Error protocol_error(const std::string& text) {
  return Error(ErrorCode::InvalidArgument, text, "RingProtocol");
}

uint64_t deadline_after(std::chrono::nanoseconds timeout) {
  constexpr int64_t kLongest = int64_t{86400} * 1'000'000'000;
  return monotonic_ns() + static_cast<uint64_t>(std::clamp<int64_t>(timeout.count(), 0, kLongest));
}

}  // namespace

struct RingClient::State {
  std::string name;
  RingClientOptions options;

  std::shared_ptr<Connection> connection;  ///< null: none
  std::shared_ptr<RingMemory> memory;      ///< null: the server has not told yet
  std::shared_ptr<BlockList> blocks = std::make_shared<BlockList>(2 * ring::kMaxSlots);
  uint64_t next_connect_ns = 0;
  std::string last_fault;  ///< why there is no connection; for the message

  std::vector<ring::FrameRecord> queue;  ///< frames not handed over yet, oldest first
  std::optional<ring::Pin> awaited;
  std::optional<ring::PinAnswer> answer;

  uint64_t server_id = 0;
  uint64_t last_count = 0;    ///< of the last frame record
  uint64_t handed_count = 0;  ///< of the last frame handed over; frames between are dropped
  bool has_count = false;
  uint64_t dropped = 0;

  Result<Frame> receive(uint64_t deadline_ns);
  Status ensure_ring(uint64_t deadline_ns);
  Status connect(uint64_t deadline_ns);
  Status pump();
  Status handle(const ring::Record& record, ring::Received& received);
  Status adopt(const ring::Ring& record, ring::Received& received);
  Status enqueue(const ring::FrameRecord& record);
  Status handle_reply(const ring::PinReply& reply);
  Error refusal(const ring::Refusal& record) const;
  Result<std::optional<Frame>> pin(const ring::FrameRecord& record, uint64_t deadline_ns);
  void disconnect(uint64_t pause_ns);
  /// Ends the connection and hands the error on.
  Error fail(Error error) {
    disconnect(kRefusedPeriodNs);
    last_fault = error.message();
    return error;
  }
};

void RingClient::State::disconnect(uint64_t pause_ns) {
  if (connection != nullptr) connection->close();
  connection.reset();
  memory.reset();
  queue.clear();
  awaited.reset();
  answer.reset();
  next_connect_ns = monotonic_ns() + pause_ns;
}

Status RingClient::State::connect(uint64_t deadline_ns) {
  while (true) {
    const uint64_t now = monotonic_ns();
    if (now >= next_connect_ns) {
      Result<FileDescriptor> socket = ring::connect_to(name);
      if (socket) {
        uint32_t uid = 0;
        if (!ring::is_trusted_peer(socket->get(), options.trusted_uids, &uid)) {
          return fail(Error(ErrorCode::InvalidArgument,
                            "The server of frame ring '" + name + "' runs as user " +
                                std::to_string(uid) +
                                ", who is not trusted; name that user, or end the server.",
                            "RingNotTrusted"));
        }
        connection = std::make_shared<Connection>(*std::move(socket));
        static_cast<void>(connection->send(ring::Hello{options.stream_id}));
        return Status::ok();
      }
      last_fault = socket.error().message();
      next_connect_ns = now + kConnectPeriodNs;
    }
    if (now >= deadline_ns) return Error(ErrorCode::DeviceLost, last_fault, "NoServer");
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(std::min(deadline_ns, next_connect_ns) - now));
  }
}

Status RingClient::State::ensure_ring(uint64_t deadline_ns) {
  if (connection == nullptr) IGNIS_TRY(connect(deadline_ns));
  while (true) {
    IGNIS_TRY(pump());
    if (memory != nullptr) return Status::ok();
    if (monotonic_ns() >= deadline_ns) {
      return Error(ErrorCode::Timeout, "The server of frame ring '" + name + "' does not answer.",
                   "NoAnswer");
    }
    ring::wait_readable(connection->socket(), deadline_ns);
  }
}

Status RingClient::State::pump() {
  connection->flush();
  ring::Received received;
  for (int i = 0; i < kPacketsPerPump; ++i) {
    switch (ring::receive_packet(connection->socket(), received)) {
      case ring::ReceiveResult::Empty: return Status::ok();
      case ring::ReceiveResult::Closed:
        disconnect(kConnectPeriodNs);
        last_fault = "The server of frame ring '" + name + "' is gone.";
        return Error(ErrorCode::DeviceLost, last_fault, "ServerGone");
      case ring::ReceiveResult::Refused:
        return fail(
            protocol_error("The server of frame ring '" + name +
                           "' sent a packet that is too long or has too many descriptors."));
      case ring::ReceiveResult::Received: break;
    }
    Result<ring::Record> record = ring::decode(received.span());
    if (!record) return fail(std::move(record).error().with_context("frame ring '" + name + "'"));
    Status status = handle(*record, received);
    if (!status) return fail(std::move(status).error().with_context("frame ring '" + name + "'"));
  }
  return Status::ok();
}

Status RingClient::State::handle(const ring::Record& record, ring::Received& received) {
  if (const auto* ring_record = std::get_if<ring::Ring>(&record))
    return adopt(*ring_record, received);
  if (received.fd) return protocol_error("A descriptor came with a record that has none.");
  if (const auto* frame = std::get_if<ring::FrameRecord>(&record)) return enqueue(*frame);
  if (const auto* reply = std::get_if<ring::PinReply>(&record)) return handle_reply(*reply);
  if (const auto* refused = std::get_if<ring::Refusal>(&record)) return refusal(*refused);
  return protocol_error("The server sent a record that only clients send.");
}

Error RingClient::State::refusal(const ring::Refusal& record) const {
  const std::string server = "The server of frame ring '" + name + "' ";
  switch (record.code) {
    case ring::RefusalCode::Version:
      return Error(ErrorCode::Unsupported,
                   server + "speaks version " + std::to_string(record.detail) +
                       "; this side speaks version " + std::to_string(ring::kVersion) + ".",
                   "RingVersion");
    case ring::RefusalCode::Stream:
      return Error(ErrorCode::NotFound,
                   server + "gives stream " + std::to_string(record.detail) + "; stream " +
                       std::to_string(options.stream_id) + " is wanted.",
                   "RingStream");
    case ring::RefusalCode::TooManyClients:
      return Error(ErrorCode::OutOfMemory,
                   server + "has " + std::to_string(record.detail) +
                       " clients already; end one of them or raise its limit.",
                   "TooManyClients");
    case ring::RefusalCode::NotTrusted:
      return Error(ErrorCode::InvalidArgument,
                   server + "does not trust this user; start it with this user named as trusted.",
                   "RingNotTrusted");
    case ring::RefusalCode::Protocol: break;
  }
  return protocol_error(server + "did not understand this side.");
}

Status RingClient::State::adopt(const ring::Ring& record, ring::Received& received) {
  IGNIS_TRY(ring::check_ring(record));
  if (!received.fd) return protocol_error("The ring's record came without its memory.");
  if (record.stream_id != options.stream_id) {
    return protocol_error("The ring is of stream " + std::to_string(record.stream_id) +
                          "; stream " + std::to_string(options.stream_id) + " was asked for.");
  }
  if (memory != nullptr &&
      (record.server_id != memory->ring.server_id || record.epoch <= memory->ring.epoch)) {
    return protocol_error("The ring's memory of epoch " + std::to_string(record.epoch) +
                          " follows that of epoch " + std::to_string(memory->ring.epoch) + ".");
  }
  auto fresh = std::make_shared<RingMemory>();
  fresh->connection = connection;
  fresh->ring = record;
  fresh->generation = next_generation();
  IGNIS_TRY_ASSIGN(fresh->mapping, ring::map_received(received.fd.get(), record.memory_bytes));
  memory = std::move(fresh);
  queue.clear();  // of the memory before; they can no longer be pinned
  awaited.reset();
  if (record.server_id != server_id) {
    server_id = record.server_id;
    has_count = false;
  }
  return Status::ok();
}

Status RingClient::State::enqueue(const ring::FrameRecord& record) {
  if (memory == nullptr) return protocol_error("A frame came before its ring.");
  if (record.epoch != memory->ring.epoch || record.slot >= memory->ring.slot_count) {
    return protocol_error("A frame is in slot " + std::to_string(record.slot) + " of epoch " +
                          std::to_string(record.epoch) + "; there are " +
                          std::to_string(memory->ring.slot_count) + " slots, and the epoch is " +
                          std::to_string(memory->ring.epoch) + ".");
  }
  if (has_count && record.count <= last_count) {
    return protocol_error("Frame number " + std::to_string(record.count) + " follows number " +
                          std::to_string(last_count) + ".");
  }
  if (!has_count) handed_count = record.count - 1;
  has_count = true;
  last_count = record.count;
  if (options.is_latest_only) queue.clear();
  if (queue.size() >= kQueueLimit) queue.erase(queue.begin());
  queue.push_back(record);  // within the reserved room
  return Status::ok();
}

Status RingClient::State::handle_reply(const ring::PinReply& reply) {
  if (awaited && awaited->epoch == reply.epoch && awaited->slot == reply.slot &&
      awaited->sequence == reply.sequence) {
    awaited.reset();
    answer = reply.answer;
  } else if (reply.answer == ring::PinAnswer::Pinned) {
    // It comes too late: nobody waits for this slot any more.
    connection->release({reply.epoch, reply.sequence, reply.slot, 0});
  }
  return Status::ok();
}

/// Nothing when the slot was written over in the meantime.
Result<std::optional<Frame>> RingClient::State::pin(const ring::FrameRecord& record,
                                                    uint64_t deadline_ns) {
  answer.reset();
  awaited = ring::Pin{record.epoch, record.sequence, record.slot, 0};
  const uint64_t limit_ns = std::max(deadline_ns, monotonic_ns() + kPinLimitNs);
  bool is_sent = false;
  while (!answer) {
    if (!is_sent) is_sent = connection->send(*awaited) == ring::SendResult::Sent;
    IGNIS_TRY(pump());
    if (answer) break;
    if (!awaited) return std::optional<Frame>();  // the memory changed
    if (monotonic_ns() >= limit_ns) {
      awaited.reset();
      return Error(ErrorCode::Timeout, "The server of frame ring '" + name + "' does not answer.",
                   "NoAnswer");
    }
    ring::wait_readable(connection->socket(), is_sent ? limit_ns : monotonic_ns() + 1'000'000);
  }
  if (*answer == ring::PinAnswer::Limit) {
    return Error(ErrorCode::OutOfMemory,
                 "Frame ring '" + name + "' lets this client hold no more frames; drop one first.",
                 "PinLimit");
  }
  if (*answer == ring::PinAnswer::Gone) return std::optional<Frame>();
  auto pinned =
      std::allocate_shared<PinnedSlot>(RecyclingAllocator<PinnedSlot>(blocks), memory, record);
  if (!pinned->is_intact()) return std::optional<Frame>();
  Frame frame;
  frame.layout = memory->ring.layout;
  frame.bytes = memory->slot_bytes(record.slot);
  frame.memory = std::move(pinned);
  frame.info.frame_id = record.frame_id;
  frame.info.stream_id = memory->ring.stream_id;
  frame.info.buffer_index = record.slot;
  frame.info.server_id = memory->ring.server_id;
  frame.info.generation = memory->generation;
  frame.info.timestamp_sof_ns = record.timestamp_sof_ns;
  frame.info.timestamp_eof_ns = record.timestamp_eof_ns;
  frame.info.valid = record.valid != 0;
  frame.info.receive_time_ns = monotonic_ns();
  dropped += record.count - handed_count - 1;
  handed_count = record.count;
  return std::optional<Frame>(std::move(frame));
}

Result<Frame> RingClient::State::receive(uint64_t deadline_ns) {
  while (true) {
    IGNIS_TRY(ensure_ring(deadline_ns));
    if (!queue.empty()) {
      const ring::FrameRecord record = queue.front();
      queue.erase(queue.begin());
      IGNIS_TRY_ASSIGN(std::optional<Frame> frame, pin(record, deadline_ns));
      if (frame) return *std::move(frame);
      // Written over in the meantime: there is a newer one, or soon will be.
      if (monotonic_ns() < deadline_ns) continue;
    }
    if (monotonic_ns() >= deadline_ns) {
      return Error(ErrorCode::Timeout, "No frame came from frame ring '" + name + "' in time.");
    }
    ring::wait_readable(connection->socket(), deadline_ns);
  }
}

RingClient::RingClient(std::unique_ptr<State> state) : state_(std::move(state)) {}

RingClient::~RingClient() {
  // Frames that outlive this object keep the socket; the server need not tell it of new ones.
  if (state_->connection != nullptr) static_cast<void>(state_->connection->send(ring::Quiet{}));
}

Result<std::unique_ptr<RingClient>> RingClient::create(const std::string& name,
                                                       RingClientOptions options) {
  IGNIS_TRY(ring::check_name(name));
  auto state = std::make_unique<State>();
  state->name = name;
  state->options = std::move(options);
  state->queue.reserve(kQueueLimit);
  state->last_fault = "Frame ring '" + name + "' has no server.";
  return std::unique_ptr<RingClient>(new RingClient(std::move(state)));
}

Result<Frame> RingClient::receive(std::chrono::nanoseconds timeout) {
  return state_->receive(deadline_after(timeout));
}

uint64_t RingClient::dropped_count() const { return state_->dropped; }

std::string RingClient::describe() const {
  std::string text = "ring:" + state_->name;
  if (state_->memory != nullptr) text += " (" + to_string(state_->memory->ring.layout) + ")";
  return text;
}

}  // namespace ignis::pipeline
