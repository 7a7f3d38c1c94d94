#include "ignis/vdev/queue/world.h"

#include "ignis/base/check.h"
#include "ignis/vdev/queue/encode.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace ignis::vdev {
namespace {

constexpr const char* kHost = "CPU";
/// Addresses of two devices never meet: a word that reaches the wrong device is found.
constexpr uint64_t kAddressesPerDevice = uint64_t{1} << 44;

}  // namespace

World::World(WorldOptions options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? options_.clock : &virtual_clock_),
      host_in_use_bytes_(std::make_shared<std::atomic<uint64_t>>(0)) {
  virtual_clock_.set_serve([this](int64_t until_ns) { serve_until(until_ns); });
}

World::~World() { stop_worker(); }

runtime::QueuedDevice& World::add(DeviceSpec spec) {
  spec.name = runtime::canonical_device_name(spec.name);
  IGNIS_CHECK(spec.capabilities.signal_bits == 32 || spec.capabilities.signal_bits == 64);
  IGNIS_CHECK(spec.ring_bytes > 0);
  const std::lock_guard lock(mutex_);
  IGNIS_CHECK(!devices_.contains(spec.name)) << spec.name;
  const std::string name = spec.name;
  auto device = std::make_unique<SimulatedDevice>(*this, std::move(spec),
                                                  kAddressesPerDevice * (devices_.size() + 1));
  SimulatedDevice& added = *device;
  for (size_t i = 0; i < added.queues_.size(); ++i) queues_.emplace_back(&added, i);
  devices_.emplace(name, std::move(device));
  return added;
}

runtime::QueuedDevice& World::add_host_worker(uint64_t ring_bytes) {
  DeviceSpec spec;
  spec.name = kHost;
  spec.capabilities = {.can_recover = true};
  spec.ring_bytes = ring_bytes;
  return add(std::move(spec));
}

SimulatedDevice* World::find_simulated(std::string_view name) const {
  const auto found = devices_.find(name);
  return found == devices_.end() ? nullptr : found->second.get();
}

runtime::QueuedDevice* World::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return find_simulated(name);
}

std::vector<runtime::QueuedDevice*> World::devices() const {
  const std::lock_guard lock(mutex_);
  std::vector<runtime::QueuedDevice*> result;
  result.reserve(devices_.size());
  for (const auto& [name, device] : devices_) result.push_back(device.get());
  return result;
}

Result<runtime::MemoryRef> World::host_memory(uint64_t size_bytes) {
  IGNIS_TRY_ASSIGN(
      std::shared_ptr<SimulatedMemory> memory,
      SimulatedMemory::create(kHost, size_bytes, HostView::Coherent, host_in_use_bytes_));
  return runtime::MemoryRef(std::move(memory));
}

ProgramImage World::add_function(std::string name, int buffer_count, Function function) {
  const std::lock_guard lock(mutex_);
  functions_.push_back(std::move(function));
  return function_image(std::move(name), buffer_count, functions_.size() - 1);
}

uint64_t World::memory_in_use_bytes(std::string_view device) const {
  if (device == kHost) return *host_in_use_bytes_;
  const std::lock_guard lock(mutex_);
  const SimulatedDevice* found = find_simulated(device);
  return found == nullptr ? 0 : found->in_use_bytes_->load();
}

uint64_t World::window_stores(std::string_view device) const {
  const std::lock_guard lock(mutex_);
  const SimulatedDevice* found = find_simulated(device);
  return found == nullptr ? 0 : found->window_stores_.load();
}

std::vector<QueueRef> World::queues() const {
  const std::lock_guard lock(mutex_);
  std::vector<QueueRef> result;
  result.reserve(queues_.size());
  for (const auto& [device, index] : queues_) {
    result.push_back({device->name(), device->queues_[index].id});
  }
  return result;
}

Step World::step(const QueueRef& ref) {
  const std::lock_guard lock(mutex_);
  apply_timed_faults();
  SimulatedDevice* device = find_simulated(ref.device);
  IGNIS_CHECK(device != nullptr) << ref.device;
  SimulatedDevice::Queue* queue = device->find(ref.queue);
  IGNIS_CHECK(queue != nullptr) << ref.queue.to_string();
  return device->step(*queue, clock_->now_ns());
}

void World::apply_timed_faults() {
  for (const auto& [name, device] : devices_) device->apply_timed_faults(clock_->now_ns());
}

bool World::serve_round(int64_t now_ns) {
  order_.resize(queues_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  if (order_.empty()) return false;
  if (is_random_) {
    std::shuffle(order_.begin(), order_.end(), rng_);
  } else {
    const auto first = static_cast<std::ptrdiff_t>(first_ % order_.size());
    std::rotate(order_.begin(), order_.begin() + first, order_.end());
  }
  bool has_run = false;
  for (const size_t number : order_) {
    auto& [device, index] = queues_[number];
    has_run = device->step(device->queues_[index], now_ns) == Step::Ran || has_run;
  }
  return has_run;
}

int64_t World::next_event_ns() const {
  int64_t next = INT64_MAX;
  for (const auto& [name, device] : devices_) next = std::min(next, device->next_event_ns());
  return next;
}

bool World::is_idle() const {
  return std::all_of(queues_.begin(), queues_.end(), [](const auto& entry) {
    const SimulatedDevice::Queue& queue = entry.first->queues_[entry.second];
    return queue.read == queue.write && queue.flights.empty();
  });
}

bool World::run_until_blocked() {
  const std::lock_guard lock(mutex_);
  apply_timed_faults();
  while (serve_round(clock_->now_ns())) {
  }
  return is_idle();
}

bool World::run_until_idle() {
  const std::lock_guard lock(mutex_);
  for (;;) {
    apply_timed_faults();
    while (serve_round(clock_->now_ns())) {
    }
    const int64_t next = next_event_ns();
    if (is_idle() || next == INT64_MAX || clock_ != &virtual_clock_) return is_idle();
    virtual_clock_.move_to(next);
  }
}

void World::serve_until(int64_t until_ns) {
  const std::lock_guard lock(mutex_);
  for (;;) {
    apply_timed_faults();
    while (options_.serves_on_sleep && serve_round(virtual_clock_.now_ns())) {
    }
    const int64_t next = next_event_ns();
    // What is due and yet does not happen is not served: time goes on without it.
    if (next > until_ns || next <= virtual_clock_.now_ns()) break;
    virtual_clock_.move_to(next);
  }
  // Under the lock, so that nobody sees the time of the sleep's end with the work of its beginning.
  virtual_clock_.move_to(until_ns);
  apply_timed_faults();
}

void World::flush_host_writes() {
  for (const auto& [name, device] : devices_) {
    if (device->capabilities().is_host_coherent) continue;
    for (const std::weak_ptr<SimulatedMemory>& weak : device->owned_) {
      if (const std::shared_ptr<SimulatedMemory> memory = weak.lock()) memory->flush();
    }
  }
}

void World::set_rotation(size_t first) {
  const std::lock_guard lock(mutex_);
  is_random_ = false;
  first_ = first;
}

void World::set_random_order(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  is_random_ = true;
  rng_.seed(seed);
}

void World::start_worker() {
  stop_worker();
  stops_ = false;
  worker_ = std::thread([this] { work(); });
}

void World::stop_worker() {
  stops_ = true;
  if (worker_.joinable()) worker_.join();
}

void World::work() {
  constexpr int kYields = 100;
  constexpr std::chrono::microseconds kNap(20);
  int idle_rounds = 0;
  while (!stops_) {
    bool has_run = false;
    {
      const std::lock_guard lock(mutex_);
      apply_timed_faults();
      has_run = serve_round(clock_->now_ns());
    }
    idle_rounds = has_run ? 0 : idle_rounds + 1;
    if (idle_rounds > kYields) {
      std::this_thread::sleep_for(kNap);
    } else {
      std::this_thread::yield();
    }
  }
}

void World::inject(std::string_view device, const Fault& fault) {
  const std::lock_guard lock(mutex_);
  SimulatedDevice* found = find_simulated(device);
  IGNIS_CHECK(found != nullptr) << std::string(device);
  found->inject(fault, clock_->now_ns());
}

void World::heal(std::string_view device) {
  const std::lock_guard lock(mutex_);
  SimulatedDevice* found = find_simulated(device);
  IGNIS_CHECK(found != nullptr) << std::string(device);
  found->heal();
}

void World::set_tracing(bool is_on) {
  const std::lock_guard lock(mutex_);
  is_tracing_ = is_on;
}

std::vector<TraceEntry> World::take_trace() {
  const std::lock_guard lock(mutex_);
  return std::exchange(trace_, {});
}

}  // namespace ignis::vdev
