#include "ignis/pipeline/frames/ring_server.h"

#include "ignis/base/check.h"
#include "ignis/base/log.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/ring_protocol.h"
#include "ignis/pipeline/frames/ring_socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace ignis::pipeline {
namespace {

/// Sockets beyond max_clients that may be open until their Hello was read and refused.
constexpr size_t kSpareSockets = 8;
constexpr uint64_t kHelloLimitNs = 2'000'000'000;
/// Packets read from one client before the others have their turn.
constexpr int kPacketsPerTurn = 64;
/// Of a client's socket: some 20 unread records.
constexpr int kSocketBytes = 16 * 1024;

struct Client {
  FileDescriptor socket;
  uint64_t connected_ns = 0;
  uint32_t uid = 0;
  bool is_trusted = false;
  bool is_greeted = false;
  bool is_quiet = false;
  bool needs_ring = false;  ///< the memory in use now is not the one it was told of
  bool is_lost = false;     ///< closed by the server's thread, which alone closes sockets
  uint32_t unread = 0;      ///< records in a row that its full socket did not take
  uint64_t pins = 0;        ///< one bit for each slot of the memory in use now
};

struct Slot {
  uint64_t sequence = 0;
  uint32_t pin_count = 0;
};

Status check_options(const RingServerOptions& options) {
  if (options.slot_count >= 2 && options.slot_count <= ring::kMaxSlots &&
      options.max_clients >= 1 && options.max_clients <= 64 &&
      options.max_pins_per_client <= options.slot_count && options.unread_limit >= 1) {
    return Status::ok();
  }
  return Error(
      ErrorCode::InvalidArgument,
      "A frame ring of " + std::to_string(options.slot_count) + " slots for " +
          std::to_string(options.max_clients) + " clients with " +
          std::to_string(options.max_pins_per_client) +
          " pins each is not possible: there are 2 to 64 slots, 1 to 64 clients and at most as "
          "many pins as slots.",
      "RingOptions");
}

}  // namespace

struct RingServer::State {
  std::string name;
  RingServerOptions options;
  uint64_t server_id = 0;
  FileDescriptor listener;
  FileDescriptor wake;  ///< eventfd: the thread is to look at its flags

  std::mutex mutex;  ///< guards everything below; never held while waiting
  bool is_stopping = false;
  FrameLayout layout;
  uint64_t epoch = 0;
  ring::SharedMemory memory;
  std::vector<Slot> slots;
  std::optional<uint32_t> begun;  ///< the slot being written
  uint32_t last_slot = 0;
  uint64_t made = 0;  ///< frames the camera has made
  std::vector<Client> clients;
  RingServerCounters counters;

  std::thread thread;  ///< last: uses all of the above

  Status make_memory(const FrameLayout& new_layout);
  void serve();
  bool accept_clients();
  void read_client(Client& client);
  bool handle(Client& client, const ring::Record& record);
  bool greet(Client& client, const ring::Hello& hello);
  bool pin(Client& client, const ring::Pin& request);
  bool release(Client& client, const ring::Release& request);
  void lose(Client& client);
  void refuse(Client& client, ring::RefusalCode code, uint32_t detail);
  void send(Client& client, const ring::Packet& packet);
  void send_ring(Client& client);
  std::byte* slot_bytes(uint32_t slot) const {
    return memory.mapping.bytes() + ring::slots_offset(options.slot_count) +
           ring::slot_stride(layout) * slot;
  }
};

// ---- the camera's side

Status RingServer::State::make_memory(const FrameLayout& new_layout) {
  IGNIS_TRY(check_layout(new_layout, kMaxFrameBytes));
  IGNIS_TRY_ASSIGN(ring::SharedMemory fresh,
                   ring::create_shared_memory(ring::memory_bytes(new_layout, options.slot_count)));
  const std::lock_guard<std::mutex> lock(mutex);
  layout = new_layout;
  memory = std::move(fresh);
  ++epoch;
  slots.assign(options.slot_count, Slot{});
  begun.reset();
  for (Client& client : clients) {
    client.pins = 0;  // frames of the memory before stay as they are: nobody writes there any more
    if (!client.is_greeted || client.is_lost) continue;
    client.needs_ring = true;
    send_ring(client);
  }
  return Status::ok();
}

Result<std::span<std::byte>> RingServer::begin_frame() {
  State& s = *state_;
  const std::lock_guard<std::mutex> lock(s.mutex);
  IGNIS_CHECK(!s.begun) << "begin_frame() before the frame begun first was ended or cancelled";
  for (uint32_t i = 1; i <= s.options.slot_count; ++i) {
    const uint32_t slot = (s.last_slot + i) % s.options.slot_count;
    if (s.slots[slot].pin_count != 0) continue;
    s.begun = slot;
    s.slots[slot].sequence += 1;
    s.memory.mapping.header(slot).sequence.store(s.slots[slot].sequence, std::memory_order_relaxed);
    ring::fence_before_write();
    return std::span<std::byte>(s.slot_bytes(slot), static_cast<size_t>(s.layout.size_bytes));
  }
  ++s.made;
  ++s.counters.dropped;
  return Error(ErrorCode::OutOfMemory,
               "All " + std::to_string(s.options.slot_count) + " slots of frame ring '" + s.name +
                   "' are held by readers; this frame is dropped.",
               "RingExhausted");
}

void RingServer::end_frame(const FrameInfo& info) {
  State& s = *state_;
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (!s.begun) return;  // the layout changed in between
  const uint32_t slot = *std::exchange(s.begun, std::nullopt);
  s.last_slot = slot;
  ++s.made;
  ++s.counters.published;
  ring::SlotHeader& header = s.memory.mapping.header(slot);
  header.frame_id.store(info.frame_id, std::memory_order_relaxed);
  s.slots[slot].sequence += 1;
  header.sequence.store(s.slots[slot].sequence, std::memory_order_release);
  ring::FrameRecord record;
  record.epoch = s.epoch;
  record.slot = slot;
  record.frame_id = info.frame_id;
  record.sequence = s.slots[slot].sequence;
  record.count = s.made;
  record.timestamp_sof_ns = info.timestamp_sof_ns;
  record.timestamp_eof_ns = info.timestamp_eof_ns;
  record.valid = info.valid ? 1 : 0;
  const ring::Packet packet = ring::encode(record);
  for (Client& client : s.clients) {
    if (!client.is_greeted || client.is_quiet || client.is_lost) continue;
    if (client.needs_ring) s.send_ring(client);
    if (!client.needs_ring && !client.is_lost) s.send(client, packet);
  }
}

void RingServer::cancel_frame() {
  State& s = *state_;
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (!s.begun) return;
  // What was there is gone: the sequence moves on, so that nobody can pin the frame before.
  const uint32_t slot = *std::exchange(s.begun, std::nullopt);
  s.slots[slot].sequence += 1;
  s.memory.mapping.header(slot).sequence.store(s.slots[slot].sequence, std::memory_order_release);
}

Status RingServer::publish(const Frame& frame) {
  if (!(frame.layout == state_->layout)) IGNIS_TRY(change_layout(frame.layout));
  if (frame.bytes.size() < static_cast<size_t>(state_->layout.size_bytes)) {
    return Error(ErrorCode::InvalidArgument,
                 "Frame " + std::to_string(frame.info.frame_id) + " has " +
                     std::to_string(frame.bytes.size()) + " bytes; its layout needs " +
                     std::to_string(state_->layout.size_bytes) + ".",
                 "TornFrame");
  }
  IGNIS_TRY_ASSIGN(const std::span<std::byte> bytes, begin_frame());
  std::memcpy(bytes.data(), frame.bytes.data(), bytes.size());
  end_frame(frame.info);
  return Status::ok();
}

Status RingServer::change_layout(const FrameLayout& layout) { return state_->make_memory(layout); }

const FrameLayout& RingServer::layout() const { return state_->layout; }

uint64_t RingServer::server_id() const { return state_->server_id; }

RingServerCounters RingServer::counters() const {
  State& s = *state_;
  const std::lock_guard<std::mutex> lock(s.mutex);
  RingServerCounters result = s.counters;
  for (const Client& client : s.clients) result.clients += client.is_greeted && !client.is_lost;
  for (const Slot& slot : s.slots) result.pinned += slot.pin_count != 0;
  return result;
}

// ---- the clients' side; every function below runs with the mutex held, on either thread

void RingServer::State::lose(Client& client) {
  if (client.is_lost) return;
  client.is_lost = true;
  for (uint32_t slot = 0; slot < options.slot_count; ++slot)
    if ((client.pins >> slot & 1) != 0) --slots[slot].pin_count;
  client.pins = 0;
  ::shutdown(client.socket.get(), SHUT_RDWR);  // wakes the thread, which closes it
}

void RingServer::State::refuse(Client& client, ring::RefusalCode code, uint32_t detail) {
  ++counters.refused;
  IGNIS_LOG(Warning, "frames") << "Frame ring '" << name << "' refuses a client of user "
                               << client.uid << " (code " << static_cast<uint32_t>(code) << ").";
  static_cast<void>(
      ring::send_packet(client.socket.get(), ring::encode(ring::Refusal{code, detail}).span()));
  lose(client);
}

void RingServer::State::send(Client& client, const ring::Packet& packet) {
  switch (ring::send_packet(client.socket.get(), packet.span())) {
    case ring::SendResult::Sent: client.unread = 0; return;
    case ring::SendResult::Closed: lose(client); return;
    case ring::SendResult::Full: break;
  }
  if (++client.unread < options.unread_limit) return;
  read_client(client);  // it may have said that it wants no more, and the thread had no turn yet
  if (client.is_quiet || client.is_lost) return;
  ++counters.evicted;
  IGNIS_LOG(Warning, "frames") << "Frame ring '" << name << "' cuts off a client of user "
                               << client.uid << ": it left " << client.unread << " records unread.";
  lose(client);
}

void RingServer::State::send_ring(Client& client) {
  ring::Ring record;
  record.server_id = server_id;
  record.epoch = epoch;
  record.stream_id = options.stream_id;
  record.slot_count = options.slot_count;
  record.layout = layout;
  record.memory_bytes = ring::memory_bytes(layout, options.slot_count);
  switch (ring::send_packet(client.socket.get(), ring::encode(record).span(), memory.fd.get())) {
    case ring::SendResult::Sent: client.needs_ring = false; break;
    case ring::SendResult::Closed: lose(client); break;
    case ring::SendResult::Full:  // with the next frame again
      if (++client.unread >= options.unread_limit) {
        ++counters.evicted;
        lose(client);
      }
      break;
  }
}

bool RingServer::State::greet(Client& client, const ring::Hello& hello) {
  if (client.is_greeted) return false;
  const auto greeted = std::count_if(clients.begin(), clients.end(), [](const Client& other) {
    return other.is_greeted && !other.is_lost;
  });
  if (!client.is_trusted) {
    refuse(client, ring::RefusalCode::NotTrusted, 0);
  } else if (static_cast<uint32_t>(greeted) >= options.max_clients) {
    refuse(client, ring::RefusalCode::TooManyClients, options.max_clients);
  } else if (hello.stream_id != options.stream_id) {
    refuse(client, ring::RefusalCode::Stream, options.stream_id);
  } else {
    client.is_greeted = true;
    client.needs_ring = true;
    send_ring(client);
  }
  return true;
}

bool RingServer::State::pin(Client& client, const ring::Pin& request) {
  if (!client.is_greeted) return false;
  ring::PinReply reply;
  reply.epoch = request.epoch;
  reply.sequence = request.sequence;
  reply.slot = request.slot;
  if (request.epoch == epoch) {
    if (request.slot >= options.slot_count) return false;
    const uint64_t bit = uint64_t{1} << request.slot;
    Slot& slot = slots[request.slot];
    const bool is_there =
        begun != request.slot && slot.sequence == request.sequence && request.sequence != 0;
    if (is_there) {
      if ((client.pins & bit) != 0) return false;
      if (std::popcount(client.pins) >= static_cast<int>(options.max_pins_per_client)) {
        reply.answer = ring::PinAnswer::Limit;
      } else {
        reply.answer = ring::PinAnswer::Pinned;
        client.pins |= bit;
        ++slot.pin_count;
      }
    }
  }
  if (ring::send_packet(client.socket.get(), ring::encode(reply).span()) == ring::SendResult::Sent)
    return true;
  // It asks and does not read the answers.
  ++counters.evicted;
  lose(client);
  return true;
}

bool RingServer::State::release(Client& client, const ring::Release& request) {
  if (!client.is_greeted) return false;
  if (request.epoch < epoch) return true;  // of the memory before; nothing is written there
  if (request.epoch > epoch || request.slot >= options.slot_count) return false;
  const uint64_t bit = uint64_t{1} << request.slot;
  if ((client.pins & bit) == 0 || slots[request.slot].sequence != request.sequence) return false;
  client.pins &= ~bit;
  --slots[request.slot].pin_count;
  return true;
}

bool RingServer::State::handle(Client& client, const ring::Record& record) {
  if (const auto* hello = std::get_if<ring::Hello>(&record)) return greet(client, *hello);
  if (const auto* request = std::get_if<ring::Pin>(&record)) return pin(client, *request);
  if (const auto* request = std::get_if<ring::Release>(&record)) return release(client, *request);
  if (std::holds_alternative<ring::Quiet>(record)) {
    client.is_quiet = true;
    return client.is_greeted;
  }
  return false;  // a record only a server sends
}

void RingServer::State::read_client(Client& client) {
  ring::Received received;
  for (int i = 0; i < kPacketsPerTurn && !client.is_lost; ++i) {
    switch (ring::receive_packet(client.socket.get(), received)) {
      case ring::ReceiveResult::Empty: return;
      case ring::ReceiveResult::Closed: lose(client); return;
      case ring::ReceiveResult::Refused: refuse(client, ring::RefusalCode::Protocol, 0); return;
      case ring::ReceiveResult::Received: break;
    }
    // A client has no descriptor to send; one that comes is closed and the client cut off.
    const Result<ring::Record> record = ring::decode(received.span());
    if (!record && record.error().reason() == "RingVersion") {
      refuse(client, ring::RefusalCode::Version, ring::kVersion);
    } else if (!record || received.fd || !handle(client, *record)) {
      refuse(client, ring::RefusalCode::Protocol, 0);
    }
  }
}

/// False when the process or the machine has no descriptor left.
bool RingServer::State::accept_clients() {
  for (int i = 0; i < kPacketsPerTurn; ++i) {
    FileDescriptor socket(
        ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
    if (clients.size() >= options.max_clients + kSpareSockets) {
      ++counters.refused;
      continue;
    }
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof(kSocketBytes));
    Client client;
    client.is_trusted = ring::is_trusted_peer(socket.get(), options.trusted_uids, &client.uid);
    client.socket = std::move(socket);
    client.connected_ns = monotonic_ns();
    clients.push_back(std::move(client));  // within the reserved room
  }
  return true;
}

void RingServer::State::serve() {
  std::vector<pollfd> waits;
  waits.reserve(2 + clients.capacity());
  while (true) {
    waits.clear();
    waits.push_back({wake.get(), POLLIN, 0});
    waits.push_back({listener.get(), POLLIN, 0});
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (is_stopping) return;
      const uint64_t now = monotonic_ns();
      for (Client& client : clients) {
        if (!client.is_greeted && now > client.connected_ns + kHelloLimitNs) lose(client);
      }
      std::erase_if(clients, [](const Client& client) { return client.is_lost; });
      for (const Client& client : clients) waits.push_back({client.socket.get(), POLLIN, 0});
    }
    // Only this thread adds and closes clients, so the descriptors stay what they are. The second is for Hello's limit.
    if (::poll(waits.data(), waits.size(), 1000) <= 0) continue;
    for (size_t i = 2; i < waits.size(); ++i) {
      if (waits[i].revents == 0) continue;
      const std::lock_guard<std::mutex> lock(
          mutex);  // one client at a time: the camera gets its turn
      read_client(clients[i - 2]);
    }
    if (waits[1].revents != 0) {
      std::unique_lock<std::mutex> lock(mutex);
      const bool has_descriptors = accept_clients();
      lock.unlock();
      // Else the listener stays readable, and this loop would turn as fast as it can.
      if (!has_descriptors) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

// ---- life

RingServer::RingServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<RingServer>> RingServer::create(const std::string& name,
                                                       const FrameLayout& layout,
                                                       RingServerOptions options) {
  IGNIS_TRY(check_options(options));
  auto state = std::make_unique<State>();
  state->name = name;
  if (options.max_pins_per_client == 0) options.max_pins_per_client = options.slot_count / 2;
  state->options = std::move(options);
  state->server_id = ring::random_id();
  state->clients.reserve(state->options.max_clients + kSpareSockets);
  IGNIS_TRY(state->make_memory(layout));
  IGNIS_TRY_ASSIGN(state->listener, ring::listen_at(name));
  state->wake = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state->wake) return Error(ErrorCode::Internal, "An event descriptor cannot be made.");
  try {
    state->thread = std::thread([raw = state.get()] { raw->serve(); });
  } catch (const std::system_error& fault) {
    return Error(ErrorCode::Internal,
                 "The frame ring's thread cannot be started: " + std::string(fault.what()) + ".");
  }
  return std::unique_ptr<RingServer>(new RingServer(std::move(state)));
}

RingServer::~RingServer() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->is_stopping = true;
  }
  const uint64_t one = 1;
  if (::write(state_->wake.get(), &one, sizeof(one)) != sizeof(one))
    IGNIS_LOG(Error, "frames")
        << "The frame ring's thread could not be woken; it ends within a second.";
  state_->thread.join();
}

}  // namespace ignis::pipeline
