// A program of its own: it counts every allocation of the process.

#include "ignis/pipeline/frames/file_source.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/test_ring.h"

#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

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
    int64_t before = 0;
    for (uint32_t id = 1; id <= 200; ++id) {
      if (id == 11) before = testing::allocation_count();
      ASSERT_TRUE(publish(*server, id));
      Result<Frame> frame = client->receive(kLong);
      ASSERT_TRUE(frame);
      last = *std::move(frame);
    }
    EXPECT_EQ(testing::allocation_count() - before, 0);
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
  int64_t before = 0;
  for (int i = 0; i < 200; ++i) {
    if (i == 10) before = testing::allocation_count();
    Result<Frame> frame = source->receive(kLong);
    ASSERT_TRUE(frame);
    last = *std::move(frame);
  }
  EXPECT_EQ(testing::allocation_count() - before, 0);
}

}  // namespace
}  // namespace ignis::pipeline
