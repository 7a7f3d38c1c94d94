#pragma once

#include "ignis/base/result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::engine {
struct CompiledKernel;
struct ProgramKey;
struct ProgramRecord;
}  // namespace ignis::engine

namespace ignis {

struct ProgramCacheOptions {
  /// Where programs outlive the process; made when it is not there. Empty: they are kept in memory only.
  std::string folder;
  uint64_t max_disk_bytes = uint64_t{512} << 20;
  uint64_t max_memory_bytes = uint64_t{64} << 20;
};

/// How a kernel came by its program.
enum class CacheOutcome : uint8_t {
  Unused,     ///< the session has no cache
  MemoryHit,  ///< made before in this process
  DiskHit,    ///< made before by another process, or by this one long ago
  Miss,       ///< compiled, and kept from now on
  Bypassed,   ///< compiled for itself: a diagnostic wants it
};
/// "unused", "memory hit", "disk hit", "miss", "bypassed".
std::string_view to_string(CacheOutcome outcome);

struct ProgramLookup {
  std::string kernel;  ///< "k07_conv_relu"
  CacheOutcome outcome = CacheOutcome::Unused;
  std::string why;  ///< of a miss or a bypass: "not there", "other compiler: llvm 19.1.6 there, …"
  double seconds = 0;  ///< until the program was there, compiling included
};

struct ProgramCacheCounters {
  int64_t memory_hits = 0, disk_hits = 0, misses = 0, stored = 0;
  int64_t memory_evictions = 0, disk_evictions = 0;
  int64_t damaged = 0;  ///< records that did not have their digest; removed and never used
};

/// Compiled kernels by everything that changes their code. Any number of sessions and threads share one, and any number of
/// processes one folder. A cache that cannot do its work says so once in the log and is then off; nobody fails for it.
class ProgramCache {
 public:
  /// Does not fail: a folder that cannot be used turns the disk part off, and disk() says why.
  static std::shared_ptr<ProgramCache> open(const ProgramCacheOptions& options = {});
  ~ProgramCache();
  ProgramCache(const ProgramCache&) = delete;
  ProgramCache& operator=(const ProgramCache&) = delete;

  const std::string& folder() const;
  /// Ok while the folder is in use. Errors: the reason NoFolder, or what turned it off.
  Status disk() const;
  ProgramCacheCounters counters() const;
  /// Forgets what is in memory; the folder keeps it.
  void forget();

  /// For engine::compile_kernels. A hit fills `kernel`; else the lookup says why there was none.
  ProgramLookup find(const engine::ProgramKey& key, engine::CompiledKernel* kernel);
  void put(const engine::ProgramRecord& record);
  /// Writes down what was used and keeps the folder below its limit. Once after each graph.
  void settle();

 private:
  struct State;
  explicit ProgramCache(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// $XDG_CACHE_HOME/ignis or ~/.cache/ignis; empty when neither variable is set.
std::string default_cache_folder();

}  // namespace ignis
