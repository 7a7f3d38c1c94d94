#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace ignis::pipeline {

/// The system calls that V4l2Source makes, so that a test can play the camera. Numbers below zero are -errno.
class V4l2Device {
 public:
  virtual ~V4l2Device() = default;
  /// Opens without waiting.
  virtual int open(const std::string& path) = 0;
  virtual void close() = 0;
  virtual int ioctl(unsigned long request, void* argument) = 0;
  /// Null on failure.
  virtual void* map(size_t size_bytes, int64_t offset) = 0;
  virtual void unmap(void* address, size_t size_bytes) = 0;
  /// 1: a buffer may be there; 0: none within the time; -ENODEV: the device is gone.
  virtual int wait_readable(uint64_t timeout_ns) = 0;
};

/// The kernel's.
std::unique_ptr<V4l2Device> make_v4l2_device();

}  // namespace ignis::pipeline
