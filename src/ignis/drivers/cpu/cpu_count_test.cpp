#include "ignis/drivers/cpu/cpu_count.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace ignis::cpu {
namespace {

// A folder that stands for "/" and goes away with the test.
class FakeRoot {
 public:
  FakeRoot() {
    path_ = (std::filesystem::temp_directory_path() / "ignis-cgroup-XXXXXX").string();
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path full = path_ + file;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(CpuCount, ReadsVersion2Limits) {
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("200000 100000\n"), 2);
  EXPECT_EQ(parse_cpu_max("299999 100000\n"), 2);  // rounded down
  EXPECT_EQ(parse_cpu_max("50000 100000"), 1);     // at least one
  EXPECT_EQ(parse_cpu_max(""), std::nullopt);
  EXPECT_EQ(parse_cpu_max("200000"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("200000 0"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("200000 100000 7"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("99999999999999999999 1"), std::nullopt);
}

TEST(CpuCount, ReadsVersion1Limits) {
  EXPECT_EQ(parse_cfs("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(parse_cfs("350000\n", "100000\n"), 3);
  EXPECT_EQ(parse_cfs("1000\n", "100000\n"), 1);
  EXPECT_EQ(parse_cfs("x", "100000"), std::nullopt);
}

TEST(CpuCount, TakesTheSmallestLimitOfTheGroupsAbove) {
  FakeRoot root;
  root.write("/proc/self/cgroup", "0::/slice/app\n");
  root.write("/sys/fs/cgroup/slice/app/cpu.max", "800000 100000\n");
  root.write("/sys/fs/cgroup/slice/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota_cpus(root.path()), 3);
  root.write("/sys/fs/cgroup/slice/app/cpu.max", "max 100000\n");
  EXPECT_EQ(quota_cpus(root.path()), 3);
}

TEST(CpuCount, ReadsBothVersionsAtOnce) {
  FakeRoot root;
  root.write("/proc/self/cgroup", "5:memory:/m\n2:cpu,cpuacct:/box\n0::/\n");
  root.write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "450000\n");
  root.write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota_cpus(root.path()), 4);
  root.write("/sys/fs/cgroup/unified/cpu.max", "100000 100000\n");
  EXPECT_EQ(quota_cpus(root.path()), 1);
}

TEST(CpuCount, NoGroupsMeansNoLimit) {
  FakeRoot root;
  EXPECT_EQ(quota_cpus(root.path()), std::nullopt);
  root.write("/proc/self/cgroup", "no colons\n:\n");
  EXPECT_EQ(quota_cpus(root.path()), std::nullopt);
}

TEST(CpuCount, HonoursTheAffinityMask) {
  // On a thread of its own: the mask is the thread's.
  std::thread([] {
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
    EXPECT_EQ(affinity_cpus(), CPU_COUNT(&mask));
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof(mask), &mask), 0);
    EXPECT_EQ(affinity_cpus(), 1);
    EXPECT_EQ(usable_cpus(), 1);
  }).join();
}

}  // namespace
}  // namespace ignis::cpu
