#pragma once

#include "ignis/base/result.h"
#include "ignis/runtime/queued_device.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace ignis::vdev {

/// What the host has of a device's memory.
enum class HostView : uint8_t {
  None,      ///< nothing
  Coherent,  ///< the same bytes
  Cached,    ///< bytes of its own: see SimulatedMemory::flush() and make_visible()
};

/// Host memory that stands for a device's, zeroed and aligned to 4096 bytes.
class SimulatedMemory final : public runtime::Memory {
 public:
  /// `in_use_bytes` counts what its owner gave out. Errors: OutOfMemory.
  static Result<std::shared_ptr<SimulatedMemory>> create(
      std::string owner, uint64_t size_bytes, HostView view,
      std::shared_ptr<std::atomic<uint64_t>> in_use_bytes);
  SimulatedMemory(const SimulatedMemory&) = delete;
  SimulatedMemory& operator=(const SimulatedMemory&) = delete;
  ~SimulatedMemory() override;

  const std::string& owner() const override { return owner_; }
  uint64_t size_bytes() const override { return size_bytes_; }
  std::byte* host() const override {
    return view_ == HostView::None ? nullptr : view_ == HostView::Coherent ? bytes_ : cached_.get();
  }

  /// What the device reaches, visible to the host or not.
  std::byte* bytes() const { return bytes_; }
  /// Cached only: what the host wrote reaches the device. Bytes that it did not write stay as the device has them.
  void flush();
  /// Cached only: what the device wrote in [begin, end) reaches the host.
  void make_visible(uint64_t begin_bytes, uint64_t end_bytes);
  /// Its device lost what was in it.
  void lose();
  bool is_lost() const { return is_lost_.load(); }

 private:
  SimulatedMemory(std::string owner, std::byte* bytes, uint64_t size_bytes, HostView view,
                  std::shared_ptr<std::atomic<uint64_t>> in_use_bytes);
  std::string owner_;
  std::byte* bytes_;
  uint64_t size_bytes_;
  HostView view_;
  std::unique_ptr<std::byte[]> cached_, synced_;  ///< the host's bytes; what they were last time
  std::atomic<bool> is_lost_{false};
  std::shared_ptr<std::atomic<uint64_t>> in_use_bytes_;
};

/// What passes between the two ends of a wire. A send waits until a receive was posted, as on a real network without buffers.
struct Wire {
  std::unique_ptr<std::byte[]> data;
  uint64_t size_bytes = 0;
  uint64_t posted = 0, sent = 0, received = 0;  ///< transfers
};

/// One end of a wire; nobody reaches it but copies.
class WireEnd final : public runtime::Memory {
 public:
  WireEnd(std::string owner, std::shared_ptr<Wire> wire)
      : owner_(std::move(owner)), wire_(std::move(wire)) {}
  const std::string& owner() const override { return owner_; }
  uint64_t size_bytes() const override { return wire_->size_bytes; }
  std::byte* host() const override { return nullptr; }
  const std::shared_ptr<Wire>& wire() const { return wire_; }

 private:
  std::string owner_;
  std::shared_ptr<Wire> wire_;
};

/// Bytes that a device's address leads to; `keep` holds the memory while they are used.
struct Reached {
  runtime::MemoryRef keep;
  std::byte* bytes = nullptr;  ///< null for a wire
  Wire* wire = nullptr;
  uint64_t room_bytes = 0;  ///< to the end of the memory
};

/// A device's view of memory. Its addresses are no host addresses, and between two memories lies a gap, so that whatever is
/// addressed wrongly is found. Does not keep memory alive.
class AddressMap {
 public:
  /// `is_host`: it reaches what the host sees of a device's memory.
  explicit AddressMap(uint64_t first_address, bool is_host = false)
      : is_host_(is_host), next_(first_address) {}
  /// The address of `memory`, which is mapped when it was not.
  uint64_t map(const runtime::MemoryRef& memory);
  bool has(const runtime::MemoryRef& memory) const;
  /// Errors: InvalidArgument, a page fault that names the address.
  Result<Reached> reach(uint64_t address, uint64_t size_bytes) const;
  /// Forgets everything but `keep`, which may be null.
  void clear(const runtime::Memory* keep);

 private:
  struct Mapping {
    std::weak_ptr<runtime::Memory> memory;
    const runtime::Memory* identity = nullptr;
    uint64_t size_bytes = 0;
  };
  bool is_host_;
  std::map<uint64_t, Mapping> mappings_;              // by address
  std::map<const runtime::Memory*, uint64_t> known_;  // may name memory that is gone
  uint64_t next_;
  size_t sweep_at_ = 64;
  void sweep();
};

}  // namespace ignis::vdev
