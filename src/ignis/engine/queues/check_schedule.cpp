#include "ignis/engine/queues/check_schedule.h"

#include "ignis/engine/queues/view.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ignis::engine {
namespace {

Error refuse(const std::string& what) {
  return Error(ErrorCode::InvalidArgument, what, "BadSchedule");
}

bool is_index(int number, size_t count) {
  return number >= 0 && static_cast<size_t>(number) < count;
}

Status check_buffer(const exec::ScheduleBuffer& buffer, const DeviceTable& table) {
  const std::string name = "Buffer '" + buffer.name + "'";
  if (buffer.devices.empty()) return refuse(name + " lies on no device.");
  for (const std::string& device : buffer.devices) {
    if (!table.knows(device)) {
      return refuse(name + " lies on device '" + device + "', which is not in the device table.");
    }
  }
  if (!buffer.memory.empty() && buffer.memory.size() != buffer.devices.size()) {
    return refuse(name + " has " + std::to_string(buffer.devices.size()) + " lanes and " +
                  std::to_string(buffer.memory.size()) + " blocks of memory.");
  }
  if (buffer.variable >= 0) {
    const bool is_cell = buffer.variable < exec::kMostVariables &&
                         buffer.size_bytes == exec::kVariableBytes && buffer.memory.empty() &&
                         buffer.input < 0 && buffer.stage_for.empty() && !buffer.is_wire &&
                         buffer.devices == std::vector<std::string>{table.host};
    if (!is_cell) {
      return refuse(name + " stands for run-time variable " + std::to_string(buffer.variable) +
                    " and is no cell of " + std::to_string(exec::kVariableBytes) + " bytes on '" +
                    table.host + "' without memory.");
    }
  }
  for (size_t i = 0; i < buffer.memory.size(); ++i) {
    const runtime::Memory* memory = buffer.memory[i].get();
    if (memory == nullptr) return refuse(name + " has an empty block of memory.");
    if (memory->size_bytes() < buffer.size_bytes) {
      return refuse(name + " has " + std::to_string(buffer.size_bytes) + " bytes in a block of " +
                    std::to_string(memory->size_bytes()) + ".");
    }
  }
  return Status::ok();
}

Status check_argument_numbers(const std::string& name, const std::vector<int>& numbers,
                              size_t count) {
  for (const int number : numbers) {
    if (!is_index(number, count)) {
      return refuse(name + " reads or writes argument " + std::to_string(number) + " of " +
                    std::to_string(count) + ".");
    }
  }
  return Status::ok();
}

/// Cells of run-time variables are read by programs and callbacks.
Status check_cells(const exec::Schedule& schedule, const exec::ScheduleCall& call,
                   const std::string& name) {
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const exec::ScheduleBuffer& buffer =
        schedule.buffers[static_cast<size_t>(call.arguments[i].buffer)];
    if (buffer.variable < 0) continue;
    const bool writes = !call.knows_writes || std::find(call.outs.begin(), call.outs.end(),
                                                        static_cast<int>(i)) != call.outs.end();
    if (writes || call.kind == exec::CallKind::Copy) {
      return refuse(name + (writes ? " writes" : " copies") + " buffer '" + buffer.name +
                    "', which stands for a run-time variable; programs read it.");
    }
  }
  return Status::ok();
}

Status check_call(const exec::Schedule& schedule, const exec::ScheduleCall& call) {
  const std::string name = "Call '" + call.name + "'";
  for (const exec::BufferView& argument : call.arguments) {
    auto range = resolve_view(schedule.buffers, argument);
    if (!range) return std::move(range).error().with_context("call " + call.name);
  }
  IGNIS_TRY(check_argument_numbers(name, call.outs, call.arguments.size()));
  IGNIS_TRY(check_argument_numbers(name, call.ins, call.arguments.size()));
  IGNIS_TRY(check_cells(schedule, call, name));
  for (const exec::CallVariable& variable : call.variables) {
    if (variable.run_time >= exec::kMostVariables) {
      return refuse(name + " binds run-time variable " + std::to_string(variable.run_time) +
                    "; there are at most " + std::to_string(exec::kMostVariables) + ".");
    }
  }
  switch (call.kind) {
    case exec::CallKind::Program:
      if (!is_index(call.program, schedule.programs.size())) {
        return refuse(name + " runs program " + std::to_string(call.program) + " of " +
                      std::to_string(schedule.programs.size()) + ".");
      }
      if (call.parts < 1) {
        return refuse(name + " has " + std::to_string(call.parts) + " parts; it needs at least 1.");
      }
      break;
    case exec::CallKind::Copy:
      if (call.arguments.size() != 2) {
        return refuse(name + " is a copy with " + std::to_string(call.arguments.size()) +
                      " arguments; it needs a destination and a source.");
      }
      break;
    case exec::CallKind::Other: break;
  }
  return Status::ok();
}

}  // namespace

Status check_schedule(const exec::Schedule& schedule, const DeviceTable& table) {
  for (const exec::ScheduleBuffer& buffer : schedule.buffers) {
    IGNIS_TRY(check_buffer(buffer, table));
  }
  for (const exec::ScheduleCall& call : schedule.calls) IGNIS_TRY(check_call(schedule, call));
  return Status::ok();
}

}  // namespace ignis::engine
