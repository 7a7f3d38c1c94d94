#include "ignis/engine/queues/streams.h"

#include "ignis/engine/queues/view.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ignis::engine {
namespace {

using exec::Batch;
using exec::BatchCall;
using exec::QueueStream;
using runtime::Command;
using runtime::QueueId;

constexpr QueueId kCompute{QueueId::Kind::Compute, 0};

Command command(Command::Kind kind) {
  Command made;
  made.kind = kind;
  return made;
}

class StreamBuilder {
 public:
  StreamBuilder(const DeviceTable& table, std::span<const exec::ScheduleBuffer> buffers,
                const BaseTable& bases, bool is_profiled, Batch& batch)
      : table_(table), buffers_(buffers), bases_(bases), is_profiled_(is_profiled), batch_(batch) {}

  void build() {
    batch_.streams.clear();
    list_queues();
    find_waits();
    mark_last_calls();
    for (BatchCall& call : batch_.calls) emit_call(call);
    for (size_t device = 0; device < batch_.devices.size(); ++device) {
      emit_closing(static_cast<int>(device));
    }
  }

 private:
  /// What is known of a queue besides its stream; the same index.
  struct Queue {
    int last_tag = -1;     ///< -1: it only closes
    std::set<int> peers;   ///< devices whose memory its calls touch
    int last_launch = -1;  ///< while waits are found: tag of the newest program
    bool is_started = false;
  };

  bool is_in_order(int device) const { return capabilities(device).is_in_order; }
  const runtime::Capabilities& capabilities(int device) const {
    return *table_.find(batch_.devices[static_cast<size_t>(device)]);
  }
  QueueStream& stream(int index) { return batch_.streams[static_cast<size_t>(index)]; }
  Queue& queue(int index) { return queues_[static_cast<size_t>(index)]; }
  Queue& queue_of(const BatchCall& call) { return queue(stream_of(call)); }
  int stream_of(const BatchCall& call) const { return stream_at_.at({call.device, call.queue}); }
  void append(int index, Command made) { stream(index).commands.push_back(made); }

  int add_queue(int device, QueueId id) {
    const auto [found, is_new] =
        stream_at_.try_emplace({device, id}, static_cast<int>(batch_.streams.size()));
    if (is_new) {
      QueueStream made;
      made.device = device;
      made.queue = id;
      made.signal = found->second;
      batch_.streams.push_back(std::move(made));
      queues_.emplace_back();
    }
    return found->second;
  }

  /// Streams in submit order: queues by first use, then those that only close.
  void list_queues() {
    for (const BatchCall& call : batch_.calls) {
      Queue& used = queue(add_queue(call.device, call.queue));
      used.last_tag = call.tag;
      for (const int peer : peers_of(batch_, buffers_, call)) used.peers.insert(peer);
    }
    for (size_t i = 0; i < batch_.devices.size(); ++i) {
      const int device = static_cast<int>(i);
      const std::vector<int> own = queues_of(device);
      closing_.push_back(own.size() == 1 ? own[0] : add_queue(device, kCompute));
    }
  }

  std::vector<int> queues_of(int device) const {
    std::vector<int> found;
    for (const QueueStream& one : batch_.streams) {
      if (one.device == device) found.push_back(one.signal);
    }
    return found;
  }

  /// Which calls each call waits for: by stream the largest tag, and whether it must follow one of its own queue.
  void find_waits() {
    DependencyTracker tracker;
    waits_.resize(batch_.calls.size());
    needs_barrier_.assign(batch_.calls.size(), false);
    for (BatchCall& call : batch_.calls) {
      const int own = stream_of(call);
      const auto tag = static_cast<size_t>(call.tag);
      std::map<std::pair<int, QueueId>, int>& waits = waits_[tag];
      for (const int owner :
           tracker.add(call.tag, own, is_in_order(call.device), bases_.accesses_of(call))) {
        const BatchCall& other = batch_.calls[static_cast<size_t>(owner)];
        if (stream_of(other) == own) {
          // First in, first out, when the device says so.
          if (!is_in_order(call.device)) needs_barrier_[tag] = true;
          continue;
        }
        int& newest = waits.try_emplace({other.device, other.queue}, owner).first->second;
        newest = std::max(newest, owner);
      }
      if (call.kind != exec::CallKind::Copy) {
        const int previous = std::exchange(queue(own).last_launch, call.tag);
        // A wait in front of a launch breaks its chain to the one before, which then has to be waited for by its signal.
        if (capabilities(call.device).chains_launches && !waits.empty() && previous >= 0) {
          waits[{call.device, call.queue}] = previous;
        }
      }
      for (const auto& [where, owner] : waits) {
        batch_.calls[static_cast<size_t>(owner)].is_marked = true;
      }
    }
  }

  void mark_last_calls() {
    for (const QueueStream& one : batch_.streams) {
      const Queue& used = queue(one.signal);
      if (used.last_tag < 0) continue;
      const bool is_closing = closing_[static_cast<size_t>(one.device)] == one.signal;
      if (!is_closing || !used.peers.empty()) {
        batch_.calls[static_cast<size_t>(used.last_tag)].is_marked = true;
      }
    }
  }

  void start(int index) {
    Queue& used = queue(index);
    if (std::exchange(used.is_started, true)) return;
    append(index, command(Command::Kind::Barrier));
    append_wait_reached(index, stream(index).device);
    for (const int peer : used.peers) append_wait_reached(index, peer);
  }
  void append_wait_reached(int index, int device) {
    Command made = command(Command::Kind::WaitReached);
    made.device = device;
    append(index, made);
  }
  void append_wait_signal(int index, int signal, int tag) {
    Command made = command(Command::Kind::WaitSignal);
    made.signal = signal;
    made.value = static_cast<uint64_t>(tag) + 1;
    append(index, made);
  }
  /// Makes a store say that all before it is done.
  void settle(int index) {
    const std::vector<Command>& commands = stream(index).commands;
    if (is_in_order(stream(index).device)) return;
    if (!commands.empty() && commands.back().kind == Command::Kind::StoreSignal) return;
    append(index, command(Command::Kind::Barrier));
  }
  void append_timestamp(int index, int slot) {
    Command made = command(Command::Kind::Timestamp);
    made.slot = slot;
    append(index, made);
  }

  void emit_call(BatchCall& call) {
    const int index = stream_of(call);
    const auto tag = static_cast<size_t>(call.tag);
    start(index);
    for (const auto& [where, owner] : waits_[tag]) {
      append_wait_signal(index, stream_at_.at(where), owner);
    }
    if (needs_barrier_[tag]) append(index, command(Command::Kind::Barrier));
    if (is_profiled_) {
      call.start_slot = count_queues(batch_, call.device) + 1 + 2 * call.tag;
      call.end_slot = call.start_slot + 1;
      append_timestamp(index, call.start_slot);
    }
    Command made =
        command(call.kind == exec::CallKind::Copy ? Command::Kind::Copy : Command::Kind::Exec);
    made.tag = call.tag;
    append(index, made);
    if (is_profiled_) append_timestamp(index, call.end_slot);
    if (!call.is_marked) return;
    settle(index);
    Command store = command(Command::Kind::StoreSignal);
    store.signal = index;
    store.value = static_cast<uint64_t>(call.tag) + 1;
    append(index, store);
  }

  /// Ends a device's share of the batch: everything on it and everything that peers do to it, then its timeline.
  void emit_closing(int device) {
    const int index = closing_[static_cast<size_t>(device)];
    const std::vector<int> own = queues_of(device);
    if (own.size() == 1) start(index);  // a device that is only a peer; others have started
    for (const int other : own) {
      if (other != index) append_wait_signal(index, other, queue(other).last_tag);
    }
    for (const QueueStream& other : batch_.streams) {
      if (other.device != device && queue(other.signal).peers.contains(device)) {
        append_wait_signal(index, other.signal, queue(other.signal).last_tag);
      }
    }
    settle(index);
    Command store = command(Command::Kind::StoreReached);
    store.device = device;
    append(index, store);
  }

  const DeviceTable& table_;
  std::span<const exec::ScheduleBuffer> buffers_;
  const BaseTable& bases_;
  bool is_profiled_;
  Batch& batch_;
  std::vector<Queue> queues_;
  std::map<std::pair<int, QueueId>, int> stream_at_;
  std::vector<int> closing_;  ///< by device: its closing stream
  std::vector<std::map<std::pair<int, QueueId>, int>> waits_;
  std::vector<bool> needs_barrier_;
};

std::string queue_name(const Batch& batch, int signal) {
  const QueueStream& stream = batch.streams[static_cast<size_t>(signal)];
  return batch.devices[static_cast<size_t>(stream.device)] + "/" + stream.queue.to_string();
}

/// "a[0,8)=, b@1[0,16)": what is written has a sign of equality, a lane of several its number.
std::string arguments_text(std::span<const exec::ScheduleBuffer> buffers, const BatchCall& call) {
  std::string text;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const exec::BufferRange& range = call.arguments[i];
    const exec::ScheduleBuffer& buffer = buffers[static_cast<size_t>(range.buffer)];
    if (i > 0) text += ", ";
    text += buffer.name;
    if (buffer.devices.size() > 1 && range.lane != exec::kAllLanes) {
      text += "@" + std::to_string(range.lane);
    }
    text += "[" + std::to_string(range.offset_bytes) + "," +
            std::to_string(range.offset_bytes + range.size_bytes) + ")";
    if (std::find(call.outs.begin(), call.outs.end(), static_cast<int>(i)) != call.outs.end()) {
      text += "=";
    }
  }
  return text;
}

}  // namespace

void build_streams(const DeviceTable& table, std::span<const exec::ScheduleBuffer> buffers,
                   const BaseTable& bases, bool is_profiled, Batch& batch) {
  StreamBuilder(table, buffers, bases, is_profiled, batch).build();
}

void build_host_stream(bool is_profiled, Batch& batch) {
  QueueStream stream;
  stream.signal = 0;
  const auto append = [&](const Command& made) { stream.commands.push_back(made); };
  const auto append_timestamp = [&](int slot) {
    Command made = command(Command::Kind::Timestamp);
    made.slot = slot;
    append(made);
  };
  append(command(Command::Kind::Barrier));
  for (BatchCall& call : batch.calls) {
    if (is_profiled) {
      call.start_slot = 2 + 2 * call.tag;  // behind one queue's signal and the epoch
      call.end_slot = call.start_slot + 1;
      append_timestamp(call.start_slot);
    }
    Command made =
        command(call.kind == exec::CallKind::Copy ? Command::Kind::Copy : Command::Kind::Exec);
    made.tag = call.tag;
    append(made);
    if (is_profiled) append_timestamp(call.end_slot);
    if (!call.is_marked) continue;
    Command store = command(Command::Kind::StoreSignal);
    store.signal = 0;
    store.value = static_cast<uint64_t>(call.tag) + 1;
    append(store);
  }
  Command store = command(Command::Kind::StoreReached);
  store.device = 0;
  append(store);
  batch.streams = {std::move(stream)};
}

std::vector<int> peers_of(const Batch& batch, std::span<const exec::ScheduleBuffer> buffers,
                          const BatchCall& call) {
  std::set<int> peers;
  for (const exec::BufferRange& range : call.arguments) {
    if (range.size_bytes == 0) continue;
    for (const std::string& owner : owners_of(buffers, range)) {
      const auto found = std::lower_bound(batch.devices.begin(), batch.devices.end(), owner);
      if (found == batch.devices.end() || *found != owner) continue;
      peers.insert(static_cast<int>(found - batch.devices.begin()));
    }
  }
  peers.erase(call.device);
  return {peers.begin(), peers.end()};
}

int count_queues(const Batch& batch, int device) {
  return static_cast<int>(
      std::count_if(batch.streams.begin(), batch.streams.end(),
                    [&](const QueueStream& stream) { return stream.device == device; }));
}

uint64_t signal_bytes(const Batch& batch, int device, bool is_profiled) {
  const auto queues = static_cast<uint64_t>(count_queues(batch, device));
  return 16 * (queues + 1 + (is_profiled ? 2 * batch.calls.size() : 0));
}

std::string to_text(const Batch& batch, const Command& command) {
  const auto device = [&] { return batch.devices[static_cast<size_t>(command.device)]; };
  switch (command.kind) {
    case Command::Kind::Barrier: return "B";
    case Command::Kind::WaitReached: return "W R[" + device() + "]>=N";
    case Command::Kind::WaitSignal:
      return "W S[" + queue_name(batch, command.signal) + "]>=" + std::to_string(command.value);
    case Command::Kind::Exec: return "k" + std::to_string(command.tag);
    case Command::Kind::Copy: return "c" + std::to_string(command.tag);
    case Command::Kind::StoreSignal: return "T S=" + std::to_string(command.value);
    case Command::Kind::StoreReached: return "T R[" + device() + "]=N+1";
    case Command::Kind::Timestamp: return "@" + std::to_string(command.slot);
  }
  return "?";
}

std::string to_text(const Batch& batch, const QueueStream& stream) {
  std::string text = queue_name(batch, stream.signal) + ":";
  const char* separator = " ";
  for (const Command& command : stream.commands) {
    text += separator + to_text(batch, command);
    separator = "; ";
  }
  return text;
}

std::string to_text(const Batch& batch) {
  std::string text;
  for (const QueueStream& stream : batch.streams) text += to_text(batch, stream) + "\n";
  return text;
}

std::string to_text(const exec::QueueTemplate& made) {
  std::string text;
  for (size_t i = 0; i < made.steps.size(); ++i) {
    const exec::TemplateStep& step = made.steps[i];
    text += (step.is_host ? "host " : "batch ") + std::to_string(i);
    if (!step.batch.waits) text += " no-wait";
    for (const int earlier : step.after) text += " after " + std::to_string(earlier);
    text += "\n";
    for (const BatchCall& call : step.batch.calls) {
      text += "  " + std::string(call.kind == exec::CallKind::Copy ? "c" : "k") +
              std::to_string(call.tag) + " " + call.name + "(" +
              arguments_text(made.buffers, call) + ")\n";
    }
    for (const QueueStream& stream : step.batch.streams) {
      text += "  " + to_text(step.batch, stream) + "\n";
    }
  }
  return text;
}

}  // namespace ignis::engine
