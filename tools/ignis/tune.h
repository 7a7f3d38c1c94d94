#pragma once

#include "ignis/engine/tune/search.h"

#include "tools/ignis/commands.h"

#include <memory>

namespace ignis::tools {

/// What a search found, and the record of it.
struct Tuned {
  std::shared_ptr<const exec::TuningRecord> record;
  engine::SearchReport report;
  int restarts = 0;  ///< of the worker
};

/// Searches for better choices than the heuristics' for `model` on --device, in a worker of this same program.
/// Errors: "Usage" for a mode or budget that makes no sense and where the code would not be this machine's; as
/// engine::search.
Result<Tuned> tune(const BoundModel& model, const CompileCommandOptions& options,
                   const Context& context);
void print_tuned(const Tuned& tuned);
Json to_json(const Tuned& tuned);

/// The worker: serves the socket that is its standard input.
struct TuneWorkerCommandOptions {
  ModelOptions model;
  std::string faults;
};
Result<Exit> tune_worker_command(const Context& context, const TuneWorkerCommandOptions& options);

}  // namespace ignis::tools
