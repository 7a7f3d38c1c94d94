#pragma once

#include "ignis/engine/tune/channel.h"
#include "ignis/engine/tune/search.h"

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ignis::engine {

struct WorkerProcessOptions {
  /// Program and arguments of a process that calls serve_tuning() on file descriptor 0.
  std::vector<std::string> command;
  /// Of silence while one trial is worked on: then it hangs.
  std::chrono::milliseconds trial_limit = std::chrono::seconds(20);
  /// Of silence otherwise: reading the model, compiling it as the heuristics say.
  std::chrono::milliseconds limit = std::chrono::seconds(120);
  bool shows_errors = false;  ///< what the worker writes to standard error
};

/// A worker in a process of its own. When a trial takes it along or hangs, the trial is marked, the worker killed and
/// started anew, and the rest goes on.
class WorkerProcess final : public TuneBench {
 public:
  /// Errors: NotFound when the command does not start; what the worker says of the model; Timeout.
  static Result<std::unique_ptr<WorkerProcess>> start(WorkerProcessOptions options);
  ~WorkerProcess() override;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  Result<std::vector<TunedKernel>> kernels(const Variant& variant) override;
  Result<std::vector<codegen::Candidate>> neighbours(
      size_t kernel, const std::vector<std::string>& actions) override;
  Status measure(size_t kernel, std::vector<Trial>& trials, int rounds) override;
  Status run_models(std::vector<Variant>& variants, int rounds) override;

  int restarts() const { return restarts_; }

 private:
  explicit WorkerProcess(WorkerProcessOptions options) : options_(std::move(options)) {}
  Status spawn();
  std::string stop();
  Status restart();
  struct Answer {
    std::vector<Channel::Message> lines;
    std::set<size_t> open;  ///< trials or variants under work when it ended
    bool has_died = false, has_hung = false;
    std::string why;
  };
  Result<Answer> ask(const Channel::Message& question);
  Status died_idle(const Answer& answer);
  Result<Answer> measure_once(size_t kernel, std::vector<Trial>& trials,
                              const std::vector<size_t>& which, int rounds);

  WorkerProcessOptions options_;
  pid_t pid_ = -1;
  std::unique_ptr<Channel> channel_;
  Variant variant_;  // that kernels are numbered by
  bool has_kernels_ = false;
  int64_t next_id_ = 0;  // of trials
  int restarts_ = 0, unexplained_ = 0;
};

}  // namespace ignis::engine
