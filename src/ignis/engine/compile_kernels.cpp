#include "ignis/engine/compile_kernels.h"

#include "ignis/base/log.h"
#include "ignis/base/on_threads.h"
#include "ignis/engine/program_record.h"
#include "ignis/ir/graph.h"
#include "ignis/runtime/device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

namespace ignis::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One distinct kernel on its way to a program.
struct Job {
  ir::Node sink;
  std::string name;
  std::optional<CompiledKernel> done;
  std::optional<Error> error;
  std::vector<codegen::PassRecord> passes;
  ProgramLookup lookup;
  double lower_s = 0, compile_s = 0, cache_s = 0;
  bool is_tuned = false;
};

// What all jobs of a graph share.
struct Shared {
  const codegen::Config& config;
  ProgramCache* cache = nullptr;
  CodeIdentity code;  // filled when there is a cache
  const ActionsOf* actions_of = nullptr;
};

// Of threads that want one program of one cache at the same time, one compiles it and the others then find it. Held while a
// thread looks it up, compiles it and keeps it; a thread holds one at a time, so none waits in a circle.
class Flight {
 public:
  Flight(const ProgramCache* cache, const Digest& key) : entry_(cache, key) {
    std::unique_lock lock(table().mutex);
    // Bounded, as every wait: who waited that long compiles for itself.
    is_mine_ = table().left.wait_for(lock, std::chrono::minutes(1),
                                     [&] { return !table().taken.contains(entry_); });
    if (is_mine_) table().taken.insert(entry_);
  }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;
  ~Flight() {
    if (!is_mine_) return;
    {
      const std::lock_guard lock(table().mutex);
      table().taken.erase(entry_);
    }
    table().left.notify_all();
  }

 private:
  using Entry = std::pair<const ProgramCache*, Digest>;
  struct Table {
    std::mutex mutex;
    std::condition_variable left;
    std::set<Entry> taken;
  };
  static Table& table() {
    static Table table;
    return table;
  }

  Entry entry_;
  bool is_mine_ = false;
};

// "k07_conv_relu": unique in the program, the same for the same model.
std::string program_name(size_t index, const std::string& word) {
  std::string name = "k" + std::string(index < 10 ? "0" : "") + std::to_string(index);
  if (!word.empty()) name += '_';
  for (const char c : word.substr(0, 48)) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += is_plain ? c : '_';
  }
  return name;
}

// Lowers and compiles. Not from the name: whatever stands in the object is the same for equal kernels of all models.
Status compile_job(Job& job, const codegen::Config& config, const Digest& content) {
  Clock::time_point begin = Clock::now();
  IGNIS_TRY_ASSIGN(codegen::Lowered lowered, codegen::lower(job.sink, config));
  job.lower_s = seconds_since(begin);
  job.passes = std::move(lowered.passes);
  lowered.program.name = program_symbol(content);
  begin = Clock::now();
  CompiledKernel kernel;
  kernel.parallel_units = lowered.parallel_units;
  kernel.flops = lowered.flops;
  kernel.why = std::move(lowered.why);
  for (const std::string& action : lowered.actions) {
    kernel.schedule += (kernel.schedule.empty() ? "" : "; ") + action;
  }
  if (config.target.renderer == "c") {
    IGNIS_TRY_ASSIGN(kernel.image, codegen::compile_c(lowered.program, config.target));
  } else {
    IGNIS_TRY_ASSIGN(kernel.image, codegen::compile_llvm(lowered.program, config.target));
  }
  job.compile_s = seconds_since(begin);
  job.done = std::move(kernel);
  return {};
}

Status run_job(Job& job, const Digest& content, const codegen::Config& config,
               const CodeIdentity& code, ProgramCache* cache) {
  const Clock::time_point begin = Clock::now();
  const bool asks = cache != nullptr && job.lookup.outcome != CacheOutcome::Bypassed;
  if (!asks) {
    IGNIS_TRY(compile_job(job, config, content));
    job.lookup.seconds = seconds_since(begin);
    return {};
  }
  const ProgramKey key = make_program_key(content, code);
  const Flight flight(cache, key.digest);
  CompiledKernel kernel;
  job.lookup = cache->find(key, &kernel);
  if (job.lookup.outcome == CacheOutcome::Miss) {
    IGNIS_TRY(compile_job(job, config, content));
    cache->put({key, job.name, *job.done});
  } else {
    job.done = std::move(kernel);
  }
  job.lookup.seconds = seconds_since(begin);
  job.cache_s = job.lookup.seconds - job.lower_s - job.compile_s;
  return {};
}

// With its own actions when somebody chose some, else with those of the heuristics.
Status run_job(Job& job, const Shared& shared) {
  const Digest content = kernel_digest(job.sink);
  if (shared.actions_of != nullptr && job.lookup.outcome != CacheOutcome::Bypassed) {
    const auto chosen = shared.actions_of->find(to_hex(content));
    if (chosen != shared.actions_of->end()) {
      codegen::Config config = shared.config;
      config.actions = chosen->second;
      CodeIdentity code;
      if (shared.cache != nullptr) {
        IGNIS_TRY_ASSIGN(code, code_identity(config));
      }
      const Status status = run_job(job, content, config, code, shared.cache);
      job.is_tuned = bool(status);
      if (job.is_tuned || status.error().code() != ErrorCode::InvalidArgument) return status;
      IGNIS_LOG(Warning, "tuning") << "Kernel '" << job.name
                                   << "' does not take the actions of the tuning record, and gets "
                                      "those of the heuristics: "
                                   << status.error().message();
    }
  }
  return run_job(job, content, shared.config, shared.code, shared.cache);
}

// Runs all jobs on as many threads as the machine has, the calling one included. The first error stops the rest.
void run_jobs(std::vector<Job>& jobs, const Shared& shared,
              const std::function<void(int, int)>& progress) {
  std::atomic<bool> has_failed{false};
  std::mutex progress_mutex;
  int done = 0;
  // All cores, also for a program that is to run on one.
  on_threads(jobs.size(), static_cast<size_t>(runtime::usable_threads()), [&](size_t i) {
    if (has_failed) return;
    Status status = run_job(jobs[i], shared);
    if (!status) {
      jobs[i].error = std::move(status).error().with_context("kernel '" + jobs[i].name + "'");
      has_failed = true;
      return;
    }
    const std::lock_guard lock(progress_mutex);
    ++done;
    if (progress) progress(done, static_cast<int>(jobs.size()));
  });
}

void add_passes(const std::vector<codegen::PassRecord>& records, std::vector<PassTime>& sums) {
  for (const codegen::PassRecord& record : records) {
    auto at = std::find_if(sums.begin(), sums.end(),
                           [&](const PassTime& sum) { return sum.name == record.name; });
    if (at == sums.end()) at = sums.insert(sums.end(), PassTime{record.name, 0, 0, 0, 0});
    at->seconds += record.seconds;
    at->calls += 1;
    at->rule_attempts += record.rule_attempts;
    at->rule_hits += record.rule_hits;
  }
}

}  // namespace

ir::Node with_fault(ir::Graph& graph, const ir::Node& sink) {
  std::vector<ir::Node> stores;
  for (int i = 0; i < sink.source_count(); ++i) {
    const ir::Node store = sink.src(i);
    std::vector<ir::Node> sources;
    for (int j = 0; j < store.source_count(); ++j) sources.push_back(store.src(j));
    const bool is_bool = sources[1].dtype() == DType::Bool;
    sources[1] = graph.alu(is_bool ? ir::Op::Xor : ir::Op::Add,
                           {sources[1], graph.constant_like(sources[1], 1)});
    stores.push_back(graph.rebuild(store, sources));
  }
  return graph.rebuild(sink, stores);
}

Result<CompiledKernels> compile_kernels(const schedule::Schedule& schedule,
                                        const codegen::Config& config,
                                        const std::vector<std::string>& names,
                                        const std::function<void(int, int)>& progress,
                                        int seeded_fault, ProgramCache* cache,
                                        const ActionsOf* actions_of) {
  CompiledKernels compiled;
  std::vector<Job> jobs;
  std::map<ir::ContentKey, int> known;
  for (size_t k = 0; k < schedule.kernels.size(); ++k) {
    const ir::Node& sink = schedule.kernels[k].sink;
    const auto [at, is_new] = known.emplace(ir::content_key(sink), static_cast<int>(jobs.size()));
    if (is_new) {
      jobs.emplace_back();
      jobs.back().sink = sink;
      jobs.back().name = program_name(jobs.size() - 1, names[k]);
    }
    compiled.program_of.push_back(at->second);
  }
  if (seeded_fault >= 0 && static_cast<size_t>(seeded_fault) < jobs.size()) {
    Job& job = jobs[static_cast<size_t>(seeded_fault)];
    job.sink = with_fault(*schedule.graph, job.sink);
    job.lookup.outcome = CacheOutcome::Bypassed;
    job.lookup.why = "holds a seeded fault";
    IGNIS_LOG_IF(Info, "cache", cache != nullptr)
        << "Kernel '" << job.name
        << "' holds a seeded fault: it is neither looked up in the program cache nor kept there.";
  }
  const Clock::time_point begin = Clock::now();
  Shared shared{config, cache, {}, actions_of};
  if (cache != nullptr) {
    IGNIS_TRY_ASSIGN(shared.code, code_identity(config));
  }
  run_jobs(jobs, shared, progress);
  if (cache != nullptr) cache->settle();
  const double wall_s = seconds_since(begin);
  double lower_s = 0, compile_s = 0, cache_s = 0;
  for (Job& job : jobs) {
    if (job.error) return *std::move(job.error);
    lower_s += job.lower_s;
    compile_s += job.compile_s;
    cache_s += job.cache_s;
  }
  for (Job& job : jobs) {
    add_passes(job.passes, compiled.passes);
    compiled.tuned += job.is_tuned;
    job.lookup.kernel = job.name;
    compiled.lookups.push_back(std::move(job.lookup));
    compiled.names.push_back(std::move(job.name));
    compiled.programs.push_back(*std::move(job.done));
  }
  const double cpu_s = lower_s + compile_s + cache_s;
  compiled.lower_s = cpu_s > 0 ? wall_s * lower_s / cpu_s : 0;
  compiled.compile_s = cpu_s > 0 ? wall_s * compile_s / cpu_s : 0;
  compiled.cache_s = cpu_s > 0 ? wall_s * cache_s / cpu_s : 0;
  return compiled;
}

}  // namespace ignis::engine
