#include "ignis/exec/check_plan.h"

#include "ignis/base/math.h"

namespace ignis::exec {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 47;

Error refuse(std::string sentence) {
  return Error(ErrorCode::InvalidArgument, std::move(sentence), "BadPlan");
}

std::string quoted(const std::string& name) { return "'" + name + "'"; }

Status check_buffer(const BufferPlan& buffer, int64_t arena_bytes) {
  if (buffer.size_bytes < 0 || buffer.size_bytes > kMaxBytes) {
    return refuse("Buffer " + quoted(buffer.name) + " has " + std::to_string(buffer.size_bytes) +
                  " bytes.");
  }
  if (buffer.role == BufferRole::Constant && buffer.constant == nullptr && buffer.size_bytes != 0) {
    return refuse("Constant " + quoted(buffer.name) + " of " + std::to_string(buffer.size_bytes) +
                  " bytes has no contents.");
  }
  if (buffer.role != BufferRole::Arena) return {};
  if (buffer.arena_offset < 0 || buffer.arena_offset % 64 != 0 ||
      !is_range_inside(static_cast<uint64_t>(buffer.arena_offset),
                       static_cast<uint64_t>(buffer.size_bytes),
                       static_cast<uint64_t>(arena_bytes))) {
    return refuse("Buffer " + quoted(buffer.name) + " takes " + std::to_string(buffer.size_bytes) +
                  " bytes at " + std::to_string(buffer.arena_offset) + " of an arena of " +
                  std::to_string(arena_bytes) + " bytes.");
  }
  return {};
}

Status check_call(const Plan& plan, const Call& call) {
  if (call.program < 0 || static_cast<size_t>(call.program) >= plan.programs.size()) {
    return refuse("Call " + quoted(call.name) + " runs program " + std::to_string(call.program) +
                  "; there are " + std::to_string(plan.programs.size()) + ".");
  }
  const ProgramImage& program = plan.programs[static_cast<size_t>(call.program)];
  if (call.buffers.size() != static_cast<size_t>(program.buffer_count)) {
    return refuse("Call " + quoted(call.name) + " passes " + std::to_string(call.buffers.size()) +
                  " buffers; program " + quoted(program.name) + " takes " +
                  std::to_string(program.buffer_count) + ".");
  }
  for (const int buffer : call.buffers) {
    if (buffer < 0 || static_cast<size_t>(buffer) >= plan.buffers.size()) {
      return refuse("Call " + quoted(call.name) + " passes buffer " + std::to_string(buffer) +
                    "; there are " + std::to_string(plan.buffers.size()) + ".");
    }
  }
  for (const int slot : call.written) {
    if (slot < 0 || static_cast<size_t>(slot) >= call.buffers.size()) {
      return refuse("Call " + quoted(call.name) + " writes slot " + std::to_string(slot) +
                    "; it has " + std::to_string(call.buffers.size()) + ".");
    }
    const BufferPlan& buffer =
        plan.buffers[static_cast<size_t>(call.buffers[static_cast<size_t>(slot)])];
    if (buffer.role == BufferRole::Input || buffer.role == BufferRole::Constant) {
      return refuse("Call " + quoted(call.name) + " writes " + quoted(buffer.name) +
                    ", which is an input or a constant.");
    }
  }
  if (call.max_parts < 1) {
    return refuse("Call " + quoted(call.name) + " is cut into " + std::to_string(call.max_parts) +
                  " parts.");
  }
  return {};
}

// Marks the port's buffer as bound in `is_bound`.
Status check_port(const Plan& plan, const Port& port, BufferRole role,
                  std::vector<bool>& is_bound) {
  if (port.buffer < 0 || static_cast<size_t>(port.buffer) >= plan.buffers.size()) {
    return refuse("Port " + quoted(port.name) + " is buffer " + std::to_string(port.buffer) +
                  "; there are " + std::to_string(plan.buffers.size()) + ".");
  }
  const auto index = static_cast<size_t>(port.buffer);
  const BufferPlan& buffer = plan.buffers[index];
  IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(port.shape));
  const auto bytes = checked_mul<int64_t>(count, size_bytes(port.dtype));
  if (!bytes || *bytes != buffer.size_bytes || size_bytes(port.dtype) == 0) {
    return refuse("Port " + quoted(port.name) + " is " + std::string(to_string(port.dtype)) + " " +
                  to_string(port.shape) + "; its buffer has " + std::to_string(buffer.size_bytes) +
                  " bytes.");
  }
  if (buffer.role != role || is_bound[index]) {
    return refuse("Port " + quoted(port.name) + " is bound to buffer " + quoted(buffer.name) +
                  ", which is no input or output of its own.");
  }
  is_bound[index] = true;
  return {};
}

}  // namespace

Status check_plan(const Plan& plan) {
  if (plan.arena_bytes < 0 || plan.arena_bytes > kMaxBytes) {
    return refuse("The arena has " + std::to_string(plan.arena_bytes) + " bytes.");
  }
  for (const BufferPlan& buffer : plan.buffers) IGNIS_TRY(check_buffer(buffer, plan.arena_bytes));
  for (const Call& call : plan.calls) IGNIS_TRY(check_call(plan, call));
  std::vector<bool> is_bound(plan.buffers.size());
  for (const Port& port : plan.inputs) {
    IGNIS_TRY(check_port(plan, port, BufferRole::Input, is_bound));
  }
  for (const Port& port : plan.outputs) {
    IGNIS_TRY(check_port(plan, port, BufferRole::Output, is_bound));
  }
  // A buffer that no port binds would be a null pointer in a kernel.
  for (const Call& call : plan.calls) {
    for (const int index : call.buffers) {
      const BufferPlan& buffer = plan.buffers[static_cast<size_t>(index)];
      const bool is_port = buffer.role == BufferRole::Input || buffer.role == BufferRole::Output;
      if (is_port && !is_bound[static_cast<size_t>(index)]) {
        return refuse("Call " + quoted(call.name) + " passes buffer " + quoted(buffer.name) +
                      ", which no input or output binds.");
      }
    }
  }
  return {};
}

}  // namespace ignis::exec
