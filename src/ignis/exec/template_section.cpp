#include "ignis/exec/template_section.h"

#include "ignis/exec/check_template.h"
#include "ignis/exec/section_fields.h"
#include "ignis/exec/submit_program.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ignis::exec {
namespace {

using runtime::Command;
using runtime::EncodedPart;
using runtime::EncodedQueue;
using runtime::Patch;
using runtime::QueueId;

constexpr uint32_t kTemplateVersion = 1;

// Every put_ function has a take_ function beside it: the same fields in the same order.

void put(ByteWriter& to, const ProgramImage& program) {
  to.put_text(program.name);
  put_int(to, program.buffer_count);
  to.put_blob(program.object);
}
ProgramImage take_program(FieldReader& from) {
  ProgramImage program;
  program.name = from.take_text();
  program.buffer_count = from.take_int();
  program.object = from.take_bytes();
  return program;
}

void put(ByteWriter& to, const SubmitProgram& program) {
  put(to, program.image);
  to.put_raw(program.code);
  put_bool(to, program.is_rolled);
}
SubmitProgram take_submit_program(FieldReader& from) {
  SubmitProgram program;
  program.image = take_program(from);
  const std::span<const std::byte> code = from.take_raw(program.code.size());
  std::copy(code.begin(), code.end(), program.code.begin());
  program.is_rolled = from.take_bool();
  return program;
}

void put(ByteWriter& to, const ScheduleBuffer& buffer) {
  to.put_text(buffer.name);
  put_texts(to, buffer.devices);
  to.put(buffer.size_bytes);
  put_int(to, buffer.input);
  put_bool(to, buffer.is_wire);
  put_int(to, buffer.other_end);
  put_int(to, buffer.variable);
  to.put_text(buffer.stage_for);
}
ScheduleBuffer take_buffer(FieldReader& from) {
  ScheduleBuffer buffer;
  buffer.name = from.take_text();
  buffer.devices = from.take_texts();
  buffer.size_bytes = from.take<uint64_t>();
  buffer.input = from.take_int();
  buffer.is_wire = from.take_bool();
  buffer.other_end = from.take_int();
  buffer.variable = from.take_int();
  buffer.stage_for = from.take_text();
  return buffer;
}

void put(ByteWriter& to, const QueueId& queue) {
  put_enum(to, queue.kind);
  put_int(to, queue.index);
}
QueueId take_queue(FieldReader& from) {
  QueueId queue;
  queue.kind = from.take_enum(QueueId::Kind::Copy);
  queue.index = from.take_int();
  return queue;
}

void put(ByteWriter& to, const BufferRange& range) {
  put_int(to, range.buffer);
  put_int(to, range.lane);
  to.put(range.offset_bytes);
  to.put(range.size_bytes);
  put_int(to, range.item_bytes);
}
BufferRange take_range(FieldReader& from) {
  BufferRange range;
  range.buffer = from.take_int();
  range.lane = from.take_int();
  range.offset_bytes = from.take<uint64_t>();
  range.size_bytes = from.take<uint64_t>();
  range.item_bytes = from.take_int();
  return range;
}

void put(ByteWriter& to, const BatchCall& call) {
  put_int(to, call.tag);
  put_enum(to, call.kind);
  to.put_text(call.name);
  put_int(to, call.program);
  put_int(to, call.device);
  put(to, call.queue);
  put_count(to, call.arguments);
  for (const BufferRange& range : call.arguments) put(to, range);
  put_ints(to, call.outs);
  put_ints(to, call.ins);
  put_count(to, call.variables);
  for (const CallVariable& variable : call.variables) {
    to.put_text(variable.name);
    to.put(variable.value);
    put_int(to, variable.run_time);
  }
  to.put(call.parts);
  to.put(call.flops);
  to.put(call.bytes);
  put_bool(to, call.is_marked);
  put_int(to, call.start_slot);
  put_int(to, call.end_slot);
}
BatchCall take_call(FieldReader& from) {
  BatchCall call;
  call.tag = from.take_int();
  call.kind = from.take_enum(CallKind::Other);
  call.name = from.take_text();
  call.program = from.take_int();
  call.device = from.take_int();
  call.queue = take_queue(from);
  call.arguments.resize(from.take_count(28));
  for (BufferRange& range : call.arguments) range = take_range(from);
  call.outs = from.take_ints();
  call.ins = from.take_ints();
  call.variables.resize(from.take_count(16));
  for (CallVariable& variable : call.variables) {
    variable.name = from.take_text();
    variable.value = from.take<int64_t>();
    variable.run_time = from.take_int();
  }
  call.parts = from.take<int64_t>();
  call.flops = from.take<double>();
  call.bytes = from.take<double>();
  call.is_marked = from.take_bool();
  call.start_slot = from.take_int();
  call.end_slot = from.take_int();
  return call;
}

void put(ByteWriter& to, const Command& command) {
  put_enum(to, command.kind);
  put_int(to, command.device);
  put_int(to, command.signal);
  to.put(command.value);
  put_int(to, command.tag);
  put_int(to, command.slot);
}
Command take_command(FieldReader& from) {
  Command command;
  command.kind = from.take_enum(Command::Kind::Timestamp);
  command.device = from.take_int();
  command.signal = from.take_int();
  command.value = from.take<uint64_t>();
  command.tag = from.take_int();
  command.slot = from.take_int();
  return command;
}

void put(ByteWriter& to, const std::vector<Patch>& patches) {
  put_count(to, patches);
  for (const Patch& patch : patches) {
    to.put(patch.offset_bytes);
    to.put(patch.width_bytes);
    put_enum(to, patch.source);
    put_int(to, patch.index);
    to.put(patch.addend);
  }
}
std::vector<Patch> take_patches(FieldReader& from) {
  std::vector<Patch> patches(from.take_count(18));
  for (Patch& patch : patches) {
    patch.offset_bytes = from.take<uint32_t>();
    patch.width_bytes = from.take<uint8_t>();
    patch.source = from.take_enum(Patch::Source::Part);
    patch.index = from.take_int();
    patch.addend = from.take<int64_t>();
  }
  return patches;
}

void put(ByteWriter& to, const EncodedQueue& encoded) {
  to.put_blob(encoded.bytes);
  put(to, encoded.patches);
  put_count(to, encoded.parts);
  for (const EncodedPart& part : encoded.parts) {
    put_enum(to, part.purpose);
    to.put_blob(part.bytes);
    put(to, part.patches);
  }
}
EncodedQueue take_encoded(FieldReader& from) {
  EncodedQueue encoded;
  encoded.bytes = from.take_bytes();
  encoded.patches = take_patches(from);
  encoded.parts.resize(from.take_count(13));
  for (EncodedPart& part : encoded.parts) {
    part.purpose = from.take_enum(runtime::Purpose::Wire);
    part.bytes = from.take_bytes();
    part.patches = take_patches(from);
  }
  return encoded;
}

void put(ByteWriter& to, const QueueStream& stream) {
  put_int(to, stream.device);
  put(to, stream.queue);
  put_int(to, stream.signal);
  put_count(to, stream.commands);
  for (const Command& command : stream.commands) put(to, command);
  put(to, stream.encoded);
  put_count(to, stream.addresses);
  for (const LinkAddress& address : stream.addresses) {
    put_enum(to, address.kind);
    put_int(to, address.index);
    put_int(to, address.lane);
    to.put(address.offset_bytes);
  }
}
QueueStream take_stream(FieldReader& from) {
  QueueStream stream;
  stream.device = from.take_int();
  stream.queue = take_queue(from);
  stream.signal = from.take_int();
  stream.commands.resize(from.take_count(25));
  for (Command& command : stream.commands) command = take_command(from);
  stream.encoded = take_encoded(from);
  stream.addresses.resize(from.take_count(17));
  for (LinkAddress& address : stream.addresses) {
    address.kind = from.take_enum(LinkAddress::Kind::Timeline);
    address.index = from.take_int();
    address.lane = from.take_int();
    address.offset_bytes = from.take<uint64_t>();
  }
  return stream;
}

void put(ByteWriter& to, const Batch& batch) {
  put_texts(to, batch.devices);
  put_count(to, batch.calls);
  for (const BatchCall& call : batch.calls) put(to, call);
  put_count(to, batch.streams);
  for (const QueueStream& stream : batch.streams) put(to, stream);
  put_count(to, batch.touched);
  for (const TouchedOwner& touched : batch.touched) {
    to.put_text(touched.owner);
    put_int(to, touched.accessor);
  }
  put_bool(to, batch.waits);
  put_count(to, batch.table);
  for (const TableEntry& entry : batch.table) {
    put_int(to, entry.input);
    put_int(to, entry.lane);
    put_int(to, entry.device);
  }
  put_int(to, batch.submit_program);
}
Batch take_batch(FieldReader& from) {
  Batch batch;
  batch.devices = from.take_texts();
  batch.calls.resize(from.take_count(80));
  for (BatchCall& call : batch.calls) call = take_call(from);
  batch.streams.resize(from.take_count(33));
  for (QueueStream& stream : batch.streams) stream = take_stream(from);
  batch.touched.resize(from.take_count(8));
  for (TouchedOwner& touched : batch.touched) {
    touched.owner = from.take_text();
    touched.accessor = from.take_int();
  }
  batch.waits = from.take_bool();
  batch.table.resize(from.take_count(12));
  for (TableEntry& entry : batch.table) {
    entry.input = from.take_int();
    entry.lane = from.take_int();
    entry.device = from.take_int();
  }
  batch.submit_program = from.take_int();
  return batch;
}

void put_all(ByteWriter& to, const QueueTemplate& queues) {
  to.put(kTemplateVersion);
  put_count(to, queues.buffers);
  for (const ScheduleBuffer& buffer : queues.buffers) put(to, buffer);
  put_count(to, queues.programs);
  for (const ProgramImage& program : queues.programs) put(to, program);
  put_count(to, queues.submit_programs);
  for (const SubmitProgram& program : queues.submit_programs) put(to, program);
  put_count(to, queues.steps);
  for (const TemplateStep& step : queues.steps) {
    put_bool(to, step.is_host);
    put(to, step.batch);
    put_ints(to, step.after);
  }
  put_int(to, queues.input_count);
  put_bool(to, queues.has_link_time_inputs);
  put_bool(to, queues.is_profiled);
  put_count(to, queues.input_uses);
  for (const InputUse& use : queues.input_uses) {
    put_int(to, use.input);
    put_int(to, use.lane);
    to.put(use.begin_bytes);
    to.put(use.end_bytes);
    put_bool(to, use.is_written);
  }
  put_count(to, queues.aliased_inputs);
  for (const std::vector<int>& set : queues.aliased_inputs) put_ints(to, set);
}

}  // namespace

void write_template(ByteWriter& to, const QueueTemplate& queues, bool is_retargetable) {
  if (!is_retargetable || queues.submit_programs.empty()) {
    put_all(to, queues);
    return;
  }
  QueueTemplate without = queues;
  remove_submit_programs(without);
  put_all(to, without);
}

Result<QueueTemplate> read_template(std::span<const std::byte> bytes) {
  FieldReader from(bytes);
  const auto version = from.take<uint32_t>();
  if (version != kTemplateVersion && bytes.size() >= sizeof version) {
    return Error(ErrorCode::InvalidArgument,
                 "The queue template has version " + std::to_string(version) +
                     "; this code reads version " + std::to_string(kTemplateVersion) + ".",
                 "VersionMismatch");
  }
  QueueTemplate queues;
  queues.buffers.resize(from.take_count(33));
  for (ScheduleBuffer& buffer : queues.buffers) buffer = take_buffer(from);
  queues.programs.resize(from.take_count(16));
  for (ProgramImage& program : queues.programs) program = take_program(from);
  queues.submit_programs.resize(from.take_count(49));
  for (SubmitProgram& program : queues.submit_programs) program = take_submit_program(from);
  queues.steps.resize(from.take_count(30));
  for (TemplateStep& step : queues.steps) {
    step.is_host = from.take_bool();
    step.batch = take_batch(from);
    step.after = from.take_ints();
  }
  queues.input_count = from.take_int();
  queues.has_link_time_inputs = from.take_bool();
  queues.is_profiled = from.take_bool();
  queues.input_uses.resize(from.take_count(25));
  for (InputUse& use : queues.input_uses) {
    use.input = from.take_int();
    use.lane = from.take_int();
    use.begin_bytes = from.take<uint64_t>();
    use.end_bytes = from.take<uint64_t>();
    use.is_written = from.take_bool();
  }
  queues.aliased_inputs.resize(from.take_count(4));
  for (std::vector<int>& set : queues.aliased_inputs) set = from.take_ints();
  IGNIS_TRY(from.check("queue template", "BadTemplate"));
  IGNIS_TRY(check_template(queues));
  return queues;
}

}  // namespace ignis::exec
