#include "ignis/vdev/queue/memory.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

namespace ignis::vdev {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr unsigned char kLostByte = 0xDD;  // so that lost memory never looks like zeros

uint64_t round_up(uint64_t size_bytes) {
  return (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

Result<std::shared_ptr<SimulatedMemory>> SimulatedMemory::create(
    std::string owner, uint64_t size_bytes, HostView view,
    std::shared_ptr<std::atomic<uint64_t>> in_use_bytes) {
  const uint64_t rounded = round_up(size_bytes > 0 ? size_bytes : 1);
  auto* bytes = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, rounded));
  if (bytes == nullptr) {
    return Error(ErrorCode::OutOfMemory, "The host has no " + std::to_string(size_bytes) +
                                             " bytes for memory of device '" + owner + "'.");
  }
  std::memset(bytes, 0, rounded);
  return std::shared_ptr<SimulatedMemory>(
      new SimulatedMemory(std::move(owner), bytes, size_bytes, view, std::move(in_use_bytes)));
}

SimulatedMemory::SimulatedMemory(std::string owner, std::byte* bytes, uint64_t size_bytes,
                                 HostView view, std::shared_ptr<std::atomic<uint64_t>> in_use_bytes)
    : owner_(std::move(owner)),
      bytes_(bytes),
      size_bytes_(size_bytes),
      view_(view),
      in_use_bytes_(std::move(in_use_bytes)) {
  if (view_ == HostView::Cached) {
    cached_ = std::make_unique<std::byte[]>(size_bytes_);
    synced_ = std::make_unique<std::byte[]>(size_bytes_);
  }
  *in_use_bytes_ += size_bytes_;
}

SimulatedMemory::~SimulatedMemory() {
  *in_use_bytes_ -= size_bytes_;
  std::free(bytes_);
}

void SimulatedMemory::flush() {
  if (view_ != HostView::Cached) return;
  for (uint64_t i = 0; i < size_bytes_; ++i) {
    if (cached_[i] != synced_[i]) bytes_[i] = synced_[i] = cached_[i];
  }
}

void SimulatedMemory::make_visible(uint64_t begin_bytes, uint64_t end_bytes) {
  if (view_ != HostView::Cached) return;
  for (uint64_t i = begin_bytes; i < end_bytes; ++i) {
    if (cached_[i] == synced_[i]) cached_[i] = synced_[i] = bytes_[i];
  }
}

void SimulatedMemory::lose() {
  is_lost_ = true;
  if (view_ == HostView::Cached) {
    std::memset(cached_.get(), kLostByte, size_bytes_);
    std::memset(synced_.get(), kLostByte, size_bytes_);
  }
  std::memset(bytes_, kLostByte, size_bytes_);
}

uint64_t AddressMap::map(const runtime::MemoryRef& memory) {
  const auto found = known_.find(memory.get());
  if (found != known_.end()) {
    const Mapping& mapping = mappings_.at(found->second);
    if (mapping.memory.lock() == memory) return found->second;
    mappings_.erase(found->second);  // an older memory lay at the same place of the host
  }
  if (mappings_.size() >= sweep_at_) sweep();
  const uint64_t address = next_;
  next_ += round_up(memory->size_bytes()) + kPageBytes;
  mappings_[address] = {memory, memory.get(), memory->size_bytes()};
  known_[memory.get()] = address;
  return address;
}

bool AddressMap::has(const runtime::MemoryRef& memory) const {
  const auto found = known_.find(memory.get());
  return found != known_.end() && mappings_.at(found->second).memory.lock() == memory;
}

Result<Reached> AddressMap::reach(uint64_t address, uint64_t size_bytes) const {
  const auto fault = [&](const std::string& why) {
    return Error(ErrorCode::InvalidArgument, "page fault at " + hex(address) + " for " +
                                                 std::to_string(size_bytes) + " bytes: " + why);
  };
  auto found = mappings_.upper_bound(address);
  if (found == mappings_.begin()) return fault("nothing is mapped there");
  --found;
  const uint64_t offset_bytes = address - found->first;
  const Mapping& mapping = found->second;
  if (offset_bytes > mapping.size_bytes || size_bytes > mapping.size_bytes - offset_bytes) {
    return fault("the memory below has " + std::to_string(mapping.size_bytes) + " bytes at " +
                 hex(found->first));
  }
  Reached reached;
  reached.keep = mapping.memory.lock();
  if (reached.keep == nullptr) return fault("the memory was released");
  reached.room_bytes = mapping.size_bytes - offset_bytes;
  if (const auto* own = dynamic_cast<const SimulatedMemory*>(reached.keep.get())) {
    reached.bytes = (is_host_ ? own->host() : own->bytes()) + offset_bytes;
  } else if (const auto* end = dynamic_cast<const WireEnd*>(reached.keep.get())) {
    reached.wire = end->wire().get();
  } else {
    reached.bytes = reached.keep->host() + offset_bytes;
  }
  return reached;
}

void AddressMap::clear(const runtime::Memory* keep) {
  for (auto it = mappings_.begin(); it != mappings_.end();) {
    if (it->second.identity == keep) {
      ++it;
      continue;
    }
    known_.erase(it->second.identity);
    it = mappings_.erase(it);
  }
}

void AddressMap::sweep() {
  for (auto it = mappings_.begin(); it != mappings_.end();) {
    if (!it->second.memory.expired()) {
      ++it;
      continue;
    }
    const auto known = known_.find(it->second.identity);
    if (known != known_.end() && known->second == it->first) known_.erase(known);
    it = mappings_.erase(it);
  }
  sweep_at_ = 2 * mappings_.size() + 64;
}

}  // namespace ignis::vdev
