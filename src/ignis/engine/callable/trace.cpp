#include "ignis/engine/callable/trace.h"

#include "ignis/engine/capture/group.h"
#include "ignis/engine/capture/plan_memory.h"
#include "ignis/engine/capture/prune.h"
#include "ignis/engine/submit_compiler.h"

#include <algorithm>
#include <limits>

namespace ignis::engine {
namespace {

// The parts of trace(), on one recording.
class Tracer {
 public:
  Tracer(const Workspace& workspace, Recording recording, const InputCollector& inputs,
         const std::vector<TracedLeaf>& leaves, const CaptureOptions& options)
      : workspace_(workspace),
        recording_(std::move(recording)),
        inputs_(inputs),
        leaves_(leaves),
        options_(options) {
    queue_options_ = workspace.options().queues;
    queue_options_.is_profiled = options.is_profiled;
    // Inputs move from replay to replay: their addresses are never baked.
    queue_options_.link_time_threshold = std::numeric_limits<int>::max();
  }

  Result<Traced> run(exec::GuardSet guards) {
    bind_inputs();
    bind_outputs();
    IGNIS_TRY(bind_variables());
    recording_.place_parts();
    IGNIS_TRY(split_off_one_time_calls());
    IGNIS_TRY(plan());
    IGNIS_TRY_ASSIGN(parts_.queues, compile(kept_));
    IGNIS_TRY(make_shadow_copies());
    IGNIS_TRY(list_held());
    parts_.signature = inputs_.make_signature();
    parts_.output_mode = options_.output_mode;
    parts_.ring_size = options_.ring_size;
    parts_.max_sets = options_.max_sets;
    parts_.guards = std::move(guards);
    IGNIS_TRY_ASSIGN(parts_.devices,
                     exec::describe_devices(parts_.queues->queues(), *workspace_.machine()));
    IGNIS_TRY_ASSIGN(traced_.report.groups, describe_groups());
    parts_.group_report = traced_.report.groups;
    traced_.report.calls = static_cast<int>(kept_.calls.size());
    IGNIS_TRY_ASSIGN(traced_.captured, exec::Captured::make(std::move(parts_)));
    return std::move(traced_);
  }

 private:
  exec::Schedule& schedule() { return recording_.schedule; }

  // The buffer of a storage; a new one when no call touches it.
  int buffer_of(uint64_t base, const std::string& device, uint64_t size_bytes,
                const runtime::MemoryRef& memory) {
    const int known = recording_.find(base);
    if (known >= 0) return known;
    exec::ScheduleBuffer made;
    made.name = "storage" + std::to_string(base);
    made.devices = {device};
    made.size_bytes = size_bytes;
    if (memory != nullptr) made.memory = {memory};
    schedule().buffers.push_back(std::move(made));
    RecordedBuffer noted;
    noted.base = base;
    noted.existed_before = true;
    recording_.buffers.push_back(std::move(noted));
    return static_cast<int>(schedule().buffers.size()) - 1;
  }

  void bind_inputs() {
    for (size_t i = 0; i < inputs_.tensors().size(); ++i) {
      const TensorArgument& tensor = inputs_.tensors()[i];
      const exec::InputDescription& description = inputs_.inputs()[i];
      const int buffer = buffer_of(tensor.base, std::string(description.devices.front().name),
                                   description.base_bytes, nullptr);
      exec::ScheduleBuffer& at = schedule().buffers[static_cast<size_t>(buffer)];
      if (at.input >= 0) {
        // A second look at a storage that is only read: the first one serves both.
        exec::ScheduleBuffer unused = at;
        unused.input = static_cast<int>(i);
        schedule().buffers.push_back(std::move(unused));
        recording_.buffers.emplace_back();
        continue;
      }
      at.input = static_cast<int>(i);
      at.memory.clear();
      at.name = std::string(description.name);
    }
  }

  void bind_outputs() {
    const int inputs = static_cast<int>(inputs_.tensors().size());
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const TracedLeaf& leaf = leaves_[i];
      const exec::Placement at = leaf.array.base_memory();
      exec::CapturedOutput output;
      output.name = leaf.path;
      output.dtype = leaf.array.dtype();
      output.shape = leaf.array.shape();
      output.alignment_bytes = static_cast<uint32_t>(size_bytes(output.dtype));
      output.range.buffer =
          buffer_of(leaf.array.base(), leaf.array.device(), at.size_bytes, at.memory);
      output.range.lane = 0;
      output.range.offset_bytes =
          static_cast<uint64_t>(leaf.array.offset_elements() * size_bytes(output.dtype));
      output.range.size_bytes =
          static_cast<uint64_t>(element_count(output.shape) * size_bytes(output.dtype));
      exec::ScheduleBuffer& buffer = schedule().buffers[static_cast<size_t>(output.range.buffer)];
      if (options_.output_mode != exec::OutputMode::Borrow) {
        buffer.memory.clear();
        buffer.input = inputs + static_cast<int>(i);
        outputs_.push_back(output.range.buffer);
      }
      parts_.outputs.push_back(std::move(output));
    }
  }

  Status split_off_one_time_calls() {
    kept_ = schedule();
    if (!options_.prunes) return {};
    PruneOptions prune_options;
    prune_options.constant_buffers = recording_.constant_buffers();
    prune_options.exposed_buffers = outputs_;
    prune_options.random_calls = recording_.random_calls();
    IGNIS_TRY_ASSIGN(const Pruned pruned, prune(schedule(), prune_options));
    traced_.report.pruned = pruned.to_text(schedule());
    traced_.report.one_time_calls = static_cast<int>(pruned.one_time.size());
    kept_ = select_calls(schedule(), pruned.kept);
    held_ = pruned.held_buffers;
    if (pruned.one_time.empty()) return {};
    IGNIS_TRY_ASSIGN(parts_.one_time, compile(select_one_time(schedule(), pruned.one_time)));
    return {};
  }

  // Variables of the recording are those of the call, which has them sorted by name.
  Status bind_variables() {
    const auto variables = inputs_.variables();
    for (exec::ScheduleBuffer& buffer : schedule().buffers) {
      if (buffer.variable < 0) continue;
      const std::string& name = recording_.variables[static_cast<size_t>(buffer.variable)];
      const auto found =
          std::find_if(variables.begin(), variables.end(),
                       [&](const exec::VariableBinding& each) { return each.name == name; });
      if (found == variables.end()) {
        return Error(ErrorCode::InvalidArgument,
                     "The function reads variable '" + name +
                         "', which is no argument of it: a replay would not know its value.",
                     "UnboundVariable");
      }
      buffer.variable = static_cast<int>(found - variables.begin());
    }
    return {};
  }

  Status plan() {
    MemoryPlanOptions plan_options;
    plan_options.is_enabled = options_.plans_memory;
    plan_options.held = held_;
    plan_options.held.insert(plan_options.held.end(), outputs_.begin(), outputs_.end());
    IGNIS_TRY_ASSIGN(const MemoryPlan planned, plan_memory(kept_, plan_options));
    traced_.report.peak_bytes = planned.peak_bytes;
    parts_.peak_bytes = planned.peak_bytes;
    kept_ = apply_memory_plan(kept_, planned);
    return {};
  }

  Result<exec::TemplateRef> compile(const exec::Schedule& calls) const {
    const TemplateCache::Environment given = workspace_.environment();
    const TemplateCache::Environment mine{given.table, queue_options_, given.hooks,
                                          given.find_device, &submit_compiler_};
    return workspace_.templates().compile(calls, mine);
  }

  // Copies for inputs whose memory the host does not reach.
  Status make_shadow_copies() {
    const std::string& host = workspace_.machine()->options().host_name;
    parts_.shadow_copies.resize(inputs_.tensors().size());
    for (size_t i = 0; i < inputs_.inputs().size(); ++i) {
      const exec::InputDescription& input = inputs_.inputs()[i];
      const std::string device(input.devices.front().name);
      if (device == host || input.base_bytes == 0) continue;
      exec::Schedule copy;
      exec::ScheduleCall call;
      call.kind = exec::CallKind::Copy;
      call.name = "shadow " + std::string(input.name);
      call.outs = {0};
      call.ins = {1};
      for (int k = 0; k < 2; ++k) {
        exec::ScheduleBuffer buffer;
        buffer.name = k == 0 ? "shadow" : "input";
        buffer.devices = {device};
        buffer.size_bytes = input.base_bytes;
        buffer.input = k;
        copy.buffers.push_back(std::move(buffer));
        exec::BufferView view;
        view.buffer = k;
        call.arguments.push_back(std::move(view));
      }
      copy.calls.push_back(std::move(call));
      IGNIS_TRY_ASSIGN(parts_.shadow_copies[i], compile(copy));
    }
    return {};
  }

  // What keeps its memory, and how it comes back when a device lost it.
  Status list_held() {
    const auto constants = recording_.constant_buffers();
    for (size_t b = 0; b < recording_.buffers.size(); ++b) {
      const exec::ScheduleBuffer& buffer = kept_.buffers[b];
      const RecordedBuffer& noted = recording_.buffers[b];
      const int number = static_cast<int>(b);
      const bool is_one_time = std::find(held_.begin(), held_.end(), number) != held_.end();
      if (buffer.memory.empty() && !is_one_time) continue;
      exec::HeldBuffer held;
      held.buffer = number;
      held.name = buffer.name.empty() ? "buffer" + std::to_string(b) : buffer.name;
      for (const runtime::MemoryRef& memory : buffer.memory) {
        held.lanes.push_back({memory, 0, buffer.size_bytes});
      }
      if (is_one_time && buffer.memory.empty()) {
        held.kind = exec::HeldKind::OneTime;
      } else if (std::find(constants.begin(), constants.end(), number) != constants.end()) {
        held.kind = exec::HeldKind::Weights;
        for (const exec::Placement& lane : held.lanes) {
          IGNIS_TRY_ASSIGN(exec::HostBytes bytes, read_back(lane));
          held.bytes.push_back(std::move(bytes));
        }
      } else if (noted.reads_zeros || (noted.is_live && !noted.existed_before)) {
        // Every replay writes it before it reads it, or reads zeros of it.
        held.kind = exec::HeldKind::Scratch;
      }
      parts_.held.push_back(std::move(held));
    }
    return {};
  }

  Result<exec::HostBytes> read_back(const exec::Placement& at) const;

  Result<std::string> describe_groups() const {
    if (options_.jit < 2) return report_batches(parts_.queues->queues()).to_text();
    GroupOptions group_options;
    group_options.makes_graphs = false;
    IGNIS_TRY_ASSIGN(const GroupReport report, group_calls(kept_, {}, group_options));
    return report.to_text();
  }

  const Workspace& workspace_;
  Recording recording_;
  const InputCollector& inputs_;
  const std::vector<TracedLeaf>& leaves_;
  const CaptureOptions& options_;
  QueueOptions queue_options_;
  SubmitCompiler submit_compiler_ = submit_compiler(workspace_.machine()->options().host->target(),
                                                    workspace_.options().program_cache);
  exec::Schedule kept_;
  std::vector<int> outputs_;  // buffers that become outputs
  std::vector<int> held_;     // that one-time calls write
  exec::Captured parts_;
  Traced traced_;
};

// The bytes of a block of memory: where they lie when the host owns it, else a copy.
Result<exec::HostBytes> bytes_of(const Workspace& workspace, const exec::Placement& at,
                                 bool must_copy) {
  const bool is_host = at.memory->owner() == workspace.machine()->options().host_name;
  if (is_host && !must_copy) {
    return exec::HostBytes{{at.memory->host() + at.offset_bytes, at.size_bytes}, at.memory};
  }
  IGNIS_TRY_ASSIGN(const Array array,
                   workspace.adopt(at, DType::UInt8, {static_cast<int64_t>(at.size_bytes)}));
  IGNIS_TRY_ASSIGN(HostTensor read, workspace.to_host(array));
  const auto kept = std::make_shared<HostTensor>(std::move(read));
  return exec::HostBytes{kept->bytes, kept};
}

Result<exec::HostBytes> Tracer::read_back(const exec::Placement& at) const {
  return bytes_of(workspace_, at, false);
}

}  // namespace

Result<Traced> trace(const Workspace& workspace, Recording recording, const InputCollector& inputs,
                     const std::vector<TracedLeaf>& leaves, exec::GuardSet guards,
                     const CaptureOptions& options) {
  return Tracer(workspace, std::move(recording), inputs, leaves, options).run(std::move(guards));
}

Result<exec::CapturedRef> with_state(const Workspace& workspace, const exec::CapturedRef& captured,
                                     exec::Replay& replay) {
  exec::Captured parts = *captured;
  for (exec::HeldBuffer& held : parts.held) {
    if (held.kind != exec::HeldKind::State) continue;
    held.bytes.clear();
    for (size_t lane = 0; lane < std::max<size_t>(held.lanes.size(), 1); ++lane) {
      IGNIS_TRY_ASSIGN(const exec::Placement at, replay.held_place(held.name, lane));
      IGNIS_TRY_ASSIGN(exec::HostBytes bytes, bytes_of(workspace, at, true));
      held.bytes.push_back(std::move(bytes));
    }
  }
  return exec::Captured::make(std::move(parts));
}

}  // namespace ignis::engine
