#include "ignis/pipeline/frames/v4l2_device.h"

#include "ignis/pipeline/frames/file_descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

namespace ignis::pipeline {
namespace {

class KernelDevice final : public V4l2Device {
 public:
  int open(const std::string& path) override {
    fd_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    return fd_ ? 0 : -errno;
  }
  void close() override { fd_ = FileDescriptor(); }
  int ioctl(unsigned long request, void* argument) override {
    while (true) {
      if (::ioctl(fd_.get(), request, argument) == 0) return 0;
      if (errno != EINTR) return -errno;
    }
  }
  void* map(size_t size_bytes, int64_t offset) override {
    void* address =
        ::mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd_.get(), static_cast<off_t>(offset));
    return address == MAP_FAILED ? nullptr : address;
  }
  void unmap(void* address, size_t size_bytes) override { ::munmap(address, size_bytes); }
  int wait_readable(uint64_t timeout_ns) override {
    pollfd entry{fd_.get(), POLLIN, 0};
    const timespec limit{static_cast<time_t>(timeout_ns / 1'000'000'000U),
                         static_cast<long>(timeout_ns % 1'000'000'000U)};
    const int ready = ::ppoll(&entry, 1, &limit, nullptr);
    if (ready < 0) return errno == EINTR ? 0 : -errno;
    if (ready == 0) return 0;
    return (entry.revents & POLLIN) != 0 ? 1 : -ENODEV;
  }

 private:
  FileDescriptor fd_;
};

}  // namespace

std::unique_ptr<V4l2Device> make_v4l2_device() { return std::make_unique<KernelDevice>(); }

}  // namespace ignis::pipeline
