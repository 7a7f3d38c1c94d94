#pragma once

#include "ignis/base/result.h"
#include "ignis/drivers/cpu/worker.h"
#include "ignis/runtime/device_life.h"
#include "ignis/runtime/queued_device.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ignis::cpu {

/// The CPU as a device of the queue chain: "CPU", with one queue, COMPUTE:0, that one thread works off (worker.h). Nobody's
/// peer and never an enqueue device: the chain hands it host runs (queue spec 2).
///
/// The thread starts with the first submit. A program that does not come back makes the device Unavailable when somebody's
/// wait for it ends; reopen() starts another thread with other pool threads, and is_quiet() tells when the old one came back.
class CpuQueue final : public runtime::QueuedDevice {
 public:
  CpuQueue(PoolSource pool_source, std::chrono::nanoseconds spin);
  ~CpuQueue() override;
  CpuQueue(const CpuQueue&) = delete;
  CpuQueue& operator=(const CpuQueue&) = delete;

  const std::string& name() const override { return name_; }
  const runtime::Capabilities& capabilities() const override { return capabilities_; }
  runtime::DeviceState state() const override { return life_.state(); }
  bool is_online() const override { return life_.is_online(); }
  uint64_t generation() const override { return life_.generation(); }
  runtime::Clock& clock() override { return clock_; }
  runtime::Timeline& timeline() override { return timeline_; }
  bool try_lock_submission(int64_t deadline_ns) override;
  void unlock_submission() override { submission_.unlock(); }

  Result<runtime::MemoryRef> allocate(uint64_t size_bytes, runtime::Purpose purpose) override;
  /// The host's address. Errors: Unsupported (NotMappable) for memory that the host does not reach.
  Result<uint64_t> map(const runtime::MemoryRef& memory) override;
  bool is_whole(const runtime::Memory& memory) const override;
  bool is_quiet(uint64_t generation) const override;
  /// The program, loaded: its address is its entry. Errors: as LoadedObject::load(); Unsupported for another architecture.
  Result<runtime::MemoryRef> load_image(const ProgramImage& image) override;
  Status encode(const runtime::Command& command, const Encoding& encoding,
                runtime::EncodedQueue& to) const override;
  uint64_t free_bytes(runtime::QueueId queue) const override;
  uint64_t ring_bytes(runtime::QueueId queue) const override;
  Status submit(runtime::QueueId queue, std::span<const std::byte> commands) override;
  std::string report_hang(const std::string& what) override;
  Status reopen() override;

  /// The fault HostWorkerDead (queue spec 13): the worker's thread ends without a word.
  void kill_worker();

 private:
  /// Sleeps end early when the CPU's timeline moves.
  class QueueClock final : public runtime::Clock {
   public:
    QueueClock(QueueEvents& events, int64_t spin_ns) : events_(events), spin_ns_(spin_ns) {}
    int64_t now_ns() const override { return runtime::Clock::real().now_ns(); }
    void sleep_until(int64_t until_ns) override { runtime::Clock::real().sleep_until(until_ns); }
    uint64_t ticket() const override { return events_.changed.count(); }
    void sleep_until_event(int64_t until_ns, uint64_t ticket) override {
      events_.changed.sleep_while(static_cast<uint32_t>(ticket), until_ns - now_ns());
    }
    int64_t longest_sleep_ns() const override { return 5'000'000; }
    int spins() const override;
    int64_t spin_ns() const override;

   private:
    QueueEvents& events_;
    int64_t spin_ns_;
  };

  std::shared_ptr<Worker> worker() const;
  Status start();

  std::string name_ = "CPU";
  runtime::Capabilities capabilities_;
  PoolSource pool_source_;
  std::chrono::nanoseconds spin_;
  runtime::DeviceLife life_;
  std::shared_ptr<QueueEvents> events_ = std::make_shared<QueueEvents>();
  QueueClock clock_;
  runtime::Timeline timeline_;
  std::mutex submission_;
  mutable std::mutex workers_mutex_;  // around worker_ and old_workers_; after submission_
  std::shared_ptr<Worker> worker_;
  /// With their generations; those that ended go.
  std::vector<std::pair<uint64_t, std::shared_ptr<Worker>>> old_workers_;
};

}  // namespace ignis::cpu
