#include "ignis/pipeline/frames/ring_socket.h"

#include "ignis/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1
#endif

namespace ignis::pipeline::ring {
namespace {

Error system_error(const std::string& what) {
  return Error(ErrorCode::Internal, what + ": " + std::strerror(errno) + ".");
}

struct Address {
  sockaddr_un address{};
  socklen_t size_bytes = 0;
};

Result<Address> address_of(const std::string& name) {
  IGNIS_TRY(check_name(name));
  const std::string path = "ignis-frames/" + name;
  Address result;
  result.address.sun_family = AF_UNIX;
  static_assert(sizeof(result.address.sun_path) > 1 + 13 + kMaxNameBytes);
  std::memcpy(result.address.sun_path + 1, path.data(), path.size());  // byte 0 is zero: abstract
  result.size_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  return result;
}

Result<FileDescriptor> open_socket() {
  FileDescriptor fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_error("A local socket cannot be made");
  return fd;
}

}  // namespace

Result<FileDescriptor> listen_at(const std::string& name) {
  IGNIS_TRY_ASSIGN(const Address address, address_of(name));
  IGNIS_TRY_ASSIGN(FileDescriptor fd, open_socket());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.address), address.size_bytes) !=
      0) {
    if (errno == EADDRINUSE) {
      return Error(ErrorCode::InvalidArgument,
                   "Frame ring '" + name + "' has a server already; end it or choose another name.",
                   "NameInUse");
    }
    return system_error("Frame ring '" + name + "' cannot be made");
  }
  if (::listen(fd.get(), 16) != 0) return system_error("Frame ring '" + name + "' cannot listen");
  return fd;
}

Result<FileDescriptor> connect_to(const std::string& name) {
  IGNIS_TRY_ASSIGN(const Address address, address_of(name));
  IGNIS_TRY_ASSIGN(FileDescriptor fd, open_socket());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.address),
                address.size_bytes) != 0) {
    if (errno == ECONNREFUSED || errno == ENOENT || errno == EAGAIN) {
      return Error(
          ErrorCode::NotFound,
          "Frame ring '" + name + "' has no server. Start the camera side, or check the name.",
          "NoServer");
    }
    return system_error("Frame ring '" + name + "' cannot be reached");
  }
  return fd;
}

bool is_trusted_peer(int fd, const std::vector<uint32_t>& trusted, uint32_t* uid_out) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || size != sizeof(peer))
    return false;
  if (uid_out != nullptr) *uid_out = peer.uid;
  return peer.uid == 0 || peer.uid == ::geteuid() ||
         std::find(trusted.begin(), trusted.end(), peer.uid) != trusted.end();
}

SendResult send_packet(int socket, std::span<const std::byte> packet, int fd) {
  iovec part{const_cast<std::byte*>(packet.data()), packet.size()};  // sendmsg only reads it
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  while (true) {
    if (::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return SendResult::Sent;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM ||
                   errno == ETOOMANYREFS
               ? SendResult::Full
               : SendResult::Closed;
  }
}

ReceiveResult receive_packet(int socket, Received& received) {
  // Room for more descriptors than one, so that they are found and closed.
  constexpr size_t kMaxDescriptors = 8;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control;
  iovec part{received.bytes.data(), received.bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  received.size_bytes = 0;
  received.fd = FileDescriptor();
  ssize_t bytes = 0;
  do {
    bytes = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK ? ReceiveResult::Empty : ReceiveResult::Closed;
  size_t descriptors = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      received.fd = FileDescriptor(fd);  // closes the one before it
      ++descriptors;
    }
  }
  received.size_bytes = static_cast<size_t>(bytes);
  // A packet of no bytes is how a closed socket looks; nobody sends empty records.
  if (bytes == 0) return ReceiveResult::Closed;
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || descriptors > 1)
    return ReceiveResult::Refused;
  return ReceiveResult::Received;
}

bool wait_readable(int fd, uint64_t deadline_ns) {
  pollfd entry{fd, POLLIN, 0};
  while (true) {
    const uint64_t now = monotonic_ns();
    const uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    const timespec limit{static_cast<time_t>(left / 1'000'000'000U),
                         static_cast<long>(left % 1'000'000'000U)};
    const int ready = ::ppoll(&entry, 1, &limit, nullptr);
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return true;  // a bad descriptor shows itself when it is read
    if (left == 0) return false;
  }
}

Result<Mapping> Mapping::map(int fd, uint64_t size_bytes, bool is_writable) {
  const int protection = is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = ::mmap(nullptr, size_bytes, protection, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    return Error(ErrorCode::OutOfMemory, "Shared memory of " + std::to_string(size_bytes) +
                                             " bytes cannot be mapped: " + std::strerror(errno) +
                                             ".");
  }
  Mapping mapping;
  mapping.address_ = address;
  mapping.size_bytes_ = size_bytes;
  return mapping;
}

Result<SharedMemory> create_shared_memory(uint64_t size_bytes) {
  SharedMemory memory;
  memory.fd = FileDescriptor(::memfd_create("ignis-frames", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.fd) return system_error("Shared memory cannot be made");
  // fallocate, not ftruncate: memory that is not there is an error now, not a signal later.
  if (::fallocate(memory.fd.get(), 0, 0, static_cast<off_t>(size_bytes)) != 0) {
    return Error(ErrorCode::OutOfMemory, "Shared memory of " + std::to_string(size_bytes) +
                                             " bytes cannot be had: " + std::strerror(errno) + ".");
  }
  IGNIS_TRY_ASSIGN(memory.mapping, Mapping::map(memory.fd.get(), size_bytes, true));
  if (::fcntl(memory.fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return system_error("Shared memory cannot be sealed");
  if (::fcntl(memory.fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0) {
    IGNIS_LOG(Warning, "frames")
        << "This kernel cannot seal shared memory against writing; the readers of "
           "a frame ring are trusted not to.";
  }
  if (::fcntl(memory.fd.get(), F_ADD_SEALS, F_SEAL_SEAL) != 0)
    return system_error("Shared memory cannot be sealed");
  return memory;
}

Result<Mapping> map_received(int fd, uint64_t size_bytes) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Error(ErrorCode::InvalidArgument,
                 "The frame ring's memory is not sealed against shrinking; it is not used.",
                 "RingProtocol");
  }
  struct stat file{};
  if (::fstat(fd, &file) != 0 || file.st_size < 0 ||
      static_cast<uint64_t>(file.st_size) < size_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 "The frame ring's memory has " + std::to_string(file.st_size) +
                     " bytes; its record says " + std::to_string(size_bytes) + ".",
                 "RingProtocol");
  }
  return Mapping::map(fd, size_bytes, false);
}

uint64_t random_id() {
  uint64_t id = 0;
  if (::getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id) || id == 0)
    id = monotonic_ns() ^ (static_cast<uint64_t>(::getpid()) << 40);
  return id == 0 ? 1 : id;
}

}  // namespace ignis::pipeline::ring
