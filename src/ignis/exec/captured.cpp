#include "ignis/exec/captured.h"

#include "ignis/base/math.h"
#include "ignis/exec/check_template.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace ignis::exec {
namespace {

Error bad(const std::string& what) {
  return Error(ErrorCode::InvalidArgument, "The capture " + what + ".", "BadCaptured");
}

bool has_memory(const QueueTemplate& queues) {
  return std::any_of(queues.buffers.begin(), queues.buffers.end(),
                     [](const ScheduleBuffer& buffer) { return !buffer.memory.empty(); });
}

/// Makes `parts` a capture, in the order of its functions.
class Making {
 public:
  explicit Making(Captured parts) : parts_(std::move(parts)) {}

  Result<CapturedRef> make() {
    if (parts_.queues == nullptr) return bad("has no schedule");
    IGNIS_TRY(check_own(parts_.queues->queues()));
    move_memory(parts_.queues);
    if (parts_.one_time != nullptr) {
      IGNIS_TRY(check_own(parts_.one_time->queues()));
      const QueueTemplate& once = parts_.one_time->queues();
      if (once.input_count != 0 || count_variables(once) != 0) {
        return bad("has one-time calls with inputs or variables");
      }
      move_memory(parts_.one_time);
    }
    IGNIS_TRY(check_shadow_copies());
    IGNIS_TRY(check_held_memory());
    IGNIS_TRY(check_held());
    IGNIS_TRY(check_outputs());
    IGNIS_TRY(check_inputs());
    return collect_devices();
  }

 private:
  const QueueTemplate& queues() const { return parts_.queues->queues(); }

  static Status check_own(const QueueTemplate& made) {
    IGNIS_TRY(check_template(made));
    if (made.has_link_time_inputs) return bad("bakes the addresses of its inputs");
    return Status::ok();
  }

  /// A template without memory links anywhere.
  void move_memory(TemplateRef& made) {
    if (!has_memory(made->queues())) return;
    QueueTemplate stripped = made->queues();
    for (size_t i = 0; i < stripped.buffers.size(); ++i) {
      ScheduleBuffer& buffer = stripped.buffers[i];
      if (buffer.memory.empty()) continue;
      HeldBuffer* held = find_held(static_cast<int>(i));
      if (held == nullptr) {
        held = &parts_.held.emplace_back();
        held->buffer = static_cast<int>(i);
        held->name = buffer.name;
      }
      if (held->lanes.empty()) {
        for (const runtime::MemoryRef& memory : buffer.memory) {
          held->lanes.push_back({memory, 0, memory == nullptr ? 0 : memory->size_bytes()});
        }
      }
      buffer.memory.clear();
    }
    made = std::make_shared<const SharedTemplate>(std::move(stripped));
  }

  HeldBuffer* find_held(int buffer) {
    for (HeldBuffer& held : parts_.held) {
      if (held.buffer == buffer) return &held;
    }
    return nullptr;
  }

  Status check_shadow_copies() const {
    if (parts_.shadow_copies.size() > parts_.input_count()) {
      return bad("copies more inputs than it has");
    }
    for (const TemplateRef& copy : parts_.shadow_copies) {
      if (copy == nullptr) continue;
      IGNIS_TRY(check_own(copy->queues()));
      if (copy->queues().input_count != 2 || has_memory(copy->queues())) {
        return bad("copies an input with a schedule of other inputs than its two");
      }
    }
    return Status::ok();
  }

  Status check_held() {
    std::sort(parts_.held.begin(), parts_.held.end(),
              [](const HeldBuffer& a, const HeldBuffer& b) { return a.buffer < b.buffer; });
    const std::vector<bool> written = written_buffers();
    int last = -1;
    for (HeldBuffer& held : parts_.held) {
      const auto bad_held = [&](const std::string& what) {
        return bad("holds buffer " + std::to_string(held.buffer) + " '" + held.name + "' " + what);
      };
      if (held.buffer == last) return bad_held("twice");
      last = held.buffer;
      if (held.kind > HeldKind::Scratch) return bad_held("for no purpose");
      if (held.buffer < 0 || static_cast<size_t>(held.buffer) >= queues().buffers.size()) {
        return bad_held("which is not there");
      }
      const ScheduleBuffer& buffer = queues().buffers[static_cast<size_t>(held.buffer)];
      if (buffer.input >= 0 || buffer.is_wire || !buffer.stage_for.empty() ||
          buffer.variable >= 0) {
        return bad_held("which is an input, a wire or a stage");
      }
      held.is_written = written[static_cast<size_t>(held.buffer)];
      const bool is_writable = held.kind == HeldKind::State || held.kind == HeldKind::Scratch;
      if (held.is_written && !is_writable) {
        return bad_held("as " + std::string(to_string(held.kind)) + ", and a call writes it");
      }
      if (held.kind == HeldKind::OneTime) IGNIS_TRY(check_one_time(held, buffer));
      const auto is_other_count = [&](size_t count) {
        return count != 0 && count != buffer.devices.size();
      };
      if (is_other_count(held.lanes.size()) || is_other_count(held.bytes.size())) {
        return bad_held("on other than its " + std::to_string(buffer.devices.size()) + " lanes");
      }
      for (const HostBytes& bytes : held.bytes) {
        if (bytes.bytes.size() != buffer.size_bytes) {
          return bad_held("of " + std::to_string(buffer.size_bytes) + " bytes with " +
                          std::to_string(bytes.bytes.size()) + " bytes");
        }
      }
    }
    return Status::ok();
  }

  /// Of this process; a file has none.
  Status check_held_memory() const {
    for (const HeldBuffer& held : parts_.held) {
      if (held.buffer < 0 || static_cast<size_t>(held.buffer) >= queues().buffers.size()) continue;
      const uint64_t size_bytes = queues().buffers[static_cast<size_t>(held.buffer)].size_bytes;
      for (const Placement& at : held.lanes) {
        if (at.memory == nullptr) continue;
        if (is_range_inside(at.offset_bytes, size_bytes, at.memory->size_bytes())) continue;
        return bad("holds '" + held.name + "' of " + std::to_string(size_bytes) +
                   " bytes in memory of " + std::to_string(at.memory->size_bytes()));
      }
    }
    return Status::ok();
  }

  Status check_one_time(const HeldBuffer& held, const ScheduleBuffer& buffer) const {
    if (parts_.one_time == nullptr) return Status::ok();
    const std::vector<ScheduleBuffer>& buffers = parts_.one_time->queues().buffers;
    const auto index = static_cast<size_t>(held.buffer);
    if (index < buffers.size() && buffers[index].size_bytes == buffer.size_bytes &&
        buffers[index].devices == buffer.devices) {
      return Status::ok();
    }
    return bad("holds buffer " + std::to_string(held.buffer) + " '" + held.name +
               "', which is another one in its one-time calls");
  }

  std::vector<bool> written_buffers() const {
    std::vector<bool> written(queues().buffers.size(), false);
    for (const TemplateStep& step : queues().steps) {
      for (const BatchCall& call : step.batch.calls) {
        for (const int out : call.outs) {
          written[static_cast<size_t>(call.arguments[static_cast<size_t>(out)].buffer)] = true;
        }
      }
    }
    return written;
  }

  bool has_parameters() const { return parts_.output_mode != OutputMode::Borrow; }

  Status check_outputs() const {
    if (parts_.output_mode > OutputMode::Caller) return bad("has outputs that nobody owns");
    for (size_t i = 0; i < parts_.outputs.size(); ++i) {
      const CapturedOutput& output = parts_.outputs[i];
      const auto bad_output = [&](const std::string& what) {
        return bad("has output '" + output.name + "' " + what);
      };
      const BufferRange& range = output.range;
      if (range.buffer < 0 || static_cast<size_t>(range.buffer) >= queues().buffers.size()) {
        return bad_output("in no buffer");
      }
      const ScheduleBuffer& buffer = queues().buffers[static_cast<size_t>(range.buffer)];
      if (range.lane < 0 || static_cast<size_t>(range.lane) >= buffer.devices.size()) {
        return bad_output("on lane " + std::to_string(range.lane));
      }
      if (range.offset_bytes > buffer.size_bytes ||
          range.size_bytes > buffer.size_bytes - range.offset_bytes) {
        return bad_output("behind the end of buffer '" + buffer.name + "'");
      }
      std::optional<uint64_t> size_bytes = static_cast<uint64_t>(ignis::size_bytes(output.dtype));
      for (const int64_t extent : output.shape) {
        if (extent < 0) return bad_output("of negative extent");
        if (size_bytes) size_bytes = checked_mul(*size_bytes, static_cast<uint64_t>(extent));
      }
      if (!size_bytes || *size_bytes > range.size_bytes) {
        return bad_output("whose shape takes more than its " + std::to_string(range.size_bytes) +
                          " bytes");
      }
      const int wanted = has_parameters() ? static_cast<int>(parts_.input_count() + i) : -1;
      if (buffer.input != wanted) {
        return bad_output("in input " + std::to_string(buffer.input) + " of its schedule where " +
                          std::to_string(wanted) + " belongs; copy it there");
      }
      if (has_parameters() && (range.offset_bytes != 0 || range.size_bytes != buffer.size_bytes ||
                               buffer.devices.size() != 1)) {
        return bad_output("that is a part of its parameter");
      }
      if (buffer.is_wire || !buffer.stage_for.empty() || buffer.variable >= 0) {
        return bad_output("in a wire, a stage or a variable");
      }
      if (output.alignment_bytes == 0 || output.alignment_bytes > 4096 ||
          (output.alignment_bytes & (output.alignment_bytes - 1)) != 0) {
        return bad_output("aligned to " + std::to_string(output.alignment_bytes) + " bytes");
      }
    }
    return Status::ok();
  }

  Status check_inputs() const {
    const size_t inputs = parts_.input_count() + (has_parameters() ? parts_.outputs.size() : 0);
    if (static_cast<size_t>(count_variables(queues())) > parts_.signature.variables().size()) {
      return bad("has " + std::to_string(parts_.signature.variables().size()) +
                 " variables, and a schedule of " + std::to_string(count_variables(queues())));
    }
    if (static_cast<size_t>(queues().input_count) > inputs) {
      return bad("has " + std::to_string(inputs) +
                 " inputs and outputs to bind, and a schedule of " +
                 std::to_string(queues().input_count));
    }
    for (const ScheduleBuffer& buffer : queues().buffers) {
      if (buffer.input < 0 || static_cast<size_t>(buffer.input) >= parts_.input_count()) continue;
      const InputDescription& input = parts_.signature.inputs()[static_cast<size_t>(buffer.input)];
      const auto is_same = [](const InputDevice& a, const std::string& b) { return a.name == b; };
      if (buffer.size_bytes > input.base_bytes ||
          !std::equal(input.devices.begin(), input.devices.end(), buffer.devices.begin(),
                      buffer.devices.end(), is_same)) {
        return bad("has input '" + std::string(input.name) + "' of " +
                   std::to_string(input.base_bytes) + " bytes, and for it buffer '" + buffer.name +
                   "' of " + std::to_string(buffer.size_bytes) + " or on other devices");
      }
    }
    return Status::ok();
  }

  Result<CapturedRef> collect_devices() {
    std::sort(parts_.devices.begin(), parts_.devices.end(),
              [](const CapturedDevice& a, const CapturedDevice& b) { return a.name < b.name; });
    for (size_t i = 1; i < parts_.devices.size(); ++i) {
      if (parts_.devices[i - 1].name == parts_.devices[i].name) {
        return bad("was made on device '" + parts_.devices[i].name + "' twice");
      }
    }
    for (const TemplateRef& made : {parts_.queues, parts_.one_time}) {
      if (made != nullptr) IGNIS_TRY(check_devices(made->queues()));
    }
    return CapturedRef(std::make_shared<const Captured>(std::move(parts_)));
  }

  Status check_devices(const QueueTemplate& made) const {
    for (const TemplateStep& step : made.steps) {
      if (step.is_host) continue;
      for (const std::string& name : step.batch.devices) {
        if (std::none_of(parts_.devices.begin(), parts_.devices.end(),
                         [&](const CapturedDevice& device) { return device.name == name; })) {
          return bad("runs on device '" + name + "' and does not say what that can do");
        }
      }
    }
    return Status::ok();
  }

  Captured parts_;
};

}  // namespace

std::string_view to_string(HeldKind kind) {
  switch (kind) {
    case HeldKind::Weights: return "weights";
    case HeldKind::OneTime: return "one-time results";
    case HeldKind::State: return "state";
    case HeldKind::Scratch: return "scratch";
  }
  return "?";
}

Result<CapturedRef> Captured::make(Captured parts) { return Making(std::move(parts)).make(); }

Result<CapturedRef> Captured::with_schedule(TemplateRef replaced) const {
  Captured parts = *this;
  parts.queues = std::move(replaced);
  return make(std::move(parts));
}

std::vector<std::string_view> Captured::implicit_state() const {
  std::vector<std::string_view> names;
  for (const HeldBuffer& buffer : held) {
    if (buffer.kind == HeldKind::State) names.push_back(buffer.name);
  }
  return names;
}

int Captured::find_held(std::string_view name) const {
  for (size_t i = 0; i < held.size(); ++i) {
    if (held[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int Captured::find_held(int buffer) const {
  for (size_t i = 0; i < held.size(); ++i) {
    if (held[i].buffer == buffer) return static_cast<int>(i);
  }
  return -1;
}

Result<std::vector<CapturedDevice>> describe_devices(const QueueTemplate& queues,
                                                     const Machine& machine) {
  std::map<std::string, bool> names;  // whether only the host runs on it
  for (const TemplateStep& step : queues.steps) {
    for (const std::string& name : step.batch.devices) {
      bool& is_host = names.try_emplace(name, true).first->second;
      is_host = is_host && step.is_host;
    }
  }
  std::vector<CapturedDevice> devices;
  for (const auto& [name, is_host] : names) {
    const runtime::QueuedDevice* device = machine.find(name);
    if (device == nullptr && is_host) continue;
    if (device == nullptr) {
      return Error(ErrorCode::NotFound, "Device '" + name + "' is not open.", "NoSuchDevice");
    }
    devices.push_back({name, device->capabilities(), device->generation()});
  }
  return devices;
}

}  // namespace ignis::exec
