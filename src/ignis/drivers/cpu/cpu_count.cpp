#include "ignis/drivers/cpu/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <vector>

namespace ignis::cpu {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

std::optional<int64_t> parse_int(std::string_view text) {
  text = trim(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<int> whole_cpus(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<int>(std::clamp<int64_t>(*quota / *period, 1, 1 << 20));
}

void take_smaller(std::optional<int>& best, std::optional<int> candidate) {
  if (candidate && (!best || *candidate < *best)) best = candidate;
}

// "/a/b" -> "/a/b", "/a", "": a limit of any group above holds too.
std::vector<std::string> with_parents(std::string path) {
  std::vector<std::string> paths;
  if (path == "/") path.clear();
  for (;;) {
    paths.push_back(path);
    const size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return paths;
    path.resize(slash);
  }
}

bool has_controller(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == name) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

std::optional<int> parse_cpu_max(std::string_view text) {
  text = trim(text);
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  return whole_cpus(parse_int(text.substr(0, space)), parse_int(text.substr(space + 1)));
}

std::optional<int> parse_cfs(std::string_view quota, std::string_view period) {
  return whole_cpus(parse_int(quota), parse_int(period));
}

std::optional<int> quota_cpus(const std::string& root) {
  std::optional<int> best;
  // Lines "hierarchy:controllers:path"; v2 has the hierarchy 0 and no controllers.
  std::istringstream groups(read_text(root + "/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    for (const std::string& group : with_parents(line.substr(second + 1))) {
      if (controllers.empty()) {
        for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
          const auto text = read_text(root + mount + group + "/cpu.max");
          if (text) take_smaller(best, parse_cpu_max(*text));
        }
      } else if (has_controller(controllers, "cpu")) {
        for (const char* mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
          const auto quota = read_text(root + mount + group + "/cpu.cfs_quota_us");
          const auto period = read_text(root + mount + group + "/cpu.cfs_period_us");
          if (quota && period) take_smaller(best, parse_cfs(*quota, *period));
        }
      }
    }
  }
  return best;
}

int affinity_cpus() {
  // A machine may have more CPUs than a cpu_set_t holds: grow until the kernel accepts the size.
  for (size_t cpus = CPU_SETSIZE; cpus <= (size_t{1} << 20); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) return 1;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(bytes, set);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(count, 1);
  }
  return 1;
}

int usable_cpus() {
  static const std::optional<int> quota = quota_cpus();
  const int allowed = affinity_cpus();
  return std::max(1, std::min(allowed, quota.value_or(allowed)));
}

}  // namespace ignis::cpu
