#pragma once

#include "ignis/base/result.h"
#include "ignis/engine/queues/compile_queues.h"
#include "ignis/engine/queues/encode.h"
#include "ignis/engine/queues/submit_program.h"
#include "ignis/exec/link.h"
#include "ignis/exec/linked_schedule.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace ignis::engine {

/// Replaces memory that is known by numbered inputs, in the order of first appearance in the calls, and appends what they are
/// bound to. A block that is seen twice keeps its number. Inputs that the schedule has already keep theirs: `inputs` holds
/// what they are bound to.
void number_inputs(exec::Schedule& schedule, std::vector<exec::BoundInput>& inputs);

struct TemplateCacheCounts {
  uint64_t hits = 0, misses = 0, evictions = 0;
  size_t templates = 0;
  uint64_t size_bytes = 0;
  int64_t compile_ns = 0;  ///< that misses, and compiles that are not kept, took together
};

/// Templates of schedules, by everything that changes them (queue spec 8): the prepared schedule with its inputs numbered,
/// profiling, all-to-all or not, copy queues, aliased inputs, whether inputs are baked, the devices' capabilities,
/// generations and encoders, which kinds are switched off, who makes the submit programs. Holds no buffer of a caller. Least recently used templates go when
/// the size bound is passed. This is not the cache of compiled programs; a hit here says nothing of that one.
///
/// Links that are kept with a template hold their machine: clear() before the devices close.
/// All functions may be called from any thread.
class TemplateCache {
 public:
  explicit TemplateCache(uint64_t max_bytes = uint64_t{64} << 20) : max_bytes_(max_bytes) {}

  /// What a schedule is compiled for.
  struct Environment {
    const DeviceTable& table;
    const QueueOptions& options;
    const QueueHooks& hooks;
    const DeviceFinder& find_device;
    const SubmitCompiler* submit_compiler = nullptr;  ///< null: no submit programs are made
  };

  /// Prepares, compiles and encodes a schedule, submit programs included. With `inputs` its memory becomes inputs, which are appended, and with
  /// `allow_cache` as well the template is kept. Without them memory that is known stays in the template.
  /// Errors: as compile_queues(), encode_template() and add_submit_programs().
  Result<exec::TemplateRef> compile(const exec::Schedule& schedule, const Environment& environment,
                                    bool allow_cache = false,
                                    std::vector<exec::BoundInput>* inputs = nullptr);
  /// What is compiled or linked stays what it is; no inputs are added.
  static exec::TemplateRef compile(exec::TemplateRef made) { return made; }
  static std::shared_ptr<exec::LinkedSchedule> compile(
      std::shared_ptr<exec::LinkedSchedule> linked) {
    return linked;
  }

  TemplateCacheCounts counts() const;
  void clear();

 private:
  struct Entry {
    std::string key;
    exec::TemplateRef made;
    uint64_t size_bytes = 0;
  };
  exec::TemplateRef find(const std::string& key);
  void count_compile(int64_t begin_ns);
  exec::TemplateRef keep(std::string key, exec::TemplateRef made);

  uint64_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  ///< most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  TemplateCacheCounts counts_;
};

}  // namespace ignis::engine
