#include "ignis/engine/queues/batches.h"

#include "ignis/engine/queues/view.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace ignis::engine {
namespace {

using exec::ScheduleBuffer;
using runtime::QueueId;

/// Devices that a call makes a part of its batch: its own, and those that own an argument.
std::set<std::string> devices_of(const DeviceTable& table, std::span<const ScheduleBuffer> buffers,
                                 const PlacedCall& call) {
  std::set<std::string> devices = {call.device};
  for (const exec::BufferRange& range : call.call.arguments) {
    if (range.size_bytes == 0) continue;
    for (const std::string& owner : owners_of(buffers, range)) {
      if (table.is_enqueued(owner)) devices.insert(owner);
    }
  }
  return devices;
}

bool is_other(const PlacedCall& call) { return call.call.kind == exec::CallKind::Other; }

/// The enqueued run that is being filled.
class OpenRun {
 public:
  OpenRun(const DeviceTable& table, std::span<const ScheduleBuffer> buffers,
          std::span<const std::vector<Access>> accesses)
      : table_(table), buffers_(buffers), accesses_(accesses) {}

  bool is_empty() const { return groups_.empty(); }

  /// Whether call `index` touches bytes or a device of another group in this run.
  bool meets_other_group(const PlacedCall& call, int index) const {
    const std::string name = table_.peer_group(call.device);
    const std::set<std::string> devices = devices_of(table_, buffers_, call);
    return std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
      return group.name != name && (shares_device(group, devices) || shares_bytes(group, index));
    });
  }

  void add(const PlacedCall& call, int index) {
    const std::string name = table_.peer_group(call.device);
    auto group = std::find_if(groups_.begin(), groups_.end(),
                              [&](const Group& one) { return one.name == name; });
    if (group == groups_.end()) group = groups_.insert(groups_.end(), Group{name, {}, {}});
    group->calls.push_back(index);
    group->devices.merge(devices_of(table_, buffers_, call));
  }

  CallRun close() {
    CallRun run;
    for (Group& group : groups_) run.groups.push_back(std::move(group.calls));
    groups_.clear();
    return run;
  }

 private:
  struct Group {
    std::string name;
    std::vector<int> calls;
    std::set<std::string> devices;
  };

  static bool shares_device(const Group& group, const std::set<std::string>& devices) {
    return std::any_of(devices.begin(), devices.end(),
                       [&](const std::string& device) { return group.devices.contains(device); });
  }
  bool shares_bytes(const Group& group, int index) const {
    return std::any_of(group.calls.begin(), group.calls.end(), [&](int other) {
      return conflict(accesses_[static_cast<size_t>(index)], accesses_[static_cast<size_t>(other)]);
    });
  }

  const DeviceTable& table_;
  std::span<const ScheduleBuffer> buffers_;
  std::span<const std::vector<Access>> accesses_;
  std::vector<Group> groups_;
};

bool touches(const exec::BufferRange& range) { return range.size_bytes > 0; }

/// The device of a batch that owns all of a range, or -1.
int owner_index(const exec::Batch& batch, std::span<const ScheduleBuffer> buffers,
                const exec::BufferRange& range) {
  const std::span<const std::string> owners = owners_of(buffers, range);
  if (owners.size() != 1) return -1;
  const auto found = std::lower_bound(batch.devices.begin(), batch.devices.end(), owners.front());
  if (found == batch.devices.end() || *found != owners.front()) return -1;
  return static_cast<int>(found - batch.devices.begin());
}

QueueId choose_queue(const DeviceTable& table, const QueueChoice& choice,
                     std::span<const ScheduleBuffer> buffers, const exec::Batch& batch,
                     const exec::BatchCall& call) {
  if (call.kind != exec::CallKind::Copy) return {QueueId::Kind::Compute, 0};
  const int to = owner_index(batch, buffers, call.arguments[0]);
  const int from = owner_index(batch, buffers, call.arguments[1]);
  if (choice.all_to_all < 1 || to < 0 || from < 0 || to == from) return {QueueId::Kind::Copy, 0};
  const auto peers = static_cast<int>(batch.devices.size());
  const int wanted = choice.copy_queues > 0 ? choice.copy_queues : std::min(peers, 8);
  const int declared = table.copy_queues(batch.devices[static_cast<size_t>(call.device)]);
  const int queues = std::max(1, std::min(wanted, declared));
  return {QueueId::Kind::Copy, choose_copy_queue(to, from, peers, queues)};
}

}  // namespace

std::vector<CallRun> cut_runs(const DeviceTable& table, std::span<const ScheduleBuffer> buffers,
                              const BaseTable& bases, std::span<const PlacedCall> calls) {
  std::vector<std::vector<Access>> accesses;
  accesses.reserve(calls.size());
  for (const PlacedCall& call : calls) accesses.push_back(bases.accesses_of(call.call));

  std::vector<CallRun> runs;
  OpenRun open(table, buffers, accesses);
  const auto close = [&] {
    if (!open.is_empty()) runs.push_back(open.close());
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].device.empty()) {
      close();
      const bool goes_on =
          !runs.empty() && runs.back().is_host && is_other(calls[i]) == is_other(calls[i - 1]);
      if (!goes_on) runs.push_back({true, {{}}});
      runs.back().groups[0].push_back(static_cast<int>(i));
      continue;
    }
    const size_t together = calls[i].is_send && i + 1 < calls.size() ? 2 : 1;
    bool meets = false;
    for (size_t k = 0; k < together; ++k) {
      meets = meets || open.meets_other_group(calls[i + k], static_cast<int>(i + k));
    }
    if (meets) close();
    for (size_t k = 0; k < together; ++k) open.add(calls[i + k], static_cast<int>(i + k));
    i += together - 1;
  }
  close();
  return runs;
}

int choose_copy_queue(int destination, int source, int peers, int queues) {
  const int distance = ((destination - source - 1) % peers + peers) % peers;
  return distance % queues;
}

exec::Batch make_batch(const DeviceTable& table, const QueueChoice& choice,
                       std::span<const ScheduleBuffer> buffers, std::span<const PlacedCall> calls,
                       std::span<const int> group) {
  exec::Batch batch;
  std::set<std::string> devices;
  std::set<std::pair<std::string, std::string>> touched;  // owner, accessor
  for (const int index : group) {
    const PlacedCall& placed = calls[static_cast<size_t>(index)];
    devices.insert(placed.device);
    for (const exec::BufferRange& range : placed.call.arguments) {
      const ScheduleBuffer& buffer = buffers[static_cast<size_t>(range.buffer)];
      if (!touches(range) || buffer.is_wire || buffer.variable >= 0) continue;
      for (const std::string& owner : owners_of(buffers, range)) {
        if (table.is_enqueued(owner)) {
          devices.insert(owner);
        } else {
          touched.emplace(owner, placed.device);
        }
      }
    }
  }
  batch.devices.assign(devices.begin(), devices.end());
  const auto index_of = [&](const std::string& device) {
    return static_cast<int>(std::lower_bound(batch.devices.begin(), batch.devices.end(), device) -
                            batch.devices.begin());
  };
  for (const auto& [owner, accessor] : touched)
    batch.touched.push_back({owner, index_of(accessor)});
  for (const int index : group) {
    const PlacedCall& placed = calls[static_cast<size_t>(index)];
    exec::BatchCall call = placed.call;
    call.tag = static_cast<int>(batch.calls.size());
    call.device = index_of(placed.device);
    call.queue = choose_queue(table, choice, buffers, batch, call);
    batch.calls.push_back(std::move(call));
  }
  return batch;
}

exec::Batch make_host_batch(const DeviceTable& table, std::span<const ScheduleBuffer> buffers,
                            std::span<const PlacedCall> calls, std::span<const int> group) {
  exec::Batch run;
  run.devices = {table.host};
  std::set<std::string> touched;
  for (const int index : group) {
    exec::BatchCall call = calls[static_cast<size_t>(index)].call;
    call.tag = static_cast<int>(run.calls.size());
    for (const exec::BufferRange& range : call.arguments) {
      if (!touches(range) || buffers[static_cast<size_t>(range.buffer)].variable >= 0) continue;
      for (const std::string& owner : owners_of(buffers, range)) touched.insert(owner);
    }
    run.calls.push_back(std::move(call));
  }
  for (const std::string& owner : touched) run.touched.push_back({owner, 0});
  return run;
}

}  // namespace ignis::engine
