#include "ignis/engine/tune/worker_process.h"

#include "ignis/engine/tuning.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>

extern char** environ;

namespace ignis::engine {
namespace {

using Clock = std::chrono::steady_clock;
using Message = Channel::Message;

constexpr int kMostUnexplained = 2;  // deaths in a row without a trial to blame
constexpr std::chrono::seconds kFarewell{2};

double to_number(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// What a worker says of one.
Trial::Outcome parse_outcome(const std::string& word) {
  using enum Trial::Outcome;
  for (const Trial::Outcome outcome : {Timed, Same, Wrong}) {
    if (to_string(outcome) == word) return outcome;
  }
  return Refused;
}

Error bad_answer(const Message& line) {
  return Error(ErrorCode::Internal,
               "The tuner's worker answers '" + line[0] + "', which is no answer.");
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(WorkerProcessOptions options) {
  std::unique_ptr<WorkerProcess> made(new WorkerProcess(std::move(options)));
  IGNIS_TRY(made->spawn());
  return made;
}

WorkerProcess::~WorkerProcess() { stop(); }

Status WorkerProcess::spawn() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error(ErrorCode::Internal,
                 std::string("No socket for a worker: ") + std::strerror(errno));
  channel_ = std::make_unique<Channel>(ends[0]);
  std::vector<char*> argv;
  for (const std::string& word : options_.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  if (!options_.shows_errors)
    ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  const int failed = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed != 0) {
    pid_ = -1;
    return Error(ErrorCode::NotFound, "The tuner's worker '" + options_.command[0] +
                                          "' does not start: " + std::strerror(failed));
  }
  while (true) {
    Result<Message> line = channel_->receive(Clock::now() + options_.limit);
    if (!line) {
      const std::string why = stop();
      return std::move(line).error().with_context("the tuner's worker, which " + why);
    }
    if ((*line)[0] == "ready") return {};
    if ((*line)[0] != "alive") {
      stop();
      return bad_answer(*line);
    }
  }
}

// Ends the process, and says how it had ended.
std::string WorkerProcess::stop() {
  if (pid_ < 0) return "does not run";
  channel_.reset();  // its end of input
  int status = 0;
  std::string why = "was stopped";
  const Clock::time_point give_up = Clock::now() + kFarewell;
  while (true) {
    const pid_t done = ::waitpid(pid_, &status, WNOHANG);
    if (done == pid_) {
      if (WIFSIGNALED(status)) {
        why = "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
              ::strsignal(WTERMSIG(status)) + ")";
      } else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        why = "ended with status " + std::to_string(WEXITSTATUS(status));
      }
      break;
    }
    if (done < 0 && errno != EINTR) break;
    if (Clock::now() > give_up) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = -1;
  return why;
}

Status WorkerProcess::restart() {
  ++restarts_;
  IGNIS_TRY(spawn());
  if (!has_kernels_) return {};
  return kernels(variant_).has_value()
             ? Status()
             : Status(Error(ErrorCode::Internal, "A new worker does not find the kernels again."));
}

// One question and all of its answer. A worker that dies or hangs is no error of the question.
Result<WorkerProcess::Answer> WorkerProcess::ask(const Message& question) {
  Answer answer;
  Status sent = channel_->send(question);
  while (sent) {
    const auto limit = answer.open.empty() ? options_.limit : options_.trial_limit;
    Result<Message> line = channel_->receive(Clock::now() + limit);
    if (!line) {
      answer.has_hung = line.error().code() == ErrorCode::Timeout;
      break;
    }
    const std::string& word = (*line)[0];
    const size_t id = line->size() > 1 ? static_cast<size_t>(to_number((*line)[1])) : 0;
    if (word == "done") return answer;
    if (word == "error" && line->size() > 1)
      return Error(ErrorCode::Internal, (*line)[1]).with_context("the tuner's worker");
    if (word == "begin") {
      answer.open.insert(id);
    } else if (word == "end") {
      answer.open.erase(id);
    } else if (word != "alive") {
      answer.lines.push_back(*std::move(line));
    }
  }
  answer.has_died = true;
  if (answer.has_hung) ::kill(pid_, SIGKILL);
  const std::string why = stop();
  answer.why = answer.has_hung ? "nothing was heard of it for " +
                                     std::to_string(options_.trial_limit.count()) + " ms"
                               : "the worker " + why;
  return answer;
}

// A death with nobody to blame: tried again, but not for ever.
Status WorkerProcess::died_idle(const Answer& answer) {
  if (++unexplained_ <= kMostUnexplained) return restart();
  return Error(ErrorCode::Internal, "The tuner's worker died " + std::to_string(unexplained_) +
                                        " times outside of any trial; at last, " + answer.why +
                                        ".");
}

Result<std::vector<TunedKernel>> WorkerProcess::kernels(const Variant& variant) {
  Message question = {"kernels"};
  for (const auto& [what, choice] : variant.choices) {
    question.push_back(what);
    question.push_back(choice);
  }
  has_kernels_ = false;
  IGNIS_TRY_ASSIGN(const Answer answer, ask(question));
  if (answer.has_died) {
    return Error(ErrorCode::Internal,
                 "The model cannot be compiled by the tuner's worker: " + answer.why + ".");
  }
  std::vector<TunedKernel> kernels;
  for (const Message& line : answer.lines) {
    if (line[0] != "kernel" || line.size() != 4) return bad_answer(line);
    kernels.push_back({line[1], line[2], split_actions(line[3])});
  }
  variant_ = variant;
  has_kernels_ = true;
  return kernels;
}

Result<std::vector<codegen::Candidate>> WorkerProcess::neighbours(
    size_t kernel, const std::vector<std::string>& actions) {
  const Message question = {"neighbours", std::to_string(kernel), join_actions(actions)};
  IGNIS_TRY_ASSIGN(Answer answer, ask(question));
  while (answer.has_died) {
    IGNIS_TRY(died_idle(answer));
    IGNIS_TRY_ASSIGN(answer, ask(question));
  }
  std::vector<codegen::Candidate> candidates;
  for (const Message& line : answer.lines) {
    if (line[0] != "candidate" || line.size() != 3) return bad_answer(line);
    candidates.push_back({split_actions(line[2]), to_number(line[1])});
  }
  return candidates;
}

Result<WorkerProcess::Answer> WorkerProcess::measure_once(size_t kernel, std::vector<Trial>& trials,
                                                          const std::vector<size_t>& which,
                                                          int rounds) {
  // Numbers are never used twice, so that the faults of tests meet one trial. Its place is kept beside.
  Message question = {"measure", std::to_string(kernel), std::to_string(rounds)};
  const int64_t first = next_id_;
  for (const size_t i : which) {
    question.push_back(std::to_string(first + static_cast<int64_t>(i)));
    question.push_back(join_actions(trials[i].actions));
  }
  IGNIS_TRY_ASSIGN(Answer answer, ask(question));
  std::set<size_t> open;
  for (const size_t id : answer.open) open.insert(id - static_cast<size_t>(first));
  answer.open = std::move(open);
  for (const Message& line : answer.lines) {
    const int64_t i = line.size() == 5 ? static_cast<int64_t>(to_number(line[1])) - first : -1;
    if (line[0] != "outcome" || i < 0 || i >= static_cast<int64_t>(trials.size()))
      return bad_answer(line);
    Trial& trial = trials[static_cast<size_t>(i)];
    trial.outcome = parse_outcome(line[2]);
    trial.ns = to_number(line[3]);
    trial.why = line[4];
  }
  return answer;
}

Status WorkerProcess::measure(size_t kernel, std::vector<Trial>& trials, int rounds) {
  std::vector<size_t> left(trials.size());
  for (size_t i = 0; i < left.size(); ++i) left[i] = i;
  const auto blame = [&](size_t i, const Answer& answer) {
    trials[i].outcome = answer.has_hung ? Trial::Outcome::Hung : Trial::Outcome::Crashed;
    trials[i].why = answer.why;
    std::erase(left, i);
  };
  while (!left.empty()) {
    IGNIS_TRY_ASSIGN(const Answer answer, measure_once(kernel, trials, left, rounds));
    if (!answer.has_died) break;
    if (answer.open.empty()) {
      IGNIS_TRY(died_idle(answer));
      continue;
    }
    IGNIS_TRY(restart());
    if (answer.open.size() == 1) {
      blame(*answer.open.begin(), answer);
      continue;
    }
    // Several were compiled at the time: each by itself.
    for (const size_t suspect : answer.open) {
      IGNIS_TRY_ASSIGN(const Answer alone, measure_once(kernel, trials, {suspect}, 1));
      if (!alone.has_died) continue;
      IGNIS_TRY(restart());
      blame(suspect, alone);
    }
  }
  next_id_ += static_cast<int64_t>(trials.size());
  return {};
}

Status WorkerProcess::run_models(std::vector<Variant>& variants, int rounds) {
  std::vector<size_t> left(variants.size());
  for (size_t i = 0; i < left.size(); ++i) left[i] = i;
  while (!left.empty()) {
    Message question = {"models", std::to_string(rounds)};
    for (const size_t v : left) {
      question.push_back(std::to_string(variants[v].choices.size()));
      for (const auto& [what, choice] : variants[v].choices) {
        question.push_back(what);
        question.push_back(choice);
      }
    }
    IGNIS_TRY_ASSIGN(const Answer answer, ask(question));
    if (answer.has_died) {
      if (answer.open.empty()) {
        IGNIS_TRY(died_idle(answer));
        continue;
      }
      IGNIS_TRY(restart());
      const size_t v = left[std::min(*answer.open.begin(), left.size() - 1)];
      variants[v].outcome = answer.has_hung ? Trial::Outcome::Hung : Trial::Outcome::Crashed;
      variants[v].why = answer.why;
      std::erase(left, v);
      continue;
    }
    for (const Message& line : answer.lines) {
      const auto at = line.size() >= 5 ? static_cast<size_t>(to_number(line[1])) : left.size();
      if (line[0] != "variant" || at >= left.size()) return bad_answer(line);
      Variant& variant = variants[left[at]];
      variant.outcome = parse_outcome(line[2]);
      variant.why = line[3];
      variant.run_ns = to_number(line[4]);
      variant.kernel_ns.clear();
      for (size_t i = 5; i + 1 < line.size(); i += 2)
        variant.kernel_ns.emplace_back(line[i], to_number(line[i + 1]));
    }
    return {};
  }
  return {};
}

}  // namespace ignis::engine
