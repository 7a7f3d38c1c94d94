// --explain-cache: which kernels were compiled, and why.
#include "tools/ignis/explain_cache.h"

#include "tools/ignis/terminal.h"

#include <cstdio>

namespace ignis::tools {
namespace {

std::string place_text(const ProgramCache* cache, bool has_kernels) {
  if (cache == nullptr) return has_kernels ? "off" : "not asked: nothing had to be compiled";
  const Status disk = cache->disk();
  if (!disk) return "in memory only: " + disk.error().message();
  return cache->folder();
}

}  // namespace

Json cache_json(const ProgramCache* cache, const std::vector<ProgramLookup>& lookups) {
  Json json{{"folder", cache != nullptr ? cache->folder() : ""}};
  if (cache == nullptr) json["off"] = lookups.empty() ? "nothing to compile" : "by request";
  else if (const Status disk = cache->disk(); !disk) json["off"] = disk.error().message();
  if (cache != nullptr) {
    const ProgramCacheCounters c = cache->counters();
    json["memory_hits"] = c.memory_hits;
    json["disk_hits"] = c.disk_hits;
    json["misses"] = c.misses;
    json["stored"] = c.stored;
    json["memory_evictions"] = c.memory_evictions;
    json["disk_evictions"] = c.disk_evictions;
    json["damaged"] = c.damaged;
  }
  json["kernels"] = Json::array();
  for (const ProgramLookup& lookup : lookups) {
    json["kernels"].push_back({{"kernel", lookup.kernel},
                               {"outcome", std::string(to_string(lookup.outcome))},
                               {"why", lookup.why},
                               {"seconds", lookup.seconds}});
  }
  return json;
}

void print_cache(const ProgramCache* cache, const std::vector<ProgramLookup>& lookups) {
  Table table({"kernel", "program cache", "time", "why"});
  for (const ProgramLookup& lookup : lookups) {
    table.add({lookup.kernel, std::string(to_string(lookup.outcome)),
               format_seconds(lookup.seconds), lookup.why});
  }
  if (!lookups.empty()) std::fputs(table.to_string().c_str(), stdout);
  std::printf("program cache: %s", place_text(cache, !lookups.empty()).c_str());
  if (cache != nullptr) {
    const ProgramCacheCounters c = cache->counters();
    std::printf("; %lld memory hits, %lld disk hits, %lld misses, %lld evicted, %lld damaged",
                static_cast<long long>(c.memory_hits), static_cast<long long>(c.disk_hits),
                static_cast<long long>(c.misses),
                static_cast<long long>(c.memory_evictions + c.disk_evictions),
                static_cast<long long>(c.damaged));
  }
  std::printf("\n\n");
}

}  // namespace ignis::tools
