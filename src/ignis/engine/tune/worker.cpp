#include "ignis/engine/tune/worker.h"

#include "ignis/base/on_threads.h"
#include "ignis/engine/compile_kernels.h"
#include "ignis/engine/program_key.h"
#include "ignis/engine/session_graph.h"
#include "ignis/engine/tune/channel.h"
#include "ignis/engine/tune/kernel_bench.h"
#include "ignis/engine/tune/model_bench.h"
#include "ignis/engine/tuning.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <fstream>
#include <new>
#include <thread>

namespace ignis::engine {
namespace {

using Clock = std::chrono::steady_clock;
using Message = Channel::Message;

constexpr double kTurnNs = 200e3;  // a trial's launches in one turn take about as long
constexpr double kHopeless =
    1.5;  // a trial that takes as many times the best one's time is timed no more
constexpr int kLeastRounds = 3;
constexpr std::chrono::hours kIdle{1};

int64_t to_int(const std::string& text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string to_text(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

class Worker {
 public:
  Worker(int fd, const TuneWorkerOptions& options) : channel_(fd), options_(options) {}

  Status serve() {
    options_.session.program_cache = ProgramCache::open({});  // in memory, of this process
    options_.session.progress = [&](const std::string&, int, int) {
      (void)channel_.send({"alive"});
    };
    IGNIS_TRY_ASSIGN(model_, import_for_session(options_.model, options_.session));
    runtime::DeviceOptions device_options;
    device_options.threads = options_.session.threads;
    device_options.spin = options_.session.spin;
    IGNIS_TRY_ASSIGN(device_, runtime::open_device(options_.session.device, device_options));
    config_.target = device_->target();
    config_.float_level = options_.session.float_level;
    IGNIS_TRY(channel_.send({"ready"}));
    while (true) {
      Result<Message> message = channel_.receive(Clock::now() + kIdle);
      if (!message) return {};  // the tuner is done
      const Status status = answer(*message);
      IGNIS_TRY(channel_.send(status ? Message{"done"}
                                     : Message{"error", status.error().message(),
                                               std::string(to_string(status.error().code()))}));
    }
  }

 private:
  Status answer(const Message& message) {
    if (message[0] == "kernels") return list_kernels(message);
    if (message[0] == "neighbours" && message.size() == 3) return list_neighbours(message);
    if (message[0] == "measure" && message.size() >= 4) return measure(message);
    if (message[0] == "models" && message.size() >= 2) return run_models(message);
    return Error(ErrorCode::InvalidArgument, "The tuner asks for '" + message[0] + "'.");
  }

  Status list_kernels(const Message& message);
  Status list_neighbours(const Message& message);
  Status measure(const Message& message);
  Status run_models(const Message& message);
  Result<size_t> kernel_of(const std::string& number) const;
  bool misbehave(int64_t id) const;

  Channel channel_;
  TuneWorkerOptions options_;
  onnx::Model model_;
  std::shared_ptr<runtime::Device> device_;
  codegen::Config config_;
  ScheduledGraph graph_;
  CompiledKernels compiled_;
  std::vector<size_t> first_kernel_;  // of the schedule, by program
  std::optional<KernelBench> bench_;  // of the last kernel that was measured
  size_t bench_kernel_ = 0;
};

Result<size_t> Worker::kernel_of(const std::string& number) const {
  const int64_t index = to_int(number);
  if (index >= 0 && static_cast<size_t>(index) < first_kernel_.size())
    return first_kernel_[static_cast<size_t>(index)];
  return Error(ErrorCode::InvalidArgument, "The tuner asks for kernel " + number + " of " +
                                               std::to_string(first_kernel_.size()) + ".");
}

// "kernels", then pairs of an option and its choice.
Status Worker::list_kernels(const Message& message) {
  SessionOptions session = options_.session;
  GraphOptions options = graph_options_of(session, model_);
  for (size_t i = 1; i + 1 < message.size(); i += 2) {
    const Choice choice = message[i + 1] == "on"    ? Choice::On
                          : message[i + 1] == "off" ? Choice::Off
                                                    : Choice::Auto;
    (message[i] == "winograd" ? options.winograd : options.chain) = choice;
  }
  std::vector<ir::Node> inputs, outputs;
  for (const tensor::Tensor& input : model_.inputs) inputs.push_back(input.node());
  for (const tensor::Tensor& output : model_.outputs) outputs.push_back(output.node());
  bench_.reset();
  IGNIS_TRY_ASSIGN(graph_, schedule_graph(inputs, outputs, config_.target, options));
  std::vector<std::string> words;
  for (const KernelName& name : graph_.names) words.push_back(name.word);
  IGNIS_TRY_ASSIGN(compiled_, compile_kernels(
                                  graph_.schedule, config_, words,
                                  [&](int, int) { (void)channel_.send({"alive"}); }, -1,
                                  options_.session.program_cache.get()));
  first_kernel_.assign(compiled_.programs.size(), 0);
  for (size_t k = compiled_.program_of.size(); k-- > 0;)
    first_kernel_[static_cast<size_t>(compiled_.program_of[k])] = k;
  for (size_t p = 0; p < compiled_.programs.size(); ++p) {
    const ir::Node& sink = graph_.schedule.kernels[first_kernel_[p]].sink;
    IGNIS_TRY(channel_.send({"kernel", to_hex(kernel_digest(sink)), compiled_.names[p],
                             compiled_.programs[p].schedule}));
  }
  return {};
}

// "neighbours", kernel, actions.
Status Worker::list_neighbours(const Message& message) {
  IGNIS_TRY_ASSIGN(const size_t kernel, kernel_of(message[1]));
  codegen::Config config = config_;
  config.actions = split_actions(message[2]);
  IGNIS_TRY_ASSIGN(const std::vector<codegen::Candidate> candidates,
                   codegen::neighbours(graph_.schedule.kernels[kernel].sink, config));
  for (const codegen::Candidate& candidate : candidates) {
    IGNIS_TRY(channel_.send(
        {"candidate", to_text(candidate.estimate_ns), join_actions(candidate.actions)}));
  }
  return {};
}

// What a test wants of a trial; true when it is to give wrong numbers.
bool Worker::misbehave(int64_t id) const {
  const auto at = options_.faults.find(id);
  if (at == options_.faults.end()) return false;
  if (at->second == TrialFault::Crash) std::raise(SIGSEGV);
  while (at->second == TrialFault::Hang) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (at->second == TrialFault::Memory) {
    std::vector<std::vector<std::byte>> blocks;
    while (true) blocks.emplace_back(size_t{64} << 20);
  }
  return at->second == TrialFault::Wrong;
}

// "measure", kernel, rounds, then pairs of a trial's number and its actions. Says when work on a trial begins and ends,
// so that the other side knows whose fault it was when nothing follows.
Status Worker::measure(const Message& message) {
  IGNIS_TRY_ASSIGN(const size_t kernel, kernel_of(message[1]));
  const int64_t rounds = std::clamp<int64_t>(to_int(message[2]), 1, 1000);
  if (!bench_ || bench_kernel_ != kernel) {
    bench_.reset();
    IGNIS_TRY_ASSIGN(KernelBench made,
                     KernelBench::create(graph_.schedule, kernel, config_, device_));
    bench_.emplace(std::move(made));
    bench_kernel_ = kernel;
  }
  struct Tried {
    std::string id;
    std::vector<std::string> actions;
    std::optional<KernelBench::Made> made;
    int count = 1;
    std::vector<double> ns;
  };
  std::vector<Tried> tried;
  for (size_t i = 3; i + 1 < message.size(); i += 2)
    tried.push_back({message[i], split_actions(message[i + 1]), {}, 1, {}});
  const auto begin = [&](const Tried& t) { (void)channel_.send({"begin", t.id}); };
  const auto end = [&](const Tried& t) { (void)channel_.send({"end", t.id}); };
  const auto drop = [&](Tried& t, Trial::Outcome outcome, const std::string& why) {
    t.made.reset();
    (void)channel_.send({"outcome", t.id, std::string(to_string(outcome)), "0", why});
  };

  on_threads(tried.size(), static_cast<size_t>(runtime::usable_threads()), [&](size_t i) {
    Tried& t = tried[i];
    begin(t);
    try {
      const bool is_wrong = misbehave(to_int(t.id));
      Result<KernelBench::Made> made = bench_->make(t.actions, is_wrong);
      if (made) {
        t.made.emplace(*std::move(made));
      } else {
        drop(t, Trial::Outcome::Refused, made.error().message());
      }
    } catch (const std::bad_alloc&) {
      drop(t, Trial::Outcome::Refused, "compiling it takes more memory than the worker may have");
    }
    end(t);
  });
  for (size_t i = 0; i < tried.size(); ++i) {
    Tried& t = tried[i];
    if (!t.made) continue;
    const bool is_same = std::any_of(
        tried.begin(), tried.begin() + static_cast<std::ptrdiff_t>(i), [&](const Tried& other) {
          return other.made && other.made->image.object == t.made->image.object &&
                 other.made->parts == t.made->parts;
        });
    if (is_same) {
      drop(t, Trial::Outcome::Same, "the code of another trial");
      continue;
    }
    begin(t);
    const Status right = bench_->check(*t.made);
    if (!right) {
      if (right.error().reason() != "WrongNumbers") return right;
      drop(t, Trial::Outcome::Wrong, right.error().message());
    }
    end(t);
  }

  double best = 0;  // of all
  for (int64_t round = 0; round < rounds; ++round) {
    for (size_t n = 0; n < tried.size(); ++n) {
      // Another one begins in each round: what runs first after a pause is slower.
      Tried& t = tried[(n + static_cast<size_t>(round)) % tried.size()];
      if (!t.made) continue;
      const bool is_first = &t == &tried.front();
      if (round >= kLeastRounds && !is_first && typical(t.ns) > kHopeless * best) continue;
      begin(t);
      if (t.ns.empty()) {
        IGNIS_TRY_ASSIGN(const double once, bench_->time_ns(*t.made, 1));
        t.count = static_cast<int>(std::clamp(kTurnNs / std::max(once, 1.0), 1.0, 1000.0));
      }
      IGNIS_TRY_ASSIGN(const double ns, bench_->time_ns(*t.made, t.count));
      t.ns.push_back(ns);
      end(t);
    }
    best = 0;
    for (const Tried& t : tried) {
      if (t.made && (best == 0 || typical(t.ns) < best)) best = typical(t.ns);
    }
  }
  for (const Tried& t : tried) {
    if (!t.made) continue;
    IGNIS_TRY(channel_.send({"outcome", t.id, std::string(to_string(Trial::Outcome::Timed)),
                             to_text(typical(t.ns)), ""}));
  }
  return {};
}

// "models", rounds, then for each variant the number of its choices and the choices, two fields each.
Status Worker::run_models(const Message& message) {
  const int64_t rounds = std::clamp<int64_t>(to_int(message[1]), 1, 1000);
  exec::TuningRecord record;
  IGNIS_TRY_ASSIGN(record.machine, tuning_machine(config_.target, config_.float_level));
  record.version = generator_id();
  bench_.reset();  // its memory is not needed meanwhile
  ModelBench models(options_.model, options_.session);
  const auto say = [&](const char* what, size_t v) {
    (void)channel_.send({what, std::to_string(v)});
  };
  const auto answer = [&](size_t v, const Variant& variant) {
    Message line = {"variant", std::to_string(v), std::string(to_string(variant.outcome)),
                    variant.why, to_text(variant.run_ns)};
    for (const auto& [key, ns] : variant.kernel_ns) {
      line.push_back(key);
      line.push_back(to_text(ns));
    }
    return channel_.send(line);
  };
  for (size_t i = 2; i < message.size();) {
    const int64_t count = to_int(message[i++]);
    record.choices.clear();
    for (int64_t c = 0; c < count && i + 1 < message.size(); ++c, i += 2)
      record.choices.emplace_back(message[i], message[i + 1]);
    const size_t v = models.size();
    say("begin", v);
    IGNIS_TRY_ASSIGN(const Variant variant, models.add(record));
    if (!variant.is_sound()) IGNIS_TRY(answer(v, variant));
    say("end", v);
  }
  for (int64_t round = 0; round < rounds; ++round) {
    for (size_t n = 0; n < models.size(); ++n) {
      const size_t v = (n + static_cast<size_t>(round)) % models.size();
      if (!models.has(v)) continue;
      say("begin", v);
      IGNIS_TRY(models.take_turn(v));
      say("end", v);
    }
  }
  for (size_t v = 0; v < models.size(); ++v) {
    if (models.has(v)) IGNIS_TRY(answer(v, models.result(v)));
  }
  return {};
}

void limit_process(uint64_t memory_bytes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const uint64_t most = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + memory_bytes;
  const rlimit memory{most, most};
  ::setrlimit(RLIMIT_AS, &memory);
}

}  // namespace

Result<std::map<int64_t, TrialFault>> parse_trial_faults(const std::string& text) {
  static const std::map<std::string, TrialFault> kWords = {{"crash", TrialFault::Crash},
                                                           {"hang", TrialFault::Hang},
                                                           {"wrong", TrialFault::Wrong},
                                                           {"memory", TrialFault::Memory}};
  std::map<int64_t, TrialFault> faults;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    const size_t at = std::min(one.find('@'), one.size());
    const auto word = kWords.find(one.substr(0, at));
    const int64_t id = at < one.size() ? to_int(one.substr(at + 1)) : -1;
    if (word == kWords.end() || id < 0) {
      return Error(
          ErrorCode::InvalidArgument,
          "'" + one + "' is no fault of a trial, as in crash@3: crash, hang, wrong or memory.");
    }
    faults[id] = word->second;
    begin = end + 1;
  }
  return faults;
}

Status serve_tuning(int fd, const TuneWorkerOptions& options) {
  limit_process(options.memory_bytes);
  return Worker(fd, options).serve();
}

}  // namespace ignis::engine
