#include "ignis/exec/plan_section.h"

#include "ignis/base/math.h"
#include "ignis/exec/artifact_format.h"
#include "ignis/exec/captured_section.h"
#include "ignis/exec/check_plan.h"

#include <algorithm>

namespace ignis::exec {
namespace {

// The numbers below are the file's, whatever the enumerators' order becomes.
uint32_t role_number(const BufferPlan& buffer) {
  switch (buffer.role) {
    case BufferRole::Input: return 0;
    case BufferRole::Output: return 1;
    case BufferRole::Constant: return 2;
    case BufferRole::Arena: return buffer.reads_zeros ? 4 : 3;
  }
  return 3;
}

Error damaged(const std::string& what) {
  return Error(ErrorCode::InvalidArgument, "The artifact's plan " + what + ".", "BadPlan");
}

void write_ports(ByteWriter& to, const std::vector<Port>& ports) {
  to.put(static_cast<uint32_t>(ports.size()));
  for (const Port& port : ports) {
    to.put_text(port.name);
    to.put_text(to_string(port.dtype));
    to.put(static_cast<uint32_t>(port.shape.size()));
    for (const int64_t extent : port.shape) to.put(extent);
    to.put(static_cast<int32_t>(port.buffer));
  }
}

Status read_ports(ByteReader& from, std::vector<Port>& ports) {
  const uint64_t count = from.take_count(16);
  for (uint64_t i = 0; i < count; ++i) {
    Port port;
    port.name = from.take_text();
    IGNIS_TRY_ASSIGN(port.dtype, parse_dtype(from.take_text()));
    const uint64_t rank = from.take_count(sizeof(int64_t));
    for (uint64_t axis = 0; axis < rank; ++axis) port.shape.push_back(from.take<int64_t>());
    port.buffer = from.take<int32_t>();
    ports.push_back(std::move(port));
  }
  return {};
}

void write_needs(ByteWriter& to, const TargetNeeds& needs) {
  to.put_text(needs.arch == Arch::X86_64 ? "x86_64" : "aarch64");
  to.put_text(to_string(needs.isa));
}

Result<TargetNeeds> read_needs(ByteReader& from) {
  TargetNeeds needs;
  const std::string arch = from.take_text();
  if (arch != "x86_64" && arch != "aarch64")
    return damaged("is for the unknown machine '" + arch + "'");
  needs.arch = arch == "x86_64" ? Arch::X86_64 : Arch::AArch64;
  const std::string isa = from.take_text();
  const Result<Isa> known = parse_isa(isa);
  // An instruction set of another architecture would count as a higher one of this.
  if (!known || make_target(*known).arch != needs.arch)
    return damaged("needs '" + isa + "' of a machine that is " + arch);
  needs.isa = *known;
  return needs;
}

Result<BufferPlan> read_buffer(ByteReader& from, std::span<const std::byte> weights,
                               const std::shared_ptr<const void>& owner) {
  BufferPlan buffer;
  buffer.name = from.take_text();
  const auto role = from.take<uint32_t>();
  buffer.size_bytes = from.take<int64_t>();
  const auto offset = from.take<uint64_t>();
  switch (role) {
    case 0: buffer.role = BufferRole::Input; break;
    case 1: buffer.role = BufferRole::Output; break;
    case 2: buffer.role = BufferRole::Constant; break;
    case 3: buffer.role = BufferRole::Arena; break;
    case 4:
      buffer.role = BufferRole::Arena;
      buffer.reads_zeros = true;
      break;
    default:
      return damaged("has buffer '" + buffer.name + "' of the unknown role " +
                     std::to_string(role));
  }
  if (buffer.role == BufferRole::Constant) {
    if (buffer.size_bytes < 0 || offset % kTensorAlignment != 0 ||
        !is_range_inside(offset, static_cast<uint64_t>(buffer.size_bytes), weights.size())) {
      return damaged("has constant '" + buffer.name + "' of " + std::to_string(buffer.size_bytes) +
                     " bytes at " + std::to_string(offset) + " of " +
                     std::to_string(weights.size()) + " bytes of weights");
    }
    buffer.constant = weights.data() + offset;
    buffer.owner = owner;
  } else if (buffer.role == BufferRole::Arena) {
    if (offset > static_cast<uint64_t>(INT64_MAX))
      return damaged("has an arena offset beyond 2^63");
    buffer.arena_offset = static_cast<int64_t>(offset);
  }
  return buffer;
}

// The same capture with other programs.
Result<CapturedRef> with_programs(const Captured& captured,
                                  const std::function<Status(ProgramImage&)>& change) {
  QueueTemplate queues = captured.queues->queues();
  for (ProgramImage& program : queues.programs) IGNIS_TRY(change(program));
  Captured parts = captured;
  parts.queues = std::make_shared<SharedTemplate>(std::move(queues));
  return Captured::make(std::move(parts));
}

// Its programs are the plan's and stand in the file once.
Status write_capture(ByteWriter& to, const Plan& plan,
                     const std::function<uint64_t(const BufferPlan&)>& place) {
  to.put(static_cast<uint32_t>(plan.captured != nullptr));
  if (plan.captured == nullptr) return {};
  IGNIS_TRY_ASSIGN(const CapturedRef lean,
                   with_programs(*plan.captured, [](ProgramImage& program) -> Status {
                     program.object.clear();
                     return {};
                   }));
  ByteWriter bytes;
  IGNIS_TRY(write_captured(bytes, *lean, [&](std::span<const std::byte> constant) {
    BufferPlan buffer;
    buffer.role = BufferRole::Constant;
    buffer.constant = constant.data();
    buffer.size_bytes = static_cast<int64_t>(constant.size());
    return place(buffer);
  }));
  to.put_blob(bytes.bytes());
  return {};
}

Result<CapturedRef> read_capture(ByteReader& from, const Plan& plan,
                                 std::span<const std::byte> weights,
                                 const std::shared_ptr<const void>& owner) {
  const auto has_capture = from.take<uint32_t>();
  if (has_capture == 0) return CapturedRef();
  if (has_capture != 1) return damaged("neither has a capture nor has none");
  IGNIS_TRY_ASSIGN(const CapturedRef lean, read_captured(from.take_blob(), weights, owner));
  return with_programs(*lean, [&](ProgramImage& program) -> Status {
    const auto found =
        std::find_if(plan.programs.begin(), plan.programs.end(), [&](const ProgramImage& known) {
          return known.name == program.name && known.buffer_count == program.buffer_count;
        });
    if (found == plan.programs.end()) {
      return damaged("has a capture with the program '" + program.name + "', which it lacks");
    }
    program.object = found->object;
    return {};
  });
}

}  // namespace

Status write_plan(ByteWriter& to, const TargetNeeds& needs, const Plan& plan,
                  const std::function<uint64_t(const BufferPlan&)>& place) {
  write_needs(to, needs);
  to.put(plan.arena_bytes);
  to.put(static_cast<uint32_t>(plan.buffers.size()));
  for (const BufferPlan& buffer : plan.buffers) {
    to.put_text(buffer.name);
    to.put(role_number(buffer));
    to.put(buffer.size_bytes);
    uint64_t offset = 0;
    if (buffer.role == BufferRole::Constant) offset = place(buffer);
    if (buffer.role == BufferRole::Arena) offset = static_cast<uint64_t>(buffer.arena_offset);
    to.put(offset);
  }
  to.put(static_cast<uint32_t>(plan.programs.size()));
  for (const ProgramImage& program : plan.programs) {
    to.put_text(program.name);
    to.put(static_cast<int32_t>(program.buffer_count));
    to.put_blob(program.object);
  }
  to.put(static_cast<uint32_t>(plan.calls.size()));
  for (const Call& call : plan.calls) {
    to.put_text(call.name);
    to.put_text(call.layer);
    to.put(static_cast<int32_t>(call.program));
    to.put(static_cast<int32_t>(call.max_parts));
    to.put(call.flops);
    to.put(call.bytes);
    to.put(static_cast<uint32_t>(call.buffers.size()));
    for (const int buffer : call.buffers) to.put(static_cast<int32_t>(buffer));
    to.put(static_cast<uint32_t>(call.written.size()));
    for (const int slot : call.written) to.put(static_cast<int32_t>(slot));
  }
  write_ports(to, plan.inputs);
  write_ports(to, plan.outputs);
  return write_capture(to, plan, place);
}

Result<TargetNeeds> read_needs(std::span<const std::byte> section) {
  ByteReader from(section);
  IGNIS_TRY_ASSIGN(const TargetNeeds needs, read_needs(from));
  if (!from.is_whole()) return damaged("ends too early");
  return needs;
}

Result<Plan> read_plan(std::span<const std::byte> section, std::span<const std::byte> weights,
                       const std::shared_ptr<const void>& owner) {
  ByteReader from(section);
  IGNIS_TRY(read_needs(from));
  Plan plan;
  plan.arena_bytes = from.take<int64_t>();
  const uint64_t buffer_count = from.take_count(24);
  for (uint64_t i = 0; i < buffer_count; ++i) {
    IGNIS_TRY_ASSIGN(BufferPlan buffer, read_buffer(from, weights, owner));
    plan.buffers.push_back(std::move(buffer));
  }
  const uint64_t program_count = from.take_count(16);
  for (uint64_t i = 0; i < program_count; ++i) {
    ProgramImage program;
    program.name = from.take_text();
    program.buffer_count = from.take<int32_t>();
    const std::span<const std::byte> object = from.take_blob();
    program.object.assign(object.begin(), object.end());
    plan.programs.push_back(std::move(program));
  }
  const uint64_t call_count = from.take_count(40);
  for (uint64_t i = 0; i < call_count; ++i) {
    Call call;
    call.name = from.take_text();
    call.layer = from.take_text();
    call.program = from.take<int32_t>();
    call.max_parts = from.take<int32_t>();
    call.flops = from.take<double>();
    call.bytes = from.take<double>();
    const uint64_t count = from.take_count(sizeof(int32_t));
    for (uint64_t b = 0; b < count; ++b) call.buffers.push_back(from.take<int32_t>());
    const uint64_t written = from.take_count(sizeof(int32_t));
    for (uint64_t w = 0; w < written; ++w) call.written.push_back(from.take<int32_t>());
    plan.calls.push_back(std::move(call));
  }
  IGNIS_TRY(read_ports(from, plan.inputs));
  IGNIS_TRY(read_ports(from, plan.outputs));
  IGNIS_TRY(check_plan(plan));
  IGNIS_TRY_ASSIGN(plan.captured, read_capture(from, plan, weights, owner));
  IGNIS_TRY(from.check("artifact's plan"));
  return plan;
}

}  // namespace ignis::exec
