#include "ignis/engine/queues/check_batch.h"

#include "ignis/engine/queues/batch_machine.h"
#include "ignis/engine/queues/streams.h"

#include <algorithm>
#include <random>
#include <set>

namespace ignis::engine {
namespace {

using exec::Batch;
using exec::QueueStream;
using runtime::Command;

/// Faults that the text of the streams shows.
std::optional<BatchFault> check_stores(const Batch& batch) {
  std::vector<int> timeline_stores(batch.devices.size(), 0);
  std::vector<uint64_t> highest(batch.streams.size(), 0);
  for (size_t i = 0; i < batch.streams.size(); ++i) {
    for (const Command& command : batch.streams[i].commands) {
      if (command.kind == Command::Kind::StoreReached) {
        if (command.device != batch.streams[i].device) {
          return BatchFault{
              "I-2", "Stream " + std::to_string(i) + " stores the timeline of another device.", {}};
        }
        ++timeline_stores[static_cast<size_t>(command.device)];
      }
      if (command.kind != Command::Kind::StoreSignal) continue;
      // The checks below rest on values that only rise.
      if (command.signal != static_cast<int>(i) || command.value <= highest[i]) {
        return BatchFault{"I-5",
                          "Stream " + std::to_string(i) + " stores " +
                              std::to_string(command.value) + " to signal " +
                              std::to_string(command.signal) + " after " +
                              std::to_string(highest[i]) + " to its own.",
                          {}};
      }
      highest[i] = command.value;
    }
  }
  for (size_t device = 0; device < timeline_stores.size(); ++device) {
    if (timeline_stores[device] != 1) {
      return BatchFault{"I-2",
                        "The timeline of " + batch.devices[device] + " is stored " +
                            std::to_string(timeline_stores[device]) + " times.",
                        {}};
    }
  }
  for (const QueueStream& stream : batch.streams) {
    for (const Command& command : stream.commands) {
      if (command.kind != Command::Kind::WaitSignal) continue;
      const uint64_t stored = highest[static_cast<size_t>(command.signal)];
      if (command.value > stored) {
        return BatchFault{"I-5",
                          to_text(batch, command) + " has no store: the highest is " +
                              std::to_string(stored) + ".",
                          {}};
      }
    }
  }
  return std::nullopt;
}

/// Each call runs once, on its queue, in the order of tags.
std::optional<BatchFault> check_calls(const Batch& batch) {
  std::vector<int> runs(batch.calls.size(), 0);
  for (const QueueStream& stream : batch.streams) {
    int newest = -1;
    for (const Command& command : stream.commands) {
      if (command.kind != Command::Kind::Exec && command.kind != Command::Kind::Copy) continue;
      const exec::BatchCall& call = batch.calls[static_cast<size_t>(command.tag)];
      ++runs[static_cast<size_t>(command.tag)];
      const bool is_own = call.device == stream.device && call.queue == stream.queue;
      if (!is_own || command.tag <= newest) {
        return BatchFault{"I-6",
                          "Call " + std::to_string(command.tag) + " stands on stream " +
                              std::to_string(stream.signal) + " behind call " +
                              std::to_string(newest) + ".",
                          {}};
      }
      newest = command.tag;
    }
  }
  for (size_t tag = 0; tag < runs.size(); ++tag) {
    if (runs[tag] == 1) continue;
    return BatchFault{
        "I-6",
        "Call " + std::to_string(tag) + " runs " + std::to_string(runs[tag]) + " times.",
        {}};
  }
  return std::nullopt;
}

/// Serves the streams of a machine in some order until none can go on.
class Server {
 public:
  explicit Server(const BatchFacts& facts) : facts_(facts) {}

  struct Order {
    int first = 0;  ///< stream that is served first
    bool is_backwards = false;
    bool is_greedy = false;  ///< each stream as far as it goes, not one command
  };

  std::optional<BatchFault> run(BatchMachine& machine, const Order& order) const {
    const int count = static_cast<int>(machine.stream_count());
    for (bool moved = true; moved;) {
      moved = false;
      for (int i = 0; i < count; ++i) {
        const int stream = (order.first + (order.is_backwards ? count - i : i)) % count;
        while (machine.can_step(stream)) {
          moved = true;
          if (auto fault = step(machine, stream)) return fault;
          if (!order.is_greedy) break;
        }
      }
    }
    return std::nullopt;
  }

  std::optional<BatchFault> run_at_random(BatchMachine& machine, std::mt19937_64& rng) const {
    const int count = static_cast<int>(machine.stream_count());
    std::vector<int> ready;
    for (;;) {
      ready.clear();
      for (int stream = 0; stream < count; ++stream) {
        if (machine.can_step(stream)) ready.push_back(stream);
      }
      if (ready.empty()) return std::nullopt;
      if (auto fault = step(machine, ready[rng() % ready.size()])) return fault;
    }
  }

  std::optional<BatchFault> expect_end(const BatchMachine& machine) const {
    if (machine.is_finished()) return std::nullopt;
    std::string what = "Nothing can go on:";
    for (int stream = 0; stream < static_cast<int>(machine.stream_count()); ++stream) {
      what += " stream " + std::to_string(stream) + " stands at " + machine.where(stream) + ";";
    }
    what.back() = '.';
    return BatchFault{"I-1", what, machine.order()};
  }

  std::optional<BatchFault> step(BatchMachine& machine, int stream) const {
    const std::optional<std::string> invariant = machine.step(stream);
    if (!invariant) return std::nullopt;
    return BatchFault{*invariant, machine.what() + ".", machine.order()};
  }

  /// Walks every state, depth first, as long as there are no more than `max_states`.
  std::optional<BatchFault> run_all(uint64_t max_states) const {
    std::set<std::vector<size_t>> seen;
    std::vector<BatchMachine> open{BatchMachine(facts_)};
    while (!open.empty() && seen.size() < max_states) {
      const BatchMachine machine = std::move(open.back());
      open.pop_back();
      bool is_stuck = true;
      for (int stream = 0; stream < static_cast<int>(machine.stream_count()); ++stream) {
        if (!machine.can_step(stream)) continue;
        is_stuck = false;
        BatchMachine next = machine;
        if (auto fault = step(next, stream)) return fault;
        if (seen.insert(next.positions()).second) open.push_back(std::move(next));
      }
      if (is_stuck) {
        if (auto fault = expect_end(machine)) return fault;
      }
    }
    return std::nullopt;
  }

 private:
  const BatchFacts& facts_;
};

/// I-1, I-3 and I-6 over the rotations.
std::optional<BatchFault> check_rotations(const BatchFacts& facts, const Server& server) {
  for (int first = 0; first < static_cast<int>(facts.batch->streams.size()); ++first) {
    for (const bool is_backwards : {false, true}) {
      for (const bool is_greedy : {false, true}) {
        BatchMachine machine(facts);
        if (auto fault = server.run(machine, {first, is_backwards, is_greedy})) return fault;
        if (auto fault = server.expect_end(machine)) return fault;
      }
    }
  }
  return std::nullopt;
}

std::optional<BatchFault> check_late_devices(const BatchFacts& facts, const Server& server) {
  for (size_t device = 0; device < facts.batch->devices.size(); ++device) {
    BatchMachine machine(facts);
    machine.set_late(static_cast<int>(device));
    if (auto fault = server.run(machine, {0, false, true})) return fault;
    for (size_t tag = 0; tag < facts.batch->calls.size(); ++tag) {
      if (!machine.has_started(static_cast<int>(tag)) || !facts.touches[tag][device]) continue;
      return BatchFault{"I-4",
                        "Call " + std::to_string(tag) + " touches " + facts.batch->devices[device] +
                            " and runs though that device has not reached N.",
                        machine.order()};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string BatchFault::to_string() const {
  std::string text = invariant + ": " + what;
  if (order.empty()) return text;
  text += " (order";
  for (const int stream : order) text += " " + std::to_string(stream);
  return text + ")";
}

std::optional<BatchFault> check_batch(const DeviceTable& table,
                                      std::span<const exec::ScheduleBuffer> buffers,
                                      const BaseTable& bases, const Batch& batch,
                                      const CheckOptions& options) {
  if (auto fault = check_stores(batch)) return fault;
  if (auto fault = check_calls(batch)) return fault;
  const BatchFacts facts = collect_facts(table, buffers, bases, batch);
  const Server server(facts);
  if (auto fault = check_rotations(facts, server)) return fault;
  if (auto fault = check_late_devices(facts, server)) return fault;
  for (size_t tag = 0; tag < batch.calls.size(); ++tag) {
    BatchMachine machine(facts);
    machine.hold_back(static_cast<int>(tag));
    if (auto fault = server.run(machine, {0, false, true})) return fault;
  }
  std::mt19937_64 rng(options.seed);
  for (int i = 0; i < options.random_orders; ++i) {
    BatchMachine machine(facts);
    if (auto fault = server.run_at_random(machine, rng)) return fault;
    if (auto fault = server.expect_end(machine)) return fault;
  }
  if (options.max_states > 0) return server.run_all(options.max_states);
  return std::nullopt;
}

Status verify_batch(const DeviceTable& table, std::span<const exec::ScheduleBuffer> buffers,
                    const BaseTable& bases, const Batch& batch) {
  const std::optional<BatchFault> fault = check_batch(table, buffers, bases, batch);
  if (!fault) return Status::ok();
  return Error(ErrorCode::Internal, "A batch breaks " + fault->to_string() + "\n" + to_text(batch),
               fault->invariant);
}

}  // namespace ignis::engine
