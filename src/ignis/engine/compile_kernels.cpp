#include "ignis/engine/compile_kernels.h"

#include "ignis/engine/on_threads.h"
#include "ignis/ir/graph.h"
#include "ignis/runtime/device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>

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
  double lower_s = 0, compile_s = 0;
};

// "k07_conv_relu": a C identifier, unique in the program, the same for the same model.
std::string symbol_name(size_t index, const std::string& word) {
  std::string name = "k" + std::string(index < 10 ? "0" : "") + std::to_string(index);
  if (!word.empty()) name += '_';
  for (const char c : word.substr(0, 48)) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += is_plain ? c : '_';
  }
  return name;
}

// Each stored number plus 1; a stored bool inverted.
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

Status run_job(Job& job, const codegen::Config& config) {
  Clock::time_point begin = Clock::now();
  IGNIS_TRY_ASSIGN(codegen::Lowered lowered, codegen::lower(job.sink, config));
  job.lower_s = seconds_since(begin);
  job.passes = std::move(lowered.passes);
  lowered.program.name = job.name;
  begin = Clock::now();
  CompiledKernel kernel;
  kernel.parallel_units = lowered.parallel_units;
  kernel.flops = lowered.flops;
  if (config.target.renderer == "c") {
    IGNIS_TRY_ASSIGN(kernel.image, codegen::compile_c(lowered.program, config.target));
  } else {
    IGNIS_TRY_ASSIGN(kernel.image, codegen::compile_llvm(lowered.program, config.target));
  }
  job.compile_s = seconds_since(begin);
  job.done = std::move(kernel);
  return {};
}

// Runs all jobs on as many threads as the machine has, the calling one included. The first error stops the rest.
void run_jobs(std::vector<Job>& jobs, const codegen::Config& config,
              const std::function<void(int, int)>& progress) {
  std::atomic<bool> has_failed{false};
  std::mutex progress_mutex;
  int done = 0;
  // All cores, also for a program that is to run on one.
  on_threads(jobs.size(), static_cast<size_t>(runtime::usable_threads()), [&](size_t i) {
    if (has_failed) return;
    Status status = run_job(jobs[i], config);
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

Result<CompiledKernels> compile_kernels(const schedule::Schedule& schedule,
                                        const codegen::Config& config,
                                        const std::vector<std::string>& names,
                                        const std::function<void(int, int)>& progress,
                                        int seeded_fault) {
  CompiledKernels compiled;
  std::vector<Job> jobs;
  std::map<ir::ContentKey, int> known;
  for (size_t k = 0; k < schedule.kernels.size(); ++k) {
    const ir::Node& sink = schedule.kernels[k].sink;
    const auto [at, is_new] = known.emplace(ir::content_key(sink), static_cast<int>(jobs.size()));
    if (is_new) {
      jobs.emplace_back();
      jobs.back().sink = sink;
      jobs.back().name = symbol_name(jobs.size() - 1, names[k]);
    }
    compiled.program_of.push_back(at->second);
  }
  if (seeded_fault >= 0 && static_cast<size_t>(seeded_fault) < jobs.size()) {
    Job& job = jobs[static_cast<size_t>(seeded_fault)];
    job.sink = with_fault(*schedule.graph, job.sink);
  }
  const Clock::time_point begin = Clock::now();
  run_jobs(jobs, config, progress);
  const double wall_s = seconds_since(begin);
  double lower_s = 0, compile_s = 0;
  for (Job& job : jobs) {
    if (job.error) return *std::move(job.error);
    lower_s += job.lower_s;
    compile_s += job.compile_s;
  }
  for (Job& job : jobs) {
    add_passes(job.passes, compiled.passes);
    compiled.programs.push_back(*std::move(job.done));
  }
  const double cpu_s = lower_s + compile_s;
  compiled.lower_s = cpu_s > 0 ? wall_s * lower_s / cpu_s : 0;
  compiled.compile_s = cpu_s > 0 ? wall_s * compile_s / cpu_s : 0;
  return compiled;
}

}  // namespace ignis::engine
