#include "ignis/engine/capture/group.h"

#include "ignis/engine/queues/view.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

namespace ignis::engine {
namespace {

/// The devices of a call's arguments, in order of appearance; a copy's destination comes first.
Result<std::vector<std::string>> devices_of(std::span<const exec::ScheduleBuffer> buffers,
                                            const exec::ScheduleCall& call) {
  std::vector<std::string> result;
  for (const exec::BufferView& view : call.arguments) {
    IGNIS_TRY_ASSIGN(const exec::BufferRange range, resolve_view(buffers, view));
    for (const std::string& device : owners_of(buffers, range)) {
      if (std::find(result.begin(), result.end(), device) == result.end()) {
        result.push_back(device);
      }
    }
  }
  return result;
}

class Grouper {
 public:
  Grouper(const GraphDevices& devices, const GroupOptions& options)
      : devices_(devices),
        limit_(options.limit_calls > 0 ? options.limit_calls : std::numeric_limits<int>::max()) {}

  void add(exec::CallKind kind, const std::vector<std::string>& call_devices) {
    const GraphClass graph_class =
        call_devices.empty() ? GraphClass::None : class_of(call_devices.front());
    if (!supports(graph_class, kind, call_devices, call_devices)) {
      close(CutReason::NoGraph);
      report_.groups.push_back({next_++, 1, false, CutReason::NoGraph});
      return;
    }
    if (open_.count > 0) {
      if (open_.count >= limit_) {
        close(CutReason::Limit);
      } else if (graph_class != open_class_ ||
                 !supports(graph_class, kind, call_devices, together(call_devices))) {
        close(CutReason::OtherDevices);
      }
    }
    if (open_.count == 0) {
      open_.first = next_;
      open_class_ = graph_class;
    }
    open_devices_ = together(call_devices);
    ++open_.count;
    ++next_;
  }

  GroupReport finish() {
    close(CutReason::End);
    if (!report_.groups.empty()) report_.groups.back().cut = CutReason::End;
    return std::move(report_);
  }

 private:
  const GraphDevice& find(const std::string& name) const {
    static const GraphDevice none;
    const auto at = devices_.find(name);
    return at == devices_.end() ? none : at->second;
  }
  GraphClass class_of(const std::string& name) const {
    const GraphDevice& device = find(name);
    return device.capabilities.has_device_graphs ? device.graph_class : GraphClass::None;
  }
  std::string peer_group(const std::string& name) const {
    const std::string& group = find(name).capabilities.peer_group;
    return group.empty() ? runtime::device_kind(name) : group;
  }
  std::vector<std::string> together(const std::vector<std::string>& call_devices) const {
    std::vector<std::string> all = open_devices_;
    for (const std::string& device : call_devices) {
      if (std::find(all.begin(), all.end(), device) == all.end()) all.push_back(device);
    }
    return all;
  }

  /// Whether a graph of that class takes a call; `all` are its devices and those of the calls before it.
  bool supports(GraphClass graph_class, exec::CallKind kind,
                const std::vector<std::string>& call_devices,
                const std::vector<std::string>& all) const {
    if (kind == exec::CallKind::Other) return false;
    const bool is_copy = kind == exec::CallKind::Copy;
    switch (graph_class) {
      case GraphClass::None: return false;
      case GraphClass::SingleDevice: return !is_copy && all.size() == 1;
      case GraphClass::MultiDevice:
        return std::all_of(all.begin(), all.end(), [&](const std::string& name) {
          return runtime::device_kind(name) == runtime::device_kind(all.front());
        });
      case GraphClass::QueueDevice:
        // A copy's source, which comes last, is the device that copies (queue spec 2).
        if (is_copy && find(call_devices.back()).capabilities.copy_queues == 0) return false;
        return are_connected(all);
    }
    return false;
  }
  bool are_connected(const std::vector<std::string>& all) const {
    bool is_one_group = true, have_cards = true;
    for (const std::string& name : all) {
      const runtime::Capabilities& capabilities = find(name).capabilities;
      if (!capabilities.is_queued) return false;
      is_one_group &= peer_group(name) == peer_group(all.front());
      have_cards &= capabilities.has_network_card;
    }
    return is_one_group || have_cards;
  }

  void close(CutReason reason) {
    if (open_.count == 0) return;
    open_.cut = reason;
    open_.is_graph = open_.count > 1;
    if (open_.is_graph && limit_ <= std::numeric_limits<int>::max() / 2) limit_ *= 2;
    report_.groups.push_back(open_);
    open_ = {};
    open_devices_.clear();
  }

  const GraphDevices& devices_;
  int limit_;
  int next_ = 0;
  CallGroup open_;
  GraphClass open_class_ = GraphClass::None;
  std::vector<std::string> open_devices_;
  GroupReport report_;
};

}  // namespace

std::string_view to_string(CutReason reason) {
  switch (reason) {
    case CutReason::End: return "end";
    case CutReason::Limit: return "limit";
    case CutReason::NoGraph: return "a call that no graph takes";
    case CutReason::OtherDevices: return "other devices";
    case CutReason::GraphsOff: return "graphs are off";
    case CutReason::OtherGroup: return "another peer group";
    case CutReason::HostRun: return "host run";
  }
  return "?";
}

int GroupReport::graph_count() const {
  return static_cast<int>(std::count_if(groups.begin(), groups.end(),
                                        [](const CallGroup& group) { return group.is_graph; }));
}

int GroupReport::plain_calls() const {
  int count = 0;
  for (const CallGroup& group : groups) count += group.is_graph ? 0 : group.count;
  return count;
}

std::vector<int> GroupReport::sizes() const {
  std::vector<int> result;
  for (const CallGroup& group : groups) result.push_back(group.count);
  return result;
}

std::string GroupReport::to_text() const {
  std::string text;
  for (const CallGroup& group : groups) {
    if (!text.empty()) text += ", ";
    text += std::string(group.is_graph ? "graph " : "plain ") + std::to_string(group.count) + " (" +
            std::string(to_string(group.cut)) + ")";
  }
  return text;
}

Result<GroupReport> group_calls(const exec::Schedule& schedule, const GraphDevices& devices,
                                const GroupOptions& options) {
  if (!options.makes_graphs) {
    GroupReport report;
    report.groups.reserve(schedule.calls.size());
    for (int i = 0; i < static_cast<int>(schedule.calls.size()); ++i) {
      report.groups.push_back({i, 1, false, CutReason::GraphsOff});
    }
    return report;
  }
  Grouper grouper(devices, options);
  for (const exec::ScheduleCall& call : schedule.calls) {
    IGNIS_TRY_ASSIGN(const std::vector<std::string> of_call, devices_of(schedule.buffers, call));
    grouper.add(call.kind, of_call);
  }
  return grouper.finish();
}

GroupReport report_batches(const exec::QueueTemplate& queues) {
  GroupReport report;
  int next = 0;
  for (size_t i = 0; i < queues.steps.size(); ++i) {
    const exec::TemplateStep& step = queues.steps[i];
    const auto count = static_cast<int>(step.batch.calls.size());
    CutReason cut = CutReason::End;
    if (i + 1 < queues.steps.size()) {
      const bool is_host = step.is_host || queues.steps[i + 1].is_host;
      cut = is_host ? CutReason::HostRun : CutReason::OtherGroup;
    }
    report.groups.push_back({next, count, !step.is_host && count > 1, cut});
    next += count;
  }
  return report;
}

}  // namespace ignis::engine
