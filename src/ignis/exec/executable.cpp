#include "ignis/exec/executable.h"

#include "ignis/exec/check_plan.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

namespace ignis::exec {
namespace {

// Handing a part to a thread that is awake costs about a microsecond, waking one some tens. A part shorter than
// kPartSeconds is not worth the first, a run shorter than kRunSeconds not the second. The rates are what one core
// does on data that its second-level cache holds.
constexpr double kPartSeconds = 2.5e-6;
constexpr double kRunSeconds = 50e-6;
constexpr double kFlopsPerSecond = 80e9;
constexpr double kBytesPerSecond = 40e9;

// Nothing when the plan does not say how much work the call is.
std::optional<double> estimate_seconds(const Call& call) {
  if (call.flops <= 0 && call.bytes <= 0) return std::nullopt;
  return std::max(call.flops / kFlopsPerSecond, call.bytes / kBytesPerSecond);
}

bool is_short_run(const Plan& plan) {
  double total = 0;
  for (const Call& call : plan.calls) {
    const std::optional<double> seconds = estimate_seconds(call);
    if (!seconds) return false;
    total += *seconds;
  }
  return total < kRunSeconds;
}

int64_t choose_parts(const Call& call, int threads) {
  int64_t parts = std::min<int64_t>(call.max_parts, threads);
  if (const std::optional<double> seconds = estimate_seconds(call)) {
    parts = std::min(parts, static_cast<int64_t>(std::min(*seconds / kPartSeconds, 1e6)));
  }
  return std::max<int64_t>(parts, 1);
}

// Writes a port's address into a call's table at each run.
struct Patch {
  size_t table;  // index in State::table
  size_t port;
};

Error wrong_size(const char* what, const Port& port, uint64_t have, int64_t want) {
  return Error(ErrorCode::InvalidArgument,
               std::string(what) + " '" + port.name + "' is given " + std::to_string(have) +
                   " bytes; " + std::string(to_string(port.dtype)) + " " + to_string(port.shape) +
                   " has " + std::to_string(want) + ".",
               "WrongSize");
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() &&
         b.data() < a.data() + a.size();
}

}  // namespace

struct Executable::State {
  std::shared_ptr<runtime::Device> device;
  Plan plan;
  std::vector<std::shared_ptr<const runtime::Program>> programs;
  runtime::DeviceMemory arena;
  std::vector<void*> table;  // the calls' buffer addresses, one call after the other
  std::vector<runtime::Launch> launches;
  std::vector<Patch> input_patches, output_patches;
  std::atomic<bool> is_running{false};

  void bind();
  Status check(std::span<const std::span<const std::byte>> inputs,
               std::span<const std::span<std::byte>> outputs) const;
  Status bind_ports(std::span<const std::span<const std::byte>> inputs,
                    std::span<const std::span<std::byte>> outputs);
};

// Refuses a second run while it lives.
class Executable::OneRun {
 public:
  explicit OneRun(State& state) : state_(state), is_first_(!state.is_running.exchange(true)) {}
  OneRun(const OneRun&) = delete;
  OneRun& operator=(const OneRun&) = delete;
  ~OneRun() {
    if (is_first_) state_.is_running.store(false);
  }
  Status check() const {
    if (is_first_) return {};
    return Error(ErrorCode::InvalidArgument,
                 "A run is under way: an executable has one arena and runs once at a time.",
                 "Busy");
  }

 private:
  State& state_;
  bool is_first_;
};

// Fills the tables with all addresses known now and notes where the ports go.
void Executable::State::bind() {
  std::vector<size_t> port_of(plan.buffers.size());
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    port_of[static_cast<size_t>(plan.inputs[i].buffer)] = i;
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    port_of[static_cast<size_t>(plan.outputs[i].buffer)] = i;
  }
  const int threads = is_short_run(plan) ? 1 : device->threads();
  size_t entries = 0;
  for (const Call& call : plan.calls) entries += call.buffers.size();
  table.reserve(entries);  // launches point into it
  for (const Call& call : plan.calls) {
    launches.push_back({programs[static_cast<size_t>(call.program)].get(),
                        table.data() + table.size(), choose_parts(call, threads)});
    for (const int index : call.buffers) {
      const BufferPlan& buffer = plan.buffers[static_cast<size_t>(index)];
      const Patch patch = {table.size(), port_of[static_cast<size_t>(index)]};
      void* address = nullptr;
      switch (buffer.role) {
        case BufferRole::Input: input_patches.push_back(patch); break;
        case BufferRole::Output: output_patches.push_back(patch); break;
        // Programs take all buffers as one kind of pointer; constants are only read.
        case BufferRole::Constant: address = const_cast<std::byte*>(buffer.constant); break;
        case BufferRole::Arena: address = arena.bytes() + buffer.arena_offset; break;
      }
      table.push_back(address);
    }
  }
}

Status Executable::State::check(std::span<const std::span<const std::byte>> inputs,
                                std::span<const std::span<std::byte>> outputs) const {
  const auto check_one = [&](const char* what, const Port& port, std::span<const std::byte> bytes) {
    const int64_t want = plan.buffers[static_cast<size_t>(port.buffer)].size_bytes;
    if (bytes.size() != static_cast<uint64_t>(want)) {
      return Status(wrong_size(what, port, bytes.size(), want));
    }
    const auto address = reinterpret_cast<uintptr_t>(bytes.data());
    if (address % static_cast<uintptr_t>(size_bytes(port.dtype)) != 0) {
      return Status(Error(ErrorCode::InvalidArgument,
                          std::string(what) + " '" + port.name + "' of dtype " +
                              std::string(to_string(port.dtype)) +
                              " is not aligned to its elements.",
                          "Misaligned"));
    }
    if (bytes.data() == nullptr && want != 0) {
      return Status(Error(ErrorCode::InvalidArgument,
                          std::string(what) + " '" + port.name + "' is a null pointer.", "Null"));
    }
    return Status();
  };
  const auto check_count = [](const char* what, size_t have, size_t want) {
    if (have == want) return Status();
    return Status(Error(ErrorCode::InvalidArgument,
                        std::to_string(have) + " " + what + " are given; the program has " +
                            std::to_string(want) + ".",
                        "WrongCount"));
  };
  IGNIS_TRY(check_count("inputs", inputs.size(), plan.inputs.size()));
  IGNIS_TRY(check_count("outputs", outputs.size(), plan.outputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    IGNIS_TRY(check_one("Input", plan.inputs[i], inputs[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    IGNIS_TRY(check_one("Output", plan.outputs[i], outputs[i]));
  }
  // Calls write outputs before the last one has read its inputs.
  const auto aliased = [](const Port& a, const Port& b) {
    return Error(
        ErrorCode::InvalidArgument,
        "Output '" + a.name + "' overlaps '" + b.name + "' in memory; each needs bytes of its own.",
        "AliasedArguments");
  };
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (overlap(outputs[o], inputs[i])) return aliased(plan.outputs[o], plan.inputs[i]);
    }
    for (size_t i = 0; i < o; ++i) {
      if (overlap(outputs[o], outputs[i])) return aliased(plan.outputs[o], plan.outputs[i]);
    }
  }
  return {};
}

// Checks the caller's memory and writes its addresses into the tables.
Status Executable::State::bind_ports(std::span<const std::span<const std::byte>> inputs,
                                     std::span<const std::span<std::byte>> outputs) {
  IGNIS_TRY(check(inputs, outputs));
  for (const Patch& patch : input_patches) {
    table[patch.table] = const_cast<std::byte*>(inputs[patch.port].data());
  }
  for (const Patch& patch : output_patches) table[patch.table] = outputs[patch.port].data();
  return {};
}

Executable::Executable(std::shared_ptr<State> state) : state_(std::move(state)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

Executable::~Executable() {
  // An abandoned thread may still be inside a program: everything it can reach stays.
  if (state_ != nullptr && !state_->device->state()) runtime::abandon(std::move(state_));
}

Result<Executable> Executable::create(Plan plan, std::shared_ptr<runtime::Device> device) {
  IGNIS_CHECK(device != nullptr);
  IGNIS_TRY(check_plan(plan));
  auto state = std::make_shared<State>();
  state->device = std::move(device);
  state->plan = std::move(plan);
  for (const ProgramImage& image : state->plan.programs) {
    IGNIS_TRY_ASSIGN(auto program, state->device->load(image));
    state->programs.push_back(std::move(program));
  }
  IGNIS_TRY_ASSIGN(state->arena,
                   state->device->allocate(static_cast<uint64_t>(state->plan.arena_bytes)));
  state->bind();
  return Executable(std::move(state));
}

const Plan& Executable::plan() const { return state_->plan; }
int64_t Executable::parts(size_t call) const { return state_->launches[call].parts; }

Status Executable::run(std::span<const std::span<const std::byte>> inputs,
                       std::span<const std::span<std::byte>> outputs, runtime::Deadline deadline) {
  return profile(inputs, outputs, deadline, {});
}

Status Executable::profile(std::span<const std::span<const std::byte>> inputs,
                           std::span<const std::span<std::byte>> outputs,
                           runtime::Deadline deadline, std::span<runtime::LaunchTime> times) {
  State& state = *state_;
  IGNIS_CHECK(times.empty() || times.size() == state.launches.size());
  const OneRun one_run(state);
  IGNIS_TRY(one_run.check());
  IGNIS_TRY(state.bind_ports(inputs, outputs));
  return state.device->run(state.launches, deadline, times);
}

Status Executable::run_stepwise(std::span<const std::span<const std::byte>> inputs,
                                std::span<const std::span<std::byte>> outputs,
                                runtime::Deadline deadline, const AfterCall& after) {
  State& state = *state_;
  const OneRun one_run(state);
  IGNIS_TRY(one_run.check());
  IGNIS_TRY(state.bind_ports(inputs, outputs));
  for (size_t i = 0; i < state.launches.size(); ++i) {
    const runtime::Launch& launch = state.launches[i];
    IGNIS_TRY(state.device->run({&launch, 1}, deadline));
    IGNIS_TRY(after(i, {launch.buffers, state.plan.calls[i].buffers.size()}));
  }
  return {};
}

}  // namespace ignis::exec
