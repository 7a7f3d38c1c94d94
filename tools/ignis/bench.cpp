// ignis bench: where the time goes, from the file to the steady state.
#include "tools/ignis/commands.h"
#include "tools/ignis/explain_cache.h"
#include "tools/ignis/percentiles.h"
#include "tools/ignis/profile.h"
#include "tools/ignis/terminal.h"
#include "tools/io/files.h"
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace ignis::tools {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double peak_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

struct Steady {
  std::vector<double> samples;
  int64_t missed = 0;  ///< frames of --rate that began late by more than a period
  double wall_s = 0, cpu_s = 0;
};

Result<Steady> measure(Session& session, Bound& bound, const BenchOptions& options,
                       Progress& progress) {
  Clock::time_point start = Clock::now();
  progress.show("warm-up");
  while (seconds_since(start) * 1e3 < options.warmup_ms) IGNIS_TRY(bound.run(session));
  Steady steady;
  progress.show("measuring");
  start = Clock::now();
  const double cpu_start = cpu_seconds();
  const double period = options.rate_fps > 0 ? 1 / options.rate_fps : 0;
  for (int64_t i = 0; i < options.iterations || seconds_since(start) < options.duration_s; ++i) {
    if (period > 0) {
      const double due = static_cast<double>(i) * period, now = seconds_since(start);
      if (now < due) std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
      else if (now > due + period) ++steady.missed;
    }
    const Clock::time_point begin = Clock::now();
    IGNIS_TRY(bound.run(session));
    steady.samples.push_back(seconds_since(begin));
  }
  steady.wall_s = seconds_since(start);
  steady.cpu_s = cpu_seconds() - cpu_start;
  progress.clear();
  return steady;
}

Json to_json(const LatencyStats& s) {
  return Json{{"count", s.count},  {"mean_s", s.mean}, {"sd_s", s.deviation}, {"min_s", s.min},
              {"p50_s", s.p50},    {"p90_s", s.p90},   {"p95_s", s.p95},      {"p99_s", s.p99},
              {"p99.9_s", s.p999}, {"max_s", s.max},   {"trend", s.trend}};
}

Json stage_json(const Session& session, double load_s) {
  const StageTimes& t = session.times();
  return Json{{"load_s", load_s},
              {"import_s", t.import_s},
              {"schedule_s", t.schedule_s},
              {"lower_s", t.lower_s},
              {"compile_s", t.compile_s},
              {"cache_s", t.cache_s},
              {"pack_s", t.pack_s},
              {"capture_s", t.capture_s},
              {"link_s", t.link_s},
              {"upload_s", t.upload_s},
              {"first_run_s", t.first_run_s},
              {"time_to_first_result_s", load_s + t.first_run_s}};
}

/// One way for kernels to come by their programs, from the file to the first result.
struct CompileStage {
  const char* name = "";
  double load_s = 0, first_run_s = 0;
  StageTimes times;
  int64_t hits = 0, misses = 0;
};

/// Loads the model with an empty cache, with what that left on disk, and with what is in memory then. In a folder of its
/// own, so that the user's cache has no say in it. Empty when no kernel is compiled (a compiled model, the reference) or
/// there is no place for temporary files.
Result<std::vector<CompileStage>> measure_compile(const BoundModel& model, Bound& bound) {
  std::error_code failed;
  std::string folder = std::filesystem::temp_directory_path(failed) / "ignis-bench-XXXXXX";
  if (failed || ::mkdtemp(folder.data()) == nullptr) return std::vector<CompileStage>();
  struct Remove {
    const std::string& folder;
    ~Remove() {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
  } remove{folder};
  ProgramCacheOptions cache_options;
  cache_options.folder = folder;
  SessionOptions options = model.session;
  options.progress = {};
  std::vector<CompileStage> stages;
  for (const char* name : {"cold", "disk_hit", "memory_hit"}) {
    if (name != std::string_view("memory_hit"))
      options.program_cache = ProgramCache::open(cache_options);
    CompileStage stage;
    stage.name = name;
    const Clock::time_point start = Clock::now();
    IGNIS_TRY_ASSIGN(Session session, load_session(model, options));
    stage.load_s = seconds_since(start);
    if (session.program_lookups().empty()) return std::vector<CompileStage>();
    IGNIS_TRY(bound.run(session));
    stage.times = session.times();
    stage.first_run_s = stage.times.first_run_s;
    for (const ProgramLookup& lookup : session.program_lookups())
      ++(lookup.outcome == CacheOutcome::Miss ? stage.misses : stage.hits);
    stages.push_back(stage);
  }
  return stages;
}

Json to_json(const CompileStage& stage) {
  return Json{{"load_s", stage.load_s},
              {"lower_s", stage.times.lower_s},
              {"compile_s", stage.times.compile_s},
              {"cache_s", stage.times.cache_s},
              {"capture_s", stage.times.capture_s},
              {"link_s", stage.times.link_s},
              {"upload_s", stage.times.upload_s},
              {"first_run_s", stage.first_run_s},
              {"time_to_first_result_s", stage.load_s + stage.first_run_s},
              {"hits", stage.hits},
              {"misses", stage.misses}};
}

void print_compile(const std::vector<CompileStage>& stages) {
  if (stages.empty()) return;
  Table table(
      {"programs from", "lower", "compile", "cache", "link", "first run", "file to first result"});
  for (const CompileStage& stage : stages) {
    const std::string name = stage.name;
    table.add({name == "cold"       ? "the compiler"
               : name == "disk_hit" ? "the disk"
                                    : "memory",
               format_seconds(stage.times.lower_s), format_seconds(stage.times.compile_s),
               format_seconds(stage.times.cache_s), format_seconds(stage.times.link_s),
               format_seconds(stage.first_run_s),
               format_seconds(stage.load_s + stage.first_run_s)});
  }
  std::printf("\n%s", table.to_string().c_str());
}

Json pass_json(const Session& session) {
  double total = 0;
  for (const PassTime& pass : session.pass_times()) total += pass.seconds;
  Json passes = Json::array();
  for (const PassTime& pass : session.pass_times()) {
    passes.push_back({{"name", pass.name},
                      {"seconds", pass.seconds},
                      {"share", total > 0 ? pass.seconds / total : 0},
                      {"calls", pass.calls},
                      {"rule_attempts", pass.rule_attempts},
                      {"rule_hits", pass.rule_hits}});
  }
  return passes;
}

void print_stages(const Session& session, double load_s) {
  const StageTimes& t = session.times();
  Table table({"stage", "time"});
  table.add({"load (file to ready)", format_seconds(load_s)});
  for (const auto& [name, seconds] : {std::pair("  import", t.import_s),
                                      {"  schedule", t.schedule_s},
                                      {"  lower", t.lower_s},
                                      {"  compile", t.compile_s},
                                      {"  program cache", t.cache_s},
                                      {"  pack constants", t.pack_s},
                                      {"  capture", t.capture_s},
                                      {"  link", t.link_s},
                                      {"  upload weights", t.upload_s}}) {
    table.add({name, format_seconds(seconds)});
  }
  table.add({"first run", format_seconds(t.first_run_s)});
  table.add({"file to first result", format_seconds(load_s + t.first_run_s)});
  std::fputs(table.to_string().c_str(), stdout);
}

void print_steady(const LatencyStats& s, const Steady& steady, const BenchOptions& options) {
  Table table({"steady", "time"});
  for (const auto& [name, seconds] : {std::pair("p50", s.p50),
                                      {"p90", s.p90},
                                      {"p95", s.p95},
                                      {"p99", s.p99},
                                      {"p99.9", s.p999},
                                      {"max", s.max},
                                      {"min", s.min},
                                      {"mean", s.mean},
                                      {"sd", s.deviation}}) {
    table.add({name, format_seconds(seconds)});
  }
  std::printf("\n%s%zu runs, %.1f runs/s, %.2f CPUs busy\n", table.to_string().c_str(), s.count,
              static_cast<double>(s.count) / steady.wall_s, steady.cpu_s / steady.wall_s);
  if (options.rate_fps > 0)
    std::printf("%lld of %zu frames began late\n", static_cast<long long>(steady.missed), s.count);
  if (s.trend > 1.1 || s.trend < 0.9) {
    std::printf("%s\n", styled("not steady: the last third took " + format_number(s.trend, 3) +
                                   " times the first",
                               Style::Warning)
                            .c_str());
  }
}

/// The p50 of an earlier report.
Result<double> read_baseline(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return as_file(std::move(bytes).error());
  const char* text = reinterpret_cast<const char*>(bytes->data());
  const Json report = Json::parse(text, text + bytes->size(), nullptr, /*allow_exceptions=*/false);
  const Json::json_pointer at("/steady/p50_s");
  if (!report.is_object() || !report.contains(at) || !report[at].is_number() ||
      !(report[at].get<double>() > 0)) {
    return as_file(Error(ErrorCode::InvalidArgument,
                         "File '" + path + "' is no report of ignis bench --json."));
  }
  return report[at].get<double>();
}

Status write_samples(const std::string& path, const std::vector<double>& samples) {
  std::string text = "seconds\n";
  for (const double s : samples) text += format_number(s, 9) + "\n";
  Status status = write_file(path, text);
  if (!status) return as_file(std::move(status).error());
  return Status::ok();
}

}  // namespace

Result<Exit> bench_command(const Context& context, const BenchOptions& options) {
  Progress progress(context.shows_progress());
  double baseline_s = 0;
  if (!options.baseline_file.empty()) {
    IGNIS_TRY_ASSIGN(baseline_s, read_baseline(options.baseline_file));
  }
  IGNIS_TRY_ASSIGN(BoundModel model, bind_model(options.model, context));
  model.session.progress = progress.callback();
  if (!model.artifact) model.session.program_cache = context.program_cache();
  const Clock::time_point start = Clock::now();
  IGNIS_TRY_ASSIGN(Session session, load_session(model, model.session));
  const double load_s = seconds_since(start);
  IGNIS_TRY_ASSIGN(std::vector<HostTensor> inputs,
                   make_inputs(model, session, Missing::IsRandom, context.seed()));
  Bound bound(session, std::move(inputs));
  IGNIS_TRY(bound.run(session));
  IGNIS_TRY_ASSIGN(const Steady steady, measure(session, bound, options, progress));
  const LatencyStats stats = latency_stats(steady.samples);
  // Runs of their own, so that the steady ones carry no time stamps.
  std::vector<CallInfo> calls;
  RunStages run_stages;
  if (session.plan() != nullptr) {
    IGNIS_TRY_ASSIGN(const ProfiledRuns profiled, profile_runs(session, bound, 15));
    run_stages = median_stages(profiled);
    if (options.profiles) calls = median_calls(profiled);
  }
  if (!options.samples_file.empty()) IGNIS_TRY(write_samples(options.samples_file, steady.samples));
  const double change = baseline_s > 0 ? stats.p50 / baseline_s - 1 : 0;
  const bool is_slower = baseline_s > 0 && 100 * change > options.fail_above_percent;

  const double peak_bytes = peak_rss_bytes();  // before further sessions are made
  std::vector<CompileStage> compile_stages;
  if (!model.artifact) {
    IGNIS_TRY_ASSIGN(compile_stages, measure_compile(model, bound));
  }
  const ProgramCache* cache = model.session.program_cache.get();

  if (context.prints_text()) {
    if (options.explains_cache) print_cache(cache, session.program_lookups());
    std::printf("%s on %s (%s), seed %llu\n\n", model.path.c_str(),
                context.options().device.c_str(), session.target().name().c_str(),
                static_cast<unsigned long long>(context.seed()));
    print_stages(session, load_s);
    print_steady(stats, steady, options);
    std::printf("%d kernels, %d programs, arena %s, constants %s, peak memory %s\n",
                session.kernel_count(), session.program_count(),
                format_bytes(static_cast<double>(session.arena_bytes())).c_str(),
                format_bytes(static_cast<double>(session.constant_bytes())).c_str(),
                format_bytes(peak_bytes).c_str());
    print_compile(compile_stages);
    if (options.profiles) print_profile(sum_by(calls, ProfileBy::Call), options.top);
    if (baseline_s > 0) {
      std::printf("p50 against the baseline: %+.1f %% (%s)\n", 100 * change,
                  is_slower ? styled("slower than allowed", Style::Bad).c_str()
                            : styled("passed", Style::Good).c_str());
    }
  }
  Json report{{"schema", "ignis.bench/1"},
              {"model", model.path},
              {"digest", model.info.digest},
              {"device", context.options().device},
              {"threads", context.threads()},
              {"seed", context.seed()},
              {"machine", describe_machine(&session.target())},
              {"stages", stage_json(session, load_s)},
              {"passes", pass_json(session)},
              {"steady", to_json(stats)}};
  report["steady"]["runs_per_s"] = static_cast<double>(stats.count) / steady.wall_s;
  report["steady"]["cpus_busy"] = steady.cpu_s / steady.wall_s;
  if (options.rate_fps > 0) report["steady"]["late_frames"] = steady.missed;
  report["run"] = to_json(run_stages);
  report["memory"] = {{"arena_bytes", session.arena_bytes()},
                      {"constant_bytes", session.constant_bytes()},
                      {"peak_rss_bytes", peak_bytes}};
  for (const CompileStage& stage : compile_stages) report["compile"][stage.name] = to_json(stage);
  if (options.explains_cache) report["cache"] = cache_json(cache, session.program_lookups());
  report["kernels"] = {{"calls", session.kernel_count()},
                       {"programs", session.program_count()},
                       {"tuned", session.tuning_use().applied}};
  for (const CallInfo& c : calls) {
    report["profile"].push_back({{"kernel", c.kernel},
                                 {"layer", c.layer},
                                 {"seconds", c.seconds},
                                 {"flops", c.flops},
                                 {"bytes", c.bytes}});
  }
  if (baseline_s > 0)
    report["baseline"] = {{"p50_s", baseline_s}, {"change", change}, {"passed", !is_slower}};
  IGNIS_TRY(context.write_json(report));
  return is_slower ? Exit::Different : Exit::Ok;
}

}  // namespace ignis::tools
