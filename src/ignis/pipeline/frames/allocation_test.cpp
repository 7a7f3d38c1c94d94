// A program of its own: it counts every allocation of the process.

#include "ignis/pipeline/frames/file_source.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/test_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>

namespace {
std::atomic<uint64_t> allocations{0};

void* counted(std::size_t size) {
  ++allocations;
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }

namespace ignis::pipeline {
namespace {

TEST(Allocation, ASteadyRingAllocatesNothing) {
  for (const bool is_latest_only : {true, false}) {
    const std::string name = unique_ring_name();
    auto server = RingServer::create(name, nv12_layout(64, 32).value()).value();
    RingClientOptions options;
    options.is_latest_only = is_latest_only;
    auto client = RingClient::create(name, options).value();
    connect(*server, *client);
    Frame last;
    uint64_t before = 0;
    for (uint32_t id = 1; id <= 200; ++id) {
      if (id == 11) before = allocations.load();
      ASSERT_TRUE(publish(*server, id));
      Result<Frame> frame = client->receive(kLong);
      ASSERT_TRUE(frame);
      last = *std::move(frame);
    }
    EXPECT_EQ(allocations.load() - before, 0u);
  }
}

TEST(Allocation, ASteadyFileAllocatesNothing) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("ignis-" + unique_ring_name() + ".nv12")).string();
  std::ofstream(path, std::ios::binary) << std::string(12 * 8, 'x');
  FileSourceOptions options;
  options.layout = tight_nv12_layout(4, 2).value();
  options.pace = Pace::Fast;
  options.is_looped = true;
  auto source = FileSource::open(path, options).value();
  std::filesystem::remove(path);
  Frame last;
  uint64_t before = 0;
  for (int i = 0; i < 200; ++i) {
    if (i == 10) before = allocations.load();
    Result<Frame> frame = source->receive(kLong);
    ASSERT_TRUE(frame);
    last = *std::move(frame);
  }
  EXPECT_EQ(allocations.load() - before, 0u);
}

}  // namespace
}  // namespace ignis::pipeline
