// ignis compile --tune: a search for better choices than the heuristics', and the worker that compiles and times for it.
#include "tools/ignis/tune.h"

#include "ignis/engine/program_key.h"
#include "ignis/engine/tune/worker.h"
#include "ignis/engine/tune/worker_process.h"
#include "ignis/engine/tuning.h"
#include "ignis/runtime/device.h"

#include "tools/ignis/terminal.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace ignis::tools {
namespace {

constexpr int kMostBeam = 64;

/// "fast" or the number of lists that are developed side by side.
Result<engine::SearchOptions> read_mode(const CompileCommandOptions& options) {
  engine::SearchOptions search;
  if (options.tune == "fast") {
    search.beam = 1;
    search.tries = 12;
    search.patience = 1;
    search.budget_s = 30;
    search.least_share = 0.02;
  } else {
    const std::string& text = options.tune;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), search.beam);
    if (error != std::errc() || end != text.data() + text.size() || search.beam < 1 ||
        search.beam > kMostBeam) {
      return usage_error(
          "--tune takes off, fast or how many lists of actions to develop side by "
          "side, 1 to " +
          std::to_string(kMostBeam) + ", not '" + text + "'.");
    }
  }
  if (options.tune_budget_s > 0) search.budget_s = options.tune_budget_s;
  return search;
}

/// The words that make this program a worker for the same model.
std::vector<std::string> worker_command(const CompileCommandOptions& options,
                                        const Context& context) {
  std::vector<std::string> words = {"/proc/self/exe", "tune-worker", options.model.path};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name, value});
  };
  const auto add_all = [&](const char* name, const std::vector<std::string>& values) {
    for (const std::string& value : values) add(name, value);
  };
  add_all("--input", options.model.inputs);
  add_all("--shape", options.model.shapes);
  add_all("--dim", options.model.dims);
  add_all("--fix", options.model.fixed);
  add("--float-level", options.model.float_level);
  add("--winograd", options.model.winograd);
  add("--chain", options.model.chain);
  add("--device", context.options().device);
  add("--threads", context.options().threads);
  add("--limits", context.options().limits_file);
  add("--timeout", format_number(context.options().timeout_s));
  add("--seed", std::to_string(context.seed()));
  add("--faults", options.tune_faults);
  return words;
}

}  // namespace

Result<Tuned> tune(const BoundModel& model, const CompileCommandOptions& options,
                   const Context& context) {
  IGNIS_TRY_ASSIGN(engine::SearchOptions search, read_mode(options));
  // What is searched runs here: it has to be what is compiled.
  runtime::DeviceOptions device_options;
  device_options.threads = context.threads();
  auto device = runtime::open_device(context.options().device, device_options);
  if (!device) return as_device(std::move(device).error());
  const std::string wanted =
      options.targets.empty() ? context.options().device : options.targets.front();
  auto target = runtime::find_target(wanted);
  if (!target) return as_usage(std::move(target).error());
  target->threads = (*device)->target().threads;
  if (options.targets.size() > 1 || *target != (*device)->target()) {
    return usage_error("--tune times code on this machine, '" + (*device)->target().name() +
                       "' with its caches, and '" +
                       (options.targets.size() > 1 ? options.targets.back() : wanted) +
                       "' is code for another one; compile for cpu alone, or leave --tune out.");
  }

  engine::WorkerProcessOptions process;
  process.command = worker_command(options, context);
  process.shows_errors = context.options().verbosity > 0;
  if (options.tune_limit_s > 0)
    process.trial_limit =
        std::chrono::milliseconds(static_cast<int64_t>(1000 * options.tune_limit_s));
  Progress progress(context.shows_progress());
  search.progress = [&](const std::string& what, double gain, double left_s) {
    progress.show("tune " + what + ": " + format_number(gain, 3) + "x so far, " +
                  format_number(left_s, 2) + " s left");
  };
  auto worker = engine::WorkerProcess::start(process);
  if (!worker) return as_model(std::move(worker).error());
  Tuned tuned;
  auto report = engine::search(**worker, search);
  if (!report) return std::move(report).error();
  tuned.report = *std::move(report);
  tuned.restarts = (*worker)->restarts();
  exec::TuningRecord record;
  IGNIS_TRY_ASSIGN(record.machine,
                   engine::tuning_machine((*device)->target(), model.session.float_level));
  record.version = engine::generator_id();
  record.choices = tuned.report.choices;
  tuned.record = std::make_shared<const exec::TuningRecord>(std::move(record));
  return tuned;
}

void print_tuned(const Tuned& tuned) {
  const engine::SearchReport& report = tuned.report;
  Table table({"kernel", "before", "after", "gain", "tried", "actions"});
  int better = 0;
  for (const auto& row : report.kernels) {
    if (row.actions.empty()) continue;
    ++better;
    table.add({row.kernel.name.substr(0, 40), format_seconds(1e-9 * row.before_ns),
               format_seconds(1e-9 * row.after_ns), format_number(row.before_ns / row.after_ns, 3),
               std::to_string(row.tried), engine::join_actions(row.actions)});
  }
  if (better > 0) std::printf("%s", table.to_string().c_str());
  for (const auto& [what, choice] : report.choices) {
    if (what == "winograd" || what == "chain") std::printf("%s %s\n", what.c_str(), choice.c_str());
  }
  for (const auto& dropped : report.dropped) {
    std::printf("dropped: %s, %s: %s [%s]\n", dropped.kernel.c_str(),
                std::string(engine::to_string(dropped.trial.outcome)).c_str(),
                dropped.trial.why.c_str(), engine::join_actions(dropped.trial.actions).c_str());
  }
  std::printf("tuned %d of %zu kernels, %d lists tried%s; a run: %s -> %s (%sx)\n", better,
              report.kernels.size(), report.tried,
              report.is_complete ? "" : " until the budget ended",
              format_seconds(1e-9 * report.before_ns).c_str(),
              format_seconds(1e-9 * report.after_ns).c_str(),
              format_number(report.before_ns / report.after_ns, 3).c_str());
}

Json to_json(const Tuned& tuned) {
  const engine::SearchReport& report = tuned.report;
  Json json{{"tried", report.tried},
            {"complete", report.is_complete},
            {"worker_restarts", tuned.restarts},
            {"before_s", 1e-9 * report.before_ns},
            {"after_s", 1e-9 * report.after_ns},
            {"kernels", Json::array()},
            {"choices", Json::array()},
            {"dropped", Json::array()},
            {"variants", Json::array()}};
  for (const auto& row : report.kernels) {
    json["kernels"].push_back({{"name", row.kernel.name},
                               {"digest", row.kernel.digest},
                               {"before_s", 1e-9 * row.before_ns},
                               {"after_s", 1e-9 * row.after_ns},
                               {"tried", row.tried},
                               {"generations", row.generations},
                               {"heuristics", engine::join_actions(row.kernel.actions)},
                               {"actions", engine::join_actions(row.actions)}});
  }
  for (const auto& [what, choice] : report.choices)
    json["choices"].push_back({{"of", what}, {"choice", choice}});
  for (const auto& dropped : report.dropped) {
    json["dropped"].push_back({{"kernel", dropped.kernel},
                               {"outcome", std::string(engine::to_string(dropped.trial.outcome))},
                               {"why", dropped.trial.why},
                               {"actions", engine::join_actions(dropped.trial.actions)}});
  }
  for (const engine::Variant& variant : report.variants) {
    Json row{{"run_s", 1e-9 * variant.run_ns},
             {"outcome", std::string(engine::to_string(variant.outcome))},
             {"why", variant.why}};
    for (const auto& [what, choice] : variant.choices) row[what] = choice;
    json["variants"].push_back(std::move(row));
  }
  return json;
}

Result<Exit> tune_worker_command(const Context& context, const TuneWorkerCommandOptions& options) {
  IGNIS_TRY_ASSIGN(const BoundModel model, bind_model(options.model, context));
  engine::TuneWorkerOptions worker;
  worker.model = model.path;
  worker.session = model.session;
  IGNIS_TRY_ASSIGN(worker.faults, engine::parse_trial_faults(options.faults));
  IGNIS_TRY(engine::serve_tuning(0, worker));
  return Exit::Ok;
}

}  // namespace ignis::tools
