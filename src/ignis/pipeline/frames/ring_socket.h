#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/file_descriptor.h"
#include "ignis/pipeline/frames/ring_protocol.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// The system calls under the frame ring: local sockets, descriptors that travel, sealed memory.

namespace ignis::pipeline::ring {

/// A listening socket under this name, in Linux's abstract name space: it leaves nothing behind when its owner is
/// killed, and a second one with the same name fails. Errors: InvalidArgument, reason "NameInUse"; Internal.
Result<FileDescriptor> listen_at(const std::string& name);
/// Connects without waiting. Errors: NotFound, reason "NoServer", when nobody listens; Internal.
Result<FileDescriptor> connect_to(const std::string& name);
/// True when the other side runs as this user, as root or as one of `trusted`. An abstract name has no file mode.
bool is_trusted_peer(int fd, const std::vector<uint32_t>& trusted, uint32_t* uid_out);

enum class SendResult : uint8_t { Sent, Full, Closed };
/// One packet, without waiting; with a descriptor when `fd` >= 0.
SendResult send_packet(int socket, std::span<const std::byte> packet, int fd = -1);

enum class ReceiveResult : uint8_t { Received, Empty, Closed, Refused };
/// One packet, without waiting, and what descriptors came with it: `Refused` when it is longer than `packet` or came
/// with more than one.
struct Received {
  std::array<std::byte, kMaxRecordBytes> bytes;
  size_t size_bytes = 0;
  FileDescriptor fd;
  std::span<const std::byte> span() const { return {bytes.data(), size_bytes}; }
};
ReceiveResult receive_packet(int socket, Received& received);

/// Waits until `fd` is readable (or hung up) or the time is over. True: look at it.
bool wait_readable(int fd, uint64_t deadline_ns);

/// A mapping of shared memory.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)),
        size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Mapping& operator=(Mapping other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~Mapping() {
    if (address_ != nullptr) ::munmap(address_, size_bytes_);
  }
  static Result<Mapping> map(int fd, uint64_t size_bytes, bool is_writable);

  std::byte* bytes() const { return static_cast<std::byte*>(address_); }
  SlotHeader& header(uint32_t slot) const { return reinterpret_cast<SlotHeader*>(address_)[slot]; }

 private:
  void* address_ = nullptr;
  size_t size_bytes_ = 0;
};

/// Memory of this size, mapped writable, then sealed: its size stays, and nobody else can map it writable.
struct SharedMemory {
  FileDescriptor fd;
  Mapping mapping;
};
Result<SharedMemory> create_shared_memory(uint64_t size_bytes);
/// Maps received memory for reading. Errors: InvalidArgument, reason "RingProtocol", when it is not a sealed memfd of at
/// least that size: an unsealed one could be cut short under the reader, which would be killed.
Result<Mapping> map_received(int fd, uint64_t size_bytes);

/// Not 0.
uint64_t random_id();

}  // namespace ignis::pipeline::ring
