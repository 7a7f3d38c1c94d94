#include "ignis/exec/machine.h"

#include "ignis/exec/host_memory.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace ignis::exec {
namespace {

using runtime::MemoryRef;
using runtime::Purpose;
using runtime::QueuedDevice;

/// Whether memory is only written by the host and read once: it is mapped without a cache.
bool is_uncached(Purpose purpose) {
  return purpose == Purpose::Commands || purpose == Purpose::Signals;
}

}  // namespace

std::shared_ptr<Machine> Machine::create(MachineOptions options) {
  return std::make_shared<Machine>(std::move(options));
}

Machine::Machine(MachineOptions options) : options_(std::move(options)) {
  if (options_.clock == nullptr) options_.clock = &runtime::Clock::real();
  if (options_.host != nullptr) host_ = options_.host->queue();
  std::sort(options_.devices.begin(), options_.devices.end(),
            [](const QueuedDevice* a, const QueuedDevice* b) { return a->name() < b->name(); });
}

Machine::~Machine() {
  // What retired may still be written to. A device that hangs keeps its memory for the rest of the process.
  const int64_t end_ns = runtime::add_ns(clock().now_ns(), options_.limits.deadline_ns);
  const auto may_end = [this] {
    return std::any_of(retired_.begin(), retired_.end(),
                       [](const Retired& retired) { return !retired.token->is_stuck(); });
  };
  for (collect(); may_end() && clock().now_ns() < end_ns; collect()) {
    clock().sleep_until(clock().now_ns() + 50'000);
  }
  for (Retired& retired : retired_) runtime::abandon(std::move(retired.what));
}

QueuedDevice* Machine::find(std::string_view name) const {
  const int index = owner_index(name);
  if (index < 0) return nullptr;
  if (static_cast<size_t>(index) >= device_count()) return host_;
  return options_.devices[static_cast<size_t>(index)];
}

int Machine::owner_index(std::string_view name) const {
  const auto found =
      std::lower_bound(options_.devices.begin(), options_.devices.end(), name,
                       [](const QueuedDevice* a, std::string_view b) { return a->name() < b; });
  if (found != options_.devices.end() && (*found)->name() == name) {
    return static_cast<int>(found - options_.devices.begin());
  }
  return name == options_.host_name ? static_cast<int>(device_count()) : -1;
}

Result<Placement> Machine::allocate(const std::string& owner, uint64_t size_bytes,
                                    Purpose purpose) {
  Placement placed;
  placed.size_bytes = size_bytes;
  if (owner == options_.host_name && host_ == nullptr) {
    IGNIS_TRY_ASSIGN(placed.memory, allocate_host_memory(owner, size_bytes));
    return placed;
  }
  QueuedDevice* device = find(owner);
  if (device == nullptr) {
    return Error(ErrorCode::NotFound, "Device '" + owner + "' is not open.", "NoSuchDevice");
  }
  // The backend's own rule comes first.
  IGNIS_TRY_ASSIGN(placed.memory, device->place(purpose, size_bytes, purpose == Purpose::Signals));
  if (placed.memory != nullptr) return placed;
  IGNIS_TRY_ASSIGN(placed.memory, device->allocate(std::max<uint64_t>(1, size_bytes), purpose));
  return placed;
}

Result<Placement> Machine::reserve(const std::string& owner, uint64_t size_bytes, Purpose purpose,
                                   const std::shared_ptr<const CompletionToken>& token) {
  QueuedDevice* device = find(owner);
  if (device != nullptr) {
    Placement placed;
    placed.size_bytes = size_bytes;
    IGNIS_TRY_ASSIGN(placed.memory,
                     device->place(purpose, size_bytes, purpose == Purpose::Signals));
    if (placed.memory != nullptr) return placed;
  }
  std::shared_ptr<RunTimeRing> ring;
  {
    const std::lock_guard lock(mutex_);
    const uint64_t generation = device == nullptr ? 0 : device->generation();
    HeldRing& held = rings_[{owner, is_uncached(purpose)}];
    if (held.ring == nullptr || held.generation != generation) {
      const bool is_small = device != nullptr && device->capabilities().crosses_host_memory;
      const Purpose block = is_uncached(purpose) ? Purpose::Commands : Purpose::Data;
      IGNIS_TRY_ASSIGN(
          const Placement placed,
          allocate(owner, is_small ? options_.small_ring_bytes : options_.ring_bytes, block));
      held = {generation, std::make_shared<RunTimeRing>(owner, placed.memory, clock())};
    }
    ring = held.ring;
  }
  return ring->reserve(size_bytes, token, options_.limits);
}

Result<MemoryRef> Machine::stage(const ScheduleBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  MemoryRef& held = stages_[{buffer.stage_for, buffer.size_bytes}];
  const QueuedDevice* owner = find(buffer.devices.front());
  // What a reopened device lost, or a thread that hangs may still write to, is no stage any more.
  if (held == nullptr || (owner != nullptr && !owner->is_whole(*held))) {
    IGNIS_TRY_ASSIGN(const Placement placed,
                     allocate(buffer.devices.front(), buffer.size_bytes, Purpose::Stage));
    held = placed.memory;
  }
  return held;
}

Result<MemoryRef> Machine::image(QueuedDevice& device, const ProgramImage& image) {
  const ImageKey key{device.name(), device.generation(), hash_image(image)};
  // One upload at a time: the second asker of the same image finds it.
  const std::lock_guard lock(mutex_);
  const auto found = images_.find(key);
  if (found != images_.end()) return found->second;
  IGNIS_TRY_ASSIGN(MemoryRef memory, device.load_image(image));
  if (memory == nullptr) {
    IGNIS_TRY_ASSIGN(const std::vector<std::byte> bytes, device.make_image(image));
    IGNIS_TRY_ASSIGN(const Placement placed, allocate(device.name(), bytes.size(), Purpose::Image));
    Status uploaded = device.upload(placed.memory, 0, bytes);
    if (!uploaded) return std::move(uploaded).error().with_context("program '" + image.name + "'");
    memory = placed.memory;
  }
  uploads_.fetch_add(1, std::memory_order_relaxed);
  images_.emplace(key, memory);
  image_bytes_ += memory->size_bytes();
  forget_images(key);
  return memory;
}

void Machine::forget_images(const ImageKey& newest) {
  for (auto image = images_.begin(); image != images_.end();) {
    const auto& [device, generation, hash] = image->first;
    const bool is_old = device == std::get<0>(newest) && generation != std::get<1>(newest);
    const bool is_too_much = image_bytes_ > options_.image_bytes && image->first != newest &&
                             image->second.use_count() == 1;  // no link uses it
    if (is_old || is_too_much) {
      image_bytes_ -= image->second->size_bytes();
      image = images_.erase(image);
    } else {
      ++image;
    }
  }
}

Result<std::shared_ptr<const runtime::Program>> Machine::host_program(const ProgramImage& image) {
  if (options_.host == nullptr) {
    return Error(ErrorCode::Unsupported,
                 "Program '" + image.name + "' runs on the host, and no host device is open.",
                 "NoHostDevice");
  }
  const ContentHash key = hash_image(image);
  const std::lock_guard lock(mutex_);
  const auto found = host_programs_.find(key);
  if (found != host_programs_.end()) return found->second;
  IGNIS_TRY_ASSIGN(std::shared_ptr<const runtime::Program> program, options_.host->load(image));
  // Links hold theirs.
  constexpr size_t kMostPrograms = 4096;
  if (host_programs_.size() >= kMostPrograms) {
    std::erase_if(host_programs_, [](const auto& entry) { return entry.second.use_count() == 1; });
  }
  host_programs_.emplace(key, program);
  return program;
}

void Machine::retire(std::shared_ptr<const CompletionToken> token,
                     std::shared_ptr<const void> what) {
  const std::lock_guard lock(mutex_);
  retired_.push_back({std::move(token), std::move(what)});
}

void Machine::collect() {
  std::vector<Retired> complete;  // released outside of the lock
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < retired_.size();) {
    if (!retired_[i].token->is_complete()) {
      ++i;
      continue;
    }
    complete.push_back(std::move(retired_[i]));
    retired_[i] = std::move(retired_.back());
    retired_.pop_back();
  }
}

Machine::StageLock::StageLock(Machine& machine, std::span<const std::string> names, int64_t end_ns)
    : machine_(machine), names_(names) {
  for (const std::string& name : names_) {
    BoundedMutex* mutex = nullptr;
    {
      const std::lock_guard lock(machine_.mutex_);
      mutex = &machine_.stage_locks_[name];
    }
    const int64_t left_ns = std::max<int64_t>(0, end_ns - machine_.clock().now_ns());
    if (!mutex->try_lock_for(std::chrono::nanoseconds(left_ns))) {
      status_ = Error(ErrorCode::Timeout,
                      "Stage '" + name + "' is still used by another run after " +
                          std::to_string(left_ns / 1'000'000) + " ms.",
                      "Busy");
      return;
    }
    ++count_;
  }
}

Machine::StageLock::~StageLock() {
  const std::lock_guard lock(machine_.mutex_);
  while (count_ > 0) machine_.stage_locks_.find(names_[--count_])->second.unlock();
}

MachineCounts Machine::counts() const {
  MachineCounts counts;
  counts.uploads = uploads_.load(std::memory_order_relaxed);
  counts.timestamp_reads = timestamp_reads_.load(std::memory_order_relaxed);
  counts.synchronizations = synchronizations_.load(std::memory_order_relaxed);
  return counts;
}

}  // namespace ignis::exec
