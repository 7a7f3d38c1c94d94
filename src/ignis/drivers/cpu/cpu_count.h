#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ignis::cpu {

/// Whole CPUs a quota text allows, rounded down, at least 1; nothing when it sets no limit or is malformed.
/// cgroup v2, file `cpu.max`: "max 100000" or "150000 100000".
std::optional<int> parse_cpu_max(std::string_view text);
/// cgroup v1, files `cpu.cfs_quota_us` ("-1" or microseconds) and `cpu.cfs_period_us`.
std::optional<int> parse_cfs(std::string_view quota, std::string_view period);

/// The smallest quota of the process's control group and the groups above it, v1 and v2; nothing when there is
/// none. `root` stands before `/proc` and `/sys` (tests give a folder with fake files).
std::optional<int> quota_cpus(const std::string& root = "");

/// CPUs the affinity mask of the calling thread allows, at least 1.
int affinity_cpus();

/// Threads worth starting: the affinity mask and the quota, whichever is less, at least 1. The quota is read once.
int usable_cpus();

}  // namespace ignis::cpu
