#include "ignis/engine/queues/template_cache.h"

#include "ignis/base/byte_io.h"
#include "ignis/exec/content_hash.h"
#include "ignis/runtime/clock.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ignis::engine {
namespace {

using exec::Schedule;
using exec::ScheduleBuffer;
using exec::ScheduleCall;

/// Writes everything that a template depends on; equal bytes, equal template.
class KeyWriter {
 public:
  void add(const Schedule& prepared, size_t call_count,
           const TemplateCache::Environment& environment) {
    const QueueOptions& options = environment.options;
    number(kEncoderVersion);
    number(options.is_profiled);
    number(options.queues.all_to_all >= 1);
    number(options.queues.copy_queues);
    number(options.link_time_threshold <= static_cast<int64_t>(call_count));
    number(options.aliased_inputs.size());
    for (const std::vector<int>& set : options.aliased_inputs) numbers(set);
    number(environment.table.fingerprint());  // switches included
    const SubmitCompiler* const submit = environment.submit_compiler;
    key_.put_text(submit == nullptr ? "" : submit->identity);
    number(submit == nullptr ? 0 : submit->most_in_code);
    add_devices(prepared, environment.find_device);
    number(prepared.buffers.size());
    for (const ScheduleBuffer& buffer : prepared.buffers) add(buffer);
    number(prepared.programs.size());
    for (const ProgramImage& image : prepared.programs) key_.put_raw(exec::hash_image(image));
    number(prepared.calls.size());
    for (const ScheduleCall& call : prepared.calls) add(call);
  }
  std::string take() {
    const std::vector<std::byte>& bytes = key_.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  template <typename T>
  void number(T value) {
    key_.put(static_cast<uint64_t>(value));
  }
  void numbers(const std::vector<int>& values) {
    number(values.size());
    for (const int value : values) number(value);
  }

  void add_devices(const Schedule& prepared, const DeviceFinder& find_device) {
    std::set<std::string> names;
    for (const ScheduleBuffer& buffer : prepared.buffers) {
      names.insert(buffer.devices.begin(), buffer.devices.end());
    }
    number(names.size());
    for (const std::string& name : names) {
      const runtime::QueuedDevice* device = find_device(name);
      key_.put_text(name);
      number(device == nullptr ? 0 : device->generation());
      number(device == nullptr ? 0 : device->encoder_version());
    }
  }

  void add(const ScheduleBuffer& buffer) {
    // An input's name is the caller's buffer's of this time.
    key_.put_text(buffer.input < 0 ? buffer.name : "");
    number(buffer.devices.size());
    for (const std::string& device : buffer.devices) key_.put_text(device);
    number(buffer.size_bytes);
    number(buffer.input);
    number(buffer.is_wire);
    number(buffer.variable);
    key_.put_text(buffer.stage_for);
    number(buffer.memory.size());  // of a prepared schedule with numbered inputs: none
    for (const runtime::MemoryRef& memory : buffer.memory) {
      number(reinterpret_cast<uintptr_t>(memory.get()));
    }
  }

  void add(const ScheduleCall& call) {
    number(call.kind);
    key_.put_text(call.name);
    number(call.program);
    number(call.arguments.size());
    for (const exec::BufferView& view : call.arguments) {
      number(view.buffer);
      number(view.item_bytes);
      number(view.steps.size());
      for (const exec::ViewStep& step : view.steps) {
        number(step.kind);
        number(step.begin);
        number(step.end);
        number(step.lane);
        number(step.item_bytes);
      }
    }
    numbers(call.outs);
    numbers(call.ins);
    number(call.knows_writes);
    number(call.variables.size());
    for (const exec::CallVariable& variable : call.variables) {
      key_.put_text(variable.name);
      number(variable.value);
      number(variable.run_time);
    }
    number(call.parts);
    key_.put(call.flops);
    key_.put(call.bytes);
    number(call.wants_signal);
  }

  ByteWriter key_;
};

uint64_t size_of(const exec::QueueTemplate& made) {
  uint64_t size = sizeof made;
  for (const ScheduleBuffer& buffer : made.buffers) size += sizeof buffer + buffer.name.size();
  for (const ProgramImage& image : made.programs) {
    size += sizeof image + image.object.size() + image.source.size();
  }
  for (const exec::SubmitProgram& program : made.submit_programs) {
    size += sizeof program + program.image.object.size();
  }
  for (const exec::TemplateStep& step : made.steps) {
    size += sizeof step;
    for (const exec::BatchCall& call : step.batch.calls) {
      size += sizeof call + call.name.size() + call.arguments.size() * sizeof(exec::BufferRange);
    }
    for (const exec::QueueStream& stream : step.batch.streams) {
      size += sizeof stream + stream.commands.size() * sizeof(runtime::Command) +
              stream.encoded.bytes.size() + stream.encoded.patches.size() * sizeof(runtime::Patch) +
              stream.addresses.size() * sizeof(exec::LinkAddress);
      for (const runtime::EncodedPart& part : stream.encoded.parts) {
        size += sizeof part + part.bytes.size() + part.patches.size() * sizeof(runtime::Patch);
      }
    }
  }
  return size;
}

}  // namespace

void number_inputs(Schedule& schedule, std::vector<exec::BoundInput>& inputs) {
  std::map<std::vector<const runtime::Memory*>, int> known;
  for (const ScheduleBuffer& buffer : schedule.buffers) {
    if (buffer.input >= static_cast<int>(inputs.size())) {
      inputs.resize(static_cast<size_t>(buffer.input) + 1);
    }
  }
  for (const ScheduleCall& call : schedule.calls) {
    for (const exec::BufferView& view : call.arguments) {
      ScheduleBuffer& buffer = schedule.buffers[static_cast<size_t>(view.buffer)];
      if (buffer.input >= 0 || buffer.memory.empty()) continue;
      std::vector<const runtime::Memory*> identity;
      identity.reserve(buffer.memory.size());
      for (const runtime::MemoryRef& memory : buffer.memory) identity.push_back(memory.get());
      const auto [found, is_new] =
          known.try_emplace(std::move(identity), static_cast<int>(inputs.size()));
      if (is_new) {
        exec::BoundInput bound;
        for (const runtime::MemoryRef& memory : buffer.memory) {
          bound.lanes.push_back(exec::bind(memory).lanes.front());
        }
        inputs.push_back(std::move(bound));
      }
      buffer.input = found->second;
      buffer.name = "input " + std::to_string(found->second);
      buffer.memory.clear();
    }
  }
  // What no call uses has no number, and the template holds no buffer.
  for (ScheduleBuffer& buffer : schedule.buffers) buffer.memory.clear();
}

Result<exec::TemplateRef> TemplateCache::compile(const Schedule& schedule,
                                                 const Environment& environment, bool allow_cache,
                                                 std::vector<exec::BoundInput>* inputs) {
  IGNIS_TRY_ASSIGN(
      Schedule prepared,
      prepare_schedule(schedule, environment.table, environment.options.stage, environment.hooks));
  const bool is_cached = allow_cache && inputs != nullptr;
  std::string key;
  if (inputs != nullptr) number_inputs(prepared, *inputs);
  if (is_cached) {
    KeyWriter writer;
    writer.add(prepared, schedule.calls.size(), environment);
    key = writer.take();
    if (exec::TemplateRef found = find(key)) return found;
  }
  const int64_t begin_ns = runtime::Clock::real().now_ns();
  IGNIS_TRY_ASSIGN(exec::QueueTemplate made, make_template(prepared, schedule.calls.size(),
                                                           environment.table, environment.options));
  IGNIS_TRY(encode_template(made, environment.find_device));
  if (environment.submit_compiler != nullptr) {
    IGNIS_TRY(add_submit_programs(made, environment.find_device, *environment.submit_compiler));
  }
  exec::TemplateRef shared = std::make_shared<const exec::SharedTemplate>(std::move(made));
  count_compile(begin_ns);
  if (is_cached) shared = keep(std::move(key), std::move(shared));
  return shared;
}

exec::TemplateRef TemplateCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    ++counts_.misses;
    return nullptr;
  }
  ++counts_.hits;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->made;
}

exec::TemplateRef TemplateCache::keep(std::string key, exec::TemplateRef made) {
  std::vector<exec::TemplateRef> evicted;  // released outside of the lock
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) return found->second->made;  // another thread was faster
  const uint64_t size_bytes = size_of(made->queues()) + 2 * key.size();
  entries_.push_front({key, made, size_bytes});
  by_key_.emplace(std::move(key), entries_.begin());
  counts_.size_bytes += size_bytes;
  while (counts_.size_bytes > max_bytes_ && !entries_.empty()) {
    Entry& oldest = entries_.back();
    counts_.size_bytes -= oldest.size_bytes;
    ++counts_.evictions;
    evicted.push_back(std::move(oldest.made));
    by_key_.erase(oldest.key);
    entries_.pop_back();
  }
  return made;
}

void TemplateCache::count_compile(int64_t begin_ns) {
  const int64_t end_ns = runtime::Clock::real().now_ns();
  const std::lock_guard lock(mutex_);
  counts_.compile_ns += end_ns - begin_ns;
}

TemplateCacheCounts TemplateCache::counts() const {
  const std::lock_guard lock(mutex_);
  TemplateCacheCounts counts = counts_;
  counts.templates = entries_.size();
  return counts;
}

void TemplateCache::clear() {
  std::list<Entry> gone;
  const std::lock_guard lock(mutex_);
  gone.swap(entries_);
  by_key_.clear();
  counts_.size_bytes = 0;
}

}  // namespace ignis::engine
