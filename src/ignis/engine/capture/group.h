#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/queue_template.h"
#include "ignis/exec/schedule.h"
#include "ignis/runtime/capabilities.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::engine {

/// Which groups of calls a device's graphs take.
enum class GraphClass : uint8_t {
  None,
  SingleDevice,  ///< programs of one device in all
  MultiDevice,   ///< programs and copies of devices of one kind
  QueueDevice,  ///< as a batch of the queue chain: queued devices of one peer group, or with network cards; copies by copy queues
};

struct GraphDevice {
  GraphClass graph_class = GraphClass::None;  ///< counts with the capability has_device_graphs
  runtime::Capabilities capabilities;
};
/// By canonical name. A device that is not in it has no graphs.
using GraphDevices = std::map<std::string, GraphDevice>;

struct GroupOptions {
  bool makes_graphs = true;  ///< jit = 2: false
  int limit_calls = 32;      ///< of the first graph; doubles with each made; 0: none
};

/// Why a group ends where it does.
enum class CutReason : uint8_t {
  End,           ///< the schedule ends
  Limit,         ///< it has as many calls as a graph may have
  NoGraph,       ///< the next call, or this one, can be in no graph
  OtherDevices,  ///< no graph takes the next call's devices together with the group's
  GraphsOff,
  OtherGroup,  ///< the next batch is of another peer group
  HostRun,     ///< a run of the host begins or ends
};
std::string_view to_string(CutReason reason);

/// Consecutive calls that go to a device together.
struct CallGroup {
  int first = 0, count = 0;
  bool is_graph = false;
  CutReason cut = CutReason::End;
};

/// What capturing made of a schedule: "captured" does not mean "one graph" (W-15).
struct GroupReport {
  std::vector<CallGroup> groups;
  int graph_count() const;
  int plain_calls() const;
  /// Sizes of graphs in order; a plain call is 1.
  std::vector<int> sizes() const;
  /// "graph 32 (limit), graph 51 (end)".
  std::string to_text() const;
};

/// Groups calls into device graphs (capture spec 9). Errors: InvalidArgument for views of no buffer.
Result<GroupReport> group_calls(const exec::Schedule& schedule, const GraphDevices& devices,
                                const GroupOptions& options = {});

/// The same report where the queue chain is present: its batches are the graphs. Calls are counted as the template has them:
/// lanes and copies split up.
GroupReport report_batches(const exec::QueueTemplate& queues);

}  // namespace ignis::engine
