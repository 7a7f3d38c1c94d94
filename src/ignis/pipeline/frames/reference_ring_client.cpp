#include "ignis/pipeline/frames/reference_ring_client.h"

#include "ignis/pipeline/frames/file_descriptor.h"
#include "ignis/pipeline/frames/frame_pool.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/ring_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr size_t kNotificationBytes = 48;
constexpr uint32_t kListStreams = 0xffffffff;
constexpr size_t kMaxStreams = 64;
constexpr size_t kMaxBuffers = 127;
/// A buffer record is a structure of the server's memory. Its head is the same in all versions known: length at byte 0,
/// width at 40, height at 48, stride at 56, chroma offset at 64, u64 each. Its tail is not, nor does the reply say how
/// long a record is: that follows from the number of descriptors.
constexpr size_t kMinRecordBytes = 72;
constexpr size_t kMaxRecordBytes = 512;
/// Behind each buffer: the id of the frame in it.
constexpr uint64_t kTrailerBytes = 8;
/// Old notifications read in one go.
constexpr int kMaxSkipped = 64;

Error protocol_error(const std::string& text) {
  return Error(ErrorCode::InvalidArgument, text, "ReferenceProtocol");
}

uint64_t read_u64(std::span<const std::byte> bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}
uint32_t read_u32(std::span<const std::byte> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= std::to_integer<uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

uint64_t deadline_after(std::chrono::nanoseconds timeout) {
  constexpr int64_t kLongest = int64_t{86400} * 1'000'000'000;
  return monotonic_ns() + static_cast<uint64_t>(std::clamp<int64_t>(timeout.count(), 0, kLongest));
}

struct Buffer {
  FileDescriptor fd;
  FrameLayout layout;
};

struct Reply {
  std::vector<std::byte> bytes;
  std::vector<FileDescriptor> descriptors;
};

/// Sends one u32 and takes the one packet that answers.
Result<Reply> ask(const std::string& path, uint32_t question, uint64_t deadline_ns) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);  // create() saw to the length
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error(ErrorCode::Internal, "A local socket cannot be made.");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Error(ErrorCode::DeviceLost,
                 "No camera server answers at '" + path + "': " + std::strerror(errno) + ".",
                 "NoServer");
  }
  std::array<std::byte, 4> packet{};
  for (size_t i = 0; i < 4; ++i) packet[i] = static_cast<std::byte>(question >> (8 * i));
  if (ring::send_packet(socket.get(), packet) != ring::SendResult::Sent) {
    return Error(ErrorCode::DeviceLost, "The camera server at '" + path + "' does not listen.",
                 "NoServer");
  }
  if (!ring::wait_readable(socket.get(), deadline_ns)) {
    return Error(ErrorCode::Timeout, "The camera server at '" + path + "' does not answer.",
                 "NoAnswer");
  }
  Reply reply;
  reply.bytes.resize(kMaxBuffers * kMaxRecordBytes);
  alignas(cmsghdr) std::array<char, CMSG_SPACE((kMaxBuffers + 1) * sizeof(int))> control;
  iovec part{reply.bytes.data(), reply.bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = ::recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count <= 0) {
    return Error(ErrorCode::DeviceLost,
                 "The camera server at '" + path + "' closed the connection without an answer.",
                 "NoServer");
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t descriptors = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < descriptors; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      reply.descriptors.emplace_back(fd);
    }
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return protocol_error("The camera server's answer is longer than any that is right.");
  reply.bytes.resize(static_cast<size_t>(count));
  return reply;
}

Result<Buffer> read_record(std::span<const std::byte> record, FileDescriptor fd, size_t position) {
  Buffer buffer;
  buffer.fd = std::move(fd);
  FrameLayout& layout = buffer.layout;
  const uint64_t length = read_u64(record, 0);
  const uint64_t width = read_u64(record, 40), height = read_u64(record, 48);
  const uint64_t stride = read_u64(record, 56), uv_offset = read_u64(record, 64);
  const std::string name = "Buffer " + std::to_string(position) + " of the camera server";
  constexpr uint64_t kMost = static_cast<uint64_t>(kMaxFrameBytes);
  if (std::max({length, width, height, stride, uv_offset}) > kMost) {
    return protocol_error(name + " has " + std::to_string(length) + " bytes for " +
                          std::to_string(width) + "x" + std::to_string(height) +
                          " pixels; no frame has more than " + std::to_string(kMost) + ".");
  }
  layout.width_px = static_cast<int>(width);
  layout.height_px = static_cast<int>(height);
  layout.y_stride = layout.uv_stride = static_cast<int64_t>(stride);
  layout.u_offset = static_cast<int64_t>(uv_offset);
  layout.v_offset = layout.u_offset + 1;
  layout.size_bytes = static_cast<int64_t>(length);
  if (Status status = check_layout(layout, length); !status)
    return protocol_error(name + " cannot be right: " + status.error().message());
  struct stat file{};
  if (::fstat(buffer.fd.get(), &file) != 0 || file.st_size < 0 ||
      static_cast<uint64_t>(file.st_size) < length + kTrailerBytes) {
    return protocol_error(name + " has memory of " + std::to_string(file.st_size) +
                          " bytes; its record says " + std::to_string(length) +
                          " and 8 more for the frame's id.");
  }
  return buffer;
}

}  // namespace

Result<ReferenceNotification> decode_reference_notification(std::span<const std::byte> packet) {
  if (packet.size() != kNotificationBytes) {
    return protocol_error("A notification of the camera server has " +
                          std::to_string(packet.size()) + " bytes; it has 48.");
  }
  ReferenceNotification result;
  result.server_id = read_u64(packet, 0);
  result.index = read_u64(packet, 8);
  result.frame_id = read_u32(packet, 16);
  result.timestamp_sof_ns = read_u64(packet, 24);
  result.timestamp_eof_ns = read_u64(packet, 32);
  result.valid = packet[40] != std::byte{0};
  return result;
}

struct ReferenceRingClient::State {
  ReferenceRingOptions options;
  std::vector<Buffer> buffers;        ///< empty: to be fetched
  std::optional<uint64_t> server_id;  ///< of the server whose buffers these are
  std::optional<uint32_t> last_id;
  FramePool pool;
  uint64_t dropped = 0;

  Status connect(uint64_t deadline_ns);
  Result<ReferenceNotification> next(uint64_t deadline_ns);
  Result<std::optional<Frame>> copy(const ReferenceNotification& told);
  Result<Frame> receive(uint64_t deadline_ns);
};

Status ReferenceRingClient::State::connect(uint64_t deadline_ns) {
  IGNIS_TRY_ASSIGN(Reply reply, ask(options.socket_path, options.stream_id, deadline_ns));
  const size_t count = reply.descriptors.size();
  if (count == 0 || count > kMaxBuffers || reply.bytes.size() % count != 0) {
    return protocol_error(
        "The camera server answered with " + std::to_string(reply.bytes.size()) + " bytes and " +
        std::to_string(count) +
        " descriptors; there is one descriptor for each of 1 to 127 equal records.");
  }
  const size_t record_bytes = reply.bytes.size() / count;
  if (record_bytes < kMinRecordBytes || record_bytes > kMaxRecordBytes || record_bytes % 8 != 0) {
    return protocol_error("The camera server's buffer records have " +
                          std::to_string(record_bytes) + " bytes; known ones have " +
                          std::to_string(kMinRecordBytes) + " to " +
                          std::to_string(kMaxRecordBytes) + ".");
  }
  std::vector<Buffer> fresh;
  for (size_t i = 0; i < count; ++i) {
    const std::span<const std::byte> record(reply.bytes.data() + i * record_bytes, record_bytes);
    IGNIS_TRY_ASSIGN(Buffer buffer, read_record(record, std::move(reply.descriptors[i]), i));
    fresh.push_back(std::move(buffer));
  }
  buffers = std::move(fresh);
  server_id.reset();
  last_id.reset();
  pool.renew();
  return Status::ok();
}

Result<ReferenceNotification> ReferenceRingClient::State::next(uint64_t deadline_ns) {
  const uint64_t now = monotonic_ns();
  const uint64_t left_ns = deadline_ns > now ? deadline_ns - now : 0;
  IGNIS_TRY_ASSIGN(
      ReferenceNotification newest,
      options.next_notification(std::chrono::nanoseconds(static_cast<int64_t>(left_ns))));
  for (int i = 0; options.is_latest_only && i < kMaxSkipped; ++i) {
    Result<ReferenceNotification> newer = options.next_notification(std::chrono::nanoseconds(0));
    if (!newer) break;
    newest = *newer;
  }
  return newest;
}

/// Nothing when the buffer holds another frame by now.
Result<std::optional<Frame>> ReferenceRingClient::State::copy(const ReferenceNotification& told) {
  const Buffer& buffer = buffers[told.index];
  const auto read = [&](std::span<std::byte> bytes, uint64_t offset) -> Status {
    uint64_t done = 0;
    while (done < bytes.size()) {
      const ssize_t count = ::pread(buffer.fd.get(), bytes.data() + done, bytes.size() - done,
                                    static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        return Error(ErrorCode::Unsupported,
                     "The camera server's memory cannot be read like a file: " +
                         std::string(std::strerror(errno)) + ".",
                     "ReferenceMemory");
      }
      if (count == 0) {
        return protocol_error("Buffer " + std::to_string(told.index) + " ends at byte " +
                              std::to_string(offset + done) + "; it has " +
                              std::to_string(buffer.layout.size_bytes + 8) + " bytes.");
      }
      done += static_cast<uint64_t>(count);
    }
    return Status::ok();
  };
  const uint64_t length = static_cast<uint64_t>(buffer.layout.size_bytes);
  std::array<std::byte, kTrailerBytes> before{}, after{};
  IGNIS_TRY(read(before, length));
  if (read_u64(before, 0) != told.frame_id) return std::optional<Frame>();
  IGNIS_TRY_ASSIGN(WritableFrame writable, pool.acquire(buffer.layout));
  IGNIS_TRY(read(writable.bytes, 0));
  IGNIS_TRY(read(after, length));
  if (before != after) return std::optional<Frame>();
  FrameInfo& info = writable.frame.info;
  info.frame_id = told.frame_id;
  info.stream_id = options.stream_id;
  info.server_id = told.server_id;
  info.timestamp_sof_ns = told.timestamp_sof_ns;
  info.timestamp_eof_ns = told.timestamp_eof_ns;
  info.valid = told.valid;
  info.receive_time_ns = monotonic_ns();
  return std::optional<Frame>(std::move(writable.frame));
}

Result<Frame> ReferenceRingClient::State::receive(uint64_t deadline_ns) {
  while (true) {
    if (buffers.empty()) IGNIS_TRY(connect(deadline_ns));
    IGNIS_TRY_ASSIGN(const ReferenceNotification told, next(deadline_ns));
    if (!server_id) server_id = told.server_id;
    if (told.server_id != *server_id || told.index >= buffers.size()) {
      buffers.clear();
      return Error(ErrorCode::DeviceLost,
                   "The camera server at '" + options.socket_path +
                       "' was started anew; its buffers are fetched again.",
                   "ServerGone");
    }
    Result<std::optional<Frame>> frame = copy(told);
    if (!frame) {
      if (frame.error().reason() == "ReferenceProtocol") buffers.clear();
      return std::move(frame).error();
    }
    if (*frame) {
      // Ids of one server count its frames; a gap of half the range is one that goes back.
      const uint32_t gap = last_id ? told.frame_id - *last_id : 1;
      if (gap > 1 && gap < 1U << 31) dropped += gap - 1;
      last_id = told.frame_id;
      return **std::move(frame);
    }
    if (monotonic_ns() >= deadline_ns) {
      return Error(ErrorCode::Timeout,
                   "Every frame of the camera server was written over before it was read.");
    }
  }
}

ReferenceRingClient::ReferenceRingClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
ReferenceRingClient::~ReferenceRingClient() = default;

namespace {
Status check_path(const std::string& path) {
  if (!path.empty() && path.size() < sizeof(sockaddr_un::sun_path) &&
      path.find('\0') == std::string::npos) {
    return Status::ok();
  }
  return Error(ErrorCode::InvalidArgument,
               "'" + path.substr(0, 128) + "' cannot be a socket's path: it has " +
                   std::to_string(path.size()) + " bytes, 1 to 107 are possible.",
               "RingName");
}
}  // namespace

Result<std::unique_ptr<ReferenceRingClient>> ReferenceRingClient::create(
    ReferenceRingOptions options) {
  IGNIS_TRY(check_path(options.socket_path));
  if (!options.next_notification) {
    return Error(
        ErrorCode::InvalidArgument,
        "The frames of a camera server are told of on a message endpoint; give a way to it "
        "(next_notification).",
        "ReferenceProtocol");
  }
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  return std::unique_ptr<ReferenceRingClient>(new ReferenceRingClient(std::move(state)));
}

Result<Frame> ReferenceRingClient::receive(std::chrono::nanoseconds timeout) {
  return state_->receive(deadline_after(timeout));
}

uint64_t ReferenceRingClient::dropped_count() const { return state_->dropped; }

std::string ReferenceRingClient::describe() const {
  return "camera server " + state_->options.socket_path + ", stream " +
         std::to_string(state_->options.stream_id);
}

Result<std::vector<uint32_t>> list_reference_streams(const std::string& socket_path,
                                                     std::chrono::nanoseconds timeout) {
  IGNIS_TRY(check_path(socket_path));
  IGNIS_TRY_ASSIGN(const Reply reply, ask(socket_path, kListStreams, deadline_after(timeout)));
  if (reply.bytes.size() % 4 != 0 || reply.bytes.size() / 4 > kMaxStreams ||
      !reply.descriptors.empty()) {
    return protocol_error("The camera server lists its streams in " +
                          std::to_string(reply.bytes.size()) +
                          " bytes; 4 each for at most 64 are right.");
  }
  std::vector<uint32_t> streams;
  for (size_t i = 0; i < reply.bytes.size(); i += 4) streams.push_back(read_u32(reply.bytes, i));
  return streams;
}

}  // namespace ignis::pipeline
