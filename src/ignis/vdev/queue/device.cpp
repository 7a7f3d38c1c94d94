#include "ignis/vdev/queue/device.h"

#include "ignis/runtime/reasons.h"
#include "ignis/vdev/queue/encode.h"
#include "ignis/vdev/queue/world.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

namespace ignis::vdev {

using runtime::DeviceCondition;
using runtime::MemoryRef;
using runtime::QueueId;

namespace {

constexpr const char* kHost = "CPU";

std::string peer_group_of(const std::string& name, const runtime::Capabilities* capabilities) {
  if (capabilities != nullptr && !capabilities->peer_group.empty()) {
    return capabilities->peer_group;
  }
  return runtime::device_kind(name);
}

Error not_mappable(const std::string& device, const std::string& owner, const std::string& why) {
  return Error(ErrorCode::Unsupported,
               "Device '" + device + "' cannot map memory of '" + owner + "': " + why + ".",
               std::string(runtime::reason::kNotMappable));
}

}  // namespace

std::string_view to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::StuckSignal: return "StuckSignal";
    case FaultKind::LateSignal: return "LateSignal";
    case FaultKind::DoorbellLost: return "DoorbellLost";
    case FaultKind::HalfUpload: return "HalfUpload";
    case FaultKind::MappingRefused: return "MappingRefused";
    case FaultKind::RingFull: return "RingFull";
    case FaultKind::RemovedBeforeSubmit: return "RemovedBeforeSubmit";
    case FaultKind::RemovedDuringWait: return "RemovedDuringWait";
    case FaultKind::PeerLost: return "PeerLost";
    case FaultKind::NetworkCardLost: return "NetworkCardLost";
    case FaultKind::HostWorkerDead: return "HostWorkerDead";
  }
  return "?";
}

SimulatedDevice::SimulatedDevice(World& world, DeviceSpec spec, uint64_t first_address)
    : world_(world),
      spec_(std::move(spec)),
      addresses_(first_address, spec_.name == kHost),
      in_use_bytes_(spec_.name == kHost ? world.host_in_use_bytes_
                                        : std::make_shared<std::atomic<uint64_t>>(0)) {
  const auto add_queue = [&](QueueId id) {
    Queue queue;
    queue.id = id;
    queue.ring.resize(spec_.ring_bytes);
    queues_.push_back(std::move(queue));
  };
  add_queue({QueueId::Kind::Compute, 0});
  for (int i = 0; i < spec_.capabilities.copy_queues; ++i) add_queue({QueueId::Kind::Copy, i});

  // Its own count: a device that holds nothing has nothing in use.
  auto memory = SimulatedMemory::create(spec_.name, sizeof(uint64_t), HostView::Coherent,
                                        std::make_shared<std::atomic<uint64_t>>(0));
  timeline_memory_ = std::move(memory).value();
  timeline_.memory = timeline_memory_;
  timeline_.reached = new (timeline_memory_->bytes()) std::atomic<uint64_t>(0);
  addresses_.map(timeline_memory_);
}

SimulatedDevice::~SimulatedDevice() = default;

runtime::Clock& SimulatedDevice::clock() { return world_.clock(); }

bool SimulatedDevice::try_lock_submission(int64_t deadline_ns) {
  // No timed mutex: the deadline is one of the world's clock, which may be virtual.
  constexpr int kYields = 50;
  constexpr int64_t kSleepNs = 20'000;
  for (int yields = 0; !submission_.try_lock();) {
    if (yields < kYields) {
      ++yields;
      std::this_thread::yield();
      continue;
    }
    const int64_t now_ns = clock().now_ns();
    if (now_ns >= deadline_ns) return false;
    clock().sleep_until(std::min(runtime::add_ns(now_ns, kSleepNs), deadline_ns));
  }
  return true;
}

Result<MemoryRef> SimulatedDevice::allocate(uint64_t size_bytes, runtime::Purpose purpose) {
  if (!is_online()) return device_unavailable(name(), state());
  const uint64_t in_use_bytes = *in_use_bytes_;
  if (size_bytes > spec_.memory_bytes || in_use_bytes > spec_.memory_bytes - size_bytes) {
    return Error(ErrorCode::OutOfMemory,
                 "Device '" + name() + "' has " + std::to_string(spec_.memory_bytes) +
                     " bytes, of which " + std::to_string(in_use_bytes) + " are in use; " +
                     std::to_string(size_bytes) + " are asked for.");
  }
  // Words that the host polls are always coherent, and so is what only the device reads.
  HostView view = HostView::Coherent;
  if (purpose == runtime::Purpose::Data && spec_.hides_memory) view = HostView::None;
  // What lies behind a window has no address of the host's.
  if (purpose == runtime::Purpose::Arguments && capabilities().crosses_host_memory) {
    view = HostView::None;
  }
  if (purpose == runtime::Purpose::Data && view != HostView::None &&
      !capabilities().is_host_coherent) {
    view = HostView::Cached;
  }
  IGNIS_TRY_ASSIGN(std::shared_ptr<SimulatedMemory> memory,
                   SimulatedMemory::create(name(), size_bytes, view, in_use_bytes_));
  const std::lock_guard lock(world_.mutex_);
  addresses_.map(memory);
  std::erase_if(owned_, [](const auto& old) { return old.expired(); });
  owned_.push_back(memory);
  return MemoryRef(std::move(memory));
}

Result<uint64_t> SimulatedDevice::map(const MemoryRef& memory) {
  const std::lock_guard lock(world_.mutex_);
  if (!is_online()) return device_unavailable(name(), state());
  if (addresses_.has(memory)) return addresses_.map(memory);
  const std::string& owner = memory->owner();
  const auto* simulated = dynamic_cast<const SimulatedMemory*>(memory.get());
  if (simulated != nullptr && simulated->is_lost()) {
    return Error(ErrorCode::DeviceLost,
                 "This memory of '" + owner + "' was lost with an earlier generation.",
                 std::string(runtime::reason::kDeviceUnavailable));
  }
  if (owner == name()) return addresses_.map(memory);
  if (faults_.refuses_mapping) return not_mappable(name(), owner, "the mapping was refused");
  if ((simulated == nullptr || name() == kHost) && memory->host() == nullptr) {
    return not_mappable(name(), owner, "only its owner reaches it");
  }
  if (owner != kHost && name() != kHost) {
    const SimulatedDevice* peer = world_.find_simulated(owner);
    if (peer != nullptr && !peer->is_online()) return device_unavailable(owner, peer->state());
    const std::string own_group = peer_group_of(name(), &capabilities());
    const std::string group = peer_group_of(owner, peer ? &peer->capabilities() : nullptr);
    if (own_group != group) {
      return not_mappable(name(), owner,
                          "they are of the peer groups '" + own_group + "' and '" + group + "'");
    }
  }
  return addresses_.map(memory);
}

bool SimulatedDevice::is_whole(const runtime::Memory& memory) const {
  const auto* own = dynamic_cast<const SimulatedMemory*>(&memory);
  return own != nullptr && own->owner() == name() && !own->is_lost();
}

Result<std::vector<std::byte>> SimulatedDevice::make_image(const ProgramImage& image) const {
  return encode_image(image);
}

Status SimulatedDevice::check_own_bytes(const MemoryRef& memory, uint64_t begin_bytes,
                                        uint64_t end_bytes) const {
  if (!is_online()) return device_unavailable(name(), state());
  if (begin_bytes > end_bytes || end_bytes > memory->size_bytes()) {
    return Error(ErrorCode::InvalidArgument, "Bytes [" + std::to_string(begin_bytes) + ", " +
                                                 std::to_string(end_bytes) +
                                                 ") do not lie in memory of " +
                                                 std::to_string(memory->size_bytes()) + " bytes.");
  }
  return {};
}

Status SimulatedDevice::upload(const MemoryRef& to, uint64_t offset_bytes,
                               std::span<const std::byte> bytes) {
  const std::lock_guard lock(world_.mutex_);
  if (offset_bytes > to->size_bytes()) offset_bytes = to->size_bytes() + 1;  // no overflow below
  IGNIS_TRY(check_own_bytes(to, offset_bytes, offset_bytes + bytes.size()));
  auto* own = dynamic_cast<SimulatedMemory*>(to.get());
  if (own == nullptr || own->owner() != name()) {
    return Error(ErrorCode::InvalidArgument,
                 "Device '" + name() + "' is to write to memory of '" + to->owner() + "'.");
  }
  size_t size_bytes = bytes.size();
  const bool fails = faults_.half_uploads > 0;
  if (fails) {
    --faults_.half_uploads;
    size_bytes /= 2;
  }
  if (size_bytes > 0) std::memcpy(own->bytes() + offset_bytes, bytes.data(), size_bytes);
  own->make_visible(offset_bytes, offset_bytes + size_bytes);
  if (!fails) return {};
  return Error(ErrorCode::DeviceLost,
               "An upload to device '" + name() + "' ended after " + std::to_string(size_bytes) +
                   " of " + std::to_string(bytes.size()) + " bytes.",
               std::string(runtime::reason::kUploadFailed));
}

Status SimulatedDevice::store_word(const MemoryRef& to, uint64_t offset_bytes, uint64_t value,
                                   uint32_t width_bytes) {
  ++window_stores_;
  return QueuedDevice::store_word(to, offset_bytes, value, width_bytes);
}

Status SimulatedDevice::make_visible(const MemoryRef& memory, uint64_t begin_bytes,
                                     uint64_t end_bytes) {
  const std::lock_guard lock(world_.mutex_);
  IGNIS_TRY(check_own_bytes(memory, begin_bytes, end_bytes));
  if (auto* own = dynamic_cast<SimulatedMemory*>(memory.get()); own != nullptr) {
    own->make_visible(begin_bytes, end_bytes);
  }
  return {};
}

Result<MemoryRef> SimulatedDevice::open_wire(uint64_t size_bytes, const MemoryRef& other_end) {
  const std::lock_guard lock(world_.mutex_);
  if (!is_online()) return device_unavailable(name(), state());
  if (!capabilities().has_network_card || faults_.card_lost) {
    return Error(ErrorCode::Unsupported, "Device '" + name() + "' has no network card.",
                 "NoNetworkCard");
  }
  std::shared_ptr<Wire> wire;
  if (other_end == nullptr) {
    wire = std::make_shared<Wire>();
    wire->data = std::make_unique<std::byte[]>(size_bytes);
    wire->size_bytes = size_bytes;
  } else {
    const auto* end = dynamic_cast<const WireEnd*>(other_end.get());
    if (end == nullptr || end->size_bytes() != size_bytes || end->owner() == name()) {
      return Error(ErrorCode::InvalidArgument, "The wire of device '" + name() + "' with " +
                                                   std::to_string(size_bytes) +
                                                   " bytes has no fitting other end.");
    }
    wire = end->wire();
  }
  std::erase_if(wires_, [](const auto& old) { return old.expired(); });
  wires_.push_back(wire);
  MemoryRef end = std::make_shared<WireEnd>(name(), std::move(wire));
  addresses_.map(end);
  return end;
}

Status SimulatedDevice::encode(const runtime::Command& command, const Encoding& encoding,
                               runtime::EncodedQueue& to) const {
  const bool is_call =
      command.kind == runtime::Command::Kind::Exec || command.kind == runtime::Command::Kind::Copy;
  if (!is_call || !capabilities().crosses_host_memory) {
    return encode_command(command, encoding, capabilities().signal_bits, to);
  }
  runtime::EncodedQueue call;
  IGNIS_TRY(encode_command(command, encoding, capabilities().signal_bits, call));
  encode_indirect(std::move(call), to);
  return {};
}

SimulatedDevice::Queue* SimulatedDevice::find(QueueId id) {
  const auto found = std::find_if(queues_.begin(), queues_.end(),
                                  [&](const Queue& queue) { return queue.id == id; });
  return found == queues_.end() ? nullptr : &*found;
}

const SimulatedDevice::Queue* SimulatedDevice::find(QueueId id) const {
  return const_cast<SimulatedDevice*>(this)->find(id);
}

uint64_t SimulatedDevice::free_bytes(QueueId id) const {
  const std::lock_guard lock(world_.mutex_);
  const Queue* queue = find(id);
  return queue == nullptr ? 0 : queue->ring.size() - (queue->write - queue->read);
}

uint64_t SimulatedDevice::ring_bytes(QueueId id) const {
  const Queue* queue = find(id);  // its size never changes
  return queue == nullptr ? 0 : queue->ring.size();
}

Status SimulatedDevice::submit(QueueId id, std::span<const std::byte> commands) {
  const std::lock_guard lock(world_.mutex_);
  if (faults_.remove_at_submit > 0) {
    --faults_.remove_at_submit;
    if (faults_.remove_at_submit == 0) remove("it was removed before a submit");
  }
  if (!is_online()) return device_unavailable(name(), state());
  Queue* queue = find(id);
  if (queue == nullptr) {
    return Error(ErrorCode::InvalidArgument,
                 "Device '" + name() + "' has no queue " + id.to_string() + ".");
  }
  const uint64_t ring_size = queue->ring.size();
  const uint64_t free = ring_size - (queue->write - queue->read);
  if (commands.size() > free) {
    const bool never = commands.size() > ring_size;
    return Error(
        never ? ErrorCode::InvalidArgument : ErrorCode::OutOfMemory,
        id.to_string() + " of device '" + name() + "' has room for " + std::to_string(free) +
            " of " + std::to_string(ring_size) + " bytes; the submit has " +
            std::to_string(commands.size()) + ".",
        std::string(never ? runtime::reason::kSubmitTooLarge : runtime::reason::kQueueFull));
  }
  world_.flush_host_writes();
  if (queue->read == queue->doorbell && queue->flights.empty()) {
    queue->local_ns = std::max(queue->local_ns, world_.clock_->now_ns());
  }
  const uint64_t at = queue->write % ring_size;
  const uint64_t until_end = std::min<uint64_t>(commands.size(), ring_size - at);
  if (until_end > 0) std::memcpy(queue->ring.data() + at, commands.data(), until_end);
  if (commands.size() > until_end) {
    std::memcpy(queue->ring.data(), commands.data() + until_end, commands.size() - until_end);
  }
  queue->write += commands.size();
  if (faults_.lost_doorbells > 0) {
    --faults_.lost_doorbells;
  } else {
    queue->doorbell = queue->write;
  }
  return {};
}

std::string SimulatedDevice::report_hang(const std::string& what) {
  life_.stall(what);
  std::string cause = what;
  {
    const std::lock_guard lock(world_.mutex_);
    cause += describe_queues();
  }
  return life_.lose(std::move(cause));
}

Status SimulatedDevice::reopen() {
  if (is_online()) return {};
  if (!capabilities().can_recover) {
    return Error(ErrorCode::Unsupported, "Device '" + name() + "' cannot be reset.",
                 std::string(runtime::reason::kCannotReset));
  }
  constexpr int64_t kLockNs = 1'000'000'000;
  if (!try_lock_submission(runtime::add_ns(clock().now_ns(), kLockNs))) {
    return Error(ErrorCode::Timeout, "Device '" + name() + "' is busy with a submission.",
                 std::string(runtime::reason::kDeadlineExceeded));
  }
  const std::lock_guard submission(submission_, std::adopt_lock);
  const std::lock_guard lock(world_.mutex_);
  if (is_online()) return {};  // somebody else was faster
  if (faults_.is_removed) return device_unavailable(name(), state());
  for (Queue& queue : queues_) {
    queue.read = queue.write = queue.doorbell = 0;
    queue.flights.clear();
    queue.was_blocked = queue.has_posted = false;
  }
  for (const std::weak_ptr<Wire>& weak : wires_) {
    if (const std::shared_ptr<Wire> wire = weak.lock()) {
      wire->posted = wire->sent = wire->received = 0;
    }
  }
  if (was_removed_ || !spec_.keeps_memory) {
    for (const std::weak_ptr<SimulatedMemory>& weak : owned_) {
      if (const std::shared_ptr<SimulatedMemory> memory = weak.lock()) memory->lose();
    }
    addresses_.clear(timeline_memory_.get());
  }
  was_removed_ = false;
  timeline_.announced = 0;
  timeline_.reached->store(0);
  life_.reopen();
  return {};
}

void SimulatedDevice::inject(const Fault& fault, int64_t now_ns) {
  switch (fault.kind) {
    case FaultKind::StuckSignal: faults_.stuck_signal = true; break;
    case FaultKind::LateSignal: faults_.late_ns = fault.delay_ns; break;
    case FaultKind::DoorbellLost: faults_.lost_doorbells = fault.count; break;
    case FaultKind::HalfUpload: faults_.half_uploads = fault.count; break;
    case FaultKind::MappingRefused: faults_.refuses_mapping = true; break;
    case FaultKind::RingFull:
    case FaultKind::HostWorkerDead: faults_.stands_still = true; break;
    case FaultKind::RemovedBeforeSubmit: faults_.remove_at_submit = fault.count; break;
    case FaultKind::RemovedDuringWait:
    case FaultKind::PeerLost: faults_.remove_at_ns = runtime::add_ns(now_ns, fault.delay_ns); break;
    case FaultKind::NetworkCardLost: faults_.card_lost = true; break;
  }
}

void SimulatedDevice::heal() { faults_ = {}; }

void SimulatedDevice::remove(const std::string& how) {
  faults_.is_removed = was_removed_ = true;
  life_.lose(how);
}

void SimulatedDevice::apply_timed_faults(int64_t now_ns) {
  if (now_ns < faults_.remove_at_ns) return;
  faults_.remove_at_ns = INT64_MAX;
  remove("it was removed");
}

int64_t SimulatedDevice::next_event_ns() const {
  int64_t next = faults_.remove_at_ns;
  if (!is_online() || faults_.stands_still) return next;
  for (const Queue& queue : queues_) {
    for (const Flight& flight : queue.flights) next = std::min(next, flight.end_ns);
  }
  return next;
}

}  // namespace ignis::vdev
